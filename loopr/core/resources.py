"""Named resources of the machine, such as a simulator: the loops that may have one, the names not offered.

All that a loop wants is taken at once, with its lease. Knows amounts by name, and the entries that name them. Must
never know what a resource is in the world.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.entries import Artifact, Entry
from loopr.core.model import Loop
from loopr.core.offering import Closed
from loopr.core.policy import Amounts, Policy
from loopr.core.scene import Scene
from loopr.core.slugs import nearest
from loopr.errors import Problem

MOST_NAMED = 3


def resource_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """Something that it wants is held by others, or not offered."""
    wanted = scene.resources_of(loop)
    if not wanted:  # as of most loops
        return None
    held, offered = scene.occupancy.held, scene.policy.resources
    lost = next(unoffered(scene.policy, wanted), None)
    if lost is not None:
        return f"resource {': '.join(lost)}", None
    for name, amount in wanted:
        taken = held.get(name, 0)
        if taken + amount > offered[name]:
            more = f", and it wants {amount}" if amount > 1 else ""
            return f"resource {name}: {taken} of {offered[name]} held by {_holders(scene, name)}{more}", None
    return None


def _holders(scene: Scene, name: str) -> str:
    """Name the loops that hold some of a resource."""
    loops = sorted(scene.occupancy.holders[name])
    more = f" and {len(loops) - MOST_NAMED} more" if len(loops) > MOST_NAMED else ""
    return f"{', '.join(loops[:MOST_NAMED])}{more}"


def is_lost(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop wants what the settings do not offer, or more: only a person can mend that."""
    return any(True for _ in unoffered(scene.policy, scene.resources_of(loop)))


def unoffered(policy: Policy, wanted: Amounts) -> Iterator[tuple[str, str]]:
    """List the resources of which more is wanted than the settings offer, each with what is wrong and what mends it."""
    for name, amount in wanted:
        offered = policy.resources.get(name)
        cure = f"`loopr set resources.{name} {amount}`, or take it out where it is named"
        if offered is None:
            near = nearest(name, tuple(policy.resources))
            hint = f'did you mean "{near}"? Else {cure}' if near else cure
            yield name, f"the settings offer none; {hint}"
        elif amount > offered:
            yield name, f"{amount} wanted, and the settings offer {offered}; {cure}"


# --- outlines -----------------------------------------------------------------------------------------------------


def resource_problems(policy: Policy, artifact: Artifact, source: str) -> Iterator[Problem]:
    """Refuse what an outline, with all that is nested in it, wants and the settings do not offer."""
    for entry in _every(artifact.entries):
        for name, words in unoffered(policy, entry.resources or ()):
            wrong, _, hint = words.partition("; ")
            yield Problem(f"resources.{name}: {wrong}", _where(entry, source), hint)


def too_few(scene: Scene, parent: Loop, artifact: Artifact, source: str) -> Iterator[Problem]:
    """Refuse entries that a loop wrote and that want less than they have without a word: it would lift a ceiling."""
    own = scene.policy.type_of(parent.type)
    if not own.trust_outline and own.child is not None:
        above = _said_above(scene, parent)
        for entry in artifact.entries:
            yield from _fewer(scene.policy, entry, own.child, above, source)


def _said_above(scene: Scene, parent: Loop) -> Amounts | None:
    """Return what the nearest entry says that holds for the children of a loop, None where none does."""
    said = (each.resources for each in (parent, *scene.tree.ancestors(parent)))
    return next((each for each in said if each is not None), None)


def _fewer(policy: Policy, entry: Entry, type_name: str, above: Amounts | None, source: str) -> Iterator[Problem]:
    """Refuse an entry, and those nested in it, that want less than what holds without them."""
    own = policy.type_of(type_name)
    if entry.resources is not None:
        said = dict(entry.resources)
        for name, amount in own.resources if above is None else above:
            if said.get(name, 0) < amount:
                words = f"resources.{name}: must be at least {amount}, which holds for it without a word"
                yield Problem(words, _where(entry, source), f"write `{name}: {amount}`, or leave `resources` out")
        above = entry.resources
    for child in entry.children if own.child is not None else ():
        yield from _fewer(policy, child, own.child or "", above, source)


def is_lowered(scene: Scene, parent: Loop, entry: Entry) -> bool:
    """Say whether an entry wants less than what holds without it: only a person may say so."""
    return any(True for _ in too_few(scene, parent, Artifact("", "", entries=(entry,)), ""))


def _every(entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """Go through entries and all nested in them."""
    for entry in entries:
        yield entry
        yield from _every(entry.children)


def _where(entry: Entry, source: str) -> str:
    """Return where an entry names its resources."""
    at = entry.resources_at
    return f"{source}:{at.line}:{at.col}" if source else source
