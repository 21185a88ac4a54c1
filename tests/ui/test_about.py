"""What loopr says of itself, and what is said to whoever types a verb that there is not, or more than it takes."""

from __future__ import annotations

import re

import pytest

from loopr import __version__
from loopr.ui.cli import VERBS
from tests.ui.calls import loopr
from tests.ui.scenes import Desk, flat


@pytest.mark.parametrize("words", [[], ["start"], ["lease", "renew"], ["config"]])
def test_help_says_what_its_flag_says(words: list[str]) -> None:
    """`loopr help VERB` prints what `loopr VERB --help` does, and as a document with --json."""
    asked, flagged = loopr("help", *words), loopr(*words, "--help")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out.rstrip() == flagged.out.rstrip()
    assert loopr("help", *words, "--json").document["help"].rstrip() == flagged.out.rstrip()


def test_all_verbs_are_in_the_help() -> None:
    """The list of verbs is that of the program."""
    said = loopr("help").out
    assert [each for each in VERBS if f"\n  {each} " not in said] == []


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["help", "strat"], 2, "did you mean `loopr start`?"),
        (["help", "zzzz"], 2, "`loopr help` lists them"),
        (["help", "lease", "rewen"], 2, "`loopr help lease` explains it"),
        (["verison"], 2, "did you mean `loopr version`?"),
        (["status", "p"], 2, "`loopr tree p` or `loopr show p` is about one of it"),
        (["next", "p/a"], 2, "`loopr why p/a` says why one loop waits"),
        (["run", "plan.md"], 2, "`loopr start PLAN` adds a plan"),
        (["stop", "p"], 2, "`loopr pause p` or `loopr cancel p`"),
        (["doctor", "p"], 2, "`loopr why p` is about one loop"),
        (["why", "p", "q"], 2, "`loopr why --help` explains it"),
    ],
)
def test_what_is_meant_is_told(words: list[str], code: int, hint: str) -> None:
    """A word too many, or one that is no verb, leads to the verb that is meant; also as a document."""
    said = loopr(*words)
    assert (said.code, said.out) == (code, "")
    assert hint in said.err
    assert hint in (loopr(*words, "--json").document["error"]["hint"] or "")


@pytest.mark.parametrize("verb", sorted({*VERBS} - {"logs"}))
def test_people_read_of_tries(verb: str) -> None:
    """What is started again is a try in every help, but for the names that options have."""
    said = re.sub(r"--\S+", "", loopr("help", verb).out)
    assert not re.search(r"\b(attempt|iteration|generation)s?\b", said), said


def test_an_unknown_id_names_the_nearest(desk: Desk) -> None:
    """A misspelt id, of which only the last part may be typed, leads to the nearest one."""
    desk.start(flat(["tokens", "endpoints"], "oauth"))
    for typed, meant in (("oauth/token", "oauth/tokens"), ("endpionts", "oauth/endpoints"), ("ouath", "oauth")):
        said = desk("show", typed)
        assert said.code == (0 if typed == "oauth/token" else 3)  # a unique beginning is enough
        assert typed == "oauth/token" or f"did you mean {meant}?" in said.err


def test_the_version() -> None:
    """`loopr version` says what `--version` says, and --json has it as data."""
    assert loopr("version").out == loopr("--version").out == f"loopr {__version__}\n"
    assert loopr("version", "--json").document["version"] == __version__
