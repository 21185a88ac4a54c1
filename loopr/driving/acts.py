"""What an act may ask for while it does its effect, and how it ends.

An act is a generator on the engine's own thread: it yields what it waits for and is sent what came of it, so that it
reads from top to bottom while nothing blocks. Begun again after a crash, it finds what is done already and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from loopr.core.observations import AttemptBegan, Observation
from loopr.errors import Problem
from loopr.world.processes import AttemptSpec


class Do(NamedTuple):
    """Have something done on another thread; its result comes back, or what it raised."""

    work: Callable[[], Any]


class Run(NamedTuple):
    """Have a command run once, or follow the one of that id that runs already; its outcome comes back.

    `began` is reported when it begins, with who watches it.
    """

    id: str
    spec: AttemptSpec | None = None
    began: AttemptBegan | None = None


class Tell(NamedTuple):
    """Report something on the way."""

    seen: Observation


class Later(NamedTuple):
    """Wait for something that only somebody else can change, say what it is, and be asked again."""

    problem: Problem


class Until(NamedTuple):
    """Wait for an instant."""

    at: int


Asked: TypeAlias = Do | Run | Tell | Later | Until
Act: TypeAlias = Generator[Asked, Any, Observation | None]


class StopAsked(Exception):
    """Raised inside an act whose attempt is to end: it cleans up and returns."""


def insist(work: Callable[[], Any]) -> Generator[Asked, Any, Any]:
    """Have work done on another thread, and once more where the act is told to stop meanwhile."""
    try:
        return (yield Do(work))
    except StopAsked:
        return (yield Do(work))
