"""Engines that stay when all has settled: what wakes them, what they tell, how they end, and how seldom they wake."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from loopr.core.settled import is_settled
from loopr.driving.leaving import Wish
from loopr.driving.resting import REST_MS
from loopr.wiring import Workspace
from tests.e2e.repos import Process, Repo, opened

SETTLED = "settled: "
SETTINGS = """\
types:
  plan: {{child: spec}}
  spec: {{child: phase}}
  phase: {{child: code}}
  code: {{run: '{run}', approve: {approve}}}
{more}"""
PLAN = "---\nid: demo\nspecs: [{id: a}]\n---\n# Demo\n"
SPEC = "---\nphases: [{id: p, codes: [{id: x}]}]\n---\n# A\n"
CODES = "---\nid: demo\nchildren: [{id: x}, {id: y}]\n---\n# Demo\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def by_hand(repo: Repo, *, approve: bool = False, run: str = "true", more: str = "") -> None:
    """Write a plan with a spec that a person writes, and one loop below it."""
    command = repo.script("code", run)
    repo.settings(SETTINGS.format(run=command, approve=str(approve).lower(), more=more))
    repo.write({"plan.md": PLAN})


def flat(repo: Repo, *, approve: bool = False, run: str = "true", more: str = "") -> None:
    """Write a plan with two loops that a command works for."""
    command = repo.script("code", run)
    own = f"{{run: '{command}', approve: {str(approve).lower()}}}"
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {own}\n{more}")
    repo.write({"plan.md": CODES})


def says(process: Process, words: str, number: int = 1) -> list[str]:
    """Wait until an engine has said so many lines with some words in them, and return those."""
    for _ in range(6000):
        found = [each for each in process.said.splitlines() if words in each]
        if len(found) >= number:
            return found
        assert not process.has_ended, process.said
        Event().wait(0.02)
    raise AssertionError((words, process.said))


def engine(repo: Repo) -> dict[str, Any]:
    """Return what `status` says of the engine."""
    found: dict[str, Any] = repo.loopr("status", "--json").document["engine"]
    return found


# --- what it is there for -------------------------------------------------------------------------------------------


def test_a_file_that_is_dropped_goes_on(repo: Repo) -> None:
    """An engine that stays says what it waits for, takes up a file that a person drops, and ends by `stop`."""
    by_hand(repo)
    process = repo.begin("start", "--stay", "plan.md")
    (first,) = says(process, SETTLED)
    assert "specs/demo/a/spec.md" in first and "(stays; `loopr stop` ends it)" in first
    assert engine(repo)["stays"] and "(stays)" in repo.loopr("status").out
    repo.drop("demo/a/spec.md", SPEC)
    repo.until("landed", words="demo/a/p/x")
    assert "nothing is left to do" in says(process, SETTLED, 2)[1]
    assert not process.has_ended
    repo.loopr("stop")
    process.ended(0)
    assert engine(repo) == {"running": False, "stays": False, "draining": False} | dict.fromkeys(
        ("pid", "host", "since")
    )


def test_a_word_from_another_process_goes_on(repo: Repo) -> None:
    """What is approved while the engine stays lands, and a plan that is started by another process is taken up."""
    flat(repo, approve=True)
    process = repo.begin("start", "--stay", "plan.md")
    repo.until("passed", 2)
    says(process, SETTLED)
    repo.loopr("approve", "demo/x")
    repo.until("landed", words="demo/x")
    repo.write({"more.md": "---\nid: more\nchildren: [{id: z}]\n---\n# More\n"})
    other = repo.begin("start", "more.md")
    repo.until("passed", 3)
    other.ended(4)
    repo.loopr("approve", "demo/y", "more/z")
    repo.until("landed", 3)
    says(process, "nothing is left to do")
    repo.loopr("stop")
    process.ended(0)


def test_one_behind_stays_too(repo: Repo) -> None:
    """`run --stay --detach` leaves an engine that stays."""
    by_hand(repo)
    repo.loopr("start", "--no-run", "plan.md")
    pid = repo.loopr("run", "--stay", "--detach", "--json").document["pid"]
    found = engine(repo)
    assert found["pid"] == pid and found["stays"]
    repo.drop("demo/a/spec.md", SPEC)
    repo.until("landed", words="demo/a/p/x")
    assert engine(repo)["pid"] == pid
    repo.loopr("stop", "--now")


def test_start_stays_where_another_engine_ends(repo: Repo) -> None:
    """`start --stay` beside an engine that does not stay follows it, and stays when that has ended."""
    flat(repo, run='case "$LOOPR_LOOP" in */y) tell y; wait_at gate;; esac')
    gate = repo.gate("gate")
    first = repo.begin("start", "plan.md")
    assert repo.heard() == ["y"]
    repo.write({"more.md": "---\nid: more\nchildren: [{id: z}]\n---\n# More\n"})
    second = repo.begin("start", "--stay", "more.md")
    repo.until("landed", words="more/z")
    gate.let_on()
    first.ended(0)
    says(second, SETTLED)
    assert engine(repo)["pid"] == second.pid
    repo.loopr("stop")
    second.ended(0)


def test_a_rest_that_is_over_wakes_it(repo: Repo) -> None:
    """A lane that rests opens by itself, and whoever waits for it goes on."""
    flat(repo, run='test -e "$DESK/again" || { touch "$DESK/again"; exit 75; }', more="retry: {base_secs: 0.1}\n")
    process = repo.begin("start", "--stay", "plan.md")
    repo.until("landed", 2)
    says(process, SETTLED)
    repo.loopr("stop")
    process.ended(0)


def test_the_next_goes_on_after_a_kill(repo: Repo) -> None:
    """An engine that stays and is killed is followed by another, which takes up what has come meanwhile."""
    by_hand(repo)
    process = repo.begin("start", "--stay", "plan.md")
    says(process, SETTLED)
    process.kill()
    assert not engine(repo)["running"]
    repo.drop("demo/a/spec.md", SPEC)
    process = repo.begin("run", "--stay")
    repo.until("landed", words="demo/a/p/x")
    repo.loopr("stop")
    process.ended(0)


# --- how it ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "code"), [("done", 0), ("failed", 1), ("person", 4)])
@pytest.mark.parametrize("stays", [True, False])
def test_after_a_while_it_says_how_things_stand(repo: Repo, way: str, code: int, stays: bool) -> None:
    """The end of `--for` has the code of how things stand; without `--stay` it ends as soon as all has settled."""
    if way == "person":
        by_hand(repo)
    else:
        flat(repo, run="exit 78" if way == "failed" else "true")
    words = ("--stay", "--for", "1s") if stays else ("--for", "1h")
    ended = repo.loopr("start", *words, "plan.md", code=None)
    for _ in range(60 if stays else 0):
        if ended.code != 75:
            break  # else the machine is so slow that not all of it was done in that time
        ended = repo.loopr("run", *words, code=None)
    assert ended.code == code, ended.err
    assert stays or SETTLED not in ended.err


def test_what_would_go_on_is_75(repo: Repo) -> None:
    """An engine that stays and is stopped before all was done says that something would go on by itself."""
    flat(repo, run='tell "$LOOPR_LOOP"; wait_at gate', more="concurrency: {max_loops: 1}\n")
    gate = repo.gate("gate")
    process = repo.begin("start", "--stay", "plan.md")
    repo.heard()
    repo.loopr("stop")
    gate.let_on()
    process.ended(75)
    gate.open()
    process = repo.begin("run", "--stay", "--for", "1h")
    says(process, SETTLED)
    process.signal(signal.SIGTERM)
    process.ended(143)
    process = repo.begin("run", "--stay")
    says(process, SETTLED)
    process.signal(signal.SIGINT)
    process.ended(130)


def test_what_makes_no_sense_is_refused(repo: Repo) -> None:
    """A round has an end, and so has what drives nothing."""
    by_hand(repo)
    assert "--once" in repo.loopr("run", "--once", "--stay", code=2).err
    assert "--no-run" in repo.loopr("start", "--no-run", "--stay", "plan.md", code=2).err


# --- what it tells --------------------------------------------------------------------------------------------------


def test_each_settling_is_told_once(repo: Repo) -> None:
    """`on_settle` runs whenever all has settled after work, and not for what changes nothing."""
    hook = repo.script("settled", 'cat >> "$DESK/told"; tell told')
    flat(repo, approve=True, more=f"hooks: {{on_settle: '{hook}'}}\n")
    process = repo.begin("start", "--stay", "plan.md")
    assert repo.heard() == ["told"]
    repo.loopr("pause", "demo/y")  # what is held still waits
    repo.loopr("resume", "demo/y")
    repo.loopr("approve", "demo/x")
    assert repo.heard() == ["told"]
    repo.loopr("approve", "demo/y")
    assert repo.heard() == ["told"]
    repo.loopr("stop")
    process.ended(0)
    said = [json.loads(line)["data"]["plans"] for line in repo.note("told").splitlines()]
    assert said == [{"demo": "waiting"}, {"demo": "waiting"}, {"demo": "done"}]


def test_only_what_has_settled_is_said_to(repo: Repo) -> None:
    """Nothing is said to have settled by a word that sets something going, nor by an engine that ends."""
    flat(repo, approve=True)
    process = repo.begin("start", "--stay", "plan.md")
    says(process, SETTLED)
    repo.loopr("approve", "demo/x")
    repo.until("landed", words="demo/x")
    repo.loopr("approve", "demo/y")
    repo.until("landed", words="demo/y")
    says(process, "nothing is left to do")
    repo.loopr("stop")
    process.ended(0)
    lines = process.said.splitlines()
    settled = [at for at, line in enumerate(lines) if SETTLED in line]
    approved = [at for at, line in enumerate(lines) if "approved" in line]
    assert not [at for at in settled if at - 1 in approved], process.said
    assert max(settled) < next(at for at, line in enumerate(lines) if "draining" in line), process.said


def test_what_a_person_has_cancelled_waits_for_nobody(repo: Repo) -> None:
    """Where all that was left is cancelled, nothing is left to do: its exit code says the same."""
    by_hand(repo)
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("cancel", "demo", "--yes")
    process = repo.begin("run", "--stay")
    assert "settled: nothing is left to do (stays" in says(process, SETTLED)[0]
    repo.loopr("stop")
    process.ended(0)


# --- how seldom it wakes --------------------------------------------------------------------------------------------


class Poll:
    """A poll that notes how long the engine wants to sleep, and is told once when it rests."""

    def __init__(self, real: Any, at_rest: Callable[[], object]) -> None:
        """Wrap a real one; `at_rest` is called before the first long sleep."""
        self._real, self._at_rest = real, at_rest
        self.register, self.unregister = real.register, real.unregister
        self.waits: list[int] = []
        self.rested = self.woken = False

    def poll(self, wait: int) -> list[tuple[int, int]]:
        """Sleep; from a rest only what is heard wakes it."""
        self.waits.append(wait)
        if wait <= REST_MS // 2 or self.rested:
            return list(self._real.poll(min(wait, 1_000)))
        self.rested = True
        self._at_rest()
        found: list[tuple[int, int]] = self._real.poll(60_000)
        self.woken = bool(found)
        return found


def rested(repo: Repo, at_rest: Callable[[Any], object], until: Callable[[Any], bool]) -> Poll:
    """Let an engine in this process rest, do something to it, and go on until something holds of its forest."""
    by_hand(repo)
    repo.loopr("start", "--no-run", "plan.md")
    with Workspace(repo.root, environ=os.environ).serve(stays=True) as driver:
        poll = driver._poll = Poll(driver._poll, lambda: at_rest(driver))  # type: ignore[assignment]
        driver.resting.stay(None)

        def show(forest: Any, events: list[Any], now: int) -> None:
            if (poll.rested and until(forest)) or len(poll.waits) > 600:
                driver.ask(Wish.STOP, "the test")

        driver.drive(is_settled, show)
    return poll


def test_an_engine_that_rests_wants_to_sleep(repo: Repo) -> None:
    """One that stays and has nothing to do asks to be woken less than five times a minute."""
    poll = rested(repo, lambda driver: driver.ask(Wish.STOP, "the test"), lambda forest: True)
    assert max(poll.waits) > 60_000 / 5, poll.waits


WAKES: dict[str, Callable[[Repo], object]] = {
    "a file": lambda repo: repo.drop("demo/a/spec.md", SPEC),
    "settings": lambda repo: (repo.root / "loopr.yml").write_text(
        f"{(repo.root / 'loopr.yml').read_text()}concurrency: {{max_loops: 7}}\n"
    ),
    "another commit": lambda repo: repo.git("switch", "--quiet", "-c", "other"),
    "another process": lambda repo: repo.loopr("pause", "demo/a"),
}


@pytest.mark.parametrize("what", WAKES)
def test_what_people_do_ends_a_rest(repo: Repo, what: str) -> None:
    """A file, changed settings, another commit in the checkout and the words of other processes are heard at once."""
    seen = {
        "a file": lambda forest: "demo/a/p/x" in forest.loops,
        "settings": lambda forest: forest.policy.max_loops == 7,
        "another process": lambda forest: forest.loops["demo/a"].hold is not None,
    }
    poll = rested(repo, lambda driver: WAKES[what](repo), seen.get(what, lambda forest: True))
    assert poll.woken and len(poll.waits) < 600, poll.waits


@pytest.mark.soak
def test_an_engine_that_stays_wakes_less_than_five_times_a_minute(repo: Repo) -> None:
    """The main thread of an engine that stays gives up its processor less than five times in a minute."""
    by_hand(repo)
    process = repo.begin("start", "--stay", "plan.md")
    says(process, SETTLED)
    watch = select.poll()
    watch.poll(10_000)  # so long that it rests
    before = _switches(process.pid)
    watch.poll(60_000)
    assert _switches(process.pid) - before < 5
    repo.loopr("stop")
    process.ended(4)


def _switches(pid: int) -> int:
    """Count how often the main thread of a process has waited."""
    lines = Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt_switches")).split()[1])
