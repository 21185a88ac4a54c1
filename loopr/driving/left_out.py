"""What a loop has made of files that never land: it is kept, put back, and told to the loop and to a person.

Knows the folders of runs and commits. Must never know how a loop is judged, nor what becomes of it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping

from loopr.core.forest import Forest
from loopr.core.left_out import LEFT_PLACE, left_text, told_of
from loopr.core.observations import Noticed
from loopr.core.outline import one_line
from loopr.driving.kit import Kit, Task
from loopr.world.repo.ground import Ground
from loopr.world.repo.left_out import LeftOut, Span, keep_left_out
from loopr.world.repo.words import Candidate, Committed

MOST_NAMED = 3
SHORT = 12
_HEAD = "Files that never land were put back, whatever was made of them; the folder of a plan is loopr's own:"
_TAIL = "What you hand over goes into the file that $LOOPR_OUTPUT names."


def put_back(kit: Kit, task: Task, ground: Ground, base: str, done: Committed) -> None:
    """Put back what an attempt has made of files that never land; for whoever is told it is noted before."""

    def note(found: LeftOut) -> None:
        files = {each.path: each.how for each in found.files}
        kit.runs.note_left_out(task.name, task.attempt, found.before, found.after, files)
        kit.runs.note_put_back(task.name, files)

    keep_left_out(ground, task.name, done, Span(base, task.tip, kit.clock()), note)


def in_candidate(kit: Kit, task: Task, ground: Ground, candidate: Candidate) -> Noticed | None:
    """Report the files that a candidate leaves out, and no attempt was told of: their plan is new, say."""
    found = tuple(each for each in candidate.put_back if ground.folder_of(each.path))
    if not found:
        return None
    left = LeftOut(candidate.plan_tip, candidate.loop_tip, found)
    files = {each.path: each.how for each in found}
    kit.runs.note_left_out(task.name, task.attempt, left.before, left.after, files)
    return report(kit, task)


def report(kit: Kit, task: Task) -> Noticed:
    """Report what an attempt has made of files that never land, or that it has left them alone."""
    said, ground = kit.runs.left_out(task.name, task.attempt), kit.ground_of(task)
    text = _text(kit, ground, said["before"], said["after"], said["files"]) if said and ground is not None else ""
    return Noticed(f"{LEFT_PLACE}{task.loop.id}", text)


def _text(kit: Kit, ground: Ground, before: str, after: str, files: Mapping[str, str]) -> str:
    """Name the files that were put back, and the command that shows what was made of them."""
    folders = dict.fromkeys(filter(None, map(ground.folder_of, files)))
    named = [f"{_here(kit, ground, path)} ({how})" for path, how in files.items()]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    homes = ", ".join(f"{_here(kit, ground, each)}/" for each in folders)
    are = "are" if len(folders) > 1 else "is"
    words = f"put back: {one_line(', '.join(named[:MOST_NAMED]))}{more}; {homes} {are} loopr's, and never lands"
    few = [*files] if len(files) <= MOST_NAMED and "".join(files).isprintable() else [*folders]
    places = (shlex.quote(_here(kit, ground, each)) for each in few)
    return left_text(words, f"git diff {before[:SHORT]} {after[:SHORT]} -- {' '.join(places)}")


def _here(kit: Kit, ground: Ground, path: str) -> str:
    """Call a path of the tree by its way from the workspace."""
    return os.path.relpath(f"{ground.top}/{path}", kit.place.root)


def is_gone(forest: Forest) -> Iterator[Noticed]:
    """Take back what was told of loops that are cancelled, or no more."""
    told = told_of(forest)
    for place in list(forest.shared.problems):
        if place.startswith(LEFT_PLACE) and place.removeprefix(LEFT_PLACE) not in told:
            yield Noticed(place, "")


def left_words(kit: Kit, name: str, attempt: int) -> str:
    """Tell the next try which files of this one never land."""
    files = kit.runs.left_out(name, attempt).get("files", {})
    lines = [f"- {path} ({how})" for path, how in files.items()]
    return "\n".join([_HEAD, *lines, _TAIL]) if lines else ""
