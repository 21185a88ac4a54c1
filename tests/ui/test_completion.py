"""Completion: a shell is offered verbs, options and the ids that a verb is about, or nothing at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from loopr.core.model import Failure
from loopr.ui.cli import VERBS, cli
from loopr.ui.cli.completion import VALUED
from loopr.ui.completing import PLACES
from tests.ui.calls import loopr, this_tree
from tests.ui.scenes import Desk, flat

SETTINGS = """\
types:
  plan: {child: spec}
  spec: {child: task, check: none}
  task: {run: make task, check: none}
concurrency: {max_loops: 4}
lanes: {slow: {}}
projects: {default: {}, web: {}}
"""
PLAN = """\
---
id: p
specs:
  - id: s
    tasks: [{id: parked}, {id: failed}, {id: live}, {id: held}, {id: late, needs: [live]}]
---
# P
"""
TRIED = ("p", "p/s", "p/s/parked", "p/s/failed", "p/s/live")


@pytest.fixture
def scene(desk: Desk) -> Desk:
    """Give a workspace with loops in many states, two plans, and a convoy."""
    desk.write("loopr.yml", SETTINGS)
    desk.start(PLAN.replace("parked", "parked, title: Broken"))
    assert desk.start(flat(["gross"], "other").replace("id: other", "id: other\nproject: web"), "other.md").code == 0
    desk("pause", "p/s/held")
    assert set(desk.choose()) >= {"p/s/parked", "p/s/failed", "p/s/live"}
    desk.run("p/s/parked")
    desk.end("p/s/parked", Failure.CONFIG, "no such program")
    assert loopr("-C", desk.folder, "convoy", "create", "@night", "p").code == 0
    return desk


def offered(desk: Desk, line: str, shell: str = "bash") -> list[str]:
    """Return what a shell is offered at the end of a command line."""
    words = line.split(" ")
    env = this_tree() | {"_LOOPR_COMPLETE": f"{shell}_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    env |= {"COMP_WORDS": line, "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "loopr"], cwd=desk.folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def values(desk: Desk, line: str) -> list[str]:
    """Return the plain words that bash is offered."""
    return [each.removeprefix("plain,") for each in offered(desk, line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("loopr reset ", ["p/s/parked", "@night"]),
        ("loopr retry p", ["p/s/parked"]),
        ("loopr resume ", ["p/s/held", "@night"]),
        ("loopr logs ", ["other", "other/gross", "other/gross/task", *TRIED]),
        ("loopr logs li", ["live"]),
        ("loopr logs s/li", ["s/live"]),
        ("loopr approve ", ["@night"]),
        ("loopr iterate ", []),
        ("loopr land ", ["other", "p"]),
        ("loopr tree o", ["other", "other/gross", "other/gross/task"]),
        ("loopr ls project:", ["default", "web"]),
        ("loopr wait @", ["@night"]),
        ("loopr convoy add @night other/gross/", ["other/gross/task"]),
        ("loopr clear p/s/h", []),
        ("loopr clear p/s/l", ["p/s/late"]),
        ("loopr clear p/s/late p/s/l", []),
        ("loopr cancel --reason x p/s/he", ["p/s/held"]),
        ("loopr gc --forget other/gross/", ["other/gross/task"]),
        ("loopr set concurrency.max_l", ["concurrency.max_loops"]),
        ("loopr config explain land.m", ["land.mode"]),
        ("loopr agent show cl", ["claude"]),
        ("loopr help ver", ["version"]),
        ("loopr -C nowhere/at/all tree ", []),
        ("loopr tree --at 'x", []),
    ],
)
def test_ids_by_state_and_verb(scene: Desk, line: str, found: list[str]) -> None:
    """Each verb is offered the loops that it has something to do with; one that is typed already is not repeated."""
    assert values(scene, line) == found


def test_files_for_plans(scene: Desk) -> None:
    """`start` takes files, `simulate` plans and files, and `-C` a folder."""
    assert offered(scene, "loopr start pl") == ["file,pl"]
    assert offered(scene, "loopr simulate o") == ["plain,other"]
    assert offered(scene, "loopr simulate ./o") == ["file,./o"]
    assert offered(scene, "loopr -C wo") == ["dir,wo"]


def test_other_shells_are_told_what_an_id_is(scene: Desk) -> None:
    """Zsh and fish show beside an id its title, or why it stands still."""
    assert offered(scene, "loopr reset p", "fish") == ["plain,p/s/parked\tno such program"]
    assert offered(scene, "loopr reset p", "zsh") == ["plain", "p/s/parked", "no such program"]


def test_nothing_is_written_where_nothing_is(desk: Desk) -> None:
    """Without a journal, with one that is damaged, or with settings that are wrong, a shell is told nothing."""
    assert values(desk, "loopr logs ") == []
    assert sorted(each.name for each in desk.folder.iterdir()) == [".git"]
    desk.start(flat(["a"]))
    desk.write("loopr.yml", "types: [\n")
    assert values(desk, "loopr why p/") == ["p/a"]
    assert values(desk, "loopr agent show c") == []
    (desk.folder / ".git/loopr/loopr.db").write_bytes(b"nothing of the kind" * 500)
    assert values(desk, "loopr why p/") == []


def test_no_id_reads_the_settings_or_decides(scene: Desk) -> None:
    """What is asked at each TAB imports neither settings nor what decides."""
    code = (
        "import os, sys\nos.environ.update(_LOOPR_COMPLETE='bash_complete', COMP_LINE='loopr approve ')\n"
        "from loopr.ui.cli import main\nmain([])\n"
        "print([each for each in sys.modules if each in ('yaml', 'ruamel', 'loopr.core.events', 'loopr.core.forest')])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=scene.folder, env=this_tree(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["plain,@night", "[]"]


def _options(command: click.Command) -> list[click.Option]:
    """List the options of a verb with all of its parts."""
    found = [each for each in command.params if isinstance(each, click.Option)]
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        found += _options(part)
    return found


@pytest.mark.parametrize("verb", list(VERBS))
def test_no_flag_is_taken_for_an_option_with_a_value(verb: str) -> None:
    """What is skipped with the word behind it takes one, in each verb that has it."""
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    flags = {name for each in _options(command) if each.is_flag for name in (*each.opts, *each.secondary_opts)}
    assert flags & VALUED == set()


def test_every_verb_that_is_completed_exists() -> None:
    """The table names verbs that there are."""
    assert {each.split()[0] for each in PLACES} - {*VERBS, "update"} == set()


# --- the scripts --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["loopr", "tr"], ["tree"]),
        (["loopr", "com"], ["completion"]),
        (["loopr", "config", "sch"], ["schema"]),
        (["loopr", "doctor", "--js"], ["--json"]),
        (["loopr", "nonsense", "x"], []),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], found: list[str]) -> None:
    """A bash that has read the script completes verbs, parts of verbs and options, and is silent on nonsense."""
    program = tmp_path / "loopr"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m loopr "$@"\n')
    program.chmod(0o755)
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        'eval "$(loopr completion bash)"\n'
        f"COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n"
        '_loopr_completion loopr; printf "%s\\n" "${COMPREPLY[@]}"\ncomplete -p loopr'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=this_tree() | {"PATH": path}
    )
    *completed, registered = done.stdout.split("\n")[:-1]
    assert [each for each in completed if each] == found
    assert registered.endswith("-F _loopr_completion loopr")
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_shows_a_description_as_a_whole(scene: Desk, tmp_path: Path) -> None:
    """A title or a reason with commas stands beside its id with all of its words."""
    program = tmp_path / "loopr"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m loopr "$@"\n')
    program.chmod(0o755)
    scene.run("p/s/failed")
    scene.end("p/s/failed", Failure.CONFIG, "first, second\nand last")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    script = 'loopr completion fish | source; complete -C "loopr reset p/s/f"'
    command = ["fish", "--no-config", "-c", script]
    env = this_tree() | {"PATH": path}
    done = subprocess.run(command, cwd=scene.folder, stdout=subprocess.PIPE, check=True, env=env)
    assert done.stdout.decode() == "p/s/failed\tfirst, second and last\n"


def test_the_lines_for_each_shell_stand_apart() -> None:
    """The help says for each shell, on a line of its own, what is typed where."""
    lines = loopr("completion", "--help").out.splitlines()
    for shell in ("bash", "zsh", "fish"):
        (found,) = [each for each in lines if each.strip().startswith(f"{shell}:")]
        assert f"loopr completion {shell}" in found
        assert "in ~/." in found
    assert not any("\\b" in each or "\b" in each for each in lines)


@pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o nosort -F _loopr_completion loopr"),
        ("zsh", "#compdef loopr"),
        ("fish", "complete --no-files --command loopr"),
    ],
)
def test_every_shell_gets_a_script_of_its_own(tmp_path: Path, shell: str, mark: str) -> None:
    """The script names loopr and the protocol of its shell, and a shell that is here can read it."""
    done = loopr("completion", shell)
    assert done.code == 0
    assert mark in done.out
    assert f"_LOOPR_COMPLETE={shell}_complete" in done.out
    assert "%(" not in done.out
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(done.out)
        subprocess.run([shell, "-n", str(script)], check=True)


def test_an_unknown_shell_is_refused() -> None:
    """A shell that there is no script for is exit 2 and names those that there are."""
    refused = loopr("completion", "tcsh")
    assert refused.code == 2
    assert "bash" in refused.err
