"""The chart of a simulation: which rows it has, and what is drawn in them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.model import Status
from loopr.core.played import Part, Played, Run
from loopr.ui.chart import NOTHING_RAN, draw_svg, draw_text, human, ticks
from loopr.ui.chart_rows import Kind, rows_of

MINUTE = 60_000
SVG = "{http://www.w3.org/2000/svg}"


def played(*runs: tuple[str, int, int] | tuple[str, int, int, str], at: int = 0, title: str = "A loop") -> Played:
    """Write down what was played: ids with begin and end in seconds, and perhaps an outcome."""
    attempts: dict[str, int] = {}
    found = []
    for loop_id, start, end, *outcome in runs:
        attempts[loop_id] = attempts.get(loop_id, 0) + 1
        begins, ends = at + start * 1000, at + end * 1000
        word = outcome[0] if outcome else "complete"
        found.append(Run(loop_id, _type(loop_id), attempts[loop_id], begins, begins, ends, word))
    ids: dict[str, None] = {}
    for loop_id, *_ in runs:
        words = loop_id.split("/")
        ids.update(dict.fromkeys("/".join(words[: depth + 1]) for depth in range(len(words))))
    span = max((run.end for run in found), default=at) - at
    return Played(
        at=at,
        makespan_ms=span,
        utilisation=Fraction(1, 2),
        slots=2,
        waiting={},
        critical_path=(),
        runs=tuple(found),
        counts={},
        unfinished=(),
        parts=tuple(Part(each, _type(each), title, Status.COMPLETE) for each in sorted(ids)),
        events=0,
        cut_short=False,
        unused=(),
    )


def _type(loop_id: str) -> str:
    """Name the type of a loop by its depth."""
    return ("plan", "spec", "phase", "code")[loop_id.count("/")]


def many(specs: int, codes: int) -> Played:
    """Play a plan of so many specs, each with one phase of so many code loops, one after another."""
    ids = [f"big/s{spec:02}/p/c{code:03}" for spec in range(specs) for code in range(codes)]
    return played(*((each, place * 60, place * 60 + 60) for place, each in enumerate(ids)))


SMALL = (
    ("p", 0, 60),
    ("p/a", 60, 120),
    ("p/a/f/x", 120, 180, "refused"),
    ("p/a/f/y", 120, 150, "limited"),
    ("p/a/f/x", 180, 240),
    ("p/a/f/y", 210, 240),
    ("p/b/f/x", 60, 75),
)


def test_a_small_tree_is_drawn_loop_by_loop() -> None:
    """Every loop that ran has a row below its parent's, with its attempts where they were and what went wrong."""
    assert draw_text(played(*SMALL), width=60) == (
        "         0           1m           2m           3m\n"
        "         ┬───────────┬────────────┬────────────┬────────────\n"
        "p        █████████████\n"
        "  a                  ▒█████████████\n"
        "    f                             ──────────────────────────\n"
        "      x                           █████████████×████████████\n"
        "      y                           ██████~            ▒██████\n"
        "  b/f/x              ▒███\n"
        "\n"
        "█ runs  ▒ for a part of that time  × tries again or gives up  ~ met a limit\n"
    )


def test_plain_ascii_says_the_same() -> None:
    """A terminal that knows nothing else gets a chart of ASCII characters."""
    drawn = draw_text(played(*SMALL), width=60, ascii_only=True)
    assert drawn.isascii()
    assert "      x                           #############x############\n" in drawn


def test_nothing_that_ran_is_said_in_words() -> None:
    """A chart without runs is a sentence, and a picture of it is still a picture."""
    assert draw_text(played()) == f"{NOTHING_RAN}\n"
    assert ElementTree.fromstring(draw_svg(played(), "nothing")).tag == f"{SVG}svg"


@pytest.mark.parametrize("most", [1, 2, 3, 7, 40, 2000])
@pytest.mark.parametrize("shape", [(1, 1), (1, 1000), (9, 110), (50, 2)])
def test_every_run_is_in_one_row_and_rows_fit(shape: tuple[int, int], most: int) -> None:
    """However few rows there are, each run is in exactly one that shows runs, in tree order."""
    whole = many(*shape)
    rows = rows_of(whole, most)
    assert 0 < len(rows) <= most
    shown = [run.id for row in rows if row.kind is not Kind.ABOVE for run in row.runs]
    assert shown == [run.id for run in whole.runs]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=60), st.integers(1, 50))
def test_any_tree_is_folded_without_losing_a_run(paths: list[list[int]], most: int) -> None:
    """Whoever ran, above or below others, each run is shown once and the rows fit."""
    ids = sorted({f"p{path[-1]}" + "".join(f"/{step}" for step in path[:3]) for path in paths})
    whole = played(*((each, place, place + 1) for place, each in enumerate(ids)))
    rows = rows_of(whole, most)
    assert len(rows) <= most
    assert sorted(run.id for row in rows if row.kind is not Kind.ABOVE for run in row.runs) == ids


def test_rows_are_shared_evenly() -> None:
    """A large tree is opened level by level, and what does not fit is cut into parts of nearly the same size."""
    rows = rows_of(many(4, 90), 25)
    assert [(row.indent, row.name, row.count) for row in rows[:6]] == [
        (0, "big", 1),
        (1, "s00/p", 1),
        (2, "c000 … c017", 18),
        (2, "c018 … c035", 18),
        (2, "c036 … c053", 18),
        (2, "c054 … c071", 18),
    ]
    assert len(rows) == 25


def test_a_loop_is_not_opened_into_a_single_row() -> None:
    """A row that would only repeat the one above it is not drawn."""
    assert [row.name for row in rows_of(many(1, 1000), 2)] == ["big/s00/p"]


def test_more_plans_than_rows_are_drawn_together() -> None:
    """Plans share rows as any other loops do, down to one row for all of them."""
    plans = played(*((f"p{n}", n, n + 1) for n in range(9)))
    assert [row.name for row in rows_of(plans, 1)] == ["p0 … p8"]
    assert len(rows_of(plans, 4)) == 4


def test_rows_of_several_loops_show_how_many_run_at_once() -> None:
    """The fullest bar is the most that run at once, and the legend says how many that is."""
    crowd = [(f"p/s/f/c{n}", 0 if n < 8 else 60, 60 if n < 8 else 120) for n in range(12)]
    drawn = draw_text(played(*crowd), width=40, most_rows=1).splitlines()
    assert drawn[2] == "p/s/f ×12  ██████████████▆▄▄▄▄▄▄▄▄▄▄▄▄▄▄"
    assert drawn[-1] == "▁ to █ several together, █ is 8 at once"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (9, 110)])
def test_no_line_is_wider_than_the_terminal(shape: tuple[int, int], width: int) -> None:
    """Rows and axis keep to the width, and no line ends in blanks."""
    lines = draw_text(many(*shape), width=width).splitlines()
    drawn = lines[: lines.index("")]
    assert all(len(line) <= max(width, 26) for line in drawn)
    assert all(line == line.rstrip() for line in lines)
    assert len(lines) <= 46


def test_a_chart_of_no_time_is_drawn() -> None:
    """Attempts that take no time are seen all the same."""
    drawn = draw_text(played(("p", 0, 0), ("p/a", 0, 0)))
    assert drawn.count("█") >= 2


def test_the_instant_of_the_beginning_does_not_matter() -> None:
    """A chart shows time since the beginning of the simulation."""
    assert draw_text(played(*SMALL)) == draw_text(played(*SMALL, at=10**12))
    assert draw_svg(played(*SMALL), "t") == draw_svg(played(*SMALL, at=10**12), "t")


# --- the picture ------------------------------------------------------------------------------------------------------


def test_the_picture_has_a_bar_for_every_attempt() -> None:
    """Each attempt is a rectangle that says whose it is, from when to when and how it ended."""
    root = ElementTree.fromstring(draw_svg(played(*SMALL), "A plan"))
    said = [title.text for title in root.iterfind(f"{SVG}rect/{SVG}title")]
    assert len(said) == len(SMALL)
    assert "p/a/f/x#1 refused, 2m to 3m" in said
    assert root.findtext(f"{SVG}title") == "A plan"
    labelled = root.get("aria-labelledby", "").split()
    assert [root.find(f"*[@id='{name}']") is not None for name in labelled] == [True, True]
    legend = [text.text for text in root.iterfind(f"{SVG}text")][-4:]
    assert legend == ["plan", "spec", "code", "tries again or gives up"]


def test_bars_stand_where_the_time_is() -> None:
    """Bars begin and end where their attempts do, on one scale."""
    root = ElementTree.fromstring(draw_svg(played(("p", 0, 60), ("p/a", 60, 120)), "t"))
    bars = [bar for bar in root.iterfind(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    (x1, wide1), (x2, wide2) = ((float(bar.get("x", "")), float(bar.get("width", ""))) for bar in bars)
    assert (x1, wide1, x2, wide2) == (240, 354, 594, 354)


@given(st.text())
def test_any_title_is_safe_in_the_picture(title: str) -> None:
    """A title with markup, escapes or characters that XML forbids neither breaks the picture nor gets out of it."""
    drawn = draw_svg(played(("p", 0, 1)), title)
    root = ElementTree.fromstring(drawn.encode("utf-8"))
    assert [each.tag for each in root if each.tag == f"{SVG}script"] == []
    assert "\x1b" not in drawn
    assert len(root) == len(ElementTree.fromstring(draw_svg(played(("p", 0, 1)), "t")))


def test_a_large_picture_stays_small() -> None:
    """A thousand loops are drawn together, in a picture that a browser opens at once."""
    drawn = draw_svg(many(9, 110), "big")
    assert len(drawn) < 300_000
    assert float(ElementTree.fromstring(drawn).get("height", "")) < 1300


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, "0"), (250, "250ms"), (1000, "1s"), (1500, "1s"), (90_000, "1m30s"), (3_600_000, "1h"), (100_800_000, "1d4h")],
)
def test_durations_are_written_for_people(ms: int, words: str) -> None:
    """A duration has at most two units."""
    assert human(ms) == words


@given(st.integers(0, 10**12), st.integers(1, 20))
def test_ticks_are_even_and_few(span: int, most: int) -> None:
    """The axis begins at 0, is even, stays in the span and has no more instants than fit."""
    found = list(ticks(span, most))
    assert found[0] == 0
    assert found[-1] <= span
    assert len(found) <= most + 1
    assert len({b - a for a, b in pairwise(found)}) <= 1
