"""Puts back what keeps a person's checkout from working: settings that lead git astray, and the branch that it is on.

Only what nobody sets on purpose where there are worktrees, and only a branch of which the checkout's own log says that
it has not moved. Nothing is put back that has changed once more since. Must never know who made a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loopr.world.repo.calls import Door, GitFailed
from loopr.world.repo.checkouts import checkouts, read_lines
from loopr.world.repo.ground import Ground, backup_ref
from loopr.world.repo.refs import Move, RefRaced, commit_of, move_refs
from loopr.world.repo.words import Change

_ASTRAY = frozenset({"core.worktree", "core.bare"})
IS_BACK = "is put back"
KEPT = "put-back"  # stands in backups where others have the name of a loop
_HOOKS = "core.hookspath"  # one below each checkout runs nothing but its own files


def put_back(ground: Ground, found: Iterable[Change]) -> dict[str, str]:
    """Put back what can be; return what came of each that was tried by its name, in words."""
    tried = ((each.name, _back(ground, each)) for each in found)
    return {name: words for name, words in tried if words}


def _back(ground: Ground, change: Change) -> str:
    """Put one change back, if it is one of those; return what came of it, nothing if nothing was done."""
    try:
        if change.what == "config":
            return _setting(ground, change)
        if change.what == "ref" and change.before and _stands_at(ground, change.name) == change.before:
            return _branch(ground, change)
    except RefRaced:  # somebody is at it
        return ""
    except (GitFailed, OSError) as error:
        return f"could not be put back: {error}"
    return ""


def _branch(ground: Ground, change: Change) -> str:
    """Put a branch back, and keep what it was moved to: it may be a person's, whose program writes no log."""
    with ground.alone() as door:
        lost = commit_of(door, change.after) if change.after else ""
        kept = backup_ref(KEPT, lost) if lost else ""
        moves = [Move(change.name, change.before, change.after), *([Move(kept, lost)] if lost else [])]
        move_refs(door, moves, "loopr: put back")
    return f"{IS_BACK}; what it was moved to is kept as {kept}" if kept else IS_BACK


def _setting(ground: Ground, change: Change) -> str:
    """Put a setting back, if it is the one that was seen."""
    file, _, key = change.name.partition(" ")
    before, after = (_values(each) for each in (change.before, change.after))
    outside = key == _HOOKS and any(Path(each).expanduser().is_absolute() for each in after)
    if key not in _ASTRAY and not outside:
        return ""
    with ground.alone() as door:
        place = str(ground.common / file)
        if _now(door, place, key) != after:
            return ""
        if after:
            door.run("config", "--file", place, "--unset-all", key)
        for each in before:
            door.run("config", "--file", place, "--add", key, each)
    return IS_BACK


def _values(settings: str) -> list[str]:
    """Return the values of a setting, as they were seen."""
    return [each.partition("\n")[2] for each in settings.split("\0") if each]


def _now(door: Door, place: str, key: str) -> list[str]:
    """Return the values that a setting has now."""
    return door.ask("config", "--file", place, "-z", "--get-all", key).parts


def _stands_at(ground: Ground, branch: str) -> str:
    """Return where a checkout of a person's that is on a branch says that it stands, nothing if none does."""
    on_it = [each for each in checkouts(ground) if not each.ours and each.branch == branch]
    logs = [read_lines(each.git_dir / "logs" / "HEAD") for each in on_it]
    said = {log[-1].partition(" ")[2].partition(" ")[0] if log else "" for log in logs}
    return said.pop() if len(said) == 1 else ""
