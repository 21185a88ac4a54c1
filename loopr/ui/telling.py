"""From what was just decided to one line a change, for a pipe or a log file: the time, who, what, and what of it.

Knows which events are worth a line. Costs as much as there are events, whatever the size of the tree. Must never know
where the lines go, nor remember any.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import plan_events as p
from loopr.core import workspace_events as w
from loopr.core.accepting import AT_ONCE, FIRST, IDLE, held_words
from loopr.core.events import Event, LoopEvent
from loopr.core.forest import Forest
from loopr.core.gates import closed_gates
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.left_out import LEFT_OUT, LEFT_PLACE
from loopr.core.model import Failure, Gate, Loop, Status
from loopr.core.offering import MOST_NAMED, words_for
from loopr.core.offers import FILE
from loopr.core.redo import redo_words
from loopr.core.redo_events import RedoAsked
from loopr.ui.render import left_by, plain, taken_ms
from loopr.ui.story import foreign, moved_words
from loopr.ui.times import localized, say_clock, say_duration, say_tokens
from loopr.ui.views import stand_in

MOST_BACKING_OFF = 5
Words = tuple[str, ...]
"""What has happened, in columns; nothing where there is nothing to say."""


def tell(forest: Forest, events: Sequence[Event], now: int, tops: Sequence[str] = ()) -> Iterator[str]:
    """Tell events that a forest has taken, a line for each that is worth one; `tops` are the subtrees to tell of."""
    clock = say_clock(now, now)
    written: dict[str, list[str]] = {}
    gone: dict[str, list[str]] = {}
    for event in events:
        if not concerns(tops, event):
            continue
        if isinstance(event, e.Settled):
            written.setdefault(event.loop.partition("/")[0], []).append(event.loop)
            continue
        if isinstance(event, e.ArtifactGone):
            gone.setdefault(event.loop.partition("/")[0], []).append(event.loop)
            continue
        who, words = _said(forest, event, now)
        if words:
            yield _line(clock, who, words)
    for plan, loops in written.items():
        alone = len(loops) == 1
        said = "needs no work of its own" if alone else f"{len(loops)} loops need no work of their own"
        yield _line(clock, loops[0] if alone else plan, (said,))
    for plan, loops in gone.items():
        alone = len(loops) == 1
        said = "its artifact is gone" if alone else f"{len(loops)} artifacts are gone"
        yield _line(clock, loops[0] if alone else plan, (said, "`loopr doctor --fix` puts back what may come back"))


def backing_off(forest: Forest, now: int, tops: Sequence[str]) -> Iterator[str]:
    """Name loops of some subtrees that wait by the clock for their next try: no event did."""
    late = (each for each in forest.loops.values() if each.not_before > now)
    waits = sorted((each.not_before, each.id) for each in late if each.status is Status.PENDING)
    clock, found = say_clock(now, now), list[tuple[str, Gate]]()
    for name in (name for _, name in waits if not tops or within(tops, name)):
        gate = next(closed_gates(forest, forest.loops[name], now), None)
        found += [(name, gate)] if gate is not None and gate.gate == "backoff" else []
    for name, gate in found[:MOST_BACKING_OFF]:
        yield _line(clock, name, (gate.reason, f"until {say_clock(gate.until or now, now)}"))
    if len(found) > MOST_BACKING_OFF:
        yield _line(clock, f"… {len(found) - MOST_BACKING_OFF} more", ("wait so",))


def concerns(tops: Sequence[str], event: Event) -> bool:
    """Say whether an event is about one of some subtrees, or about more than one loop; no subtrees are all of them."""
    return not tops or not isinstance(event, LoopEvent) or within(tops, event.loop)


def within(tops: Container[str], loop_id: str) -> bool:
    """Say whether a loop is one of some tops, or below one."""
    while loop_id:
        if loop_id in tops:
            return True
        loop_id = loop_id.rpartition("/")[0]
    return False


def _line(clock: str, who: str, words: Words) -> str:
    """Set one line."""
    return f"{clock} {plain('  '.join(each for each in (who, *words) if each))}"


def _said(forest: Forest, event: Event, now: int) -> tuple[str, Words]:
    """Say who an event is about, and what has happened."""
    if isinstance(event, e.Landed) and event.loop in forest.loops:
        return event.loop, _landed(forest, forest.loops[event.loop], event)
    if isinstance(event, LoopEvent):
        tell_it = _OF_LOOPS.get(type(event))
        loop = forest.loops.get(event.loop)
        if tell_it is None or loop is None:
            return event.loop, ()
        words = tell_it(loop, event, now)
        by = stand_in(forest, loop, now) if isinstance(event, e.AttemptStarted) else ""
        return event.loop, (*words, by) if words else ()
    if isinstance(event, w.EngineDraining):
        return _draining(forest, event)
    tell_all = _OF_ALL.get(type(event))
    return tell_all(event, now) if tell_all is not None else ("", ())


# --- one loop -----------------------------------------------------------------------------------------------------


def _granted(loop: Loop, event: e.LeaseGranted, now: int) -> Words:
    """A pull worker's attempt runs from its lease on; of any other it is told when it has started."""
    return ("started", _try(event.attempt), f"by {event.holder}") if event.expires_at is not None else ()


def _started(loop: Loop, event: e.AttemptStarted, now: int) -> Words:
    """The command runs."""
    return "started", _try(event.attempt)


def _try(attempt: int) -> str:
    """Say which try it is, but for the first one."""
    return f"try {attempt}" if attempt > 1 else ""


def _landed(forest: Forest, loop: Loop, event: e.Landed) -> Words:
    """The work is on the plan's branch; of what has put none there, say what it has done instead."""
    tokens = f"{say_tokens(loop.spent.tokens)} tok" if loop.spent.tokens else ""
    tries = "1 try" if loop.attempt <= 1 else f"{loop.attempt} tries"
    figures = tries, say_duration(taken_ms(loop)), tokens
    back = f"put back: {', '.join(event.put_back)}" if event.put_back else ""
    if event.commit:
        return "landed", *figures, back
    declared = len(forest.tree.children(loop.id))
    nothing = "no file changed" if loop.landed else left_by(forest, loop)  # it has landed something before
    if back:
        nothing = ""
    return "done", *figures, f"{declared} declared" if declared else nothing, back


def _passed(loop: Loop, event: e.Passed, now: int) -> Words:
    """The check said yes; what lands now is told when it has landed."""
    return ("waits for approval", f"`loopr approve {loop.id}`") if event.to is Status.AWAITING else ()


def _verdict(word: str) -> Callable[[Loop, Any, int], Words]:
    """Make the words of what ends a try: with another one, or for good."""

    def say(loop: Loop, event: Any, now: int) -> Words:
        if event.to is not Status.PENDING:
            return event.to.value, event.reason
        not_before = getattr(event, "not_before", 0)
        again = f"again at {say_clock(not_before, now)}" if not_before > now else ""
        return word or event.failure.value, event.reason, again

    return say


def _because(word: str) -> Callable[[Loop, Any, int], Words]:
    """Make words with the reason that the event has."""
    return lambda loop, event, now: (word, event.reason)


def _by(word: str) -> Callable[[Loop, Any, int], Words]:
    """Make words with the person who asked for it, and why, if that says more."""

    def say(loop: Loop, event: Any, now: int) -> Words:
        head, reason = f"{word} by {event.by}", getattr(event, "reason", "")
        return head, "" if reason == head else reason

    return say


def _limited(loop: Loop, event: e.Limited, now: int) -> Words:
    """Say what an attempt ran into that was not its own; what parks a whole lane is told once, of the lane."""
    return ("waits", "for its lane") if event.failure is Failure.LANE else (event.failure.value, event.reason)


def _denied(loop: Loop, event: w.SteeringRefused, now: int) -> Words:
    """A loop wished for what is not for it."""
    often = f"{event.tries} times" if event.tries > 1 else ""
    wish = f"{event.wish} {event.about}".strip()
    return f"refused `{wish}`", "it is not for a loop", often


def _by_file(loop: Loop, event: e.ArtifactAccepted, now: int) -> Words:
    """A file that loopr did not write completed it, a person's or nobody knows whose."""
    if event.by != FILE:
        return "done", f"by {'a person' if event.by == 'person' else event.by}'s file"
    return "done", f"by a file that came while {', '.join(event.during[:MOST_NAMED]) or 'loops'} ran"


_OF_LOOPS: Mapping[type[Event], Callable[[Loop, Any, int], Words]] = {
    e.LeaseGranted: _granted,
    e.AttemptStarted: _started,
    e.LeaseExpired: _verdict("expired"),
    e.LeaseReleased: _because("given back"),
    e.StepTimed: lambda loop, event, now: (f"{event.step} {say_duration(event.ms)}",),
    Refused: _verdict("refused"),
    Conflicted: _verdict("conflict"),
    e.Broke: _verdict(""),
    e.Limited: _limited,
    e.SetAside: _because("parked"),
    e.Stopped: _because("stopped"),
    e.Passed: _passed,
    e.ArtifactAccepted: _by_file,
    e.CandidateReplaced: lambda loop, event, now: ("has a person's file", "it still needs the approval"),
    f.ArtifactOffered: lambda loop, event, now: ("offered", words_for(loop)),
    f.OfferReplaced: lambda loop, event, now: ("handed over", f"the file that lay there: archive/{event.digest}.md"),
    f.OfferRejected: _by("file rejected"),
    e.Approved: lambda loop, event, now: ("approved",),
    e.Rejected: _because("failed"),
    e.IterationAsked: _because("another try asked"),
    e.InputChanged: lambda loop, event, now: ("input changed", "it is done anew" if event.generation > 1 else ""),
    e.Renewed: _by("made anew"),
    e.Retried: _by("retried"),
    RedoAsked: lambda loop, event, now: ("to be done again", redo_words(event.cause, event.landed)),
    e.Unparked: _by("reset"),
    e.Undeclared: lambda loop, event, now: ("no longer declared",),
    e.Cancelled: _by("cancelled"),
    e.Held: _by("paused"),
    e.Lifted: _by("resumed"),
    w.SteeringRefused: _denied,
}


# --- all loops ----------------------------------------------------------------------------------------------------


def _rested(event: w.LaneRested, now: int) -> tuple[str, Words]:
    """A lane rests."""
    return f"lane {event.lane}", (f"backing off until {say_clock(event.until, now)}", event.reason)


def _measured(event: w.LaneMeasured, now: int) -> tuple[str, Words]:
    """A lane's window is nearly used up, or is again as empty as it should be."""
    return f"lane {event.lane}", (f"{event.level // 10}% of its window is used", "it slows down before the wall")


def _draining(forest: Forest, event: w.EngineDraining) -> tuple[str, Words]:
    """The engine chooses no more; what it has chosen already is still to start."""
    chosen = forest.tree.by_status[Status.LEASED]
    rest = "nothing starts but what was chosen already" if chosen else "nothing more starts"
    sooner = "Ctrl-C again ends what runs" if event.by == "SIGINT" else ""
    return "engine", (f"draining, asked by {event.by}: {rest}", sooner)


def _host(event: w.HostChanged, now: int) -> tuple[str, Words]:
    """The machine can take no more, or it can again."""
    return "host", ("nothing starts", event.reason) if event.reason else ("takes work again",)


def _problem(event: w.ProblemSeen, now: int) -> tuple[str, Words]:
    """Something is wrong at a place; a text that begins with it, and the line, says the place only once."""
    if event.place.startswith(LEFT_PLACE):
        return event.place.removeprefix(LEFT_PLACE), (LEFT_OUT, event.text)
    there = event.text.startswith(event.place)
    spot, _, words = event.text.removeprefix(event.place).partition(" ") if there else ("", "", event.text)
    return f"{event.place}{spot}", ("problem", localized(words, now))


def _grown(event: w.SharedGrew, now: int) -> tuple[str, Words]:
    """Something came to what all worktrees share, which harms nobody: by whom, nothing tells."""
    return event.during, ("while it ran", f"{', '.join(event.names)} came or changed, which parks nobody")


def _harmed(event: w.SharedHarmed, now: int) -> tuple[str, Words]:
    """Something was harmed; of several that were at work nobody is to blame."""
    return ", ".join(event.during), ("while it ran" if len(event.during) == 1 else "while they ran", _of(event))


def _of(event: w.SharedHarmed) -> str:
    """Name what was harmed."""
    return f"what all worktrees share was changed: {', '.join(event.names)}"


def _moved(event: w.BranchMoved, now: int) -> tuple[str, Words]:
    """A person's branch has moved."""
    words = moved_words(event.branch, event.during, explained=event.explained, undo=event.undo)
    return event.branch, (words.removeprefix(f"{event.branch} "),)


def _accepted(event: w.SettingsAccepted, now: int) -> tuple[str, Words]:
    """Settings are in force: the first ones, or because a person says so; what follows from a rule is no news."""
    if event.by == FIRST:
        return "settings", (f"accepted as they are: {', '.join(event.names)}",) if event.names else ()
    return "settings", () if event.by in (IDLE, AT_ONCE) else (f"accepted by {event.by}",)


def _settings_held(event: w.SettingsHeld, now: int) -> tuple[str, Words]:
    """What the files say is not in force."""
    return "settings", (held_words(event.keys),)


def _scope(scope: str) -> str:
    """Call what is held by its name."""
    return scope.replace(":", " ", 1).strip()


def _home(event: w.PlanCameHome, now: int) -> tuple[str, Words]:
    """Tell that a plan came home, or a part of it."""
    return event.plan, ("partly home" if event.partial else "home", f"{event.branch} is at {event.commit[:12]}")


_OF_ALL: Mapping[type[Event], Callable[[Any, int], tuple[str, Words]]] = {
    w.EngineStarted: lambda event, now: ("engine", (f"started, pid {event.pid} on {event.host}",)),
    w.EngineEnded: lambda event, now: ("engine", ("ended",)),
    w.LaneRested: _rested,
    w.LaneMeasured: _measured,
    w.LaneParked: lambda event, now: (f"lane {event.lane}", ("parked", event.reason)),
    w.LaneReset: lambda event, now: (f"lane {event.lane}", (f"works again, by {event.by}",)),
    w.HostChanged: _host,
    w.ScopeHeld: lambda event, now: (_scope(event.scope), (f"paused by {event.by}", event.reason)),
    w.ScopeLifted: lambda event, now: (_scope(event.scope), (f"resumed by {event.by}",)),
    w.ClockMoved: lambda event, now: ("clock", (f"moved by {event.by_ms} ms",)),
    w.ConvoyLanded: lambda event, now: (f"@{event.name}", ("landed",)),
    w.PlanCameHome: _home,
    w.SharedGrew: _grown,
    w.SharedHarmed: _harmed,
    w.BranchMoved: _moved,
    w.SettingsAccepted: _accepted,
    w.SettingsHeld: _settings_held,
    w.SettingsPutBack: lambda event, now: ("settings", ("nothing is held back any more",)),
    p.TipForeign: lambda event, now: (event.plan, (foreign(asdict(event)),)),
    p.TipsTaken: lambda event, now: (", ".join(event.plans), ("where refs say: the journal is from before it did",)),
    w.ProblemSeen: _problem,
    w.ProblemGone: lambda event, now: (event.place, ("mended",)),
}
