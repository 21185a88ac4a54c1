"""How a loop's work comes onto the plan branch: the tree that would land, the one commit, the one transaction.

Every step may be repeated after a crash and then gives the same result. Must never know whether the tree was judged.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from loopr.errors import Problem
from loopr.world.repo.branches import loop_tip
from loopr.world.repo.gitlinks import unpublished
from loopr.world.repo.ground import CANDIDATE, LANDED, Ground, backup_ref
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import make_commit
from loopr.world.repo.merging import merge_trees
from loopr.world.repo.objects import loose_commit
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.pristine import remove
from loopr.world.repo.protection import Protect, changed_protected, put_back, undone_between
from loopr.world.repo.records import read_record
from loopr.world.repo.refs import Move, is_ancestor, merge_base, read_refs, tree_of
from loopr.world.repo.scanning import problems_in_tree
from loopr.world.repo.slots import LAST_LOOP, Opened, need_slot, opened
from loopr.world.repo.tips import Aim, alone_with_plans, bring
from loopr.world.repo.words import Brought, Candidate, Clash, Intent, Message, PutBack, Refusal, Taken

NO_PROTECTION = Protect()
KEY_LENGTH = 32


class Onto(NamedTuple):
    """The plan that something lands on, and where it stands."""

    plan: str
    tip: str


def build_candidate(
    ground: Ground, name: str, onto: Onto, attempt: int, protect: Protect = NO_PROTECTION
) -> Candidate | Clash | Refusal:
    """Make the tree that would land: plan's tip and loop's tip merged, protected paths put back. Moves nothing."""
    plan, stands = onto
    record = read_record(ground, name)
    if record is not None and record.attempt >= attempt:
        return record.clash
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        tip = loop_tip(ground, name)
        base = merge_base(at.door, stands, tip)
        if not base:
            return Refusal((_unrelated(ground, name, plan),))
        theirs = tip
        if base != stands:  # where only the loop has moved there is nothing to merge
            theirs = _with_plans_paths(at, tip, stands, protect)
            merged = merge_trees(at.door, stands, theirs)
            if merged.files:
                return Clash(name, plan, attempt, stands, tip, theirs, *merged)
        own = tree_of(at.door, tip)
        tree, entries = put_back(ground, at.door, own if base == stands else merged.tree, stands, protect)
        return Candidate(
            name,
            plan,
            stands,
            tip,
            tree,
            changed=tuple(each.path for each in entries),
            behind=base != stands,
            as_is=tree == own and base == stands,
            put_back=tuple(changed_protected(ground, at.door, base, tip, protect)),
            refused=(*problems_in_tree(at.door, entries, ground.max_file_bytes), *unpublished(at, entries)),
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


def take_over(ground: Ground, name: str, stands: str, at_ms: int) -> Taken:
    """Bring its plan's tip into a loop's branch and worktree, unless the two conflict; the loop is at rest."""
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        remove(at.admin / LAST_LOOP)  # a command follows
        tip = loop_tip(ground, name)
        if read_record(ground, name) or not merge_base(at.door, tip, stands):
            return Taken("left alone", tip)
        if is_ancestor(at.door, stands, tip):
            return Taken("current", tip)
        if is_ancestor(at.door, tip, stands):
            lay(at, Laying(stands))
            return Taken("moved", stands)
        merged = merge_trees(at.door, stands, tip)
        if merged.files:
            return Taken("left alone", tip)
        tip = _joined(at, stands, tip, merged.tree, at_ms)
        lay(at, Laying(tip))
        return Taken("moved", tip)


def begin_again(ground: Ground, name: str, stands: str) -> str:
    """Bring a loop at rest to its plan's tip; return its own, which a ref keeps."""
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        remove(at.admin / LAST_LOOP)  # a command follows
        tip = loop_tip(ground, name)
        put_refs(at.door, [Move(backup_ref(name, tip), tip)], "loopr: keep")
        lay(at, Laying(stands))
    return tip


def take_together(ground: Ground, name: str, stands: str, at_ms: int) -> None:
    """Make one commit of all tries of a loop at rest, so that git has little to walk; they are kept.

    Its files stay as they are, and a ref of its own keeps the commits that are replaced.
    """
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        tip = loop_tip(ground, name)
        base = merge_base(at.door, tip, stands)
        if not base or base == tip or read_record(ground, name):
            return
        message = Message("Earlier tries, taken together", at_ms=at_ms)
        whole = make_commit(at.door, tree_of(at.door, tip), [base], message)
        put_refs(at.door, [Move(backup_ref(name, tip), tip)], "loopr: keep")
        lay(at, Laying(whole))


def put_back_in_place(ground: Ground, name: str, stands: str, protect: Protect, at_ms: int) -> list[PutBack]:
    """Put protected paths of a worktree at rest back, where all is committed; list them."""
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        if read_record(ground, name):  # it was laid so
            return []
        tip = loop_tip(ground, name)
        before = tree_of(at.door, tip)
        tree, _ = put_back(ground, at.door, before, stands, protect)
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
    return Intent(candidate.name, candidate.plan, candidate.plan_tip, new, tip, candidate.changed)


def land(ground: Ground, intent: Intent, stamp: int) -> Brought:
    """Move the plan branch as was announced, and remember the loop's tip, in one transaction; again changes nothing.

    Whatever else stood there is kept under the instant `stamp`.
    """
    keep = Move(LANDED + intent.name, intent.loop_tip)
    with alone_with_plans(ground):
        return bring(ground, intent.plan, Aim(intent.new, intent.old), stamp, [keep])


def is_there(ground: Ground, commit: str) -> bool:
    """Say whether a commit can be read: a power cut may have taken one that nothing held yet.

    A git that cannot answer is no answer: it raises, and the commit may be where it was.
    """
    if loose_commit(ground.door, commit) is not None:
        return True
    said = ground.door.run("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
    return said.line == "commit"


def keep_own(ground: Ground, name: str) -> None:
    """Remember the tip of a loop that has landed nothing."""
    put_refs(ground.door, [Move(LANDED + name, loop_tip(ground, name))], f"loopr: landed {name}")
