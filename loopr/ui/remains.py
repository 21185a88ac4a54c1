"""What lies about in a workspace, as rows and as lines: what goes, and why all else is kept.

Sums by reason come first, each with the command that lets it go. Must never know how to tell what is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.core.policy import OWN_REPO
from loopr.ui import render, views

_UNITS = ("kB", "MB", "GB", "TB")
_OF_SEVERAL = {"its commits": "their commits", "it has landed and is": "they have landed and are"}
"""How the reason of one thing begins where several are told at once."""


class Item(NamedTuple):
    """Something that lies there, in a repository or not: whether it may go, and why or why not.

    `loop` is the one that it belongs to; `landed` says that it is the loop's own commits, which landed as one, and
    `lets_go` that a person's word lets it go. `first` is what is typed before those of a whole plan can go.
    """

    kind: str
    name: str
    place: str
    may_go: bool
    why: str
    repo: str | None = None
    loop: str = ""
    landed: bool = False
    lets_go: bool = False
    first: str = ""

    @property
    def told(self) -> str:
        """Say why, with the command that lets it go if there is one."""
        return (
            f"{self.why}: `loopr gc --forget {self.loop}` lets it go" if self.lets_go and not self.may_go else self.why
        )


def row_of(item: Item) -> views.Row:
    """Return one thing as data."""
    about: views.Row = {"kind": item.kind, "name": item.name, "place": item.place}
    return about | {"why": item.told, "repo": item.repo, "loop": item.loop or None}


class Sum(NamedTuple):
    """Several things that are kept, or go, for one reason; `plan` is what all of them belong to, if it is one."""

    items: tuple[Item, ...]
    plan: str = ""

    @property
    def what(self) -> str:
        """Count them."""
        kind = self.items[0].kind
        plural = f"{len(self.items)} {kind}{'es' if kind.endswith('ch') else 's'}"
        return f"{plural} of landed loops" if self.items[0].landed else plural

    @property
    def why(self) -> str:
        """Say the reason, with the command that lets all of them go."""
        first = self.items[0]
        why = first.why
        for one, several in _OF_SEVERAL.items():
            why = why.replace(one, several)
        if first.may_go or not first.lets_go:
            return why
        if first.landed and self.plan:
            before = f"`{first.first}`, then " if first.first else ""
            return f"{before}`loopr gc --forget {self.plan}` lets them go"
        return f"{why}: `loopr gc --forget LOOP` lets one go (-v names them)"


def sums_of(items: Sequence[Item]) -> list[Sum]:
    """Sum things up by kind and reason, those of landed loops by plan too."""
    found: dict[tuple[str, str, str | None, str], list[Item]] = {}
    for each in items:
        plan = each.loop.partition("/")[0] if each.landed else ""
        found.setdefault((each.kind, each.why, each.repo, plan), []).append(each)
    return [Sum(tuple(rows), plan) for (_, _, _, plan), rows in found.items()]


def lines_of(
    word: str, items: Sequence[Item], width: int, sizes: Mapping[str, int] | None = None, *, all_named: bool = False
) -> list[str]:
    """Say what several things come to, by reason, then each that stands alone; with `all_named` every one.

    `sizes` has the bytes that the landed loops of a plan hold.
    """
    sums = [each for each in sums_of(items) if len(each.items) > 1]
    lines = [line for each in sums for line in _sum_lines(word, each, width, sizes or {})]
    summed = {id(item) for each in sums for item in each.items}
    single = [each for each in items if all_named or id(each) not in summed]
    return [*lines, *_item_lines(word, single, width)]


def _sum_lines(word: str, found: Sum, width: int, sizes: Mapping[str, int]) -> Iterator[str]:
    """Say one sum."""
    size = sizes.get(found.plan, 0) if found.items[0].landed else 0
    home = _home(found.items[0])
    what = f"{home}{found.what}{f' ({say_bytes(size)})' if size else ''}"
    yield from render.wrap(f"{word}  ", render.plain(f"{what}: {found.why}"), width)


def _item_lines(word: str, items: Sequence[Item], width: int) -> Iterator[str]:
    """Set things below each other with their whole reasons."""
    names = [_home(each) + (Path(each.place).name if each.kind == "worktree" else each.name) for each in items]
    size = min(max(map(len, names), default=0), width // 2)
    for name, each in zip(names, items, strict=True):
        head = f"{word}  {each.kind:8}  {render.plain(name):{size}}  "
        yield from render.wrap(head, render.plain(each.told), width)


def _home(item: Item) -> str:
    """Name the repository of a thing where that is not our own."""
    return "" if item.repo in (None, OWN_REPO) else f"{item.repo}: "


def say_bytes(number: int) -> str:
    """Write a number of bytes as people do: 14 MB."""
    size, unit = number / 1000, _UNITS[0]
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if size >= 10 else f"{max(size, 0.1):.1f} {unit}"
