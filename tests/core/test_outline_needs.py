"""What siblings need: nobody waits for nobody, and nobody waits in a circle."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.marked import Findings, Position
from loopr.core.needs import Sibling, check_siblings
from loopr.core.outline import Entry, resolve_needs
from loopr.errors import PlanError

NAMES = "abcdefgh"


def said(outline: dict[str, str], extra: str = "") -> list[str]:
    """Check an outline given as id and needs in one letter each; `extra` are ids that come once more."""
    findings = Findings("f.md")
    pairs = [*outline.items(), *((each, "") for each in extra)]
    siblings = [
        Sibling(Entry(name, name, needs=tuple(needs)), Position(line, 1), tuple(Position(line, 9) for _ in needs))
        for line, (name, needs) in enumerate(pairs, 1)
    ]
    check_siblings(findings, siblings)
    return [problem.message for _, problem in findings.problems]


def test_a_cycle_is_drawn() -> None:
    """A circle of needs is drawn from its first member in the file, each arrow to one it needs, once."""
    assert said({"z": "a", "a": "b", "b": "c", "c": "a"}) == ["needs form a cycle: a → b → c → a"]


def test_a_loop_cannot_need_itself() -> None:
    """The shortest circle is one loop."""
    assert said({"a": "a", "b": ""}) == ["needs form a cycle: a → a"]


def test_every_cycle_is_named() -> None:
    """Two circles that have nothing in common are both drawn."""
    assert said({"a": "b", "b": "a", "c": "d", "d": "c"}) == [
        "needs form a cycle: a → b → a",
        "needs form a cycle: c → d → c",
    ]


def test_equal_ids_and_unknown_needs() -> None:
    """The second of two equal ids is refused, naming the line of the first, and so is a need that is nobody's id."""
    assert said({"a": "", "b": "x"}, extra="a") == [
        'two children have the id "a", the first is on line 1',
        'needs "x", which is not declared here',
    ]


def named(*siblings: tuple[str, str, str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Check siblings given as id, title and needs with `|` between them; return their needs and what was refused."""
    findings = Findings("f.md")
    read = [
        Sibling(
            Entry(id_, title, needs=tuple(filter(None, needs.split("|")))), Position(line, 1), (Position(line, 9),) * 9
        )
        for line, (id_, title, needs) in enumerate(siblings, 1)
    ]
    read = [each._replace(needs_at=each.needs_at[: len(each.entry.needs)]) for each in read]
    return [each.entry.needs for each in check_siblings(findings, read)], [str(each) for _, each in findings.problems]


def test_a_title_is_a_need() -> None:
    """A sibling may be named by its title in any case; named twice it is needed once; an id goes before a title."""
    needs, problems = named(
        ("a", "Token storage", ""),
        ("b", "CI/CD", "Token storage|a|token  storage"),
        ("c", "b", "\u201cCI/CD\u201d"),
        ("d", "D", "b"),
    )
    assert (needs, problems) == ([(), ("a",), ("b",), ("b",)], [])


@pytest.mark.parametrize(("need", "meant"), [
    ("Frist stage", "First stage"),
    ("frist stage", "First stage"),
    ("stage-on", "stage-one"),
    ("zzzz", ""),
])  # fmt: skip
def test_a_misspelt_title_is_guessed(need: str, meant: str) -> None:
    """A need that is no id and no title is told with the one that it most likely means."""
    hint = f'did you mean "{meant}"?' if meant else "name a sibling by its id or title"
    problems = named(("stage-one", "First stage", ""), ("b", "B", need))[1]
    assert hint in problems[0]


def test_a_number_is_a_need() -> None:
    """`Needs: 2` means the sibling under the heading `2. Export`, unless two begin so."""
    numbered = ("1-load", "1. Load", ""), ("2-export", "2. Export", "")
    for need in ("2", "#2", "2."):
        assert named(*numbered, ("c", "C", need))[0][2] == ("2-export",)
    assert named(*numbered, ("2-b", "2. B", ""), ("c", "C", "2"))[1] == [
        'f.md:4:9 needs "2", which begins the titles of 2 siblings: 2-export, 2-b'
        " (name the one that is meant by its id)"
    ]
    assert "not declared here" in named(*numbered, ("c", "C", "3"))[1][0]


def test_a_circle_of_titles() -> None:
    """Siblings that need each other by their titles are in a circle as well."""
    assert named(("a", "One", "Two"), ("b", "Two", "One"))[1] == [
        "f.md:1:9 needs form a cycle: a → b → a (take one of these needs out)"
    ]


def test_a_title_that_two_have() -> None:
    """It names neither, which is said at the need; one that is written exactly so goes before one in other letters."""
    twins = ("a", "Store", ""), ("b", "store", "")
    assert named(*twins, ("c", "C", "Store|store"))[0][2] == ("a", "b")
    assert named(*twins, ("c", "C", "STORE"))[1] == [
        'f.md:3:9 needs "STORE", which is the title of 2 siblings: a, b (name the one that is meant by its id)'
    ]


def test_a_chain_as_long_as_an_outline() -> None:
    """A thousand children in one line, or in one circle, are no deeper for us than two."""
    names = [f"e{n}" for n in range(1000)]
    findings = Findings("f.md")
    for closing in ((), ("e999",)):
        needs = [closing, *((name,) for name in names[:-1])]
        check_siblings(
            findings,
            [
                Sibling(Entry(name, name, needs=need), Position(1, 1), (Position(1, 1),) * len(need))
                for name, need in zip(names, needs, strict=True)
            ],
        )
        assert len(findings.problems) == len(closing)


@given(st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)).map(lambda each: "".join(sorted(each)))))
def test_cycles_are_found_exactly(outline: dict[str, str]) -> None:
    """Needs are refused as a cycle exactly if they have no order, and what is drawn is a circle of real needs."""
    known = {name: [need for need in needs if need in outline] for name, needs in outline.items()}
    drawn = [message.partition(": ")[2].split(" → ") for message in said(outline) if "cycle" in message]
    left = dict(known)
    while free := [name for name, needs in left.items() if not any(need in left for need in needs)]:
        for name in free:
            del left[name]
    assert bool(drawn) == bool(left)
    for circle in drawn:
        assert circle[0] == circle[-1]
        assert all(need in known[name] for name, need in pairwise(circle))


def test_needs_become_ids() -> None:
    """A sibling's id and a path from the plan become full ids, each once, in the order they were written."""
    entry = Entry("x", "X", needs=("tokens", "oauth/api/routes", "oauth/tokens"))
    known = {"oauth/api/routes", "oauth/tokens"}
    resolved = resolve_needs(entry, parent_id="oauth", siblings={"tokens"}, known=known)
    assert resolved == ("oauth/tokens", "oauth/api/routes")


@pytest.mark.parametrize(("need", "hint"), [("api/routes", '"oauth/api/routes"'), ("oauth/nobody", "name a sibling")])
def test_a_need_that_no_loop_is_called(need: str, hint: str) -> None:
    """A path that leads to no loop is refused at its entry, with the plan in front where only that was forgotten."""
    entry = Entry("x", "X", needs=(need,), position=Position(4, 5))
    with pytest.raises(PlanError) as caught:
        resolve_needs(entry, parent_id="oauth", siblings=set(), known={"oauth/api/routes"}, source="plan.md")
    (problem,) = caught.value.problems
    assert problem.where == "plan.md:4:5"
    assert hint in problem.hint


@pytest.mark.parametrize(("need", "right"), [
    ("b", True), ("c", False), ("p/c", True), ("q/c/d", True), ("p/C!", False), ("/c", False), ("p/", False),
])  # fmt: skip
def test_which_needs_may_be_meant(need: str, right: bool) -> None:
    """A word is a sibling; what has slashes may be anywhere, if each part of it could be an id."""
    findings = Findings("f.md")
    names = {"a": (need,), "b": ()}
    at = Position(1, 1)
    check_siblings(findings, [Sibling(Entry(n, n, needs=x), at, tuple(at for _ in x)) for n, x in names.items()])
    assert (not findings.problems) == right


@pytest.mark.parametrize(("need", "right"), [
    ("b", True), ("c", False), ("p/b", True), ("p/c", False), ("q/x", True), ("q", False),
])  # fmt: skip
def test_which_needs_name_a_loop(need: str, right: bool) -> None:
    """A word must be a sibling, also where a plan is called so; a path must be known from the plan down."""
    ask = {"parent_id": "p", "siblings": {"a", "b"}, "known": {"p/a", "p/b", "q", "q/x"}}
    if right:
        assert resolve_needs(Entry("a", "a", needs=(need,)), **ask) == (need if "/" in need else f"p/{need}",)  # type: ignore[arg-type]
    else:
        with pytest.raises(PlanError, match="which no loop is called"):
            resolve_needs(Entry("a", "a", needs=(need,)), **ask)  # type: ignore[arg-type]
