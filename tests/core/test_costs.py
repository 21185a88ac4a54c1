"""What can go wrong and what it costs: the cost table of the specification, and the limits it leads to."""

from __future__ import annotations

import pytest

from loopr.core.model import Failure
from loopr.core.policy import Policy, Retry
from tests.core.stories import STEADY, Story, go_on, settings, tell

COUNTERS = ("iteration", "failures", "launch_failures", "conflicts")
COMMAND, JUDGE, LANDING = "began p/a", "began p/a\nended p/a", "began p/a\nended p/a\njudged p/a"

# class -> status, (iteration, failures, launch failures, conflicts), whether it waits, what else happens
COSTS = {
    "refused": ("pending", (2, 0, 0, 0), False, None),
    "infra": ("pending", (1, 1, 0, 0), True, None),
    "timeout": ("pending", (1, 1, 0, 0), True, None),
    "limited": ("pending", (1, 0, 0, 0), False, "LaneRested"),
    "lane": ("pending", (1, 0, 0, 0), False, "LaneParked"),
    "host": ("pending", (1, 0, 0, 0), False, "HostChanged"),
    "config": ("parked", (1, 0, 0, 0), False, None),
    "budget": ("parked", (1, 0, 0, 0), False, None),
    "blocked": ("parked", (1, 0, 0, 0), False, None),
    "conflict": ("pending", (2, 0, 0, 1), False, None),
}


def counters(story: Story) -> tuple[int, ...]:
    """Return the counters of `p/a`."""
    return tuple(getattr(story["p/a"], name) for name in COUNTERS)


@pytest.mark.parametrize("name", [each for each in COSTS if each != "conflict"])
@pytest.mark.parametrize("where", [COMMAND, JUDGE, LANDING])
def test_the_cost_table(name: str, where: str) -> None:
    """Each class costs what the table says, whether the command, the judge or the second judge met it."""
    verb = {COMMAND: "ended", JUDGE: "judged", LANDING: "landed"}[where]
    story = tell(f"plan p: a\nchoose p/a\n{where}\n{verb} p/a: {name} it went so")
    status, costs, waits, event = COSTS[name]
    loop = story["p/a"]
    assert (loop.status, counters(story), loop.not_before > story.now) == (status, costs, waits)
    assert (loop.lease, loop.ending) == (None, None)
    assert "it went so" in loop.reason
    if event:
        assert event in [type(each).__name__ for each, _ in story.log]


@pytest.mark.parametrize(("where", "verb"), [(JUDGE, "judged"), (LANDING, "landed")])
def test_a_conflict_is_a_refusal_that_is_counted_apart(where: str, verb: str) -> None:
    """A change that does not merge costs an iteration and a conflict, found while checking or while landing."""
    story = tell(f"plan p: a\nchoose p/a\n{where}\n{verb} p/a: conflict both changed it")
    assert (story["p/a"].status, counters(story)) == COSTS["conflict"][:2]


def test_every_class_has_a_cost() -> None:
    """No class of failure is forgotten in the table."""
    assert set(COSTS) == set(Failure)


def again(story: Story, trouble: str, verb: str = "ended") -> None:
    """Let `p/a` be granted once more and meet trouble."""
    assert story.choose() == ["p/a"], story.gates("p/a")
    go_on(story, f"began p/a\n{verb} p/a: {trouble}")
    story.now += 300_000


def test_iterations_are_used_up_exactly_at_the_limit() -> None:
    """The `max_iterations`-th refusal fails the loop, the one before does not."""
    story = Story(settings(types={"spec": {"max_iterations": 3}}))
    go_on(story, "plan p: a")
    again(story, "refused one")
    again(story, "refused two")
    assert (story["p/a"].status, story["p/a"].iteration) == ("pending", 3)
    again(story, "refused three")
    assert (story["p/a"].status, story["p/a"].iteration) == ("failed", 3)
    assert story["p/a"].reason == "refused 3 times, its limit: three"
    story.verify()


def test_a_limit_of_one_iteration_fails_at_once() -> None:
    """With one iteration the first refusal is the last."""
    story = Story(settings(types={"spec": {"max_iterations": 1}}))
    go_on(story, "plan p: a")
    again(story, "refused no")
    assert story["p/a"].status == "failed"


def test_a_persons_iteration_is_not_counted() -> None:
    """`iterate` begins another iteration without using up the maximum."""
    story = tell(
        """
        plan p: a
        choose p/a
        began p/a
        ended p/a
        judged p/a
        iterate p/a: better
        p/a has iteration 2 status pending
        choose p/a
        began p/a
        ended p/a: refused no
        p/a has iteration 3 status pending
        choose p/a
        began p/a
        ended p/a: refused no
        p/a is failed
        """,
        settings(types={"spec": {"max_iterations": 2, "approve": True}}),
    )
    assert story["p/a"].iteration == 3


def test_answers_without_a_signature_are_never_equal() -> None:
    """Refusals that carry no signature are no proof of standing still."""
    story = Story()
    go_on(story, "plan p: a")
    for _ in range(6):
        again(story, "refused no")
    assert story["p/a"].status == "pending"


def test_failures_park_exactly_at_the_limit() -> None:
    """The `max_attempts`-th failure without a verdict parks the loop, the one before does not."""
    story = Story()
    go_on(story, "plan p: a")
    waits = []
    for _ in range(5):
        again(story, "infra died")
        assert story["p/a"].status == "pending"
        waits.append(story.log[-1][0].not_before - story.log[-1][1])  # type: ignore[attr-defined]
    assert waits == [30_000, 60_000, 120_000, 240_000, 300_000]
    again(story, "timeout too long")
    assert (story["p/a"].status, story["p/a"].failures) == ("parked", 6)
    assert "max_attempts: 6 tries ended without a verdict: too long" in story["p/a"].reason
    story.verify()


def test_a_verdict_forgives_failures() -> None:
    """A refusal in between begins the count of failures anew; free ends do not touch it."""
    story = Story()
    go_on(story, "plan p: a")
    for _ in range(4):
        again(story, "infra died")
    again(story, "limited slow down")
    assert story["p/a"].failures == 4
    again(story, "refused no")
    assert story["p/a"].failures == 0
    for _ in range(4):
        again(story, "infra died")
    assert story["p/a"].status == "pending"


def launch_fails(story: Story, trouble: str = "infra no worktree launch") -> None:
    """Let `p/a` be granted and not start."""
    assert story.choose() == ["p/a"], story.gates("p/a")
    go_on(story, f"ended p/a: {trouble}")
    story.now += 300_000


def test_launch_failures_park_at_the_third_in_a_row() -> None:
    """The `max_launch_failures`-th launch failure in a row parks the loop and says so."""
    story = Story()
    go_on(story, "plan p: a")
    launch_fails(story)
    launch_fails(story)
    assert (story["p/a"].status, story["p/a"].launch_failures) == ("pending", 2)
    launch_fails(story)
    assert story["p/a"].status == "parked"
    assert story["p/a"].reason.startswith("max_launch_failures: it did not start 3 times in a row")
    story.verify()


@pytest.mark.parametrize("trouble", ["infra died", "refused no", "timeout too long"])
def test_an_attempt_that_started_ends_the_row_of_launch_failures(trouble: str) -> None:
    """Launch failures count in a row: an attempt that started, however it ended, begins the count anew."""
    story = Story(settings(retry=Retry(max_attempts=20)))
    go_on(story, "plan p: a")
    launch_fails(story)
    launch_fails(story)
    again(story, trouble)
    assert story["p/a"].launch_failures == 0
    launch_fails(story)
    assert story["p/a"].status == "pending"


def test_an_expired_worker_ends_the_row_of_launch_failures() -> None:
    """A worker that fell silent had started: launch failures before it are no row any more."""
    story = Story()
    go_on(story, "plan p: a")
    launch_fails(story)
    launch_fails(story)
    go_on(story, "take ada: p/a\nwait 5m\nchoose nobody")
    assert (story["p/a"].failures, story["p/a"].launch_failures) == (3, 0)


def test_conflicts_park_at_the_second() -> None:
    """The `max_conflicts`-th conflict parks the loop; after a reset it may try again."""
    story = Story()
    go_on(story, "plan p: a")
    for status in ("pending", "parked"):
        assert story.choose() == ["p/a"]
        go_on(story, f"{LANDING}\nlanded p/a: conflict both\np/a is {status}")
    assert story["p/a"].reason.startswith("max_conflicts: 2 conflicts while landing")
    go_on(story, "reset p/a\np/a has status pending iteration 3 conflicts 0")
    assert story.choose() == ["p/a"]
    go_on(story, f"{LANDING}\nlanded p/a: conflict both\np/a is pending")
    story.verify()


def test_a_conflict_in_the_last_iteration_fails() -> None:
    """A conflict uses up an iteration too: in the last one it fails the loop."""
    story = Story(settings(types={"spec": {"max_iterations": 1}}))
    go_on(story, f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: conflict both\np/a is failed")


def test_a_second_no_while_landing_is_a_refusal() -> None:
    """If the judge says no to the merged tree, the next iteration begins."""
    tell(
        f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: refused red after the merge\np/a has status pending iteration 2"
    )


def test_delays_grow_with_failures_in_a_row() -> None:
    """Each failure in a row waits longer, and a refusal is retried at once."""
    story = Story()
    go_on(story, "plan p: a")
    for delay in (30_000, 60_000, 120_000, 240_000):
        assert story.choose() == ["p/a"]
        go_on(story, "began p/a\nended p/a: infra died")
        assert story["p/a"].not_before == story.now + delay
        story.now += delay
    assert story.choose() == ["p/a"]
    go_on(story, "began p/a\nended p/a: refused no\np/a has not_before 0")
    assert story.choose() == ["p/a"]


def test_the_delay_of_a_loop_is_jittered_by_its_attempt() -> None:
    """With jitter the delay lies within its bounds and is in the event, so that a replay needs no chance."""
    story = tell("plan p: a\nchoose p/a\nended p/a: infra died", settings(retry=Retry()))
    assert 27_000 <= story["p/a"].not_before - story.now <= 33_000


def test_reset_forgives_failures_and_keeps_the_iteration() -> None:
    """`reset` brings a parked loop back with its failures at zero, where it stood."""
    story = Story()
    go_on(story, "plan p: a")
    again(story, "refused no")
    again(story, "config line 3")
    go_on(story, "reset p/a\np/a has status pending iteration 2 failures 0 launch_failures 0 not_before 0 attempt 2")
    story.verify()


@pytest.mark.parametrize("end", ["config no", "infra died", "refused no sig=s"])
def test_retry_clears_counters_and_delay(end: str) -> None:
    """`retry` begins all counting again, with the next attempt number and in the same generation."""
    story = Story(settings(types={"spec": {"max_iterations": 1}}))
    go_on(story, f"plan p: a\nchoose p/a\nbegan p/a\nended p/a: {end}\nretry p/a")
    loop = story["p/a"]
    assert (loop.status, loop.iteration, loop.failures, loop.not_before, loop.signature, loop.repeats) == (
        "pending", 1, 0, 0, "", 0,
    )  # fmt: skip
    assert (loop.generation, loop.attempt) == (1, 1)
    assert story.choose() == ["p/a"]
    story.verify()


def test_retry_fresh_is_a_new_generation() -> None:
    """`retry --fresh` makes a loop anew under the next generation's name, with attempts that go on counting."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: x\nrenew p/a")
    loop = story["p/a"]
    assert (loop.generation, loop.name, loop.iteration, loop.base_commit, loop.attempt) == (2, "p.a.g2", 1, "", 1)


@pytest.mark.parametrize("how", ["pause now p/a", "cancel p/a\nretry p/a"])
@pytest.mark.parametrize("where", ["", COMMAND, JUDGE])
def test_a_stop_is_free(how: str, where: str) -> None:
    """An attempt that a person stopped costs the loop nothing, wherever it was."""
    story = tell(f"plan p: a\nchoose p/a\n{where}\n{how}\ngone p/a")
    assert counters(story) == (1, 0, 0, 0)
    assert story["p/a"].not_before == 0


def test_a_crash_before_the_start_is_free() -> None:
    """A lease that never got its process, because the engine ended, costs nothing; a process that vanished is infra."""
    tell("plan p: a; b\nchoose p/a, p/b\nlost p/a\np/a has status pending failures 0\nbegan p/b\nignores lost p/b")


def test_limits_follow_the_settings() -> None:
    """Other numbers in the settings move every limit."""
    retry = Retry(base_ms=1000, max_attempts=1, max_launch_failures=1, max_conflicts=1, no_progress=1)
    policy: Policy = settings(retry=retry)
    assert tell("plan p: a\nchoose p/a\nended p/a: infra died", policy)["p/a"].status == "parked"
    assert tell("plan p: a\nchoose p/a\nended p/a: infra x launch", policy)["p/a"].status == "parked"
    assert tell(f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: conflict both", policy)["p/a"].status == "parked"
    assert (
        tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a: refused no sig=s work=w", policy)["p/a"].status == "failed"
    )
    assert STEADY.jitter == 0
