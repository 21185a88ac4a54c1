"""Where plans begin, and how branches are made that are loopr's: of plans, and of loops.

Knows what marks a branch as ours. Must never know worktrees or what lands.
"""

from __future__ import annotations

from pathlib import Path

from loopr.errors import SettingsError, WorldError
from loopr.world.repo.calls import GitFailed
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.ground import HEADS, PLANS, WORK, Ground
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.refs import Move, commit_of, is_ancestor, move_refs, read_refs
from loopr.world.repo.words import Start


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


def ensure_plan(ground: Ground, plan: str, base_commit: str) -> str:
    """Make the branch of a plan that has not begun, or say whose branch is in the way; return where it begins.

    A journal may have lost that it had begun: branch and mark then agree on something that is made upon its base.
    """
    door = ground.door
    branch, marker = ground.branch(plan), PLANS + plan
    refs = read_refs(door, branch, marker)
    made = refs.get(marker, "")
    if made and refs.get(branch) == made and is_ancestor(door, base_commit, made):
        return made
    if made and refs.get(branch, made) == made and is_ancestor(door, made, base_commit):
        # a crash came between, or its base has moved on since
        move_refs(door, [Move(branch, base_commit, refs.get(branch, "")), Move(marker, base_commit)], "loopr: begin")
        return base_commit
    begin_branch(ground, plan, marker, base_commit)
    return base_commit


def begin_branch(ground: Ground, name: str, marker: str, commit: str) -> None:
    """Make a branch of ours after the ref that marks it as ours, or say whose branch is in the way."""
    door, branch = ground.door, ground.branch(name)
    if read_refs(door, branch):
        _refuse_foreign(ground, name)
    try:  # a marker without its branch, which a crash may leave, is mended by the next call
        put_refs(door, [Move(marker, commit), Move(branch, commit, "")], f"loopr: begin {name}")
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


def loop_tip(ground: Ground, name: str, start: str = "") -> str:
    """Return where the branch of a loop stands; one that somebody deleted comes back at the engine's last commit.

    Where that mark is gone too it comes back at `start`, if given: only while all of its work lies in its folder.
    """
    branch, work = ground.branch(name), WORK + name
    refs = read_refs(ground.door, branch, work)
    if branch in refs:
        return refs[branch]
    if work not in refs and start:
        put_refs(ground.door, [Move(work, start), Move(branch, start, "")], "loopr: bring back")
        return start
    if work not in refs:
        raise WorldError(f'the branch "{ground.short_branch(name)}" is gone', hint="`loopr retry --fresh` begins anew")
    put_refs(ground.door, [Move(branch, refs[work], "")], "loopr: bring back")
    return refs[work]


def head_of(git_dir: Path) -> str:
    """Return what the HEAD of a worktree says: the full name of a branch, or a commit."""
    return read_line(git_dir / "HEAD").removeprefix("ref:").strip()
