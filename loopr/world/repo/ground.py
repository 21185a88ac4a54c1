"""Where everything is: the repository, the folder of worktrees, the state folder; and the doors to each.

Knows how the places are found and named. Must never know what is done there.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loopr.errors import SettingsError
from loopr.world.repo.calls import QUIET, Door, call
from loopr.world.repo.locks import held

HEADS = "refs/heads/"
PLANS = "refs/loopr/plans/"  # the newest tip of a plan branch that loopr knows of
WORK = "refs/loopr/work/"  # the engine's last commit of a loop
CANDIDATE = "refs/loopr/candidate/"
LANDED = "refs/loopr/landed/"  # the tip of a loop that has landed, so that its own commits stay
BACKUP = "refs/loopr/backup/"
OLD = "refs/loopr/old/"  # everything of a journal that was begun anew, below the instant at which it was
OWN_REFS = "refs/loopr/"
OWN_FOLDER = ".loopr"
POOL_FOLDER = ".pool"
KEPT = "kept"  # in the state folder: copies of the files that all worktrees share (`keeping.py`)


def backup_ref(name: str, commit: str) -> str:
    """Return the ref under which an old tip of a loop is kept; the same tip gives the same ref."""
    return f"{BACKUP}{name}/{commit[:12]}"


@dataclass(frozen=True, slots=True)
class Ground:
    """A repository as this package sees it.

    `artifacts` and `trees` are the paths of the tree of artifacts and of the worktrees in it, empty
    where these lie elsewhere. Each of the `plans` has a folder among the artifacts, from which
    nothing lands; all else there is the repository's own.
    """

    top: Path | None
    main: Path | None  # the checkout that came with the repository; None where it is bare
    git_dir: Path
    common: Path
    state: Path
    worktrees: Path
    prefix: str = "loopr/"
    pool: int = 4
    include: str = ".worktreeinclude"
    artifacts: str = "specs"
    plans: frozenset[str] = frozenset()
    trees: str = "worktrees"
    max_file_bytes: int = 50 * 1024 * 1024
    union: tuple[str, ...] = ()  # patterns of files whose both sides a merge keeps
    most: int | None = None  # worktrees that may be there; what is beyond is not kept for reuse
    pool_folder: str = POOL_FOLDER  # other repositories may have theirs in the same folder of worktrees

    @property
    def door(self) -> Door:
        """Git for refs and objects: its work tree is an empty folder, so that no mistake can reach a checkout."""
        void = self.state / "void"
        if not void.is_dir():
            void.mkdir(parents=True, exist_ok=True)
        return Door(self.common, self.common, void, union=self.union)

    @property
    def users_door(self) -> Door:
        """Git in the user's checkout, with the user's settings but for what would act behind our backs."""
        if self.top is None:
            return self.door
        return Door(self.git_dir, self.common, self.top, QUIET, union=self.union)

    def branch(self, name: str) -> str:
        """Return the full name of the branch of a loop or a plan."""
        return f"{HEADS}{self.prefix}{name}"

    def short_branch(self, name: str) -> str:
        """Return the name of that branch as people write it."""
        return f"{self.prefix}{name}"

    def is_own(self, path: str) -> bool:
        """Say whether a path of the tree lies in loopr's own folder, of which the engine commits nothing."""
        return path == OWN_FOLDER or path.startswith(f"{OWN_FOLDER}/")

    def folder_of(self, path: str) -> str:
        """Return the folder of a plan, or of worktrees, that a path of the tree lies in, if any.

        What stands where such a folder belongs counts as in it.
        """
        if self.trees and f"{path}/".startswith(f"{self.trees}/"):
            return self.trees
        if not (self.plans and self.artifacts):
            return ""
        if f"{self.artifacts}/".startswith(f"{path}/"):
            return self.artifacts
        inside = path.removeprefix(f"{self.artifacts}/")
        plan = inside.partition("/")[0] if inside != path else ""
        return f"{self.artifacts}/{plan}" if plan in self.plans else ""

    def is_left_out(self, path: str) -> bool:
        """Say whether a path of the tree never lands."""
        return self.is_own(path) or bool(self.folder_of(path))

    @contextmanager
    def alone(self) -> Iterator[Door]:
        """Hold the one lock around what all worktrees share, and give a door whose calls keep it."""
        with held(self.state / "git.lock") as descriptor:
            yield self.door.keeping(descriptor)


def open_ground(
    root: Path,
    *,
    worktrees: Path,
    state: Path | None = None,
    prefix: str = "loopr/",
    pool: int = 4,
    include: str = ".worktreeinclude",
    artifacts: Path | None = None,
    max_file_mb: int = 50,
) -> Ground:
    """Find the repository around a folder, the way that a command in it would, or say why git will not work there."""
    git_dir, common = (_asked(root, word, state) for word in ("--git-dir", "--git-common-dir"))
    inside = call(root, ["rev-parse", "--path-format=absolute", "--show-toplevel"], {})
    top = _path(inside.out) if inside.code == 0 else None
    if (common / "reftable").exists():
        raise SettingsError("this repository keeps its refs as reftable", hint="loopr needs the files format for now")
    listed = call(root, ["worktree", "list", "--porcelain", "-z"], {}).out.split(b"\0\0")[0].split(b"\0")
    main = None if b"bare" in listed else Path(os.fsdecode(listed[0].removeprefix(b"worktree "))).resolve()
    return Ground(
        top=top,
        main=main,
        git_dir=git_dir,
        common=common,
        state=(state or common / "loopr").resolve(),
        worktrees=worktrees.resolve(),
        prefix=prefix,
        pool=pool,
        include=include,
        artifacts=_within(top, artifacts),
        trees=_within(top, worktrees),
        max_file_bytes=max_file_mb * 1024 * 1024,
    )


def _asked(root: Path, word: str, state: Path | None) -> Path:
    """Ask git in a folder for one of its places."""
    said = call(root, ["rev-parse", "--path-format=absolute", word], {})
    if said.code:
        told = f"git will not work in {root}: {said.err.strip()}"
        line = way_back(state, said.err) if state is not None else ""
        hint = f"`{line}` puts back what git could read last" if line else "mend what git names"
        raise SettingsError(told, hint=f"{hint}; `loopr doctor` looks again")
    return _path(said.out)


def way_back(state: Path, refusal: str) -> str:
    """Say how a person puts back settings that git cannot read, nothing where that is not it or none are kept."""
    copy, config = state / KEPT / "config", state.parent / "config"
    if "config" not in refusal or not copy.is_file():
        return ""
    return f"cp {shlex.quote(str(copy))} {shlex.quote(str(config))}"


def _path(out: bytes) -> Path:
    """Read a path that git prints on a line; a path may hold line breaks of its own."""
    return Path(os.fsdecode(out.removesuffix(b"\n"))).resolve()


def _within(top: Path | None, folder: Path | None) -> str:
    """Return a folder's path in the tree, nothing if it is not in the checkout."""
    if top is None or folder is None or not folder.resolve().is_relative_to(top):
        return ""
    return folder.resolve().relative_to(top).as_posix()
