"""A stamp never counts as a change, never changes what a person wrote, and never costs anybody a save."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.core.outline import Artifact
from loopr.core.policy import default_types
from loopr.errors import PlanError, WorldError
from loopr.world.artifacts import digest, parse_artifact
from loopr.world.front_matter import without_stamp
from loopr.world.stamping import HISTORY_LINES, Stamp, ensure_stamp, going_on, stamped

TYPES = default_types()
STAMP = Stamp("running", 3, 2, 1_800_000_000_000)

FRONTS = st.lists(
    st.sampled_from(
        [
            "id: oauth",
            'title: "Add: OAuth"  # in quotes',
            "title: 'x'",
            "# a comment",
            "",
            "   ",
            "specs:",
            "  - {id: a, title: A}",
            "  - id: b",
            "    body: |",
            "      loopr: not here",
            "project:   api   ",
            "{id: x}",
            "...",
            "loopr: {status: old}",
            "loopr:",
            "  status: complete",
            "  history:",
            '    - "2026-01-01T00:00:00Z complete"',
            '    - "a" b',
            "&a : *a",
            '"open',
            "parallel: true",
        ]
    ),
    max_size=7,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
BODIES = st.lists(
    st.sampled_from(["# Title", "---", "## Specs", "- a: A", "loopr: x", "", "\ufeff", "\t"]) | TEXTS
).map("\n".join)
STAMPS = st.builds(
    Stamp,
    st.sampled_from(["pending", "complete", "awaiting_approval"]),
    st.integers(0, 10**6),
    st.integers(1, 100),
    st.integers(0, 4_000_000_000_000),
    TEXTS,
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a file that may be an artifact, in any of the ways that editors write one."""
    front = draw(st.none() | FRONTS)
    text = draw(BODIES)
    if front is not None:
        fence = draw(st.sampled_from(["---", "---  "]))
        text = "\n".join([fence, *front, "---", text])
    if draw(st.booleans()):
        text = text.replace("\r", "").replace("\n", "\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def read(raw: bytes) -> Artifact | None:
    """Parse an artifact, or say that it is none; where a warning points to may move."""
    try:
        artifact = parse_artifact(raw, "plan.md", type_name="plan", types=TYPES, fallback_id="x")
    except PlanError:
        return None
    return replace(artifact, warnings=tuple(each.partition(" ")[2] for each in artifact.warnings))


@given(files(), STAMPS, STAMPS)
@example(b"# Title", STAMP, STAMP)
@example(b"---\n---\n# Title\n", STAMP, STAMP)
@example(b"---\n{id: x}\n---\n# Title\n", STAMP, STAMP)
@example(b"---\r\nid: x\r\n---\r\n# Title\r\n", STAMP, STAMP)
@example(b"---\n# only a comment\n---\n# Title\n", STAMP, STAMP)
@example(b"---\nid: x\n---", STAMP, STAMP)
def test_a_stamp_is_no_change(raw: bytes, first: Stamp, second: Stamp) -> None:
    """However often a file is stamped, its digest stays, and what it says stays to the last word."""
    once = stamped(raw, first)
    if once is None:
        return
    twice = stamped(once, second)
    assert twice is not None
    before = read(raw)
    for text in (once, twice):
        assert digest(text) == digest(raw)
        assert without_stamp(text) == without_stamp(raw)
        if before is not None:
            assert read(text) == before


@given(files(), STAMPS)
def test_the_same_stamp_again_is_the_same_file(raw: bytes, stamp: Stamp) -> None:
    """Stamping twice is stamping once, whenever the second time is."""
    once = stamped(raw, stamp)
    if once is not None:
        assert stamped(once, stamp) == once
        assert stamped(once, stamp._replace(at_ms=stamp.at_ms + 5_000)) == once


@given(
    st.lists(
        st.sampled_from(["# why", "", "project:   api   ", "title: 'x'", "parallel: true"]), max_size=5, unique=True
    ),
    st.sampled_from(["", "loopr: {status: old}", 'loopr:\n  status: complete\n  history:\n    - "a" b']),
    st.sampled_from(["\n", "\r\n"]),
    STAMPS,
)
def test_what_loopr_accepts_takes_a_stamp(front: list[str], old: str, newline: str, stamp: Stamp) -> None:
    """Plain front matter, with any stamp that is there already, can be stamped."""
    lines = ["---", "id: x", *front, *([old] if old else []), "---", "# Title", ""]
    raw = "\n".join(lines).replace("\n", newline).encode()
    text = stamped(raw, stamp)
    assert text is not None
    assert read(text) is not None
    assert text.count(b"loopr:") == 1


@given(files(), STAMPS)
def test_lines_end_as_they_did(raw: bytes, stamp: Stamp) -> None:
    """A file with the line ends of another system, and a byte order mark, keeps both throughout."""
    text = stamped(raw, stamp)
    if text is not None and raw.count(b"\r\n") == raw.count(b"\n") > 0:
        assert text.count(b"\r\n") == text.count(b"\n")
    if text is not None:
        assert text.startswith(b"\xef\xbb\xbf") == raw.startswith(b"\xef\xbb\xbf")


@given(st.lists(STAMPS, min_size=1, max_size=30))
@example([STAMP._replace(attempt=n, at_ms=n * 1_000_000) for n in range(3 * HISTORY_LINES)])
def test_history_is_bounded(stamps: list[Stamp]) -> None:
    """A history has one line for each change, the newest last, and no more than so many."""
    text = b"# Title\n"
    lines: list[str] = []
    for before, stamp in zip([None, *stamps], stamps, strict=False):
        new = stamped(text, stamp)
        assert new is not None
        text = new
        if before is None or before[:3] != stamp[:3]:
            lines.append(stamp.line)
    shown = [line for line in text.decode().split("\n") if line.startswith("    - ")]
    assert len(shown) == min(len(lines), HISTORY_LINES)
    assert json.loads(shown[-1].removeprefix("    - ")) == lines[-1]
    assert read(text) is not None


def test_what_it_looks_like() -> None:
    """Comments, order and quotes stay; the stamp is at the end, and its history grows."""
    raw = b"---\nid: oauth   # fixed\ntitle: 'Add OAuth'\nspecs: [{id: a, title: A}]\n---\n# Add OAuth\n"
    once = stamped(raw, STAMP._replace(note="go\nnow"))
    assert once is not None
    twice = stamped(once, Stamp("complete", 3, 2, 1_800_000_060_999))
    assert twice is not None
    assert (
        twice.decode()
        == """---
id: oauth   # fixed
title: 'Add OAuth'
specs: [{id: a, title: A}]
loopr:
  status: complete
  attempt: 3
  iteration: 2
  updated: 2027-01-15T08:01:00Z
  history:
    - "2027-01-15T08:00:00Z running, attempt 3, iteration 2: go now"
    - "2027-01-15T08:01:00Z complete, attempt 3, iteration 2"
---
# Add OAuth
"""
    )


def test_a_file_without_front_matter_gets_some() -> None:
    """A plain document begins with the stamp, and ends as it was."""
    text = stamped(b"\xef\xbb\xbf# Title\r\n\r\nText", STAMP)
    assert text is not None
    assert text.startswith(b"\xef\xbb\xbf---\r\nloopr:\r\n  status: running\r\n")
    assert text.endswith(b"\r\n---\r\n# Title\r\n\r\nText")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" \n",
        b"\xef\xbb\xbf\n",
        b"---\nid: x\n# never closed\n",
        b"---\n---\nbody\n",
        b"---\n{id: x}\n---\n",
        b"---\nid: x\n...\n---\n",
        b'---\nid: "x\n---\n',
        b"---\nid: x\nid: y\n---\n",
        b"---\nloopr: a\nid: x\nloopr: b\n---\n",
        b"---\rid: x\r---\r# old line ends\r",
        b"---\nid: \xff\n---\n",
    ],
)
def test_where_a_stamp_might_do_harm_there_is_none(raw: bytes) -> None:
    """A file that cannot be read back for certain is not stamped."""
    assert stamped(raw, STAMP) is None


# --- on disk --------------------------------------------------------------------------------------------------------


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """Give an artifact on disk."""
    path = tmp_path / "plan.md"
    path.write_bytes(b"---\nid: x\n---\n# X\n")
    return path


def stamp_it(path: Path, expected: str | None = None) -> bool:
    """Stamp a file that is expected to be as it is."""
    return ensure_stamp(path, STAMP, expected=expected or digest(path.read_bytes()), digest=digest)


def open_files() -> int:
    """Count the files that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def alone(path: Path) -> bool:
    """Tell whether no draft was left beside a file."""
    return list(path.parent.iterdir()) == [path]


def test_a_stamped_file_keeps_its_rights(artifact: Path) -> None:
    """The stamp is on disk, mode and owner are as before, nothing lies beside it, and again is no write."""
    artifact.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(artifact, 1234, 1235)
    before = artifact.stat()
    known = digest(artifact.read_bytes())
    assert stamp_it(artifact)
    after = artifact.stat()
    assert b"\nloopr:\n  status: running\n" in artifact.read_bytes()
    assert digest(artifact.read_bytes()) == known
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert stamp_it(artifact)
    assert artifact.stat() == after
    assert alone(artifact)


def test_a_file_that_is_not_the_one_that_was_read_is_left_alone(artifact: Path) -> None:
    """Another text than was expected gets no stamp."""
    raw = artifact.read_bytes()
    assert not stamp_it(artifact, expected=digest(b"another"))
    assert artifact.read_bytes() == raw


@pytest.mark.parametrize("way", ["rename", "in place", "delete"])
def test_a_save_at_the_same_moment_wins(artifact: Path, way: str) -> None:
    """What somebody saves between reading and stamping stays as they saved it."""
    expected = digest(artifact.read_bytes())
    looks = []

    def save(raw: bytes) -> str:
        looks.append(raw)
        if len(looks) == 2:  # the stamp is ready, and not yet in place
            if way == "rename":
                (artifact.parent / "new").write_bytes(b"saved")
                (artifact.parent / "new").replace(artifact)
            elif way == "in place":
                artifact.write_bytes(b"saved")
            else:
                artifact.unlink()
        return digest(raw)

    assert not ensure_stamp(artifact, STAMP, expected=expected, digest=save)
    assert len(looks) == 2
    if way == "delete":
        assert list(artifact.parent.iterdir()) == []
    else:
        assert artifact.read_bytes() == b"saved"
        assert alone(artifact)


def test_without_an_exchange_of_names_a_save_wins_too(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system that cannot swap two names, a changed file is left alone and any other is stamped."""
    monkeypatch.setattr("loopr.world.stamping.exchange", lambda one, other: False)
    assert stamp_it(artifact)
    expected = digest(artifact.read_bytes())

    def save(raw: bytes) -> str:
        artifact.write_bytes(b"saved")
        return expected

    assert not ensure_stamp(artifact, STAMP._replace(attempt=9), expected=expected, digest=save)
    assert artifact.read_bytes() == b"saved"
    assert alone(artifact)


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "pipe", "missing", "large"])
def test_what_is_no_file_of_its_own_is_left_alone(artifact: Path, kind: str) -> None:
    """A link, a file with a second name, a folder, a pipe, nothing, or too much gets no stamp and no error."""
    path = artifact.with_name("other.md")
    expected = digest(artifact.read_bytes())
    match kind:
        case "link":
            path.symlink_to(artifact)
        case "hard link":
            path.hardlink_to(artifact)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "large":
            path.write_bytes(b"#" * (1024 * 1024))
            expected = digest(path.read_bytes())
    opened = open_files()
    assert not ensure_stamp(path, STAMP, expected=expected, digest=digest)
    assert open_files() == opened
    assert b"loopr" not in artifact.read_bytes()


def test_a_read_only_tree_is_said(artifact: Path) -> None:
    """Where nothing can be written the error says so, and what to do."""
    program = """
import pathlib, subprocess, sys
from loopr.errors import WorldError
from loopr.world.artifacts import digest
from loopr.world.stamping import Stamp, ensure_stamp
path = pathlib.Path(sys.argv[1])
subprocess.run(["mount", "--bind", path.parent, path.parent], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", path.parent], check=True)
try:
    ensure_stamp(path, Stamp("running", 1, 1, 0), expected=digest(path.read_bytes()), digest=digest)
except WorldError as error:
    print(error)
"""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make user namespaces")
    done = subprocess.run(
        [*command, sys.executable, "-c", program, artifact],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Read-only file system" in done.stdout
    assert "artifacts.stamp: false" in done.stdout


def test_a_full_disk_is_said_and_leaves_no_draft(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the draft cannot be written the file stays as it was, and the error is one that may pass."""
    raw = artifact.read_bytes()

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorldError, match="No space left"):
        stamp_it(artifact)
    assert artifact.read_bytes() == raw
    assert alone(artifact)


# --- a file that takes another's place ------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"---\r\nid: x\r\n---\r\nNew.\r\n", b"---\nid: x\n---\nNew.\n", b"New.\n"])
def test_a_history_goes_on_in_the_next_file(raw: bytes) -> None:
    """The stamp of a file comes into the one that takes its place, which says the same as before in all else."""
    first = stamped(b"---\nid: x\n---\nOld.\n", Stamp("running", 1, 1, 1_000))
    assert first is not None
    before = stamped(first, Stamp("complete", 1, 1, 2_000, 'a "word"'))
    assert before is not None
    after = going_on(raw, before)
    assert digest(after) == digest(raw)
    said = after.replace(b"\r\n", b"\n")
    assert before.partition(b"loopr:\n")[2].partition(b"---\n")[0] in said
    more = stamped(after, Stamp("pending", 1, 1, 3_000))
    assert more is not None and more.count(b"    - ") == 3
    assert going_on(after, before) == after


@pytest.mark.parametrize(
    "before",
    [
        None,
        b"",
        b"Old.\n",
        b"---\nid: x\n---\nOld.\n",
        b"---\nloopr: mine\n---\nOld.\n",
        b'---\nloopr:\n  status: a: b\n  attempt: 1\n  iteration: 1\n  updated: 2\n  history:\n    - "x"\n---\nOld.\n',
    ],
)
def test_what_is_no_stamp_of_ours_stays_behind(before: bytes | None) -> None:
    """A file takes over nothing from one that has no stamp, or another's under that name."""
    assert going_on(b"---\nid: x\n---\nNew.\n", before) == b"---\nid: x\n---\nNew.\n"
