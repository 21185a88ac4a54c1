"""Work that is older than what it rests on, as rows and in words, and what is asked before it is done again.

Must never know a terminal, nor what is done again (`core/redoing.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from loopr.core.model import Gate, Loop
from loopr.core.redo import REDO, redo_words
from loopr.core.scene import Scene
from loopr.core.staleness import is_stale, made_with, resting_on, stale_because, stale_below

MOST_NAMED = 5


def stale_loops(scene: Scene, plans: Sequence[str] | None = None) -> list[Loop]:
    """List the stale loops of some plans, or of all, in tree order; where nothing has landed anew nobody looks."""
    tree = scene.tree
    tops = tree.children(None) if plans is None else plans
    return [each for top in tops if tree.needers and tree.changed(top) for each in stale_below(tree, top)]


def owes_redo(scene: Scene, plan: str) -> bool:
    """Say whether a start of a plan has something done again because of its type."""
    types = scene.policy.types.values()
    if all(each.stale != REDO for each in types):
        return False
    return any(scene.policy.type_of(each.type).stale == REDO for each in stale_loops(scene, [plan]))


def stale_row(scene: Scene, loop: Loop) -> dict[str, Any] | None:
    """Return what a stale loop is older than, None of any other."""
    if not is_stale(scene.tree, loop):
        return None
    return {"loop": loop.id, "landed": stale_because(scene.tree, loop), "command": f"loopr retry --stale {loop.id}"}


def stale_rows(scene: Scene) -> list[dict[str, Any]]:
    """List the stale loops as rows."""
    return [row for each in stale_loops(scene) if (row := stale_row(scene, each)) is not None]


def redo_row(loop: Loop) -> dict[str, Any] | None:
    """Return why a complete loop is to be done again, by whose word and by whose landing; None where it is not."""
    ask = loop.past.ask
    if ask is None:
        return None
    return {"cause": ask.cause, "by": ask.by or None, "landed": ask.landed or None, "cascades": ask.cascades}


def age_words(scene: Scene, loop: Loop, gate: Gate | None = None) -> str:
    """Say that a complete loop is stale, or is to be done again and what keeps it; nothing where neither is so."""
    ask = loop.past.ask
    if ask is not None and loop.waits:
        waits = f"; {gate.reason}" if gate is not None else ""
        return f"to be done again: {redo_words(ask.cause, ask.landed)}{waits}"
    if not is_stale(scene.tree, loop):
        return ""
    return f"stale: {some(stale_because(scene.tree, loop))} landed since"


def stale_lines(scene: Scene, plans: Sequence[str] | None = None) -> Iterator[str]:
    """Say for each plan which of its loops are stale, and the command that does them again.

    Those that are to be done again anyway are left out.
    """
    found: dict[str, list[str]] = {}
    for loop in (each for each in stale_loops(scene, plans) if each.past.ask is None):
        found.setdefault(loop.plan, []).append(loop.id)
    for plan, names in found.items():
        them, are = ("them", "loops of {} are") if len(names) != 1 else ("it", "loop of {} is")
        does = f"`loopr retry --stale {plan}` does {them} again"
        yield f"{len(names)} {are.format(plan)} stale; {does}: {some(names)}"


def doubt_lines(scene: Scene, plan: str, told: Collection[str] = ()) -> Iterator[str]:
    """Say which loops of a done plan are older than those they rest on, or are to be done again.

    Those that were told already are left out.
    """
    yield from stale_lines(scene, [plan])
    asked = [each for each in _asked(scene, plan) if each not in told]
    if asked:
        yield f"{_are(asked)} to be done again: {some(asked)}"


def before_landing(scene: Scene, plan: str) -> Iterator[str]:
    """Say which loops of a plan to come home are, or could be, done again, and by which command."""
    yield from stale_lines(scene, [plan])
    if asked := _asked(scene, plan):
        yield f"{_are(asked)} to be done again, and `loopr run` does that: {some(asked)}"


def _asked(scene: Scene, plan: str) -> list[str]:
    """Name the loops of a plan that are to be done again."""
    return sorted(each for each in scene.tree.redoing if scene.loops[each].plan == plan)


def _are(loops: Sequence[str]) -> str:
    """Count loops, as the subject of a sentence."""
    return f"{len(loops)} loop{'s are' if len(loops) != 1 else ' is'}"


def to_redo(scene: Scene, names: Sequence[str]) -> list[str]:
    """Name all that is stale among some loops and what is below them, each once; where nothing is, the loop itself."""
    found = {each: None for top in names for each in ([loop.id for loop in stale_below(scene.tree, top)] or [top])}
    return list(found)


def is_left(scene: Scene, name: str, now: int) -> str:
    """Say why a loop is not asked to be done again."""
    return "nothing of it is stale" if scene.loops[name].past.ask is None else "to be done again already"


def asks_to_redo(names: Sequence[str]) -> str:
    """Ask whether so many loops are to be done again."""
    count = f"{len(names)} stale loop{'s' * (len(names) != 1)}"
    return f"retry --stale does {count} again: {some(names)}; what needs them follows where they land something"


def anew_words(scene: Scene, gone: Loop) -> str:
    """Say which loops were made with the work of a gone one, and how to make them without it."""
    names = sorted(each.id for each in made_with(scene.tree, gone))
    if not names:
        return ""
    were, them = ("was", "it") if len(names) == 1 else ("were", "them")
    does = f"`loopr retry --fresh {' '.join(names)}` makes {them} anew without it"
    return f"{some(names)} {were} made with it, and {does}"


def depending_words(scene: Scene, anew: Sequence[str], names: Collection[str]) -> str:
    """Say which loops depend on work made anew, and which of them a landing of it makes stale."""
    if not names:
        return "nothing depends on that"
    loops = sorted(names)
    depend = f"{len(loops)} loop{' depends' if len(loops) == 1 else 's depend'} on that: {some(loops)}"
    resting = {each.id: each for name in anew for each in resting_on(scene.tree, scene.loops[name])}
    old = [each for each in resting.values() if each.past.made and each.id not in anew]
    if not old:
        return depend
    found = some(sorted(each.id for each in old))
    if all(scene.policy.type_of(each.type).stale == REDO for each in old):
        return f"{depend}; if this lands something, done again {'is' if len(old) == 1 else 'are'} {found}"
    plans = " ".join(dict.fromkeys(each.plan for each in old))
    becomes, again = ("becomes", "it") if len(old) == 1 else ("become", "those")
    does = f"`loopr retry --stale {plans}` does {again} again"
    return f"{depend}; if this lands something, {found} {becomes} stale, and then {does}"


def some(names: Sequence[str]) -> str:
    """Name a few."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
