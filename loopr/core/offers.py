"""The files at a loop's place that do not count: what is remembered of them.

A file that came while loops were at work has a loop's trust; where that is not enough, it is
offered to a person. One that cannot be read counts for nothing. Neither is ever written over.
Knows digests only; what counts is decided in `trust.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MOST_NAMED = 20
MOST_REJECTED = 50

FILE = "file"  # by whom a loop was completed, where nobody knows whose its file is


class Offers(NamedTuple):
    """What lies at a loop's place and does not count, or not all of it, by digests.

    `offered` waits for a person since loops were at work (`during`); `before` is the text that
    counted until a part of it did. `unread` is no artifact; `rejected` are those of which a person
    wants to hear no more. `counts` is a file that counts, and that loopr has not written.
    """

    offered: str = ""
    during: tuple[str, ...] = ()
    before: str = ""
    unread: str = ""
    rejected: tuple[str, ...] = ()
    counts: str = ""

    def without(self) -> Offers:
        """Return what is left once nothing waits any more."""
        return NO_OFFERS._replace(rejected=self.rejected, counts=self.counts)

    def refuse(self, digest: str) -> Offers:
        """Return what is left once a person has said no to a file."""
        kept = tuple(each for each in self.rejected if each != digest)
        return NO_OFFERS._replace(rejected=(*kept, digest)[-MOST_REJECTED:])


NO_OFFERS = Offers()


class Kept(NamedTuple):
    """A file that nothing counts by yet, and the loops that were at work when it came."""

    digest: str
    during: tuple[str, ...] = ()


def read_offers(value: Sequence[Any]) -> Offers:
    """Read offers back from plain values."""
    offered, during, before, unread, rejected, counts = value
    return Offers(offered, tuple(during), before, unread, tuple(rejected), counts)
