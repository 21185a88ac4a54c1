"""The worktrees of loops: cut from the plan's tip, taken from a pool, kept from attempt to attempt, given back.

Knows slots, branches of loops and what must hold before files may go. Must never know what an attempt does in one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from loopr.errors import WorldError
from loopr.world.repo.branches import begin_branch, loop_tip
from loopr.world.repo.calls import LOCAL_VARIABLES, Door
from loopr.world.repo.conflicts import lay_files
from loopr.world.repo.ground import OWN_FOLDER, WORK, Ground, backup_ref
from loopr.world.repo.include import copy_included
from loopr.world.repo.laying import finish
from loopr.world.repo.pristine import Unclean, remove
from loopr.world.repo.records import read_record
from loopr.world.repo.refs import Move, is_ancestor, merge_base, move_refs, read_refs
from loopr.world.repo.reusing import prepare
from loopr.world.repo.slots import (
    LOCK_REASON,
    Slot,
    Slots,
    among,
    ensure_locked,
    load,
    next_id,
    opened,
    point,
    save,
    write_line,
)
from loopr.world.repo.words import Worktree

Occupied = Callable[[Path], str]
"""Says why a folder may not be touched, such as a process that lives in it; nothing if it may."""

_CLAIMS = 4
_ADDS = 100


def nobody(_: Path) -> str:
    """Say that a folder is free: for callers who know that no process can be in one."""
    return ""


def take(ground: Ground, name: str, start: str, occupied: Occupied = nobody, *, known: bool = False) -> Worktree:
    """Give a loop its worktree: the one it has, else a clean one on its branch; a new branch begins at `start`.

    `start` is the tip of its plan's branch. Whatever somebody removed by hand, folder or branch, is made again, and so
    is the mark of a branch that is `known` to be ours.
    """
    tip = _ensure_branch(ground, name, start, known)
    for _ in range(_CLAIMS):
        slot = _claim(ground, name, tip, occupied)
        with opened(ground, slot) as at:
            if slot.state == "used":
                finish(at)
                return _worktree(ground, slot, loop_tip(ground, name), start)
            is_new = all(each.name == ".git" for each in at.place.iterdir())
            try:
                prepare(at, tip)
            except Unclean as error:
                if is_new:
                    raise _cannot_be_made(ground, slot, error) from error
                retire(ground, slot, str(error))
                continue
            copied = copy_included(ground, slot.place(ground))
            record = read_record(ground, name)
            if record is not None and record.clash.plan_tip == tip:  # the folder with the conflict was lost
                lay_files(at, record.clash)
        put(ground, slot._replace(state="used"))
        made = _worktree(ground, slot, tip, start)
        return made._replace(fresh=True, copied=copied, new=is_new)
    raise WorldError(f"no worktree for {name} comes clean", hint="`loopr gc --dry-run` names those that were set aside")


def _cannot_be_made(ground: Ground, slot: Slot, error: Unclean) -> WorldError:
    """Take away a new worktree that git cannot fill, in which nothing is anybody's: a second would fare no better."""
    with ground.alone() as door:
        slots = load(ground)
        remove_worktree(ground, slots, slot, door)
        save(ground, slots)
    why = str(error).removeprefix(f"{slot.place(ground)} ")
    return WorldError(
        f"a new worktree for {slot.name} {why}", hint="mend what git names: `git worktree add` would say so"
    )


def _worktree(ground: Ground, slot: Slot, tip: str, start: str) -> Worktree:
    """Describe the worktree of a slot, as it was left."""
    base = merge_base(ground.door, start, tip)
    branch = ground.short_branch(slot.name)
    return Worktree(slot.name, slot.place(ground), slot.admin(ground), branch, tip, base, False)


def command_environment(ground: Ground) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what the environment of a loop's command must have, and the variables that it must not have."""
    unset = tuple(name for name in LOCAL_VARIABLES if name != "GIT_CEILING_DIRECTORIES")
    return {"GIT_CEILING_DIRECTORIES": str(ground.worktrees)}, unset


def _ensure_branch(ground: Ground, name: str, start: str, known: bool) -> str:
    """Make the branch of a loop, or bring it back to the engine's last commit if it is gone; return where it stands."""
    branch, work = ground.branch(name), WORK + name
    refs = read_refs(ground.door, branch, work)
    if known and branch in refs and work not in refs:
        move_refs(ground.door, [Move(work, refs[branch], "")], "loopr: bring back")
        return refs[branch]
    if work not in refs:
        begin_branch(ground, name, work, start)
        return start
    if branch not in refs:
        move_refs(ground.door, [Move(branch, refs[work], "")], "loopr: bring back")
    elif not is_ancestor(ground.door, refs[work], refs[branch]):
        move_refs(ground.door, [Move(backup_ref(name, refs[work]), refs[work])])
    return refs.get(branch, refs[work])


def _claim(ground: Ground, name: str, tip: str, occupied: Occupied) -> Slot:
    """Return the loop's slot, with its folder in its place; a new or pooled one is still to be prepared."""
    with ground.alone() as door:
        slots = load(ground)
        slot = among(slots, name)
        if slot is not None and not _is_whole(ground, slot):
            _let_go(ground, slots, slot, door)
            slot = None
        if slot is None:
            slot = _pooled(ground, slots, occupied) or _add(ground, slots, tip)
            slot = slot._replace(name=name, state="preparing", folder=_free_folder(ground, name))
            slots[slot.id] = slot
            save(ground, slots)
        if slot.pool_place(ground).is_dir():
            ensure_locked(slot.admin(ground))
            slot.pool_place(ground).rename(slot.place(ground))
        return slot


def _is_whole(ground: Ground, slot: Slot) -> bool:
    """Say whether a slot still has its files, here or in the pool, and its administrative folder."""
    has_files = slot.place(ground).is_dir() or slot.pool_place(ground).is_dir()
    return has_files and (slot.admin(ground) / "HEAD").is_file()


def _let_go(ground: Ground, slots: Slots, slot: Slot, door: Door) -> None:
    """Forget a slot that somebody took away in part or whole; its branch has all that was committed."""
    if slot.place(ground).is_dir():
        slots[slot.id] = slot._replace(state="retired", why="git no longer knows this worktree")
    else:
        remove_worktree(ground, slots, slot, door)
    save(ground, slots)


def remove_worktree(ground: Ground, slots: Slots, slot: Slot, door: Door) -> None:
    """Have git remove a worktree, its folder too if there is one; the caller has made sure that nothing is lost."""
    if slot.admin(ground).is_dir():
        if slot.place(ground).is_dir():
            point(ground, slot)  # git removes nothing that does not look whole
        write_line(slot.admin(ground) / "gitdir", f"{slot.place(ground)}/.git")
        door.run("worktree", "remove", "--force", "--force", str(slot.place(ground)))
    slots.pop(slot.id, None)


def _free_folder(ground: Ground, name: str) -> str:
    """Return a folder name for a loop that nothing has: what was set aside stays where a stray process may write."""
    folder, count = name, 1
    while os.path.lexists(ground.worktrees / folder):
        count += 1
        folder = f"{name}~{count}"
    return folder


def _pooled(ground: Ground, slots: Slots, occupied: Occupied) -> Slot | None:
    """Return a free slot in which nothing lives; what is unusable leaves the pool."""
    for slot in [each for each in slots.values() if each.state == "free"]:
        if not slot.place(ground).is_dir() or not slot.admin(ground).is_dir():
            del slots[slot.id]
        elif why := occupied(slot.place(ground)):
            slots[slot.id] = slot._replace(state="retired", why=why)
        else:
            return slot
    return None


def _add(ground: Ground, slots: Slots, commit: str) -> Slot:
    """Make one more worktree, still without files.

    Git would make its administrative folder step by step, and a person's `git worktree prune` may take it half made;
    this one comes into sight whole and locked.
    """
    ensure_ignored(ground)
    slot = Slot(next_id(ground, slots))
    place = slot.place(ground)
    lines = {"HEAD": commit, "commondir": "../..", "gitdir": f"{place}/.git", "locked": LOCK_REASON}
    fresh = ground.common / "loopr" / "making" / slot.id
    fresh.mkdir(parents=True, exist_ok=True)
    for file, text in lines.items():
        write_line(fresh / file, text)
    _bring_in(fresh, slot.admin(ground))
    place.mkdir(parents=True, exist_ok=True)
    return slot


def _bring_in(fresh: Path, admin: Path) -> None:
    """Move an administrative folder to where git looks; git takes away the folder around it whenever it is empty."""
    remove(admin)  # one that a crash kept from being written down
    for _ in range(_ADDS - 1):
        admin.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            fresh.rename(admin)
            return
    fresh.rename(admin)


def ensure_ignored(ground: Ground) -> None:
    """Have git ignore our folders everywhere, through the list that all worktrees share."""
    wanted = [f"{OWN_FOLDER}/"]
    if ground.top is not None and ground.worktrees.is_relative_to(ground.top):
        wanted.append(f"/{ground.worktrees.relative_to(ground.top).as_posix()}/")
    exclude = ground.common / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    if exclude.exists() and not exclude.is_file():  # a pipe would have us wait for ever
        return
    text = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    known = {line.strip("/") for line in text.splitlines()}
    missing = [line for line in wanted if line.strip("/") not in known]
    if missing:
        gap = "" if not text or text.endswith("\n") else "\n"
        with exclude.open("a", encoding="utf-8") as file:
            file.write(gap + "".join(f"{line}\n" for line in missing))


def retire(ground: Ground, slot: Slot, why: str) -> None:
    """Set a slot aside for good: its folder stays as and where it is, and is named by whoever lists leftovers."""
    put(ground, slot._replace(state="retired", why=why))


def put(ground: Ground, slot: Slot) -> None:
    """Remember what a slot is now."""
    with ground.alone():
        slots = load(ground)
        slots[slot.id] = slot
        save(ground, slots)
