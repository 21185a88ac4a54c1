"""The gate before whatever changes a workspace: every verb and every tool passes it, or changes nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from loopr.core.authority import ACTS
from loopr.ui.askers import who_asks
from loopr.ui.cli import VERBS, cli
from loopr.ui.mcp.tools import TOOLS
from loopr.wiring import Workspace
from tests.ui.calls import everything, git, loopr, repository, this_tree
from tests.ui.scenes import Desk
from tests.ui.test_mcp import call

LOOP = "oauth/tokens/store"
LEASE = f"{LOOP}#1"
CHANGES: dict[str, list[str]] = {
    "init": ["init", "init --anew", "init --anew -y"],
    "start": ["start --no-run plan.md", "start plan.md", "start --detach plan.md", "start -y new.md"],
    "goal": ["goal Tidy up --check true --run true", "goal Tidy up --check true --run true --no-run"],
    "run": ["run", "run --once", "run --detach"],
    "stop": ["stop", "stop --now"],
    "dispatch": ["dispatch endpoints"],
    "pause": ["pause endpoints", "pause --all --now", "pause project:default"],
    "resume": ["resume endpoints", "resume --all"],
    "cancel": ["cancel endpoints", "cancel store"],
    "retry": ["retry endpoints", "retry --fresh -y tokens"],
    "reset": ["reset endpoints", "reset lane:default"],
    "clear": ["clear endpoints", "clear --all"],
    "approve": ["approve endpoints"],
    "reject": ["reject endpoints --reason no"],
    "iterate": ["iterate endpoints --feedback more"],
    "lease take": ["lease take"],
    "lease renew": ["lease renew oauth/tokens/refresh#1"],
    "lease complete": ["lease complete oauth/tokens/refresh#1"],
    "lease release": ["lease release oauth/tokens/refresh#1"],
    "lease reclaim": ["lease reclaim oauth/tokens/refresh#1"],
    "convoy create": ["convoy create @x endpoints"],
    "convoy add": ["convoy add @draft endpoints"],
    "land": ["land oauth", "land -y oauth --onto main", "land --partial oauth"],
    "gc": ["gc", "gc --forget store", "gc --forget store -y"],
    "set": ["set types.code.check 'exit 0'"],
    "doctor": ["doctor --fix", "doctor --try"],
}
SHOWS: dict[str, list[str]] = {
    "init": ["init --dry-run"],
    "start": ["start --dry-run plan.md", "start -n new.md"],
    "goal": ["goal Tidy up --check true --run true --dry-run"],
    "dispatch": ["dispatch --dry-run refresh"],
    "tree": ["tree"],
    "ls": ["ls"],
    "status": ["status", "status --metrics"],
    "show": ["show store"],
    "why": ["why store"],
    "next": ["next"],
    "logs": ["logs store", "logs oauth"],
    "prompt": ["prompt store"],
    "diff": ["diff store", "diff --waiting"],
    "shell": ["shell store --json"],
    "events": ["events"],
    "usage": ["usage"],
    "wait": ["wait --timeout 1s store"],
    "lease list": ["lease list"],
    "convoy list": ["convoy list"],
    "convoy show": ["convoy show @draft"],
    "simulate": ["simulate oauth"],
    "land": ["land --dry-run oauth", "land --dry-run --partial oauth"],
    "gc": ["gc --dry-run", "gc --dry-run --forget store"],
    "config show": ["config show"],
    "config check": ["config check"],
    "config explain": ["config explain retry"],
    "config schema": ["config schema"],
    "agent list": ["agent list"],
    "agent show": ["agent show claude"],
    "agent schema": ["agent schema"],
    "set": ["set --dry-run types.code.check 'exit 0'"],
    "doctor": ["doctor"],
    "completion": ["completion bash"],
    "help": ["help land"],
    "version": ["version"],
}
TO_COME = {
    "adopt": ["adopt oauth"],
    "update": ["update oauth"],
    "config accept": ["config accept", "config accept --yes"],
}
ELSEWHERE = {"demo", "agent test", "mcp"}
"""These work in a folder of their own; of what `mcp` serves each tool is tried."""
GIVEN: dict[str, tuple[dict[str, Any], str]] = {
    "start": ({"plans": ["new.md"]}, "start --no-run new.md"),
    "set": ({"key": "types.code.check", "value": "exit 0"}, "set types.code.check 'exit 0'"),
    "convoy": ({"name": "@x", "ids": ["endpoints"], "new": True}, "convoy create @x endpoints"),
    "iterate": ({"ids": ["endpoints"], "feedback": "more"}, "iterate endpoints --feedback more"),
    "lease_take": ({}, "lease take"),
}


def leaves() -> Iterator[str]:
    """Name every verb of the command line, with its group."""
    context = click.Context(cli)
    for name in VERBS:
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {own}" for own in command.commands)
        else:
            yield name


@pytest.fixture
def busy(shop: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Give a workspace in which a command of a loop runs, and let this process be that command."""
    shop.start()
    shop.choose()
    shop.run(LOOP)
    assert loopr("convoy", "create", "@draft", "oauth", "-C", shop.folder).code == 0
    shop.write("new.md", "---\nid: new\n---\n# New\n")
    monkeypatch.setenv("LOOPR_WORKSPACE", str(shop.folder))
    monkeypatch.setenv("LOOPR_LEASE", LEASE)
    return shop


def told(desk: Desk) -> list[dict[str, Any]]:
    """Return the events."""
    return [json.loads(each) for each in desk.lines("events", "--json")]


def outside(desk: Desk) -> dict[str, tuple[int, str]]:
    """Note all files but those of loopr's state."""
    return {name: each for name, each in everything(desk.folder).items() if "/loopr/" not in f"/{name}/"}


def typed(desk: Desk, line: str) -> dict[str, Any]:
    """Have a command line refused, and return the error of its document."""
    answer = loopr(*shlex.split(line), "-C", desk.folder, "--json")
    assert answer.code == 2, (line, answer)
    error: dict[str, Any] = answer.document["error"]
    return error


def test_every_verb_passes_the_gate_or_shows() -> None:
    """A verb that is new is refused to a loop, or is shown to change nothing: it must be tried below."""
    tried = CHANGES.keys() | SHOWS.keys() | ELSEWHERE
    assert tried <= set(leaves()) <= tried | TO_COME.keys()
    changing = {name for name, tool in TOOLS.items() if not tool.reads}
    verbs = {each.replace(" ", "_") for each in CHANGES}
    assert changing - verbs == {"convoy"}


def test_every_wish_has_a_verb_or_is_to_come() -> None:
    """The table names what the verbs ask for, and what is being built."""
    lines = [line for each in CHANGES.values() for line in each]
    asked = {name for name in ACTS if any(f"{line} ".startswith(f"{name} ") for line in lines)}
    assert set(ACTS) - asked == {"land --yes", *TO_COME}


THERE = CHANGES | {name: lines for name, lines in TO_COME.items() if name in set(leaves())}


@pytest.mark.parametrize("line", [line for each in THERE.values() for line in each])
def test_what_changes_is_refused_to_a_loop(busy: Desk, line: str) -> None:
    """Whatever changes the workspace is refused to a loop: nothing moves but what tells of it."""
    before, files = told(busy), outside(busy)
    error = typed(busy, line)
    assert error["code"] == "not_allowed"
    assert f"lease {LEASE}" in error["message"]
    assert "a person types `loopr " in error["hint"]
    news = told(busy)[len(before) :]
    assert [(each["event"], each["loop"], each["actor"]) for each in news] == [("steering_refused", LOOP, LEASE)]
    assert outside(busy) == files


@pytest.mark.parametrize(
    "line",
    ["convoy create @x endpoints", "convoy add @draft endpoints", "pause endpoints --now", "retry endpoints --fresh"],
)
def test_the_line_for_a_person_is_the_one_that_was_refused(busy: Desk, line: str) -> None:
    """What the hint tells a person to type is a verb that there is, and asks for no less."""
    assert f"a person types `loopr {line}`" in typed(busy, line)["hint"]


@pytest.mark.parametrize("line", [line for each in SHOWS.values() for line in each])
def test_what_shows_is_open_to_a_loop(busy: Desk, line: str) -> None:
    """Whatever shows, or says what it would do, is open to a loop, and changes nothing."""
    before, files = told(busy), outside(busy)
    answer = loopr(*shlex.split(line), "-C", busy.folder)
    assert "not_allowed" not in answer.out
    assert "may not" not in answer.err
    assert "may never" not in answer.err
    assert told(busy) == before
    assert {each for each in outside(busy).items() ^ files.items() if "objects" not in each[0]} == set()


@pytest.mark.parametrize("name", sorted(name for name, tool in TOOLS.items() if not tool.reads))
def test_a_tool_is_refused_in_the_words_of_its_verb(busy: Desk, name: str) -> None:
    """An agent within a loop is told what a command line would be told, and nothing changes."""
    leases = {"leases": ["oauth/tokens/refresh#1"]} if name.startswith("lease") else {"ids": ["endpoints"]}
    plain = f"{name.replace('_', ' ')} {next(iter(leases.values()))[0]}"
    given, line = GIVEN.get(name, (leases, plain))
    files = outside(busy)
    text, failed = call(Desk(busy.folder, busy.clock), name, **given)
    assert failed
    assert json.loads(text)["error"] == typed(busy, line)
    assert json.loads(text)["error"]["code"] == "not_allowed"
    assert outside(busy) == files
    assert told(busy)[-1]["event"] == "steering_refused"


# --- who asks ---------------------------------------------------------------------------------------------------------


def asker(folder: Path, **environ: str) -> tuple[str, str, str]:
    """Say who asks in a folder with some variables: kind, name, and how the lease stands."""
    found = who_asks(Workspace(folder, environ={"USER": "ada", **environ})).asker
    return found.kind, found.name, found.state


def test_who_asks_is_read_from_the_marks(shop: Desk) -> None:
    """A live lease is a loop's, one that is over or unknown counts as one; a hook and a person are told apart."""
    shop.start()
    shop.choose()
    shop.run(LOOP)
    here, root = shop.folder, str(shop.folder)
    hook = {"LOOPR_HOOK": "on_park", "LOOPR_LEASE": "hooks/0/on_park.7"}
    assert asker(here) == ("person", "ada", "live")
    assert asker(here, LOOPR_WORKSPACE=root) == ("person", "ada", "live")
    assert asker(here, LOOPR_WORKSPACE=root, LOOPR_LEASE=LEASE) == ("loop", LEASE, "live")
    assert asker(here, LOOPR_LEASE=LEASE) == ("loop", LEASE, "live")
    assert asker(here, LOOPR_WORKSPACE=root, **hook) == ("hook", "hook on_park", "live")
    forged = hook | {"LOOPR_LEASE": LEASE}
    assert asker(here, LOOPR_WORKSPACE=root, **forged)[0] == "loop"
    assert asker(here, LOOPR_WORKSPACE=root, LOOPR_HOOK="land.check") == ("judge", "land.check", "live")
    for wrong in (f"{LOOP}#2", f"{LOOP}#x", "nobody#1", "x", f"{LOOP}#{'9' * 5000}"):
        assert asker(here, LOOPR_WORKSPACE=root, LOOPR_LEASE=wrong) == ("loop", wrong, "unknown")
        assert asker(here, LOOPR_LEASE=wrong)[0] == "person"
    assert shop("cancel", LOOP).code == 0
    assert asker(here, LOOPR_WORKSPACE=root, LOOPR_LEASE=LEASE) == ("loop", LEASE, "over")


def test_another_workspace_is_nobodys_business(shop: Desk, tmp_path: Path) -> None:
    """In a repository of its own whoever bears marks of this one is a person; in a worktree of this one it is not."""
    shop.start()
    shop.choose()
    marks = {"LOOPR_WORKSPACE": str(shop.folder), "LOOPR_LEASE": LEASE, "LOOPR_HOOK": ""}
    other = repository(tmp_path / "other")
    assert asker(other, **marks)[0] == "person"
    inside = repository(shop.folder / "scratch")
    assert asker(inside, **marks)[0] == "person"
    git(shop.folder, "worktree", "add", "--quiet", "--detach", str(tmp_path / "beside"))
    assert asker(tmp_path / "beside", **marks)[0] == "loop"
    (tmp_path / "link").symlink_to(shop.folder)
    assert asker(tmp_path / "link", **marks)[0] == "loop"
    linked = marks | {"LOOPR_WORKSPACE": str(tmp_path / "link")}
    assert asker(shop.folder, **linked)[0] == "loop"
    assert asker(tmp_path / "beside", **marks | {"LOOPR_WORKSPACE": str(tmp_path / "beside")})[0] == "loop"


def test_who_takes_its_mark_off_still_has_a_parent(busy: Desk) -> None:
    """A process without marks is a loop's while one above it bears those of a live lease, and nobody's else."""
    command = [sys.executable, "-m", "loopr", "stop", "--json", "-C", str(busy.folder)]
    line = f"env -u LOOPR_LEASE -u LOOPR_WORKSPACE {shlex.join(command)}; exit $?"
    bare = {key: value for key, value in this_tree().items() if not key.startswith("LOOPR")}

    def ran(**marks: str) -> subprocess.CompletedProcess[str]:
        env = bare | marks
        return subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, check=False)

    marks = {name: os.environ[name] for name in ("LOOPR_WORKSPACE", "LOOPR_LEASE")}
    found = ran(**marks)
    assert found.returncode == 2, found
    assert "above this one is the command of" in json.loads(found.stdout)["error"]["message"]
    assert ran(**marks | {"LOOPR_LEASE": f"{LOOP}#7"}).returncode == 0  # of a shell that is older than its lease
    assert ran().returncode == 0


def test_a_setting_of_ones_own_counts_for_nothing(busy: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop brings no permission along: neither by --set, nor by a file that nobody has taken up."""
    assert typed(busy, "cancel endpoints --set 'types.code.may=[cancel]'")["code"] == "not_allowed"
    monkeypatch.setenv("LOOPR_TYPES__CODE__MAY", "[cancel]")
    assert typed(busy, "cancel endpoints")["code"] == "not_allowed"
    monkeypatch.delenv("LOOPR_TYPES__CODE__MAY")
    path = busy.folder / "loopr.yml"
    path.write_text(path.read_text().replace("run: make code", "run: make code, may: [cancel]"))
    assert typed(busy, "cancel endpoints")["code"] == "not_allowed"
