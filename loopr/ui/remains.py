"""What lies about in a workspace, as rows and as lines: what goes, and why all else is kept.

Must never know how to tell what is safe.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from loopr.core.policy import OWN_REPO
from loopr.ui import render, views

MOST_ALIKE = 5


class Item(NamedTuple):
    """Something that lies there, in a repository or not: whether it may go, and why or why not."""

    kind: str
    name: str
    place: str
    may_go: bool
    why: str
    repo: str | None = None


def row_of(item: Item) -> views.Row:
    """Return one thing as data."""
    return {"kind": item.kind, "name": item.name, "place": item.place, "why": item.why, "repo": item.repo}


def lines_of(word: str, items: list[Item], width: int) -> list[str]:
    """Set things below each other with their whole reasons, and with their repositories where those are not our own.

    Of many that are alike the first are named, and the rest counted.
    """
    names = (Path(each.place).name if each.kind == "worktree" else each.name for each in items)
    homes = ("" if each.repo in (None, OWN_REPO) else f"{each.repo}: " for each in items)
    named = [(home + name, each) for home, name, each in zip(homes, names, items, strict=True)]
    size = min(max((len(name) for name, _ in named), default=0), width // 2)
    lines: list[str] = []
    alike: Counter[tuple[str, str]] = Counter()
    for name, each in named:
        alike[each.kind, each.why] += 1
        if alike[each.kind, each.why] <= MOST_ALIKE:
            head = f"{word}  {each.kind:8}  {render.plain(name):{size}}  "
            lines += render.wrap(head, render.plain(each.why), width)
    more = {key: number - MOST_ALIKE for key, number in alike.items() if number > MOST_ALIKE}
    return lines + [render.fit(f"{word}  {kind:8}  … {more[kind, why]} more: {why}", width) for kind, why in more]
