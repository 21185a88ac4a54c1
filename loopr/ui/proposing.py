"""What a new workspace is told: how its repository looks, what was proposed, and who could work there.

Knows how findings are worded, and looks at the search path for agents. Must never set anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from loopr.errors import SettingsError
from loopr.ui.drafting import CHECK, INCLUDE, SETUP, Proposal, languages_of
from loopr.ui.names import counted
from loopr.ui.presets import here_of, program_of
from loopr.ui.surveying import Survey
from loopr.wiring import Workspace
from loopr.world.place import SETTINGS_FILE
from loopr.world.settings import Settings

_MEGA, MOST_NAMED = 1_000_000, 5
NO_SUITE = "no file at the top says which command runs the tests: `types.code.check` is to name it"


def seen(found: Survey, proposals: Sequence[Proposal]) -> Iterator[tuple[str, str]]:
    """Say what was seen of a repository and what follows from it, as heads and texts."""
    yield "saw", _files(found)
    yield "check", "; ".join(_checks(proposals)) or NO_SUITE
    for each in proposals:
        if each.key == SETUP:
            yield "setup", f"`{each.value}`{'' if each.used else f' (behind a # in {SETTINGS_FILE})'}: {each.why}"
    for each in proposals:
        if each.key not in (CHECK, SETUP):
            value = "" if each.key == INCLUDE else f"{each.value}: "
            yield "maybe", f"{each.key}, behind a # in {SETTINGS_FILE}: {value}{each.why}"
    yield from _beside(found)


def _files(found: Survey) -> str:
    """Say how many files there are, and in which languages."""
    names = [name for name, _ in languages_of(found.facts.files).most_common(2)]
    if not found.facts.files:
        return "no committed file yet: what follows from one is proposed where it is committed"
    size = f", {max(found.size / _MEGA, 0.1):.1f} MB in each worktree" if found.facts.is_repository else ""
    return f"{counted(len(found.facts.files), 'file')}{size}{', ' if names else ''}{' and '.join(names)}"


def _checks(proposals: Sequence[Proposal]) -> Iterator[str]:
    """Say which command judges, and which others could."""
    own = [each for each in proposals if each.key == CHECK]
    yield from (f"`{each.value}`, as {each.why} says" for each in own if each.used)
    if others := [f"`{each.value}` ({each.why})" for each in own if not each.used]:
        yield f"behind a # in {SETTINGS_FILE}: {', '.join(others)}"


def _beside(found: Survey) -> Iterator[tuple[str, str]]:
    """Say what git does for a person's commits, and what it cannot do here."""
    if found.hooks:
        yield "hooks", f"{', '.join(found.hooks[:MOST_NAMED])}: git runs them for your commits, loopr does not"
    if found.signs:
        yield "signs", "commit.gpgsign signs your commits; those of loops are not signed"
    if found.lfs and not found.has_lfs:
        yield "lfs", "files are kept by git-lfs, which is not installed: no worktree can be made without it"


def agents_here(workspace: Workspace) -> Iterator[str]:
    """Propose an installed agent for the work."""
    settings = workspace.settings
    last = list(settings.types.values())[-1]
    idle = [each.name for each in settings.types.values() if each.run is None and each.agent is None][1:]
    found = _installed(workspace, settings) if len(idle) == len(settings.types) - 1 else []
    if found:
        here = f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} installed"
        others = f", likewise for {', '.join(idle[:-1])}" if idle[:-1] else ""
        yield f"{here}: `loopr set types.{last.name}.agent {found[0]}` lets it work{others}"


def _installed(workspace: Workspace, settings: Settings) -> list[str]:
    """Name the agents whose program is on this machine."""
    path, found = workspace.environ.get("PATH", os.defpath), []
    for name in settings.shelf.names:
        try:
            preset = settings.preset(name)
        except SettingsError:
            continue
        if program_of(preset.command, path, here_of(workspace.place)):
            found.append(name)
    return found
