"""What all loops below one write, while they write it: whole lines, each with its loop, in one stream.

Hears of attempts from the journal, so that not even one that lives for a moment is missed. Must never know how a line
is shown, nor change a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.core.events import Event, LeaseGranted
from loopr.core.forest import Forest
from loopr.core.gates import first_closed
from loopr.core.model import Loop, Status
from loopr.ui import logs
from loopr.ui.outputs import RUNNING, Wanted
from loopr.ui.picture import Tail
from loopr.ui.preparing import has_begun, steps_before
from loopr.ui.saying import stream_of
from loopr.world.launcher.words import Outcome
from loopr.world.runs import Runs
from loopr.world.veil import Veil

READY = "it is ready, and waits for its turn"


class Line(NamedTuple):
    """One line that an attempt has written."""

    loop: str
    attempt: int
    stream: str
    text: bytes


class _Flow:
    """One output of an attempt as whole lines, without keys; what may be half a key or half a line waits."""

    def __init__(self, stream: logs.Stream, veil: Veil) -> None:
        self.name = Path(stream.name).stem
        self._stream, self._veil = stream, veil
        self._held, self._rest = b"", b""

    def read(self, *, last: bool) -> Iterator[bytes]:
        """Give the lines that are whole; at the `last` time what is left too."""
        for piece in self._stream.read():
            whole = self._veil.over_bytes(self._held + piece)
            held = self._veil.held_back(whole)
            self._held = whole[len(whole) - held :]
            *lines, self._rest = (self._rest + whole[: len(whole) - held]).split(b"\n")
            yield from lines
        if last and (left := self._rest + self._held):
            self._held, self._rest = b"", b""
            yield from left.removesuffix(b"\n").split(b"\n")


class _Voice:
    """One attempt whose output is read along; its folder may not be there yet."""

    def __init__(self, loop: Loop, attempt: int, tail: int | None) -> None:
        self.loop, self.attempt = loop, attempt
        self.folder: Path | None = None
        self._tail, self._flows = tail, list[_Flow]()
        # of the steps that run first; None once the command has begun
        self._before: dict[Path, list[_Flow]] | None = {}

    def open(self, runs: Runs, veil: Callable[[Loop], Veil], wanted: Wanted) -> None:
        """Look for its folder, where that is not found yet, and for steps before its command."""
        found = logs.find_attempt(runs, self.loop, self.attempt) if self.folder is None else None
        if found is not None:
            self.folder, hides = found.folder, veil(self.loop)
            self._flows = _flows(found.folder, hides, wanted)
        if self.folder is not None and self._before is not None and not has_begun(self.folder):
            for each in steps_before(self.folder):
                if each not in self._before:
                    self._before[each] = _flows(each, veil(self.loop), wanted)

    def read(self, *, last: bool) -> Iterator[Line]:
        """Give what is new; the first time only the tail of it, where that is wanted."""
        begun = self.folder is not None and has_begun(self.folder)
        before = [flow for flows in (self._before or {}).values() for flow in flows]
        for flow in [*before, *self._flows]:
            lines: Sequence[bytes] = list(flow.read(last=last or (begun and flow in before)))
            lines = lines if self._tail is None else lines[len(lines) - min(self._tail, len(lines)) :]
            yield from (Line(self.loop.id, self.attempt, flow.name, text) for text in lines)
        self._tail = None if self._flows else self._tail
        self._before = None if begun else self._before


def _flows(folder: Path, veil: Veil, wanted: Wanted) -> list[_Flow]:
    """Open the outputs of a run that are wanted."""
    return [_Flow(stream_of(folder, name, raw=wanted.raw), veil) for name in wanted.names]


class Chorus:
    """All attempts below some loops, read along for as long as they live."""

    def __init__(self, runs: Runs, tops: Sequence[str], wanted: Wanted, veil: Callable[[Loop], Veil]) -> None:
        """Listen to what is below some loops; `told` and `ended` take what is heard."""
        self._runs, self._tops, self._wanted, self._veil = runs, tuple(tops), wanted, veil
        self._voices: dict[tuple[str, int], _Voice] = {}
        self._forest: Forest | None = None
        self.told: Callable[[Line], None] = lambda line: None
        self.ended: Callable[[Loop, int, Outcome | None], None] = lambda loop, attempt, outcome: None

    @property
    def voices(self) -> int:
        """How many attempts are read along."""
        return len(self._voices)

    def show(self, forest: Forest, events: Sequence[Event], now: int, tail: Tail) -> None:
        """Take up the attempts that live, the first time, and those that were granted since."""
        if self._forest is None:
            self._forest = forest
            for loop in (each for top in self._tops for each in forest.tree.walk(top)):
                if loop.lease is not None and loop.status in RUNNING:
                    self.listen(loop, loop.lease.attempt, self._wanted.tail)
        for event in events:
            if isinstance(event, LeaseGranted) and not event.judge_only and event.loop in forest.loops:
                self.listen(forest.loops[event.loop], event.attempt)
        self.tick(forest, now, tail)

    def tick(self, forest: Forest, now: int, tail: Tail) -> None:
        """Read on in all of them; those that have ended are read to their end, and left."""
        for key, voice in list(self._voices.items()):
            voice.open(self._runs, self._veil, self._wanted)
            over = self._is_over(forest, voice)  # asked first: whatever was written until then is read below
            for line in voice.read(last=over):
                self.told(line)
            if over:
                outcome = logs.outcome_of(voice.folder) if voice.folder is not None else None
                del self._voices[key]
                self.ended(voice.loop, voice.attempt, outcome)

    def close(self) -> None:
        """Read what is left of those that are listened to no longer."""
        for voice in self._voices.values():
            voice.open(self._runs, self._veil, self._wanted)
            for line in voice.read(last=True):
                self.told(line)
        self._voices.clear()

    def listen(self, loop: Loop, attempt: int, tail: int | None = None) -> None:
        """Read an attempt along."""
        self._voices.setdefault((loop.id, attempt), _Voice(loop, attempt, tail))

    def _is_over(self, forest: Forest, voice: _Voice) -> bool:
        """Say whether an attempt writes no more."""
        if voice.folder is not None and (logs.outcome_of(voice.folder) is not None or logs.is_lost(voice.folder)):
            return True
        loop = forest.loops.get(voice.loop.id)
        if loop is None:
            return True
        ends = loop.ending is not None and loop.ending.attempt == voice.attempt
        lives = loop.lease is not None and loop.lease.attempt == voice.attempt and loop.status in RUNNING
        return not ends and not lives


class Beginning:
    """A loop that has not begun is waited for, and what it waits for is said whenever that changes."""

    def __init__(self, loop: str, say: Callable[[str], None]) -> None:
        """Wait for one loop."""
        self._loop, self._say, self._said = loop, say, ""

    def show(self, forest: Forest, events: Sequence[Event], now: int, tail: Tail) -> None:
        """Say what it waits for, if that is new."""
        self.tick(forest, now, tail)

    def tick(self, forest: Forest, now: int, tail: Tail) -> None:
        """Say what it waits for, if that is new."""
        loop = forest.loops.get(self._loop)
        if loop is None or loop.status is not Status.PENDING:
            return
        gate = first_closed(forest, loop, now)
        words = gate.reason if gate is not None else READY
        if words != self._said:
            self._said = words
            self._say(f"{loop.id} has not begun: {words}")
