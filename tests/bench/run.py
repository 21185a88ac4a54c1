"""Measures what the performance page of the docs shows, in one run, and writes docs/benchmarks.md.

Every figure comes with what was wanted; nothing here fails because a machine is slow. `--quick` measures less, and
prints what it finds instead of writing it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)

LARGE = ("loopr", "make with flock")
WANTED = ("--help", "tree", "status", "ls", "why")

Figures = dict[str, float]


def verdict(misses: Iterable[str]) -> str:
    """Say whether what was wanted was reached, and if not, what was not."""
    found = ", ".join(misses)
    return f"**Not reached**: {found}." if found else "Reached."


def measure(program: str, *arguments: str) -> Any:
    """Run one measurement in a process of its own."""
    print(f"measuring {program} {' '.join(arguments)}", file=sys.stderr, flush=True)
    argv = [sys.executable, str(HERE / program), *arguments]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    return json.loads(done.stdout.splitlines()[-1])


def deciding(sizes: dict[int, Figures]) -> Iterator[str]:
    """Write the table of decisions."""
    yield "## Deciding"
    yield ""
    yield "| loops | a pick, µs | an event, µs | bytes a loop | start from rows, ms |"
    yield "|--|--|--|--|--|"
    for figures in sizes.values():
        cells = (figures[key] for key in ("us_a_pick", "us_an_event", "bytes_a_loop", "ms_start"))
        yield f"| {figures['loops']:,.0f} | " + " | ".join(f"{cell:,.1f}" for cell in cells) + " |"
    small, large = list(sizes.values())[0], list(sizes.values())[-1]
    yield ""
    growth = large["us_an_event"] / small["us_an_event"]
    yield "Wanted at 100,000 loops: a decision in at most 20 µs, at most 2,048 bytes a loop, a start in at most"
    yield "1,500 ms, and a cost of an event that does not grow with the forest: from the smallest to the largest"
    yield f"forest it grew by a factor of {growth:.2f}."
    wanted = {"us_a_pick": 20.0, "bytes_a_loop": 2_048.0, "ms_start": 1_500.0}
    yield verdict(f"{key} {large[key]:,.0f}" for key, most in wanted.items() if large[key] > most)


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
    over = {name: ms - verbs["interpreter"] for name, ms in verbs.items()}
    limits = {
        name: 80 if name == "--help" else 150 for name in over if name.split()[0] in WANTED and "--json" not in name
    }
    yield verdict(f"`{name}` {over[name]:.0f} ms" for name, most in limits.items() if over[name] > most)


def remembering(journal: Figures) -> Iterator[str]:
    """Write the figures of the journal."""
    yield "## Remembering (SQLite, WAL, synchronous FULL)"
    yield ""
    yield "| figure | value |"
    yield "|--|--|"
    for name, value in journal.items():
        yield f"| {name} | {value:,.1f} |"


def peers(found: dict[str, Any]) -> Iterator[str]:
    """Write the table of loopr and its peers."""
    widths = (2, 16)
    yield f"## Beside its peers: {found['loops']:,} no-op loops"
    yield ""
    yield "Each node of the tree touches one file once its parent has done so. loopr keeps its journal, logs and the"
    yield "outcome of every command; its types have `worktree: false`, since the others have no worktrees."
    yield ""
    yield "| engine |" + "".join(f" wall s, j={n} | CPU s, j={n} | times make, j={n} |" for n in widths)
    yield "|--|" + "--|--|--|" * len(widths)
    for name, row in found["peers"].items():
        keys = [f"{key}_j{n}" for n in widths for key in ("wall_secs", "cpu_secs", "to_make")]
        cells = (f"{row[key]:.2f}" if key in row else "–" for key in keys)
        yield f"| {name} {found['versions'][name]} | " + " | ".join(cells) + " |"
    yield ""
    for name, reason in found["missing"].items():
        yield f"Missing: {name}. {' '.join(reason.split())}"
        yield ""
    yield "Wanted: at most 1.5 times make, faster than doit, at least 8 times as fast as Luigi and 15 times as fast as"
    yield "Snakemake."
    walls = {name: [row[f"wall_secs_j{n}"] for n in widths] for name, row in found["peers"].items()}
    ratios = {
        name: [our / their for our, their in zip(walls["loopr"], each, strict=True)] for name, each in walls.items()
    }
    most = {"make": 1.5, "doit": 1.0, "luigi": 1 / 8, "snakemake": 1 / 15}
    slow = {name: max(ratios[name]) for name, limit in most.items() if name in ratios and max(ratios[name]) > limit}
    yield verdict(f"{ratio:.2f} times the time of {name}" for name, ratio in slow.items())


def trees(found: dict[str, Any], large: dict[str, Any] | None) -> Iterator[str]:
    """Write the tables of trees with a worktree for each loop."""
    yield f"## With worktrees: {found['loops']:,} loops on {found['files']:,} files, {found['width']} at once"
    yield ""
    yield "Each loop adds a file and lands it. The makefile does so with `git worktree add`, `commit`, `merge` and"
    yield "`worktree remove` for each target."
    yield ""
    yield from _ways(found)
    yield ""
    yield "Wanted: at least 5 times as many a second as the makefile, and none lost."
    yield _ahead(found, 5)
    if large is not None:
        yield ""
        mb = large["files"] * large["lines"] * 6 // 1_000_000
        at_once = f"{large['loops']:,} loops, {large['width']} at once"
        yield f"The same with {at_once}, on {large['files']:,} files of together some {mb:,} MB:"
        yield ""
        yield from _ways(large)
        yield ""
        yield "Wanted: at least 20 times as many a second."
        yield _ahead(large, 20)


def _ahead(found: dict[str, Any], wanted: float) -> str:
    """Say whether loopr is as far ahead of the makefile that loses nothing as it should be."""
    ours, theirs = (found["ways"][name]["loops_a_second"] for name in LARGE)
    return verdict([f"{ours / theirs:.1f} times as many"] if ours < wanted * theirs else [])


def _ways(found: dict[str, Any]) -> Iterator[str]:
    """Write one table of what the ways took."""
    yield "| way | loops a second | wall s | CPU s | lost |"
    yield "|--|--|--|--|--|"
    for name, row in found["ways"].items():
        cells = (row[key] for key in ("loops_a_second", "wall_secs", "cpu_secs"))
        yield f"| {name} | " + " | ".join(f"{cell:,.1f}" for cell in cells) + f" | {row['lost']:,.0f} |"


def launching(found: Figures) -> Iterator[str]:
    """Write the table of how soon a dropped artifact has a process running."""
    yield "## From a dropped artifact to a running process"
    yield ""
    yield f"| {found['artifacts']:,.0f} artifacts | p50, ms | p99, ms | lost |"
    yield "|--|--|--|--|"
    kinds = {"idle": "one after the other", "storm": f"all at once, among {found['others']:,.0f} other files"}
    for kind, words in kinds.items():
        p50, p99, lost = (found[f"{kind} {key}"] for key in ("p50", "p99", "lost"))
        yield f"| {words} | {p50:,.1f} | {p99:,.1f} | {lost:,.0f} |"
    yield ""
    yield "Wanted, one after the other: p50 at most 15 ms, p99 at most 60 ms. Wanted in both: none lost. All at once,"
    yield "most of the time is spent in the queue."
    late = {"p50": found["idle p50"] > 15, "p99": found["idle p99"] > 60}
    lost = found["idle lost"] + found["storm lost"]
    misses = [f"{key} {found[f'idle {key}']:.0f} ms" for key, missed in late.items() if missed]
    yield verdict([*misses, *([f"{lost:.0f} lost"] if lost else [])])


def main(quick: bool) -> None:
    """Measure everything and write the page."""
    less = ["--quick"] if quick else []
    sizes = {size: measure("bench_deciding.py", str(size)) for size in (QUICK_SIZES if quick else SIZES)}
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}"
    versions = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` from one run; every size and every verb is measured in processes of its own, and",
        f"figures are medians. Measured on {machine}, {versions}.",
        "Trust ratios, not single figures: machines are noisy.",
        "",
        *peers(measure("bench_peers.py", *less)),
        "",
        *trees(measure("bench_trees.py", *less), None if quick else measure("bench_trees.py", "--large", *LARGE)),
        "",
        *launching(measure("bench_launching.py", *less)),
        "",
        *deciding(sizes),
        "",
        *showing(measure("bench_verbs.py")),
        "",
        *remembering(measure("bench_journal.py")),
    ]
    page = "\n".join(lines) + "\n"
    if not quick:
        PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
