"""How long the reading verbs take as whole processes, beside the bare start of the interpreter, in one run.

Run it as `python tests/bench/bench_verbs.py`; it prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planting import plant

LOOPS = 10_000
ROUNDS = 9
SPARE = "big/s3/p7/c1"
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As where loopr is installed: its modules are compiled once, and not by every process again."""
VERBS = ("--help", "tree", "status", "ls", f"why {SPARE}", f"show {SPARE}", "next", "tree --json")


def once(arguments: list[str], folder: Path) -> float:
    """Run one process to its end; return the milliseconds it took."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True, env=ENVIRON)
    return (time.perf_counter() - started) * 1000


def main() -> dict[str, float]:
    """Measure every verb in turn, round after round, so that noise falls on all alike; return medians."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = plant(Path(scratch) / "big", LOOPS)
        runs: dict[str, list[str]] = {"interpreter": ["-c", "pass"]}
        runs |= {verb: ["-m", "loopr", *verb.split()] for verb in VERBS}
        found: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, arguments in runs.items():
                found[name].append(once(arguments, folder))
    return {name: statistics.median(each) for name, each in found.items()}


if __name__ == "__main__":
    print(json.dumps(main()))
