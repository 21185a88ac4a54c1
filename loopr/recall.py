"""From the rows of a journal back to the state they stand for.

A verb that only shows wants a `Scene` without the ready loops in order, which imports and builds in a fraction of the
time. Must never write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loopr.core.ledger import Charge
from loopr.core.policy import Policy, decode_policy
from loopr.core.scene import Scene
from loopr.core.shared import Accepted, Shared
from loopr.world.journal import Journal

Settle = Callable[[Mapping[str, str], Sequence[str]], Policy | None]
"""Returns the policy of now, given the rows of records and loops; None where the journalled one still holds."""


class Rows(NamedTuple):
    """All rows of one moment, under the policy that is asked for; `seq` and `at` are those of the last event."""

    loops: list[str]
    records: dict[str, str]
    charges: list[Charge]
    policy: Policy
    seq: int
    at: int


def read_rows(journal: Journal, settle: Settle = lambda records, loops: None, at: int | None = None) -> Rows:
    """Read all rows in one transaction; `at` says which charges still count, else the last event does."""
    with journal.snapshot() as seq:
        records = dict(journal.rows("records"))
        loops = journal.bodies("loops")
        policy = settle(records, loops) or _journalled(records)
        last = journal.last_at()
        since = (last if at is None else at) - policy.window_ms
        charges = [Charge(*each[1:]) for each in journal.spent_since(since)]
    return Rows(loops, records, charges, policy, seq, last)


def _journalled(records: Mapping[str, str]) -> Policy:
    """Return the policy that was in force at the last event."""
    return decode_policy(json.loads(records["policy"])) if "policy" in records else Policy()


def read_scene(journal: Journal, settle: Settle, at: int) -> tuple[Scene, int]:
    """Read what a verb that only shows looks at, with the seq it stands at."""
    rows = read_rows(journal, settle, at)
    scene = Scene(rows.policy)
    scene.read(rows.loops, rows.records, rows.charges, rows.policy)
    return scene, rows.seq


def is_held(records: Mapping[str, str], loops: Callable[[], Sequence[str]]) -> bool:
    """Say whether a change of the settings is held back; the loops are read only where it takes them to tell."""
    from loopr.core.accepting import holds_back  # slow to import, and only a change gets here

    beside = {key: records[key] for key in ("accepted", "engine") if key in records}
    without, scene = Scene(), Scene()
    without.read((), beside, ())
    if holds_back(without):
        return True
    scene.read(loops(), beside, ())
    return holds_back(scene)


def read_accepted(journal: Journal) -> Accepted:
    """Return which settings are in force, and what is held back."""
    known = journal.row("records", "accepted")
    shared = Shared()
    shared.read({"accepted": json.loads(known)} if known is not None else {})
    return shared.accepted
