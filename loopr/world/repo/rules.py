"""The rules by which files are written: where they change, an index no longer tells what is there.

Rules are `.gitattributes`, the attributes beside them in the git directory, and settings such as `core.autocrlf`. Git
itself rewrites only the files whose content changed, so a worktree that has lived through a change of rules is noted,
and written anew before another loop gets it. Must never know what a rule says.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from loopr.world.repo.calls import Door
from loopr.world.repo.checkouts import read_line, read_whole
from loopr.world.repo.slots import Opened, write_line

RULES_FILE = ".gitattributes"
RULES_MARK = "loopr-rules"
OWN_SETTINGS = "config.worktree"
_DECIDING = re.compile(
    rb"autocrlf|eol|attributes|filter|clean|smudge|process|encoding|symlinks|filemode|ignorecase|include|path", re.I
)


def some_rules(index: Path) -> bool:
    """Say whether an index knows any file of rules; its bytes are looked at, for git would take longer."""
    return RULES_FILE.encode() in read_whole(index)


def rules_differ(door: Door, old: str, new: str) -> bool:
    """Say whether two commits have other rules; what cannot be compared differs."""
    if old == new:
        return False
    return door.ask("diff-tree", "-r", "--quiet", old, new, "--", f":(top,glob)**/{RULES_FILE}").code != 0


def note_rules(at: Opened) -> None:
    """Note that the rules have changed while this worktree had its files."""
    write_line(at.admin / RULES_MARK, "changed")


def seal(at: Opened) -> str:
    """Return a digest of what decides beside the commit how files are written here."""
    common = at.ground.common
    deciding = [line.strip() for line in read_whole(common / "config").splitlines() if _DECIDING.search(line)]
    parts = [read_whole(common / "info" / "attributes"), read_whole(at.admin / OWN_SETTINGS), *deciding]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def sealed(at: Opened) -> bool:
    """Say whether every file was written by the rules that hold now."""
    return read_line(at.admin / RULES_MARK) == seal(at)


def put_seal(at: Opened) -> None:
    """Note that every file was written by the rules that hold now."""
    write_line(at.admin / RULES_MARK, seal(at))
