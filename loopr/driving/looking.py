"""Which artifacts have changed: hints say where to look, looking says what is there.

Now and then all of them are looked at, so that nothing depends on a hint. Knows files by their loops. Must never know
what a change means.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from loopr.core import observations as o
from loopr.core.entries import Entry
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.driving.doubts import Doubts
from loopr.driving.early import Early
from loopr.driving.straying import Straying
from loopr.driving.switching import WAITS, Switching
from loopr.engine import Engine
from loopr.errors import PlanError
from loopr.hands import During, FileHands
from loopr.world.watching import Settling, Watch

FIRST_LOOK_MS = 10_000  # a file that is written to without an end keeps an engine from beginning no longer
FULL_LOOK_SHARE = 50  # looking at everything takes at most a fiftieth of the time
_Shape = tuple[int, int, int, int]
_NOT_NOW = frozenset({Status.INVALIDATED, Status.LANDING})  # what is published is ours, and what a person wrote is kept


class Looking:
    """Finds out what has changed among the artifacts."""

    def __init__(
        self, specs: Path, settle_ms: int, poll_ms: int, clock: Callable[[], int], top: Path | None = None
    ) -> None:
        """Name the folder, how long a file must have been quiet, and the checkout that it is in, if it is in one."""
        self.watch = Watch(specs)
        self.busy: set[str] = set()  # loops whose artifact is being written by us
        self.entries: Callable[[str], Entry | None] = lambda loop_id: None
        self._specs, self._poll_ms, self._clock = specs, poll_ms, clock
        self._settling = Settling(settle_ms)
        self._switching = Switching(top)
        self._known: dict[str, _Shape | None] = {}
        self._looked: dict[str, _Shape] = {}
        self._again: set[str] = set()
        self._sights: dict[str, tuple[_Shape, During]] = {}  # of files that are new: whose word each is
        self.doubts = Doubts()
        self._full_look_at = 0
        self._straying = Straying(specs)
        self._early = Early(specs)
        self._begun = False
        self._has_read = False
        self._settle_ms, self._started_at = settle_ms, 0

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are hints."""
        return self.watch.fileno()

    def start(self) -> None:
        """Begin to hear of changes."""
        self._started_at = self._clock()
        self.watch.start()

    def take_over(self, engine: Engine, lived_until: int | None) -> None:
        """Learn whose word the files are that changed since the engine before us looked: its loops lived until then."""
        mind, started_at = engine.mind, engine.forest.shared.engine.started_at
        until = None if lived_until is None else max(lived_until, mind.began_at)
        self.doubts.take_over(engine.forest, started_at, until)
        engine.whose, engine.came, self.entries = self.whose, self.doubts.came, mind.find_entry

    def stop(self) -> None:
        """Hear of no more."""
        self.watch.stop()

    def next_look(self, *, calm: bool = False) -> int | None:
        """Return when to look again by itself, None for never; while it is `calm` no more than what is heard of."""
        due = self._settling.next_look_ms(), self._switching.next_look(self._clock())
        full = None if calm and not self.watch.blind else self._full_look_at
        return min((each for each in (full, *due) if each is not None), default=None)

    def is_expecting(self) -> bool:
        """Say whether something has come of which it is not known yet what it is: it may set a loop free."""
        heard = select.poll()
        heard.register(self, select.POLLIN)
        return self._has_unread() or bool(heard.poll(0))

    def _has_unread(self) -> bool:
        """Say whether a file was seen that has not settled, or that is kept back for a moment."""
        return self._settling.next_look_ms() is not None or self._switching.is_waiting

    def has_read_all(self) -> bool:
        """Say whether all that lay there when the engine began has been read; once that is so, it stays so."""
        if not self._has_read:
            late = self._clock() >= self._started_at + max(FIRST_LOOK_MS, 2 * self._settle_ms)
            self._has_read = late or not self._has_unread()
        return self._has_read

    def gather(self, forest: Forest, hands: FileHands) -> Iterator[o.Observation]:
        """Look where hints lead, where a file had not settled, and now and then everywhere."""
        if self._begun:
            self.doubts.heed(forest)
        yield from self._switching.sift(forest, self._found(forest, hands), self._clock())

    def _found(self, forest: Forest, hands: FileHands) -> Iterator[o.Observation]:
        """Report what has changed, wherever it came from."""
        now = self._clock()
        hints = self.watch.hints()
        for path in self._settling.due(now):
            yield from self._look(forest, hands, path, now)
        for path in hints:
            if path != self._specs:
                yield from self._look_below(forest, hands, path, now, whole=path in self.watch.whole)
        if now >= self._full_look_at or self._specs in hints:
            yield from self._look_everywhere(forest, hands, now, overrun=self._specs in hints)

    def forget(self, loop_id: str) -> None:
        """Look at a loop's artifact again even if it seems to be the same."""
        self._again.add(loop_id)

    def whose(self, loop: Loop) -> During:
        """Say who was at work when a loop's file came, None if it is a person's."""
        shape = _shape(self._path(loop))
        return self._sight(loop, shape) if shape is not None else None

    def last_word(self) -> o.EngineLeft:
        """Say that the engine leaves, and whether it has seen all that came while loops were at work."""
        return o.EngineLeft(looked=self.doubts.are_over)

    def has_seen_all(self, forest: Forest) -> bool:
        """Say whether all files have been looked at since the last loop was at work; else they are next."""
        if forest.occupancy.total or self.doubts.are_over:
            return True
        self._full_look_at = 0
        return False

    def _sight(self, loop: Loop, shape: _Shape) -> During:
        """Remember whose word a file is, from the first sight of it on, and of each further change."""
        known = self._sights.get(loop.id)
        if known is not None and known[0] == shape:
            return known[1]
        during = self.doubts.of(shape[3])
        if during is None and known is not None and self._looked.get(loop.id) != known[0]:
            during = known[1]  # it has not settled since
        self._sights[loop.id] = shape, during
        return during

    def _look_everywhere(self, forest: Forest, hands: FileHands, now: int, *, overrun: bool) -> Iterator[o.Observation]:
        """Look at the artifact of every loop."""
        begun = self._clock()
        yield from self._early.everywhere(forest, hands, self.doubts, deep=not self._begun or overrun)
        for loop in list(forest.tree.walk()):
            yield from self._look_at(forest, hands, loop, self._path(loop), now)
        yield from self._straying.again(forest)
        if not self._begun:
            self._begun = True
            yield from self._straying.around(forest, now)
        self.doubts.have_looked(forest)
        took = self._clock() - begun
        self._full_look_at = self._clock() + max(self._poll_ms, FULL_LOOK_SHARE * took)

    def _path(self, loop: Loop) -> Path:
        """Return where a loop's artifact belongs."""
        return Path(f"{self._specs}/{loop.id}/{loop.type}.md")

    def _look_below(
        self, forest: Forest, hands: FileHands, path: Path, now: int, *, whole: bool
    ) -> Iterator[o.Observation]:
        """Look at a file, or at the artifacts of a folder's loop and of all below it."""
        if path.suffix == ".md":
            yield from self._look(forest, hands, path, now, whole=whole)
            return
        loop_id = path.relative_to(self._specs).as_posix() if path.is_relative_to(self._specs) else ""
        if loop_id in forest.loops:
            for loop in list(forest.tree.walk(loop_id)):
                yield from self._look_at(forest, hands, loop, self._path(loop), now)
        if loop_id:
            yield from self._straying.inside(forest, path, forest.loops.get(loop_id))

    def _look(
        self, forest: Forest, hands: FileHands, path: Path, now: int, *, whole: bool = False
    ) -> Iterator[o.Observation]:
        """Look at one file, if it is the artifact of a loop."""
        if not path.is_relative_to(self._specs):
            return
        loop = forest.loops.get(path.parent.relative_to(self._specs).as_posix())
        if loop is None or loop.type != path.stem:
            self._settling.forget(path)
            yield from self._early.at(forest, hands, path, self.doubts)
            yield from self._straying.at(forest, path)
            return
        yield from self._look_at(forest, hands, loop, path, now, whole=whole)

    def _look_at(
        self, forest: Forest, hands: FileHands, loop: Loop, path: Path, now: int, *, whole: bool = False
    ) -> Iterator[o.Observation]:
        """Report a loop's artifact if it has changed since the last look, and has settled."""
        if loop.status in _NOT_NOW or loop.id in self.busy:
            self._settling.forget(path)  # else it would be due at every moment
            if loop.status is Status.LANDING and (shape := _shape(path)) is not None:
                self._sight(loop, shape)  # it is read once that is over, and came now or before
            return
        shape = _shape(path)
        if shape is None:
            if self._concerns(forest, loop, path) and (not self._begun or self._settling.miss(path, now)):
                self._known.pop(loop.id, None)
                self._sights.pop(loop.id, None)
                seen = o.FileGone(loop.id) if hands.is_gone(loop) else hands.look(loop.id, loop.type)
                yield from [seen] if seen is not None else []
            return
        if self._known.get(loop.id) == shape and loop.id not in self._again:
            self._settling.forget(path)
            return
        during = self._sight(loop, shape)
        if self._settling.see(path, shape[0], shape[1], now, whole=whole) or self._is_known(hands, loop, path):
            self._known[loop.id] = shape
            self._again.discard(loop.id)
            problem = forest.shared.problems.get(forest.policy.place_of(loop.id, loop.type))
            if problem == WAITS and self._looked.get(loop.id, shape) == shape:  # the one that is kept back
                return
            self._looked[loop.id] = shape
            seen = hands.look(loop.id, loop.type, loop.artifact if problem is None else "", during)
            if isinstance(seen, o.FileSeen) and seen.digest in loop.offers.rejected:
                hands.replace_offered(loop, self.entries(loop.id), seen.digest)  # whoever rejected it came no further
            elif seen is not None:
                yield seen

    def _is_known(self, hands: FileHands, loop: Loop, path: Path) -> bool:
        """Say whether a file at the first look is the one that counts: it need not settle then."""
        if self._begun or not loop.artifact:
            return False
        with suppress(PlanError, OSError):
            if hands.digest_of(loop.id, loop.type) == loop.artifact:
                self._settling.forget(path)
                return True
        return False

    def _concerns(self, forest: Forest, loop: Loop, path: Path) -> bool:
        """Say whether it matters that a loop's artifact is not there."""
        if loop.on_disk or loop.offers.offered or loop.offers.unread:
            return True
        if not forest.shared.problems:
            self._settling.forget(path)
            return False
        return forest.policy.place_of(loop.id, loop.type) in forest.shared.problems


def _shape(path: Path) -> _Shape | None:
    """Return what tells a file from another version of it; a change of its status cannot be put back."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns
