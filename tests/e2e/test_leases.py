"""Pull workers: whoever takes leases works as a command of the engine's would, and never past a gate or a ceiling."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.e2e.repos import Process, Repo, opened

HOLD = """
begin
tell "$LOOPR_LOOP"
wait_at gate
"""
WRITE = """
env | sed -n 's/^\\(LOOPR[A-Z_]*\\|GIT_CEILING_DIRECTORIES\\|TRACEPARENT\\)=.*/\\1/p' | sort > "$DESK/names"
echo engine > engine.txt
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, names: str, *, code: str = "", more: str = "", worktrees: str = "") -> None:
    """Enqueue a plan with code loops, whose type has no command unless one is given."""
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{{code}}}\nretry: {{base_secs: 0.05}}\n{more}", worktrees=worktrees
    )
    children = ", ".join(each if each.startswith("{") else f"{{id: {each}}}" for each in names.split(";"))
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "plan.md")


def test_logs_of_setup_are_the_owners_alone(repo: Repo) -> None:
    """What setup and hooks print where a pull worker prepares a worktree is in files that nobody else may read."""
    plan(repo, "a", worktrees=", setup: 'echo key'")
    take(repo)
    logs = list((repo.root / ".git/loopr/runs").rglob("setup/*.log"))
    assert sorted(each.name for each in logs) == ["stderr.log", "stdout.log"]
    assert [each.stat().st_mode & 0o077 for each in logs] == [0, 0]


def take(repo: Repo, *words: str) -> dict[str, Any]:
    """Take one lease."""
    found: dict[str, Any] = repo.loopr("lease", "take", "--holder", "ada", *words, "--json").document["leases"][0]
    return found


def work(lease: dict[str, Any], text: str = "done\n", name: str = "work.txt") -> Path:
    """Leave a file in the worktree of a lease."""
    path = Path(lease["worktree"], name)
    path.write_text(text)
    return path


def held_engine(repo: Repo) -> Process:
    """Start an engine that goes on until the gate opens: `hold` has a command that waits there."""
    process = repo.begin("run")
    assert repo.heard() == ["demo/hold"]
    return process


def hold(repo: Repo) -> str:
    """Return the entry of a loop whose command waits at the gate."""
    repo.gate("gate")
    return f"{{id: hold, run: '{repo.script('hold', HOLD)}'}}".replace(";", " &&")


# --- taking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [True, False])
def test_never_over_a_ceiling(repo: Repo, engine: bool) -> None:
    """Sixteen processes that take one lease each get exactly the free slots, with an engine at work or without."""
    slots, takers = (10, 16) if engine else (3, 6)
    names = ";".join([*([hold(repo)] if engine else []), *(f"n{each}" for each in range(takers))])
    plan(repo, names, more=f"concurrency: {{max_loops: {slots + engine}, per_type: {{code: 50}}}}\n")
    process = held_engine(repo) if engine else None
    running = [repo.begin("lease", "take", "--json", "--holder", f"w{each}") for each in range(takers)]
    ended = [each.ended(None) for each in running]
    assert Counter(each.code for each in ended) == {0: slots, 75: takers - slots}
    leases = [each.document["leases"][0] for each in ended if each.code == 0]
    assert len({each["loop"] for each in leases}) == len({each["worktree"] for each in leases}) == slots
    assert len({each["environment"]["LOOPR_PORT_BASE"] for each in leases}) == slots
    assert all(Path(each["worktree"], "README").is_file() and Path(each["prompt_file"]).is_file() for each in leases)
    refused = next(each for each in ended if each.code)
    assert f"all {slots + engine} slots are taken" in refused.document["error"]["message"]
    if process is not None:
        assert sum(repo.granted().values()) == slots + 1
        process.kill()


def test_a_pause_stops_taking(repo: Repo) -> None:
    """While the workspace or all that is asked for is paused nothing is leased, and that is the reason given."""
    plan(repo, "a;b")
    repo.loopr("pause", "--all", "--reason", "lunch")
    ended = repo.loopr("lease", "take", "--json", code=75)
    error = ended.document["error"]
    assert (error["code"], "2 loops: the workspace is paused by" in error["message"], "lunch" in error["message"]) == (
        "deferred",
        True,
        True,
    )
    repo.loopr("resume", "--all")
    repo.loopr("pause", "a")
    assert take(repo)["loop"] == "demo/b"
    assert "demo/a: it is paused" in repo.loopr("lease", "take", code=75).err


def test_what_is_taken_is_what_was_asked_for(repo: Repo) -> None:
    """Types, projects, a number and a name are heeded; what cannot be meant is refused before anything is leased."""
    plan(repo, "a;b;c", code="run: 'true'")
    for words, code, said in (
        (["--limit", "0"], 2, "out of range"),
        (["--holder", "engine"], 2, "cannot be called"),
        (["--holder", "a\nb"], 2, "no name"),
        (["--type", "cde"], 3, "there is no type cde"),
        (["--project", "x"], 3, "there is no project x"),
        (["--type", "plan"], 75, "no loop that was asked for is pending"),
    ):
        assert said in repo.loopr("lease", "take", *words, code=code).err
    assert repo.events("lease_granted") == []
    told = repo.loopr("lease", "take", "--limit", "2", "--type", "code", "--project", "default", "--holder", "bob")
    assert [line.split()[0] for line in told.out.splitlines() if "#" in line] == ["demo/a#1", "demo/b#1"]
    listed = repo.loopr("lease", "list", "--json").document["leases"]
    assert [(each["lease"], each["holder"], each["state"]) for each in listed] == [
        ("demo/a#1", "bob", "held"),
        ("demo/b#1", "bob", "held"),
    ]
    keys = "lease loop type holder state taken_at age_secs expires_at worktree"
    assert list(listed[0]) == keys.split()
    assert Path(listed[0]["worktree"]).is_dir()


def test_a_worker_gets_what_a_command_gets(repo: Repo) -> None:
    """A pull worker has every variable of a command, in its document and as a file, and the same papers."""
    plan(repo, "a;b", code=f"run: '{repo.script('code', WRITE)}', env: {{set: {{COLOUR: green}}}}")
    lease = take(repo)
    environment = lease["environment"]
    assert list(lease) == ["lease", "loop", "expires_at", "worktree", "environment", "prompt_file", "output"]
    script = f'. "{lease["worktree"]}/.loopr/environment"; echo "$LOOPR_LEASE $LOOPR_WORKTREE $COLOUR"'
    assert subprocess.check_output(["sh", "-c", script], text=True).split() == ["demo/a#1", lease["worktree"], "green"]
    assert environment["COLOUR"] == "green"
    assert "- `demo/b` b: pending" in Path(lease["prompt_file"]).read_text()
    assert all(Path(environment[f"LOOPR_{each}_FILE"]).is_file() for each in ("PROMPT", "FEEDBACK", "CONTEXT"))
    work(lease)
    repo.loopr("lease", "complete", lease["lease"])
    repo.loopr("run")
    assert sorted(set(environment) - {"COLOUR"}) == repo.note("names").split()
    assert {(loop, number) for loop, number, _ in repo.landed("demo")} == {("demo/a", 1), ("demo/b", 1)}


def test_what_cannot_be_made_ready_is_given_back(repo: Repo) -> None:
    """Where the setup command fails the lease is given back free, with the reason, and the verb says so."""
    plan(repo, "a", worktrees=", setup: 'echo no compiler; exit 3'")
    ended = repo.loopr("lease", "take", "--json", code=78)
    assert "demo/a#1 was given back" in ended.document["error"]["message"]
    assert "no compiler" in ended.document["error"]["message"]
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["failures"], loop["iteration"], loop["lease"]) == ("pending", 0, 1, None)
    repo.settings("types:\n  plan: {child: code}\n  code: {}\n", worktrees=", setup: 'echo ready > made'")
    assert Path(take(repo)["worktree"], "made").is_file()


# --- handing over -----------------------------------------------------------------------------------------------------


def test_work_lands_beside_an_engine(repo: Repo) -> None:
    """With an engine at work, what a worker hands over is committed, judged on the tree that would land, and landed."""
    plan(repo, f"{hold(repo)};a", code="check: 'grep done work.txt'")
    process = held_engine(repo)
    lease = take(repo)
    work(lease, "done\n")
    repo.git("add", "work.txt", cwd=Path(lease["worktree"]))
    repo.git("commit", "--quiet", "--message=mine", cwd=Path(lease["worktree"]))
    work(lease, "more\n", "more.txt")
    assert repo.loopr("lease", "complete", "a#1").err == ""
    repo.until("landed", words="demo/a")
    assert repo.on_branch("demo", "work.txt") + repo.on_branch("demo", "more.txt") == "donemore"
    assert not repo.git("ls-files", cwd=Path(lease["worktree"]).parent.parent).count(".loopr")
    process.kill()


def test_work_waits_for_the_next_engine(repo: Repo) -> None:
    """Without an engine what is handed over stays in the checking, and the next run judges and lands it."""
    plan(repo, "a", code="check: 'grep done work.txt'")
    lease = take(repo)
    work(lease)
    told = repo.loopr("lease", "complete", lease["lease"])
    assert "no engine runs here" in told.err
    assert repo.statuses()["demo/a"] == "checking"
    repo.loopr("lease", "complete", lease["lease"])  # its answer may have been lost: that is no other result
    repo.loopr("run")
    assert repo.statuses()["demo/a"] == "complete"
    assert repo.on_branch("demo", "work.txt") == "done"
    assert len(repo.events("work_ended")) == 1


def test_an_artifact_by_hand(repo: Repo) -> None:
    """A loop of a type without a command is taken, declares its children in what is handed over, and these go on."""
    ladder = "types:\n  plan: {child: spec}\n  spec: {child: phase}\n  phase: {child: code}\n"
    repo.settings(f"{ladder}  code: {{run: 'touch done'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "plan.md")
    bad = take(repo)
    repo.loopr("lease", "complete", bad["lease"])
    repo.loopr("run", code=4)
    lease = take(repo)
    assert "no artifact was handed over" in Path(lease["environment"]["LOOPR_FEEDBACK_FILE"]).read_text()
    Path(lease["output"]).write_text("---\nchildren: [{id: x}]\n---\n# A\n")
    repo.loopr("lease", "complete", lease["lease"])
    repo.loopr("run")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/a", "demo/a/x", "demo/a/x/code"), "complete")


def test_a_refused_worker_is_told_why(repo: Repo) -> None:
    """What the check said, and what cannot be committed, is the feedback of whoever takes the loop next."""
    plan(repo, "a", code="check: 'echo it is not done; exit 1'")
    for name, said in (("work.txt", "it is not done"), (".env", ".env")):
        lease = take(repo)
        work(lease, name=name)
        repo.loopr("lease", "complete", lease["lease"])
        repo.loopr("run", code=4)
        lease = take(repo)
        assert said in Path(lease["environment"]["LOOPR_FEEDBACK_FILE"]).read_text()
        assert Path(lease["worktree"], name).is_file()
        repo.loopr("lease", "release", lease["lease"])
    assert (repo.loops()["demo/a"]["iteration"], repo.loops()["demo/a"]["failures"]) == (3, 0)


def test_what_a_worker_says_in_its_result_file(repo: Repo) -> None:
    """The result file makes the end of a worker's attempt stricter, and tells what it has used."""
    plan(repo, "a;b")
    one, two = take(repo), take(repo)
    usage = {"input_tokens": 30, "output_tokens": 12}
    for lease, status in ((one, "blocked"), (two, "refused")):
        body = {"schema": 1, "status": status, "message": f"{status} it is", "usage": usage}
        Path(lease["environment"]["LOOPR_RESULT_FILE"]).write_text(json.dumps(body))
        repo.loopr("lease", "complete", lease["lease"])
    loops = repo.loops()
    assert [(loops[each]["status"], loops[each]["iteration"]) for each in ("demo/a", "demo/b")] == [
        ("parked", 1),
        ("pending", 2),
    ]
    assert loops["demo/b"]["usage"]["tokens"] == 42
    assert "blocked it is" in loops["demo/a"]["reason"]
    assert "refused it is" in Path(take(repo)["environment"]["LOOPR_FEEDBACK_FILE"]).read_text()


def test_giving_back(repo: Repo) -> None:
    """A lease is given back free, or as a refused iteration with feedback; what was done stays for whoever goes on."""
    plan(repo, "a")
    lease = take(repo)
    work(lease, "half\n")
    repo.loopr("lease", "release", lease["lease"])
    assert (repo.loops()["demo/a"]["iteration"], repo.loops()["demo/a"]["failures"]) == (1, 0)
    lease = take(repo)
    assert (lease["lease"], Path(lease["worktree"], "work.txt").read_text()) == ("demo/a#2", "half\n")
    assert "needs feedback" in repo.loopr("lease", "release", lease["lease"], "--refused", code=2).err
    both = repo.loopr("lease", "release", lease["lease"], "--refused", "--failed", "--reason", "x", code=2)
    assert "do not go together" in both.err
    repo.loopr("lease", "release", lease["lease"], "--refused", "--feedback", "the printer is on fire")
    assert repo.loops()["demo/a"]["iteration"] == 2
    lease = take(repo)
    assert Path(lease["environment"]["LOOPR_FEEDBACK_FILE"]).read_text().startswith("the printer is on fire")
    assert "is no lease" in repo.loopr("lease", "release", "demo/a", code=2).err
    assert "is no lease" in repo.loopr("lease", "release", f"demo/a#{'9' * 5000}", code=2).err
    assert "no lease is named" in repo.loopr("lease", "renew", code=2).err
    assert repo.loopr("lease", "renew", LOOPR_LEASE=lease["lease"]).out.startswith("demo/a#3  renewed")


def test_work_that_is_given_up_is_parked_in_the_end(repo: Repo) -> None:
    """Each release as failed is one failure, whatever its reason; the last one parks the loop, and reset frees it."""
    repo.write({"loopr.local.yml": "retry: {base_secs: 0, max_attempts: 3}\n"})
    plan(repo, "a")
    for number in (1, 2, 3):
        lease = take(repo)["lease"]
        assert lease == f"demo/a#{number}"
        reason = ("--reason", f"reason {number}" if number > 1 else " ")
        repo.loopr("lease", "release", lease, "--failed", *reason)
        loop = repo.loops()["demo/a"]
        assert (loop["iteration"], loop["failures"]) == (1, number)
    assert loop["status"] == "parked"
    assert "reason 3" in loop["reason"]
    assert repo.events("broke")[0]["data"]["reason"].startswith("given up as failed by")
    repo.loopr("lease", "take", code=75)
    repo.loopr("reset", "a")
    assert take(repo)["lease"] == "demo/a#4"


def test_work_that_is_given_up_waits_before_it_is_offered_again(repo: Repo) -> None:
    """After a release as failed the loop backs off, as after a command that died."""
    repo.write({"loopr.local.yml": "retry: {base_secs: 3600, cap_secs: 3600}\n"})
    plan(repo, "a")
    repo.loopr("lease", "release", take(repo)["lease"], "--failed")
    assert "backoff" in {each["gate"] for each in repo.loops()["demo/a"]["gates"]}
    repo.loopr("lease", "take", code=75)


def test_all_that_expired_are_reclaimed(repo: Repo) -> None:
    """Without a name `lease reclaim` takes what has expired, and nothing else."""
    plan(repo, "a;b;c", more="lease: {ttl_secs: 100000}\n")
    leases = [take(repo)["lease"] for _ in range(3)]
    assert repo.loopr("lease", "reclaim").err.startswith("no lease has expired")
    repo.loopr("lease", "renew", *leases[:2], "--set", "lease.ttl_secs=0.001")
    rows = repo.loopr("lease", "reclaim", "--json").document["leases"]
    assert [(each["lease"], each["did"]) for each in rows] == [(each, "reclaimed") for each in leases[:2]]
    assert [each["failures"] for each in repo.loops().values() if each["id"] != "demo"] == [1, 1, 0]


# --- silence ----------------------------------------------------------------------------------------------------------


def test_renewing(repo: Repo) -> None:
    """A renewed lease expires later; several are renewed together, or none if one of them is stale."""
    plan(repo, "a;b", more="lease: {ttl_secs: 1000}\n")
    leases = [take(repo), take(repo)]
    rows = repo.loopr("lease", "renew", "a#1", "b#1", "--json").document["leases"]
    assert [each["expires_at"] > lease["expires_at"] for each, lease in zip(rows, leases, strict=True)] == [True, True]
    ended = repo.loopr("lease", "renew", "a#1", "b#2", "--json", code=3)
    assert ended.document["error"]["code"] == "stale_lease"
    after = repo.loopr("lease", "list", "--json").document["leases"]
    assert [each["expires_at"] for each in after] == [each["expires_at"] for each in rows]


def test_a_worker_that_dies(repo: Repo) -> None:
    """Its lease is reclaimed after its end and counted once; its late word is stale, its commits are kept and named."""
    plan(repo, "a", code=f"run: '{repo.script('code', WRITE)}'", more="lease: {ttl_secs: 1}\n")
    lease = take(repo)
    folder = work(lease, "mine\n", "ada.txt").parent
    repo.git("add", "ada.txt", cwd=folder)
    repo.git("commit", "--quiet", "--message=mine", cwd=folder)
    mine = repo.git("rev-parse", "HEAD", cwd=folder)
    work(lease, "not committed\n")
    repo.loopr("run")
    assert [(each["loop"], each["data"]["attempt"]) for each in repo.events("lease_expired")] == [("demo/a", 1)]
    assert repo.landed("demo") == [("demo/a", 2, 1)]
    assert repo.git("ls-tree", "--name-only", "loopr/demo").split() == ["README", "engine.txt", "loopr.yml"]
    before = repo.events()
    ended = repo.loopr("lease", "complete", lease["lease"], "--json", code=3)
    error = ended.document["error"]
    assert (error["code"], mine[:12] in error["message"]) == ("stale_lease", True)
    branch = next(word for word in error["message"].split() if word.startswith("loopr/demo.a.g1."))
    assert repo.git("rev-parse", branch) == mine
    assert error["message"].endswith("worktrees/demo.a.g1")
    assert (folder / "work.txt").read_text() == "not committed\n"
    assert repo.events() == before
    assert "ada has not given it back" in repo.loopr("gc", "--dry-run", "--json").out


def test_a_taker_that_is_killed(repo: Repo) -> None:
    """A lease is kept alive while it is made ready; if the taker dies then, whoever comes next has a place apart."""
    gate = repo.gate("gate")
    setup = repo.script("setup", 'tell "$LOOPR_LEASE"\nwait_at gate')
    plan(repo, "a", more="lease: {ttl_secs: 0.6}\n", worktrees=f", setup: '{setup}'")
    taker = repo.begin("lease", "take")
    assert repo.heard() == ["demo/a#1"]
    repo.until("lease_renewed", 2)
    taker.kill()
    gate.open()
    while (ended := repo.loopr("lease", "take", "--set", "lease.ttl_secs=300", "--json", code=None)).code == 75:
        Event().wait(0.05)
    lease = ended.document["leases"][0]
    assert (lease["lease"], Path(lease["worktree"]).name) == ("demo/a#2", "demo.a.g1~2")
    assert len(repo.events("lease_expired")) == 1


def test_a_lease_is_taken_back_by_hand(repo: Repo) -> None:
    """`lease reclaim` refuses a lease that lives, and takes an expired one back as one failure."""
    plan(repo, "a;b", code="worktree: false")
    take(repo)
    assert "has not expired yet" in repo.loopr("lease", "reclaim", "a#1", code=2).err
    take(repo, "--set", "lease.ttl_secs=0.2")
    while repo.loopr("lease", "list", "--json").document["leases"][1]["state"] != "expired":
        Event().wait(0.05)
    repo.loopr("lease", "reclaim", "b#1")
    assert repo.loops()["demo/b"]["failures"] == 1
    repo.loopr("lease", "reclaim", "b#1", code=3)
    again = take(repo)
    assert (again["lease"], Path(again["worktree"]).name) == ("demo/b#2", "demo.b.g1~2")
    assert Path(repo.root, "worktrees/demo.b.g1").is_dir()
    repo.loopr("lease", "release", again["lease"])
    assert Path(take(repo)["worktree"]).name == "demo.b.g1~2"


def test_a_worker_that_is_not_wanted_any_more(repo: Repo) -> None:
    """After a cancel its slot is counted until its lease ends, and what it hands over is stale and kept."""
    plan(repo, "a;b", more="concurrency: {max_loops: 1}\n")
    lease = take(repo)
    work(lease)
    repo.loopr("cancel", "a")
    listed = repo.loopr("lease", "list", "--json").document["leases"]
    assert [(each["lease"], each["holder"], each["state"]) for each in listed] == [("demo/a#1", "ada", "stopping")]
    assert "all 1 slots are taken" in repo.loopr("lease", "take", code=75).err
    ended = repo.loopr("lease", "complete", "a#1", code=3)
    assert "what it left is kept: branch loopr/demo.a.g1" in ended.err
    assert Path(lease["worktree"], "work.txt").is_file()


def test_an_engine_leaves_the_processes_of_workers_alone(repo: Repo) -> None:
    """What a worker runs with the variables of its lease lives on when an engine begins, also after it handed over."""
    plan(repo, "a;b")
    leases = [take(repo), take(repo)]
    lives = [_begun(repo, each) for each in leases]
    for each in leases:
        work(each, name=f"{each['loop'][-1]}.txt")
        repo.loopr("lease", "complete", each["lease"])
    repo.loopr("run")
    repo.loopr("run")
    assert [process.has_ended for process in lives] == [False, False]
    for process in lives:
        process.kill()


def _begun(repo: Repo, lease: dict[str, Any]) -> Process:
    """Start something in a worktree that waits for ever."""
    process = Process(
        ["sh", "-c", "echo begun; exec tail -f /dev/null"],
        Path(lease["worktree"]),
        {**repo.env, **lease["environment"]},
    )
    process.lines(1)
    return process


# --- before taking --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [[], ["--limit", "2"], ["--type", "code", "--limit", "3"], ["--project", "web"], ["--type", "plan"]],
    ids=str,
)
def test_what_would_be_taken_is_foretold(repo: Repo, words: list[str]) -> None:
    """`next --pull` shows the leases that `lease take` grants then, in that order, each time, and remembers nothing."""
    more = "projects: {web: {}}\nconcurrency: {max_loops: 4}\ndispatch: {batch_size: 1}\n"
    plan(repo, "{id: a, run: 'true'};b;c;e", more=more)
    repo.write({"web.md": "---\nid: web\nproject: web\nchildren: [{id: d}]\n---\n# Web\n"})
    repo.loopr("start", "--no-run", "web.md")
    before = len(repo.events())
    body = repo.loopr("next", "--pull", *words, "--json").document
    asked = ("next", "--pull", *words, "--json", "--at", "+1m")
    at = ("--at", repo.loopr(*asked).document["generated_at"])
    assert repo.loopr(*asked[:-2], *at).out == repo.loopr(*asked[:-2], *at).out
    assert len(repo.events()) == before
    shown = [(each["id"], each["lease"]) for each in body["grants"]]
    assert bool(shown) == ("plan" not in words)
    limit = words if "--limit" in words else [*words, "--limit", "9"]
    ended = repo.loopr("lease", "take", "--holder", "ada", *limit, "--json", code=0 if shown else 75)
    taken = ended.document["leases"] if shown else []
    assert [(each["loop"], each["lease"]) for each in taken] == shown
    assert {each["gate"] for each in body["held"]} <= {"capacity"}
    assert all(each["gate"] not in ("manual", "pace") for each in body["held"])


def test_words_for_leases_go_with_pull(repo: Repo) -> None:
    """Whoever narrows the engine's own round down is told what the words are for."""
    plan(repo, "a")
    assert "--pull" in repo.loopr("next", "--type", "code", code=2).err
    assert "there is no type 'cde'" in repo.loopr("next", "--pull", "--type", "cde", code=2).err
    repo.loopr("pause", "--all")
    assert "nothing would be leased now" in repo.loopr("next", "--pull").err
