"""From rows to text that reads well at 80 columns, without colour, and in a pipe.

Never sends a control character of somebody else's to a terminal. Knows widths and words; must never decide anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from loopr.core.gates import first_closed
from loopr.core.left_out import left_of
from loopr.core.limits import slow_width
from loopr.core.model import OCCUPYING, Gate, Loop, Status
from loopr.core.offering import words_for
from loopr.core.scene import Scene
from loopr.core.shared import WORKSPACE
from loopr.core.ways import way_of
from loopr.ui.folding import Line
from loopr.ui.older import age_words
from loopr.ui.stands import DONE, IsReady, again_below, again_words, readiness, roll_up, summary, word_of
from loopr.ui.times import localized, say_clock, say_duration, say_tokens
from loopr.ui.views import agent_of, stand_in

Row = dict[str, Any]
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ODD = re.compile(r"[^\x00-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u257f]")  # what may not be one column wide
_COLORS = {"good": "32", "busy": "36", "bad": "31", "warn": "33", "dim": "2", "bold": "1"}
_STATUS_COLOR = {
    Status.COMPLETE: "good",
    Status.PARKED: "bad",
    Status.FAILED: "bad",
    Status.AWAITING: "warn",
    Status.CANCELLED: "dim",
    Status.INVALIDATED: "dim",
    Status.PENDING: "dim",
}
_AFTER_WORK = frozenset({Status.CHECKING, Status.AWAITING, Status.LANDING})
_WORD = re.compile(r"(?:`[^`]*`|\S)+")  # what stands in backquotes is one, with what it touches
_CUT = 10  # the width that a cut text must have left
NARROWEST = 20  # what a column must have left for words to be broken in it


def plain(text: str, *, keep_lines: bool = False) -> str:
    """Make a text of anybody's safe to print: control characters become visible, lines are kept only if asked."""
    if keep_lines:
        return "\n".join(plain(line) for line in text.split("\n"))
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda found: " " if found[0] in "\n\r\t" else "�", text)


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() or not _ODD.search(text) else sum(map(_columns, text))


def _columns(sign: str) -> int:
    """Count the columns of one character."""
    if not _ODD.match(sign):  # with it a soft hyphen, which terminals show
        return 1
    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def fit(text: str, width: int) -> str:
    """Cut a text to a width, saying so with an ellipsis."""
    if columns(text) <= width:
        return text
    kept, room = 0, width - 1
    while kept < len(text) and (room := room - _columns(text[kept])) >= 0:
        kept += 1
    return text[:kept] + "…"


def pad(text: str, width: int) -> str:
    """Fill a text up to a width."""
    return text.ljust(width) if text.isascii() else text + " " * (width - columns(text))


def wrap(head: str, text: str, width: int) -> list[str]:
    """Set a text beside a head, on as many lines as it takes; no word of it is lost."""
    first, *more = broken(text, max(NARROWEST, width - columns(head)))
    return [head + first, *(" " * columns(head) + line for line in more)]


def broken(text: str, width: int) -> list[str]:
    """Break a text into lines of so many columns between words; a longer word is uncut, on its own.

    A command in backquotes is one word where it fits on a line.
    """
    if columns(text) <= width:
        return [text]
    lines = [""]
    for word in _WORD.findall(text):
        for part in [word] if columns(word) <= width else word.split():
            grown = f"{lines[-1]} {part}" if lines[-1] else part
            if not lines[-1] or columns(grown) <= width:
                lines[-1] = grown
            else:
                lines.append(part)
    return lines


Said = Callable[[Loop], str]
_Cells = tuple[str, str, str, str, str]


def _no_words(loop: Loop) -> str:
    """Say nothing."""
    return ""


class Paint:
    """Colours, where they are wanted."""

    def __init__(self, color: bool) -> None:
        """Paint or do not."""
        self._color = color

    def __call__(self, name: str, text: str) -> str:
        """Return a text in a colour."""
        return f"\x1b[{_COLORS[name]}m{text}\x1b[0m" if self._color and text else text


# --- the tree -----------------------------------------------------------------------------------------------------


def tree_lines(
    scene: Scene,
    lines: Sequence[Line],
    now: int,
    width: int,
    paint: Paint,
    *,
    said: Said = _no_words,
    is_ready: IsReady | None = None,
    ways: bool = False,
    whole: bool = False,
) -> list[str]:
    """Draw a folded tree in columns: name, type, status, and what there is to say, by loops themselves too.

    With `ways` the type is followed by how each loop comes to its end. What is too long is cut, or with `whole` goes on
    below.
    """
    ready = is_ready or readiness(scene, now)
    cells = [_cells(scene, line, now, said, ready) for line in lines]
    name_width = min(max((len(name) for name, *_ in cells), default=0), max(8, width * 2 // 5))
    if ways:
        cells = _with_ways(scene, lines, cells)
    type_width = max((len(kind) for _, kind, *_ in cells), default=0)
    status_width = max((len(state) for _, _, state, _, _ in cells), default=0)
    room = width - name_width - type_width - status_width - 6
    drawn = []
    for place, (name, kind, state, color, detail) in enumerate(cells):
        if not kind:
            drawn.append(paint("dim", fit(f"{name}{detail}", width)))
            continue
        head = f"{pad(fit(name, name_width), name_width)}  {kind:{type_width}}  "
        first, *more = broken(detail, room) if whole and room >= NARROWEST else [fit(detail, room) if room > 3 else ""]
        state_cell = f"{state:{status_width}}" if first else state
        drawn.append(head + (paint(color, state_cell) if color else state_cell) + (f"  {first}" if first else ""))
        below = pad(fit(_under(lines, place), name_width), width - room)
        drawn += [f"{below}{each}" for each in more]
    return drawn


def _under(lines: Sequence[Line], place: int) -> str:
    """Return what is drawn below a name where its line goes on: the strokes to those that follow."""
    lead = lines[place].lead
    opened = place + 1 < len(lines) and len(lines[place + 1].lead) > len(lead)
    return lead.replace("├─ ", "│  ").replace("└─ ", "   ") + ("│" if opened else "")


def _with_ways(scene: Scene, lines: Sequence[Line], cells: Sequence[_Cells]) -> list[_Cells]:
    """Add to each type how that very loop comes to its end."""
    width, made = max((len(kind) for _, kind, *_ in cells), default=0), list[_Cells]()
    for line, (name, kind, *rest) in zip(lines, cells, strict=True):
        state, color, detail = rest
        told = f"{kind:{width}}  {way_of(scene, line.loop)}" if line.loop is not None else kind
        made.append((name, told, state, color, detail))
    return made


def _cells(scene: Scene, line: Line, now: int, said: Said, is_ready: IsReady) -> _Cells:
    """Return name, type, status, colour and detail of one line."""
    loop = line.loop
    if loop is None:
        return line.lead, "", "", "", f"… {len(line.left_out)} more: {summary(scene, line.left_out, is_ready)}"
    gate = first_closed(scene, loop, now) if loop.waits else None
    details = [detail(scene, loop, gate, now)]
    if loop.offers.offered and gate is None:
        details.append(f"offered: {words_for(loop)}")
    if line.closed:
        details.append(roll_up(scene, loop))
    details.append(plain(said(loop)))
    name = line.lead + loop.id.rpartition("/")[2]
    word = word_of(scene, loop, gate)
    color = "busy" if loop.status in OCCUPYING else _STATUS_COLOR.get(loop.status, "")
    shown = "" if loop.status is Status.COMPLETE and word != DONE else color
    return name, loop.type, word, shown, " · ".join(each for each in details if each)


def detail(scene: Scene, loop: Loop, gate: Gate | None, now: int) -> str:
    """Say what matters of a loop beside its status."""
    if loop.status is Status.PENDING:
        return gate_words(gate, now) if gate is not None else _stand_in(scene, loop, now)
    if loop.status in OCCUPYING and loop.lease is not None:
        began, waits = loop.lease.started_at or loop.lease.at, since(loop, now)
        took = taken_ms(loop) + loop.live.ms if waits else now - began
        tries = f"try {loop.attempt}" if loop.attempt > 1 else ""
        return " · ".join(filter(None, [tries, say_duration(took), waits, _stand_in(scene, loop, now)]))
    if loop.status in (Status.PARKED, Status.FAILED):
        return plain(loop.reason)
    age = plain(age_words(scene, loop, gate)).removeprefix("stale: ")  # which is the word for where it stands
    tries = f"{loop.attempt} tries" if loop.attempt > 1 else ""
    words = [again_words(again_below(scene, loop)), age, left_by(scene, loop), tries]
    if took := taken_ms(loop):
        words.append(say_duration(took))
    if loop.spent.tokens:
        words.append(f"{say_tokens(loop.spent.tokens)} tok")
    words.append(since(loop, now))
    if loop.hold is not None and not scene.tree.called_off(loop.id):
        words.append(f"paused: {plain(loop.hold.reason)}" if loop.hold.reason else "paused")
    return " · ".join(filter(None, words))


def taken_ms(loop: Loop) -> int:
    """Return how long the ended tries of a loop have taken in all, setups and judges included."""
    return loop.spent.ms + loop.spent.beside_ms


def since(loop: Loop, now: int) -> str:
    """Say since when a loop waits for what comes after its command: a judge, a person, its landing."""
    return f"since {say_clock(loop.since, now)}" if loop.status in _AFTER_WORK else ""


def left_by(scene: Scene, loop: Loop) -> str:
    """Say what a leaf has left of which nothing has landed; nothing where that cannot be told, or need not be."""
    bound = scene.shared.plans.get(loop.plan)
    if loop.landed or not loop.leased or loop.status is not Status.COMPLETE or not scene.is_leaf(loop):
        return ""
    if bound is not None and not bound.base_commit:  # it works without git
        return f"what it made stays in {scene.policy.worktrees_dir}/{loop.name}"
    return left_of(scene, loop.id).partition("; ")[0] or ("no file changed" if loop.base_commit else "")


def _stand_in(scene: Scene, loop: Loop, now: int) -> str:
    """Say who stands in for a loop's agent; why, `why` says."""
    return f"{agent_of(scene, loop, now)} stands in" if stand_in(scene, loop, now) else ""


def gate_words(gate: Gate, now: int) -> str:
    """Say why a loop waits, and until when if that is known."""
    until = f" until {say_clock(gate.until, now)}" if gate.until else ""
    return localized(plain(gate.reason), now) + until


def at_place(place: str, text: str) -> str:
    """Put the place in front of what is wrong there, unless that names it itself, with the line."""
    return text if text.startswith(place) else f"{place}: {text}"


def lane_lines(lanes: dict[str, Row], scene: Scene, now: int) -> list[str]:
    """Say which lanes rest, are parked, or start slowly."""
    lines = []
    for name in lanes:
        lane = scene.shared.lane(name)
        if lane.parked:
            lines.append(f"lane {name}: parked: {plain(lane.parked)}")
        elif now < lane.rest_until:
            hits = f"{lane.hits} hit{'s' * (lane.hits != 1)}"
            why = f": {plain(lane.reason)}" if lane.reason else ""
            lines.append(f"lane {name}: backing off until {say_clock(lane.rest_until, now)} ({hits}){why}")
        elif lane.ramp is not None:
            lines.append(f"lane {name}: starting slowly, {lane.ramp} at once for now")
        elif (most := slow_width(scene, name, now)) is not None:
            until = say_clock(lane.level_until, now)
            lines.append(f"lane {name}: {lane.level // 10}% of its window is used, only {most} at once until {until}")
    return lines


def hold_lines(scene: Scene, now: int) -> list[str]:
    """Say who holds the workspace or a project."""
    lines = []
    for scope, hold in scene.shared.holds.items():
        whole = scope == WORKSPACE
        what = "the workspace" if whole else scope.replace(":", " ", 1)
        why = f": {hold.reason}" if hold.reason else ""
        verb = "loopr resume --all" if whole else f"loopr resume {scope}"
        lines.append(plain(f"{what} is paused by {hold.by} since {say_clock(hold.at, now)}{why}; `{verb}`"))
    return lines


# --- tables and blocks --------------------------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]], width: int, head: Sequence[str] = (), *, whole: bool = False) -> list[str]:
    """Set rows in columns; the last one takes the rest, and is cut, or with `whole` goes on below.

    Where hardly any room is left, a row whose first cell is long has its last one below.
    """
    every = [head, *rows] if head else rows
    if not every:
        return []
    *others, last = zip(*every, strict=True)
    filled = [_filled(column) for column in others]
    room = width - sum(columns(column[0]) + 2 for column in filled)
    if filled and room < NARROWEST and any(last):
        least = max(0, columns(filled[0][0]) - NARROWEST + room)
        filled[0] = [pad(cell, least) for cell in others[0]]
    heads = ["".join(f"{cell}  " for cell in cells) for cells in zip(*filled, strict=True)] or [""] * len(last)
    if whole and room >= NARROWEST:
        broad = (wrap(start, text, width) for start, text in zip(heads, last, strict=True))
        return [line.rstrip() for lines in broad for line in lines]
    rest = zip(heads, last, strict=True)
    return [line.rstrip() for start, text in rest for line in _beside(start, text, width)]


def _beside(start: str, text: str, width: int) -> list[str]:
    """Set a text beside the start of a row, cut to the room left, or below it if there is none."""
    room = width - columns(start)
    if columns(text) <= room or room >= _CUT:
        return [start + fit(text, room)]
    return [start, f"    {fit(text, max(_CUT, width - 4))}"]


def _filled(cells: Sequence[str]) -> list[str]:
    """Fill the cells of a column up to its widest."""
    if all(map(str.isascii, cells)):
        size = max(map(len, cells))
        return [cell.ljust(size) for cell in cells]
    size = max(map(columns, cells))
    return [pad(cell, size) for cell in cells]


def block(pairs: Iterable[tuple[str, str]], width: int = 0) -> list[str]:
    """Set names and values below each other; what has no value is left out. Sentences are wrapped to a width."""
    known = [(name, plain(value)) for name, value in pairs if value]
    size = max((len(name) for name, _ in known), default=0)
    lines = [(f"{name:{size}}  ", value) for name, value in known]
    wrapped = [wrap(head, text, width) if width and " " in text else [head + text] for head, text in lines]
    return [line for each in wrapped for line in each]
