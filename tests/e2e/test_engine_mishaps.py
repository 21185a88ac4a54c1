"""What people and accidents do to an engine's files, refs and worktrees while it works, and before it begins."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.repos import PATIENCE_SECS, Process, Repo, opened

PLAN = "---\nid: demo\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"
FAST = "retry: {base_secs: 0.05, cap_secs: 0.1}\nscheduler: {poll_interval_secs: 0.1}\ntimeouts: {grace_secs: 0.5}\n"
STOPS_AT_A = 'test "$LOOPR_LOOP" != demo/a || { echo $$ > "$DESK/pid"; tell a; wait_at gate; }'
WRITE = 'echo x > "$(basename "$LOOPR_LOOP").txt"'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository that is not founded yet."""
    with opened(tmp_path) as found:
        yield found


def ready(repo: Repo, script: str = STOPS_AT_A, more: str = "", text: str = "") -> None:
    """Found the repository, with settings and a plan of two loops, of which the first waits at the gate."""
    repo.found()
    repo.gate("gate")
    run = repo.script("code", f"{script}\n{WRITE}")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{FAST}{text}")
    repo.write({"plan.md": PLAN})


def started(repo: Repo, script: str = STOPS_AT_A, more: str = "", text: str = "") -> Process:
    """Start the plan, and wait until the first loop works."""
    ready(repo, script, more, text)
    process = repo.begin("start", "plan.md")
    repo.heard()
    return process


def all_landed(repo: Repo) -> None:
    """See that both loops have landed with their work, and that nothing is said to be wrong."""
    assert set(repo.statuses().values()) == {"complete"}, repo.loops()
    assert sorted(each[0] for each in repo.landed("demo") if each[0]) == ["demo/a", "demo/b"]
    files = repo.git("ls-tree", "--name-only", "loopr/demo").splitlines()
    assert {"README", "loopr.yml", "a.txt", "b.txt"} <= set(files)
    assert repo.loopr("doctor", "--json").document["ok"] is True
    assert repo.loopr("status", "--json").document.get("problems", []) in ([], {})


def goes_on(repo: Repo, process: Process) -> None:
    """Open the gate and see everything land."""
    repo.gates["gate"].open()
    process.ended()
    all_landed(repo)


# --- worktrees ------------------------------------------------------------------------------------------------------


def test_the_worktree_is_removed_while_its_command_runs(repo: Repo) -> None:
    """A folder that is removed under its command is never taken for work that deletes everything."""
    process = started(repo)
    shutil.rmtree(repo.root / "worktrees/demo.a.g1")
    repo.gates["gate"].open()
    process.ended(None)
    files = repo.git("ls-tree", "--name-only", "loopr/demo").splitlines()
    assert {"README", "loopr.yml"} <= set(files)


def test_the_worktree_is_removed_and_the_command_is_content(repo: Repo) -> None:
    """A folder that is removed under a command which ends well is no success: nothing lands, and that is said once."""
    process = started(repo, f"{STOPS_AT_A}\ntest -e README || exit 0")
    shutil.rmtree(repo.root / "worktrees/demo.a.g1")
    goes_on(repo, process)
    (broke,) = repo.events("broke")
    assert broke["data"]["reason"].count("made anew from its branch") == 1


def test_the_worktree_is_removed_between_attempts(repo: Repo) -> None:
    """A folder that is removed between two attempts is made again, with all that had been committed."""
    process = started(repo, f"echo kept > kept; {STOPS_AT_A}; test -e kept")
    process.signal(15)
    process.ended(143)
    shutil.rmtree(repo.root / "worktrees")
    assert repo.git("show", "loopr/demo.a.g1:kept") == "kept"
    repo.gates["gate"].open()
    goes_on(repo, repo.begin("run"))


def test_git_forgets_the_worktree(repo: Repo) -> None:
    """What git keeps of a worktree may be lost while its command runs: the files of the command still land."""
    process = started(repo)
    shutil.rmtree(next(repo.root.glob(".git/worktrees/loopr-*")))
    goes_on(repo, process)


# --- branches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["git", "file"])
def test_the_loops_branch_is_deleted(repo: Repo, how: str) -> None:
    """The branch of a loop that is deleted while its command runs comes back, with the work on it."""
    process = started(repo)
    if how == "git":
        repo.git("update-ref", "-d", "refs/heads/loopr/demo.a.g1")
    else:
        (repo.root / ".git/refs/heads/loopr/demo.a.g1").unlink()
    goes_on(repo, process)


def test_the_plan_branch_is_deleted(repo: Repo) -> None:
    """A plan's branch that is deleted comes back by itself, and everything lands."""
    process = started(repo)
    repo.git("branch", "-D", "loopr/demo")
    goes_on(repo, process)
    assert repo.events("tip_foreign")[0]["data"]["tip"] == ""


def test_the_plan_branch_is_checked_out_and_that_it_lags_is_told_once(repo: Repo) -> None:
    """A branch that lags is told once, however often it is looked at meanwhile, and nothing waits for it."""
    process = started(repo)
    place = repo.desk.parent / "mine"
    repo.git("worktree", "add", "--quiet", str(place), "loopr/demo")
    repo.gates["gate"].open()
    repo.until("problem_seen", words=str(place))
    process.ended()
    assert str(place) in repo.loopr("status").out
    repo.loopr("run")
    assert len(repo.events("problem_seen", "problem_gone")) == 1
    repo.git("checkout", "--quiet", "--detach", cwd=place)
    repo.loopr("run")
    assert len(repo.events("problem_gone")) == 1
    all_landed(repo)


# --- the user's own git ---------------------------------------------------------------------------------------------


def busy_user(repo: Repo) -> None:
    """Do what people do in their own checkout."""
    repo.git("gc", "--quiet", "--aggressive", "--prune=now")
    repo.git("reflog", "expire", "--all", "--expire=now")
    repo.git("worktree", "prune", "--expire=now")
    repo.git("prune", "--expire=now")
    repo.git("pack-refs", "--all", "--prune")


@pytest.mark.parametrize("when", ["command", "check"])
def test_garbage_is_collected(repo: Repo, when: str) -> None:
    """A `git gc --prune=now` and a `git worktree prune` at any moment take nothing that a loop needs."""
    waits = repo.script("waits", STOPS_AT_A)
    process = started(repo) if when == "command" else started(repo, "", f", check: '{waits}'")
    busy_user(repo)
    goes_on(repo, process)
    repo.git("fsck", "--strict")


def test_other_branches_are_checked_out(repo: Repo) -> None:
    """New branches, commits and checkouts of the user's meanwhile are no business of a loop's."""
    process = started(repo)
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.write({"mine": "mine\n"})
    repo.git("add", "mine")
    repo.git("commit", "--quiet", "--message=mine")
    repo.git("checkout", "--quiet", "main")
    goes_on(repo, process)
    assert repo.git("symbolic-ref", "--short", "HEAD") == "main"
    assert "mine" not in repo.git("ls-tree", "--name-only", "loopr/demo").splitlines()


def test_a_rebase_is_left_in_the_middle(repo: Repo) -> None:
    """A rebase that stands still in the user's checkout is left as it is, and loops land meanwhile."""
    process = started(repo)
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.write({"README": "topic\n"})
    repo.git("commit", "--quiet", "--all", "--message=topic")
    repo.git("checkout", "--quiet", "main")
    repo.write({"README": "other\n"})
    repo.git("commit", "--quiet", "--all", "--message=other")
    repo.git("checkout", "--quiet", "topic")
    with pytest.raises(AssertionError):
        repo.git("rebase", "main")
    before = repo.git("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    goes_on(repo, process)
    assert repo.git("status", "--porcelain=v2", "--branch", "--untracked-files=no") == before
    assert (repo.root / ".git/rebase-merge").is_dir()


def test_a_tag_while_no_command_runs(repo: Repo) -> None:
    """What the user changes while no command runs is not laid at the door of the command that runs next."""
    process = started(repo)
    lock = repo.root / ".git/refs/heads/loopr/demo.lock"
    lock.touch()
    repo.gates["gate"].open()
    repo.until("problem_seen")
    repo.git("tag", "v1")
    lock.unlink()
    process.ended()
    all_landed(repo)


# --- files of ours --------------------------------------------------------------------------------------------------


RUN = "runs/demo.a.g1/1"
BROKEN = {
    "empty": b"",
    "half": b'{"reason": "exi',
    "garbage": bytes(range(256)),
    "list": b"[]",
    "numbers": b'{"reason": 1, "code": "x", "pid": -1}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("file", ["outcome.json", "run.json", "circumstances.json"])
def test_a_broken_file_of_an_attempt(repo: Repo, file: str, content: bytes) -> None:
    """A file of an attempt that cannot be read costs at most another attempt, and never two at once."""
    script = f'kill -0 "$(cat "$DESK/pid" 2> /dev/null)" 2> /dev/null && say twice; {STOPS_AT_A}'
    process = started(repo, script)
    process.kill()
    pid = int(repo.note("pid"))
    if file == "outcome.json":
        repo.gates["gate"].let_on()
        gone(pid)
        outcome = repo.state / RUN / file
        ends = time.monotonic() + PATIENCE_SECS
        while not outcome.exists() and time.monotonic() < ends:
            os.sched_yield()
    (repo.state / RUN / file).write_bytes(content)
    after = repo.begin("run")
    after.says("engine  started")
    goes_on(repo, after)
    assert "twice" not in repo.diary()


def gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 30)[0]
        os.close(descriptor)


@pytest.mark.parametrize("content", [*BROKEN.values(), None], ids=[*BROKEN, "missing"])
def test_a_broken_list_of_worktrees(repo: Repo, content: bytes | None) -> None:
    """What is remembered of worktrees may be lost while they are used: it is told anew."""
    process = started(repo)
    found = next(repo.state.rglob("worktrees.json"))
    found.unlink()
    if content is not None:
        found.write_bytes(content)
    goes_on(repo, process)


@pytest.mark.parametrize("keep", [0, 32, 5000, -100], ids=str)
def test_a_truncated_log_of_the_journal(repo: Repo, keep: int) -> None:
    """What a cut-off write-ahead log has lost is done again or found done; nothing lands twice."""
    process = started(repo, 'if test "$LOOPR_LOOP" = demo/b; then tell b; wait_at gate; fi')
    process.kill()
    log = repo.state / "loopr.db-wal"
    os.truncate(log, keep if keep >= 0 else log.stat().st_size + keep)
    (repo.state / "loopr.db-shm").unlink()
    repo.gates["gate"].open()
    repo.loopr("start", "plan.md")
    all_landed(repo)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_garbage_in_a_lock_that_nobody_holds(repo: Repo, content: bytes) -> None:
    """A lock that nobody holds is free, whatever stands in its file."""
    process = started(repo)
    process.kill()
    (repo.state / "engine.lock").write_bytes(content)
    goes_on(repo, repo.begin("run"))


@pytest.mark.parametrize("content", [BROKEN["empty"], BROKEN["garbage"]], ids=["empty", "garbage"])
def test_garbage_in_a_lock_that_an_engine_holds(repo: Repo, content: bytes) -> None:
    """An engine whose name in the lock is lost is still there: no verb says that none runs, and a stop ends it."""
    process = started(repo)
    (repo.state / "engine.lock").write_bytes(content)
    assert "not running" not in repo.loopr("status").out
    end = repo.loopr("stop", "--now", code=None)
    assert "no engine runs" not in end.err, end
    process.ended(None)
    repo.gates["gate"].open()
    repo.loopr("run")
    all_landed(repo)


# --- settings -------------------------------------------------------------------------------------------------------


WRONG = {
    "open": b"types: [",
    "tab": b"\tx",
    "wrong": b"types: {code: {run: 3}}",
    "bytes": b"\xff\xfe\x00",
    "folder": None,
}


@pytest.mark.parametrize("broken", WRONG.values(), ids=WRONG)
def test_settings_that_are_wrong_for_a_while(repo: Repo, broken: bytes | None) -> None:
    """Settings that become invalid change nothing and are told; valid ones hold at once, and the problem is gone."""
    process = started(repo)
    path = repo.root / "loopr.yml"
    sound = path.read_bytes()
    spoil(path, broken)
    repo.until("problem_seen", words="loopr.yml")
    if path.is_dir():
        path.rmdir()
    path.write_bytes(sound)
    repo.until("problem_gone")
    goes_on(repo, process)


def spoil(path: Path, broken: bytes | None) -> None:
    """Put something into the place of the settings that are none."""
    if broken is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(broken)


def test_wrong_settings_to_the_end(repo: Repo) -> None:
    """An engine whose settings have become invalid finishes its work by the old ones, and ends in good order."""
    process = started(repo)
    path = repo.root / "loopr.yml"
    sound = path.read_bytes()
    spoil(path, b"types: [")
    repo.until("problem_seen", words="loopr.yml")
    repo.gates["gate"].open()
    process.ended()
    path.write_bytes(sound)
    repo.loopr("run")
    all_landed(repo)
