"""The output of attempts as it lies in their run folders, while it is written and afterwards.

Knows heads, tails and what was cut between them. Must never change a file there, nor know a terminal.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.core.model import Loop
from loopr.core.naming import generation_name
from loopr.world.launcher import proc
from loopr.world.launcher.log import segments
from loopr.world.launcher.words import Outcome, read_outcome, read_run
from loopr.world.runs import Runs

COPY_BYTES = 1 << 20
_ROUNDS = 5  # a log is put in order once, in a moment
_MARK = re.compile(rb"\n\[loopr: (\d+) bytes were cut here\]\n")
_MARK_BYTES = 80


class Span(NamedTuple):
    """A piece of a stream on disk: where it begins in the stream, and in which file it lies."""

    begin: int
    path: Path
    offset: int
    length: int


class Stream:
    """One output of a run, read from its beginning on; what is written later is read by the next call."""

    def __init__(self, folder: Path, name: str) -> None:
        """Stand at the beginning."""
        self.folder, self.name, self.at = folder, name, 0

    def read(self) -> Iterator[bytes]:
        """Give all that is there beyond what was given before; a mark stands for what was cut."""
        for _ in range(_ROUNDS):
            try:
                for span in self._spans():
                    yield from self._rest_of(span)
            except FileNotFoundError:  # it was put in order meanwhile
                continue
            return

    def _rest_of(self, span: Span) -> Iterator[bytes]:
        """Give what is new in a piece."""
        if span.begin > self.at:
            yield f"\n[loopr: {span.begin - self.at} bytes were cut here]\n".encode()
            self.at = span.begin
        left = span.begin + span.length - self.at
        if left <= 0:
            return
        with span.path.open("rb") as file:
            file.seek(span.offset + self.at - span.begin)
            while left > 0 and (part := file.read(min(left, COPY_BYTES))):
                self.at += len(part)
                left -= len(part)
                yield part

    def _spans(self) -> list[Span]:
        """List the pieces: the head and the newest segments while it is written, then the head and the tail."""
        main = self.folder / self.name
        if not self.folder.is_dir():
            return []
        offsets = segments(str(main))
        size = main.stat().st_size if main.exists() else 0
        run = read_run(str(self.folder))
        head = run.head_bytes if run is not None else offsets[0] if offsets else size
        if offsets:
            beside = [(each, main.with_name(f"{main.name}.{each}")) for each in offsets]
            return [
                Span(0, main, 0, min(head, size)),
                *(Span(begin, path, 0, path.stat().st_size) for begin, path in beside),
            ]
        return _whole(main, head, size)


def _whole(main: Path, head: int, size: int) -> list[Span]:
    """List the pieces of a log that is in order."""
    if size > head:
        with main.open("rb") as file:
            file.seek(head)
            mark = _MARK.match(file.read(_MARK_BYTES))
        if mark is not None:
            behind = head + mark.end()
            return [Span(0, main, 0, head), Span(head + int(mark[1]), main, behind, size - behind)]
    return [Span(0, main, 0, size)] if size else []


def last_lines(pieces: Iterable[bytes], count: int) -> bytes:
    """Return the last lines of a stream."""
    kept: deque[bytes] = deque(maxlen=count)
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        kept.extend(line + b"\n" for line in lines)
    if rest:
        kept.append(rest)
    return b"".join(kept)


def follow(streams: list[Stream], over: Callable[[], bool], pause: Callable[[], None]) -> Iterator[tuple[str, bytes]]:
    """Give what streams get, with their names, until the run is over; pause while there is nothing new."""
    while True:
        ended = over()  # asked first: whatever was written until then is read below
        fresh = False
        for stream in streams:
            for piece in stream.read():
                fresh = True
                yield stream.name, piece
        if ended:
            return
        if not fresh:
            pause()


# --- which run ------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """An attempt that has a folder, and the generation it belongs to."""

    attempt: int
    generation: int
    folder: Path


def find_attempt(runs: Runs, loop: Loop, attempt: int | None = None) -> Found | None:
    """Return that attempt of a loop, or its latest one; earlier generations are looked at too."""
    for generation in range(loop.generation, 0, -1):
        name = generation_name(loop.id, generation)
        numbers = runs.attempts(name)
        wanted = attempt if attempt is not None else max(numbers, default=0)
        if wanted in numbers:
            return Found(wanted, generation, runs.folder(name, wanted))
    return None


def known_attempts(runs: Runs, loop: Loop) -> list[int]:
    """List all attempts of a loop that have a folder, of every generation."""
    names = (generation_name(loop.id, each) for each in range(1, loop.generation + 1))
    return sorted(each for name in names for each in runs.attempts(name))


def steps_of(folder: Path, step: str) -> list[Path]:
    """List the runs of a step beside the command of an attempt, oldest first.

    Reviews after the first have numbers.
    """
    beside = (each for each in folder.iterdir() if each.is_dir())
    found = [each for each in beside if each.name.partition(".")[0].rstrip("0123456789") == step]
    return sorted(found, key=lambda each: (each.stat().st_mtime_ns, each.name))


def outcome_of(folder: Path) -> Outcome | None:
    """Return how a run ended, None if it has not."""
    return read_outcome(str(folder))


def is_lost(folder: Path) -> bool:
    """Say whether nobody is left who could tell how a run ended."""
    run = read_run(str(folder))
    if run is None:
        return False
    if run.boot_id != proc.boot_id():
        return True
    those = (run.pid, run.pid_start), (run.supervisor, run.supervisor_start)
    return not any(pid and (seen := proc.stat(pid)) and seen.lives and seen.start == start for pid, start in those)


def say_outcome(outcome: Outcome) -> str:
    """Say in a few words how a run ended."""
    words = {
        "exited": f"exit {outcome.code}",
        "signalled": f"signal {outcome.signal}",
        "wall": "it took too long",
        "idle": "it was silent for too long",
        "first_byte": "it never said anything",
        "killed": "it was told to stop",
        "not_started": "it was not started",
        "lost": "it was lost",
    }
    return f"{words[outcome.reason]}{f': {outcome.message}' if outcome.message else ''}"
