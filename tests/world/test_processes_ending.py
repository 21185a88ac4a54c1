"""How an attempt is ended: by its clocks, by a wish, and with everything that belongs to it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.world.launcher import proc
from tests.world.attempting import QUICK_MS, Yard, alive

FOR_EVER = "while :; do sleep 1000; done"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a workspace, and see that nothing is left of it."""
    yard = Yard(tmp_path)
    yield yard
    yard.close()


@pytest.mark.parametrize(
    ("script", "clock"),
    [
        ("while :; do echo x; sleep 0.01; done", {"wall_ms": QUICK_MS, "idle_ms": 60_000}),
        (f"echo x; {FOR_EVER}", {"idle_ms": QUICK_MS, "wall_ms": 60_000, "first_byte_ms": 60_000}),
        (FOR_EVER, {"first_byte_ms": QUICK_MS, "wall_ms": 60_000, "idle_ms": 60_000}),
    ],
)
def test_a_clock_that_runs_out_ends_it(yard: Yard, script: str, clock: dict[str, int]) -> None:
    """Each of the three clocks ends an attempt, and is named as the reason."""
    outcome = yard.sh(script, **clock)
    reason = next(iter(clock)).removesuffix("_ms")
    assert (outcome.reason, outcome.signal) == (reason, signal.SIGTERM)
    assert QUICK_MS <= outcome.wall_ms < 60_000


def test_output_on_either_stream_is_a_sign_of_life(yard: Yard) -> None:
    """An attempt that talks more often than its idle clock allows goes on to its end."""
    talk = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo x >&2; sleep 0.15; done"
    outcome = yard.sh(talk, idle_ms=1_500, first_byte_ms=60_000)
    assert (outcome.reason, outcome.code) == ("exited", 0)
    assert outcome.wall_ms > 1_500


def test_a_wish_ends_it(yard: Yard) -> None:
    """A killed attempt ends with that reason, its words, and the code it chose itself when it was asked."""
    bell = yard.bell("bell")
    yard.start("x", f"trap 'echo bye; exit 7' TERM; echo > {bell}; while :; do sleep 0.01; done")
    yard.pid("x")
    bell.wait()
    yard.attempts.kill("x", "cancelled by ada")
    yard.attempts.kill("x", "a second time")
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code, outcome.message) == ("killed", 7, "cancelled by ada")
    assert yard.written("x", "stdout.log") == "bye\n"


def test_a_wish_that_comes_late_changes_nothing(yard: Yard) -> None:
    """Killing what has ended, or was never there, does nothing."""
    yard.sh("exit 0")
    yard.attempts.kill("x")
    yard.attempts.kill("nobody")
    assert yard.run("y", "true").reason == "exited"


def test_a_wish_may_come_before_the_start(yard: Yard) -> None:
    """An attempt that is killed in the same breath ends as killed, whether its command began or not."""
    for number in range(20):
        yard.start(f"x{number}", FOR_EVER)
        yard.attempts.kill(f"x{number}")
    yard.wait(lambda: len(yard.ended) == 20)
    assert {outcome.reason for outcome in yard.ended.values()} == {"killed"}


def test_who_ignores_the_question_is_killed(yard: Yard) -> None:
    """After the grace comes KILL, for the whole family."""
    bell = yard.bell("bell")
    yard.start("x", f"trap '' TERM; (sleep 1000 & sleep 1000) & echo > {bell}; {FOR_EVER}", grace_ms=QUICK_MS)
    yard.pid("x")
    bell.wait()
    yard.attempts.kill("x")
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.signal) == ("killed", signal.SIGKILL)


def test_who_is_stopped_is_woken_to_end(yard: Yard) -> None:
    """A stopped command hears the question."""
    bell = yard.bell("bell")
    yard.start("x", f"trap 'exit 8' TERM; echo > {bell}; kill -STOP $$; {FOR_EVER}")
    yard.pid("x")
    bell.wait()
    yard.attempts.kill("x")
    assert yard.outcome("x").code == 8


STAY = "echo > {bell}; exec sleep 1000"
ESCAPES = {
    "a session of its own": f"setsid sh -c '{STAY}'",
    "two forks": f"(setsid sh -c '(sh -c \"{STAY}\") & exit' &)",
    "no environment": f"env -i setsid sh -c '{STAY}'",
    "deaf": "setsid env -i sh -c 'trap \"\" TERM HUP; echo > {bell}; while :; do sleep 1; done'",
    "nowhere": f"(cd / && exec env -i setsid sh -c '{STAY} </dev/null >/dev/null 2>&1')",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("ended", [True, False], ids=["exited", "killed"])
def test_nobody_escapes(yard: Yard, escape: str, ended: bool) -> None:
    """Whatever a command leaves behind is gone when its outcome is there, and counted if it outlived the command."""
    bell, gate = yard.bell("bell"), yard.bell("gate")
    yard.start("x", f"{ESCAPES[escape].format(bell=bell)} & read _ < {gate}", grace_ms=QUICK_MS)
    bell.wait()
    yard.pid("x")
    supervisor = yard.claim("x")["supervisor"]
    if ended:
        gate.ring()
    else:
        yard.attempts.kill("x")
    outcome = yard.outcome("x")
    assert outcome.reason == ("exited" if ended else "killed")
    assert outcome.strays >= ended
    assert proc.children(supervisor) == []


def test_a_stray_that_holds_the_output_holds_up_nothing(yard: Yard) -> None:
    """The end does not wait for the end of the output, which a stray may hold for ever, and even fill."""
    outcome = yard.sh("setsid yes & echo done; exit 0", grace_ms=60_000, head_bytes=1 << 20, tail_bytes=1 << 20)
    assert (outcome.reason, outcome.code) == ("exited", 0)
    assert outcome.strays >= 1
    assert outcome.wall_ms < 30_000


def test_strays_may_finish_in_their_grace(yard: Yard) -> None:
    """A stray is asked first, and what it says then is still in the log."""
    bell = yard.bell("bell")
    stray = f"trap 'echo last words; exit' TERM; echo > {bell}; while :; do sleep 0.01; done"
    gate = yard.bell("gate")
    yard.start("x", f'setsid sh -c "{stray}" & read _ < {gate}; exit 0')
    bell.wait()
    gate.ring()
    assert yard.outcome("x").strays >= 1
    assert yard.written("x", "stdout.log") == "last words\n"


def test_what_forks_while_it_is_killed_is_killed(yard: Yard) -> None:
    """A family that goes on forking into new sessions, deaf to the question, is gone in the end."""
    bell = yard.bell("bell")
    again = "trap '' TERM; n=$1; [ $n -gt 60 ] && exec sleep 1000; setsid sh $0 $((n + 1)) & sleep 0.01"
    (yard.tree / "again").write_text(again)
    yard.start("x", f"echo > {bell}; trap '' TERM; setsid sh ./again 1; {FOR_EVER}", grace_ms=1)
    bell.wait()
    yard.pid("x")
    yard.attempts.kill("x")
    assert yard.outcome("x").reason == "killed"


def test_sixty_four_are_cancelled_with_all_their_grandchildren(yard: Yard) -> None:
    """No process with the workspace's mark is left of 64 attempts with grandchildren in sessions of their own."""
    bells = [yard.bell(f"bell{number}") for number in range(64)]
    for number, bell in enumerate(bells):
        yard.start(f"x{number}", f"(setsid sleep 1000 & setsid sleep 1000 & echo > {bell}) & {FOR_EVER}", grace_ms=100)
    for bell in bells:
        bell.wait()
        bell.close()
    assert len(yard.marked()) >= 3 * 64
    for number in range(64):
        yard.attempts.kill(f"x{number}")
    yard.wait(lambda: len(yard.ended) == 64)
    assert {outcome.reason for outcome in yard.ended.values()} == {"killed"}
    assert yard.marked() == {}


def test_the_sweep_takes_what_nobody_waits_for(yard: Yard) -> None:
    """What carries the mark is killed, unless it belongs to a live attempt or to another workspace."""
    bell, foreign, gate = yard.bell("bell"), yard.bell("foreign"), yard.bell("gate")
    yard.start("x", f"echo > {bell}; read _ < {gate}")
    bell.wait()
    yard.pid("x")
    other = Yard(yard.root / "other")
    other.start("y", f"echo $$ > {foreign}; {FOR_EVER}")
    assert alive(int(foreign.wait()))
    stray = yard.bell("stray")
    other.start(
        "z",
        f"sh -c 'sleep 1000 & echo $$ > {stray}; wait'",
        env={**other.spec("z").env, "LOOPR_WORKSPACE": str(yard.root), "LOOPR_LEASE": "gone#3"},
    )
    lost = int(stray.wait())
    assert yard.attempts.sweep(str(yard.root)) >= 2
    assert not alive(lost)
    assert other.outcome("z").reason in ("exited", "signalled")
    assert yard.attempts.sweep(str(yard.root)) == 0
    gate.ring()
    assert yard.outcome("x").code == 0
    other.close()
