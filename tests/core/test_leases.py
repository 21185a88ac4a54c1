"""Leases and fencing: one attempt at a time, no number twice, nothing stale, nothing above a ceiling."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.choose import next_wake
from loopr.core.events import Approved, EntryChanged, LeaseGranted
from loopr.core.model import OCCUPYING, Failure, Usage
from loopr.core.owed import StartAttempt, StopAttempt, owed
from loopr.core.policy import Budget, Policy, ProjectPolicy
from loopr.errors import StaleLease
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings, tell
from tests.core.worlds import HAPPENINGS, begin, policies

TTL = 300_000


@pytest.mark.parametrize(
    "end",
    [
        "lost p/a",
        "began p/a\nended p/a: refused no",
        "ended p/a: config no\nreset p/a",
        "ended p/a: config no\nretry p/a",
        "ended p/a: infra died\nretry p/a",
        "pause now p/a\ngone p/a\nresume p/a",
        "cancel p/a\ngone p/a\nretry p/a",
        "began p/a\nended p/a\njudged p/a\nlanded p/a: x\nrenew p/a",
        "plan p: b\ngone p/a\nplan p: a # again",
        "plan p: a body new\ngone p/a",
        "drop p/a: x\ngone p/a\nrenew p/a",
        "ended p/a: limited x\nwait 2s",
    ],
)
def test_an_attempt_number_is_never_issued_again(end: str) -> None:
    """After whatever end of the first attempt, also at the same instant, the next one is the second."""
    story = tell(f"plan p: a\nchoose p/a\n{end}")
    assert story.choose() == ["p/a"]
    assert (story["p/a"].attempt, story["p/a"].lease_id) == (2, "p/a#2")
    story.verify()


@pytest.mark.parametrize("report", ["began", "ended", "judged", "landed", "lost", "gone", "used"])
@pytest.mark.parametrize("attempt", [0, 1, 3, 99])
@pytest.mark.parametrize("state", ["", "began p/a", "began p/a\nended p/a", "began p/a\nended p/a\njudged p/a"])
def test_a_stale_result_changes_nothing(report: str, attempt: int, state: str) -> None:
    """A report that quotes another attempt than the present one leads to no event, in every live state."""
    story = Story()
    go_on(story, f"plan p: a\nchoose p/a\nlost p/a\nchoose p/a\n{state}")
    words = ": 100 tokens" if report == "used" else ""
    go_on(story, f"ignores {report} p/a#{attempt}{words}")


@pytest.mark.parametrize(
    "trouble", ["refused", "infra", "timeout", "limited", "lane", "host", "config", "blocked", "conflict"]
)
def test_stale_trouble_changes_nothing(trouble: str) -> None:
    """Trouble of an attempt that is over costs neither the loop nor its lane nor the host anything."""
    tell(f"plan p: a\nchoose p/a\nlost p/a\nchoose p/a\nbegan p/a\nignores ended p/a#1: {trouble} late")


def test_a_report_is_heard_once() -> None:
    """The same report again leads to nothing."""
    tell("""
        plan p: a
        choose p/a
        began p/a
        ignores began p/a
        used p/a 5 tokens
        ignores used p/a 5 tokens
        ended p/a
        ignores ended p/a
        judged p/a
        ignores judged p/a
        landed p/a: x
        ignores landed p/a: x
        ignores landed p/a: conflict late
    """)


@pytest.mark.parametrize(
    "trouble", [None, "refused", "infra", "timeout", "limited", "lane", "host", "config", "blocked"]
)
def test_an_end_without_a_beginning_is_heard(trouble: str | None) -> None:
    """If the report of an attempt's beginning was lost, that of its end still counts, and the late one is ignored."""
    story = tell(f"plan p: a\nchoose p/a\nended p/a{f': {trouble} x' if trouble else ''}\nignores began p/a#1")
    assert story["p/a"].status == ("checking" if trouble is None else story["p/a"].status)
    assert story["p/a"].status != "leased"


def test_reports_for_nobody_are_forgotten() -> None:
    """Reports for loops that were never declared lead to nothing."""
    story = Story()
    seen = (
        o.AttemptBegan("x", 1),
        o.AttemptEnded("x", 1),
        o.AttemptUsed("x", 1, Usage(1)),
        o.Judged("x", 1),
        o.StopSeen("x", 1),
        o.AttemptLost("x", 1),
        o.InputGone("x", 1),
        o.LandingDone("x", 1, "c", "d"),
        o.FileGone("x"),
        o.FileSeen("x", "d", outline("a"), "specs/x"),
        o.DeclaredWritten("x", "d", outline("a"), "specs/x"),
    )
    assert story.see(*seen) == []


def test_a_lease_without_an_input_goes_back() -> None:
    """An input that went before its attempt began costs nothing; its children wait until it is there again."""
    story = tell("""
        plan p: s
        drop p/s: a; b
        choose p/s/a, p/s/b
        began p/s/b
        inputless p/s/a
        p/s/a is pending
        p/s/a has failures 0 iteration 1 lease None
        why p/s/a: artifact
        p/s/b is running
        ignores inputless p/s/a#1
        ignores inputless p/s/b
        choose nobody
    """)
    assert "was gone before it began" in story["p/s/a"].reason


def test_a_lease_that_was_told_to_stop_ends_without_an_input() -> None:
    """Where its attempt was told to stop meanwhile, that it never began is the end of it."""
    story = tell("plan p: s\ndrop p/s: a\nchoose p/s/a\npause now p/s/a\ninputless p/s/a#1")
    assert story["p/s/a"].ending is None


# --- pull workers ----------------------------------------------------------------------------------------------------


def test_a_pull_worker_runs_at_once() -> None:
    """A loop that is taken is running, under a lease that names its holder and when it expires."""
    story = tell("plan p: a; b\ntake ada: p/a")
    loop = story["p/a"]
    assert loop.lease is not None
    assert (loop.status, loop.lease.holder, loop.lease.expires_at) == ("running", "ada", story.now + TTL)
    assert not [each for each in owed(story.forest) if isinstance(each, StartAttempt)]


def test_pull_workers_are_offered_what_has_no_command_first() -> None:
    """`lease take` offers loops without a command first, which the engine never chooses, then the usual order."""
    tell(
        """
        plan p: a; b run ./x; c
        choose p/b
        lost p/b
        take ada 5: p/a, p/c, p/b
        take bob 5: nobody
        """,
        settings(commands="plan"),
    )


def test_a_pull_worker_asks_the_same_gates() -> None:
    """All gates but `manual` bind a pull worker too."""
    tell("plan p: serial: a; b\ntake ada 2: p/a\ntake ada 2: nobody\npause workspace\ntake bob: nobody")
    tell("plan p: a; b\ntake ada 2: p/a", settings(max_loops=1))
    tell("plan p: a; b\nengine drains\ntake ada 2: nobody")
    tell("plan p: a; b\ntake ada 2: nobody", settings(budget=Budget(tokens=0)))


def test_a_pull_worker_may_ask_for_types_and_projects() -> None:
    """A worker is given only loops of the types and projects it asked for."""
    story = tell("plan p: a (k); b\nsettle")
    assert story.take("ada", 3, types=("spec",)) == ["p/b"]
    assert story.take("ada", 3, projects=("other",)) == []
    assert story.take("ada", 3, types=("phase",), projects=("default",)) == ["p/a/k"]


def test_taking_passes_over_what_was_dispatched_last() -> None:
    """What a person dispatched goes first to a pull worker too, among the loops it may have."""
    tell("plan p: a; b; c\ndispatch p/c\ntake ada: p/c\ntake ada: p/a")


def test_a_lease_expires_at_its_instant() -> None:
    """One millisecond before its end a lease is the holder's; at equality a round reclaims it, as one failure."""
    story = tell("plan p: a\ntake ada: p/a\nwait 299999ms\nchoose nobody\np/a is running")
    assert next_wake(story.forest, story.now) == story.now + 1
    story.now += 1
    story.choose()
    loop = story["p/a"]
    assert (loop.status, loop.failures, loop.not_before) == ("pending", 1, story.now + 30_000)
    assert "the lease of ada expired" in loop.reason
    with pytest.raises(StaleLease):
        list(wishes.complete_lease(story.forest, "p/a#1", story.now))
    story.verify()


def test_renewing_moves_the_end() -> None:
    """A renewed lease lives for the whole time again."""
    tell("plan p: a\ntake ada: p/a\nwait 4m\nrenew-lease p/a#1\nwait 4m\nchoose nobody\np/a is running\nwait 1m")


def test_a_result_after_the_end_but_before_the_reclaim_is_accepted() -> None:
    """Expiry alone takes nothing away: until a round reclaims the lease, its holder may renew or complete it."""
    tell("plan p: a\ntake ada: p/a\nwait 1h\ncomplete-lease p/a#1\np/a is checking\nchoose nobody\np/a is checking")
    tell("plan p: a\ntake ada: p/a\nwait 1h\nrenew-lease p/a#1\nchoose nobody\np/a is running")


def test_an_expired_lease_counts_until_it_is_reclaimed() -> None:
    """A lease that has expired takes its slot until a round reclaims it, which then gives the slot away."""
    story = tell("plan p: a; b\ntake ada: p/a\nwait 1h\nwhy p/b: capacity all 1 slots are taken", settings(max_loops=1))
    assert story.forest.occupancy.total == 1
    assert len(story.choose()) == 1
    assert story["p/a"].failures == 1


def test_taking_reclaims_first() -> None:
    """A worker that asks gets the slot of one whose lease has just expired."""
    tell("plan p: a; b\ntake ada: p/a\nwait 5m\ntake bob: p/b", settings(max_loops=1))


def test_a_lease_may_be_reclaimed_by_hand_once_it_expired() -> None:
    """`lease reclaim` refuses a living lease and takes an expired one back as one failure."""
    story = tell("""
        plan p: a
        take ada: p/a
        wait 299999ms
        refuses reclaim-lease p/a#1
        wait 1ms
        reclaim-lease p/a#1
        p/a has status pending failures 1
        refuses reclaim-lease p/a#1
    """)
    assert "reclaimed by ada" in story["p/a"].reason


def test_silence_parks_in_the_end() -> None:
    """Leases that expire six times in a row park the loop at the sixth."""
    story = Story()
    go_on(story, "plan p: a")
    for failures in range(1, 7):
        go_on(story, "take ada: p/a\nwait 5m")
        story.round()
        assert story["p/a"].failures == failures
        assert story["p/a"].status == ("parked" if failures == 6 else "pending")
        story.now += 300_000
    story.verify()


def test_giving_back_is_free_and_failing_is_not() -> None:
    """`lease release` costs nothing, `release --failed` is one failure of class infra."""
    tell("""
        plan p: a; b
        take ada 2: p/a, p/b
        release-lease p/a#1
        p/a has status pending failures 0 not_before 0
        release-lease p/b#1: infra my disk died
        p/b has status pending failures 1
        refuses release-lease p/b#1
        take ada: p/a
    """)


def test_what_a_worker_says_of_its_own_work() -> None:
    """Trouble by a worker's own word costs what that of a command does, and what it used is charged."""
    story = tell("plan p: a; b\ntake ada 2: p/a, p/b")
    no = o.Trouble(Failure.REFUSED, "no")
    story.wish(wishes.complete_lease(story.forest, "p/a#1", story.now, Usage(40), no))
    assert (story["p/a"].status, story["p/a"].iteration, story["p/a"].spent.tokens) == ("pending", 2, 40)
    assert not wishes.handed_over(story.forest, "p/b#1")
    go_on(story, "complete-lease p/b#1")
    assert wishes.handed_over(story.forest, "p/b#1")
    assert not wishes.handed_over(story.forest, "p/b#2")
    assert not wishes.handed_over(story.forest, "p/b")
    go_on(story, "judged p/b\nlanded p/b: x")
    assert not wishes.handed_over(story.forest, "p/b#1")
    go_on(story, "wait 1h\nchoose p/a, p/b/x\nbegan p/a\nended p/a")
    assert not wishes.handed_over(story.forest, "p/a#2")


def test_a_completed_lease_is_judged_like_any_other() -> None:
    """What a pull worker hands over is checked and lands as if the engine had run it."""
    tell("""
        plan p: a
        take ada: p/a
        complete-lease p/a#1
        wait 1h
        choose nobody
        judged p/a
        landed p/a: x
        p/a is complete
    """)


def test_a_worker_is_never_asked_for_a_verdict_alone() -> None:
    """A loop whose judge was limited is the judge's at the engine; whoever takes it does the work again."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a: limited x\nwait 2s\ntake ada: p/a")
    assert story["p/a"].lease is not None
    assert not story["p/a"].lease.judge_only


def test_local_attempts_never_expire() -> None:
    """An attempt that the engine watches has no time limit of its own."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nwait 30d\nchoose nobody\np/a is running")
    assert next_wake(story.forest, story.now) is None
    go_on(story, "refuses renew-lease p/a#1\nrefuses complete-lease p/a#1\nrefuses release-lease p/a#1")


# --- attempts that are ending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stop", ["pause now p/a", "cancel p/a", "drop p/a: x", "plan p: b; a body new", "plan p: b", "used p/a 9 tokens"]
)
def test_an_attempt_that_was_stopped_keeps_its_slot(stop: str) -> None:
    """Whatever stops an attempt, its slot, type and lane are taken until it is known to have ended."""
    story = Story(settings(max_loops=1))
    go_on(story, "plan p: b; a budget 9\ndispatch p/a\nchoose p/a\nbegan p/a")
    go_on(story, stop)
    occupied = story.forest.occupancy
    assert (occupied.total, occupied.by_type, occupied.by_lane) == (1, {"spec": 1}, {"default": 1})
    assert story.choose() == []
    assert [type(each) for each in owed(story.forest)] == [StopAttempt]
    story.verify()
    go_on(story, "gone p/a#1")
    assert occupied.total == 0
    assert len(story.choose()) == 1


def test_the_end_of_a_stopped_attempt_is_heard_in_any_form() -> None:
    """An outcome or a verdict of an attempt that was told to stop says only that it has ended."""
    tell("plan p: a\nchoose p/a\nbegan p/a\npause now p/a\nended p/a#1: refused no\np/a has iteration 1 ending None")
    tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a\npause now p/a\njudged p/a#1\np/a has status pending ending None")


def test_what_a_stopped_attempt_says_last_still_counts() -> None:
    """Usage that is reported after the stop is charged like any other; that of an older attempt is not."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\npause now p/a\nused p/a#1 40 tokens 2s\ngone p/a#1")
    assert story["p/a"].spent.tokens == 40
    go_on(story, "used p/a#1 90 tokens 2s")
    assert story["p/a"].spent.tokens == 40


def test_what_a_stopped_attempt_used_is_charged_when_it_ends() -> None:
    """A stop is free of iterations and failures, not of money: its cost counts, once, when it is gone."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nused p/a 30 tokens 2s\npause now p/a")
    assert story["p/a"].spent.cost == 0
    go_on(story, "gone p/a")
    assert story["p/a"].spent.cost == 30_000
    assert len(story.charges) == 1


def test_a_stopped_pull_worker_counts_until_its_lease_ends() -> None:
    """A worker that cannot be told keeps its slot until its lease would have expired, and its result is stale."""
    story = tell(
        """
        plan p: a; b
        take ada: p/a
        cancel p/a
        refuses complete-lease p/a#1
        choose nobody
        wait 5m
        choose p/b
        """,
        settings(max_loops=1),
    )
    assert story["p/a"].ending is None


def test_an_attempt_that_never_started_is_not_charged() -> None:
    """A lease without a process, given back or stopped, is no attempt that anybody pays for."""
    story = tell("plan p: a\nchoose p/a\nlost p/a\nchoose p/a\npause now p/a\ngone p/a")
    assert story.charges == []


# --- ceilings --------------------------------------------------------------------------------------------------------


def ceilings_hold(story: Story, before: dict[str, int]) -> None:
    """Check that nothing is above a ceiling, unless it was already: lowering one stops nothing."""
    policy, occupied = story.forest.policy, story.forest.occupancy
    if not policy.unbounded:
        assert occupied.total <= max(policy.max_loops, before["total"])
    for name, limit in policy.per_type.items():
        assert occupied.by_type.get(name, 0) <= max(limit, before.get(f"type {name}", 0))
    for name, project in policy.projects.items():
        if project.max_concurrent is not None:
            count = occupied.by_project.get(name, 0)
            assert count <= max(project.max_concurrent, before.get(f"project {name}", 0))


def counts(story: Story) -> dict[str, int]:
    """Count what is occupied."""
    occupied = story.forest.occupancy
    found = {f"type {name}": count for name, count in occupied.by_type.items()}
    found |= {f"project {name}": count for name, count in occupied.by_project.items()}
    return found | {"total": occupied.total}


@hypothesis_settings(suppress_health_check=list(HealthCheck))
@given(policies(), HAPPENINGS)
def test_no_grant_goes_above_a_ceiling(policy: Policy, happenings: list) -> None:  # type: ignore[type-arg]
    """Whatever happens, grants never bring what is occupied above a ceiling, and numbers of attempts only grow.

    A person's yes after a check brings a loop back into its slot without asking: landing is never refused. Nor is
    anything stopped where a changed entry lets another project pay for what is at work.
    """
    story = begin(policy)
    attempts: dict[str, int] = {}
    for step, number in happenings:
        before, seen = counts(story), len(story.log)
        step(story, number)
        fresh = [event for event, _ in story.log[seen:]]
        if not any(isinstance(event, Approved | EntryChanged) for event in fresh):
            ceilings_hold(story, before)
        for event in fresh:
            if isinstance(event, LeaseGranted):
                assert event.attempt > attempts.get(event.loop, 0)
                attempts[event.loop] = event.attempt
        recount = {each.id for each in story.forest.loops.values() if each.ending or each.status in OCCUPYING}
        assert set(story.forest.occupancy.loops) == recount


def test_lowering_a_ceiling_stops_nothing() -> None:
    """With a lower ceiling what runs goes on, and nothing starts until there is room below it."""
    story = tell("plan p: a; b; c; d\nchoose p/a, p/b, p/c", settings(max_loops=3))
    story.see(o.PolicySeen(settings(max_loops=1)))
    assert story.forest.occupancy.total == 3
    for loop_id in ("p/a", "p/b"):
        go_on(story, f"ended {loop_id}: config no")
        assert story.choose() == []
    go_on(story, "ended p/c: config no\nchoose p/d")
    story.verify()


def test_what_another_project_pays_for_now_is_not_stopped() -> None:
    """A plan that goes to a project with fewer slots than it has at work goes on, and starts nothing meanwhile."""
    story = Story(settings(projects={"q": ProjectPolicy(Fraction(1), max_concurrent=1)}))
    go_on(story, "plan p: a; b; c; d\ndispatch p/a, p/b, p/c\nchoose p/a, p/b, p/c, p/d\nended p/d: infra x\nwait 1h")
    story.see(o.PlanOffered("p", outline("a; b; c; d", "p", project="q"), digest_of("in q"), "p.md"))
    assert story.forest.occupancy.by_project == {"q": 3}
    for loop_id in ("p/a", "p/b"):
        assert story.choose() == []
        go_on(story, f"ended {loop_id}: config no")
    go_on(story, "choose nobody\nended p/c: config no\nchoose p/d")
    story.verify()


def test_raising_a_ceiling_takes_effect_in_the_next_round() -> None:
    """With a higher ceiling the next round fills it."""
    story = tell("plan p: a; b; c\nchoose p/a", settings(max_loops=1))
    story.see(o.PolicySeen(settings(max_loops=3)))
    assert story.choose() == ["p/b", "p/c"]
