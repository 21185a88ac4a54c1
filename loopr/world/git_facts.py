"""What git says of one repository, as plain facts; asking changes nothing on disk.

Hooks, the file system monitor and optional locks are off. Must never know loops or settings, nor what a fact means for
them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_FILTER = re.compile(r"(?:^|\s)filter=(\S+)", re.MULTILINE)
_UNDER_WAY = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


class Said(NamedTuple):
    """The answer of one call of git."""

    code: int
    out: str
    err: str


def git_version() -> tuple[int, ...] | None:
    """Return the version of git, None where there is none."""
    if shutil.which("git") is None:
        return None
    found = _VERSION.search(_ask(Path.cwd(), {}, "version").out)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def under_way(git_dir: Path) -> list[str]:
    """Name what was begun in a checkout and has not been ended: a rebase, a merge, a bisection."""
    return list(dict.fromkeys(words for name, words in _UNDER_WAY.items() if (git_dir / name).exists()))


class GitFacts:
    """One checkout, asked with its git directory named, so that no search for one can lead elsewhere."""

    def __init__(self, top: Path, git_dir: Path) -> None:
        """Name the checkout and its own git directory."""
        self.top = top
        self._named = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}

    def refusal(self) -> str:
        """Return why git would not work here for anybody who only stands in the folder, nothing if it would."""
        said = _ask(self.top, {}, "rev-parse", "--git-dir")
        return said.err.strip() if said.code else ""

    def config(self) -> dict[str, str]:
        """Return every setting of git's that counts here, the key in lower case; of several values the last."""
        said = _ask(self.top, self._named, "config", "--list", "-z", quiet=False)
        pairs = (entry.partition("\n") for entry in said.out.split("\0") if entry)
        return {key.lower(): value if equals else "true" for key, equals, value in pairs}

    def has_ref(self, name: str) -> bool:
        """Say whether there is a ref of exactly this name."""
        return self._ask("show-ref", "--verify", "--quiet", name).code == 0

    def commit_of(self, name: str) -> str:
        """Return the commit that a name stands for, nothing if it stands for none."""
        said = self._ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return said.out.strip() if said.code == 0 else ""

    def identity(self) -> str:
        """Return who commits here as git would name them, nothing where nobody has told it."""
        said = self._ask("-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
        return said.out.strip() if said.code == 0 else ""

    def gitlinks(self) -> list[str]:
        """List the repositories within that the index of this checkout has."""
        rows = self._ask("ls-files", "--stage", "-z", "--full-name", ":/").out.split("\0")
        return [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]

    def filters(self) -> frozenset[str]:
        """Name the filters that files called .gitattributes speak of."""
        said = self._ask("grep", "-h", "-I", "-e", "filter=", "--", ":(top,glob)**/.gitattributes")
        return frozenset(_FILTER.findall(said.out))

    def filtered(self, name: str) -> list[str]:
        """List the files that go through a filter."""
        said = self._ask("ls-files", "-z", "--", f":(top,attr:filter={name})")
        return [each for each in said.out.split("\0") if each]

    def files_of(self, commit: str) -> list[str]:
        """List the files of a commit."""
        return self._ask("ls-tree", "-r", "-z", "--name-only", commit).out.split("\0")[:-1]

    def is_ignored(self, path: Path) -> bool:
        """Say whether git ignores a path, which need not exist."""
        return self._ask("check-ignore", "--quiet", "--", str(path)).code == 0

    def tracked(self, folder: str) -> list[str]:
        """List the files below a folder of the checkout that git tracks."""
        said = self._ask("ls-files", "-z", "--", f":(top,literal){folder}")
        return [each for each in said.out.split("\0") if each] if said.code == 0 else []

    def _ask(self, *arguments: str) -> Said:
        """Ask git about this checkout."""
        return _ask(self.top, self._named, *arguments)


def _ask(folder: Path, environment: dict[str, str], *arguments: str, quiet: bool = True) -> Said:
    """Run git once and return what it says; settings of ours are left out where settings are the question."""
    from git.cmd import Git

    command = ["git", *(_QUIET if quiet else ()), *arguments]
    said = Git(str(folder)).execute(
        command,
        with_extended_output=True,
        with_exceptions=False,
        env={"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"} | environment,
    )
    return Said(int(said[0]), str(said[1]), str(said[2]))
