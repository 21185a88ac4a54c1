"""The peers: how each is installed, and how each is told to do one tree of no-op work, every node touching its output.

The tree has ten children below each node. Must never measure, and never decide what a figure means.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from loopr import __version__ as loopr_version

FAN = 10
TOUCH = shutil.which("touch") or "touch"
GIT = ("git", "-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class Missing(Exception):
    """A peer cannot be had on this machine; the message says why."""


class Found(NamedTuple):
    """A peer that is here: the folder of its programs (None: those of the system), and its version."""

    programs: Path | None
    version: str

    def program(self, name: str) -> str:
        """Return the path of one of its programs."""
        return str(self.programs / name) if self.programs else name


def touched(_: Found, folder: Path) -> int:
    """Return how many outputs there are in a folder."""
    return sum(1 for path in folder.iterdir() if path.suffix == ".out")


class Peer(NamedTuple):
    """One way to do the tree: prepare a folder, give the command for so many at once, and count what was made."""

    find: Callable[[], Found]
    prepare: Callable[[Path, int], None]
    command: Callable[[Found, int], list[str]]
    made: Callable[[Found, Path], int] = touched


def nodes(levels: int) -> Iterator[tuple[str, str | None, int]]:
    """Yield (name, name of its parent, level) of a tree, from the top."""
    row = ["n"]
    yield "n", None, 0
    for level in range(1, levels):
        row = [f"{parent}.{number}" for parent in row for number in range(FAN)]
        yield from ((name, name.rpartition(".")[0], level) for name in row)


def count(levels: int) -> int:
    """Return how many nodes a tree of so many levels has."""
    return sum(FAN**level for level in range(levels))


# --- installing ---------------------------------------------------------------------------------------------------


def cache() -> Path:
    """Return the folder that keeps the peers' environments between runs; nobody else may have made it."""
    folder = Path(tempfile.gettempdir()) / f"loopr-bench-peers-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise Missing(f"{folder} belongs to somebody else")
    return folder


def installed(package: str) -> Found:
    """Return a package in a scratch environment of its own, made with pip if it is not there yet."""
    version = ".".join(str(part) for part in sys.version_info[:2])
    home = cache() / f"{package}-{version}"
    python, done = home / "bin" / "python", home / "installed"
    if not done.exists():
        print(f"installing {package} (once)", file=sys.stderr, flush=True)
        for argv in ([sys.executable, "-m", "venv", "--clear", str(home)], [str(python), *PIP, package]):
            ran = subprocess.run(argv, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Missing(next(iter(reversed(ran.stderr.split("\n\n")[-1].strip().splitlines())), "pip failed"))
        ask = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
        done.write_text(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout)
    return Found(home / "bin", done.read_text().strip())


def of_the_system(program: str) -> Found:
    """Return a program that is on the path."""
    if shutil.which(program) is None:
        raise Missing(f"there is no {program} on the path")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return Found(None, said.splitlines()[0].split()[-1])


def ourselves() -> Found:
    """Return loopr as it is here."""
    return Found(Path(sys.executable).parent, loopr_version)


# --- recipes ------------------------------------------------------------------------------------------------------


def write_makefile(folder: Path, levels: int) -> None:
    """Write a rule for each node."""
    tree = list(nodes(levels))
    rules = [f"{name}.out:{f' {parent}.out' if parent else ''}\n\t@{TOUCH} $@\n" for name, parent, _ in tree]
    (folder / "Makefile").write_text(f"all: {' '.join(f'{name}.out' for name, _, _ in tree)}\n{''.join(rules)}")


DODO = """
import json
TREE = json.load(open("tree.json"))
DOIT_CONFIG = {"verbosity": 0, "reporter": "zero"}
def task_node():
    for name, parent in TREE:
        yield {
            "name": name,
            "actions": [[%r, f"{name}.out"]],
            "file_dep": [f"{parent}.out"] if parent else [],
            "targets": [f"{name}.out"],
        }
"""

LUIGI = """
import json, subprocess, sys
import luigi
TREE = json.load(open("tree.json"))
class Node(luigi.Task):
    name = luigi.Parameter()
    parent = luigi.OptionalParameter(default=None)
    def requires(self):
        return Node(self.parent, self.parent.rpartition(".")[0] or None) if self.parent else []
    def output(self):
        return luigi.LocalTarget(f"{self.name}.out")
    def run(self):
        subprocess.run([%r, self.output().path], check=True)
class All(luigi.WrapperTask):
    def requires(self):
        return [Node(name, parent) for name, parent in TREE]
if not luigi.build([All()], workers=int(sys.argv[1]), local_scheduler=True, log_level="ERROR"):
    sys.exit(1)
"""

SNAKEFILE = """
import json
TREE = json.load(open("tree.json"))
rule all:
    input: [f"{name}.out" for name, _ in TREE]
rule root:
    output: "n.out"
    shell: "%(touch)s {output}"
rule node:
    wildcard_constraints:
        parent=r"n(\\.\\d)*", number=r"\\d"
    input: "{parent}.out"
    output: "{parent}.{number}.out"
    shell: "%(touch)s {output}"
"""


def write_program(file: str, text: str) -> Callable[[Path, int], None]:
    """Return what writes a peer's own program, with the tree beside it."""

    def prepare(folder: Path, levels: int) -> None:
        (folder / "tree.json").write_text(json.dumps([[name, parent] for name, parent, _ in nodes(levels)]))
        (folder / file).write_text(text)

    return prepare


def ladder(levels: int, keys: Callable[[bool], str]) -> str:
    """Write the settings of a ladder of so many types; `keys` gives those of a type, told whether it is the last."""
    lines = ["version: 1", "worktrees: {min_free_gb: 0}", "types:"]
    for level in range(levels):
        last = level + 1 == levels
        child = "" if last else f"child: t{level + 1}, "
        lines.append(f"  t{level}: {{{child}{keys(last)}}}")
    return "\n".join(lines) + "\n"


def write_outlines(folder: Path, levels: int) -> None:
    """Write what the command of each level but the last hands over: an outline with its children."""
    made = folder / "made"
    made.mkdir()
    for level in range(levels - 1):
        entries = "".join(f"  - {{id: c{number}}}\n" for number in range(FAN))
        (made / f"t{level}.md").write_text(f"---\nchildren:\n{entries}---\n# A node\n")


def write_workspace(folder: Path, levels: int) -> None:
    """Make a repository whose commands hand over, level by level, the outlines of the tree."""
    subprocess.run([*GIT, "init", "--quiet", "."], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "--quiet", "--allow-empty", "--message", "begin"], cwd=folder, check=True)
    write_outlines(folder, levels)
    copy = 'worktree: false, run: [cp, "{workspace}/made/{type}.md", "{output}"]'
    touch = 'worktree: false, run: [touch, "{log_dir}/touched"]'
    (folder / "loopr.yml").write_text(ladder(levels, lambda last: touch if last else copy))
    (folder / "plan.md").write_text("---\nid: n\n---\n# A tree\n")


def completed(found: Found, folder: Path) -> int:
    """Return how many loops of a workspace are complete."""
    said = subprocess.run([found.program("loopr"), "ls", "--json"], cwd=folder, capture_output=True, check=True)
    return int(json.loads(said.stdout)["counts"].get("complete", 0))


def start(found: Found, width: int) -> list[str]:
    """Drive the tree with loopr."""
    return [found.program("loopr"), "start", "plan.md", "--set", f"concurrency.max_loops={width}"]


PEERS: dict[str, Peer] = {
    "loopr": Peer(ourselves, write_workspace, start, completed),
    "make": Peer(lambda: of_the_system("make"), write_makefile, lambda found, width: ["make", "-s", f"-j{width}"]),
    "doit": Peer(
        lambda: installed("doit"),
        write_program("dodo.py", DODO % TOUCH),
        lambda found, width: [found.program("doit"), "-n", str(width), "-P", "process"],
    ),
    "luigi": Peer(
        lambda: installed("luigi"),
        write_program("tree.py", LUIGI % TOUCH),
        lambda found, width: [found.program("python"), "tree.py", str(width)],
    ),
    "snakemake": Peer(
        lambda: installed("snakemake"),
        write_program("Snakefile", SNAKEFILE % {"touch": TOUCH}),
        lambda found, width: [found.program("snakemake"), f"-j{width}", "--quiet", "all", "--scheduler", "greedy"],
    ),
}
