"""Every event about a file at a loop's place that does not count, or not by itself.

Past tense, like all events. Knows no rule of when one is allowed (`lifecycle.py`), nor of what counts (`trust.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import LoopEvent


@dataclass(frozen=True, slots=True)
class ArtifactOffered(LoopEvent):
    """A file came while loops were at work, and a person must say whether it counts, or all of it.

    `before` is the text that counted before a part of this one did.
    """

    digest: str
    during: tuple[str, ...] = ()
    before: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactUnread(LoopEvent):
    """A file at the loop's place is no artifact: it is left alone, and nothing is written over it."""

    digest: str


@dataclass(frozen=True, slots=True)
class OfferGone(LoopEvent):
    """The file that did not count does not lie at the loop's place any more, or is mended."""


@dataclass(frozen=True, slots=True)
class OfferReplaced(LoopEvent):
    """The loop has handed over its own artifact: the file there gave way, and is in the archive."""

    digest: str


@dataclass(frozen=True, slots=True)
class OfferRejected(LoopEvent):
    """A person wants to hear no more of an offered file; what counted before it counts again."""

    digest: str
    by: str


@dataclass(frozen=True, slots=True)
class CompletionUndone(LoopEvent):
    """The file that had completed the loop was rejected, and there was none before it: the loop waits again."""

    by: str
