"""How an engine ends before its work does, what it leaves, and how the next one goes on."""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

SCRIPT = """
begin
echo "$LOOPR_ATTEMPT" >> "$(basename "$LOOPR_LOOP")"
if test ! -e "$DESK/again $(basename "$LOOPR_LOOP")"; then
  touch "$DESK/again $(basename "$LOOPR_LOOP")"
  echo $$ > "$DESK/pid $(basename "$LOOPR_LOOP")"
  tell "$LOOPR_LOOP"
  wait_at gate
fi
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def start(repo: Repo, *words: str, names: str = "a b c d", text: str = "", more: str = "") -> Process:
    """Start a plan of which two loops work until the gate opens."""
    run = repo.script("code", SCRIPT)
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n"
        f"concurrency: {{max_loops: 2}}\ntimeouts: {{grace_secs: 1}}\n{text}"
    )
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})
    repo.gate("gate")
    process = repo.begin("start", *words, "plan.md")
    assert sorted(repo.heard(2)) == ["demo/a", "demo/b"]
    return process


def alive(repo: Repo, name: str) -> bool:
    """Say whether the command of a loop still lives."""
    with suppress(ProcessLookupError):
        os.kill(int(repo.note(f"pid {name}")), 0)
        return True
    return False


def goes_on(repo: Repo, attempts: dict[str, int]) -> None:
    """Let the next engine finish, and see which loops were attempted how often."""
    repo.gates["gate"].open()
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.granted() == Counter({f"demo/{name}": number for name, number in attempts.items()})
    assert sorted(each[0] for each in repo.landed("demo")) == ["demo/a", "demo/b", "demo/c", "demo/d"]
    assert {each[2] for each in repo.landed("demo")} == {1}
    assert repo.loopr("doctor", "--json").document["ok"] is True


def test_the_first_interrupt(repo: Repo) -> None:
    """The first Ctrl-C lets live attempts end, with their check and landing, begins nothing more, and exits 130."""
    process = start(repo, more=", check: 'true'")
    process.signal(signal.SIGINT)
    assert "Ctrl-C again ends what runs" in process.says("draining")
    assert alive(repo, "a") and alive(repo, "b")
    repo.gates["gate"].open()
    assert "next: `loopr run` goes on" in process.ended(130).err
    assert repo.statuses() == {
        "demo": "complete",
        "demo/a": "complete",
        "demo/b": "complete",
        "demo/c": "pending",
        "demo/d": "pending",
    }
    goes_on(repo, {"a": 1, "b": 1, "c": 1, "d": 1})


@pytest.mark.parametrize("numbers", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]], ids=["twice", "TERM"])
def test_stop_at_once(repo: Repo, numbers: list[int]) -> None:
    """A second Ctrl-C, or a SIGTERM, ends live attempts free of cost, keeps what they left, and exits 130 or 143."""
    process = start(repo)
    for number in numbers:
        process.signal(number)
        process.says("draining")
    process.ended(130 if len(numbers) == 2 else 143)
    assert not alive(repo, "a") and not alive(repo, "b")
    loops = repo.loops()
    assert {each["status"] for loop, each in loops.items() if loop != "demo"} == {"pending"}
    assert {(each["failures"], each["iteration"]) for each in loops.values()} == {(0, 1)}
    assert repo.git("show", "loopr/demo.a.g1:a") == "1"
    goes_on(repo, {"a": 2, "b": 2, "c": 1, "d": 1})
    assert repo.on_branch("demo", "a").split() == ["1", "2"]


def test_the_stop_verb(repo: Repo) -> None:
    """`loopr stop` returns at once; the engine begins nothing more and ends when its live attempts have."""
    process = start(repo)
    assert "2 tries that run" in repo.loopr("stop").err
    told = repo.loopr("stop", "--json").document
    assert (told["pid"], told["live"], told["ended"]) == (process.pid, 2, False)
    process.says("draining")
    assert alive(repo, "a")
    assert not process.has_ended
    repo.gates["gate"].open()
    end = process.ended(None)
    assert end.code in (0, 4, 75), end
    assert sorted(repo.granted()) == ["demo/a", "demo/b"]
    goes_on(repo, {"a": 1, "b": 1, "c": 1, "d": 1})


def test_the_stop_verb_now(repo: Repo) -> None:
    """`loopr stop --now` returns when nothing lives any more, and the stop was free."""
    process = start(repo)
    repo.loopr("stop", "--now")
    assert not alive(repo, "a") and not alive(repo, "b")
    assert repo.loopr("status", "--json").document["engine"]["running"] is False
    process.ended(None)
    goes_on(repo, {"a": 2, "b": 2, "c": 1, "d": 1})


def test_stop_where_nobody_runs(repo: Repo) -> None:
    """A stop without an engine is no failure, and does not keep the next one from working."""
    repo.settings("types: {plan: {child: code}, code: {run: 'true'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("stop")
    told = repo.loopr("stop", "--now", "--json").document
    assert (told["pid"], told["live"], told["ended"]) == (None, 0, True)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_once(repo: Repo) -> None:
    """`run --once` starts what may start now, sees it through, and exits 75 if there is more."""
    run = repo.script("code", "begin; end")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', parallel: false}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("run", "--once", code=75)
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete", "demo/b": "pending"}
    repo.loopr("run", "--once")
    assert set(repo.statuses().values()) == {"complete"}


# --- killed ---------------------------------------------------------------------------------------------------------


def test_killed_while_commands_run(repo: Repo) -> None:
    """After kill -9 of the engine its commands go on, and the next engine adopts them by itself: nothing runs twice."""
    process = start(repo)
    process.kill()
    assert alive(repo, "a") and alive(repo, "b")
    after = repo.begin("run")
    after.says("started")
    repo.gates["gate"].open()
    after.ended()
    assert repo.granted() == Counter({f"demo/{name}": 1 for name in "abcd"})
    assert repo.diary().count("+ demo/a 1") == 1
    assert repo.on_branch("demo", "a") == "1"
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.loopr("doctor", "--json").document["ok"] is True


def test_what_ended_while_nobody_looked(repo: Repo) -> None:
    """Commands that end while no engine lives count as they ended: the next engine judges and lands them."""
    process = start(repo)
    process.kill()
    pids = [int(repo.note(f"pid {name}")) for name in "ab"]
    repo.gates["gate"].open()
    for pid in pids:
        gone(pid)
    repo.loopr("run")
    assert repo.granted() == Counter({f"demo/{name}": 1 for name in "abcd"})
    assert set(repo.statuses().values()) == {"complete"}


def gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 30)[0]
        os.close(descriptor)


def test_a_command_that_died_while_nobody_looked(repo: Repo) -> None:
    """A command that is killed while no engine lives is a failure with a delay, not a verdict; its work is kept."""
    process = start(repo, text="retry: {base_secs: 0.05}\n")
    process.kill()
    pid = int(repo.note("pid a"))
    os.kill(pid, signal.SIGKILL)
    gone(pid)
    repo.gates["gate"].open()
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.granted()["demo/a"] == 2
    assert repo.on_branch("demo", "a").split() == ["1", "2"]


@pytest.mark.parametrize("left", [False, True], ids=["lives on", "dies too"])
def test_killed_while_a_setup_runs(repo: Repo, left: bool) -> None:
    """After kill -9 during worktrees.setup no command begins in a folder that is not ready."""
    repo.gate("gate")
    setup = repo.script("setup", 'say "setup"; echo $$ > "$DESK/pid setup"; tell x; wait_at gate; echo ready > .ready')
    run = repo.script("code", 'cp .ready "$DESK/found"; say "work"')
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', max_iterations: 1}}\nretry: {{base_secs: 0.05}}\n",
        worktrees=f", setup: '{setup}'",
    )
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    process.kill()
    pid = int(repo.note("pid setup"))
    if left:
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        repo.gates["gate"].open()
    after = repo.begin("run")
    after.says("engine  started")
    repo.gates["gate"].open()
    after.ended()
    assert repo.note("found") == "ready\n"
    assert repo.diary()[-1] == "work"


# --- two engines ----------------------------------------------------------------------------------------------------


def test_a_second_run(repo: Repo) -> None:
    """`run` where an engine works exits 6 and names its process; the first one is not disturbed."""
    process = start(repo)
    end = repo.loopr("run", code=6)
    assert str(process.pid) in end.err
    error = repo.loopr("run", "--json", code=6).document["error"]
    assert str(process.pid) in error["message"] + str(error["hint"])
    assert repo.loopr("status", "--json").document["engine"]["pid"] == process.pid
    repo.gates["gate"].open()
    process.ended()


def test_a_second_start(repo: Repo) -> None:
    """`start` of another plan where an engine works enqueues and follows it; each has the exit code of its own plan."""
    process = start(repo, text="", names="a b")
    repo.script("fails", "exit 78")
    repo.write({"other.md": "---\nchildren: [{id: x, run: 'exit 78'}]\n---\n# Other\n"})
    repo.write({"third.md": "---\nchildren: [{id: y, run: 'true'}]\n---\n# Third\n"})
    other = repo.begin("start", "other.md")
    third = repo.begin("start", "third.md")
    repo.until("declared", words="other/x")
    repo.until("declared", words="third/y")
    assert not process.has_ended
    repo.gates["gate"].open()
    assert "follows" in other.ended(1).err
    third.ended(0)
    process.ended(0)
    assert {each["loop"] for each in repo.events("lease_granted")} == {"demo/a", "demo/b", "other/x", "third/y"}
    assert len(repo.events("engine_started")) == 1


def test_a_follower_is_interrupted(repo: Repo) -> None:
    """Ctrl-C of a start that only follows ends that command, and leaves the engine and its work alone."""
    process = start(repo, names="a b")
    repo.write({"other.md": "---\nchildren: [{id: x, run: 'true'}]\n---\n# Other\n"})
    other = repo.begin("start", "other.md")
    repo.until("declared", words="other/x")
    other.says("follows")
    other.signal(signal.SIGINT)
    other.ended(130)
    repo.gates["gate"].open()
    process.ended()
    assert set(repo.statuses().values()) == {"complete"}


def test_detached(repo: Repo) -> None:
    """`--detach` returns once an engine in the background holds the workspace; it goes on, and `wait` sees its end."""
    run = repo.script("code", "tell $LOOPR_LOOP; wait_at gate")
    gate = repo.gate("gate")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    end = repo.loopr("start", "--detach", "plan.md")
    engine = repo.loopr("status", "--json").document["engine"]
    assert engine["running"] is True
    assert str(engine["pid"]) in end.err
    repo.heard(1, attached=False)
    gate.open()
    repo.loopr("wait", "demo")
    gone(engine["pid"])
    assert set(repo.statuses().values()) == {"complete"}


def test_detached_and_stopped(repo: Repo) -> None:
    """An engine in the background is ended by `stop --now`, and a second --detach finds it working."""
    run = repo.script("code", "tell $LOOPR_LOOP; wait_at gate")
    repo.gate("gate")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("run", "--detach", code=None)
    repo.loopr("start", "--detach", "plan.md")
    repo.heard(1, attached=False)
    pid = repo.loopr("status", "--json").document["engine"]["pid"]
    repo.loopr("start", "--detach", "plan.md")
    assert repo.loopr("status", "--json").document["engine"]["pid"] == pid
    repo.loopr("stop", "--now")
    assert repo.loopr("status", "--json").document["engine"]["running"] is False
    assert repo.statuses()["demo/a"] == "pending"
    pid = repo.loopr("run", "--detach", "--json").document["pid"]
    assert repo.loopr("stop", "--now", "--json").document["pid"] == pid
