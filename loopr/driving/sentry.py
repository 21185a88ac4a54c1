"""Keeps an eye on what all worktrees of a repository share and no loop may change.

A cheap look at time stamps says whether to look closely. What was there comes back (`restoring.py`) before the engine
touches anything that a loop has left. Of several that were at work nobody is to blame; whatever was seen is told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from loopr.core import observations as o
from loopr.core.policy import OWN_REPO
from loopr.world.repo.checkouts import heads_of_people
from loopr.world.repo.ground import HEADS, Ground
from loopr.world.repo.guarding import guard, guard_as_begun, outer_files, strangers
from loopr.world.repo.keeping import bring_back, is_kept, keep, note_seen, read_seen
from loopr.world.repo.restoring import IS_BACK, by_hand, put_back
from loopr.world.repo.vital import CONFIGS, VITAL, is_sound, refused, unsound
from loopr.world.repo.watch import (
    LONE,
    Sight,
    changes,
    is_as_seen,
    look,
    read_sight,
    setting_files,
    settings_of,
    top_refs,
)
from loopr.world.repo.words import Change
from loopr.world.repo.worktrees import ensure_ignored

_FOLDERS = ("hooks", "info", "refs/heads", "refs/tags", "refs/notes", "refs/replace")
_Mark = tuple[str, int, int, int]
_News = o.HarmSeen | o.BranchMoveSeen
MOST_NAMED = 5
MOST_LOOKS = 4  # at what is changed while it is put back


class Changed(NamedTuple):
    """What is not as it was: what one alone is to blame for, what came and may stay, and what is to be told."""

    touched: tuple[str, ...]
    grown: tuple[str, ...]
    news: tuple[_News, ...] = ()

    @property
    def words(self) -> str:
        """Tell a person what to look at: nothing else was at work, but a person may have been."""
        names = ", ".join(self.touched)
        return f"while it ran, what all worktrees share was changed: {names}; look at it, mend it if need be"


NOTHING = Changed((), ())


class Sentry:
    """Knows how the shared parts of a repository were when it looked last."""

    def __init__(self, ground: Ground, repo: str = OWN_REPO, clock: Callable[[], int] = lambda: 0) -> None:
        self._ground, self._repo, self._clock = ground, repo, clock
        self._alone = Lock()
        self._marks: tuple[_Mark, ...] = ()
        self._sight: Sight | None = None
        self._live: dict[str, list[str]] = {}  # who is at work, each with what it alone is to blame for
        self._over: dict[str, Changed] = {}  # what was said of attempts that ended; it may be lost
        self._grown: list[str] = []  # what came and may stay; who ends next tells of it
        self._fresh: set[str] = set()  # branches that came while somebody was at work: they are nobody else's
        self._slips: set[Change] = set()  # settings that tools make by themselves, told already
        self._news: list[_News] = []
        self._told = 0
        self._owing = False  # whether something stands written down that was told since

    def resume(self, runs: list[str]) -> None:
        """Go on where an earlier engine was, if attempts of its time live; else nobody is to blame for anything."""
        with self._alone:
            if not runs:
                return
            guard_as_begun(self._ground)
            told, text = _parts(read_seen(self._ground))
            self._sight = read_sight(text)
            self._live = {run: [] for run in runs}
            self._news = told
            if self._sight is not None:
                self._notice()

    def begin(self, run: str) -> None:
        """Look before an attempt: what was changed until now is not its doing, nor anybody's where none was at work."""
        with self._alone:
            if run in self._live:
                return
            if self._live:
                self._notice()
            else:
                self._look_afresh()
            self._live[run] = []
            self._over.pop(run, None)

    def look(self) -> None:
        """Look before the engine touches files of loops; the end of an attempt at work tells the result."""
        with self._alone:
            if self._live:
                self._notice()

    def forget(self, run: str) -> None:
        """Take it that an attempt will not be asked about."""
        with self._alone:
            self._over.pop(run, None)
            if run in self._live:
                self._notice()
                self._live.pop(run)

    def forget_all(self, loop: str, but: str = "") -> None:
        """Take it that no attempt of a loop will be asked about, but one."""
        for run in [*self._live, *self._over]:
            if run.rpartition("#")[0] == loop and run != but:
                self._live.pop(run, None)
                self._over.pop(run, None)

    def changed(self, run: str) -> Changed:
        """Return the changes during an attempt at its end, but for those that the user's checkout explains.

        Asked once more it says the same again, with what has come since: the first answer may have been lost.
        """
        with self._alone:
            said = self._over.get(run, NOTHING)
            self._live.setdefault(run, [])  # an earlier engine may have begun it
            self._notice()
            touched, grown = [*said.touched, *self._live.pop(run)], [*said.grown, *self._grown]
            self._grown = []
            self._over[run] = Changed(_few(touched), _few(grown), (*said.news, *self._taken()))
            return self._over[run]

    # -- what there is to see

    def _look_afresh(self) -> None:
        """Take everything for right as it is: nobody is at work."""
        ensure_ignored(self._ground)
        marks = tuple(self._marked())
        if self._sight is None or marks != self._marks or self._fresh:
            self._marks, self._sight, self._fresh = marks, look(self._ground), set()
            self._remember()
        elif self._owing:
            with suppress(OSError):
                self._save()
        guard(self._ground)

    def _notice(self) -> None:
        """Put back what was harmed, and put down whatever is not as it was: it may be the doing of all at work."""
        marks = tuple(self._marked())
        if self._sight is None or marks == self._marks:
            return
        broken = self._mended(self._sight)
        found, back = self._restored(self._sight)
        self._put_down(broken, found, back)
        self._remember()

    def _restored(self, before: Sight) -> tuple[list[Change], dict[str, str]]:
        """Put harmful changes back, those that come meanwhile too; return all changes, and how each came out."""
        found, back = list[Change](), dict[str, str]()
        for _ in range(MOST_LOOKS):
            self._marks = tuple(self._marked())
            self._sight = look(self._ground)._replace(checkouts=before.checkouts)
            now = changes(self._ground, before, self._sight)
            found += [each for each in now if each.name not in {known.name for known in found}]
            wrong = [*self._touched(now), *(each for each in now if each.slip)]
            wrong = [each for each in wrong if back.get(each.name, IS_BACK).startswith(IS_BACK)]
            done = put_back(self._ground, wrong, before.checkouts) if wrong else {}
            if not done:
                return found, back
            back |= done
        self._marks, self._sight = (), before  # somebody is at it still: what is there now is right for nobody
        return found, back

    def _mended(self, known: Sight) -> list[str]:
        """Put back that without which git does not work here; nothing of git's is asked before that."""
        tried = [(name, why, _brought_back(self._ground, name)) for name, why in unsound(self._ground)]
        settings = settings_of(self._ground)
        if settings != known.settings:
            unread = CONFIGS if any("" in each for each in settings.values()) else refused(self._ground)
            why = "git could not read it" if unread is CONFIGS else "git refused it"
            tried += [(name, why, _brought_back(self._ground, name)) for name in unread]
        return [f"{name} ({why}; {words})" for name, why, words in tried if words]

    def _touched(self, found: list[Change]) -> list[Change]:
        """List what harms somebody."""
        return [each for each in found if not (each.by_person or _is_no_harm(each) or each.name in self._fresh)]

    def _put_down(self, broken: list[str], found: list[Change], back: dict[str, str]) -> None:
        """Blame whoever was alone, and word what is to be told."""
        touched = self._touched(found)
        names = broken + [_named(each, back.get(each.name, "")) for each in touched]
        during = tuple(sorted({run.rpartition("#")[0] for run in self._live}))
        if names:
            self._news.append(o.HarmSeen(self._number(), _few(names), during))
            if len(self._live) == 1:
                next(iter(self._live.values())).extend(names)
        for each in found:
            undo, stays = back.get(each.name, ""), (each.by_person and not each.by_loopr) or each in touched
            if stays and _is_move(each) and not undo.startswith(IS_BACK):
                self._news.append(self._moved(each, during, undo))
        kept = [each for each in found if not each.by_person and (_is_no_harm(each) or each.name in self._fresh)]
        self._grown += [_named(each, back.get(each.name, "")) for each in kept if self._is_news(each)]
        self._grown += strangers(self._ground)
        self._fresh |= {each.name for each in kept if each.name.startswith(HEADS) and not each.before}

    def _is_news(self, change: Change) -> bool:
        """Say whether a change is to be told: a setting that each setup makes anew is told once."""
        if not (change.what == "config" and change.slip):
            return True
        fresh = change not in self._slips
        self._slips.add(change)
        return fresh

    def _moved(self, change: Change, during: tuple[str, ...], undo: str) -> o.BranchMoveSeen:
        """Word the move of a person's branch that stays."""
        where = (self._repo, change.name.removeprefix(HEADS), change.before, change.after)
        return o.BranchMoveSeen(self._number(), *where, during, change.by_person, undo.removeprefix("stays: "))

    def _number(self) -> int:
        """Number what is told, higher than all before it, whichever engine told that."""
        self._told = max(self._told + 1, self._clock())
        return self._told

    def _marked(self) -> Iterator[_Mark]:
        """Give the time stamps of everything that is shared."""
        common = self._ground.common
        outside = [*heads_of_people(self._ground), *outer_files(self._ground)]
        for name in (*setting_files(self._ground), *VITAL, *LONE, *sorted(top_refs(common)), *map(str, outside)):
            yield from _mark(common / name)
        ours = common / "refs" / "heads" / self._ground.prefix.rstrip("/")
        for name in _FOLDERS:
            for folder, below, files in os.walk(common / name):
                below[:] = sorted(each for each in below if Path(folder, each) != ours)
                for file in sorted(files):
                    yield from _mark(Path(folder, file))

    # -- what is kept

    def _remember(self) -> None:
        """Keep what is seen, with what is still to be told, for an engine that takes over."""
        sight = self._sight
        if sight is None or any("" in each for each in sight.settings.values()):
            return
        names = [*(name for name, each in sight.settings.items() if each), *sight.files, *VITAL]

        def is_right(name: str, content: bytes) -> bool:
            return is_sound(name, content) and is_as_seen(self._ground, sight, name, content)

        with suppress(OSError):  # a full disk keeps no copy, and keeps no loop from its work
            keep(self._ground, names, is_right)
            self._save()

    def _save(self) -> None:
        """Write down what was seen last, and what is still to be told."""
        sight = self._sight.written() if self._sight is not None else ""
        note_seen(self._ground, json.dumps([[_written(each) for each in self._news], sight]))
        self._owing = bool(self._news)

    def _taken(self) -> tuple[_News, ...]:
        """Hand over what is to be told; until the next look it stays written down, and counts once if told again."""
        news, self._news = tuple(self._news), []
        return news


def _written(news: _News) -> list[object]:
    """Write down what is to be told."""
    return [type(news).__name__, *(getattr(news, each) for each in news.__slots__)]


def _parts(text: str) -> tuple[list[_News], str]:
    """Read what an earlier engine was still to tell, and what it saw last."""
    kinds = {"HarmSeen": o.HarmSeen, "BranchMoveSeen": o.BranchMoveSeen}
    try:
        told, sight = json.loads(text)
        rows = [(kinds[kind], [tuple(each) if isinstance(each, list) else each for each in row]) for kind, *row in told]
        return [kind(*row) for kind, row in rows], sight
    except (ValueError, TypeError, KeyError):
        return [], ""


def _named(change: Change, back: str) -> str:
    """Name a change, with where a ref was, for what a setting was may be a secret; and what came of putting it back."""
    if change.what == "head":
        return _switched(change)
    was = f"was {change.before[:12]}" if change.before and change.name.startswith("refs/") else ""
    said = ", ".join(filter(None, [was, back, by_hand(change) if back.startswith(IS_BACK) else ""]))
    return f"{change.name} ({said})" if said else change.name


def _switched(change: Change) -> str:
    """Tell of a checkout that has another branch now; a person may have done it, so that it stays."""
    old = change.before.removeprefix(HEADS)
    undo = f"; `git -C {change.name} switch {old}` takes it back" if old != change.before else ""
    return f"{change.name} (had {old} checked out, has {change.after.removeprefix(HEADS)}{undo})"


def _is_no_harm(change: Change) -> bool:
    """Say whether nobody is to blame for a change."""
    return change.harmless or change.slip


def _brought_back(ground: Ground, name: str) -> str:
    """Put a file back as it was kept, and return what came of it."""
    try:
        return bring_back(ground, name, None if is_kept(ground, name) or name in CONFIGS else "")
    except OSError as error:
        return f"could not be put back: {error}"


def _is_move(change: Change) -> bool:
    """Say whether a branch was brought elsewhere: neither made nor taken away."""
    return change.name.startswith(HEADS) and bool(change.before) and bool(change.after)


def _few(names: list[str]) -> tuple[str, ...]:
    """Return the first of some names, each once, and that there are more."""
    each = list(dict.fromkeys(names))
    return (*each[:MOST_NAMED], *(["…"] if len(each) > MOST_NAMED else []))


def _mark(path: Path) -> Iterator[_Mark]:
    """Give the time stamp of a file, if it is there."""
    try:
        status = path.lstat()
    except OSError:
        return
    yield str(path), status.st_ctime_ns, status.st_size, status.st_ino  # which nobody can set
