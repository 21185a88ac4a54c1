"""Which files of a person's checkout a move of its branch would touch, and whether it would take anything from them.

Knows tracked, staged, untracked and ignored files. Must never change one but to undo what a move has begun.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from loopr.errors import Problem
from loopr.world.repo.calls import Door
from loopr.world.repo.refs import commit_of
from loopr.world.repo.scanning import Entry

_NOTHING = "000000"
_COMMIT_YOURS = "commit it, stash it or move it away, then again"


class Held(NamedTuple):
    """One path as a person's index has it: mode and blob, "000000" where it has none."""

    path: str
    mode: str
    blob: str


def touched_problems(door: Door, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Say which of these paths is not as the old commit has it, nor as the new one."""
    staged, on_disk = _staged(door), _on_disk(door, entries)
    for each in entries:
        held = staged.get(each.path, Held(each.path, each.was, each.old))
        if (held.mode, held.blob) not in ((each.was, each.old), (each.mode, each.blob)):
            yield Problem(f"{each.path} has other changes staged", each.path, _COMMIT_YOURS)
        elif on_disk[each.path] not in ((each.was, each.old), (each.mode, each.blob)):
            kind = "is there, and git does not have it" if each.was == _NOTHING else "differs from the last commit"
            yield Problem(f"{each.path} {kind}", each.path, _COMMIT_YOURS)


def adopt(door: Door, entries: Sequence[Entry]) -> tuple[list[str], list[Held]]:
    """Put what is already as it will be into the index, so that nothing has to be written; returns how to undo it."""
    staged, on_disk = _staged(door), _on_disk(door, entries)
    same = [each for each in entries if on_disk[each.path] == (each.mode, each.blob) != (each.was, each.old)]
    before = [staged.get(each.path, Held(each.path, each.was, each.old)) for each in same]
    if same:
        text = b"".join(os.fsencode(each.path) + b"\0" for each in same)
        door.run("update-index", "--add", "--remove", "-z", "--stdin", stdin=text)
    return [each.path for each in same], before


def undo(door: Door, before: Sequence[Held]) -> None:
    """Bring the index back to what it was before files were adopted."""
    if before:
        rows = (f"{held.mode} {held.blob}\t".encode() + os.fsencode(held.path) + b"\0" for held in before)
        door.run("update-index", "-z", "--index-info", stdin=b"".join(rows))


def put_back(door: Door, old: str, entries: Sequence[Entry]) -> None:
    """Undo what a move has begun before it failed: of these paths those that lie as it would leave them, no others.

    Whatever else lies there is a person's, who was faster than git: it may be why the move has failed.
    """
    if commit_of(door, "HEAD") != old:
        return
    staged, on_disk = _staged(door), _on_disk(door, entries)
    begun = [each for each in entries if _is_begun(door, each, staged.get(each.path), on_disk[each.path])]
    if not begun:
        return
    # what is in neither commit nor index, git would leave where it lies
    known = [Held(each.path, each.mode, each.blob) for each in begun if each.mode != _NOTHING]
    undo(door, known)
    door.run(
        *("restore", f"--source={old}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"),
        stdin=b"".join(os.fsencode(each.path) + b"\0" for each in begun),
        variables={"GIT_LITERAL_PATHSPECS": "1"},
    )


def _is_begun(door: Door, entry: Entry, held: Held | None, lies: tuple[str, str]) -> bool:
    """Say whether a path is on its way from the old commit to the new one, as git itself would have left it."""
    new = (entry.mode, entry.blob)
    if lies == (entry.was, entry.old) or (held is not None and (held.mode, held.blob) != new):
        return False
    return lies == new or lies[0] == _NOTHING or _is_half_written(door, entry, lies[0])


def _is_half_written(door: Door, entry: Entry, mode: str) -> bool:
    """Say whether a file has the beginning of what git would write there, and no more."""
    if not (mode.startswith("100") and entry.mode.startswith("100")):
        return False
    whole = door.ask("cat-file", "--filters", f"--path={entry.path}", entry.blob)
    return whole.code == 0 and whole.out.startswith((door.work_tree / entry.path).read_bytes())


def _staged(door: Door) -> dict[str, Held]:
    """Return what a person's index has other than the last commit."""
    parts = door.run("diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", "HEAD").parts
    found = {}
    for words, path in zip(parts[::2], parts[1::2], strict=True):
        _, mode, _, blob, _ = words.removeprefix(":").split(" ")
        found[path] = Held(path, mode, blob)
    return found


def _on_disk(door: Door, entries: Sequence[Entry]) -> dict[str, tuple[str, str]]:
    """Return mode and blob of what lies at these paths."""
    touched = {each.path for each in entries}
    modes = {each.path: _mode(door.work_tree, each, touched) for each in entries}
    files = [path for path, mode in modes.items() if mode.startswith("100")]
    absent = "0" * len(entries[0].blob) if entries else ""
    blobs = dict(zip(files, _hashes(door, files), strict=True))
    for each in entries:
        if modes[each.path] == "120000":
            link = os.fsencode((door.work_tree / each.path).readlink())
            blobs[each.path] = door.run("hash-object", "--stdin", stdin=link).line
        elif modes[each.path] == "160000":  # a submodule's folder is not touched
            blobs[each.path] = each.old
    return {path: (mode, blobs.get(path, absent)) for path, mode in modes.items()}


def _mode(root: Path, entry: Entry, touched: Set[str]) -> str:
    """Return the mode of what lies at a path, as git would write it; what goes anyway is not in the way."""
    file = root / entry.path
    blocker = next((each for each in _above(root, file) if each.is_symlink() or not each.is_dir()), None)
    if blocker is not None:
        return _NOTHING if blocker.relative_to(root).as_posix() in touched else "blocked"
    try:
        facts = file.lstat()
    except FileNotFoundError:
        return _NOTHING
    if stat.S_ISLNK(facts.st_mode):
        return "120000"
    if not stat.S_ISDIR(facts.st_mode):
        return "100755" if facts.st_mode & stat.S_IXUSR else "100644"
    if entry.was == "160000":
        return "160000"
    inside = (each for each in file.rglob("*") if each.is_symlink() or not each.is_dir())
    return _NOTHING if all(each.relative_to(root).as_posix() in touched for each in inside) else "folder"


def _above(root: Path, file: Path) -> list[Path]:
    """List what exists between the top of the checkout and a path, from the top down."""
    between = file.relative_to(root).parents
    return [root / each for each in reversed(between) if each.parts and os.path.lexists(root / each)]


def _hashes(door: Door, paths: list[str]) -> list[str]:
    """Return what these files would be as objects."""
    if not paths:
        return []
    odd = [path for path in paths if "\n" in path or path.startswith('"')]  # which git takes for the end, or a quote
    plain = [path for path in paths if path not in odd]
    text = b"".join(os.fsencode(path) + b"\n" for path in plain)
    found = dict(zip(plain, door.run("hash-object", "--stdin-paths", stdin=text).line.split(), strict=True))
    found |= {path: door.run("hash-object", "--", path).line for path in odd}
    return [found[path] for path in paths]
