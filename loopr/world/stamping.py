"""The stamp: a loop's status and its history, written into the front matter of the loop's own artifact.

Knows where front matter stands and how to take a file's place without losing what somebody else saves at the same
moment. Must never know what a status means, nor touch a character of what a person wrote: the stamp is inserted as
text, everything else stays as it is, and a file in which that is not certain gets none.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loopr.core.outline import STAMP_KEY, one_line
from loopr.errors import WorldError
from loopr.world.swapping import exchange, identity, identity_of

HISTORY_LINES = 20
_MAX_BYTES = 1024 * 1024  # of a file that can be read back
_LONGEST_NOTE = 200
_BOM = b"\xef\xbb\xbf"
_FRONT = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?P<front>(?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)")
_OPENS = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\Z)")
_BLOCK = re.compile(rb"^loopr:.*\n(?:[ \t]+\S.*\n)*", re.MULTILINE)
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_FIELD = re.compile(r"^  (status|attempt|iteration): (.*)$", re.MULTILINE)
_HEAD = r"loopr:\n  status: \w+\n  attempt: \d+\n  iteration: \d+\n  updated: [\dTZ:-]+\n  history:\n"
_PLAIN = re.compile(rf'(?P<head>{_HEAD})(?:    - ".*"\n)+')
_PAST = re.compile(r'^    - (".*")$', re.MULTILINE)
_UNREADABLE = re.compile("[\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_Identity = tuple[int, int, int, int]


class Stamp(NamedTuple):
    """What a stamp says; `note` is one more word for the line in the history."""

    status: str
    attempt: int
    iteration: int
    at_ms: int
    note: str = ""

    @property
    def at(self) -> str:
        """The instant as people and YAML read it."""
        return datetime.fromtimestamp(self.at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def line(self) -> str:
        """The line that goes into the history."""
        note = _UNREADABLE.sub("", one_line(self.note))[:_LONGEST_NOTE]
        said = f"{self.at} {self.status}, attempt {self.attempt}, iteration {self.iteration}"
        return f"{said}: {note}" if note else said


def ensure_stamp(path: Path, stamp: Stamp, *, expected: str, digest: Callable[[bytes], str]) -> bool:
    """Stamp a file if it still is the one with the expected digest; tell whether it carries the stamp now.

    `digest` is how loopr knows a file again; a stamp that would change it is not written. A file that changed, that
    has several names or that cannot hold a stamp is left alone, whatever somebody saves meanwhile.
    """
    try:
        seen, raw = _read(path)
        if raw is None or digest(raw) != expected:
            return False
        text = stamped(raw, stamp)
        if text is None or len(text) > _MAX_BYTES or digest(text) != expected:
            return False
        return text == raw or _take_place(path, text, seen)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket: nothing that we published
            return False
        hint = "mend that, or set `artifacts.stamp: false`"
        raise WorldError(f"cannot stamp {path}: {error.strerror or error}", hint=hint) from error


def stamped(raw: bytes, stamp: Stamp) -> bytes | None:
    """Return a file's bytes with this stamp, the same bytes if they have it, or None if they cannot take one."""

    def write(old: str, newline: bytes) -> bytes | None:
        return None if _says(old, stamp) else _block(stamp, tuple(_history(old)), newline)

    return _with_block(raw, write)


def going_on(raw: bytes, before: bytes | None) -> bytes:
    """Return a file's bytes with the stamp of the file that it takes the place of, so that its history goes on.

    They stay as they are where that one has no stamp of ours, or this one cannot take it.
    """
    bounds = _FRONT.match(before) if before is not None else None
    blocks = _BLOCK.findall(bounds["front"]) if bounds is not None else []
    old = blocks[0].decode("utf-8", "replace").replace("\r\n", "\n") if len(blocks) == 1 else ""
    past, said = tuple(_history(old)), _PLAIN.fullmatch(old)
    if said is None or not past:
        return raw
    head = said["head"].splitlines()

    def write(_: str, newline: bytes) -> bytes:
        return _lines((*head, *_past(past)), newline)

    return _with_block(raw, write) or raw


def _with_block(raw: bytes, write: Callable[[str, bytes], bytes | None]) -> bytes | None:
    """Put a stamp into a file, or None if it cannot take one; `write` is told the present one, and may let it be."""
    if _LONE_RETURN.search(raw) or not raw.removeprefix(_BOM).strip():
        return None
    newline = b"\r\n" if raw.partition(b"\n")[0].endswith(b"\r") else b"\n"
    bounds = _FRONT.match(raw)
    if bounds is None:
        if _OPENS.match(raw):  # front matter that is never closed
            return None
        bom = _BOM if raw.startswith(_BOM) else b""
        return bom + _fence(newline) + (write("", newline) or b"") + _fence(newline) + raw[len(bom) :]
    front = bounds["front"]
    blocks = _BLOCK.findall(front)
    bare = _BLOCK.sub(b"", front)
    if len(blocks) > 1 or not (blocks or bare.strip()):  # empty front matter would go with the stamp
        return None
    old = blocks[0].decode("utf-8", "replace").replace("\r\n", "\n") if blocks else ""
    block = write(old, newline)
    if block is None:
        return raw
    if not _reads_as_before(bare, bare + block):
        return None
    return raw[: bounds.start("front")] + bare + block + raw[bounds.end("front") :]


def _fence(newline: bytes) -> bytes:
    """Return the line around front matter."""
    return b"---" + newline


def _block(stamp: Stamp, past: tuple[str, ...], newline: bytes) -> bytes:
    """Write the stamp, with the last lines of its history."""
    lines = [
        f"{STAMP_KEY}:",
        f"  status: {stamp.status}",
        f"  attempt: {stamp.attempt}",
        f"  iteration: {stamp.iteration}",
        f"  updated: {stamp.at}",
        "  history:",
        *_past((*past, stamp.line)),
    ]
    return _lines(lines, newline)


def _past(lines: tuple[str, ...]) -> list[str]:
    """Write the last lines of a history."""
    return [f"    - {json.dumps(line, ensure_ascii=False)}" for line in lines[-HISTORY_LINES:]]


def _lines(lines: Iterable[str], newline: bytes) -> bytes:
    """End each line."""
    return b"".join(line.encode() + newline for line in lines)


def _says(block: str, stamp: Stamp) -> bool:
    """Tell whether a stamp says the same already; when is no difference."""
    said = dict(_FIELD.findall(block))
    return said == {"status": stamp.status, "attempt": str(stamp.attempt), "iteration": str(stamp.iteration)}


def _history(block: str) -> Iterator[str]:
    """Yield the lines of a stamp's history; what somebody made of them that is no text is left out."""
    for quoted in _PAST.findall(block):
        with suppress(ValueError):
            line = json.loads(quoted)
            if isinstance(line, str):
                yield _UNREADABLE.sub("", one_line(line))


def _reads_as_before(bare: bytes, whole: bytes) -> bool:
    """Tell whether front matter reads the same with a stamp, key for key, beside the stamp itself."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        before, after = (YAML(typ="safe", pure=True).load(each.decode()) for each in (bare, whole))
    except (YAMLError, ValueError, RecursionError):
        return False
    if not isinstance(after, dict) or not isinstance(after.pop(STAMP_KEY, None), dict):
        return False
    return before is None and not after or (isinstance(before, dict) and list(before.items()) == list(after.items()))


def _read(path: Path) -> tuple[os.stat_result, bytes | None]:
    """Read an ordinary file that has one name; None stands for the bytes of anything else."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink > 1 or seen.st_size > _MAX_BYTES:
            return seen, None
        with os.fdopen(file, "rb", closefd=False) as stream:
            return seen, stream.read(_MAX_BYTES + 1)
    finally:
        os.close(file)


def _take_place(path: Path, text: bytes, seen: os.stat_result) -> bool:
    """Put a text in the place of the file that was seen, or leave whatever is there by now."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    ours: _Identity | None = None
    try:
        ours = _write(draft, text, seen)
        if ours is None:
            return False
        if not exchange(draft, path):
            if identity(path) != identity_of(seen):
                return False
            draft.replace(path)
            return True
        if identity(draft) == identity_of(seen):
            ours = identity_of(seen)  # what was read is what goes
            return True
        exchange(draft, path)  # somebody was faster: theirs goes back
        return False
    finally:
        if ours is None or identity(draft) == ours:  # else it is a third one's, saved just now: kept beside
            draft.unlink(missing_ok=True)


def _write(draft: Path, text: bytes, like: os.stat_result) -> _Identity | None:
    """Write a draft that belongs to the same person with the same rights, safe on disk; None if that cannot be."""
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb", buffering=0) as stream:
        left = memoryview(text)
        while left:
            left = left[stream.write(left) :]
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            try:
                os.fchown(file, like.st_uid, like.st_gid)
            except PermissionError:
                return None
        os.fchmod(file, stat.S_IMODE(like.st_mode))
        os.fsync(file)
        return identity_of(os.fstat(file))
