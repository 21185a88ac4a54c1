"""All attempts that the engine waits for, and what became of each.

What is true stands in the folder of an attempt; what the launcher says is only when to look. So a lost line, a dead
launcher or a restart of the engine all end in the same question, `_reconsider`: is there an outcome, who watches it,
and was it ever claimed. The launcher is ours alone: one of an earlier engine ends what it has in hand, and what it was
still to begin it never does.

Knows run folders and the launcher. Must never know why an attempt runs, nor decide that it should.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from loopr.errors import Impossible, WorldError
from loopr.world.launcher import proc, words
from loopr.world.launcher.words import AttemptSpec, Message, Outcome, Run
from loopr.world.processes.claims import Claims
from loopr.world.processes.link import Link, Rest
from loopr.world.processes.news import Began, Ended, Live, State
from loopr.world.processes.progress import last_lines
from loopr.world.processes.strays import sweep
from loopr.world.processes.supervisors import Supervisors, tell_to_end

TRIES = 5
RETRY_SECS, LOOK_SECS = 1.0, 1.0
NAME_OF_BEFORE = "launcher.sock"


class Attempts:
    """The attempts of one workspace; `open` is the way to get them, `close` the way to leave them running."""

    def __init__(self, state: Path) -> None:
        """Begin with nothing."""
        self._state = state.resolve()
        self._claims = Claims(self._state)
        self._live: dict[str, Live] = {}
        self._events: list[Began | Ended] = []
        self._unsettled: dict[str, Live] = {}
        self._link: Link | None = None
        self._trouble = ""  # why there is no launcher to be had
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._rest = Rest(self._bell, RETRY_SECS)
        self._supervisors, self._look_at = Supervisors(self._epoll), 0.0

    @classmethod
    def open(cls, state: Path) -> Self:
        """Begin in a state folder, as whoever holds its lock; orders of an earlier engine begin nothing from now on."""
        attempts = cls(state)
        attempts._claims.end_earlier()
        (attempts._state / NAME_OF_BEFORE).unlink(missing_ok=True)  # the launcher of an older loopr hears by it
        return attempts

    @property
    def live(self) -> frozenset[str]:
        """The attempts whose end `poll` has not reported."""
        return frozenset(self._live) | {event.id for event in self._events}

    @property
    def launcher(self) -> int:
        """The pid of the launcher that we speak to, 0 where there is none."""
        return self._link.pid if self._link else 0

    def _is_live(self, attempt_id: str) -> bool:
        """Tell whether the end of an attempt is still to be reported."""
        return attempt_id in self._live or any(event.id == attempt_id for event in self._events)

    def fileno(self) -> int:
        """Return a descriptor that is readable when `poll` has something to do."""
        return self._epoll.fileno()

    def submit(self, spec: AttemptSpec) -> None:
        """Have a command run once; `WorldError` if there is no launcher to be had, and then nothing was submitted."""
        if not self._is_live(spec.id):
            live = Live(spec.id, str(spec.folder), spec)
            self._order(live, spec)
            self._live[spec.id] = live

    def kill(self, attempt_id: str, reason: str = "") -> None:
        """Have an attempt ended with all that belongs to it; one that is over stays as it ended."""
        live = self._live.get(attempt_id)
        if live is None or live.wish is not None:
            return
        live.wish = reason
        if live.pidfd >= 0:
            tell_to_end(live)
        elif self._link is None:
            self._unsettle(live)
            self._ring()
        else:
            proc.rouse(self._link.pid, self._link.start)
            self._say({"do": "kill", "id": attempt_id, "reason": reason})

    def adopt(self, folders: Mapping[str, Path], supervisors: Mapping[str, str] | None = None) -> dict[str, State]:
        """Take up attempts of an earlier engine, by their run folders, and say what became of each.

        `supervisors` names who watched some of them, as `Began` said it. `ended`, `alive` and `vanished` ones are
        followed by Ended, the last as soon as nothing of them is left; an `unclaimed` one never ran and may be
        submitted.
        """
        states: dict[str, State] = {}
        for attempt_id, folder in folders.items():
            if not self._is_live(attempt_id):
                live = self._live[attempt_id] = Live(attempt_id, str(folder), None)
                live.supervisor = (supervisors or {}).get(attempt_id, "")
                states[attempt_id] = self._first_look(live)
            else:
                states[attempt_id] = "alive"
        self._ring()
        return states

    def poll(self, timeout_secs: float = 0) -> list[Began | Ended]:
        """Return what has happened; waits for something at most so long.

        Whatever is due makes `fileno` readable. Only that somebody has stopped a process of ours is seen by asking now
        and then.
        """
        looks = bool(self._unsettled) and not self._rest.lasts
        woken = self._epoll.poll(0 if self._events or looks else min(timeout_secs, LOOK_SECS))
        if self._live and time.monotonic() >= self._look_at:
            self._look()
        for descriptor, _ in woken:
            if descriptor == self._bell:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
            elif live := self._supervisors.heard(descriptor):
                self._unsettle(live)
            elif self._link is not None:
                self._hear(self._link)
        if self._unsettled and not self._rest.lasts:
            self._settle()
        events, self._events = self._events, []
        return events

    def tail(self, attempt_id: str, lines: int = 1) -> list[str]:
        """Return the last lines of output of a live attempt."""
        live = self._live.get(attempt_id)
        return last_lines(Path(live.folder), lines) if live else []

    def sweep(self, workspace: str, spares: Callable[[str], bool] = lambda lease: False) -> int:
        """Kill whatever carries the mark of a workspace and belongs to no live attempt; return how many that were.

        `spares` says which leases are none of ours.
        """
        live = {each.lease for each in self._live.values()}
        return sweep(workspace, lambda lease: lease in live or spares(lease))

    def close(self, drain_secs: float = 0) -> list[Began | Ended]:
        """Wait at most so long for what lives, then leave it running, and return what happened. Once is enough."""
        events: list[Began | Ended] = []
        deadline = time.monotonic() + drain_secs
        while self.live and (left := deadline - time.monotonic()) > 0:
            events += self.poll(left)
        self._disconnect()
        self._claims.close()
        for live in self._live.values():
            self._supervisors.let_go(live)
        self._live.clear()
        self._unsettled.clear()
        self._rest.close()
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1
        self._epoll.close()
        return events

    # -- the line to the launcher

    def _disconnect(self) -> None:
        """Drop the line."""
        if self._link is not None:
            self._epoll.unregister(self._link.wire.fd)
            self._link.wire.close()
            self._link = None

    def _ensure_link(self) -> Link:
        """Return the line, made anew where there is none."""
        if self._link is None:
            self._link = Link.make(self._state)
            self._epoll.register(self._link.wire.fd, select.EPOLLIN)
        return self._link

    def _order(self, live: Live, spec: AttemptSpec) -> None:
        """Have the launcher start a command."""
        self._send(words.order_of(spec, self._claims.ensure()))
        live.in_hand = True

    def _look(self) -> None:
        """See that nobody waits for a process of ours that somebody has stopped."""
        self._look_at = time.monotonic() + LOOK_SECS
        found = {each for live in self._live.values() for each in live.depends_on}
        self._supervisors.look(found | ({(self._link.pid, self._link.start)} if self._link else set()))

    def _say(self, message: Message) -> None:
        """Say something to the launcher; a line that breaks now is noticed by hearing it."""
        self._send(words.encode(message))

    def _send(self, line: bytes) -> None:
        """Send a line to the launcher, and be woken when it takes more, as long as there is more."""
        wire = self._ensure_link().wire
        wire.send(line)
        if wire.clogged:
            self._epoll.modify(wire.fd, select.EPOLLIN | select.EPOLLOUT)

    def _hear(self, link: Link) -> None:
        """Hear what the launcher says, or that it is gone."""
        if link.wire.clogged:
            link.wire.flush()
            if not link.wire.clogged:
                self._epoll.modify(link.wire.fd, select.EPOLLIN)
        for line in link.wire.lines():
            self._heed(*words.parts_of(line))
        if link.wire.closed:
            self._disconnect()
            for live in self._live.values():
                live.in_hand = False
                if live.pidfd < 0:
                    self._unsettle(live)

    def _heed(self, said: Message, rest: bytes) -> None:
        """Take note of one thing that the launcher says; about what is over there is no news."""
        if said["did"] == "not_understood":
            raise Impossible(f"the launcher did not understand us: {said['why']}")
        live = self._live.get(said.get("id", ""))
        if live is None:
            return
        if said.get("pid") and not live.began:
            live.began, live.spec, live.supervisor = True, None, said["by"]
            self._events.append(Began(live.id, said["pid"], said["at"], said["by"]))
        if said["did"] == "done":
            found = words.outcome_of(words.decode(rest)) if rest else words.read_outcome(live.folder)
            self._end(live, found or Outcome("lost", message="its outcome cannot be read"))
        elif said["did"] == "began":
            return
        else:  # it has been taken by another supervisor, or the launcher does not know it
            live.in_hand = False
            self._unsettle(live)

    # -- what is true

    def _unsettle(self, live: Live) -> None:
        """Note that an attempt must be looked at, which `poll` does."""
        self._unsettled[live.id] = live

    def _settle(self) -> None:
        """Look at what must be looked at, and again after a rest where there is no launcher to settle it with."""
        try:
            for live in list(self._unsettled.values()):
                if self._reconsider(live) != "between":
                    self._unsettled.pop(live.id, None)
            self._trouble = ""
            if self._unsettled:
                self._rest.begin()
        except WorldError as error:
            self._trouble = str(error)
            self._rest.begin()

    def _first_look(self, live: Live) -> State:
        """Find out what became of an attempt of an earlier engine; where no launcher is to be had, `poll` goes on."""
        state: State = "between"
        with suppress(WorldError):
            state = self._reconsider(live)
        if state == "unclaimed":
            del self._live[live.id]
        elif state == "between":
            self._unsettle(live)
            return "alive"
        return state

    def _reconsider(self, live: Live) -> State:
        """Find out what became of an attempt, and see that its end will be heard of."""
        outcome = words.read_outcome(live.folder)
        if outcome is not None:
            self._end(live, outcome)
            return "ended"
        run = words.read_run(live.folder)
        if run is not None:
            self._note_claim(live, run)
        if live.in_hand:
            self._repeat_wish(live)
            return "alive"
        if self._supervisors.watch(live, run):
            return "alive"
        live.tries += 1
        if run is None and not os.path.lexists(os.path.join(live.folder, words.RUN)):  # noqa: PTH118
            return self._start_over(live)
        if run is not None and live.tries <= TRIES and self._supervisors.is_between(live, run, self.launcher):
            return "between"
        self._say({"do": "adopt", "id": live.id, "folder": live.folder})
        live.in_hand = True
        self._repeat_wish(live)
        return "alive" if run is not None and self._supervisors.lives(run) else "vanished"

    def _note_claim(self, live: Live, run: Run) -> None:
        """Take note of what a claim says; the word of the launcher may have been lost."""
        live.lease, live.spec = run.lease, None
        if run.pid and not live.began:
            live.began = True
            self._events.append(Began(live.id, run.pid, run.started_at))

    def _repeat_wish(self, live: Live) -> None:
        """Say again to the launcher that an attempt is to end."""
        if live.wish is not None:
            self._say({"do": "kill", "id": live.id, "reason": live.wish})

    def _start_over(self, live: Live) -> State:
        """Order an attempt again that nobody has claimed, unless it is not wanted any more."""
        if live.spec is None:
            if live.id in self._unsettled:
                self._end(live, Outcome("lost", message="its launcher took it back before it began"))
            return "unclaimed"
        if live.wish is not None:
            self._end(live, Outcome("killed", message=live.wish))
            return "ended"
        if live.tries > TRIES:
            died = f"the launcher died {TRIES} times before it started this"
            self._end(live, Outcome("not_started", message=self._trouble or died))
            return "ended"
        self._order(live, live.spec)
        return "alive"

    def _end(self, live: Live, outcome: Outcome) -> None:
        """Report the end of an attempt."""
        self._supervisors.let_go(live)
        self._live.pop(live.id, None)
        self._unsettled.pop(live.id, None)
        self._events.append(Ended(live.id, outcome))

    def _ring(self) -> None:
        """Make our own descriptor readable: there is something that no other one says."""
        if self._events or self._unsettled:
            os.eventfd_write(self._bell, 1)
