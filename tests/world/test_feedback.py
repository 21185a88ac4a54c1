"""Feedback is the end of an output within bounds, and equal failures have equal signatures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.world.feedback import (
    MAX_BYTES,
    MAX_LINES,
    SIGNATURE_LINES,
    Earlier,
    bounded,
    is_silent,
    render_feedback,
    signature,
)

TREE = Path("/srv-less/worktrees/oauth.g1")
CUT = "[... what came before is left out ...]"


@given(st.binary(max_size=400).map(lambda piece: piece * 60) | st.text(max_size=300).map(lambda t: (t * 99).encode()))
@example(b"x" * 20_000)
@example("é".encode() * 9_000)
@example(b"\n".join(b"%d" % n for n in range(201)))
@example((b"y" * 81 + b"\n") * 199)
def test_feedback_is_bounded(raw: bytes) -> None:
    """Whatever a command prints, its feedback has at most 200 lines and 16 KiB of clean text."""
    text = bounded(raw)
    assert len(text.encode()) <= MAX_BYTES
    assert len(text.split("\n")) <= MAX_LINES
    assert not any(ord(each) < 32 and each not in "\n\t" for each in text)


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20), min_size=1, max_size=30))
@example([str(n) for n in range(MAX_LINES)])
@example([str(n) for n in range(MAX_LINES + 1)])
@example([str(n) for n in range(3 * MAX_LINES)])
def test_the_end_is_what_is_kept(lines: list[str]) -> None:
    """What is kept are the last lines, unchanged, and a cut is marked."""
    text = bounded("\n".join(lines).encode())
    kept = text.split("\n")
    if len(lines) <= MAX_LINES:
        assert kept == lines
    else:
        assert kept[0] == CUT
        assert kept[1:] == lines[-MAX_LINES + 1 :]


def test_a_cut_is_between_lines() -> None:
    """Where bytes and not lines are too many, the first line that is kept is a whole one."""
    lines = [f"{n:03} {'x' * 120}" for n in range(MAX_LINES)]
    first, *kept = bounded("\n".join(lines).encode()).split("\n")
    assert first == CUT
    assert kept == lines[-len(kept) :]
    assert len("\n".join([first, *kept])) > MAX_BYTES - 200


def test_an_endless_line_keeps_its_end() -> None:
    """Output without a single line end is cut in its middle, never inside a character."""
    text = bounded("é".encode() * 100_000 + b"THE END")
    assert text.startswith(CUT)
    assert text.endswith("éTHE END")
    assert "\ufffd" not in text


def test_output_of_a_gigabyte_is_not_read_whole() -> None:
    """Only the end of very long output is looked at, and that it had a beginning is said."""
    assert bounded(b"a\n" * 2_000_000).startswith(CUT)
    assert bounded(b"\n" * 2_000_000 + b"end") == f"{CUT}\nend"


def test_what_a_terminal_would_not_show_is_gone() -> None:
    """Colours, titles and progress bars that were drawn over are left out; bytes that are no text are marked."""
    raw = b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07 10%\r 20%\rdone\r\nbad \xff byte\x00\x08\n\n"
    assert bounded(raw) == "red\ndone\nbad \ufffd byte"


def test_feedback_names_earlier_iterations() -> None:
    """The last refusal comes first and in full, each earlier one is a single short line."""
    text = render_feedback("one\ntwo\n", [Earlier(1, "first\nline"), Earlier(2, "x" * 500)])
    first, second = text.splitlines()[-2:]
    assert text.startswith("one\ntwo\n\n")
    assert first == "- iteration 1: first line"
    assert len(second) < 230
    assert render_feedback("  \n") == ""


# --- signatures -----------------------------------------------------------------------------------------------------

TEMPORARY = "/" + "tmp"  # on every machine
SAME = [
    ("failed in 0.12s", "failed in 13.4s"),
    ("took 1m23s", "took 1m 2s"),
    ("took 1m23.5s", "took 12m3.25s"),
    ("3 tests, 12 ms", "3 tests, 7 ms"),
    ("waited 2 minutes", "waited 31 minutes"),
    ("2026-11-18T12:40:45.123Z FAIL", "2026-11-19T01:02:03Z FAIL"),
    ("2026-11-18 12:40:45,123 FAIL", "2027-01-01 00:00:00,001 FAIL"),
    ("[12:40:45] FAIL", "[01:00:00] FAIL"),
    ("Wed Nov 18 12:40:45 UTC 2026", "Sun Dec  6 03:00:01 UTC 2027"),
    ("Wed, 18 Nov 2026 12:40:45 GMT", "Thu, 19 Nov 2026 03:00:01 GMT"),
    ("at 0x7f45a530d710", "at 0x7f1b71fdf190"),
    ("commit 2fa7208", "commit 9c01d3e"),
    ("id 550e8400-e29b-41d4-a716-446655440000", "id 00000000-e29b-41d4-a716-446655440001"),
    ("seed 1800000000000", "seed 1800000031337"),
    (f"{TREE}/src/a.py:3", f"{TREE}/src/a.py:3"),
    ("# duration_ms 952.056009", "# duration_ms 1685.632327"),
    ("  duration_ms: 1.904224", "  duration_ms: 12.1"),
    ("Time: 00:00.123, Memory: 6.00 MB", "Time: 00:01.9, Memory: 6.00 MB"),
    ("Randomized with seed 12", "Randomized with seed 60123"),
    ("thread 'adds' (12345) panicked", "thread 'adds' (67) panicked"),
    ("~/.npm/_logs/2026-11-20T09_58_38_123Z-debug-0.log", "~/.npm/_logs/2026-11-20T10_00_01_9Z-debug-0.log"),
    (f"ENOENT: {TEMPORARY}/ledger-aX3/i.json", f"ENOENT: {TEMPORARY}/ledger-bY4/i.json"),
    (f"{TEMPORARY}/pytest-of-me/pytest-1/a", f"{TEMPORARY}/pytest-of-me/pytest-22/a"),
    ("\x1b[31mFAIL\x1b[0m", "FAIL"),
    ("a\n\nb", "a\nb"),
]
DIFFERENT = [
    ("FAILED test_a", "FAILED test_b"),
    ("a.py:12:05: error", "a.py:12:06: error"),
    ("a.py:12: error", "a.py:13: error"),
    ("expected 3, got 4", "expected 3, got 5"),
    ("expected 1048576", "expected 2097152"),
    ("the facade is defaced", "the facade is effaced"),
    ("version 1.2.3", "version 1.2.4"),
    ("2 errors", "3 errors"),
    ("phase 2s-a", "phase 3s-a"),
    ("thread 'adds' failed", "thread 'subtracts' failed"),
    ("4 seeds failed", "5 seeds failed"),
    (f"{TEMPORARY}/a/one.json", f"{TEMPORARY}/a/two.json"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_changes_from_run_to_run_is_no_difference(one: str, other: str) -> None:
    """Failures that differ in a time, a duration, long hex or the folder have one signature."""
    assert signature(1, one.encode(), TREE) == signature(1, other.encode(), TREE)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_was_found_is_a_difference(one: str, other: str) -> None:
    """Failures that differ in what they complain of have two signatures."""
    assert signature(1, one.encode(), TREE) != signature(1, other.encode(), TREE)


def test_the_folder_is_no_difference(tmp_path: Path) -> None:
    """The same failure in another worktree has the same signature, by any name of the folder; a neighbour has not."""
    real, link = tmp_path / "real.g1", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    expected = signature(1, f"in {TREE}/x and {TREE}".encode(), TREE)
    assert signature(1, f"in {real}/x and {link}".encode(), link) == expected
    one, other = (signature(1, f"{folder}0".encode(), folder) for folder in (real, link))
    assert one != other


def test_the_exit_code_is_a_difference() -> None:
    """The same words with another exit code are another failure."""
    assert len({signature(code, b"x", TREE) for code in (1, 2, None)}) == 3


def test_only_the_end_counts() -> None:
    """A signature looks at the last 40 lines that say something."""
    end = b"\n".join(b"line %d" % n for n in range(SIGNATURE_LINES))
    assert signature(1, b"one\n" + end, TREE) == signature(1, b"another\n" + end + b"\n\n", TREE)
    assert signature(1, end, TREE) != signature(1, end.replace(b"line 0", b"line x"), TREE)


@given(st.binary(max_size=2_000))
def test_any_output_has_a_signature(raw: bytes) -> None:
    """No output is so odd that it has no signature, and it has only one."""
    assert signature(1, raw, TREE) == signature(1, raw, TREE)


def test_the_feedback_of_many_tries_is_as_long_as_that_of_some() -> None:
    """However many tries came before, the last fifty are told, and of how many."""
    sizes = set()
    for number in (100, 999):
        text = render_feedback("no", [Earlier(each, f"exit {each % 7}") for each in range(1, number)])
        assert f"Refused before that (the last 50 of {number - 1} iterations):" in text
        assert f"- iteration {number - 50}: " in text
        assert f"- iteration {number - 51}: " not in text
        sizes.add(text.count("\n"))
    assert sizes == {54}
    assert "(the last" not in render_feedback("no", [Earlier(each, "exit 1") for each in range(1, 51)])


def test_what_says_nothing_is_silent() -> None:
    """Blank lines and what a terminal was told to draw are no words."""
    assert is_silent(b"") and is_silent(b"\n \x1b[0m\r\n\t\n")
    assert not is_silent(b"\n.\n")
