"""Measures the pool of worktrees beside `git worktree add` and `remove`, and whole lives of loops beside a recipe.

What is compared is measured in turns within one run. The last line that it prints is JSON.
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
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loopr.world.repo import branches, calls, commits, landing, returning, worktrees
from loopr.world.repo.ground import PLANS, Ground, open_ground
from loopr.world.repo.refs import read_refs
from loopr.world.repo.words import Candidate, Message

FILES = 2000
FILES_A_FOLDER = 40
LINES = 50
ROUNDS = 5
LIVES = 12
WIDTHS = (1, 4)
PLAN = "bench"
QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def git(folder: Path, *words: str) -> str:
    """Run git as a recipe would."""
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def plant(root: Path, files: int, lines: int = LINES) -> None:
    """Make a repository with so many files of so many lines."""
    for number in range(files):
        path = root / f"d{number // FILES_A_FOLDER}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * lines)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Bench")
    git(root, "config", "gc.auto", "0")  # else the recipe loses worktrees to a gc of its own
    git(root, "config", "user.email", "bench@example.invalid")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")


def timed_ms(step: Callable[[], object]) -> float:
    """Return how long a step takes."""
    started = time.perf_counter()
    step()
    return (time.perf_counter() - started) * 1e3


def change(folder: Path, name: str) -> None:
    """Do what a loop's command does: change a file, add one, leave some rubbish."""
    (folder / "d0" / "f0.txt").write_text(name)
    (folder / f"{name}.txt").write_text(name)


def turn_over(ground: Ground, tip: str, number: int) -> tuple[float, float]:
    """Take a pooled worktree that the loop before has changed, change and commit it, and give it back."""
    name = f"bench.p{number}.g1"
    taken = timed_ms(lambda: worktrees.take(ground, name, tip))
    change(ground.worktrees / name, name)
    commits.commit_attempt(ground, name, 1, Message("work"))
    return taken, timed_ms(lambda: returning.release(ground, name))


def add_and_remove(root: Path, number: int) -> tuple[float, float]:
    """Do the same with git alone."""
    folder = root.parent / "plain" / f"w{number}"
    added = timed_ms(lambda: git(root, "worktree", "add", "-q", "-b", f"plain-{number}", str(folder), "main"))
    change(folder, "x")
    return added, timed_ms(lambda: git(root, "worktree", "remove", "--force", str(folder)))


def stands(ground: Ground) -> str:
    """Return where the plan stands, as the journal would say."""
    return read_refs(ground.door, PLANS + PLAN)[PLANS + PLAN]


def live(ground: Ground, name: str, line: threading.Lock) -> None:
    """Live one loop's life: worktree, commit, candidate, landing, release."""
    tip = stands(ground)
    tree = worktrees.take(ground, name, tip)
    (tree.folder / f"{name}.txt").write_text(name)
    message = Message(f"Work of {name}", trailers=(("Loopr-Loop", name),))
    commits.commit_attempt(ground, name, 1, message)
    with line:
        built = landing.build_candidate(ground, name, landing.Onto(PLAN, stands(ground)), 1)
        assert isinstance(built, Candidate)
        assert landing.land(ground, landing.make_intent(ground, built, message), 1).outcome == "moved"
    returning.release(ground, name)


def recipe(root: Path, number: int, line: threading.Lock) -> None:
    """Do the like by hand: add, commit, merge into one branch, remove; what changes metadata takes turns."""
    folder, branch = root.parent / "recipe" / f"r{number}", f"recipe-{number}"
    with line:
        git(root, "worktree", "add", "-q", "-b", branch, str(folder), "main")
    (folder / f"r{number}.txt").write_text("x")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", f"work {number}")
    with line:
        git(root.parent / "together", "merge", "-q", "--no-edit", branch)
        git(root, "worktree", "remove", "--force", str(folder))
        git(root, "branch", "-q", "-D", branch)


class Spent(NamedTuple):
    """What some lives took each: wall and CPU time, ours and that of git, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def spent(step: Callable[[int], None], first: int, threads: int) -> Spent:
    """Let so many threads do a step again and again, and return what one took."""
    before, started = _cpu_secs(), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(step, range(first, first + LIVES)))
    wall_secs, cpu_secs = time.perf_counter() - started, _cpu_secs() - before
    return Spent(wall_secs * 1e3 / LIVES, cpu_secs * 1e3 / LIVES)


def _cpu_secs() -> float:
    """Return the CPU time of this process and of all that it has waited for."""
    whos = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, whos))


def calls_of(step: Callable[[], object]) -> int:
    """Count how often a step starts git."""
    real, seen = calls.call, [0]

    def counting(*words: Any, **more: Any) -> Any:
        seen[0] += 1
        return real(*words, **more)

    calls.call = counting
    try:
        step()
    finally:
        calls.call = real
    return seen[0]


def slots(root: Path, ground: Ground, tip: str) -> dict[str, float]:
    """Compare taking and giving back with adding and removing, in turns."""
    rows: dict[str, list[float]] = {"take_ms": [], "release_ms": [], "add_ms": [], "remove_ms": []}
    turn_over(ground, tip, 0)
    for number in range(1, ROUNDS + 1):
        for key, value in zip(rows, (*turn_over(ground, tip, number), *add_and_remove(root, number)), strict=True):
            rows[key].append(value)
    figures = {key: statistics.median(values) for key, values in rows.items()}
    pooled, plain = figures["take_ms"] + figures["release_ms"], figures["add_ms"] + figures["remove_ms"]
    return figures | {"add_and_remove_over_pool": plain / pooled}


def lives(root: Path, ground: Ground) -> dict[str, float]:
    """Compare whole lives with the recipe, in turns, at several widths."""
    line, first = threading.Lock(), 0
    figures: dict[str, float] = {}
    git(root, "worktree", "add", "-q", "-b", "together", str(root.parent / "together"), "main")
    for threads in WIDTHS:
        ours: list[Spent] = []
        theirs: list[Spent] = []
        for _ in range(ROUNDS + 1):
            ours.append(spent(lambda n: live(ground, f"bench.n{n}.g1", line), first, threads))
            theirs.append(spent(lambda n: recipe(root, n, line), first, threads))
            first += LIVES
        for name, rows in (("life", ours[1:]), ("recipe", theirs[1:])):  # the first round fills the pool
            figures[f"{name}_ms_{threads}"] = statistics.median(row.wall_ms for row in rows)
            figures[f"{name}_cpu_ms_{threads}"] = statistics.median(row.cpu_ms for row in rows)
        for what in Spent._fields:
            pairs = zip(ours[1:], theirs[1:], strict=True)
            ratios = [getattr(their, what) / getattr(our, what) for our, their in pairs]
            figures[f"recipe_over_life_{what}_{threads}"] = statistics.median(ratios)
    return figures | {"git_calls_a_life": calls_of(lambda: live(ground, "bench.counted.g1", line))}


def main(arguments: Sequence[str] = ()) -> dict[str, float]:
    """Measure on a repository with so many files, in memory where the machine has a place for that."""
    files = int(arguments[0]) if arguments else FILES
    os.environ.update(QUIET)
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="loopr-bench-", dir=place))
    try:
        root = folder / "repo"
        root.mkdir()
        plant(root, files)
        ground = open_ground(root, worktrees=root / "worktrees", artifacts=root / "specs")
        tip = branches.start_point(ground).commit
        branches.ensure_plan(ground, PLAN, tip)
        figures = lives(root, ground)  # first: git looks twice at files that are younger than a second
        return {"files": files} | slots(root, ground, tip) | figures
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
