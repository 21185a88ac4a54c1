"""A result file is advice: read strictly, ignored with a reason, and never able to make an outcome better."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.model import Failure
from loopr.world.result_file import MAX_BYTES, Advice, Reported, read_advice, stricter

WHOLE: dict[str, Any] = {
    "schema": 1,
    "status": "limited",
    "message": "too many\nrequests",
    "usage": {"input_tokens": 10, "cached_input_tokens": 90, "output_tokens": 5, "cost_usd": 0.0123456},
    "retry_after_secs": 1.5,
    "resets_at": "2027-01-15T08:00:00Z",
}
ORDER = [None, Failure.REFUSED, Failure.LIMITED, Failure.CONFIG, Failure.BLOCKED]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the place of a result file."""
    return tmp_path / "result.json"


def read(file: Path, text: str | bytes) -> tuple[Advice | None, str]:
    """Write a result file and read it."""
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_advice(file)


def test_a_whole_file_is_read(file: Path) -> None:
    """Every field is read, in whole units, rounded so that nothing is under-reported."""
    usage = Reported(10, 90, 5, 12_346)
    assert read(file, json.dumps(WHOLE)) == (
        Advice(Failure.LIMITED, "too many requests", usage, 1_500, 1_800_000_000_000),
        "",
    )
    assert usage.tokens == 105


def test_most_may_be_left_out(file: Path) -> None:
    """Schema and status are enough; null is the same as nothing, and unknown is not zero."""
    assert read(file, '{"schema": 1, "status": "done"}') == (Advice(None), "")
    empty = dict.fromkeys(WHOLE) | {"schema": 1, "status": "blocked", "usage": {"cost_usd": None}}
    assert read(file, json.dumps(empty)) == (Advice(Failure.BLOCKED), "")
    assert Reported().tokens is None
    assert Reported(input_tokens=0).tokens == 0


def test_no_file_is_no_advice(file: Path) -> None:
    """A command that leaves no file says nothing, and nobody complains."""
    assert read_advice(file) == (None, "")


BAD = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[" * 30_000, "not JSON"),
    (b"\xff", "not JSON"),
    ('{"schema": ' + "1" * 5_000 + "}", "not JSON"),
    ("[]", "must be an object"),
    ('{"status": "done"}', "schema must be 1"),
    ('{"schema": 2, "status": "done"}', "schema must be 1"),
    ('{"schema": true, "status": "done"}', "schema must be 1"),
    ('{"schema": 1.0, "status": "done"}', "schema must be 1"),
    ('{"schema": 1}', "status must be one of done, refused, limited, config, blocked"),
    ('{"schema": 1, "status": "passed"}', "status must be one of"),
    ('{"schema": 1, "status": ["done"]}', "status must be one of"),
    ('{"schema": 1, "status": "done", "status": "done"}', "twice"),
    ('{"schema": 1, "status": "done", "verdict": 1}', 'unknown key "verdict"'),
    ('{"schema": 1, "status": "done", "message": 1}', "message must be a text"),
    ('{"schema": 1, "status": "done", "usage": []}', "usage must be an object"),
    ('{"schema": 1, "status": "done", "usage": {"tokens": 1}}', 'unknown key "tokens"'),
    ('{"schema": 1, "status": "done", "usage": {"input_tokens": -1}}', "input_tokens must be a whole number"),
    ('{"schema": 1, "status": "done", "usage": {"input_tokens": 1.5}}', "input_tokens must be a whole number"),
    ('{"schema": 1, "status": "done", "usage": {"input_tokens": true}}', "input_tokens must be a whole number"),
    ('{"schema": 1, "status": "done", "usage": {"cost_usd": "1"}}', "cost_usd must be a number"),
    ('{"schema": 1, "status": "done", "usage": {"cost_usd": 1e99}}', "cost_usd must be a number"),
    ('{"schema": 1, "status": "done", "usage": {"cost_usd": NaN}}', "NaN is not JSON"),
    ('{"schema": 1, "status": "done", "retry_after_secs": -Infinity}', "-Infinity is not JSON"),
    ('{"schema": 1, "status": "done", "retry_after_secs": -1}', "retry_after_secs must be a number"),
    ('{"schema": 1, "status": "done", "resets_at": "tomorrow"}', "resets_at must be an instant"),
    ('{"schema": 1, "status": "done", "resets_at": "2027-01-15T08:00:00"}', "resets_at must be an instant"),
    ('{"schema": 1, "status": "done", "resets_at": 1800000000}', "resets_at must be an instant"),
    (b" " * MAX_BYTES + b"{}", "larger than 64 KiB"),
]


@pytest.mark.parametrize(("text", "why"), BAD, ids=[why for _, why in BAD])
def test_what_is_malformed_is_ignored_with_a_reason(file: Path, text: str | bytes, why: str) -> None:
    """A file that is not exactly as it should be is no advice, and it is said why."""
    advice, reason = read(file, text)
    assert advice is None
    assert reason.startswith("the result file is ignored: ")
    assert why in reason


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_a_regular_file_is_read(file: Path, kind: str) -> None:
    """A link, a folder or a pipe in its place is ignored, and nobody waits for it."""
    if kind == "link":
        (file.parent / "real").write_text(json.dumps(WHOLE))
        file.symlink_to("real")
    elif kind == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    assert read_advice(file) == (None, "the result file is ignored: it is not a regular file")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text() | st.sampled_from([*WHOLE, *WHOLE["usage"]]), each),
    )
)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """No JSON at all makes reading fail."""
    file = tmp_path_factory.getbasetemp() / f"any-{os.getpid()}.json"
    for text in (json.dumps(value), json.dumps({"schema": 1, "status": "done", "usage": value, "message": value})):
        advice, reason = read(file, text)
        assert (advice is None) == bool(reason)


@pytest.mark.parametrize(("seen", "said"), list(itertools.product(ORDER, ORDER)))
def test_advice_is_never_milder(seen: Failure | None, said: Failure | None) -> None:
    """The stricter of what the end of a command says and what its file says is what counts."""
    assert ORDER.index(stricter(seen, Advice(said))) == max(ORDER.index(seen), ORDER.index(said))


@pytest.mark.parametrize("seen", sorted(set(Failure) - set(ORDER)))
def test_what_was_seen_from_outside_stays(seen: Failure) -> None:
    """No advice changes what the engine saw itself, such as a timeout."""
    for said in ORDER:
        assert stricter(seen, Advice(said)) is seen


def test_without_advice_nothing_changes() -> None:
    """No file, no difference."""
    for seen in (None, *Failure):
        assert stricter(seen, None) is seen
