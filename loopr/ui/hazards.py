"""What worktrees and commits of loopr lack of a person's git: submodules, filters, hooks, signing.

Knows one checkout and the settings. Must never change either, nor know a plan.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loopr.errors import Problem
from loopr.ui.environments import few, steps_of
from loopr.wiring import Workspace
from loopr.world.git_facts import GitFacts
from loopr.world.place import common_git_dir, own_git_dir
from loopr.world.recipes import reader, texts_of
from loopr.world.settings import Settings

if TYPE_CHECKING:
    from loopr.ui.requests import Plan

LFS = "lfs"
_SETUP = "worktrees.setup"
_HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg")
_WORDING = frozenset({"prepare-commit-msg", "commit-msg"})
_STUBS = "_"  # husky has a file for every hook in this folder, and beside it those that are meant
_PROGRAM = re.compile(r"[\w./+-]+")
_WAYS = ("process", "clean", "smudge")


class Hazard(NamedTuple):
    """One thing of a checkout that loopr does not share, with its cure.

    With one that is a `stop` no worktree can be made.
    """

    about: str
    words: str
    cure: str
    stop: bool = False


def hazards_of(top: Path, settings: Settings) -> Iterator[Hazard]:
    """Give what a checkout has that loopr's worktrees and commits do not."""
    git = GitFacts(top, own_git_dir(top))
    config = git.config()
    yield from _empty_submodules(top, git, settings)
    yield from _lost_filters(top, git, config)
    yield from _silent_hooks(top, config)
    if config.get("commit.gpgsign", "").lower() in ("true", "yes", "on", "1"):
        cure = "`git merge --squash loopr/PLAN`, then `git commit`, makes one that is"
        yield Hazard("commits", "commit.gpgsign is set, and loopr's commits are not signed", cure)
    if settings.commit.signoff and not git.identity():
        cure = "`git config user.name NAME` and `git config user.email MAIL`"
        yield Hazard("commits", "commit.signoff is true, and git does not know who commits", cure)


def told_once(workspace: Workspace, plans: Sequence[Plan]) -> dict[str, tuple[str, ...]]:
    """Map plans to what is told before they run: of each repository once, with its first plan."""
    told: dict[Path, str] = {}
    found: dict[str, tuple[str, ...]] = {}
    for plan in plans:
        project = plan.artifact.project
        _, top = workspace.repository(project)
        if top is None or not (top / ".git").exists() or told.setdefault(top, plan.id) != plan.id:
            continue
        rows = hazards_of(top, workspace.settings.of_project(project))
        lines = ((each.words, f"  {each.cure}") for each in rows if not each.stop)
        found[plan.id] = tuple(line for pair in lines for line in pair)
    return found


def filter_problems(workspace: Workspace, project: str) -> list[Problem]:
    """Say which filters lack their programs, so that no worktree can be made."""
    _, top = workspace.repository(project)
    if top is None or not (top / ".git").exists():
        return []
    git = GitFacts(top, own_git_dir(top))
    found = _lost_filters(top, git, git.config())
    return [Problem(each.words, hint=each.cure) for each in found if each.stop]


# --- files that a worktree lacks ------------------------------------------------------------------


def _empty_submodules(top: Path, git: GitFacts, settings: Settings) -> Iterator[Hazard]:
    """Name submodules, unless a command that prepares worktrees speaks of them."""
    if not (top / ".gitmodules").is_file():
        return
    from loopr.world.repo.named import FILL

    texts = texts_of(steps_of(settings), reader(top))
    found = [] if any("submodule" in each for each in texts) else git.gitlinks()
    if not found:
        return
    line = FILL + " --recursive" * any((top / each / ".gitmodules").is_file() for each in found)
    cure = f"`loopr set {_SETUP} {shlex.quote(line)}` fills them"
    if settings.worktrees.setup is not None:
        cure = f"add `{line}` to {_SETUP}"
    yield Hazard("submodules", f"submodules are empty in worktrees: {few(found)}", cure)


def _lost_filters(top: Path, git: GitFacts, config: Mapping[str, str]) -> Iterator[Hazard]:
    """Name filters of files whose programs are not here, and that of LFS where it is not set."""
    keys = sorted(key.removeprefix("filter.") for key in config if key.startswith("filter."))
    names = dict.fromkeys(key.rpartition(".")[0] for key in keys)
    absent = {each: _absent_program(top, config, each) for each in names}
    lost = {name: program for name, program in absent.items() if program}
    unset = LFS not in names
    used = git.filters() if lost or unset else frozenset()
    for name, program in lost.items():
        files = git.filtered(name) if name in used else []
        if files and config.get(f"filter.{name}.required") == "true":
            lacks = f"{few(files)} goes through filter.{name}, and {program} is not here"
            yield Hazard("filters", f"{lacks}: no worktree can be made", _install(program), stop=True)
        elif files:
            words = f"{program} is not here, so that {few(files)} goes through no filter.{name}"
            yield Hazard("filters", words, _install(program))
    if unset and LFS in used and (files := git.filtered(LFS)):
        words = f"filter.{LFS} is not set: loops see pointers in place of {few(files)}"
        first = "" if shutil.which("git-lfs") else f"{_install('git-lfs')}, then "
        yield Hazard("filters", words, f"{first}`git lfs install` and `git lfs pull`")


def _absent_program(top: Path, config: Mapping[str, str], name: str) -> str:
    """Return the program of a filter that is not here, by the first word of its commands."""
    said = [config.get(f"filter.{name}.{way}", "").strip() for way in _WAYS]
    for command in said[:1] if said[0] else said[1:]:
        word = command.partition(" ")[0].strip("\"'")
        is_here = shutil.which(word) or ("/" in word and (top / word).is_file())
        if _PROGRAM.fullmatch(word) and not is_here:
            return word
    return ""


def _install(program: str) -> str:
    """Say how a program gets here."""
    return "install git-lfs (https://git-lfs.com)" if program == "git-lfs" else f"install {program}"


# --- what commits go without ----------------------------------------------------------------------


def _silent_hooks(top: Path, config: Mapping[str, str]) -> Iterator[Hazard]:
    """Name the hooks that have a say in a person's commits, and none in loopr's."""
    said = config.get("core.hookspath", "")
    folder = top / Path(said).expanduser() if said else common_git_dir(top) / "hooks"
    meant = folder.parent if folder.name == _STUBS and (folder / "h").is_file() else folder
    begun = [each for each in _HOOKS if os.access(folder / each, os.X_OK)]
    found = [each for each in begun if (meant / each).is_file()]
    if found:
        where = meant.relative_to(top) if meant.is_relative_to(top) else meant
        cures = ["a check can run what they run"] if {*found} - _WORDING else []
        cures += ["commit.message words commits"] if _WORDING & {*found} else []
        words = f"loopr's commits run no hook of {where}: {', '.join(found)}"
        yield Hazard("commits", words, "; ".join(cures))
