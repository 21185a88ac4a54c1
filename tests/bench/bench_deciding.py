"""What a decision, an event and a loop cost; each size of a forest is measured in a process of its own.

Run it as `python tests/bench/bench_deciding.py LOOPS`; it prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace

from planting import growing

from loopr.core import events as e
from loopr.core import workspace_events as w
from loopr.core.choose import grant, pick
from loopr.core.forest import Forest
from loopr.core.model import Status, encode_loop
from loopr.core.policy import Policy, encode_policy

NOW = 1_790_000_000_000
LAUNCHES = 2_000
AT_ONCE = 40
EVENTS_A_LIFE = 5


def policy() -> Policy:
    """Let nothing but the ceiling on loops bind, so that every pick looks at all groups."""
    types = {name: replace(each, has_command=True) for name, each in Policy().types.items()}
    return Policy(types=types, max_loops=AT_ONCE, per_type={})


def planted(loops: int) -> Forest:
    """Grow a forest in memory."""
    forest = Forest()
    forest.apply(w.PolicyLoaded(encode_policy(policy())), NOW)
    for event in growing(loops):
        forest.apply(event, NOW)
    return forest


def live(forest: Forest) -> Iterator[int]:
    """Launch and land loops one after another; yield what each launch with its landing took, in nanoseconds."""
    now, running = NOW, list[str]()
    for _ in range(min(LAUNCHES, len(forest.loops) // 4)):
        started = time.perf_counter_ns()
        if len(running) == AT_ONCE:
            loop_id = running.pop(0)
            attempt = forest.loops[loop_id].attempt
            forest.apply(e.WorkEnded(loop_id, attempt), now)
            forest.apply(e.Passed(loop_id, attempt, Status.LANDING), now)
            forest.apply(e.Landed(loop_id, attempt, "c" * 40, "d" * 32), now)
        chosen = pick(forest, now)
        if chosen is None:
            raise SystemExit("there are too few ready loops to measure with")
        lease = grant(forest, chosen, now)
        forest.apply(lease, now)
        forest.apply(e.AttemptStarted(chosen.id, lease.attempt), now)
        running.append(chosen.id)
        yield time.perf_counter_ns() - started
        now += 10


def timed(work: Callable[[], object], rounds: int) -> float:
    """Return the median time of some work in microseconds."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - started)
    return sorted(found)[rounds // 2] / 1000


def main(loops: int) -> dict[str, float]:
    """Measure one size."""
    tracemalloc.start()
    forest = planted(loops)
    held = tracemalloc.get_traced_memory()[0] / len(forest.loops)
    tracemalloc.stop()
    forest = planted(loops)
    forest.take_rows()
    gc.collect()
    lives = sorted(live(forest))
    rows = [json.dumps(encode_loop(each)) for each in forest.loops.values()]
    records = {key: json.dumps(forest.shared.row(key)) for key in forest.shared.row_keys()}
    gc.collect()
    return {
        "loops": len(forest.loops),
        "bytes_a_loop": held,
        "us_a_pick": timed(lambda: pick(forest, NOW + 1_000_000), 1_001),
        "us_an_event": lives[len(lives) // 2] / 1000 / EVENTS_A_LIFE,
        "ms_start": timed(lambda: Forest.from_rows(rows, records, [], NOW), 3) / 1000,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
