"""How much stands around a command: 1,111 x `touch` as attempts, beside a bare posix_spawn and GNU make, in one run.

An attempt is all of it: a folder, a supervisor with its clocks, pipes and logs, `run.json`, `outcome.json`, and the
engine hearing of that. Its folder and its variables are made while others run, as an engine does that knows what comes
next. Run it as `python tests/bench/bench_attempts.py [FOLDER]`; best on a tmpfs.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from loopr.world.processes import Attempts, AttemptSpec, Ended

COUNT = 1_111
ROUNDS = 5
WIDTHS = (2, 16)
TOUCH = shutil.which("touch") or "touch"

Figures = dict[str, float]


def spawned(folder: Path, width: int) -> None:
    """Do nothing but spawn and reap."""
    env = dict(os.environ)
    numbers = iter(range(COUNT))
    running = 0
    while True:
        for number in islice(numbers, width - running):
            os.posix_spawn(TOUCH, [TOUCH, str(folder / f"{number}.out")], env)
            running += 1
        if not running:
            return
        os.wait()
        running -= 1


def made(folder: Path, width: int) -> None:
    """Have make do it."""
    names = " ".join(f"{number}.out" for number in range(COUNT))
    (folder / "Makefile").write_text(f"all: {names}\n%.out:\n\t@{TOUCH} $@\n")
    subprocess.run(["make", "-s", f"-j{width}"], cwd=folder, check=True)


def attempted(folder: Path, width: int) -> None:
    """Do it as attempts; the launcher's start and the first supervisors are part of it."""
    state = folder / "state"
    state.mkdir()
    attempts = Attempts.open(state)
    ahead = specs(folder)
    ready = deque(islice(ahead, width))
    running = done = 0
    while done < COUNT:
        while ready and running < width:
            attempts.submit(ready.popleft())
            running += 1
        ready.extend(islice(ahead, width - len(ready)))
        for event in attempts.poll(60):
            if isinstance(event, Ended):
                assert event.outcome.code == 0, event
                done += 1
                running -= 1
    attempts.close()


def specs(folder: Path) -> Iterator[AttemptSpec]:
    """Make the attempts, each with the folder and the variables that a real one has."""
    base = dict(os.environ)
    (folder / "runs").mkdir()
    for number in range(COUNT):
        run = folder / "runs" / f"{number}.1"
        run.mkdir()
        marks = {f"LOOPR_VARIABLE_{index}": f"value {index} of {number}" for index in range(20)}
        env = {**base, **marks, "LOOPR_WORKSPACE": str(folder), "LOOPR_LEASE": f"bench/{number}#1"}
        yield AttemptSpec(
            id=f"bench/{number}#1",
            folder=run,
            argv=(TOUCH, f"{number}.out"),
            cwd=folder,
            env=env,
            stdin=Path(os.devnull),
            wall_ms=600_000,
            idle_ms=600_000,
            first_byte_ms=600_000,
        )


WAYS: dict[str, Callable[[Path, int], None]] = {"spawn": spawned, "make": made, "attempts": attempted}


def timed(way: Callable[[Path, int], None], folder: Path, width: int) -> float:
    """Return milliseconds a command."""
    folder.mkdir()
    started = time.perf_counter()
    way(folder, width)
    taken = time.perf_counter() - started
    assert sum(1 for path in folder.iterdir() if path.suffix == ".out") == COUNT
    return taken * 1000 / COUNT


def measure(folder: Path) -> Figures:
    """Measure all ways in turn, so that a busy machine is unfair to none."""
    found: dict[str, list[float]] = {}
    for turn in range(ROUNDS):
        for width in WIDTHS:
            for name, way in WAYS.items():
                found.setdefault(f"{name}_j{width}_ms", []).append(timed(way, folder / f"{turn}-{width}-{name}", width))
    figures = {name: statistics.median(values) for name, values in found.items()}
    for width in WIDTHS:
        pairs = zip(found[f"attempts_j{width}_ms"], found[f"make_j{width}_ms"], strict=True)
        figures[f"attempts_to_make_j{width}"] = statistics.median(ours / theirs for ours, theirs in pairs)
    return figures


def start_ms(folder: Path) -> float:
    """Return how long the first order waits for the launcher to start."""
    taken = []
    for turn in range(ROUNDS):
        state = folder / f"start-{turn}"
        state.mkdir()
        attempts = Attempts.open(state)
        spec = AttemptSpec("x", state, ("true",), state, dict(os.environ), Path(os.devnull))
        started = time.perf_counter()
        attempts.submit(spec)
        taken.append(time.perf_counter() - started)
        attempts.close(drain_secs=30)
    return statistics.median(taken) * 1000


def memory_kb(folder: Path) -> float:
    """Return what one more live attempt costs in memory of its own."""
    state = folder / "memory"
    state.mkdir()
    attempts = Attempts.open(state)
    for number in range(10):
        run = state / str(number)
        run.mkdir()
        attempts.submit(AttemptSpec(str(number), run, ("sleep", "60"), state, dict(os.environ), Path(os.devnull)))
    waiting = 10
    supervisors = set()
    while waiting:
        waiting -= len(attempts.poll(30))
    for number in range(10):
        supervisors.add(json.loads((state / str(number) / "run.json").read_text())["supervisor"])
        attempts.kill(str(number))
    own = [private_kb(pid) for pid in supervisors]
    attempts.close(drain_secs=30)
    return statistics.median(own)


def private_kb(pid: int) -> float:
    """Return the memory that a process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("Private"))


def main(arguments: Sequence[str] = ()) -> Figures:
    """Measure in the folder given, else on a tmpfs, else where temporary files live; print the figures."""
    fast = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK)), None)
    with tempfile.TemporaryDirectory(dir=next(iter(arguments), fast)) as folder:
        figures = measure(Path(folder))
        figures["start_ms"] = start_ms(Path(folder))
        figures["memory_kb"] = memory_kb(Path(folder))
    figures["engine_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name, figure in figures.items():
        print(f"{name:28} {figure:10,.2f}")
    print(json.dumps(figures))
    return figures


if __name__ == "__main__":
    main(sys.argv[1:])
