"""The engine's commit after an attempt: whatever is there, through an index of our own, onto the loop's own branch.

Knows what a command may have done to its checkout, and keeps all of it. Must never know what the attempt was for.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.errors import Problem
from loopr.world.repo.branches import head_of, loop_tip
from loopr.world.repo.calls import Door
from loopr.world.repo.entries import leaves_at
from loopr.world.repo.ground import HEADS, WORK, Ground, backup_ref
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import habits_of, make_commit
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.pristine import remove
from loopr.world.repo.records import forget_record, read_record
from loopr.world.repo.refs import Move, commit_of, is_ancestor, read_refs, tree_of
from loopr.world.repo.rules import RULES_FILE, note_rules, rules_differ, sealed, some_rules
from loopr.world.repo.scanning import problems_on_disk, shut_folders
from loopr.world.repo.slots import (
    LAST_LOOP,
    PRIVATE_INDEX,
    Opened,
    copy_over,
    index_at,
    need_slot,
    note_index,
    opened,
    write_line,
)
from loopr.world.repo.trees import NotLoose, grafted
from loopr.world.repo.words import Committed, Message

_HALF_DONE = ("*_HEAD", "MERGE_*", "AUTO_MERGE", "SQUASH_MSG", "BISECT_*", "sequencer", "rebase-*", "*.lock")


def commit_attempt(ground: Ground, name: str, attempt: int, message: Message, base: str = "") -> Committed:
    """Commit what an attempt left; what is refused stays in the folder and is named. Twice is once.

    In a folder that is still being filled nothing has worked yet: what it lacks was not taken away. A branch that was
    taken away with its mark comes back at `base`, from which the attempt began.
    """
    slot = need_slot(ground, name)
    if slot.state == "preparing":
        return Committed(loop_tip(ground, name), False)
    with opened(ground, slot) as at:
        if not sealed(at):
            note_rules(at)
        finished = finish(at)
        record = read_record(ground, name)
        laid = finished or (record is not None and record.attempt >= attempt)  # by us, after this very attempt
        tip = loop_tip(ground, name, "" if laid else base)
        refs = read_refs(at.door, at.branch, WORK + name)
        if laid:
            return Committed(tip, False)
        head = _head(at, tip)
        if head and not is_ancestor(at.door, tip, head):
            done = _bring_back(at, tip, head, message)
        else:
            done = _commit(at, head or tip, refs, message)
        if done.refused:
            remove(at.admin / LAST_LOOP)
        else:
            write_line(at.admin / LAST_LOOP, name)
    forget_record(ground, name)
    return done


def _head(at: Opened, tip: str) -> str:
    """Return the commit that is checked out if it is not the loop's own branch, nothing if it is."""
    head = head_of(at.admin)
    if head == at.branch:
        return ""
    found = commit_of(at.door, "HEAD")
    return found if found != tip else ""


def _commit(at: Opened, parent: str, refs: dict[str, str], message: Message) -> Committed:
    """Commit the files onto a parent, and bring branch, HEAD and index along."""
    door, branch, work = at.door, at.branch, WORK + at.name
    known = refs.get(work, "")
    tree, refused, left_out = write_tree(at, parent)
    tip = make_commit(door, tree, [parent], message) if tree else parent
    moves = [Move(ref, tip, refs.get(ref, "")) for ref in (branch, work) if refs.get(ref) != tip]
    if known and known != parent and not is_ancestor(door, known, tip):  # it rewrote its own history: allowed, and kept
        moves.insert(0, Move(backup_ref(at.name, known), known))
    put_refs(door, moves, "loopr: commit")
    _settle(at, tip)
    return Committed(tip, tip != known, tuple(refused), lands=known == parent and not left_out)


def _bring_back(at: Opened, tip: str, head: str, message: Message) -> Committed:
    """Keep what lies on a commit that is not the loop's, and return the worktree to its own branch."""
    door = at.door
    where = head_of(at.admin).removeprefix(HEADS)
    tree, refused, _ = write_tree(at, head, all_paths=True)
    found = make_commit(door, tree, [head], message) if tree else head
    backup = backup_ref(at.name, found)
    put_refs(door, [Move(backup, found)], "loopr: set aside")
    _settle(at, found)
    lay(at, Laying(tip))
    problem = Problem(
        f"the try ended with {where} checked out, which does not contain its own branch "
        f"{at.ground.short_branch(at.name)}; what was there is kept as {backup}, and the branch is back",
        hint=f"git merge {backup} brings it in, if it belongs there",
    )
    return Committed(tip, False, (problem, *refused), backup)


def _settle(at: Opened, commit: str) -> None:
    """Leave the worktree on its branch with a plain index and nothing half done, as the next iteration expects it."""
    admin = at.admin
    for pattern in _HALF_DONE:
        for path in admin.glob(pattern):
            remove(path)
    write_line(admin / "HEAD", f"ref: {at.branch}")
    copy_over(admin / PRIVATE_INDEX, admin / "index")
    note_index(admin, commit)


class Written(NamedTuple):
    """The tree of a worktree, none where it is that of the commit; what was refused, and what in it never lands."""

    tree: str
    refused: list[Problem]
    left_out: tuple[str, ...] = ()


def write_tree(at: Opened, commit: str, *, all_paths: bool = False) -> Written:
    """Write the files of a worktree as a tree, without what is refused; no tree where it would be that of the commit.

    Our own index knows which files have not changed, unless somebody else has written to it.
    """
    ground, index, stands = at.ground, at.admin / PRIVATE_INDEX, index_at(at.admin)
    fits = stands == commit
    own = at.door.with_index(index)
    listing = ("ls-files", "-t", "-o", "-m", "-d", "--exclude-standard", "-z")
    broken = not stands or (not fits and own.ask("read-tree", "--reset", "--no-sparse-checkout", commit).code)
    said = own.ask(*listing)
    if broken or said.code:
        index.unlink(missing_ok=True)
        own.run("read-tree", commit)
        said = own.run(*listing)
    tags: dict[str, str] = {}
    for row in said.parts:
        if all_paths or not ground.is_own(row[2:].rstrip("/")):
            tags[row[2:]] = row[0] if tags.get(row[2:]) != "R" else "R"
    tags |= dict.fromkeys(_forced(at, commit) - tags.keys(), "?")
    hidden = _hidden(at.door, own, [path for path, tag in tags.items() if tag == "R"])
    looked_at = [(path, tag == "?") for path, tag in tags.items() if path not in hidden]
    refused = problems_on_disk(at.place, looked_at, ground.max_file_bytes) | shut_folders(said.err)
    if not fits and some_rules(index) and rules_differ(own, WORK + at.name, commit):
        note_rules(at)
    staged = [path for path, _ in looked_at if path not in refused]
    _stage(own, staged, len(commit))
    if any(path.rpartition("/")[2] == RULES_FILE for path in staged):
        note_rules(at)
    if not staged and (fits or own.ask("diff-index", "--cached", "--quiet", commit).code == 0):
        return Written("", list(refused.values()))
    tree = (fits and _with_staged(own, index, commit, staged)) or own.run("write-tree").line
    left_out = tuple(path for path in staged if ground.folder_of(path))
    return Written(tree if tree != tree_of(own, commit) else "", list(refused.values()), left_out)


def _with_staged(own: Door, index: Path, commit: str, staged: list[str]) -> str:
    """Write the tree of a commit with what is staged on top of it, none where git has to be asked."""
    leaves = leaves_at(index, staged, len(commit))
    if leaves is None or not habits_of(own).plain:
        return ""
    try:
        return grafted(own, commit, leaves)
    except NotLoose:
        return ""


def _stage(own: Door, paths: list[str], width: int) -> None:
    """Bring our own index up to what lies at these paths; a folder, or a link on the way, means that a file is gone.

    Names of objects are `width` long.
    """
    links = {folder for folder in _folders_of(paths) if (own.work_tree / folder).is_symlink()}
    lost = {path for path in paths if links.intersection(_folders_of([path]))}
    lost.update(path for path in paths if path not in lost and _is_plain_folder(own.work_tree / path))
    gone = b"".join(f"0 {'0' * width}\t".encode() + os.fsencode(path) + b"\0" for path in paths if path in lost)
    there = b"".join(os.fsencode(path) + b"\0" for path in paths if path not in lost)
    if gone:
        own.run("update-index", "-z", "--index-info", stdin=gone)
    if there:
        own.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=there)


def _folders_of(paths: list[str]) -> set[str]:
    """Name every folder that these paths lie in."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _is_plain_folder(path: Path) -> bool:
    """Say whether a path is a folder that git would look into."""
    return path.is_dir() and not path.is_symlink() and not (path / ".git").exists()


def _forced(at: Opened, commit: str) -> set[str]:
    """List the files that the command added to its own index, for git may ignore them otherwise."""
    with suppress(OSError):
        if (at.admin / "index").read_bytes() == (at.admin / PRIVATE_INDEX).read_bytes():
            return set()
    said = at.door.ask("diff-index", "--cached", "--diff-filter=A", "--no-renames", "--name-only", "-z", commit)
    paths = said.parts if said.code == 0 else []
    return {path for path in paths if not at.ground.is_own(path) and os.path.lexists(at.place / path)}


def _hidden(door: Door, own: Door, missing: list[str]) -> set[str]:
    """Bring back the missing files that a sparse checkout of the command's left out: they were not deleted."""
    if not missing:
        return set()
    rows = door.ask("ls-files", "-t", "-z").parts
    found = {row[2:] for row in rows if row[0] == "S"}.intersection(missing)
    if found:
        text = b"".join(os.fsencode(path) + b"\0" for path in found)
        own.run("checkout-index", "-q", "-z", "--stdin", stdin=text)
    return found
