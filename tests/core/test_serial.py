"""Serial siblings: the lock from the first lease to the end, and who ignores it."""

from __future__ import annotations

import pytest

from loopr.core import observations as o
from loopr.core.model import Status
from tests.core.stories import Story, go_on, settings, tell


def test_serial_siblings_run_one_after_another() -> None:
    """At the top of an artifact `parallel: false` makes its entries serial, in the order of the outline."""
    tell("""
        plan p: serial: a; b; c
        choose p/a
        why p/b: serial runs one after another with its siblings: p/a is first
        choose nobody
        finish p/a: x
        choose p/a/x, p/b
        finish p/b: x
        choose p/b/x, p/c
    """)


def test_a_serial_entry_beside_parallel_ones() -> None:
    """Parallel siblings ignore the lock, and a serial loop waits for serial siblings only."""
    tell("plan p: a serial; b; c serial; d\nchoose p/a, p/b, p/d\nended p/a: config no\nchoose p/c")


def test_a_parallel_entry_in_a_serial_artifact() -> None:
    """What an entry says of itself wins over the top of its artifact."""
    tell("plan p: serial: a; b parallel; c\nchoose p/a, p/b")


def test_a_serial_type() -> None:
    """`parallel: false` on a type makes all loops of that type serial below each parent."""
    tell(
        "plan p: a (k; l); b (m; n)\nsettle\nchoose p/a/k, p/b/m",
        settings(types={"phase": {"parallel": False}}),
    )


def test_serial_plans() -> None:
    """`parallel: false` on the type of plans makes the plans of the workspace serial."""
    tell("ask p\nask q\nchoose p\nwhy q: serial p is first", settings(types={"plan": {"parallel": False}}))


@pytest.mark.parametrize(
    "state",
    [
        "began p/a",
        "began p/a\nended p/a",
        "began p/a\nended p/a\njudged p/a",
        "began p/a\nended p/a\njudged p/a\napprove p/a",
        "ended p/a: infra died",
        "lost p/a",
        "ended p/a: limited slow down",
        "began p/a\nended p/a: refused no",
        "began p/a\nended p/a\njudged p/a\niterate p/a: more",
        "began p/a\nended p/a\njudged p/a\napprove p/a\nlanded p/a: conflict both",
        "pause p/a",
    ],
)
def test_the_lock_is_kept_through(state: str) -> None:
    """From the first lease on the lock is kept: at work, in retries and backoff, for approval and while landing."""
    story = tell(f"plan p: serial: a; b\nchoose p/a\n{state}", settings(types={"spec": {"approve": True}}))
    assert "p/a is first" in story.gates("p/b")["serial"]
    assert "p/b" not in story.choose()
    story.verify()


@pytest.mark.parametrize(
    "state",
    [
        "began p/a\nended p/a\njudged p/a\napprove p/a\nlanded p/a: x",
        "began p/a\nended p/a\njudged p/a\nreject p/a: no",
        "ended p/a: config no",
        "cancel p/a\ngone p/a",
        "plan p: serial: b\ngone p/a",
        "ended p/a: infra died\npause p/a",
        "pause p/a\nended p/a: infra died",
        "drop p/a: x\ngone p/a",
    ],
)
def test_the_lock_is_given_up_on(state: str) -> None:
    """The lock is given up on complete, failed, parked, cancelled, invalidated, and a hold of its own."""
    story = tell(f"plan p: serial: a; b\nchoose p/a\n{state}", settings(types={"spec": {"approve": True}}))
    assert story.gates("p/b") == {}
    assert "p/b" in story.choose()
    story.verify()


def test_a_hold_above_keeps_the_lock() -> None:
    """Only a hold of its own takes the lock from a loop; one on its parent does not."""
    tell("plan p: serial: a; b\nchoose p/a\nended p/a: infra died\npause p\nwhy p/b: serial p/a is first")


def test_an_attempt_that_still_dies_keeps_the_line() -> None:
    """A serial sibling does not start beside an attempt that was told to stop and has not ended."""
    tell("plan p: serial: a; b\nchoose p/a\nbegan p/a\ncancel p/a\nwhy p/b: serial p/a is first\ngone p/a\nchoose p/b")


def test_whoever_resumes_waits_for_the_new_holder() -> None:
    """A loop that gave the lock up by a hold waits for the sibling that has it now."""
    tell("""
        plan p: serial: a; b
        choose p/a
        ended p/a: infra died
        pause p/a
        choose p/b
        resume p/a
        retry p/a
        why p/a: serial p/b is first
        ended p/b: config no
        choose p/a
    """)


def test_the_holder_in_backoff_is_waited_for() -> None:
    """A serial loop that fails is retried before its siblings start."""
    tell("plan p: serial: a; b\nchoose p/a\nended p/a: infra died\nchoose nobody\nwait 30s\nchoose p/a")


def test_an_expired_worker_keeps_the_line() -> None:
    """A reclaimed lease leaves the lock with its loop."""
    tell("plan p: serial: a; b\ntake ada: p/a\nwait 5m\nchoose nobody\nwait 30s\nchoose p/a")


def test_siblings_that_become_serial_while_they_run() -> None:
    """Loops that turn serial while several of them hold a lease go on one after another; nobody waits for ever."""
    tell("""
        plan p: a; b; c
        choose p/a, p/b, p/c
        plan p: serial: a; b; c
        ended p/b: refused no
        why p/b: serial p/a is first
        ended p/a: refused no
        why p/a: serial p/c is first
        ended p/c: refused no
        choose p/a
        why p/b: serial p/a is first
        ended p/a: config no
        choose p/b
    """)


def test_a_line_that_becomes_parallel_opens_at_once() -> None:
    """Loops that are no longer serial do not wait for each other."""
    tell("plan p: serial: a; b\nchoose p/a\nplan p: a; b\nchoose p/b")


def test_two_rounds_never_run_two_of_a_line() -> None:
    """However a serial line goes, no two of its loops are ever at work at the same time."""
    story = Story(settings(max_loops=8))
    go_on(story, "plan p: serial: a; b; c; d")
    troubles = ("infra died", "refused no", "limited slow", "config no")
    for number in range(40):
        story.choose()
        live = [each for each in story.forest.loops.values() if each.status is Status.LEASED]
        assert len(live) <= 1
        for each in live:
            text = troubles[number % 4]
            go_on(story, f"ended {each.id}: {text}")
        story.now += 300_000
    story.verify()


def test_serial_siblings_of_other_parents_are_strangers() -> None:
    """A line is the serial siblings of one type below one parent."""
    tell("plan p: a (serial1 serial; serial2 serial); b (k serial; l serial)\nsettle\nchoose p/a/serial1, p/b/k")


def test_a_policy_makes_new_loops_serial() -> None:
    """A type that turns serial in the settings makes what is declared from then on serial."""
    story = tell("plan p: a")
    story.see(o.PolicySeen(settings(types={"spec": {"parallel": False}})))
    go_on(story, "plan p: a; b; c\nchoose p/a\nwhy p/b: serial p/a is first")
    story.verify()
