"""The repository for the proof of an agent: an empty one, or one with the files that it needs.

Where a preset names files of the workspace's repository, its commit is laid out, as it is for
loops. Must never write anything in the workspace.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple

from loopr.core.entries import Command
from loopr.errors import WorldError
from loopr.world.judges import paths_in
from loopr.world.settings.sources import FILE, LOCAL_FILE, PROMPTS

GREETING = "greeting.txt"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_NOT_OURS = (FILE, LOCAL_FILE, PROMPTS, "specs", "worktrees", GREETING)
"""Parts of the workspace left out of a proof: its settings, its plans, and the agent's own file."""


class Named(NamedTuple):
    """The files of a repository that a command names: the committed ones, and those only there."""

    committed: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


def files_named(command: Command, top: Path | None, environ: Mapping[str, str]) -> Named:
    """Find the files of a repository that a command names, and the script that is not committed."""
    if top is None:
        return Named()
    paths = paths_in(command)
    said = call_git(top, environ, "ls-tree", "-z", "--full-tree", "--name-only", "HEAD", "--", *paths, fails=True)
    known = {each for each in said.split("\0") if each} if paths else set()
    words = command.split() if isinstance(command, str) else command
    first = words[:1] if "/" in words[0] else [each for each in words[1:] if each[:1] != "-"][:1]
    loose = {normpath(each) for each in first if each[:1] != "/" and (top / each).is_file()}
    return Named(tuple(sorted(known)), tuple(sorted(loose - known)))


def lay_out(root: Path, top: Path | None, environ: Mapping[str, str]) -> None:
    """Make a repository: an empty one, or one with another's commit, whose objects it shares."""
    if top is None:
        call_git(root, environ, "init", "--quiet", "--initial-branch=main", str(root))
        return
    words = ("clone", "--quiet", "--shared", "--template=", "--no-tags", str(top), str(root))
    call_git(root, environ, *words)
    call_git(root, environ, "remote", "remove", "origin")
    call_git(root, environ, "checkout", "--quiet", "-B", "main")
    for name in _NOT_OURS:
        path = root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    with (root / ".gitignore").open("a") as file:
        file.write(f"\n!/{GREETING}\n")


def commit_all(root: Path, environ: Mapping[str, str]) -> None:
    """Commit all that is there."""
    call_git(root, environ, "add", "--all")
    call_git(root, environ, "commit", "--quiet", "--allow-empty", "--message=begin")


def call_git(folder: Path, environ: Mapping[str, str], *words: str, fails: bool = False) -> str:
    """Run git in a folder without hooks, and return its answer; nothing if it may fail and does."""
    argv: Sequence[str] = ("git", *_NO_HOOKS, "-C", str(folder), *words)
    given = {**environ, "GIT_LFS_SKIP_SMUDGE": "1"}
    done = subprocess.run(argv, env=given, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not fails:
        raise WorldError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout if done.returncode == 0 else ""
