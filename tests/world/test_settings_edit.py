"""`set KEY VALUE`: one key changes, nothing else does, and nobody's change is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.errors import SettingsError
from loopr.world.settings import load, set_key
from loopr.world.settings.reading import plain, read_text, read_value
from loopr.world.settings.splice import spliced
from loopr.world.settings.writing import block, flow

ROOT = Path(__file__).resolve().parents[2]


def read(text: str) -> Any:
    """Return the values of a YAML text, which must be right."""
    node, faults = read_text(text, lambda line, column: f"{line}:{column}")
    assert faults == []
    assert node is not None
    return plain(node)


def test_only_the_value_changes(tmp_path: Path) -> None:
    """Comments, order, quotes, blanks and the column of a comment stay, in the file that is shipped."""
    path = tmp_path / "loopr.yml"
    before = (ROOT / "loopr.yml").read_text()
    path.write_text(before)
    assert set_key(path, "concurrency.max_loops", "8") == (50, 8)
    assert set_key(path, "budget.tokens", "1000") == (None, 1000)
    after = path.read_text()
    assert after == before.replace("max_loops: 50 ", "max_loops: 8  ").replace(
        "\nbudget: {tokens: null,", "\nbudget: {tokens: 1000,"
    )


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "git.base", "main", "git:\n  base: main\n"),
        ("# all\n", "git.base", "main", "# all\ngit:\n  base: main\n"),
        ("git:\n", "git.base", "main", "git: {base: main}\n"),
        ("git: # names\n  # base: x\nqueue:\n", "git.base", "a", "git: {base: a} # names\n  # base: x\nqueue:\n"),
        ("git: {}\n", "git.base", "main", "git: {base: main}\n"),
        ("git: {base: 'old'}", "git.base", "new", "git: {base: 'new'}"),
        ('git: {base: "old"}', "git.base", "it's", 'git: {base: "it\'s"}'),
        ("git:\r\n  base: x\r\n", "git.branch_prefix", "a/", "git:\r\n  base: x\r\n  branch_prefix: a/\r\n"),
        ("types:\n    code:\n        run: a # b\n        # c\n\n# d\n", "types.code.check", "x: y",
         'types:\n    code:\n        run: a # b\n        check: "x: y"\n        # c\n\n# d\n'),
        ("git:\n  base: a\n  # b: 1\n\n# d\n", "queue.soft_limit", "1",
         "git:\n  base: a\n  # b: 1\nqueue:\n  soft_limit: 1\n\n# d\n"),
        ("types:\n  code:\n    review: ./r # a\n", "types.code.review.passes", "3",
         "types:\n  code:\n    review: {run: ./r, passes: 3} # a\n"),
        ("types: {code: {review: [./r, x]}}\n", "types.code.review.passes", "3",
         "types: {code: {review: {run: [./r, x], passes: 3}}}\n"),
        ("types: {code: {review: ./r}}\n", "types.code.review.run", "./s", "types: {code: {review: ./s}}\n"),
        ("types:\n  code:\n    run: |\n      a\n      b\n    approve: true\n", "types.code.run", "c",
         "types:\n  code:\n    run: c\n    approve: true\n"),
        ("notify:\n  - a://b # one\n  - c://d # two\nversion: 1", "notify", "[e://f]",
         "notify:\n  [e://f] # two\nversion: 1"),
        ("types: {code: {run: x,}}", "types.code.check", "a, b", 'types: {code: {run: x, check: "a, b",}}'),
        ("git: {base: x}", "git.base", "null", "git: {base: null}"),
        ("\ufeffgit: {base: x}\n", "git.base", "y", "\ufeffgit: {base: y}\n"),
        ("---\ngit: {base: x}\n...\n", "queue.soft_limit", "1", "---\ngit: {base: x}\nqueue:\n  soft_limit: 1\n...\n"),
        ("types: {code: {}}\n", "types.code.run", "a\nb", 'types: {code: {run: "a\\nb"}}\n'),
    ],
)  # fmt: skip
def test_a_key_is_put_where_a_person_would(tmp_path: Path, before: str, key: str, value: str, after: str) -> None:
    """A value is replaced in its own style; a missing key goes below its neighbours, a missing map is made."""
    path = tmp_path / "loopr.yml"
    path.write_bytes(before.encode())
    set_key(path, key, value)
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "7\n"])
def test_a_file_that_is_no_map_is_kept(tmp_path: Path, text: str) -> None:
    """What is in a file that has no keys is not written over."""
    path = tmp_path / "loopr.yml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="is not a map of keys"):
        set_key(path, "git.base", "main")
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("concurrency.max_loops", "many", 'concurrency.max_loops: must be a whole number of at least -1, not "many"'),
        ("concurrency.max_lops", "3", "did you mean concurrency.max_loops?"),
        ("types.code.child", "plan", "closes a cycle: spec > phase > code > plan > spec"),
        ("types.code.run", "[a", "types.code.run: is not YAML"),
        ("budget.usd", "5", "budget.usd: needs lanes.default.usd_per_mtok"),
    ],
)
def test_what_would_be_wrong_is_refused_and_the_file_kept(tmp_path: Path, key: str, value: str, problem: str) -> None:
    """A value that does not fit, alone or with the rest, leaves the very same file behind."""
    path = tmp_path / "loopr.yml"
    path.write_text("types: {spec: {run: x}, plan: {child: spec},\n        code: {}}\n")
    before = path.read_bytes(), path.stat().st_ino
    with pytest.raises(SettingsError) as caught:
        set_key(path, key, value)
    assert problem in str(caught.value)
    assert (path.read_bytes(), path.stat().st_ino) == before
    assert [each.name for each in tmp_path.iterdir()] == ["loopr.yml"]


def test_a_file_that_cannot_be_read_is_not_edited(tmp_path: Path) -> None:
    """An edit never papers over a broken file."""
    path = tmp_path / "loopr.yml"
    path.write_text("git: {base: x\n")
    with pytest.raises(SettingsError, match="is not YAML"):
        set_key(path, "queue.soft_limit", "1")


def test_other_layers_count_when_a_change_is_judged(tmp_path: Path) -> None:
    """What is right only together with another layer is right."""
    (tmp_path / "loopr.local.yml").write_text("lanes: {default: {usd_per_mtok: 5}}\ntypes: {code: {run: x}}\n")
    assert set_key(tmp_path / "loopr.yml", "budget.usd", "2.5") == (None, 2.5)
    assert load(tmp_path, environ={}, home=None).policy.budget.micro_usd == 2_500_000


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    """The file behind a link is replaced, with the mode that it had."""
    real = tmp_path / "elsewhere" / "shared.yml"
    real.parent.mkdir()
    real.write_text("version: 1\n")
    real.chmod(0o640)
    path = tmp_path / "work" / "loopr.yml"
    path.parent.mkdir()
    path.symlink_to("../elsewhere/shared.yml")
    set_key(path, "queue.soft_limit", "1")
    assert path.is_symlink()
    assert real.read_text() == "version: 1\nqueue:\n  soft_limit: 1\n"
    assert real.stat().st_mode & 0o777 == 0o640


def test_setting_what_is_there_writes_nothing(tmp_path: Path) -> None:
    """The same value again is no change, so that nobody is woken."""
    path = tmp_path / "loopr.yml"
    path.write_text("queue: {soft_limit: 1}\n")
    before = path.stat()
    assert set_key(path, "queue.soft_limit", "1") == (1, 1)
    assert path.stat().st_ino == before.st_ino


def test_a_writer_that_was_killed_leaves_nothing_that_hinders(tmp_path: Path) -> None:
    """A half-written copy of a writer that died is swept by the next."""
    path = tmp_path / "loopr.yml"
    (tmp_path / ".loopr.yml.new").write_text("half")
    set_key(path, "queue.soft_limit", "1")
    assert [each.name for each in tmp_path.iterdir()] == ["loopr.yml"]


def test_writers_at_the_same_time_all_win(tmp_path: Path) -> None:
    """Six processes that set different keys over and over lose none of them."""
    keys = [
        "queue.soft_limit",
        "logs.keep_days",
        "retry.max_attempts",
        "concurrency.max_loops",
        "types.code.run",
        "git.base",
    ]
    program = (
        "import sys; from pathlib import Path; from loopr.world.settings import set_key\n"
        "sys.stdin.readline()\n"
        "for value in range(1, 6): set_key(Path(sys.argv[1]), sys.argv[2], sys.argv[3] + str(value))\n"
    )
    path = tmp_path / "loopr.yml"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), key, "x" if key in keys[4:] else ""],
            cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for key in keys
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    errors = [writer.communicate()[1] for writer in writers]
    assert errors == [b""] * len(keys)
    settings = load(tmp_path, environ={}, home=None)
    assert [settings.value(key) for key in keys] == [5, 5, 5, 5, "x5", "x5"]
    assert [each.name for each in tmp_path.iterdir()] == ["loopr.yml"]


WORDS = st.sampled_from(["a", "b", "c", "long-name"])
MISLEADING = st.sampled_from(["5", "1.0", "null", "true", "~", "0x1", ".inf", "-", "a: b", "a #b", "", " a"])
SCALARS = (
    MISLEADING
    | st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
TREES = st.dictionaries(
    WORDS, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)),
    max_size=4,
)  # fmt: skip
KEYS = st.lists(WORDS, min_size=1, max_size=3).map(".".join)


def frozen(value: Any) -> Any:
    """Turn lists into the tuples that nodes are read as."""
    if isinstance(value, dict):
        return {name: frozen(each) for name, each in value.items()}
    return tuple(frozen(each) for each in value) if isinstance(value, list) else value


@given(TREES)
def test_what_is_written_reads_back(tree: dict[str, Any]) -> None:
    """Any nested values survive being written as YAML, on one line and over several."""
    assert read(flow(tree)) == read(block(tree) or "{}") == frozen(tree)


@given(TREES, KEYS, SCALARS, st.booleans())
def test_setting_a_key_changes_that_key_and_no_other(tree: dict[str, Any], key: str, value: Any, over: bool) -> None:
    """In a file of any shape, the key has the new value afterwards and all the rest reads as before."""
    source = "# top\n" + (block(tree) if over else flow(tree) + " # end\n")
    root, _ = read_text(source, lambda _line, _column: "")
    assert root is not None
    text = spliced(source, root, key, flow(value))
    assert text is not None
    expected = frozen(tree)
    inner = expected
    *parents, last = key.split(".")
    for part in parents:
        if not isinstance(inner.get(part), dict):
            inner[part] = {}
        inner = inner[part]
    inner[last] = value
    assert read(text) == expected
    assert text.startswith("# top\n")


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: text.strip()[:1] not in "[{\"'")
)
def test_a_value_that_looks_like_nothing_else_is_taken_as_it_stands(text: str) -> None:
    """A value without brackets or quotes in front is one scalar, whatever else is in it."""
    node, faults = read_value(text, "--set")
    assert faults == []
    assert node is not None
    assert node.source == text.strip()
    assert not isinstance(node.value, (dict, list))
