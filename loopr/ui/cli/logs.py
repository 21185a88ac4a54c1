"""The verb that prints what an attempt has written; and what it shares with others: one loop, and bytes on stdout.

Must never know how logs lie on disk.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from loopr import wiring
from loopr.core.model import OCCUPYING, Loop, Status, decode_loop
from loopr.errors import NotFound, UserError
from loopr.ui import logs, story, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.names import find_id
from loopr.world.launcher.words import STREAMS
from loopr.world.runs import Runs

TICK_SECS = 0.2
_RUNNING = frozenset({Status.LEASED, Status.RUNNING})
_HELD_BACK = re.compile(r"\x1b(\[[0-9;:]*)?\Z")
_UNSAFE = re.compile(r"(\x1b\[[0-9;:]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Sink:
    """Where bytes go: a pipe or a file gets them as they are, a terminal no control characters but colours."""

    def __init__(self, frame: Frame) -> None:
        """Write to stdout."""
        self._terminal, self._color = frame.terminal, frame.color
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = ""
        self.ends_line = True

    def write(self, piece: bytes) -> None:
        """Write a piece now."""
        self.ends_line = piece.endswith(b"\n") if piece else self.ends_line
        if self._terminal:
            sys.stdout.write(self._safe(piece))
        elif hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(piece)
        else:  # a text in memory
            sys.stdout.write(piece.decode("utf-8", "replace"))
        sys.stdout.flush()

    def close(self) -> None:
        """End a colour that somebody has left on."""
        if self._color:
            sys.stdout.write("\x1b[0m")

    def _safe(self, piece: bytes) -> str:
        """Return what a terminal may get of a piece; half an escape sequence waits for its other half."""
        text = self._kept + self._decoder.decode(piece)
        half = _HELD_BACK.search(text)
        self._kept = half[0] if half else ""
        return _UNSAFE.sub(self._said, text[: half.start()] if half else text)

    def _said(self, found: re.Match[str]) -> str:
        """Keep a colour if colours are wanted, and make all else visible."""
        if found[1] is None:
            return "�"
        return found[1] if self._color else ""


class Wanted(NamedTuple):
    """What was asked for on the command line."""

    attempt: int | None
    iteration: int | None
    step: str
    names: tuple[str, ...]
    tail: int | None
    following: bool


class Chosen(NamedTuple):
    """What is meant: a loop, one of its attempts, and the runs of it whose output is wanted."""

    loop: Loop
    attempt: int
    generation: int
    folders: list[Path]
    step: str


@click.command("logs")
@click.argument("loop")
@click.option("-f", "--follow", "following", is_flag=True, help="print what is written until the attempt has ended")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="that attempt, not the latest")
@click.option("--iteration", type=click.IntRange(1), metavar="N", help="the latest attempt of that iteration")
@click.option("--check", "step", flag_value="check", help="the output of its check")
@click.option("--review", "step", flag_value="review", help="the output of its review")
@click.option("--tail", type=click.IntRange(0), metavar="LINES", help="begin with the last so many lines")
@click.option("--stderr", "only_errors", is_flag=True, help="standard error alone")
@framed
def logs_verb(
    frame: Frame,
    *,
    loop: str,
    following: bool,
    attempt: int | None,
    iteration: int | None,
    step: str | None,
    tail: int | None,
    only_errors: bool,
) -> None:
    """Print the output of a loop's latest attempt: standard output, then standard error if there is any."""
    if following and frame.as_json:
        raise UserError("--json is one document, and -f never ends it", hint="leave one of the two out")
    if attempt is not None and iteration is not None:
        raise UserError("--attempt and --iteration name two things", hint="leave one of the two out")
    wanted = Wanted(attempt, iteration, step or "", STREAMS[1:] if only_errors else STREAMS, tail, following)
    chosen = _chosen(frame, loop, wanted)
    if frame.as_json:
        frame.document(views.document(wiring.wall_clock(), _document(chosen, wanted)))
        return
    sink = Sink(frame)
    wrote = _print(frame, sink, chosen, wanted)
    sink.close()
    _remark(frame, chosen, wrote, following)


def one_loop(frame: Frame, text: str) -> Loop:
    """Return the one loop that is meant; no other is read."""
    try:
        with frame.workspace.journal() as journal:
            bodies = dict(journal.rows("loops"))
    except NotFound:
        bodies = {}
    return decode_loop(json.loads(bodies[find_id(bodies, text)]))


def _chosen(frame: Frame, text: str, wanted: Wanted) -> Chosen:
    """Find the loop, the attempt and the runs that are meant."""
    loop, runs = one_loop(frame, text), Runs(frame.workspace.place.state)
    attempt, step = wanted.attempt, wanted.step
    if wanted.iteration is not None:
        attempt = _attempt_of(frame, loop, wanted.iteration)
    if attempt is None and wanted.following and loop.lease is not None and loop.status in _RUNNING and not step:
        folder = runs.folder(loop.name, loop.lease.attempt)  # it may not be there yet
        return Chosen(loop, loop.lease.attempt, loop.generation, [folder], "")
    found = logs.find_attempt(runs, loop, attempt)
    if found is None:
        raise _none_yet(runs, loop, attempt)
    folders = logs.steps_of(found.folder, step) if step else [found.folder]
    if not folders:
        hint = f"`loopr logs {loop.id}` shows what its command has written"
        raise NotFound(f"attempt {found.attempt} of {loop.id} has no {step} yet", hint=hint)
    return Chosen(loop, found.attempt, found.generation, folders, step)


def _attempt_of(frame: Frame, loop: Loop, iteration: int) -> int:
    """Return the latest attempt of an iteration."""
    with frame.workspace.journal() as journal:
        rows = story.attempts(journal.story(loop.id))
    found = [row["attempt"] for row in rows if row["iteration"] == iteration]
    if not found:
        raise NotFound(f"{loop.id} has no iteration {iteration}", hint=f"`loopr show {loop.id}` lists its attempts")
    return int(found[-1])


def _none_yet(runs: Runs, loop: Loop, attempt: int | None) -> NotFound:
    """Say that there is no such attempt, or none at all."""
    known = logs.known_attempts(runs, loop)
    if attempt is not None and known:
        return NotFound(
            f"there is no output of attempt {attempt} of {loop.id}", hint=f"there is of {', '.join(map(str, known))}"
        )
    if attempt is not None and attempt <= loop.attempt:
        return NotFound(f"there is no output of attempt {attempt} of {loop.id}", hint="logs.keep_days may have passed")
    return NotFound(
        f"{loop.id} has no output yet: it is {loop.status}", hint=f"`loopr why {loop.id}` says what it waits for"
    )


# --- printing -------------------------------------------------------------------------------------------------------


def _print(frame: Frame, sink: Sink, chosen: Chosen, wanted: Wanted) -> bool:
    """Print what there is, then, if that is wanted, what comes; say whether there was anything."""
    names, tail = wanted.names, wanted.tail
    heading = _headings(sink, plain=chosen.folders[0] / names[0] if len(chosen.folders) == 1 else None)
    wrote = False
    for folder in chosen.folders:
        streams = [logs.Stream(folder, name) for name in names]
        for stream in streams:
            pieces = stream.read() if tail is None else [logs.last_lines(stream.read(), tail)]
            for piece in filter(None, pieces):
                heading(folder / stream.name)
                sink.write(piece)
                wrote = True
        if wanted.following and folder == chosen.folders[-1]:
            for name, piece in _followed(frame, chosen, folder, streams):
                heading(folder / name)
                sink.write(piece)
                wrote = True
    return wrote


def _headings(sink: Sink, plain: Path | None) -> Callable[[Path], None]:
    """Return what puts a heading where another log begins; a plain one that comes first needs none."""
    last = plain

    def heading(log: Path) -> None:
        nonlocal last
        if log != last:
            beside = f"{log.parent.name} " if not log.parent.name.isdigit() else ""
            sink.write((b"" if sink.ends_line else b"\n") + f"==> {beside}{log.stem} <==\n".encode())
            last = log

    return heading


def _followed(frame: Frame, chosen: Chosen, folder: Path, streams: list[logs.Stream]) -> Iterator[tuple[str, bytes]]:
    """Give what is written until the run has ended."""
    with frame.workspace.journal() as journal:

        def over() -> bool:
            if logs.outcome_of(folder) is not None:
                return True
            body = journal.row("loops", chosen.loop.id)
            return body is None or not _goes_on(decode_loop(json.loads(body)), chosen) or logs.is_lost(folder)

        yield from logs.follow(streams, over, lambda: time.sleep(TICK_SECS))


def _goes_on(loop: Loop, chosen: Chosen) -> bool:
    """Say whether an attempt may still write, as far as the journal knows."""
    if loop.ending is not None and loop.ending.attempt == chosen.attempt:
        return True
    states = OCCUPYING if chosen.step else _RUNNING
    return loop.lease is not None and loop.lease.attempt == chosen.attempt and loop.status in states


def _remark(frame: Frame, chosen: Chosen, wrote: bool, following: bool) -> None:
    """Say what the output does not: that there is none, that it is an old one, how the attempt ended."""
    loop, outcome = chosen.loop, logs.outcome_of(chosen.folders[-1])
    what = f"{'the ' + chosen.step + ' of ' if chosen.step else ''}attempt {chosen.attempt}"
    if chosen.generation != loop.generation:
        frame.note(f"this is of an earlier generation of {loop.id}; the present one has no output yet")
    elif loop.lease is not None and loop.lease.attempt > chosen.attempt:
        frame.note(f"attempt {loop.lease.attempt} has no output yet; this is attempt {chosen.attempt}")
    if not wrote:
        frame.note(f"{what} has written nothing{' yet' if outcome is None else ''}")
    if following:
        frame.note(f"{what} has ended: {logs.say_outcome(outcome)}" if outcome else f"{what} does not run any more")


def _document(chosen: Chosen, wanted: Wanted) -> views.Row:
    """Return the output as data; what is not UTF-8 in it is replaced."""
    rows = []
    for folder in chosen.folders:
        outcome = logs.outcome_of(folder)
        texts = {}
        for name in wanted.names:
            pieces = logs.Stream(folder, name).read()
            raw = b"".join(pieces) if wanted.tail is None else logs.last_lines(pieces, wanted.tail)
            texts[Path(name).stem] = raw.decode("utf-8", "replace")
        rows.append(
            {
                "step": "run" if not chosen.step else folder.name,
                "folder": str(folder),
                "ended": outcome is not None,
                "reason": outcome.reason if outcome else None,
                "exit": outcome.code if outcome else None,
                "stdout": texts.get("stdout"),
                "stderr": texts["stderr"],
            }
        )
    return {"id": chosen.loop.id, "attempt": chosen.attempt, "generation": chosen.generation, "outputs": rows}
