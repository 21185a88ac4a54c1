"""An instant that passes while something else is asked or awaited wakes the engine all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopr import wiring
from loopr.core.forest import Forest
from loopr.core.settled import is_settled
from loopr.driving.driver import Driver
from loopr.driving.leaving import Wish
from loopr.errors import WorldError
from loopr.wiring import Workspace
from tests.e2e.repos import Repo, opened

TURNS = 30  # so many looks around without a grant, and it has been forgotten
SETTINGS = "retry: {base_secs: 3600, jitter: 0}\ntypes:\n  plan: {child: code}\n"
RUN = 'test -e "$DESK/died" || { touch "$DESK/died"; kill -9 $$; }'
Meanwhile = Callable[[Driver, int], None]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repo]:
    """Give a repository with a plan whose one loop dies once, and then waits for an hour."""
    with opened(tmp_path) as found:
        monkeypatch.setenv("DESK", found.env["DESK"])
        monkeypatch.setenv("ENV", "")
        found.found({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
        found.settings(f"{SETTINGS}  code: {{run: '{found.script('code', RUN)}'}}\n")
        found.loopr("start", "--no-run", "plan.md")
        yield found


class Late:
    """An engine whose clock jumps past the end of the wait once all it had to do is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path, meanwhile: Meanwhile) -> None:
        self.ahead_ms = self.turns = 0
        self._meanwhile = meanwhile
        monkeypatch.setattr(wiring, "wall_clock", lambda: time.time_ns() // 1_000_000 + self.ahead_ms)
        with Workspace(root).serve() as driver:
            self.driver = driver
            driver.drive(self.until, self.show)

    def until(self, forest: Forest, now: int) -> bool:
        """Let the wait end between two turns, and something be asked of the forest then."""
        at = forest.ready.next_backoff()
        if at is not None and now < at:
            self.ahead_ms += at - now
            self._meanwhile(self.driver, at)
        return is_settled(self.driver.forest, self.driver.engine.mind.now())

    def show(self, *given: Any) -> None:
        """Count the turns since, and give up in time."""
        self.turns += bool(self.ahead_ms)
        if self.turns > TURNS:
            self.driver.ask(Wish.STOP, "the test")


def nothing(driver: Driver, now: int) -> None:
    """Ask only whether all has settled."""


def lets_in(driver: Driver, now: int) -> None:
    """Let those whose backoff has ended stand among the ready, as a view may do."""
    driver.forest.advance(now)


def fails_once(driver: Driver, now: int) -> None:
    """Let the next thing that is to be remembered not be remembered."""
    append = driver.engine.mind._memory.append

    def fails(*given: Any, **named: Any) -> int:
        driver.engine.mind._memory.append = append  # type: ignore[method-assign]
        raise WorldError("the disk is slow")

    driver.engine.mind._memory.append = fails  # type: ignore[method-assign]


@pytest.mark.parametrize("meanwhile", [nothing, lets_in, fails_once])
def test_a_wait_that_ends_meanwhile(repo: Repo, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> None:
    """A loop that waits is granted when its wait ends, whatever happens at that instant."""
    late = Late(monkeypatch, repo.root, meanwhile)
    assert late.ahead_ms
    assert repo.granted() == {"demo/a": 2}
    assert repo.statuses()["demo/a"] == "complete"
