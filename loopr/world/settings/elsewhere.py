"""Names that are no settings here: those of other schedulers, and those of what is not in this version.

The one table of them: hints and the page on other names are drawn from it. Must never know a file or a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NOT_YET: Mapping[str, str] = {
    "serve": "there is no page in the browser",
}
"""Keys that lead nowhere in this version, with why; a star stands for any name."""

NOT_YET_VALUES: Mapping[tuple[str, str], str] = {
    ("executor.kind", "dask"): "there is no cluster",
}
"""Values that lead nowhere in this version, with why."""

CARDS = "a global scheduler of cards and flows"
SHARES = "a fair-share scheduler with credit weights"
POLECATS = "`gt scheduler`"
LEASES = "a `sched` policy over a queue"
SOURCES = (CARDS, SHARES, POLECATS, LEASES)
"""The schedulers whose names are known, in the order of the page."""


class Other(NamedTuple):
    """A setting as another scheduler calls it: its default there, ours, and why ours is another on purpose.

    `ours` is empty where nothing is to be set; `why` then says what takes its place.
    """

    source: str
    name: str
    default: str
    ours: str
    why: str = ""

    def ours_at(self, path: str) -> str:
        """Return our key, with the project that the path is about."""
        project = path.split(".")[1:2] if path.startswith("projects.") else []
        return self.ours.replace("PROJECT", project[0]) if project else self.ours


_AT_ONCE = "one at a time is asked for by writing 1: isolated worktrees and lanes are what keeps 50 apart"
_DRAWN = "of a digest, so that the same loop always waits the same time"
_SECS = "in seconds"

OTHERS: tuple[Other, ...] = (
    Other(CARDS, "agents.maxConcurrent", "1", "concurrency.max_loops", _AT_ONCE),
    Other(CARDS, "agents.perFlow", "1 each", "concurrency.per_type", "flows are types here"),
    Other(CARDS, "queue.softLimit", "max(8, 4 times maxConcurrent)", "queue.soft_limit", "null is the same formula"),
    Other(CARDS, "queue.hardLimit", "twice the soft limit", "queue.hard_limit", "null is the same formula"),
    Other(CARDS, "retry.base", "30s", "retry.base_secs", _SECS),
    Other(CARDS, "retry.multiplier", "2", "retry.factor"),
    Other(CARDS, "retry.cap", "5 minutes", "retry.cap_secs", _SECS),
    Other(CARDS, "retry.maxRetries", "5", "retry.max_attempts", "tries are counted, the first among them"),
    Other(CARDS, "staleLockTimeout", "10 minutes", "", "a lock dies with the process that holds it"),
    Other(CARDS, "parallelizable", "false", "types.TYPE.parallel", "each loop has a worktree of its own"),
    Other(SHARES, "credit_weight", "1", "projects.PROJECT.weight"),
    Other(SHARES, "max_concurrent_agents", "", "projects.PROJECT.max_concurrent"),
    Other(SHARES, "budget_limit", "none", "projects.PROJECT.budget.tokens"),
    Other(SHARES, "global_budget", "none", "budget.tokens"),
    Other(SHARES, "global_token_budget_daily", "none", "budget.tokens", "over fair_share.window_hours, a day"),
    Other(SHARES, "rolling_window_hours", "24", "fair_share.window_hours"),
    Other(
        SHARES,
        "min_task_guarantee",
        "true",
        "",
        "a project that has completed nothing in the window and has nothing at work always goes first",
    ),
    Other(POLECATS, "scheduler.max_polecats", "-1", "concurrency.max_loops", "-1 and 0 are no ceiling, as there"),
    Other(POLECATS, "scheduler.batch_size", "1", "dispatch.batch_size", "0, no limit: the ceilings bound it"),
    Other(
        POLECATS,
        "scheduler.spawn_delay",
        "3s",
        "dispatch.spawn_delay_secs",
        "a number, of seconds; 0 is no pause",
    ),
    Other(POLECATS, "base_branch", "", "git.base", "of a workspace or a project, not of one loop"),
    Other(POLECATS, "no_merge", "false", "land.mode", "manual is the default: a person brings plans home"),
    Other(LEASES, "maxConcurrent", "1", "concurrency.max_loops", _AT_ONCE),
    Other(LEASES, "maxAttempts", "3", "retry.max_attempts", "a night has failures that pass by themselves"),
    Other(LEASES, "leaseTtlMs", "300000", "lease.ttl_secs", _SECS),
    Other(LEASES, "backoffBaseMs", "", "retry.base_secs", _SECS),
    Other(LEASES, "baseMs", "", "retry.base_secs", _SECS),
    Other(LEASES, "backoffFactor", "", "retry.factor"),
    Other(LEASES, "backoffCapMs", "60000", "retry.cap_secs", "five minutes, in seconds"),
    Other(LEASES, "jitter", "none", "retry.jitter", _DRAWN),
)


def elsewhere(path: str) -> Other | None:
    """Return what another scheduler means by a dotted path: by all of it, else by its last part."""
    return _WHOLE.get(_plain(path)) or _LAST.get(_plain(path.rpartition(".")[2]))


def is_elsewhere(path: str) -> bool:
    """Say whether a dotted path, as a whole, is a setting of another scheduler."""
    return _plain(path) in _WHOLE


def not_yet(path: str, value: object = None) -> str:
    """Say why a key, or a value of one, leads nowhere in this version; nothing if it does not stand in the table."""
    if isinstance(value, str):
        return NOT_YET_VALUES.get((path, value), "")
    parts = path.split(".")
    for key, why in NOT_YET.items():
        known = key.split(".")
        if len(parts) >= len(known) and all(a in ("*", b) for a, b in zip(known, parts, strict=False)):
            return why
    return ""


def _plain(name: str) -> str:
    """Return a name as it is compared: without signs between its words, and small."""
    return name.replace("_", "").replace("-", "").lower()


_WHOLE = {_plain(each.name): each for each in reversed(OTHERS)}
_LAST = {_plain(each.name.rpartition(".")[2]): each for each in reversed(OTHERS)}
