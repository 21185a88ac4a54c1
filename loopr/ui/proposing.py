"""What a workspace that has just been made may want to be told: who could work here, and what could judge.

Looks at the files of the folder and at the search path. Must never set anything by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from loopr.errors import SettingsError
from loopr.ui.presets import here_of, program_of
from loopr.wiring import Workspace
from loopr.world.activated import left_out
from loopr.world.place import SETTINGS_FILE
from loopr.world.recipes import makes_environment, reader, texts_of
from loopr.world.repo.pip_needs import depends
from loopr.world.repo.venvs import environments_among, made_anew
from loopr.world.settings import Settings
from loopr.world.suites import Suite, suite_of

_ENVIRONMENTS = (".venv", "venv", "env")


def proposals(workspace: Workspace) -> Iterator[str]:
    """Propose the tests of the repository as the judge of its last type, and an installed agent for the work."""
    settings = workspace.settings
    last = list(settings.types.values())[-1]
    suite = suite_of(workspace.place.root)
    judged = any(each is not None for each in (last.check, last.review, last.review_agent)) or last.unjudged
    if suite is not None and not judged:
        line = f"loopr set types.{last.name}.check {quote(suite.command)}"
        yield f"`{suite.command}` runs the tests, as {suite.file} says: `{line}` lets them judge"
    yield from _environment(workspace, settings, suite)
    idle = [each.name for each in settings.types.values() if each.run is None and each.agent is None][1:]
    found = _installed(workspace, settings) if len(idle) == len(settings.types) - 1 else []
    if found:
        here = f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} installed"
        others = f", likewise for {', '.join(idle[:-1])}" if idle[:-1] else ""
        yield f"{here}: `loopr set types.{last.name}.agent {found[0]}` lets it work{others}"


def _environment(workspace: Workspace, settings: Settings, suite: Suite | None) -> Iterator[str]:
    """Say that a virtual environment stays in the checkout, and how each worktree makes its own.

    Where none is there yet, that is said of a project that needs one.
    """
    top = workspace.place.repository
    if top is None or settings.worktrees.setup is not None:
        return
    active = left_out(workspace.environ, top)
    plain = (f"{each}/-" for each in _ENVIRONMENTS)
    found = [active] if active else environments_among(top, plain)
    own = (each.check for each in settings.types.values())
    texts = texts_of((suite and suite.command, *own, settings.land.check), reader(top))
    if found:
        why = ", which is active and runs the checkout's own files" if active else ""
        words = f"loops do not get {found[0]}{why}; add to {SETTINGS_FILE}, so that each worktree"
        yield f"{words} makes one: `{made_anew(top, found[0], texts)}`"
    elif depends(top) and not makes_environment(texts):
        named = (each for each in _ENVIRONMENTS if any(f"{each}/bin/" in text for text in texts))
        words = f"worktrees begin without what the project needs; add to {SETTINGS_FILE}, so that"
        line = made_anew(top, next(named, _ENVIRONMENTS[0]), texts)
        yield f"{words} each makes an environment: `{line}`"


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
