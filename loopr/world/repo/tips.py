"""Brings the branch of a plan to where the journal says that it stands, and keeps what somebody else put there.

The branch, and the ref beside it, are copies. Knows refs and checkouts. Must never know who has moved a branch, nor
decide where one stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from loopr.world.repo.calls import GitFailed
from loopr.world.repo.checkouts import holders
from loopr.world.repo.ground import BACKUP, PLANS, Ground
from loopr.world.repo.locks import held
from loopr.world.repo.own_refs import put_refs, put_together
from loopr.world.repo.refs import COMMIT, Move, commit_of, is_ancestor, move_refs, read_refs, refs_below
from loopr.world.repo.words import Brought, Outcome

_TRIES = 5
_KEPT = re.compile(r"\d{13}-[0-9a-f]{12}")


@contextmanager
def alone_with_plans(ground: Ground) -> Iterator[None]:
    """Let nobody else look after the branches of plans meanwhile, in any process."""
    with held(ground.state / "locks" / "plans.lock"):
        yield


def stands_right(ground: Ground, plan: str, at: str) -> bool:
    """Say whether branch and copy stand where the plan does; reads files only."""
    branch, copy = ground.branch(plan), PLANS + plan
    return read_refs(ground.door, branch, copy) == {branch: at, copy: at}


def is_gone(ground: Ground, plan: str) -> bool:
    """Say whether a plan has no branch."""
    return not read_refs(ground.door, ground.branch(plan))


def holder_of(ground: Ground, plan: str) -> str:
    """Name the folder, not one of ours, that has the branch of a plan; nothing where it is free to move."""
    return next((str(each.folder) for each in holders(ground, ground.branch(plan))), "")


def foreign_tip(ground: Ground, plan: str, at: str) -> str:
    """Return where a plan's branch stands if that is nothing that loopr has made; a branch that lags is loopr's."""
    branch = ground.branch(plan)
    tip = read_refs(ground.door, branch).get(branch, "")
    return "" if tip in ("", at) or is_ancestor(ground.door, tip, at) else tip


class Aim(NamedTuple):
    """Where a plan's branch belongs, and from where it moves there; with `leave`, nothing foreign is moved."""

    at: str
    old: str = ""
    leave: bool = False


def bring(ground: Ground, plan: str, aim: Aim, stamp: int, beside: Sequence[Move] = ()) -> Brought:
    """Bring a plan's branch to where it belongs, for whoever is alone with the plans.

    What is foreign there is kept under a backup that is named by the instant `stamp`. Nothing is moved that a checkout
    holds which is not ours. `beside` are refs that move in the same transaction.
    """
    for _ in range(_TRIES):
        try:
            return _brought(ground, plan, aim, stamp, beside)
        except GitFailed as error:  # somebody is at it, or has put something in the way
            if error.lock is not None:
                raise
            failed = error
            _free(ground, plan, [ground.branch(plan), PLANS + plan, *(each.ref for each in beside)], stamp)
    raise failed


def _brought(ground: Ground, plan: str, aim: Aim, stamp: int, beside: Sequence[Move]) -> Brought:
    """Bring the branch, if it is still where it is read to be."""
    door, branch, copy = ground.door, ground.branch(plan), PLANS + plan
    refs = read_refs(door, branch, copy)
    tip = refs.get(branch, "")
    moves = [*([Move(copy, aim.at)] if refs.get(copy) != aim.at else []), *beside]
    behind = bool(tip) and tip not in (aim.at, aim.old) and is_ancestor(door, tip, aim.at)
    foreign = tip if tip not in (aim.at, aim.old) or not tip else None
    kept = keep(ground, plan, tip, stamp) if foreign and not behind else ""
    folder = holder_of(ground, plan) if tip and tip != aim.at else ""
    if tip == aim.at:
        outcome: Outcome = "right"
    elif folder:
        outcome = "left" if foreign and not behind else "lags"
    else:
        outcome = "left" if aim.leave and foreign is not None and not behind else "moved"
    if outcome == "moved":
        moves.insert(0, Move(branch, aim.at, tip))
    put_together(door, moves, f"loopr: {plan}")
    return Brought(outcome, foreign, kept, folder, behind)


def _free(ground: Ground, plan: str, names: Sequence[str], stamp: int) -> None:
    """Take away what keeps refs of ours from being made: refs below their names, and such as lead elsewhere.

    The commits of these are kept. What a person has checked out stays.
    """
    for name in names:
        for ref, text in refs_below(ground.door, name).items():
            if not COMMIT.fullmatch(text):
                (ground.common / ref).unlink(missing_ok=True)
            elif ref != name and not holders(ground, ref):
                keep(ground, plan, text, stamp)
                move_refs(ground.door, [Move(ref, "", text)], "loopr: in the way")


def keep(ground: Ground, plan: str, tip: str, stamp: int) -> str:
    """Keep a commit that was found on a plan's branch, once; returns its ref, nothing where it is no commit."""
    kept = kept_tips(ground, plan)
    known = next((ref for ref, commit in kept.items() if commit == tip), "")
    if known or not commit_of(ground.door, tip):
        return known
    ref = f"{BACKUP}{plan}/{stamp:013d}-{tip[:12]}"
    put_refs(ground.door, [Move(ref, tip)], "loopr: keep")
    return ref


def kept_tips(ground: Ground, plan: str) -> dict[str, str]:
    """Map the refs under which commits from a plan's branch are kept to them, oldest first."""
    place = f"{BACKUP}{plan}"
    found = refs_below(ground.door, place)
    return {ref: found[ref] for ref in sorted(found) if _KEPT.fullmatch(ref.removeprefix(f"{place}/"))}


def drop_kept(ground: Ground, ref: str) -> None:
    """Let go of a commit that was kept."""
    move_refs(ground.door, [Move(ref, "") for _ in read_refs(ground.door, ref)], "loopr: too many")
