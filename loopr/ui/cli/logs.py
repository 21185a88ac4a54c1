"""The verb that prints what an attempt has written; and what it shares with others: bytes on stdout.

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

import click

from loopr.core.model import OCCUPYING, Loop, decode_loop
from loopr.errors import UserError
from loopr.ui import logs
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.names import find_id
from loopr.ui.outputs import (
    RUNNING,
    Chosen,
    Wanted,
    choose_below,
    choose_output,
    is_about_all,
    judge_of,
    one_loop,
    outputs_document,
    veil_for,
)
from loopr.ui.preparing import has_begun, outputs_of, steps_before
from loopr.ui.saying import stream_of
from loopr.ui.verdicts import output_of
from loopr.world.launcher.words import STREAMS
from loopr.world.runs import Runs
from loopr.world.veil import Veil

TICK_SECS = 0.2
_HELD_BACK = re.compile(r"\x1b(\[[0-9;:]*)?\Z")
_UNSAFE = re.compile(r"(\x1b\[[0-9;:]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Sink:
    """Where bytes go: a pipe or a file gets them without keys, a terminal without control characters but colours too.

    What may be the beginning of a key waits for its other half.
    """

    def __init__(self, frame: Frame, veil: Veil) -> None:
        """Write to stdout."""
        self._terminal, self._color = frame.terminal, frame.color
        self._veil, self._held = veil, b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = ""
        self.ends_line = True

    def write(self, piece: bytes) -> None:
        """Write a piece, but for an end that may go on as a key."""
        whole = self._veil.over_bytes(self._held + piece)
        held = self._veil.held_back(whole)
        self._held = whole[len(whole) - held :]
        self._put(whole[: len(whole) - held])

    def settle(self) -> None:
        """Write what was held back: nothing of the same output follows."""
        held, self._held = self._held, b""
        self._put(held)

    def _put(self, piece: bytes) -> None:
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
        """Write the rest, and end a colour that somebody has left on."""
        self.settle()
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


@click.command("logs")
@click.argument("loop")
@click.option("-f", "--follow", "following", is_flag=True, help="print what is written, also by all below it")
@click.option("--try", "--attempt", "attempt", type=click.IntRange(1), metavar="N", help="that try, not the latest")
@click.option("--iteration", type=click.IntRange(1), metavar="N", help="the latest try after N - 1 refusals")
@click.option("--check", "step", flag_value="check", help="the output of its check")
@click.option("--review", "step", flag_value="review", help="the output of its review")
@click.option("--tail", type=click.IntRange(0), metavar="LINES", help="begin with the last so many lines")
@click.option("--raw", is_flag=True, help="an agent's events as they are, not what they tell")
@click.option("--unveiled", is_flag=True, help="with the keys that were printed; on a terminal only")
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
    raw: bool,
    unveiled: bool,
    only_errors: bool,
) -> None:
    """Print the output of a loop's latest try; of a plan or a parent the last lines of all below it.

    Standard output comes first, then standard error if there is any. With -f a loop that has not begun is waited for,
    and with --json each line is a document of its own.
    """
    if unveiled and (frame.as_json or not frame.terminal):
        raise UserError("--unveiled shows keys, and writes to a terminal only", hint="leave it out")
    names = STREAMS[1:] if only_errors else STREAMS
    wanted = Wanted(attempt, iteration, step or "", names, tail, following, raw)
    if frame.as_json and not following:
        frame.document(outputs_document(frame.workspace, loop, wanted))
        return
    if _is_done(frame, loop, wanted, Veil() if unveiled else None):
        return
    found = choose_output(frame.workspace, loop, wanted)
    sink = Sink(frame, Veil() if unveiled else veil_for(frame.workspace, found.loop))
    wrote = _print(frame, sink, found, wanted)
    sink.close()
    _remark(frame, found, wrote, following)


def _is_done(frame: Frame, text: str, wanted: Wanted, unveiled: Veil | None) -> bool:
    """Print what is about all below a loop, or as lines of JSON; wait for a loop that has not begun."""
    if not wanted.following and one_loop(frame.workspace, text).attempt:
        return False
    from loopr.ui.cli import below

    scene = frame.workspace.look().scene
    top = scene.loops[find_id(scene.loops, text)]
    whole = is_about_all(scene, top, wanted)
    newest = wanted.attempt is None and wanted.iteration is None and not wanted.step
    if wanted.following and frame.as_json and not newest:
        raise UserError("--json with -f follows the latest try", hint="leave the other options out")
    if wanted.following and not whole and not top.attempt and not below.await_beginning(frame, top):
        return False
    if wanted.following and newest and (whole or frame.as_json):
        sink = Sink(frame, Veil())
        below.follow_below(frame, sink, scene, top, wanted, unveiled=unveiled)
    elif whole and not wanted.following and (chosen := choose_below(frame.workspace, scene, top, wanted)):
        sink = Sink(frame, unveiled or veil_for(frame.workspace, top))
        wrote = below.print_below(sink, top, chosen, wanted)
        below.remark(frame, top, chosen, wanted.step, wrote=wrote)
    else:
        return False
    sink.close()
    return True


# --- printing -------------------------------------------------------------------------------------------------------


def _print(frame: Frame, sink: Sink, chosen: Chosen, wanted: Wanted) -> bool:
    """Print what there is, then, if that is wanted, what comes; say whether there was anything."""
    names, tail = wanted.names, wanted.tail
    first = chosen.folders[0]
    bare = len(chosen.folders) == 1 and bool(chosen.step or first.name.isdigit())
    heading = _headings(sink, plain=first / names[0] if bare else None)
    wrote = False
    for folder in _in_turn(frame, chosen) if wanted.following else chosen.folders:
        streams = [stream_of(folder, name, raw=wanted.raw) for name in names]
        for stream in streams:
            pieces = stream.read() if tail is None else [logs.last_lines(stream.read(), tail)]
            for piece in filter(None, pieces):
                heading(folder / stream.name)
                sink.write(piece)
                wrote = True
        if wanted.following and folder not in chosen.folders[:-1]:
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
            sink.settle()
            beside = f"{log.parent.name} " if not log.parent.name.isdigit() else ""
            sink.write((b"" if sink.ends_line else b"\n") + f"==> {beside}{log.stem} <==\n".encode())
            last = log

    return heading


def _in_turn(frame: Frame, chosen: Chosen) -> Iterator[Path]:
    """Give the runs that are followed; before a command that has not begun, its steps."""
    main, given = chosen.folders[-1], set[Path]()
    while main.name.isdigit() and not has_begun(main):
        lives = _lives(frame, chosen)  # asked first: a step begun until then is found below
        fresh = next((each for each in steps_before(main) if each not in given), None)
        if fresh is not None:
            given.add(fresh)
            yield fresh
        elif lives:
            time.sleep(TICK_SECS)
        else:
            break
    if given:
        yield from (each for each in steps_before(main) if each not in given)
    yield from chosen.folders


def _lives(frame: Frame, chosen: Chosen) -> bool:
    """Say whether an attempt may still write, as the journal says now."""
    with frame.workspace.journal() as journal:
        body = journal.row("loops", chosen.loop.id)
    return body is not None and _goes_on(json.loads(body, object_pairs_hook=decode_loop), chosen)


def _followed(frame: Frame, chosen: Chosen, folder: Path, streams: list[logs.Stream]) -> Iterator[tuple[str, bytes]]:
    """Give what is written until the run has ended."""
    with frame.workspace.journal() as journal:

        def over() -> bool:
            if logs.outcome_of(folder) is not None:
                return True
            body = journal.row("loops", chosen.loop.id)
            if body is None or logs.is_lost(folder):
                return True
            return not _goes_on(json.loads(body, object_pairs_hook=decode_loop), chosen)

        yield from logs.follow(streams, over, lambda: time.sleep(TICK_SECS))


def _how_old(frame: Frame, chosen: Chosen) -> str:
    """Say of an attempt that it is of the work before, or that a later one has no output yet."""
    loop = chosen.loop
    newest = logs.find_attempt(Runs(frame.workspace.place.state), loop)
    if chosen.generation != loop.generation:
        is_all = newest is None or newest.generation != loop.generation
        since = "; since then no try of it has any output" if is_all else ""
        before = f"of the work before {loop.id} was to be done anew"
        return f"this is try {chosen.attempt}, {before}{since}"
    shown = newest.attempt if newest is not None else chosen.attempt
    if loop.lease is not None and loop.lease.attempt > shown:
        return f"try {loop.lease.attempt} has no output yet; this is try {chosen.attempt}"
    return ""


def _goes_on(loop: Loop, chosen: Chosen) -> bool:
    """Say whether an attempt may still write, as far as the journal knows."""
    if loop.ending is not None and loop.ending.attempt == chosen.attempt:
        return True
    states = OCCUPYING if chosen.step else RUNNING
    return loop.lease is not None and loop.lease.attempt == chosen.attempt and loop.status in states


def _remark(frame: Frame, chosen: Chosen, wrote: bool, following: bool) -> None:
    """Say what the output does not: that there is none, that it is an old one, how the attempt ended."""
    loop, last = chosen.loop, chosen.folders[-1]
    last = outputs_of(last)[-1] if last.name.isdigit() else last
    outcome = logs.outcome_of(last)
    step = chosen.step or ("" if last.name.isdigit() else last.name.partition(".")[0])
    what = f"{f'the {step} of ' if step else ''}try {chosen.attempt}"
    if older := _how_old(frame, chosen):
        frame.note(older)
    if not wrote:
        frame.note(f"{what} has written nothing{' yet' if outcome is None else ''}")
    judge = "" if chosen.step else judge_of(frame.workspace, chosen)
    if judge:
        which = () if chosen.attempt == loop.attempt else ("--try", str(chosen.attempt))
        frame.note(f"its {judge} said no: {output_of(judge, loop.id, *which)}")
    if following:
        frame.note(f"{what} has ended: {logs.say_outcome(outcome)}" if outcome else f"{what} does not run any more")
