"""Who may steer, with the installed loopr: what loops, hooks and pull workers try, and what comes of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import LOOPR, Repo, opened

HONEST = 'echo "$LOOPR_LOOP" > "${LOOPR_LOOP##*/}.txt"'
TELL = 'tried() { "$@" >> "$DESK/out" 2>> "$DESK/said" || echo "$? $*" >> "$DESK/codes"; }\n'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        found.env |= {"PROGRAM": str(LOOPR), "USER": "ada"}
        yield found.found({"other.md": "---\nid: other\nchildren: [{id: x}]\n---\n# Other\n"})


def ready(repo: Repo, bad: str, types: str = "", more: str = "", children: str = "{id: bad}") -> None:
    """Write a plan with a misguided loop between two honest siblings; the check says no to the misguided one."""
    check = repo.script("check", 'case "$LOOPR_LOOP" in */bad) exit 1;; esac')
    run = repo.script("code", f'{TELL}case "$LOOPR_LOOP" in */bad*)\n{bad}\n;; *) {HONEST};; esac')
    code = f"{{run: '{run}', check: '{check}', max_iterations: 1{types}}}"
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {code}\n{more}")
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{{id: one}}, {children}, {{id: two}}]\n---\n# Demo\n"})


def siblings_landed(repo: Repo) -> None:
    """The honest siblings have landed, and nobody else has put anything on the plan's branch."""
    assert sorted(each[0] for each in repo.landed("demo")) == ["demo/one", "demo/two"]


def denied(repo: Repo) -> list[tuple[str, str]]:
    """Return what was refused to loops: what to which lease; the journal names the lease as who did it."""
    found = repo.events("steering_refused")
    assert all(each["actor"] == each["data"]["lease"] for each in found)
    return [(each["data"]["lease"], f"{each['data']['wish']} {each['data']['about']}".strip()) for each in found]


@pytest.mark.parametrize("way", ["worktree", "elsewhere", "link", "bare", "shell"])
def test_a_loop_does_not_set_its_own_check(repo: Repo, way: str) -> None:
    """A command that would weaken its check is refused from wherever it tries: the check stays, and it is told."""
    words = 'set types.code.check "exit 0"'
    ways = {
        "worktree": f'tried "$PROGRAM" {words}',
        "elsewhere": f'cd / && tried "$PROGRAM" {words} -C "$LOOPR_WORKSPACE"',
        "link": f'ln -s "$LOOPR_WORKSPACE" "$DESK/link" && tried "$PROGRAM" {words} -C "$DESK/link"',
        "bare": f'tried env -u LOOPR_LEASE -u LOOPR_LOOP -u LOOPR "$PROGRAM" {words} -C "$LOOPR_WORKSPACE"',
        "shell": f'tried "$PROGRAM" -C "$LOOPR_WORKSPACE" shell bad -- "$PROGRAM" {words}',
    }
    ready(repo, ways[way])
    before = (repo.root / "loopr.yml").read_bytes()
    repo.loopr("start", "plan.md", code=1)
    assert (repo.root / "loopr.yml").read_bytes() == before
    assert repo.statuses()["demo/bad"] == "failed"
    assert repo.note("codes").startswith("2 ")
    assert "a loop may never set" in repo.note("said")
    assert denied(repo) == [("demo/bad#1", "set types.code.check VALUE")]
    siblings_landed(repo)


def test_a_loop_does_not_approve_for_a_person(repo: Repo) -> None:
    """A sibling that waits for a person goes on waiting, whoever else says yes; a person's yes lets it land."""
    bad = 'wait_at gate; tried "$PROGRAM" approve demo/one; tried "$PROGRAM" reject one; tried "$PROGRAM" approve bad'
    ready(repo, bad, types=", approve: true")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.until("passed", 2)
    gate.open()
    process.ended(1)
    assert {repo.statuses()[each] for each in ("demo/one", "demo/two")} == {"awaiting_approval"}
    assert repo.note("codes").splitlines() == [
        f"2 {LOOPR} approve demo/one",
        f"2 {LOOPR} reject one",
        f"2 {LOOPR} approve bad",
    ]
    assert denied(repo) == [
        ("demo/bad#1", "approve demo/one"),
        ("demo/bad#1", "reject one"),
        ("demo/bad#1", "approve bad"),
    ]
    repo.loopr("approve", "one", "two")
    repo.loopr("run", code=1)
    assert {each["actor"] for each in repo.events("approved")} == {"ada"}
    siblings_landed(repo)


def test_a_loop_does_not_stop_the_night(repo: Repo) -> None:
    """Neither the engine nor its siblings are ended, paused or cancelled by a command that tries to."""
    tries = ("stop --now", "stop", "pause --all --now", "cancel demo", "clear --all", "run", "gc", "doctor --fix")
    ready(repo, "".join(f'tried "$PROGRAM" {each}\n' for each in tries))
    repo.loopr("start", "plan.md", code=1)
    assert len(repo.note("codes").splitlines()) == len(tries)
    assert repo.events("engine_draining", "scope_held", "cancelled", "stopped") == []
    assert {each for _, each in denied(repo)} == {
        *("stop --now", "pause --all --now", "cancel demo", "clear --all", "run", "gc", "doctor --fix"),
        "stop",
    }
    siblings_landed(repo)


def test_a_loop_does_not_start_a_plan_of_this_workspace(repo: Repo) -> None:
    """A plan of this workspace is not enqueued by a loop, whichever checkout its file lies in; a dry run shows it."""
    bad = """
    git worktree add --quiet --detach "$DESK/beside" HEAD
    tried "$PROGRAM" start --no-run other.md
    tried "$PROGRAM" start "$LOOPR_WORKSPACE/other.md" -C "$LOOPR_WORKSPACE"
    (cd "$DESK/beside" && tried "$PROGRAM" start --detach other.md)
    "$PROGRAM" start --dry-run other.md > "$DESK/dry"
    git worktree remove "$DESK/beside"
    """
    ready(repo, bad)
    repo.loopr("start", "plan.md", code=1)
    assert len(repo.note("codes").splitlines()) == 3
    assert "other" in repo.note("dry")
    assert set(repo.statuses()) == {"demo", "demo/one", "demo/two", "demo/bad"}
    siblings_landed(repo)


def test_a_loop_tests_loopr_in_a_repository_of_its_own(repo: Repo) -> None:
    """A task that works on loopr drives a whole plan in a scratch repository, approves, sets and lands there."""
    script = """
    mkdir scratch && cd scratch && git init --quiet --initial-branch=main
    printf 'worktrees: {min_free_gb: 0}\\ntypes: {plan: {child: code}, code: {approve: true}}\\n' > loopr.yml
    printf -- '---\\nid: p\\nchildren: [{id: a, run: echo hi > hi.txt}]\\n---\\n# P\\n' > plan.md
    git add --all && git commit --quiet --message=first
    "$PROGRAM" start plan.md || test $? = 4
    "$PROGRAM" approve a
    "$PROGRAM" set types.code.approve false
    "$PROGRAM" run
    "$PROGRAM" stop
    git commit --quiet --all --message=set
    "$PROGRAM" land p --yes
    "$PROGRAM" events --json > "$DESK/inner"
    cp hi.txt .. && cd .. && rm -rf scratch
    """
    ready(repo, script, children="{id: badge}")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "hi.txt") == "hi"
    assert denied(repo) == []
    inner = [json.loads(each) for each in repo.note("inner").splitlines()]
    assert {each["actor"] for each in inner} == {"ada"}


def test_what_is_below_itself(repo: Repo) -> None:
    """With a word of `may` a loop does that to what is below it, in its own name, and to nothing else."""
    tasks = '[{id: x, run: \\"true\\"}, {id: y, run: \\"false\\"}]'
    write = f'printf -- "---\\ntasks: {tasks}\\n---\\n# S\\n" > "$LOOPR_OUTPUT"'
    again = f'{TELL}test "$LOOPR_ITERATION" = 1 && {{ {write}; exit 0; }}; exit 1'
    spec = repo.script("spec", again)
    code = repo.script("code", f'{TELL}case "$LOOPR_LOOP" in */x) exit 1;; *) {HONEST};; esac')
    words = f"may: [cancel, retry, lease], run: '{spec}', trust_outline: true"
    repo.settings(
        f"types:\n  plan: {{child: spec}}\n  spec: {{child: code, {words}}}\n"
        f"  code: {{run: '{code}', max_iterations: 1}}\n"
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: s}, {id: t, children: []}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.loopr("retry", "--fresh", "-y", "demo/s").code == 0
    script = f"""{TELL}
    tried "$PROGRAM" cancel demo/s/y
    tried "$PROGRAM" retry demo/s/y
    tried "$PROGRAM" cancel demo/t
    tried "$PROGRAM" pause demo/s/y
    {write}
    """
    repo.script("spec", script)
    repo.loopr("run", code=None)
    mine = [each for each in repo.events("cancelled", "held", "retried") if each["actor"].startswith("demo/s#")]
    assert {each["loop"] for each in mine} == {"demo/s/y"}
    assert {each for _, each in denied(repo)} == {"cancel demo/t", "pause demo/s/y"}
    assert "`types.spec.may: [cancel, retry, lease, pause]`" in repo.note("said")


def test_a_plan_that_a_loop_started(repo: Repo) -> None:
    """With `may: [start, cancel]` a loop enqueues a plan, drives nothing, and may steer that plan; nobody else's."""
    repo.write({"third.md": "---\nid: third\nchildren: [{id: z}]\n---\n# Third\n"})
    bad = """
    tried "$PROGRAM" start "$LOOPR_WORKSPACE/other.md"
    tried "$PROGRAM" start "$LOOPR_WORKSPACE/other.md"
    tried "$PROGRAM" cancel other/x
    tried "$PROGRAM" cancel third/z
    tried "$PROGRAM" start "$LOOPR_WORKSPACE/third.md"
    """
    ready(repo, bad, types=", may: [start, cancel]", more="concurrency: {max_loops: 1}\n")
    repo.loopr("start", "--no-run", "third.md")
    repo.loopr("start", "plan.md", code=1)
    assert [each["actor"] for each in repo.events("plan_bound") if each["data"]["plan"] == "other"] == ["demo/bad#1"]
    assert [each["loop"] for each in repo.events("cancelled")] == ["other/x"]
    assert len(repo.note("codes").splitlines()) == 2
    assert {each.split()[0] for _, each in denied(repo)} == {"cancel", "start"}
    siblings_landed(repo)


def test_a_group_lies_wholly_below(repo: Repo) -> None:
    """A loop may steer a group only if it may steer each loop of it: one that it may not keeps all from it."""
    repo.write({"third.md": "---\nid: third\nchildren: [{id: z}]\n---\n# Third\n"})
    bad = """
    tried "$PROGRAM" start "$LOOPR_WORKSPACE/other.md"
    tried "$PROGRAM" convoy create @mine other/x
    tried "$PROGRAM" cancel --yes project:default
    tried "$PROGRAM" cancel --yes @theirs
    tried "$PROGRAM" pause demo
    tried "$PROGRAM" dispatch third
    tried "$PROGRAM" cancel --yes @mine
    """
    may = ", may: [start, cancel, convoy, pause, dispatch]"
    ready(repo, bad, types=may, more="concurrency: {max_loops: 1}\n")
    repo.loopr("start", "--no-run", "third.md")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("convoy", "create", "@theirs", "third/z")
    repo.loopr("run", code=None)
    assert [each["loop"] for each in repo.events("cancelled")] == ["other/x"]
    assert not repo.events("held", "loops_dispatched")
    assert {each for _, each in denied(repo)} == {
        "cancel project:default",
        "cancel @theirs",
        "pause demo",
        "dispatch third",
    }
    siblings_landed(repo)


def test_a_shell_has_no_mark(repo: Repo) -> None:
    """Whoever opens a shell in a loop's worktree is a person there: it sets no lease."""
    ready(repo, "exit 0")
    repo.loopr("start", "plan.md", code=1)
    assert "LOOPR_" not in repo.loopr("shell", "bad", "--", "env").out
    repo.loopr("shell", "bad", "--", str(LOOPR), "retry", "bad")
    assert [each["actor"] for each in repo.events("retried")] == ["ada"]


# --- whatever is tried is seen ----------------------------------------------------------------------------------------


def test_tries_are_counted_and_shown(repo: Repo) -> None:
    """Of thirty tries five are told, with their number; `events`, `why`, `show`, `status` and the progress tell it."""
    bad = 'for i in $(seq 30); do "$PROGRAM" approve demo/one 2> /dev/null || true; done'
    ready(repo, bad)
    said = repo.loopr("start", "plan.md", code=1).err
    assert [each["data"]["tries"] for each in repo.events("steering_refused")] == [1, 2, 4, 8, 16]
    words = "refused `approve demo/one`"
    assert f"{words}, 16 times by now" in repo.loopr("events", "bad").out
    assert words in " ".join(repo.loopr("why", "bad").out.split())
    assert repo.loopr("show", "bad", "--json").document["denied"] == ["`loopr approve demo/one`, at least 16 times"]
    assert "`loopr approve demo/one`, at least 16" in " ".join(repo.loopr("show", "bad").out.split())
    assert "demo/bad#1 was refused `loopr approve demo/one`" in repo.loopr("status").out
    assert f"demo/bad  {words}  it is not for a loop" in said
    siblings_landed(repo)


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_a_hook_resets_a_parked_loop(repo: Repo) -> None:
    """A hook may do what a person may; the journal names it."""
    hook = repo.script("hook", 'touch "$DESK/mended"; "$PROGRAM" reset "$LOOPR_LOOP"')
    bad = f'test -e "$DESK/mended" || exit 78; {HONEST}'
    ready(repo, bad, more=f"hooks: {{on_park: '{hook}'}}\n", children="{id: badge}")
    repo.loopr("start", "plan.md")
    assert [(each["loop"], each["actor"]) for each in repo.events("unparked")] == [("demo/badge", "hook on_park")]
    assert {each["data"]["by"] for each in repo.events("unparked")} == {"hook on_park"}
    assert sorted(each[0] for each in repo.landed("demo")) == ["demo/badge", "demo/one", "demo/two"]


@pytest.mark.parametrize("may", [False, True])
def test_a_hook_decides_only_where_it_may(repo: Repo, may: bool) -> None:
    """A hook approves, sets and lands only with `hooks.may_decide`; without it that is refused and told."""
    script = f"""{TELL}
    tried "$PROGRAM" approve one
    tried "$PROGRAM" set retry.base_secs 7
    tried "$PROGRAM" land demo --yes
    ! grep -q '^2 ' "$DESK/codes" 2> /dev/null
    """
    hook = repo.script("hook", script)
    decide = ", may_decide: true" if may else ""
    ready(repo, "exit 78", types=", approve: true", more=f"hooks: {{on_park: '{hook}'{decide}}}\n")
    repo.loopr("start", "plan.md", code=1)
    assert [each["actor"] for each in repo.events("approved")] == (["hook on_park"] if may else [])
    assert ("base_secs: 7" in (repo.root / "loopr.yml").read_text()) == may
    problem = repo.loopr("status", "--json").document["problems"]
    told = [each["text"] for each in problem if each["place"] == "hook on_park"]
    assert bool(told) != may
    if not may:
        assert repo.note("said").count("hooks.may_decide true") == 3


# --- pull workers -----------------------------------------------------------------------------------------------------


def test_a_pull_worker_has_its_own_lease(repo: Repo) -> None:
    """A worker in its environment renews and completes its lease; another's, and anything else, is refused."""
    check = repo.script("check", "true")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{check: '{check}'}}\n")
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: one}, {id: two}]\n---\n# Demo\n"})
    repo.loopr("start", "--no-run", "plan.md")
    mine, theirs = (repo.loopr("lease", "take", "--json").document["leases"][0] for _ in range(2))
    env: dict[str, str] = mine["environment"]
    Path(mine["worktree"], "work.txt").write_text("done\n")
    repo.loopr("lease", "renew", **env)
    other = repo.loopr("lease", "complete", theirs["lease"], code=2, **env)
    assert "the lease of a pull worker" in other.err
    assert "`unset LOOPR_LEASE`" in other.err
    for verb in ("approve", "cancel", "pause"):
        repo.loopr(verb, theirs["loop"], code=2, **env)
    repo.loopr("lease", "take", code=2, **env)
    repo.loopr("tree", **env)
    repo.loopr("lease", "complete", **env)
    over = repo.loopr("lease", "take", code=2, **env)  # handed over: its check counts as a loop's
    assert "LOOPR_LEASE" in over.err or "command of" in over.err
    repo.loopr("lease", "release", theirs["lease"])
    repo.loopr("run", code=4)
    assert [each[0] for each in repo.landed("demo")] == [mine["loop"]]
    stale = repo.loopr("cancel", theirs["loop"], code=2, **env)
    assert "is over and counts as a loop's" in stale.err
    assert "`unset LOOPR_LEASE`" in stale.err
    actors = {each["event"]: each["actor"] for each in repo.events("lease_renewed", "work_ended")}
    assert actors == {"lease_renewed": mine["lease"], "work_ended": mine["lease"]}


def test_a_loop_does_not_pass_for_a_pull_worker(repo: Repo) -> None:
    """A command that quotes somebody else's lease as its own is known by the process above it, and is refused."""
    repo.write({"third.md": "---\nid: third\nchildren: [{id: z}]\n---\n# Third\n"})
    ready(repo, 'export LOOPR_LEASE="third/z#1"; tried "$PROGRAM" lease complete; tried "$PROGRAM" stop')
    repo.loopr("start", "--no-run", "third.md")
    lease = repo.loopr("lease", "take", "--holder", "ada", "--json").document["leases"][0]["lease"]
    assert lease == "third/z#1"
    process = repo.begin("start", "plan.md")
    repo.until("steering_refused", 2)
    repo.loopr("lease", "release", lease)
    process.ended(1)
    assert "above this one is the command of demo/bad" in repo.note("said")
    ends = [each["event"] for each in repo.events("work_ended", "lease_released") if each["loop"] == "third/z"]
    assert ends == ["lease_released", "work_ended"]  # by its holder, then by the engine that went on with it
    siblings_landed(repo)


# --- agents -----------------------------------------------------------------------------------------------------------

AGENT = """
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main():
    server = StdioServerParameters(command=os.environ["PROGRAM"], args=["mcp"], cwd=os.getcwd(), env=dict(os.environ))
    async with Client(server) as client:
        for tool, given in json.loads(sys.argv[1]):
            answer = await client.call_tool(tool, given)
            print(json.dumps([tool, answer.is_error, json.loads(answer.content[0].text)]))

asyncio.run(main())
"""


def test_an_agent_within_a_loop(repo: Repo) -> None:
    """A server that a loop's command starts answers questions, and refuses what the command line refuses."""
    (repo.desk / "agent.py").write_text(AGENT)
    calls: list[Any] = [
        ["tree", {}],
        ["approve", {"ids": ["demo/one"]}],
        ["set", {"key": "types.code.check", "value": "exit 0"}],
        ["start", {"plans": ["other.md"]}],
        ["cancel", {"ids": ["demo/two"]}],
    ]
    (repo.desk / "calls").write_text(json.dumps(calls))
    ready(repo, f'"{sys.executable}" "$DESK/agent.py" "$(cat "$DESK/calls")" > "$DESK/answers"; exit 0')
    repo.loopr("start", "plan.md", code=1)
    answers = [json.loads(each) for each in repo.note("answers").splitlines()]
    assert [(tool, failed) for tool, failed, _ in answers] == [(each[0], each[0] != "tree") for each in calls]
    assert {each["error"]["code"] for _, failed, each in answers if failed} == {"not_allowed"}
    found = repo.events("steering_refused")
    assert {each["actor"].partition(" via ")[0] for each in found} == {"demo/bad#1"}
    assert [each["data"]["wish"] for each in found] == ["approve", "set", "start", "cancel"]
    siblings_landed(repo)


# --- what judges what comes home --------------------------------------------------------------------------------------


def test_what_judges_what_comes_home_steers_nothing(repo: Repo) -> None:
    """`land.check` runs what loops have written: it may look, and change nothing here."""
    check = repo.script("home", f'{TELL}tried "$PROGRAM" set land.check null -C "$LOOPR_WORKSPACE"')
    ready(repo, HONEST, more=f"land: {{check: '{check}'}}\n", children="{id: badge}")
    repo.loopr("start", "plan.md")
    repo.loopr("land", "demo", "--yes")
    assert "what judges may never set" in repo.note("said")
