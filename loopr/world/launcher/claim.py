"""The start of an attempt: everything is prepared, then claimed on disk, then the command is spawned.

Whatever fails before the claim never ran and leaves no trace but a word to the engine. The claim is a link, so that of
two supervisors one gets it, and none for an engine that has a successor. Must never know what happens to the command
after the spawn.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH108, PTH112, PTH116, PTH118

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from contextlib import suppress
from typing import NamedTuple

from loopr.world.launcher import proc, stream, words
from loopr.world.launcher.log import Log
from loopr.world.launcher.slate import Slate
from loopr.world.launcher.words import Message, Outcome, Run

NOT_FOUND = (errno.ENOENT, errno.ENOTDIR)
NOT_A_PROGRAM = (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOEXEC, errno.ELIBBAD)
SAME = ("id", "cwd", "wall_ms", "idle_ms", "first_byte_ms", "grace_ms", "head_bytes", "tail_bytes")
ALL_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Taken(Exception):
    """Somebody else has this attempt."""


class Refused(Exception):
    """The command did not start."""

    def __init__(self, outcome: Outcome, *, claimed: bool) -> None:
        """Say how that counts, and whether the attempt was claimed by then."""
        super().__init__(outcome.message)
        self.outcome, self.claimed = outcome, claimed


class Watcher(NamedTuple):
    """Who starts the command."""

    boot_id: str
    launcher: int
    launcher_start: int
    start: int
    pipes: tuple[int, int]  # their reading ends
    inodes: tuple[int, int]  # what the kernel calls them
    slate: Slate


class Started(NamedTuple):
    """A command that runs."""

    run: Run
    streams: tuple[stream.Stream, stream.Stream]


def start(order: Message, us: Watcher) -> Started:
    """Start the command of an order, or raise `Refused` or `Taken` and leave nothing open."""
    folder, head, tail = order["folder"], order["head_bytes"], order["tail_bytes"]
    opened: list[stream.Stream] = []
    stdin = -1
    try:
        what = "enter its working directory"
        os.chdir(order["cwd"])
        what = "open its standard input"
        stdin = os.open(order["stdin"], os.O_RDONLY | os.O_CLOEXEC)
        what = "open its pipes"
        for name, reader in zip(words.STREAMS, us.pipes, strict=True):
            opened.append(stream.Stream(reader, Log(f"{folder}/{name}", head, tail)))
        what = "claim the attempt"
        run = _run_of(order, us)
        _claim(folder, run, order["claims"])
        pid = _spawn(order, (stdin, opened[0].writer, opened[1].writer), us.slate)
        us.slate.note_pid(pid)
    except BaseException as error:
        stream.close(opened)
        if isinstance(error, OSError):
            raise Refused(_not_started(error, f"cannot {what}"), claimed=False) from error
        raise
    finally:
        if stdin >= 0:
            os.close(stdin)
    return Started(run._replace(pid=pid), (opened[0], opened[1]))


def complete(folder: str, run: Run) -> None:
    """Write the command's pid into the claim, for whoever finds it when both launcher and supervisor are gone."""
    with suppress(OSError):
        descriptor = os.open(f"{folder}/{words.RUN}", os.O_WRONLY | words.HARMLESS)
        try:
            os.pwrite(descriptor, *words.pid_part(run._replace(pid_start=proc.start_time(run.pid))))
        finally:
            os.close(descriptor)


def _not_started(error: OSError, what: str) -> Outcome:
    """Say that the command did not start, and why."""
    where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
    cause = errno.errorcode.get(error.errno or 0, "")
    return Outcome("not_started", cause=cause, message=f"{what}: {error.strerror}{where}")


def _run_of(order: Message, us: Watcher) -> Run:
    """Write down who starts what, and what it may be known by."""
    same = {name: order[name] for name in SAME}
    return Run(
        boot_id=us.boot_id,
        launcher=us.launcher,
        launcher_start=us.launcher_start,
        supervisor=os.getpid(),
        supervisor_start=us.start,
        pid=0,
        pid_start=0,
        started_at=time.time_ns() // 1_000_000,
        started_ms=time.monotonic_ns() // 1_000_000,
        pipes=us.inodes,
        workspace=order["env"].get(words.WORKSPACE_MARK, ""),
        lease=order["env"].get(words.LEASE_MARK, ""),
        **same,
    )


def _claim(folder: str, run: Run, claims: str) -> None:
    """Put the claim in its place, whole and only once, unless the engine that wanted it has a successor."""
    fresh = f"{claims}/{words.RUN}.{run.supervisor}"
    try:
        words.write_file(fresh, words.claim_of(run))
        os.link(fresh, f"{folder}/{words.RUN}")
    except FileExistsError:
        raise Taken(run.id) from None
    except OSError as error:
        if error.errno != errno.EXDEV or claims == folder:
            raise
        _claim(folder, run, folder)  # somebody keeps the runs on a disk of their own
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)


def _spawn(order: Message, ends: tuple[int, int, int], slate: Slate) -> int:
    """Spawn the command in a session of its own, with nothing open but its three descriptors."""
    argv, env = order["argv"], order["env"]
    program = _program(argv[0] if argv else "", env.get("PATH", os.defpath))
    actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)]
    slate.note_spawn()
    try:
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=ALL_SIGNALS
        )
    except OSError as error:
        if error.errno in NOT_FOUND:
            raise _no_program(words.MISSING, f"{program}: what its first line names does not exist") from error
        if error.errno in NOT_A_PROGRAM:
            message = f"{program}: not a program that this machine can run: {error.strerror}"
            raise _no_program(words.NOT_EXECUTABLE, message) from error
        raise Refused(_not_started(error, f"cannot start {program}"), claimed=True) from error
    except ValueError as error:  # a NUL among the arguments
        raise _no_program(words.NOT_EXECUTABLE, f"cannot start {program}: {error}") from error


def _program(name: str, path: str) -> str:
    """Find a program as a shell does: on the PATH of the attempt, unless it is named with its folder."""
    folders = [""] if "/" in name else [folder or "." for folder in path.split(os.pathsep)]
    blocked = ""
    for folder in folders if name else ():
        candidate = os.path.join(folder, name)
        try:
            mode = os.stat(candidate).st_mode
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            return candidate
        blocked = blocked or candidate
    if blocked and (len(folders) == 1 or not os.path.isdir(blocked)):
        raise _no_program(words.NOT_EXECUTABLE, f"{blocked}: not executable")
    where = "does not exist" if "/" in name else "is not on the PATH"
    raise _no_program(words.MISSING, f"{name or 'an empty command'}: {where}")


def _no_program(code: int, message: str) -> Refused:
    """Say it with the code that a shell would have ended with."""
    return Refused(Outcome("exited", code=code, message=message), claimed=True)
