"""`tree --watch` on a terminal of its own: what others change is on the screen, and Ctrl-C ends it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, PATIENCE_SECS, Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan that waits for a person."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.settings("types:\n  plan: {child: task}\n  task: {check: none}\n")
        repo.write({"plan.md": f"---\nid: demo\ntasks: {[{'id': f'a{n}'} for n in range(40)]}\n---\n# Demo\n"})
        repo.loopr("start", "--no-run", "plan.md")
        yield repo


def test_the_tree_is_drawn_again(repo: Repo) -> None:
    """A loop that somebody pauses meanwhile is shown so, within the lines of the screen, and the last picture stays."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
    env = {**repo.env, "TERM": "xterm"}
    command = [str(LOOPR), "tree", "--watch"]
    with subprocess.Popen(command, cwd=repo.root, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        first = until(ours, "of 40 done ·")
        assert first.count("\n") <= 20, "it fits the screen"
        assert "more lines" in first
        repo.loopr("pause", "demo/a0")
        until(ours, "paused")
        process.send_signal(signal.SIGINT)
        until(ours, "of 40 done ·")
        assert process.wait(PATIENCE_SECS) == 130
    os.close(ours)


def until(descriptor: int, words: str) -> str:
    """Read a terminal until it shows some words."""
    said, ends = "", time.monotonic() + PATIENCE_SECS
    while words not in said:
        assert time.monotonic() < ends, said[-2000:]
        if select.select([descriptor], [], [], 0.2)[0]:
            said += os.read(descriptor, 65536).decode(errors="replace")
    return said


@pytest.mark.parametrize("words", [["--watch"], ["--watch", "--json"]])
def test_without_a_terminal_it_is_refused(repo: Repo, words: list[str]) -> None:
    """Into a pipe, or as a document, nothing is drawn again: exit 2, with the verb that follows."""
    ended = repo.loopr("tree", *words, code=2)
    assert "`loopr events -f` tells it line by line" in ended.err + ended.out
