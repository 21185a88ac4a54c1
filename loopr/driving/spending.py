"""Budgets that are used up, as problems that a person may be told of, where somebody wants to be.

Knows how often to look. Must never decide what a budget holds back: that is a gate.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.limits import spent_budgets
from loopr.driving.kit import Kit
from loopr.driving.occasions import BUDGET_PLACE

EVERY_MS = 1_000


class Spending:
    """Looks at the budgets of those who wait."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._next = 0

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Report once a second which budgets are used up, and which are not any more."""
        if now >= self._next:
            self._next = now + EVERY_MS
            yield from self._changes(forest, now)

    def has_news(self, forest: Forest, now: int) -> bool:
        """Say whether there is something to report, and report it the next time."""
        found = any(True for _ in self._changes(forest, now))
        if found:
            self._next = 0
        return found

    def _changes(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """List what is not as it was reported."""
        known = {place: words for place, words in forest.shared.problems.items() if place.startswith(BUDGET_PLACE)}
        wanted = self._kit.settings.notify and "budget" in self._kit.settings.notify_on
        spent = _spent(forest, now) if wanted else {}
        for place in sorted(spent.keys() | known.keys()):
            if spent.get(place, "") != known.get(place, ""):
                yield o.Noticed(place, spent.get(place, ""))


def _spent(forest: Forest, now: int) -> dict[str, str]:
    """Map the budgets that hold back a loop which could run otherwise to what of them is used up."""
    found: dict[str, list[str]] = {}
    for _, group in forest.ready.groups():
        for name, unit in spent_budgets(forest, forest.loops[next(iter(group.members))], now):
            units = found.setdefault(f"{BUDGET_PLACE}{name}", [])
            units += [unit] if unit not in units else []
    return {place: f"its {' and '.join(units)} are used up" for place, units in found.items()}
