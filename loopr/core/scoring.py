"""The score of a loop, with its parts.

Two parts: one that only events change, and one that grows with age. Knows no other loop.
"""

from __future__ import annotations

from typing import NamedTuple

from loopr.core.model import Loop
from loopr.core.policy import Policy, Priority

MINUTE_MS = 60_000


class Score(NamedTuple):
    """A loop's place in the order, with its parts."""

    total: int
    base: int
    age: int
    depth: int
    retry: int
    priority: int


def fixed_score(policy: Policy, loop: Loop, priority: int) -> int:
    """Return the part of the score that time does not change."""
    terms = policy.priority
    depth = terms.depth_boost_per_level * loop.depth
    return terms.base.get(loop.type, 0) + depth - _retry_penalty(terms, loop) + priority


def _retry_penalty(terms: Priority, loop: Loop) -> int:
    """Return what earlier iterations cost in the order."""
    return min(terms.retry_penalty_max, terms.retry_penalty_per_iteration * (loop.iteration - 1))


def age_boost(policy: Policy, created: int, now: int) -> int:
    """Return what whole minutes since the creation are worth."""
    terms = policy.priority
    return min(terms.age_boost_max, terms.age_boost_per_minute * (max(0, now - created) // MINUTE_MS))


def score(policy: Policy, loop: Loop, now: int, priority: int) -> Score:
    """Return a loop's place in the order, with its parts; its `priority` is its own or the nearest above it."""
    terms = policy.priority
    age, retry = age_boost(policy, loop.created, now), _retry_penalty(terms, loop)
    base, depth = terms.base.get(loop.type, 0), terms.depth_boost_per_level * loop.depth
    return Score(base + age + depth - retry + priority, base, age, depth, retry, priority)
