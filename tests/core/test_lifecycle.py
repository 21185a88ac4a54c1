"""The table is the law: what is in it leads where it says, what is not is refused and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import offer_events as f
from loopr.core import redo_events as r
from loopr.core import workspace_events as w
from loopr.core import worktree_events as v
from loopr.core.codec import EVENTS
from loopr.core.forest import Forest
from loopr.core.judge_events import Conflicted, JudgeWaits, LandingWaits, MergeTurnEnded, Refused, VerdictGiven
from loopr.core.lifecycle import LIFECYCLE, allows, evolve
from loopr.core.model import Failure, Loop, Status, Terms, Usage
from loopr.core.plan_events import InputsMoved, LandingBegan
from loopr.core.policy import LanePolicy
from loopr.core.steps import STEPS
from loopr.errors import Impossible
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings, tell

S = Status
LIVE = {S.LEASED, S.RUNNING, S.CHECKING}
EVERY = set(Status)
LOOP_EVENTS = [cls for cls in EVENTS.values() if issubclass(cls, e.LoopEvent)]

# The table of the specification, written down a second time; None: the status stays. Beyond its lines: a judge meets
# the classes of trouble too (config, blocked and budget while checking or landing, infra while landing), a change that
# does not merge may be found while checking, and what starts may be limited or set aside before it runs.
EXPECTED: dict[type[e.LoopEvent], tuple[set[Status], set[Status] | None]] = {
    e.Declared: (set(), {S.PENDING}),
    e.LeaseGranted: ({S.PENDING}, {S.LEASED, S.RUNNING}),
    e.Settled: ({S.PENDING}, {S.COMPLETE}),
    e.AttemptStarted: ({S.LEASED}, {S.RUNNING}),
    e.LeaseReleased: ({S.LEASED, S.RUNNING}, {S.PENDING}),
    e.LeaseExpired: ({S.LEASED, S.RUNNING}, {S.PENDING, S.PARKED}),
    e.LeaseRenewed: ({S.RUNNING}, None),
    e.UsageSeen: (EVERY, None),
    e.StepTimed: (LIVE | {S.LANDING}, None),
    e.WorkEnded: ({S.RUNNING}, {S.CHECKING}),
    VerdictGiven: ({S.CHECKING, S.LANDING}, None),
    JudgeWaits: ({S.RUNNING}, {S.PENDING}),
    Refused: ({S.RUNNING, S.CHECKING, S.LANDING}, {S.PENDING, S.FAILED}),
    e.Limited: (LIVE | {S.LANDING}, {S.PENDING}),
    e.Broke: (LIVE | {S.LANDING}, {S.PENDING, S.PARKED}),
    e.SetAside: (LIVE | {S.LANDING}, {S.PARKED}),
    e.Passed: ({S.CHECKING}, {S.AWAITING, S.LANDING}),
    e.Approved: ({S.AWAITING}, {S.LANDING}),
    e.Rejected: ({S.AWAITING}, {S.FAILED}),
    e.IterationAsked: ({S.AWAITING}, {S.PENDING}),
    e.CandidateReplaced: ({S.AWAITING}, None),
    e.Landed: ({S.LANDING}, {S.COMPLETE}),
    Conflicted: ({S.CHECKING, S.LANDING}, {S.PENDING, S.PARKED, S.FAILED}),
    e.Stopped: (LIVE | {S.LANDING}, {S.PENDING}),
    LandingBegan: ({S.LANDING}, None),
    LandingWaits: ({S.LANDING}, None),
    MergeTurnEnded: (EVERY, None),
    InputsMoved: (LIVE | {S.PENDING, S.AWAITING, S.LANDING}, None),
    e.AttemptGone: (EVERY, None),
    e.ArtifactAccepted: ({S.PENDING, S.PARKED, S.FAILED, S.COMPLETE} | LIVE, {S.COMPLETE}),
    e.InputChanged: (EVERY - {S.CANCELLED, S.INVALIDATED}, {S.PENDING}),
    e.OutlineChanged: (EVERY - {S.CANCELLED, S.INVALIDATED}, {S.PENDING}),
    e.EntryChanged: (EVERY - {S.INVALIDATED}, None),
    e.Undeclared: (EVERY - {S.INVALIDATED}, {S.INVALIDATED}),
    e.DeclaredAgain: ({S.INVALIDATED}, {S.PENDING, S.COMPLETE}),
    e.Deferred: ({S.LANDING}, None),
    e.Cancelled: ({S.PENDING, S.PARKED, S.FAILED, S.AWAITING, S.LANDING} | LIVE, {S.CANCELLED}),
    e.Unparked: ({S.PARKED}, {S.PENDING}),
    e.Retried: ({S.PARKED, S.FAILED, S.CANCELLED, S.PENDING}, {S.PENDING}),
    e.Renewed: ({S.COMPLETE, S.PARKED, S.FAILED, S.CANCELLED}, {S.PENDING}),
    r.RedoAsked: ({S.COMPLETE}, None),
    r.RedoBegan: ({S.COMPLETE}, {S.PENDING}),
    e.Held: (EVERY, None),
    e.Lifted: (EVERY, None),
    e.ArtifactSeen: (EVERY, None),
    e.ArtifactGone: (EVERY, None),
    v.WorktreePacking: ({S.PENDING, S.PARKED, S.FAILED, S.AWAITING, S.CANCELLED}, None),
    v.WorktreePacked: (set(S), None),
    v.WorktreeKept: (set(S), None),
    e.Forgotten: ({S.INVALIDATED}, None),
    w.SteeringRefused: (EVERY, None),
    f.ArtifactOffered: (EVERY, None),
    f.ArtifactUnread: (EVERY, None),
    f.OfferGone: (EVERY, None),
    f.OfferReplaced: (EVERY, None),
    f.OfferRejected: (EVERY, None),
    f.CompletionUndone: ({S.COMPLETE}, {S.PENDING}),
}

A = "plan/a"
TERMS = Terms("A", identity="i1")
VALUES: dict[str, Any] = {
    "loop": A,
    "type": "spec",
    "parent": "plan",
    "terms": TERMS,
    "entry": "{}",
    "generation": 2,
    "change": "undeclared",
    "data": json.dumps({"loop": A}),
    "digest": "d1",
    "by": "ada",
    "reason": "because",
    "attempt": 1,
    "grant": 1,
    "lane": "default",
    "holder": "engine",
    "expires_at": None,
    "judge_only": False,
    "base_commit": "b0",
    "usage": Usage(5, None, 7),
    "step": "setup",
    "ms": 1_500,
    "not_before": 0,
    "signature": "s",
    "work": "w",
    "agent": "small",
    "takes_over": "",
    "tip": "c0ffee",
    "paths": ("notes",),
    "number": 1,
    "failure": Failure.INFRA,
    "launch": False,
    "live": False,
    "commit": "c0ffee",
    "lease": f"{A}#1",
    "wish": "stop",
    "judge": "check",
    "key": "k",
    "during": (),
    "before": "",
    "theirs": True,
    "cause": "because",
    "why": "because",
}
DECLARED = e.Declared(A, "spec", "plan", TERMS)
GRANTED = e.LeaseGranted(A, 1, 1, "default")
TO_RUNNING = (DECLARED, GRANTED, e.AttemptStarted(A, 1))
TO_CHECKING = (*TO_RUNNING, e.WorkEnded(A, 1))
TO_LANDING = (*TO_CHECKING, e.Passed(A, 1, S.LANDING))
PATHS: dict[Status, tuple[e.LoopEvent, ...]] = {
    S.PENDING: (DECLARED,),
    S.LEASED: (DECLARED, GRANTED),
    S.RUNNING: TO_RUNNING,
    S.CHECKING: TO_CHECKING,
    S.AWAITING: (*TO_CHECKING, e.Passed(A, 1, S.AWAITING)),
    S.LANDING: TO_LANDING,
    S.COMPLETE: (*TO_LANDING, e.Landed(A, 1, "c0", "d0")),
    S.PARKED: (*TO_RUNNING, e.SetAside(A, 1, Failure.CONFIG, "no such program")),
    S.FAILED: (*TO_CHECKING, Refused(A, 1, S.FAILED, "s", "no")),
    S.CANCELLED: (DECLARED, e.Cancelled(A, "ada", "enough")),
    S.INVALIDATED: (DECLARED, e.Undeclared(A)),
}


def forest_with(status: Status) -> Forest:
    """Bring a loop into a status by the events that lead there."""
    forest = Forest()
    forest.apply(e.Declared("plan", "plan", None, Terms("Plan")), 1)
    for at, event in enumerate(PATHS[status], 2):
        forest.apply(event, at)
    assert forest.loops[A].status is status
    return forest


def variants(cls: type[e.LoopEvent], loop: Loop | None) -> Iterator[e.LoopEvent]:
    """Write every kind of an event for a loop: with each target it could name, and for a pull worker too."""
    names = [each.name for each in fields(cls)]
    values = {name: VALUES[name] for name in names if name in VALUES}
    if cls is e.LeaseGranted and loop is not None:
        values["attempt"] = loop.attempt + 1
    if cls is e.LeaseRenewed:
        values["expires_at"] = 99
    if "to" not in names:
        yield cls(**values)
        if "expires_at" in names:
            yield cls(**values | {"expires_at": 99})
        return
    for status in Status:
        yield cls(**values | {"to": status})


CASES = [(cls, status) for cls in LOOP_EVENTS for status in Status]


@pytest.mark.parametrize(("cls", "status"), CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_every_event_in_every_state_does_what_the_table_says(cls: type[e.LoopEvent], status: Status) -> None:
    """An event leads to the targets that the table names, and is refused in any other state, changing nothing."""
    froms, tos = EXPECTED[cls]
    for event in variants(cls, forest_with(status).loops[A]):
        forest = forest_with(status)
        before = forest.all_rows()
        target = getattr(event, "to", None)
        fits = status in froms and (target is None or target in (tos or ()))
        if cls is e.AttemptGone or (cls is e.UsageSeen and forest.loops[A].lease is None):
            fits = False  # nothing is ending in these states: the fence refuses it
        if fits:
            forest.apply(event, 50)
            after = forest.loops.get(A)
            if after is not None:
                assert after.status in (tos or {status})
                assert after.updated == 50
                assert after.since == (before["loops", A]["since"] if tos is None else 50)
        else:
            with pytest.raises(Impossible, match=A):
                forest.apply(event, 50)
            assert forest.all_rows() == before
            assert forest.at < 50


def test_the_table_is_complete() -> None:
    """Every event about a loop has a row and a step, and no row allows more or less than the specification."""
    assert set(LIFECYCLE) == set(EXPECTED) == set(LOOP_EVENTS)
    assert set(STEPS) | {e.Declared} == set(LIFECYCLE)
    rows = {cls: (set(rule.froms), None if rule.tos is None else set(rule.tos)) for cls, rule in LIFECYCLE.items()}
    assert rows == EXPECTED
    assert all(rule.remark for rule in LIFECYCLE.values())


@pytest.mark.parametrize("status", Status)
def test_no_event_but_a_declaration_is_for_an_unknown_loop(status: Status) -> None:
    """An event for a loop that was never declared is refused, and so is declaring one twice."""
    loop = forest_with(status).loops[A]
    with pytest.raises(Impossible, match="never declared"):
        evolve(None, e.Held(A, "ada", ""), 9)
    with pytest.raises(Impossible, match="twice"):
        evolve(loop, DECLARED, 9)


FENCED = [
    (cls, status)
    for cls, (froms, _) in EXPECTED.items()
    for status in sorted(froms)
    if "attempt" in {each.name for each in fields(cls)} and cls not in (e.LeaseGranted, e.AttemptGone)
]


@pytest.mark.parametrize(("cls", "status"), FENCED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_result_of_another_attempt_is_refused(cls: type[e.LoopEvent], status: Status) -> None:
    """A result that quotes an earlier or a later attempt than the present lease never gets through."""
    loop = forest_with(status).loops[A]
    for event in variants(cls, loop):
        for attempt in (0, 2):
            with pytest.raises(Impossible):
                evolve(loop, replace(event, attempt=attempt), 9)  # type: ignore[call-arg]


@pytest.mark.parametrize("attempt", [0, 1])
def test_an_attempt_number_is_never_granted_twice(attempt: int) -> None:
    """A grant must carry a number above every one before it, whatever became of that one."""
    loop = forest_with(S.LEASED).loops[A]
    free = evolve(loop, e.LeaseReleased(A, 1, "given back"), 9)
    with pytest.raises(Impossible):
        evolve(free, replace(GRANTED, attempt=attempt), 10)
    assert evolve(free, replace(GRANTED, attempt=2), 10).attempt == 2


def test_a_loop_is_not_leased_while_an_attempt_still_ends() -> None:
    """A grant is refused as long as an earlier attempt is not known to have ended."""
    stopped = evolve(forest_with(S.RUNNING).loops[A], e.Stopped(A, 1, "stop"), 9)
    with pytest.raises(Impossible, match="still lives"):
        evolve(stopped, replace(GRANTED, attempt=2), 10)
    gone = evolve(stopped, e.AttemptGone(A, 1), 10)
    assert evolve(gone, replace(GRANTED, attempt=2), 11).status is S.LEASED


def test_only_the_attempt_that_was_stopped_can_be_gone() -> None:
    """The end of an attempt that nobody stopped, or of another one, is refused."""
    stopped = evolve(forest_with(S.RUNNING).loops[A], e.Stopped(A, 1, "stop"), 9)
    with pytest.raises(Impossible):
        evolve(stopped, e.AttemptGone(A, 2), 10)
    with pytest.raises(Impossible):
        evolve(forest_with(S.RUNNING).loops[A], e.AttemptGone(A, 1), 10)


@pytest.mark.parametrize("status", Status)
def test_allows_agrees_with_evolve(status: Status) -> None:
    """What `allows` says beforehand is what `evolve` does, for every event."""
    loop = forest_with(status).loops[A]
    for cls in set(LOOP_EVENTS) - {e.Declared, e.AttemptGone, e.UsageSeen}:  # the last two depend on who is ending
        for event in variants(cls, loop):
            try:
                evolve(loop, event, 9)
            except Impossible as error:
                assert not allows(loop, event) or "would take" in str(error)
            else:
                assert allows(loop, event)


@pytest.mark.parametrize("status", [S.LEASED, S.RUNNING, S.CHECKING])
@pytest.mark.parametrize("cls", [e.Stopped, e.Cancelled, e.Undeclared, e.InputChanged, e.ArtifactAccepted])
def test_a_live_attempt_that_is_let_go_is_ending(status: Status, cls: type[e.LoopEvent]) -> None:
    """Whatever takes a live attempt from its loop leaves it an ending one, which keeps its slot."""
    loop = forest_with(status).loops[A]
    after = evolve(loop, next(variants(cls, loop)), 9)
    assert after.lease is None
    assert after.ending is not None
    assert after.ending.attempt == 1
    assert after.occupying


@pytest.mark.parametrize("cls", [e.Stopped, e.Cancelled, e.Undeclared, e.InputChanged, e.OutlineChanged])
def test_a_landing_gives_way_until_it_has_begun(cls: type[e.LoopEvent]) -> None:
    """What ends an attempt ends one that waits to land too, and none whose branch is about to move."""
    loop = forest_with(S.LANDING).loops[A]
    event = next(variants(cls, loop))
    assert evolve(loop, event, 9).ending is not None
    began = evolve(loop, LandingBegan(A, 1), 9)
    assert not allows(began, event)
    with pytest.raises(Impossible):
        evolve(began, event, 10)


def test_stopped_is_free() -> None:
    """A stop costs no iteration and no failure, and no delay."""
    before = forest_with(S.RUNNING).loops[A]
    after = evolve(before, e.Stopped(A, 1, "stop"), 9)
    assert (after.iteration, after.failures, after.not_before) == (before.iteration, before.failures, 0)


def test_a_second_hold_keeps_the_first() -> None:
    """Who paused first, when and why, stays on record."""
    loop = evolve(forest_with(S.PENDING).loops[A], e.Held(A, "ada", "lunch"), 9)
    again = evolve(loop, e.Held(A, "bob", "dinner"), 10)
    assert again.hold == loop.hold
    assert again.hold is not None
    assert (again.hold.by, again.hold.at, again.hold.reason) == ("ada", 9, "lunch")


def test_a_changed_input_counts_a_generation_only_after_a_lease() -> None:
    """A loop that was never leased keeps its generation when its input changes; one that was gets the next."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        ended p/a: infra died
        finish p/b: x
        plan p: a body new; b body new; c
        p/a has generation 2 status pending failures 0 attempt 1
        p/b has generation 2 status pending
        plan p: a body new; b body new; c body new
        p/c has generation 1 status pending
    """)
    assert story["p/a"].ending is None


def test_every_event_is_reached_through_a_door() -> None:
    """Observations, wishes and rounds lead to every event that the table knows."""
    story = tell(
        """
        plan p: a; b; c; d (x; y); e budget 10; f; g; h
        settle
        choose p/d/x, p/d/y, p/a, p/b, p/c, p/e, p/f, p/g, p/h
        began p/a
        took p/a setup 2s
        used p/a 5 tokens
        ended p/a
        judged p/a: refused no sig=s
        lost p/b
        began p/e
        used p/e 10 tokens
        p/e is parked
        gone p/e
        reset p/e
        began p/c
        ended p/c
        says-yes p/c: check k
        judged p/c
        p/c is awaiting_approval
        drop p/c: one
        iterate p/c: better
        ended p/f: limited slow down
        ended p/g: infra died
        retry p/g
        began p/h
        pause p/h: lunch
        resume p/h
        cancel p/h
        gone p/h
        wait 3s
        choose p/b, p/e, p/g, p/a, p/c, p/f
        """,
        settings(types={"spec": {"approve": True}}, ramp=False),
    )
    go_on(
        story,
        """
        began p/a
        ended p/a
        judged p/a
        approve p/a
        landed p/a: conflict they both changed it
        began p/b
        ended p/b
        judged p/b
        reject p/b: no
        began p/c
        ended p/c
        judged p/c
        approve p/c
        plan p: a; b; c needs a; d (x; z); e budget 10; f; h
        lands p/c
        cancel p/c
        landed p/c: k; l
        drop p/g: one
        renew p/c
        gone-file p
        plan p: a; b body new; c needs a; d (x; z); e budget 10; f; g; h # again
        drop p: a; b body new; c needs a; d (x; z); e budget 10; f; g # third
        pause now p/f
        gone p/f
        forget p/h
        deny p/h#1 cancel 1: p/a
        take ada 2: p/a, p/b
        """,
    )
    story.now += 1
    go_on(story, "renew-lease p/b#3\nwait 10m")
    story.round()
    go_on(story, "drop p: a; b; c\ngone-file p\ndrop p: a; b; c")
    story.verify()
    judged = settings(types={"spec": {"judge_lanes": ("judge",)}}, lanes={"judge": LanePolicy(max_concurrent=1)})
    files = tell(
        """
        plan p: a; b
        choose p/a, p/b
        slip p/b: k
        began p/b
        ended p/b
        judged p/b
        slip p: a; b; c run x
        reject-file p: a; b
        malformed p/a: no
        gone-file p/a
        """
    )
    tight, stuck = settings(max_loops=1, max_worktrees=1), "began p/a\nended p/a: config no\nchoose"
    packed = [tell(f"plan p: a; b\nchoose p/a\n{stuck}\npacked p/a{why}", tight) for why in ("", ": it holds a socket")]
    by_hand = tell("plan q: x\nslip q/x: k run y\nreject-file q/x", settings(commands="code"))
    files.see(o.LandingDone("p/b", 1, "c0ffee", "d", outline("k"), gave_way=digest_of("k")))
    crowd = tell("plan p: a; b\nchoose p/a, p/b\nbegan p/a\nbegan p/b\nended p/a\nended p/b", judged)
    redone = tell("plan p: a\nchoose p/a\ntakes p b: p/a x\nfinish p/a\nchoose p/a")
    hot = tell(
        """
        plan p: a; b
        choose p/a, p/b
        began p/a
        ended p/a
        judged p/a: conflict both in=notes
        choose p/a
        began p/b
        ended p/b
        judged p/b
        touches p/b: notes
        wait 2h
        choose nobody
        """
    )
    stories = (story, crowd, files, by_hand, redone, hot, *packed)
    reached = {type(event) for each in stories for event, _ in each.log}
    assert set(LIFECYCLE) - reached == set()


def test_a_story_that_is_refused_says_why() -> None:
    """A wish that does not fit the state is refused with words, and nothing changes."""
    tell("""
        plan p: a
        refuses approve p/a
        refuses reject p/a: no
        refuses iterate p/a: more
        refuses retry p/a
        refuses renew p/a
        refuses reset p/a
        refuses forget p/a
        refuses clear p
        refuses dispatch p
        refuses retry p/nobody
        refuses pause p/nobody
        refuses cancel p/nobody
        refuses reset lane:nowhere
        refuses complete-lease p/a#1
        refuses renew-lease nonsense
    """)


def test_an_event_that_is_refused_leaves_the_count_of_charges_alone() -> None:
    """A charge names the event that ended its attempt, also after an event that was refused."""
    story = Story()
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nused p/a 7 tokens")
    forest = story.forest
    with pytest.raises(Impossible):
        forest.apply(e.WorkEnded("p/a", 9), story.now)
    forest.apply(e.WorkEnded("p/a", 1), story.now)
    forest.apply(Refused("p/a", 1, S.PENDING, "", "no"), story.now)
    assert [place for place, _ in forest.take_rows().charges] == [1]


def test_a_yes_is_remembered_until_the_work_has_landed() -> None:
    """The last yes of each judge outlasts crashes of attempts, and goes with what it was about."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        began p/a
        says-yes p/a: check early
        ended p/a
        says-yes p/a: check one
        says-yes p/a: review two
        says-yes p/a: check three
        judged p/a: infra died
    """)
    assert dict(story["p/a"].yes) == {"check": "three", "review": "two"}
    go_on(story, "wait 10m\nchoose p/a\nbegan p/a\nended p/a\njudged p/a")
    assert dict(story["p/a"].yes) == {"check": "three", "review": "two"}
    go_on(story, "landed p/a\nbegan p/b\nended p/b\nsays-yes p/b: check four\nplan p: a; b body new\n")
    assert (story["p/a"].yes, story["p/b"].yes, story["p/b"].generation) == ((), (), 2)
    story.verify()
