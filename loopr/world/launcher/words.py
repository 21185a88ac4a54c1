"""What the engine's side and the launcher say to each other, and what both find in the folder of an attempt.

A message is a line with an object in JSON. What only the far end has to understand, the whole of an order or of an
outcome, is a second object behind a tab: the launcher in the middle passes it on unread.

`run.json` is the claim: it is linked into place once, before the command starts, so that nothing runs twice; the
command's own pid is filled in once it has lived for a moment. The link comes from a folder of the engine that ordered
it, which the next engine takes away: what was not claimed by then never is. `outcome.json` arrives by rename, and only
when nothing of the attempt is left. `kill` says why a supervisor was told to end, by a signal, what it has in hand.

Knows words only. Must never know how they travel, nor start anything.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH104, PTH108

from __future__ import annotations

import errno
import json
import os
from binascii import crc32
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RUN, OUTCOME, KILL = "run.json", "outcome.json", "kill"
STREAMS = ("stdout.log", "stderr.log")
WORKSPACE_MARK, LEASE_MARK = "LOOPR_WORKSPACE", "LOOPR_LEASE"
MISSING, NOT_EXECUTABLE = 127, 126
REBOOTED = "rebooted"
HARMLESS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # whatever a command has put there

Reason = Literal["exited", "signalled", "wall", "idle", "first_byte", "killed", "not_started", "lost"]
REASONS = ("exited", "signalled", "wall", "idle", "first_byte", "killed", "not_started", "lost")

_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder()

Message = dict[str, Any]
Usage = tuple[float, float, int]  # seconds of user and system time, largest resident set in KiB


class AttemptSpec(NamedTuple):
    """One command to run once; the folder exists and belongs to this attempt alone. A clock of 0 is off.

    Paths are absolute. The environment is the whole one; `LOOPR_WORKSPACE` and `LOOPR_LEASE` in it are what strays are
    known by.
    """

    id: str
    folder: Path
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: Path
    wall_ms: int = 0
    idle_ms: int = 0
    first_byte_ms: int = 0
    grace_ms: int = 10_000
    head_bytes: int = 16 << 20
    tail_bytes: int = 16 << 20


class Outcome(NamedTuple):
    """How an attempt ended; nothing of it is left.

    `reason` says who ended it, `code` or `signal` how the command did, where that is known. `not_started` never ran,
    `lost` may have. `cause` is the errno's name of what did not start, and `REBOOTED` of what a restart of the machine
    took; `strays` counts the processes that outlived the command. The resident set of a small command reads as that of
    its supervisor: the kernel counts from before the exec.
    """

    reason: Reason
    code: int | None = None
    signal: int | None = None
    started_at: int = 0
    wall_ms: int = 0
    user_ms: int = 0
    system_ms: int = 0
    max_rss_kb: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    strays: int = 0
    cause: str = ""
    message: str = ""


class Run(NamedTuple):
    """The claim of an attempt: who watches which process, and by what to know what belongs to it.

    A pid counts together with its start time, and both with the boot id. `pid` is 0 until the command was spawned.
    `started_ms` is on the monotonic clock, which all processes of one boot share. A claim of before has no
    `launcher_start`, and its supervisor no mark.
    """

    id: str
    boot_id: str
    launcher: int
    supervisor: int
    supervisor_start: int
    pid: int
    pid_start: int
    started_at: int
    started_ms: int
    pipes: tuple[int, ...]
    cwd: str
    workspace: str
    lease: str
    wall_ms: int
    idle_ms: int
    first_byte_ms: int
    grace_ms: int
    head_bytes: int
    tail_bytes: int
    launcher_start: int = 0


def mark_of(attempt_id: str) -> str:
    """Name a supervisor, for whoever looks at the processes, after the attempt that it has in hand."""
    return f"loopr {crc32(attempt_id.encode(errors='surrogatepass')):08x}"


def supervisor_of(run: Run) -> str:
    """Say which process watches an attempt, as `read_supervisor` reads it."""
    return f"{run.supervisor} {run.supervisor_start} {run.boot_id}"


def read_supervisor(said: str) -> tuple[int, int, str]:
    """Read a pid, its start time and the boot id; 0 and nothing where that is not what is said."""
    try:
        pid, start, boot_id = said.split(" ")
        return int(pid), int(start), boot_id
    except ValueError:
        return 0, 0, ""


def encode(message: Message, rest: bytes = b"\n") -> bytes:
    """Write a message as one line, before the rest of it; names that are not UTF-8 survive as escapes."""
    return _ENCODER.encode(message).encode() + rest


def decode(line: bytes) -> Message:
    """Read a message or one part of it; `ValueError` where it is none."""
    said = _DECODER.decode(line.decode())
    if not isinstance(said, dict):
        raise ValueError("not a message")
    return said


def parts_of(line: bytes) -> tuple[Message, bytes]:
    """Read the first part of a message, and leave the second, nothing if there is none."""
    first, _, second = line.partition(b"\t")
    return decode(first), second


def order_of(spec: AttemptSpec, claims: str) -> bytes:
    """Say that an attempt is to be run, as long as the folder is there that its claim is to be linked from."""
    folder = str(spec.folder)
    order = {**spec._asdict(), "folder": folder, "cwd": str(spec.cwd), "env": dict(spec.env), "stdin": str(spec.stdin)}
    order["claims"] = claims
    return encode({"do": "run", "id": spec.id, "folder": folder}, b"\t" + encode(order))


def read_run(folder: str) -> Run | None:
    """Read the claim of an attempt, None if nobody has claimed it."""
    said = _read(f"{folder}/{RUN}")
    if said is None:
        said = _read(f"{folder}/{RUN}")  # the pid may have been written over it at that moment
    try:
        return None if said is None else Run(**{**said, "pipes": tuple(said["pipes"])})
    except (TypeError, KeyError):
        return None


def read_outcome(folder: str) -> Outcome | None:
    """Read how an attempt ended, None if it has not, or if what stands there is no outcome."""
    said = _read(f"{folder}/{OUTCOME}")
    return None if said is None else outcome_of(said)


def outcome_of(said: Message) -> Outcome | None:
    """Read an outcome from what was said or written, None if it is none."""
    try:
        found = Outcome(**said)
    except TypeError:
        return None
    return found if found.reason in REASONS and _well_typed(found) else None


def _well_typed(found: Outcome) -> bool:
    """Tell whether every part is of its kind."""
    numbers = (found.code or 0, found.signal or 0, *found[3:11])
    return all(isinstance(number, int) for number in numbers) and isinstance(found.cause + found.message, str)


def claim_of(run: Run) -> bytes:
    """Write a claim."""
    return b"".join(_claim_parts(run))


def pid_part(run: Run) -> tuple[bytes, int]:
    """Write the end of a claim, and say where it begins; only ever longer than that of one without a pid."""
    before, end = _claim_parts(run)
    return end, len(before)


def _claim_parts(run: Run) -> tuple[bytes, bytes]:
    """Write a claim in two parts, of which only the second changes when there is a pid."""
    said = run._asdict()
    del said["pid"], said["pid_start"]
    before = _ENCODER.encode(said).encode()[:-1]
    return before, b',"pid":%d,"pid_start":%d}\n' % (run.pid, run.pid_start)


def replace_file(path: str, text: bytes) -> None:
    """Put a file in its place as a whole, or raise and leave no other trace."""
    fresh = f"{path}.{os.getpid()}"
    try:
        write_file(fresh, text)
        os.rename(fresh, path)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def write_file(path: str, text: bytes) -> None:
    """Write a file as a whole, or raise; half of it may be there then."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | HARMLESS, 0o600)
    try:
        if os.write(descriptor, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def _read(path: str) -> Message | None:
    """Read a small JSON document, None if it is not there or is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | HARMLESS)
    except OSError:
        return None
    try:
        return decode(os.read(descriptor, 1 << 20))
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
