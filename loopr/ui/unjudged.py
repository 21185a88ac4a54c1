"""What nothing judges: types whose loops land whatever their command leaves.

Must never know what a judge says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopr.core.model import FINISHED, Loop
from loopr.core.scene import Scene
from loopr.engine import Engine
from loopr.wiring import Workspace
from loopr.world.settings import Settings
from loopr.world.settings.parts import TypeSettings

MOST_LOOPS = 200


def unjudged(engine: Engine, workspace: Workspace, plan: str) -> tuple[str, ...]:
    """Say of which types of a plan nothing judges the work, where that is not said to be meant."""
    if engine.forest.tree.done(plan):
        return ()
    settings, at_work = workspace.settings, _at_work(engine, plan)
    found, last, expected = list[str](), "", False
    for kind in settings.types.values():
        loops = at_work.get(kind.name, ())
        leaves, others = _parted(engine, loops)
        as_leaf = settings.leaf_of(kind.name) or kind
        if not _has_judges(as_leaf) and leaves and _works_unjudged(engine, kind, leaves, expected=expected):
            found, last = [*found, kind.name], as_leaf.name
        more = others or not loops
        if not _has_judges(kind) and more and _works_unjudged(engine, kind, others, expected=expected):
            found, last = [*found, kind.name], kind.name
        expected = expected or bool(loops)
    names = list(dict.fromkeys(found))
    if not names:
        return ()
    return f"nothing judges {_and(names)}: what ends with 0 lands", f"  {remedy([last])}"


def remedy(types: Sequence[str]) -> str:
    """Say how types get a judge, or that none is meant."""
    return f"`loopr set types.{types[-1]}.check COMMAND` changes that, `none` says it is meant"


def unjudged_types(settings: Settings) -> list[str]:
    """Name the types that work by themselves, and that nothing judges."""
    kinds = settings.types.values()
    return [each.name for each in kinds if (each.run or each.agent) is not None and not _has_judges(each)]


def landed_unjudged(settings: Settings, scene: Scene, plan: str) -> str:
    """Say how many loops of a plan have landed that nothing has judged, and of which types; nothing if none has."""
    types = unjudged_types(settings)
    landed = [each for each in scene.tree.walk(plan) if each.landed and not each.checked]
    loops = [each for each in landed if _is_unjudged(settings, scene, each, each.type in types)]
    if not loops:
        return ""
    names = [each for each in settings.types if any(loop.type == each for loop in loops)]
    return f"nothing has judged {len(loops)} of its loops ({_and(names)}); {remedy(names)}"


def _is_unjudged(settings: Settings, scene: Scene, loop: Loop, of_type: bool) -> bool:
    """Say whether nothing judges a loop: none of its type is judged, or of the last one where it just does the work."""
    if not loop.command or scene.policy.type_of(loop.type).child is None or not scene.is_leaf(loop):
        return of_type
    kind = settings.leaf_of(loop.type)
    return kind is not None and not _has_judges(kind)


def _and(names: Sequence[str]) -> str:
    """Write names one after the other."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _parted(engine: Engine, loops: Sequence[Loop]) -> tuple[list[Loop], list[Loop]]:
    """Part loops into those that are judged like the last type and those that are judged as their own."""
    parted: tuple[list[Loop], list[Loop]] = [], []
    for each in loops:
        is_last = engine.forest.policy.type_of(each.type).child is None
        parted[is_last or not engine.forest.is_leaf(each)].append(each)
    return parted


def _at_work(engine: Engine, plan: str) -> Mapping[str, Sequence[Loop]]:
    """Map types to loops, the first of very many, that have work of their own to do."""
    found: dict[str, list[Loop]] = {}
    for each in engine.forest.tree.walk(plan):
        known = found.setdefault(each.type, [])
        if not each.outline and each.status not in FINISHED and len(known) < MOST_LOOPS:
            known.append(each)
    return found


def _has_judges(kind: TypeSettings) -> bool:
    """Say whether somebody judges what loops of a type leave, or it is said that nobody is to."""
    judges = (kind.check, kind.review, kind.review_agent)
    return any(each is not None for each in judges) or kind.approve or kind.unjudged


def _works_unjudged(engine: Engine, kind: TypeSettings, loops: Sequence[Loop], *, expected: bool) -> bool:
    """Say whether something works for a loop of a type and nothing judges that.

    Where there is none yet, but loops that may declare some, the settings of the type tell.
    """
    has_work = kind.run is not None or kind.agent is not None
    if not loops:
        return expected and has_work
    for each in loops:
        entry = engine.mind.find_entry(each.id)
        own = entry is not None and (entry.run is not None or entry.agent is not None)
        if (has_work or own) and (entry is None or entry.check is None):
            return True
    return False
