"""What the tests of the repository part share: real repositories, the life of a loop in a few words, digests."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loopr.world.repo import calls, commits, landing, worktrees
from loopr.world.repo.branches import ensure_plan, start_point
from loopr.world.repo.ground import PLANS, Ground, open_ground
from loopr.world.repo.protection import Protect
from loopr.world.repo.refs import read_refs
from loopr.world.repo.words import Brought, Candidate, Clash, Intent, Message, Refusal, Worktree

PLAN = "oauth"


def git(folder: Path, *words: str, check: bool = True) -> str:
    """Run git as a person would, and return what it prints."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files with their folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def plant(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Make a repository with one commit on main."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    write(folder, files or {"a.txt": "one\ntwo\nthree\n", "src/b.py": "b = 1\n", "tests/t.py": "assert True\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def ground_of(root: Path, **more: object) -> Ground:
    """Open a repository the way that an engine does."""
    options = {"worktrees": root / "worktrees", "artifacts": root / "specs"} | more
    return open_ground(root, **options)  # type: ignore[arg-type]


def begin(ground: Ground, plan: str = PLAN) -> str:
    """Begin a plan at what is checked out, if it has not begun, and return where it stands."""
    if not stands(ground, plan):
        ensure_plan(ground, plan, start_point(ground).commit)
    return stands(ground, plan)


def stands(ground: Ground, plan: str = PLAN) -> str:
    """Return where a plan stands, as a journal would say: nobody moves the copy of that in these tests."""
    return read_refs(ground.door, PLANS + plan).get(PLANS + plan, "")


class Landed(NamedTuple):
    """A commit that is where its plan stands now, and what became of the branch."""

    commit: str
    brought: Brought


def build(
    ground: Ground, name: str, attempt: int = 1, protect: Protect = landing.NO_PROTECTION
) -> Candidate | Clash | Refusal:
    """Build the candidate upon where the plan stands."""
    return landing.build_candidate(ground, name, landing.Onto(PLAN, stands(ground)), attempt, protect)


def land(ground: Ground, intent: Intent) -> Landed:
    """Do what was announced."""
    return Landed(intent.new, landing.land(ground, intent, 1_700_000_000_000))


def say(name: str, attempt: int = 1) -> Message:
    """Return the message of an engine's commit."""
    trailers = (("Loopr-Loop", name), ("Loopr-Attempt", str(attempt)), ("Loopr-Iteration", "1"))
    return Message(f"Work of {name}", trailers=trailers, at_ms=1_700_000_000_000 + attempt)


def take(ground: Ground, name: str, plan: str = PLAN) -> Worktree:
    """Take a loop's worktree at the tip of its plan."""
    return worktrees.take(ground, name, begin(ground, plan))


def work(ground: Ground, name: str, files: dict[str, str], attempt: int = 1) -> Worktree:
    """Take a worktree, write files as a command would, and commit them as the engine does."""
    tree = take(ground, name)
    write(tree.folder, files)
    done = commits.commit_attempt(ground, name, attempt, say(name, attempt))
    assert not done.refused, done.refused
    return tree


def try_to_land(
    ground: Ground, name: str, attempt: int = 1, protect: Protect = landing.NO_PROTECTION
) -> Landed | Clash | Refusal | object:
    """Build the candidate, lay it for a judge who says yes, and land it."""
    built = build(ground, name, attempt, protect)
    if not isinstance(built, Candidate):
        return built
    landing.lay_candidate(ground, built, 1)
    landing.end_judging(ground, name)
    return land(ground, landing.make_intent(ground, built, say(name, attempt)))


def log(folder: Path, branch: str, form: str = "%s") -> list[str]:
    """List the commits of a branch, oldest first."""
    return git(folder, "log", "--reverse", f"--format={form}", branch).splitlines()


def shows(folder: Path, commit: str, path: str) -> str:
    """Return a file of a commit."""
    return git(folder, "show", f"{commit}:{path}")


def digest(root: Path) -> str:
    """Digest a user's checkout: files, HEAD, index, settings, stash and refs that are not loopr's."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if inside.parts[0] in {".git", "worktrees"}:
            continue
        total.update(os.fsencode(inside) + b"\0")
        if path.is_symlink():
            total.update(os.fsencode(path.readlink()))
        elif path.is_file():
            total.update(path.read_bytes())
    for name in ("HEAD", "index", "config"):
        file = root / ".git" / name
        total.update(file.read_bytes() if file.exists() else b"-")
    for line in git(root, "for-each-ref", "--format=%(refname) %(objectname)").splitlines():
        if "refs/loopr/" not in line and "refs/heads/loopr/" not in line:
            total.update(line.encode())
    return total.hexdigest()


class Crash(Exception):
    """The moment at which an engine is killed."""


@contextmanager
def crash_before_step(number: int, *more: str) -> Iterator[None]:
    """Raise before the step with this number (from 0), as if the engine were killed there.

    A step is a git call, a rename, or one of `more` ways to change a file.
    """
    seen = [0]

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*words: Any, **options: Any) -> Any:
            if seen[0] == number:
                raise Crash
            seen[0] += 1
            return real(*words, **options)

        return step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "call", counting(calls.call))
        for name in ("replace", "rename", *more):
            patch.setattr(Path, name, counting(getattr(Path, name)))
        yield
