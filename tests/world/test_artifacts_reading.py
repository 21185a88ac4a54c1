"""Reading a good file: encodings, front matter, digests and stamps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.outline import Artifact, Findings, MarkedMap, MarkedScalar, identity, read_outline
from loopr.core.policy import default_types
from loopr.errors import PlanError
from loopr.world.artifacts import digest, parse_artifact, read_artifact_file
from loopr.world.front_matter import parse_front_matter, split_front_matter, without_stamp

TYPES = default_types()
PLAN = """---
# a comment
title: Add OAuth
specs:
  - id: tokens
    title: "Token: storage"
    body: |
      Tables.
      \tindented by a tab
    run: ./scripts/write_spec.sh
  - {id: endpoints, needs: [tokens], files: [src/api/**], budget: {usd: 0.25}}
---
# Heading

Body.
"""
STAMP = "loopr:\n  status: complete\n  history:\n    - one\n"


def parse(text: str | bytes, type_name: str = "plan", **more: Any) -> Artifact:
    """Parse a text as an artifact."""
    raw = text.encode() if isinstance(text, str) else text
    return parse_artifact(raw, "f.md", type_name=type_name, types=TYPES, fallback_id="f", **more)


def test_a_plan_is_read_whole(tmp_path: Path) -> None:
    """Front matter, body, default id and digest of a file on disk are what was written."""
    path = tmp_path / "specs" / "plan.md"
    path.parent.mkdir()
    path.write_text(PLAN)
    artifact, known_as = read_artifact_file(path, tmp_path, type_name="plan", types=TYPES)
    tokens, endpoints = artifact.entries
    assert (artifact.id, artifact.title, artifact.text) == ("add-oauth", "Add OAuth", "# Heading\n\nBody.\n")
    assert (tokens.title, tokens.body) == ("Token: storage", "Tables.\n\tindented by a tab")
    assert (endpoints.needs, endpoints.files, endpoints.budget.micro_usd) == (("tokens",), ("src/api/**",), 250_000)
    assert tokens.position == (5, 5)
    assert known_as == digest(PLAN.encode())
    assert len(known_as) == 32


def test_a_file_without_a_name_of_its_own(tmp_path: Path) -> None:
    """Where a file has no title its name stands in for one."""
    path = tmp_path / "Big Plan.md"
    path.write_text("just words\n")
    assert read_artifact_file(path, tmp_path, type_name="plan", types=TYPES)[0].id == "big-plan"


@pytest.mark.parametrize("name", ["BOM", "CRLF", "both"])
def test_other_editors(name: str) -> None:
    """A byte order mark and Windows line ends change neither what is read nor where it stands."""
    text = PLAN.replace("\n", "\r\n") if name != "BOM" else PLAN
    raw = (b"" if name == "CRLF" else b"\xef\xbb\xbf") + text.encode()
    assert parse(raw) == parse(PLAN)
    assert [each.position for each in parse(raw).entries] == [each.position for each in parse(PLAN).entries]
    with pytest.raises(PlanError, match="^f.md:10:5 unknown key"):
        parse(raw.replace(b"run:", b"ran:"))


@pytest.mark.parametrize(
    ("text", "front", "body", "line"),
    [
        ("# T\n", None, "# T\n", 1),
        ("---\na: b\n---\nc\n", "a: b\n", "c\n", 4),
        ("---  \n---\t\n", "", "", 3),
        ("---\na: |\n  ---\n---", "a: |\n  ---\n", "", 4),
        ("\n---\na: b\n---\n", None, "\n---\na: b\n---\n", 1),
        ("----\nx\n", None, "----\nx\n", 1),
        ("---\na: b\n----\n---\n", "a: b\n----\n", "", 5),
    ],
)
def test_where_front_matter_ends(text: str, front: str | None, body: str, line: int) -> None:
    """Only a first line of three hyphens opens front matter, and only another such line closes it."""
    assert split_front_matter(text, "f.md") == (front, body, line)


def test_empty_front_matter_is_none() -> None:
    """Fences with nothing or a comment between them say nothing."""
    assert parse("---\n---\n# T\n") == parse("---\n# comment\n---\n# T\n") == parse("# T\n")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (f"---\n{STAMP}---\n# T\n", "# T\n"),
        (f"---\ntitle: x\n{STAMP}---\n# T\n", "---\ntitle: x\n---\n# T\n"),
        (f"---\n{STAMP}title: x\n---\n# T\n", "---\ntitle: x\n---\n# T\n"),
        ("---\ntitle: x\nloopr: {a: b}\nid: y\n---\n", "---\ntitle: x\nid: y\n---\n"),
        ("---\ntitle: x\nloopr:\n\nid: y\n---\n", "---\ntitle: x\n\nid: y\n---\n"),
        ("---\nloopr_: x\n---\n", "---\nloopr_: x\n---\n"),
        ("---\nbody: |\n  loopr: x\n---\n", "---\nbody: |\n  loopr: x\n---\n"),
        ("# T\nloopr: x\n", "# T\nloopr: x\n"),
    ],
)
def test_the_stamp_is_cut_out(text: str, bare: str) -> None:
    """The `loopr` block of the front matter goes, with the fences if nothing else is between them, and nothing else."""
    assert without_stamp(text.encode()) == bare.encode()
    assert without_stamp(text.replace("\n", "\r\n").encode()) == bare.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("text", ["# T\nwords\n", "---\ntitle: T\n---\nwords\n", PLAN])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_a_stamp_never_counts_as_a_change(text: str, bom: bytes) -> None:
    """Stamping a file changes neither its digest nor the identity of the child it implies."""
    stamped = text.replace("---\n", f"---\n{STAMP}", 1) if text.startswith("---") else f"---\n{STAMP}---\n{text}"
    assert digest(bom + stamped.encode()) == digest(bom + text.encode())
    if text != PLAN:
        (before,), (after,) = (parse(bom + each.encode(), "phase").entries for each in (text, stamped))
        assert before.implied
        assert identity(before) == identity(after)


@pytest.mark.parametrize("other", ["# T\nwords!\n", "---\ntitle: T\n---\n# T\nwords\n"])
def test_an_implied_child_follows_the_whole_file(other: str) -> None:
    """Any change of a phase that declares no task, its front matter included, changes its one code loop."""
    (one,), (two,) = parse("# T\nwords\n", "phase").entries, parse(other, "phase").entries
    assert identity(one) != identity(two)


def test_a_file_that_is_only_a_stamp() -> None:
    """What is empty but for its stamp is empty."""
    with pytest.raises(PlanError, match="is empty"):
        parse(f"---\n{STAMP}---\n")


@given(st.text(alphabet="ab:-#\n \t|'\"[]{}", max_size=40))
def test_a_body_never_becomes_front_matter(text: str) -> None:
    """Whatever stands below closed front matter is the body, to the last character."""
    body = f"x{text}"
    assert parse(f"---\ntitle: t\n---\n{body}").text == body


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_scalars_mean_what_yaml_says(text: str) -> None:
    """A text that is quoted as JSON quotes it arrives as it was."""
    raw = f"---\nspecs: [{{id: a, agent: {json.dumps(text)}}}]\n---\n"
    if any(ord(each) > 0xFFFF for each in text) or "\0" in text:
        return
    assert parse(raw).entries[0].agent == text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(
    ("scalar", "value"),
    [("", None), ("~", None), ("null", None), ("true", True), ("False", False), ("'true'", "true"), ("yes", "yes")]
    + [
        ("12", 12),
        ("-1", -1),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("0x10", "0x10"),
        ("2024-01-01", "2024-01-01"),
        (".", "."),
    ],
)
def test_kinds_of_scalars(scalar: str, value: object) -> None:
    """Plain scalars are what the core schema of YAML 1.2 says, quoted ones are texts, dates too."""
    tree = parse_front_matter(f"a: {scalar}\n", Findings("f.md"))
    assert isinstance(tree, MarkedMap)
    found = tree.pairs[0].value
    assert isinstance(found, MarkedScalar)
    assert (found.value, type(found.value)) == (value, type(value))


def test_yaml_is_not_imported_for_plain_documents() -> None:
    """Reading a document without front matter does not pay for the YAML library."""
    code = (
        "import sys; from loopr.world.artifacts import parse_artifact; from loopr.core.policy import default_types;"
        "parse_artifact(b'# T', 'f', type_name='plan', types=default_types(), fallback_id='f');"
        "print([each for each in sys.modules if each.split('.')[0] in ('ruamel', 'networkx', 'click', 'rich')])"
    )
    root = Path(read_outline.__code__.co_filename).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
