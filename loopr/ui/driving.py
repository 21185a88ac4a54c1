"""What a verb that drives the workspace does on behalf of a person: it shows progress, and heeds their signals.

Knows a terminal and its signals. Must never know what is driven, nor in which order.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.settled import is_settled, standing
from loopr.errors import WorldError
from loopr.ui.curfew import Curfew, code_of, ends_at_once, leave
from loopr.ui.driven_too import DrivenOn
from loopr.ui.progress import Progress
from loopr.ui.times import read_duration, say_clock
from loopr.ui.unfinished import unfinished_line
from loopr.wiring import Workspace
from loopr.world.lock import END_AT_ONCE

if TYPE_CHECKING:
    from loopr.driving.driver import Driver

NOT_YET = 75
WAIT_SECS = 20.0
Until = Callable[[Forest, int], bool]


class Driven(NamedTuple):
    """How driving ended: the exit code that says so, and the instant."""

    code: int
    now: int


def drive(driver: Driver, plans: Sequence[str], progress: Progress, *, limit: Limit | None = None) -> Driven:
    """Drive until all has settled (unless it stays), a limit is reached or a person asks; say how the plans stand."""
    gc.enable()  # verbs that only show switch it off
    if limit is not None and limit.stays:
        driver.resting.stay(limit.ends)
    driven_on = DrivenOn(plans)

    def show(forest: Forest, events: list[Event], now: int) -> None:
        progress.warn(driver.trouble)
        if events:
            progress.show(forest, events, now, driver.tail)
        else:
            progress.tick(forest, now, driver.tail)
        if driver.resting.settled:
            progress.rest(forest, now)
        elif words := driven_on.words(forest, now, limit.until(now) if limit is not None else ""):
            progress.say(words, now)
        if limit is not None and limit.is_reached(events):
            from loopr.driving.leaving import Wish

            driver.ask(Wish.STOP, "its limit")

    def left() -> str:
        return unfinished_line(driver.forest)

    with Curfew(driver.longest_grace_secs, left), _signals(driver) as caught:
        driver.drive(is_settled, show)
    now = driver.engine.mind.now()
    progress.warn(driver.trouble)
    progress.close(driver.forest, now)
    if words := left():
        sys.stderr.write(f"{words}\n")
    if driver.leaves_threads:
        sys.stderr.flush()
        leave(code_of(caught))
    if any(number != END_AT_ONCE for number in caught):
        return Driven(code_of(caught), now)
    if limit is not None and not is_settled(driver.forest, now, plans or None):
        return Driven(NOT_YET, now)
    return Driven(int(standing(driver.forest, plans or sorted(driver.forest.shared.plans), now)), now)


class Limit:
    """When an engine is to stop by itself: after the first round, or after a while; and whether it stays till then."""

    def __init__(self, *, once: bool = False, secs: float | None = None, stays: bool = False) -> None:
        self._once, self.stays = once, stays
        self.ends = None if secs is None else time.monotonic() + secs

    def is_reached(self, events: Sequence[Event]) -> bool:
        """Say whether it is time to stop."""
        return self._once or (self.ends is not None and time.monotonic() >= self.ends)

    def until(self, now: int) -> str:
        """Say at which time of the day a while is over; nothing where it has no end."""
        if self.ends is None:
            return ""
        return say_clock(now + round((self.ends - time.monotonic()) * 1000), now)


def limit_of(*, once: bool = False, span: str | None = None, stay: bool = False) -> Limit | None:
    """Return the limit that options ask for, None if they ask for none; `--for` is read."""
    secs = read_duration(span) / 1000 if span is not None else None
    return Limit(once=once, secs=secs, stays=stay) if once or stay or secs is not None else None


def again(span: str | None, *, stay: bool) -> list[str]:
    """Return the options that an engine in the background needs too."""
    return [*(["--for", span] if span else []), *(["--stay"] if stay else [])]


@contextmanager
def _signals(driver: Driver) -> Iterator[list[int]]:
    """Turn the first Ctrl-C into a stop, the others into one at once; gives what came.

    Another loopr asks for a stop at once by a signal too: a full disk takes no wish.
    """
    from loopr.driving.leaving import Wish

    caught: list[int] = []

    def heed(number: int, frame: FrameType | None) -> None:
        wish = Wish.STOP_NOW if ends_at_once(number, caught) else Wish.STOP
        caught.append(number)
        driver.ask(wish, "loopr stop" if number == END_AT_ONCE else signal.Signals(number).name)

    heeded = (signal.SIGINT, signal.SIGTERM, END_AT_ONCE)
    before: dict[int, Any] = {each: signal.signal(each, heed) for each in heeded}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if number == END_AT_ONCE else handler)


def detach(workspace: Workspace, arguments: Sequence[str]) -> int:
    """Start an engine in the background, and return its pid once it serves the workspace."""
    log = workspace.place.state / "engine.out"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch(0o600)
    with log.open("wb") as out:
        engine = subprocess.Popen(
            [sys.executable, "-P", "-m", "loopr", "run", "-C", str(workspace.place.root), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=dict(os.environ),
        )
    ends = time.monotonic() + WAIT_SECS
    while time.monotonic() < ends:
        holder = workspace.engine()
        if holder is not None and holder["kind"] == "engine":
            engine.returncode = 0  # it goes on without us
            return holder["pid"]
        if engine.poll() is not None:
            said = log.read_text(errors="replace").strip()
            raise WorldError(f"the engine ended at once: {said or f'exit {engine.returncode}'}", hint=f"see {log}")
        time.sleep(0.02)
    raise WorldError(f"the engine has not begun within {WAIT_SECS:g} s", hint=f"see {log}")
