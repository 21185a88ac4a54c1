"""A whole plan in virtual time: the engine's own functions over a world that only counts milliseconds.

Whatever is owed is done here at once or after a drawn duration. Knows no clock and no chance: the same forest, options
and instant give the same result. Must never touch anything outside the forest it was given, which it uses up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.choose import choose, next_wake
from loopr.core.durations import Spread, constant, draw, happens
from loopr.core.entries import Artifact, Entry, decode_entry, implied_entry
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.model import NO_USAGE, Failure, Loop, Status
from loopr.core.owed import Effect, Judge, Land, PackWorktree, StartAttempt, StopAttempt, WriteDeclared, owed
from loopr.core.played import Played, Watch, sum_up
from loopr.core.policy import Policy, TypePolicy, encode_policy
from loopr.core.slugs import slug
from loopr.core.turn import perform
from loopr.core.wishes import approve

Entries = Callable[[str], Entry | None]
"""Looks up the entry that a loop was declared with."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long things take in a simulation and how often they go wrong.

    An attempt takes what `loops` says for its loop, else what `types` says for its type, else `attempt`. Rates are of
    all attempts: judged "no", over the lane's limit (which then rests for `retry_after_ms`), or lost with their host.
    """

    types: Mapping[str, Spread] = field(default_factory=dict)
    loops: Mapping[str, Spread] = field(default_factory=dict)
    attempt: Spread = constant(60_000)
    judging: Spread = constant(0)
    landing: Spread = constant(0)
    failure_rate: Fraction = Fraction(0)
    limit_rate: Fraction = Fraction(0)
    infra_rate: Fraction = Fraction(0)
    retry_after_ms: int = 60_000
    seed: int = 0
    max_events: int = 1_000_000

    def attempt_ms(self, loop: Loop, attempt: int) -> int:
        """Draw how long one attempt takes."""
        spread = self.loops.get(loop.id) or self.types.get(loop.type) or self.attempt
        return spread.ms(draw(self.seed, loop.id, attempt, "attempt"))


def simulate(
    forest: Forest,
    now: int,
    options: Options | None = None,
    *,
    plan: str | None = None,
    offered: Iterable[o.Observation] = (),
    entries: Entries = lambda loop_id: None,
) -> Played:
    """Play a forest from an instant until it is settled, and report on one loop with all below it or on everything.

    The forest is used up. `offered` is seen first, a plan file perhaps; `entries` knows the entries of the loops that
    were declared before.
    """
    options = options or Options()
    world = _World(forest, now, options, entries)
    world.take_over(offered)
    world.play(plan)
    return sum_up(world.watch, world.now, top=plan, cut_short=world.cut_short, named=options.loops)


def with_people(forest: Forest) -> Policy:
    """Return the policy under which a loop without a command is run as if a person did it.

    A type whose loops complete by declaration where nothing was declared for them keeps doing that.
    """
    policy, present = forest.policy, {loop.type for loop in forest.loops.values()}
    types = dict(policy.types) | {name: TypePolicy(name) for name in sorted(present - policy.types.keys())}
    for name, each in types.items():
        below_another = Loop("plan/loop", name, "", "plan", 0, 1, "")
        if name == policy.root_type or not forest.settles(below_another):
            types[name] = replace(each, has_command=True)
    return replace(policy, types=types)


class _World:
    """What stands in for disk, clock, processes, git and people."""

    def __init__(self, forest: Forest, now: int, options: Options, entries: Entries) -> None:
        """Begin at an instant with nothing under way."""
        self.forest, self.now, self.options = forest, now, options
        self.watch = Watch(forest, now)
        self._entries = entries
        self._said: dict[str, str] = {}
        self._coming: list[tuple[int, int, o.Observation]] = []
        self._count = 0
        self._begun: set[Effect] = set()
        self._next_start = now
        self._landing_until: dict[str, int] = {}

    @property
    def cut_short(self) -> bool:
        """True once more has happened than the caller wanted to see."""
        return self.watch.events >= self.options.max_events

    def play(self, plan: str | None) -> None:
        """Let time pass until nothing happens by itself any more, or all that was asked about is done."""
        while not self.cut_short:
            self._live_through()
            later = self._next_instant()
            if later is None or (plan is not None and self.forest.tree.done(plan)):
                return
            self.now = later

    def take_over(self, offered: Iterable[o.Observation]) -> None:
        """Take what is offered, give what runs already its time, and let people, engine and machine be willing."""
        forest = self.forest
        for seen in offered:
            self._tell(interpret(forest, seen, self.now))
        self._tell([w.PolicyLoaded(encode_policy(with_people(forest)))])
        if forest.shared.engine.draining:
            self._tell(interpret(forest, o.EngineBegan(0, "simulation"), self.now))
        if forest.shared.host[0]:
            self._expect(max(self.now, forest.shared.host[1]), o.HostSeen(""))
        for loop in list(forest.tree.walk()):
            if loop.status is Status.RUNNING and loop.lease is not None:
                end = self._expect_end(loop, loop.attempt, self.now)
                if loop.lease.expires_at is not None:  # its pull worker keeps renewing it
                    self._tell([e.LeaseRenewed(loop.id, loop.attempt, end + 1)])

    def _next_instant(self) -> int | None:
        """Return when something happens next."""
        coming = self._coming[0][0] if self._coming else None
        return min((at for at in (coming, next_wake(self.forest, self.now)) if at is not None), default=None)

    def _live_through(self) -> None:
        """Let everything happen that takes no time, then choose and let that begin, until this instant is over."""
        while not self.cut_short:
            self._happen()
            if not self._tell(choose(self.forest, self.now)):
                return

    def _happen(self) -> None:
        """Perform what is owed and take what comes of it, as long as that takes no time."""
        while not self.cut_short:
            for loop_id in list(self.forest.tree.by_status[Status.AWAITING]):
                self._tell(approve(self.forest, loop_id))
            for effect in list(owed(self.forest)):
                self._perform(effect)
            if not self._coming or self._coming[0][0] > self.now:
                return
            while self._coming and self._coming[0][0] <= self.now:
                self._tell(interpret(self.forest, heappop(self._coming)[2], self.now))

    def _tell(self, decisions: Iterable[Event]) -> bool:
        """Apply what was decided and say whether that was anything."""
        return bool(perform(self.forest, self._watched(decisions), self.now))

    def _watched(self, decisions: Iterable[Event]) -> Iterator[Event]:
        """Look at each event before it is applied."""
        for event in decisions:
            self.watch.see(event, self.now)
            if isinstance(event, e.LoopEvent) and (entry := getattr(event, "entry", "")):
                self._said[event.loop] = entry
            elif isinstance(event, e.Settled):
                self._begun.discard(WriteDeclared(event.loop, self.forest.loops[event.loop].attempt))
            yield event

    def _expect(self, at: int, seen: o.Observation) -> None:
        """Let something be observed at an instant; what comes at the same one comes in this order."""
        self._count += 1
        heappush(self._coming, (at, self._count, seen))

    # --- effects ---------------------------------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        """Begin what is owed, once."""
        if effect in self._begun:
            return
        self._begun.add(effect)
        match effect:
            case WriteDeclared():
                self._write_declared(self.forest.loops[effect.loop])
            case StartAttempt():
                self._start(self.forest.loops[effect.loop], effect.attempt)
            case StopAttempt():
                self._expect(self.now, o.StopSeen(effect.loop, effect.attempt))
            case PackWorktree():
                self._begun.discard(effect)
                self._expect(self.now, o.PackingDone(effect.loop, effect.attempt))
            case Judge():
                self._judge(effect)
            case Land():
                self._land(effect)

    def _write_declared(self, loop: Loop) -> None:
        """Write the artifact of a loop that completes by declaration, which takes no time."""
        self._expect(self.now, o.DeclaredWritten(loop.id, _digest(loop), self._declared(loop), loop.id))

    def _start(self, loop: Loop, attempt: int) -> None:
        """Start an attempt: the launches of a round follow each other at the pace that the settings ask for."""
        at = max(self.now, self._next_start)
        self._next_start = at + self.forest.policy.spawn_delay_ms
        self._expect(at, o.AttemptBegan(loop.id, attempt))
        self._expect_end(loop, attempt, at)

    def _expect_end(self, loop: Loop, attempt: int, begins: int) -> int:
        """Let an attempt end after its time, and return when; one that only repeats the judging has no work to do."""
        judge_only = loop.lease is not None and loop.lease.judge_only
        end = begins if judge_only else begins + self.options.attempt_ms(loop, attempt)
        if not (loop.budget.unlimited and self.forest.policy.type_of(loop.type).budget.unlimited):
            self._expect(end, o.AttemptUsed(loop.id, attempt, NO_USAGE))  # its time alone may be too much
        self._expect(end, o.AttemptEnded(loop.id, attempt, None if judge_only else self._trouble(loop.id, attempt)))
        return end

    def _trouble(self, loop_id: str, attempt: int) -> o.Trouble | None:
        """Draw what goes wrong with an attempt before anybody judges it."""
        options = self.options
        if happens(options.limit_rate, draw(options.seed, loop_id, attempt, "limit")):
            return o.Trouble(Failure.LIMITED, "429 in the simulation", retry_after_ms=options.retry_after_ms)
        if happens(options.infra_rate, draw(options.seed, loop_id, attempt, "infra")):
            return o.Trouble(Failure.INFRA, "lost in the simulation")
        return None

    def _judge(self, effect: Effect) -> None:
        """Judge an attempt; every no has another reason, so that nobody is without progress."""
        options, drawn = self.options, draw(self.options.seed, effect.loop, effect.attempt, "judging")
        says_no = happens(options.failure_rate, draw(options.seed, effect.loop, effect.attempt, "verdict"))
        trouble = o.Trouble(Failure.REFUSED, "refused in the simulation") if says_no else None
        as_leaf = self.forest.is_leaf(self.forest.loops[effect.loop])
        self._expect(self.now + options.judging.ms(drawn), o.Judged(effect.loop, effect.attempt, trouble, as_leaf))

    def _land(self, effect: Effect) -> None:
        """Land a loop; of each plan one at a time."""
        if self.options.landing == constant(0):
            self._land_all(effect.loop)
            return
        plan = self.forest.loops[effect.loop].plan
        if self._landing_until.get(plan, self.now) > self.now:
            self._begun.discard(effect)
            return
        drawn = draw(self.options.seed, effect.loop, effect.attempt, "landing")
        self._landing_until[plan] = self.now + self.options.landing.ms(drawn)
        self._expect(self._landing_until[plan], self._landed(self.forest.loops[effect.loop]))

    def _land_all(self, first: str) -> None:
        """Land all that a plan has to land, in no time: in the order in which they would be owed one after another."""
        tree = self.forest.tree
        landing = (tree.loops[each] for each in tree.by_status[Status.LANDING])
        plan = tree.loops[first].plan
        for loop in sorted((each for each in landing if each.plan == plan), key=tree.order):
            self._begun.add(Land(loop.id, loop.attempt))
            self._expect(self.now, self._landed(loop))

    def _landed(self, loop: Loop) -> o.LandingDone:
        """Hand over what a command would have: the children that are there already, or one where some are needed."""
        child = self.forest.policy.type_of(loop.type).child
        artifact = None
        if child is not None and not self.forest.is_leaf(loop) and not self.forest.tree.children(loop.id):
            artifact = self._artifact(loop, (implied_entry(child, slug(child), loop.title, ""),))
        return o.LandingDone(loop.id, loop.attempt, "simulated", _digest(loop), artifact)

    # --- artifacts -------------------------------------------------------------------------------------------------

    def _declared(self, loop: Loop) -> Artifact:
        """Return the artifact that an entry stands for: the children it declares, those that are there, or one."""
        entry = self._entry(loop.id)
        if entry is not None and (entry.children or entry.empty):
            return self._artifact(loop, entry.children)
        present = [self._entry(child) for child in self.forest.tree.children(loop.id)]
        if present and all(present):
            return self._artifact(loop, tuple(each for each in present if each is not None))
        child = self.forest.policy.type_of(loop.type).child or ""
        return self._artifact(loop, (implied_entry(child, slug(child), loop.title, ""),))

    def _entry(self, loop_id: str) -> Entry | None:
        """Look up what a loop's entry says now."""
        said = self._said.get(loop_id)
        return decode_entry(json.loads(said)) if said is not None else self._entries(loop_id)

    def _artifact(self, loop: Loop, entries: tuple[Entry, ...]) -> Artifact:
        """Make an artifact of a loop."""
        own = loop.id.rpartition("/")[2]
        return Artifact(own, loop.title, project=loop.project, entries=entries, declares=True)


def _digest(loop: Loop) -> str:
    """Name what a loop hands over; nothing is ever written, so nothing is ever compared with it."""
    return f"simulated#{loop.generation}#{loop.attempt}"
