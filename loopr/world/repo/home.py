"""How a plan comes home to the base branch: through the one checkout that holds it, never by force.

Knows what a person may have in a checkout, and leaves it alone. Must never know whether the plan is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count

from loopr.errors import Problem
from loopr.world.repo.calls import QUIET, Door
from loopr.world.repo.checkouts import Checkout, checkouts
from loopr.world.repo.ground import CANDIDATE, HEADS, Ground
from loopr.world.repo.landing import Onto
from loopr.world.repo.making import make_commit
from loopr.world.repo.merging import merge_trees
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.protection import with_entries
from loopr.world.repo.refs import (
    Move,
    RefRaced,
    commit_of,
    contained_in,
    is_ancestor,
    merge_base,
    move_refs,
    read_refs,
    refs_below,
    tree_of,
)
from loopr.world.repo.returning import release
from loopr.world.repo.rooms import lay_room
from loopr.world.repo.scanning import NOTHING, changed_entries
from loopr.world.repo.touching import adopt, put_back, touched_problems, undo
from loopr.world.repo.watch import note_move
from loopr.world.repo.words import CameHome, HomeCandidate, Message, Refusal, Worktree

COMMITS_SHOWN = 1000
_OPEN = {"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert"}


def build_home(ground: Ground, found: Onto, onto: str, message: Message) -> HomeCandidate | Refusal:
    """Make the commit that would become the tip of the base branch: the plan's own tip, or a merge of both."""
    plan, stands = found
    door = ground.users_door
    old = read_refs(door, HEADS + onto).get(HEADS + onto, "") if onto else ""
    if not old:
        return Refusal((_no_branch(plan, onto),))
    new, problem = _joined(ground, plan, onto, (old, stands), message)
    if problem is not None:
        return Refusal((problem,))
    put_refs(door, [Move(CANDIDATE + _room(plan), new)], "loopr: candidate")
    commits = door.run("log", "-z", f"--max-count={COMMITS_SHOWN}", "--format=%H %s", f"{old}..{new}")
    changed = tuple(each.path for each in changed_entries(door, old, new))
    rows = tuple(line for line in os.fsdecode(commits.out).split("\0") if line)
    return HomeCandidate(plan, onto, old, new, tree_of(door, new), stands, rows, changed)


def _joined(
    ground: Ground, plan: str, onto: str, tips: tuple[str, str], message: Message
) -> tuple[str, Problem | None]:
    """Return the commit that contains both tips, or why there is none."""
    door, (old, tip) = ground.users_door, tips
    if is_ancestor(door, tip, old):
        return old, None
    if is_ancestor(door, old, tip):
        return tip, None
    branch = ground.short_branch(plan)
    if not merge_base(door, old, tip):
        return "", Problem(f"{onto} has no commit in common with {branch}", hint="name another branch with --onto")
    tree, files, _ = merge_trees(door, old, tip)
    if files:
        hint = by_hand(ground, plan, tip, onto)
        return "", Problem(f"{branch} conflicts with {onto} in {', '.join(files)}", hint=hint)
    if tree == tree_of(door, old):  # as after a squashed pull request
        return old, None
    return make_commit(door, tree, [old, tip], message), None


def by_hand(ground: Ground, plan: str, stands: str, commit: str) -> str:
    """Return the commands for a commit that conflicts with a plan's branch.

    It is resolved beside that, in a folder that is not there yet, and then adopted. Paths are seen
    from the top of the checkout.
    """
    names = (f"{plan}-merge{f'-{each}' if each > 1 else ''}" for each in count(1))
    top = ground.top
    free = next(each for each in names if top is None or not os.path.lexists(top.parent / each))
    made = f"git worktree add --detach ../{free} {stands[:12]}"
    lines = f"{made} && cd ../{free} && git merge {commit}"
    return f"`{lines}`, mend and commit it there, then `loopr adopt {plan} HEAD`"


def is_home(ground: Ground, stands: str, onto: str) -> bool:
    """Say whether a branch has all of a plan, or the plan has nothing that could come home.

    One that began at a detached HEAD is home on any branch but loopr's own, and where HEAD has it.
    """
    if not stands:
        return True
    door = ground.users_door
    if not onto:
        own = HEADS + ground.prefix
        refs = [each for each in refs_below(door, HEADS.rstrip("/")) if not each.startswith(own)]
        head = commit_of(door, "HEAD")
        return bool(contained_in(door, stands, refs)) or is_ancestor(door, stands, head)
    base = read_refs(door, HEADS + onto).get(HEADS + onto, "")
    return bool(base) and (is_ancestor(door, stands, base) or brings_nothing(door, stands, base))


def brings_nothing(door: Door, tip: str, base: str) -> bool:
    """Say whether a branch has all of a plan under other names, as after a squashed pull request."""
    if not merge_base(door, tip, base):
        return False
    tree, files, _ = merge_trees(door, base, tip)
    return not files and tree == tree_of(door, base)


def _no_branch(plan: str, onto: str) -> Problem:
    """Say that there is nowhere to land."""
    if not onto:
        return Problem("the plan began at a detached HEAD", hint=f"loopr land {plan} --onto BRANCH")
    return Problem(f'there is no branch called "{onto}"', hint="name one of `git branch` with --onto")


def _room(plan: str) -> str:
    """Return the name of the worktree in which a plan's homecoming is judged."""
    return f"{plan}.home"


def as_judged(ground: Ground, candidate: HomeCandidate, judges: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the commit that a judge sees, and the files that it has from the base branch.

    What says how something is judged is never taken from what is judged.
    """
    entries = changed_entries(ground.door, candidate.old, candidate.new)
    own = [each for each in entries if each.path in judges and each.was != NOTHING]
    if not own:
        return candidate.new, ()
    tree = with_entries(ground, ground.door, candidate.tree, own)
    commit = make_commit(ground.door, tree, [candidate.new], Message("What is judged"))
    return commit, tuple(each.path for each in own)


def take_home_room(ground: Ground, plan: str, commit: str) -> Worktree:
    """Give a clean worktree that holds exactly a commit, for a judge to work in."""
    return lay_room(ground, _room(plan), commit)


def leave_home_room(ground: Ground, plan: str) -> None:
    """Give that worktree back, with all that a judge has left in it."""
    release(ground, _room(plan), derived=True)


def home_problems(ground: Ground, candidate: HomeCandidate) -> tuple[Problem, ...]:
    """Say everything that keeps a plan from coming home now; changes nothing."""
    return tuple(_problems(ground, candidate, _holding(ground, candidate.branch)))


def bring_home(ground: Ground, candidate: HomeCandidate) -> CameHome | Refusal:
    """Move the base branch and the one checkout that has it, or refuse and change nothing."""
    holding = _holding(ground, candidate.branch)
    problems = tuple(_problems(ground, candidate, holding))
    if problems:
        return Refusal(problems)
    if candidate.new == candidate.old:
        return CameHome(candidate.branch, candidate.new, None)
    note_move(ground, HEADS + candidate.branch, candidate.new)
    if not holding:
        return _move_bare(ground, candidate)
    door = _door(ground, holding[0], candidate.branch)
    entries = changed_entries(door, candidate.old, candidate.new)
    adopted, before = adopt(door, entries)
    said = door.ask(
        *("merge", "--quiet", "--no-stat", "--ff-only", "--no-overwrite-ignore", "--no-autostash"),
        *("--no-verify-signatures", candidate.new),
        variables={"GIT_OPTIONAL_LOCKS": "1"},
    )
    if said.code:
        undo(door, before)
        put_back(door, candidate.old, [each for each in entries if each.path not in set(adopted)])
        told = " ".join(said.err.split())
        return Refusal((Problem(told, str(holding[0].folder), "mend what git names, then again"),))
    return CameHome(candidate.branch, candidate.new, holding[0].folder, tuple(adopted))


def _move_bare(ground: Ground, candidate: HomeCandidate) -> CameHome | Refusal:
    """Move a branch that no checkout holds."""
    try:
        move_refs(ground.door, [Move(HEADS + candidate.branch, candidate.new, candidate.old)], "loopr: land")
    except RefRaced:
        return Refusal((_moved(candidate),))
    return CameHome(candidate.branch, candidate.new, None)


def _door(ground: Ground, checkout: Checkout, branch: str) -> Door:
    """Return git in a person's checkout: their settings hold, but for options they gave to every merge."""
    settings = (*QUIET, (f"branch.{branch}.mergeOptions", ""), ("core.filesRefLockTimeout", "100"))
    return Door(checkout.git_dir, ground.common, checkout.folder, settings)


def _holding(ground: Ground, branch: str) -> list[Checkout]:
    """List the checkouts that have the base branch, or are in the middle of something with it."""
    full = HEADS + branch
    return [each for each in checkouts(ground) if each.branch == full or full in each.busy]


def _problems(ground: Ground, candidate: HomeCandidate, holding: list[Checkout]) -> Iterator[Problem]:
    """Say everything that keeps the plan from coming home."""
    full = HEADS + candidate.branch
    if read_refs(ground.door, full).get(full) != candidate.old:
        yield _moved(candidate)
        return
    for each in holding:
        if full in each.busy:
            yield Problem(f"{candidate.branch} is being {each.busy[full]} in {each.folder}", hint="end that first")
    if len(holding) > 1:
        folders = " and ".join(str(each.folder) for each in holding)
        yield Problem(f"{candidate.branch} is checked out twice, in {folders}", hint="switch one of them")
    if len(holding) == 1 and holding[0].branch == full:
        yield from _checkout_problems(ground, candidate, holding[0])


def _checkout_problems(ground: Ground, candidate: HomeCandidate, checkout: Checkout) -> Iterator[Problem]:
    """Say what is in the way in the checkout that has the base branch."""
    if not checkout.folder.is_dir():
        yield Problem(f"the checkout {checkout.folder} is gone", hint="git worktree prune forgets it")
        return
    for name, words in _OPEN.items():
        if (checkout.git_dir / name).exists():
            yield Problem(f"{words} is not ended in {checkout.folder}", hint="end it, or abort it")
    door = _door(ground, checkout, candidate.branch)
    yield from touched_problems(door, changed_entries(door, candidate.old, candidate.new))


def _moved(candidate: HomeCandidate) -> Problem:
    """Say that the base branch has moved since the candidate was built."""
    return Problem(f"{candidate.branch} has moved meanwhile", hint="run it again: what lands is judged anew")
