"""Puts the refs and worktrees of an old journal aside, so that a new one begins without them; nothing is deleted.

Must never know why the journal is begun anew.
"""

from __future__ import annotations

from loopr.world.repo.branches import head_of
from loopr.world.repo.calls import Door
from loopr.world.repo.checkouts import checkouts
from loopr.world.repo.ground import HEADS, OLD, OWN_REFS, PLANS, WORK, Ground
from loopr.world.repo.refs import Move, move_refs, read_refs
from loopr.world.repo.slots import Slots, load, save, write_line

_ASIDE = ".aside-"  # in the name of a branch: a worktree that was set aside has it


def set_old_aside(ground: Ground, word: str) -> dict[str, str]:
    """Move every ref of loopr's below `refs/loopr/old/WORD/`, retire its worktrees, and return old names to new."""
    with ground.alone() as door:
        refs = read_refs(door, HEADS + ground.prefix, OWN_REFS)
        ours = {ref: commit for ref, commit in refs.items() if _is_ours(ground, ref, refs)}
        _retire(ground, ours)
        held = {each.branch for each in checkouts(ground)}
        names = {ref: OLD + word + "/" + ref.removeprefix("refs/").removeprefix("loopr/") for ref in ours}
        _rename(door, {ref: (names[ref], commit, ref not in held) for ref, commit in ours.items()})
    return names


def _is_ours(ground: Ground, ref: str, refs: dict[str, str]) -> bool:
    """Say whether loopr has made a ref: a branch has a mark beside it."""
    if not ref.startswith(HEADS):
        return not ref.startswith(OLD)
    name = ref.removeprefix(HEADS + ground.prefix)
    return PLANS + name in refs or WORK + name in refs or _ASIDE in name


def _retire(ground: Ground, refs: dict[str, str]) -> None:
    """Take each worktree that is in use off its branch, and leave it as it is for people to look at."""
    slots: Slots = load(ground)
    for slot in slots.values():
        head = slot.admin(ground) / "HEAD"
        if not head.is_file():
            continue
        branch = head_of(slot.admin(ground))
        if branch in refs:
            write_line(head, refs[branch])
        if slot.state not in ("free", "retired"):
            slots[slot.id] = slot._replace(state="retired", why="it is of a journal from before")
    save(ground, slots)


def _rename(door: Door, renamed: dict[str, tuple[str, str, bool]]) -> None:
    """Give refs other names in one transaction; a branch that a person has checked out stays as well."""
    made = [Move(new, commit) for new, commit, _ in renamed.values()]
    gone = [Move(ref, "", commit) for ref, (_, commit, goes) in renamed.items() if goes]
    move_refs(door, [*made, *gone], "loopr: begin anew")
