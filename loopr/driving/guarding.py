"""Which files say how work is prepared and judged: those that commands of the settings name.

Knows what a command names. Must never know what becomes of a file that a loop has changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.entries import Command
from loopr.driving.kit import Kit, Task
from loopr.driving.written import written_by
from loopr.world.judges import judges_in, stand_ins
from loopr.world.place import SETTINGS_FILE
from loopr.world.repo.ground import Ground
from loopr.world.repo.protection import Protect
from loopr.world.settings import Settings


def protect_of(kit: Kit, task: Task, ground: Ground) -> Protect:
    """Say which paths a loop may not change: settings, what its type protects, its judges."""
    words = tuple(sorted({*judges_of_work(kit, task), *words_of_steps(kit, task)}))
    known = _known(kit, ground, task.base_commit, words)
    return Protect((SETTINGS_FILE, *known, *task.type.protect), task.type.protect_added == "keep", words)


def judges_of_work(kit: Kit, task: Task) -> tuple[str, ...]:
    """List paths that may be those of files which judge a loop; one that it has made is its work.

    So is a file of an entry with a check of its own, which its `files` name, or which its command
    writes and the check only reads: one hand has written both.
    """
    entry, beside = task.entry, judges_in(_judging(kit, task))
    if entry is None or entry.check is None:
        check = {*judges_in([task.check])}
    else:
        check = {*judges_in([task.check], written_by(entry.run))} - {*entry.files}
    return tuple(sorted({*check, *beside} - {*task.loop.own}))


def named_by_judges(kit: Kit, task: Task) -> frozenset[str]:
    """Return paths in all commands that judge a loop, be it work or judge."""
    return frozenset(judges_in([task.check, *_judging(kit, task)]))


def words_of_steps(kit: Kit, task: Task) -> tuple[str, ...]:
    """List what in steps and wrappers may be the path of a file."""
    return judges_in([*_preparing(kit, task), *_wrapping(task)])


def protect_of_steps(kit: Kit, task: Task, ground: Ground, tip: str) -> Protect | None:
    """Say which paths steps and wrappers name, None where they name none."""
    words = words_of_steps(kit, task)
    known = {path for commit in (task.base_commit, tip) for path in _known(kit, ground, commit, words)}
    return Protect(tuple(sorted(known)), named=words) if known else None


def _known(kit: Kit, ground: Ground, commit: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """List the files of a commit that are named, and what must not be added beside them."""
    files = kit.named_files(ground, commit, words)
    return (*files, *stand_ins(words, files))


def _judging(kit: Kit, task: Task) -> Iterator[Command | None]:
    """Give the commands that judge a loop beside its check, here and on the way home."""
    yield task.type.review
    yield task.reviewer.command if task.reviewer is not None else None
    yield settings_of(kit, task).land.check


def _preparing(kit: Kit, task: Task) -> Iterator[Command | None]:
    """Give the commands that run beside that of a loop, in its folder."""
    yield settings_of(kit, task).worktrees.setup
    yield from (kit.settings.hooks.get(name) for name in ("post_create", "pre_run", "post_run"))


def _wrapping(task: Task) -> Iterator[Command | None]:
    """Give what is put around the commands of a loop."""
    yield task.type.wrap


def settings_of(kit: Kit, task: Task) -> Settings:
    """Return the settings as they are for the project of a loop."""
    return kit.settings.of_project(task.loop.project)
