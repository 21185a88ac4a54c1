"""What an engine asks of whatever performs its effects on the tree as files.

Knows words only: `hands.py` does it, and the tests have hands that only pretend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Protocol

from loopr.core import observations as o
from loopr.core.entries import Entry
from loopr.core.model import Loop


class Hands(Protocol):
    """What performs effects on the tree as files."""

    def write_declared(self, loop: Loop, entry: Entry) -> o.Observation | None:
        """Write the artifact of a declared loop and report it, or what stands there."""
        ...

    def publish_plan(self, plan: str, type_name: str, text: str, known: Set[str]) -> None:
        """Put a plan where it is watched."""
        ...

    def keep_input(self, plan: str, text: str) -> None:
        """Keep a plan that declares nothing as the input of its command."""
        ...

    def digest_of(self, loop_id: str, type_name: str) -> str | None:
        """Return the digest of a loop's artifact as it is on disk, None if there is none."""
        ...

    def look(
        self, loop_id: str, type_name: str, known: str = "", during: tuple[str, ...] | None = None
    ) -> o.Observation | None:
        """Report a loop's artifact as it is on disk, None if there is none."""
        ...

    def changed_at(self, loop_id: str, type_name: str) -> int:
        """Return when a loop's artifact on disk has changed last, 0 if there is none."""
        ...

    def look_everywhere(self, plan: str, known: Mapping[str, str]) -> Iterator[o.Observation]:
        """Report every artifact of a plan that is on disk; `known` has digests by loop."""
        ...
