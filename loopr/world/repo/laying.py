"""Brings a worktree and its branch to another commit in one step that a crash cannot leave half done.

What is about to be done is written into the administrative folder first; whoever touches the worktree next finishes it.
Everything of value was committed before. Must never know why the files change.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.branches import head_of
from loopr.world.repo.ground import OWN_FOLDER, WORK, backup_ref
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.refs import Move, is_ancestor, read_refs
from loopr.world.repo.rules import note_rules, put_seal, rules_differ, sealed, some_rules
from loopr.world.repo.slots import PRIVATE_INDEX, Opened, copy_over, index_at, note_index, write_line

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


def lay(at: Opened, laying: Laying) -> None:
    """Move the branch and the files of a worktree, whose lock the caller holds, and where all is committed."""
    _mark(at.admin).write_text(json.dumps(laying._asdict()), encoding="utf-8")
    if not laying.judged or not _is_laid(at, laying):  # for a judge the files may be there already
        _carry_out(at, laying)
    if not laying.judged:
        _mark(at.admin).unlink()


def finish(at: Opened) -> bool:
    """Finish what was begun, take away what a judge left, and say whether there was anything of the kind."""
    mark = _mark(at.admin)
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
    if laying.judged:
        _keep_strays(at, laying)
        if _untouched(at, laying):
            mark.unlink()
            return True
    _carry_out(at, laying)
    if laying.judged:
        at.door.ask("clean", "-fdq", "-e", f"/{OWN_FOLDER}")
    mark.unlink()
    return True


def _is_laid(at: Opened, laying: Laying) -> bool:
    """Say whether a commit was laid to the end: our own index is what is brought there last, after refs and files."""
    refs = read_refs(at.door, at.branch, WORK + at.name)
    return set(refs.values()) == {laying.commit} and index_at(at.admin) == laying.commit


def _untouched(at: Opened, laying: Laying) -> bool:
    """Say whether a judge has left the worktree as it was: on its branch, with every file and no other."""
    if not _is_laid(at, laying) or head_of(at.admin) != at.branch:
        return False
    own = at.door.with_index(at.admin / PRIVATE_INDEX)
    said = own.ask("ls-files", "-o", "-m", "-d", "--exclude-standard", "-z")
    return said.code == 0 and not said.out


def _keep_strays(at: Opened, laying: Laying) -> None:
    """Keep what a judge committed: it is no part of the work, but it may be all that somebody has.

    A tip that the laid commit contains is no judge's: a crash came before the branch was moved.
    """
    tip = read_refs(at.door, at.branch).get(at.branch, laying.commit)
    if tip != laying.commit and not is_ancestor(at.door, tip, laying.commit):
        put_refs(at.door, [Move(backup_ref(at.name, tip), tip)], "loopr: keep")


def _carry_out(at: Opened, laying: Laying) -> None:
    """Do it, or what is left of it."""
    admin, door, branch, work = at.admin, at.door, at.branch, WORK + at.name
    refs = read_refs(door, branch, work)
    moves = [Move(ref, laying.commit) for ref in (branch, work) if refs.get(ref) != laying.commit]
    put_refs(door, moves, "loopr: take over")
    write_line(admin / "HEAD", f"ref: {branch}")
    (admin / "index.lock").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        copy_over(admin / PRIVATE_INDEX, admin / "index")
    ruled, as_noted = some_rules(admin / "index"), sealed(at)
    note_rules(at)  # taken back below; not so after a crash
    door.run("read-tree", "--reset", "-u", "--no-sparse-checkout", laying.tree or laying.commit)
    ruled = ruled or some_rules(admin / "index")
    if as_noted and not (ruled and rules_differ(door, refs.get(work, ""), laying.commit)):
        put_seal(at)
    if laying.tree:  # the index stands at the commit, so that the change is there to be mended and added
        door.run("read-tree", "--reset", "--no-sparse-checkout", laying.commit)
    for path in laying.files:
        _relabel(door.work_tree / path, laying.labels)
    copy_over(admin / "index", admin / PRIVATE_INDEX)
    note_index(admin, laying.commit)


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
