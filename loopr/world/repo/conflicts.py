"""How a conflict comes to whoever can mend it: the loop's whole change laid over the plan's tip, with markers.

Knows markers, and who changed the same files. Must never know how often that may happen.
"""

from __future__ import annotations

import os
from pathlib import Path

from loopr.world.repo.calls import Door
from loopr.world.repo.ground import CANDIDATE, Ground, backup_ref
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import make_commit
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.records import read_record, write_record
from loopr.world.repo.refs import Move, merge_base, read_refs
from loopr.world.repo.slots import Opened, need_slot, opened
from loopr.world.repo.words import Clash, ClashFile, Hunk, LaidClash, Message

HUNK_LINES = 60
HUNKS_SHOWN = 20
COMMITS_SHOWN = 20


def lay_clash(ground: Ground, clash: Clash) -> LaidClash:
    """Keep the old tip, set the branch to the plan's, lay the change over it; a clean index shows it as edits."""
    with opened(ground, need_slot(ground, clash.name)) as at:
        finish(at)
        record = read_record(ground, clash.name)
        laid = read_refs(at.door, at.branch).get(at.branch) == clash.plan_tip
        if record is None or record.attempt < clash.attempt or not laid:
            shape = make_commit(at.door, clash.tree, [clash.plan_tip], Message("conflict"))
            keep = Move(backup_ref(clash.name, clash.loop_tip), clash.loop_tip)
            put_refs(at.door, [keep, Move(CANDIDATE + clash.name, shape)], "loopr: conflict")
            write_record(ground, clash)
            lay_files(at, clash)
        return _described(at, clash)


def lay_files(at: Opened, clash: Clash) -> None:
    """Put the files of a conflict into a worktree, under names that people can read."""
    lay(at, Laying(clash.plan_tip, clash.tree, _labels(at.ground, clash), clash.files))


def _labels(ground: Ground, clash: Clash) -> tuple[tuple[str, str], ...]:
    """Pair the commits that git writes into markers with names for people."""
    return (
        (clash.plan_tip, f"{ground.short_branch(clash.plan)} (the plan)"),
        (clash.merged_tip, f"{ground.short_branch(clash.name)} (this loop)"),
    )


def _described(at: Opened, clash: Clash) -> LaidClash:
    """Say what lies in the worktree."""
    files = tuple(ClashFile(path, _hunks(at.place / path)) for path in clash.files)
    told = "\n".join(clash.messages)
    for commit, name in _labels(at.ground, clash):
        told = told.replace(commit, name)
    others = _other_side(at.door, clash)
    return LaidClash(backup_ref(clash.name, clash.loop_tip), files, others, tuple(told.splitlines()))


def _hunks(file: Path) -> tuple[Hunk, ...]:
    """Find the conflicts in a file by their markers."""
    if file.is_symlink() or not file.is_file():
        return ()
    found: list[Hunk] = []
    first = 0
    lines = file.read_bytes().decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("<<<<<<< "):
            first = number
        elif line.startswith(">>>>>>> ") and first:
            text = lines[first - 1 : number]
            cut = ["..."] if len(text) > HUNK_LINES else []
            found.append(Hunk(first, number, "\n".join([*text[:HUNK_LINES], *cut])))
            first = 0
    return tuple(found[:HUNKS_SHOWN])


def _other_side(door: Door, clash: Clash) -> tuple[str, ...]:
    """List the commits that changed the same files on the plan's side."""
    base = merge_base(door, clash.plan_tip, clash.loop_tip)
    said = door.ask(
        *("log", "-z", f"--max-count={COMMITS_SHOWN}", "--format=%h %s", f"{base}..{clash.plan_tip}", "--"),
        *(f":(top,literal){path}" for path in clash.files),
    )
    return tuple(line for line in os.fsdecode(said.out).split("\0") if line)
