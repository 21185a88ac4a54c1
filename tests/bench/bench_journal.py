"""How fast the journal keeps and gives back: transactions a second with FULL, and the start at 100,000 loops.

Run it as `python tests/bench/bench_journal.py [FOLDER]`; the figures are those of the file system of that folder.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from loopr.world.journal import Change, Draft, Journal

ROUNDS = 5
APPENDS = 1_000
BATCH = 16
LOOPS = 100_000
BODY = '{"status":"pending",' + "x" * 480
DATA = '{"lease":"1-2-3#1","lane":"anthropic","expires_at":1700000000000}'


def draft(loop: int) -> Draft:
    """Make an event of the usual size."""
    return Draft(1_700_000_000_000, "lease_granted", 1, key(loop), "engine", DATA)


def key(loop: int) -> str:
    """Make an id of the usual size."""
    return f"1-{loop % 50}-{loop:06}"


def median(measure: Callable[[], float]) -> float:
    """Return the middle of several rounds: the machine is noisy."""
    return statistics.median(measure() for _ in range(ROUNDS))


def per_second(journal: Journal, batch: int) -> float:
    """Append events with a row each, so many at a time; return transactions a second."""
    started = time.perf_counter()
    seq = journal.last_seq()
    for number in range(APPENDS):
        loops = range(number * batch, (number + 1) * batch)
        changes = [Change("loops", key(loop), BODY) for loop in loops]
        seq = journal.append([draft(loop) for loop in loops], changes, after=seq)
    return APPENDS / (time.perf_counter() - started)


def floor_per_second(path: Path) -> float:
    """Do what one append of one event and one row does with nothing around it; return transactions a second."""
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "FULL")
    started = time.perf_counter()
    (seq,) = next(connection.execute("SELECT max(seq) FROM events"))
    for number in range(APPENDS):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (seq + number + 1, *draft(number)))
        connection.execute("INSERT OR REPLACE INTO loops VALUES (?, ?)", (key(number), BODY))
        connection.execute("COMMIT")
    taken = time.perf_counter() - started
    connection.close()
    return APPENDS / taken


def start_secs(path: Path) -> float:
    """Open the journal for reading and read every row, as the start of any verb does."""
    started = time.perf_counter()
    with Journal.open(path, readonly=True) as journal, journal.snapshot():
        assert len(journal.rows("loops")) == LOOPS
    return time.perf_counter() - started


def open_secs(path: Path) -> float:
    """Open and close the journal for reading."""
    started = time.perf_counter()
    with Journal.open(path, readonly=True) as journal:
        journal.last_seq()
    return time.perf_counter() - started


def asked_secs(journal: Journal) -> float:
    """Ask whether there is anything new."""
    started = time.perf_counter()
    for _ in range(APPENDS):
        journal.changed_since(0)
    return (time.perf_counter() - started) / APPENDS


def measure(folder: Path) -> dict[str, float]:
    """Measure everything in one folder."""
    small, large = folder / "small.db", folder / "large.db"
    figures: dict[str, float] = {}
    with Journal.open(small, create=True) as journal:
        per_second(journal, 1)
        ones, floors = [], []
        for _ in range(ROUNDS):
            floors.append(floor_per_second(small))
            ones.append(per_second(journal, 1))
        figures["floor_transactions_per_second"] = statistics.median(floors)
        figures["transactions_per_second"] = statistics.median(ones)
        batches = median(lambda: per_second(journal, BATCH))
        figures[f"transactions_per_second_of_{BATCH}"] = batches
        figures[f"events_per_second_of_{BATCH}"] = batches * BATCH
        figures["changed_since_us"] = median(lambda: asked_secs(journal)) * 1e6
    with Journal.open(large, create=True) as journal:
        started = time.perf_counter()
        changes = [Change("loops", key(loop), BODY) for loop in range(LOOPS)]
        journal.append([draft(loop) for loop in range(LOOPS)], changes, after=0)
        figures["one_append_of_100000_secs"] = time.perf_counter() - started
    figures["start_at_100000_loops_ms"] = median(lambda: start_secs(large)) * 1e3
    figures["open_and_close_ms"] = median(lambda: open_secs(large)) * 1e3
    return figures


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Measure in the folder given, else where temporary files live; print the figures and return them."""
    with tempfile.TemporaryDirectory(dir=next(iter(arguments), None)) as folder:
        figures = measure(Path(folder))
    for name, figure in figures.items():
        print(f"{name:34} {figure:12,.2f}")
    print(json.dumps(figures))
    return figures


if __name__ == "__main__":
    main(sys.argv[1:])
