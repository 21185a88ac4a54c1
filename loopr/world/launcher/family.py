"""The processes of one attempt: who is left, when the command has ended and how.

A command that we spawned ourselves is our child, and its orphans come to us: `wait4` says all, and ECHILD proves that
nothing is left. One whose supervisor was killed is a foundling: a pidfd says when it ends, the launcher how, if it
inherited it, and what is left is known by its traces. A watch asks both kinds the same questions.

Knows processes. Must never decide when one has to end.
"""

from __future__ import annotations

import os
import select
import time

from loopr.world.launcher import proc, traces
from loopr.world.launcher.slate import Slate
from loopr.world.launcher.words import Run, Usage

RESCAN_MS = 30
BIRTH_SECS = 1.0


class Children:
    """The family of a command that this process spawned."""

    rescan_ms = 0  # every end is a SIGCHLD

    descriptor = -1

    def __init__(self, pid: int, slate: Slate) -> None:
        """Begin with the command; its end is noted on the slate."""
        self._slate = slate
        self.status: int | None = None
        self.usage: Usage = (0.0, 0.0, 0)
        self._pid = pid
        self._none_left = False

    @property
    def command_ended(self) -> bool:
        """Whether the command was reaped."""
        return self.status is not None

    def reap(self) -> None:
        """Reap whoever has ended, the command and the orphans that came to us."""
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return
                user, system, largest = self.usage
                self.usage = (user + used.ru_utime, system + used.ru_stime, max(largest, used.ru_maxrss))
                if pid == self._pid:
                    self.status = status
                    self._slate.note_end(status, self.usage)
        except ChildProcessError:
            self._none_left = True

    def is_empty(self) -> bool:
        """Tell whether the kernel knows of no child of ours, living or dead."""
        if not self._none_left:
            self.reap()
        return self._none_left

    def living(self) -> dict[int, proc.Stat]:
        """Return our living descendants."""
        return proc.descendants(os.getpid())

    def told(self, status: int | None, usage: Usage) -> None:
        """Ignore it: a child of ours ends before our eyes."""


class Foundlings:
    """The family of a command whose supervisor is gone."""

    rescan_ms = RESCAN_MS  # the strays are nobody's whose end we would hear of

    def __init__(self, run: Run, launcher: int, expects_word: bool) -> None:
        """Take hold of the command if it lives; the launcher says how it ended if it `expects_word` of it."""
        self.descriptor = -1 if (found := proc.grasp(run.pid, run.pid_start)) is None else found
        self.status: int | None = None
        self.usage: Usage = (0.0, 0.0, 0)
        self._run, self._launcher, self._expects_word = run, launcher, expects_word
        self._empty_scans = 0
        self._born_by = 0 if run.pid else run.started_ms / 1000 + BIRTH_SECS

    @property
    def command_ended(self) -> bool:
        """Whether the command is gone and the launcher has said what it knows."""
        return self.descriptor < 0 and not self._expects_word

    def reap(self) -> None:
        """See whether the command has ended."""
        if self.descriptor >= 0:
            poll = select.poll()
            poll.register(self.descriptor, select.POLLIN)
            if poll.poll(0):
                self.close()

    def is_empty(self) -> bool:
        """Tell whether no process has a trace of the attempt, in two looks: one that just forks or execs has none.

        A supervisor that died while it spawned has told nobody whom: that one may still be on its way.
        """
        self._empty_scans = 0 if self.living() else self._empty_scans + 1
        return self._empty_scans > 1 and time.monotonic() > self._born_by

    def living(self) -> dict[int, proc.Stat]:
        """Return the processes with a trace of the attempt."""
        return traces.kin_of(self._run, self._launcher)

    def told(self, status: int | None, usage: Usage) -> None:
        """Hear how the command ended."""
        self._expects_word = False
        self.status, self.usage = status, usage

    def close(self) -> None:
        """Let go of the command."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
