"""Measures the pool of worktrees beside `git worktree add` and `remove`, and whole lives of loops beside a recipe.

What is compared is measured in turns within one run. The last line that it prints is JSON.
"""

from __future__ import annotations

import json
import os
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loopr.world.repo import branches, commits, landing, returning, worktrees
from loopr.world.repo.ground import Ground, open_ground
from loopr.world.repo.words import Candidate, Landed, Message

FILES = 2000
FILES_A_FOLDER = 40
ROUNDS = 7
LIVES = 60
PLAN = "bench"
QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def git(folder: Path, *words: str) -> str:
    """Run git as a recipe would."""
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def plant(root: Path, files: int) -> None:
    """Make a repository with so many files."""
    for number in range(files):
        path = root / f"d{number // FILES_A_FOLDER}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 50)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Bench")
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
    """Take a pooled worktree that the loop before has changed, change it and give it back."""
    name = f"bench.p{number}.g1"
    taken = timed_ms(lambda: worktrees.take(ground, name, tip))
    change(ground.worktrees / name, name)
    return taken, timed_ms(lambda: returning.release(ground, name))


def add_and_remove(root: Path, number: int) -> tuple[float, float]:
    """Do the same with git alone."""
    folder = root.parent / "plain" / f"w{number}"
    added = timed_ms(lambda: git(root, "worktree", "add", "-q", "-b", f"plain-{number}", str(folder), "main"))
    change(folder, "x")
    return added, timed_ms(lambda: git(root, "worktree", "remove", "--force", str(folder)))


def live(ground: Ground, name: str, line: threading.Lock) -> None:
    """Live one loop's life: worktree, commit, candidate, judge, landing, release."""
    tip = branches.plan_tip(ground, PLAN).tip
    tree = worktrees.take(ground, name, tip)
    (tree.folder / f"{name}.txt").write_text(name)
    message = Message(f"Work of {name}", trailers=(("Loopr-Loop", name),))
    commits.commit_attempt(ground, name, 1, message)
    with line:
        built = landing.build_candidate(ground, name, PLAN, 1)
        assert isinstance(built, Candidate)
        landing.lay_candidate(ground, built, 0)
        landing.end_judging(ground, name)
        assert isinstance(landing.land(ground, landing.make_intent(ground, built, message)), Landed)
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


def per_second(step: Callable[[int], None], first: int, threads: int) -> float:
    """Return how many a second so many threads do."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(step, range(first, first + LIVES)))
    return LIVES / (time.perf_counter() - started)


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
    line = threading.Lock()
    figures: dict[str, float] = {}
    git(root, "worktree", "add", "-q", "-b", "together", str(root.parent / "together"), "main")
    for turn, threads in enumerate((1, 4)):
        first = turn * LIVES
        figures[f"lives_per_second_{threads}"] = per_second(
            lambda n: live(ground, f"bench.n{n}.g1", line), first, threads
        )
        figures[f"recipes_per_second_{threads}"] = per_second(lambda n: recipe(root, n, line), first, threads)
    return figures


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
        tip = branches.ensure_plan(ground, PLAN, branches.start_point(ground).commit).tip
        return {"files": files} | slots(root, ground, tip) | lives(root, ground)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
