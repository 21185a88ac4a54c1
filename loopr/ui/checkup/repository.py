"""The checks of the repository around a workspace: what would stand in the way of worktrees, branches and landing.

Must never know the journal or the machine.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from loopr.ui.checkup.rows import Finding
from loopr.ui.hazards import hazards_of
from loopr.wiring import Workspace
from loopr.world.git_facts import GitFacts, git_version, under_way
from loopr.world.place import Place, common_git_dir, head_of, own_git_dir
from loopr.world.settings import Settings

LONGEST_LOCK_MINUTES = 5
Look = Callable[[Workspace, Settings], Iterable[Finding]]


class _Seen(NamedTuple):
    """The workspace with the settings that the checks compare with, which may be the built-in ones."""

    place: Place
    settings: Settings


def _repository(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Check that there is a checkout, and that git works in it for whoever stands there; so too for each project."""
    from loopr.grounds import repository_problems

    yield from _own_repository(workspace.place.repository)
    seen = _Seen(workspace.place, settings)
    for problem in repository_problems(seen):
        yield Finding("repository", False, f"{problem.where} {problem.message}", problem.hint)
    for _, top in _others(seen):
        yield from _own_repository(top)


def _own_repository(top: Path | None) -> Iterator[Finding]:
    """Check one repository."""
    if top is None:
        text = "the workspace is in no repository: each loop works in a folder of its own, and nothing lands"
        yield Finding("repository", None, text, "`git init` before the first start gives each loop a worktree")
    elif not (top / ".git").exists():
        yield Finding("repository", False, f"{top} is a bare repository", "add a checkout with `git worktree add`")
    elif git_version() is None:
        yield Finding("repository", None, "cannot be asked without git")
    elif refusal := GitFacts(top, own_git_dir(top)).refusal():
        yield _refused(top, refusal)
    else:
        yield Finding("repository", True, str(top))


def _others(seen: _Seen) -> Iterator[tuple[str, Path]]:
    """Give the repositories of projects beside the one around the workspace, as far as they can be worked in."""
    from loopr.grounds import project_problems

    sound = {seen.settings.projects[name].repo for name, wrong in project_problems(seen).items() if wrong is None}
    yield from ((repo, (seen.place.root / repo).resolve()) for repo in sorted(sound))


def _refused(top: Path, refusal: str) -> Finding:
    """Say why git does not work here; for another owner it has a remedy of its own."""
    if "dubious ownership" in refusal:
        hint = f"`git config --global --add safe.directory {shlex.quote(str(top))}`, if you trust it"
        return Finding("repository", False, f"git does not trust {top}, which has dubious ownership", hint)
    from loopr.world.repo.ground import way_back

    words = " ".join(refusal.split()).removeprefix("fatal: ")
    line = way_back(common_git_dir(top) / "loopr", refusal)
    hint = f"`{line}` puts back what git could read last" if line else "see what `git status` says there"
    return Finding("repository", False, f"git refuses to work in {top}: {words}", hint)


def _asking(look: Callable[[Workspace, Settings, Path, GitFacts], Iterable[Finding]], *, everywhere: bool) -> Look:
    """Ask only where there is a checkout to ask about; that there is none has been found already."""

    def asked(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
        top = workspace.place.repository
        if git_version() is None:
            return
        if top is not None and (top / ".git").exists():
            yield from look(workspace, settings, top, GitFacts(top, own_git_dir(top)))
        for repo, other in _others(_Seen(workspace.place, settings)) if everywhere else ():
            project = next(name for name, each in settings.projects.items() if each.repo == repo)
            own = settings.of_project(project)
            for each in look(workspace, own, other, GitFacts(other, own_git_dir(other))):
                yield each._replace(text=f"{repo}: {each.text}")

    return asked


def _base(_: Workspace, settings: Settings, top: Path, git: GitFacts) -> Iterator[Finding]:
    """Check where plans would begin, and that git reads the same there as we do without it."""
    wanted = settings.git.base
    head = head_of(top, wanted)
    name = head.branch or "HEAD"
    said = git.commit_of(f"refs/heads/{wanted}" if wanted else "HEAD")
    if wanted and not said:
        yield Finding("base", False, f"git.base is {wanted}, and there is no such branch", _set_base(wanted))
    elif not said and head.commit and git.refusal():
        return  # it says nothing at all, which is told already
    elif not said:
        hint = "commit something: a plan starts from a commit"
        yield Finding("base", None, f"nothing has been committed yet on {name}", hint)
    elif said != head.commit:
        text = f"git says {name} is {said[:12]}, and its files say {head.commit[:12] or 'nothing'}"
        yield Finding("base", False, text, "refs must be kept as files: `git refs migrate --ref-format=files`")
    elif not head.branch:
        hint = "check out a branch, or name one with git.base: `land` must know where to"
        yield Finding("base", None, f"HEAD is detached at {said[:12]}", hint)
    else:
        yield Finding("base", True, f"{name} at {said[:12]}")


def _set_base(name: str) -> str:
    """Say how to mend a base that there is not."""
    return f"`git branch {name}` makes it, `loopr set git.base null` takes the branch that is checked out"


def _branch_names(_: Workspace, settings: Settings, __: Path, git: GitFacts) -> Iterator[Finding]:
    """Check that no ref stands where a folder of ours belongs."""
    prefix = PurePosixPath(settings.git.branch_prefix)
    folders = [f"refs/heads/{each}" for each in (prefix, *prefix.parents) if each.name] + ["refs/loopr"]
    taken = [name for name in folders if git.has_ref(name)]
    for name in taken:
        short = name.removeprefix("refs/heads/")
        mend = f"`git branch -m {short} {short}-old`" if short != name else f"`git update-ref -d {name}`"
        yield Finding("branch names", False, f"{name} stands in the way of {name}/…", f"rename it: {mend}")
    if not taken:
        yield Finding("branch names", True, f"nothing stands in the way of {prefix}/…")


def _under_way(_: Workspace, __: Settings, top: Path, ___: GitFacts) -> Iterator[Finding]:
    """Remark on what a person has begun in the checkout: nothing lands there meanwhile."""
    yield from _left_locks(top)
    found = under_way(own_git_dir(top))
    if found:
        text = f"in progress in {top}: {', '.join(found)}"
        yield Finding("checkout", None, text, "end it before `land`, for example with `git status` and what it says")
    else:
        yield Finding("checkout", True, "no merge, rebase or bisection is in progress")


def _left_locks(top: Path) -> Iterator[Finding]:
    """Remark on lock files that no git at work would hold for so long: whoever needs them waits, and then fails."""
    for folder in dict.fromkeys((common_git_dir(top), own_git_dir(top))):
        for lock in sorted(folder.glob("*.lock")):
            with suppress(FileNotFoundError):
                minutes = int(time.time() - lock.stat().st_mtime) // 60
                if minutes >= LONGEST_LOCK_MINUTES:
                    text = f"{lock} has been there for {minutes} min: a git that was killed leaves such a file"
                    yield Finding("checkout", None, text, "remove it, once no git is at work there")


def _config(_: Workspace, __: Settings, top: Path, git: GitFacts) -> Iterator[Finding]:
    """Check the settings of git's that would lead a worktree astray."""
    config = git.config()
    found = [*_hostile(config, top, own_git_dir(top)), *_filters(top)]
    yield from found or [Finding("git config", True, "nothing in it is in the way")]


def _hostile(config: dict[str, str], top: Path, git_dir: Path) -> Iterator[Finding]:
    """Name the settings that are in the way, and those that may surprise."""
    tree = config.get("core.worktree")
    if tree and (git_dir / tree).resolve() != top:  # a submodule names its own checkout, which is right
        text = f"core.worktree is {tree}, which is not {top}"
        yield Finding("git config", False, text, "`git config --unset core.worktree`")
    if config.get("core.bare") == "true" and git_dir == common_git_dir(top):  # else it is a worktree of a bare one
        text = "core.bare is true, and yet there is a checkout"
        yield Finding("git config", False, text, "`git config core.bare false`")
    if config.get("extensions.refstorage", "files") != "files":
        text = f"refs are kept as {config['extensions.refstorage']}, which loopr does not read"
        yield Finding("git config", False, text, "`git refs migrate --ref-format=files`")
    hooks = config.get("core.hookspath", "")
    if hooks and not hooks.startswith(("/", "~")):
        text = f"core.hooksPath is {hooks}, relative to each worktree: one without that folder runs no hooks"
        yield Finding("git config", None, text, "make it absolute, or commit the folder")


def _filters(top: Path) -> Iterator[Finding]:
    """Say that files are kept by a program which is not here, so that no worktree gets them."""
    with suppress(OSError):
        if "filter=lfs" in (top / ".gitattributes").read_text("utf-8", "replace") and not shutil.which("git-lfs"):
            text = ".gitattributes has git-lfs keep files, and there is no git-lfs here: no worktree gets them"
            yield Finding("git config", False, text, "install git-lfs, then `git lfs install` and `git lfs pull`")


def _ignored(workspace: Workspace, settings: Settings, _: Path, git: GitFacts) -> Iterator[Finding]:
    """Check that git does not offer loopr's own folders for a commit."""
    root = workspace.place.root
    folders = (settings.worktrees.dir, ".loopr")
    seen = [name for name in folders if not git.is_ignored(root / name / "anything")]
    if not seen:
        yield Finding("ignored", True, " and ".join(f"{name}/" for name in folders))
        return
    # nothing can be committed by mistake before there is something
    there = any((root / name).is_dir() for name in seen)
    text = f"git does not ignore {' and '.join(f'{name}/' for name in seen)}"
    yield Finding("ignored", False if there else None, text, "`loopr init` adds them to .git/info/exclude")


def _hazards(_: Workspace, settings: Settings, top: Path, __: GitFacts) -> Iterator[Finding]:
    """Name what the checkout has that worktrees and commits of loopr's do not."""
    for each in hazards_of(top, settings):
        yield Finding(each.about, False if each.stop else None, each.words, each.cure)


CHECKS: tuple[tuple[str, Look], ...] = (
    ("repository", _repository),
    ("base", _asking(_base, everywhere=True)),
    ("branch names", _asking(_branch_names, everywhere=True)),
    ("checkout", _asking(_under_way, everywhere=True)),
    ("git config", _asking(_config, everywhere=True)),
    ("hazards", _asking(_hazards, everywhere=True)),
    ("ignored", _asking(_ignored, everywhere=False)),
)
