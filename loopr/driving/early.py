"""Files that do not count yet: those of loops that are not declared, and those that plans began from.

That one came while loops were at work is journalled, so that a later engine knows it once the file may
count. Must never know what such a file means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.driving.doubts import Doubts
from loopr.hands import FileHands, changed_at
from loopr.world.artifacts import digest, scan
from loopr.world.swapping import content


class Early:
    """Looks at what is no loop's artifact."""

    def __init__(self, specs: Path) -> None:
        """Name the folder of artifacts."""
        self._specs = specs
        self._sources: dict[str, int] = {}

    def at(self, forest: Forest, hands: FileHands, path: Path, doubts: Doubts) -> Iterator[o.Observation]:
        """Report a file that may become a loop's artifact, if loops were at work when it came."""
        if path.stem in forest.policy.types:
            name = f"{forest.policy.artifacts_dir}/{path.relative_to(self._specs).as_posix()}"
            yield from _kept(forest, name, path, doubts)

    def everywhere(self, forest: Forest, hands: FileHands, doubts: Doubts, *, deep: bool) -> Iterator[o.Observation]:
        """Look at the files that plans were started from, and `deep` at all that may become artifacts."""
        if doubts.are_over:
            return
        for bound in forest.shared.plans.values():
            path = hands.root / bound.source
            changed = changed_at(path)
            if self._sources.get(bound.source) != changed:
                self._sources[bound.source] = changed
                yield from _kept(forest, bound.source, path, doubts, bound.digest)
        if deep:
            for found in scan(self._specs, forest.policy.types).found:
                if found.loop_id not in forest.loops:
                    yield from self.at(forest, hands, found.path, doubts)


def _kept(forest: Forest, name: str, path: Path, doubts: Doubts, counts: str = "") -> Iterator[o.Observation]:
    """Report a file that came while loops were at work, unless it is the one that `counts`."""
    during = doubts.came(changed_at(path))
    raw = content(path) if during is not None else None
    if raw is None or during is None:
        return
    known = forest.shared.kept.get(name)
    if (found := digest(raw)) != counts and (known is None or known.digest != found):
        yield o.FileKept(name, found, during)
