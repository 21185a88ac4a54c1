"""The ladder of types: what a loop's children are, and by which words a file may call them.

Knows names only. Must never know a loop, nor what a type's command is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from loopr.core.policy import TypePolicy

CHILDREN = "children"
_EXTRA_KEYS = {"code": ("tasks",)}


@dataclass(frozen=True, slots=True)
class Ladder:
    """The workspace's types from the plan down, derived from the settings."""

    types: Mapping[str, TypePolicy]

    def child(self, type_name: str) -> str | None:
        """Return the type of a loop's children, or None for a leaf."""
        policy = self.types.get(type_name)
        return policy.child if policy else None

    def implies(self, type_name: str) -> bool:
        """Tell whether a loop of this type that declares no child gets one by itself: its children are leaves."""
        child = self.child(type_name)
        return child is not None and self.child(child) is None

    def settles(self, type_name: str) -> bool:
        """Tell whether a loop of this type, of which nothing else is said, completes by declaration."""
        policy = self.types.get(type_name)
        return policy is not None and not (policy.has_command or self.judged(type_name)) and self.implies(type_name)

    def judged(self, type_name: str) -> bool:
        """Tell whether a loop of this type may not complete without a check, a review or a person."""
        policy = self.types.get(type_name)
        return policy is not None and (policy.judged or policy.reviewed or policy.approve)

    def judged_between(self) -> str:
        """Name a judged level between the plan and the last one, which a plan that is written out would pass over."""
        return next((name for name in self.levels()[1:-1] if self.judged(name)), "")

    def levels(self) -> tuple[str, ...]:
        """Return the type at each depth, from the plan down."""
        children = {each.child for each in self.types.values()}
        names: list[str] = []
        name: str | None = next((each for each in self.types if each not in children), None)
        while name is not None and name not in names:
            names.append(name)
            name = self.child(name)
        return tuple(names)

    def keys(self, type_name: str) -> tuple[str, ...]:
        """Return the keys under which a loop of this type may declare children; the first is the one we write."""
        child = self.child(type_name)
        return (*plurals(child), CHILDREN) if child else ()

    def all_keys(self) -> frozenset[str]:
        """Return every key that declares children somewhere on the ladder."""
        return frozenset(key for name in self.types for key in self.keys(name)) | {CHILDREN}

    def heads(self, type_name: str, heading: str) -> bool:
        """Tell whether a level 2 heading opens the outline of a loop of this type."""
        child = self.child(type_name)
        words = " ".join(re.sub(r"[*_:]", " ", heading).casefold().split())
        return child is not None and words.removesuffix(" to create") in plurals(child)


def plurals(name: str) -> tuple[str, ...]:
    """Return the plural of a type's name, and the other words that mean the same."""
    return _EXTRA_KEYS.get(name, ()) + (_plural(name.casefold()),)


def _plural(name: str) -> str:
    """Form the regular English plural: boxes, stories, specs."""
    if re.search(r"(s|x|z|ch|sh)$", name):
        return f"{name}es"
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}s"
