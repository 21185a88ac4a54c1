"""The outline as headings and lists: a plain document is a plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.outline import Artifact, Entry, Findings, read_outline
from loopr.core.policy import default_types
from loopr.errors import PlanError

TYPES = default_types()


def read(body: str, type_name: str = "plan", body_line: int = 1) -> Artifact:
    """Read a document without front matter."""
    return read_outline(
        None, body, type_name=type_name, types=TYPES, fallback_id="x", findings=Findings("f.md"), body_line=body_line
    )


def ids(body: str, type_name: str = "plan") -> list[str]:
    """Return the ids of what a document declares by itself."""
    return [each.id for each in read(body, type_name).entries if not each.implied]


def test_a_plan_of_specs() -> None:
    """Named and bold items under `## Specs` are children, and a `spec-` prefix is dropped."""
    body = "# Add OAuth\n\n## Specs\n\n- tokens: Token storage\n- **Token use**: How it is used.\n* spec-api: The API\n"
    artifact = read(body)
    assert (artifact.title, artifact.declares) == ("Add OAuth", True)
    assert artifact.entries == (
        Entry("tokens", "Token storage"),
        Entry("token-use", "Token use", "How it is used."),
        Entry("api", "The API"),
    )


def test_a_spec_of_phases() -> None:
    """Numbered items carry their indented text, files and needs."""
    body = (
        "## Phases\n1. **Create migration**\n   Write it.\n\n   - Files: a.sql, `b.sql`\n   - keep me\n"
        "2. **Run it**\n   - Needs: create-migration\n   - **Files:** c\n"
    )
    assert read(body, "spec").entries == (
        Entry("create-migration", "Create migration", "Write it.\n\n- keep me", files=("a.sql", "b.sql")),
        Entry("run-it", "Run it", needs=("create-migration",), files=("c",)),
    )


@pytest.mark.parametrize("heading", ["## Specs", "## specs to create", "## SPECS ##", "  ## **Specs**:", "##\tSpecs"])
def test_the_headings_that_open_an_outline(heading: str) -> None:
    """The plural of the child's type opens an outline at level 2, in any case."""
    assert ids(f"{heading}\n- a: A\n") == ["a"]


@pytest.mark.parametrize(
    "heading", ["# Specs", "### Specs", "##Specs", "## Our specs", "## Phases", "    ## Specs", "Specs"]
)
def test_the_headings_that_do_not(heading: str) -> None:
    """Another level, another word or another type's children are prose."""
    assert not read(f"{heading}\n- a: A\n").declares


@pytest.mark.parametrize("heading", ["## Tasks", "## Codes"])
def test_tasks_are_code_loops(heading: str) -> None:
    """A phase's tasks are its code loops."""
    assert ids(f"{heading}\n- [ ] a: A\n- [x] b: B\n", "phase") == ["a", "b"]


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n{}\n```",
        "~~~ text\n{}\n~~~",
        "````\n```\n{}\n````",
        "~~~\n```\n{}\n~~~",
        "<!-- {} -->",
        "<!--\n{}\n-->",
        "text <!-- begins\n{}\nends -->",
    ],
)
def test_code_and_comments_are_never_an_outline(hidden: str) -> None:
    """An outline inside a fence or a comment is not there, and what follows is read again."""
    artifact = read(hidden.format("## Specs\n- no: No") + "\n\n## Specs\n- yes: Yes\n")
    assert [each.id for each in artifact.entries] == ["yes"]
    assert artifact.warnings == ()


@pytest.mark.parametrize(("opening", "word"), [("```", "code"), ("~~~", "code"), ("<!--", "comment")])
def test_what_is_never_closed_is_named(opening: str, word: str) -> None:
    """A fence or comment that is never closed hides the rest, and a warning says where it begins."""
    artifact = read(f"# T\n{opening}\n## Specs\n- a: A\n", body_line=5)
    assert not artifact.declares
    assert artifact.warnings == (f"f.md:6:1 this {word} is never closed; nothing after it is an outline",)


def test_a_comment_between_backticks_is_text() -> None:
    """Inline code that shows how a comment begins does not hide the rest of the document."""
    assert ids("Use `<!--` to begin.\n\n## Specs\n- a: A\n") == ["a"]


def test_code_inside_an_item_is_its_text() -> None:
    """Fenced code below an item stays in its body as it stands, lists and `Files:` lines in it included."""
    body = "## Specs\n- **One**\n  ```sh\n  - Files: no\n    - a: A\n  ```\n- two: Two\n"
    one, two = read(body).entries
    assert one == Entry("one", "One", "```sh\n- Files: no\n  - a: A\n```")
    assert two.id == "two"


def test_where_a_list_ends() -> None:
    """A paragraph after a blank line, a rule or the next section ends an item; a line right below goes on with it."""
    body = "## Specs\n- **A**\nmore\n\nprose\n- **B**\n\n---\nprose\n### Sub\n- **C**\n## Other\n- **D**\n"
    assert [(each.id, each.body) for each in read(body).entries] == [("a", "more"), ("b", ""), ("c", "")]


def test_nested_lists_are_text() -> None:
    """Only the items of the outermost list are children."""
    (only,) = read("## Specs\n- a: A\n    - b: B\n    1. c\n").entries
    assert (only.id, only.body) == ("a", "- b: B\n1. c")


def test_a_list_of_another_kind_belongs_to_the_item() -> None:
    """Bullets that stand below a numbered item without an indent describe it and are no siblings."""
    (only,) = read("## Phases\n1. **A**\n- Files: x\n- words\n", "spec").entries
    assert only == Entry("a", "A", "- words", files=("x",))


def test_needs_in_words() -> None:
    """A need may be the id, the id with its prefix, the title or a path; `none` is nobody."""
    body = (
        "## Specs\n- **Token storage**\n- b: B\n  - Needs: token-storage, spec-c\n- c: C\n  - Needs: Token storage\n"
        "- d: D\n  - Needs: x/b/p\n- e: E\n  - needs: none\n"
    )
    assert [each.needs for each in read(body).entries] == [
        (),
        ("token-storage", "c"),
        ("token-storage",),
        ("x/b/p",),
        (),
    ]


def test_a_title_beside_another_id_is_a_need() -> None:
    """A title counts as a need where the id was not made from it; one that is nobody's is refused as it was written."""
    body = "## Specs\n- index: Build the index\n- rank: Rank\n  - Needs: Build the index\n"
    assert read(body).entries[1].needs == ("index",)
    with pytest.raises(PlanError, match='f.md:4:12 needs "Build the house", which is not declared here'):
        read(body.replace("Needs: Build the index", "Needs: Build the house"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  Needs: a", "f.md:3:3 `Needs:` of an item is read as its text; what counts is `- Needs: a`"),
        ("  - Depends on: a", "f.md:3:5 `Depends on:` of an item is read as its text; what counts is `- Needs: a`"),
        ("  - **Blocked by**: a", "f.md:3:7 `Blocked by:` of an item is read as its text; what counts is `- Needs: a`"),
        ("  files: x", "f.md:3:3 `files:` of an item is read as its text; what counts is `- Files: x`"),
        ("  - Needs: a", ""),
        ("  It needs: time", ""),
    ],
)
def test_a_line_that_is_nearly_read(line: str, said: str) -> None:
    """A need or a path that is written otherwise than it is read stays text, with a warning that says how."""
    artifact = read(f"## Specs\n- b: B\n{line}\n- a: A\n")
    assert [each[: len(said)] for each in artifact.warnings] == [said] * bool(said)
    assert artifact.entries[0].needs == (("a",) if not said and "- Needs" in line else ())


def test_a_title_keeps_the_name_of_its_type() -> None:
    """The prefix is dropped from ids only: a title that begins with the same word stays whole, also as a need."""
    body = "## Specs\n- **Spec-driven design**\n- b: B\n  - Needs: Spec-driven design\n"
    first, second = read(body).entries
    assert (first.id, first.title, second.needs) == (
        "spec-driven-design",
        "Spec-driven design",
        ("spec-driven-design",),
    )


@pytest.mark.parametrize("bad", ["../x", "a/b", ".", "-x", "CON", "😀", "x" * 300])
def test_a_written_id_must_be_one(bad: str) -> None:
    """An id in front of a colon that could do harm is refused with its place and an id that would do."""
    with pytest.raises(PlanError) as caught:
        read(f"# T\n\n## Specs\n- {bad}: Evil\n", body_line=7)
    (problem,) = caught.value.problems
    assert problem.where == "f.md:10:1"
    assert "write `" in problem.hint


def test_problems_in_lists_have_places() -> None:
    """Equal ids, unknown needs, a climbing path and an empty item are each refused where they stand."""
    body = "## Specs\n- a: A\n- a: Again\n  - Needs: nobody\n  - Files: ../x\n-\n"
    with pytest.raises(PlanError) as caught:
        read(body)
    assert [problem.where for problem in caught.value.problems] == ["f.md:3:1", "f.md:4:12", "f.md:5:12", "f.md:6:1"]


def test_an_outline_heading_is_no_title() -> None:
    """The first heading that does not open the outline is the title."""
    assert read("## Specs\n- a: A\n### Later").title == "Later"
    assert read("## Specs\n- a: A\n").title == "x"


def test_a_title_is_cleaned() -> None:
    """A terminal escape in a heading or an item does not reach the title."""
    artifact = read("# \x1b[31mRed\x1b[0m\n## Specs\n- a: \x1b]0;owned\x07B\n")
    assert (artifact.title, artifact.entries[0].title) == ("Red", "B")


PIECES = st.sampled_from(
    [
        "## Specs",
        "## Other",
        "# T",
        "- a: A",
        "- **B**",
        "1. c",
        "  - Needs: a",
        "  - Files: x",
        "```",
        "~~~",
        "<!--",
        "-->",
    ]
    + [
        "",
        "text",
        "    deep",
        "\t- tab",
        "---",
        "- ",
        "- :",
        "**",
        "-->- d: D",
        "`<!--`",
        "### Sub",
        "* * *",
        "- [ ] e: E",
    ]
)


@given(st.lists(PIECES, max_size=25).map("\n".join), st.sampled_from(["plan", "spec", "phase", "code"]))
def test_any_document_is_read_or_refused(body: str, type_name: str) -> None:
    """No arrangement of Markdown does anything but declare valid children or name what is wrong with a line of it."""
    try:
        artifact = read(body, type_name)
    except PlanError as error:
        lines = [int(problem.where.split(":")[1]) for problem in error.problems]
        assert all(1 <= line <= body.count("\n") + 1 for line in lines)
        return
    names = [each.id for each in artifact.entries]
    assert len(set(names)) == len(names)
    assert artifact.declares == any(not each.implied for each in artifact.entries)


def test_a_command_below_an_item_is_text_and_remarked_on() -> None:
    """Commands and judges stand in front matter: written below an item they are its text, and that is said."""
    artifact = read(
        "## Specs\n- a: A\n  - Run: make a\n  - **Check:** make test\n  - run it\n  ```\n  - run: x\n  ```\n"
    )
    assert artifact.entries[0].run is None
    assert artifact.warnings == (
        "f.md:3:5 `Run:` of an item is read as its text; in front matter it counts: `run: ...` beside its id",
        "f.md:4:7 `Check:` of an item is read as its text; in front matter it counts: `check: ...` beside its id",
    )


@pytest.mark.parametrize(
    ("item", "own_id", "said"),
    [
        ("Titles (needs slugify)", "titles", "`(needs slugify)` is not read; write `- Needs: slugify` below it"),
        ("**Titles** [depends on: a, b] at last", "titles", "write `- Needs: a, b` below it"),
        ("**Titles (blocked by x)**", "titles", "write `- Needs: x` below it"),
        ("Titles [approve]", "titles", "`[approve]` is not read; `types.phase.approve: true` in loopr.yml"),
        ("Titles (needs approval)", "titles", "`(needs approval)` is not read; `types.phase.approve: true`"),
        ("(needs x)", "needs-x", "write `- Needs: x` below it"),
        ("Say what it needs (a word)", "say-what-it-needs-a-word", ""),
        ("Read [a link](depends.md)", "read-a-link-depends-md", ""),
    ],
)
def test_brackets_that_are_not_read(item: str, own_id: str, said: str) -> None:
    """They stay in the title and out of the id, and a warning says what would be read."""
    artifact = read(f"## Phases\n- {item}\n", "spec")
    assert [each.id for each in artifact.entries] == [own_id]
    assert ["f.md:2:1 " in each and said in each for each in artifact.warnings] == [True] * bool(said), (
        artifact.warnings
    )
