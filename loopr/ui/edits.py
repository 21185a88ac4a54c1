"""What an edit of a plan comes to, in words: how many loops of each kind, then the names of a few.

Must never know a terminal, nor how it was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loopr.ui.enqueued import Enqueued
from loopr.ui.times import say_duration, say_tokens

MOST_NAMED = 5
_UNITS = {"usd": "USD", "tokens": "tokens", "secs": "of work"}
_OTHER = {
    "needs": "other needs",
    "serial": "another side by side",
    "budget": "another budget",
    "priority": "another priority",
    "resources": "other resources",
    "inputs": "other inputs from the next change of the base on",
}


def is_unchanged(done: Enqueued) -> bool:
    """Say whether nothing of a plan is otherwise than it was."""
    told = done.declared, done.settled, done.changed, done.gone, done.put_back, done.back, done.reworded, done.filed
    return not (
        any(told)
        or done.waits
        or done.reordered
        or done.terms
        or done.text
        or done.edited
        or done.problems
        or done.base
        or done.uncommitted
    )


def remarks_on(done: Enqueued) -> Iterator[str]:
    """Give the remarks on a plan before anything of it runs."""
    yield from filter(None, (*done.remarks, done.base, *done.uncommitted, *done.unjudged))
    yield from (*done.absent, *done.unreadable, *done.astray, *done.hazards)


def headline(done: Enqueued) -> str:
    """Say in one line what an edit comes to, or that nothing has changed."""
    if done.then:
        return f"nothing has changed yet: its file waits for a word, and comes to: {done.then}"
    written = len({*done.settled} & {*done.declared} - {done.plan})
    kinds = (
        (done.declared, f"new ({written} written out in the plan)" if written else "new"),
        (done.back, "back"),
        (done.changed, "to do again"),
        (done.gone, "gone"),
        (done.reworded, "reworded"),
        (done.filed, "done by a file of yours"),
        (done.put_back, "put back from what is kept"),
    )
    counts = [f"{len(loops)} {word}" for loops, word in kinds if loops]
    parts = [", ".join(counts), *_own_terms(done), *_other_terms(done)]
    parts += ["another order"] if done.reordered else []
    return "; ".join(filter(None, parts)) or _nothing(done)


def _nothing(done: Enqueued) -> str:
    """Say what is left to say where nothing else is."""
    if done.settled:
        return f"{len(done.settled)} done as written out in the plan"
    if done.text:
        return "only its own words have changed"
    if done.edited:
        return "the file is another, and means the same"
    if done.base:
        return "its file says the same"
    return "nothing has changed"


def details(done: Enqueued) -> Iterator[str]:
    """Name some of the loops that an edit concerns; of a plan that is new its tree does."""
    if not done.known:
        return
    gone, new = tops(done.gone), tops(done.declared)
    if len(gone) == len(new) == 1:
        old = gone[0].rpartition("/")[2]
        yield f"{gone[0]} is gone, {new[0]} is new; `id: {old}` in its entry keeps its work"
    else:
        yield from _naming("new", new)
        kept = "; a renamed entry keeps its work under its old `id:`" if gone and new else ""
        yield from _naming("gone", gone, kept)
    yield from _naming("to do again", done.changed)
    yield from _naming("reworded", done.reworded)
    for name in done.later:
        yield f"{name} takes up its part once what it waits for is done"
    yield from _naming("done by a file", done.filed)
    yield from _naming("back", tops(done.back))
    for key, words in _OTHER.items():
        yield from _naming(words, _with_other(done, key))
    if done.behind:
        yield "the engine has not taken up all of it yet: `loopr events -f` shows when it does"


def tops(loops: Sequence[str]) -> list[str]:
    """Leave out the loops whose parent is among them."""
    return [each for each in loops if each.rpartition("/")[0] not in loops]


def _naming(words: str, loops: Sequence[str], more: str = "") -> Iterator[str]:
    """Name a few loops, if there are any."""
    if loops:
        rest = len(loops) - MOST_NAMED
        yield f"{words}: {', '.join(loops[:MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}{more}"


def _own_terms(done: Enqueued) -> Iterator[str]:
    """Say what the plan itself says otherwise, from what to what."""
    for each in done.terms:
        if each["loop"] != done.plan or each["key"] not in ("budget", "priority", "project"):
            continue
        if each["key"] == "budget":
            yield from (f"budget {words}" for words in _budgets(each["before"], each["after"]))
        else:
            before, after = ("none" if value is None else value for value in (each["before"], each["after"]))
            yield f"{each['key']} {before} -> {after}"


def _budgets(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Say which limits of a budget are others."""
    for unit, name in _UNITS.items():
        old, new = before.get(unit), after.get(unit)
        if old != new:
            yield f"{_amount(unit, old)} -> {_amount(unit, new)} {name}"


def _amount(unit: str, value: float | None) -> str:
    """Write one limit."""
    if value is None:
        return "none"
    if unit == "secs":
        return say_duration(round(value * 1000))
    return say_tokens(value) if unit == "tokens" else f"{value:g}"


def _other_terms(done: Enqueued) -> Iterator[str]:
    """Say how many loops below have other terms."""
    for key, words in _OTHER.items():
        if loops := _with_other(done, key):
            yield f"{len(loops)} with {words}"


def _with_other(done: Enqueued, key: str) -> list[str]:
    """List the loops below a plan of which one term is another; those that are told already are left out."""
    told = {*done.changed, *done.reworded}
    found = (each["loop"] for each in done.terms if each["key"] == key)
    return [each for each in found if each != done.plan and each not in told]
