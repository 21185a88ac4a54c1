"""Supervisors that work for no launcher of ours: which has an attempt in hand, how it is told to end, and is woken.

A claim lies where commands can write. So whom it names is believed only if that process bears the attempt's mark, and
only after whom the journal names; and it is a signal that ends an attempt, never a file.

Knows processes and run folders. Must never know why an attempt is to end.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loopr.world.launcher import proc, traces, words
from loopr.world.launcher.words import Run
from loopr.world.processes.news import Live, Process

STOPS = 3  # so many looks in a row may find one stopped, until it has to go


class Supervisors:
    """All that we wait for."""

    def __init__(self, epoll: select.epoll) -> None:
        """Name what is woken when one of them is gone."""
        self._epoll, self._boot_id = epoll, proc.boot_id()
        self._by_pidfd: dict[int, Live] = {}
        self._stopped: dict[Process, int] = {}

    def lives(self, run: Run) -> bool:
        """Tell whether the command of a claim lives."""
        return run.boot_id == self._boot_id and proc.is_alive(run.pid, run.pid_start)

    def watch(self, live: Live, run: Run | None) -> bool:
        """Wait for the end of the supervisor that has an attempt in hand; False if there is none."""
        self.let_go(live)
        for pid, start in self._named(live, run):
            found = proc.grasp(pid, start)
            if found is None:
                continue
            if traces.bears_mark(pid, live.id) or (run is not None and not run.launcher_start and traces.is_ours(pid)):
                live.pidfd = found
                live.depends_on = ((pid, start), *self._launcher(run))
                self._by_pidfd[found] = live
                self._epoll.register(found, select.EPOLLIN)
                if live.wish is not None:
                    tell_to_end(live)
                return True
            os.close(found)
        return False

    def is_between(self, live: Live, run: Run, ours: int) -> bool:
        """Tell whether a launcher lives, not ours, that will find another supervisor for what it has in hand."""
        live.depends_on = self._launcher(run) if run.launcher != ours else ()
        return bool(live.depends_on)

    def heard(self, descriptor: int) -> Live | None:
        """Return whose supervisor is gone, if that is what woke us."""
        live = self._by_pidfd.get(descriptor)
        if live is not None:
            self.let_go(live)
        return live

    def let_go(self, live: Live) -> None:
        """Stop waiting for a supervisor."""
        live.depends_on = ()
        if live.pidfd >= 0:
            self._epoll.unregister(live.pidfd)
            del self._by_pidfd[live.pidfd]
            os.close(live.pidfd)
            live.pidfd = -1

    def look(self, processes: set[Process]) -> None:
        """Wake whom somebody has stopped, and end one that is stopped again and again: what it had in hand goes on."""
        for child in [child for live in self._by_pidfd.values() for child in traces.newborn(live.depends_on[0][0])]:
            proc.rouse(*child)
        found = {each: self._stopped.get(each, 0) + 1 for each in processes if proc.rouse(*each)}
        for each in [each for each, looks in found.items() if looks > STOPS]:
            proc.send(*each, signal.SIGKILL)
        self._stopped = found

    def _named(self, live: Live, run: Run | None) -> Iterator[Process]:
        """Give whom the journal names, and then whom the claim does: another one may have taken over since."""
        pid, start, boot_id = words.read_supervisor(live.supervisor)
        if boot_id == self._boot_id:
            yield pid, start
        if run is not None and run.boot_id == self._boot_id:
            yield run.supervisor, run.supervisor_start

    def _launcher(self, run: Run | None) -> tuple[Process, ...]:
        """Return the launcher of a claim if it lives; one of before has left no start time."""
        if run is None or run.boot_id != self._boot_id or not run.launcher_start:
            return ()
        lives = proc.is_alive(run.launcher, run.launcher_start) and traces.is_ours(run.launcher)
        return ((run.launcher, run.launcher_start),) if lives else ()


def tell_to_end(live: Live) -> None:
    """Tell a supervisor to end its attempt, and why, if the disk takes that; whatever lies there is not followed."""
    why = Path(live.folder, words.KILL)
    with suppress(OSError):
        why.unlink(missing_ok=True)
        with why.open("x", errors="replace") as file:
            file.write(live.wish or "")
    with suppress(OSError):  # it ended meanwhile
        signal.pidfd_send_signal(live.pidfd, signal.SIGTERM)
        signal.pidfd_send_signal(live.pidfd, signal.SIGCONT)
