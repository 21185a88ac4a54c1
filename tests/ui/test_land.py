"""Bringing a plan home from the command line: judged, asked for, and never by force."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path

import pytest

from loopr.core.model import Status
from loopr.core.redoing import ask_redo
from loopr.ui import homecoming
from loopr.ui.homecoming import HOME_LOCK
from loopr.wiring import Workspace
from loopr.world.lock import EngineLock
from loopr.world.repo import commits, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Message
from tests.ui.calls import git, program
from tests.ui.scenes import COMMANDS, Desk, flat

ONE_TYPE = "version: 1\ntypes: {plan: {child: code}, code: {run: make code}}\n"


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give the repository of a workspace with a plan whose one loop has landed a file."""
    (shop.folder / "a.txt").write_text("one\n")
    git(shop.folder, "add", "a.txt")
    git(shop.folder, "commit", "--quiet", "--message=a")
    shop.write("loopr.yml", ONE_TYPE)
    shop.start("---\nid: p\ntitle: The plan\nchildren: [{id: a}]\n---\n")
    shop.choose()
    shop.run("p/a")
    found = shop.branch()
    tree = worktrees.take(found, "p.a.g1", git(shop.folder, "rev-parse", "main"))
    (tree.folder / "new.txt").write_text("new\n")
    commits.commit_attempt(found, "p.a.g1", 1, Message("Work of p/a", at_ms=1))
    shop.bring_home(found, "p/a", Message("p/a: a", at_ms=1))
    assert shop.loop("p/a").status is Status.COMPLETE
    return found


def judged_by(shop: Desk, *check: str, **more: str) -> None:
    """Set what judges a plan on its way home."""
    parts = "".join(f"{key}: {value}\n" for key, value in more.items())
    shop.write(
        "loopr.yml", ONE_TYPE + f"land: {{check: {json.dumps(check[0] if len(check) == 1 else check)}}}\n{parts}"
    )


def ends(pid: int) -> bool:
    """Wait until a process has ended, for a while at most."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def settled(shop: Desk, ground: Ground) -> None:
    """See that nothing of the homecoming is left behind but what came home."""
    refs = git(shop.folder, "for-each-ref", "--format=%(refname)").split()
    assert [each for each in refs if "home" in each] == []
    assert not (ground.worktrees / "p.home").exists()


def test_a_plan_comes_home(shop: Desk, ground: Ground) -> None:
    """The base branch and its checkout get the plan's work, and a second time there is nothing left to do."""
    answer = shop("land", "p", "--yes")
    tip = git(shop.folder, "rev-parse", "loopr/p")
    assert answer == (
        0,
        f"p is home: main is at {tip[:12]} (1 commit, 1 file)\n",
        "nothing has judged 1 of its loops (code); `loopr set types.code.check COMMAND` changes that, `none` says it is"
        f" meant\n  the checkout {shop.folder} was brought along\n",
    )
    assert git(shop.folder, "rev-parse", "main") == tip
    assert (shop.folder / "new.txt").read_text() == "new\n"
    assert shop("land", "p", "--yes") == (0, "", "main has all of p already\n")
    (told,) = shop.lines("events", "--type", "plan_came_home", "--json")
    assert json.loads(told)["data"] == {"plan": "p", "branch": "main", "commit": tip, "partial": False}
    settled(shop, ground)


def test_it_is_judged_as_it_would_be_at_home(shop: Desk, ground: Ground) -> None:
    """The check sees the plan's work merged with what the base has got meanwhile, in a worktree of its own."""
    (shop.folder / "mine.txt").write_text("mine\n")
    git(shop.folder, "add", "mine.txt")
    git(shop.folder, "commit", "--quiet", "--message=meanwhile")
    judged_by(shop, 'test -f new.txt && test -f mine.txt && test -d ../p.home && test "$LOOPR_PLAN" = p')
    assert shop("land", "p", "-y", "--json").document["landed"] is True
    assert git(shop.folder, "log", "-1", "--format=%s %(trailers:key=Loopr-Plan)").strip() == (
        "Land p: The plan Loopr-Plan: p"
    )
    settled(shop, ground)


def test_a_check_that_says_no(shop: Desk, ground: Ground) -> None:
    """What the check refuses does not come home, and the exit code says so."""
    before = git(shop.folder, "rev-parse", "main")
    judged_by(shop, "sh", "-c", "echo seen >&2; exit 3")
    answer = shop("land", "p", "-y")
    assert (answer.code, answer.out) == (1, "")
    assert "refused: land.check said no: `sh -c echo seen >&2; exit 3` ended with 3\n  hint: mend it" in answer.err
    assert "nothing was changed" in answer.err
    assert git(shop.folder, "rev-parse", "main") == before
    settled(shop, ground)


@pytest.mark.parametrize(
    ("check", "more", "words"),
    [
        (["no-such-judge", "x"], {}, "cannot be started: no such file"),
        (["kill -9 $$"], {}, "was ended by signal 9"),
        (["sleep 60 & wait"], {"timeouts": "{check_secs: 0.05, grace_secs: 1}"}, "took longer than 0.05 s"),
        (["true"], {"worktrees": "{setup: exit 4}"}, "worktrees.setup said no: `exit 4` ended with 4"),
    ],
)
def test_a_check_that_gives_no_answer(
    shop: Desk, ground: Ground, check: list[str], more: dict[str, str], words: str
) -> None:
    """A judge that is missing, dies, hangs or cannot be prepared has not said yes."""
    judged_by(shop, *check, **more)
    answer = shop("land", "p", "-y")
    assert (answer.code, words in answer.err) == (1, True), answer
    settled(shop, ground)


def test_a_judge_leaves_no_process_behind(shop: Desk, ground: Ground, tmp_path: Path) -> None:
    """What the check has started in the background ends with it."""
    judged_by(shop, f"sleep 600 & echo $! > {tmp_path}/pid")
    assert shop("land", "p", "-y").code == 0
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_dry_run(shop: Desk, ground: Ground, tmp_path: Path) -> None:
    """A dry run names commits and files, runs no check, and moves nothing; what is in the way is told with exit 1."""
    judged_by(shop, f"touch {tmp_path}/judged")
    before = git(shop.folder, "for-each-ref")
    lines = shop.lines("land", "p", "--dry-run")
    tip = git(shop.folder, "rev-parse", "loopr/p")
    assert lines == ["1 commit would come home to main:", f"  {tip[:12]} p/a: a", "", "  new.txt"]
    (shop.folder / "new.txt").write_text("mine\n")
    answer = shop("land", "p", "-n", "--json")
    assert answer.code == 1
    assert answer.document["problems"][0]["message"] == "new.txt is there, and git does not have it"
    assert git(shop.folder, "for-each-ref") == before
    assert not (tmp_path / "judged").exists()
    settled(shop, ground)


def test_each_problem_has_its_hint(shop: Desk, ground: Ground) -> None:
    """A path that would be overwritten is named with what to do, and stays as it is."""
    (shop.folder / "new.txt").write_text("mine\n")
    answer = shop("land", "p", "-y")
    assert answer.code == 1
    assert answer.err.splitlines() == [
        "refused: new.txt is there, and git does not have it",
        "  hint: commit it, stash it or move it away, then again",
        "nothing was changed",
    ]
    assert (shop.folder / "new.txt").read_text() == "mine\n"


def test_a_plan_that_is_not_done(shop: Desk, ground: Ground) -> None:
    """While a loop of the plan is not complete nothing comes home, and it is named."""
    shop.start("---\nid: p\ntitle: The plan\nchildren: [{id: a}, {id: b}]\n---\n")
    answer = shop("land", "p", "-y")
    assert (answer.code, "p is not done: p/b (ready)" in answer.err) == (1, True)


def test_one_that_is_declared_while_it_is_judged(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that got another loop during its check is not done any more."""
    more = "---\nid: p\ntitle: The plan\nchildren: [{id: a}, {id: b}]\n---\n"
    monkeypatch.setattr(homecoming, "judged", lambda *_: shop.start(more) and None)
    before = git(shop.folder, "rev-parse", "main")
    answer = shop("land", "p", "-y")
    assert (answer.code, "p is not done" in answer.err) == (1, True)
    assert git(shop.folder, "rev-parse", "main") == before


def test_onto_another_branch(shop: Desk, ground: Ground) -> None:
    """--onto names another branch, which nobody needs to have checked out; one that does not exist is refused."""
    git(shop.folder, "branch", "next")
    assert "no branch called" in shop("land", "p", "-y", "--onto", "nxt").err
    assert shop("land", "p", "-y", "--onto", "next").code == 0
    assert git(shop.folder, "rev-parse", "next") == git(shop.folder, "rev-parse", "loopr/p")
    assert not (shop.folder / "new.txt").exists()


def test_nobody_is_asked(shop: Desk, ground: Ground) -> None:
    """Where no person can answer, only --yes goes on."""
    ran = program(shop.folder, "land", "p")
    assert (ran.returncode, b"--yes goes on" in ran.stderr) == (2, True)
    settled(shop, ground)


def test_what_is_to_be_done_again_is_told(shop: Desk, ground: Ground) -> None:
    """Where loops of a plan are to be done again it says so, and who does that, before it asks."""
    shop.wish(lambda forest: ask_redo(forest, forest.loops["p/a"], "other data"))
    said = "1 loop is to be done again, and `loopr run` does that: p/a"
    assert said in shop("land", "p", "--dry-run").err.splitlines()
    answer = shop("land", "p")
    assert (answer.code, said in answer.err) == (2, True)
    assert "retry --stale" not in answer.err
    answer = shop("land", "p", "--yes")
    assert (answer.code, said in answer.err.splitlines()) == (0, True)
    assert said in shop("land", "p").err.splitlines()  # it is home, and not done


def test_only_plans_come_home(shop: Desk, ground: Ground) -> None:
    """A loop below a plan is named with its plan."""
    answer = shop("land", "p/a")
    assert (answer.code, "loopr land p" in answer.err) == (2, True)


def test_not_from_within_a_loop(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of a loop cannot bring a plan home; it can look what would come home."""
    monkeypatch.setenv("LOOPR_WORKSPACE", str(shop.folder))
    monkeypatch.setenv("LOOPR_LEASE", "p/a#1")
    assert shop("land", "p", "--dry-run").code == 0
    answer = shop("land", "p", "-y")
    assert (answer.code, "a loop may not land" in answer.err) == (2, True)
    settled(shop, ground)
    monkeypatch.delenv("LOOPR_LEASE")
    assert shop("land", "p", "-y").code == 0


# --- beside an engine -----------------------------------------------------------------------------------------------


def test_beside_an_engine(shop: Desk, ground: Ground) -> None:
    """While an engine serves the workspace a plan comes home all the same."""
    with EngineLock.acquire(Workspace(shop.folder).place.lock, "engine"):
        assert shop("land", "p", "-y").code == 0
    assert (shop.folder / "new.txt").exists()


def test_a_branch_that_loops_would_be_blamed_for(shop: Desk, ground: Ground) -> None:
    """While loops are at work, a branch that no checkout has is not moved behind their backs."""
    shop.write("loopr.yml", COMMANDS)
    shop.start(flat(["x"], "q"), "q.md")
    shop.choose()
    git(shop.folder, "branch", "next")
    answer = shop("land", "p", "-y", "--onto", "next")
    assert (answer.code, "refused: loops are at work" in answer.err) == (1, True)
    assert shop("land", "p", "-y").code == 0


def test_an_edit_that_comes_too_late_is_told(shop: Desk, ground: Ground) -> None:
    """The dry run and the landing say alike that files were edited after the work was begun."""
    plain = shop("land", "p", "-n")
    assert "edited" not in plain.err and "differs" not in plain.err
    for name in ("plan.md", "specs/p/plan.md"):
        text = (shop.folder / name).read_text("utf-8")
        shop.write(name, f"{text}\nMore words.\n")
    told = [
        "plan.md was edited after what comes home was begun; `loopr start plan.md` takes that up",
        "specs/p/plan.md differs from what was read; `loopr run` takes it up",
    ]
    for how in ("-n", "-y"):
        answer = shop("land", "p", how)
        assert (answer.code, answer.err.splitlines()[:2]) == (0, told)


def test_one_at_a_time(shop: Desk, ground: Ground) -> None:
    """A second one does not disturb the room in which the first is judged."""
    with EngineLock.acquire(ground.state / HOME_LOCK, "turn"):
        answer = shop("land", "p", "-y")
    assert (answer.code, "another `loopr land` is at work, or an update" in answer.err) == (75, True)


def test_a_judge_keeps_nobody_waiting(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the check runs, others have the workspace."""
    free = []
    monkeypatch.setattr(homecoming, "judged", lambda *_: free.append(Workspace(shop.folder).engine()))
    assert shop("land", "p", "-y").code == 0
    assert free == [None]
