"""Streams that the real clients wrote, against a model server of our own: what each of them comes to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents import streams_of as s

CLIENTS = ("claude", "codex", "opencode", "gemini", "aider")

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
    "opencode": {
        "denied": "refused",
        "interrupted": "cut",
        "limit-after-edit": "limited",
        "limit-long": "limited",  # only its log tells that it waits
        "too-long-at-first": "done",  # it summed up and went on, and ends with 1
        "too-long-for-ever": "config",
        "unknown-model": "model",  # only its log tells
        "usage-limit-claude": "limited",
    },
    "gemini": {
        "cut-short": "done",  # nothing tells: the check does
        "denied": "done",  # the tool is not there, and it does without
        "interrupted": "cut",
        "limit-after-edit": "limited",
        "limit-hours": "limited",
        "limit-long": "limited",  # it waits, and was ended
        "limit-midway": "infra",  # of a stream that breaks off it does not tell why
        "no-key": "authentication",
        "no-quota": "limited",  # what its provider says of every limit
        "untrusted": "config",
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
    waited = name == "limit-long"  # it was ended, whatever its code, and what it wrote of waiting was the last it wrote
    code = None if waited else s.exit_of(client, name)
    found = s.report(client, s.recorded(client)[name], code, errors, session, errors_last=waited)
    assert found.kind == expected(client, name), found
    assert (found.failure is None) == (found.kind in ("done", ""))
    if found.kind == "done":
        assert found.used.tokens
        assert found.last
    if found.kind == "limited":
        assert found.resets_at_ms or found.retry_after_ms


@pytest.mark.parametrize(("client", "name"), s.cases(CLIENTS))
def test_a_failure_that_is_told_is_the_same_with_exit_0(client: str, name: str) -> None:
    """The class of a failure, not only that there was one, is read from what a client wrote: a limit stays a limit."""
    kind = expected(client, name)
    if name == "limit-long" or kind in ("done", ""):
        return
    errors, session = s.beside(client, name, "stderr.txt").decode(), s.beside(client, name, "rollout.jsonl")
    assert s.report(client, s.recorded(client)[name], 0, errors, session).kind == kind


@pytest.mark.parametrize(("client", "name"), [("claude", "usage-limit"), ("opencode", "usage-limit-claude")])
def test_a_usage_limit_ends_when_its_client_says(client: str, name: str) -> None:
    """The end of a usage limit is the one that the provider named."""
    raw = s.recorded(client)[name]
    assert s.report(client, raw, 1).resets_at_ms == 1000 * _recorded(client, name, "resets_at")


def test_a_day_that_is_used_up_ends_where_its_provider_is() -> None:
    """What is used up for a day comes back at midnight in California: eight hours behind, in the winter."""
    found = s.report("gemini", s.recorded("gemini")["usage-limit"], 173)
    assert found.resets_at_ms == int(datetime(2026, 11, 19, 8, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("client", "name", "after_ms"),
    [
        ("opencode", "limit", 2_000),
        ("opencode", "limit-bare", 60_000),
        ("gemini", "limit", 2_000),
        ("gemini", "limit-bare", 60_000),
        ("gemini", "limit-long", 120_000),
        ("gemini", "limit-hours", 7_200_000),
    ],
)
def test_a_rest_is_as_long_as_the_provider_asks(client: str, name: str, after_ms: int) -> None:
    """What a client waits by itself, longer with every try, is not what its provider asked for."""
    errors = s.beside(client, name, "stderr.txt").decode()
    found = s.report(client, s.recorded(client)[name], None, errors, errors_last=True)
    assert found.retry_after_ms == after_ms


def test_what_never_fits_is_known_wherever_its_client_was_ended() -> None:
    """From the second time on that a conversation is too long, no end of the stream makes that a mere timeout."""
    events = s.recorded("opencode")["too-long-for-ever"].splitlines(keepends=True)
    errors = [at for at, each in enumerate(events) if b'"type":"error"' in each]
    assert len(errors) > 2
    kinds = {s.report("opencode", b"".join(events[:at]), None).kind for at in range(errors[1] + 1, len(events) + 1)}
    assert kinds == {"config"}


def test_an_agent_is_told_what_it_was_refused() -> None:
    """What was rejected because nobody could be asked is named for the next try, though it ended with 0."""
    found = s.report("opencode", s.recorded("opencode")["denied"])
    assert found.denials == ("bash: cat /etc/hostname",)
    assert "cat /etc/hostname" in found.message


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
    fails_if_cut(client, name, raw, data.draw(st.integers(0, len(raw))))


@pytest.mark.soak
@pytest.mark.parametrize(("client", "name"), s.cases(CLIENTS))
def test_a_stream_that_was_cut_anywhere_is_no_success(client: str, name: str) -> None:
    """The same for each byte of each stream."""
    raw = s.recorded(client)[name]
    for at in range(len(raw) + 1):
        fails_if_cut(client, name, raw, at)


def fails_if_cut(client: str, name: str, raw: bytes, at: int) -> None:
    """See that the beginning of a stream is not taken for the whole of one that ended well."""
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
