"""What the workspace as a whole is doing, in a few lines from the top."""

from __future__ import annotations

import os
from collections.abc import Iterator

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Failure, Usage
from loopr.core.redoing import ask_redo
from loopr.core.staleness import stale_below
from loopr.ui.render import columns
from loopr.ui.views import problems
from tests.core.stories import go_on, settings, tell
from tests.ui.scenes import COMMANDS, OAUTH, Desk, flat
from tests.ui.terminals import on_terminal


def test_an_empty_workspace(desk: Desk) -> None:
    """Before anything is planned there is an answer all the same."""
    assert desk.lines("status") == [
        "engine  not running",
        "loops   no loops",
        "slots   0 of 50 taken",
        "queue   0 waiting for a slot",
    ]


def test_a_workspace_at_work(shop: Desk) -> None:
    """Counts, slots and the queue by type."""
    shop.start(flat(f"s{n}" for n in range(8)))
    shop.choose()
    assert shop.lines("status") == [
        "engine  not running",
        "loops   0 of 8 done · 3 waiting · 5 starting",
        "slots   5 of 50 taken",
        "full    concurrency.per_type.spec",
        "queue   3 waiting for a slot: 3 spec",
        "warning: no engine runs: `loopr run` goes on",
    ]


def test_what_is_paused_queued_ready_and_active(shop: Desk) -> None:
    """The four counts of a scheduler are told side by side, in words and as data."""

    def told() -> tuple[object, ...]:
        """Return them."""
        body = shop("status", "--json").document
        return bool(body["paused"]), body["queue"]["depth"], body["ready"], body["capacity"]["occupied"]

    shop.start(flat(f"s{n}" for n in range(8)))
    assert told() == (False, 0, 8, 0)
    assert "ready   8" in shop.lines("status")
    shop.choose()
    assert told() == (False, 3, 0, 5)
    shop("pause", "--all")
    assert told() == (True, 0, 0, 5)


def test_no_ceiling(shop: Desk) -> None:
    """Without a ceiling the number of taken slots is told alone, and there are no queue limits."""
    shop("set", "concurrency.max_loops", "0")
    shop.start(flat(["a"]))
    shop.choose()
    assert "slots   1 taken, no ceiling" in shop.lines("status")
    assert shop("status", "--json").document["capacity"]["full"] == []
    body = shop("status", "--json").document
    assert (body["capacity"]["free"], body["queue"]["soft_limit"], body["queue"]["hard_limit"]) == (None, None, None)


def test_direct_dispatch(shop: Desk) -> None:
    """Without a ceiling no default of a type binds; what is written does, and the status names it."""
    shop("set", "concurrency.max_loops", "-1")
    shop.start(flat(f"s{n}" for n in range(8)))
    assert len(shop("next", "--json").document["grants"]) == 8
    shop("set", "concurrency.per_type.spec", "5")
    shop.choose()
    assert shop("status", "--json").document["capacity"]["full"] == ["concurrency.per_type.spec"]
    assert "full    concurrency.per_type.spec" in shop.lines("status")


def test_many_states_are_told_on_several_lines(shop: Desk) -> None:
    """The counts of a busy workspace go on below where a terminal ends, and stand on one line in a pipe."""
    names = ["leased", "running", "checking", "parked", "cancelled", "failed", "waiting"]
    shop.start(flat(names))
    shop("set", "concurrency.per_type.spec", "6")
    shop("set", "retry.max_iterations.spec", "1")
    shop.wish(wishes.cancel, "p/cancelled", "ada")
    shop.choose()
    for name in ("running", "checking", "parked", "failed"):
        shop.run(f"p/{name}")
    shop.end("p/checking")
    shop.end("p/parked", Failure.CONFIG, "no such program")
    shop.end("p/failed", Failure.REFUSED, "no")
    sums = "loops   0 of 7 done · 2 starting · 1 running · 1 checking · 1 parked"
    assert shop.lines("status")[1] == f"{sums} · 1 failed · 1 cancelled"
    shown = on_terminal(shop.folder, "status", "--no-color").decode().splitlines()
    assert shown[1:3] == [f"{sums} · 1 failed", "                    · 1 cancelled"]
    assert max(map(columns, shown)) <= 80


def test_projects_are_compared(shop: Desk) -> None:
    """With more than one project, each has its weight, its share of the use, and the share it is due."""
    shop.write("loopr.yml", COMMANDS + "projects: {api: {weight: 3}, web: {weight: 1}}\n")
    shop.start(flat(["a"], "p").replace("id: p\n", "id: p\nproject: api\n"), "p.md")
    shop.start(flat(["b"], "q").replace("id: q\n", "id: q\nproject: web\n"), "q.md")
    shop.choose()
    for loop, tokens in (("p/a", 9_000), ("q/b", 1_000)):
        shop.run(loop)
        shop.see(o.AttemptUsed(loop, 1, Usage(tokens, None, 1000)))
        shop.end(loop, Failure.REFUSED, "no")
    lines = shop.lines("status")
    at = lines.index("project  weight  share  target  used  running")
    assert [line.split() for line in lines[at + 1 : -1]] == [
        ["api", "3", "90%", "75%", "9k", "0"],
        ["web", "1", "10%", "25%", "1k", "0"],
        ["default", "1", "0%", "0%", "0", "0"],
    ]


def test_a_project_without_tokens_has_used_none(shop: Desk) -> None:
    """Time counts in the share of a project; in what it has used it does not, as `usage` has it."""
    shop.write("loopr.yml", COMMANDS + "projects: {api: {weight: 1}}\n")
    shop.start(flat(["a"], "p").replace("id: p\n", "id: p\nproject: api\n"), "p.md")
    shop.choose()
    shop.run("p/a")
    shop.see(o.AttemptUsed("p/a", 1, Usage(None, None, 20_000)))
    shop.end("p/a", Failure.REFUSED, "no")
    (row,) = (line.split() for line in shop.lines("status") if line.startswith("api "))
    assert row == ["api", "1", "100%", "100%", "0", "0"]
    found = shop("status", "--json").document["projects"]["api"]
    assert (found["usage"], found["budget"]["tokens"]["used"]) == (1000, 0)


def test_problems_are_told_in_full(shop: Desk) -> None:
    """A parked loop, a failed one and a bad file each have their reason, with every line of it."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    for name in ("a", "b"):
        shop.run(f"p/{name}")
    shop.end("p/a", Failure.CONFIG, "no such program: make")
    shop.see(o.FileRefused("p/b", "specs/p/b/spec.md", "specs/p/b/spec.md:1:1 is empty\nand more"))
    lines = shop.lines("status")
    assert lines[lines.index("needs you:") + 1 :] == [
        "  parked  p/a: no such program: make; `loopr reset p/a`",
        "",
        "problems:",
        "  specs/p/b/spec.md:1:1 is empty",
        "    and more",
        "warning: no engine runs: `loopr run` goes on",
    ]
    shop("reset", "a")
    assert "needs you:" not in shop.lines("status")


def test_holds_the_host_and_the_queue_are_told(shop: Desk) -> None:
    """Whatever keeps everything waiting stands in the status."""
    shop("set", "queue.soft_limit", "1")
    shop.start(flat(f"s{n}" for n in range(8)))
    shop.choose()
    shop.see(o.HostSeen("the disk is full"))
    shop.wish(wishes.pause, "workspace:", "ada", "")
    assert "the workspace is paused by ada since 12:00:00; `loopr resume --all`" in shop.lines("status")
    assert "host    the disk is full" in shop.lines("status")
    assert shop("status", "--json").document["paused"] == {"by": "ada", "at": "2026-01-01T12:00:00.000Z", "reason": ""}
    shop.wish(wishes.resume, "workspace:", "ada")
    assert any(line.startswith("warning: queue delayed; respecting caps") for line in shop.lines("status")) is False
    shop.see(o.HostSeen(""))
    assert "warning: queue delayed; respecting caps (3 waiting: 3 spec; the soft limit is 1)" in shop.lines("status")


def test_landed_work_that_nobody_declares_is_remembered(shop: Desk) -> None:
    """A loop that landed and is no longer declared stays under the problems with the line that takes it back."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.land("p/a", "k")
    shop.land("p/b", "k")
    answer = shop.start(flat(["b"]), "plan.md", "--yes")
    stays = "what p/a has landed stays on loopr/p: `loopr status` says what takes it away"
    assert f"  {stays}" in answer.err.splitlines()
    revert = "once home, `git revert c0ffee` on main takes it away where nothing else counts on that"
    assert stayed(shop) == f"{STAYS}{revert}; `loopr gc --forget p/a` ends this line"


def test_those_made_with_work_that_is_gone_are_named() -> None:
    """They stay complete, as its commit stays: what makes them anew stands beside what reverts that."""
    story = tell("plan p: s; t needs s\nchoose p/s\nfinish p/s: a; b", settings(types={"phase": {"child": None}}))
    go_on(story, "choose p/s/a, p/s/b\nfinish p/s/a p/s/b\nchoose p/t\nfinish p/t: c\nchoose p/t/c\nfinish p/t/c")
    assert problems(story.forest) == []
    go_on(story, "drop p/s: b")
    (row,) = problems(story.forest)
    made = "p/t, p/t/c were made with it, and `loopr retry --fresh p/t p/t/c` makes them anew without it"
    assert row["loop"] == "p/s/a"
    assert made in row["text"]
    assert [each.id for each in stale_below(story.forest.tree)] == []


def test_all_that_a_loop_has_landed_is_named(shop: Desk) -> None:
    """Of a loop that landed more than once no single commit is named: that would leave the rest."""
    shop.write("loopr.yml", "version: 1\ntypes: {plan: {child: code}, code: {run: make code}}\n")
    shop.start("---\nid: p\ncodes: [a]\n---\n")
    for _ in range(2):
        shop.choose()
        shop.land("p/a")
        shop.wish(ask_redo_of, "p/a")
    assert shop.loop("p/a").generation == 2
    shop.start("---\nid: p\ncodes: [b]\n---\n", "plan.md", "--yes")
    names = "`git log --grep 'Loopr-Loop: p/a$' loopr/p` names its commits"
    revert = "once home, `git revert` on main takes them away where nothing else counts on that"
    assert stayed(shop) == f"{STAYS}{names}; {revert}; `loopr gc --forget p/a` ends this line"


STAYS = "  p/a: it is no longer declared, and what it has landed is in the history of loopr/p: "


def stayed(desk: Desk) -> str:
    """Return what `status` says of p/a as one line."""
    said = " ".join(line.strip() for line in desk.lines("status"))
    return f"  p/a:{said.partition('problems: p/a:')[2].partition(' warning:')[0]}"


def ask_redo_of(forest: Forest, name: str) -> Iterator[Event]:
    """Ask for a loop to be done again."""
    return ask_redo(forest, forest.loops[name], "other data", again=True)


def test_a_changed_plan_file_is_noticed(desk: Desk) -> None:
    """The status says when a plan's file is not what was started from it, and stops when it is started again."""
    desk.start()
    assert not any("plan.md" in line for line in desk.lines("status"))
    desk.write("plan.md", OAUTH + "\nMore.\n")
    assert "warning: plan.md has changed: start it again" in desk.lines("status")
    desk("start", "--no-run", desk.folder / "plan.md")
    assert not any("plan.md" in line for line in desk.lines("status"))
    (desk.folder / "plan.md").unlink()
    assert desk("status").code == 0


def test_a_running_engine_is_named(desk: Desk) -> None:
    """Whoever holds the lock as an engine is named with its process; a command that takes a turn is not."""
    from loopr.wiring import Workspace
    from loopr.world.lock import EngineLock

    desk.start()
    lock = Workspace(desk.folder).place.lock
    with EngineLock.acquire(lock, "engine"):
        body = desk("status", "--json").document["engine"]
        assert (body["running"], body["draining"]) == (True, False)
        assert f"engine  running, pid {body['pid']} on {body['host']}" in desk.lines("status")
    with EngineLock.acquire(lock, "turn"):
        assert desk("status", "--json").document["engine"]["running"] is False


def test_an_engine_that_was_killed_while_it_drained(desk: Desk) -> None:
    """Where none runs, none drains; one that runs and drains says so."""
    from loopr.wiring import Workspace
    from loopr.world.lock import EngineLock

    desk.start()
    desk.see(o.EngineBegan(os.getpid(), "here"), o.EngineDrains("ada"))
    assert desk.lines("status")[0] == "engine  not running"
    assert desk("status", "--json").document["engine"]["draining"] is False
    with EngineLock.acquire(Workspace(desk.folder).place.lock, "engine"):
        assert desk.lines("status")[0].endswith(" (draining)")
