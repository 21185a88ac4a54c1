"""What a person brings into a plan from the branch that it began at: merged, judged, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.driving.moves import move_plan
from loopr.engine import Mind
from loopr.ui import updating
from loopr.wiring import Workspace
from tests.ui.calls import git
from tests.ui.scenes import COMMANDS, Desk, flat
from tests.ui.test_adopt import commit, tip


@pytest.fixture
def plan(shop: Desk) -> Desk:
    """Give a workspace with a plan that has landed a file, while main has gone on with another."""
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=begin")
    shop.start(flat(["a"]))
    shop.branch()
    shop("adopt", "p", commit(shop, tip(shop), "own.txt"))
    on_main(shop, "theirs.txt")
    return shop


def on_main(desk: Desk, name: str, text: str = "theirs\n") -> str:
    """Let somebody commit a file to main."""
    desk.write(name, text)
    git(desk.folder, "add", name)
    git(desk.folder, "commit", "--quiet", f"--message={name}")
    return git(desk.folder, "rev-parse", "main")


def files(desk: Desk, commit: str = "loopr/p") -> set[str]:
    """List the files of a commit."""
    return set(git(desk.folder, "ls-tree", "-r", "--name-only", commit).split())


def test_the_base_is_merged_and_both_stay(plan: Desk) -> None:
    """What has landed and what the base has are both there, and the journal says why the branch has moved."""
    old, main = tip(plan), git(plan.folder, "rev-parse", "main")
    document = plan("update", "p", "--json").document
    assert (document["from"], document["to"], document["commit"]) == (old, tip(plan), main)
    assert [each["subject"] for each in document["commits"]] == ["theirs.txt"]
    assert git(plan.folder, "rev-parse", "loopr/p^1", "loopr/p^2").split() == [old, main]
    assert {"own.txt", "theirs.txt"} <= files(plan)
    assert git(plan.folder, "log", "-1", "--format=%s", "loopr/p") == "Update p from main"
    moved = plan.lines("events", "--type", "plan_moved")
    assert "updated" in moved[-1]
    assert Workspace(plan.folder).look().scene.shared.plans["p"].base_commit == main
    assert "p has all of main already" in plan("update", "p").err


def test_a_plan_with_nothing_of_its_own_goes_along(shop: Desk) -> None:
    """A plan of which nothing has landed stands where its base does, and one without a branch begins there."""
    shop.start(flat(["a"]))
    main = on_main(shop, "one.txt")
    assert shop("update", "p").code == 0
    assert Workspace(shop.folder).look().scene.shared.plans["p"].base_commit == main
    shop.branch()
    main = on_main(shop, "two.txt")
    assert f"p stands at {main[:12]}, with main as it is now (1 commit)" in shop.lines("update", "p")[0]
    assert tip(shop) == main


def test_a_conflict_changes_nothing_and_names_its_lines(plan: Desk) -> None:
    """The files are named, and what to type; what a person then commits is adopted."""
    on_main(plan, "own.txt", "other\n")
    old = tip(plan)
    answer = plan("update", "p")
    assert answer.code == 1
    assert "refused: main conflicts with loopr/p in own.txt" in answer.err
    line = f"git worktree add --detach ../p-merge {old[:12]} && cd ../p-merge && git merge main"
    assert line in answer.err
    assert "loopr adopt p HEAD" in answer.err
    (plan.folder.parent / "p-merge").mkdir()
    line = f"git worktree add --detach ../p-merge-2 {old[:12]} && cd ../p-merge-2 && git merge main"
    assert line in plan("update", "p").err, "the folder of an earlier merge is there still"
    assert tip(plan) == old
    assert plan("update", "p", "--json").document["problems"][0]["message"].startswith("main conflicts")


@pytest.mark.parametrize(("check", "code"), [("test -e own.txt -a -e theirs.txt", 0), ("test ! -e own.txt", 1)])
def test_land_check_judges_the_merge(plan: Desk, check: str, code: int) -> None:
    """A yes moves the branch; a no says why, and how to mend it, and moves nothing."""
    plan.write("loopr.yml", COMMANDS + f"land: {{check: '{check}'}}\n")
    old = tip(plan)
    answer = plan("update", "p")
    assert answer.code == code, answer
    assert (tip(plan) == old) is bool(code)
    told = answer.err if code else answer.out
    assert ("land.check said no" if code else "land.check said yes") in told


def trace(desk: Desk) -> list[tuple[str, str, str]]:
    """Return what is told of bases that were not taken: the plan, why, and the command."""
    rows = desk("status", "--json").document["inbox"]
    found = (each for each in rows if each["kind"] == "update")
    return [(*each["about"], each["text"], each["command"]) for each in found]


def test_a_no_leaves_a_trace(plan: Desk) -> None:
    """A no of land.check is an event, and stands in `why` and `status` until the base is taken."""
    plan.write("loopr.yml", COMMANDS + "land: {check: 'test ! -e own.txt'}\n")
    main = git(plan.folder, "rev-parse", "--short=12", "main")
    assert plan("update", "p").code == 1
    ((about, text, command),) = trace(plan)
    assert (about, command) == ("p", "loopr update p")
    why = "land.check said no: `test ! -e own.txt` ended with 1"
    assert text.startswith(f"main at {main} was not taken: {why}")
    assert text.endswith("(`loopr update p` says how that is mended)")
    assert f"a problem at update of p: {text}" in plan.lines("events", "--type", "problem_seen")[-1]
    assert plan("why", "p", "--json").document["update"]["text"] == text
    told = " ".join(plan("why", "p").out.split())
    assert f"update p: main at {main} was not taken" in told and "`loopr update p`" in told
    said = " ".join(plan("status").out.split())
    assert said.count("was not taken") == 1
    assert "1 problem: `loopr status` tells" in plan("tree").out
    plan.write("loopr.yml", COMMANDS)
    assert plan("update", "p").code == 0
    assert trace(plan) == []
    assert plan("why", "p", "--json").document["update"] is None
    assert len(plan.lines("events", "--type", "problem_gone")) == 1


def test_a_conflict_leaves_a_trace_until_it_is_mended(plan: Desk) -> None:
    """A base that conflicts is told until a person's merge of it is adopted."""
    on_main(plan, "own.txt", "other\n")
    assert plan("update", "p").code == 1
    ((_, text, _),) = trace(plan)
    assert "main conflicts with loopr/p in own.txt (`loopr update p` says how" in text
    plan("adopt", "p", commit(plan, tip(plan), "more.txt"))
    assert len(trace(plan)) == 1
    parents = "-p", tip(plan), "-p", "main"
    merged = git(plan.folder, "commit-tree", *parents, "-m", "mended", f"{tip(plan)}^{{tree}}")
    plan("adopt", "p", merged)
    assert trace(plan) == []


def test_a_trace_goes_once_nothing_lacks(plan: Desk) -> None:
    """Where the base is back at what the plan has, an update takes back what it said."""
    on_main(plan, "own.txt", "other\n")
    plan("update", "p")
    git(plan.folder, "reset", "--quiet", "--hard", "main~2")
    assert len(trace(plan)) == 1
    assert "p has all of main already" in plan("update", "p").err
    assert trace(plan) == []


def test_what_lands_while_it_is_judged_is_not_lost(plan: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the branch has moved since the merge was made, another one is made of where it stands."""
    late = commit(plan, tip(plan), "late.txt")

    def slow(mind: Mind, ground: object, name: str, new: str, why: str, **more: object) -> object:
        monkeypatch.setattr("loopr.driving.moves.move_plan", move_plan)
        plan("adopt", "p", late)
        return move_plan(mind, ground, name, new, why, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("loopr.driving.moves.move_plan", slow)
    assert plan("update", "p").code == 0
    assert {"own.txt", "theirs.txt", "late.txt"} <= files(plan)
    assert updating.TRIES > 1


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [(("p/a",), 2, "plans are updated"), (("q",), 3, "there is no loop 'q'")],
)
def test_what_makes_no_sense_is_refused(plan: Desk, words: tuple[str, ...], code: int, told: str) -> None:
    """A loop is not updated."""
    answer = plan("update", *words)
    assert answer.code == code
    assert told in answer.err


def test_a_base_that_is_gone_is_named(plan: Desk, tmp_path: Path) -> None:
    """A plan whose base branch was deleted is told which it was."""
    git(plan.folder, "switch", "--quiet", "-c", "other")
    git(plan.folder, "branch", "-D", "main")
    answer = plan("update", "p")
    assert answer.code == 2
    assert 'there is no branch called "main"' in answer.err


def test_a_start_names_what_conflicts(plan: Desk) -> None:
    """A base that does not fit is told with its files, whoever starts, and what says how that is mended."""
    on_main(plan, "own.txt", "other\n")
    told = plan("start", "--no-run", plan.folder / "plan.md").err
    assert "main has commits that loopr/p lacks, and conflicts with it in own.txt: `loopr update p`" in told
