"""The part of `logs` that is about more than one attempt: all below a loop, and a loop that has not begun.

Must never know how logs lie on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loopr.core.model import Loop
from loopr.core.scene import Scene
from loopr.errors import NotFound
from loopr.ui import logs, render
from loopr.ui.cli.frame import Frame
from loopr.ui.outputs import Chosen, Wanted, judge_of, last_of, veil_for
from loopr.ui.verdicts import output_of
from loopr.world.launcher.words import Outcome
from loopr.world.runs import Runs
from loopr.world.veil import Veil

if TYPE_CHECKING:
    from loopr.core.forest import Forest
    from loopr.ui.chorus import Line
    from loopr.ui.cli.logs import Sink

TICK_SECS = 0.2
ALONE = "no engine runs here, so nothing goes on by itself: `loopr run`"


def print_below(sink: Sink, top: Loop, chosen: Sequence[Chosen], wanted: Wanted) -> bool:
    """Print the last lines of each loop below another one under its id; say whether any has any."""
    wrote = False
    for each in chosen:
        text = b"".join(last_of(folder, name, wanted) for folder in each.folders for name in wanted.names)
        if text:
            head = f"==> {label_of(top.id, each.loop.id)} <==\n".encode()
            sink.write((b"" if sink.ends_line else b"\n") + head)
            sink.write(text)
            sink.settle()
            wrote = True
    return wrote


def remark(frame: Frame, top: Loop, chosen: Sequence[Chosen], step: str, *, wrote: bool) -> None:
    """Say that no loop below has written anything, and which judges have said no there."""
    if not wrote:
        frame.note(f"no {step or 'try'} below {top.id} has written anything")
    found: dict[str, list[str]] = {}
    for each in chosen if not step else ():
        if judge := judge_of(frame.workspace, each):
            found.setdefault(judge, []).append(each.loop.id)
    for judge, loops in found.items():
        whose, of = (loops[0], loops[0]) if len(loops) == 1 else (f"{len(loops)} loops", top.id)
        frame.note(f"the {judge} of {whose} said no: {output_of(judge, of)}")


def label_of(top: str, loop: str) -> str:
    """Call a loop by its path below another one."""
    return loop.removeprefix(f"{top}/") if loop != top else loop.rpartition("/")[2]


def follow_below(
    frame: Frame, sink: Sink, scene: Scene, top: Loop, wanted: Wanted, *, unveiled: Veil | None = None
) -> None:
    """Print what all below a loop write, until nothing of it goes on by itself; with --json a line of JSON each."""
    from loopr.core.settled import is_settled
    from loopr.ui.chorus import Chorus
    from loopr.ui.following import follow

    veil = _veils(frame) if unveiled is None else lambda loop: unveiled
    chorus = Chorus(Runs(frame.workspace.place.state), [top.id], wanted, veil)
    chorus.told = _teller(frame, sink, top.id)
    single = not scene.tree.has_children(top.id)
    if single:
        chorus.listen(top, top.attempt, wanted.tail)

    def over(forest: Forest, now: int) -> bool:
        return chorus.voices == 0 and (single or is_settled(forest, now, [top.id]))

    heard = [0]

    def ended(loop: Loop, attempt: int, outcome: Outcome | None) -> None:
        heard[0] += 1
        words = logs.say_outcome(outcome) if outcome is not None else "it does not run any more"
        frame.note(render.plain(f"{loop.id}: try {attempt} has ended: {words}"))

    chorus.ended = ended
    forest, _, _ = follow(
        frame.workspace, [top.id], chorus, over, None, tick_secs=TICK_SECS, stays=lambda: chorus.voices > 0
    )
    chorus.close()
    if frame.workspace.engine() is None and not forest.tree.at_rest(top.id):
        frame.note(ALONE)
    elif not heard[0]:
        frame.note(f"nothing of {top.id} is at work, and nothing of it begins by itself")


def await_beginning(frame: Frame, loop: Loop) -> bool:
    """Wait until a loop has begun, giving its reason to wait; False where it does not by itself.

    Where no engine runs, nothing is waited for.
    """
    from loopr.core.settled import is_settled
    from loopr.ui.chorus import Beginning
    from loopr.ui.following import follow

    def over(forest: Forest, now: int) -> bool:
        known = forest.loops.get(loop.id)
        return known is None or known.attempt > loop.attempt or is_settled(forest, now, [loop.id])

    forest, _, _ = follow(frame.workspace, [loop.id], Beginning(loop.id, _say(frame)), over, None, tick_secs=TICK_SECS)
    known = forest.loops.get(loop.id)
    if known is not None and known.attempt > loop.attempt:
        return True
    if frame.workspace.engine() is None:
        words = f"{loop.id} has no output yet, and no engine runs here that would begin it"
        raise NotFound(words, hint="`loopr run` goes on")
    return False


def _say(frame: Frame) -> Callable[[str], None]:
    """Return what tells a person something of a loop."""
    return lambda text: frame.note(render.plain(text))


def _veils(frame: Frame) -> Callable[[Loop], Veil]:
    """Return what hides the keys of each plan."""
    known: dict[str, Veil] = {}

    def of_plan(loop: Loop) -> Veil:
        if loop.plan not in known:
            known[loop.plan] = veil_for(frame.workspace, loop)
        return known[loop.plan]

    return of_plan


def _teller(frame: Frame, sink: Sink, top: str) -> Callable[[Line], None]:
    """Return what prints a line, with the loop that it comes from."""

    def tell(line: Line) -> None:
        if frame.as_json:
            row = {"id": line.loop, "attempt": line.attempt, "stream": line.stream}
            sink.write(json.dumps(row | {"text": line.text.decode("utf-8", "replace")}).encode() + b"\n")
        else:
            sink.write(f"{label_of(top, line.loop)} | ".encode() + line.text + b"\n")

    return tell
