"""`loopr agent test --live` with the real clients: what each of its findings rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.nights import MARKS, Night, night
from tests.standin import answers as a
from tests.standin.asked import Asked

pytestmark = MARKS


def does(asked: Asked) -> a.Answer:
    """Write the greeting; what never ends is a tool where there are tools, else silence."""
    if asked.loop == "stop/stay":
        return a.Silence() if asked.api == "chat" else a.Shell("tail -f plan.md")
    return a.Text() if asked.follows else a.Edit("greeting.txt", "hello\n")


def proof(repo: Night, client: str, code: int) -> dict[str, dict[str, Any]]:
    """Put a client to the proof, and return its findings by their names."""
    settings = "agents: {codex: {provider: standin}}\n" if client == "codex" else ""
    repo.settings(settings)
    document = repo.loopr("agent", "test", client, "--live", "--json", code=code).document
    assert document["ok"] == (code == 0)
    assert repo.left_behind() == []
    return {each["check"]: each for each in document["checks"]}


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini", "aider"])
def test_a_client_that_works(tmp_path: Path, client: str) -> None:
    """A client that is there and has an account passes every part of its proof, and leaves nothing behind."""
    with night(tmp_path, client, otherwise=does) as repo:
        found = proof(repo, client, 0)
        assert list(found) == ["installed", "version", "answers", "edits", "usage", "stops"]
        assert {name for name, each in found.items() if each["ok"]} >= set(found) - {"usage"}, found
        assert found["usage"]["ok"] or client == "aider", found
        assert not list(repo.laid_out.scratch.glob("loopr-*"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [(a.UNKNOWN_KEY, "is not logged in"), (a.NO_CREDIT, "no credit"), (a.rate_limit(1), "429"), (a.BROKEN, "500")],
    ids=["unknown key", "no credit", "limit", "broken"],
)
def test_a_client_without_an_answer(tmp_path: Path, answer: a.Answer, words: str) -> None:
    """Where the provider refuses, the proof says so in its words, and does not go on."""
    with night(tmp_path, "claude", otherwise=lambda asked: answer) as repo:
        found = proof(repo, "claude", 1)
        assert list(found) == ["installed", "version", "answers"]
        assert words in found["answers"]["text"]


def test_a_client_that_may_not_edit(tmp_path: Path) -> None:
    """A client that answers, and changes nothing, has not passed."""
    with night(tmp_path, "claude", otherwise=lambda asked: a.Text("Done.")) as repo:
        found = proof(repo, "claude", 1)
        assert found["answers"]["ok"]
        assert found["edits"]["ok"] is False
