"""Every gate, closed and open: what closes it, what it says, what a person can do, and in which order they are told."""

from __future__ import annotations

from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core.choose import pick
from loopr.core.gates import GATES, SHARED_GATES, closed_gates, first_closed
from loopr.core.model import Status
from loopr.core.policy import Budget, LanePolicy, ProjectPolicy
from tests.core.stories import Story, go_on, outline, settings, tell

ORDER = [
    "status", "stopping", "paused", "parent", "needs", "artifact", "offered", "manual", "merge", "backoff", "lane",
    "budget", "serial", "apart", "project", "type", "resource", "worktrees", "capacity", "pace", "host", "drain",
]  # fmt: skip

# what closes a gate for `p/a`, what it then says, what opens it again, and the policy all of it happens under
CLOSINGS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "status": ("choose p/a", "worktree and process are being prepared", "lost p/a", {}),
    "stopping": ("choose p/a\nbegan p/a\npause now p/a\nresume p/a", "try 1 was told to stop", "gone p/a", {}),
    "paused": ("pause p/a: lunch", "it is paused by ada: lunch; `loopr resume p/a`", "resume p/a", {}),
    "parent": ("renew p", "its parent p is waiting", "drop p: a # anew", {}),
    "needs": ("plan p: a needs b; b", "needs b", "plan p: a; b # free", {}),
    "artifact": (
        "gone-file p",
        "its input specs/p/plan.md is not on disk; `loopr doctor --fix` puts it back",
        "drop p: a",
        {},
    ),
    "offered": (
        "plan p: b\nslip p: b; a run x",
        "its entry came with specs/p/plan.md while q/x ran: `loopr approve p --file` or `loopr reject p --file`",
        "drop p: b; a run x # a person's",
        {},
    ),
    "manual": ("", "a person must write its spec.md: specs/p/a/spec.md", "", {"commands": "plan phase code"}),
    "merge": (
        "plan p: b; a\nchoose p/b, p/a\nbegan p/b\nended p/b\njudged p/b: conflict both in=notes\n"
        "began p/a\nended p/a\njudged p/a: conflict both in=notes,other\nchoose p/b",
        "p/b mends its conflict in notes first",
        "lost p/b\npause p/b",
        {"max_loops": 2},
    ),
    "backoff": ("choose p/a\nended p/a: infra it died", "retries after failure 1: it died", "wait 30s", {}),
    "lane": (
        "plan q: x\nchoose p/a, q/x\nended q/x: limited slow down\nlost p/a",
        "lane default is backing off: slow down (1 hit)",
        "wait 2s",
        {},
    ),
    "budget": (
        "plan q: x\ndispatch q/x\nchoose q/x\nbegan q/x\nused q/x 7 tokens\nended q/x: config no",
        "the tokens budget of the workspace is reached",
        "wait 1d",
        {"budget": Budget(tokens=7), "max_loops": 1},
    ),
    "serial": (
        "plan p: serial: b; a\nchoose p/b",
        "runs one after another with its siblings: p/b is first",
        "pause p/b\nlost p/b",
        {},
    ),
    "apart": (
        "plan q: x\nchoose p/a, q/x\nharm p/a: q/x\nlost p/a",
        "not beside q/x until one ends without harm: both ran when refs/heads/main was changed",
        "lost q/x",
        {},
    ),
    "project": (
        "plan q: x\ndispatch q/x\nchoose q/x",
        "project default is at its limit of 1",
        "lost q/x",
        {"projects": {"default": ProjectPolicy(max_concurrent=1)}},
    ),
    "type": (
        "plan q: x\ndispatch q/x\nchoose q/x",
        "1 of 1 spec loop is at work",
        "lost q/x",
        {"per_type": {"spec": 1}},
    ),
    "resource": (
        "plan q: x\ndispatch q/x\nchoose q/x",
        "resource db: 1 of 1 held by q/x",
        "lost q/x",
        {"resources": {"db": 1}, "types": {"spec": {"resources": (("db", 1),)}}},
    ),
    "worktrees": (
        "plan q: x\ndispatch q/x\nchoose q/x\nbegan q/x",
        "1 of 1 worktrees are taken (`worktrees.max`)",
        "ended q/x: config no\nchoose\npacked q/x",
        {"max_loops": 0, "max_worktrees": 1},
    ),
    "capacity": ("plan q: x\ndispatch q/x\nchoose q/x", "all 1 slots are taken", "lost q/x", {"max_loops": 1}),
    "pace": (
        "plan q: x\ndispatch q/x\nchoose q/x",
        "a round launches 1 at most, and the next is not due (`dispatch`)",
        "wait 1s",
        {"batch_size": 1},
    ),
    "host": ("host sick: the disk is full", "the disk is full", "host fine", {}),
    "drain": ("engine drains", "the engine is stopping: `loopr run` goes on", "engine begins", {}),
}


def closing(gate: str, with_end: bool) -> Story:
    """Play what closes a gate for `p/a`, and what opens it again."""
    close, _, opens, numbers = CLOSINGS[gate]
    return tell(f"plan p: a\n{close}\n{opens if with_end else ''}", settings(**numbers))


@pytest.mark.parametrize("gate", ORDER)
def test_a_gate_closes_and_says_why(gate: str) -> None:
    """What closes a gate makes `why` name it, with its reason, and nobody chooses the loop."""
    story = closing(gate, with_end=False)
    assert CLOSINGS[gate][1] in story.gates("p/a")[gate]
    assert "p/a" not in story.choose()
    story.verify()


@pytest.mark.parametrize("gate", [each for each in ORDER if each != "manual"])
def test_a_gate_opens_again(gate: str) -> None:
    """Once the cause is gone no gate is closed any more, and the loop is chosen."""
    story = closing(gate, with_end=True)
    assert story.gates("p/a") == {}
    assert "p/a" in story.choose()
    story.verify()


def test_the_gates_are_told_in_their_order() -> None:
    """Gates are listed in the order of the specification, however many are closed at once."""
    assert [name for name, _ in GATES] == ORDER
    story = tell(
        """
        plan p: a needs b; b
        choose p/b
        pause p: lunch
        gone-file p
        host sick
        engine drains
        why p/a: paused p is paused by ada: lunch
        """,
        settings(max_loops=1, per_type={"spec": 1}),
    )
    assert list(story.gates("p/a")) == ["paused", "needs", "artifact", "type", "capacity", "host", "drain"]


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ("choose p/a", "it was chosen"),
        ("choose p/a\nbegan p/a", "try 1 runs"),
        ("choose p/a\nbegan p/a\nended p/a", "try 1 is being judged"),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a", "`loopr approve p/a`"),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a\napprove p/a", "its commits land now"),
        ("choose p/a\nended p/a: config line 3", "line 3; `loopr reset p/a` once that is mended"),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a\nreject p/a: bad", "it failed: bad; `loopr retry p/a`"),
        ("cancel p/a", "`loopr retry p/a` brings it back"),
        ("plan p: b", "no longer declared"),
        ("drop p/a: x; y", "its own work is done, and 0 of 2 below it"),
        ("drop p/a: x; y\ndrop p/a/x: k", "its own work is done, and 0 of 2 below it"),
    ],
)
def test_every_state_says_what_it_waits_for(story: str, words: str) -> None:
    """A loop that does not wait for its turn says what its state waits for, and what a person may do."""
    told = tell(f"plan p: a\n{story}", settings(types={"spec": {"approve": True}}))
    assert words in told.gates("p/a")["status"]


def test_what_holds_a_loop_up_on_its_way_is_said() -> None:
    """A loop whose worktree, judging or landing waits for something to be mended says for what, until it is."""
    story = tell("plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a\njudged p/a")
    words = 'its branch "loopr/p" is gone'
    story.see(o.Noticed("p/a", words))
    assert story.gates("p/a")["status"] == f"its commits land now; held up: {words}"
    assert words not in story.gates("p/b")["status"]
    story.see(o.Noticed("p/a", ""))
    assert story.gates("p/a")["status"] == "its commits land now"


def test_a_loop_knows_its_place_in_the_landing_line() -> None:
    """Of the loops of one plan that are landing, each says how many land before it."""
    tell("""
        plan p: a; b; c
        plan q: x
        choose p/a, p/b, p/c, q/x
        began p/b
        ended p/b
        judged p/b
        began p/c
        ended p/c
        judged p/c
        began q/x
        ended q/x
        judged q/x
        why p/b: status its commits land now
        why p/c: status its commits are on their way to the plan branch, 1 before it
        why q/x: status its commits land now
        landed p/b: y
        why p/c: status its commits land now
    """)


def test_done_is_more_than_complete() -> None:
    """A need is open only once the needed loop and everything declared below it are complete."""
    tell("""
        plan p: a needs b; b
        choose p/b
        finish p/b: x
        why p/a: needs needs b (0 of 1 done)
        choose p/b/x
        finish p/b/x: k
        why p/a: needs needs b (0 of 1 done)
        choose p/b/x/k
        finish p/b/x/k
        why p/a: nothing
    """)


def test_the_other_needs_are_counted() -> None:
    """Where more than one need is open, the first is named with the number of the others."""
    story = tell("plan p: a needs b,c,d; b; c; d")
    assert story.gates("p/a")["needs"] == "needs b and 2 more"
    go_on(story, "plan p: a needs d; b; c; d")
    assert story.gates("p/a")["needs"] == "needs d"


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ("choose p/b\nended p/b: config no", "needs b, which is parked"),
        ("cancel p/b", "needs b, which is cancelled"),
    ],
)
def test_a_need_that_is_stuck_is_named(story: str, words: str) -> None:
    """A need on a loop that no time brings back says which one, and in which state it is."""
    told = tell(f"plan p: a needs b; b\n{story}")
    assert words in told.gates("p/a")["needs"]


def test_a_need_that_is_no_longer_declared_stays_closed() -> None:
    """A loop that needs one from another outline waits, and says so, once that one is undeclared."""
    tell("""
        plan q: x
        plan p: a needs q/x
        plan q: y
        why p/a: needs needs q/x, which is not declared
        choose q/y
        plan q: y; x # again
        why p/a: needs needs q/x
    """)


def test_a_parent_that_runs_again_stops_only_who_waits() -> None:
    """When a parent runs again its children in flight go on, and pending ones wait for it."""
    tell("""
        plan p: a
        choose p/a
        finish p/a: x; y
        choose p/a/x, p/a/y
        began p/a/x
        lost p/a/y
        renew p/a
        why p/a/y: parent its parent p/a is waiting
        p/a/x is running
        ended p/a/x
        judged p/a/x
        landed p/a/x: k
        p/a/x is complete
    """)


def test_a_hold_above_reaches_everything_below() -> None:
    """A hold on an ancestor, on the project or on the workspace closes `paused`, and each says what lifts it."""
    tell("""
        plan p: a (b)
        settle
        pause p: lunch
        why p/a/b: paused p is paused by ada: lunch; `loopr resume p`
        resume p
        pause project:default: money
        why p/a/b: paused project default is paused by ada: money; `loopr resume project:default`
        resume project:default
        pause workspace: night
        why p/a/b: paused the workspace is paused by ada: night; `loopr resume --all`
        resume workspace
        why p/a/b: nothing
    """)


def test_a_pause_lets_a_live_attempt_end() -> None:
    """A live attempt of a paused loop goes on, is checked and lands; with `now` it is stopped, free."""
    tell("""
        plan p: a; b
        choose p/a, p/b
        began p/a
        began p/b
        pause p/a: lunch
        ended p/a
        judged p/a
        landed p/a: x
        p/a is complete
        pause now p/b: lunch
        p/b has status pending failures 0 iteration 1
        why p/b: stopping try 1 was told to stop and still lives
    """)


def test_clear_holds_what_waits() -> None:
    """`clear` takes pending loops out of the queue by a hold that says so."""
    tell("""
        plan p: a; b
        clear p/a
        why p/a: paused it is paused by ada: cleared
        choose p/b
        refuses clear p/b
    """)


def test_a_declared_loop_asks_only_few_gates() -> None:
    """A loop that completes by declaration waits for holds, parent and needs, and for no hand, slot or lane."""
    story = tell(
        """
        plan p: a (x); b needs a (y)
        why p/a: status loopr writes its artifact
        why p/b: needs needs a
        host sick
        engine drains
        pause p/a
        """,
        settings(commands="", max_loops=1),
    )
    assert list(story.gates("p/a")) == ["paused"]
    go_on(story, "resume p/a\nsettle\np/a is complete\np/b is pending")


@pytest.mark.parametrize("lanes", [("one", "two"), ("two",)])
def test_lane_lists_need_one_open_lane(lanes: tuple[str, ...]) -> None:
    """A loop with several lanes waits only if all of them are closed."""
    story = tell(
        "plan p: a",
        settings(types={"spec": {"lanes": lanes}}, lanes={"one": LanePolicy(max_concurrent=0), "two": LanePolicy(1)}),
    )
    assert story.gates("p/a") == {}
    assert story.choose() == ["p/a"]
    assert story["p/a"].lane == "two"


def test_api_calls_count_every_lane_but_the_default() -> None:
    """`max_api_calls` closes for loops of a provider's lane, and never for those of the default lane."""
    tell(
        """
        plan p: a (k; l)
        plan q: x; y
        settle
        choose p/a/k, q/x, q/y
        why p/a/l: capacity all 1 API calls are taken
        """,
        settings(types={"phase": {"lanes": ("paid",)}}, max_api_calls=1),
    )


@pytest.mark.parametrize("ceiling", [0, -1])
def test_without_a_ceiling_on_api_calls_none_binds(ceiling: int) -> None:
    """`max_api_calls: 0` and -1 bound nothing, for commands and for judges on another lane."""
    types: dict[str, Any] = {"spec": {"lanes": ("paid",), "judge_lanes": ("judge",), "judged": True}}
    tell(
        "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/a\nended p/a\np/a is checking",
        settings(types=types, max_api_calls=ceiling),
    )


def test_a_group_is_closed_only_by_what_all_its_members_share() -> None:
    """No member of a group that is not closed as a whole has a closed gate, and the groups ask no other gates."""
    assert [name for name, _ in SHARED_GATES] == [
        "paused", "lane", "budget", "serial", "apart", "project", "type", "resource", "worktrees", "capacity",
        "pace", "host", "drain",
    ]  # fmt: skip
    story = tell("""
        plan p: a; b serial; c serial; d
        plan q: serial: x; y; z
        choose p/a, p/b, p/d, q/x
        ended p/b: refused no
    """)
    for loop in story.forest.loops.values():
        gates = list(closed_gates(story.forest, loop, story.now))
        assert first_closed(story.forest, loop, story.now) == (gates[0] if gates else None)
    picked = pick(story.forest, story.now)
    assert picked is not None
    assert picked.id == "p/b"


def test_every_loop_that_does_not_run_names_a_gate() -> None:
    """Whatever its state, a loop that is not at work either can be chosen or names a closed gate."""
    story = tell("""
        plan p: a; b needs a; c serial; d serial; e (k; l)
        settle
        choose p/e/k, p/e/l, p/a, p/c
        ended p/c: config no
        cancel p/b
    """)
    chosen = set(story.choose())
    for loop in story.forest.loops.values():
        if loop.status is Status.PENDING:
            assert story.gates(loop.id), loop.id
    assert chosen == {"p/d"}


def test_an_outline_in_one_line_is_read() -> None:
    """The shorthand of these stories says what it seems to say."""
    artifact = outline("serial: a needs b,c run ./x; b parallel budget 5 (k; l title L); c # again")
    a, b, c = artifact.entries
    assert (artifact.parallel, a.needs, a.run, b.parallel, b.budget.tokens) == (False, ("b", "c"), "./x", True, 5)
    assert [each.id for each in b.children] == ["k", "l"]
    assert (b.children[1].title, c.title) == ("L", "c")


@pytest.mark.parametrize("last", ["pause now p/a", "ended p/a: refused no", "ended p/a: infra died"])
def test_nobody_waits_for_itself_in_a_line(last: str) -> None:
    """A serial loop that ends or tries again keeps its line from its siblings, never from itself."""
    story = tell(f"plan p: serial: a; b\nchoose p/a\nbegan p/a\n{last}")
    assert "serial" not in story.gates("p/a")
    assert story.gates("p/b")["serial"].endswith("p/a is first")
