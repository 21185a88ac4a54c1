"""What a person may ask for: what it leads to, and when it is refused."""

from __future__ import annotations

import pytest

from loopr.core import wishes
from loopr.core import workspace_events as w
from loopr.core.model import Status
from loopr.core.plan_events import PlanMoving
from loopr.core.plan_observations import PlanStands
from loopr.core.policy import Retry
from loopr.core.shared import WORKSPACE
from loopr.errors import NotFound, StaleLease, UserError
from tests.core.stories import Story, go_on, settings, tell

LANDING = "began p/a\nended p/a\njudged p/a"
STATES = {
    "pending": "",
    "backoff": "ended p/a: infra died",
    "leased": "",
    "running": "began p/a",
    "checking": "began p/a\nended p/a",
    "awaiting_approval": LANDING,
    "landing": f"{LANDING}\napprove p/a\nlands p/a",
    "complete": f"{LANDING}\napprove p/a\nlanded p/a: x",
    "parked": "ended p/a: config no",
    "failed": f"{LANDING}\nreject p/a: no",
    "cancelled": "cancel p/a\ngone p/a",
    "invalidated": "plan p: b\ngone p/a",
}

# what each wish makes of a loop in each state; a state that is missing refuses it
LEADS_TO: dict[str, dict[str, str]] = {
    "approve": {"awaiting_approval": "landing"},
    "reject": {"awaiting_approval": "failed"},
    "iterate": {"awaiting_approval": "pending"},
    "reset": {"parked": "pending"},
    "retry": {"backoff": "pending", "parked": "pending", "failed": "pending", "cancelled": "pending"},
    "renew": {"complete": "pending", "parked": "pending", "failed": "pending", "cancelled": "pending"},
    "cancel": {
        "pending": "cancelled", "backoff": "cancelled", "leased": "cancelled", "running": "cancelled",
        "checking": "cancelled", "awaiting_approval": "cancelled", "landing": "landing", "complete": "complete",
        "parked": "cancelled", "failed": "cancelled", "cancelled": "cancelled",
    },
    "clear": {"pending": "pending", "backoff": "pending"},
    "dispatch": {"pending": "pending", "backoff": "pending"},
    "forget": {"invalidated": "invalidated"},
}  # fmt: skip


def in_state(state: str) -> Story:
    """Bring `p/a` into a state."""
    story = Story(settings(types={"spec": {"approve": True}}))
    go_on(story, "plan p: a\n" + ("" if state == "pending" else "choose p/a\n") + STATES[state])
    return story


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("wish", LEADS_TO)
def test_what_a_wish_leads_to(wish: str, state: str) -> None:
    """Every wish leads from every state to where the table says, or is refused with words and changes nothing."""
    story = in_state(state)
    if state not in LEADS_TO[wish]:
        go_on(story, f"refuses {wish} p/a")
    else:
        go_on(story, f"{wish} p/a")
        assert story["p/a"].status == LEADS_TO[wish][state]
    story.verify()


@pytest.mark.parametrize("state", STATES)
def test_anything_declared_can_be_paused_and_resumed(state: str) -> None:
    """A hold changes no status, and lifting it leaves nothing behind; a second of each leads to nothing."""
    story = in_state(state)
    before = story["p/a"].status
    go_on(story, "pause p/a: lunch\nignores pause p/a: again")
    assert story["p/a"].status is before
    go_on(story, "resume p/a\nignores resume p/a")
    assert (story["p/a"].status, story["p/a"].hold) == (before, None)


def test_a_refusal_names_the_loop_its_state_and_the_way_out() -> None:
    """A refused wish says which loop is in which state and what to do instead; an unknown id is another exit code."""
    story = tell("plan p: a (k (x))\nsettle\nchoose p/a/k/x\nfinish p/a/k/x")
    with pytest.raises(UserError, match="cannot retry p/a/k/x: it is done") as refused:
        list(wishes.retry(story.forest, "p/a/k/x", "ada", story.now))
    assert "retry --fresh" in refused.value.problems[0].hint
    with pytest.raises(NotFound) as unknown:
        list(wishes.retry(story.forest, "p/z", "ada", story.now))
    assert (refused.value.exit_code, unknown.value.exit_code) == (2, 3)
    with pytest.raises(StaleLease, match="stale lease") as stale:
        list(wishes.complete_lease(story.forest, "p/a#1", story.now))
    assert stale.value.exit_code == 3


@pytest.mark.parametrize("lease", ["", "p/a", "p/a#", "p/a#x", "#1", "p/z#1", "p/a#-1", "p/a#1#1", "p/a#\u00b2"])
def test_a_lease_that_cannot_be_one_is_stale(lease: str) -> None:
    """Any text that names no present lease of a pull worker is a stale lease, never a crash."""
    story = tell("plan p: a\ntake ada: p/a\ncomplete-lease p/a#1")
    for wish in (wishes.renew_lease, wishes.complete_lease):
        with pytest.raises(StaleLease):
            list(wish(story.forest, lease, story.now))


def test_a_cancel_takes_what_is_unfinished_below() -> None:
    """Cancelling takes everything unfinished below along, stops what lives, and leaves what is complete as it is."""
    story = tell("""
        plan p: a (k; l; m)
        settle
        choose p/a/k, p/a/l, p/a/m
        finish p/a/k: x
        began p/a/l
        ended p/a/m: config no
        cancel p
    """)
    found = {each.id: (each.status, each.hold is not None) for each in story.forest.loops.values()}
    assert found == {
        "p": (Status.COMPLETE, True),
        "p/a": (Status.COMPLETE, False),
        "p/a/k": (Status.COMPLETE, False),
        "p/a/k/x": (Status.CANCELLED, False),
        "p/a/l": (Status.CANCELLED, False),
        "p/a/m": (Status.CANCELLED, False),
    }
    assert story["p/a/l"].ending is not None
    go_on(story, "ignores cancel p")


def test_a_cancel_says_who_and_why() -> None:
    """The reason of a cancel is what the person said, or at least who it was."""
    story = tell("plan p: a; b\ncancel p/a: too dear\ncancel p/b")
    assert (story["p/a"].reason, story["p/b"].reason) == ("too dear", "cancelled by ada")


def test_a_retry_brings_back_what_a_cancel_took() -> None:
    """Retrying a cancelled loop brings back whatever is cancelled below it, and nothing else."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        finish p/a: x; y
        choose p/a/x, p/a/y
        ended p/a/x: config no
        renew p/a
        cancel p/a
        p/a/x is cancelled
        p/a/y is cancelled
        gone p/a/y
        retry p/a
        p/a is pending
        p/a/x is pending
        p/a/y is pending
    """)
    assert story["p/b"].status == "leased"


def test_a_retry_of_a_complete_loop_begins_again_what_is_stuck_below() -> None:
    """Retrying a complete loop retries all that ended below it without completing; a reset takes the parked alone."""
    stuck = """
        plan p: a (k; l; m); b
        settle
        choose p/a/k, p/a/l, p/a/m, p/b
        began p/a/l
        ended p/a/m: config no
        cancel p/a/k
    """
    story = tell(f"{stuck}\nreset p")
    assert [story[each].status for each in ("p/a/k", "p/a/l", "p/a/m")] == ["cancelled", "running", "pending"]
    story = tell(f"{stuck}\nretry p")
    assert [story[each].status for each in ("p/a/k", "p/a/l", "p/a/m")] == ["pending", "running", "pending"]
    go_on(story, "refuses retry p")


def test_a_retry_lets_go_on_what_a_cancel_holds() -> None:
    """After a cancel of a complete loop one retry of it leads to the end; a pause stays."""
    cancelled = "plan p: a (k; l); b\nsettle\npause p/b: lunch\ncancel p/a: too dear\ncancel p"
    story = tell(f"{cancelled}\nretry p\nwhy p/a/k: nothing\nwhy p/b: paused lunch")
    assert [story[each].hold is not None for each in ("p", "p/a", "p/b")] == [False, False, True]
    story.verify()
    tell("plan p: a\nsettle\npause p: lunch\ncancel p\nretry p\nwhy p/a: paused lunch")
    story = tell("plan p: a; b\nsettle\ncancel p\nretry p/a\nwhy p/a: paused cancelled")
    go_on(story, "resume p\nwhy p/a: nothing")


def test_a_loop_lets_go_on_no_hold_of_a_person() -> None:
    """A loop that may retry brings back what a person cancelled, and lifts only its own hold."""
    story = tell("plan p: a; b (k)\nsettle\nchoose p/b/k, p/a\nbegan p/a\ncancel p/b")
    lease = story["p/a"].lease_id
    story.wish(wishes.retry(story.forest, "p/b", lease, story.now))
    assert story["p/b/k"].status is Status.PENDING
    assert story["p/b"].hold is not None
    go_on(story, "resume p/b")
    story.wish(wishes.cancel(story.forest, "p/b", lease))
    story.wish(wishes.retry(story.forest, "p/b", lease, story.now))
    assert story["p/b"].hold is None


RETRIED = "nothing of it has failed, or was parked or cancelled"


@pytest.mark.parametrize(("words", "message", "hint"), [
    ("retry", RETRIED, "goes on by `loopr run`; `loopr why p` says"),
    ("reset", "nothing of it is parked", "goes on by `loopr run`"),
    ("cancel p/a/k/x\nreset", "nothing of it is parked", "`loopr retry p` begins again"),
    ("pause p/a\nretry", RETRIED, "`loopr resume p/a` lets go on"),
    ("choose p/a/k/x\nretry", RETRIED, "`loopr why p` says"),
    ("choose p/a/k/x\nfinish p/a/k/x\nretry", "it is done", "edit its plan and `loopr start`"),
    ("choose p/a/k/x\nfinish p/a/k/x\nreset", "it is done", "only a parked loop is reset"),
])  # fmt: skip
def test_a_plan_is_not_called_done_before_it_is(words: str, message: str, hint: str) -> None:
    """Where nothing of a complete loop is stuck that is said, with how it goes on."""
    before, _, verb = words.rpartition("\n")
    story = tell(f"plan p: a (k (x))\nsettle\n{before}", settings("spec phase code"))
    decide = {
        "retry": lambda: wishes.retry(story.forest, "p", "ada", story.now),
        "reset": lambda: wishes.unpark(story.forest, "p", "ada"),
    }[verb]
    with pytest.raises(UserError) as refused:
        list(decide())
    assert f"cannot {verb} p: {message}" in str(refused.value.problems[0])
    assert hint in refused.value.problems[0].hint


def test_a_retry_of_a_complete_loop_ends_the_waiting_below() -> None:
    """What backs off below a complete loop is let go as what is stuck there, and nothing else is touched."""
    story = tell("plan p: a; b\nchoose p/a, p/b\nended p/a: infra died\nbegan p/b\nretry p", settings(retry=Retry()))
    assert (story["p/a"].not_before, story["p/a"].failures, story["p/b"].status) == (0, 0, "running")
    go_on(story, "refuses retry p")


def test_pausing_now_stops_only_what_lives_in_the_scope() -> None:
    """`pause --now` of a loop, a project or the workspace stops what is at work there, no landing that has begun."""
    for scope, stopped in (("p/a", {"p/a"}), ("p", {"p/a", "p/b"}), ("project:default", {"p/a", "p/b", "q/x"})):
        story = tell(
            "plan p: a; b; c\nplan q: x\nchoose p/a, p/b, p/c, q/x\nbegan p/c\nended p/c\njudged p/c\nlands p/c"
        )
        go_on(story, f"pause now {scope}")
        assert {each.id for each in story.forest.loops.values() if each.ending} == stopped
        assert story["p/c"].status == "landing"
    story = tell("plan p: a\nchoose p/a\npause now workspace")
    assert story["p/a"].ending is not None


def test_clearing_several_is_all_or_nothing_in_words() -> None:
    """`clear` of a loop that does not wait is refused; those that wait already under a hold keep it."""
    tell("plan p: a; b\npause p/a: lunch\nignores clear p/a\nclear p/b\nwhy p/b: paused cleared\nwhy p/a: paused lunch")


def test_forgetting_ends_the_reminders() -> None:
    """`gc --forget` of a loop that is no longer declared ends the reminders of all landed work there, no more."""
    story = tell("plan p: a (k; l); b\nsettle\nchoose p/a/k, p/a/l, p/b\nfinish p/a/k: x\nplan p: b\nforget p/a")
    assert [each.id for each in story.forest.loops.values() if each.landed] == []
    assert story["p/a/l"].ending is not None
    go_on(story, "gone p/a/l\nplan p: a (k; l); b # again\nsettle\nchoose p/a/k/x, p/a/l")
    assert story["p/a/l"].attempt == 2
    story.verify()


def test_dispatching_is_for_those_that_wait() -> None:
    """Dispatching one that does not wait refuses the whole wish; one that does leaves the line with its lease."""
    story = tell("plan p: a; b; c\ndispatch p/c, p/b\nchoose p/c, p/b, p/a")
    assert story.forest.shared.dispatch == ()
    go_on(story, "lost p/a\nrefuses dispatch p/a, p/b")


@pytest.mark.parametrize(
    "end", ["cancel p/b\nretry p/b", "drop p/b: x\nrenew p/b", "plan p: a; c\nplan p: a; b; c # x"]
)
def test_a_dispatch_is_void_once_the_loop_waits_no_longer(end: str) -> None:
    """A loop that left the queue in another way than by a lease has lost its place at the head when it is back."""
    story = tell(f"plan p: a; b; c\ndispatch p/b\n{end}")
    assert story.forest.shared.dispatch == ()


def test_approval_is_asked_where_the_type_says_so() -> None:
    """A type with `approve` waits for a person after the check; without, it lands at once."""
    tell(f"plan p: a\nchoose p/a\n{LANDING}\np/a is landing")
    tell(f"plan p: a\nchoose p/a\n{LANDING}\np/a is awaiting_approval", settings(types={"spec": {"approve": True}}))


def test_an_unknown_lane_is_named() -> None:
    """Resetting a lane that nobody uses is an unknown name; one in the settings is known before it was ever used."""
    tell("plan p: a\nrefuses reset lane:other\nchoose p/a\nended p/a: limited x\nreset lane:default")


def test_a_plan_that_is_called_workspace() -> None:
    """A pause of the plan `workspace` holds that plan only, and a pause of everything is no pause of that plan."""
    story = tell("plan workspace: a\nplan p: b\nsettle")
    story.wish(wishes.pause(story.forest, "workspace", "ada", ""))
    assert "paused" in story.gates("workspace/a")
    assert "paused" not in story.gates("p/b")
    story.wish(wishes.resume(story.forest, "workspace", "ada"))
    story.wish(wishes.pause(story.forest, WORKSPACE, "ada", ""))
    assert story["workspace"].hold is None
    assert all("paused" in story.gates(each) for each in ("workspace/a", "p/b"))
    story.wish(wishes.resume(story.forest, WORKSPACE, "ada"))
    assert not any("paused" in story.gates(each) for each in ("workspace/a", "p/b"))
    story.verify()


def test_a_second_cancel_of_a_loop_that_lands() -> None:
    """A loop that lands and is to be cancelled then is not told so again."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nlands p/a\ncancel p/a")
    assert story.wish(wishes.cancel(story.forest, "p/a", "bob")) == []
    assert story.wish(wishes.cancel(story.forest, "p", "bob"))
    go_on(story, "landed p/a: k")
    assert story["p/a"].hold is not None


def test_what_was_cleared_comes_back_with_everything() -> None:
    """`resume` of everything lifts what `clear` has taken out of the queue, and leaves what is paused by itself."""
    story = tell("plan p: a; b; c\nsettle\npause p/c: mine\nclear p/a, p/b\nresume workspace\nwhy p/a: nothing")
    assert story["p/b"].hold is None
    assert story["p/c"].hold is not None


def test_what_was_cleared_may_be_paused() -> None:
    """A pause takes the place of a clearing: `resume` of everything leaves it, and so does clearing again."""
    story = tell("plan p: a\nsettle\nclear p/a\npause p/a: mine\nclear p/a\nresume workspace")
    assert story["p/a"].hold is not None and story["p/a"].hold.reason == "mine"
    go_on(story, "resume p/a\nwhy p/a: nothing")


def test_what_a_loop_is_refused_is_told_when_it_doubles() -> None:
    """A refusal is told the first time, and again when it has come twice as often; each wish and lease by itself."""
    story = tell("""
        plan p: a
        choose p/a
        began p/a
        deny p/a#1 cancel 1: p/b
        ignores deny p/a#1 cancel 1: p/c
        deny p/a#1 cancel 2: p/d
        ignores deny p/a#1 cancel 3: p/d
        deny p/a#1 cancel 5: p/d
        deny p/a#1 stop 1: --now
        deny p/a#2 stop 1: --now
        ended p/a
    """)
    told = [(each.wish, each.lease, each.tries) for each, _ in story.log if isinstance(each, w.SteeringRefused)]
    first = [("cancel", "p/a#1", tries) for tries in (1, 2, 5)]
    assert told == [*first, ("stop", "p/a#1", 1), ("stop", "p/a#2", 1)]
    assert story["p/a"].status is Status.CHECKING
    story.verify()


def test_a_thousand_refusals_are_ten_events() -> None:
    """Whatever a loop tries again and again, what is told of it grows with the logarithm."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a")
    for tries in range(1, 1_000):
        story.wish(wishes.deny(story.forest, "p/a#1", "stop", "", tries))
    assert sum(isinstance(each, w.SteeringRefused) for each, _ in story.log) == 10


@pytest.mark.parametrize("state", STATES)
def test_a_stop_that_nobody_wrote_down_is_free(state: str) -> None:
    """A command that was ended with its engine costs nothing and gives up its slot; else it is old news."""
    story = in_state(state)
    before = story["p/a"]
    if state in ("pending", "backoff"):
        return  # there is no attempt that could be told of
    go_on(story, "stopped p/a: the engine was stopped by ada")
    after = story["p/a"]
    if state in ("leased", "running"):
        assert (after.status, after.failures, after.lease, after.ending) == (Status.PENDING, 0, None, None)
    else:
        assert after.status is before.status
    story.verify()


@pytest.mark.parametrize("commands", ["plan spec phase code", "spec phase code"])
@pytest.mark.parametrize("loop_id", ["p", "p/a"])
def test_only_a_plan_that_a_person_has_written_is_not_made_anew(commands: str, loop_id: str) -> None:
    """Whatever a command makes is made anew, a plan too; where a person has written the plan, only what is below it."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: x", settings(commands))
    by_a_person = loop_id == "p" and not commands.startswith("plan")
    go_on(story, f"renew {loop_id}")
    assert story[loop_id].status is (Status.COMPLETE if by_a_person else Status.PENDING)
    assert (story["p/a"].status is Status.PENDING) == (by_a_person or loop_id == "p/a")


@pytest.mark.parametrize("commit", ["", "b0", "b1"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_plan_begins_at_another_commit_until_its_branch_has_been_made(commit: str, begun: bool) -> None:
    """The base is noted where it is another one; the branch is announced anew only while there is none."""
    story = tell("plan p: a")
    if begun:
        story.see(PlanStands("p", "b0"))
    before = len(story.log)
    story.wish(wishes.begin_at(story.forest, "p", commit))
    events = [event for event, _ in story.log[before:]]
    assert [each.base_commit for each in events if isinstance(each, w.PlanBound)] == ["b1"] * (commit == "b1")
    moves = [(each.old, each.new) for each in events if isinstance(each, PlanMoving)]
    assert moves == [("", "b1")] * (commit == "b1" and not begun)
    assert story.forest.shared.tip("p").stands == ("b1" if commit == "b1" and not begun else "b0")
    story.verify()
