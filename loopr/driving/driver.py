"""The one loop of an engine that runs: sense, think, remember, act.

It sleeps until something is heard or an instant comes. Effects are begun from what the state owes, and come back as
observations only. Must never decide anything itself, nor do an effect on its own thread that takes long.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.choose import choose
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.owed import Effect, owed, owed_beside, owed_to
from loopr.core.wishes import STOPPED, stop_all
from loopr.driving.beside import KINDS, PLACES, Beside
from loopr.driving.effects import Effects
from loopr.driving.hearing import Hearing
from loopr.driving.jobs import Jobs
from loopr.driving.keeping import JOURNAL_PLACE
from loopr.driving.leaving import Leaving, Wish, leaves_nothing, longest_grace_secs
from loopr.driving.looking import Looking
from loopr.driving.resting import BUSY_MS, Resting
from loopr.driving.rounds import Rounds
from loopr.driving.rules import PLACE, Rules
from loopr.driving.upkeep import Upkeep
from loopr.engine import Engine
from loopr.errors import WorldError
from loopr.hands import FileHands
from loopr.world.bell import Bell
from loopr.world.journal import Journal
from loopr.world.processes import Attempts

Show = Callable[[Forest, list[Event], int], None]
Step = Callable[[str], None]


class Driver:
    """Drives a workspace until it is settled, or until it is told to stop."""

    def __init__(
        self,
        engine: Engine,
        *,
        journal: Journal,
        attempts: Attempts,
        effects: Effects,
        looking: Looking,
        bell: Bell,
        upkeep: Upkeep,
        rules: Rules,
        beside: Beside,
        hearing: Hearing,
        resting: Resting,
        step: Step = lambda name: None,
        begun: Sequence[Event] = (),
    ) -> None:
        self.engine, self._journal, self._attempts = engine, journal, attempts
        self._effects, self._looking, self._bell, self._upkeep = effects, looking, bell, upkeep
        self._beside, self._hearing, self._rules = beside, hearing, rules
        self._begun = begun  # what has happened before, in the same breath
        self._jobs: Jobs = effects.jobs
        self._leaving = Leaving(effects.kit, effects.jobs)
        self.resting = resting
        self._step = step
        self._wish = self._heeded = Wish.GO_ON
        self._wisher = ""
        self._unheard: list[o.Observation] = []
        self._recalls = 0
        self._rounds = Rounds()
        self._grants = False  # not before all artifacts have been looked at
        self._told: dict[str, str] = {}
        self._trouble = ""
        self._checked_at = 0
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        for source in (attempts, self._jobs, looking, bell, self._wake):
            self._poll.register(source, select.POLLIN)

    @property
    def forest(self) -> Forest:
        """The forest as it is now."""
        return self.engine.forest

    @property
    def trouble(self) -> str:
        """What keeps the engine from remembering anything, or others from reporting to it; nothing if all is well."""
        return self._trouble or self._upkeep.full

    def longest_grace_secs(self) -> float:
        """Return the longest time that a command may take from being asked to end."""
        return longest_grace_secs(self._effects.kit.settings)

    def ask(self, wish: Wish, by: str) -> None:
        """Ask the engine to stop; from any thread or signal. To ask the same again wakes nobody."""
        known, self._wish, self._wisher = self._wish, max(self._wish, wish), by
        if wish is Wish.STOP_NOW:
            self._leaving.begin()
        if wish <= known:
            return
        with suppress(BlockingIOError):
            os.write(self._waker, b"!")

    def tail(self, loop: Loop) -> str:
        """Return the last line that a loop's command has said, or what its agent said or did last, without keys."""
        return self._effects.kit.hide(self._hearing.last(loop) or self._jobs.last_line(loop.id, loop.attempt))

    def drive(self, until: Callable[[Forest, int], bool], show: Show) -> None:
        """Drive until a condition holds and nothing is in hand, or until it is told to stop."""
        try:
            self._begin(show)
            while not self._is_over(until, show):
                self._turn(show)
            self._part(show)
        finally:
            self._jobs.close(waits=not self.leaves_threads)
            self._looking.stop()
            self.resting.stop()
            for descriptor in (self._wake, self._waker):
                os.close(descriptor)

    def _is_over(self, until: Callable[[Forest, int], bool], show: Show) -> bool:
        """Say whether there is nothing left to do; an engine that stays goes on all the same, and says so."""
        if self._leaving.is_due or self._leaving.has_given_up:
            return True
        if self._leaving.unwritten or self._unheard or self._jobs.has_news:
            return False
        mind = self.engine.mind
        now = mind.now()
        if self.forest.shared.engine.draining:
            over = self._jobs.only_waits(KINDS) and leaves_nothing(self.forest, self._jobs.waiting)
            over = over and self._looking.has_seen_all(self.forest)
            return over and (self._wish is Wish.STOP_NOW or not self._beside.detains(now))
        settled = self._is_settled(until, now)
        if self.resting.settle(settled):
            self._say(show, [])
        return settled and not self.resting.stays

    def _is_settled(self, until: Callable[[Forest, int], bool], now: int) -> bool:
        """Say whether a condition holds, nothing is in hand, and all who are to hear of that have heard."""
        resting, forest = self.resting, self.forest
        resting.heed(forest)
        if not self._jobs.only_left(CLEARING) or not until(forest, now):
            return False
        if self._beside.keeps(forest, self.engine.mind.seq, now, news=resting.is_news(forest)):
            return False
        resting.have_told(forest)
        return self._looking.has_seen_all(forest) and not self._looking.is_expecting()

    @property
    def leaves_threads(self) -> bool:
        """True if threads are at work for an engine that ends at once: so must the process."""
        return self._leaving.has_begun and self._jobs.on_threads

    def _part(self, show: Show) -> None:
        """Write down that the engine has ended; one that ends at once goes without, if need be."""
        try:
            if not self._leaving.unwritten:
                self._say(show, self.engine.learn([*self._beside.end(self.forest), self._looking.last_word()]))
        except WorldError as error:
            if not self._leaving.has_begun:
                raise
            self._trouble = str(error)

    # -- the beginning

    def _begin(self, show: Show) -> None:
        """Take over from whoever was here before."""
        self._step("begin")
        theirs = (f"{self.forest.policy.artifacts_dir}/", JOURNAL_PLACE, PLACE, *PLACES)  # others are asked anew
        self._told = {at: text for at, text in self.forest.shared.problems.items() if not at.startswith(theirs)}
        mind = self.engine.mind
        events = [*self._begun, *mind.heed_clock(), *self._heed_rules()]
        listeners = self._beside.changes(self.forest, mind.seq)
        events += self.engine.learn([o.EngineBegan(os.getpid(), os.uname().nodename), *listeners])
        self._beside.begin(self.forest, mind.seq)
        self._looking.start()
        seen = list(self._upkeep.look(self.forest, self.engine.mind.now()))  # before anything starts
        seen += self._looking.gather(self.forest, self._hands())
        self._grants = self._looking.has_read_all()
        events += self.engine.learn(seen, choose if self._grants else None)
        self._step("adopted")
        self._perform(owed(self.forest))
        self._effects.tidy_leftovers(self.forest)
        self._beside.heed(self.forest, events, mind.seq, mind.now())
        self._say(show, events)

    # -- one turn

    def _turn(self, show: Show) -> None:
        """Wait for something, learn what it means, decide what follows, and begin what is owed."""
        self._sleep()
        now = self.engine.mind.now()
        if self._leaving.unwritten:
            self._jobs.hear(self._attempts.poll())
            self._jobs.poll()
            self._rounds.put_off(now)
            self._say(show, [])
            return
        self._check_journal(now)
        events = self._heed_rules()  # by whom is at work still, as far as is known
        if fresh := self._catch_up():
            self._looking.doubts.heed(self.forest, [each.loop for each in fresh if isinstance(each, e.LeaseGranted)])
            events += [*fresh, *self._heed_rules()]
        seen = self._unheard + list(self._sense(now))
        self._step("sensed")
        grants = self._looking.has_read_all()
        if seen or events or grants != self._grants or self._rounds.is_due(self.engine.mind, now):
            try:
                events += self.engine.learn(seen, choose if grants else None)
                self._rounds.done(self.engine.mind, now)
                self._grants = grants
                self._unheard, self._trouble = [], ""
            except WorldError as error:  # nothing is forgotten that has come back from the world
                self._unheard, self._trouble = seen, str(error)
                self._rounds.put_off(now)
        events += self._heed_wish()
        self._step("remembered")
        self._act(events)
        self.resting.heed_events(events)
        self._say(show, events)

    def _sleep(self) -> None:
        """Sleep until something is heard or it is time."""
        now = self.engine.mind.now()
        rests = self.resting.rests(self._poll, idle=self._is_idle(), now=now)
        look = self._looking.next_look(calm=rests)
        most = now + self.resting.most_ms(rests=rests)
        times = [self._rounds.due(self.engine.mind), self._jobs.next_due(), look, most]
        wait = 0 if self._jobs.has_news else max(0, min(each for each in times if each is not None) - now)
        if self._unheard:
            wait = BUSY_MS
        if not wait:
            return  # whatever there is, is heard without being asked for
        woken = self._poll.poll(self._leaving.wait_ms(wait))
        if woken:
            self.resting.hear(self.engine.mind.now())
        if any(descriptor == self._wake for descriptor, _ in woken):
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)

    def _is_idle(self) -> bool:
        """Say whether nothing is under way, so that whatever comes next is heard of."""
        if self.forest.occupancy.total or self._unheard or not self._jobs.only_left(CLEARING):
            return False
        return not (self._beside.owes or self._leaving.has_begun)

    def _check_journal(self, now: int) -> None:
        """Look now and then whether what we write is what others read; else there is no going on."""
        if now >= self._checked_at + BUSY_MS:
            self._checked_at = now
            self._journal.ensure_in_place()

    def _catch_up(self) -> list[Event]:
        """Take in what others have decided."""
        self._bell.hear()
        mind = self.engine.mind
        return mind.catch_up(self._journal.since(mind.seq)) if self._journal.changed_since(mind.seq) else []

    def _heed_rules(self) -> list[Event]:
        """Go by the settings that are in force by now, before anything is decided by those from before."""
        events, trouble = self._rules.heed(self.engine)
        self._trouble = trouble or self._trouble
        return events

    def _sense(self, now: int) -> Iterator[o.Observation]:
        """Hear what has become of commands, threads, artifacts and the machine."""
        yield from self._upkeep.look(self.forest, now)
        yield from self._hearing.look(self.forest, now)
        self._jobs.hear(self._attempts.poll())
        yield from self._jobs.poll()
        yield from self._looking.gather(self.forest, self._hands())
        yield from self._problems()
        yield from self._beside.look(self.forest, self.engine.mind.seq, now)
        yield from self.resting.look(self.forest, now)

    def _hands(self) -> FileHands:
        """Return the hands as the present settings have them."""
        return self._rules.hands

    def _problems(self) -> Iterator[o.Observation]:
        """Report what effects wait for that only a person can change, and what they wait for no longer."""
        present = {place: str(problem) for place, problem in self._jobs.problems().items()}
        if present != self._told:
            for place in self._told.keys() - present.keys():
                yield o.Noticed(place, "")
            for place, text in present.items():
                yield o.Noticed(place, text)
            self._told = present

    def _heed_wish(self) -> list[Event]:
        """Do as a person asks."""
        wish, reason = self._wish, f"{STOPPED}{self._wisher}"
        if wish is Wish.STOP_NOW:
            self._leaving.press(reason)
        if wish is self._heeded:
            return []
        try:
            events = self.engine.learn([o.EngineDrains(self._wisher)])
            if wish is Wish.STOP_NOW:
                events += self.engine.mind.decide(lambda forest, now: stop_all(forest, self._wisher))
        except WorldError as error:
            self._trouble = str(error)
            if wish is Wish.STOP_NOW:
                self._leaving.give_up(reason)
            return []
        self._heeded = wish
        return events

    def _act(self, events: Iterable[Event]) -> None:
        """Begin what the changed loops are owed."""
        self._beside.heed(self.forest, events, self.engine.mind.seq, self.engine.mind.now())
        touched = dict.fromkeys(each.loop for each in events if isinstance(each, e.LoopEvent))
        for loop_id in touched:
            loop = self.forest.loops[loop_id]
            self._effects.heed(self.forest, loop)
            self._perform(owed_to(self.forest, loop))
            if loop.status in _OVER or loop.generation > 1:
                self._effects.tidy(self.forest, loop)
            if loop.status in _LOOKED_AT:
                self._looking.forget(loop_id)
        if not self._unheard:
            self._perform(owed_beside(self.forest))
        if not self._leaving.has_begun:
            self._effects.declare(self.forest, self.engine.mind.find_entry)
        if self._recalls != self.engine.mind.recalls and not self._unheard and not self._jobs.has_news:
            self._recalls = self.engine.mind.recalls  # what changed meanwhile was never told as events
            self._perform(owed(self.forest))

    def _perform(self, effects: Iterable[Effect]) -> None:
        """Begin what is owed; of an engine that ends at once, what ends something."""
        for effect in list(effects):
            if self._leaving.may_begin(effect):
                self._effects.begin(self.forest, self.engine.mind.find_entry, effect)

    def _say(self, show: Show, events: list[Event]) -> None:
        """Let whoever watches see what has happened."""
        show(self.forest, events, self.engine.mind.now())


CLEARING = frozenset({"tidy", "pack", "tips"})
"""Acts that keep no engine whose work has settled, where somebody else keeps them."""
_OVER = frozenset({Status.COMPLETE, Status.INVALIDATED})
_LOOKED_AT = frozenset({Status.COMPLETE, Status.PENDING, Status.PARKED, Status.FAILED})  # a file may count by now
