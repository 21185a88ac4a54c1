"""A person who writes, spoils and takes away artifacts while the engine runs, and approvals that wait for one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

SPEC = "---\nphases: [{id: p}, {id: o}]\n---\n# By hand\n"
CODE = """
case $LOOPR_LOOP in
*/busy) tell busy; wait_at busy ;;
*) begin; cat "$LOOPR_INPUT" > "$(echo "$LOOPR_LOOP" | tr / .)"; tell "$LOOPR_LOOP"; end ;;
esac
"""
PLAN = """\
---
specs:
  - {id: t, phases: [{id: q, tasks: [{id: busy}]}]}
  - {id: s}
  - {id: u, phases: [{id: v, needs: [demo/s]}]}
---
# Demo
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def start(repo: Repo, more: str = "") -> Process:
    """Start a plan with one loop that works until the gate `busy` opens, and a spec that waits for a person."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', CODE)}'}}\n{more}")
    repo.write({"plan.md": PLAN})
    repo.gate("busy")
    process = repo.begin("start", "plan.md")
    assert repo.heard() == ["busy"]
    return process


def test_a_dropped_artifact_unblocks_children(repo: Repo) -> None:
    """A spec without a command is complete once somebody drops its file; its children run, then whoever needs it."""
    process = start(repo)
    repo.drop("demo/s/spec.md", SPEC)
    assert sorted(repo.heard(2)) == ["demo/s/o/code", "demo/s/p/code"]
    assert repo.heard() == ["demo/u/v/code"]
    repo.gates["busy"].open()
    process.ended()
    assert set(repo.statuses().values()) == {"complete"}
    assert [each["loop"] for each in repo.events("artifact_accepted")] == ["demo", "demo/s"]
    assert (repo.root / "specs/demo/s/spec.md").read_text() == SPEC


def test_a_file_that_is_written_in_place(repo: Repo) -> None:
    """A file counts once it has been quiet: what is written in two halves is read as a whole, and never twice."""
    process = start(repo)
    path = repo.root / "specs/demo/s/spec.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write("---\nphases: [{id: p}")
        file.flush()
        file.write(", {id: o}]\n---\n# By hand\n")
    assert sorted(repo.heard(2)) == ["demo/s/o/code", "demo/s/p/code"]
    repo.gates["busy"].open()
    process.ended()
    assert [each["loop"] for each in repo.events("artifact_accepted")] == ["demo", "demo/s"]
    assert repo.events("problem_seen") == []


def test_half_a_file_does_not_count(repo: Repo) -> None:
    """What is still being written is not looked at, while others are; a file that arrives by rename counts at once."""
    process = start(repo, "artifacts: {settle_ms: 60000}\n")
    path = repo.root / "specs/demo/s/spec.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\nphases: [{id: p}")
    repo.drop("demo/plan.md", f"{PLAN}A word more.\n")
    repo.until("artifact_accepted", 2)
    assert repo.statuses()["demo/s"] == "pending"
    repo.drop("demo/s/spec.md", SPEC)
    assert sorted(repo.heard(2)) == ["demo/s/o/code", "demo/s/p/code"]
    assert repo.events("problem_seen") == []
    repo.gates["busy"].open()
    repo.loopr("stop")  # by itself it would wait until what it has published is quiet, too
    process.ended(None)


@pytest.mark.parametrize("way", ["moved in", "in place"])
def test_another_file_of_the_same_size_and_time(repo: Repo, way: str) -> None:
    """A file that is restored with its old time stamp is another one by what it says, however alike it looks."""
    process = start(repo)
    repo.drop("demo/s/spec.md", SPEC)
    assert sorted(repo.heard(2)) == ["demo/s/o/code", "demo/s/p/code"]
    assert repo.heard() == ["demo/u/v/code"]
    path = repo.root / "specs/demo/s/spec.md"
    as_it_was, other = path.stat(), SPEC.replace("id: o", "id: w")
    fresh = path if way == "in place" else repo.desk / "spec.md"
    fresh.write_text(other)
    os.utime(fresh, ns=(as_it_was.st_atime_ns, as_it_was.st_mtime_ns))
    fresh.replace(path)
    repo.take("demo/s")
    assert repo.heard() == ["demo/s/w/code"]
    repo.gates["busy"].open()
    process.ended()
    assert {"demo/s/o", "demo/s/w"} & repo.statuses().keys() == {"demo/s/w"}
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (as_it_was.st_mtime_ns, as_it_was.st_size)


def test_without_a_drop_it_waits(repo: Repo) -> None:
    """A plan of which a part waits for a person ends with 4 once all else is done, and names what it waits for."""
    process = start(repo)
    repo.gates["busy"].open()
    process.ended(4)
    why = repo.loopr("why", "demo/s", "--json").document
    assert [each["gate"] for each in why["gates"]] == ["manual"]
    repo.drop("demo/s/spec.md", SPEC)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nphases: [{id: p}\n---\n# x\n", "spec.md"),
        ("---\nphazes: [{id: p}]\n---\n# x\n", "phases"),
        ("# Nothing declared\n", "## Phases"),
        ("---\nphases: [{id: a, needs: [b]}, {id: b, needs: [a]}]\n---\n# x\n", "a"),
        ("---\nphases: [{id: a, needs: [demo/u/v]}]\n---\n# x\n", "demo/u/v"),
    ],
    ids=["yaml", "key", "empty", "cycle", "cycle beyond"],
)
def test_a_malformed_one_changes_nothing(repo: Repo, text: str, words: str) -> None:
    """A file that cannot count is reported with its place, nothing is declared, and a better one takes its place."""
    process = start(repo)
    repo.drop("demo/s/spec.md", text)
    problem = repo.until("problem_seen", words="demo/s/spec.md")[0]
    assert words in problem["data"]["text"]
    assert [each for each in repo.statuses() if each.startswith("demo/s/")] == []
    assert repo.statuses()["demo/s"] == "pending"
    assert "demo/s/spec.md" in process.says("specs/demo/s/spec.md")
    repo.drop("demo/s/spec.md", SPEC)
    repo.until("problem_gone", words="demo/s/spec.md")
    repo.gates["busy"].open()
    process.ended()


def test_a_complete_one_that_is_spoiled(repo: Repo) -> None:
    """A complete artifact that somebody spoils is reported, and the tree stays as it was, the work below it too."""
    process = start(repo)
    repo.drop("demo/s/spec.md", SPEC)
    repo.heard(3)
    repo.drop("demo/s/spec.md", "---\nphases: nonsense\n---\n")
    repo.until("problem_seen", words="demo/s/spec.md")
    repo.gates["busy"].open()
    process.ended(None)
    assert {status for loop, status in repo.statuses().items() if loop.startswith("demo/s")} == {"complete"}
    assert repo.granted()["demo/s/p/code"] == 1


def test_a_file_that_is_gone_closes_the_gate(repo: Repo) -> None:
    """Children that have not begun wait while their parent's file is away, and go on once it is back."""
    process = start(repo, "concurrency: {per_type: {code: 1}}\n")
    repo.drop("demo/s/spec.md", SPEC)
    repo.until("settled", words="demo/s/o")
    (repo.root / "specs/demo/s/o/phase.md").unlink()
    repo.until("artifact_gone", words="demo/s/o")
    gates = repo.loopr("why", "demo/s/o/code", "--json").document["gates"]
    assert "artifact" in [each["gate"] for each in gates]
    repo.gates["busy"].open()
    process.ended(4)
    assert repo.statuses()["demo/s/o/code"] == "pending"
    assert repo.statuses()["demo/s/p/code"] == "complete"
    repo.drop("demo/s/o/phase.md", "---\ntasks: [{id: code}]\n---\n# o\n")
    repo.loopr("run")
    assert repo.statuses()["demo/s/o/code"] == "complete"


def test_a_dropped_file_ends_a_live_attempt(repo: Repo) -> None:
    """Who drops the file that a running loop works on, and says that it is theirs, ends its attempt, free of cost."""
    process = start(repo)
    repo.drop("demo/t/q/busy/code.md", "# I did it\n")
    repo.take("demo/t/q/busy")
    repo.until("artifact_accepted", words="demo/t/q/busy")
    process.ended(4)
    loop = repo.loops()["demo/t/q/busy"]
    assert (loop["status"], loop["failures"], loop["iteration"]) == ("complete", 0, 1)
    assert repo.granted()["demo/t/q/busy"] == 1


def test_dropped_while_nobody_looked(repo: Repo) -> None:
    """What was dropped while no engine ran is found by the next one."""
    process = start(repo)
    repo.gates["busy"].open()
    process.ended(4)
    repo.drop("demo/s/spec.md", SPEC)
    repo.drop("demo/s/p/code/code.md", "# Done\n")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert "demo/s/p/code" not in repo.granted()


def test_dropped_early(repo: Repo) -> None:
    """A file that is there before its loop is declared counts once it is, but for one that has a command of its own."""
    phase = "---\ntasks: [{id: mine}]\n---\n# By hand too\n"
    process = start(repo)
    repo.drop("demo/s/p/phase.md", phase)
    repo.drop("demo/s/o/code/code.md", "# Done\n")
    repo.drop("demo/s/spec.md", SPEC)
    repo.heard(3)
    repo.gates["busy"].open()
    process.ended()
    ran = ("demo/t/q/busy", "demo/s/p/mine", "demo/s/o/code", "demo/u/v/code")
    assert repo.granted() == Counter(dict.fromkeys(ran, 1))
    assert (repo.root / "specs/demo/s/p/phase.md").read_text() == phase
    accepted = {each["loop"]: each["data"]["during"] for each in repo.events("artifact_accepted")}
    assert accepted == {"demo": [], "demo/s": ["demo/t/q/busy"], "demo/s/p": ["demo/t/q/busy"]}


def test_an_edit_of_the_plan_while_it_runs(repo: Repo) -> None:
    """On a person's word an entry that is added to the plan is declared, and one that is taken out goes."""
    process = start(repo)
    more = PLAN.replace("  - {id: s}\n", "  - {id: w, phases: [{id: x}]}\n").replace(", needs: [demo/s]", "")
    repo.drop("demo/plan.md", more)
    repo.take("demo")
    heard = repo.heard(2)
    assert sorted(heard) == ["demo/u/v/code", "demo/w/x/code"]
    repo.gates["busy"].open()
    process.ended()
    assert [each["loop"] for each in repo.events("undeclared")] == ["demo/s"]
    assert repo.granted() == Counter({"demo/t/q/busy": 1, "demo/u/v/code": 1, "demo/w/x/code": 1})


# --- approvals ------------------------------------------------------------------------------------------------------


def test_an_approval_waits(repo: Repo) -> None:
    """With `approve: true` a yes of the check is not enough: nothing lands, and the plan ends with 4."""
    run = repo.script("code", 'echo x > x; say "$LOOPR_LOOP"')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: test -e x, approve: true}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"})
    end = repo.loopr("start", "plan.md", code=4)
    assert repo.statuses() == {"demo": "complete", "demo/a": "awaiting_approval", "demo/b": "pending"}
    assert "loopr approve demo/a" in end.err
    assert repo.landed("demo") == []
    repo.loopr("run", code=4)
    assert repo.diary() == ["demo/a"]


def test_a_refusal_comes_before_an_approval(repo: Repo) -> None:
    """Nobody is asked to approve what the check has refused."""
    run = repo.script("code", 'echo "$LOOPR_ITERATION" > x')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: grep 2 x, approve: true}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=4)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["iteration"]) == ("awaiting_approval", 2)
