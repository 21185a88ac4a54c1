"""The picture of the tree: whole, folded, narrow, in colour, and never with anybody else's control characters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Failure, Status, Terms
from loopr.ui.folding import fold
from loopr.ui.render import Paint, columns, fit, tree_lines
from tests.ui.scenes import NOON, OAUTH, Desk, flat
from tests.ui.terminals import on_terminal

WIDTH = 80


def drawn(desk: Desk, *options: str) -> str:
    """Return the tree as text that can stand in a test."""
    return "\n" + "\n".join(desk.lines("tree", *options)) + "\n"


def widest(lines: list[str]) -> int:
    """Count the columns of the widest line."""
    return max(map(columns, lines))


# --- sizes --------------------------------------------------------------------------------------------------------


def test_one_loop(desk: Desk) -> None:
    """A plan that declares nothing is one line that says what a person must do, and a count."""
    desk.start("# Lonely\n")
    assert (
        drawn(desk)
        == """
lonely  plan  waiting  a person must write its plan.md: specs/lonely/plan.md
0 of 1 done · 1 waiting
"""
    )


def test_a_small_tree_is_drawn_whole(desk: Desk) -> None:
    """Every loop has a line with its type, its state and what it waits for."""
    desk.start()
    assert (
        drawn(desk)
        == """
oauth          plan   0 of 3 done
├─ tokens      spec   0 of 2 done
│  ├─ store    phase  0 of 1 done
│  │  └─ code  code   waiting      a person must write its code.md: specs/oauth/tokens/store/code/code.md
│  └─ refresh  phase  waiting      needs store (0 of 1 done)
└─ endpoints   spec   waiting      needs tokens (0 of 2 done)
0 of 3 done · 3 waiting
"""
    )


def test_nothing_planned(desk: Desk) -> None:
    """An empty workspace is no failure, prints no data, and says what to type."""
    answer = desk("tree")
    assert (answer.code, answer.out) == (0, "")
    assert "`loopr start --no-run plan.md`" in answer.err


def planted(forest: Forest, specs: int, phases: int) -> Iterator[Event]:
    """Grow a plan of so many specs with so many phases each; all specs are complete."""
    yield e.Declared("big", "plan", None, Terms("Big"))
    yield e.ArtifactAccepted("big", "d")
    for spec in range(specs):
        name = f"big/s{spec:03}"
        yield e.Declared(name, "spec", "big", Terms(f"S{spec}", spec, identity=name))
        yield e.ArtifactAccepted(name, "d")
        for phase in range(phases):
            yield e.Declared(f"{name}/p{phase}", "phase", name, Terms("P", phase, identity="x", command=True))


def forest_of(specs: int, phases: int) -> Forest:
    """Return such a plan as a forest."""
    found = Forest()
    for event in planted(found, specs, phases):
        found.apply(event, NOON)
    return found


def lines_of(forest: Forest, room: int = 60, width: int = WIDTH) -> list[str]:
    """Draw a forest."""
    return tree_lines(forest, fold(forest, ["big"], room), NOON, width, Paint(False))


def test_thirty_loops_are_drawn_whole() -> None:
    """A tree that fits on a screen has no roll-up."""
    lines = lines_of(forest_of(5, 5))
    assert len(lines) == 31
    assert not [line for line in lines if "…" in line or "below" in line]


def test_ten_thousand_loops_fit_on_a_screen() -> None:
    """A large tree shows its head, closes what does not fit with a roll-up, and counts what it leaves out."""
    lines = lines_of(forest_of(999, 10))
    assert len(lines) <= 60
    assert lines[:4] == [
        "big       plan   0 of 9990 done",
        "├─ s000   spec   0 of 10 done",
        "│  ├─ p0  phase  ready",
        "│  ├─ p1  phase  ready",
    ]
    assert lines[-2:] == ["├─ s009   spec   0 of 10 done    10 below", "└─ … 989 more: 989 open"]


def test_what_is_busy_is_opened_first() -> None:
    """In a large tree, what runs is drawn with the way to it, before anything that only waits."""
    forest = forest_of(999, 10)
    for event in (
        e.LeaseGranted("big/s500/p7", 1, 1, "default"),
        e.SetAside("big/s500/p7", 1, Failure.CONFIG, "no such program"),
    ):
        forest.apply(event, NOON)
    lines = lines_of(forest)
    assert lines[1] == "├─ s500   spec   0 of 10 done"
    assert any(line.startswith("│  ├─ p7  phase  parked          no such program") for line in lines)
    assert lines[-1] == "└─ … 998 more: 998 open"


def test_what_is_done_stays_closed() -> None:
    """In a tree that is too large, a subtree that is done takes one line."""
    forest = forest_of(40, 3)
    for phase in range(3):
        forest.apply(e.ArtifactAccepted(f"big/s000/p{phase}", "d"), NOON)
    lines = lines_of(forest)
    assert "├─ s000   spec   done           3 below, all done" in lines


@given(st.integers(1, 40), st.integers(0, 6), st.integers(4, 70))
def test_a_folded_tree_counts_every_loop_once(specs: int, phases: int, room: int) -> None:
    """Lines, closed subtrees and the siblings that are left out together are all loops, each once."""
    forest = forest_of(specs, phases)
    lines = fold(forest, ["big"], room)
    below = forest.tree.below
    counted = sum(1 + (below[line.loop.id].total if line.closed else 0) for line in lines if line.loop)
    counted += sum(1 + below[each.id].total for line in lines for each in line.left_out)
    assert counted == len(forest.loops)
    assert len(lines) <= max(room, 3) or len(forest.loops) <= room


# --- options ------------------------------------------------------------------------------------------------------


def test_depth_rolls_up_what_is_below(desk: Desk) -> None:
    """With --depth the levels below are counted on the line of the loop that they belong to."""
    desk.start()
    assert desk.lines("tree", "--depth", "1") == [
        "oauth         plan  0 of 3 done",
        "├─ tokens     spec  0 of 2 done  3 below",
        "└─ endpoints  spec  waiting      needs tokens (0 of 2 done)",
        "0 of 3 done · 3 waiting",
    ]
    assert desk.lines("tree", "--depth", "0")[0] == "oauth  plan  0 of 3 done  5 below"


def test_all_folds_nothing(desk: Desk) -> None:
    """With --all a large tree has a line for each loop."""
    desk.start(flat(f"s{n}" for n in range(150)))
    assert len(desk.lines("tree", "--all")) == 152
    assert len(desk.lines("tree")) < 70


def test_a_subtree(desk: Desk) -> None:
    """A name draws that subtree alone, and counts it alone."""
    desk.start()
    lines = desk.lines("tree", "tokens")
    assert lines[0].split() == ["tokens", "spec", "0", "of", "2", "done"]
    assert lines[-1] == "0 of 2 done · 2 waiting"


# --- states -------------------------------------------------------------------------------------------------------


def words(desk: Desk) -> dict[str, list[str]]:
    """Return for each line of the tree, by its last name, the words after its type."""
    found = {}
    for line in desk.lines("tree"):
        name, _, rest = line.lstrip("│├└─ ").partition("  ")
        found[name.strip()] = rest.split()[1:]
    return found


def test_every_status_has_its_word(shop: Desk) -> None:
    """A person sees the same words as in the lifecycle, and for a pending loop in which way it waits."""
    shop.write("loopr.yml", (shop.folder / "loopr.yml").read_text().replace("make spec}", "make spec, approve: true}"))
    names = ["leased", "running", "checking", "approval", "landing", "complete", "parked", "failed", "cancelled"]
    names += ["backing", "paused", "ready", "waiting"]
    shop.start(flat(names[:-1]).replace("{id: ready}\n", "{id: ready}\n  - {id: waiting, needs: [ready]}\n"))
    shop("set", "concurrency.per_type.spec", "20")
    shop.wish(wishes.pause, "p/paused", "ada", "lunch")
    shop.wish(wishes.cancel, "p/cancelled", "ada")
    assert len(shop.choose()) == 10  # ready takes its turn, and gives it back at once
    shop.see(o.AttemptLost("p/ready", 1))
    for name in ("running", "checking", "approval", "landing", "complete", "parked", "failed", "backing"):
        shop.run(f"p/{name}")
    for name in ("checking", "approval", "landing", "complete", "failed"):
        shop.end(f"p/{name}")
    for name in ("approval", "landing", "complete", "failed"):
        shop.judge(f"p/{name}")
    shop.wish(wishes.approve, "p/landing")
    shop.wish(wishes.approve, "p/complete")
    shop.see(o.LandingDone("p/complete", 1, "c0ffee", "d"))
    shop.wish(wishes.reject, "p/failed", "not like this")
    shop.end("p/parked", Failure.CONFIG, "no such program: make")
    shop.end("p/backing", Failure.INFRA, "died of signal 9")
    found = words(shop)
    said = {"leased": "starting", "complete": "done", "backing": "waiting"}
    assert {name: found[name][0] for name in names} == {name: said.get(name, name) for name in names}
    for name, word in {name: said.get(name, name) for name in names}.items():
        assert f"p/{name}" in [line.split()[0] for line in shop.lines("ls", "--status", word)]
    assert found["parked"][1:] == ["no", "such", "program:", "make"]
    assert found["failed"][1:] == ["not", "like", "this"]
    assert found["paused"][1:3] == ["it", "is"]
    assert found["waiting"][1:] == ["needs", "ready"]
    statuses = {each["status"] for each in shop("tree", "--json").document["loops"]}
    assert statuses == {each.value for each in Status} - {"invalidated"}


def test_running_loops_say_for_how_long(shop: Desk) -> None:
    """A live attempt shows its duration, and from the second one on which try it is."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.REFUSED, "no")
    shop.choose()
    shop.run("p/a")
    shop.clock.at += 41_000
    assert "├─ a  spec  running      try 2 · 41 s" in shop.lines("tree")
    assert "└─ b  spec  starting     41 s" in shop.lines("tree")
    assert "├─ a  spec  running      try 2 · 1 min 41 s" in shop.lines("tree", "--at", "+1m")


def test_lanes_holds_and_problems_are_told_below(shop: Desk) -> None:
    """What concerns more than one loop stands below the tree: resting lanes, holds, problems."""
    shop.write("loopr.yml", (shop.folder / "loopr.yml").read_text().replace("make spec}", "make spec, lane: hal}"))
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.LIMITED, "429", retry_after_ms=600_000)
    shop.wish(wishes.pause, "workspace:", "ada", "lunch")
    shop.wish(wishes.pause, "project:default", "bob", "")
    shop.see(o.FileRefused("p/b", "specs/p/b/spec.md", "is empty"))
    lines = shop.lines("tree")
    assert lines[3:] == [
        "lane hal: backing off until 12:10:00 (1 hit): 429",
        "project default is paused by bob since 12:00:00; `loopr resume project:default`",
        "the workspace is paused by ada since 12:00:00: lunch; `loopr resume --all`",
        "1 problem: `loopr status` tells",
        "no engine runs: `loopr run` goes on",
        "0 of 2 done · 1 waiting · 1 starting",
    ]


def test_the_queue_warns(shop: Desk) -> None:
    """Above the soft limit of the queue the tree says that caps are respected."""
    shop("set", "queue.soft_limit", "3")
    shop.start(flat(f"s{n}" for n in range(12)))
    shop.choose()
    assert "queue delayed; respecting caps (7 waiting: 7 spec; the soft limit is 3)" in shop.lines("tree")


def test_the_queue_warns_of_each_type(shop: Desk) -> None:
    """The warning tells how many of each type wait, in the tree and in the status."""
    shop("set", "queue.soft_limit", "3")
    shop("set", "concurrency.per_type.spec", "1")
    shop("set", "concurrency.per_type.phase", "1")
    shop.start(flat(["a", "b", "c"]))
    shop.choose()
    shop.land("p/a", "k; l; m")
    shop.choose()
    words = "queue delayed; respecting caps (3 waiting: 2 phase, 1 spec; the soft limit is 3)"
    assert words not in shop.lines("tree")
    shop("set", "queue.soft_limit", "2")
    words = words.replace("is 3", "is 2")
    assert words in shop.lines("tree")
    assert f"warning: {words}" in shop.lines("status")


def test_a_long_queue_is_nothing_wrong_by_itself(shop: Desk) -> None:
    """Where nobody has set a limit, the warning comes with the one from which on new plans are deferred."""
    shop("set", "concurrency.max_loops", "2")
    shop.start(flat(f"s{n}" for n in range(15)))
    assert len(shop.choose()) == 2
    assert "queue delayed" not in shop("tree").out + shop("status").out
    assert shop("start", "--no-run", shop.write("q.md", flat(["x"], "q"))).code == 0
    shop.start(flat((f"t{n}" for n in range(5)), "more"), "more.md")
    assert "queue delayed; respecting caps (19 waiting: 19 spec; the soft limit is 8)" in shop.lines("tree")
    assert shop("start", "--no-run", shop.write("r.md", flat(["x"], "r"))).code == 75


# --- width and characters -----------------------------------------------------------------------------------------

WIDE = "漢字かな交じり文 👩‍💻 ÅÅÅ ﷽ " * 8


def test_a_terminals_columns_are_never_exceeded(shop: Desk) -> None:
    """No line of a tree is wider than the terminal, however long or wide names and reasons are; they go on below.

    Where there is no terminal, each loop has one line, and nothing is cut.
    """
    deep = "x" * 60
    shop.start(flat([deep, "b", "c"]), "plan.md")
    shop.choose()
    for name in (deep, "b"):
        shop.run(f"p/{name}")
    shop.end(f"p/{deep}", Failure.CONFIG, WIDE)
    shop.end("p/b", Failure.INFRA, "a long story " * 30)
    shop.see(o.FileSeen("p/c", "d" * 32, outline_of("k"), "specs/p/c/spec.md"))
    shop.wish(wishes.pause, "workspace:", "ada", WIDE)
    shop.see(o.AttemptEnded("p/c/k", 1))
    for width in (60, WIDTH, 120):
        shown = on_terminal(shop.folder, "tree", "--no-color", width=width).decode().splitlines()
        assert widest(shown) <= width
    assert " ".join(shown).count("漢字かな交じり文") >= 8 * 3
    lines = shop.lines("tree")
    assert not [line for line in lines if "…" in line]
    assert max(line.count("漢字かな交じり文") for line in lines) == 8
    assert any(deep in line and "parked" in line for line in lines)


def outline_of(text: str) -> object:
    """Read an outline in one line."""
    from tests.core.outlines import outline

    return outline(text)


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=120), st.integers(1, 100))
@example("00\xad0", 3)
def test_a_text_is_cut_to_its_columns(text: str, width: int) -> None:
    """A text that is cut fits, ends in an ellipsis, and begins as the text does; one that fits is not touched."""
    cut = fit(text, width)
    assert columns(cut) <= width
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("├─ é…", 5), ("漢字", 4), ("e\u0301", 1), ("👩\u200d💻", 4), ("ｱ", 1), ("Ａ", 2)],
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    """A wide character takes two columns, a combining or joining one none, and a line of a box one."""
    assert columns(text) == width


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_a_narrow_terminal(width: int) -> None:
    """On a terminal of 40 columns or more no line wraps."""
    assert widest(lines_of(forest_of(999, 3), width=width)) <= width


EVIL = "\x1b[31mred\x1b]0;owned\x07 \x9b2J \u202eback"


def test_control_characters_never_reach_a_terminal(shop: Desk) -> None:
    """Escapes in titles, reasons, file names and holds are shown as something harmless, whatever verb prints them."""
    title = 'title: "' + "".join(f"\\u{ord(each):04x}" for each in EVIL) + '"'
    shop.start(f"---\nid: p\n{title}\nspecs:\n  - {{id: a, {title}}}\n  - {{id: b}}\n---\n", "pl\x1b[2Jan\n.md")
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.CONFIG, EVIL)
    shop.wish(wishes.pause, "p/b", EVIL, EVIL)
    shop.see(o.FileRefused("p/b", f"specs/{EVIL}.md", EVIL))
    for verb in ("tree", "ls", "status", "show p", "show a", "why a", "why b", "next", "events", "simulate p"):
        answer = shop(*verb.split())
        bad = [each for each in answer.out + answer.err if each != "\n" and (ord(each) < 32 or 126 < ord(each) < 160)]
        assert (answer.code, bad, "\u202e" in answer.out) == (0, [], False), verb


# --- colour -------------------------------------------------------------------------------------------------------


def test_no_colour_in_a_pipe(desk: Desk) -> None:
    """What is not a terminal gets plain text."""
    desk.start()
    assert "\x1b" not in desk("tree").out


def test_colour_on_a_terminal_unless_it_is_not_wanted(desk: Desk) -> None:
    """A terminal gets colours; NO_COLOR and --no-color each turn them off."""
    desk.start(OAUTH)
    assert b"\x1b[2mwaiting" in on_terminal(desk.folder, "tree")
    assert b"\x1b" not in on_terminal(desk.folder, "tree", NO_COLOR="1")
    assert b"\x1b" not in on_terminal(desk.folder, "tree", "--no-color")


def test_a_drawing_for_other_programs(desk: Desk) -> None:
    """`--dot` gives every loop and need of the tree, or of what is below a loop, in the language of Graphviz."""
    desk.start()
    lines = desk.lines("tree", "--dot")
    assert (lines[0], lines[-1]) == ("digraph loops {", "}")
    assert '  "oauth/tokens" -> "oauth/endpoints" [style=dashed];' in lines
    below = desk.lines("tree", "tokens", "--dot")
    assert '  "oauth/tokens" -> "oauth/tokens/store";' in below
    assert not [line for line in below if "endpoints" in line]
    assert desk("tree", "--dot", "--json").code == 2
    assert desk("tree", "--dot", "nobody").code == 3
