"""What an edit of a plan comes to: its loops before and after, compared.

Looks at what entries say and at what was begun, never at how far loops have come by themselves meanwhile. Must never
know which events have led from one to the other, nor a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.policy import Budget

_IDLE = frozenset({Status.PENDING, Status.PARKED, Status.FAILED})
_TERMS = ("needs", "serial", "priority", "project", "budget", "inputs")


class Change(NamedTuple):
    """One thing that an entry says otherwise, which is no other work: its key, and both values as plain data."""

    loop: str
    key: str
    before: Any
    after: Any


class Meaning(NamedTuple):
    """What an edit comes to: ids of loops in tree order, each in one list at most, and what else is said otherwise.

    `back` are loops that come back with what they had done, `reworded` those with other words that had not begun,
    `filed` those that are complete now though nothing worked for them: a file was put in their place. Of
    those that are `reordered` the children stand in another order.
    `text` is whether the plan's own words are others, which no loop below it works from; `later`
    are loops that take up their part of the edit once their waits are over.
    """

    new: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    reworded: tuple[str, ...] = ()
    filed: tuple[str, ...] = ()
    reordered: tuple[str, ...] = ()
    terms: tuple[Change, ...] = ()
    text: bool = False
    later: tuple[str, ...] = ()


NOTHING = Meaning()


def meaning(before: Mapping[str, Loop], after: Mapping[str, Loop]) -> Meaning:
    """Compare the loops of a plan as they were with what an edit has made of them."""

    def of(fits: Callable[[Loop | None, Loop], bool]) -> tuple[str, ...]:
        """List the loops of which something holds."""
        return tuple(each.id for each in after.values() if fits(before.get(each.id), each))

    edited = [(before[each.id], each) for each in after.values() if _stayed(before.get(each.id), each)]
    return Meaning(
        new=of(lambda old, now: _is_there(now) and not _is_there(old) and not _has_work(now)),
        back=of(lambda old, now: _is_there(now) and not _is_there(old) and _has_work(now)),
        again=tuple(now.id for old, now in edited if _is_again(old, now)),
        gone=of(lambda old, now: _is_there(old) and not _is_there(now)),
        reworded=tuple(now.id for old, now in edited if now.parent is not None and _is_reworded(old, now)),
        filed=tuple(now.id for old, now in edited if _is_filed(old, now)),
        reordered=_reordered(edited),
        terms=tuple(change for old, now in edited for change in _changes(old, now)),
        text=any(now.parent is None and _is_reworded(old, now) for old, now in edited),
    )


def _is_there(loop: Loop | None) -> bool:
    """Say whether a loop is declared."""
    return loop is not None and loop.status is not Status.INVALIDATED


def _stayed(old: Loop | None, now: Loop) -> bool:
    """Say whether a loop was declared and still is."""
    return _is_there(old) and _is_there(now)


def _has_work(loop: Loop) -> bool:
    """Say whether a loop that is declared again has what it once made."""
    return loop.leased and loop.status is Status.COMPLETE


def _is_again(old: Loop, now: Loop) -> bool:
    """Say whether what a loop had begun, or had done, begins anew."""
    begun = old.leased or old.status is Status.COMPLETE
    anew = now.generation > old.generation or now.status is not Status.COMPLETE
    return old.identity != now.identity and begun and anew and now.status is not Status.CANCELLED


def _is_reworded(old: Loop, now: Loop) -> bool:
    """Say whether a loop has other words, and nothing that was done is done anew for that."""
    return old.identity != now.identity and not _is_again(old, now)


def _is_filed(old: Loop, now: Loop) -> bool:
    """Say whether a loop is complete without any attempt in between."""
    done = now.status is Status.COMPLETE and old.status in _IDLE
    return done and now.attempt == old.attempt and now.identity == old.identity


def _reordered(edited: Sequence[tuple[Loop, Loop]]) -> tuple[str, ...]:
    """List the loops of which some children have changed places; those that came or went do not count."""

    def orders(loops: Iterable[Loop]) -> dict[str, list[str]]:
        """Return the children of each loop in their order."""
        found: dict[str, list[str]] = {}
        for each in sorted(loops, key=lambda loop: loop.place):
            found.setdefault(each.parent or "", []).append(each.id)
        return found

    before, after = orders(old for old, _ in edited), orders(now for _, now in edited)
    return tuple(parent for parent, children in after.items() if parent and children != before[parent])


def _changes(old: Loop, now: Loop) -> list[Change]:
    """List what an entry says otherwise beside its words; what a loop has from above is told there."""
    keys = [key for key in _TERMS if getattr(old, key) != getattr(now, key)]
    return [
        Change(now.id, key, _plain(getattr(old, key)), _plain(getattr(now, key)))
        for key in keys
        if key != "project" or now.parent is None
    ]


def _plain(value: Any) -> Any:
    """Return a value as plain data: of a budget what it limits, by unit."""
    if isinstance(value, Budget):
        usd = None if value.micro_usd is None else value.micro_usd / 1e6
        limits = {"tokens": value.tokens, "usd": usd, "secs": value.secs}
        return {unit: limit for unit, limit in limits.items() if limit is not None}
    return list(value) if isinstance(value, tuple) else value
