"""A look at a repository that becomes a workspace: what it is made of, and what it can be judged by.

Reads committed names and few files, and asks git a few times. Must never change anything, nor
decide what to propose.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from loopr.ui.drafting import Facts, ranked
from loopr.wiring import Workspace
from loopr.world.activated import left_out
from loopr.world.git_facts import GitFacts
from loopr.world.place import common_git_dir, own_git_dir
from loopr.world.recipes import reader, texts_of
from loopr.world.repo.pip_needs import depends
from loopr.world.repo.venvs import environments_among, steps_anew
from loopr.world.suites import Suite, suites_of

ENVIRONMENTS = (".venv", "venv", "env")
MOST_MEASURED, MOST_BELOW = 100_000, 4
_PRIVATE = (".env", ".env.local", ".env.test", ".envrc", "local.properties", "config/master.key")
_HOOKS = ("pre-commit", "commit-msg", "prepare-commit-msg", "pre-merge-commit", "pre-push")
_PROGRAMS = (
    *("make", "just", "python", "python3", "uv", "tox", "nox", "npm", "pnpm", "yarn", "bun"),
    *("cargo", "go", "mix", "mvn", "bundle", "composer", "git", "cmake", "ctest", "meson"),
)


class Survey(NamedTuple):
    """A look at a repository: the facts that settings follow from, and others worth a line."""

    facts: Facts
    size: int = 0
    hooks: tuple[str, ...] = ()
    signs: bool = False
    lfs: bool = False
    has_lfs: bool = False


def survey(workspace: Workspace) -> Survey:
    """Look at the repository of a workspace, or at the folder where there is none."""
    top, path = workspace.place.repository, workspace.environ.get("PATH", os.defpath)
    programs = frozenset(each for each in _PROGRAMS if shutil.which(each, path=path))
    root = top or workspace.place.root
    git = GitFacts(root, own_git_dir(root)) if top is not None else None
    files = _files(root, git, workspace.start_point(top).commit)
    suites = tuple(ranked(suites_of(root), files))
    settings = workspace.settings
    last = list(settings.types.values())[-1]
    is_judged = last.unjudged or any((last.check, last.review, last.review_agent))
    facts = Facts(files, top is not None, suites, programs=programs, is_judged=is_judged)
    if git is None:
        return Survey(facts)
    read = reader(root)
    behind = {each.command: texts_of([each.command], read)[1:] for each in suites}
    environment, is_there = _environment(workspace, root, behind)
    config = git.config()
    facts = facts._replace(
        behind=behind,
        is_set_up=settings.worktrees.setup is not None,
        environment=environment,
        wants_environment=is_there or depends(root),
        steps=_steps(root, environment, facts._replace(behind=behind)),
        has_packages=_has_packages(read("package.json")),
        copies=tuple(_private(root, git)),
        below=tuple(islice(_below(root, files), MOST_BELOW)) if not suites else (),
    )
    signs, lfs = config.get("commit.gpgsign") == "true", "filter=lfs" in read(".gitattributes")
    has_lfs = shutil.which("git-lfs", path=path) is not None
    return Survey(facts, _size(root, files), _hooks(root, config), signs, lfs, has_lfs)


def _files(root: Path, git: GitFacts | None, commit: str) -> frozenset[str]:
    """Return the committed files of a repository, or those at the top of a plain folder."""
    if git is not None:
        return frozenset(git.files_of(commit)) if commit else frozenset()
    return frozenset(each.name for each in root.iterdir() if each.is_file())


def _below(root: Path, files: Iterable[str]) -> Iterator[Suite]:
    """Give a command that runs the tests of each folder which says so."""
    for folder in sorted({each.partition("/")[0] for each in files if "/" in each}):
        for suite in islice(suites_of(root / folder), 1):
            name = f"{folder}/{suite.file}"
            if name in files:
                yield Suite(f"cd {shlex.quote(folder)} && {suite.command}", name)


def _environment(
    workspace: Workspace,
    top: Path,
    behind: Mapping[str, Sequence[str]],
) -> tuple[str, bool]:
    """Return the folder of the checkout's virtual environment, or of one to be, and whether it is there."""
    active = left_out(workspace.environ, top)
    found = [active] if active else environments_among(top, (f"{each}/-" for each in ENVIRONMENTS))
    lines = [line for each in behind.values() for line in each]
    named = [each for each in ENVIRONMENTS if any(f"{each}/bin/" in line for line in lines)]
    return next(iter((*found, *named, ENVIRONMENTS[0]))), bool(found)


def _steps(top: Path, folder: str, facts: Facts) -> str:
    """Return the commands that make a virtual environment with all that the first suite needs."""
    if "uv.lock" in facts.files and "uv" in facts.programs and folder == ENVIRONMENTS[0]:
        return "uv sync --all-extras"
    texts = [text for each in facts.suites[:1] for text in (each.command, *facts.behind[each.command])]
    steps = steps_anew(top, folder, texts)
    return steps if "python" in facts.programs else steps.replace("python ", "python3 ", 1)


def _has_packages(text: str) -> bool:
    """Say whether a package.json names packages."""
    try:
        found = json.loads(text or "{}")
        return any(found.get(each) for each in ("dependencies", "devDependencies", "workspaces"))
    except (ValueError, AttributeError):
        return False


def _private(top: Path, git: GitFacts) -> Iterator[str]:
    """Give the files of settings in a checkout that git ignores."""
    yield from (each for each in _PRIVATE if (top / each).is_file() and git.is_ignored(top / each))


def _size(top: Path, files: Iterable[str]) -> int:
    """Return the bytes that a worktree takes, as far as its files are in the checkout."""
    total = 0
    for each in islice(files, MOST_MEASURED):
        with suppress(OSError):
            total += (top / each).lstat().st_size
    return total


def _hooks(top: Path, config: Mapping[str, str]) -> tuple[str, ...]:
    """Name the hooks that git would run for a person's commit."""
    folder = Path(config.get("core.hookspath") or common_git_dir(top) / "hooks").expanduser()
    try:
        return tuple(sorted(each.name for each in (top / folder).iterdir() if _is_hook(each)))
    except OSError:
        return ()


def _is_hook(file: Path) -> bool:
    """Say whether a file is a hook around a commit, and no example of one."""
    return file.name in _HOOKS and os.access(file, os.X_OK)


def unignored(workspace: Workspace, lines: Iterable[str]) -> list[str]:
    """Return the lines, as of a `.gitignore`, that name what git would offer for a commit."""
    top = workspace.place.repository
    if top is None:
        return []
    git = GitFacts(top, own_git_dir(top))
    return [each for each in lines if not git.is_ignored(top / each.replace("*", "x") / "x")]
