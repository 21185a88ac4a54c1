"""The graphs of the loops: what would wait for ever, what a completion sets free, what takes longest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from loopr.core import graph
from loopr.core.model import Loop, Status
from loopr.core.releasing import releases
from loopr.core.tree import Tree

PACKAGE = Path(graph.__file__).parents[1]

Needs = dict[str, tuple[str, ...]]
Point = tuple[str, str]


# --- what the tests are made of --------------------------------------------------------------------------------------


def loop(loop_id: str, *needs: str, status: Status = Status.PENDING, title: str = "", place: int = 0) -> Loop:
    """Make a loop whose parent is what its id says."""
    depth = loop_id.count("/")
    return Loop(loop_id, "step", title, parent_of(loop_id), place, depth, "default", needs, status=status)


def parent_of(loop_id: str) -> str | None:
    """Name the parent of a loop."""
    return loop_id.rpartition("/")[0] or None


def tree_of(*loops: Loop) -> Tree:
    """Plant loops, parents before children."""
    tree = Tree()
    for each in sorted(loops, key=lambda each: each.depth):
        tree.put(each)
    return tree


def grow(needs: Needs) -> Tree:
    """Plant pending loops that need what is said."""
    return tree_of(*(loop(each, *needs[each]) for each in needs))


def proposed(needs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    """Propose loops that need what is said."""
    return {each: (parent_of(each), needs[each]) for each in needs}


def waits(needs: Needs, point: Point) -> Iterator[Point]:
    """Say by the definition alone what a point follows."""
    loop_id, part = point
    if part == "done":
        yield loop_id, "own"
        yield from ((each, "done") for each in needs if parent_of(each) == loop_id)
    else:
        if parent_of(loop_id) in needs:
            yield parent_of(loop_id) or "", "own"
        yield from ((each, "done") for each in needs[loop_id] if each in needs)


def followed(needs: Needs, loop_id: str, part: str = "own") -> set[Point]:
    """Walk from a point to all that it follows, by brute force."""
    seen: set[Point] = set()
    stack = list(waits(needs, (loop_id, part)))
    while stack:
        point = stack.pop()
        if point not in seen:
            seen.add(point)
            stack.extend(waits(needs, point))
    return seen


def own_ones(points: set[Point]) -> list[str]:
    """Name the loops whose own points are among these."""
    return sorted(loop_id for loop_id, part in points if part == "own")


def circles(needs: Needs, among: Needs) -> bool:
    """Say whether a point of one of these loops follows itself."""
    return any((each, part) in followed(needs, each, part) for each in among for part in ("own", "done"))


@st.composite
def forests(draw: st.DrawFn, most_needs: int = 6) -> dict[str, tuple[str, ...]]:
    """Draw a few plans, what is below them, and needs among all; most needs run in circles."""
    ids = ["a", "b"]
    for name in draw(st.lists(st.sampled_from("xyz"), max_size=7)):
        child = f"{draw(st.sampled_from(ids))}/{name}"
        if child not in ids and child.count("/") < 4:
            ids.append(child)
    pairs = draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from([*ids, "b/nobody"])), max_size=most_needs))
    return {each: tuple(need for needer, need in pairs if needer == each) for each in draw(st.permutations(ids))}


def untied(needs: Needs) -> dict[str, tuple[str, ...]]:
    """Take out the needs that close a circle, one after the other."""
    kept: dict[str, tuple[str, ...]] = dict.fromkeys(needs, ())
    for each in needs:
        for need in needs[each]:
            longer = kept | {each: (*kept[each], need)}
            kept = kept if circles(longer, longer) else longer
    return kept


@st.composite
def changes(draw: st.DrawFn) -> tuple[Needs, Needs]:
    """Draw a sound forest, and loops that are added to it or replaced in it, with any needs."""
    needs = draw(forests())
    chosen = draw(st.sets(st.sampled_from(sorted(needs))))
    new = {each: needs[each] for each in needs if any(above in chosen for above in lineage(each))}
    kept = {each: needs[each] for each in needs if each not in new or draw(st.booleans())}
    old = {each: kept[each] for each in kept if all(above in kept for above in lineage(each))}
    return untied(old), new


def lineage(loop_id: str) -> Iterator[str]:
    """Name a loop and all above it."""
    yield loop_id
    while above := parent_of(loop_id):
        loop_id = above
        yield loop_id


@st.composite
def timed(draw: st.DrawFn) -> tuple[Needs, dict[str, int]]:
    """Draw a sound forest, and how long some of its loops take."""
    needs = untied(draw(forests(most_needs=10)))
    return needs, draw(st.dictionaries(st.sampled_from(sorted(needs)), st.integers(0, 4)))


# --- cycles ----------------------------------------------------------------------------------------------------------


@given(changes())
def test_a_cycle_is_found_when_there_is_one(change: tuple[Needs, Needs]) -> None:
    """A cycle is found exactly when a point of a proposed loop would follow itself."""
    old, new = change
    found = graph.find_cycle(grow(old), proposed(new))
    assert bool(found) == circles({**old, **new}, new)


@given(changes())
def test_every_arrow_of_a_drawing_is_true(change: tuple[Needs, Needs]) -> None:
    """Each loop of a drawn cycle waits for the next in the way that is said, and all of them together go round."""
    old, new = change
    needs = {**old, **new}
    found = graph.find_cycle(grow(old), proposed(new))
    words = re.findall(r" —([a-z ]+)→ ", graph.draw_cycle(found))
    assert len(set(found)) == len(found) == len(words)
    assert not found or set(found) & set(new)
    point = "own"
    for loop_id, awaited, word in zip(found, [*found[1:], *found[:1]], words, strict=True):
        if word == "needs":
            assert awaited in needs[loop_id]
        elif word == "is part of":
            assert awaited == parent_of(loop_id)
        else:
            assert (word, loop_id) == ("contains", parent_of(awaited))
            assert point == "done", "own work does not wait for what is below"
        point = "own" if word == "is part of" else "done"
    assert words[:1] == ["needs"] * bool(found)


@given(changes())
def test_the_same_cycle_is_found_whatever_the_order(change: tuple[Needs, Needs]) -> None:
    """Neither the order of the loops nor that of their needs changes which cycle is shown."""
    old, new = change
    shown = graph.find_cycle(grow(old), proposed(new))
    turned = [{each: needs[each][::-1] for each in reversed(needs)} for needs in (old, new)]
    assert graph.find_cycle(grow(turned[0]), proposed(turned[1])) == shown


def test_of_equal_cycles_the_one_with_smaller_ids_is_shown() -> None:
    """Where two cycles are equally short, ids decide, not the order in which they were written."""
    tree = grow({"p": ()})
    assert graph.find_cycle(tree, proposed({"p/c": ("p/a",), "p/a": ("p/c", "p/b"), "p/b": ("p/a",)})) == ["p/a", "p/b"]
    upwards: Needs = {"p/b": (), "p/b/y": ("p/a",), "p/b/x": ("p/a",), "p/a": ("p/b",)}
    assert graph.find_cycle(tree, proposed(upwards)) == ["p/a", "p/b", "p/b/x"]


def test_a_sound_outline_closes_no_cycle() -> None:
    """Loops may need an aunt and a sibling."""
    tree = grow({"p": (), "p/a": (), "p/b": ("p/a",)})
    assert graph.find_cycle(tree, proposed({"p/b/x": ("p/a",), "p/b/y": ("p/b/x",)})) == []
    assert graph.find_cycle(Tree(), {}) == []


def test_a_need_of_who_waits_for_the_parent_is_a_cycle() -> None:
    """A child that needs a loop which waits for all of its parent would wait for itself."""
    tree = grow({"p": (), "p/a": (), "p/b": ("p/a",)})
    found = graph.find_cycle(tree, proposed({"p/a/x": ("p/b",)}))
    assert graph.draw_cycle(found) == "p/a/x —needs→ p/b —needs→ p/a —contains→ p/a/x"


def test_a_cycle_that_goes_up_says_so() -> None:
    """A loop that needs another's child, whose own parent comes after it, waits for itself."""
    tree = grow({"p": (), "p/a": (), "p/b": (), "p/b/x": ()})
    found = graph.find_cycle(tree, proposed({"p/a": ("p/b/x",), "p/b": ("p/a",)}))
    assert graph.draw_cycle(found) == "p/a —needs→ p/b/x —is part of→ p/b —needs→ p/a"


def test_who_needs_its_own_is_told_so() -> None:
    """A loop that needs itself, its parent or its child is shown with that one alone, however it is entangled."""
    tree = grow({"p": (), "p/a": ()})
    outlines: list[Needs] = [
        {"p/b": ("p/b",)},
        {"p/a/x": ("p/a/y",), "p/a/y": ("p/a",)},
        {"p/a": ("p/a/x",), "p/a/x": ()},
    ]
    drawn = [graph.draw_cycle(graph.find_cycle(tree, proposed(needs))) for needs in outlines]
    assert drawn == [
        "p/b —needs→ p/b",
        "p/a/y —needs→ p/a —contains→ p/a/y",
        "p/a —needs→ p/a/x —is part of→ p/a",
    ]


def test_what_is_not_declared_closes_no_cycle() -> None:
    """A loop that left the tree holds nobody back, until it is proposed again."""
    tree = tree_of(loop("p"), loop("p/a", "p/b"), loop("p/b", "p/a", status=Status.INVALIDATED))
    assert graph.find_cycle(tree, proposed({"p/a": ("p/b",)})) == []
    assert graph.find_cycle(tree, proposed({"p/b": ("p/a",)})) == ["p/b", "p/a"]


def test_a_cycle_that_was_there_is_not_the_news() -> None:
    """An outline is not refused for a cycle elsewhere that none of its loops is on."""
    tree = grow({"p": (), "p/a": ("p/b",), "p/b": ("p/a",)})
    assert graph.find_cycle(tree, proposed({"p/c": ("p/a",)})) == []


def test_a_need_taken_out_opens_the_cycle() -> None:
    """What a proposed loop says replaces what the loop of that name said before."""
    tree = grow({"p": (), "p/a": ("p/b",), "p/b": ("p/a",)})
    assert graph.find_cycle(tree, proposed({"p/a": ()})) == []


def test_a_circle_of_a_thousand_is_one_readable_line() -> None:
    """A long cycle is found without recursion and drawn without its middle."""
    needs = {f"p/{n}": (f"p/{(n + 1) % 1000}",) for n in range(1000)}
    found = graph.find_cycle(grow({"p": ()}), proposed(needs))
    line = graph.draw_cycle(found)
    assert len(found) == 1000
    assert line.startswith("p/0 —needs→ p/1 —needs→ p/2 ")
    assert " … 988 more … " in line
    assert line.endswith(" —needs→ p/999 —needs→ p/0")
    assert len(line) < 300


# --- who waits for whom ----------------------------------------------------------------------------------------------


@given(forests(), forests())
def test_the_points_follow_the_definition(needs: Needs, extra: Needs) -> None:
    """The graph of points has the edges that the definition names, and no others."""
    both = {**needs, **extra}
    expected = {
        (before, (each, part)) for each in both for part in ("own", "done") for before in waits(both, (each, part))
    }
    points = graph.order_graph(grow(needs), proposed(extra))
    assert set(points.edges) == expected
    assert set(points) == {(each, part) for each in both for part in ("own", "done")}


@given(forests())
def test_above_and_below_go_through_needs(needs: Needs) -> None:
    """The ancestors of a loop are those it waits for, its descendants those that wait for it."""
    needs = untied(needs)
    tree = grow(needs)
    before = {each: own_ones(followed(needs, each)) for each in needs}
    for each in needs:
        assert graph.ancestors(tree, each) == before[each]
        assert graph.descendants(tree, each) == sorted(other for other in needs if each in before[other])


@given(forests())
def test_a_generation_waits_for_the_one_before(needs: Needs) -> None:
    """A loop is in the first generation after all it waits for, and every loop is in one."""
    needs = untied(needs)
    generations = graph.levels(grow(needs))
    level = {each: number for number, generation in enumerate(generations) for each in generation}
    assert sorted(level) == sorted(needs)
    for each in needs:
        assert level[each] == max((level[other] + 1 for other in own_ones(followed(needs, each))), default=0)
    assert generations == [sorted(generation) for generation in generations]


def test_the_hierarchy_tells_parts_from_needs() -> None:
    """Edges go from parent to child and from need to needer; what is not declared has none."""
    tree = tree_of(
        loop("p"), loop("p/a", title="One"), loop("p/b", "p/a", "p/c"), loop("p/c", status=Status.INVALIDATED)
    )
    dag = graph.hierarchy(tree)
    assert dict(dag.nodes["p/a"]) == {"type": "step", "status": "pending", "title": "One", "project": "default"}
    assert {(*edge, dag.edges[edge]["kind"]) for edge in dag.edges} == {
        ("p", "p/a", "parent"),
        ("p", "p/b", "parent"),
        ("p/a", "p/b", "need"),
    }
    assert nx.is_directed_acyclic_graph(dag)


# --- what a completion sets free -------------------------------------------------------------------------------------


def free(tree: Tree) -> set[str]:
    """Name the pending loops that miss neither parent nor need."""
    return {
        each.id
        for each in tree.walk()
        if each.status is Status.PENDING
        and (each.parent is None or tree.loops[each.parent].status is Status.COMPLETE)
        and all(tree.done(need) for need in each.needs)
    }


@given(forests(), st.data())
def test_a_completion_releases_whoever_waited_for_nothing_else(needs: Needs, data: st.DataObject) -> None:
    """What a loop releases is what becomes free if it and all below it are made complete."""
    statuses = st.sampled_from([Status.PENDING, Status.COMPLETE, Status.COMPLETE, Status.FAILED])
    loops = [loop(each, *needs, status=data.draw(statuses)) for each, needs in untied(needs).items()]
    tree = tree_of(*loops)
    for top in needs:
        inside = {each.id for each in tree.walk(top)}
        after = tree_of(*(each._replace(status=Status.COMPLETE) if each.id in inside else each for each in loops))
        assert releases(tree, top) == sorted(free(after) - free(tree) - inside)


def test_the_last_of_a_spec_releases_who_needs_the_spec() -> None:
    """The completion of a last child counts for whoever needs the loops above it."""
    done = Status.COMPLETE
    loops = [
        loop("p", status=done),
        loop("p/a", status=done),
        loop("p/a/x", status=done),
        loop("p/a/y"),
        loop("p/b", "p/a"),
    ]
    assert releases(tree_of(*loops), "p/a/y") == ["p/b"]
    assert releases(tree_of(*loops, loop("p/a/z")), "p/a/y") == []
    undone = [each if each.id != "p/a" else loop("p/a", status=Status.FAILED) for each in loops]
    assert releases(tree_of(*undone), "p/a/y") == []


def test_what_is_done_releases_nothing_more() -> None:
    """A loop that is done already frees nobody, not even those that wait for nothing any more."""
    done = Status.COMPLETE
    loops = [loop("p", status=done), loop("p/a", status=done), loop("p/a/x", status=done), loop("p/b", "p/a")]
    tree = tree_of(*loops)
    assert [releases(tree, each) for each in ("p/a", "p/a/x")] == [[], []]


def test_who_left_the_tree_is_in_nobodys_way() -> None:
    """A loop that is no longer declared has neither ancestors nor descendants, and releases nobody."""
    done = Status.COMPLETE
    tree = tree_of(loop("p", status=done), loop("p/a", status=Status.INVALIDATED), loop("p/b", "p/a"))
    assert [ask(tree, "p/a") for ask in (graph.ancestors, graph.descendants, releases)] == [[], [], []]
    assert graph.ancestors(tree, "p/b") == ["p"]


# --- the longest chain -----------------------------------------------------------------------------------------------


def chains(needs: Needs, ms: Mapping[str, int]) -> dict[str, set[tuple[int, tuple[str, ...]]]]:
    """List by brute force every chain of points that ends with a loop's own, as its time and its loops."""

    @cache
    def to(point: Point) -> frozenset[tuple[int, tuple[str, ...]]]:
        loop_id, part = point
        shorter = {chain for before in waits(needs, point) for chain in to(before)}
        if part == "done":
            return frozenset(shorter)
        return frozenset((time + ms.get(loop_id, 0), (*ids, loop_id)) for time, ids in shorter or {(0, ())})

    return {each: set(to((each, "own"))) for each in needs}


@given(timed())
def test_no_chain_takes_longer_than_the_critical_path(drawn: tuple[Needs, dict[str, int]]) -> None:
    """The critical path is a real chain, none takes longer, and of equals it is the one with the smaller ids."""
    needs, ms = drawn
    total, path = graph.critical_path(grow(needs), ms)
    every = {chain for found in chains(needs, ms).values() for chain in found}
    longest = {ids for time, ids in every if time == max(time for time, _ in every)}
    assert total == sum(ms.get(each, 0) for each in path) == max(time for time, _ in every)
    assert tuple(path) == min(longest, key=lambda ids: [*reversed(ids)])


@given(timed())
def test_the_critical_path_does_not_depend_on_order(drawn: tuple[Needs, dict[str, int]]) -> None:
    """The same loops and times give the same path, whatever their order."""
    needs, ms = drawn
    turned = {each: needs[each][::-1] for each in reversed(needs)}
    assert graph.critical_path(grow(turned), ms) == graph.critical_path(grow(needs), ms)


def test_a_need_waits_for_all_below_it() -> None:
    """The path goes through the slowest loop below a need, and the needer waits for that."""
    needs = {"p": (), "p/a": (), "p/a/slow": (), "p/a/quick": (), "p/b": ("p/a",)}
    ms = {"p": 1, "p/a": 2, "p/a/slow": 9, "p/a/quick": 3, "p/b": 1}
    assert graph.critical_path(grow(needs), ms) == (13, ["p", "p/a", "p/a/slow", "p/b"])
    assert graph.levels(grow(needs)) == [["p"], ["p/a"], ["p/a/quick", "p/a/slow"], ["p/b"]]


def test_an_empty_workspace_has_no_path() -> None:
    """No loops take no time."""
    assert graph.critical_path(Tree(), {}) == (0, [])
    assert graph.levels(Tree()) == []


# --- export and import -----------------------------------------------------------------------------------------------


def test_a_drawing_has_a_line_for_each_loop_and_edge() -> None:
    """The DOT text is the same for the same tree: loops by id, then solid and dashed edges."""
    tree = tree_of(loop("p", title="Log in"), loop("p/a", title="One"), loop("p/b", "p/a", title="Two"))
    assert graph.to_dot(tree, "p/a").splitlines()[3:] == [r'  "p/a" [label="p/a\nOne\nstep, pending"];', "}"]
    assert graph.to_dot(tree).splitlines() == [
        "digraph loops {",
        "  rankdir=LR;",
        "  node [shape=box];",
        r'  "p" [label="p\nLog in\nstep, pending"];',
        r'  "p/a" [label="p/a\nOne\nstep, pending"];',
        r'  "p/b" [label="p/b\nTwo\nstep, pending"];',
        '  "p" -> "p/a";',
        '  "p" -> "p/b";',
        '  "p/a" -> "p/b" [style=dashed];',
        "}",
    ]


@given(st.text(alphabet=st.one_of(st.sampled_from('"\\\n\r\0\x1b<>{}|;N'), st.characters(codec="utf-8"))))
def test_no_title_leaves_its_label(title: str) -> None:
    """Whatever a title holds, it stays one label on one line, and reads as it was written."""
    lines = graph.to_dot(tree_of(loop("p", title=title))).split("\n")
    assert [*lines[:3], *lines[4:]] == ["digraph loops {", "  rankdir=LR;", "  node [shape=box];", "}", ""]
    quoted = re.fullmatch(r'  "p" \[label="((?:[^"\\]|\\.)*)"\];', lines[3])
    assert quoted, lines[3]
    assert lines[3].isprintable()
    shown = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], quoted[1])
    assert shown == "p\n" + "".join(each if each.isprintable() else " " for each in title) + "\nstep, pending"


def test_nobody_imports_the_graph_before_it_is_asked() -> None:
    """No module of the package imports this one, and with it networkx, when it is imported itself."""
    eager = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if re.search(r"import .*\bgraph\b|loopr\.core\.graph", ast.unparse(node).partition("\n")[0])
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert eager == []
