"""A word or a file that is not there is told with the one that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.ui.nearby import nearest_file, nearest_word
from tests.ui.calls import loopr, repository
from tests.ui.scenes import COMMANDS, Desk, flat

OWN = "types:\n  plan: {child: job}\n  job: {run: make job}\n"


@pytest.fixture
def here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Give a repository in which every call is made."""
    monkeypatch.chdir(desk.folder)
    return desk


@pytest.mark.parametrize(("word", "known", "meant"), [
    ("stat", ["start", "status"], "status"),
    ("sta", ["start", "status"], "start"),
    ("lop", ["plan", "loop"], "loop"),
    ("complet", ["open", "complete"], "complete"),
    ("zzzz", ["open", "done"], ""),
    ("", ["open"], ""),
])  # fmt: skip
def test_a_unique_beginning_goes_before_a_likeness(word: str, known: list[str], meant: str) -> None:
    """The only word that begins as typed is meant, else the one most like it, else none."""
    assert nearest_word(word, known) == meant


@pytest.mark.parametrize(("typed", "meant"), [
    ("pla.md", "plan.md"),
    ("plan", "plan.md"),
    ("plan.txt", "plan.md"),
    ("PLAN.MD", "plan.md"),
    ("isues.jsonl", "issues.jsonl"),
    ("zzzz.md", None),
    ("no/such/plan.md", None),
])  # fmt: skip
def test_the_nearest_file(tmp_path: Path, typed: str, meant: str | None) -> None:
    """A plan is found by its name without an ending too, and a list only by a name of its kind."""
    for name in ("plan.md", "plan-two.md", "issues.jsonl", "plan.py"):
        (tmp_path / name).touch()
    found = nearest_file(tmp_path / typed)
    assert (found.name if found is not None else None) == meant


@pytest.mark.parametrize(("line", "code", "hint"), [
    ("stat", 2, "did you mean `loopr status`?"),
    ("help stat", 2, "did you mean `loopr status`?"),
    ("start pla.md", 3, "did you mean plan.md?"),
    ("start plan", 3, "did you mean plan.md?"),
    ("start p", 3, "p is a plan that was started from plan.md"),
    ("start --from jsonl pla.md", 3, "did you mean plan.md?"),
    ("simulate pla.md", 3, "did you mean plan.md?"),
    ("simulate plan", 3, "did you mean plan.md?"),
    ("simulate p/aa", 3, "did you mean p/a?"),
    ("start --from bead x", 2, "did you mean --from beads?"),
    ("ls --status complet", 2, "did you mean --status complete?"),
    ("usage --by lop", 2, "did you mean --by loop?"),
    ("completion bsh", 2, "did you mean bash?"),
    ("usage --by zzzz", 2, "`loopr usage --help` explains it"),
    ("start", 2, "`loopr start plan.md`"),
    ("simulate", 2, "`loopr simulate plan.md`"),
    ("cancel", 2, "`loopr cancel --help` explains it"),
])  # fmt: skip
def test_what_is_meant_is_named(here: Desk, line: str, code: int, hint: str) -> None:
    """A slip is answered with the verb, the file, the loop or the value that is there."""
    here.start(flat(["a"]))
    said = loopr(*line.split())
    assert (said.code, hint in said.err) == (code, True), said.err


def test_a_first_plan_is_described(tmp_path: Path) -> None:
    """Without a plan file a bare `start` says how one is written, by the ladder that holds."""
    folder = repository(tmp_path / "own")
    assert "under `## Specs` a list of what is to be done" in loopr("-C", folder, "start").err
    (folder / "loopr.yml").write_text(OWN, "utf-8")
    assert "under `## Jobs` a list of what is to be done" in loopr("start", "-C", folder).err
    (folder / "loopr.yml").write_text("types: 1\n", "utf-8")
    assert "under `## Specs`" in loopr("start", "-C", folder).err


@pytest.mark.parametrize(("key", "hint"), [
    ("types.jbo.check", "did you mean types.job.check?"),
    ("types.zzz.check", "the types are plan, job; a new one is written into the file"),
])  # fmt: skip
def test_a_type_that_there_is_not(desk: Desk, key: str, hint: str) -> None:
    """`set` names the key and the nearest type, and no line that the file does not have."""
    desk.write("loopr.yml", OWN)
    said = desk("set", key, "x")
    first, second = said.err.splitlines()
    assert (said.code, first) == (78, f"loopr: {key}: there is no type {key.split('.')[1]}")
    assert second.startswith(f"  hint: {hint}")
    assert (desk.folder / "loopr.yml").read_text("utf-8") == OWN


def test_a_key_of_another_type_is_explained(desk: Desk) -> None:
    """`config explain` of a key that a type would have names the type that there is."""
    desk.write("loopr.yml", OWN)
    said = loopr("config", "explain", "-C", desk.folder, "types.jbo.check")
    assert (said.code, "did you mean types.job.check?" in said.err) == (2, True)


def test_a_new_type_is_set_where_it_belongs(desk: Desk) -> None:
    """A key of a type that only begins the file is no stranger: the built-in ladder has it."""
    desk.write("loopr.yml", COMMANDS)
    assert desk("set", "types.code.check", "make test").code == 0
