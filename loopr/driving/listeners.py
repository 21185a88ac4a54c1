"""Who is told of what happens, and how far each has heard.

Hooks and addresses are listeners. What one is still to be told follows from the journal: all that concerns it since the
event up to which it has heard, and that is kept in the journal too. So whatever is forgotten in a crash is told again,
and nothing is kept beside the events. Must never know how anybody is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.codec import NAMES
from loopr.core.forest import Forest
from loopr.core.settled import Standing, standing
from loopr.driving.couriers import NOTIFY, Couriers, heard_by
from loopr.driving.hooks import HOOK, Hooks
from loopr.driving.jobs import Jobs
from loopr.driving.kit import Kit
from loopr.driving.occasions import ON_SETTLE, SETTINGS, Occasion, occasion_of
from loopr.world.journal import Journal
from loopr.world.settings import Settings

FAR_BEHIND = 1_000  # events; who has heard of none of them is brought up to date when the engine ends
MOST_NAMED = 5
_ENDINGS = frozenset(NAMES[each] for each in (e.Landed, e.Settled, e.ArtifactAccepted, e.DeclaredAgain, e.Undeclared))
_SETTLES = f"{HOOK}{ON_SETTLE}"
_STANDS = {
    Standing.STUCK: "is stuck",
    Standing.WAITING: "waits for a person",
    Standing.SPENT: "has spent its budget",
}


class Listeners:
    """Reads the journal on behalf of all who are to be told of it."""

    def __init__(self, kit: Kit, jobs: Jobs, journal: Journal) -> None:
        self._kit, self._journal = kit, journal
        self.hooks, self.couriers = Hooks(kit, jobs, self._heard), Couriers(kit, jobs, self._heard)
        self._owed: dict[str, dict[int, None]] = {}
        self._read, self._stirred = 0, 0
        self._calm = 0
        self._settings: Settings | None = None
        self._named: frozenset[str] = frozenset()

    # -- who is set

    def changes(self, forest: Forest, seq: int) -> Iterator[o.Observation]:
        """Report who is set, if that has changed; whoever is new hears of what comes after the event `seq`."""
        if self._settings is not self._kit.settings:
            self._settings = self._kit.settings
            settling = {name for name, told in self._settling().items() if name != told}
            self._named = frozenset({*self.hooks.named(), *self.couriers.named(), *settling})
            others = {f"{HOOK}{name}" for name in self._settings.hooks}
            for place in forest.shared.problems:
                if place.startswith((HOOK, NOTIFY)) and place not in self._named | others:
                    yield o.Noticed(place, "")
        if forest.shared.heard.keys() != self._named:
            yield o.ListenersSet(tuple(sorted(self._named)), seq)

    def begin(self, forest: Forest, seq: int) -> None:
        """Find what nobody was told before this engine began, and take up what is being told still."""
        self._read = min(forest.shared.heard.values(), default=self._kit.heard_before)
        self.read(forest, seq)
        self.hooks.adopt()

    # -- what happens

    def read(self, forest: Forest, seq: int) -> None:
        """Read on in the journal, and hand everything to whom it concerns."""
        heard = forest.shared.heard
        if not (heard or self._kit.offered_notify) or seq == self._read:
            self._read = seq
            return
        ended: dict[str, Occasion] = {}
        for record in self._journal.since(self._read):
            self._read = record.seq
            if record.loop is not None:
                self._stirred = record.seq
                if record.event in _ENDINGS:
                    plan = record.loop.partition("/")[0]
                    ended[plan] = Occasion(record.seq, record.at, record.event, plan, record.actor, status="complete")
            occasion = occasion_of(record)
            if occasion is not None:
                self._hand_on(forest, occasion)
        for plan, occasion in ended.items():
            if forest.tree.done(plan):
                self._hand_on(forest, occasion._replace(kind="done", text=f"{plan} is done"))

    def _hand_on(self, forest: Forest, occasion: Occasion) -> None:
        """Note what a hook and every address is to be told."""
        heard = forest.shared.heard
        hook = f"{HOOK}{occasion.hook}"
        if occasion.hook and occasion.seq > heard.get(hook, occasion.seq):
            self._owe(hook, occasion.seq)
            self.hooks.take(self._with_members(forest, occasion))
        if occasion.kind == SETTINGS and occasion.seq > self._kit.heard_before:
            self.couriers.offer(occasion)
        if occasion.kind in self._kit.settings.notify_on:
            for name in self.couriers.named():
                if occasion.seq > heard.get(name, occasion.seq):
                    self._owe(name, occasion.seq)
                    self.couriers.take(name, occasion)

    def _with_members(self, forest: Forest, occasion: Occasion) -> Occasion:
        """Say of a convoy who its members are."""
        convoy = forest.shared.convoys.get(str(occasion.data.get("name", ""))) if not occasion.loop else None
        if convoy is None:
            return occasion
        return occasion._replace(data={**occasion.data, "members": list(convoy.members)})

    def _owe(self, listener: str, seq: int) -> None:
        """Note that a listener has not heard of an event yet."""
        self._owed.setdefault(listener, {})[seq] = None

    def _heard(self, listener: str, seq: int) -> o.Observation | None:
        """Report how far a listener has heard, once it has been told of an event."""
        owed = self._owed.get(listener, {})
        owed.pop(seq, None)
        upto = seq if listener in self._settling() else self._read
        return o.ListenerTold(listener, min(owed, default=upto + 1) - 1)

    # -- the end

    def _settling(self) -> dict[str, str]:
        """Map those who are told that nothing goes on to the hook or the address that they stand for."""
        wanted = "settled" in self._kit.settings.notify_on
        told = {heard_by(name, "settled"): name for name in self.couriers.named() if wanted}
        return told | {_SETTLES: _SETTLES}

    def settle(self, forest: Forest, now: int) -> None:
        """Have it told that nothing goes on by itself any more, once for all that has happened before."""
        heard = forest.shared.heard
        plans = {plan: standing(forest, [plan], now) for plan in sorted(forest.shared.plans)} if heard else {}
        left = [f"{plan} {_STANDS[stands]}" for plan, stands in plans.items() if stands in _STANDS]
        self._calm = 0 if left else self._stirred
        named = ", ".join([*left[:MOST_NAMED], *(["…"] if len(left) > MOST_NAMED else [])])
        told = {plan: stands.name.lower() for plan, stands in plans.items()}
        occasion = Occasion(self._stirred, now, data={"plans": told}, text=f"nothing goes on by itself: {named}")
        for listener, name in self._settling().items():
            if self._stirred <= heard.get(listener, self._stirred) or self._stirred in self._owed.get(listener, {}):
                continue
            if listener == _SETTLES:
                self._owe(listener, self._stirred)
                self.hooks.take(occasion._replace(hook=ON_SETTLE))
            elif left:
                self._owe(listener, self._stirred)
                self.couriers.take(name, occasion._replace(kind="settled"))

    def up_to_date(self, forest: Forest) -> Iterator[o.Observation]:
        """Bring those up to date whom nothing has concerned for long, so that the next engine need not read it all."""
        settling = self._settling()
        for name, upto in forest.shared.heard.items():
            known = self._calm if name in settling else self._read
            if name != _SETTLES and not self._owed.get(name) and known - upto > FAR_BEHIND:
                yield o.ListenerTold(name, known)
