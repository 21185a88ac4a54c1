"""What enters the queue and what leaves it: limits, pace, what could never run, many at once, and moved ceilings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.operators import QUICK, at_once, numbered, outline, past_gates, plan
from tests.e2e.repos import Repo, opened
from tests.ui.calls import loopr


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


# --- many at once ---------------------------------------------------------------------------------------------------


def test_one_plan_is_started_and_driven_by_many(repo: Repo) -> None:
    """Of several processes that start and drive one plan, one does it, the others follow it, and all end well."""
    plan(repo, numbered(3), work=QUICK)
    at_once(repo, ["start plan.md"] * 5)
    assert repo.granted() == {f"demo/n{each}": 1 for each in range(3)}
    assert len(repo.events("plan_bound")) == 1
    assert set(repo.statuses().values()) == {"complete"}


def test_several_plans_are_started_at_once(repo: Repo) -> None:
    """Several plans that several processes start at the same time are all there, and all is done once."""
    names = numbered(5, "p")
    plan(repo, ["a"], work=QUICK)
    repo.write({f"{each}.md": outline(["a", "b"], each) for each in names})
    at_once(repo, [f"start {each}.md" for each in names])
    assert repo.granted() == {f"{each}/{child}": 1 for each in names for child in "ab"}
    assert Counter(each["loop"] for each in repo.events("declared")).most_common(1)[0][1] == 1
    assert set(repo.statuses().values()) == {"complete"}


def test_settings_are_set_beside_an_engine(repo: Repo) -> None:
    """Six keys that six processes set beside an engine are all in the file with its comments, and all in force."""
    plan(repo, ["a"], text="# why so few\nconcurrency:\n  max_loops: 2 # for now\n")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    keys = ("concurrency.max_loops", "concurrency.max_api_calls", "dispatch.batch_size", "queue.soft_limit",
            "retry.max_attempts", "concurrency.per_type.code")  # fmt: skip
    before = (repo.root / "loopr.yml").read_text().splitlines()
    at_once(repo, [f"set {key} {number}" for number, key in enumerate(keys, 11)])
    after = (repo.root / "loopr.yml").read_text().splitlines()
    assert [each for each in before if each.partition("#")[2] and each not in after] == ["  max_loops: 2 # for now"]
    assert "  max_loops: 11 # for now" in after
    found = repo.loopr("config", "show", "--json").document["value"]
    assert [_at(found, key) for key in keys] == list(range(11, 17))
    wanted = {"max_loops": 11, "max_api_calls": 12, "batch_size": 13, "soft_limit": 14}
    for key, value in wanted.items():
        repo.until("policy_loaded", words=f'"{key}": {value}, ')
    policy = repo.events("policy_loaded")[-1]["data"]["policy"]
    assert {key: policy[key] for key in wanted} == wanted
    repo.gates["gate"].open()
    engine.ended()


def _at(values: dict[str, object], key: str) -> object:
    """Return what is under a dotted key."""
    found: object = values
    for each in key.split("."):
        assert isinstance(found, dict)
        found = found[each]
    return found


# --- what did not start ---------------------------------------------------------------------------------------------


def test_three_that_did_not_start(repo: Repo) -> None:
    """What did not start three times is parked and says why everywhere; mended and reset it goes on and lands."""
    plan(repo, ["a", "b"], work=QUICK)
    broken = repo.script("setup", 'test -e "$DESK/mended" || { echo no compiler; exit 3; }')
    repo.write({"loopr.yml": f"{(repo.root / 'loopr.yml').read_text()}hooks: {{post_create: '{broken}'}}\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.granted() == {"demo/a": 3, "demo/b": 3}
    why = "max_launch_failures: it did not start 3 times in a row"
    for words in (["status"], ["tree"], ["why", "a"]):
        assert why[:40] in repo.loopr(*words).out, words
    row = repo.loops()["demo/a"]
    assert (row["status"], row["failures"], why in row["reason"]) == ("parked", 3, True)
    assert repo.diary() == []
    (repo.desk / "mended").touch()
    assert repo.loopr("reset", "a", "b").out.splitlines() == ["demo/a  reset  ready", "demo/b  reset  ready"]
    assert repo.loops()["demo/a"]["failures"] == 0
    repo.loopr("run")
    assert sorted(repo.landed("demo")) == [("demo/a", 4, 1), ("demo/b", 4, 1)]


# --- a long queue ---------------------------------------------------------------------------------------------------

LIMITS = "concurrency: {max_loops: 1}\nqueue: {soft_limit: 2, hard_limit: 4}\nscheduler: {poll_interval_secs: 0.1}\n"


def test_a_long_queue(repo: Repo) -> None:
    """Above the soft limit all views and the log warn, by type; at the hard limit a new plan is deferred, no other."""
    plan(repo, numbered(4), text=LIMITS)
    engine = repo.begin("start", "plan.md")
    repo.heard()
    late = "queue delayed; respecting caps (3 waiting: 3 code; the soft limit is 2)"
    assert f"warning: {late}" in repo.loopr("status").out
    assert late in repo.loopr("tree").out
    engine.says(late)
    found = repo.loopr("status", "--json").document
    assert found["queue"] == {"depth": 3, "by_type": {"code": 3}, "soft_limit": 2, "hard_limit": 4}
    repo.write({"more.md": outline(["x"], "more"), "third.md": outline(["x"], "third")})
    repo.loopr("start", "--no-run", "more.md")
    before = (repo.events()[-1]["seq"], sorted(repo.root.rglob("specs/*")))
    for words in (["start", "third.md"], ["start", "--no-run", "third.md"], ["start", "--detach", "third.md"]):
        ended = repo.loopr(*words, "--json", code=75)
        assert ended.document["error"] == {
            "code": "deferred",
            "message": "the queue is full: 4 loops wait for a slot, the hard limit is 4",
            "hint": "nothing was stored: start the plan later, or raise queue.hard_limit",
        }
    assert (repo.events()[-1]["seq"], sorted(repo.root.rglob("specs/*"))) == before
    repo.write({"plan.md": outline(numbered(5))})
    repo.loopr("start", "--no-run", "plan.md")
    repo.take("demo")
    assert "demo/n4" in repo.loops()
    repo.gates["gate"].open()
    engine.ended()
    repo.loopr("start", "third.md")
    assert set(repo.statuses().values()) == {"complete"}


def test_several_plans_come_together_or_not_at_all(repo: Repo) -> None:
    """There is room for all plans of one `start` or for none, though an engine grants and waits between two of them."""
    plan(repo, numbered(4), text=LIMITS)
    engine = repo.begin("start", "plan.md")
    repo.heard()
    names = [f"m{number}" for number in range(4)]
    repo.write({f"{name}.md": outline(["x", "y"], name) for name in names})
    repo.loopr("start", "--no-run", *(f"{name}.md" for name in names))
    assert set(names) <= {*repo.loops()}
    repo.write({"third.md": outline(["x"], "third"), "fourth.md": outline(["x"], "fourth")})
    repo.loopr("start", "--no-run", "third.md", "fourth.md", code=75)
    assert not {"third", "fourth"} & {*repo.loops()}
    repo.gates["gate"].open()
    engine.ended()


def test_a_limit_that_was_set_counts_for_the_next_plan(repo: Repo) -> None:
    """Without an engine too, a plan is enqueued by the settings of now, not by those of the last time."""
    plan(repo, numbered(3), text=LIMITS)
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("lease", "take")
    repo.loopr("set", "queue.hard_limit", "2")
    repo.write({"more.md": outline(["x"], "more")})
    repo.loopr("start", "--no-run", "more.md", code=75)
    repo.loopr("set", "queue.hard_limit", "3")
    repo.loopr("start", "--no-run", "more.md")


def test_a_plan_with_a_command_is_not_passed_over(repo: Repo) -> None:
    """In a fresh workspace too, a plan that declares nothing is left to the command of its type."""
    repo.settings("types: {plan: {child: code, run: 'cp plan.txt $LOOPR_OUTPUT'}, code: {run: make}}\n")
    repo.write({"plan.md": "---\nid: demo\n---\n# Demo\nFind out.\n"})
    repo.loopr("start", "--no-run", "plan.md")
    assert repo.statuses() == {"demo": "pending"}


def test_without_a_ceiling_nothing_is_deferred(repo: Repo) -> None:
    """Where there is no ceiling on loops there are no limits of the queue, and all begin at once."""
    plan(repo, numbered(6), text="concurrency: {max_loops: 0, per_type: {code: null}}\nqueue: {hard_limit: 1}\n")
    engine = repo.begin("start", "plan.md")
    repo.heard(6)
    queue = repo.loopr("status", "--json").document["queue"]
    assert (queue["soft_limit"], queue["hard_limit"]) == (None, None)
    repo.write({"more.md": outline(["x"], "more")})
    repo.loopr("start", "--no-run", "more.md")
    repo.heard()
    repo.gates["gate"].open()
    engine.ended()


@pytest.mark.parametrize(("pace", "size"), [("batch_size: 2, spawn_delay_secs: 0.3", 2), ("batch_size: 3", 3)])
def test_a_round_is_cut(repo: Repo, pace: str, size: int) -> None:
    """A round has at most `batch_size` launches; the next comes after the longer of the delay and the poll."""
    plan(repo, numbered(6), work=QUICK, text=f"dispatch: {{{pace}}}\nscheduler: {{poll_interval_secs: 0.3}}\n")
    repo.loopr("start", "plan.md")
    at = [each["at"] for each in repo.events("lease_granted")]
    assert all(later - sooner >= 300 for sooner, later in zip(at[size - 1 :: size], at[size::size], strict=False)), at
    assert set(repo.statuses().values()) == {"complete"}


def test_launches_follow_each_other(repo: Repo) -> None:
    """Launches of one round begin `spawn_delay_secs` apart, and one that is cancelled meanwhile never begins."""
    plan(repo, numbered(4), work=QUICK, text="dispatch: {spawn_delay_secs: 0.6}\n")
    engine = repo.begin("start", "plan.md")
    first = repo.until("lease_granted", 4)[0]["at"]
    repo.loopr("cancel", "n3")
    engine.ended()
    begun = {each["loop"]: each["at"] for each in repo.events("attempt_started")}
    assert list(begun) == ["demo/n0", "demo/n1", "demo/n2"]
    assert all(at >= first + 600 * place for place, at in enumerate(begun.values())), (first, begun)


def test_to_enqueue_again_is_to_enqueue_once(repo: Repo) -> None:
    """The same file started again, alone, with others, or under a name that means the same, changes nothing at all."""
    plan(repo, numbered(2))
    repo.loopr("start", "--no-run", "plan.md")
    before = repo.events()
    for words in (["plan.md"], ["plan.md", "plan.md"], ["./plan.md"], [str(repo.root / "plan.md")]):
        ended = repo.loopr("start", "--no-run", *words)
        assert "nothing has changed" in ended.err, words
    assert repo.events() == before


# --- what could never run -------------------------------------------------------------------------------------------

CANNOT = "install it, put its folder on the PATH, or name another one"
FETCH = "install it with `fetch it`, put its folder on the PATH, or name another agent"
AGENTS = """agents:
  absent: {extends: codex, run: [no-such-agent], install: fetch it}
  there: {extends: codex, run: [sh]}
"""


@pytest.mark.parametrize(
    ("types", "child", "told"),
    [
        ("plan: {child: code}, code: {run: [no-such-tool, -x]}", "{id: a}",
         f"loopr.yml:2:37 types.code.run: there is no program no-such-tool ({CANNOT})"),
        ("plan: {child: code}, code: {run: make, wrap: [no-such-box, '{command}']}", "{id: a}",
         f"types.code.wrap: there is no program no-such-box ({CANNOT})"),
        ("plan: {child: code}, code: {run: make}", "{id: a, run: [/no/such/tool]}",
         f"plan.md:4:5 run: there is no program /no/such/tool ({CANNOT})"),
        ("plan: {child: spec}, spec: {run: make, child: code}, code: {run: [no-such-tool]}", "{id: a}",
         "types.code.run: there is no program no-such-tool"),
        ("plan: {child: code}, code: {run: make, check: [no-such-judge]}", "{id: a}",
         f"types.code.check: there is no program no-such-judge ({CANNOT})"),
        ("plan: {child: code}, code: {run: make, review: [no-such-judge]}", "{id: a}",
         f"types.code.review: there is no program no-such-judge ({CANNOT})"),
        ("plan: {child: code}, code: {agent: absent}", "{id: a}",
         f"types.code.agent: there is no program no-such-agent ({FETCH})"),
        ("plan: {child: code}, code: {run: make}", "{id: a, agent: absent}",
         f"plan.md:4:5 agent: there is no program no-such-agent ({FETCH})"),
        ("plan: {child: code}, code: {agent: there, fallback: [absent]}", "{id: a}",
         f"types.code.fallback: there is no program no-such-agent ({FETCH})"),
        ("plan: {child: code}, code: {agent: there, escalate: {refused: {after: 2, agent: absent}}}", "{id: a}",
         f"types.code.escalate.refused: there is no program no-such-agent ({FETCH})"),
        ("plan: {child: code}, code: {run: make, review: {agent: absent}}", "{id: a}",
         f"types.code.review: there is no program no-such-agent ({FETCH})"),
        ("plan: {child: code}, code: {agent: nobody}", "{id: a}", "types.code.agent: nobody names no preset"),
        ("plan: {child: code}, code: {}", "{id: a, agent: nobody}", "plan.md:4:5 agent: nobody names no preset"),
        ("plan: {child: nothing}, code: {}", "{id: a}", "types.plan.child: there is no type nothing"),
    ],
)  # fmt: skip
def test_what_could_never_run_is_not_enqueued(repo: Repo, types: str, child: str, told: str) -> None:
    """A plan that no state of the workspace could run is refused with 78 and the way out; nothing is left of it."""
    repo.settings(f"types: {{{types}}}\n{AGENTS}")
    repo.write({"plan.md": f"---\nid: demo\nchildren:\n  - {child}\n---\n# demo\n"})
    answer = loopr("-C", repo.root, "start", repo.root / "plan.md")
    assert (answer.code, told in answer.err) == (78, True), answer
    assert (repo.events("declared", "plan_bound"), (repo.root / "specs").exists()) == ([], False)


@pytest.mark.parametrize("mode", ["--dry-run", "--no-run"])
def test_what_is_not_there_yet_may_be_enqueued(repo: Repo, mode: str) -> None:
    """Where nothing is to run now, a program that is not there is told with its way out, and refuses nothing."""
    repo.settings(f"types: {{plan: {{child: code}}, code: {{agent: absent}}}}\n{AGENTS}")
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# demo\n"})
    words = f"types.code.agent: there is no program no-such-agent ({FETCH})"
    assert words in repo.loopr("start", mode, "plan.md").err
    (told,) = repo.loopr("start", "--dry-run", "--json", "plan.md").document["plans"]
    assert told["absent"] == ([] if mode == "--no-run" else [f"loopr.yml:2:37 {words}"])


@pytest.mark.parametrize(
    ("types", "child"),
    [
        ("plan: {child: code}, code: {}", "{id: a}"),  # a person or a pull worker does it
        ("plan: {child: code}, code: {run: no-such-tool}", "{id: a}"),  # the shell may know what that is
        ("plan: {child: code}, code: {run: [./made-later]}", "{id: a}"),  # it may come with the work
        ("plan: {child: code}, code: {run: [no-such-tool]}", "{id: a, run: [sh, -c, exit]}"),  # of no use here
        ("plan: {child: code}, code: {run: [tool], env: {set: {PATH: '%s'}}}", "{id: a}"),
        ("plan: {run: [no-such-tool], child: code}, code: {run: make}", "{id: a}"),  # the file is the plan's work
    ],
)
def test_what_could_run_is_enqueued(repo: Repo, types: str, child: str) -> None:
    """What can be run in some state of the workspace, though not now, is no error."""
    (repo.desk / "bin").mkdir()
    (repo.desk / "bin/tool").write_text("#!/bin/sh\n")
    (repo.desk / "bin/tool").chmod(0o755)
    repo.settings(f"types: {{{types.replace('%s', str(repo.desk / 'bin'))}}}\n")
    repo.write({"plan.md": f"---\nid: demo\nchildren:\n  - {child}\n---\n# demo\n"})
    answer = loopr("-C", repo.root, "start", "--no-run", repo.root / "plan.md")
    assert answer.code == 0, answer
    assert [each["loop"] for each in repo.events("declared")] == ["demo", "demo/a"]


# --- ceilings that are moved ----------------------------------------------------------------------------------------

RAISED = {
    "concurrency.max_loops": "concurrency: {max_loops: 1}",
    "concurrency.per_type.code": "concurrency: {per_type: {code: 1}}",
    "projects.default.max_concurrent": "projects: {default: {max_concurrent: 1}}",
    "lanes.default.max_concurrent": "lanes: {default: {max_concurrent: 1}}",
}


@pytest.mark.parametrize(
    "key", [pytest.param(each, marks=[pytest.mark.soak] * (place > 0)) for place, each in enumerate(RAISED)]
)
def test_a_ceiling_is_moved_while_it_binds(repo: Repo, key: str) -> None:
    """A raised ceiling is used at once, also if the engine never looks by itself; a lowered one drains, and holds."""
    names = numbered(7)
    plan(repo, names, text=f"{RAISED[key]}\nscheduler: {{poll_interval_secs: 3600}}\n")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    repo.loopr("set", key, "4")
    repo.heard(3)
    assert "--dry-run" not in repo.loopr("set", key, "2").out
    repo.until("policy_loaded", 3)
    before = len(repo.diary())
    for _ in range(2):
        repo.gates["gate"].let_on()
        repo.until("landed", _ + 1)
    assert [each for each in repo.diary()[before:] if each.startswith("+")] == [], "two had to drain first"
    repo.gates["gate"].open()
    engine.ended()
    assert repo.most_at_once() == 4
    assert repo.most_at_once(since=before + 2) <= 2
    assert past_gates(repo) == []


def test_what_is_out_of_range_changes_nothing(repo: Repo) -> None:
    """A ceiling that cannot be is refused with its range, the file and the policy in force stay as they were."""
    plan(repo, ["a", "b"], text="concurrency: {max_loops: 1}\n")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    text = (repo.root / "loopr.yml").read_text()
    for key, value in (
        ("concurrency.max_loops", "many"),
        ("concurrency.max_api_calls", "-2"),
        ("queue.hard_limt", "3"),
    ):
        assert key in repo.loopr("set", key, value, code=None).err
    assert (repo.root / "loopr.yml").read_text() == text
    repo.gates["gate"].open()
    engine.ended()
    assert repo.most_at_once() == 1
