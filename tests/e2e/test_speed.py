"""What the verbs that show may import: a module too many is what makes them slow, long before a clock shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ui.calls import loopr, repository, this_tree
from tests.ui.scenes import OAUTH

SLOW = ["asyncio", "git", "jinja2", "mcp", "networkx", "psutil", "pydantic", "rich", "ruamel", "watchdog"]
DECIDING = [
    "loopr.core.choose",
    "loopr.core.events",
    "loopr.core.forest",
    "loopr.core.intake",
    "loopr.engine",
    "loopr.hands",
]
PROGRAM = """
import json, sys
from loopr.ui.cli import main
code = main(sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Give a repository with a plan, and no settings file."""
    found = repository(tmp_path)
    (found / "plan.md").write_text(OAUTH)
    assert loopr("start", "--no-run", "-C", found, found / "plan.md").code == 0
    return found


def imported(repo: Path, verb: str) -> set[str]:
    """Run a verb in a process of its own, and return what it had imported in the end."""
    command = [sys.executable, "-c", PROGRAM, *verb.split()]
    ended = subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True)
    said = json.loads(ended.stderr.splitlines()[-1])
    assert said["code"] == 0
    return set(said["modules"])


@pytest.mark.parametrize(
    "verb", ["--help", "tree", "tree --json", "ls", "status", "why code", "show code", "diff --waiting"]
)
def test_a_verb_that_shows_imports_little(repo: Path, verb: str) -> None:
    """No library that takes long to import, and nothing that decides, is loaded by a verb that only shows."""
    assert imported(repo, verb) & {*SLOW, *DECIDING} == set()


def test_only_one_verb_loads_the_sdk_for_agents(repo: Path) -> None:
    """The protocol's SDK, which takes longer to import than any verb takes to answer, is loaded by `mcp` alone."""
    (repo / "every.py").write_text(
        "import sys\n"
        "from importlib import import_module\n"
        "from loopr.ui.cli import VERBS\n"
        "for module, _ in VERBS.values():\n"
        "    import_module(f'loopr.ui.cli.{module}')\n"
        "print([each for each in ('mcp', 'mcp_types', 'anyio', 'pydantic') if each in sys.modules])\n"
    )
    command = [sys.executable, str(repo / "every.py")]
    assert subprocess.run(command, check=True, capture_output=True, text=True, env=this_tree()).stdout == "[]\n"


def test_settings_that_did_not_change_are_not_read(repo: Path) -> None:
    """With a settings file whose meaning is known to the journal, YAML is not loaded either."""
    (repo / "loopr.yml").write_text("version: 1\nconcurrency: {max_loops: 7}\n")
    assert loopr("start", "--no-run", "-C", repo, repo / "plan.md").code == 0
    assert "ruamel" not in imported(repo, "tree")
    (repo / "loopr.yml").write_text("version: 1\nconcurrency: {max_loops: 8}\n")
    assert loopr("status", "-C", repo, "--json").document["capacity"]["max_loops"] == 8
    assert "networkx" not in imported(repo, "tree")


@pytest.mark.parametrize("verb", ["next", "simulate oauth", "start -n plan.md"])
def test_a_verb_that_thinks_imports_no_more_than_it_needs(repo: Path, verb: str) -> None:
    """Previews need what decides, and still no library for terminals, servers or watching."""
    more = {"simulate oauth": {"networkx"}, "start -n plan.md": {"git"}}  # the critical path; hooks and filters
    assert imported(repo, verb) & {*SLOW} <= more.get(verb, set()) | {"ruamel"}  # a plan's front matter is YAML
