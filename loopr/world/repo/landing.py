"""How a loop's work comes onto the plan branch: the tree that would land, the one commit, the one transaction.

Every step may be repeated after a crash and then gives the same result. Must never know whether the tree was judged.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from loopr.errors import Problem
from loopr.world.repo.branches import loop_tip, plan_in_use, plan_tip
from loopr.world.repo.ground import CANDIDATE, LANDED, PLANS, Ground, backup_ref
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import make_commit
from loopr.world.repo.merging import merge_trees
from loopr.world.repo.own_refs import put_refs, put_together
from loopr.world.repo.pristine import remove
from loopr.world.repo.protection import Protect, changed_protected, put_back, undone_between
from loopr.world.repo.records import read_record
from loopr.world.repo.refs import Move, RefRaced, is_ancestor, merge_base, move_refs, read_refs, tree_of
from loopr.world.repo.scanning import problems_in_tree
from loopr.world.repo.slots import LAST_LOOP, Opened, need_slot, opened
from loopr.world.repo.words import (
    Candidate,
    Clash,
    Intent,
    Landed,
    Message,
    Overtaken,
    PutBack,
    Refusal,
    Taken,
    Waits,
)

NO_PROTECTION = Protect()
KEY_LENGTH = 32


def build_candidate(
    ground: Ground, name: str, plan: str, attempt: int, protect: Protect = NO_PROTECTION
) -> Candidate | Clash | Refusal:
    """Make the tree that would land: plan's tip and loop's tip merged, protected paths put back. Moves nothing."""
    record = read_record(ground, name)
    if record is not None and record.attempt >= attempt:
        return record.clash
    now = plan_tip(ground, plan)
    if now.problem is not None:
        return Refusal((now.problem,))
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        tip = loop_tip(ground, name)
        base = merge_base(at.door, now.tip, tip)
        if not base:
            return Refusal((_unrelated(ground, name, plan),))
        theirs = tip
        if base != now.tip:  # where only the loop has moved there is nothing to merge
            theirs = _with_plans_paths(at, tip, now.tip, protect)
            merged = merge_trees(at.door, now.tip, theirs)
            if merged.files:
                return Clash(name, plan, attempt, now.tip, tip, theirs, *merged)
        own = tree_of(at.door, tip)
        tree, entries = put_back(ground, at.door, own if base == now.tip else merged.tree, now.tip, protect)
        return Candidate(
            name,
            plan,
            now.tip,
            tip,
            tree,
            changed=tuple(each.path for each in entries),
            behind=base != now.tip,
            as_is=tree == own and base == now.tip,
            put_back=tuple(changed_protected(at.door, base, tip, protect)),
            refused=tuple(problems_in_tree(at.door, entries, ground.max_file_bytes)),
        )


def _with_plans_paths(at: Opened, tip: str, plan_tip: str, protect: Protect) -> str:
    """Return the loop's tip with what is not its to change as the plan has it: no conflict can come from there."""
    before = tree_of(at.door, tip)
    tree, _ = put_back(at.ground, at.door, before, plan_tip, protect)
    return tip if tree == before else make_commit(at.door, tree, [tip], Message("protected paths put back"))


def _unrelated(ground: Ground, name: str, plan: str) -> Problem:
    """Say that the loop's branch has no common past with the plan's."""
    loop, branch = ground.short_branch(name), ground.short_branch(plan)
    return Problem(f"{loop} has no commit in common with {branch}", hint=f"begin again from {branch}")


def lay_candidate(ground: Ground, candidate: Candidate, at_ms: int) -> str:
    """Put the tree that would land into the loop's worktree, for a judge to work on; returns the loop's new tip."""
    with opened(ground, need_slot(ground, candidate.name)) as at:
        finish(at)
        tip = candidate.loop_tip
        if not candidate.as_is:
            tip = _joined(at, candidate.plan_tip if candidate.behind else "", tip, candidate.tree, at_ms)
        lay(at, Laying(tip, judged=True))
    return tip


def end_judging(ground: Ground, name: str) -> None:
    """Take away what a judge left in the worktree; nothing happens where none was at work."""
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)


def take_over(ground: Ground, name: str, plan: str, at_ms: int) -> Taken:
    """Bring the plan's newest tip into a loop's branch and worktree, unless the two conflict; the loop is at rest."""
    now = plan_tip(ground, plan)
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        remove(at.admin / LAST_LOOP)  # a command follows
        tip = loop_tip(ground, name)
        if now.problem is not None or read_record(ground, name) or not merge_base(at.door, tip, now.tip):
            return Taken("left alone", tip)
        if is_ancestor(at.door, now.tip, tip):
            return Taken("current", tip)
        if is_ancestor(at.door, tip, now.tip):
            lay(at, Laying(now.tip))
            return Taken("moved", now.tip)
        merged = merge_trees(at.door, now.tip, tip)
        if merged.files:
            return Taken("left alone", tip)
        tip = _joined(at, now.tip, tip, merged.tree, at_ms)
        lay(at, Laying(tip))
        return Taken("moved", tip)


def take_together(ground: Ground, name: str, plan: str, at_ms: int) -> None:
    """Make one commit of all tries of a loop at rest, so that git has little to walk; they are kept.

    Its files stay as they are, and a ref of its own keeps the commits that are replaced.
    """
    now = plan_tip(ground, plan)
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        tip = loop_tip(ground, name)
        base = merge_base(at.door, tip, now.tip) if now.problem is None else ""
        if not base or base == tip or read_record(ground, name):
            return
        message = Message("Earlier tries, taken together", at_ms=at_ms)
        whole = make_commit(at.door, tree_of(at.door, tip), [base], message)
        put_refs(at.door, [Move(backup_ref(name, tip), tip)], "loopr: keep")
        lay(at, Laying(whole))


def put_back_in_place(ground: Ground, name: str, plan: str, protect: Protect, at_ms: int) -> list[PutBack]:
    """Put protected paths of a worktree at rest back, where all is committed; list them."""
    now = plan_tip(ground, plan)
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        if now.problem is not None or read_record(ground, name):  # it was laid so
            return []
        tip = loop_tip(ground, name)
        before = tree_of(at.door, tip)
        tree, _ = put_back(ground, at.door, before, now.tip, protect)
        if tree == before:
            return []
        lay(at, Laying(make_commit(at.door, tree, [tip], Message("Put protected paths back", at_ms=at_ms))))
        return undone_between(at.door, tree, before)


def _joined(at: Opened, plan_tip: str, loop_tip: str, tree: str, at_ms: int) -> str:
    """Make a commit of the loop's branch that has this tree and, where one is given, contains the plan's tip."""
    message = Message(f"Take over the tip of {at.ground.prefix}{at.name.partition('.')[0]}", at_ms=at_ms)
    return make_commit(at.door, tree, [loop_tip, *([plan_tip] if plan_tip else [])], message)


def verdict_key(tree: str, check: str) -> str:
    """Return the key under which a yes for this very tree by this very check may be remembered."""
    return hashlib.sha256(f"{tree}\0{check}".encode()).hexdigest()[:KEY_LENGTH]


def make_intent(
    ground: Ground, candidate: Candidate, message: Message, history: Literal["squash", "merge"] = "squash"
) -> Intent:
    """Make the one commit that lands, keep it under a ref of its own, and say what is about to be done."""
    door = ground.door
    tip = read_refs(door, ground.branch(candidate.name)).get(ground.branch(candidate.name), candidate.loop_tip)
    new = candidate.plan_tip
    if not candidate.empty:
        parents = [candidate.plan_tip, *([tip] if history == "merge" else [])]
        new = make_commit(door, candidate.tree, parents, message)
    put_refs(door, [Move(CANDIDATE + candidate.name, new)], "loopr: candidate")
    return Intent(candidate.name, candidate.plan, candidate.plan_tip, new, tip)


def has_landed(ground: Ground, name: str, intent: Intent | None = None) -> bool:
    """Say whether a loop has landed, wherever its plan's branch has gone since.

    The ref that says so is made with the move of the plan's branch. Git writes one ref after the other, this one last:
    where a crash came between them the intent that was written down tells, and `land` with it does what is missing.
    """
    if LANDED + name in read_refs(ground.door, LANDED + name):
        return True
    branch = "" if intent is None else ground.branch(intent.plan)
    tip = read_refs(ground.door, branch).get(branch) if branch else None
    if intent is None or tip is None or intent.new == intent.old:
        return False
    return is_ancestor(ground.door, intent.new, tip)


def land(ground: Ground, intent: Intent) -> Landed | Waits | Overtaken | Refusal:
    """Move the plan branch and remember the loop's tip, in one transaction; doing it again changes nothing."""
    door, branch, marker = ground.door, ground.branch(intent.plan), PLANS + intent.plan
    now = plan_tip(ground, intent.plan)
    keep = Move(LANDED + intent.name, intent.loop_tip)
    done = intent.new == now.tip or (now.tip != intent.old and is_ancestor(door, intent.new, now.tip))
    if now.tip and done:
        recorded = [Move(marker, now.tip)] if now.problem is None and now.recorded != now.tip else []
        move_refs(door, [keep, *recorded], f"loopr: landed {intent.name}")
        return Landed(intent.new)
    if now.problem is not None:
        return Refusal((now.problem,))
    if now.tip != intent.old:
        return Overtaken(now.tip)
    waits = plan_in_use(ground, intent.plan)
    if waits is not None:
        return waits
    moves = [Move(branch, intent.new, intent.old), Move(marker, intent.new), keep]
    try:
        put_together(door, moves, f"loopr: land {intent.name}")
    except RefRaced:
        return Overtaken(plan_tip(ground, intent.plan).tip)
    return Landed(intent.new)
