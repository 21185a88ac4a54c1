"""Bad files: each is refused in one line that names file, line and remedy, and none takes long or does harm."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.core.policy import TypePolicy, default_types
from loopr.errors import NotFound, PlanError, UserError
from loopr.world.artifacts import MAX_BYTES, parse_artifact, read_artifact_file

TYPES = default_types()
DEEP = {f"t{n}": TypePolicy(f"t{n}", f"t{n + 1}" if n < 11 else None) for n in range(12)}
BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def front(text: str) -> bytes:
    """Wrap YAML as front matter."""
    return f"---\n{text}\n---\n# T\n".encode()


def nested(levels: int) -> str:
    """Write entries nested that deep on one line."""
    return "children: [{id: a" + (", " + nested(levels - 1) if levels > 1 else "") + "}]"


def outline(count: int) -> str:
    """Write an outline of that many entries."""
    return "specs:\n" + "\n".join(f"  - id: e{n}" for n in range(count))


def refusal(raw: bytes, tmp_path: Path, **more: Any) -> str:
    """Read bytes from a file in a workspace, and return the one line that they are refused with."""
    path = tmp_path / "plan.md"
    path.write_bytes(raw)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PlanError) as caught:
        read_artifact_file(path, tmp_path, **({"type_name": "plan", "types": TYPES} | more))
    assert sorted(tmp_path.rglob("*")) == before
    (problem,) = caught.value.problems
    assert problem.hint
    assert "\n" not in str(problem)
    assert caught.value.exit_code == 2
    return str(problem)


@pytest.mark.parametrize(
    ("raw", "place", "said"),
    [
        (b"---\ntitle: x\n# A\n", "plan.md:1:1", "never closed"),
        (b"---", "plan.md:1:1", "never closed"),
        (front("specs:\n\t- id: a"), "plan.md:3:1", "a tab cannot indent"),
        (front("title:\tx"), "plan.md:2:7", "a tab cannot indent"),
        (front("title: x\nid: *x"), "plan.md:3:5", "anchors and aliases are not read"),
        (front("title: &x y"), "plan.md:2:8", "anchors and aliases are not read"),
        (front(BOMB), "plan.md:2:4", "anchors and aliases are not read"),
        (front("title: !!python/name:os.system x"), "plan.md:2:8", "tags are not read"),
        (b"# T\n\nCaf\xe9\n", "plan.md:3:4", "is not UTF-8: byte 0xE9 at offset 8"),
        (b"\xef\xbb\xbfCaf\xe9\n", "plan.md:1:4", "is not UTF-8: byte 0xE9 at offset 6"),
        ("# Käse".encode("utf-16"), "plan.md:1:1", "is not UTF-8"),
        (b"# T\nab\0c\n", "plan.md:2:3", "holds a NUL"),
        (front('title: "a\\0b"'), "plan.md:2:8", "title: has a NUL"),
        (b"", "plan.md:1:1", "is empty"),
        (b"\xef\xbb\xbf \r\n\n", "plan.md:1:1", "is empty"),
        (b"# T\n" + b"x" * 2 * MAX_BYTES, "plan.md", "is larger than 1 MiB"),
        (front(outline(1001)), "plan.md:3:3", "declares 1001 children, the limit is 1000"),
        (front("specs: [{id: a}, {id: b}, {id: a}]"), "plan.md:2:32", 'two children have the id "a"'),
        (front("specs:\n  - id: a\n    needs: [x]"), "plan.md:4:13", 'needs "x", which is not declared here'),
        (front("specs: [{id: a, needs: [b]}, {id: b, needs: [a]}]"), "plan.md:2:25", "a cycle: a → b → a"),
        (front("title: a\ntitle: b"), "plan.md:3:1", 'the key "title" is here twice, first on line 2'),
        (front("titel: a"), "plan.md:2:1", 'unknown key "titel" (did you mean "title"?)'),
        (front("title: a: b"), "plan.md:2:9", "not valid YAML"),
        (front("specs: [{id: a}"), "plan.md:2:8", "the [ that begins here is never closed (close it with ])"),
        (front("title: @x"), "plan.md:2:8", "not valid YAML"),
        (front("a: b\n...\nc: d"), "plan.md:4:1", "a second begins here"),
        (front("? {a: b}\n: c"), "plan.md:2:3", "a key must be a word"),
        (front("title: a\x1b[31m"), "plan.md:2:9", "a control character, U+001B"),
        (front("a: " + "[" * 500_000), "plan.md:2:44", "is nested more than 40 levels deep"),
        (front("title: x\n'loopr': {status: complete}"), "plan.md:3:1", "`loopr` is written by loopr itself"),
        (front("title: 'a\nloopr: b'"), "plan.md:1:1", "begins with `loopr:`"),
    ],
)
def test_a_bad_file(raw: bytes, place: str, said: str, tmp_path: Path) -> None:
    """A malformed artifact is refused with its place, what is wrong and what to do, and nothing is written."""
    line = refusal(raw, tmp_path)
    assert line.startswith(f"{place} ")
    assert said in line


@pytest.mark.parametrize(
    ("yaml", "place", "said"),
    [
        (
            "specs:\n  - id: a\n  title: A",
            "4:3",
            "indented wrongly, by 2 (indent it by 0 like line 2, or by 4 like line 3)",
        ),
        ("specs:\n  - id: a\n    title: A\n   - id: b", "5:4", "by 3 (indent it by 2 like line 3)"),
        ("specs:\n  - id: a\n     title: A", "4:6", "by 5 (indent it by 4 like line 3)"),
        (
            "specs:\n  - id: a\n    needs:\n    - b\n   title: x",
            "6:4",
            "(indent it by 0 like line 2, or by 4 like line 4)",
        ),
        ("title: x\n specs:\n  - a", "3:2", "by 1 (indent it by 0 like line 2)"),
        (
            "specs:\n  id: a\n  - id: b",
            "4:3",
            "`- ` begins an entry of a list here, and above it there is none (begin line 3",
        ),
        ("specs:\n  - {id: a\n  - {id: b}", "3:5", "the { that begins here is never closed (close it with })"),
        ('specs:\n  - title: "x\n  - title: y', "3:12", 'the " that begins here is never closed'),
        ("specs:\n  - title: Fix: it", "3:15", '(put a text that holds `: ` in quotes: - title: "Fix: it")'),
        ("title:x\nspecs: [a]", "2:6", "there is no blank after this colon (write `title: x`)"),
        ("specs:\n  - id: a\n\u00a0\u00a0title: [x", "4:1", "indented with U+00A0, which only looks like a blank"),
        ("specs:\n  - id: a\n\u00a0\u00a0title: x", "4:1", "it is indented with U+00A0, which only looks like a blank"),
        ("specs:\n  - [ ] write it", "3:3", "(write `- write it`, or the list under a heading below"),
        ("title: 'it's'", "2:12", 'text goes on after its closing quote (put all of it between " and ")'),
        (
            "specs:\n  - id: a\n    run: \u201cmake\u201d",
            "4:10",
            "run: begins with a curly quote, which no shell knows",
        ),
        ("specs: - a", "2:8", "a list begins on a new line"),
        ("specs:\n  * a", "3:3", "`* ` begins no item here (write `- `)"),
        ("run: | make", "2:8", "text goes on after `|` or `>`"),
    ],
)
def test_a_slip_of_yaml(yaml: str, place: str, said: str, tmp_path: Path) -> None:
    """A wrong indent, a quote or a bracket is told of where it is to be mended, with what would do."""
    line = refusal(front(yaml), tmp_path)
    assert line.startswith(f"plan.md:{place} ")
    assert said in line


@pytest.mark.parametrize("bad", ["../x", "a/b", ".", "-x", "CON", "😀", "x" * 300, "a\\nb", "\\e[31m"])
def test_a_bad_id(bad: str, tmp_path: Path) -> None:
    """An id that could leave `specs/` is refused where it stands, with one that would do."""
    line = refusal(front(f'specs:\n  - id: "{bad}"'), tmp_path)
    assert line.startswith("plan.md:3:9 ")
    assert "(write `id: " in line
    assert line.isprintable()
    assert refusal(front(f'id: "{bad}"'), tmp_path).startswith("plan.md:2:5 ")


def test_depth_nine(tmp_path: Path) -> None:
    """A loop at depth 9 is refused at the outline that declares it."""
    line = refusal(front(nested(9)), tmp_path, type_name="t0", types=DEEP)
    assert line.startswith("plan.md:2:")
    assert "depth 9, the limit is 8" in line


def test_a_file_just_below_the_limit(tmp_path: Path) -> None:
    """1 MiB is read, one byte more is not."""
    path = tmp_path / "plan.md"
    path.write_bytes(b"#" * MAX_BYTES)
    assert read_artifact_file(path, tmp_path, type_name="plan", types=TYPES)
    assert "is larger than 1 MiB" in refusal(b"#" * (MAX_BYTES + 1), tmp_path)


def test_several_mistakes_are_told_at_once() -> None:
    """Whatever can be found in one reading is reported in one go."""
    with pytest.raises(PlanError) as caught:
        parse_artifact(front("titel: x\nspecs: [{id: A}, []]"), "p", type_name="plan", types=TYPES, fallback_id="p")
    assert len(caught.value.problems) == 3


def test_a_key_that_comes_again_hides_nothing() -> None:
    """A key that is there twice is told with all that is wrong with the others."""
    text = "id: p\nid: q\nspecs:\n- {id: a, foo: 1}\n- {id: b, id: c}"
    with pytest.raises(PlanError) as caught:
        parse_artifact(front(text), "p", type_name="plan", types=TYPES, fallback_id="p")
    said = [each.message.partition(",")[0] for each in caught.value.problems]
    assert said == ['the key "id" is here twice', 'unknown key "foo"', 'the key "id" is here twice']


def test_a_title_with_escapes_is_one_clean_line(tmp_path: Path) -> None:
    """Newlines become blanks and terminal escapes go, whatever way they were written."""
    path = tmp_path / "plan.md"
    path.write_bytes(front('title: "a\\n\\e[31mb\\u202e"\nspecs: [{id: x, title: "\\e]0;t\\ac\\td"}]'))
    artifact, _ = read_artifact_file(path, tmp_path, type_name="plan", types=TYPES)
    assert (artifact.title, artifact.entries[0].title) == ("a b", "c d")


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there is told apart from one that is malformed."""
    with pytest.raises(NotFound):
        read_artifact_file(tmp_path / "plan.md", tmp_path, type_name="plan", types=TYPES)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    """A folder, a pipe and a device are refused without waiting for them."""
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    for name in ("folder.md", "pipe.md"):
        with pytest.raises(PlanError, match="is not a regular file"):
            read_artifact_file(tmp_path / name, tmp_path, type_name="plan", types=TYPES)


def test_a_link_out_of_the_workspace(tmp_path: Path) -> None:
    """A link that leaves the workspace, by file, folder or in a circle, is refused; one that stays inside is read."""
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "secret.md").write_text("# Secret\n")
    (root / "inside.md").write_text("# Inside\n")
    (root / "out.md").symlink_to("../secret.md")
    (root / "up").symlink_to("..")
    (root / "round.md").symlink_to("round.md")
    (root / "in.md").symlink_to("inside.md")
    for path in (root / "out.md", root / "up" / "secret.md", root / ".." / "secret.md", root / "round.md"):
        with pytest.raises(PlanError):
            read_artifact_file(path, root, type_name="plan", types=TYPES)
    assert read_artifact_file(root / "in.md", root, type_name="plan", types=TYPES)[0].title == "Inside"


YAML_PIECES = st.sampled_from(
    [
        "specs:",
        "- ",
        "id: a",
        "title: ",
        "\n",
        "  ",
        "\n  ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        '"',
        "'",
        "|",
        ">",
        "&a ",
        "*a",
        "!!str ",
    ]
    + [
        "loopr:",
        "#",
        "? ",
        ": ",
        "---\n",
        "...\n",
        "\t",
        "%",
        "\\",
        "\x85",
        "\u2028",
        "\x07",
        "null",
        "1e9",
        "phases: ",
        "<<: ",
    ]
)


@given(
    st.binary(max_size=60)
    | st.lists(YAML_PIECES, max_size=30).map(lambda each: ("---\n" + "".join(each) + "\n---\n").encode())
)
@example(b"---\n? \n---\n")
@example(b"---\n---\n")
@example("---\n*\u2028\n---".encode())
@example(b"---\n- - - - - -\n---\n")
@example(b"---\nid: 999999999999999999999999999999999999999999999999999999999999999999999999\n---\n")
@example(b"---\nbudget: {usd: 1e999, tokens: 1e-999, secs: .5}\n---\n")
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    """No file whatsoever does anything but parse, or be refused in printable lines that say where."""
    try:
        parse_artifact(raw, "f.md", type_name="plan", types=TYPES, fallback_id="f")
    except UserError as error:
        for problem in error.problems:
            assert problem.where.startswith("f.md:")
            assert not any(unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} for each in str(problem))
