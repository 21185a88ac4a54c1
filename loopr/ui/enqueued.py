"""The effect of a request, or of a person's word, on a plan: how it stood, how it stands.

Must never know a file, nor how a plan is brought in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loopr.core.events import Event, Settled
from loopr.core.foreseen import whole_meaning
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.engine import Engine
from loopr.ui.taken_up import is_awaited


class Enqueued(NamedTuple):
    """The effect on a plan: loops new, complete by declaration, to do again, gone or back; faults.

    `absent` says which programs it needs that are not here, `unreadable` which texts sh could not
    run, `astray` which commands work in the checkout, `remarks` which parts may be meant otherwise
    than they are read, `uncommitted` which files git lacks, `hazards` which habits of the
    repository loopr does not share, `behind` whether the engine has not
    taken up all of it yet. The rest is as in a `Meaning`; `edited` is whether its file is another
    than the one that counted. One that `waits` for a person's word has changed nothing yet; `then`
    tells its effect.
    """

    plan: str
    known: bool
    declared: tuple[str, ...]
    settled: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    put_back: tuple[str, ...]
    problems: tuple[str, ...]
    back: tuple[str, ...] = ()
    reworded: tuple[str, ...] = ()
    filed: tuple[str, ...] = ()
    reordered: tuple[str, ...] = ()
    terms: tuple[dict[str, Any], ...] = ()
    text: bool = False
    later: tuple[str, ...] = ()
    edited: bool = False
    behind: bool = False
    waits: bool = False
    then: str = ""
    base: str = ""
    uncommitted: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    astray: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()


def loops_of(forest: Forest, plan: str) -> dict[str, Loop]:
    """Return the loops of a plan in tree order, then those of it that are no longer declared."""
    declared = {each.id: each for each in (forest.tree.walk(plan) if plan in forest.loops else ())}
    gone = (forest.loops[each] for each in forest.tree.by_status[Status.INVALIDATED] if each.startswith(f"{plan}/"))
    return declared | {each.id: each for each in gone}


def summary(engine: Engine, plan: str, before: Mapping[str, Loop], events: list[Event]) -> Enqueued:
    """Sum up the effect of a request or a word: loops of a plan as they were, and as they are."""
    after = loops_of(engine.forest, plan)
    found = whole_meaning(engine.forest.tree, before, after, engine.mind.find_entry)
    prefix = f"{engine.forest.policy.artifacts_dir}/{plan}/"
    problems = engine.forest.shared.problems
    settled = tuple(dict.fromkeys(each.loop for each in events if isinstance(each, Settled)))
    return Enqueued(
        plan,
        plan in before,
        declared=found.new,
        settled=settled,
        changed=found.again,
        gone=found.gone,
        put_back=(),
        problems=tuple(text for place, text in sorted(problems.items()) if place.startswith(prefix)),
        back=found.back,
        reworded=found.reworded,
        filed=tuple(each for each in found.filed if each not in settled),
        reordered=found.reordered,
        terms=tuple(each._asdict() for each in found.terms),
        text=found.text,
        later=found.later,
        behind=is_awaited(engine, plan) if not engine.settles else False,
    )
