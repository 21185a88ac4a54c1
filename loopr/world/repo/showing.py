"""What a loop has changed, as a text to read.

Knows where a loop's work is, before and after it has landed. Must never change anything.
"""

from __future__ import annotations

import os

from loopr.errors import NotFound
from loopr.world.repo.ground import LANDED, PLANS, WORK, Ground
from loopr.world.repo.refs import commit_of, merge_base, read_refs

_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")


def loop_diff(ground: Ground, name: str, plan: str, landed: str = "") -> str:
    """Return what a loop has changed: its landed commit if there is one, else what it did since it left its plan."""
    branch, marker = ground.branch(name), PLANS + plan
    refs = read_refs(ground.door, branch, LANDED + name, WORK + name, marker, ground.branch(plan))
    if landed:
        return commit_diff(ground, landed)
    tip = next((refs[ref] for ref in (LANDED + name, branch, WORK + name) if ref in refs), "")
    if not tip or marker not in refs:
        raise NotFound(f"{name} has no branch yet", hint="it gets one at its first lease")
    plans = refs.get(ground.branch(plan), refs[marker])
    joined = _joined(ground, tip, plans) if LANDED + name in refs else ""
    return commit_diff(ground, joined) if joined else _diff(ground, merge_base(ground.door, plans, tip), tip)


def _joined(ground: Ground, tip: str, plans: str) -> str:
    """Return the commit of a plan's branch that joined a loop's own commits to it, nothing where they were squashed."""
    said = ground.door.ask("rev-list", "--first-parent", "--merges", "--parents", f"{tip}..{plans}")
    rows = (line.split() for line in os.fsdecode(said.out).splitlines())
    return next((commit for commit, *parents in rows if tip in parents[1:]), "")


def commit_diff(ground: Ground, commit: str) -> str:
    """Return what one commit of the plan branch has changed."""
    if not commit_of(ground.door, f"{commit}^1"):
        raise NotFound(f"there is no commit {commit} with one before it", hint="`git fsck` says what is lost")
    return _diff(ground, f"{commit}^1", commit)


def _diff(ground: Ground, old: str, new: str) -> str:
    """Return the difference of two commits; bytes that are no text are shown as such."""
    said = ground.door.run("diff", *_PLAIN, "--end-of-options", old, new, "--")
    return said.out.decode("utf-8", "replace")
