"""A part of a plan comes home, and the refusal of a plan that is not done says how to go on."""

from __future__ import annotations

import json

import pytest

from loopr.core import wishes
from loopr.core.model import Failure, Status
from loopr.ui import homecoming
from loopr.wiring import Workspace
from loopr.world.repo import commits, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Message
from tests.ui.calls import Answer, git, program
from tests.ui.scenes import Desk

TYPES = "version: 1\ntypes: {plan: {child: spec}, spec: {child: code}, code: {run: make code}}\n"
PLAN = """\
---
id: p
title: The plan
children:
  - {id: s, children: [{id: a}, {id: b}]}
  - {id: t, children: [{id: c}]}
---
"""


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give a plan of two specs: of the first one loop has landed and one is at work, beside one of the other."""
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=more")
    shop.write("loopr.yml", TYPES)
    shop.start(PLAN)
    shop.choose()
    found = shop.branch()
    for each in ("p/s/a", "p/s/b", "p/t/c"):
        shop.run(each)
    land(shop, found, "p/s/a")
    return found


def land(shop: Desk, ground: Ground, loop: str) -> None:
    """Let a loop land a file of its own."""
    name = f"{loop.replace('/', '.')}.g1"
    tip = Workspace(shop.folder).look().scene.shared.tip("p").at
    tree = worktrees.take(ground, name, tip)
    (tree.folder / f"{loop[-1]}.txt").write_text(f"{loop}\n")
    commits.commit_attempt(ground, name, 1, Message(f"Work of {loop}", at_ms=1))
    shop.bring_home(ground, loop, Message(loop, at_ms=1))
    assert shop.loop(loop).status is Status.COMPLETE


def came_home(shop: Desk) -> list[bool]:
    """Say of each homecoming in the journal whether it was partial."""
    lines = shop.lines("events", "--type", "plan_came_home", "--json")
    return [json.loads(line)["data"]["partial"] for line in lines]


def files(shop: Desk) -> list[str]:
    """List the files that the base branch has."""
    return git(shop.folder, "ls-tree", "--name-only", "main").split()


def partial(shop: Desk, *more: str) -> Answer:
    """Bring home what has landed."""
    return shop("land", "p", "--partial", *more)


def test_a_part_comes_home_and_later_the_rest(shop: Desk, ground: Ground) -> None:
    """What has landed comes home though attempts live, what is cut through is named, and what lands later follows."""
    answer = partial(shop, "--yes")
    tip = git(shop.folder, "rev-parse", "loopr/p")
    assert answer.code == 0
    assert answer.out == f"what has landed of p is home: main is at {tip[:12]} (1 commit, 1 file)\n"
    assert "cut through: p/s lacks p/s/b\nmissing: p/t/c\n" in answer.err
    assert files(shop) == ["a.txt"] and (shop.folder / "a.txt").read_text() == "p/s/a\n"
    assert shop.loop("p/s/b").status is Status.RUNNING
    assert partial(shop, "--yes") == (0, "", "main has all that has landed of p already\n")
    land(shop, ground, "p/s/b")
    land(shop, ground, "p/t/c")
    assert shop("land", "p", "--yes").code == 0
    assert files(shop) == ["a.txt", "b.txt", "c.txt"]
    assert came_home(shop) == [True, False]


def test_it_is_told_as_data(shop: Desk, ground: Ground) -> None:
    """The document has what is cut through and each loop that is missing; a plan that is done is no part."""
    found = partial(shop, "--dry-run", "--json").document
    assert (found["partial"], found["landed"]) == (True, False)
    assert found["cut"] == [{"id": "p/s", "missing": ["p/s/b"]}]
    assert [each["id"] for each in found["missing"]] == ["p/s/b", "p/t/c"]
    assert partial(shop, "--yes", "--json").document["landed"] is True
    land(shop, ground, "p/s/b")
    land(shop, ground, "p/t/c")
    found = partial(shop, "--yes", "--json").document
    assert (found["partial"], found["landed"], found["missing"]) == (False, True, [])


def test_nothing_judges_a_part_but_a_check(shop: Desk, ground: Ground) -> None:
    """Without `land.check` a person is asked, since nothing judges the half; with one its word is enough."""
    ran = program(shop.folder, "land", "p", "--partial")
    assert (ran.returncode, b"nothing judges a part of p: land.check is not set" in ran.stderr) == (2, True)
    assert shop("set", "land.check", "test -f b.txt").code == 0
    answer = partial(shop)
    assert (answer.code, "land.check said no" in answer.err) == (1, True)
    assert files(shop) == []
    assert shop("set", "land.check", "test -f a.txt").code == 0
    ran = program(shop.folder, "land", "p", "--partial")
    assert (ran.returncode, files(shop)) == (0, ["a.txt"]), ran.stderr


def test_what_lands_while_a_part_is_judged(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was judged comes home, and what has landed meanwhile waits for the next time."""
    monkeypatch.setattr(homecoming, "judged", lambda *_: land(shop, ground, "p/s/b"))
    assert partial(shop, "--yes").code == 0
    assert files(shop) == ["a.txt"]
    monkeypatch.undo()


def test_the_plan_goes_on_from_the_base(shop: Desk, ground: Ground) -> None:
    """Where nothing of the plan runs it goes on from what came home, with what the base had of its own."""
    (shop.folder / "mine.txt").write_text("mine\n")
    git(shop.folder, "add", "mine.txt")
    git(shop.folder, "commit", "--quiet", "--message=mine")
    for each in ("p/s/b", "p/t/c"):
        shop.end(each, Failure.CONFIG, "no make")
    answer = partial(shop, "--yes")
    assert (answer.code, "so it goes on from main as it is now" in answer.err) == (0, True), answer
    tip = git(shop.folder, "rev-parse", "main")
    assert Workspace(shop.folder).look().scene.shared.tip("p").at == tip
    assert git(shop.folder, "rev-parse", "loopr/p") == tip
    shop("reset", "p/s/b", "p/t/c")
    shop.choose()
    shop.run("p/s/b")
    land(shop, ground, "p/s/b")
    assert git(shop.folder, "ls-tree", "--name-only", "loopr/p").split() == ["a.txt", "b.txt", "mine.txt"]


def test_the_plan_stays_while_something_runs(shop: Desk, ground: Ground) -> None:
    """While a loop of the plan is at work its branch stays, and what it lacks is said."""
    (shop.folder / "mine.txt").write_text("mine\n")
    git(shop.folder, "add", "mine.txt")
    git(shop.folder, "commit", "--quiet", "--message=mine")
    stood = git(shop.folder, "rev-parse", "loopr/p")
    answer = partial(shop, "--yes")
    assert (answer.code, "main has commits that loopr/p lacks" in answer.err) == (0, True)
    assert git(shop.folder, "rev-parse", "loopr/p") == stood
    assert files(shop) == ["a.txt", "mine.txt"]


def test_the_refusal_says_how_to_go_on(shop: Desk, ground: Ground) -> None:
    """Each loop that is stuck is named with the command that resolves it, and the part is offered."""
    shop.end("p/s/b", Failure.CONFIG, "no make")
    shop.wish(wishes.cancel, "p/t/c", "ada")
    answer = shop("land", "p", "--yes")
    assert answer.code == 1
    assert "p is not done: p/s/b (parked), p/t/c (cancelled)" in answer.err
    assert "`loopr land p --partial` brings home what has landed" in answer.err
    assert "p/s/b is parked: no make\n  hint: mend that, then `loopr reset p/s/b`" in answer.err
    assert "p/t/c is cancelled: cancelled by ada\n  hint: `loopr retry p/t/c` brings it back" in answer.err
    assert "take its entry out of the plan" in answer.err
    assert [each["hint"] is not None for each in shop("land", "p", "--json").document["problems"]] == [True] * 3


def test_nothing_has_landed_yet(shop: Desk) -> None:
    """A part is offered only where there is one."""
    shop.write("loopr.yml", TYPES)
    shop.start(PLAN)
    assert "--partial" not in shop("land", "p").err
    answer = shop("land", "p", "--partial", "--yes")
    assert (answer.code, "p has no branch" in answer.err) == (0, True)
