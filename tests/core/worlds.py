"""Random workspaces for Hypothesis: a policy, some plans, and any sequence of what may happen to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure, Loop, Status, Usage
from loopr.core.owed import Judge, Land, StartAttempt, StopAttempt, owed
from loopr.core.policy import LanePolicy, Policy, ProjectPolicy
from loopr.errors import UserError
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, settings

PLANS = ("p", "q", "r")
JUMPS_MS = (0, 1, 1_000, 59_999, 60_000, 600_000, 3_600_000, 86_400_000)
OUTLINES = (
    "a; b; c; d",
    "d; c serial; b serial; a serial",
    "a needs b; b; c (k; l needs k); d (m serial; n serial)",
    "serial: a; b; c body new; e",
    "b needs d; d; a (k (x; y); l); f run ./x",
    "c body other; a parallel; b budget 60",
    "a priority 5 (k; l priority -3); b priority -1; c",
)
HANDED_OVER = ("k; l", "serial: k; l; m", "k needs l; l")
TROUBLES = (
    None,
    None,
    None,
    o.Trouble(Failure.REFUSED, "no", "same"),
    o.Trouble(Failure.REFUSED, "no"),
    o.Trouble(Failure.INFRA, "died"),
    o.Trouble(Failure.INFRA, "did not start", launch=True),
    o.Trouble(Failure.TIMEOUT, "too long"),
    o.Trouble(Failure.LIMITED, "slow down", retry_after_ms=5_000),
    o.Trouble(Failure.LANE, "who are you"),
    o.Trouble(Failure.HOST, "disk full"),
    o.Trouble(Failure.CONFIG, "no such program"),
    o.Trouble(Failure.CONFLICT, "both changed it"),
)
SMALL = st.integers(1, 4)
MAYBE = st.none() | SMALL


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with small limits, several projects and lanes."""
    lanes = st.sampled_from([("default",), ("one",), ("one", "two"), ("two", "default")])
    types: dict[str, Any] = {
        name: {"lanes": draw(lanes), "parallel": draw(st.booleans()), "approve": draw(st.integers(0, 4)) == 0}
        for name in ("spec", "phase", "code")
    }
    commands = draw(st.sampled_from(["plan spec phase code", "spec phase code", "spec code", "plan spec code"]))
    projects = {plan: ProjectPolicy(Fraction(draw(SMALL)), draw(st.none() | st.integers(1, 3))) for plan in PLANS[:2]}
    return settings(
        commands,
        types,
        max_loops=draw(st.sampled_from([0, 1, 2, 3, 8])),
        max_api_calls=draw(st.integers(-1, 6)),
        per_type={"spec": draw(SMALL), "phase": draw(SMALL)},
        starvation_ms=draw(st.sampled_from([0, 60_000, 3_600_000])),
        batch_size=draw(st.sampled_from([0, 0, 1, 2])),
        lanes={"one": LanePolicy(draw(MAYBE)), "two": LanePolicy(draw(MAYBE))},
        projects=projects,
        ramp=draw(st.booleans()),
        max_worktrees=draw(st.none() | st.just(1)),
    )


Step = Callable[[Story, int], None]


def _pick(story: Story, number: int, *statuses: Status) -> Loop | None:
    """Return one of the loops in some states."""
    found = sorted(each.id for each in story.forest.loops.values() if not statuses or each.status in statuses)
    return story[found[number % len(found)]] if found else None


def _offer(story: Story, number: int) -> None:
    """Start a plan, or start it with another outline."""
    plan, text = PLANS[number % 3], OUTLINES[number // 3 % len(OUTLINES)]
    artifact = outline(text, plan, project=plan)
    story.see(o.PlanOffered(plan, artifact, digest_of(f"{text}{number}"), f"{plan}.md"))


def _drop(story: Story, number: int) -> None:
    """Drop a file for any loop."""
    loop = _pick(story, number)
    if loop is not None:
        text = HANDED_OVER[number % 3] if loop.type != "plan" else OUTLINES[number % len(OUTLINES)]
        story.see(o.FileSeen(loop.id, digest_of(f"{text}{number % 5}"), outline(text), f"specs/{loop.id}"))


def _work(story: Story, number: int) -> None:
    """Let something come of one effect that is owed."""
    due = [each for each in owed(story.forest) if isinstance(each, StartAttempt | Judge | Land | StopAttempt)]
    running = [each for each in story.forest.loops.values() if each.status is Status.RUNNING]
    targets: list[tuple[str, int, type]] = [(each.loop, each.attempt, type(each)) for each in due]
    targets += [(each.id, each.attempt, o.AttemptEnded) for each in running]
    if not targets:
        return
    loop_id, attempt, kind = sorted(targets, key=str)[number % len(targets)]
    trouble = TROUBLES[number // 7 % len(TROUBLES)]
    match kind.__name__:
        case "StartAttempt" if trouble is not None and trouble.launch:
            story.see(o.AttemptEnded(loop_id, attempt, trouble))
        case "StartAttempt":
            story.see(o.AttemptBegan(loop_id, attempt, "b0"))
        case "Judge":
            took = o.StepTook(loop_id, attempt, "check", 1_000 + number)
            story.see(*([took] if number % 2 else []), o.Judged(loop_id, attempt, trouble))
        case "StopAttempt":
            story.see(o.StopSeen(loop_id, attempt))
        case "Land" if trouble is not None:
            story.see(o.LandingFailed(loop_id, attempt, trouble))
        case "Land":
            text = HANDED_OVER[number % 3]
            story.see(o.LandingDone(loop_id, attempt, "c0", digest_of(f"{loop_id}{text}"), outline(text)))
        case _:
            usage = Usage(number % 50 if number % 3 else None, None, 0)
            story.see(o.AttemptUsed(loop_id, attempt, usage), o.AttemptEnded(loop_id, attempt, trouble))


def _stale(story: Story, number: int) -> None:
    """Report something of an attempt that may be long over, or never was."""
    loop = _pick(story, number)
    if loop is None:
        return
    key = (loop.id, max(0, loop.attempt - number % 3 + 1))
    kinds = (o.AttemptBegan, o.AttemptLost, o.AttemptEnded, o.Judged, o.StopSeen)
    trouble = TROUBLES[number % len(TROUBLES)]
    seen = kinds[number % len(kinds)]
    story.see(seen(*key, trouble) if seen in (o.AttemptEnded, o.Judged) else seen(*key))


def _wish(name: str) -> Step:
    """Let a person ask something of any loop; most of it is refused."""

    def step(story: Story, number: int) -> None:
        """Ask, and take a refusal for an answer."""
        loop = _pick(story, number)
        if loop is None:
            return
        forest, now = story.forest, story.now
        wish: dict[str, Callable[[], Any]] = {
            "pause": lambda: wishes.pause(forest, loop.id, "ada", "", at_once=number % 2 == 0),
            "resume": lambda: wishes.resume(forest, loop.id, "ada"),
            "cancel": lambda: wishes.cancel(forest, loop.id, "ada"),
            "retry": lambda: wishes.retry(forest, loop.id, "ada", now),
            "renew": lambda: wishes.renew(forest, loop.id, "ada"),
            "unpark": lambda: wishes.unpark(forest, loop.id, "ada"),
            "approve": lambda: wishes.approve(forest, loop.id),
            "iterate": lambda: wishes.iterate(forest, loop.id, "more"),
            "dispatch": lambda: wishes.dispatch(forest, (loop.id,), "ada"),
            "forget": lambda: wishes.forget(forest, loop.id),
            "project": lambda: wishes.pause(forest, f"project:{loop.project}", "ada", ""),
            "projects": lambda: wishes.resume(forest, f"project:{loop.project}", "ada"),
            "lane": lambda: wishes.reset_lane(forest, ("one", "two")[number % 2], "ada"),
        }
        with contextlib.suppress(UserError):
            story.wish(wish[name]())

    return step


def _wait(story: Story, number: int) -> None:
    """Let time pass."""
    story.now += JUMPS_MS[number % len(JUMPS_MS)]


def _machine(story: Story, number: int) -> None:
    """Let the host or the engine change its mind, or the file of a loop come and go."""
    loop = _pick(story, number, Status.COMPLETE)
    story.see(
        (
            o.HostSeen(""),
            o.HostSeen("full", story.now + 1000),
            o.EngineBegan(number, "here"),
            o.FileGone(loop.id if loop else "nobody"),
            o.FileSeen(loop.id, loop.artifact, outline(""), "specs") if loop else o.HostSeen(""),
        )[number % 5]
    )


def _take(story: Story, number: int) -> None:
    """Let a pull worker take something."""
    story.take("bob", 1 + number % 2)


def _round(story: Story, number: int) -> None:
    """Play a round."""
    story.choose()


STEPS: tuple[Step, ...] = (
    *(_round,) * 6,
    *(_work,) * 9,
    *(_wait,) * 4,
    *(_offer,) * 2,
    _drop,
    _stale,
    _machine,
    _take,
    *(
        _wish(name)
        for name in (
            "pause", "resume", "resume", "cancel", "retry", "retry", "renew", "unpark", "unpark", "approve", "approve",
            "iterate", "dispatch", "forget", "project", "projects", "projects", "lane",
        )
    ),
)  # fmt: skip
HAPPENINGS = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 10_000)), min_size=25, max_size=80)


def begin(policy: Policy) -> Story:
    """Begin a workspace with two plans."""
    story = Story(policy)
    _offer(story, 0)
    _offer(story, 7)
    return story
