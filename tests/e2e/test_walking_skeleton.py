"""The whole way of a person with the installed loopr, as processes on a real repository; it grows with the engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopr.engine import compare
from loopr.world.journal import Journal
from tests.ui.calls import everything, git, repository

LOOPR = Path(sys.executable).with_name("loopr")
PLAN = """\
---
id: oauth
title: Add OAuth
specs:
  - id: tokens
    title: Token storage
    phases:
      - {id: store, title: Tables and repository}
      - {id: refresh, title: Refresh, needs: [store]}
  - id: endpoints
    needs: [tokens]
---
# Add OAuth
Everything below the outline is for whoever does the work.
"""


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the installed loopr in a folder."""
    return subprocess.Popen(
        [LOOPR, *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def loopr(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the installed loopr in a folder to its end, and return its stdout."""
    process = begin(folder, *arguments)
    out, err = process.communicate()
    assert process.returncode == code, (arguments, out, err)
    assert "Traceback" not in err
    return out


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what the installed loopr says as JSON."""
    found: dict[str, Any] = json.loads(loopr(folder, *arguments, "--json"))
    return found


def statuses(folder: Path) -> dict[str, str]:
    """Return where each loop stands."""
    return {each["id"]: each["status"] for each in document(folder, "ls")["loops"]}


def artifacts(folder: Path) -> dict[str, str]:
    """Return the tree as files, without the hidden drafts that a killed process may leave beside them."""
    specs = folder / "specs"
    return {str(each.relative_to(specs)): each.read_text() for each in specs.rglob("[!.]*.md")}


def sound(folder: Path) -> list[str]:
    """Say where the rows of the journal differ from its events."""
    with Journal.open(folder / ".git/loopr/loopr.db", readonly=True) as journal:
        return compare(journal)


def declared(folder: Path) -> list[str]:
    """Return the loops that were declared, as often as they were."""
    lines = loopr(folder, "events", "--type", "declared", "--json").splitlines()
    return [json.loads(line)["loop"] for line in lines]


def test_the_first_minutes(tmp_path: Path) -> None:
    """Init, a look before, a start, every verb that shows, a file dropped by hand, and the tree goes on from there."""
    repo = repository(tmp_path / "my repo")
    (repo / "plan.md").write_text(PLAN)
    loopr(repo, "init")
    before = everything(repo)
    dry = loopr(repo, "start", "--dry-run", "plan.md")
    assert everything(repo) == before
    loopr(repo, "start", "--no-run", "plan.md")
    drawn = [re.sub(r"  (by declaration|by a person)\b", "", line).split() for line in dry.splitlines()]
    assert [line.split() for line in loopr(repo, "tree").splitlines()[:-1]] == drawn
    assert statuses(repo)["oauth/tokens/store/code"] == "pending"
    assert [each["gate"] for each in document(repo, "why", "oauth/endpoints")["gates"]] == ["needs", "manual"]
    assert document(repo, "next")["grants"] == []
    played = document(repo, "simulate", "plan.md")
    assert (played["makespan_secs"], played["unfinished"]) == (240, [])
    for verb in ("status", "show oauth", "events", "next", "ls --ready"):
        loopr(repo, *verb.split())

    (repo / "specs/oauth/tokens/store/code").mkdir()
    (repo / "specs/oauth/tokens/store/code/code.md").write_text("# Stored\n")
    loopr(repo, "start", "--no-run", "plan.md")
    assert statuses(repo)["oauth/tokens/store/code"] == "complete"
    assert statuses(repo)["oauth/tokens/refresh/code"] == "pending"
    (repo / "specs/oauth/tokens/refresh/code").mkdir()
    (repo / "specs/oauth/tokens/refresh/code/code.md").write_text("# Refreshed\n")
    (repo / "specs/oauth/endpoints").mkdir()
    (repo / "specs/oauth/endpoints/spec.md").write_text("# Endpoints\n\n## Phases\n1. **Routes**\n")
    loopr(repo, "start", "--no-run", "plan.md")
    found = statuses(repo)
    assert [each for each, status in found.items() if status != "complete"] == ["oauth/endpoints/routes/code"]
    assert document(repo, "show", "tokens")["loop"]["done"] is True
    assert sound(repo) == []


def test_the_users_own_things_are_left_alone(tmp_path: Path) -> None:
    """Branches, commits, index and files outside specs/ are what they were, after all verbs of this version."""
    repo = repository(tmp_path / "repo")
    (repo / "plan.md").write_text(PLAN)
    (repo / "mine.txt").write_text("mine")
    git(repo, "add", "mine.txt")
    seen = [git(repo, *each) for each in (("for-each-ref",), ("rev-parse", "HEAD"), ("ls-files", "--stage"))]
    loopr(repo, "start", "--no-run", "plan.md")
    loopr(repo, "tree")
    assert [git(repo, *each) for each in (("for-each-ref",), ("rev-parse", "HEAD"), ("ls-files", "--stage"))] == seen
    assert {each.name for each in repo.iterdir()} == {".git", "plan.md", "mine.txt", "specs"}


WIDE = (
    "---\nid: wide\nspecs:\n"
    + "".join(
        f"  - id: s{spec}\n    phases: [{', '.join(f'{{id: p{phase}}}' for phase in range(5))}]\n" for spec in range(8)
    )
    + "---\n# Wide\n"
)


def wide(folder: Path) -> Path:
    """Make a repository with a plan of many loops that complete by declaration, on three levels."""
    repo = repository(folder)
    (repo / "plan.md").write_text(WIDE)
    return repo


@pytest.mark.parametrize("share", [0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_killed_at_any_moment(tmp_path: Path, share: float) -> None:
    """A start that is killed, at whatever moment, and repeated, ends where one ends that was left alone."""
    import time

    calm, torn = wide(tmp_path / "calm"), wide(tmp_path / "torn")
    began = time.monotonic()
    loopr(calm, "start", "--no-run", "plan.md")
    took = time.monotonic() - began
    process = begin(torn, "start", "--no-run", "plan.md")
    try:
        process.communicate(timeout=took * share)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    loopr(torn, "start", "--no-run", "plan.md")
    assert statuses(torn) == statuses(calm)
    assert artifacts(torn) == artifacts(calm)
    assert sorted(declared(torn)) == sorted(declared(calm))
    assert sound(torn) == []
    assert loopr(torn, "start", "--no-run", "plan.md") == ""


def test_many_at_once_start_one_plan(tmp_path: Path) -> None:
    """Eight starts of one plan at the same time all succeed, and every loop is declared once."""
    repo = wide(tmp_path)
    processes = [begin(repo, "start", "--no-run", "plan.md") for _ in range(8)]
    ends = [(each.communicate(), each.returncode) for each in processes]
    assert [code for _, code in ends] == [0] * 8, ends
    found = declared(repo)
    assert len(found) == len(set(found)) == 1 + 8 + 40 + 40
    assert sum("nothing has changed" in err for (_, err), _ in ends) == 7
    assert sound(repo) == []


def test_two_plans_at_once(tmp_path: Path) -> None:
    """Two different plans that are started at the same time are both there afterwards, whole."""
    repo = wide(tmp_path)
    (repo / "other.md").write_text(WIDE.replace("id: wide", "id: other"))
    processes = [begin(repo, "start", "--no-run", name) for name in ("plan.md", "other.md")]
    assert [(each.communicate(), each.returncode)[1] for each in processes] == [0, 0]
    found = statuses(repo)
    assert {each.replace("wide", "other", 1): status for each, status in found.items() if each.startswith("wide")} == {
        each: status for each, status in found.items() if each.startswith("other")
    }
    assert len(found) == 2 * 89
    assert sound(repo) == []


def test_reading_while_another_writes(tmp_path: Path) -> None:
    """A verb that shows never fails and never waits because a start is going on."""
    repo = wide(tmp_path)
    (repo / "first.md").write_text(PLAN)
    loopr(repo, "start", "--no-run", "first.md")
    process = begin(repo, "start", "--no-run", "plan.md")
    seen = []
    while process.poll() is None or not seen:
        seen.append(len(statuses(repo)))
    process.communicate()
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert len(statuses(repo)) == 6 + 89


@pytest.mark.parametrize("verb", ["tree", "ls", "events", "tree --json"])
def test_a_reader_that_has_seen_enough(tmp_path: Path, verb: str) -> None:
    """A pipe that is closed early, as by `head`, is no failure and no noise."""
    repo = wide(tmp_path)
    loopr(repo, "start", "--no-run", "plan.md")
    process = begin(repo, *verb.split())
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize(("verb", "code"), [("tree", 78), ("tree --json", 78), ("show nobody --json", 3)])
def test_a_full_disk_behind_the_output(tmp_path: Path, verb: str, code: int) -> None:
    """Output that cannot be written is told in words with an exit code, without a trace."""
    repo = repository(tmp_path)
    (repo / "plan.md").write_text(PLAN)
    loopr(repo, "start", "--no-run", "plan.md")
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [LOOPR, *verb.split()], cwd=repo, check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == code
    assert ended.stderr.startswith("loopr: ")
    assert "Traceback" not in ended.stderr


def test_without_any_output(tmp_path: Path) -> None:
    """A closed stdout or stderr is no reason to fail."""
    repo = repository(tmp_path)
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&-"):
        subprocess.run(["/bin/sh", "-c", f'exec "$0" status {closed}', str(LOOPR)], cwd=repo, check=True)
