"""Streams that the real clients wrote, against a model server of our own: what each of them comes to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents import streams_of as s

CLIENTS = ("claude", "codex", "aider")

SAME = {
    "broken": "infra",
    "cut": "infra",
    "cut-short": "refused",
    "edit": "done",
    "limit": "limited",
    "limit-at-first": "done",
    "limit-bare": "limited",
    "limit-midway": "limited",
    "no-credit": "billing",
    "no-model": "model",
    "no-quota": "billing",
    "overloaded": "infra",
    "overloaded-midway": "infra",
    "text": "done",
    "too-long": "config",
    "unknown-key": "authentication",
    "usage-limit": "limited",
    "killed": "cut",
    "silence": "cut",
    "stalled": "cut",
    "terminated": "cut",
}
OWN = {
    "claude": {
        "denied": "refused",
        "edit-subscription": "done",
        "interrupted": "infra",
        "limit-after-edit": "limited",
        "limit-long": "limited",
        "limit-subscription": "limited",
        "no-quota": "limited",  # that provider has no such error: a 429 is a 429
        "slash": "config",
        "turns": "refused",
        "usage-limit-key": "limited",
    },
    "codex": {
        "interrupted": "cut",
        "limit-after-edit": "limited",
        "limit-long": "limited",  # it waits, and was ended
        "no-key": "authentication",
        "read-only": "done",  # nothing tells: the check does
    },
    "aider": {
        "interrupted": "cut",  # and exit 0
        "killed": "",  # the exit code has the word
        "limit-after-edit": "done",
        "limit-long": "limited",
        "silence": "",  # the exit code has the word
        "stalled": "",
        "terminated": "",
    },
}


def expected(client: str, name: str) -> str:
    """Return what a recorded situation comes to."""
    return {**SAME, **OWN[client]}[name]


@pytest.mark.parametrize(("client", "name"), s.cases(CLIENTS))
def test_what_a_client_wrote_is_understood(client: str, name: str) -> None:
    """Each recorded stream comes to what happened, whatever its exit code says."""
    errors = s.beside(client, name, "stderr.txt").decode()
    session = s.beside(client, name, "rollout.jsonl")
    found = s.report(client, s.recorded(client)[name], s.exit_of(client, name), errors, session)
    assert found.kind == expected(client, name), found
    assert (found.failure is None) == (found.kind in ("done", ""))
    if found.kind == "done":
        assert found.used.tokens
        assert found.last
    if found.kind == "limited":
        assert found.resets_at_ms or found.retry_after_ms


def test_a_usage_limit_ends_when_its_client_says() -> None:
    """The end of a usage limit is the one that the provider named."""
    raw = s.recorded("claude")["usage-limit"]
    assert s.report("claude", raw, 1).resets_at_ms == 1000 * _recorded("claude", "usage-limit", "resets_at")


def _recorded(client: str, name: str, key: str) -> int:
    """Return a number from the manifest."""
    import json

    number: int = json.loads((s.STREAMS / client / "manifest.json").read_bytes())[name][key]
    return number


@pytest.mark.parametrize(("client", "name"), s.cases(CLIENTS))
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_stream_that_was_cut_is_no_success(client: str, name: str, data: st.DataObject) -> None:
    """Cut at any byte, and with exit 0, what failed does not succeed, and what succeeded fails until its last event."""
    raw = s.recorded(client)[name]
    at = data.draw(st.integers(0, len(raw)))
    found = s.report(client, raw[:at])
    if expected(client, name) != "done" or client != "aider" and raw[at:].strip():
        assert found.kind != "done", at


@pytest.mark.parametrize(("client", "name"), s.cases(CLIENTS))
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_the_pieces_in_which_a_stream_comes_change_nothing(client: str, name: str, data: st.DataObject) -> None:
    """In whatever pieces a stream arrives, it is the same stream."""
    raw = s.recorded(client)[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reader = s.reader(client)
    said = [word for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) for word in reader.feed(raw[a:b])]
    whole = s.reader(client)
    assert said == whole.feed(raw)
    ending = s.Ending(0, "", s.NOW)
    assert reader.close(ending) == whole.close(ending)
