"""One artifact as bytes: reads a file that may be anything, and turns it into what it says.

Knows sizes, encodings and links. Must never know what an artifact means for its loop, nor read what lies outside the
workspace.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from loopr.core.outline import (
    DIGEST_LENGTH,
    STAMP_KEY,
    Artifact,
    Findings,
    Marked,
    MarkedMap,
    read_outline,
    shown,
)
from loopr.core.policy import TypePolicy
from loopr.errors import NotFound, PlanError, WorldError
from loopr.world.front_matter import parse_front_matter, split_front_matter, without_stamp

MAX_BYTES = 1024 * 1024
_LONGEST_PATH = 400  # of a path in a message
_BOM = b"\xef\xbb\xbf"
_MACHINE = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE})


def digest(raw: bytes) -> str:
    """Return the digest by which loopr knows a file again: of its bytes without their stamp."""
    return hashlib.sha256(without_stamp(raw)).hexdigest()[:DIGEST_LENGTH]


def read_artifact_file(
    path: Path,
    root: Path,
    *,
    type_name: str,
    types: Mapping[str, TypePolicy],
    fallback_id: str | None = None,
    depth: int = 0,
    written_by_loop: bool = False,
) -> tuple[Artifact, str]:
    """Read and parse one artifact below `root`, and return it with its digest; raise a `PlanError` for a bad one."""
    source = _name(path, root)
    raw = _read_bytes(path, root, source)
    artifact = parse_artifact(
        raw,
        source,
        type_name=type_name,
        types=types,
        fallback_id=fallback_id or path.stem,
        depth=depth,
        written_by_loop=written_by_loop,
    )
    return artifact, digest(raw)


def parse_artifact(
    raw: bytes,
    source: str,
    *,
    type_name: str,
    types: Mapping[str, TypePolicy],
    fallback_id: str,
    depth: int = 0,
    written_by_loop: bool = False,
) -> Artifact:
    """Parse the bytes of an artifact; `source` is how messages call it."""
    text = _decode(raw, source)
    front, body, body_line = split_front_matter(text, source)
    findings = Findings(source)
    fields = parse_front_matter(front, findings) if front is not None else None
    bare = without_stamp(raw)
    _check_stamp(fields, bare != raw, source)
    return read_outline(
        fields,
        body,
        type_name=type_name,
        types=types,
        fallback_id=fallback_id,
        findings=findings,
        body_line=body_line,
        whole=text if bare == raw else _decode(bare, source),
        depth=depth,
        written_by_loop=written_by_loop,
    )


def _check_stamp(fields: Marked | None, cut: bool, source: str) -> None:
    """Refuse a file in which the stamp that was cut out is not the one that YAML sees: its digest would deceive."""
    stamp = fields.get(STAMP_KEY) if isinstance(fields, MarkedMap) else None
    if stamp is not None and not cut:
        where = f"{source}:{stamp.at.line}:{stamp.at.col}"
        raise PlanError(f"`{STAMP_KEY}` is written by loopr itself", where=where, hint="take it out")
    if cut and stamp is None:
        message = f"a text in the front matter has a line that begins with `{STAMP_KEY}:`"
        raise PlanError(message, where=f"{source}:1:1", hint="indent that line")


def _read_bytes(path: Path, root: Path, source: str) -> bytes:
    """Read a file that is an ordinary one, inside the workspace, and not too large."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise PlanError("leaves the workspace through a link", where=source, hint="put the file itself there")
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise PlanError("is not a regular file", where=source, hint="name a Markdown file")
            raw = _read_up_to(file, MAX_BYTES + 1) if status.st_size <= MAX_BYTES else None
        finally:
            os.close(file)
    except FileNotFoundError:
        raise NotFound("no such file", where=source, hint="check the path") from None
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise _unreadable(source, error) from error
    if raw is None or len(raw) > MAX_BYTES:
        raise PlanError("is larger than 1 MiB", where=source, hint="move what is not for the worker into other files")
    return raw


def _unreadable(source: str, error: Exception) -> PlanError | WorldError:
    """Tell what a person can mend from what only the machine can."""
    if isinstance(error, OSError) and error.errno in _MACHINE:
        return WorldError(f"cannot read {source}: {error.strerror}", hint="mend the machine, then try again")
    said = (error.strerror or str(error)) if isinstance(error, OSError) else "links in a circle"
    return PlanError(f"cannot be read: {said}", where=source, hint="check the file and its permissions")


def _read_up_to(file: int, limit: int) -> bytes:
    """Read an open file to its end, or to the limit if it grew meanwhile."""
    parts: list[bytes] = []
    left = limit
    while left > 0 and (part := os.read(file, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _decode(raw: bytes, source: str) -> str:
    """Turn bytes into text with plain line feeds, whatever editor wrote them."""
    bare = raw.removeprefix(_BOM)
    if not bare.strip():
        raise PlanError("is empty", where=f"{source}:1:1", hint="write a title, and what is to be done")
    try:
        text = bare.decode("utf-8")
    except UnicodeDecodeError as error:
        at = _place(bare, error.start)
        message = f"is not UTF-8: byte 0x{bare[error.start]:02X} at offset {error.start + len(raw) - len(bare)}"
        raise PlanError(message, where=f"{source}:{at}", hint="save the file as UTF-8") from None
    if "\0" in text:
        at = _place(bare, bare.index(b"\0"))
        raise PlanError("holds a NUL character", where=f"{source}:{at}", hint="save it as plain UTF-8 text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _place(raw: bytes, offset: int) -> str:
    """Return line and column of a byte, both from 1."""
    start = raw.rfind(b"\n", 0, offset) + 1
    return f"{raw.count(bytes([10]), 0, offset) + 1}:{len(raw[start:offset].decode('utf-8', 'replace')) + 1}"


def _name(path: Path, root: Path) -> str:
    """Call a file by its path from the workspace on, or as it was given."""
    inside = path.is_relative_to(root)
    return shown(str(path.relative_to(root) if inside else path), _LONGEST_PATH)
