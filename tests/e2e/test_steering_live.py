"""Steering while an engine runs, beside its death, and from many processes at once."""

from __future__ import annotations

import os
import select
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.e2e.repos import PATIENCE_SECS, Ended, Process, Repo, opened

WORK = """
begin
echo "$LOOPR_ATTEMPT" >> "$(basename "$LOOPR_LOOP")"
cp "$LOOPR_FEEDBACK_FILE" "$DESK/feedback $(basename "$LOOPR_LOOP")"
case "$LOOPR_LOOP" in
  */a)
    echo $$ > "$DESK/pid"
    tell "$LOOPR_LOOP $LOOPR_ATTEMPT"
    wait_at gate ;;
esac
test ! -e "$DESK/broken $(basename "$LOOPR_LOOP")" || exit 78
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, names: str, *, slots: int = 0, more: str = "") -> None:
    """Set a repository up for a plan with code loops, of which `a` works until the gate opens."""
    run = repo.script("code", WORK)
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n"
        f"concurrency: {{max_loops: {slots}}}\ntimeouts: {{grace_secs: 1}}\n"
    )
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})
    repo.gate("gate")


def start(repo: Repo, names: str, *, slots: int = 0, more: str = "", verb: str = "start plan.md") -> Process:
    """Start an engine, and wait until `a` is at work."""
    plan(repo, names, slots=slots, more=more)
    process = repo.begin(*verb.split())
    assert repo.heard(1) == ["demo/a 1"]
    return process


def at_once(repo: Repo, lines: Sequence[str]) -> list[Ended]:
    """Run several commands at the same time, to their ends."""
    return [each.ended(None) for each in [repo.begin(*line.split()) for line in lines]]


def dies(pid: int) -> bool:
    """Wait until a process has gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with closing(os.fdopen(descriptor, "rb", 0)):
        return bool(select.select([descriptor], [], [], PATIENCE_SECS)[0])


def of(events: Sequence[dict[str, Any]], loop: str) -> dict[str, Any]:
    """Return the last event about a loop."""
    return next(each for each in reversed(events) if each["loop"] == loop)


# --- an engine takes notice -----------------------------------------------------------------------------------------


def test_a_paused_sibling_does_not_start(repo: Repo) -> None:
    """A loop that is paused while its sibling runs is passed over, the others go on, and after `resume` it is done."""
    process = start(repo, "a b c", slots=1)
    assert repo.loopr("pause", "b").out.startswith("demo/b  paused")
    repo.gates["gate"].open()
    process.ended(4)
    assert repo.granted() == {"demo/a": 1, "demo/c": 1}
    repo.loopr("resume", "b")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_an_engine_hears_at_once(repo: Repo) -> None:
    """What is resumed or reset beside an engine starts at once, not when the engine next looks around by itself."""
    names = "b c d e f g h"
    plan(repo, f"a {names}")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("pause", *names.split())
    process = repo.begin("run")
    assert repo.heard(1) == ["demo/a 1"]
    waits = []
    for name in names.split():
        repo.loopr("resume", name)
        repo.until("landed", words=f"demo/{name}")
    lifted, granted = repo.events("lifted"), repo.events("lease_granted")
    for name in names.split():
        waits.append(of(granted, f"demo/{name}")["at"] - of(lifted, f"demo/{name}")["at"])
    assert median(waits) < 250, waits
    repo.gates["gate"].open()
    process.ended()


def test_a_cancel_ends_the_process(repo: Repo) -> None:
    """A cancel of a loop that runs ends its process at once, its slot is free, and `retry` brings it back."""
    process = start(repo, "a b", slots=1)
    pid = int(repo.note("pid"))
    assert repo.loopr("cancel", "a", "--reason", "too dear").out.startswith("demo/a  cancelled")
    assert dies(pid)
    process.ended(0)
    assert repo.statuses() == {"demo": "complete", "demo/a": "cancelled", "demo/b": "complete"}
    assert repo.loops()["demo/a"]["reason"] == "too dear"
    repo.gates["gate"].open()
    repo.loopr("retry", "a")
    repo.loopr("run")
    assert repo.landed("demo") == [("demo/b", 1, 1), ("demo/a", 2, 1)]


def test_a_pause_now_stops_and_costs_nothing(repo: Repo) -> None:
    """`pause --now --all` ends what lives, the engine settles, and after `resume` it goes on in the same iteration."""
    process = start(repo, "a b", slots=1)
    pid = int(repo.note("pid"))
    assert "1 try goes on; --now stops it" in repo.loopr("pause", "--all").err
    assert repo.loopr("pause", "--all", "--now").out.startswith("demo/a  stopped")
    assert dies(pid)
    process.ended(4)
    assert repo.statuses() == {"demo": "complete", "demo/a": "pending", "demo/b": "pending"}
    repo.gates["gate"].open()
    repo.loopr("resume", "--all")
    repo.loopr("run")
    assert repo.landed("demo") == [("demo/a", 2, 1), ("demo/b", 1, 1)]
    assert repo.loops()["demo/a"]["failures"] == 0


def test_a_persons_word_lands(repo: Repo) -> None:
    """Beside an engine `approve` lands, `reject` ends, and `iterate` begins the next try."""
    process = start(repo, "a b c d", more=", approve: true")
    repo.until("passed", 3)
    repo.loopr("approve", "b")
    repo.until("landed", words="demo/b")
    assert repo.on_branch("demo", "b") == "1"
    repo.loopr("reject", "c", "--reason", "not now")
    repo.loopr("iterate", "d", "--feedback", "say it in one line")
    repo.until("passed", 4)
    repo.loopr("approve", "d")
    repo.until("landed", words="demo/d")
    assert not process.has_ended
    repo.gates["gate"].open()
    repo.until("passed", 5)
    process.ended(1)
    repo.loopr("approve", "a")
    repo.loopr("run", code=1)
    assert repo.landed("demo") == [("demo/b", 1, 1), ("demo/d", 2, 2), ("demo/a", 1, 1)]
    assert repo.statuses()["demo/c"] == "failed"


def test_a_persons_feedback_is_read(repo: Repo) -> None:
    """The next try after `iterate` finds the feedback in its feedback file."""
    process = start(repo, "a d", more=", approve: true")
    repo.until("passed")
    repo.loopr("iterate", "d", "--feedback", "say it in one line")
    repo.until("passed", 2)
    repo.gates["gate"].open()
    process.ended(4)
    assert "say it in one line" in repo.note("feedback d")


def test_a_parked_loop_is_reset_beside_an_engine(repo: Repo) -> None:
    """While others run, what is parked goes on after `reset`, and `retry --fresh` makes anew what is complete."""
    (repo.desk / "broken b").touch()
    process = start(repo, "a b c")
    repo.until("set_aside", words="demo/b")
    (repo.desk / "broken b").unlink()
    repo.loopr("reset", "b")
    repo.until("landed", words="demo/b")
    repo.until("landed", words="demo/c")
    answer = repo.loopr("retry", "--fresh", "c", code=2)
    assert "demo/c would be made anew; nothing depends on that" in answer.err
    repo.loopr("retry", "--fresh", "--yes", "c")
    repo.until("landed", 2, words="demo/c")
    assert not process.has_ended
    repo.gates["gate"].open()
    process.ended()
    assert repo.loops()["demo/c"]["generation"] == 2


def test_work_that_never_landed_is_no_earlier_version(repo: Repo) -> None:
    """The prompt of work that is made anew tells of an earlier version only where one has landed."""
    children = "[{id: bad, run: 'echo x > bad; exit 1'}, {id: good, run: 'echo x > good'}]"
    repo.write({"plan.md": f"---\nspecs: {children}\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    repo.loopr("retry", "--fresh", "--yes", "bad", "good")
    assert "earlier version" in repo.loopr("prompt", "good").out
    assert "earlier version" not in repo.loopr("prompt", "bad").out


def test_what_is_dispatched_is_next(repo: Repo) -> None:
    """Beside an engine with one slot, what is dispatched runs next, and what is cleared does not run at all."""
    process = start(repo, "a b c d", slots=1)
    told = repo.loopr("dispatch", "d", "c", "--dry-run", "--json").document
    repo.loopr("dispatch", "d", "c")
    assert [each["id"] for each in told["done"]] == ["demo/d", "demo/c"]
    repo.loopr("clear", "b")
    repo.gates["gate"].open()
    process.ended(4)
    assert [each["loop"] for each in repo.events("lease_granted")] == ["demo/a", "demo/d", "demo/c"]
    assert repo.statuses()["demo/b"] == "pending"


def test_a_convoy_lands_beside_an_engine(repo: Repo) -> None:
    """A convoy that is formed while its members are at work lands with the last of them, and `wait` hears of it."""
    process = start(repo, "a b c", slots=1)
    repo.loopr("convoy", "create", "@ship", "a", "b")
    waiting = repo.begin("wait", "@ship")
    repo.gates["gate"].open()
    waiting.ended(0)
    process.ended(0)
    assert repo.loopr("convoy", "show", "@ship").out.splitlines()[1:] == ["demo/a  code  done", "demo/b  code  done"]
    assert len(repo.events("convoy_landed")) == 1


# --- death, and many at once ----------------------------------------------------------------------------------------


def test_a_pause_outlives_its_engine(repo: Repo) -> None:
    """After kill -9 the next engine lands what was at work, and starts nothing of what was paused before."""
    process = start(repo, "a b c", slots=1)
    repo.loopr("pause", "demo", "--reason", "freeze")
    process.kill()
    assert repo.loopr("pause", "demo").err.startswith("demo: paused already by")
    repo.gates["gate"].open()
    repo.loopr("run", code=4)
    assert repo.granted() == {"demo/a": 1}
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete", "demo/b": "pending", "demo/c": "pending"}
    repo.loopr("resume", "demo")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_a_cancel_while_no_engine_lives(repo: Repo) -> None:
    """A cancel of an attempt that has outlived its engine is true at once; the next engine ends the process."""
    process = start(repo, "a b", slots=1)
    pid = int(repo.note("pid"))
    process.kill()
    answer = repo.loopr("cancel", "a")
    assert "the next one ends what was told to stop" in answer.err
    assert not select.select([os.pidfd_open(pid)], [], [], 0)[0]
    repo.loopr("run")
    assert dies(pid)
    assert repo.statuses() == {"demo": "complete", "demo/a": "cancelled", "demo/b": "complete"}


def test_nothing_starts_after_a_pause_has_returned(repo: Repo) -> None:
    """While an engine starts one loop after the other, none is granted after the pause of all of them is remembered."""
    process = start(repo, "a " + " ".join(f"x{each}" for each in range(30)), slots=2)
    repo.until("landed", 3)
    repo.loopr("pause", "--all")
    repo.gates["gate"].open()
    process.ended(4)
    held = repo.events("scope_held")[-1]["seq"]
    assert [each for each in repo.events("lease_granted") if each["seq"] > held] == []
    assert Counter(repo.statuses().values())["pending"] > 0
    repo.loopr("resume", "--all")
    repo.loopr("run")
    assert set(repo.granted().values()) == {1}


def test_a_pause_while_a_dispatch_is_in_flight(repo: Repo) -> None:
    """Of loops that are dispatched and paused by many processes at once, none starts; all is as if one by one."""
    process = start(repo, "a b c d", slots=1)
    lines = ["dispatch c d", "pause c", "dispatch d", "pause d", "dispatch c", "pause --all", "resume --all"]
    assert [each.code for each in at_once(repo, lines)] == [0] * len(lines)
    repo.loopr("resume", "--all")
    assert repo.loopr("pause", "c", "d").out == ""
    repo.gates["gate"].open()
    process.ended(4)
    assert repo.granted() == {"demo/a": 1, "demo/b": 1}
    assert len(repo.events("held")) == 2
    repo.loopr("resume", "c", "d")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_the_first_of_many_pauses_is_kept(repo: Repo) -> None:
    """Of eight processes that pause the same loop one does it, and all others say so."""
    plan(repo, "a b")
    repo.loopr("start", "--no-run", "plan.md")
    ends = at_once(repo, [f"pause b --json --reason r{each}" for each in range(8)])
    done = [each.document["done"] for each in ends]
    assert sorted(map(len, done)) == [0] * 7 + [1]
    reason = next(each[0]["loop"]["gates"][0]["reason"] for each in done if each)
    assert all(each.document["unchanged"][0]["why"] in reason.replace("is paused", "paused already") for each in ends
               if not each.document["done"])  # fmt: skip
    assert len(repo.events("held")) == 1


def test_many_settings_at_once(repo: Repo) -> None:
    """Six processes that set six keys at the same time lose none of them, and the comments stay."""
    repo.settings("# kept\nconcurrency:\n  max_loops: 1 # this one too\n")
    wanted = {
        "concurrency.max_loops": "7",
        "dispatch.batch_size": "3",
        "retry.base_secs": "11",
        "timeouts.grace_secs": "2",
        "lease.ttl_secs": "120",
        "logs.keep_days": "5",
    }
    ends = at_once(repo, [f"set {key} {value}" for key, value in wanted.items()])
    assert [each.code for each in ends] == [0] * 6, ends
    found = {key: str(repo.loopr("config", "show", key, "--json").document["value"]) for key in wanted}
    assert found == wanted
    text = (repo.root / "loopr.yml").read_text()
    assert "# kept\n" in text
    assert "# this one too" in text


def test_many_starts_of_one_plan(repo: Repo) -> None:
    """Eight processes that start the same plan at once make one plan, whose loops are declared once."""
    plan(repo, "a b c")
    ends = at_once(repo, ["start --no-run plan.md"] * 8)
    assert [each.code for each in ends] == [0] * 8, ends
    assert sum("demo: 4 new" in each.err for each in ends) == 1
    assert Counter(each["loop"] for each in repo.events("declared")) == dict.fromkeys(
        ["demo", "demo/a", "demo/b", "demo/c"], 1
    )
    assert len(repo.events("plan_bound")) == 1
    assert repo.statuses() == {"demo": "complete", "demo/a": "pending", "demo/b": "pending", "demo/c": "pending"}
