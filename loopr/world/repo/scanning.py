"""What may not be committed or land: repositories inside, links out of the tree, large files, secrets, the unreadable.

Knows how to recognise them, on disk and as objects. Must never know what is done about it.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.errors import Problem
from loopr.world.repo.calls import Door, GitFailed, Said
from loopr.world.repo.objects import loose
from loopr.world.repo.trees import Leaf, differing

NOTHING = "000000"
GITLINK = "160000"
_HEAD_BYTES = 256 * 1024
_WHOLE = 1 << 40
_KEY = re.compile(rb"^-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----\s*$", re.MULTILINE)
_HARMLESS_ENV = frozenset({"example", "sample", "template", "dist", "default", "defaults"})
_SHUT = re.compile(r"^warning: could not open directory '(.+?)/?': (.+)$", re.MULTILINE)
_OPENS = re.compile(rb"^<{7} .*^={7}$.*^>{7} ", re.MULTILINE | re.DOTALL)


class Entry(NamedTuple):
    """One path that a tree has and another has not, or not so; `was` is its mode there, "000000" if it is new."""

    was: str
    mode: str
    old: str
    blob: str
    path: str


def changed_entries(door: Door, old: str, new: str, *patterns: str) -> list[Entry]:
    """List what differs between two trees or commits, renames shown as two paths."""
    known = None if patterns else differing(door, old, new)
    if known is not None:
        absent = Leaf(NOTHING, "0" * len(new))
        pairs = ((path, was or absent, now or absent) for path, (was, now) in known.items())
        return [Entry(was.mode, now.mode, was.name, now.name, path) for path, was, now in pairs]
    said = door.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new, "--", *patterns)
    parts = said.parts
    found = []
    for words, path in zip(parts[::2], parts[1::2], strict=True):
        was, mode, old_blob, blob, _ = words.removeprefix(":").split(" ")
        found.append(Entry(was, mode, old_blob, blob, path))
    return found


def problems_on_disk(place: Path, paths: Iterable[tuple[str, bool]], max_bytes: int) -> dict[str, Problem]:
    """Look at files before they become objects; each path comes with whether git does not have it yet."""
    found = {}
    for path, is_new in paths:
        problem = _on_disk(place, path, is_new, max_bytes)
        if problem:
            found[path] = problem
    return found


def _on_disk(place: Path, path: str, is_new: bool, max_bytes: int) -> Problem | None:
    """Say why one file may not be committed."""
    file = place / path
    if path.endswith("/"):
        return _nested(path)
    try:
        facts = file.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return _link(path, str(file.readlink()))
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_size > max_bytes:
            return _large(path, facts.st_size, max_bytes)
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _unreadable(path, error.strerror or "")
    return _secret(path, head, is_new)


def shut_folders(warnings: str) -> dict[str, Problem]:
    """Find the folders that git has passed over while it listed files, because it cannot look into them."""
    return {path: _unreadable(path, why) for path, why in _SHUT.findall(warnings)}


def _unreadable(path: str, why: str) -> Problem:
    """Say that nobody can tell what there is."""
    return Problem(f"cannot be read: {why}", path, "chmod it, delete it, or have git ignore it")


def problems_in_tree(door: Door, entries: Iterable[Entry], max_bytes: int) -> list[Problem]:
    """Look at what a tree adds or changes, as objects: a command's own commits pass no other gate."""
    entries = [each for each in entries if each.mode != NOTHING]
    links = [each for each in entries if each.mode == "120000"]
    files = [each for each in entries if each.mode.startswith("100")]
    found = [_nested(each.path) for each in entries if each.mode == GITLINK and each.was != GITLINK]
    sizes = _sizes(door, [each.blob for each in files])
    found += [_large(each.path, sizes[each.blob], max_bytes) for each in files if sizes[each.blob] > max_bytes]
    small = [each for each in files if sizes[each.blob] <= max_bytes]
    texts = _contents(door, [each.blob for each in links + small])
    for each in links:
        found += filter(None, [_link(each.path, os.fsdecode(texts[each.blob]))])
    marked = [each for each in small if _OPENS.search(texts[each.blob])]
    for each in small:
        found += filter(None, [_secret(each.path, texts[each.blob][:_HEAD_BYTES], each.was == NOTHING)])
    return found + list(_left_markers(door, marked))


def _left_markers(door: Door, marked: list[Entry]) -> Iterator[Problem]:
    """Name the files with conflict markers that were not there before."""
    before = _contents(door, [each.old for each in marked if each.was.startswith("100")])
    for each in marked:
        if not _OPENS.search(before.get(each.old, b"")):
            yield Problem("has conflict markers left", each.path, "edit it until no marker is left")


def _sizes(door: Door, blobs: list[str]) -> dict[str, int]:
    """Return the sizes of objects."""
    known = {blob: loose(door.common, blob, 0) for blob in dict.fromkeys(blobs)}
    found = {blob: each.size for blob, each in known.items() if each is not None}
    asked = "".join(f"{blob}\n" for blob in known.keys() - found.keys()).encode()
    if asked:
        rows = (line.split() for line in door.run("cat-file", "--batch-check", stdin=asked).line.splitlines())
        found |= {row[0]: int(row[2]) for row in rows}
    return found


def _contents(door: Door, blobs: list[str]) -> dict[str, bytes]:
    """Return the contents of objects that are not too large."""
    known = {blob: loose(door.common, blob, _WHOLE) for blob in dict.fromkeys(blobs)}
    found = {blob: each.content for blob, each in known.items() if each is not None}
    asked = "".join(f"{blob}\n" for blob in known.keys() - found.keys()).encode()
    said = door.run("cat-file", "--batch", stdin=asked) if asked else Said(0, b"", "")
    at = 0
    while at < len(said.out):
        end = said.out.index(b"\n", at)
        words = said.out[at:end].decode().split()
        if len(words) < 3:
            raise GitFailed(f"the object {words[0]} is missing", said)
        size = int(words[2])
        found[words[0]] = said.out[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def _nested(path: str) -> Problem:
    """Say that a path is a repository of its own."""
    path = path.rstrip("/")
    return Problem("is a repository of its own", path, "move it out, or have git ignore it")


def _link(path: str, target: str) -> Problem | None:
    """Say that a link leads out of the tree."""
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if not target.startswith("/") and inside != ".." and not inside.startswith("../"):
        return None
    return Problem(f"is a link out of the tree, to {target}", path, "link to a path inside the repository")


def _large(path: str, size: int, max_bytes: int) -> Problem:
    """Say that a file is too large."""
    mb = 1024 * 1024
    message = f"has {size / mb:.1f} MB, more than commit.max_file_mb = {max_bytes // mb}"
    return Problem(message, path, "delete it, have git ignore it, or raise commit.max_file_mb")


def _secret(path: str, head: bytes, is_new: bool) -> Problem | None:
    """Say that a file holds what must not be committed."""
    name = path.rpartition("/")[2]
    if is_new and (name == ".env" or (name.startswith(".env.") and name[5:] not in _HARMLESS_ENV)):
        return Problem("holds secrets, by its name", path, "have git ignore it")
    if _KEY.search(head):
        return Problem("holds a private key", path, "delete it, or have git ignore it")
    return None
