"""From an outline to events: what is new, what changed, what is gone, below one loop.

An outline counts as a whole or not at all: `outline_problems` is asked first. Knows identities and needs; must never
know where a file was or who wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from loopr.core import events as e
from loopr.core.attempt import lands
from loopr.core.codec import decode, encode
from loopr.core.entries import Artifact, Entry, encode_entry, identity, just_works, outline_digest
from loopr.core.lifecycle import allows
from loopr.core.model import DROPPED, Loop, Status, Terms
from loopr.core.needs import resolve_needs
from loopr.core.resources import is_lowered, resource_problems
from loopr.core.scene import Scene
from loopr.core.ticked import without_ticked
from loopr.errors import PlanError, Problem


class Wanted(NamedTuple):
    """One child as the outline wants it."""

    id: str
    type: str
    terms: Terms
    entry: str


def wanted_children(scene: Scene, parent: Loop, artifact: Artifact, source: str = "") -> list[Wanted]:
    """Turn the entries of an artifact into what the children should be; raise for needs that name nobody."""
    child_type = scene.policy.type_of(parent.type).child
    if child_type is None:
        return []
    counted = without_ticked(scene, parent.id, artifact)
    siblings = {entry.id for _, entry in counted}
    known = _Known(scene, {f"{parent.id}/{path}" for _, entry in counted for path in _paths(entry)})
    wanted = []
    for place, entry in counted:
        needs = resolve_needs(entry, parent_id=parent.id, siblings=siblings, known=known, source=source)
        serial = not artifact.parallel if entry.parallel is None else not entry.parallel
        terms = _terms(entry, place, parent.project, needs, serial=serial)
        text = json.dumps(encode_entry(entry), separators=(",", ":"))
        wanted.append(Wanted(f"{parent.id}/{entry.id}", child_type, terms, text))
    return wanted


def _paths(entry: Entry) -> Iterator[str]:
    """List the paths of an entry and of all nested below it."""
    yield entry.id
    for child in entry.children:
        yield from (f"{entry.id}/{path}" for path in _paths(child))


def _size(entry: Entry) -> int:
    """Count an entry and all nested below it."""
    return 1 + sum(_size(child) for child in entry.children)


class _Known:
    """The ids that a need may name: declared loops, and those the outline declares in the same breath."""

    def __init__(self, scene: Scene, nested: set[str]) -> None:
        """Look at the forest and beside it at the outline."""
        self._loops, self._nested = scene.loops, nested

    def __contains__(self, loop_id: object) -> bool:
        """Say whether somebody is called so."""
        if loop_id in self._nested:
            return True
        loop = self._loops.get(str(loop_id))
        return loop is not None and loop.status is not Status.INVALIDATED


def _terms(entry: Entry, place: int, project: str, needs: tuple[str, ...], *, serial: bool) -> Terms:
    """Write down what one entry says, with its place and whatever it takes from its parent."""
    return Terms(
        title=entry.title,
        place=place,
        project=project,
        needs=needs,
        serial=serial,
        identity=identity(entry),
        outline=outline_digest(entry),
        command=entry.run is not None or entry.agent is not None,
        checked=entry.check is not None,
        files=entry.files,
        budget=entry.budget,
        agent=entry.agent or "" if entry.run is None else "",
        priority=entry.priority,
        inputs=entry.inputs,
        leaf=entry.leaf,
        resources=entry.resources,
    )


def outline_problems(scene: Scene, parent: Loop, artifact: Artifact, source: str) -> list[Problem]:
    """List what keeps an outline from counting, as a whole: children that are missing, needs, cycles, the limit."""
    child_type = scene.policy.type_of(parent.type).child
    if child_type is None:
        return []
    if artifact.empty and parent.parent is not None:
        return []
    if not artifact.entries:
        hint = f"declare them under `## {child_type.capitalize()}s`, or as a list in the front matter"
        return [Problem(f"a {parent.type} must declare its {child_type} children", source, hint)]
    try:
        wanted = wanted_children(scene, parent, artifact, source)
    except PlanError as error:
        return list(error.problems)
    if not wanted and parent.parent is None:
        return [Problem("every item is ticked off: nothing is left to do", source, "take the x out of what is open")]
    entries = {f"{parent.id}/{entry.id}": entry for entry in artifact.entries}
    then = {each.id: entries[each.id] for each in wanted}
    lost = resource_problems(scene.policy, artifact, source)
    return [*lost, *_too_many(scene, parent, then, source), *_cycle(scene, parent, artifact, source)]


def _too_many(scene: Scene, parent: Loop, then: Mapping[str, Entry], source: str) -> Iterator[Problem]:
    """A plan holds only so many loops, with all that its outline nests in them."""
    limit = scene.policy.loops_per_plan
    now = {each: 1 + scene.tree.below[each].total for each in scene.tree.children(parent.id)}
    gone = sum(size for each, size in now.items() if each not in then)
    come = sum(max(0, _size(entry) - now.get(each, 0)) for each, entry in then.items())
    below = scene.tree.below.get(parent.plan)
    total = (below.total if below else 0) + 1 + come - gone
    if total > limit:
        hint = "split the plan, or raise limits.loops_per_plan"
        yield Problem(f"plan {parent.plan} would hold {total} loops, its limit is {limit}", source, hint)


def _cycle(scene: Scene, parent: Loop, artifact: Artifact, source: str) -> Iterator[Problem]:
    """Needs by path must not run in a circle; those by the ids of siblings were looked at when they were read."""
    entries = dict(_nested(parent.id, artifact.entries))
    by_path = any("/" in need for entry in entries.values() for need in entry.needs)
    if not by_path and not any(scene.tree.needers.get(each) for each in entries):
        return
    from loopr.core import graph  # networkx is slow to import, and few outlines need it

    proposed = {loop_id: _needs_of(loop_id, entry) for loop_id, entry in entries.items()}
    found = graph.find_cycle(scene.tree, proposed)
    if found:
        at = next((entries[each].position for each in found if each in entries and entries[each].needs), None)
        where = f"{source}:{at.line}:{at.col}" if at is not None and source else source
        yield Problem(f"needs form a cycle: {graph.draw_cycle(found)}", where, "take one of these needs out")


def _nested(parent_id: str, entries: tuple[Entry, ...]) -> Iterator[tuple[str, Entry]]:
    """List the loops of an outline and of those nested in it, each with its entry."""
    for entry in entries:
        yield f"{parent_id}/{entry.id}", entry
        yield from _nested(f"{parent_id}/{entry.id}", entry.children)


def _needs_of(loop_id: str, entry: Entry) -> tuple[str, tuple[str, ...]]:
    """Return the parent of a loop of an outline, and the ids of what it needs."""
    parent_id = loop_id.rpartition("/")[0]
    return parent_id, tuple(need if "/" in need else f"{parent_id}/{need}" for need in entry.needs)


def declare_children(scene: Scene, parent_id: str, artifact: Artifact, *, trusted: bool = True) -> Iterator[e.Event]:
    """Bring the children of a loop in line with its artifact, which has no problems.

    Where that is not trusted, fresh children that have what only a person may say are on offer.
    """
    parent = scene.loops[parent_id]
    wanted = wanted_children(scene, parent, artifact)
    if not trusted and not scene.policy.type_of(parent.type).trust_outline:
        entries = {f"{parent_id}/{each.id}": each for each in artifact.entries}  # of a leaf none is wanted
        wanted = [_doubted(scene, parent, each, entries[each.id]) for each in wanted]
    names = {each.id for each in wanted}
    for child in scene.tree.children(parent_id):
        if child not in names:
            yield from undeclare(scene, child)
    for each in wanted:
        yield from _declare(scene, parent_id, each)


def _doubted(scene: Scene, parent: Loop, wanted: Wanted, entry: Entry) -> Wanted:
    """Put a child on offer that has what only a person may say, unless a person has said it already."""
    known = scene.loops.get(wanted.id)
    is_new = known is None or known.status is Status.INVALIDATED or known.on_offer
    persons = is_new and (has_own_keys(entry) or is_lowered(scene, parent, entry))
    return wanted._replace(terms=wanted.terms._replace(on_offer=persons))


def has_own_keys(entry: Entry) -> bool:
    """Say whether an entry, or one nested in it, has a key that only a person may set."""
    own = entry.run, entry.agent, entry.check, entry.priority, entry.leaf
    return any(each is not None for each in own) or not entry.budget.unlimited or any(map(has_own_keys, entry.children))


def lost_work(scene: Scene, parent_id: str, entries: Iterable[Entry]) -> list[str]:
    """List the loops with landed work that an outline below a loop would no longer declare.

    The outlines nested in it count with it.
    """
    if parent_id not in scene.loops:
        return []
    kept = {f"{parent_id}/{entry.id}": entry for entry in entries}
    gone = [child for child in scene.tree.children(parent_id) if child not in kept]
    lost = [loop.id for child in gone for loop in scene.tree.walk(child) if loop.landed]
    for name, entry in kept.items():
        loop = scene.loops.get(name)
        if loop is not None and (entry.children or entry.empty or loop.outline):
            lost += lost_work(scene, name, entry.children)
    return lost


def _declare(scene: Scene, parent_id: str, wanted: Wanted) -> Iterator[e.Event]:
    """Make one child what the outline wants it to be."""
    loop = scene.loops.get(wanted.id)
    if loop is None:
        yield e.Declared(wanted.id, wanted.type, parent_id, wanted.terms, wanted.entry)
    elif loop.status is Status.INVALIDATED:
        yield from declare_again(scene, loop, wanted.terms, wanted.entry)
    else:
        yield from change_entry(scene, loop, wanted.terms, wanted.entry)


def declare_again(scene: Scene, loop: Loop, terms: Terms, entry: str = "") -> Iterator[e.Event]:
    """Bring a loop back, and with finished work all that left the tree together with it."""
    finished = bool(loop.finished) and (loop.finished, loop.outline) == (terms.identity, terms.outline)
    gone_at = loop.since
    yield e.DeclaredAgain(loop.id, Status.COMPLETE if finished else Status.PENDING, terms, entry)
    if finished:
        for child_id in scene.tree.former_children(loop.id):
            child = scene.loops[child_id]
            if child.since >= gone_at and child.reason != DROPPED:  # with its parent, or later
                yield from declare_again(scene, child, child.terms._replace(project=terms.project))
        for child_id in scene.tree.children(loop.id):
            child = scene.loops[child_id]
            yield from change_entry(scene, child, child.terms._replace(project=terms.project), "")


def change_entry(scene: Scene, loop: Loop, terms: Terms, entry: str) -> Iterator[e.Event]:
    """Say what a changed entry means, also for all below if somebody else pays now."""
    yield from _change_entry(loop, terms, entry)
    now = scene.loops[loop.id]
    if loop.outline and not now.outline and just_works(run=not now.agent, agent=bool(now.agent), leaf=now.leaf):
        for child in (
            scene.tree.children(loop.id) if now.command else ()
        ):  # its entry has them no more, nor wants others
            yield from undeclare(scene, child)
    if scene.loops[loop.id].project != loop.project:
        yield from hand_down_project(scene, loop.id)


def hand_down_project(scene: Scene, loop_id: str) -> Iterator[e.Event]:
    """Let everything below a loop be paid by the loop's project."""
    project = scene.loops[loop_id].project
    for below in list(scene.tree.walk(loop_id)):
        if below.project != project:
            yield e.EntryChanged(below.id, below.terms._replace(project=project))


def _change_entry(loop: Loop, terms: Terms, entry: str) -> Iterator[e.Event]:
    """Say what a changed entry means: other work, other children to settle, or only other circumstances."""
    old, waiting = loop.terms, _waiting(loop, "entry")
    if waiting is not None:
        if getattr(waiting, "terms", None) != terms:
            yield defer_if_landing(loop, e.EntryChanged(loop.id, terms, entry))
        return
    if terms == old:
        return
    if loop.status is Status.CANCELLED:
        yield e.EntryChanged(loop.id, terms, entry)
    elif terms.identity != old.identity:
        generation = loop.generation + 1 if loop.leased else loop.generation
        yield defer_if_landing(loop, e.InputChanged(loop.id, terms, generation, entry))
    elif terms.outline != old.outline:
        yield defer_if_landing(loop, e.OutlineChanged(loop.id, terms, entry))
    else:
        yield e.EntryChanged(loop.id, terms, entry)


def undeclare(scene: Scene, loop_id: str, *, alone: bool = True) -> Iterator[e.Event]:
    """Take a loop and all below it out of the tree, `alone` if its parent stays."""
    for loop in list(scene.tree.walk(loop_id)):
        first = _waiting(loop, "entry")  # of one that lands, and was to leave before its parent was
        is_alone = first.alone if isinstance(first, e.Undeclared) else alone and loop.id == loop_id
        yield defer_if_landing(loop, e.Undeclared(loop.id, is_alone))


def defer_if_landing(loop: Loop, event: e.LoopEvent) -> e.LoopEvent:
    """Keep what a loop that lands must not hear before that is over: a cancel, and the last word on its entry."""
    if not lands(loop) and loop.deferred is None:
        return event
    kept = json.loads(loop.deferred[1]) if loop.deferred is not None else {}
    kept["cancel" if isinstance(event, e.Cancelled) else "entry"] = encode(event)
    return e.Deferred(loop.id, encode(event)[0], json.dumps(kept, separators=(",", ":")))


def awaits_cancel(loop: Loop) -> bool:
    """Say whether a loop is cancelled as soon as its landing is over."""
    return _waiting(loop, "cancel") is not None


def _waiting(loop: Loop, kind: str) -> e.LoopEvent | None:
    """Return what waits for the end of a loop's landing."""
    kept = json.loads(loop.deferred[1]).get(kind) if loop.deferred is not None else None
    event = decode(*kept) if kept is not None else None
    return event if isinstance(event, e.LoopEvent) else None


def after_landing(scene: Scene, landing: Loop) -> Iterator[e.Event]:
    """Apply what arrived while a loop was landing, now that it is over."""
    cancelled, change = _waiting(landing, "cancel"), _waiting(landing, "entry")
    if isinstance(cancelled, e.Cancelled):
        yield cancel_event(scene.loops[landing.id], cancelled.by, cancelled.reason)
    if isinstance(change, e.Undeclared):
        yield from undeclare(scene, landing.id, alone=change.alone)
    elif isinstance(change, e.InputChanged | e.OutlineChanged | e.EntryChanged):
        payer = scene.loops[landing.parent].project if landing.parent else change.terms.project
        terms = change.terms._replace(project=payer)
        yield from change_entry(scene, scene.loops[landing.id], terms, change.entry)


def cancel_event(loop: Loop, by: str, reason: str) -> e.LoopEvent:
    """Say what a cancel does to one loop: a complete one stays complete and is held."""
    if loop.status is Status.COMPLETE:
        return e.Held(loop.id, by, reason)
    event = e.Cancelled(loop.id, by, reason)
    return event if allows(loop, event) else defer_if_landing(loop, event)
