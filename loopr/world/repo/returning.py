"""How a worktree is given back: to the pool if all that was in it is safe, else it is kept and named.

Knows what would be lost with a folder. Must never know why the loop needs it no more.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.errors import Problem
from loopr.world.repo.branches import head_of, loop_tip
from loopr.world.repo.checkouts import is_checked_out, read_line
from loopr.world.repo.gitlinks import MODULES, ask_store, stores
from loopr.world.repo.ground import CANDIDATE, LANDED, PLANS, WORK, Ground, backup_ref
from loopr.world.repo.laying import finish
from loopr.world.repo.own_refs import drop_refs, put_refs
from loopr.world.repo.refs import Move, commit_of, contained_in, is_ancestor, move_refs, read_refs
from loopr.world.repo.reusing import save_files
from loopr.world.repo.slots import (
    LAST_LOOP,
    LOCK_REASON,
    PRIVATE_INDEX,
    Opened,
    Slot,
    Slots,
    displaced,
    load,
    opened,
    save,
    slot_of,
    write_line,
)
from loopr.world.repo.words import Released
from loopr.world.repo.worktrees import Occupied, nobody, put, remove_worktree, retire


def release(
    ground: Ground, name: str, occupied: Occupied = nobody, *, derived: bool = False, packs: bool = False
) -> Released:
    """Give a loop's worktree back, and its branch where its work is safe elsewhere; `derived` work needs no safety.

    Of one that is packed the branch stays, and so does the folder where something lives in it.
    """
    slot = slot_of(ground, name)
    outcome = Released("absent")
    if slot is not None:
        goes = slot.state == "used" and not _has_room(ground, load(ground))
        if slot.place(ground).is_dir():
            why = occupied(slot.place(ground))
            if why:
                if not packs:
                    retire(ground, slot, why)
                return Released("kept", why)
            why = _emptied(ground, slot, derived=derived, goes=goes)
            if why:
                return Released("kept", why)
        outcome = _to_pool(ground, slot, goes=goes)
    if not packs:
        _drop_refs(ground, name, derived)
    return outcome


def _has_room(ground: Ground, slots: Slots) -> bool:
    """Say whether the pool takes one more of those that are there."""
    there = sum(each.state != "retired" for each in slots.values())
    within = ground.most is None or there <= ground.most
    return within and sum(each.state == "free" for each in slots.values()) < ground.pool


def _emptied(ground: Ground, slot: Slot, *, derived: bool, goes: bool) -> str:
    """Save what a worktree holds, before it goes for good in any case, and take it off its branch; says why not."""
    with opened(ground, slot) as at:
        if slot.state == "used":
            finish(at)
            why = "" if derived else unsaved(at, goes=goes)
            if why:
                return why
        write_line(at.admin / "HEAD", _last_commit(at))
    return ""


def _last_commit(at: Opened) -> str:
    """Return the engine's last commit of the loop, or where its branch stands if that is not known."""
    refs = read_refs(at.door, at.branch, WORK + at.name)
    return refs.get(WORK + at.name) or loop_tip(at.ground, at.name)


def set_aside(ground: Ground, name: str, why: str) -> str:
    """Leave a worktree for good to whatever may still live in it, on a branch of its own; returns that branch."""
    slot = slot_of(ground, name)
    if slot is None or not slot.admin(ground).is_dir():
        return ""
    aside = f"{name}.aside-{slot.id}"
    with opened(ground, slot) as at:
        refs = read_refs(at.door, at.branch, WORK + name)
        work = _last_commit(at)
        move_refs(at.door, [Move(ground.branch(aside), refs.get(at.branch, work))], "loopr: set aside")
        if head_of(at.admin) == at.branch:
            write_line(at.admin / "HEAD", f"ref: {ground.branch(aside)}")
        move_refs(at.door, [Move(at.branch, work)], "loopr: back to the last commit")
    put(ground, slot._replace(state="retired", why=why))
    return ground.short_branch(aside)


def unsaved(at: Opened, *, goes: bool) -> str:
    """Save what a worktree holds that is not committed, and say what cannot be saved.

    What came after a commit of everything is saved by whoever gets the worktree next, before a file is touched.
    """
    if displaced(at.place):
        return "a repository of its own was made in it"
    locked = read_line(at.admin / "locked")
    if locked != LOCK_REASON:
        return f"it is locked: {locked}"
    for problem in unpushed(at):
        return problem
    on_branch = head_of(at.admin) == at.branch
    head = read_refs(at.door, at.branch).get(at.branch, "") if on_branch else commit_of(at.door, "HEAD")
    tip = _last_commit(at)
    if head and head != tip and not is_ancestor(at.door, head, tip):
        put_refs(at.door, [Move(backup_ref(at.name, head), head)], "loopr: keep")
    if not goes and read_line(at.admin / LAST_LOOP) == at.name and not (at.admin / MODULES).exists():
        return ""
    refused = _save_files(at, head or tip)
    return f"it holds {refused[0].where}, which is not committed: {refused[0].message}" if refused else ""


def _save_files(at: Opened, parent: str) -> list[Problem]:
    """Commit under a backup ref what differs from the last commit, and return what is refused."""
    listed = at.door.with_index(at.admin / PRIVATE_INDEX).ask(
        *("ls-files", "-o", "-m", "-d", "--exclude-standard", "-z"), *_not_own()
    )
    if listed.code == 0 and not (listed.out or listed.err):
        return []
    return save_files(at, at.name, parent)


def _not_own() -> tuple[str, str]:
    """Return the words that leave loopr's own folder out."""
    return ("--", ":(top,exclude,literal).loopr")


def unpushed(at: Opened) -> Iterator[str]:
    """Name the submodules that hold commits or changes which are nowhere else."""
    for git_dir in stores(at.admin / MODULES):
        text = read_line(git_dir / "config")
        folders = [line.partition("=")[2].strip() for line in text.splitlines() if line.strip().startswith("worktree")]
        place = (git_dir / folders[0]).resolve() if folders else git_dir
        commits = ask_store(git_dir, "rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes")
        if commits.out:
            yield f"the submodule in {place} has commits that were not pushed"
        elif place.is_dir() and place != git_dir and ask_store(git_dir, "status", "--porcelain", place=place).out:
            yield f"the submodule in {place} has changes that are not committed"


def _to_pool(ground: Ground, slot: Slot, *, goes: bool) -> Released:
    """Put a worktree into the pool, or have git remove it if there are enough; a crash leaves it on its way.

    One that goes was looked through for what came late: no other is removed.
    """
    with ground.alone() as door:
        slots = load(ground)
        if (now := slots.get(slot.id)) is None or now.name != slot.name:  # somebody else has given it back
            return Released("absent")
        place, pooled = slot.place(ground), slot.pool_place(ground)
        if (goes and not _has_room(ground, slots)) or not (place.is_dir() or pooled.is_dir()):
            remove_worktree(ground, slots, slot, door)
            save(ground, slots)
            return Released("removed")
        slots[slot.id] = slot._replace(state="returning")
        save(ground, slots)
        if place.is_dir():
            pooled.parent.mkdir(parents=True, exist_ok=True)
            place.rename(pooled)
        write_line(slot.admin(ground) / "gitdir", f"{pooled}/.git")
        slots[slot.id] = Slot(slot.id)
        save(ground, slots)
        return Released("pooled")


def _drop_refs(ground: Ground, name: str, derived: bool) -> None:
    """Delete the branch of a loop and what was kept beside it, where its commits are safe."""
    branch = ground.branch(name)
    refs = read_refs(ground.door, branch, CANDIDATE + name, WORK + name)  # it is found by the last one after a crash
    tips = {refs[ref] for ref in (branch, WORK + name) if ref in refs}
    landed = read_refs(ground.door, LANDED + name).get(LANDED + name)
    safe = derived or all(tip == landed or is_safe(ground, tip) for tip in tips)
    if not refs or not safe or is_checked_out(ground, branch):
        return
    with ground.alone() as door:
        drop_refs(door, refs, f"loopr: done with {name}")


def is_safe(ground: Ground, commit: str) -> str:
    """Return the ref that keeps a loop's commits without its own branch, nothing if there is none."""
    return contained_in(ground.door, commit, [LANDED, PLANS])
