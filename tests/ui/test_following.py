"""Watching a workspace in which another process decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from loopr.core.forest import Forest
from loopr.core.model import Status
from loopr.ui.following import follow, tail_of
from loopr.ui.progress import Progress
from loopr.ui.render import Paint
from loopr.wiring import Workspace
from loopr.world.runs import Runs
from tests.ui.acting import acting
from tests.ui.scenes import Desk, flat

LONG_MS = 60_000
Until = Callable[[Forest, int], bool]
Found = tuple[Forest, int, bool]


class Watcher:
    """Somebody who follows and writes down what they are shown."""

    def __init__(self, desk: Desk, *plans: str) -> None:
        self.desk, self.plans = desk, plans
        self.written: list[str] = []
        self.found: Found | None = None

    def __call__(self, until: Until, timeout_ms: int | None = LONG_MS) -> Found:
        """Follow, and return what comes of it."""
        show = Progress(self.written.append, live=False, width=80, height=0, paint=Paint(False))
        self.found = follow(Workspace(self.desk.folder), self.plans, show, until, timeout_ms)
        return self.found

    @contextmanager
    def beside(self, until: Until) -> Iterator[None]:
        """Follow in a thread while something else is done; in the end that must be over."""
        looked = Event()

        def over(forest: Forest, now: int) -> bool:
            looked.set()
            return until(forest, now)

        thread = Thread(target=lambda: self(over))
        thread.start()
        assert looked.wait(LONG_MS / 1000)
        try:
            yield
        finally:
            thread.join(LONG_MS / 1000)
            assert not thread.is_alive()

    @property
    def lines(self) -> list[str]:
        """What was shown, without the time of day."""
        return [line.partition(" ")[2] for line in "".join(self.written).splitlines()]


def never(forest: Forest, now: int) -> bool:
    """Go on for ever."""
    return False


def is_complete(loop_id: str) -> Until:
    """Go on until a loop is complete."""
    return lambda forest, now: forest.loops[loop_id].status is Status.COMPLETE


def test_what_another_process_decides_is_shown(shop: Desk) -> None:
    """Events of another process are shown as they come, and the end comes when it was asked for."""
    shop.start(flat(["a", "b"]))
    watcher = Watcher(shop)
    with acting(shop.folder) as engine, watcher.beside(is_complete("p/a")):
        engine("choose", "run p/a", "run p/b", "refuse p/b", "land p/a")
    assert watcher.lines == [
        "p/a  started",
        "p/b  started",
        "p/b  parked  no such program",
        "p/a  landed  1 try  0 s",
    ]
    assert watcher.found is not None
    assert watcher.found[2] is False


def test_the_followed_forest_is_the_journals(shop: Desk) -> None:
    """The forest that follows is, row by row, the one that a reader of the journal finds, and keeps no rows back."""
    shop.start(flat(["a", "b"]))
    watcher = Watcher(shop)
    with acting(shop.folder) as engine, watcher.beside(is_complete("p/a")):
        engine("choose", "run p/b", "refuse p/b", "land p/a k")
    assert watcher.found is not None
    forest = watcher.found[0]
    assert forest.all_rows() == Workspace(shop.folder).ponder()[0].all_rows()
    assert forest.take_rows() == ([], [], 0)


def test_only_the_plans_that_were_named_are_shown(shop: Desk) -> None:
    """What happens in other plans is known, but not shown."""
    shop.start(flat(["a"]))
    shop.start(flat(["b"], "q"), "q.md")
    watcher = Watcher(shop, "p")
    with acting(shop.folder) as engine, watcher.beside(is_complete("p/a")):
        engine("choose", "run q/b", "refuse q/b", "land p/a")
    assert watcher.lines == ["p/a  started", "p/a  landed  1 try  0 s"]
    assert watcher.found is not None
    assert watcher.found[0].loops["q/b"].status is Status.PARKED


def test_following_ends_with_the_engine(shop: Desk) -> None:
    """When the engine has gone, in good order or not, its last words are shown and following ends."""
    for name, verb in (("p", "leave"), ("q", "kill")):
        shop.start(flat(["a"], name), f"{name}.md")
        watcher = Watcher(shop, name)
        with acting(shop.folder) as engine, watcher.beside(never):
            engine("choose", f"run {name}/a")
            getattr(engine, verb)()
        assert watcher.lines == [f"{name}/a  started"]
        assert watcher.found is not None
        assert watcher.found[2] is False


def test_nobody_works(shop: Desk) -> None:
    """Where no engine runs, following ends at once; where nothing was ever remembered, too."""
    begun = time.monotonic()
    assert Watcher(shop)(never)[0].loops == {}
    shop.start(flat(["a"]))
    assert Watcher(shop)(never)[2] is False
    assert time.monotonic() - begun < LONG_MS / 1000


def test_time_is_up(shop: Desk) -> None:
    """A time limit ends following while the engine goes on, and says so; not before it is up."""
    shop.start(flat(["a"]))
    with acting(shop.folder):
        begun = time.monotonic()
        assert Watcher(shop)(never, 300)[2] is True
        assert time.monotonic() - begun >= 0.3


def test_the_last_line_of_an_output_is_found(shop: Desk) -> None:
    """The last line of a loop's output is read from the folder of its present attempt."""
    shop.start(flat(["a"]))
    shop.choose()
    workspace, loop = Workspace(shop.folder), shop.loop("p/a")
    assert tail_of(workspace)(loop) == ""
    folder = Runs(workspace.place.state).ensure(loop.name, loop.attempt)
    (folder / "stdout.log").write_text("first\nlast\n\n")
    assert tail_of(workspace)(loop) == "last"
