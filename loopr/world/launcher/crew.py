"""The launcher's supervisors: who has which attempt, and what becomes of it when one dies.

Supervisors are forked once per slot and used again. The launcher is a subreaper, so that it inherits the command of a
supervisor that was killed, learns its real end, and gives the watch to another supervisor.

Knows attempts by their ids and folders. Must never know who ordered them, nor what they are for.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH108, PTH110, PTH118, PTH208

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from loopr.world.launcher import proc, supervisor, traces, words
from loopr.world.launcher.slate import UNKNOWN, Slate
from loopr.world.launcher.stream import make_pipes
from loopr.world.launcher.wire import Wire
from loopr.world.launcher.words import Outcome, Usage

IDLE_SLOTS = 16  # kept for the next attempts
TRIES = 20  # so many supervisors may die of one attempt
STOPS = 10  # so often a supervisor of one attempt may be stopped: an accident happens once
STRANGERS, STRANGER_SECS = 4096, 30.0
BIRTH_MS = 500
STOPPED = "its supervisor was stopped again and again"

Pipes = tuple[int, int]
End = tuple[int, Usage]


class Job:
    """An attempt in the hands of the launcher."""

    __slots__ = ("began", "ended", "folder", "id", "line", "pid", "slot", "stops", "tries", "why", "wish")

    def __init__(self, attempt_id: str, folder: str, line: bytes = b"") -> None:
        """Begin with the order as it was said; an attempt that is to be adopted has none."""
        self.id, self.folder, self.line = attempt_id, folder, line
        self.slot: Slot | None = None
        self.pid = 0
        self.began = b""
        self.ended: End | None = None
        self.tries = self.stops = 0
        self.wish = b""  # that it ends: said again to whoever takes over
        self.why = ""  # we have ended it


class Slot:
    """A supervisor and what it has in hand."""

    __slots__ = ("job", "pid", "pipes", "slate", "wire")

    def __init__(self, pid: int, wire: Wire, pipes: Pipes, slate: Slate) -> None:
        """Begin idle; pipes and slate outlive the supervisor, and with them what its command said and did last."""
        self.pid, self.wire, self.pipes, self.slate = pid, wire, pipes, slate
        self.job: Job | None = None


class Crew:
    """All supervisors and their jobs."""

    def __init__(self, poll: select.poll, say: Callable[[bytes], None]) -> None:
        """Name what waits for the supervisors' words, and what hears the news."""
        self.jobs: dict[str, Job] = {}
        self.slots: dict[int, Slot] = {}  # by descriptor
        self._by_pid: dict[int, Slot] = {}
        self._unborn: dict[str, Job] = {}
        self._help_at = 0.0
        self._idle: list[Slot] = []
        self._strangers: dict[int, tuple[float, End]] = {}
        self._poll, self._say = poll, say
        self._most_idle = IDLE_SLOTS
        self._pid = os.getpid()

    def run(self, job: Job) -> None:
        """Have an attempt started."""
        self.jobs[job.id] = job
        self._give(job, job.line)

    def adopt(self, job: Job, pipes: Pipes | None = None) -> None:
        """Have an attempt watched that nobody watches any more, and that is never started again; pipes may be here."""
        self.jobs[job.id] = job
        run = words.read_run(job.folder)
        job.pid = pid = (run.pid if run else 0) or job.pid
        job.line = b""
        job.ended = job.ended or self._known_end(pid)
        status, usage = job.ended or (None, (0.0, 0.0, 0))
        seen = proc.stat(pid) if pid > 0 and status is None else None
        mine = seen is not None and seen.parent == self._pid
        order = {"do": "adopt", "id": job.id, "folder": job.folder, "pid": pid, "mine": mine, "why": job.why}
        self._give(job, words.encode({**order, "status": status, "usage": usage}), pipes)

    def kill(self, job: Job, line: bytes) -> None:
        """Pass on the wish that an attempt ends."""
        job.wish = line
        if job.slot is not None:
            job.slot.wire.send(line)

    def hear(self, slot: Slot) -> None:
        """Hear what a supervisor says."""
        for line in slot.wire.lines():
            if slot.job is not None:
                self._note(slot, slot.job, line)
        if slot.wire.closed:  # what becomes of its attempt is decided when it has been reaped
            self._let_go(slot)

    def reap(self) -> None:
        """Take note of dead supervisors, and of the strangers that dead supervisors left to us."""
        dead: list[Slot] = []
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
                if not pid:
                    break
                if os.WIFSTOPPED(status):
                    self._rouse(pid)
                    continue
                slot = self._by_pid.pop(pid, None)
                if slot is not None:
                    dead.append(slot)
                else:
                    self._note_stranger(pid, status, (used.ru_utime, used.ru_stime, used.ru_maxrss))
        except ChildProcessError:
            pass
        for slot in dead:
            self._mourn(slot)

    def _rouse(self, pid: int) -> None:
        """Let a supervisor go on that somebody has stopped; one that never gets to its clocks is ended with its crew.

        A command that we inherited may be stopped: it is woken when it has to end.
        """
        slot = self._by_pid.get(pid)
        job = slot.job if slot is not None else None
        if job is not None:
            job.stops += 1
        if job is not None and job.stops > STOPS:
            job.why = STOPPED
            for seen in proc.descendants(pid).values():
                proc.send(seen.pid, seen.start, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        elif slot is not None:
            os.kill(pid, signal.SIGCONT)

    @property
    def patience_ms(self) -> int | None:
        """How long to wait for something to happen."""
        return BIRTH_MS if self._unborn else None

    def help_births(self) -> None:
        """Let commands go on that somebody has stopped before they began: their supervisors are held up by them."""
        if not self._unborn or time.monotonic() < self._help_at:
            return
        self._help_at = time.monotonic() + BIRTH_MS / 1000
        for slot in [job.slot for job in self._unborn.values() if job.slot is not None]:
            for child in traces.newborn(slot.pid):
                proc.rouse(*child)

    def shrink(self) -> None:
        """Keep no supervisor that has nothing to do, now and from now on."""
        self._most_idle = 0
        while self._idle:
            self._let_go(self._idle.pop())

    def _note(self, slot: Slot, job: Job, line: bytes) -> None:
        """Take note of what a supervisor says about its attempt, and pass it on."""
        said, _ = words.parts_of(line)
        if said["id"] != job.id:
            return
        if said["did"] == "began":
            end = self._known_end(said["pid"]) if job.pid == UNKNOWN else None
            job.pid, job.began, job.line = said["pid"], line + b"\n", b""
            self._unborn.pop(job.id, None)
            if end is not None:  # before anybody knew whose it was
                self._tell_end(job, end)
        else:
            self._finish(job)
            self._rest(slot, bool(said.get("soiled")))
        self._say(line + b"\n")

    def _finish(self, job: Job) -> None:
        """Forget a job."""
        self.jobs.pop(job.id, None)
        self._unborn.pop(job.id, None)
        if job.slot is not None:
            job.slot.job = None
            job.slot = None

    def _rest(self, slot: Slot, soiled: bool) -> None:
        """Keep a supervisor for the next attempt, unless there are enough, or its pipes are not its own any more."""
        if len(self._idle) < self._most_idle and not soiled:
            self._idle.append(slot)
        else:
            self._let_go(slot)

    def _let_go(self, slot: Slot) -> None:
        """Have no more to do with a supervisor, which then ends by itself; once is enough."""
        if self.slots.pop(slot.wire.fd, None):
            self._poll.unregister(slot.wire.fd)
            slot.wire.close()
        if slot in self._idle:
            self._idle.remove(slot)

    def _give(self, job: Job, order: bytes, pipes: Pipes | None = None) -> None:
        """Hand an order to a supervisor that is idle, or to a new one, as which only one has pipes from before."""
        try:
            slot = self._idle.pop() if self._idle and not pipes else self._fork(pipes or make_pipes())
        except OSError as error:
            self._give_up(job, error)
            return
        slot.job, job.slot = job, slot
        if not self._unborn:
            self._help_at = time.monotonic() + BIRTH_MS / 1000
        self._unborn[job.id] = job
        slot.slate.clean()
        slot.wire.send(order + job.wish)
        if slot.wire.clogged:
            self._poll.modify(slot.wire.fd, select.POLLIN | select.POLLOUT)

    def _give_up(self, job: Job, error: OSError) -> None:
        """Say that an attempt has nobody to watch it."""
        self._finish(job)
        message = f"it could not be watched: {error.strerror}"
        cause = errno.errorcode.get(error.errno or 0, "")
        outcome = Outcome("lost" if job.pid or not job.line else "not_started", cause=cause, message=message)
        self._say(words.encode({"did": "done", "id": job.id}, b"\t" + words.encode(outcome._asdict())))

    def _fork(self, pipes: Pipes) -> Slot:
        """Fork a supervisor that reads from these pipes, or close them."""
        line: tuple[socket.socket, ...] = ()
        try:
            slate = Slate()
            line = socket.socketpair()
            pid = os.fork()
        except OSError:
            _close(*pipes, *(end.detach() for end in line))
            raise
        ours, theirs = (end.detach() for end in line)
        if not pid:
            _close_all_but({theirs, *pipes})
            supervisor.serve(theirs, pipes, slate, self._pid)
        os.close(theirs)
        slot = Slot(pid, Wire(ours), pipes, slate)
        self.slots[slot.wire.fd] = self._by_pid[pid] = slot
        self._poll.register(slot.wire.fd, select.POLLIN)
        return slot

    def _mourn(self, slot: Slot) -> None:
        """Find out what a dead supervisor did last, and see that its attempt goes on."""
        if not slot.wire.closed:
            self.hear(slot)  # its last words
        self._let_go(slot)
        job, slate = slot.job, slot.slate
        if job is not None:
            job.pid, job.ended = slate.pid() or job.pid, job.ended or slate.end()
        slate.close()
        if job is None:
            _close(*slot.pipes)
            return
        self._finish(job)
        job.tries += 1
        if not job.pid or (job.pid == UNKNOWN and not self._has_orphans()):
            _take_back(job, slot)
        if not self._goes_on_elsewhere(job):
            self.adopt(job, slot.pipes)
        else:
            _close(*slot.pipes)

    def _goes_on_elsewhere(self, job: Job) -> bool:
        """See to the attempt of a dead supervisor, unless it has to be adopted."""
        if job.tries > TRIES:
            self._give_up(job, OSError(0, f"{TRIES} of them died of this attempt"))
        elif words.read_outcome(job.folder):
            self._say(words.encode({"did": "done", "id": job.id}))
        elif job.line and not os.path.exists(os.path.join(job.folder, words.RUN)):
            self.run(job)  # it was never claimed, so it never ran
        elif (run := words.read_run(job.folder)) and proc.is_alive(run.supervisor, run.supervisor_start):
            self._say(words.encode({"did": "taken", "id": job.id}))
        else:
            return False
        return True

    def _has_orphans(self) -> bool:
        """Tell whether we have, or had of late, a child of which nobody knows whose it is.

        Whatever a dead supervisor has begun came to us before we could reap the supervisor itself.
        """
        known = {*self._by_pid, *(job.pid for job in self.jobs.values())}
        if any(time.monotonic() - at < STRANGER_SECS for at, _ in self._strangers.values()):
            return True
        seen_now = (proc.stat(pid) for pid in proc.pids() if pid not in known)  # a list of children may leave one out
        return any(seen is not None and seen.parent == self._pid for seen in seen_now)

    def _note_stranger(self, pid: int, status: int, usage: Usage) -> None:
        """Tell whoever watches it how a process ended that is not a supervisor.

        Nobody may watch it yet: a command can be reaped before its dead supervisor is.
        """
        for job in self.jobs.values():
            if job.pid == pid and job.slot is not None and job.slot.pid in self._by_pid:
                self._tell_end(job, (status, usage))
                return
        self._strangers.pop(pid, None)
        self._strangers[pid] = (time.monotonic(), (status, usage))
        while len(self._strangers) > STRANGERS:
            del self._strangers[next(iter(self._strangers))]

    def _tell_end(self, job: Job, end: End) -> None:
        """Tell the supervisor of an attempt how its command ended."""
        job.ended = end
        if job.slot is not None:
            job.slot.wire.send(words.encode({"do": "reaped", "id": job.id, "status": end[0], "usage": end[1]}))

    def _known_end(self, pid: int) -> End | None:
        """Return how a process ended that nobody watched at that moment, if that was not long ago: pids come again."""
        at, end = self._strangers.pop(pid, (0.0, None))
        return end if time.monotonic() - at < STRANGER_SECS else None


def _take_back(job: Job, slot: Slot) -> None:
    """Take away the claim of a dead supervisor that had not come to start its command: the attempt never ran."""
    run = words.read_run(job.folder)
    if job.line and run and run.supervisor == slot.pid and not words.read_outcome(job.folder):
        with suppress(OSError):
            os.unlink(os.path.join(job.folder, words.RUN))


def _close(*descriptors: int) -> None:
    """Close descriptors that are certainly ours."""
    for descriptor in descriptors:
        os.close(descriptor)


def _close_all_but(kept: set[int]) -> None:
    """Close what a fork inherited: the launcher's ends must be nobody else's."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the descriptor of the listing itself
                continue
