"""Lists of work from elsewhere that are started: each becomes a plan once, and a newer one keeps ids and work."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from loopr.ui.cli.listed import KINDS
from loopr.ui.lists import ALL_KINDS
from tests.core.test_imported import TASKS
from tests.ui.calls import everything, this_tree
from tests.ui.scenes import Desk


def bead(own: str, status: str = "open", **more: Any) -> dict[str, Any]:
    """Write an issue of beads."""
    return {"id": own, "title": f"Do {own}", "status": status, "issue_type": "task", **more}


def export(desk: Desk, *beads: dict[str, Any]) -> str:
    """Write an export, and return its path."""
    text = "".join(f"{json.dumps(each)}\n" for each in beads)
    return str(desk.write(".beads/issues.jsonl", text))


def ids(desk: Desk) -> list[str]:
    """Return the ids of all loops."""
    return [each["id"] for each in desk("ls", "--json").document["loops"]]


def test_an_export_becomes_a_plan(desk: Desk) -> None:
    """It lies where its artifact belongs; twice is once; on paper nothing is written."""
    path = export(desk, bead("bd-1"), bead("bd-2", "closed"))
    before = everything(desk.folder)
    dry = desk("start", "-n", "--from", "beads", path)
    assert (dry.code, everything(desk.folder)) == (0, before)
    told = desk("start", "--no-run", "--from", "beads", path).err
    assert told.startswith("wrote specs/beads/plan.md, taken from .beads/issues.jsonl; 1 is closed, and left out\n")
    assert ids(desk) == ["beads", "beads/spec", "beads/spec/phase", "beads/spec/phase/bd-1"]
    files = everything(desk.folder / "specs")
    again = desk("start", "--no-run", "--from", "beads", path).err
    assert again.splitlines()[-1] == "beads: nothing has changed"
    assert everything(desk.folder / "specs") == files


def test_a_newer_export_keeps_what_is_done_here(desk: Desk) -> None:
    """Who was done here stays though it is closed there by now; who was closed there alone goes; new ones come."""
    desk("start", "--no-run", "--from", "beads", export(desk, bead("bd-1"), bead("bd-2"), bead("bd-3")))
    desk.write("specs/beads/spec/phase/bd-1/code.md", "# Done by hand\n")
    assert desk("start", "--no-run", str(desk.folder / "specs/beads/plan.md")).code == 0
    assert desk.loop("beads/spec/phase/bd-1").status.value == "complete"
    newer = export(desk, bead("bd-1", "closed"), bead("bd-2", "closed"), bead("bd-3"), bead("bd-4"))
    told = desk("start", "--no-run", "--from", "beads", newer)
    assert told.code == 0, told
    assert "1 new, 1 gone" in told.err
    assert [each.rpartition("/")[2] for each in ids(desk)[3:]] == ["bd-1", "bd-3", "bd-4"]
    assert desk.loop("beads/spec/phase/bd-1").status.value == "complete"


def test_a_need_in_words_that_is_not_in_the_list_is_told(desk: Desk) -> None:
    """An issue that waits for one which was not exported says so; of one that is closed nothing is said."""
    issues = [
        {"number": 15, "title": "First", "state": "OPEN"},
        {"number": 16, "title": "Done", "state": "CLOSED"},
        {"number": 17, "title": "Next", "body": "blocked by #99, #15, #16", "state": "OPEN"},
    ]
    path = desk.write("gh.json", json.dumps(issues))
    told = desk("start", "--no-run", "--from", "github", path).err
    assert "  17 needs 99, which is not in the list: left out\n" in told
    assert (told.count("needs"), desk.loop("gh/spec/phase/17").needs) == (1, ("gh/spec/phase/15",))


def test_a_plan_that_was_edited_is_not_written_over(desk: Desk) -> None:
    """What a person has changed in the plan since it was started gives way to --yes only; another list's never does."""
    path = export(desk, bead("bd-1"))
    desk("start", "--no-run", "--from", "beads", path)
    plan = desk.folder / "specs/beads/plan.md"
    plan.write_text(plan.read_text().replace("Do bd-1", "Do it well"))
    assert "was edited since it was started" in desk("start", "--no-run", "--from", "beads", path).err
    assert "Do it well" in plan.read_text()
    assert desk("start", "--no-run", "--yes", "--from", "beads", path).code == 0
    assert "Do it well" not in plan.read_text()
    other = desk.write("other/issues.jsonl", json.dumps(bead("bd-9")))
    answer = desk("start", "--no-run", "--yes", "--from", "beads", other)
    assert (answer.code, "specs/beads/plan.md is the plan of something else" in answer.err) == (2, True)
    assert desk("start", "--no-run", "--from", "beads", "--id", "mine", other).code == 0
    assert "mine/spec/phase/bd-9" in ids(desk)


def test_a_task_list_of_spec_kit_is_known_by_its_form(desk: Desk) -> None:
    """It is started as it is, beside spec-kit's own files; an item that is ticked off goes, and keeps others' work."""
    desk.write("specs/001-photos/spec.md", "# Photos\n")
    desk.write("specs/001-photos/plan.md", "# How\n")
    path = desk.write("specs/001-photos/tasks.md", TASKS)
    told = desk("start", "--no-run", path)
    assert (told.code, "wrote specs/001-photos-tasks/plan.md" in told.err) == (0, True), told
    assert "001-photos-tasks/spec/phase-1/t002" in ids(desk)
    assert "what is beside it says what is wanted" in (desk.folder / "specs/001-photos-tasks/plan.md").read_text()
    path.write_text(TASKS.replace("[ ] T002", "[x] T002"))
    assert "2 gone" in desk("start", "--no-run", path).err
    assert "001-photos-tasks/spec/phase-1/t002" not in ids(desk)
    assert desk("start", "--no-run", desk.write("own.md", "# P\n\n## Specs\n- [ ] T001 own\n")).code == 0
    assert "p/t001-own" in ids(desk)


def test_a_task_list_with_the_front_matter_of_its_template(desk: Desk) -> None:
    """Keys of other programs at its top are passed over; with one of ours it is a plan."""
    text = f'---\n\ndescription: "Task list template"\n# not a title\n---\n\n{TASKS}'
    path = desk.write("specs/001-photos/tasks.md", text.replace("\n", "\r\n"))
    told = desk("start", "--no-run", path)
    assert (told.code, "wrote specs/001-photos-tasks/plan.md" in told.err) == (0, True), told
    assert "001-photos-tasks/spec/phase-1/t002" in ids(desk)
    assert desk.loop("001-photos-tasks").title == "Photo albums"
    own = desk.write("own.md", f"---\nid: own\n---\n{TASKS}")
    assert desk("start", "--no-run", own).code == 0
    assert not any(each.startswith("own/") and "t002" in each for each in ids(desk))


@pytest.mark.parametrize(
    ("options", "text", "code", "said"),
    [
        (["--from", "beads"], '{"id": "a"', 2, "x.jsonl:1:11 is no JSON"),
        (["--from", "beads"], json.dumps(bead("a", "closed")), 2, "has nothing that is open"),
        (["--from", "beads"], "", 2, "has nothing that is open"),
        (["--from", "spec-kit"], "# T\n- [ ] a\n", 2, "has no tasks as spec-kit writes them"),
        (["--from", "spec-kit"], "- [ ] T001 a\n- [ ] T002 b\n- [ ] T001 c\n", 2, "x.jsonl has T001 twice"),
        (["--from", "jira"], "", 2, "'jira' is not one of"),
        (["--id", "x"], "", 2, "--id names the plan of one list"),
        (["--from", "beads", "--id", "A B"], json.dumps(bead("a")), 2, "--id a-b"),
        (
            ["--from", "jsonl"],
            '{"id": "a", "title": "A", "needs": ["b"]}\n{"id": "b", "title": "B", "needs": ["a"]}',
            2,
            "x.jsonl needs form a cycle: a → b → a",
        ),
    ],
)  # fmt: skip
def test_a_list_that_is_refused(desk: Desk, options: list[str], text: str, code: int, said: str) -> None:
    """It is refused with what is wrong and what to do, and nothing is written."""
    answer = desk("start", *options, desk.write("x.jsonl", text))
    assert (answer.code, said in answer.err) == (code, True), answer
    assert not (desk.folder / "specs").exists()


def test_levels_that_are_judged(desk: Desk) -> None:
    """A list declares the levels above its items, so none of them may have a judge of its own."""
    desk.write("loopr.yml", "version: 1\ntypes: {phase: {check: make test}}\n")
    answer = desk("start", "--from", "beads", export(desk, bead("a")))
    assert (answer.code, "types.phase is judged, which a plan that is written out" in answer.err) == (78, True), answer


def test_a_list_that_is_not_there(desk: Desk) -> None:
    """A file that is not there is told apart."""
    answer = desk("start", "--from", "github", "none.json")
    assert (answer.code, "none.json there is no such file" in answer.err) == (3, True), answer


def test_the_kinds_of_lists(desk: Desk) -> None:
    """The command line offers what is read; a plan loads nothing of that."""
    assert sorted(KINDS) == sorted(ALL_KINDS)
    said = (
        "import sys; from loopr.ui.cli import main; code = main(sys.argv[1:]); print('loopr.ui.lists' in sys.modules)"
    )
    path = desk.write("plan.md", "# P\n\n## Specs\n- a\n")
    words = [sys.executable, "-c", said, "start", "--no-run", "-C", str(desk.folder), str(path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, env=this_tree())
    assert ran.stdout == "False\n"
