"""Settings that change while an engine runs: they are taken up, or held back, before anything else is decided.

Knows when to look and what to load. Must never know a file, nor decide what is held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.shared import Accepted
from loopr.engine import Engine
from loopr.errors import UserError, WorldError
from loopr.hands import FileHands

PLACE = "loopr.yml"
EVERY_MS = 1_000
MOST_LOOKS = 4  # at settings that change while they are looked at
WRONG = "the settings are wrong, those from before hold"
PATIENCE = 5  # looks that are left out while somebody sets a key: a person's word comes first, but not for ever


class Reloaded(NamedTuple):
    """What new settings lead to."""

    policy: o.PolicySeen
    hands: FileHands


class Source(Protocol):
    """Where settings come from."""

    @property
    def doubt(self) -> str:
        """What keeps settings from loading that were compared last, and are held back."""
        ...

    def marks(self) -> list[object]:
        """Return what changes at a glance where a file of the settings changes."""
        ...

    def is_being_set(self) -> bool:
        """Say whether somebody is setting a key at this moment."""
        ...

    def compare(self, forest: Forest) -> o.SettingsSeen:
        """Compare the files with what is accepted."""
        ...

    def offer(self, forest: Forest) -> None:
        """Note who is to be told of settings that are held back."""
        ...

    def reload(self, forest: Forest) -> Reloaded:
        """Load the settings that are accepted by now."""
        ...


class Rules:
    """Keeps an engine by the settings that are in force."""

    def __init__(self, source: Source, accepted: Accepted, hands: FileHands) -> None:
        self._source, self._loaded, self.hands = source, accepted[:2], hands
        self._over, self._patience, self._next = "", PATIENCE, 0
        self._marks: list[object] = []
        self._held: str | None = None

    def heed(self, engine: Engine) -> tuple[list[Event], str]:
        """Learn what there is, until there is no more; return what came of it, and what kept it from being remembered.

        What could not be remembered is looked at again.
        """
        events: list[Event] = []
        for _ in range(MOST_LOOKS):
            seen = list(self.look(engine.forest, engine.mind.now()))
            if not seen:
                break
            try:
                events += engine.learn(seen)
            except WorldError as error:
                self._marks = []
                return events, str(error)
        return events, ""

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Report what the files say, where that has changed, and load what was accepted meanwhile.

        As long as it reports something there may be more. While something is held back all else is held with it, so
        that there is no hurry: a command that writes the files again and again is told of once in a while.
        """
        accepted = forest.shared.accepted
        if accepted[:2] != self._loaded:
            self._loaded = accepted[:2]
            yield from self._reload(forest)
        waits = accepted.held and accepted.seal == self._over and now < self._next
        marks = self._marks if waits else self._source.marks()
        if marks != self._marks or accepted.seal != self._over:
            if self._patience and self._source.is_being_set():
                self._patience -= 1
                return
            self._marks, self._over, self._patience = marks, accepted.seal, PATIENCE
            self._next = now + EVERY_MS
            yield from self._compare(forest)
        if accepted.held != self._held:
            self._held = accepted.held
            self._source.offer(forest)

    def _compare(self, forest: Forest) -> Iterator[o.Observation]:
        """Compare the files with what is accepted; wrong ones change nothing, and are told."""
        try:
            seen = self._source.compare(forest)
        except UserError as error:
            yield o.Noticed(PLACE, f"{WRONG}: {error}")
        except WorldError as error:
            self._marks = []  # it is tried again
            yield o.Noticed(PLACE, f"changed settings cannot be taken up: {error}")
        else:
            wrong = self._source.doubt
            yield o.Noticed(PLACE, f"{WRONG}: {wrong}" if wrong else "")
            yield seen

    def _reload(self, forest: Forest) -> Iterator[o.Observation]:
        """Load what is accepted by now."""
        try:
            loaded = self._source.reload(forest)
        except UserError as error:
            yield o.Noticed(PLACE, f"the accepted settings cannot be loaded, those from before hold: {error}")
        else:
            self.hands = loaded.hands
            yield loaded.policy
