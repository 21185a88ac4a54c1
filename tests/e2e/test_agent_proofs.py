"""`loopr agent test`: an agent is put to the proof, here one that is a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import Repo, opened

WORKS = "cat > prompt; grep -q stop/stay prompt && exec tail -f plan.md; echo hello > greeting.txt"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def proof(repo: Repo, script: str, *words: str, code: int = 0, more: str = "") -> dict[str, Any]:
    """Put a script to the proof, and return what was found by the names of the checks."""
    repo.write({"agents/mine.yml": f"run: [sh, -c, {script!r}]\nversion: [sh, -c, echo mine 1.2]\n{more}"})
    document = repo.loopr("agent", "test", "mine", "--json", *words, code=code).document
    assert document["ok"] == (code == 0)
    return {each["check"]: each for each in document["checks"]}


def test_without_a_live_proof_nothing_is_asked(repo: Repo) -> None:
    """A proof that is not live looks for the program and its version, and starts nothing else."""
    found = proof(repo, 'touch "$DESK/ran"')
    assert list(found) == ["installed", "version"]
    assert found["version"]["text"] == "mine 1.2"
    assert repo.note("ran") == "" and not (repo.desk / "ran").exists()


def test_what_is_not_there(repo: Repo) -> None:
    """A program that is not on this machine ends the proof with how it is installed."""
    repo.write({"agents/mine.yml": "run: [no-such-program]\ninstall: make it\n"})
    end = repo.loopr("agent", "test", "mine", "--live", code=1)
    assert end.out.splitlines()[1].strip() == "→ install it: make it"
    assert len(end.out.splitlines()) == 2


def test_an_agent_that_works(repo: Repo) -> None:
    """An agent that does what it is asked and ends when it is told to passes, and leaves no folder and no process."""
    scratch = repo.desk / "scratch"
    scratch.mkdir()
    repo.env["TMPDIR"] = str(scratch)
    found = proof(repo, WORKS, "--live")
    assert not list(scratch.iterdir())
    assert {name: each["ok"] for name, each in found.items()} == {
        **dict.fromkeys(("installed", "version", "answers", "edits", "stops"), True),
        "usage": None,
    }, found
    assert not list(repo.root.glob("greeting*"))
    assert repo.loopr("ls", code=None).code in (0, 3), "this workspace has no part in it"
    assert repo.events() == []


@pytest.mark.parametrize("run", ["[./bin/pal]", "./bin/pal --fast", "[sh, bin/pal]"])
def test_an_agent_whose_script_is_in_the_repository(repo: Repo, run: str) -> None:
    """What is committed is there for the proof; what is not is named, and nothing is tried."""
    repo.write({"bin/pal": f"#!/bin/sh\n. bin/words\n{WORKS}\n", "bin/words": "true\n"})
    repo.write({"greeting.txt": "hello\n", ".gitignore": "*.txt\n", "specs/odd/plan.md": "# Odd\n"})
    repo.write({"agents/mine.yml": f"run: {run}\nversion: [sh, bin/pal, --version]\n"})
    (repo.root / "bin/pal").chmod(0o755)
    early = repo.loopr("agent", "test", "mine", "--live", "--json", code=1).document["checks"]
    assert [each["check"] for each in early] == ["installed", "version", "committed"]
    assert early[-1]["text"].startswith("bin/pal: not committed")
    repo.git("add", "--all", "--force")
    repo.git("commit", "--quiet", "--message=pal")
    before = repo.git("for-each-ref"), repo.git("worktree", "list"), repo.git("status", "--short")
    found = repo.loopr("agent", "test", "mine", "--live", "--json", code=None).document["checks"]
    told = {each["check"]: each["ok"] for each in found}
    assert (told["answers"], told["edits"], told["stops"]) == (True, True, True), found
    after = repo.git("for-each-ref"), repo.git("worktree", "list"), repo.git("status", "--short")
    assert before == after


def test_an_agent_that_does_nothing(repo: Repo) -> None:
    """An agent that changes nothing answers, and does not edit."""
    found = proof(repo, "true", "--live", code=1)
    assert (found["answers"]["ok"], found["edits"]["ok"]) == (True, False)


def test_an_agent_that_is_not_logged_in(repo: Repo) -> None:
    """An agent whose lane would be parked does not answer, and the proof ends with what is to be done."""
    signs = "signs: {authentication: [log in first]}\nmend: {authentication: say the word}\n"
    found = proof(repo, "echo log in first; exit 1", "--live", code=1, more=signs)
    assert list(found)[-1] == "answers"
    assert "say the word" in found["answers"]["text"]


def test_the_settings_of_the_workspace_hold(repo: Repo) -> None:
    """The proof uses the preset as this workspace changes it, and its lane's environment."""
    repo.settings("agents: {mine: {env: {set: {WORD: hello}}}}\nlanes: {mine: {env: {set: {OTHER: there}}}}\n")
    script = 'cat > prompt; grep -q stop/stay prompt && exec tail -f plan.md; echo "$WORD $OTHER" > greeting.txt'
    found = proof(repo, f'{script}; test "$OTHER" = there', "--live")
    assert found["edits"]["ok"]
