"""What a running engine keeps apart: loops, generations, iterations, the user's files, and its own environment."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.core.model import Usage
from loopr.driving.use import LATE_MS, Span, use_of
from loopr.world.processes import Outcome
from tests.e2e.repos import Repo, opened

TREE = {"PYTHONPATH": str(Path(__file__).parents[2])}  # a relative one would name the user's repository
FAST = "retry: {base_secs: 0.05}\ntimeouts: {grace_secs: 0.5}\n"
SHADOW = {"click.py": "raise SystemExit('a file of the repository ran in the engine')\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def ready(repo: Repo, run: str, *, more: str = "", text: str = "", names: str = "a") -> None:
    """Write settings and a plan of loops that run a script, which may wait at the gate."""
    repo.gate("gate")
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more}}}\n{FAST}{text}")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def change(repo: Repo, old: str, new: str) -> None:
    """Change a word of the settings wherever it stands."""
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace(old, new))


def problems(repo: Repo) -> list[dict[str, str]]:
    """Return what `status` says is wrong."""
    found: list[dict[str, str]] = repo.loopr("status", "--json").document["problems"]
    return found


# --- checks and reviews ---------------------------------------------------------------------------------------------


def test_a_review_that_also_speaks_on_stderr(repo: Repo) -> None:
    """What a review says on stderr is no part of its verdict."""
    review = repo.script("review", 'echo "APPROVED: fine"; echo "note: 3 tokens" >&2')
    ready(repo, "echo x > f", more=f", review: '{review}', max_iterations: 1")
    repo.loopr("start", "plan.md")
    assert repo.statuses()["demo/a"] == "complete"


def test_a_check_of_artifacts_answers_for_one_loop(repo: Repo) -> None:
    """The check's yes to one loop's artifact is not taken for a yes to that of another loop."""
    run = repo.script(
        "spec",
        'printf -- "---\\nchildren: [{id: x}]\\n---\\n# Spec\\n" > "$LOOPR_OUTPUT"\n'
        'test "$LOOPR_LOOP" != demo/b || echo BAD >> "$LOOPR_OUTPUT"',
    )
    check = repo.script("check", '! grep -q BAD "$LOOPR_OUTPUT"')
    repo.settings(
        "types:\n  plan: {child: spec}\n"
        f"  spec: {{child: code, run: '{run}', check: '{check}', max_iterations: 1, parallel: false}}\n  code: {{}}\n"
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=None)
    statuses = repo.statuses()
    assert statuses["demo/a"] == "complete"
    assert statuses["demo/b"] != "complete"


def test_an_artifact_of_an_earlier_iteration(repo: Repo) -> None:
    """An artifact that an iteration has written, and a check has refused, is not published for a later iteration."""
    ready(
        repo,
        'echo "$LOOPR_ITERATION" > f; test "$LOOPR_ITERATION" != 1 || echo "# stale" > "$LOOPR_OUTPUT"',
        more=", check: '{}'".format(
            repo.script(
                "check",
                'test "$LOOPR_ITERATION" != 1; test -e "$DESK/once" && exit 0; touch "$DESK/once"; exit 75',
            )
        ),
    )
    repo.loopr("start", "plan.md")
    assert "stale" not in (repo.root / "specs/demo/a/code.md").read_text()


# --- what a command does to the engine's own files --------------------------------------------------------------------


def test_a_command_replaces_its_folder_by_a_file(repo: Repo) -> None:
    """A command that puts a file in the place of `.loopr` gets its folder back for the next iteration."""
    ready(repo, 'rm -rf .loopr; echo x > .loopr; test "$LOOPR_ITERATION" = 2')
    repo.loopr("start", "plan.md")
    assert repo.statuses()["demo/a"] == "complete"


def test_a_command_plants_a_link(repo: Repo) -> None:
    """A link that a command leaves in `.loopr` is never written through."""
    ready(repo, 'rm -f .loopr/ready; ln -s "$DESK/planted" .loopr/ready; test "$LOOPR_ITERATION" = 2')
    repo.loopr("start", "plan.md", code=None)
    assert repo.loops()["demo/a"]["iteration"] == 2
    assert not (repo.desk / "planted").exists()


# --- modules and variables of whoever starts it -----------------------------------------------------------------------


def test_detached_with_settings(repo: Repo) -> None:
    """`start --detach` takes settings from its command line, too."""
    ready(repo, "true")
    repo.loopr("start", "--detach", "--set", "concurrency.max_loops=3", "plan.md")
    repo.loopr("wait", "demo")
    assert repo.statuses()["demo"] == "complete"


def test_detached_beside_a_module_of_the_same_name(repo: Repo) -> None:
    """An engine in the background never imports what lies in the user's repository."""
    ready(repo, "true")
    repo.write(SHADOW)
    repo.loopr("run", "--detach", **TREE)


def test_landing_by_itself_beside_a_module_of_the_same_name(repo: Repo) -> None:
    """Landing by itself never imports what lies in the user's repository."""
    ready(repo, "echo x > f", text="land: {mode: auto}\n")
    repo.write(SHADOW)
    repo.git("add", "click.py")
    repo.git("commit", "--quiet", "--message=click", "--", "click.py")
    repo.loopr("start", "plan.md", **TREE)
    assert not repo.loopr("status", "--json", **TREE).document["problems"]


def test_a_hook_without_gits_variables(repo: Repo) -> None:
    """A hook does not inherit the GIT_DIR and GIT_INDEX_FILE of whoever has started the engine."""
    hook = repo.script("hook", 'env > "$DESK/environment"')
    ready(repo, "true", text=f"hooks: {{on_complete: '{hook}'}}\n")
    place = repo.root / ".git"
    repo.loopr("start", "plan.md", code=None, GIT_DIR=str(place), GIT_INDEX_FILE=str(place / "index"))
    names = {line.partition("=")[0] for line in repo.note("environment").splitlines()}
    assert "DESK" in names
    assert not names & {"GIT_DIR", "GIT_INDEX_FILE"}


# --- changes meanwhile ------------------------------------------------------------------------------------------------


def test_a_declared_loop_begins_afresh_twice(repo: Repo) -> None:
    """A declared loop that is begun afresh again and again settles each time, and the engine ends."""
    run = repo.script("code", 'tell "$LOOPR_LOOP"; wait_at gate')
    repo.gate("gate")
    repo.settings(f"types:\n  plan: {{child: spec}}\n  spec: {{child: code}}\n  code: {{run: '{run}'}}\n{FAST}")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, children: [{id: c}]}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.loopr("retry", "--fresh", "--yes", "demo/s")
    repo.until("settled", 2)
    repo.loopr("retry", "--fresh", "--yes", "demo/s")
    repo.gates["gate"].open()
    process.ended()
    assert set(repo.statuses().values()) == {"complete"}


def test_the_worktree_of_an_older_generation(repo: Repo) -> None:
    """The worktree of a loop's older generation does not stay behind once the new one is done."""
    ready(repo, 'echo "$LOOPR_LOOP" > f; tell x; wait_at gate')
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a, body: other}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "--yes", "plan.md")
    repo.take("demo")
    repo.heard()
    repo.gates["gate"].open()
    process.ended()
    repo.loopr("run")
    assert not (repo.root / "worktrees/demo.a.g1").exists()


def test_a_problem_that_was_mended_while_nobody_looked(repo: Repo) -> None:
    """A problem with the settings that is mended while no engine lives is no longer told after the next one."""
    ready(repo, "tell x; wait_at gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    change(repo, "types:", "nonsense: 1\ntypes:")
    repo.until("problem_seen")
    process.kill()
    change(repo, "nonsense: 1\n", "")
    repo.gates["gate"].open()
    repo.loopr("run")
    assert not problems(repo)


def test_a_type_that_is_gone_after_a_restart(repo: Repo) -> None:
    """A command whose type the settings no longer have does not live on under the next engine."""
    ready(repo, 'echo $$ > "$DESK/pid"; tell x; wait_at gate')
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("attempt_started")
    process.kill()
    change(repo, "child: code", "child: task")
    change(repo, "  code:", "  task:")
    repo.loopr("config", "accept", "--yes")  # they change while it lives, so they wait for a word
    repo.loopr("run", code=None)
    assert not Path("/proc", repo.note("pid").strip()).exists()


def test_a_stop_while_a_landing_waits(repo: Repo) -> None:
    """An engine whose landing waits for somebody who has locked a branch still ends when it is told to."""
    ready(repo, "echo x > f; tell x; wait_at gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    (repo.root / ".git/refs/heads/loopr/demo.lock").touch()
    repo.gates["gate"].open()
    repo.until("problem_seen")
    process.signal(signal.SIGINT)
    process.says("draining")
    process.signal(signal.SIGTERM)
    process.ended(None)


def test_a_night_without_an_engine_costs_a_loop_nothing(repo: Repo) -> None:
    """A command that ended while no engine lived is charged for the time that it ran, not until somebody looked."""
    ready(repo, "echo x > f; tell x; wait_at gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("attempt_started")
    process.kill()
    repo.gates["gate"].open()
    ended = repo.root / ".git/loopr/runs/demo.a.g1/1/outcome.json"
    repo.wait_for(lambda: ended.exists() and time.time() - ended.stat().st_mtime > 2 * LATE_MS / 1000)
    (began,) = repo.until("attempt_started")
    took = ended.stat().st_mtime - began["at"] / 1000
    repo.loopr("run")
    used = repo.loopr("show", "demo/a", "--json").document["loop"]["usage"]["seconds"]
    assert 0 < used <= took + 0.1


def test_the_last_word_of_a_lost_command_is_its_end(tmp_path: Path) -> None:
    """Where nothing saw a command end, as in a power cut, it ran until it last wrote."""
    (tmp_path / "stdout.log").write_text("at work\n")
    os.utime(tmp_path / "stdout.log", (1_000.5, 1_000.5))
    lost = Outcome("lost")
    assert use_of(lost, None, None, Span(tmp_path, 1_000_000, 9_000_000)) == Usage(ms=500)
    assert use_of(lost, None, None, Span(tmp_path, None, 9_000_000)) is None
    assert use_of(Outcome("exited", wall_ms=700), None, None, Span(tmp_path, 1_000_000, 1_000_800)) is None
