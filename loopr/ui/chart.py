"""What ran when in a simulation, drawn as text for a terminal or a pipe, and as a picture (`draw_svg`).

Knows columns, pixels and human durations. Must never know how a simulation is played, and draws the same bytes for the
same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import NamedTuple

from loopr.core.played import STILL_RUNNING, Played, Run
from loopr.core.slugs import one_line
from loopr.ui.chart_rows import SIGN_TIMES, Kind, Row, rows_of
from loopr.ui.names import counted

FEWEST_COLUMNS = 10
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_STEPS = (
    *(digit * 10**power for power in range(3) for digit in (1, 2, 5)),
    *(1000 * each for each in (1, 2, 5, 10, 15, 30)),
    *(60_000 * each for each in (1, 2, 5, 10, 15, 30)),
    *(3_600_000 * each for each in (1, 2, 3, 6, 12)),
    *(86_400_000 * each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
NOTHING_RAN = "nothing runs: every loop is complete already, or waits for a person"


def human(ms: int) -> str:
    """Write a duration in at most two units, cut off: `1m30s`, `2h`, `250ms`."""
    for index, (unit, size) in enumerate(_UNITS):
        if ms >= size:
            rest = ms % size // _UNITS[index + 1][1] if index < len(_UNITS) - 2 else 0
            return f"{ms // size}{unit}{f'{rest}{_UNITS[index + 1][0]}' if rest else ''}"
    return "0"


def ticks(span_ms: int, most: int) -> Iterator[int]:
    """List round instants from 0 to the end of a span, at most so many after the first."""
    step = next((each for each in _STEPS if span_ms <= each * max(1, most)), span_ms or 1)
    yield from range(0, span_ms + 1, step)


def went_wrong(run: Run) -> bool:
    """Say whether an attempt ended in anything but a complete loop."""
    return run.outcome not in ("complete", STILL_RUNNING)


def shares(runs: Iterable[Run], began: int, span_ms: int, columns: int) -> list[Fraction]:
    """Return for each of equal parts of a span how many of the runs are at work there, on average."""
    taken = [0] * columns
    span_ms = max(1, span_ms)
    for run in runs:
        start, end = (run.start - began) * columns, (run.end - began) * columns
        end = max(end, start + 1)  # one that takes no time is seen all the same
        for column in range(min(start // span_ms, columns - 1), min((end - 1) // span_ms + 1, columns)):
            left, right = column * span_ms, (column + 1) * span_ms
            taken[column] += max(1, min(end, right) - max(start, left))
    return [Fraction(each, span_ms) for each in taken]


# --- text ---------------------------------------------------------------------------------------------------------


class _Signs(NamedTuple):
    """The characters of a chart; `levels` say how many loops are at work, from few to many."""

    full: str
    part: str
    above: str
    wrong: str
    limited: str
    rule: str
    tick: str
    levels: str


_UNICODE = _Signs("█", "▒", "─", "×", "~", "─", "┬", "▁▂▃▄▅▆▇█")
_ASCII = _Signs("#", "=", "-", "x", "~", "-", "+", "123456789")


def draw_text(played: Played, *, width: int = 80, most_rows: int = 40, ascii_only: bool = False) -> str:
    """Draw a chart that is at most so wide; every line ends with a line feed."""
    rows = rows_of(played, most_rows)
    if not rows:
        return f"{NOTHING_RAN}\n"
    signs = _ASCII if ascii_only else _UNICODE
    labels = _labels(rows, max(12, width * 2 // 5), ascii_only)
    margin = max(map(len, labels)) + 2
    columns = max(FEWEST_COLUMNS, width - margin)
    span, began = played.makespan_ms, played.at
    loads = [shares(row.runs, began, span, columns) for row in rows]
    most = max((max(load) for row, load in zip(rows, loads, strict=True) if row.kind is Kind.MANY), default=Fraction(0))
    lines = [f"{'':{margin}}{each}" for each in _axis(span, columns, signs)]
    for row, label, load in zip(rows, labels, loads, strict=True):
        lines.append(f"{label:{margin}}{_bar(row, load, most, played, signs)}")
    lines += ["", *_legend(rows, most, signs)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _labels(rows: Iterable[Row], longest: int, ascii_only: bool) -> list[str]:
    """Write what stands before the bars, each cut to a length."""
    labels = []
    for row in rows:
        count = f" {SIGN_TIMES}{row.count}" if row.count > 1 else ""
        label = f"{'  ' * row.indent}{row.name}"
        if len(label) + len(count) > longest:
            label = f"{label[: longest - len(count) - 1]}…"
        label += count
        labels.append(label.replace(" … ", "..").replace("…", "~").replace(SIGN_TIMES, "x") if ascii_only else label)
    return labels


def _axis(span: int, columns: int, signs: _Signs) -> tuple[str, str]:
    """Draw the axis of time: the instants in words, and where they are."""
    words, rule = [" "] * columns, [signs.rule] * columns
    for at in ticks(span, columns // FEWEST_COLUMNS):
        column, word = at * columns // max(1, span), human(at)
        if column + len(word) <= columns:
            words[column : column + len(word)] = word
            rule[column] = signs.tick
    return "".join(words), "".join(rule)


def _bar(row: Row, load: list[Fraction], most: Fraction, played: Played, signs: _Signs) -> str:
    """Draw the bar of a row, one character for each part of the time."""
    if row.kind is Kind.ABOVE:
        busy = [column for column, share in enumerate(load) if share]
        return " " * busy[0] + signs.above * (busy[-1] - busy[0] + 1)
    if row.kind is Kind.MANY:
        return "".join(signs.levels[_level(share, most, len(signs.levels)) - 1] if share else " " for share in load)
    bar = [" " if not share else signs.full if 2 * share >= 1 else signs.part for share in load]
    for run in row.runs:
        if went_wrong(run):
            column = ((run.end - played.at) * len(bar) - 1) // max(1, played.makespan_ms)
            bar[min(max(column, 0), len(bar) - 1)] = signs.limited if run.outcome == "limited" else signs.wrong
    return "".join(bar)


def _level(share: Fraction, most: Fraction, levels: int) -> int:
    """Return how high a share stands among so many levels: the highest is the most there is, the lowest above none."""
    return min(levels, max(1, -(-share * levels // most)))


def _legend(rows: Iterable[Row], most: Fraction, signs: _Signs) -> Iterator[str]:
    """Say what the characters mean, those that are there."""
    outcomes = {run.outcome for row in rows if row.kind is Kind.ONE for run in row.runs}
    words = [f"{signs.full} runs", f"{signs.part} for a part of that time"] if outcomes else []
    if outcomes - {"complete", STILL_RUNNING, "limited"}:
        words.append(f"{signs.wrong} tries again or gives up")
    if "limited" in outcomes:
        words.append(f"{signs.limited} met a limit")
    if words:
        yield "  ".join(words)
    if most:
        yield f"{signs.levels[0]} to {signs.levels[-1]} several together, {signs.levels[-1]} is {-(-most // 1)} at once"


# --- a picture ----------------------------------------------------------------------------------------------------

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d1f", "#777777")
_MARGIN, _LABEL_WIDTH, _BAR_WIDTH, _ROW, _HEAD = 12, 228, 708, 18, 64
_LABEL_LENGTH = 34
_PARTS = 177  # of the time, in a row of several loops: four pixels each
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#222}"
    ".title{font:bold 14px system-ui,sans-serif}.axis{fill:#666}.grid{stroke:#ddd}"
    ".above{stroke:#888;stroke-width:2}.wrong{fill-opacity:.35;stroke:#b00020}"
)
_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def draw_svg(played: Played, title: str, *, most_rows: int = 60) -> str:
    """Draw a picture that stands by itself: no script, no other file, every text escaped."""
    rows = rows_of(played, most_rows)
    colours = _colours(played)
    height = _HEAD + _ROW * max(1, len(rows)) + 2 * _MARGIN + 16
    width = 2 * _MARGIN + _LABEL_WIDTH + _BAR_WIDTH
    title = _text(title)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-labelledby="loopr-title loopr-summary">',
        f'<title id="loopr-title">{title}</title>',
        f'<desc id="loopr-summary">{_summary(played)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="{_MARGIN}" y="24">{title}</text>',
        f'<text class="axis" x="{_MARGIN}" y="42">{_summary(played)}</text>',
        *_grid(played.makespan_ms, len(rows)),
        *(line for place, row in enumerate(rows) for line in _svg_row(row, _HEAD + place * _ROW, played, colours)),
        *_svg_legend(colours, height - _MARGIN),
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _text(text: str) -> str:
    """Make any text safe in XML, on one line."""
    return escape(_NOT_XML.sub("", one_line(text)))


def _summary(played: Played) -> str:
    """Say in a line what the chart shows."""
    percent = played.utilisation * 100
    loops = counted(len({run.id for run in played.runs}), "loop")
    tries = f"{len(played.runs)} {'try' if len(played.runs) == 1 else 'tries'}"
    return (
        f"{tries} of {loops} in {human(played.makespan_ms)}, "
        f"{int(percent + Fraction(1, 2))}% of {played.slots} slots used"
    )


def _colours(played: Played) -> dict[str, str]:
    """Give each type that ran a colour, in the order of the tree."""
    ran = {run.type for run in played.runs}
    types = dict.fromkeys(part.type for part in played.parts if part.type in ran)
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(types)}


def _x(ms: int, span: int) -> str:
    """Return where an instant is, in tenths of a pixel."""
    tenths = ms * _BAR_WIDTH * 10 // max(1, span) + (_MARGIN + _LABEL_WIDTH) * 10
    return f"{tenths // 10}.{tenths % 10}"


def _grid(span: int, rows: int) -> Iterator[str]:
    """Draw the axis of time with a line for each instant that is named."""
    bottom = _HEAD + rows * _ROW
    for at in ticks(span, 10):
        x, last = _x(at, span), at * 20 > span * 19
        yield f'<line class="grid" x1="{x}" y1="{_HEAD - 2}" x2="{x}" y2="{bottom}"/>'
        anchor = ' text-anchor="end"' if last else ""
        yield f'<text class="axis" x="{x}" y="{_HEAD - 6}"{anchor}>{human(at)}</text>'


def _svg_row(row: Row, y: int, played: Played, colours: Mapping[str, str]) -> Iterator[str]:
    """Draw one row: its label and its bars."""
    count = f" {SIGN_TIMES}{row.count}" if row.count > 1 else ""
    name = row.name if len(row.name) + len(count) <= _LABEL_LENGTH - row.indent else None
    label = name or f"{row.name[: _LABEL_LENGTH - row.indent - len(count) - 1]}…"
    yield f'<text x="{_MARGIN + 8 * row.indent}" y="{y + 13}">{_text(label)}{count}</text>'
    if row.kind is Kind.ONE:
        yield from (_svg_run(run, y, played, colours) for run in row.runs)
    elif row.kind is Kind.MANY:
        yield _svg_area(row, y, played, colours)
    else:
        start, end = min(run.start for run in row.runs), max(run.end for run in row.runs)
        x1, x2 = (_x(at - played.at, played.makespan_ms) for at in (start, end))
        yield f'<line class="above" x1="{x1}" y1="{y + 9}" x2="{x2}" y2="{y + 9}"/>'


def _svg_run(run: Run, y: int, played: Played, colours: Mapping[str, str]) -> str:
    """Draw one attempt, at least a pixel wide."""
    span = played.makespan_ms
    left, right = (at * _BAR_WIDTH * 10 // max(1, span) for at in (run.start - played.at, run.end - played.at))
    wide = max(10, right - left)
    words = f"{run.id}#{run.attempt} {run.outcome}, {human(run.start - played.at)} to {human(run.end - played.at)}"
    wrong = ' class="wrong"' if went_wrong(run) else ""
    return (
        f'<rect{wrong} x="{_x(run.start - played.at, span)}" y="{y + 2}" width="{wide // 10}.{wide % 10}"'
        f' height="{_ROW - 4}" fill="{colours[run.type]}"><title>{_text(words)}</title></rect>'
    )


def _svg_area(row: Row, y: int, played: Played, colours: Mapping[str, str]) -> str:
    """Draw how many attempts of several loops are at work, the most in this row as the full height."""
    load = shares(row.runs, played.at, played.makespan_ms, _PARTS)
    most, bottom, step = max(load), y + _ROW - 2, _BAR_WIDTH // _PARTS
    left = _MARGIN + _LABEL_WIDTH
    path = [f"M{left} {bottom}"]
    for part, share in enumerate(load):
        height = int(share * (_ROW - 4) / most) if share else 0
        path.append(f"V{bottom - max(height, 1 if share else 0)}H{left + (part + 1) * step}")
    words = f"{row.name}: {counted(row.count, 'loop')}, {-(-most // 1)} at once"
    return f'<path d="{"".join(path)}V{bottom}Z" fill="{colours[row.type]}"><title>{_text(words)}</title></path>'


def _svg_legend(colours: Mapping[str, str], y: int) -> Iterator[str]:
    """Say what the colours mean."""
    x = _MARGIN + _LABEL_WIDTH
    for name, colour in [*colours.items(), ("tries again or gives up", "")]:
        look = f'fill="{colour}"' if colour else 'class="wrong" fill="#777"'
        yield f'<rect x="{x}" y="{y - 10}" width="10" height="10" {look}/>'
        yield f'<text x="{x + 15}" y="{y}">{_text(name)}</text>'
        x += 15 + 8 * len(_text(name)) + 16
