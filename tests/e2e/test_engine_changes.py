"""What changes under the engine's hands: inputs of running loops, folders that go, many that come at once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

WAITS = """
begin
echo "$LOOPR_ATTEMPT" >> "$(basename "$LOOPR_LOOP").txt"
if test "$LOOPR_ATTEMPT" = 1; then tell "$LOOPR_LOOP"; wait_at gate; fi
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, script: str = WAITS, *, text: str = "", children: str = "[{id: a}, {id: b}]") -> None:
    """Set a repository up for a plan of code loops."""
    run = repo.script("code", script)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\ntimeouts: {{grace_secs: 1}}\n{text}")
    repo.write({"plan.md": f"---\nid: demo\nchildren: {children}\n---\n# Demo\n"})


def test_an_input_that_changes_while_its_loop_runs(repo: Repo) -> None:
    """The attempt is stopped at once, free, and the loop begins anew with the new words; its siblings go on."""
    plan(repo)
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    repo.drop("demo/plan.md", "---\nid: demo\nchildren: [{id: a, body: Better.}, {id: b}]\n---\n# Demo\n")
    repo.take("demo")
    repo.until("landed", words="demo/a")
    assert repo.statuses()["demo/b"] == "running"
    gate.open()
    process.ended()
    loop = repo.loops()["demo/a"]
    assert (loop["generation"], loop["attempt"], loop["failures"]) == (2, 2, 0)
    assert repo.granted() == Counter({"demo/a": 2, "demo/b": 1})
    assert repo.on_branch("demo", "a.txt") == "2", "a new generation begins on the plan's branch, not on the old work"
    assert repo.git("show", "loopr/demo.a.g1:a.txt") == "1", "and what the old one did is kept"


def test_a_running_loop_that_is_declared_no_longer(repo: Repo) -> None:
    """Its attempt is stopped, nothing of it lands, and what it did is kept on its own branch."""
    plan(repo)
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    repo.drop("demo/plan.md", "---\nid: demo\nchildren: [{id: b}]\n---\n# Demo\n")
    repo.take("demo")
    repo.until("attempt_gone", words="demo/a")
    gate.open()
    process.ended()
    assert [each[0] for each in repo.landed("demo")] == ["demo/b"]
    assert repo.git("show", "loopr/demo.a.g1:a.txt") == "1"


def test_needs_that_are_added_later(repo: Repo) -> None:
    """An entry's new need takes effect at once and runs nothing again."""
    plan(repo, text="concurrency: {max_loops: 1}\n", children="[{id: a}, {id: b}, {id: c}]")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.drop("demo/plan.md", "---\nid: demo\nchildren: [{id: a}, {id: b, needs: [c]}, {id: c}]\n---\n# Demo\n")
    repo.take("demo")
    repo.until("entry_changed", words="demo/b")
    gate.open()
    process.ended()
    assert [each[0] for each in repo.landed("demo")] == ["demo/a", "demo/c", "demo/b"]
    assert set(repo.granted().values()) == {1}


def test_the_worktrees_are_taken_away(repo: Repo) -> None:
    """Who deletes the folder of worktrees between two runs loses nothing that was committed, and the next run works."""
    plan(repo, 'test -e mended || echo x >> work; cat work; test "$LOOPR_ITERATION" -ge 3')
    repo.loopr("set", "retry.max_iterations.code", "2")
    repo.loopr("start", "plan.md", code=1)
    shutil.rmtree(repo.root / "worktrees")
    repo.loopr("set", "retry.max_iterations.code", "5")
    repo.drop("demo/plan.md", "---\nid: demo\nchildren: [{id: a, body: x}, {id: b, body: x}]\n---\n# Demo\n")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.git("show", "loopr/demo.a.g1:work").split() == ["x", "x"]


def test_a_worktree_is_taken_away_between_two_tries(repo: Repo) -> None:
    """A loop whose folder is gone before its next try finds its committed work in a new one."""
    plan(repo, 'echo "$LOOPR_ITERATION" >> work; test "$LOOPR_ITERATION" = 2', children="[{id: a}]")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("run", "--once", code=None)
    assert repo.loops()["demo/a"]["iteration"] in (1, 2)
    if repo.statuses()["demo/a"] == "pending":
        shutil.rmtree(repo.root / "worktrees")
        repo.loopr("run")
    assert repo.on_branch("demo", "work").split() == ["1", "2"]


def test_many_starts_at_once(repo: Repo) -> None:
    """Starts of several plans at the same moment all end with 0: one drives, the others follow, nothing runs twice."""
    plan(repo, "begin; touch $LOOPR_PLAN.$(basename $LOOPR_LOOP); end")
    for name in ("one", "two", "three"):
        repo.write({f"{name}.md": f"---\nid: {name}\nchildren: [{{id: a}}, {{id: b}}]\n---\n# {name}\n"})
    processes = [repo.begin("start", f"{name}.md") for name in ("one", "two", "three", "one")]
    for process in processes:
        process.ended()
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.granted() == Counter(f"{plan}/{loop}" for plan in ("one", "two", "three") for loop in "ab")
    assert repo.loopr("doctor", "--json").document["ok"] is True


def test_long_names(repo: Repo) -> None:
    """Ids that are as long as they may be, on every level, lead to names that git and the disk can take."""
    long = "x" * 63
    repo.settings("types:\n  code: {run: 'echo x > x'}\n")
    tree = f"[{{id: {long}, phases: [{{id: {long}, tasks: [{{id: {long}}}]}}]}}]"
    repo.write({"plan.md": f"---\nid: {long}\nspecs: {tree}\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.on_branch(long, "x") == "x"


def test_a_check_of_the_plan(repo: Repo) -> None:
    """Loops of every level may have a command and a check, and their own files land too."""
    write = 'echo x > "from $LOOPR_TYPE"; printf -- "---\\nchildren: [{id: a}]\\n---\\n# x\\n" > "$LOOPR_OUTPUT"'
    run = repo.script("any", f'case $LOOPR_TYPE in code) echo x > "from code" ;; *) {write} ;; esac')
    check = 'test -e "from $LOOPR_TYPE"'
    lines = "".join(f"  {name}: {{run: '{run}', check: '{check}'}}\n" for name in ("plan", "spec", "phase"))
    repo.settings(f"types:\n{lines}  code: {{run: '{run}'}}\n")
    repo.write({"plan.md": "---\nid: demo\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert [each[0] for each in repo.landed("demo")] == ["demo", "demo/a", "demo/a/a", "demo/a/a/a"]
    files = repo.git("ls-tree", "--name-only", "loopr/demo").splitlines()
    assert {f"from {name}" for name in ("plan", "spec", "phase", "code")} <= set(files)
