"""Lanes, budgets and escalation with real processes: rests that outlive an engine, pools, brakes, judges, accounts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import Repo, opened

FIRST = 'first() { test ! -e "$DESK/not first" && touch "$DESK/not first"; }\n'
RESULT = 'result() { printf \'{"schema": 1, %s}\' "$1" > "$LOOPR_RESULT_FILE"; }\n'
USED = 'used() { result \'"status": "done", "usage": {"output_tokens": \'"$1"\'}\'; }\n'
AGENT = """\
event() { printf '%s\\n' "$1"; }
result() { event '{"type":"result","subtype":"success","num_turns":1,'"$1"'}'; }
done_well() { result '"is_error":false,"usage":{"output_tokens":5}'; }
denied() { result '"is_error":true,"api_error_status":401,"result":"Invalid API key"'; exit 1; }
window() {
    ends=$(($(date +%s) + 36000))
    event '{"type":"rate_limit_event","rate_limit_info":{"unifiedWindows":{"five_hour":{"utilization":0.99,"resetsAt":'\
"$ends"'}}}}'
}
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, script: str, names: str, *, more: str = "", text: str = "", head: str = "") -> None:
    """Set a repository up for a plan with code loops of some names, whose command is a script."""
    run = repo.script("code", FIRST + RESULT + USED + script)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{text}")
    offer(repo, names, head)


def offer(repo: Repo, names: str, head: str = "") -> None:
    """Write the plan's file."""
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\n{head}children: [{children}]\n---\n# Demo\n"})


def agents(repo: Repo, script: str, names: str, *, more: str = "", text: str = "") -> None:
    """Set a repository up for a plan on which an agent works that says what Claude Code says."""
    run = json.dumps(["sh", str(repo.desk / "agent.sh")])
    repo.script("agent", FIRST + RESULT + AGENT + script)
    repo.settings(
        f"agents: {{fake: {{run: {run}, reader: claude, mend: {{authentication: put the key on the desk}}}}}}\n"
        f"types:\n  plan: {{child: code}}\n  code: {{agent: fake{more}}}\n{text}"
    )
    offer(repo, names)


def lane(repo: Repo, name: str) -> dict[str, Any]:
    """Return how a lane is."""
    found: dict[str, Any] = repo.loopr("status", "--json").document["lanes"][name]
    return found


def granted(repo: Repo) -> list[tuple[int, str]]:
    """List when which loop was granted a lease."""
    return [(each["at"], each["loop"]) for each in repo.events("lease_granted")]


# --- rests ------------------------------------------------------------------------------------------------------------


def test_a_storm_of_limits(repo: Repo) -> None:
    """A limit lets a lane rest until its end, also beyond the death of the engine; then it is 1, 2, 4; none is lost."""
    script = 'if test ! -e "$DESK/calm"; then tell storm; wait_at storm; result "$(cat "$DESK/limit")"; fi; begin; end'
    plan(repo, script, "a b c d e f g", more=", lane: paid", text="concurrency: {per_type: {code: 4}}\n")
    (repo.desk / "limit").write_text('"status": "limited", "retry_after_secs": 4, "message": "usage limit reached"')
    gate = repo.gate("storm")
    process = repo.begin("start", "plan.md")
    repo.heard(4)
    (repo.desk / "calm").touch()
    gate.let_on(4)
    repo.until("limited", 4)
    rest = repo.events("lane_rested")[-1]["data"]
    assert (rest["lane"], rest["hits"], rest["reason"]) == ("paid", 1, "usage limit reached")
    process.kill()
    assert lane(repo, "paid")["reason"] == "usage limit reached"
    assert "lane paid: backing off until" in repo.loopr("status").out
    repo.loopr("run")
    after = [each for each in granted(repo) if each[0] > repo.events("lane_rested")[0]["at"]]
    assert min(at for at, _ in after) >= rest["until"]
    assert sorted(loop for _, loop in after) == [f"demo/{each}" for each in "abcdefg"]
    ramps = [each["data"]["ramp"] for each in repo.events("lane_worked")]
    assert ramps[:2] == [2, 4]
    assert set(repo.statuses().values()) == {"complete"}
    assert {(each["failures"], each["iteration"]) for each in repo.loops().values()} == {(0, 1)}


def test_a_pool_of_accounts(repo: Repo) -> None:
    """Of several lanes the first free one is taken, with what it sets; one that rests is passed over."""
    script = 'say "$LOOPR_LOOP $ACCOUNT"; if first; then result "$(cat "$DESK/limit")"; fi'
    (repo.desk / "limit").write_text('"status": "limited", "retry_after_secs": 3600')
    lanes = ", ".join(
        f"{each}: {{max_concurrent: 1, env: {{set: {{ACCOUNT: key-{each}}}}}}}" for each in ("one", "two")
    )
    plan(repo, script, "a b", more=", lane: [one, two], parallel: false", text=f"lanes: {{{lanes}}}\n")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["demo/a key-one", "demo/a key-two", "demo/b key-two"]
    assert "lane one: backing off until" in repo.loopr("status").out


@pytest.mark.parametrize("asked", ['"resets_at": "9999-12-31T00:00:00Z"', '"retry_after_secs": 1e9'])
def test_a_rest_that_a_result_file_asks_for_has_a_bound(repo: Repo, asked: str) -> None:
    """However long a command asks its lane to rest, it takes loops again after `max_rest_secs`; all land."""
    limit = f'"status": "limited", "message": "for ever", {asked}'
    (repo.desk / "limit").write_text(limit)
    script = 'case "$LOOPR_LOOP#$LOOPR_ATTEMPT" in "demo/a#1") result "$(cat "$DESK/limit")" ;; esac; echo x > x'
    plan(repo, script, "a b c", text="lanes: {default: {max_rest_secs: 3}}\n")
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    (rest,) = repo.events("lane_rested")
    assert rest["data"]["until"] == rest["at"] + 3_000


# --- before the wall --------------------------------------------------------------------------------------------------


def test_a_warning_slows_a_lane_down(repo: Repo) -> None:
    """Once its client says that its window is nearly used up, a lane takes one loop at a time until that one ends."""
    script = "begin; tell $LOOPR_LOOP; wait_at gate; window; done_well; end"
    agents(repo, script, "a b c d e f", text="lanes: {fake: {max_concurrent: 3, slow_above: 0.8}}\n")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    gate.let_on(3)
    repo.heard(1)
    found = lane(repo, "fake")
    assert (found["window_used"], found["occupied"]) == (0.99, 1)
    told = repo.events("lane_measured")[0]
    assert 35_000_000 < told["data"]["until"] - told["at"] <= 36_001_000  # not the hour of one that does not say
    assert "lane fake: 99% of its window is used, only 1 at once" in repo.loopr("status").out
    assert "99% of lane fake's window is used" in repo.loopr("ls", "--status", "pending").out
    before = len(repo.diary())
    gate.open()
    process.ended()
    assert repo.most_at_once(since=before) == 1


# --- accounts ---------------------------------------------------------------------------------------------------------


def test_an_account_that_is_refused(repo: Repo) -> None:
    """The lane is parked once and says what to do, no loop fails, and the end is 1; `reset` brings it back."""
    agents(repo, 'if test ! -e "$DESK/key"; then tell denied; wait_at gate; denied; fi; done_well', "a b c")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    gate.open()
    end = process.ended(1)
    words = "fake is not logged in (Invalid API key): put the key on the desk"
    assert end.err.count(f"lane fake  parked  {words}") == 1
    assert len(repo.events("lane_parked")) == 1
    assert repo.granted() == {"demo/a": 1, "demo/b": 1, "demo/c": 1}
    assert f"lane fake: parked: {words}" in repo.loopr("status").out
    assert "`loopr reset lane:fake`" in " ".join(repo.loopr("why", "demo/a").out.split())
    (repo.desk / "key").touch()
    repo.loopr("reset", "lane:fake")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert {each["failures"] for each in repo.loops().values()} == {0}


def test_a_parked_lane_does_not_stop_the_others(repo: Repo) -> None:
    """What works on another lane is done before the engine ends."""
    agents(repo, "denied", "a")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b, run: touch made}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses() == {"demo": "complete", "demo/a": "pending", "demo/b": "complete"}


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_a_plan_stops_at_its_budget(repo: Repo) -> None:
    """A plan's loops wait once its tokens are used up, and the end is 5; with more it goes on; all hear the rest."""
    plan(repo, 'say "$LOOPR_TOKENS_LEFT"; used 400', "a b c", head="budget: {tokens: 500}\n")
    end = repo.loopr("start", "plan.md", code=5)
    assert "budget" in end.err
    assert repo.diary() == ["500", "100"]
    assert repo.statuses()["demo/c"] == "pending"
    assert "the tokens budget of plan demo is reached" in repo.loopr("why", "demo/c").out
    offer(repo, "a b c", "budget: {tokens: 5000}\n")
    repo.loopr("start", "plan.md")
    assert repo.diary()[2:] == ["4200"]


@pytest.mark.parametrize("key", ["budget", "projects.default.budget"])
def test_the_budget_of_everything(repo: Repo, key: str) -> None:
    """A project's and the workspace's budget hold loops back while the engine waits; a higher one goes on at once.

    Until when it waits is told once, and asked.
    """
    plan(repo, "say x; used 400", "a b")
    repo.loopr("set", f"{key}.tokens", "1")
    process = repo.begin("start", "plan.md")
    repo.until("landed", 1)
    assert "the tokens budget of" in repo.loopr("why", "demo/b").out
    process.says("is reached: 1 loop waits until ")
    (warning,) = repo.loopr("status", "--json").document["warnings"]
    assert "is reached: 1 loop waits until 2" in warning
    assert repo.loopr("run", "--once", code=6).out == ""
    assert repo.diary() == ["x"]
    repo.loopr("set", f"{key}.tokens", "1000000000")
    process.ended()
    assert repo.diary() == ["x", "x"]


def test_a_window_lets_go(repo: Repo) -> None:
    """What waits for the window of a budget goes on by itself once that has let go of enough, and the end is 0."""
    plan(repo, "say x; used 400", "a b c", text="fair_share: {window_hours: 0.0003}\nbudget: {tokens: 500}\n")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["x", "x", "x"]
    ended = [each["at"] for each in repo.events("work_ended")]
    begun = [each["at"] for each in repo.events("attempt_started")]
    assert begun[2] >= ended[0] + 1_080, "the third began before the window had let go of the first"


def test_time_of_its_own(repo: Repo) -> None:
    """A command that has used up the time of its loop is ended with all it has started, and its loop is parked."""
    plan(repo, "tell $$; wait_at never", "a", more=", budget: {secs: 1}")
    repo.gate("never")
    end = repo.begin("start", "plan.md")
    (pid,) = repo.heard(1)
    end.ended(1)
    assert not Path(f"/proc/{pid}").exists()
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["reason"].partition(":")[0]) == ("parked", "its own budget of 1 secs is used up")


# --- another takes over -----------------------------------------------------------------------------------------------


def test_another_agent_takes_over(repo: Repo) -> None:
    """After so many refusals the stronger one works, on its lane, and `show` and `why` say so."""
    big = json.dumps(["sh", "-c", 'echo "$LOOPR_ITERATION" > big'])
    plan(
        repo,
        "exit 1",
        "a",
        more=", escalate: {refused: {after: 2, agent: big}}",
        text=f"agents: {{big: {{run: {big}, lane: dear}}}}\n",
    )
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "big") == "3"
    assert [each["data"]["agent"] for each in repo.events("lease_granted")] == ["", "", "big"]
    assert "big, which took over after 2 times refused" in repo.loopr("show", "demo/a").out
    assert repo.loops()["demo/a"]["agent"] == "big"
    assert "its turn has come, on lane dear, for big" in " ".join(repo.loopr("why", "demo/a").out.split())


def test_another_agent_stands_in(repo: Repo) -> None:
    """While an agent's lane rests the other works, and `tree`, `why`, `next`, the log and each attempt name it."""
    repo.script("mine", "echo 'the quota is used up, try again in 3600 seconds'")
    repo.script("other", 'tell "$LOOPR_LOOP"; wait_at other; echo made > other')
    runs = {name: json.dumps(["sh", str(repo.desk / f"{name}.sh")]) for name in ("mine", "other")}
    repo.settings(
        "types:\n  plan: {child: code}\n  code: {agent: mine, fallback: other}\nagents:\n"
        f"  mine: {{run: {runs['mine']}, signs: {{limited: [quota]}}}}\n  other: {{run: {runs['other']}, lane: away}}\n"
    )
    offer(repo, "a")
    gate = repo.gate("other")
    engine = repo.begin("start", "plan.md")
    assert repo.heard() == ["demo/a"]
    engine.says("demo/a  started  try 2  other, which stands in for mine")
    assert "other stands in" in repo.loopr("tree").out
    assert "other, which stands in for mine" in repo.loopr("why", "demo/a").out
    gate.let_on()
    engine.ended()
    assert repo.on_branch("demo", "other") == "made"
    rows = repo.loopr("show", "demo/a", "--json").document["attempts"]
    assert [(each["agent"], each["lane"], each["class"]) for each in rows] == [
        ("mine", "mine", "limited"),
        ("other", "away", "ok"),
    ]
    offer(repo, "a b")
    repo.loopr("start", "--no-run", "plan.md")
    (coming,) = repo.loopr("next", "--json").document["grants"]
    assert (coming["id"], coming["agent"], coming["lane"]) == ("demo/b", "other", "away")
    assert coming["stands_in"].startswith("other, which stands in for mine: lane mine is backing off")
    assert "stands in for mine: lane mine is backing off" in " ".join(repo.loopr("why", "demo/b").out.split())


# --- judges -----------------------------------------------------------------------------------------------------------


def test_a_judge_with_an_account_of_its_own(repo: Repo) -> None:
    """A judge's limit lets its lane rest and not that of the commands; what it used is its lane's."""
    check = repo.script(
        "check", FIRST + RESULT + USED + 'if first; then result "$(cat "$DESK/limit")"; exit 75; fi; used 7'
    )
    (repo.desk / "limit").write_text('"status": "limited", "retry_after_secs": 3')
    plan(repo, "say works; used 100", "a", more=f", check: '{check}', lane: work, judge_lane: judge")
    repo.loopr("start", "plan.md")
    (rest,) = repo.events("lane_rested")
    assert rest["data"]["lane"] == "judge"
    assert [each["data"]["lane"] for each in repo.events("lease_granted")] == ["work", "judge"]
    assert repo.diary() == ["works"]
    assert granted(repo)[1][0] >= rest["at"] + 3_000
    used = repo.loopr("usage", "--by", "lane", "--json").document
    assert {each["key"]: each["measured"]["tokens"] for each in used["rows"]} == {"work": 100, "judge": 7}
