"""Brings a worktree and its branch to another commit in one step that a crash cannot leave half done.

What is about to be done is written into the administrative folder first; whoever touches the worktree next finishes it.
Everything of value was committed before. Must never know why the files change.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.ground import WORK, Ground
from loopr.world.repo.refs import Move, move_refs, read_refs
from loopr.world.repo.slots import PRIVATE_INDEX, Slot, write_line

_MARK = "loopr-laying"


class Laying(NamedTuple):
    """What to lay: the branch's commit, the tree of the files if it is another, and texts to replace in some files.

    While `judged` is true a judge works in the worktree: whatever it leaves is no part of the loop's work.
    """

    commit: str
    tree: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    judged: bool = False


def lay(ground: Ground, slot: Slot, door: Door, laying: Laying) -> None:
    """Move the branch and the files of a worktree; the caller holds the worktree's lock and has committed everything."""
    _mark(slot.admin(ground)).write_text(json.dumps(laying._asdict()), encoding="utf-8")
    _carry_out(ground, slot, door, laying)
    if not laying.judged:
        _mark(slot.admin(ground)).unlink()


def finish(ground: Ground, slot: Slot, door: Door) -> bool:
    """Finish what was begun, take away what a judge left, and say whether there was anything of the kind."""
    mark = _mark(slot.admin(ground))
    try:
        row = json.loads(mark.read_bytes())
        laying = Laying(**row)._replace(
            labels=tuple((old, new) for old, new in row["labels"]), files=tuple(row["files"])
        )
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, KeyError):  # a crash while it was written: nothing had been done
        mark.unlink()
        return False
    _carry_out(ground, slot, door, laying)
    if laying.judged:
        kept = [word for each in ground.left_out for word in ("-e", f"/{each}")]
        door.ask("clean", "-fdq", *kept)
    mark.unlink()
    return True


def _carry_out(ground: Ground, slot: Slot, door: Door, laying: Laying) -> None:
    """Do it, or what is left of it."""
    admin = slot.admin(ground)
    branch, work = ground.branch(slot.name), WORK + slot.name
    refs = read_refs(door, branch, work)
    moves = [Move(ref, laying.commit) for ref in (branch, work) if refs.get(ref) != laying.commit]
    move_refs(door, moves, "loopr: take over")
    write_line(admin / "HEAD", f"ref: {branch}")
    with suppress(FileNotFoundError):
        shutil.copyfile(admin / PRIVATE_INDEX, admin / "index")
    (admin / "index.lock").unlink(missing_ok=True)
    door.run("read-tree", "--reset", "-u", "--no-sparse-checkout", laying.tree or laying.commit)
    if laying.tree:
        door.run("read-tree", "--reset", "--no-sparse-checkout", laying.commit)
    for path in laying.files:
        _relabel(door.work_tree / path, laying.labels)
    door.ask("update-index", "-q", "--refresh", variables={"GIT_OPTIONAL_LOCKS": "1"})
    shutil.copyfile(admin / "index", admin / PRIVATE_INDEX)


def _relabel(file: Path, labels: tuple[tuple[str, str], ...]) -> None:
    """Write names for people in the place of commits in conflict markers."""
    if file.is_symlink() or not file.is_file():
        return
    content = before = file.read_bytes()
    for old, new in labels:
        for marker in (b"<<<<<<< ", b"||||||| ", b">>>>>>> "):
            content = content.replace(marker + old.encode(), marker + new.encode())
    if content != before:
        file.write_bytes(content)


def _mark(admin: Path) -> Path:
    """The file that says what was begun."""
    return admin / _MARK
