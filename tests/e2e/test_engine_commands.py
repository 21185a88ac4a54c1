"""What a command is given: folder, variables, prompt, ports, arguments; and what it is not given."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, Repo, opened

SHOW = """
env -0 | sort -z > "$DESK/env.$(basename "$LOOPR_LOOP")"
cat > "$DESK/stdin.$(basename "$LOOPR_LOOP")"
pwd > "$DESK/pwd.$(basename "$LOOPR_LOOP")"
ls -A .loopr > "$DESK/own.$(basename "$LOOPR_LOOP")"
cp -r .loopr "$DESK/kept.$(basename "$LOOPR_LOOP")"
"""
STATUS = 'git status --porcelain > "$DESK/status.$(basename "$LOOPR_LOOP")"\n'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def environment(repo: Repo, name: str = "a") -> dict[str, str]:
    """Return the environment that a loop's command had."""
    words = (each.partition("=") for each in repo.note(f"env.{name}").split("\0") if each)
    return {key: value for key, _, value in words}


def plan(repo: Repo, run: str, *, more: str = "", names: str = "a", text: str = "", worktrees: str = "") -> None:
    """Set a repository up for a plan with code loops of some names, and a command as YAML."""
    projects = "" if "projects:" in text else "projects: {api: {}}\n"
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: {run}{more}}}\n{projects}{text}", worktrees=worktrees
    )
    children = ", ".join(f"{{id: {each}, body: Do {each}.}}" for each in names.split())
    repo.write({"plan.md": f"---\nid: demo\nproject: api\nchildren: [{children}]\n---\n# Demo\n"})


def test_the_environment(repo: Repo) -> None:
    """Every variable that the reference names is there with its value, in the command and in the check."""
    run, check = repo.script("code", SHOW + STATUS), repo.script("check", 'env -0 | sort -z > "$DESK/env.check"')
    plan(repo, f"'{run}'", more=f", max_iterations: 7, timeouts: {{wall_secs: 1000}}, check: '{check}'")
    before = time.time()
    repo.loopr("start", "plan.md")
    env, folder = environment(repo), repo.root / "worktrees/demo.a.g1"
    own = folder / ".loopr"
    wanted = {
        "LOOPR": "1",
        "LOOPR_WORKSPACE": str(repo.root),
        "LOOPR_PLAN": "demo",
        "LOOPR_LOOP": "demo/a",
        "LOOPR_TYPE": "code",
        "LOOPR_PARENT": "demo",
        "LOOPR_DEPTH": "1",
        "LOOPR_PROJECT": "api",
        "LOOPR_ITERATION": "1",
        "LOOPR_MAX_ITERATIONS": "7",
        "LOOPR_ATTEMPT": "1",
        "LOOPR_LEASE": "demo/a#1",
        "LOOPR_WORKTREE": str(folder),
        "LOOPR_BRANCH": "loopr/demo.a.g1",
        "LOOPR_BASE_COMMIT": repo.git("rev-parse", "main"),
        "LOOPR_PLAN_BRANCH": "loopr/demo",
        "LOOPR_LOG_DIR": str(repo.root / ".git/loopr/runs/demo.a.g1/1"),
        "LOOPR_TOKENS_LEFT": "",
    }
    assert {name: env.get(name) for name in wanted} == wanted
    paths = ("INPUT", "OUTPUT", "PROMPT_FILE", "FEEDBACK_FILE", "CONTEXT_FILE", "RESULT_FILE")
    assert {Path(env[f"LOOPR_{name}"]).parent for name in paths} == {own}
    assert before + 900 < int(env["LOOPR_DEADLINE"]) < time.time() + 1000
    assert 1024 < int(env["LOOPR_PORT_BASE"]) < 32768
    assert len(env["TRACEPARENT"].split("-")) == 4
    assert env["GIT_CEILING_DIRECTORIES"].split(":")[0] == str(repo.root / "worktrees")
    assert repo.note("pwd.a").strip() == str(folder)
    assert repo.note("status.a") == "", "what is loopr's own is ignored by git"
    judge = environment(repo, "check")
    differ = {name for name in env if env[name] != judge.get(name)}
    assert differ <= {"_", "LOOPR_DEADLINE", "SHLVL"}, differ


def test_the_files_beside_a_command(repo: Repo) -> None:
    """The input is the parent's artifact, the context names the siblings, and the prompt says what to do."""
    plan(repo, f"'{repo.script('code', SHOW)}'", names="a b")
    repo.loopr("start", "plan.md")
    assert repo.note("kept.a/input.md") == (repo.root / "specs/demo/plan.md").read_text()
    assert "demo/b" in repo.note("kept.a/context.md")
    assert repo.note("stdin.a") == repo.note("kept.a/prompt.md")
    assert "Do a." in repo.note("stdin.a")
    assert repo.note("kept.a/feedback.md") == ""
    assert repo.note("kept.a/output.md") == ""


def test_a_prompt_in_a_file(repo: Repo) -> None:
    """A command that names {prompt_file} finds the prompt there and nothing on its standard input."""
    script = 'cat > "$DESK/stdin"; cp "$1" "$DESK/prompt"; echo "$2" > "$DESK/loop"'
    plan(repo, f"[sh, -c, '{script}', x, '{{prompt_file}}', '{{loop}} {{none}}']")
    repo.loopr("start", "plan.md")
    assert repo.note("stdin") == ""
    assert "Do a." in repo.note("prompt")
    assert repo.note("loop") == "demo/a {none}\n"


def test_a_list_is_no_shell(repo: Repo) -> None:
    """A command as a list is an argument vector: nothing in it is code."""
    repo.write({"show": '#!/bin/sh\nprintf "%s\\n" "$@" > "$DESK/arguments"\n'})
    (repo.root / "show").chmod(0o755)
    repo.git("add", "show")
    repo.git("commit", "--quiet", "--message=show")
    plan(repo, "[./show, '$HOME; rm -rf /', '{loop}', '*']")
    repo.loopr("start", "plan.md")
    assert repo.note("arguments").splitlines() == ["$HOME; rm -rf /", "demo/a", "*"]


def test_what_the_environment_loses(repo: Repo) -> None:
    """CLAUDECODE, git's own variables and what env.unset names are gone; env.set is there, and pretends to nothing."""
    env = ", env: {set: {MINE: yes it is, LOOPR_LOOP: another}, unset: [THEIRS]}"
    plan(repo, f"'{repo.script('code', SHOW)}'", more=env)
    repo.env |= {"CLAUDECODE": "1", "GIT_DIR": str(repo.root / ".git"), "THEIRS": "x", "KEPT": "y", "LOOPR_OLD": "z"}
    repo.loopr("start", "plan.md")
    found = environment(repo)
    assert found["MINE"] == "yes it is"
    assert found["LOOPR_LOOP"] == "demo/a"
    assert found["KEPT"] == "y"
    assert not {"CLAUDECODE", "GIT_DIR", "THEIRS", "LOOPR_OLD"} & found.keys()


def test_ports_of_live_loops_differ(repo: Repo) -> None:
    """Loops that live at the same time have blocks of ten ports that do not overlap."""
    run = repo.script("code", 'echo "$LOOPR_PORT_BASE" >> "$DESK/ports"; tell x; wait_at gate')
    plan(repo, f"'{run}'", names="a b c d e")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(5)
    gate.open()
    process.ended()
    ports = sorted(map(int, repo.note("ports").split()))
    assert len(ports) == 5
    assert all(after - before >= 10 for before, after in zip(ports, ports[1:], strict=False))


def test_loopr_within_loopr(repo: Repo) -> None:
    """A command cannot drive or enqueue; it can look."""
    script = """
    "$PROGRAM" -C "$LOOPR_WORKSPACE" tree > "$DESK/tree"
    for verb in "start plan.md" run; do
      set +e; "$PROGRAM" -C "$LOOPR_WORKSPACE" $verb 2>> "$DESK/said"; echo $? >> "$DESK/codes"; set -e
    done
    """
    plan(repo, f"'{repo.script('code', script)}'")
    repo.loopr("start", "plan.md", PROGRAM=str(LOOPR))
    assert "demo" in repo.note("tree")
    assert repo.note("codes").split() == ["2", "2"]
    assert "a loop may never run" in repo.note("said")


def test_without_a_worktree(repo: Repo) -> None:
    """With `worktree: false` a type gets an empty folder and no branch, and hands its artifact over as any other."""
    write = 'printf -- "---\\ntasks: [{id: x}]\\n---\\n# P\\n" > "$LOOPR_OUTPUT"; ls > "$DESK/seen"; echo x > left'
    phase, code = repo.script("phase", SHOW + write), repo.script("code", 'cat "$LOOPR_INPUT" > input')
    repo.settings(f"types:\n  phase: {{run: '{phase}', worktree: false}}\n  code: {{run: '{code}'}}\n")
    repo.write({"plan.md": "---\nspecs: [{id: s, phases: [{id: a}]}]\n---\n# Demo\n"})
    users = repo.users()
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.note("seen") == ""
    env = environment(repo)
    assert (env["LOOPR_BRANCH"], env["LOOPR_PLAN_BRANCH"], env["LOOPR_BASE_COMMIT"]) == ("", "", "")
    assert [each[0] for each in repo.landed("demo")] == ["demo/s/a/x"]
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/heads/loopr/demo.s.a.g1") == ""
    assert repo.users() == users


def test_the_setup_command(repo: Repo) -> None:
    """worktrees.setup runs in each fresh worktree before the command, once for all its iterations."""
    setup = repo.script("setup", 'say "setup $LOOPR_LOOP"; echo ready > .ready; pwd > "$DESK/setup at"')
    run = repo.script("code", 'say "work $LOOPR_LOOP"; cat .ready; test $LOOPR_ITERATION = 2')
    plan(repo, f"'{run}'", worktrees=f", setup: '{setup}'")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["setup demo/a", "work demo/a", "work demo/a"]
    assert repo.note("setup at").strip() == str(repo.root / "worktrees/demo.a.g1")


def test_worktreeinclude(repo: Repo) -> None:
    """Files that git ignores and .worktreeinclude names are copied into each worktree, and never land."""
    repo.write(
        {
            ".gitignore": "*.local\nsecrets/\n",
            ".worktreeinclude": "*.local\nsecrets/\n!secrets/not.this\n",
            "settings.local": "of mine",
            "secrets/key": "k",
            "secrets/not.this": "n",
            "other.ignored": "",
        }
    )
    repo.git("add", ".gitignore", ".worktreeinclude")
    repo.git("commit", "--quiet", "--message=include")
    run = repo.script("code", 'cat settings.local secrets/key > "$DESK/copied"; echo x > x; ls -A > "$DESK/there"')
    plan(repo, f"'{run}'")
    repo.loopr("start", "plan.md")
    assert repo.note("copied") == "of minek"
    assert "other.ignored" not in repo.note("there").split()
    assert repo.git("diff", "--name-only", "main", "loopr/demo").split() == ["x"]


def test_a_command_that_does_not_read(repo: Repo) -> None:
    """A command that never reads its prompt, prints bytes that are no text, and a lot of them, is as good as any."""
    plan(repo, f"'{repo.script('code', 'head -c 3000000 /dev/urandom; head -c 300000 /dev/zero >&2; echo x > x')}'")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "x") == "x"
    loops = json.loads(repo.loopr("show", "demo/a", "--json").out)
    assert loops["loop"]["status"] == "complete"


def test_what_a_command_leaves_running(repo: Repo) -> None:
    """A child that a command leaves behind is ended with it, and keeps nobody waiting."""
    repo.gate("never")
    repo.script("left", 'echo $$ > "$DESK/pid"; tell left; wait_at never')
    run = repo.script("code", '(setsid sh "$DESK/left.sh" &); wait_at go; echo x > x')
    go = repo.gate("go")
    plan(repo, f"'{run}'", text="timeouts: {grace_secs: 1}\n")
    process = repo.begin("start", "plan.md")
    repo.heard()
    go.open()
    process.ended()
    assert not Path(f"/proc/{repo.note('pid').strip()}").exists()


def test_entries_with_commands_of_their_own(repo: Repo) -> None:
    """In a person's plan an entry's run and check take the place of its type's."""
    plan(repo, "exit 1")
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a, run: echo 1 > own, check: test -e own}]\n---\n# D\n"})
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "own") == "1"
