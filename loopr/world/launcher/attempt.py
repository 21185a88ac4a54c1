"""One attempt from its start to its outcome: its clocks, its output, and its end.

Whoever is told to end, for whatever reason, is asked with TERM, all of its processes at once, and after the grace made
to end with KILL, again and again until nothing is left. The strays of a command that ended by itself are ended in the
same way. Only then there is an outcome.

Knows one attempt. Must never know how it was started, nor who wants to know how it ended.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence

from loopr.world.launcher import proc, stream
from loopr.world.launcher.clocks import Clocks
from loopr.world.launcher.family import Children, Foundlings
from loopr.world.launcher.log import Log
from loopr.world.launcher.stream import Stream
from loopr.world.launcher.words import Outcome, Reason, Run

KILL_AGAIN_SECS = 0.1


class Attempt:
    """An attempt that is being watched."""

    def __init__(
        self,
        run: Run,
        family: Children | Foundlings,
        streams: Sequence[Stream],
        logs: Sequence[Log],
        clocks: Clocks,
        *,
        why: str = "",
    ) -> None:
        """Take over the watch; there are fewer streams than logs where nobody holds a pipe any more.

        `why` says for what reason it has been ended by then, nothing if it has not.
        """
        self.run, self.family, self.clocks = run, family, clocks
        self.streams = {each.reader: each for each in streams}
        self._logs = logs
        self._reason: Reason | None = "killed" if why else None
        self._message = why
        self._kill_at: float | None = time.monotonic() if why else None
        self._grown_up = False  # the command has ended, and its strays were told to
        self._strays: set[int] = set()
        self._ended = 0.0
        self.soiled = False  # somebody who is not ours still holds a pipe

    def register(self, poll: select.poll) -> None:
        """Name what wakes this attempt."""
        for descriptor in (*self.streams, self.family.descriptor):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)

    def unregister(self, poll: select.poll) -> None:
        """Take it back."""
        for descriptor in (*self.streams, self.family.descriptor):
            if descriptor >= 0:
                poll.unregister(descriptor)

    def pump(self, descriptor: int) -> None:
        """Take output from the stream that has some."""
        if self.streams[descriptor].pump():
            self.clocks.hear(time.monotonic())

    def end(self, reason: Reason, message: str = "") -> None:
        """Begin to end it; the first reason is the one that counts."""
        if self._reason is None and not self.family.command_ended:
            self._reason, self._message = reason, message
            self._ask_to_end()

    def is_over(self) -> bool:
        """Do what is due now; True once nothing of the attempt is left."""
        now = time.monotonic()
        if not self.family.command_ended:
            self._mind_the_clocks(now)
            return False
        fresh = not self._ended
        self._ended = self._ended or now
        if self.family.is_empty():
            return True
        for each in self.streams.values() if fresh else ():
            each.drain()  # what it said last comes before what its strays say
        self._end_strays(now)
        return False

    def timeout_ms(self) -> int | None:
        """Return how long nothing is due, None if something must happen first."""
        ends = [] if self._kill_at is None else [self._kill_at]
        if self._reason is None and not self.family.command_ended and (clock := self.clocks.next_end()):
            ends.append(clock[0])
        now = time.monotonic()
        left = [max(0, int((end - now) * 1000) + 1) for end in ends]
        if self.family.command_ended and self.family.rescan_ms:
            left.append(self.family.rescan_ms)
        return min(left, default=None)

    def close(self) -> Outcome:
        """Take the last output, put the logs in order, and say how it ended."""
        self.soiled = not stream.close(self.streams.values())
        for log in self._logs:
            log.finish()
        reason, code, number = self._how_it_ended()
        user, system, largest = self.family.usage
        return Outcome(
            reason=reason,
            code=code,
            signal=number,
            started_at=self.run.started_at,
            wall_ms=int(self._ended * 1000) - self.run.started_ms,
            user_ms=round(user * 1000),
            system_ms=round(system * 1000),
            max_rss_kb=largest,
            stdout_bytes=self._logs[0].total,
            stderr_bytes=self._logs[1].total,
            strays=len(self._strays),
            message=self._told(),
        )

    def _told(self) -> str:
        """Return what a person should know: why it was ended, and what is missing from the logs."""
        missing = [f"a log is not complete: {log.trouble}" for log in self._logs if log.trouble]
        return "; ".join(filter(None, (self._message, *dict.fromkeys(missing)))) if missing else self._message

    def _how_it_ended(self) -> tuple[Reason, int | None, int | None]:
        """Return the reason, and the exit code or the signal if they are known."""
        status = self.family.status
        if status is None:
            self._message = self._message or "its supervisor was killed, and nobody else saw how it ended"
            return self._reason or "lost", None, None
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return self._reason or "signalled", None, -code
        return self._reason or "exited", code, None

    def _mind_the_clocks(self, now: float) -> None:
        """End it if a clock ran out, and make it end if its grace is over."""
        if self._reason is None:
            clock = self.clocks.next_end()
            if clock and clock[0] <= now:
                self.end(clock[1])
        elif self._kill_at is not None and self._kill_at <= now:
            self._make_end(now)

    def _end_strays(self, now: float) -> None:
        """End what outlived the command; what was asked already has the rest of its grace."""
        if not self._grown_up:
            self._grown_up = True
            if self._kill_at is None:
                self._ask_to_end()
            else:
                self._living()
        elif self._kill_at is not None and self._kill_at <= now:
            self._make_end(now)

    def _ask_to_end(self) -> None:
        """Send TERM to the command's group and to all that left it; wake those that are stopped."""
        self._kill_at = time.monotonic() + self.run.grace_ms / 1000
        living = self._living()
        leader = living.get(self.run.pid)
        grouped = leader is not None and leader.group == self.run.pid
        if grouped:
            _signal_group(self.run.pid)
        for seen in living.values():
            if not grouped or seen.group != self.run.pid:
                proc.send(seen.pid, seen.start, signal.SIGTERM)
                proc.send(seen.pid, seen.start, signal.SIGCONT)

    def _make_end(self, now: float) -> None:
        """Send KILL to all that live, and look again soon: some were born meanwhile."""
        self._kill_at = now + KILL_AGAIN_SECS
        for seen in self._living().values():
            proc.send(seen.pid, seen.start, signal.SIGKILL)

    def _living(self) -> dict[int, proc.Stat]:
        """Look who lives; once the command has ended, each of them is a stray, also if nobody sees it again."""
        living = self.family.living()
        if self.family.command_ended:
            self._strays |= living.keys()
        return living


def _signal_group(group: int) -> None:
    """Ask the group of a command that lives to end."""
    try:
        os.killpg(group, signal.SIGTERM)
        os.killpg(group, signal.SIGCONT)
    except OSError:
        return
