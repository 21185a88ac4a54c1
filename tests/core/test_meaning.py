"""What an edit of a plan comes to: loops before and after, compared."""

from __future__ import annotations

from typing import Any

import pytest

from loopr.core.meaning import NOTHING, Change, Meaning, meaning
from loopr.core.model import Loop, Status
from loopr.core.policy import Budget

PLAN = Loop("p", "plan", "P", None, 0, 0, "default", identity="p", status=Status.COMPLETE)
WAITS = Loop("p/a", "spec", "A", "p", 0, 1, "default", identity="a")
RAN = WAITS._replace(leased=True, attempt=1)
DONE = RAN._replace(status=Status.COMPLETE)
WRITTEN = WAITS._replace(status=Status.COMPLETE)  # in the plan, with all below it
GONE = DONE._replace(status=Status.INVALIDATED)


def of(before: Loop | None, after: Loop | None) -> Meaning:
    """Compare two states of one loop."""
    return meaning(*({each.id: each for each in (some,) if each is not None} for some in (before, after)))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (None, WAITS, "new"),
        (WAITS, WAITS._replace(identity="b"), "reworded"),
        (RAN, RAN._replace(identity="b", generation=2, leased=False), "again"),
        (DONE, DONE._replace(identity="b", status=Status.PENDING, generation=2, leased=False), "again"),
        (WRITTEN, WRITTEN._replace(identity="b"), "reworded"),
        (WRITTEN, WRITTEN._replace(identity="b", status=Status.PENDING), "again"),
        (RAN._replace(status=Status.CANCELLED), RAN._replace(status=Status.CANCELLED, identity="b"), "reworded"),
        (DONE, GONE, "gone"),
        (GONE, DONE, "back"),
        (GONE, GONE._replace(status=Status.PENDING), "new"),
        (WAITS, WRITTEN, "filed"),
        (GONE, GONE, ""),
        (RAN, DONE, "filed"),
        (RAN._replace(status=Status.LANDING), DONE, ""),
        (WAITS, DONE, ""),
        (WAITS, WAITS._replace(place=3), ""),
    ],
)
def test_each_loop_is_in_one_list(before: Loop | None, after: Loop, found: str) -> None:
    """A loop counts once: by what its entry says beside what was begun, and not by how far it has come by itself."""
    told = of(before, after)
    assert {key: getattr(told, key) for key in Meaning._fields if getattr(told, key)} == (
        {found: ("p/a",)} if found else {}
    )


@pytest.mark.parametrize(
    ("terms", "change"),
    [
        ({"needs": ("p/b",)}, Change("p/a", "needs", [], ["p/b"])),
        ({"inputs": ("data",)}, Change("p/a", "inputs", [], ["data"])),
        ({"priority": 5}, Change("p/a", "priority", None, 5)),
        ({"serial": True}, Change("p/a", "serial", False, True)),
        ({"budget": Budget(micro_usd=10_000_000)}, Change("p/a", "budget", {}, {"usd": 10.0})),
    ],
)
def test_other_terms_are_no_other_work(terms: dict[str, Any], change: Change) -> None:
    """Needs, order, priority and budget are told with both values, and nothing is done again for them."""
    assert of(DONE, DONE._replace(**terms)) == NOTHING._replace(terms=(change,))


def test_whoever_pays_is_told_of_the_plan() -> None:
    """Another project is told once, of the plan, and not of all below it."""
    before = {each.id: each for each in (PLAN, WAITS)}
    after = {each.id: each._replace(project="web") for each in (PLAN, WAITS)}
    assert meaning(before, after).terms == (Change("p", "project", "default", "web"),)


def test_a_plans_own_words() -> None:
    """Other words of the plan alone are no work of a loop, as long as no command of its own works from them."""
    assert of(PLAN, PLAN._replace(identity="q")) == NOTHING._replace(text=True)
    ran = PLAN._replace(leased=True)
    assert of(ran, ran._replace(identity="q", status=Status.PENDING, generation=2)).again == ("p",)
