"""How long a tree of no-op loops takes beside GNU make, doit, Luigi and Snakemake, in one run.

1 + 10 + 100 + 1,000 nodes, each running one `touch` once its parent has run; loopr's types have `worktree: false`, and
its journal, logs and outcome files are on. Run it as `python tests/bench/bench_peers.py [--quick] [PEER...]`; its last
line is JSON. Peers are installed with pip, each into a scratch environment that is kept between runs. One that cannot
be installed, or that breaks, is named in the last line with the reason.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costs import Broken, Cost, cost_of, fast_place
from peers import PEERS, Found, Missing, Peer, count

WIDTHS = (2, 16)
ROUNDS, LEVELS = 5, 4
QUICK_ROUNDS, QUICK_LEVELS = 2, 3

Seen = dict[str, dict[int, list[Cost]]]


def once(peer: Peer, found: Found, place: Path, levels: int, width: int) -> Cost:
    """Do the tree once in a new folder, and see that all of it was done."""
    folder = Path(tempfile.mkdtemp(dir=place))
    peer.prepare(folder, levels)
    home = {f"XDG_{name}_HOME": str(place / "home" / name.lower()) for name in ("CONFIG", "CACHE", "STATE", "DATA")}
    cost = cost_of(peer.command(found, width), folder, home)
    made = peer.made(found, folder)
    if made != count(levels):
        raise Broken(f"it made {made} of {count(levels)}")
    shutil.rmtree(folder)
    return cost


def look_for(names: Sequence[str]) -> tuple[dict[str, Found], dict[str, str]]:
    """Find or install the peers; return those that are here, and why the others are not."""
    found: dict[str, Found] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            found[name] = PEERS[name].find()
        except Missing as reason:
            missing[name] = str(reason)
    return found, missing


def measure(found: dict[str, Found], missing: dict[str, str], rounds: int, levels: int) -> Seen:
    """Let each take its turn, round after round, so that a busy machine is unfair to none; who breaks is out."""
    seen: Seen = {}
    with tempfile.TemporaryDirectory(prefix="loopr-bench-", dir=fast_place()) as place:
        for turn in range(rounds):
            for width in WIDTHS:
                for name in [name for name in found if name not in missing]:
                    try:
                        cost = once(PEERS[name], found[name], Path(place), levels, width)
                    except Broken as reason:
                        missing[name] = str(reason)
                        continue
                    seen.setdefault(name, {}).setdefault(width, []).append(cost)
                    print(f"round {turn + 1}, {name} -j{width}: {cost.wall_secs:.2f} s", file=sys.stderr, flush=True)
    return seen


def summary(seen: Seen, loops: int) -> dict[str, dict[str, float]]:
    """Return the medians of each peer, and how its wall time compares with that of make in the same round."""
    rows: dict[str, dict[str, float]] = {}
    for name, widths in seen.items():
        row = rows[name] = {}
        for width, costs in widths.items():
            row[f"wall_secs_j{width}"] = wall = statistics.median(cost.wall_secs for cost in costs)
            row[f"cpu_secs_j{width}"] = statistics.median(cost.cpu_secs for cost in costs)
            row[f"ms_a_loop_j{width}"] = wall * 1000 / loops
            pairs = zip(costs, seen.get("make", {}).get(width, []), strict=False)
            if ratios := [own.wall_secs / theirs.wall_secs for own, theirs in pairs]:
                row[f"to_make_j{width}"] = statistics.median(ratios)
    return rows


def main(arguments: Sequence[str]) -> dict[str, Any]:
    """Measure the peers that are named, or all."""
    quick = "--quick" in arguments
    levels = QUICK_LEVELS if quick else LEVELS
    names = [name for name in PEERS if name in arguments] or list(PEERS)
    found, missing = look_for(names)
    seen = measure(found, missing, QUICK_ROUNDS if quick else ROUNDS, levels)
    versions = {name: each.version for name, each in found.items()}
    loops = count(levels)
    return {"loops": loops, "versions": versions, "missing": missing, "peers": summary(seen, loops)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
