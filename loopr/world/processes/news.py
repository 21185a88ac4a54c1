"""What the engine hears of its attempts, and what is kept of one until it has ended.

Plain values. Must never know where they come from.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from loopr.world.launcher.words import LEASE_MARK, AttemptSpec, Outcome

State = Literal["ended", "alive", "vanished", "unclaimed", "between"]
"""`between` supervisors is an attempt that its launcher gives to another; nobody outside ever hears of it."""

Process = tuple[int, int]  # a pid with its start time


class Began(NamedTuple):
    """The command runs; `supervisor` names who watches it, as `Attempts.adopt` takes it."""

    id: str
    pid: int
    at_ms: int
    supervisor: str = ""


class Ended(NamedTuple):
    """Nothing of the attempt is left."""

    id: str
    outcome: Outcome


class Live:
    """An attempt that has not ended; without its spec it cannot be started again."""

    __slots__ = (
        *("began", "depends_on", "folder", "id", "in_hand", "lease", "pidfd"),
        *("spec", "supervisor", "tries", "wish"),
    )

    def __init__(self, attempt_id: str, folder: str, spec: AttemptSpec | None) -> None:
        """Begin with one that was just submitted, or with one of an earlier engine, which has none."""
        self.id, self.folder, self.spec = attempt_id, folder, spec
        self.began = spec is None
        self.lease = spec.env.get(LEASE_MARK, "") if spec else ""
        self.supervisor = ""  # as it was said by one who must know, never by a file
        self.in_hand = False  # of our own launcher
        self.pidfd = -1  # of its supervisor, where no launcher of ours speaks for that
        self.depends_on: tuple[Process, ...] = ()  # that these go on: nobody else looks after them
        self.tries = 0
        self.wish: str | None = None
