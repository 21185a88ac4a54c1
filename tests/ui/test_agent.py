"""What the verbs about agents show: `agent list`, `show` and `schema`, `prompt`, and `init --agent`."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.world.settings import load
from tests.ui.calls import PLAN, loopr, repository


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a repository on a machine on which one client is installed."""
    there = tmp_path / "bin"
    there.mkdir()
    (there / "codex").write_text("#!/bin/sh\n")
    (there / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{there}:/usr/bin:/bin")
    return repository(tmp_path / "repo")


def test_the_presets_are_listed(repo: Path) -> None:
    """Each preset has a line: whether its program is there, its lane, what it is, who uses it, what is wrong."""
    (repo / "loopr.yml").write_text("types: {code: {agent: big}}\nagents: {big: {extends: codex, model: x}}\n")
    (repo / "agents").mkdir()
    (repo / "agents/odd.yml").write_text("run: [x]\nruns: 1\n")
    lines = loopr("-C", repo, "agent", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["aider", "big", "claude", "codex", "gemini", "odd", "opencode"]
    assert lines[1].split() == [
        "big",
        "installed",
        "codex",
        "Codex",
        "·",
        "from",
        "loopr.yml",
        "·",
        "used",
        "by",
        "code",
    ]
    assert lines[2].split()[:4] == ["claude", "not", "found", "claude"]
    assert lines[5].startswith("odd       wrong")
    assert "agents/odd.yml:2:1 agents.odd.runs" in lines[5]
    assert not any("…" in line for line in lines)  # nothing is cut in a pipe
    rows = {row["name"]: row for row in loopr("-C", repo, "agent", "list", "--json").document["agents"]}
    assert (rows["big"]["lanes"], rows["big"]["types"], rows["claude"]["program"]) == (["codex"], ["code"], None)
    assert rows["odd"]["problem"]


def test_what_a_shell_runs_is_looked_for(repo: Path) -> None:
    """A text for the shell is installed if its first word is a program of the workspace or the PATH."""
    (repo / "bin").mkdir()
    (repo / "bin/pal").write_text("#!/bin/sh\n")
    (repo / "bin/pal").chmod(0o755)
    (repo / "bin/plain").write_text("#!/bin/sh\n")
    (repo / "agents").mkdir()
    runs = {
        "here": "./bin/pal --fast | tee log",
        "path": "codex exec",
        "plain": "./bin/plain",
        "shell": "cd bin && ./pal",
        "words": '"$PAL" --fast',
        "listed": "[./bin/pal]",
    }
    for name, run in runs.items():
        (repo / f"agents/{name}.yml").write_text(f"run: {run if run[0] == '[' else repr(run)}\n")
    lines = loopr("-C", repo / "bin", "agent", "list").out.splitlines()
    told = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    there = {name for name in runs if told[name].startswith("installed")}
    assert there == {"here", "path", "listed"}
    assert all(told[name].startswith("a shell runs it") for name in runs.keys() - there), told
    row = loopr("-C", repo, "agent", "show", "here", "--json").document["agent"]
    assert (row["program"], row["shell"]) == (str(repo / "bin/pal"), True)
    assert loopr("-C", repo, "agent", "test", "here").out.startswith("ok     installed")


def test_a_preset_is_shown_whole(repo: Path) -> None:
    """`agent show` tells command, environment, lane, reader, signs, and how the client is installed."""
    done = loopr("-C", repo, "agent", "show", "claude")
    rows = [line.split(maxsplit=1) for line in done.out.splitlines()]
    assert ["reader", "claude"] in rows
    assert ["set", "CLAUDE_CODE_MAX_RETRIES=1"] in rows
    assert "it is not on this machine: npm install -g @anthropic-ai/claude-code" in done.err
    row = loopr("-C", repo, "agent", "show", "aider", "--json").document["agent"]
    assert (row["prompt"], row["lanes"], row["success"]) == ("file", ["aider"], "^Tokens: ")
    assert (row["env"]["only"], "only" in done.out) == (None, False)
    wrong = loopr("-C", repo, "agent", "show", "cluade")
    known = "did you mean claude? there are aider, claude, codex, gemini, opencode; "
    known += "a preset of your own is agents/cluade.yml"
    assert (wrong.code, wrong.err) == (78, f"loopr: agent: cluade names no preset\n  hint: {known}\n")
    (repo / "loopr.yml").write_text("agents: {mine: {extends: claude, env: {only: [ANTHROPIC_API_KEY, CI]}}}\n")
    shown = loopr("-C", repo, "agent", "show", "mine").out.splitlines()
    assert ["only", "ANTHROPIC_API_KEY, CI"] in [line.split(maxsplit=1) for line in shown]
    row = loopr("-C", repo, "agent", "show", "mine", "--json").document["agent"]
    assert row["env"]["only"] == ["ANTHROPIC_API_KEY", "CI"]


def test_the_schema_of_a_preset_is_printed(repo: Path) -> None:
    """`agent schema` is a JSON schema with the keys of a preset."""
    schema = loopr("-C", repo, "agent", "schema", "--json").document["json_schema"]
    assert {"run", "reader", "signs", "extends"} <= set(schema["properties"])


def test_init_lets_an_agent_work(repo: Path) -> None:
    """`init --agent` writes settings in which it works for every type; a name that there is not is refused."""
    assert loopr("-C", repo, "init", "--agent", "nobody").code == 78
    assert not (repo / "loopr.yml").exists()
    assert loopr("-C", repo, "init", "--agent", "codex").code == 0
    settings = load(repo, environ={}, home=None)
    assert {name: each.agent for name, each in settings.types.items()} == dict.fromkeys(settings.types, "codex")
    again = loopr("-C", repo, "init", "--agent", "claude")
    assert "loopr.yml is there, and kept" in again.err
    assert load(repo, environ={}, home=None).types["code"].agent == "codex"


def test_the_prompt_that_would_be_sent_is_printed(repo: Path) -> None:
    """`prompt` prints what a loop's command would be asked, with its siblings, and writes nothing."""
    (repo / "loopr.yml").write_text("types: {spec: {agent: claude, check: make test}}\n")
    (repo / "plan.md").write_text(PLAN + "Everything about sign-in.\n")
    loopr("-C", repo, "start", "--no-run", repo / "plan.md")
    before = sorted(repo.rglob("*"))
    shown = loopr("-C", repo, "prompt", "tokens")
    assert shown.out.startswith("You write the specification `auth/tokens`")
    for words in ("# Token storage", "`auth/endpoints` Endpoints", "`make test`", "phases:", ".loopr/output.md"):
        assert words in shown.out, words
    assert sorted(repo.rglob("*")) == before
    body = loopr("-C", repo, "prompt", "endpoints", "--json").document
    assert (body["id"], body["attempt"], body["sent"]) == ("auth/endpoints", 1, False)
    assert "it may still change" in loopr("-C", repo, "prompt", "endpoints").err
    assert loopr("-C", repo, "prompt", "nobody").code == 3
