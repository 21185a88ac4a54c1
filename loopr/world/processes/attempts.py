"""All attempts that the engine waits for, and what became of each.

What is true stands in the folder of an attempt; what the launcher says is only when to look. So a lost line, a dead
launcher or a restart of the engine all end in the same question, `_reconsider`: is there an outcome, who watches it,
and was it ever claimed.

Knows run folders and the launcher. Must never know why an attempt runs, nor decide that it should.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from loopr.errors import Impossible, WorldError
from loopr.world.launcher import proc, words
from loopr.world.launcher.words import AttemptSpec, Message, Outcome, Run
from loopr.world.processes.link import Link, Rest
from loopr.world.processes.news import Began, Ended, Live, State
from loopr.world.processes.progress import last_lines
from loopr.world.processes.strays import sweep

LINGER_SECS = 5.0
TRIES = 5
RETRY_SECS = 1.0


class Attempts:
    """The attempts of one workspace; `open` is the way to get them, `close` the way to leave them running."""

    def __init__(self, state: Path, linger_secs: float) -> None:
        """Begin with nothing."""
        self._state, self._linger_secs = state.resolve(), linger_secs
        self._boot_id = proc.boot_id()
        self._live: dict[str, Live] = {}
        self._events: list[Began | Ended] = []
        self._unsettled: dict[str, Live] = {}
        self._by_pidfd: dict[int, Live] = {}
        self._link: Link | None = None
        self._trouble = ""  # why there is no launcher to be had
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._rest = Rest(self._bell, RETRY_SECS)

    @classmethod
    def open(cls, state: Path, *, linger_secs: float = LINGER_SECS) -> Self:
        """Connect to the launcher of a state folder, if one runs; a new one will wait `linger_secs` for work."""
        attempts = cls(state, linger_secs)
        attempts._connect(Link.find(attempts._state))
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
            self._ensure_link()
            live = Live(spec.id, str(spec.folder), spec)
            self._live[spec.id] = live
            self._send(words.order_of(spec))

    def kill(self, attempt_id: str, reason: str = "") -> None:
        """Have an attempt ended with all that belongs to it; one that is over stays as it ended."""
        live = self._live.get(attempt_id)
        if live is None or live.wish is not None:
            return
        live.wish = reason
        if live.pidfd >= 0:
            self._leave_wish(live)
        elif self._link is None:
            self._unsettle(live)
            self._ring()
        else:
            self._say({"do": "kill", "id": attempt_id, "reason": reason})

    def adopt(self, folders: Mapping[str, Path]) -> dict[str, State]:
        """Take up attempts of an earlier engine, by their run folders, and say what became of each.

        `ended`, `alive` and `vanished` ones are followed by Ended, the last as soon as nothing of them is left; an
        `unclaimed` one never ran and may be submitted.
        """
        if self._link is None:
            self._connect(Link.find(self._state))
        states: dict[str, State] = {}
        for attempt_id, folder in folders.items():
            if not self._is_live(attempt_id):
                live = self._live[attempt_id] = Live(attempt_id, str(folder), None)
                states[attempt_id] = self._first_look(live)
            else:
                states[attempt_id] = "alive"
        self._ring()
        return states

    def poll(self, timeout_secs: float = 0) -> list[Began | Ended]:
        """Return what has happened; waits for something at most so long.

        Nothing has to be polled for by time: whatever is due makes `fileno` readable.
        """
        looks = bool(self._unsettled) and not self._rest.lasts
        woken = self._epoll.poll(0 if self._events or looks else timeout_secs)
        for descriptor, _ in woken:
            if descriptor == self._bell:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
            elif descriptor in self._by_pidfd:
                live = self._by_pidfd[descriptor]
                self._let_go(live)
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
        for live in self._live.values():
            self._let_go(live)
        self._live.clear()
        self._unsettled.clear()
        self._rest.close()
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1
        self._epoll.close()
        return events

    # -- the line to the launcher

    def _connect(self, link: Link | None) -> None:
        """Take over a line."""
        self._link = link
        if link is not None:
            self._epoll.register(link.wire.fd, select.EPOLLIN)

    def _disconnect(self) -> None:
        """Drop the line."""
        if self._link is not None:
            self._epoll.unregister(self._link.wire.fd)
            self._link.wire.close()
            self._link = None

    def _ensure_link(self) -> Link:
        """Return the line, made anew where there is none."""
        if self._link is None:
            self._connect(Link.find(self._state) or Link.make(self._state, self._linger_secs))
        assert self._link is not None
        return self._link

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
            live.began, live.spec = True, None
            self._events.append(Began(live.id, said["pid"], said["at"]))
        if said["did"] == "done":
            found = words.outcome_of(words.decode(rest)) if rest else words.read_outcome(live.folder)
            self._end(live, found or Outcome("lost", message="its outcome cannot be read"))
        elif said["did"] == "began":
            return
        else:  # it has been taken by another supervisor, or the launcher does not know it
            if self._link is not None:
                self._link.live.discard(live.id)
            self._unsettle(live)

    # -- what is true

    def _unsettle(self, live: Live) -> None:
        """Note that an attempt must be looked at, which `poll` does."""
        self._unsettled[live.id] = live

    def _settle(self) -> None:
        """Look at what must be looked at, and again after a rest where there is no launcher to settle it with."""
        try:
            for live in list(self._unsettled.values()):
                self._reconsider(live)
                self._unsettled.pop(live.id, None)
            self._trouble = ""
        except WorldError as error:
            self._trouble = str(error)
            self._rest.begin()

    def _first_look(self, live: Live) -> State:
        """Find out what became of an attempt of an earlier engine; where no launcher is to be had, `poll` goes on."""
        try:
            return self._reconsider(live)
        except WorldError:
            self._unsettle(live)
            return "alive"

    def _reconsider(self, live: Live) -> State:
        """Find out what became of an attempt, and see that its end will be heard of."""
        outcome = words.read_outcome(live.folder)
        if outcome is not None:
            self._end(live, outcome)
            return "ended"
        run = words.read_run(live.folder)
        if run is not None:
            self._note_claim(live, run)
        if self._link is not None and live.id in self._link.live:
            self._repeat_wish(live)
            return "alive"
        if run is None and not os.path.lexists(os.path.join(live.folder, words.RUN)):  # noqa: PTH118
            return self._start_over(live)
        if run is not None and self._watch_supervisor(live, run):
            return "alive"
        self._say({"do": "adopt", "id": live.id, "folder": live.folder})
        self._repeat_wish(live)
        return "alive" if run and run.boot_id == self._boot_id and proc.is_alive(run.pid, run.pid_start) else "vanished"

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
        live.tries += 1
        if live.spec is None:
            del self._live[live.id]
            return "unclaimed"
        if live.wish is not None:
            self._end(live, Outcome("killed", message=live.wish))
            return "ended"
        if live.tries > TRIES:
            died = f"the launcher died {TRIES} times before it started this"
            self._end(live, Outcome("not_started", message=self._trouble or died))
            return "ended"
        self._send(words.order_of(live.spec))
        return "alive"

    def _watch_supervisor(self, live: Live, run: Run) -> bool:
        """Wait for the end of a supervisor that works for no launcher of ours; False if there is none."""
        if run.boot_id != self._boot_id or (self._link is not None and run.launcher == self._link.pid):
            return False
        found = proc.grasp(run.supervisor, run.supervisor_start)
        if found is None:
            return False
        self._let_go(live)
        live.pidfd = found
        self._by_pidfd[found] = live
        self._epoll.register(found, select.EPOLLIN)
        if live.wish is not None:
            self._leave_wish(live)
        return True

    def _leave_wish(self, live: Live) -> None:
        """Ask a supervisor to end its attempt; the wish lies in the folder, so that it is nobody else's."""
        with suppress(OSError):  # it ended meanwhile, or its folder is gone and nothing can be asked of it
            Path(live.folder, words.KILL).write_text(live.wish or "", errors="replace")
            signal.pidfd_send_signal(live.pidfd, signal.SIGTERM)

    def _let_go(self, live: Live) -> None:
        """Stop waiting for a supervisor."""
        if live.pidfd >= 0:
            self._epoll.unregister(live.pidfd)
            del self._by_pidfd[live.pidfd]
            os.close(live.pidfd)
            live.pidfd = -1

    def _end(self, live: Live, outcome: Outcome) -> None:
        """Report the end of an attempt."""
        self._let_go(live)
        self._live.pop(live.id, None)
        self._unsettled.pop(live.id, None)
        self._events.append(Ended(live.id, outcome))

    def _ring(self) -> None:
        """Make our own descriptor readable: there is something that no other one says."""
        if self._events or self._unsettled:
            os.eventfd_write(self._bell, 1)
