"""From the rows of a journal back to the state they stand for.

A verb that only shows wants a `Scene` without the ready loops in order, which imports and builds in a fraction of the
time. Must never write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from loopr.core.ledger import Charge
from loopr.core.policy import Policy, decode_policy
from loopr.core.scene import Scene
from loopr.world.journal import Journal

Settle = Callable[[str], Policy | None]
"""Returns the policy of now, given the seal of the journalled one; None where that one still holds."""


class Rows(NamedTuple):
    """All rows of one moment, under the policy that is asked for; `seq` and `at` are those of the last event."""

    loops: list[str]
    records: dict[str, str]
    charges: list[Charge]
    policy: Policy
    seq: int
    at: int


def read_rows(journal: Journal, settle: Settle = lambda seal: None, at: int | None = None) -> Rows:
    """Read all rows in one transaction; `at` says which charges still count, else the last event does."""
    with journal.snapshot() as seq:
        records = dict(journal.rows("records"))
        policy = settle(json.loads(records.get("seal", '""'))) or _journalled(records)
        last = journal.last_at()
        since = (last if at is None else at) - policy.window_ms
        charges = [Charge(*each[1:]) for each in journal.spent_since(since)]
        loops = journal.bodies("loops")
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
