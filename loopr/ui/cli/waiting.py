"""The part of `diff` that shows every change which waits for a person's word, headed by its loop.

It ends with the number of the event at which all of it was so, for `approve --at`. Must never change anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from loopr import wiring
from loopr.core.left_out import left_of
from loopr.core.model import Loop, Status
from loopr.core.offering import file_of, is_replaced, offered_file
from loopr.core.scene import Scene
from loopr.errors import LooprError
from loopr.ui import render, views
from loopr.ui.cli.diff import Range, change_document, change_of, said
from loopr.ui.cli.frame import Frame
from loopr.ui.cli.logs import Sink
from loopr.ui.groups import is_group, members, waits_twice
from loopr.ui.names import find_id
from loopr.ui.shown import has_moved
from loopr.world.runs import OUTPUT, Runs
from loopr.world.veil import Veil

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

WORK, FILE = "work", "file"
MOVED = "somebody has committed on its branch since it was judged: only a word on the loop itself takes it"


class Waits(NamedTuple):
    """One thing that waits for a word: a loop's work, or a file that is offered for it.

    `handed` is the text that it hands over, or that is offered, against the one before; `why` is
    a remark on it, `file` one on files of it: a person has replaced the text, or some never land.
    """

    loop: Loop
    kind: str
    ground: Ground | None = None
    change: Range | None = None
    handed: str = ""
    why: str = ""
    file: str = ""


def show_waiting(frame: Frame, text: str | None, *, stat: bool) -> None:
    """Show all that waits for a person's word, of a loop and all below it, of a convoy, or of the workspace."""
    seen = frame.workspace.look()
    found = list(_waiting(frame, seen.scene, _meant(seen.scene, text)))
    if frame.as_json:
        body = {"at": seen.seq, "waiting": [_row(each, stat) for each in found]}
        frame.document(views.document(wiring.wall_clock(), body))
        return
    if not found:
        frame.note(f"nothing {'of ' + text + ' ' if text else ''}waits for a person's word")
        return
    sink = Sink(frame, Veil())
    for each in found:
        sink.write((b"" if sink.ends_line else b"\n") + _headed(frame, each, stat))
    sink.close()
    loops = list(dict.fromkeys(each.loop.id for each in found))
    about = text or " ".join(dict.fromkeys(each.loop.plan for each in found))
    many = f"{len(loops)} loops wait" if len(loops) > 1 else "1 loop waits"
    alone = [each.loop.id for each in found if _wants_own_words(seen.scene, each)]
    but = f", but for {', '.join(alone)}: that wants words of its own" if alone else ""
    frame.note(f"{many}: `loopr approve {about} --at {seen.seq}` takes exactly what is shown here{but}")


def _wants_own_words(scene: Scene, waits: Waits) -> bool:
    """Say whether no word on a group of loops takes a thing that waits."""
    return waits.why == MOVED or (waits.kind == FILE and waits_twice(scene, waits.loop))


def _meant(scene: Scene, text: str | None) -> list[Loop]:
    """List the loops that are looked at."""
    if text is not None and is_group(text):
        return members(scene, text)
    return list(scene.tree.walk(find_id(scene.loops, text) if text is not None else None))


def _waiting(frame: Frame, scene: Scene, loops: list[Loop]) -> Iterator[Waits]:
    """Give what waits, in tree order."""
    grounds: dict[str, Ground | None] = {}
    for loop in loops:
        if loop.status is Status.AWAITING:
            yield _work(frame, scene, loop, grounds)
        if digest := offered_file(scene, loop):
            counts = loop.offers.before or (loop.artifact if digest != loop.artifact else "")
            old, new = (_kept_text(frame, loop, each) if each else "" for each in (counts, digest))
            came = f"came while {', '.join(loop.offers.during) or 'loops'} ran"
            why = came if loop.offers.offered else "is not loopr's, and would be written anew"
            yield Waits(loop, FILE, handed=_difference(loop, old, new), why=why)


def _work(frame: Frame, scene: Scene, loop: Loop, grounds: dict[str, Ground | None]) -> Waits:
    """Return the work of a loop that waits: its commits, and what it hands over."""
    from loopr.grounds import ground_of_plan

    output = Runs(frame.workspace.place.state).folder(loop.name, loop.attempt) / OUTPUT
    handed = output.read_text(errors="replace") if output.is_file() and not output.is_symlink() else ""
    about = Waits(loop, WORK, handed=_difference(loop, "", handed), file=left_of(scene, loop.id))
    if is_replaced(loop):
        theirs = _difference(loop, handed, _kept_text(frame, loop, loop.artifact))
        about = about._replace(handed=theirs, file=f"{file_of(scene, loop)} is a person's file by now")
    try:
        if loop.plan not in grounds:
            grounds[loop.plan] = ground_of_plan(frame.workspace, scene, loop.plan)
        ground = grounds[loop.plan]
        if ground is None:
            return about._replace(why=f"it works without git, in {scene.policy.worktrees_dir}/{loop.name}")
        about = about._replace(ground=ground, change=change_of(ground, scene, loop))
        return about._replace(why=MOVED) if has_moved(ground, loop) else about
    except LooprError as error:
        return about._replace(why=str(error))


def _kept_text(frame: Frame, loop: Loop, digest: str) -> str:
    """Return a text by its digest, as it is kept."""
    return (frame.workspace.hands().text_of(loop, None, digest) or b"").decode(errors="replace")


def _difference(loop: Loop, old: str, new: str) -> str:
    """Show what a text that is handed over changes of the one before."""
    if not new:
        return ""
    name = f"{loop.id}/{loop.type}.md"
    names = f"a/{name}" if old else "/dev/null", f"b/{name}"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="", n=3)
    return "".join(f"{line}\n" for line in lines)


def _headed(frame: Frame, waits: Waits, stat: bool) -> bytes:
    """Return a change under the id of its loop."""
    loop = waits.loop
    name = f"{loop.id} --file" if loop.status is Status.AWAITING else loop.id
    what = f"try {loop.attempt}" if waits.kind == WORK else f"an offered file: `loopr approve {name}` takes it"
    commit = f", {waits.change.new[:12]}" if waits.change is not None else ""
    remark = waits.why or (waits.change.remark if waits.change is not None else "")
    lines = [f"==> {loop.id}  {loop.title} ({what}{commit}) <==", *filter(None, [remark, waits.file])]
    form = [f"--stat={frame.width}"] if stat else ["--patch"]
    colour = f"--color={'always' if frame.color else 'never'}"
    text = said(waits.ground, waits.change, *form, colour) if waits.ground is not None and waits.change else b""
    if not text and not remark and not waits.handed and not waits.file:
        lines.append("no file changed")
    head = "".join(f"{render.plain(line)}\n" for line in lines).encode()
    return head + text + waits.handed.encode()


def _row(waits: Waits, stat: bool) -> views.Row:
    """Return a change as data."""
    loop = waits.loop
    known = {"id": loop.id, "kind": waits.kind, "title": loop.title, "type": loop.type, "attempt": loop.attempt}
    if waits.ground is not None and waits.change is not None:
        change = change_document(waits.ground, loop, waits.change, stat)
    else:
        change = {"from": None, "to": None, "files": [], "diff": None}
    return known | change | {"handed_over": waits.handed or None, "remark": waits.why or waits.file or None}
