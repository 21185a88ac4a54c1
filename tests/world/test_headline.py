"""The headline of a refusal is the line that tells why, whatever a tool prints around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.world.feedback import plain
from loopr.world.headline import headline

SAID = Path(__file__).parent / "said"
ROOM = 120
TOTALS = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 4 !== 3"

RECORDED = {
    "cargo": "tests::adds_up: assertion `left == right` failed",
    "cargo-build": "error[E0425]: cannot find function `nosuch` in this scope (src/bad.rs:1:14)",
    "django": "FAIL books.tests.BookTests.test_title: AssertionError: 'a' != 'b'",
    "eslint": "/project/bad.js:1:5 'unused' is assigned a value but never used no-unused-vars",
    "git-diff": "+b",
    "go": "TestTotal/adds_up: ledger_test.go:5: got 4, want 3",
    "go-build": "./bad.go:2:23: undefined: nosuch",
    "go-verbose": "TestTotal/adds_up: ledger_test.go:5: got 4, want 3",
    "grep": "grep: nosuch.txt: No such file or directory",
    "jest-one-colour": "Ledger › adds up: Expected: 3, Received: 4",
    "make-gcc": "a.c:1:26: error: ‘nosuch’ undeclared (first use in this function)",
    "make-pytest": "FAILED test_ledger.py::test_adds_up - assert 4 == 3 (and 1 more)",
    "make-unittest": "ERROR __main__.LedgerTests.test_raises: KeyError: 'gone' (and 1 more)",
    "mocha": f"Ledger #total() adds up: {TOTALS} (and 1 more)",
    "mocha-tap": "not ok Ledger total() adds up: Expected values to be strictly equal: 4 !== 3 (and 1 more)",
    "mypy": 'typed.py:2: error: Incompatible return value type (got "int", expected "str") [return-value]',
    "node-crash": "Error: Cannot find module './nosuch'",
    "node-spec": f"adds up: {TOTALS}",
    "node-tap": "not ok adds up: Expected values to be strictly equal: 4 !== 3",
    "npm-jest": "Ledger › adds up: Expected: 3, Received: 4 (and 1 more)",
    "npm-missing": 'Missing script: "nosuch"',
    "npm-mocha": f"Ledger #total() adds up: {TOTALS} (and 1 more)",
    "pytest": "FAILED test_ledger.py::test_adds_up - assert 4 == 3 (and 1 more)",
    "pytest-collection": "ERROR test_broken.py: ModuleNotFoundError: No module named 'nosuchmodule'",
    "pytest-no-summary": "2 failed, 1 passed, 1 warning in 0.02s",
    "pytest-verbose-colour": "FAILED test_ledger.py::test_adds_up - assert 4 == 3 (and 1 more)",
    "ruff": "F401 [*] `os` imported but unused (typed.py:3:8)",
    "ruff-format": "unformatted: File would be reformatted (f.py:1:2)",
    "shell-not-found": "sh: 1: nosuchprogram: not found",
    "traceback": "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1"
    " column 2 (char 1)",
    "tsc": "ledger.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    "unittest": "ERROR __main__.LedgerTests.test_raises: KeyError: 'gone' (and 1 more)",
    "vitest": "ledger.test.js > Ledger > adds up: AssertionError: expected 4 to be 3 // Object.is equality",
}

NPM = "npm warn Unknown user config\n"
MADE_UP = [
    ("", ""),
    ("\n  \n", ""),
    ("3 is not 4", "3 is not 4"),
    ("first\nthe total is 3, 4 was wanted", "the total is 3, 4 was wanted"),
    ("the error handling was loaded\nthe total is 3", "the total is 3"),
    ("error: no ledger\nDone in 3 s", "error: no ledger"),
    ("git: fatal: no ledger\nbye", "git: fatal: no ledger"),
    ("3 problems\n0 errors, 0 failed", "3 problems"),
    (f"ledger is empty\n{NPM}", "ledger is empty"),
    (NPM, "npm warn Unknown user config"),
    ("> x@1.0.0 test\nnpm error code 3\nnpm error the lock file is old\n", "> x@1.0.0 test"),
    ("npm error code EUSAGE\nnpm error\nnpm error the lock file is old\n", "the lock file is old"),
    ("make: *** [Makefile:3: test] Error 1", "make: *** [Makefile:3: test] Error 1"),
    ("make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'. Stop."),
    ("no ledger\nmake[1]: *** [Makefile:3: a] Error 1\nmake: *** [Makefile:9: b] Error 2", "no ledger"),
    ("a.py:3: DeprecationWarning: total() is old\nno ledger\n(node:1) DeprecationWarning: old", "no ledger"),
    (" 10%\r 80%\rno ledger\r\nCleaning up\n", "no ledger"),
    ("\x1b[31merror:\x1b[0m no ledger\n\x1b[2mbye\x1b[0m", "error: no ledger"),
    ("ok 1 - error: is told\nno ledger", "no ledger"),
    ("not ok, said the judge", "not ok, said the judge"),
    ("FAIL\n● adds up\n\n  no ledger\n\nTests: 1 failed", "adds up: no ledger"),
    ("Traceback (most recent call last):\n  File 'a'\nStopIteration\nbye", "StopIteration"),
    (
        "==== short test summary info ====\n" + "".join(f"FAILED a.py::t{n} - no\n" for n in range(50)),
        "FAILED a.py::t0 - no (and more than 20 more)",
    ),
]


def told(raw: bytes) -> str:
    """Return the headline of an output as a reason has it."""
    return headline(plain(raw)).within(ROOM)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_what_tools_print(name: str) -> None:
    """The failing test or the broken line is told, not the warning of npm or the last line of make."""
    assert told((SAID / f"{name}.txt").read_bytes()) == RECORDED[name]


def test_every_recording_has_its_headline() -> None:
    """No recording lies there unread."""
    assert {each.stem for each in SAID.glob("*.txt")} == set(RECORDED)


@pytest.mark.parametrize(("text", "line"), MADE_UP)
def test_what_scripts_print(text: str, line: str) -> None:
    """The last line that tells a failure wins, then the last that is no noise, then the last of all."""
    assert told(text.encode()) == line


@given(st.text(max_size=300).map(lambda piece: piece * 20) | st.lists(st.sampled_from(MADE_UP)).map(str))
@example("x" * 1_000_000)
@example("FAIL: t (m.C.t)\n" * 50_000)
@example("not ok 1 - x\n1..1\n" * 20_000)
@example("Error:" * 100_000)
@example("test a ... FAILED\n" * 20_000)
def test_a_headline_is_one_short_line(text: str) -> None:
    """Whatever was printed, the headline is one line within its room."""
    line = told(text.encode())
    assert len(line) <= ROOM
    assert "\n" not in line


def test_the_count_is_not_what_is_cut() -> None:
    """A long name is cut before the number of those that failed beside it."""
    text = "".join(f"FAILED tests/{'long' * 40}.py::test_{n} - no\n" for n in range(3))
    line = told(f"==== short test summary info ====\n{text}".encode())
    assert line.endswith("… (and 2 more)")
    assert len(line) == ROOM
