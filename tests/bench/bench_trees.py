"""A tree of loops with a worktree each, beside a makefile that does the same with git by hand, in one run.

1 + 10 + 100 + 1,000 nodes on a repository of 2,000 files, and with `--large` 1 + 10 + 100 on one of 20,000 files and
some 200 MB; each node adds one file on top of what its parent has landed.
The recipe adds a worktree for its target, commits, merges into one branch and removes the worktree. With `flock` around
what changes git's own files it is right and slow; without, it is what people write first, and it loses work. Run it as
`python tests/bench/bench_trees.py [--quick | --large]`; its last line is JSON.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench_worktrees import FILES, LINES, git, plant
from costs import Cost, cost_of, fast_place
from peers import count, ladder, nodes, ourselves, start, write_outlines

ROUNDS = 1


RECIPE = """
set -e
%(locked)s git worktree add -q -b "$1" "../w/$1" together
echo "$1" > "../w/$1/$1.txt"
git -C "../w/$1" add "$1.txt"
git -C "../w/$1" commit -q -m "$1"
%(locked)s git -C ../together merge -q --no-edit "$1"
%(locked)s git worktree remove --force "../w/$1"
%(locked)s git branch -q -D "$1"
touch "../done/$1"
"""
HAND_OVER = 'cp "$LOOPR_WORKSPACE/made/$LOOPR_TYPE.md" "$LOOPR_OUTPUT"; '
ADD_FILE = 'echo "$LOOPR_LOOP" > "${PWD##*/}.txt"'


class Size(NamedTuple):
    """How large a tree is, how many of its nodes are at work at once, and how large its repository is."""

    levels: int
    width: int
    files: int = FILES
    lines: int = LINES


SIZES = {"": Size(4, 16), "--quick": Size(3, 4), "--large": Size(3, 4, 20_000, 1_800)}


class Way(NamedTuple):
    """One way to do the tree: prepare a planted repository, give the command, name the branch that has it all."""

    prepare: Callable[[Path, int], None]
    command: Callable[[int], list[str]]
    branch: str


def write_recipe(locked: str) -> Callable[[Path, int], None]:
    """Return what writes a makefile with one recipe for all targets."""

    def prepare(root: Path, levels: int) -> None:
        (root.parent / "done").mkdir()
        git(root, "worktree", "add", "-q", "-b", "together", str(root.parent / "together"), "main")
        (root.parent / "recipe.sh").write_text(RECIPE % {"locked": locked})
        tree = list(nodes(levels))
        rules = [f"../done/{name}:{f' ../done/{parent}' if parent else ''}\n" for name, parent, _ in tree]
        recipe = "../done/%:\n\t@sh ../recipe.sh $*\n"
        every = " ".join(f"../done/{name}" for name, _, _ in tree)
        (root.parent / "Makefile").write_text(f"all: {every}\n{''.join(rules)}{recipe}")

    return prepare


def write_settings(root: Path, levels: int) -> None:
    """Give each type a command that adds a file, and hands over an outline where there is a level below."""
    write_outlines(root, levels)

    def keys(last: bool) -> str:
        return f"run: {json.dumps(ADD_FILE if last else HAND_OVER + ADD_FILE)}"

    (root / "loopr.yml").write_text(ladder(levels, keys))
    (root / "plan.md").write_text("---\nid: n\n---\n# A tree\n")


def drive(width: int) -> list[str]:
    """Drive the tree with loopr, which keeps as many clean worktrees as it uses at once."""
    return [*start(ourselves(), width), "--set", f"worktrees.pool={width}"]


def make(width: int) -> list[str]:
    """Drive the tree with make, which goes on where something fails."""
    return ["make", "-s", "-k", "-f", "../Makefile", f"-j{width}"]


WAYS = {
    "loopr": Way(write_settings, drive, "loopr/n"),
    "make with flock": Way(write_recipe("flock ../lock"), make, "together"),
    "make without a lock": Way(write_recipe(""), make, "together"),
}


def once(way: Way, place: Path, size: Size) -> tuple[Cost, int]:
    """Do the tree once in a new repository; return what it took and how many nodes are missing in the end."""
    folder = Path(tempfile.mkdtemp(dir=place))
    root = folder / "repo"
    root.mkdir()
    plant(root, size.files, size.lines)
    way.prepare(root, size.levels)
    home = {f"XDG_{name}_HOME": str(place / "home" / name.lower()) for name in ("CONFIG", "CACHE", "STATE", "DATA")}
    cost = cost_of(way.command(size.width), root, home, fails=True)
    there = git(root, "ls-tree", "--name-only", way.branch).splitlines()
    lost = count(size.levels) - sum(1 for name in there if name.endswith(".txt"))
    shutil.rmtree(folder)
    return cost, lost


def measure(ways: dict[str, Way], size: Size) -> dict[str, dict[str, float]]:
    """Let each way take its turn, round after round; return medians, and all that was lost."""
    seen: dict[str, list[tuple[Cost, int]]] = {}
    with tempfile.TemporaryDirectory(prefix="loopr-bench-", dir=fast_place()) as place:
        for turn in range(ROUNDS):
            for name, way in ways.items():
                cost, lost = once(way, Path(place), size)
                seen.setdefault(name, []).append((cost, lost))
                print(f"round {turn + 1}, {name}: {cost.wall_secs:.1f} s, {lost} lost", file=sys.stderr, flush=True)
    return {name: summary(runs, count(size.levels)) for name, runs in seen.items()}


def summary(runs: list[tuple[Cost, int]], loops: int) -> dict[str, float]:
    """Return the medians of one way; what was lost does not count as done."""
    return {
        "loops_a_second": statistics.median((loops - lost) / cost.wall_secs for cost, lost in runs),
        "wall_secs": statistics.median(cost.wall_secs for cost, _ in runs),
        "cpu_secs": statistics.median(cost.cpu_secs for cost, _ in runs),
        "lost": sum(lost for _, lost in runs),
    }


def main(arguments: Sequence[str]) -> dict[str, Any]:
    """Measure the ways that are named, or all."""
    size = next((SIZES[each] for each in arguments if each in SIZES), SIZES[""])
    ways = {name: way for name, way in WAYS.items() if name in arguments} or WAYS
    missing = [program for program in ("make", "flock") if shutil.which(program) is None]
    if missing:
        raise SystemExit(f"not on the path: {', '.join(missing)}")
    return size._asdict() | {"loops": count(size.levels), "ways": measure(ways, size)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
