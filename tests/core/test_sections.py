"""Which lines of a section are items, and what is said of those that are none."""

from __future__ import annotations

import pytest

from loopr.errors import PlanError
from tests.core.test_outline_headings import read

GROUPS = "f.md:2:1 `### Back` only groups the items of the lists, and is none itself"
NEEDS = "f.md:5:1 `Needs:` is an item of its own here; indent it below the item that it is about"
DEEP = "f.md:3:1 `#### B` only groups the items of the lists, and is none itself; to make it one"
ABOVE = "f.md:2:1 `#### A` is no item, and nothing below it is read; to make it one write `### A`"
RUN = "f.md:3:3 `Run:` of an item is read as its text"


def test_headings_are_items_where_no_list_is() -> None:
    """Each heading of level 3 is a child; what follows is its text, with the keys of any item."""
    body = (
        "# P\n\n## Specs\nSome words.\n\n"
        "### Add a licence\nMIT.\n\n```py\nif a:\n    - Needs: b\n```\n#### More\n\n"
        "### readme: Add a readme ##\n- Needs: Add a licence\n- **Files:** README.md\n\nSay it.\n"
        "## Notes\n### None\n"
    )
    artifact = read(body)
    first, second = artifact.entries
    assert (artifact.title, artifact.warnings) == ("P", ())
    assert (first.id, first.title, first.position.line) == ("add-a-licence", "Add a licence", 6)
    assert first.body == "MIT.\n\n```py\nif a:\n    - Needs: b\n```\n#### More"
    assert (second.id, second.title, second.body) == ("readme", "Add a readme", "Say it.")
    assert (second.needs, second.files) == (("add-a-licence",), ("README.md",))


def test_an_item_is_no_title() -> None:
    """A plan is not called after the first heading that is one of its children."""
    assert read("## Specs\n### One\n").title == "x"
    assert read("## Specs\n### One\n# Two\n").title == "Two"
    assert read("## Specs\n- one\n### Later\n").title == "Later"


@pytest.mark.parametrize(
    ("body", "ids", "said"),
    [
        ("### Back\n- one\n### Front\n- two\n", ["one", "two"], [GROUPS]),
        ("- one\n### Notes\nwords\n", ["one"], ["f.md:3:1 `### Notes` only groups"]),
        ("### Back\n- Needs: Front\n### Front\n", ["back", "front"], []),
        ("### Back\n- Run: make\n### Front\n", ["back", "front"], [RUN]),
        (
            "### Back\n- [ ] `make`\n### Front\n- Needs: back\n- [ ] `make x`\n",
            ["make", "needs", "make-x"],
            [GROUPS, NEEDS],
        ),
        ("### Phase 1\n- [ ] T001 [P] one\n### Phase 2\n- [ ] T2\n", ["t001-p-one", "t2"], []),
        ("### One\n\n## Specs\n- two\n", ["one", "two"], []),
        ("- one\n#### B\nrun: make x\n", ["one"], [DEEP]),
        ("- [ ] T001 one\n#### B\n- [ ] T2\n", ["t001-one", "t2"], []),
        ("- one\n  #### B\n  words\n", ["one"], []),
        ("#### A\nrun: make x\n### One\n", ["one"], [ABOVE]),
        ("#### A\n- Run: make x\n### One\n", ["one"], [ABOVE]),
    ],
)
def test_headings_beside_lists(body: str, ids: list[str], said: list[str]) -> None:
    """Items of a list count, which a remark says of the headings; lines of keys are none."""
    artifact = read(f"## Specs\n{body}")
    assert [each.id for each in artifact.entries] == ids
    pairs = zip(artifact.warnings, said, strict=True)
    assert all(each.startswith(wanted) for each, wanted in pairs), artifact.warnings


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ("### One\n#### A\nwords\n\nrun: make x\n", "6:1"),
        ("### One\n#### A ##\n- run: make x\n", "4:3"),
        ("- [ ] **One**: b\n  #### A\n  **run:** make x\n", "4:5"),
        ("### One\n#### A\n```\nrun: make x\n```\nRun: all of it.\n", ""),
    ],
)
def test_a_command_below_a_heading_of_an_item(body: str, at: str) -> None:
    """It is text of the item, which is said with the heading and how front matter has it."""
    artifact = read(f"## Specs\n{body}")
    assert [each.title for each in artifact.entries] == ["One"]
    said = "`run:` is read as text of `One`, for the heading `A` is no item"
    cure = "in front matter it counts: `- title: A` with its `run: ...`, in `children:` of `One`"
    assert artifact.warnings == ((f"f.md:{at} {said}; {cure}",) if at else ())


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("run: make x", True),
        ("Run: make x", True),
        ("Run: the whole of it", False),
        ("check: the page", True),
        ("Check: the page", False),
    ],
)
def test_a_key_of_front_matter_without_a_dash(line: str, warned: bool) -> None:
    """A line of an item that begins with one is remarked on, unless it reads as a sentence."""
    artifact = read(f"## Specs\n### One\n{line}\n")
    key = line.partition(":")[0]
    said = f"f.md:3:1 `{key}:` of an item is read as its text; in front matter it counts"
    assert [each[: len(said)] for each in artifact.warnings] == [said] * warned


@pytest.mark.parametrize(
    ("body", "ids", "line"),
    [
        ("- one\n* other\n+ third\n", ["one", "other", "third"], 0),
        ("- one\n1. x\n2. y\n", ["one"], 3),
        ("- one\n\n1. x\n\n1. y\n- two\n1. z\n", ["one", "two"], 4),
        ("1. one\n\n- x\n", ["one"], 4),
        ("- one\n  1. x\n", ["one"], 0),
        ("1. one\n- Files: x\n2. two\n", ["one", "two"], 0),
        ("- one\n\nwords\n\n1. two\n", ["one", "two"], 0),
        ("- one\n### More\n1. two\n", ["one", "two"], 0),
    ],
)
def test_a_list_of_another_kind(body: str, ids: list[str], line: int) -> None:
    """One that follows an item without an indent is its text, which is said once a section."""
    artifact = read(f"## Specs\n{body}")
    assert [each.id for each in artifact.entries] == ids
    said = f"f.md:{line}:1 this list is the text of `one`, for its marks are others"
    found = [each[: len(said)] for each in artifact.warnings if "this list" in each]
    assert found == [said] * bool(line)


def test_a_heading_without_words() -> None:
    """An empty heading among the children is refused with its place."""
    said = r"f.md:2:1 this item has no title \(write `### spec-id: Its title`"
    with pytest.raises(PlanError, match=said):
        read("## Specs\n###\n### One\n")
