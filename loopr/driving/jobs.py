"""The acts that are under way, and what each of them waits for: a thread, a command, or a while.

Resumes an act on the thread that asks (`poll`), never on another one. Must never know what an act is about.
"""

from __future__ import annotations

import os
import traceback
from collections import deque
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core.observations import AttemptBegan, Observation
from loopr.driving.acts import Act, Do, Later, Run, StopAsked, Tell, Until
from loopr.errors import LooprError, Problem
from loopr.world.processes import Attempts, Began, Ended, Outcome
from loopr.world.repo.calls import GitFailed

THREADS = 8
RETRY_MS = 500

Broken = Callable[[Exception], Observation | None]
"""Says what it means that an act has failed in a way that nobody foresaw."""


class Key(NamedTuple):
    """What an act is for; a second one of the same key is never begun."""

    kind: str
    loop: str
    attempt: int


class _Job:
    """One act under way."""

    __slots__ = (
        *("act", "began", "broken", "due", "future", "key", "leaves"),
        *("lock", "problem", "run", "stop", "told", "work"),
    )

    def __init__(self, key: Key, act: Act, broken: Broken) -> None:
        self.key, self.act, self.broken = key, act, broken
        self.run = ""
        self.began: AttemptBegan | None = None
        self.future: Future[Any] | None = None
        self.due: int | None = None
        self.problem: Problem | None = None
        self.stop = ""
        self.told = False
        self.work: Callable[[], Any] | None = None  # is on a thread, or is tried again there
        self.lock: Problem | None = None  # of another git, which the work waits for
        self.leaves = False  # it asks for nothing more but threads


class Jobs:
    """All acts under way, the threads that work for them, and the commands that they wait for."""

    def __init__(
        self, attempts: Attempts, clock: Callable[[], int], log: Path, step: Callable[[str], None] = lambda name: None
    ) -> None:
        self.attempts, self._clock, self._log, self._step = attempts, clock, log, step
        self._jobs: dict[Key, _Job] = {}
        self._runs: dict[str, _Job] = {}
        self._ended: dict[str, Outcome] = {}
        self._begun: dict[str, Began] = {}
        self._finished: deque[_Job] = deque()
        self._told: list[Observation] = []
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="loopr")
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a thread has finished its work."""
        return self._bell

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, key: Key) -> bool:
        return key in self._jobs

    def of_kind(self, kind: str) -> list[Key]:
        """List the keys of a kind that are under way."""
        return [key for key in self._jobs if key.kind == kind]

    @property
    def waiting(self) -> set[str]:
        """The loops whose act waits for something that only somebody else can change."""
        return {job.key.loop for job in self._jobs.values() if job.problem is not None}

    def only_waits(self, beside: frozenset[str]) -> bool:
        """Say whether every act, but for some kinds, waits for something that only somebody else can change."""
        return all(job.problem is not None or job.key.kind in beside for job in self._jobs.values())

    def only_left(self, kinds: Container[str]) -> bool:
        """Say whether there are only acts of some kinds, and somebody else keeps each of them."""
        return all(job.problem is not None and job.key.kind in kinds for job in self._jobs.values())

    @property
    def on_threads(self) -> bool:
        """True while a thread is at work for an act."""
        return any(job.future is not None and not job.future.done() for job in self._jobs.values())

    @property
    def running(self) -> list[str]:
        """The commands that acts wait for."""
        return list(self._runs)

    def problems(self) -> Mapping[str, Problem]:
        """Say what acts wait for that only somebody else can change, by the place that it concerns."""
        found = [(job.key, job.problem) for job in self._jobs.values() if job.problem is not None]
        return {problem.where or key.loop: problem for key, problem in found}

    def next_due(self) -> int | None:
        """Return when an act is to be resumed by itself."""
        return min((job.due for job in self._jobs.values() if job.due is not None), default=None)

    @property
    def has_news(self) -> bool:
        """True while acts have something to report that `poll` has not returned."""
        return bool(self._told)

    def last_line(self, loop: str, attempt: int) -> str:
        """Return the last line that a command of an attempt has said."""
        lines = [line for run in self.runs_of(loop, attempt) for line in self.attempts.tail(run)]
        return lines[-1] if lines else ""

    def runs_of(self, loop: str, attempt: int) -> list[str]:
        """List the commands that acts about an attempt wait for."""
        return [run for run, job in self._runs.items() if (job.key.loop, job.key.attempt) == (loop, attempt)]

    # -- beginning and ending

    def begin(self, key: Key, act: Act, broken: Broken) -> None:
        """Begin an act, unless one of its key is under way."""
        if key not in self._jobs:
            job = self._jobs[key] = _Job(key, act, broken)
            self._resume(job, None)

    def stop(self, loop: str, attempt: int, reason: str) -> bool:
        """Ask every act about an attempt to end, with the command that it waits for; say whether there is any."""
        found = [job for job in self._jobs.values() if (job.key.loop, job.key.attempt) == (loop, attempt)]
        for job in found:
            if not job.stop:
                job.stop = reason or "it was told to stop"
                if job.run:
                    self.attempts.kill(job.run, job.stop)
                elif job.due is not None:
                    job.due = self._clock()
        return bool(found)

    def give_way(self, kinds: Container[str], reason: str) -> None:
        """Leave acts of some kinds to the next engine.

        What they run is ended, and none goes on but to what a thread does.
        """
        found = [each for each in self._jobs.values() if each.key.kind in kinds]
        for job in (each for each in found if not each.leaves):
            job.leaves = True
            if job.run:
                self.attempts.kill(job.run, reason)
            elif job.future is None:
                self._drop(job)

    def _drop(self, job: _Job) -> None:
        """Take an act out that is not over: it is owed still."""
        del self._jobs[job.key]
        with suppress(RuntimeError):
            job.act.close()

    def close(self, *, waits: bool = True) -> None:
        """Wait for what threads have in hand, and leave the rest; what runs goes on without us.

        Whoever does not wait for them ends the process: they may be in the middle of anything.
        """
        self._pool.shutdown(wait=waits, cancel_futures=True)
        if not waits:
            return
        for job in self._jobs.values():
            with suppress(RuntimeError):
                job.act.close()
        os.close(self._bell)

    def suppose(self, run: str, outcome: Outcome) -> None:
        """Take it that a command ended so, of which nothing else will ever be heard."""
        if run not in self._runs:
            self._ended.setdefault(run, outcome)

    # -- hearing

    def hear(self, news: list[Began | Ended]) -> None:
        """Take in what has become of commands."""
        for each in news:
            job = self._runs.get(each.id)
            if isinstance(each, Began):
                self._begun[each.id] = each
                self._tell_began(job, each)
            elif job is None:
                self._ended[each.id] = each.outcome
            else:
                self._forget_run(job)
                if job.leaves:
                    self._drop(job)
                else:
                    self._resume(job, each.outcome)

    def poll(self) -> list[Observation]:
        """Resume every act whose wait is over, and return what acts have to report."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._finished:
            self._take_up(self._finished.popleft())
        now = self._clock()
        for job in [each for each in self._jobs.values() if each.due is not None and each.due <= now]:
            job.due = None
            if job.work is not None and (job.told or not job.stop):
                self._submit(job, job.work)
            else:
                self._resume(job, None)
        told, self._told = self._told, []
        return told

    # -- going on

    def _resume(self, job: _Job, value: Any, error: BaseException | None = None) -> None:
        """Let an act go on until it waits for something or is over."""
        self._step(f"{job.key.kind} goes on")
        try:
            while True:
                if job.stop and not job.told:
                    job.told, asked = True, job.act.throw(StopAsked())
                elif error is not None:
                    asked = job.act.throw(error)
                else:
                    asked = job.act.send(value)
                value, error = None, None
                self._step(f"{job.key.kind} asks for {type(asked).__name__}")
                if isinstance(asked, Tell):
                    self._told.append(asked.seen)
                    continue
                if isinstance(asked, Run) and asked.id in self._ended:
                    self._report_began(asked)
                    value = self._ended.pop(asked.id)
                    continue
                self._wait(job, asked)
                return
        except StopIteration as end:
            self._end(job, end.value)
        except Exception as failure:  # an act must not take the engine down with it
            if not isinstance(failure, LooprError | OSError):
                self._note_bug(job, failure)
            self._end(job, job.broken(failure))

    def _take_up(self, job: _Job) -> None:
        """Let an act go on with what a thread has done for it.

        Work that met the lock of another git is done again.
        """
        future, job.future = job.future, None
        if future is None:
            return
        error = future.exception()
        lock = error.lock if isinstance(error, GitFailed) else None
        if lock is not None and job.leaves:
            self._drop(job)
            return
        if lock is not None:
            job.lock = job.problem = lock
            job.due = self._clock() + RETRY_MS
            return
        if job.lock is not None:
            job.lock = job.problem = None
        job.work = None
        self._resume(job, None if error else future.result(), error)

    def _end(self, job: _Job, seen: Observation | None) -> None:
        """Take an act that is over out, and report what it came to."""
        self._step(f"{job.key.kind} is over")
        del self._jobs[job.key]
        if seen is not None:
            self._told.append(seen)

    def _wait(self, job: _Job, asked: Do | Run | Later | Until) -> None:
        """Let an act wait for what it asks for."""
        if job.leaves and not isinstance(asked, Do):
            self._drop(job)
            return
        if isinstance(asked, Run):
            job.problem = None
        match asked:
            case Do(work):  # it may be asked again: a problem stands until something else comes
                self._submit(job, work)
            case Later(problem):
                job.problem, job.due = problem, self._clock() + RETRY_MS
            case Until(at):
                job.due = at
            case Run(run, spec, began):
                if spec is not None:
                    self.attempts.submit(spec)
                job.run, job.began = run, began
                self._runs[run] = job
                if run in self._begun:
                    self._tell_began(job, self._begun[run])
                if job.stop:
                    self.attempts.kill(run, job.stop)

    def _submit(self, job: _Job, work: Callable[[], Any]) -> None:
        """Have something done on a thread."""
        job.work = work
        job.future = self._pool.submit(work)
        job.future.add_done_callback(lambda _: self._finish(job))

    def _finish(self, job: _Job) -> None:
        """Note on a thread of the pool that a piece of work is done."""
        self._finished.append(job)
        with suppress(OSError):  # the engine has closed
            os.eventfd_write(self._bell, 1)

    def _forget_run(self, job: _Job) -> None:
        """Note that an act waits for its command no longer."""
        self._runs.pop(job.run, None)
        self._begun.pop(job.run, None)
        job.run, job.began = "", None

    def _tell_began(self, job: _Job | None, seen: Began) -> None:
        """Report once that a command has begun, and who watches it."""
        if job is not None and job.began is not None:
            self._told.append(replace(job.began, supervisor=seen.supervisor))
            job.began = None

    def _report_began(self, asked: Run) -> None:
        """Report that a command began which is over already."""
        if asked.id in self._begun and asked.began is not None:
            self._told.append(replace(asked.began, supervisor=self._begun[asked.id].supervisor))
        self._begun.pop(asked.id, None)

    def _note_bug(self, job: _Job, failure: Exception) -> None:
        """Keep what helps to mend a failure that nobody foresaw."""
        with suppress(OSError):
            self._log.touch(0o600)
        with suppress(OSError), self._log.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{job.key}\n{''.join(traceback.format_exception(failure))}\n")
