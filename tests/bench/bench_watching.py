"""How soon a dropped artifact is a hint, idle and while 10,000 other files are written, beside watchdog's own observer.

Run it as `python tests/bench/bench_watching.py [ROUNDS]`; its last line is JSON: milliseconds from the rename, which
another process makes, to the hint in this one, and how many of the artifacts were never found by looking there.
"""

from __future__ import annotations

import json
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from loopr.world.watching import Watch, watch
from loopr.world.watching.ears import WatchdogEars

ARTIFACTS = 500
OTHERS = 10_000
IDLE_SECS = 5
GIVE_UP_SECS = 5
MS = 1_000_000

DROPPER = """
import os, sys, time
root, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
stamps = []
for n in range(count):
    draft, target = f"{root}/s{n}/.draft", f"{root}/s{n}/spec.md"
    with open(draft, "w") as file:
        file.write("# A spec")
    stamps.append(time.monotonic_ns())
    os.rename(draft, target)
    time.sleep(pause)
print(*stamps)
"""
STORM = """
import sys
for n in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/s{n % 500}/{n}.txt", "w") as file:
        file.write("x")
"""


def heard(ears: Watch, wanted: set[Path], busy: Callable[[], bool]) -> dict[Path, int]:
    """Look where the hints say until everything is found, or nothing came for a while after the last write."""
    found: dict[Path, int] = {}
    quiet_since = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(ears, selectors.EVENT_READ)
        while len(found) < len(wanted) and (busy() or time.monotonic() - quiet_since < GIVE_UP_SECS):
            if selector.select(0.5):
                places = ears.hints()
                at = time.monotonic_ns()
                if ears.whole or places:
                    quiet_since = time.monotonic()
                for place in places:
                    for path in place.rglob("spec.md") if place.is_dir() else (place,):
                        if path in wanted and path.exists():
                            found.setdefault(path, at)
    return found


@contextmanager
def watched(build: Callable[..., object] | None) -> Iterator[tuple[Watch, Path]]:
    """Watch a tree of as many folders as there are artifacts, with our ears or others."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        root = Path(scratch) / "specs"
        for n in range(ARTIFACTS):
            (root / f"s{n}").mkdir(parents=True)
        with patch.object(watch, "best_ears", build or watch._ears), Watch(root) as ears:
            ears.hints()
            yield ears, root


def round_of(build: Callable[..., object] | None, *, storm: bool) -> dict[str, float]:
    """Drop every artifact once, spread over a while or while other files are written."""
    with watched(build) as (ears, root):
        wanted = {root / f"s{n}" / "spec.md" for n in range(ARTIFACTS)}
        pause = 0.0 if storm else IDLE_SECS / ARTIFACTS
        stormy = [sys.executable, "-c", STORM, str(root), str(OTHERS)]
        others: list[subprocess.Popen[str]] = [subprocess.Popen(stormy, text=True)] if storm else []
        dropping = subprocess.Popen(
            [sys.executable, "-c", DROPPER, root, str(ARTIFACTS), str(pause)], stdout=subprocess.PIPE, text=True
        )
        found = heard(ears, wanted, lambda: any(each.poll() is None for each in (dropping, *others)))
        stamps = [int(each) for each in dropping.communicate()[0].split()]
        for each in others:
            each.wait()
    waits = [(found[path] - stamps[int(path.parent.name[1:])]) / MS for path in found]
    cuts = statistics.quantiles(waits, n=100)
    return {"p50": cuts[49], "p99": cuts[98], "worst": max(waits), "lost": len(wanted) - len(found)}


def main(rounds: int) -> dict[str, float]:
    """Measure both in turn, round after round, so that noise falls on both alike; return medians, and what is lost."""
    seen: dict[str, list[float]] = {}
    for number in range(rounds):
        for name, build in {"ours": None, "observer": WatchdogEars}.items():
            for storm in (False, True):
                for key, value in round_of(build, storm=storm).items():
                    seen.setdefault(f"{name} {'storm' if storm else 'idle'} {key}", []).append(value)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return {name: sum(each) if name.endswith("lost") else statistics.median(each) for name, each in seen.items()}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
