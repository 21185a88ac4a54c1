"""The start of a worktree, and the virtual environments of the checkout that it does not get.

Knows how each worktree gets one of its own. Must never make one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.entries import Command
from loopr.errors import Problem
from loopr.ui.shells import of_project
from loopr.wiring import Workspace
from loopr.world.recipes import (
    Line,
    Read,
    goes_elsewhere,
    lines_behind,
    makes_environment,
    programs_of,
    reader,
    text_of,
    texts_of,
)
from loopr.world.settings import Settings

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

MOST_NAMED = 5
_HOOKS = ("post_create", "pre_run", "post_run")
_SETUP = "worktrees.setup"
_MADE = "add to loopr.yml, so that each worktree makes one:"


class Outset(NamedTuple):
    """The start of loops: repository, commit and settings, copied files, and those a setup makes.

    `words` are all that the setup names, `made` those that are nothing in the commit; `commands`
    are those of loops, and those that judge or prepare.
    """

    ground: Ground
    commit: str
    settings: Settings
    copied: tuple[str, ...]
    words: tuple[str, ...]
    made: tuple[str, ...]
    commands: tuple[Command | None, ...]

    @property
    def is_set_up(self) -> bool:
        """Say whether anything is made in each worktree."""
        return self.settings.worktrees.setup is not None

    @property
    def read(self) -> Read:
        """Return the reader of files as they are committed."""
        from loopr.world.repo.named import text_at

        return lambda name: text_at(self.ground, self.commit, name)

    def made_anew(self, folder: str) -> str:
        """Write the setting that makes a virtual environment in each worktree."""
        from loopr.world.repo.venvs import made_anew

        top = self.ground.top
        return made_anew(top, folder, texts_of(self.commands, self.read)) if top is not None else ""


def outset_of(
    ground: Ground,
    commit: str,
    settings: Settings,
    commands: Sequence[Command | None],
) -> Outset:
    """Look at the files that are copied into each worktree, and at those that the setup names."""
    from loopr.world.judges import paths_in
    from loopr.world.repo.include import included
    from loopr.world.repo.named import modes_among

    words = tuple(paths_in(settings.worktrees.setup))
    known = modes_among(ground, commit, words)
    made = tuple(each for each in words if each not in known)
    every = *commands, settings.land.check
    return Outset(ground, commit, settings, tuple(included(ground)), words, made, every)


def steps_of(settings: Settings) -> Iterator[Command | None]:
    """Give the commands that run beside those of loops."""
    yield settings.worktrees.setup
    yield from (settings.hooks.get(name) for name in _HOOKS)


def within_of(outset: Outset) -> dict[str, str]:
    """Map files of an environment, which `land.check` names or a runner's file, to their folder.

    A runner's file is named with its line. A command that makes an environment needs no other.
    """
    from loopr.world.judges import paths_in
    from loopr.world.repo.named import is_below
    from loopr.world.repo.venvs import environment_of

    top, read, setup = outset.ground.top, outset.read, outset.settings.worktrees.setup
    if top is None or makes_environment(texts_of([setup], read)):
        return {}
    behind = dict[str, Line | None].fromkeys(paths_in(outset.settings.land.check))
    for each in outset.commands:
        lines = lines_behind(each, read)
        if not makes_environment([text_of(each), *(line.text for line in lines)]):
            behind = programs_of(lines) | behind
    found = {}
    for path, line in behind.items():
        folder = environment_of(top, path)
        is_made = path in outset.copied or is_below(path, outset.made)
        if folder and not is_made and (top / path).is_file():
            found[path if line is None else f"{path} ({line.file}:{line.number})"] = folder
    return found


def in_environment(outset: Outset, within: Mapping[str, str]) -> Iterator[str]:
    """Say of files in a virtual environment how each worktree gets its own."""
    words = f"in a virtual environment: {few([*within])};"
    with_setup = "loops find none of them unless worktrees.setup makes them"
    yield from _with_cure(outset, words, with_setup, _MADE, next(iter(within.values())))


def left_out_of(outset: Outset, folder: str) -> Iterator[str]:
    """Say that loops do not get an active virtual environment, unless the setup makes one there."""
    if not folder or folder in outset.words:
        return
    words = f"loops do not get {folder}, which is active and runs the checkout's own files;"
    with_setup = "what needs one finds it where worktrees.setup makes it"
    yield from _with_cure(outset, words, with_setup, _MADE, folder)


def copied(outset: Outset) -> Iterator[str]:
    """Say which copied files name the checkout by its path: a loop would go there."""
    from loopr.world.repo.ties import naming

    top = outset.ground.top
    if top is not None and (names := naming(top, outset.copied)):
        path = "the whole path of your checkout"
        yield f"{outset.ground.include} copies {few(names)}, which names {path}; loops would go there"


def _with_cure(
    outset: Outset,
    words: str,
    with_setup: str,
    otherwise: str,
    folder: str,
) -> Iterator[str]:
    """End a remark on an environment: with a setup there is one to mend, else one to write."""
    if outset.is_set_up:
        yield f"{words} {with_setup}"
        return
    yield f"{words} {otherwise}"
    yield f"  `{outset.made_anew(folder)}`"


def without_extra(outset: Outset) -> Iterator[str]:
    """Say which extras the setup installs that the project does not declare."""
    if words := _unknown(outset.settings.worktrees.setup, outset.read):
        yield f"{_SETUP} {words}"


def extra_problems(workspace: Workspace, project: str) -> Iterator[Problem]:
    """Say the same of the settings, by the files of the checkout."""
    top = workspace.place.repository
    for command, (place, key) in of_project(workspace, project):
        if top is not None and key.endswith(_SETUP) and (words := _unknown(command, reader(top))):
            yield Problem(f"{key} {words}", place)


def _unknown(setup: Command | None, read: Read) -> str:
    """Say which extras a setup installs that are not declared."""
    from loopr.world.repo.pip_needs import PROJECT, unknown_extras

    text = "\n".join(texts_of([setup], read))
    if "[" not in text or goes_elsewhere(text):
        return ""  # a commit is read for an extra alone
    unknown, declared = unknown_extras(text, read(PROJECT))
    if not unknown:
        return ""
    names = f"the extra{'s' * (len(unknown) > 1)} {', '.join(unknown)}"
    others = f"declared: {', '.join(declared)}" if declared else "no extra is declared"
    words = f"which {PROJECT} does not declare and pip installs nothing for"
    return f"names {names}, {words}; {others}"


def few(names: Sequence[str]) -> str:
    """Name the first of some files."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
