"""A supervisor: forked by the launcher, it watches one attempt at a time, and is used again for the next.

It has a session of its own and inherits its orphans. When the launcher is gone it finishes what it has in hand and
ends; until then, TERM makes it look for a wish in the attempt's folder.

Knows the orders of the launcher. Must never know the engine.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections import deque
from contextlib import suppress
from typing import NoReturn

from loopr.world.launcher import claim, proc, traces, words
from loopr.world.launcher.attempt import Attempt
from loopr.world.launcher.clocks import Clocks
from loopr.world.launcher.family import Children, Foundlings
from loopr.world.launcher.log import Log
from loopr.world.launcher.slate import Slate
from loopr.world.launcher.stream import Stream, inode
from loopr.world.launcher.wire import Wire
from loopr.world.launcher.words import Message, Outcome, Run

PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
RETRY_SECS = 1.0
BEGIN_SECS = 0.003
OWN_TROUBLE = 70


def serve(control: int, pipes: tuple[int, int], slate: Slate, launcher: int) -> NoReturn:
    """Do what the launcher orders until it is gone."""
    code = OWN_TROUBLE
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        proc.become_subreaper()
        Supervisor(Wire(control), pipes, slate, launcher).serve()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)  # the launcher's own objects are still around, and their descriptors are ours by now


class Supervisor:
    """The state of a supervisor."""

    def __init__(self, control: Wire, pipes: tuple[int, int], slate: Slate, launcher: int) -> None:
        """Take over the line to the launcher, and the pipes and the slate of the slot."""
        self._control, self._launcher = control, launcher
        self._us = claim.Watcher(proc.boot_id(), launcher, proc.start_time(os.getpid()), pipes, slate)
        self._wake, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wished = False
        self._began = b""  # what is still to be told of an attempt: a short one is told in one breath
        self._inbox: deque[bytes] = deque()
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._note_wish)

    def serve(self) -> None:
        """Do one order after another."""
        while not self._control.closed:
            self._control.wait()
            self._inbox.extend(self._control.lines())
            while self._inbox:
                order = words.decode(self._inbox.popleft())
                if order["do"] == "run":
                    self._run(order)
                elif order["do"] == "adopt":
                    self._adopt(order)
                # a kill or a word about an attempt that is over by now: nothing is left to do

    def _note_wish(self, *_: object) -> None:
        """Remember that somebody wrote a wish; the wakeup descriptor wakes the watch."""
        self._wished = True

    def _run(self, order: Message) -> None:
        """Start a command and watch it to its end."""
        folder = order["folder"]
        try:
            run, streams = claim.start(order, self._us)
        except claim.Taken:
            self._control.send(words.encode({"did": "taken", "id": order["id"]}))
            return
        except claim.Refused as refused:
            outcome = refused.outcome._replace(started_at=time.time_ns() // 1_000_000)
            self._conclude(order["id"], folder if refused.claimed else "", outcome)
            return
        finally:
            os.chdir("/")  # no worktree is kept busy by us
        family = Children(run.pid, self._us.slate)
        logs = [stream.log for stream in streams]
        self._watch(Attempt(run, family, streams, logs, Clocks(run)), folder)

    def _adopt(self, order: Message) -> None:
        """Take over an attempt whose supervisor is gone."""
        folder = order["folder"]
        found = words.read_run(folder)
        if found is None or found.boot_id != self._us.boot_id:
            message = "the machine was restarted" if found else "its claim cannot be read"
            self._conclude(order["id"], folder, Outcome("lost", cause="reboot" if found else "", message=message))
            return
        found = found._replace(pid=found.pid or int(order["pid"]))
        logs = [Log.resume(os.path.join(folder, name), found.head_bytes, found.tail_bytes) for name in words.STREAMS]
        streams = [stream for index, log in enumerate(logs) if (stream := self._reopened(found, index, log))]
        run = self._take_over(found, folder)
        family = Foundlings(run, self._launcher, bool(order["mine"]))
        if order["status"] is not None:
            family.told(order["status"], order["usage"])
        heard = time.monotonic() if any(log.total for log in logs) or not run.first_byte_ms else None
        attempt = Attempt(run, family, streams, logs, Clocks(run, heard))
        self._us.slate.note_pid(run.pid)
        self._watch(attempt, folder)
        family.close()
        for stream in streams:
            if stream.reader not in self._us.pipes:
                os.close(stream.reader)

    def _take_over(self, found: Run, folder: str) -> Run:
        """Write down that we watch it now."""
        start = found.pid_start or proc.start_time(found.pid)
        run = found._replace(
            launcher=self._launcher, supervisor=os.getpid(), supervisor_start=self._us.start, pid_start=start
        )
        with suppress(OSError):
            words.replace_file(os.path.join(folder, words.RUN), words.encode(run._asdict()))
        return run

    def _watch(self, attempt: Attempt, folder: str) -> None:
        """Watch an attempt until nothing of it is left, and write down how it ended."""
        poll = select.poll()
        attempt.register(poll)
        poll.register(self._wake, select.POLLIN)
        if not self._control.closed:
            poll.register(self._control.fd, select.POLLIN)
        self._listen(attempt)  # a wish may have come together with the order
        run = attempt.run
        self._began = words.encode({"did": "began", "id": run.id, "pid": run.pid, "at": run.started_at})
        told_at = time.monotonic() + BEGIN_SECS
        while not attempt.is_over():
            if self._began and time.monotonic() >= told_at:
                self._control.send(self._began)
                self._began = b""
            for descriptor, _ in poll.poll(BEGIN_SECS * 1000 if self._began else attempt.timeout_ms()):
                self._attend(attempt, descriptor, poll, folder)
        outcome = attempt.close()
        self._conclude(run.id, folder, outcome, attempt.soiled)

    def _attend(self, attempt: Attempt, descriptor: int, poll: select.poll, folder: str) -> None:
        """See to one descriptor that has something."""
        if descriptor in attempt.streams:
            attempt.pump(descriptor)
        elif descriptor == self._control.fd:
            self._listen(attempt)
            if self._control.closed:
                poll.unregister(descriptor)
        elif descriptor == self._wake:
            os.read(self._wake, 4096)
            attempt.family.reap()
            if self._wished:
                self._wished = False
                self._grant(attempt, folder)
        else:
            attempt.family.reap()
            poll.unregister(descriptor)  # a pidfd has one thing to say

    def _listen(self, attempt: Attempt) -> None:
        """Hear what the launcher says about the attempt in hand, or that it is gone."""
        self._inbox.extend(self._control.lines())
        while self._inbox:
            said = words.decode(self._inbox.popleft())
            if said["id"] != attempt.run.id:
                continue  # about one that is over
            if said["do"] == "kill":
                attempt.end("killed", said["reason"])
            elif said["do"] == "reaped":
                attempt.family.told(said["status"], said["usage"])
        if self._control.closed and not attempt.family.command_ended:
            attempt.family.told(None, attempt.family.usage)

    def _grant(self, attempt: Attempt, folder: str) -> None:
        """End the attempt if somebody left a wish in its folder."""
        with suppress(OSError), open(os.path.join(folder, words.KILL), errors="replace") as wish:
            attempt.end("killed", wish.read(1000).strip())

    def _conclude(self, attempt_id: str, folder: str, outcome: Outcome, soiled: bool = False) -> None:
        """Write down how an attempt ended, as soon as the disk allows, and tell the launcher.

        What never ran has no folder to write to; the word about it has to do. A supervisor whose pipes somebody still
        holds is not used again.
        """
        message: Message = {"did": "done", "id": attempt_id, "soiled": soiled}
        if not folder or not self._written(folder, outcome):
            message["outcome"] = outcome._asdict()
        self._control.send(self._began + words.encode(message))
        self._began = b""

    def _written(self, folder: str, outcome: Outcome) -> bool:
        """Write an outcome; False if its folder does not want it. What is known is not replaced by what is not."""
        if outcome.reason == "lost" and words.read_outcome(folder):
            return True
        while True:
            try:
                words.replace_file(os.path.join(folder, words.OUTCOME), words.encode(outcome._asdict()))
            except OSError as error:
                if error.errno not in PASSING:
                    return False
                time.sleep(RETRY_SECS)  # a full disk loses no outcome: the attempt counts as alive until it is written
            else:
                return True

    def _reopened(self, run: Run, index: int, log: Log) -> Stream | None:
        """Open the pipe of a command that is not ours: that of our slot, or one that somebody holds, or none."""
        if inode(self._us.pipes[index]) == run.pipes[index]:
            return Stream(self._us.pipes[index], log)
        for path in traces.pipe_ends(run, index):
            with suppress(OSError):
                reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    return Stream(reader, log)
                except OSError:
                    os.close(reader)
        return None
