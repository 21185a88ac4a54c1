"""What must hold of budgets at every lease, from what was charged and by the words of the specification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loopr.core.forest import Forest
from loopr.core.ledger import PLAN, PROJECT, WORKSPACE, Scope
from loopr.core.model import Loop
from loopr.core.policy import Budget

MET = ("one goes ahead to be measured", "the first of a type is measured")


def problems(forest: Forest, loop: Loop, busy: Sequence[Loop], at: int, met: Callable[[str], None]) -> Iterator[str]:
    """Nobody starts at the cost of who has nothing left, nor beside one of whom nobody knows what it will cost."""
    for scope, budget in _budgets(forest, loop):
        mine = [each for each in busy if _pays(scope, each)]
        if _known(forest, scope, loop, at) is None:
            if mine:
                yield f"beside {[each.id for each in mine]}, and nobody knows what it will cost {scope}"
            met("luck: one goes ahead to be measured")
        elif not forest.ledger.used_by_type(scope, loop.type, at).attempts:
            new = _of_type(forest, scope, loop, at) is None
            alike = [
                each.id
                for each in mine
                if each.type == loop.type or (new and _of_type(forest, scope, each, at) is None)
            ]
            if alike:
                yield f"beside {alike}, and no {loop.type} was ever measured for {scope}"
            met("luck: the first of a type is measured")
        least = forest.ledger.used(scope, at).cost + sum(_kept(forest, scope, each, at) for each in mine)
        if budget.tokens is not None and least >= budget.tokens * 1000:
            yield f"although of {budget} of {scope} {least} are gone"


def _budgets(forest: Forest, loop: Loop) -> Iterator[tuple[Scope, Budget]]:
    """List who pays for a loop and has a budget."""
    found = (
        ((PLAN, loop.plan), forest.loops[loop.plan].budget),
        ((PROJECT, loop.project), forest.policy.project(loop.project).budget),
        ((WORKSPACE, ""), forest.policy.budget),
    )
    return (each for each in found if not each[1].unlimited)


def _known(forest: Forest, scope: Scope, loop: Loop, at: int) -> int | None:
    """Return what a loop is taken to cost: what one of its type does, else one of the dearest type."""
    own = _of_type(forest, scope, loop, at)
    if own is not None:
        return own
    for each in _payers(scope, loop):
        sums = [forest.ledger.used_by_type(each, name, at) for name in {*forest.policy.types, *_types(forest)}]
        if any(one.use for one in sums):
            return max(one.cost // (one.told or 1) for one in sums if one.attempts)
    return None


def _of_type(forest: Forest, scope: Scope, loop: Loop, at: int) -> int | None:
    """Return what one of a loop's type costs, as its payer knows it, else its project, else the workspace."""
    found = (forest.ledger.used_by_type(each, loop.type, at) for each in _payers(scope, loop))
    return next((each.cost // (each.told or 1) for each in found if each.use), None)


def _payers(scope: Scope, loop: Loop) -> tuple[Scope, ...]:
    """List a payer, and the wider ones."""
    return scope, (PROJECT, loop.project), (WORKSPACE, "")


def _types(forest: Forest) -> set[str]:
    """List the types of all loops, those that have left the ladder too."""
    return {each.type for each in forest.loops.values()}


def _kept(forest: Forest, scope: Scope, loop: Loop, at: int) -> int:
    """Return what must be kept for a loop at work: its cost so far, and no less than what such a loop usually costs."""
    return max(forest.cost_so_far(loop, at), _known(forest, scope, loop, at) or 0)


def _pays(scope: Scope, loop: Loop) -> bool:
    """Say whether a payer pays for a loop."""
    return scope[1] in ("", loop.plan if scope[0] == PLAN else loop.project)
