"""How long it takes from a dropped artifact to the child process of the loop that it declares, while an engine drives.

Idle: one artifact after the other, each into a quiet tree. Storm: all of them, each after twenty other files in the
same tree. The command of each loop writes the time. Run it as `python tests/bench/bench_launching.py [--quick]`; its
last line is JSON, in milliseconds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from costs import QUIET_GIT, Broken, fast_place
from peers import GIT, ourselves

ARTIFACTS, OTHERS = 500, 10_000
QUICK_ARTIFACTS, QUICK_OTHERS = 50, 1_000
GIVE_UP_SECS = 30.0
PAUSE_SECS = 0.02
MS = 1_000_000

SETTINGS = """
version: 1
types:
  plan: {child: spec}
  spec: {child: job}
  rest: {}
  job:
    child: rest   # of no matter; a spec whose children are leaves would not wait for a file
    run: >-
      date +%s%N > "$LOOPR_WORKSPACE/../stamps/${LOOPR_PARENT##*/}"; echo "# Done" > "$LOOPR_OUTPUT"
worktrees: {min_free_gb: 0}
timeouts: {first_byte_secs: 3600, idle_secs: 3600}
"""
KEEPER = 'date +%s%N > "$LOOPR_WORKSPACE/../stamps/keeper"; exec sleep 3600'
ARTIFACT = "---\nchildren: [{id: job}]\n---\n# Dropped\n"
DROPPER = """
import os, sys, time
root, artifacts, others = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(artifacts):
    for other in range(others // artifacts):
        with open(f"{root}/specs/big/s{n}/{other}.txt", "w") as file:
            file.write("x")
    print(time.time_ns())
    os.rename(f"{root}/../drafts/{n}", f"{root}/specs/big/s{n}/spec.md")
"""


def plant(place: Path, artifacts: int) -> Path:
    """Make a repository with a plan whose specs are for a person, but for one that keeps the engine driving."""
    root = place / "repo"
    for folder in (root, place / "stamps", place / "drafts"):
        folder.mkdir()
    subprocess.run([*GIT, "init", "-q", "."], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "begin"], cwd=root, check=True)
    (root / "loopr.yml").write_text(SETTINGS)
    keeper = f"  - {{id: keeper, children: [{{id: job, run: {json.dumps(KEEPER)}}}]}}\n"
    entries = "".join(f"  - {{id: s{n}}}\n" for n in range(artifacts))
    (root / "plan.md").write_text(f"---\nid: big\nchildren:\n{keeper}{entries}---\n# Big\n")
    for n in range(artifacts):
        (place / "drafts" / str(n)).write_text(ARTIFACT)
        (root / "specs" / "big" / f"s{n}").mkdir(parents=True)
    return root


@contextmanager
def driven(artifacts: int) -> Iterator[Path]:
    """Have an engine drive such a workspace, and end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="loopr-bench-", dir=fast_place(), ignore_cleanup_errors=True) as scratch:
        root = plant(Path(scratch), artifacts)
        env = {name: value for name, value in os.environ.items() if not name.startswith("LOOPR")} | QUIET_GIT
        with (root.parent / "log").open("wb") as log:
            argv = [ourselves().program("loopr"), "start", "plan.md"]
            engine = subprocess.Popen(argv, cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not wait_for([root.parent / "stamps" / "keeper"], lambda: engine.poll() is None):
                raise Broken(f"the engine does not drive:\n{(root.parent / 'log').read_text('utf-8', 'replace')}")
            yield root
        finally:
            engine.terminate()
            engine.wait()


def wait_for(paths: Sequence[Path], living: Callable[[], bool] = lambda: True) -> bool:
    """Wait until there is something in each file, or nothing came for a while; say whether all are there."""
    left, patience = list(paths), time.monotonic() + GIVE_UP_SECS
    while left and time.monotonic() < patience and living():
        still = [path for path in left if not path.exists() or not path.stat().st_size]
        if len(still) < len(left):
            left, patience = still, time.monotonic() + GIVE_UP_SECS
        else:
            time.sleep(0.002)
    return not left


def stamps(root: Path, artifacts: int) -> list[Path]:
    """Name the files into which the commands write when they ran."""
    return [root.parent / "stamps" / f"s{n}" for n in range(artifacts)]


def idle(artifacts: int) -> dict[str, float]:
    """Drop one artifact after the other, each when all is quiet."""
    with driven(artifacts) as root:
        dropped = []
        for n, stamp in enumerate(stamps(root, artifacts)):
            time.sleep(PAUSE_SECS)
            dropped.append(time.time_ns())
            (root.parent / "drafts" / str(n)).rename(root / "specs" / "big" / f"s{n}" / "spec.md")
            wait_for([stamp])
        return summary(dropped, stamps(root, artifacts))


def storm(artifacts: int, others: int) -> dict[str, float]:
    """Drop all artifacts among other files, as fast as a process can write."""
    with driven(artifacts) as root:
        argv = [sys.executable, "-c", DROPPER, str(root), str(artifacts), str(others)]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        wait_for(stamps(root, artifacts))
        return summary([int(line) for line in said.split()], stamps(root, artifacts))


def summary(dropped: list[int], written: list[Path]) -> dict[str, float]:
    """Return how long the processes were waited for, and how many never ran."""
    pairs = zip(dropped, written, strict=True)
    waits = [(int(path.read_text()) - at) / MS for at, path in pairs if path.exists() and path.stat().st_size]
    cuts = statistics.quantiles(waits, n=100)
    return {"p50": cuts[49], "p99": cuts[98], "worst": max(waits), "lost": len(written) - len(waits)}


def main(arguments: Sequence[str]) -> dict[str, float]:
    """Measure both."""
    quick = "--quick" in arguments
    artifacts, others = (QUICK_ARTIFACTS, QUICK_OTHERS) if quick else (ARTIFACTS, OTHERS)
    found = {"idle": idle(artifacts), "storm": storm(artifacts, others)}
    figures = {f"{name} {key}": value for name, each in found.items() for key, value in each.items()}
    return {"artifacts": artifacts, "others": others} | figures


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
