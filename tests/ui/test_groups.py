"""Groups in place of ids: convoys, projects and all below a loop, in every verb that steers."""

from __future__ import annotations

from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure, Status
from loopr.ui.steering import fulfil, touched
from loopr.ui.vocabulary import Wish
from loopr.wiring import Workspace
from tests.ui.calls import Answer
from tests.ui.scenes import COMMANDS, Desk, flat

APPROVED = COMMANDS.replace("run: make spec", "run: make spec, approve: true")


def form(desk: Desk, name: str, *loops: str) -> None:
    """Form a convoy, or add to it."""
    desk.wish(wishes.form_convoy, name, loops)


@pytest.fixture
def four(shop: Desk) -> Desk:
    """Give two plans with specs, of which a convoy has some; each waits for a person once it was at work."""
    shop.write("loopr.yml", APPROVED + "projects: {web: {}, api: {}}\n")
    shop.start(flat("abcd").replace("id: p\n", "id: p\nproject: web\n"), "p.md")
    shop.start(flat("xy", "q").replace("id: q\n", "id: q\nproject: api\n"), "q.md")
    form(shop, "c", "p/a", "p/b", "q/x")
    return shop


def judged(desk: Desk, *loops: str) -> Desk:
    """Bring loops to where they wait for a person."""
    desk.choose()
    for each in loops:
        desk.run(each)
        desk.end(each)
        desk.judge(each)
    return desk


def parked(desk: Desk, *loops: str) -> Desk:
    """Let loops be parked."""
    desk.choose()
    for each in loops:
        desk.run(each)
        desk.end(each, Failure.CONFIG, "no make")
    return desk


def status(desk: Desk, *loops: str) -> list[Status]:
    """Return where loops stand."""
    return [desk.loop(each).status for each in loops]


def notes(answer: Answer) -> list[str]:
    """Return what is said beside the result."""
    return answer.err.splitlines()


def group(answer: Answer) -> dict[str, Any]:
    """Return the one group of an answer."""
    (found,) = answer.document["groups"]
    return dict(found)


# --- what a group is ------------------------------------------------------------------------------------------------


def test_a_convoy_goes_next(four: Desk) -> None:
    """`dispatch @c` puts the pending members ahead, in their order, and counts the others."""
    parked(four, "p/a")
    four.wish(wishes.stop_all, "ada")
    answer = four("dispatch", "@c", "--json")
    found = group(answer)
    assert found["total"] == 3 and found["group"] == "@c"
    assert {"id": "p/a", "why": "it is parked"} in found["left"]
    assert [each["id"] for each in answer.document["done"]] == found["taken"]


def test_a_convoy_is_dispatched_as_capacity_allows(four: Desk) -> None:
    """One word puts a whole convoy ahead of all others, and no ceiling is passed for it: who does not fit is next."""
    form(four, "late", "p/d", "q/x", "q/y")
    four("set", "concurrency.max_loops", "2")
    assert group(four("dispatch", "@late", "--json"))["taken"] == ["p/d", "q/x", "q/y"]
    assert four.choose() == ["p/d", "q/x"]
    assert four.choose() == []
    four.run("p/d")
    four.end("p/d", Failure.CONFIG, "no make")
    assert four.choose() == ["q/y"]
    four.run("q/x")
    four.end("q/x", Failure.CONFIG, "no make")
    assert len(four.choose()) == 1


def test_a_parent_that_is_complete_stands_for_those_below_it(four: Desk) -> None:
    """`dispatch PLAN` puts what is pending below it ahead; one that is pending is meant itself."""
    answer = four("dispatch", "p")
    assert notes(answer)[0] == "4 of 4 loops of p dispatched"
    with Workspace(four.folder).journal() as journal:
        (event,) = [each for each in journal.since(0) if each.event == "loops_dispatched"]
    assert all(f"p/{each}" in event.data for each in "abcd")
    assert four("dispatch", "p/a").code == 0


def test_a_project_is_cleared_and_brought_back(four: Desk) -> None:
    """`clear project:web` takes all that is pending in it out of the queue, and nothing else."""
    answer = four("clear", "project:web")
    assert "4 of 4 loops of project:web cleared" in notes(answer)
    assert four.loop("q/x").hold is None and four.loop("p/a").hold is not None
    form(four, "d", "p/a", "q/x")
    assert "1 of 2 loops of @d resumed; 1 is waiting" in notes(four("resume", "@d"))
    assert four.loop("p/a").hold is None and four.loop("p/b").hold is not None


def test_members_stand_for_all_below_them(four: Desk) -> None:
    """`pause @c` holds the members only, as if each had been named."""
    form(four, "c", "q")
    answer = four("pause", "@c", "--reason", "lunch")
    assert "3 of 3 loops of @c paused" in notes(answer)
    assert four.loop("q").hold is not None and four.loop("q/x").hold is None


def test_who_is_not_there_is_refused(four: Desk) -> None:
    """A group that nobody knows is told as any name."""
    assert four("dispatch", "@no").code == 3 and four("clear", "project:no").code == 3
    assert four("retry", "--fresh", "@c").code == 2
    assert four("iterate", "@no", "--feedback", "x").code == 3


def test_a_group_that_is_so_already_is_no_error(four: Desk) -> None:
    """Where a verb applies to none of a group it says how its loops stand, and asking twice is asking once."""
    answer = four("reset", "@c")
    assert (answer.code, answer.err) == (0, "0 of 3 loops of @c reset; 3 are waiting\n")
    assert four("pause", "@c").code == 0
    answer = four("pause", "@c", "--json")
    assert (answer.code, group(answer)["taken"], answer.document["done"]) == (0, [], [])
    assert "0 of 3 loops of @c paused; 3 are waiting, and paused" in notes(four("pause", "@c"))


def test_what_lives_in_a_group_is_stopped_though_it_is_held_already(four: Desk) -> None:
    """`pause @c --now` after `pause @c` stops what goes on, below the members too, and a third word nothing more."""
    form(four, "late", "p/a", "q")
    four.choose()
    assert four("pause", "@late", "--json").document["running"] == ["p/a", "q/x", "q/y"]
    answer = four("pause", "@late", "--now", "--json")
    assert group(answer)["taken"] == ["p/a", "q"]
    assert [(each["id"], each["did"]) for each in answer.document["done"]] == [
        ("p/a", "stopped"),
        ("q/x", "stopped"),
        ("q/y", "stopped"),
    ]
    assert group(four("pause", "@late", "--now", "--json"))["taken"] == []
    assert status(four, "p/a", "p/b") == [Status.PENDING, Status.LEASED]


def test_a_dry_run_counts_a_group(four: Desk) -> None:
    """What `dispatch -n` would leave alone is told too, also where that is all."""
    form(four, "late", "p/d", "q/x")
    form(four, "stuck", "q/x")
    parked(four, "q/x")
    assert notes(four("dispatch", "@late", "-n")) == ["1 of 2 loops of @late would be dispatched; 1 is parked"]
    assert notes(four("dispatch", "@stuck", "-n")) == ["0 of 1 loop of @stuck would be dispatched; 1 is parked"]


# --- deciding on many -----------------------------------------------------------------------------------------------


def test_a_group_is_counted_as_a_tree_is(shop: Desk) -> None:
    """What is complete and has others below it is none of those that a group is said to have."""
    shop.write("loopr.yml", COMMANDS.replace("run: make phase", "run: make phase, approve: true"))
    specs = "[{id: s, phases: [{id: e}, {id: f}]}, {id: t, phases: [{id: g}, {id: h}]}]"
    shop.start(f"---\nid: deep\nspecs: {specs}\n---\n", "deep.md")
    judged(shop, "deep/s/e", "deep/s/f")
    assert "0 of 4 done" in shop.lines("tree", "deep")[-1]
    answer = shop("approve", "deep", "--yes")
    assert "2 of 4 loops of deep approved; 2 are starting" in notes(answer)
    form(shop, "whole", "deep")
    assert "1 of 1 loop of @whole paused" in notes(shop("pause", "@whole"))
    assert "0 of 1 loop of @whole paused; 1 is done, and paused" in notes(shop("pause", "@whole"))


def test_many_need_a_yes(four: Desk) -> None:
    """Off a terminal more than one loop of a group is decided on with --yes only, and all of it is listed before."""
    judged(four, "p/a", "p/b", "q/x")
    answer = four("approve", "@c")
    assert (answer.code, answer.err) == (
        2,
        "loopr: approve takes 3 loops: p/a, p/b, q/x\n  hint: --yes goes on; `loopr diff --waiting` shows each\n",
    )
    assert status(four, "p/a", "p/b", "q/x") == [Status.AWAITING] * 3
    answer = four("approve", "@c", "--yes")
    assert "3 of 3 loops of @c approved" in notes(answer)
    assert status(four, "p/a", "p/b", "q/x") == [Status.LANDING] * 3


def test_one_needs_none(four: Desk) -> None:
    """A group that comes to one loop is as good as its name."""
    judged(four, "p/a")
    answer = four("reject", "p", "--reason", "no")
    assert answer.code == 0 and status(four, "p/a") == [Status.FAILED]


def test_a_member_that_stands_for_many_is_many(four: Desk) -> None:
    """To cancel a project or a convoy of one plan asks with all that is below it, since all of that ends."""
    form(four, "one", "q")
    for words in (["@one"], ["project:web"]):
        answer = four("cancel", *words)
        assert answer.code == 2 and "--yes goes on" in answer.err, answer
    assert "cancel takes 3 loops: q, q/x, q/y" in four("cancel", "@one").err
    assert four.loop("q").hold is None
    assert four("cancel", "@one", "--yes").code == 0
    assert four.loop("q/x").status is Status.CANCELLED


@pytest.mark.parametrize("verb", ["cancel", "retry", "reset"])
def test_what_undoes_work_asks(four: Desk, verb: str) -> None:
    """To cancel, begin again or reset several asks too; what is harmless does not."""
    parked(four, "p/a", "p/b")
    assert four(verb, "@c").code == 2
    assert status(four, "p/a", "p/b") == [Status.PARKED] * 2
    assert four(verb, "@c", "--yes").code == 0
    assert Status.PARKED not in status(four, "p/a", "p/b")


def test_exactly_what_was_shown_is_taken(four: Desk) -> None:
    """Whoever has changed since the list was shown, or has come since, stays and is named."""
    judged(four, "p/a", "p/b", "q/x")
    workspace = Workspace(four.folder, actor="ada")

    def meanwhile(text: str) -> bool:
        four.wish(wishes.iterate, "p/a", "more")
        judged(four, "p/a")
        form(four, "c", "p/c")
        judged(four, "p/c")
        return True

    answer = fulfil(workspace, Wish("approve", ("@c",)), meanwhile)
    (found,) = answer.more["groups"]
    assert found["taken"] == ["p/b", "q/x"]
    assert found["left"] == [
        {"id": "p/a", "why": "it has changed since it was shown"},
        {"id": "p/c", "why": "it was not shown"},
    ]
    assert status(four, "p/a", "p/b", "p/c", "q/x") == [
        Status.AWAITING,
        Status.LANDING,
        Status.AWAITING,
        Status.LANDING,
    ]


def test_a_group_is_one_transaction(four: Desk) -> None:
    """All loops of a group are decided on at one instant, in one append."""
    judged(four, "p/a", "p/b", "q/x")
    four("approve", "@c", "--yes")
    with Workspace(four.folder).journal() as journal:
        events = [each for each in journal.since(0) if each.event == "approved"]
    assert len({each.at for each in events}) == 1 and len(events) == 3
    assert [each.seq for each in events] == list(range(events[0].seq, events[0].seq + 3))


def test_files_that_are_offered(four: Desk) -> None:
    """With --file a group is those for whom a file is offered."""
    four.choose()
    four.see(o.FileRefused("p/b", "specs/p/b/spec.md", "bad"))
    answer = four("approve", "@c", "--file")
    assert (answer.code, notes(answer)) == (0, ["0 of 3 loops of @c approved; 3 are starting"])


def test_a_group_touches_all_that_it_has(four: Desk) -> None:
    """Who may not steer some loop of a group may not steer the group: those count too that the verb leaves."""
    scene = Workspace(four.folder).look().scene
    assert "p" in touched(scene, Wish("dispatch", ("p",)))
    assert "project:web" in touched(scene, Wish("cancel", ("project:web",)))
    scene = Workspace(parked(four, "p/a").folder).look().scene
    assert "p/b" in touched(scene, Wish("retry", ("@c",)))
