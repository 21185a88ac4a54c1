"""Where plans begin, and their branches: made once, moved by landings, looked at before each of them.

Knows the refs of a plan. Must never know loops, worktrees or what lands.
"""

from __future__ import annotations

from pathlib import Path

from loopr.errors import Problem, SettingsError, WorldError
from loopr.world.repo.calls import GitFailed
from loopr.world.repo.checkouts import holders, read_line
from loopr.world.repo.ground import HEADS, PLANS, WORK, Ground
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.refs import Move, RefRaced, commit_of, is_ancestor, move_refs, read_refs
from loopr.world.repo.words import PlanTip, Start, Waits


def start_point(ground: Ground, branch: str | None = None) -> Start:
    """Return the branch and commit that new plans begin at: a named branch, else what is checked out."""
    if branch is not None:
        commit = commit_of(ground.door, f"{HEADS}{branch}")
        if not commit:
            raise SettingsError(f'there is no branch called "{branch}"', hint="name one of `git branch` as git.base")
        return Start(branch, commit)
    commit = commit_of(ground.users_door, "HEAD")
    if not commit:
        raise SettingsError(
            f"the repository at {ground.top or ground.common} has no commit yet",
            hint='make one first: git commit --allow-empty -m "begin"',
        )
    name = ground.users_door.ask("symbolic-ref", "--quiet", "HEAD").line
    return Start(name.removeprefix(HEADS), commit)


def ensure_plan(ground: Ground, plan: str, base_commit: str) -> PlanTip:
    """Make the branch of a plan at its base commit if there is none yet, and return where it stands."""
    door = ground.door
    branch, marker = ground.branch(plan), PLANS + plan
    refs = read_refs(door, branch, marker)
    if marker in refs:
        if branch not in refs and is_ancestor(door, refs[marker], base_commit):  # a crash came between the two
            move_refs(door, [Move(branch, refs[marker], "")])
        return plan_tip(ground, plan)
    begin_branch(ground, plan, marker, base_commit)
    return PlanTip(base_commit, base_commit)


def begin_branch(ground: Ground, name: str, marker: str, commit: str) -> None:
    """Make a branch of ours after the ref that marks it as ours, or say whose branch is in the way."""
    door, branch = ground.door, ground.branch(name)
    if read_refs(door, branch):
        _refuse_foreign(ground, name)
    try:  # a marker without its branch, which a crash may leave, is mended by the next call
        put_refs(door, [Move(marker, commit, ""), Move(branch, commit, "")], f"loopr: begin {name}")
    except GitFailed:
        move_refs(door, [Move(marker, "") for _ in read_refs(door, marker)], "loopr: not begun")
        _refuse_foreign(ground, name)
        raise


def _refuse_foreign(ground: Ground, name: str) -> None:
    """Raise where a branch of somebody else's has the name of ours, or stands in its way."""
    short, branch = ground.short_branch(name), ground.branch(name)
    if read_refs(ground.door, branch):
        raise SettingsError(
            f'there is a branch "{short}" already, and loopr did not make it',
            hint=f"rename it: git branch -m {short} {short}-old",
        )
    parts = short.split("/")[:-1]
    above = [HEADS + "/".join(parts[: count + 1]) for count in range(len(parts))]
    for found in read_refs(ground.door, *above, branch + "/"):
        in_way = found.removeprefix(HEADS)
        raise SettingsError(
            f'a branch called "{in_way}" is in the way of "{short}"',
            hint=f"rename it: git branch -m {in_way} {in_way.replace('/', '-')}-old, or set git.branch_prefix",
        )


def loop_tip(ground: Ground, name: str) -> str:
    """Return where the branch of a loop stands; one that somebody deleted comes back at the engine's last commit."""
    branch, work = ground.branch(name), WORK + name
    refs = read_refs(ground.door, branch, work)
    if branch in refs:
        return refs[branch]
    if work not in refs:
        raise WorldError(f'the branch "{ground.short_branch(name)}" is gone', hint="`loopr retry --fresh` begins anew")
    put_refs(ground.door, [Move(branch, refs[work], "")], "loopr: bring back")
    return refs[work]


def plan_tip(ground: Ground, plan: str) -> PlanTip:
    """Return where a plan branch stands; what somebody else put on top counts, what somebody took away does not."""
    door = ground.door
    branch, marker = ground.branch(plan), PLANS + plan
    refs = read_refs(door, branch, marker)
    recorded = refs.get(marker, "")
    tip = refs.get(branch, "")
    if not tip or not recorded:
        return PlanTip(tip, recorded, _lost(ground, plan, tip, recorded))
    if not is_ancestor(door, recorded, tip):
        return PlanTip(tip, recorded, _lost(ground, plan, tip, recorded))
    return PlanTip(tip, recorded)


def _lost(ground: Ground, plan: str, tip: str, recorded: str) -> Problem:
    """Say that a plan branch has lost commits, with both ends named."""
    short = ground.short_branch(plan)
    if not recorded:
        return Problem(f'nothing is recorded of the branch "{short}"', hint=f"loopr start the plan {plan} again")
    if not tip:
        return Problem(f'the branch "{short}" is gone; it stood at {recorded}', hint=f"git branch {short} {recorded}")
    return Problem(
        f'the branch "{short}" stands at {tip} and has lost commits that were landed, up to {recorded}',
        hint=f"git branch -f {short} {recorded}, or merge {recorded} into it",
    )


def move_plan(ground: Ground, plan: str, old: str, new: str) -> bool:
    """Let the branch of a plan that has nothing of its own stand elsewhere; say whether nobody was faster."""
    try:
        move_refs(ground.door, [Move(ground.branch(plan), new, old), Move(PLANS + plan, new)], "loopr: begin elsewhere")
    except RefRaced:
        return False
    return True


def plan_in_use(ground: Ground, plan: str) -> Waits | None:
    """Say where a plan branch is checked out outside our folder, None if it is free to move."""
    for each in holders(ground, ground.branch(plan)):
        short = ground.short_branch(plan)
        what = each.busy.get(ground.branch(plan), "checked out")
        return Waits("checked out", Problem(f'the branch "{short}" is {what} in {each.folder}', hint="switch it there"))
    return None


def head_of(git_dir: Path) -> str:
    """Return what the HEAD of a worktree says: the full name of a branch, or a commit."""
    return read_line(git_dir / "HEAD").removeprefix("ref:").strip()
