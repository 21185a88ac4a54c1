"""Which texts read like a command, so that a hint calls them one."""

from __future__ import annotations

import pytest

from loopr.core.commands import reads_as_command


@pytest.mark.parametrize(
    "text",
    [
        "python3 -m compileall -q src",
        "pytest",
        "pip3.12 install .",
        "make",
        "make docs",
        "go test ./...",
        "./check",
        "tools/check all",
        "bin/rails test",
        "CI=1 npm test",
        "FOO=a BAR=b ./x",
        "printf x > y",
        "own-tool --all",
        "own-tool | tee out",
        "own-tool && other",
        "cat $HOME/x",
    ],
)
def test_commands(text: str) -> None:
    """A program that is known, a path, or the signs of a shell make a command."""
    assert reads_as_command(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Token storage",
        "Make it work",
        "make the login work",
        "find out why it fails",
        "go through all of it",
        "test that it holds",
        "read/write locks",
        "fix `foo`",
        "fix it; then test it",
        "a well-known bug - again",
        "Python 3 support",
        "x=1 is wrong",
    ],
)
def test_words(text: str) -> None:
    """A sentence is none, also where it begins with a verb that is a program too."""
    assert not reads_as_command(text)
