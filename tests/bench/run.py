"""Measures what the performance page of the docs shows, in one run, and writes docs/benchmarks.md.

Every figure comes with what was wanted; nothing here fails because a machine is slow.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
SIZES = (1_000, 10_000, 100_000)

Figures = dict[str, float]


def measure(program: str, *arguments: str) -> Figures:
    """Run one measurement in a process of its own."""
    print(f"measuring {program} {' '.join(arguments)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, str(HERE / program), *arguments], check=True, capture_output=True, text=True, cwd=HERE
    )
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def deciding(sizes: dict[int, Figures]) -> Iterator[str]:
    """Write the table of decisions."""
    yield "## Deciding"
    yield ""
    yield "| loops | a pick, µs | an event, µs | bytes a loop | start from rows, ms |"
    yield "|--|--|--|--|--|"
    for figures in sizes.values():
        cells = (figures[key] for key in ("us_a_pick", "us_an_event", "bytes_a_loop", "ms_start"))
        yield f"| {figures['loops']:,.0f} | " + " | ".join(f"{cell:,.1f}" for cell in cells) + " |"
    small, large = sizes[SIZES[0]], sizes[SIZES[-1]]
    yield ""
    growth = large["us_an_event"] / small["us_an_event"]
    yield "Wanted at 100,000 loops: a decision in at most 20 µs, at most 2,048 bytes a loop, a start in at most"
    yield "1,500 ms, and a cost of an event that does not grow with the forest: from the smallest to the largest"
    yield f"forest it grew by a factor of {growth:.2f}."


def showing(verbs: Figures) -> Iterator[str]:
    """Write the table of the reading verbs."""
    yield "## Showing, at 10,000 loops"
    yield ""
    yield "| whole process | ms | over the interpreter's start, ms |"
    yield "|--|--|--|"
    for name, ms in verbs.items():
        yield f"| `{name}` | {ms:.0f} | {ms - verbs['interpreter']:.0f} |"
    yield ""
    yield "Wanted: `tree`, `status`, `ls` and `why` at most 150 ms over the interpreter's start, `--help` at most 80."


def remembering(journal: Figures) -> Iterator[str]:
    """Write the figures of the journal."""
    yield "## Remembering (SQLite, WAL, synchronous FULL)"
    yield ""
    yield "| figure | value |"
    yield "|--|--|"
    for name, value in journal.items():
        yield f"| {name} | {value:,.1f} |"


def main() -> None:
    """Measure everything and write the page."""
    sizes = {size: measure("bench_deciding.py", str(size)) for size in SIZES}
    verbs = measure("bench_verbs.py")
    journal = measure("bench_journal.py")
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}"
    versions = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` from one run; every size and every verb is measured in processes of its own, and",
        f"figures are medians. Measured on {machine}, {versions}.",
        "Trust ratios, not single figures: machines are noisy.",
        "",
        *deciding(sizes),
        "",
        *showing(verbs),
        "",
        *remembering(journal),
    ]
    PAGE.write_text("\n".join(lines) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
