"""The addresses of `notify`: each is told what needs a person, one thing after the other, on a thread of its own.

What cannot be delivered is tried again with a growing delay and stays owed, also over the end of the engine; what is a
day old is no news any more. No address is written down, only what it is called. Must never know how one is told.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

from loopr.core import observations as o
from loopr.driving.acts import Act, Do, Tell
from loopr.driving.hooks import Heard
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.driving.occasions import Occasion, instant
from loopr.world.notify import Sent, labels, send

NOTIFY, SETTLED, OFFERED = "notify ", " (settled)", " (held back)"
FIRST_REST_MS, FACTOR, LONGEST_REST_MS = 1_000, 4, 300_000
PATIENT_TRIES = 3  # after so many failures in a row nobody waits for an address any more
NEWS_MS = 24 * 3_600_000


def heard_by(listener: str, kind: str) -> str:
    """Name who has heard once an address was told something of a kind.

    That nothing goes on by itself follows from how everything stands, not from one event, so it is counted apart: else
    who was told of the last event, and not yet of that, would seem to know both.
    """
    return f"{listener}{SETTLED}" if kind == "settled" else listener


class Couriers:
    """Tells addresses."""

    def __init__(self, kit: Kit, jobs: Jobs, heard: Heard) -> None:
        self._kit, self._jobs, self._heard = kit, jobs, heard
        self._owed: dict[str, deque[Occasion]] = {}
        self._tries: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._offered: dict[str, str] = {}

    def named(self) -> dict[str, str]:
        """Map the listeners that are set to their addresses."""
        return {f"{NOTIFY}{label}": url for label, url in labels(self._kit.settings.notify).items()}

    def _address(self, listener: str) -> str | None:
        """Return the address of a listener, None where it is set no more."""
        return self._offered.get(listener) or self.named().get(listener)

    def offer(self, occasion: Occasion) -> None:
        """Tell the addresses of settings that are held back, once, that they are."""
        fresh = {f"{NOTIFY}{label}{OFFERED}": url for label, url in labels(self._kit.offered_notify).items()}
        self._offered |= fresh
        for listener in fresh:
            self.take(listener, occasion)

    @property
    def owes(self) -> bool:
        """True while there is something to tell at an address that has not failed too often."""
        return any(owed and self._tries.get(name, 0) < PATIENT_TRIES for name, owed in self._owed.items())

    def take(self, listener: str, occasion: Occasion) -> None:
        """Have a listener told of an occasion."""
        self._owed.setdefault(listener, deque()).append(occasion)

    def go_on(self, now: int) -> None:
        """Begin to tell every address that has something to hear and does not rest."""
        for listener, owed in self._owed.items():
            if owed and self._due.get(listener, 0) <= now:
                self._jobs.begin(Key("courier", listener, 0), self._carry(listener), partial(self._broken, listener))

    def _carry(self, listener: str) -> Act:
        """Tell an address all that it is to hear, until that fails."""
        owed = self._owed[listener]
        while owed:
            occasion, url = owed[0], self._address(listener)
            if url is not None and self._kit.clock() - occasion.at < NEWS_MS:
                sent: Sent = yield Do(partial(self._send, url, occasion))
                if sent.again:
                    return self._rest(listener, sent)
                yield Tell(o.Noticed(listener, sent.trouble))
            self._tries.pop(listener, None)
            owed.popleft()
            heard = self._heard(heard_by(listener, occasion.kind), occasion.seq)
            if heard is not None:
                yield Tell(heard)
        return None

    def _send(self, url: str, occasion: Occasion) -> Sent:
        """Tell an address one thing, on a thread."""
        title = f"loopr: {self._kit.place.root.name}"
        return send(url, self._document(occasion), title, occasion.text)

    def _rest(self, listener: str, sent: Sent) -> o.Observation:
        """Let an address rest, the longer the more often it has failed."""
        tries = self._tries[listener] = self._tries.get(listener, 0) + 1
        rest_ms = min(LONGEST_REST_MS, FIRST_REST_MS * FACTOR ** min(tries - 1, 8))
        self._due[listener] = self._kit.clock() + max(rest_ms, sent.rest_secs * 1000)
        return o.Noticed(listener, f"{sent.trouble}; it is tried again")

    def _broken(self, listener: str, error: Exception) -> o.Observation:
        """Say that telling has failed in a way that nobody foresaw, without a word that may hold the address."""
        return self._rest(listener, Sent(f"cannot be told: {type(error).__name__}"))

    def _document(self, occasion: Occasion) -> dict[str, Any]:
        """Write an occasion as a page is sent it."""
        return {
            "schema": 1,
            "generated_at": instant(self._kit.clock()),
            "workspace": self._kit.place.root.name,
            "kind": occasion.kind,
            "text": occasion.text,
            "seq": occasion.seq,
            "at": instant(occasion.at),
            "event": occasion.event or None,
            "loop": occasion.loop or None,
            "status": occasion.status or None,
            "reason": occasion.reason or None,
        }
