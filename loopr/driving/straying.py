"""Files that nobody reads, beside a loop that waits for one: a slip of a person's hand is told as soon as it is heard.

Each is reported as a problem with the command that mends it, and the report is taken back once that is done. Must never
move a file, nor look at more loops than a file can have been meant for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.gates import closed_for_group
from loopr.core.model import Loop, Status
from loopr.core.slugs import slug
from loopr.world.lookalikes import Sought, is_near, lookalikes

STRAY = "is read by nobody"
MOST_LOOPS = 20  # of those that wait for a person, when an engine begins
_WAITS = frozenset({Status.PENDING, Status.PARKED, Status.FAILED, Status.COMPLETE})


class Straying:
    """Knows the folder, and asks the forest who waits."""

    def __init__(self, specs: Path) -> None:
        """Name the folder."""
        self._specs = specs

    def at(self, forest: Forest, path: Path) -> Iterator[o.Observation]:
        """Report a file that is no loop's artifact, if one that waits may be meant."""
        for loop in self._meant(forest, path):
            if path in self._lookalikes(forest, loop):
                yield self._noticed(forest, loop, path)
                return
        if forest.shared.problems.get(self._name(forest, path), "").startswith(STRAY):
            yield o.Noticed(self._name(forest, path), "")

    def inside(self, forest: Forest, folder: Path, loop: Loop | None) -> Iterator[o.Observation]:
        """Report what lies in a folder that is new, whether it is a loop's that waits or nobody's."""
        if loop is not None and loop.status is not Status.PENDING:
            return
        names = list[str]()
        with suppress(OSError):  # it may be gone by now
            names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))  # noqa: PTH208
        for name in names[:MOST_LOOPS]:
            if loop is None or name != f"{loop.type}.md":
                yield from self.at(forest, folder / name)

    def around(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Report what lies around the loops that a person is asked for, some of them."""
        loops = list(islice(_asked_for(forest, now), MOST_LOOPS))
        for path in dict.fromkeys(each for loop in loops for each in self._lookalikes(forest, loop)):
            yield from self.at(forest, path)

    def again(self, forest: Forest) -> Iterator[o.Observation]:
        """Take back the reports that are not true any more."""
        for place in [each for each, text in forest.shared.problems.items() if text.startswith(STRAY)]:
            path = self._specs / place.removeprefix(f"{forest.policy.artifacts_dir}/")
            if not any(path in self._lookalikes(forest, loop) for loop in self._meant(forest, path)):
                yield o.Noticed(place, "")

    def _lookalikes(self, forest: Forest, loop: Loop) -> list[Path]:
        """List what may be meant for a loop's artifact."""
        if loop.status not in _WAITS:
            return []
        return lookalikes(self._specs, Sought(loop.id, loop.type, forest.policy.types, forest.loops.__contains__))

    def _meant(self, forest: Forest, path: Path) -> Iterable[Loop]:
        """Give the loops that a file may have been meant for: at its folder, below it, and beside it."""
        folder = path.parent.relative_to(self._specs).as_posix()
        top, (above, _, name) = folder.partition("/")[0], folder.rpartition("/")
        if folder in forest.loops:
            below = (each for each in forest.tree.children(folder) if not forest.loops[each].on_disk)
            names = [folder, *islice(below, MOST_LOOPS)]
        elif top in forest.loops:
            beside = forest.tree.children(above) if above in forest.loops else []
            names = [each for each in beside if is_near(slug(name), each.rpartition("/")[2])]
        else:  # in no plan at all
            names = [each for each in forest.loops if each.endswith(f"/{folder}")]
        return [forest.loops[each] for each in names]

    def _noticed(self, forest: Forest, loop: Loop, path: Path) -> o.Noticed:
        """Say what a file may have been meant for, and the command that makes it that."""
        name = self._name(forest, path)
        wanted = forest.policy.place_of(loop.id, loop.type)
        return o.Noticed(name, f"{STRAY}; if it is meant for {loop.id}: mv {quote(name)} {wanted}")

    def _name(self, forest: Forest, path: Path) -> str:
        """Return how messages call a file."""
        return f"{forest.policy.artifacts_dir}/{path.relative_to(self._specs).as_posix()}"


def _asked_for(forest: Forest, now: int) -> Iterator[Loop]:
    """Give the loops that nothing but a person's file holds back."""
    for _, group in forest.ready.groups():
        for first in islice(group.members, 1):
            gate = closed_for_group(forest, forest.loops[first], now)
            if gate is not None and gate.gate == "manual":
                yield from (forest.loops[each] for each in group.members)
