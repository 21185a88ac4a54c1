"""What a start is refused for, its dry run is refused for too: in the same words, with that code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.calls import Answer
from tests.ui.scenes import Desk

PLAN = "---\nid: p\nspecs: [{{id: a, run: {run}, check: none}}]\n---\n# P\n"
WORKS, LACKS = PLAN.format(run="'true'"), PLAN.format(run="[no-such-tool]")
MISSING = "plan.md:3:9 run: there is no program no-such-tool"


def said(answer: Answer) -> tuple[int, str]:
    """Return how a call ended, and what was wrong."""
    at = answer.err.find("loopr: ")
    return answer.code, answer.err[at:] if at >= 0 else ""


def block(folder: Path, name: str) -> None:
    """Put a file where a folder belongs."""
    (folder / name).write_text("x\n")


@pytest.mark.parametrize(
    ("text", "settings", "blocked", "words"),
    [
        (LACKS, "", "", MISSING),
        (WORKS, "projects: {other: {repo: ../nowhere}}\n", "", "../nowhere is not there"),
        (WORKS, "", "worktrees", "stands where the folder of the worktrees belongs"),
        (WORKS, "", "specs", "Not a directory"),
        (WORKS, "", ".git/loopr/engine.lock/", "is no file, and the engine's lock belongs there"),
    ],
)
def test_a_dry_run_is_refused_as_the_start(desk: Desk, text: str, settings: str, blocked: str, words: str) -> None:
    """Whatever keeps an engine from beginning is told before it is asked for, and writes nothing."""
    path = desk.write("plan.md", text)
    desk.write("loopr.yml", f"version: 1\n{settings}")
    if blocked.endswith("/"):
        (desk.folder / blocked).mkdir(parents=True)
    elif blocked:
        block(desk.folder, blocked)
    dry, as_json = desk("start", "-n", path), desk("start", "-n", "--json", path)
    assert not (desk.folder / ".git/loopr/loopr.db").exists()
    start = desk("start", path)
    assert said(dry) == said(start)
    assert (dry.code, words in dry.err) == (78, True), dry
    assert (as_json.code, words in as_json.document["error"]["message"]) == (78, True), as_json


def test_a_dry_run_that_is_refused_shows_the_plan_too(desk: Desk) -> None:
    """The tree and all remarks are there, and what is refused is told once."""
    dry = desk("start", "-n", desk.write("plan.md", LACKS))
    assert "└─ a  spec  leaf" in dry.out
    assert "nothing was written" in dry.err
    assert dry.err.count("no-such-tool") == 1


def test_what_is_only_enqueued_may_lack_a_program(desk: Desk) -> None:
    """A dry run of `--no-run` tells of the program, and refuses nothing, as that would not."""
    path = desk.write("plan.md", LACKS)
    dry = desk("start", "-n", "--no-run", path)
    assert (dry.code, MISSING in dry.err) == (0, True)
    assert desk("start", "--no-run", path).code == 0


def test_a_goal_is_refused_on_paper_as_it_would_be(desk: Desk) -> None:
    """The plan is printed, and what the goal lacks ends the dry run with its code."""
    desk.write("agents/own.yml", "run: [no-such-tool]\n")
    words = ("goal", "Tidy up", "--check", "true", "--agent", "own")
    dry = desk(*words, "-n")
    assert said(dry) == said(desk(*words))
    assert (dry.code, "# Tidy up" in dry.out) == (78, True)
