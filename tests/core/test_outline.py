"""The outline as keys and values: what counts, what is refused, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.outline import (
    Artifact,
    Entry,
    Findings,
    Ladder,
    Marked,
    MarkedList,
    MarkedMap,
    MarkedScalar,
    Pair,
    Position,
    decode_entry,
    encode_entry,
    identity,
    outline_digest,
    read_outline,
)
from loopr.core.policy import NO_BUDGET, Budget, TypePolicy, default_types
from loopr.errors import PlanError

TYPES = default_types()
DEEP = {f"t{n}": TypePolicy(f"t{n}", f"t{n + 1}" if n < 11 else None) for n in range(12)}
AT = Position(1, 1)


def marked(value: Any, at: Position = AT) -> Marked:
    """Give plain values places: a key or an item is one line below the last, its value five columns further."""
    if isinstance(value, dict):
        places = [Position(at.line + index, at.col) for index in range(len(value))]
        return MarkedMap(
            at,
            tuple(
                Pair(key, place, marked(each, Position(place.line, place.col + 5)))
                for place, (key, each) in zip(places, value.items(), strict=True)
            ),
        )
    if isinstance(value, list):
        return MarkedList(
            at, tuple(marked(each, Position(at.line + index, at.col)) for index, each in enumerate(value))
        )
    return MarkedScalar(at, value, "" if value is None else value if isinstance(value, str) else json.dumps(value))


def read(
    fields: Any = None, body: str = "", type_name: str = "plan", types: Mapping[str, TypePolicy] = TYPES, **more: Any
) -> Artifact:
    """Read an artifact from plain values."""
    tree = None if fields is None else marked(fields)
    return read_outline(
        tree,
        body,
        type_name=type_name,
        types=types,
        fallback_id="file-name",
        findings=Findings("f.md"),
        **more,
    )


def refusals(*args: Any, **more: Any) -> str:
    """Read an artifact that must be refused, and return all problems as text."""
    with pytest.raises(PlanError) as caught:
        read(*args, **more)
    assert all(problem.hint and problem.where.startswith("f.md:") for problem in caught.value.problems)
    return str(caught.value)


def entry(**more: Any) -> Entry:
    """Read a plan with one entry of these keys."""
    (only,) = read({"specs": [{"id": "a", **more}]}).entries
    return only


def test_a_full_artifact() -> None:
    """Every key of an artifact and of an entry is read into its place."""
    full = {
        "title": "A",
        "body": "\nwords\n",
        "needs": ["b"],
        "files": ["src/**"],
        "run": ["prog", "-x", 1],
        "leaf": False,
        "check": "make test",
        "budget": {"tokens": 5, "usd": 1.25, "secs": 0},
        "parallel": False,
    }
    fields = {"id": "x", "title": "T", "project": "api", "parallel": False, "budget": {"usd": 3}, "loopr": {"a": 1}}
    artifact = read(fields | {"specs": [{"id": "a", **full}, {"id": "b"}, {"id": "c", "agent": "opus", "leaf": True}]})
    a, b, c = artifact.entries
    assert (artifact.id, artifact.title, artifact.project, artifact.parallel) == ("x", "T", "api", False)
    assert artifact.budget == Budget(micro_usd=3_000_000)
    assert artifact.declares
    assert a == Entry(
        "a",
        "A",
        "words",
        ("b",),
        ("src/**",),
        ("prog", "-x", "1"),
        check="make test",
        budget=Budget(5, 1_250_000, 0),
        parallel=False,
        leaf=False,
    )
    assert b == Entry("b", "b")
    assert c == Entry("c", "c", agent="opus", leaf=True)


def test_the_default_id_and_title() -> None:
    """Title and id come from the keys, else from the first heading, else from the file name."""
    assert [
        (a.id, a.title) for a in (read({"title": "Add OAuth"}), read(None, "x\n# Add it\n## B"), read(None, "x"))
    ] == [
        ("add-oauth", "Add OAuth"),
        ("add-it", "Add it"),
        ("file-name", "file-name"),
    ]
    assert entry().title == "a"
    assert read({"specs": [{"title": "Token storage"}]}).entries[0].id == "token-storage"


def test_a_word_that_looks_like_another_kind() -> None:
    """An id or a title that YAML takes for a number or a truth is read as it is spelt."""
    (only,) = read({"title": 7, "specs": [{"id": 1, "title": True}]}).entries
    assert (only.id, only.title) == ("1", "true")


@pytest.mark.parametrize(
    ("type_name", "key"),
    [("plan", "specs"), ("plan", "children"), ("spec", "phases"), ("phase", "tasks"), ("phase", "codes")],
)
def test_the_keys_of_an_outline(type_name: str, key: str) -> None:
    """Children are declared under the plural of their type, and always under `children`."""
    assert [each.id for each in read({key: [{"id": "a"}]}, type_name=type_name).entries] == ["a"]


def test_plurals() -> None:
    """The plural of a type of an own ladder is regular English."""
    types = {"epic": TypePolicy("epic", "story"), "story": TypePolicy("story", "box"), "box": TypePolicy("box")}
    ladder = Ladder(types)
    assert [ladder.keys(name)[0] for name in ("epic", "story")] == ["stories", "boxes"]
    assert ladder.keys("box") == ()
    assert ladder.levels() == ("epic", "story", "box")


def test_an_empty_outline_is_an_outline() -> None:
    """`specs: []` declares no child; no key at all declares nothing."""
    assert (read({"specs": []}).declares, read({"specs": None}).declares, read({}).declares) == (True, True, False)
    assert read({"specs": []}).entries == read({}).entries == ()


def test_a_phase_that_declares_none_gets_one_code() -> None:
    """The parent of a leaf implies one child, which stands for the whole artifact; other types imply nothing."""
    artifact = read({}, "# Do it\nnow", type_name="phase", whole="everything")
    assert artifact.entries == (Entry("code", "Do it", "everything", implied=True),)
    assert not artifact.declares
    assert read({"tasks": [{"id": "x"}]}, type_name="phase").entries == (Entry("x", "x"),)
    assert read({}, type_name="spec").entries == read({}, type_name="code").entries == ()


def test_an_unknown_key_names_the_nearest() -> None:
    """A misspelt key is refused at its place with the key that was meant."""
    assert 'f.md:2:1 unknown key "proyect" (did you mean "project"?)' in refusals({"title": "x", "proyect": "y"})
    assert 'did you mean "needs"?' in refusals({"specs": [{"id": "a", "need": "b"}]})
    assert "the children of type plan are called `specs`" in refusals({"phases": []})
    cure = "to leave out the levels between: `types: {plan: {child: code}}` in loopr.yml"
    assert cure in refusals({"tasks": []}) and "leave out" not in refusals({"codez": []})
    assert "the type code has no children" in refusals({"tasks": [{"id": "a", "children": []}]}, type_name="phase")


def test_all_problems_at_once_in_order() -> None:
    """A file with several mistakes is refused once, with all of them in the order of their places."""
    fields = {"titel": "x", "parallel": "maybe", "specs": [{"id": "a/b"}, {"id": "c", "needs": ["nobody"]}, []]}
    with pytest.raises(PlanError) as caught:
        read(fields)
    places = [problem.where for problem in caught.value.problems]
    assert places == ["f.md:1:1", "f.md:2:6", "f.md:3:11", "f.md:5:6", "f.md:5:11"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"title": ["x"]}, "title: must be a text, not a list"),
        ({"body": "a\0b"}, "body: has a NUL"),
        ({"body": "a\ud800b"}, "half a character"),
        ({"needs": {"a": 1}}, "needs: must be a list of texts"),
        ({"needs": ["../x"]}, 'needs "../x"'),
        ({"files": ["../x"]}, "leaves the repository"),
        ({"files": "/etc/passwd"}, "is not a path inside the repository"),
        ({"run": []}, "run: must name a program first"),
        ({"run": " "}, "run: must not be empty"),
        ({"check": {}}, "check: must be a list of texts"),
        ({"parallel": "no"}, "parallel: must be true or false"),
        ({"budget": 5}, "budget: must be a mapping"),
        ({"budget": {"token": 5}}, 'did you mean "tokens"?'),
        ({"budget": {"tokens": 1.5}}, "budget.tokens: must be a whole number"),
        ({"budget": {"tokens": -1}}, "budget.tokens"),
        ({"budget": {"tokens": 10**16}}, "budget.tokens"),
        ({"budget": {"tokens": 10**4000}}, "budget.tokens"),
        ({"budget": {"tokens": True}}, "budget.tokens"),
        ({"budget": {"usd": 0.0000001}}, "budget.usd"),
        ({"budget": {"usd": "five"}}, "budget.usd"),
        ({"specs": []}, "the children of type spec are called `phases`"),
        ({"phases": {}}, "the children of type spec must be a list"),
        ({"phases": {"build": {"run": "make"}}}, "write `- id: build` in place of `build:`"),
        ({"phases": {"id": "build", "run": "make"}}, "write `- id: build`, with a dash"),
        ({"phases": [{"build": {"run": "make"}}]}, "write `- id: build`, with the other keys below it"),
        ({"phases": [{"build": None, "run": "make"}]}, "write `- id: build`, with the other keys below it"),
        ({"phases": [{"tokens": "Token storage"}]}, "write `- {id: tokens, title: Token storage}`"),
        ({"phases": [{"Fix it": "the bug"}]}, 'write `- "Fix it: the bug"`'),
        ({"phases": [{"lint": "ruff check"}]}, 'write `- {id: lint, run: "ruff check"}`'),
        ({"phases": [{"test": "pytest -q"}]}, 'write `- {id: test, run: "pytest -q"}`'),
        ({"phases": [{"tidy": 'sh ./x "y"'}]}, 'write `- {id: tidy, run: "sh ./x \\"y\\""}`'),
        ({"phases": [{"Lint it": "ruff check"}]}, 'write `- {title: Lint it, run: "ruff check"}`'),
        ({"phases": [{"test": "pytest", "needs": ["a"]}]}, '`- id: test`, and below it `run: "pytest"`'),
        ({"phases": [{"test": "pytest", "run": "make"}]}, "(it is called `check` here)"),
        ({"phases": [{"test": "All of it", "needs": ["a"]}]}, "(it is called `check` here)"),
        ({"phases": [{"command": "make"}]}, "(it is called `run` here)"),
        ({"phases": [{"name": "make"}]}, "(it is called `title` here)"),
        ({"phases": [{"titel": "Make it"}]}, 'did you mean "title"?'),
        ({"phases": [{"a": "Write it, then"}]}, 'write `- {id: a, title: "Write it, then"}`'),
        ({"phases": {"lint": "ruff check"}}, '{id: lint, run: "ruff check"}`, and so for each'),
        ({"phases": [{"-id": "a"}]}, "write `- id: ...`: a plain dash, a blank, then the key"),
        ({"phases": [{"\u2013 id": "a"}]}, "write `- id: ...`: a plain dash, a blank, then the key"),
        ({"phases": ["id:a"]}, "no blank after the colon of this entry (write `id: a`)"),
        ({"command": "make"}, "(it is called `run` here)"),
        ({"Run": "make"}, '(write "run")'),
        ({"test": "make"}, "(it is called `check` here)"),
        ({"depends-on": ["a"]}, "(it is called `needs` here)"),
        ({"description": "x"}, "(it is called `body` here)"),
        ({"sequential": True}, "`parallel: false`"),
        ({"type": "code"}, "the level says the type: this is a spec"),
        ({"timeout": 5}, "`types.spec.timeouts.wall_secs` in loopr.yml"),
        ({"retries": 5}, "`types.spec.max_iterations` in loopr.yml"),
        ({"steps": []}, "the children of type spec stand under `phases`"),
        ({"approve": True}, "`types.spec.approve` in loopr.yml"),
        ({"labels": []}, "say it in `body`"),
        ({"phases": [{"id": "p", "tasks": [{"id": "t", "steps": ["x"]}]}]}, "the type code has no children"),
        ({"phases": [{"id": "p"}], "children": []}, "both declare the children"),
    ],
)
def test_a_value_of_the_wrong_kind(keys: dict[str, Any], said: str) -> None:
    """A value that an entry cannot have is refused in words that say what it may have."""
    assert said in refusals({"specs": [{"id": "a", **keys}]})


@pytest.mark.parametrize(
    ("has_command", "text", "said"),
    [
        (False, "fix the lints", '{id: a, run: "fix the lints"}`, or `title:` in place of `run:`'),
        (False, "Fix the lints", "write `- {id: a, title: Fix the lints}`"),
        (True, "fix the lints", "write `- {id: a, title: fix the lints}`"),
        (True, "make lints", 'write `- {id: a, run: "make lints"}`'),
    ],
)
def test_a_name_before_what_nobody_would_do(has_command: bool, text: str, said: str) -> None:
    """Where the last type has no command, the hint takes words for one that may be one."""
    types = TYPES | {"code": replace(TYPES["code"], has_command=has_command)}
    assert said in refusals({"tasks": [{"a": text}]}, type_name="phase", types=types)


def test_a_name_before_a_command_that_a_loop_wrote() -> None:
    """The hint names no `run` where a loop may not say one."""
    said = refusals({"specs": [{"lint": "ruff check"}]}, written_by_loop=True)
    assert "write `- {id: lint, title: ruff check}`" in said


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("run", "`run` stands in an entry under `specs`, or for the plan itself `types.plan.run` in loopr.yml"),
        ("command", "`run` stands in an entry under `specs`"),
        ("needs", "`needs` stands in an entry under `specs`"),
        ("name", "it is called `title` here"),
        ("description", "what is to be done stands as text below the front matter"),
        ("jobs", "the children of type plan stand under `specs`"),
        ("types", "settings stand in loopr.yml"),
    ],
)
def test_a_word_from_elsewhere_at_the_top(key: str, said: str) -> None:
    """A key that other programs have, or that belongs elsewhere, is refused with the one that counts here."""
    assert said in refusals({key: "x"})


def test_a_bare_text_is_an_entry() -> None:
    """A text in the list of children is the title of one, and may be needed by its id or its title."""
    fields = {"specs": ["Write the parser", 2, {"id": "a", "needs": ["Write the parser", "2"]}]}
    assert [(each.id, each.title) for each in read(fields).entries] == [
        ("write-the-parser", "Write the parser"),
        ("2", "2"),
        ("a", "a"),
    ]
    assert read(fields).entries[2].needs == ("write-the-parser", "2")
    assert read(fields, written_by_loop=True).declares
    assert "must be a title or a mapping, not nothing" in refusals({"specs": [None]})


@given(st.integers(0, 10**12))
def test_money_is_exact(micro_usd: int) -> None:
    """An amount written in dollars with six decimals is exactly that many millionths."""
    text = f"{micro_usd // 10**6}.{micro_usd % 10**6:06d}"
    usd = MarkedMap(AT, (Pair("usd", AT, MarkedScalar(AT, float(text), text)),))
    fields = MarkedMap(AT, (Pair("budget", AT, usd),))
    artifact = read_outline(fields, "", type_name="plan", types=TYPES, fallback_id="x", findings=Findings("f.md"))
    assert artifact.budget.micro_usd == micro_usd


def test_what_is_said_twice_counts_once() -> None:
    """A need or a path that is repeated is one need and one path."""
    fields = {"specs": [{"id": "a", "needs": ["b", "b"], "files": ["x", "y", "x"]}, {"id": "b"}]}
    assert (read(fields).entries[0].needs, read(fields).entries[0].files) == (("b",), ("x", "y"))


def test_a_title_counts_as_a_need() -> None:
    """An entry may need a sibling by its title."""
    fields = {"specs": [{"title": "Token storage"}, {"id": "a", "needs": ["Token storage"]}]}
    assert read(fields).entries[1].needs == ("token-storage",)


FOO = {"id": "b", "foo": 1, "needs": ["a"]}


@pytest.mark.parametrize(
    ("keys", "also"),
    [
        ({"tasks": [{"id": "a", "bar": 1}, FOO]}, ['"tasks" (the children of', '"bar"', '"foo"']),
        ({"steps": [{"id": "a"}, FOO]}, ['"steps" (the children of', '"foo"']),
        ({"spces": [{"id": "a"}, FOO]}, ['"spces" (did you mean "specs"?)', '"foo"']),
        ({"specs": [{"name": "a", "phases": [{"id": "c", "bar": 1}]}, FOO]}, ['"bar"', '"foo"']),
        ({"specs": [{"a": None, "bar": 1, "phases": [FOO | {"needs": []}]}]}, ['"bar"', '"foo"']),
        ({"specs": [{"a": {"bar": 1}}, FOO]}, ['"bar"', '"foo"']),
        ({"specs": [{"a": "pytest -q", "check": "make c"}, FOO]}, ['"foo"']),
        ({"specs": [{"- run": "make a", "id": "a", "bar": 1}, FOO]}, ['"bar"', '"foo"']),
        ({"specs": {"a": {"bar": 1}, "b": {"foo": 1, "needs": ["a"]}}}, ['"bar"', '"foo"']),
        ({"specs": {"a": "make a", "b": {"foo": 1}}}, ['"foo"']),
        ({"specs": {"id": "a", "bar": 1}}, ['"bar"']),
        ({"specs": [{"id": "a", "tasks": [{"id": "c", "bar": 1}]}, FOO]}, ['"bar"', '"foo"']),
    ],
)
def test_all_unknown_keys_are_told_at_once(keys: dict[str, Any], also: list[str]) -> None:
    """What is wrong with an entry, or with the key of the children, hides nothing below it."""
    said = refusals(keys)
    for words in also:
        assert f"unknown key {words}" in said
    assert "is not declared here" not in said and "would never be used" not in said


def test_an_entry_needs_a_name() -> None:
    """An entry without id and title is refused."""
    assert "an entry needs an id or a title" in refusals({"specs": [{"body": "x"}]})
    assert "an entry needs an id or a title" in refusals({"specs": [{"title": "\x1b[0m\n"}]})


@pytest.mark.parametrize("key", ["run", "agent", "check", "leaf"])
def test_work_and_children_exclude_each_other(key: str) -> None:
    """An entry with children completes by declaration, so a command or a check beside them is an error."""
    own = {key: True if key == "leaf" else "x"}
    assert f"`{key}` would never be used" in refusals({"specs": [{"id": "a", **own, "phases": [{"id": "p"}]}]})


@pytest.mark.parametrize("rule", ["judged", "reviewed", "approve"])
def test_children_do_not_pass_over_a_judge(rule: str) -> None:
    """Nested children under a type that is checked, reviewed or approved are an error; plain entries are not."""
    types = TYPES | {"spec": replace(TYPES["spec"], **{rule: True})}
    assert "would pass over" in refusals({"specs": [{"id": "a", "phases": [{"id": "p"}]}]}, types=types)
    assert read({"specs": [{"id": "a"}]}, types=types).entries


@pytest.mark.parametrize("key", ["run", "agent", "check", "leaf", "budget", "priority"])
def test_what_a_loop_may_not_say_of_its_children(key: str) -> None:
    """In an artifact that a loop wrote, commands and budgets are refused at every depth unless its type is trusted."""
    value = {"budget": {"tokens": 5}, "priority": 5, "leaf": False}.get(key, "x")
    work = {} if key in ("run", "agent") else {"run": "make"}
    fields = {"specs": [{"id": "a", "phases": [{"id": "p", **work, key: value}]}]}
    assert "trust_outline" in refusals(fields, written_by_loop=True)
    assert read(fields).declares
    trusted = TYPES | {"plan": replace(TYPES["plan"], trust_outline=True)}
    assert read(fields, types=trusted, written_by_loop=True).declares


@pytest.mark.parametrize("number", [-1000, -1, 0, 7, 1000, None])
def test_a_priority_is_a_whole_number_up_to_a_thousand(number: int | None) -> None:
    """A plan and an entry may say how much sooner than others they go; it makes no other work of either."""
    artifact = read({"priority": number, "specs": [{"id": "a", "priority": number}, {"id": "b"}]})
    assert (artifact.priority, [each.priority for each in artifact.entries]) == (number, [number, None])
    said, silent = artifact.entries
    assert identity(said) == identity(replace(said, priority=None))
    assert decode_entry(encode_entry(said)) == said
    assert (outline_digest(replace(silent, children=(said,))) != outline_digest(silent)) is True


@pytest.mark.parametrize("value", [1001, -1001, 1.5, "high", True, [5], {"is": 5}])
def test_what_is_no_priority(value: object) -> None:
    """Anything else is refused, with what is wanted."""
    words = "must be a whole number from -1000 to 1000"
    assert words in refusals({"priority": value, "specs": [{"id": "a"}]})
    assert words in refusals({"specs": [{"id": "a", "priority": value}]})


def test_a_priority_that_nobody_would_read() -> None:
    """At the top of a file below the plan it would never count, and a loop may not say its own plan's."""
    assert "stands in its parent's outline" in refusals({"priority": 5}, type_name="spec", depth=1)
    assert "trust_outline" in refusals({"priority": 5, "specs": [{"id": "a"}]}, written_by_loop=True)


def test_what_a_loop_may_say_of_its_children() -> None:
    """A loop may name, describe, order and nest its children."""
    told = {"title": "A", "body": "b", "needs": ["b"], "files": ["x"], "parallel": False, "phases": [{"id": "p"}]}
    assert read({"specs": [{"id": "a", **told}, {"id": "b"}]}, written_by_loop=True).declares


def test_the_limit_of_children() -> None:
    """1,000 children are read, 1,001 are refused, in both forms."""
    assert len(read({"specs": [{"id": f"e{n}"} for n in range(1000)]}).entries) == 1000
    assert "declares 1001 children, the limit is 1000" in refusals({"specs": [{"id": f"e{n}"} for n in range(1001)]})
    items = "".join(f"- e{n}: E\n" for n in range(1001))
    assert "declares 1001 children, the limit is 1000" in refusals(None, f"## Specs\n{items}")


@pytest.mark.parametrize("depth", [0, 3, 7])
def test_the_limit_of_depth(depth: int) -> None:
    """Loops down to depth 8 are read and those at depth 9 refused, wherever the artifact itself stands."""

    def nested(levels: int) -> dict[str, Any]:
        return {"children": [{"id": "a", **(nested(levels - 1) if levels > 1 else {})}]}

    above = {"type_name": f"t{depth}", "types": DEEP, "depth": depth}
    assert read(nested(8 - depth), **above).entries
    assert "depth 9, the limit is 8" in refusals(nested(9 - depth), **above)


def test_the_limit_of_depth_for_headings() -> None:
    """A list under a heading is as bound to the depth as keys are."""
    assert "depth 9, the limit is 8" in refusals(None, "## T9s\n- a: A", type_name="t8", types=DEEP, depth=8)


def test_both_forms() -> None:
    """Where keys and headings declare children the keys count, and a warning says where the list is."""
    artifact = read({"specs": [{"id": "a"}]}, "# T\n## Specs\n- b: B\n", body_line=10)
    assert [each.id for each in artifact.entries] == ["a"]
    assert artifact.warnings == ("f.md:12:1 this list is not read: the front matter declares `specs`",)


def test_front_matter_that_is_no_mapping() -> None:
    """A list or a word as front matter is refused; nothing at all is fine."""
    assert "front matter must be keys and values" in refusals(["a"])
    assert "front matter must be keys and values" in refusals("word")
    keys = marked(None)
    found = Findings("f")
    empty = read_outline(keys, "", type_name="plan", types=TYPES, fallback_id="x", findings=found)
    assert empty.id == "x"


WORK = {"title": "T", "body": "B", "files": ("f",), "run": ("r",), "agent": "a", "check": "c"}
AROUND = {
    "needs": ("x",),
    "budget": Budget(1),
    "parallel": False,
    "children": (Entry("n", "n"),),
    "position": Position(9, 9),
}


@pytest.mark.parametrize("key", WORK)
def test_what_makes_it_other_work(key: str) -> None:
    """A change of what is to be done changes the identity."""
    assert identity(replace(Entry("a", "a"), **{key: WORK[key]})) != identity(Entry("a", "a"))


@pytest.mark.parametrize("key", AROUND)
def test_what_leaves_the_work_as_it_is(key: str) -> None:
    """Needs, budget, place and nested children are no part of the identity."""
    assert identity(replace(Entry("a", "a"), **{key: AROUND[key]})) == identity(Entry("a", "a"))


def test_a_command_line_is_not_a_vector() -> None:
    """The same words as a text and as a list are two different commands."""
    assert identity(Entry("a", "a", run="x")) != identity(Entry("a", "a", run=("x",)))


def test_the_outline_digest() -> None:
    """It is empty without children, and changes with anything a child says, at every depth, and with their order."""
    child, other = Entry("c", "c"), Entry("d", "d")
    deeper = [replace(child, **{key: AROUND[key]}) for key in ("needs", "budget", "parallel", "children")]
    outlines = [(child,), (other,), (child, other), (other, child), *((each,) for each in deeper)]
    digests = [outline_digest(Entry("a", "a", children=each)) for each in outlines]
    assert outline_digest(Entry("a", "a", budget=Budget(1))) == ""
    assert len({*digests, ""}) == len(outlines) + 1
    assert outline_digest(Entry("z", "z", children=(child,))) == digests[0]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
COMMANDS = st.none() | TEXTS | st.lists(TEXTS, min_size=1, max_size=3).map(tuple)
LIMITS = st.none() | st.integers(0, 10**9)
ENTRIES = st.recursive(
    st.builds(
        Entry,
        id=TEXTS,
        title=TEXTS,
        body=TEXTS,
        needs=st.lists(TEXTS, max_size=2).map(tuple),
        files=st.lists(TEXTS, max_size=2).map(tuple),
        inputs=st.lists(TEXTS, max_size=2).map(tuple),
        run=COMMANDS,
        agent=st.none() | TEXTS.filter(bool),
        check=COMMANDS,
        budget=st.just(NO_BUDGET) | st.builds(Budget, LIMITS, LIMITS, LIMITS),
        parallel=st.none() | st.booleans(),
        implied=st.booleans(),
    ),
    lambda inner: st.builds(lambda one, more: replace(one, children=tuple(more)), inner, st.lists(inner, max_size=3)),
    max_leaves=6,
)


@given(ENTRIES)
def test_an_entry_survives_the_journal(original: Entry) -> None:
    """Encoding to JSON and back gives an equal entry with the same digests."""
    back = decode_entry(json.loads(json.dumps(encode_entry(original))))
    assert back == original
    assert (identity(back), outline_digest(back)) == (identity(original), outline_digest(original))


def test_a_later_version_may_add_keys() -> None:
    """An entry that a later version wrote is read without what this one does not know."""
    assert decode_entry({"id": "a", "title": "A", "mood": "good"}) == Entry("a", "A")
