"""Says in which files loops are in conflict most, and which of them git could merge by itself.

Knows names that lists of changes usually have. Must never know how a conflict is mended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from loopr.core.model import Loop
from loopr.core.scene import Scene
from loopr.ui.names import counted

MOST_NAMED = 3
OFTEN = 2
_LISTS = re.compile(r"(?:^|/)(?:change(?:s|log)|history|news|release[-_]?notes|whats[-_]?new)(?:[.-][^/]*)?$", re.I)
_DATA = (".json", ".yaml", ".yml", ".toml", ".xml")


def is_list(path: str) -> bool:
    """Say whether a file is called like one that everybody adds lines to."""
    return bool(_LISTS.search(path)) and not path.lower().endswith(_DATA)


def advice(paths: Iterable[str]) -> str:
    """Say how git merges those of some files by itself that only grow; nothing where none does."""
    lists = [each for each in paths if is_list(each)]
    if not lists:
        return ""
    return f"`merge: {{union: [{', '.join(lists)}]}}` in loopr.yml keeps the lines of both sides"


def conflict_row(loop: Loop) -> dict[str, object] | None:
    """Return the files of a loop's conflicts, their number in a row, and the setting that may end them."""
    if not loop.clash.paths:
        return None
    return {"paths": list(loop.clash.paths), "times": loop.clash.times, "hint": advice(loop.clash.paths)}


def hot_files(scene: Scene) -> list[str]:
    """Name the files that conflict most in plans that are not done, and the setting that may end that."""
    counts: Counter[str] = Counter()
    for loop in scene.loops.values():
        if loop.clash.times and not scene.tree.done(loop.plan):
            counts.update(dict.fromkeys(loop.clash.paths, loop.clash.times))
    often = [(path, count) for path, count in counts.most_common(MOST_NAMED) if count >= OFTEN]
    if not often:
        return []
    named = ", ".join(f"{path} ({counted(count, 'conflict')})" for path, count in often)
    hint = advice(path for path, _ in often)
    return [f"many loops change the same: {named}" + (f"; {hint}" if hint else "")]
