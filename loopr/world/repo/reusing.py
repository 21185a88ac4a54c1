"""How a worktree of the pool goes from one loop to the next: what came late is kept, and little is written.

One look tells all: where git says that the files are those of the commit that its last loop left, only what the next
one has otherwise is written; where it says anything else, or cannot tell, everything is made anew. Must never know why
the last loop is over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from loopr.errors import Problem
from loopr.world.repo.calls import GitFailed
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.commits import write_tree
from loopr.world.repo.ground import OWN_FOLDER, backup_ref
from loopr.world.repo.making import make_commit
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.pristine import Unclean, make_pristine, make_ready, purge, remove, sweep
from loopr.world.repo.refs import Move, commit_of
from loopr.world.repo.rules import RULES_FILE, note_rules, sealed
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.slots import LAST_LOOP, PRIVATE_INDEX, Opened, displaced, index_at
from loopr.world.repo.words import Message

MOST_PATHS = 200  # git compares each with every file that it knows
_IGNORED = "!! "
_OWN = f"{_IGNORED}{OWN_FOLDER}/"
_GITLINK = "160000"


def prepare(at: Opened, commit: str) -> None:
    """Make a worktree hold exactly this commit on its branch; `Unclean` if that cannot be, or files would be lost."""
    if displaced(at.place):  # where git ignores them, so that no look at the files would tell
        raise Unclean("a repository of its own was made in it")
    last = read_line(at.admin / LAST_LOOP)
    if last:
        if not sealed(at):
            note_rules(at)
        purge(at.admin)
        rows = _look(at)
        as_left = rows is not None and all(row.startswith(_IGNORED) for row in rows)
        if not as_left:
            _keep_late(at, last, commit)
        remove(at.admin / LAST_LOOP)  # from here on a crash leaves files that are nobody's
        if as_left and _move_on(at, rows or [], commit):
            return
    make_pristine(at, commit)


def save_files(at: Opened, name: str, parent: str) -> list[Problem]:
    """Commit under a backup ref of a loop what differs from its last commit, and return what is refused."""
    tree, refused, _ = write_tree(at, parent, all_paths=True)
    if tree:
        saved = make_commit(at.door, tree, [parent], Message(f"What was left in the worktree of {name}"))
        put_refs(at.door, [Move(backup_ref(name, saved), saved)], "loopr: keep")
    return refused


def _look(at: Opened) -> list[str] | None:
    """List whatever is not as HEAD has it, ignored files too; None if that cannot be told."""
    if index_at(at.admin) != read_line(at.admin / "HEAD"):
        return None
    said = at.door.with_index(at.admin / PRIVATE_INDEX).ask(
        *("status", "--porcelain", "-z", "--untracked-files=normal", "--ignored=traditional", "--no-renames")
    )
    return None if said.code else said.parts


def _keep_late(at: Opened, last: str, commit: str) -> None:
    """Keep what came after the last commit."""
    try:
        refused = save_files(at, last, commit_of(at.door, "HEAD") or commit)
    except GitFailed as error:
        if error.host:
            raise
        raise Unclean(str(error)) from error
    if refused:
        raise Unclean(f"{last} has left {refused[0].where} in it, which is not committed: {refused[0].message}")


def _move_on(at: Opened, ignored: list[str], commit: str) -> bool:
    """Write what the commit has otherwise than HEAD, whose files are there; no if more has to be done."""
    before = read_line(at.admin / "HEAD")
    if not sealed(at) or (at.place / ".gitmodules").exists():
        return False
    entries = changed_entries(at.door, before, commit)
    odd = any(_GITLINK in (each.was, each.mode) or each.path.endswith(RULES_FILE) for each in entries)
    if odd or len(entries) > MOST_PATHS:
        return False
    if not _take_away(at, ignored) or any(sweep(at.place)):
        return False
    note_rules(at)  # taken back below; not so after a crash
    (at.admin / PRIVATE_INDEX).replace(at.admin / "index")
    if entries and not _write(at, commit, [each.path for each in entries]):
        return False
    make_ready(at, commit)
    return True


def _take_away(at: Opened, ignored: list[str]) -> bool:
    """Take ignored files away, and say whether they are gone; our own folder, which most have, takes no process."""
    if ignored == [_OWN]:
        remove(at.place / OWN_FOLDER)
        return not os.path.lexists(at.place / OWN_FOLDER)
    own = at.door.with_index(at.admin / PRIVATE_INDEX)
    return not ignored or own.ask("clean", "-ffdxq").code == 0


def _write(at: Opened, commit: str, paths: Sequence[str]) -> bool:
    """Bring these paths to a commit, in the files and the index."""
    said = at.door.ask(
        *("restore", f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"),
        stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
        variables={"GIT_LITERAL_PATHSPECS": "1"},
    )
    return said.code == 0
