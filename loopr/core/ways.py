"""How a loop comes to its end: it just does the work, hands over an outline, completes by declaration, or by a person.

Knows who is set to work and what an entry says. Must never know how far a loop has come.
"""

from __future__ import annotations

from loopr.core.ladder import Ladder
from loopr.core.model import Gate, Loop
from loopr.core.policy import Policy
from loopr.core.scene import Scene

LEAF, HANDS_OVER, BY_DECLARATION, BY_PERSON = "leaf", "hands over", "by declaration", "by a person"
WAYS = (LEAF, HANDS_OVER, BY_DECLARATION, BY_PERSON)


def way_of(scene: Scene, loop: Loop) -> str:
    """Say how a loop comes to its end; a plan whose file has an outline does so by declaration."""
    if scene.settles(loop) or (loop.parent is None and scene.tree.has_children(loop.id) and not loop.leased):
        return BY_DECLARATION
    if not loop.command and not scene.policy.type_of(loop.type).has_command:
        return BY_PERSON
    return LEAF if scene.is_leaf(loop) else HANDS_OVER


def way_of_type(policy: Policy, name: str) -> str:
    """Say how a loop of a type comes to its end of which no entry says more; a plan has an outline in its file."""
    own, ladder = policy.type_of(name), Ladder(policy.types)
    if ladder.settles(name) or (name == policy.root_type and not own.has_command):
        return BY_DECLARATION
    if not own.has_command:
        return BY_PERSON
    return HANDS_OVER if own.child is not None else LEAF


def in_own_words(scene: Scene, loop: Loop, gate: Gate) -> Gate:
    """Say of a loop that just does the work why the limit of its type counts for it; other gates stay as they are."""
    if gate.gate != "type" or scene.policy.type_of(loop.type).child is None or not scene.is_leaf(loop):
        return gate
    return gate._replace(reason=f"{gate.reason}; a {loop.type} that just does the work counts as one too")
