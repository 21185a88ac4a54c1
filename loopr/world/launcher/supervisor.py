"""A supervisor: forked by the launcher, it watches one attempt at a time, and is used again for the next.

It has a session of its own, inherits its orphans, and is called after the attempt that it has in hand. When the
launcher is gone it finishes that and ends. TERM is a wish that this attempt ends; a file in its folder may say why.

Knows the orders of the launcher. Must never know the engine.
"""

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
from loopr.world.launcher.family import BIRTH_SECS, Children, Foundlings
from loopr.world.launcher.log import Log
from loopr.world.launcher.slate import UNKNOWN, Slate
from loopr.world.launcher.stream import Stream, inode
from loopr.world.launcher.wire import Wire
from loopr.world.launcher.words import Message, Outcome, Run

PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
RETRY_SECS = 1.0
LOOK_SECS = 0.005
FRESH_MS = 20  # an attempt that is shorter is told in one breath, and its pid is written down nowhere
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
        inodes = (inode(pipes[0]), inode(pipes[1]))
        starts = (proc.start_time(launcher), proc.start_time(os.getpid()))
        self._us = claim.Watcher(proc.boot_id(), launcher, *starts, pipes, inodes, slate)
        self._wake, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wished = False  # for the attempt in hand
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
                self._do(self._inbox.popleft())

    def _do(self, line: bytes) -> None:
        """Do what an order says; a kill or a word about an attempt that is over by now is none."""
        _, _, order = line.partition(b"\t")
        if order:
            self._run(words.decode(order))
            return
        said = words.decode(line)
        if said["do"] == "adopt":
            self._adopt(said)

    def _note_wish(self, *_: object) -> None:
        """Remember that the attempt is to end; the wakeup descriptor wakes the watch."""
        self._wished = True

    def _take_in_hand(self, attempt_id: str) -> None:
        """Be called after an attempt, and take every wish from now on for one about it."""
        self._wished = False
        proc.call_ourselves(words.mark_of(attempt_id))

    def _run(self, order: Message) -> None:
        """Start a command and watch it to its end."""
        folder = order["folder"]
        self._take_in_hand(order["id"])
        try:
            run, streams = claim.start(order, self._us)
        except claim.Taken:
            self._control.send(words.encode({"did": "taken", "id": order["id"]}))
            return
        except claim.Refused as refused:
            outcome = refused.outcome._replace(started_at=time.time_ns() // 1_000_000)
            self._conclude({"id": order["id"]}, folder if refused.claimed else "", outcome)
            return
        finally:
            os.chdir("/")  # no worktree is kept busy by us
        family = Children(run.pid, self._us.slate)
        logs = [stream.log for stream in streams]
        self._watch(Attempt(run, family, streams, logs, Clocks(run)), folder, ours=True)

    def _adopt(self, order: Message) -> None:
        """Take over an attempt whose supervisor is gone."""
        folder = order["folder"]
        self._take_in_hand(order["id"])
        found = words.read_run(folder)
        if found is None or found.boot_id != self._us.boot_id:
            message = "the machine was restarted" if found else "its claim cannot be read"
            outcome = Outcome("lost", cause=words.REBOOTED if found else "", message=message)
            self._conclude({"id": order["id"]}, folder, outcome)
            return
        pid = found.pid or int(order["pid"])
        found = found._replace(pid=self._sought(found) if pid == UNKNOWN else pid)
        logs = [Log.resume(f"{folder}/{name}", found.head_bytes, found.tail_bytes) for name in words.STREAMS]
        streams = [stream for index, log in enumerate(logs) if (stream := self._reopened(found, index, log))]
        run = self._take_over(found, folder)
        family = Foundlings(run, self._launcher, order["mine"] or (pid == UNKNOWN and run.pid > 0))
        if order["status"] is not None:
            family.told(order["status"], order["usage"])
        heard = time.monotonic() if any(log.total for log in logs) or not run.first_byte_ms else None
        attempt = Attempt(run, family, streams, logs, Clocks(run, heard), why=order["why"])
        self._us.slate.note_pid(run.pid)
        self._watch(attempt, folder, ours=False)
        family.close()
        for stream in streams:
            if stream.reader not in self._us.pipes:
                os.close(stream.reader)

    def _sought(self, run: Run) -> int:
        """Look for a command whose supervisor was killed before it knew the pid; 0 if there is none any more."""
        while not (pid := traces.command_of(run, self._launcher)):
            if time.monotonic() > run.started_ms / 1000 + BIRTH_SECS:
                break
            time.sleep(LOOK_SECS)
        return pid

    def _take_over(self, found: Run, folder: str) -> Run:
        """Write down that we watch it now."""
        start = found.pid_start or proc.start_time(found.pid)
        run = found._replace(
            launcher=self._launcher,
            launcher_start=self._us.launcher_start,
            supervisor=os.getpid(),
            supervisor_start=self._us.start,
            pid_start=start,
        )
        with suppress(OSError):
            words.replace_file(f"{folder}/{words.RUN}", words.claim_of(run))
        return run

    def _watch(self, attempt: Attempt, folder: str, *, ours: bool) -> None:
        """Watch an attempt until nothing of it is left, and write down how it ended; `ours` if the claim is."""
        poll = select.poll()
        attempt.register(poll)
        poll.register(self._wake, select.POLLIN)
        if not self._control.closed:
            poll.register(self._control.fd, select.POLLIN)
        self._heed(attempt)  # a wish may have come together with the order
        run = attempt.run
        began: Message = {"id": run.id, "pid": run.pid, "at": run.started_at, "by": words.supervisor_of(run)}
        fresh = True
        while not attempt.is_over():
            wait_ms = attempt.timeout_ms()
            if fresh:
                left_ms = run.started_ms + FRESH_MS - time.monotonic_ns() // 1_000_000
                wait_ms = min(left_ms, FRESH_MS if wait_ms is None else wait_ms)
                if left_ms <= 0:
                    fresh = False
                    if ours:
                        claim.complete(folder, run)
                    self._control.send(words.encode({"did": "began", **began}))
                    continue
            for descriptor, _ in poll.poll(wait_ms):
                self._attend(attempt, descriptor, poll, folder)
        outcome = attempt.close()
        self._conclude({**began, "soiled": attempt.soiled}, folder, outcome)

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
        self._heed(attempt)

    def _heed(self, attempt: Attempt) -> None:
        """Do what has been said about the attempt in hand."""
        while self._inbox:
            said, _ = words.parts_of(self._inbox.popleft())
            if said["id"] != attempt.run.id:
                continue  # about one that is over
            if said["do"] == "kill":
                attempt.end("killed", str(said.get("reason", "")))
            elif said["do"] == "reaped":
                attempt.family.told(said["status"], said["usage"])
        if self._control.closed and not attempt.family.command_ended:
            attempt.family.told(None, attempt.family.usage)

    def _grant(self, attempt: Attempt, folder: str) -> None:
        """End the attempt, as somebody has wished by a signal, for the reason that lies in its folder."""
        why = b""
        with suppress(OSError):
            descriptor = os.open(f"{folder}/{words.KILL}", os.O_RDONLY | words.HARMLESS)
            try:
                why = os.read(descriptor, 1000)
            finally:
                os.close(descriptor)
        attempt.end("killed", why.decode(errors="replace").strip())

    def _conclude(self, what: Message, folder: str, outcome: Outcome) -> None:
        """Write down how an attempt ended, as soon as the disk allows, and tell the launcher.

        What is known is not replaced by what is not. What never ran has no folder to write to; the word about it has to
        do. A supervisor whose pipes somebody still holds is not used again.
        """
        known = words.read_outcome(folder) if folder and outcome.reason == "lost" else None
        text = words.encode((known or outcome)._asdict())
        if folder and not known:
            self._write(folder, text)
        self._control.send(words.encode({"did": "done", **what}, b"\t" + text))

    def _write(self, folder: str, text: bytes) -> None:
        """Write an outcome, unless its folder does not want it."""
        while True:
            try:
                words.replace_file(f"{folder}/{words.OUTCOME}", text)
            except OSError as error:
                if error.errno in PASSING:
                    time.sleep(RETRY_SECS)  # a full disk loses no outcome: until it is written the attempt is alive
                    continue
            return

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
