"""Progress for a person: a picture that is redrawn in place on a terminal, one line a change in a pipe.

Runs on the thread of whoever does the work, so it is cheap, and whoever watches may leave: what cannot be written is
not. Knows when to draw and what is on the screen. Must never know what is worth telling (`telling.py`), what is seen
(`picture.py`), or who does the work.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial

from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.grouping import queue_depth
from loopr.core.left_out import LEFT_PLACE
from loopr.core.model import Loop
from loopr.core.workspace_events import ProblemSeen
from loopr.ui.picture import IsHome, Newest, Tail, at_rest, last_word, no_news, picture, tops_of
from loopr.ui.preparing import NO_SETUPS, Reminder, Setups
from loopr.ui.render import Paint, columns, fit
from loopr.ui.telling import backing_off, tell
from loopr.ui.terminal import Terminal
from loopr.ui.times import say_clock
from loopr.ui.warnings import budget_warnings, queue_warning

Write = Callable[[str], object]
Size = Callable[[], tuple[int, int]]

FRAME_MS = 100  # at most ten pictures a second
TAIL_MS = 1_000  # how old a line of output may be
QUEUE_MS = 1_000  # how old a count of those that wait may be
QUEUE = "queue"
AGAIN_MS = 30_000  # a queue that stays too long is told again, with how many wait by then
SMALLEST = 20, 4
USUAL = 80, 24
_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")


class Progress:
    """What is shown of the work while it is done."""

    def __init__(
        self,
        write: Write,
        *,
        live: bool,
        width: int,
        height: int,
        paint: Paint,
        plans: Sequence[str] = (),
        is_home: IsHome = lambda forest, plan: False,
        newest: Newest = no_news,
        setups: Setups = NO_SETUPS,
        size: Size | None = None,
        terminal: Terminal | None = None,
    ) -> None:
        """Show some subtrees, or everything.

        `size` says how large the screen is now, else stderr's terminal does; `setups` finds the
        loops whose worktree is being set up.
        """
        self._screen = Screen(write, size or partial(_size_of_stderr, width, height), terminal)
        self._live, self._width, self._paint, self._plans = live, width, paint, tuple(plans)
        self._is_home, self._newest = is_home, newest
        self._drawn_at: int | None = None
        self._tails: dict[str, tuple[int, str]] = {}
        self._begun = self._closed = False
        self._warned = ""
        self._told, self._counted_at = dict[str, int](), 0
        self._setups, self._reminder = setups, Reminder(setups, self._plans)
        self._rest = ""

    def show(self, forest: Forest, events: Sequence[Event], now: int, tail: Tail) -> None:
        """Show what was decided, after the forest has taken it."""
        if self._closed:
            return
        if forest.occupancy.total:
            self._rest = ""  # said anew once that is over
        if not self._live:
            told = events if self._begun else [*events, *_known_already(forest, events)]
            lines = list(tell(forest, told, now, self._plans))
            lines += () if self._begun else backing_off(forest, now, self._plans)
            self._begun = True
            self._screen.print(lines)
            self._tell_waits(forest, now)
        elif self._drawn_at is None or abs(now - self._drawn_at) >= FRAME_MS:
            self._draw(forest, now, tail)

    def rest(self, forest: Forest, now: int) -> None:
        """Say that nothing goes on by itself, and what an engine that stays waits for: to a pipe each of these once."""
        words = at_rest(forest, tops_of(forest, self._plans), now)
        if self._closed or words == self._rest:
            return
        self._rest = words
        if self._live:
            self._draw(forest, now, lambda loop: "")
        else:
            self._screen.print([f"{say_clock(now, now)} {words}"])

    def say(self, words: str, now: int) -> None:
        """Say something once, in a line that stays."""
        if not self._closed:
            self._screen.erase()
            self._screen.print([f"{say_clock(now, now)} {words}"])

    def warn(self, trouble: str) -> None:
        """Say once what keeps the engine from going on, until it is something else."""
        if trouble and trouble != self._warned and not self._closed:
            self._screen.erase()
            self._screen.print([f"cannot go on: {trouble}"])
        self._warned = trouble

    def tick(self, forest: Forest, now: int, tail: Tail) -> None:
        """Bring the picture up to date while nothing happens; a pipe is told of the queue at most."""
        if self._closed:
            return
        if self._live:
            self._draw(forest, now, tail)
        else:
            self._tell_waits(forest, now)

    def _tell_waits(self, forest: Forest, now: int) -> None:
        """Tell the waits that are in no event.

        For which budgets all wait is said once; that a worktree is being set up or a queue is too
        long again and again. Looked at once a second.
        """
        if abs(now - self._counted_at) < QUEUE_MS:
            return
        self._counted_at = now
        late = queue_warning(forest, queue_depth(forest, now))
        found = {QUEUE: late} if late else {}
        if not forest.occupancy.total:
            found |= {each: each for each in budget_warnings(forest, now, partial(say_clock, now=now))}
        again = self._told.get(QUEUE, now)
        if abs(now - again) >= AGAIN_MS:
            del self._told[QUEUE]
        self._screen.print([f"{say_clock(now, now)} {words}" for key, words in found.items() if key not in self._told])
        self._told = {key: self._told.get(key, now) for key in found}
        due = self._reminder.due(forest, now)
        self._screen.print([f"{say_clock(now, now)} {each}" for each in due])

    def close(self, forest: Forest, now: int) -> None:
        """Take the picture away and say the last word, once."""
        if self._closed:
            return
        self._closed = True
        self._screen.erase()
        tops = tops_of(forest, self._plans)
        self._screen.print(last_word(forest, tops, now, self._width, self._is_home, newest=self._newest))
        self._screen.close()

    def _draw(self, forest: Forest, now: int, tail: Tail) -> None:
        """Draw the picture of now."""
        self._drawn_at = now
        tops = tops_of(forest, self._plans)
        known = partial(self._tail, now=now, tail=tail)
        width, height = self._screen.room
        rest = [self._paint("warn", self._rest)] if self._rest else []
        drawn = picture(forest, tops, now, size=(width, height - len(rest)), paint=self._paint, tail=known)
        self._screen.draw([*drawn, *rest])

    def _tail(self, loop: Loop, now: int, tail: Tail) -> str:
        """Return the last line of a loop's output, looked up once a second."""
        read_at, text = self._tails.get(loop.lease_id, (None, ""))
        if read_at is None or abs(now - read_at) >= TAIL_MS:
            if len(self._tails) >= 1000:  # of attempts that are long over
                self._tails.clear()
            self._tails[loop.lease_id] = now, (text := self._setups.tail(loop, tail))
        return text


class Screen:
    """The last lines of a terminal: a picture that is drawn over, each time in one write."""

    def __init__(self, write: Write, size: Size, terminal: Terminal | None = None) -> None:
        """Begin with nothing drawn; a `terminal` is written to without waiting for it."""
        self._write, self._size, self._terminal = terminal.write if terminal is not None else write, size, terminal
        self._drawn: list[int] = []

    @property
    def room(self) -> tuple[int, int]:
        """How many columns and lines a picture may have: one of each stays free, so that nothing wraps or scrolls."""
        width, height = self._size()
        return max(SMALLEST[0], width) - 1, max(SMALLEST[1], height) - 1

    def draw(self, lines: Sequence[str]) -> None:
        """Draw a picture over the last one, if that is there; what is too long is cut, what is too much left out."""
        if self._lags():
            return
        width, height = self.room
        kept = [clip(line, width) for line in lines[:height]]
        text = "".join(f"{line}\x1b[K\r\n" for line in kept)
        self._put(f"{self._upwards()}{text}\x1b[J")
        self._drawn = [columns(_COLOR.sub("", line)) for line in kept]

    def erase(self) -> None:
        """Take the picture away."""
        if self._drawn:
            self._put(f"{self._upwards()}\x1b[J")
            self._drawn = []

    def print(self, lines: Sequence[str]) -> None:
        """Write lines that stay."""
        if lines:
            self._put("".join(f"{line}\n" for line in lines))

    def close(self) -> None:
        """Let a terminal go that was written to without waiting."""
        if self._terminal is not None:
            self._terminal.close()

    def _lags(self) -> bool:
        """Say whether the last picture has not been taken yet."""
        try:
            return self._terminal is not None and self._terminal.lags
        except OSError:  # nobody reads any more
            return False

    def _upwards(self) -> str:
        """Return to where the picture begins; a screen that was made narrower has broken its lines by now."""
        width, height = self._size()
        rows = sum(max(1, -(-each // max(1, width))) for each in self._drawn)
        up = min(rows, max(1, height) - 1)
        return f"\r\x1b[{up}A" if up else "\r"

    def _put(self, text: str) -> None:
        """Write; if nobody reads any more, stop writing, since the work goes on."""
        try:
            self._write(text)
        except (OSError, ValueError):
            self._write = _nowhere


def _nowhere(text: str) -> None:
    """Write to nobody."""


def _known_already(forest: Forest, events: Sequence[Event]) -> list[Event]:
    """Say as events what was wrong before anybody watched, and still is: nothing else would tell of it.

    What was left out of work that is over is no trouble to anybody else.
    """
    fresh = {each.place for each in events if isinstance(each, ProblemSeen)}
    problems = sorted(each for each in forest.shared.problems.items() if not each[0].startswith(LEFT_PLACE))
    return [ProblemSeen(*each) for each in problems if each[0] not in fresh]


def clip(text: str, width: int) -> str:
    """Cut a text with colours in it to a width."""
    if columns(_COLOR.sub("", text)) <= width:
        return text
    kept, room, color = [], width, ""
    for part in _COLOR.split(text):
        if _COLOR.fullmatch(part):
            kept.append(part)
            color = "" if part == "\x1b[0m" else part
        elif columns(part) < room:
            kept.append(part)
            room -= columns(part)
        else:
            kept.append(fit(f"{part}…", room))
            break
    return "".join(kept) + ("\x1b[0m" if color else "")


def on_stderr(
    color: bool,
    plans: Sequence[str],
    is_home: IsHome,
    newest: Newest = no_news,
    setups: Setups = NO_SETUPS,
) -> Progress:
    """Make the progress of a verb: live where stderr is a terminal that can be drawn on, in lines elsewhere."""
    live = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    width, height = _size_of_stderr(*USUAL)
    return Progress(
        sys.stderr.write,
        live=live,
        width=width,
        height=height,
        paint=Paint(color and live),
        plans=plans,
        is_home=is_home,
        newest=newest,
        setups=setups,
        terminal=Terminal.behind_of(sys.stderr.fileno()) if live else None,
    )


def _size_of_stderr(width: int, height: int) -> tuple[int, int]:
    """Ask stderr's terminal for its size; one that is none, or does not know, has the given one."""
    try:
        found = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return width, height
    return found.columns or width, found.lines or height
