"""What was wrong once about verdicts, feedback and what a landing says, and must not be so again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

FAST = "retry: {base_secs: 0.05, jitter: 0}\ntimeouts: {grace_secs: 0.5}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def ready(repo: Repo, run: str, *, more: str = "", text: str = "", names: str = "a") -> None:
    """Write settings and a plan of loops that run a script."""
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more}}}\n{FAST}{text}")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


# --- exit 77 ----------------------------------------------------------------------------------------------------------


def test_nothing_to_do_is_not_judged(repo: Repo) -> None:
    """Exit 77 with nothing to land completes a loop without asking its judges; what there is to land is judged."""
    run = 'test "$LOOPR_LOOP" = demo/a || echo x > "$(basename "$LOOPR_LOOP")"; exit 77'
    judge = repo.script("judge", 'say "$LOOPR_LOOP"; exit 1')
    ready(repo, run, more=f", check: '{judge}', max_iterations: 1", names="a b")
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete", "demo/b": "failed"}
    assert repo.diary() == ["demo/b"]


def test_nothing_more_to_do_after_a_no(repo: Repo) -> None:
    """Exit 77 is no way around the judge: work of an earlier iteration that was refused is judged again."""
    run = 'test "$LOOPR_ITERATION" = 1 || exit 77; echo x > x'
    judge = repo.script("judge", 'say "$LOOPR_ITERATION"; exit 1')
    ready(repo, run, more=f", check: '{judge}', max_iterations: 2")
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses()["demo/a"] == "failed"
    assert repo.diary() == ["1", "2"]


def test_nothing_to_do_but_to_meddle(repo: Repo) -> None:
    """Exit 77 after a change of what a loop is judged by, of which nothing would land, is judged."""
    repo.write({"check.sh": "exit 1\n"})
    repo.git("add", "check.sh")
    ready(repo, "echo exit 0 > check.sh; exit 77", more=", check: sh check.sh, max_iterations: 1")
    repo.git("commit", "--quiet", "--message=check", "--", "check.sh")
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses()["demo/a"] == "failed"


def test_nothing_to_do_and_nothing_handed_over(repo: Repo) -> None:
    """Exit 77 of a loop that owes an artifact completes it only with one that is valid."""
    run = repo.script("spec", 'test "$LOOPR_LOOP" = demo/a || printf "## Codes\\n- x: X\\n" > "$LOOPR_OUTPUT"; exit 77')
    repo.settings(
        "types:\n  plan: {child: spec}\n"
        f"  spec: {{child: code, run: '{run}', check: exit 1, max_iterations: 1}}\n  code: {{run: 'true'}}\n"
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses() == {"demo": "complete", "demo/a": "failed", "demo/b": "complete", "demo/b/x": "complete"}


# --- feedback ---------------------------------------------------------------------------------------------------------


def test_the_feedback_of_another_count(repo: Repo) -> None:
    """What was refused before `retry` is told once: no more where a person asks for another try."""
    run = 'cat "$LOOPR_FEEDBACK_FILE" > "$DESK/feedback"; echo x > x; test -e "$DESK/mended" || { echo old; exit 1; }'
    ready(repo, run, more=", approve: true, max_iterations: 1")
    repo.loopr("start", "plan.md", code=1)
    (repo.desk / "mended").touch()
    repo.loopr("retry", "demo/a")
    repo.loopr("run", code=4)
    assert "old" in repo.note("feedback")
    repo.loopr("iterate", "demo/a", "--feedback", "say it in verse")
    repo.loopr("run", code=4)
    assert "say it in verse" in repo.note("feedback")
    assert "old" not in repo.note("feedback")


def test_a_retry_is_told_what_a_person_said(repo: Repo) -> None:
    """The words of a `reject` are in prompt and feedback of the next try that comes to a verdict."""
    run = 'cat "$LOOPR_FEEDBACK_FILE" > "$DESK/feedback"; echo $LOOPR_ATTEMPT > x\n'
    run += "test $LOOPR_ATTEMPT != 2 || kill -9 $$"
    ready(repo, run, more=", approve: true")
    repo.loopr("start", "plan.md", code=4)
    repo.loopr("reject", "demo/a", "--reason", "say it in verse")
    assert "say it in verse" in repo.loopr("prompt", "demo/a").out
    repo.loopr("retry", "demo/a")
    asked = repo.loopr("prompt", "demo/a").out
    assert ("This was tried before" in asked, "say it in verse" in asked) == (True, True)
    assert not repo.note("feedback")
    repo.loopr("run", code=4)
    loop = repo.loops()["demo/a"]
    assert (loop["attempt"], loop["iteration"]) == (3, 1)
    assert repo.note("feedback") == "say it in verse\n"
    assert "say it in verse" in repo.loopr("prompt", "demo/a").out
    repo.loopr("reject", "demo/a")
    repo.loopr("retry", "--fresh", "--yes", "demo/a")
    repo.loopr("run", code=4)
    assert not repo.note("feedback")


def test_a_retry_is_told_what_the_judge_said(repo: Repo) -> None:
    """After `retry` of a loop that its check has failed, the next try is told that check's words."""
    run = 'cat "$LOOPR_FEEDBACK_FILE" > "$DESK/feedback.$LOOPR_ATTEMPT"; echo $LOOPR_ATTEMPT > x'
    judge = repo.script("judge", 'echo "no, $(cat x)"; exit 1')
    ready(repo, run, more=f", check: '{judge}', max_iterations: 2")
    repo.loopr("start", "plan.md", code=1)
    repo.loopr("retry", "demo/a")
    repo.loopr("run", code=1)
    said = [repo.note(f"feedback.{each}") for each in (1, 2, 3, 4)]
    assert not said[0]
    assert ["no, 1" in said[1], "no, 2" in said[2], "no, 3" in said[3]] == [True] * 3
    assert ["Refused before" in each for each in said] == [False] * 4


def test_feedback_outlives_an_attempt_without_a_verdict(repo: Repo) -> None:
    """What a person asked for is told again after an attempt that has died."""
    run = 'echo x > x; test "$LOOPR_ITERATION" = 1 || cat "$LOOPR_FEEDBACK_FILE" > "$DESK/feedback"\n'
    run += 'if test "$LOOPR_ITERATION" = 2 && mkdir "$DESK/once"; then kill -9 $$; fi'
    ready(repo, run, more=", approve: true")
    repo.loopr("start", "plan.md", code=4)
    repo.loopr("iterate", "demo/a", "--feedback", "say it in verse")
    repo.loopr("run", code=4)
    assert repo.loops()["demo/a"]["attempt"] == 3
    assert "say it in verse" in repo.note("feedback")


# --- what a landing says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", ["true", 'mkdir "$DESK/asked" || exit 0; exit 75'], ids=["at once", "after a limit"])
def test_the_landing_names_what_was_put_back(repo: Repo, judge: str) -> None:
    """The commit that lands names each protected file that was put back before its work was judged."""
    repo.write({"check.sh": f"{judge}\n"})
    repo.git("add", "check.sh")
    ready(repo, "echo exit 0 > check.sh; echo x > x", more=", check: sh check.sh")
    repo.git("commit", "--quiet", "--message=check", "--", "check.sh")
    repo.loopr("start", "plan.md")
    assert "- check.sh (changed)" in repo.git("log", "-1", "--format=%B", "loopr/demo")
    assert repo.on_branch("demo", "check.sh") == judge


def test_files_that_two_loops_mean_to_touch(repo: Repo) -> None:
    """While two loops that name the same files are at work `status` remarks on it; a commit names what lies beyond."""
    repo.gate("gate")
    ready(
        repo,
        'it=$(basename "$LOOPR_LOOP"); mkdir -p src; echo x > "src/$it"; echo x > "top-$it"; tell x; wait_at gate',
    )
    plan = "---\nid: demo\nchildren: [{id: a, files: [src/**]}, {id: b, files: [src/a, src/b]}]\n---\n# Demo\n"
    repo.write({"plan.md": plan})
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    repo.until("attempt_started", 2)
    (said,) = repo.loopr("status", "--json").document["warnings"]
    assert "demo/a and demo/b" in said and "src/**" in said
    repo.gates["gate"].open()
    process.ended()
    said = repo.git("log", "--format=%B", "main..loopr/demo")
    assert all(f"beside the files that it names:\n- top-{each}\n" in said for each in "ab")


# --- worktrees --------------------------------------------------------------------------------------------------------


def test_a_worktree_in_which_somebody_works(repo: Repo) -> None:
    """A worktree in which a person's shell stands when its loop is done goes to no other loop."""
    repo.gate("gate")
    ready(repo, 'pwd > "$DESK/$(basename "$LOOPR_LOOP")"; tell x; wait_at gate', names="a b")
    plan = "---\nid: demo\nparallel: false\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"
    repo.write({"plan.md": plan})
    process = repo.begin("start", "plan.md")
    repo.heard()
    with subprocess.Popen(["cat"], cwd=repo.note("a").strip(), stdin=subprocess.PIPE) as shell:
        repo.gates["gate"].let_on()
        repo.heard()
        assert Path(f"/proc/{shell.pid}/cwd").readlink() == repo.root / "worktrees/demo.a.g1"
        repo.gates["gate"].open()
        process.ended()
    assert set(repo.statuses().values()) == {"complete"}


# --- what to do next --------------------------------------------------------------------------------------------------


def test_what_is_home_is_not_to_be_landed_again(repo: Repo) -> None:
    """Whoever has nothing left to do is told to bring a plan home, until it is."""
    ready(repo, "echo x > x")
    assert repo.loopr("start", "plan.md").err.splitlines()[-1] == "next: `loopr land demo`"
    repo.loopr("land", "--yes", "demo")
    assert repo.loopr("start", "plan.md").err.splitlines()[-1] == "next: `loopr tree`"
    assert repo.loopr("run").err.splitlines()[-1] == "next: `loopr tree`"
