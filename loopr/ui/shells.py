"""Says which texts sh could not run as they are written, before anything of a plan is enqueued.

Knows which texts a plan can lead to. A text in a wrapper is for a shell that may be another
one. Must never run a text, nor refuse one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loopr.core.entries import Artifact, Command, Entry
from loopr.core.filing import plan_declares
from loopr.core.scene import Scene
from loopr.errors import Problem
from loopr.ui.programs import needs_of, told
from loopr.wiring import Workspace
from loopr.world.dialect import BASH_ONLY, complaint, cure_of, lacking
from loopr.world.judges import begun_in, without_documents

Place = tuple[str, str]
MOST_TEXTS, MOST_TOLD, MOST_PLACES = 100, 5, 2


def unreadable_texts(
    scene: Scene,
    workspace: Workspace,
    artifact: Artifact,
    source: str,
) -> list[Problem]:
    """List the texts of a plan, and of its setup and its judges, that sh could not run."""
    entries = artifact.entries if plan_declares(scene, artifact) else None
    return shell_problems(workspace, entries, source, artifact.project)


def shell_problems(
    workspace: Workspace,
    entries: Iterable[Entry] | None,
    source: str,
    project: str,
) -> list[Problem]:
    """List the texts that sh cannot read, and those that begin a command with a word of bash's.

    `entries` are those of the plan file; None: its loop has to find them.
    """
    places: dict[str, list[Place]] = {}
    for command, place in _commands(workspace, entries, source, project):
        if text := _text_of(command):
            places.setdefault(text, []).append(place)
    texts = [*places][:MOST_TEXTS]
    words = {text: _words_of_bash(text) for text in texts}
    unknown = lacking(frozenset(word for each in words.values() for word in each))
    found: dict[tuple[str, str], list[Place]] = {}
    for text in texts:
        for fault in _faults(text, [each for each in words[text] if each in unknown]):
            found.setdefault(fault, []).extend(places[text])
    return _listed(found)


def _listed(found: Mapping[tuple[str, str], list[Place]]) -> list[Problem]:
    """Say each fault once; of very many the first."""
    problems = [told(*each, at, link="as in", most=MOST_PLACES) for each, at in found.items()]
    more = len(problems) - MOST_TOLD
    rest = [Problem(f"sh cannot run {more} more as they are written")] if more > 0 else []
    return [*problems[:MOST_TOLD], *rest]


def _faults(text: str, unknown: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give the faults of a text, each with its cure."""
    if said := complaint(text):
        yield f"sh cannot read it: {said}", cure_of(text)
        return
    for word in unknown:
        yield f"`{word}` is bash's, and sh runs this", BASH_ONLY[word]


def _words_of_bash(text: str) -> list[str]:
    """List the words of bash's that begin a command in a text, but for those it defines itself."""
    begun = dict[str, None]()
    for words, end in begun_in(without_documents(text)):
        first = words[0] if words else ""
        if first in BASH_ONLY and not (words[-1] == first and end.startswith("()")):
            begun[first] = None
    return list(begun)


def _text_of(command: Command | None) -> str:
    """Return the text that sh is given by a command, nothing if it is given none."""
    if command is None or isinstance(command, str):
        return command or ""
    head, *rest = command
    return rest[1] if head in ("sh", "/bin/sh") and rest[:1] == ["-c"] and rest[1:] else ""


def _commands(
    workspace: Workspace,
    entries: Iterable[Entry] | None,
    source: str,
    project: str,
) -> Iterator[tuple[Command | None, Place]]:
    """Give every command that a plan can lead to, with its place and its key."""
    for own, need in needs_of(workspace, entries, source):
        if own.wrap is None and need.agent is None:
            yield need.command, (need.where, need.key)
    yield from of_project(workspace, project)


def of_project(workspace: Workspace, project: str) -> Iterator[tuple[Command | None, Place]]:
    """Give the commands that prepare worktrees, hear of events, and judge on the way home."""
    settings = workspace.settings.of_project(project)
    payer = settings.projects.get(project)
    above = f"projects.{project}."
    setup = above if payer is not None and payer.setup is not None else ""
    check = above if payer is not None and payer.check is not None else ""
    commands = {
        f"{setup}worktrees.setup": settings.worktrees.setup,
        f"{check}land.check": settings.land.check,
        **{f"hooks.{name}": command for name, command in settings.hooks.items()},
    }
    for key, command in commands.items():
        if command is not None:
            yield command, (workspace.settings.origin(key), key)
