"""What the readers make of streams, in the shapes that clients use and in every other one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopr.core.model import Failure
from loopr.world.agents import Ending, Rules, reader_for
from loopr.world.agents.waits import wait_in
from tests.agents import streams_of as s

CLIENTS = ("plain", "claude", "codex", "opencode", "gemini", "aider")

CODEX_DONE = s.lines(
    {"type": "thread.started", "thread_id": "0190-aaaa-bbbb"},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"},
    {"type": "item.completed", "item": {"id": "0", "type": "error", "message": "a mere warning"}},
    {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "make"}},
    {"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "make", "exit_code": 0}},
    {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "All is well."}},
    {"type": "turn.completed", "usage": {"input_tokens": 4000, "cached_input_tokens": 1600, "output_tokens": 68}},
)
STEP = {"type": "step_finish", "sessionID": "ses_1", "part": {"type": "step-finish", "cost": 0.01, "reason": "stop",
        "tokens": {"input": 10, "output": 5, "reasoning": 1, "cache": {"read": 7, "write": 2}}}}  # fmt: skip
OPENCODE_DONE = s.lines(
    {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}},
    {"type": "tool_use", "sessionID": "ses_1", "part": {"tool": "bash", "state": {"input": {"command": "ls"}}}},
    {**STEP, "part": {**STEP["part"], "reason": "tool-calls"}},  # type: ignore[dict-item]
    {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}},
    {"type": "text", "sessionID": "ses_1", "part": {"type": "text", "text": "Done."}},
    STEP,
)
GEMINI_DONE = s.lines(
    {"type": "init", "session_id": "g-1", "model": "gemini-2.5-pro"},
    {"type": "message", "role": "user", "content": "do it"},
    {"type": "message", "role": "assistant", "content": "I will ", "delta": True},
    {"type": "message", "role": "assistant", "content": "look.", "delta": True},
    {"type": "tool_use", "tool_name": "write_file", "parameters": {"file_path": "a.txt"}},
    {"type": "result", "status": "success", "stats": {"input_tokens": 900, "output_tokens": 30, "cached": 300}},
)
CLAUDE_DONE = s.lines(
    {"session_id": "s-1", "subtype": "init", "type": "system"},
    {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 7000, "error_status": 429},
    {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": 1794998101}},
    {"message": {"id": "m", "content": [{"type": "text", "text": "Well."}], "usage": {}}, "type": "assistant"},
    s.claude_result(),
)
DONE = {"claude": CLAUDE_DONE, "codex": CODEX_DONE, "opencode": OPENCODE_DONE, "gemini": GEMINI_DONE}


@pytest.mark.parametrize("client", DONE)
def test_work_that_ended_well_is_done_whatever_was_retried(client: str) -> None:
    """Retries, warnings and allowed limits on the way change nothing of a good end."""
    found = s.report(client, DONE[client])
    assert (found.kind, found.failure, found.message) == ("done", None, "")
    assert found.session
    assert found.last


@pytest.mark.parametrize("client", DONE)
def test_every_cut_of_a_good_stream_is_no_success(client: str) -> None:
    """Up to the last byte of the last event, a stream is one that was cut short, also with exit 0."""
    raw = DONE[client].rstrip(b"\n")
    reader = s.reader(client)
    for at in range(len(raw)):
        assert s.report(client, raw[:at]).failure is Failure.INFRA, at
        reader.feed(raw[at : at + 1])
    assert reader.close(Ending(0)).kind == "done"


@pytest.mark.parametrize("client", DONE)
def test_an_exit_code_takes_a_success_back(client: str) -> None:
    """Who reports success and exits with an error has not succeeded."""
    assert s.report(client, DONE[client], 1).failure is Failure.INFRA


def test_usage_is_told_by_class() -> None:
    """Cached input is never counted twice, and cost is in whole micro-dollars, rounded up."""
    used = {client: s.report(client, raw).used for client, raw in DONE.items()}
    assert used["claude"][:] == (120, 300, 40, 5640, True)
    assert used["codex"][:] == (2400, 1600, 68, None, True)
    assert used["opencode"][:] == (24, 14, 12, 20_000, True)
    assert used["gemini"][:] == (600, 300, 30, None, True)
    aider = s.report(
        "aider", b"Tokens: 2.0k sent, 1.5k cache hit, 34 received. Cost: $0.0043 message, $0.0086\nsession.\n"
    )
    assert aider.used[:] == (2000, 1500, 34, 8600, False)


def test_what_a_stopped_agent_used_is_pieced_together() -> None:
    """Without a last event, the usage of each message counts once, as an estimate."""
    message = {"id": "m", "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}}
    twice = {"type": "assistant", "message": message}
    other = {"type": "assistant", "message": {**message, "id": "n"}}
    assert s.report("claude", s.lines(twice, twice, other), None).used[:] == (10, 14, 2, None, False)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ("rate_limit", 429, "limited"),
        ("authentication_failed", 401, "authentication"),
        ("authentication_failed", None, "authentication"),
        ("billing_error", 400, "billing"),
        ("model_not_found", 404, "model"),
        ("unknown", 400, "config"),
        ("server_error", 500, "infra"),
        ("server_error", 529, "infra"),
        ("unknown", None, "infra"),
        ("something_new", 403, "authentication"),
        ("max_output_tokens", None, "refused"),
    ],
)
def test_claude_says_success_for_every_error(error: str, status: int | None, kind: str) -> None:
    """The class of an error decides, though its subtype says success, and also with exit 0."""
    found = s.report("claude", s.claude_error(error, status))
    assert found.kind == kind
    assert found.message.startswith("claude")


@pytest.mark.parametrize("key", ["is_error", "type", "subtype"])
def test_claude_without_a_word_of_success_has_none(key: str) -> None:
    """A last event that does not say that all is well says that it is not."""
    result = s.claude_result()
    del result[key]
    assert s.report("claude", s.lines(result)).kind != "done"


def test_claude_that_asked_no_model_has_done_nothing() -> None:
    """A prompt that was taken for a command of the client is told as a fault of the prompt."""
    assert s.report("claude", s.lines(s.claude_result(num_turns=0, result=""))).failure is Failure.CONFIG


def test_claude_names_what_was_not_permitted() -> None:
    """A denied permission is a no, which names the tool for the next try."""
    denied = [{"tool_name": "Bash", "tool_input": {"command": "make"}}]
    found = s.report("claude", s.lines(s.claude_result(permission_denials=denied)))
    assert (found.failure, found.denials) == (Failure.REFUSED, ("Bash: make",))
    assert "Bash: make" in found.message


@pytest.mark.parametrize(
    ("extra", "until", "after"),
    [
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1795043460}},
         1795043460000, None),
        ({"type": "system", "subtype": "api_retry", "error_status": 429, "retry_delay_ms": 7931}, None, 7931),
        ({"type": "system", "subtype": "api_retry", "error_status": 500, "retry_delay_ms": 600}, None, 60_000),
        ({"rate_limit_info": {"status": "rejected", "resetsAt": 10**18}, "type": "rate_limit_event"}, None, 60_000),
    ],
)  # fmt: skip
def test_claude_tells_until_when_to_rest(extra: dict[str, Any], until: int | None, after: int | None) -> None:
    """The reset time wins, else the last delay that a limit asked for, else a minute."""
    found = s.report("claude", s.lines(extra) + s.claude_error("rate_limit", 429))
    assert (found.kind, found.resets_at_ms, found.retry_after_ms) == ("limited", until, after)


@pytest.mark.parametrize(
    ("status", "kind"), [("allowed", "infra"), ("allowed_warning", "infra"), ("rejected", "limited")]
)
def test_a_limit_that_is_not_reached_is_none(status: str, kind: str) -> None:
    """What tells of limits without one being reached does not make a limit of another error."""
    told = s.lines({"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": 1795043460}})
    assert s.report("claude", told + s.claude_error("server_error", 500)).kind == kind


@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ([{"status": "rejected", "isUsingOverage": True, "overageStatus": "allowed"}], "refused"),
        ([{"status": "rejected"}, {"status": "allowed"}], "refused"),
        ([{"status": "rejected", "isUsingOverage": False}], "limited"),
        ([{"status": "allowed"}, {"status": "rejected", "resetsAt": 1795039200}], "limited"),
    ],
)
def test_a_limit_that_was_got_over_is_none(later: list[dict[str, Any]], kind: str) -> None:
    """Who pays beyond a limit, or was let in again after it, and ends for another reason, has ended for that one."""
    told = [{"type": "rate_limit_event", "rate_limit_info": each} for each in later]
    end = s.claude_result(is_error=True, subtype="error_max_turns", errors=["Reached 1 turn"], result=None)
    assert s.report("claude", s.lines(*told, end), 1).kind == kind


def test_how_much_of_a_limit_is_used_is_told() -> None:
    """The fullest window of an account is known while it still works, and when that one ends."""
    ends = 1795043460
    windows = {"five_hour": {"utilization": 0.4, "resetsAt": 7}, "seven_day": {"utilization": 0.91, "resetsAt": ends}}
    limits = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "unifiedWindows": windows}}
    found = s.report("claude", s.lines(limits, s.claude_result()))
    assert (found.kind, found.share) == ("done", (0.91, ends * 1000))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Claude AI usage limit reached|1795028400", "limited"),
        ("Claude usage limit reached. Your limit will reset at 3pm (America/Bogota).", "limited"),
        ("Limit reached · resets 11:30am (Asia/Calcutta) · /upgrade to Max", "limited"),
        ("You've hit your limit · resets 4:50am (Europe/Rome)", "limited"),
        ("the test says: usage limit reached", "infra"),
    ],
)
def test_claude_of_other_versions_tells_a_limit_in_words_alone(words: str, kind: str) -> None:
    """An error whose only sign of a limit are its words is one; words of a turn that ended well are not."""
    failed = s.claude_result(is_error=True, result=words)
    assert s.report("claude", s.lines(failed)).kind == kind
    assert s.report("claude", s.lines(s.claude_result(result=words))).kind == "done"


def test_claude_that_wrote_no_event_is_judged_by_what_it_wrote_to_standard_error() -> None:
    """A refusal to start is a fault of the settings, anything else a stream that was cut short."""
    root = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
    assert s.report("claude", b"", 1, root).failure is Failure.CONFIG
    assert s.report("claude", b"", 1, "what is this").kind == "cut"


def test_codex_looks_into_its_session_where_its_words_do_not_tell() -> None:
    """The cause of a failed turn, its usage and the end of a plan's limit stand in its session only."""
    failed = s.lines(
        {"type": "thread.started", "thread_id": "0190-aaaa-bbbb"},
        {"type": "turn.failed", "error": {"message": "You’ve hit your usage limit. Try again later."}},
    )
    session = s.lines(
        {"payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 9, "output_tokens": 2}},
                     "rate_limits": {"primary": {"used_percent": 100, "resets_at": 1795043460}}}},
        {"payload": {"type": "task_complete", "error": {"codex_error_info": "usage_limit_exceeded"}}},
    )  # fmt: skip
    found = s.report("codex", failed, 1, session=session)
    assert (found.kind, found.resets_at_ms, found.used.tokens) == ("limited", 1795043460000, 11)
    vague = s.lines({"type": "turn.failed", "error": {"message": "something odd"}})
    odd = s.lines(
        {"payload": {"type": "task_complete", "error": {"codex_error_info": {"x": {"http_status_code": 401}}}}}
    )
    assert s.report("codex", vague, 1).kind == "infra"
    assert s.report("codex", vague, 1, session=odd).kind == "authentication"


RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 429, "retry_delay_ms": 40_000}
AGAIN = "Reconnecting... 1/5 (exceeded retry limit, last status: {})"
WAITING = "Attempt 1 failed: Please retry in 40s.. Retrying after 41354ms... RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    ("client", "last", "errors", "kind"),
    [
        ("claude", RETRY, "", "limited"),
        ("claude", RETRY | {"error_status": 529}, "", "cut"),
        ("codex", {"type": "error", "message": AGAIN.format("429 Too Many Requests")}, "", "limited"),
        ("codex", {"type": "error", "message": AGAIN.format("401 Unauthorized")}, "", "authentication"),
        ("codex", {"type": "error", "message": AGAIN.format("500 Internal Server Error")}, "", "cut"),
        ("gemini", {"type": "init", "session_id": "x"}, WAITING, "limited"),
        ("gemini", {"type": "init", "session_id": "x"}, WAITING.replace("RESOURCE_EXHAUSTED", "UNAVAILABLE"), "cut"),
    ],
)
def test_a_client_that_was_ended_while_it_waited(client: str, last: dict[str, Any], errors: str, kind: str) -> None:
    """Whoever is ended by a clock while the provider keeps it waiting has met what it waits for, and nothing else."""

    def end(*events: dict[str, Any]) -> s.Report:
        reader = s.reader(client)
        reader.feed(s.lines(*events))
        return reader.close(s.Ending(None, errors, s.NOW, errors_last=last is events[-1]))

    begin = {"type": "turn.started"}
    assert end(begin, last).kind == kind
    if kind == "limited":
        assert end(begin, last).retry_after_ms in (40_000, 60_000)
    answered = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "x"}}
    assert end(begin, last, answered).kind == "cut", "the model has answered since"


TRY = (
    'timestamp=2026-11-18T18:00:10.000Z level=ERROR run=1 message="stream error" providerID=p modelID=m session.id=s '
    'small={} agent=build mode=primary error.error="AI_APICallError: {}"\n'
)
TRIED_AT_MS = int(datetime(2026, 11, 18, 18, 0, 10, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("words", "small", "said_ms_later", "code", "kind"),
    [
        ("You have hit your rate limit", "false", -5_000, None, "limited"),
        ("You have hit your rate limit", "false", 5, None, "limited"),  # the beginning of what broke off
        ("You have hit your rate limit", "false", 2_000, None, "cut"),  # the model has answered since
        ("You have hit your rate limit", "true", -5_000, None, "cut"),  # a title that nobody waits for
        ("You have hit your rate limit", "false", -5_000, 1, "cut"),  # it went by itself
        ("insufficient_quota", "false", -5_000, None, "billing"),
        ("Internal server error", "false", -5_000, None, "cut"),
    ],
)
def test_the_log_of_opencode_tells_what_it_waits_for(
    words: str, small: str, said_ms_later: int, code: int | None, kind: str
) -> None:
    """Its stream says nothing of retries: the last of its log counts, if the model has said nothing since."""
    raw = s.lines({"type": "step_start", "timestamp": TRIED_AT_MS + said_ms_later, "part": {}})
    assert s.report("opencode", raw, code, TRY.format(small, words)).kind == kind


def test_opencode_that_could_not_begin_says_why() -> None:
    """What only its log tells is told: a model that it does not know, a database that another one was making."""
    log = 'timestamp=2026-11-18T18:00:10Z message=failed ref=err_1 error="ProviderModelNotFoundError: no" cause=""\n'
    error = {"name": "UnknownError", "data": {"message": "Unexpected server error.", "ref": "err_1"}}
    found = s.report("opencode", s.lines({"type": "error", "error": error}), 1, log)
    assert (found.kind, "ProviderModelNotFoundError: no" in found.message) == ("model", True)
    found = s.report("opencode", b"", 1, "Error: Unexpected error\n\nFailed query: CREATE TABLE x\nparams: \n")
    assert (found.kind, "database" in found.message) == ("infra", True)


@pytest.mark.parametrize(
    ("body", "kind"),
    [('{"code": "insufficient_quota"}', "billing"), ('{"status": "RESOURCE_EXHAUSTED"}', "limited"), ("", "limited")],
)
def test_every_provider_talks_of_plan_and_billing(body: str, kind: str) -> None:
    """What two providers say in the same words, of a moment or of an empty account, their bodies tell apart."""
    words = "You exceeded your current quota, please check your plan and billing details."
    error = {"name": "APIError", "data": {"statusCode": 429, "message": words, "responseBody": body}}
    assert s.report("opencode", s.lines({"type": "error", "error": error}), 1).kind == kind


def test_gemini_counts_what_it_thought() -> None:
    """Thoughts are output, though only the sum of all tokens has them."""
    stats = {"total_tokens": 1500, "input_tokens": 1000, "cached": 400, "input": 600, "output_tokens": 100}
    found = s.report("gemini", s.lines({"type": "result", "status": "success", "stats": stats}))
    assert found.used[:] == (600, 400, 500, None, True)


@pytest.mark.parametrize(
    ("data", "kind", "after"),
    [
        ({"statusCode": 429, "responseHeaders": {"Retry-After": "7"}, "message": "slow down"}, "limited", 7000),
        ({"statusCode": 401, "message": "no"}, "authentication", None),
        ({"statusCode": 400, "message": "odd"}, "config", None),
        ({"statusCode": 500, "message": "odd"}, "infra", None),
        ({}, "infra", None),
    ],
)
def test_opencode_tells_the_status_of_its_provider(data: dict[str, Any], kind: str, after: int | None) -> None:
    """An error event decides, and the header of the provider says how long to rest."""
    raw = OPENCODE_DONE + s.lines({"type": "error", "error": {"name": "APIError", "data": data}})
    found = s.report("opencode", raw)
    assert (found.kind, found.retry_after_ms) == (kind, after)


@pytest.mark.parametrize(
    ("code", "message", "errors", "kind", "after"),
    [
        (173, "Please retry in 7s.", "Attempt 1 failed: odd. Retrying after 8354ms...", "limited", 7000),
        (173, "You exceeded your current quota, please check your plan and billing details.", "", "limited", 60_000),
        (173, "Quota exceeded for metric: requests, limit: 0, model: m", "", "billing", None),
        (1, "model: odd", "Error when talking to it ModelNotFoundError: model: odd", "model", None),
        (144, "odd", "", "config", None),
        (1, "API key not valid. Please pass a valid API key.", "", "authentication", None),
        (1, "odd", "", "infra", None),
    ],
)
def test_gemini_ends_with_the_status_modulo_256(
    code: int, message: str, errors: str, kind: str, after: int | None
) -> None:
    """Its words decide, else what it reports, else its exit code; of billing its provider talks at every limit."""
    raw = s.lines({"type": "init"}, {"type": "result", "status": "error", "error": {"message": message}})
    found = s.report("gemini", raw, code, errors)
    assert (found.kind, found.retry_after_ms) == (kind, after)


def test_what_gemini_says_of_itself_is_no_reason() -> None:
    """Its warnings at the start, of files that it passes over too, are not why it ended."""
    passed_over = "Security Warning: Skipping system defaults file '/x': Directory '/' is writable by group or others"
    assert s.report("gemini", b"", 1, f"what is this\n{passed_over}\n").message == "gemini: what is this"


def test_a_sign_counts_until_success_follows_it() -> None:
    """What a client recovers from is no failure; what it reports last is one, with exit 0 too."""
    limit, tokens = b"litellm.RateLimitError: slow\ndown, please\n\n", b"Tokens: 1 sent, 1 received.\n"
    assert s.report("aider", limit + tokens).kind == "done"
    assert s.report("aider", tokens + limit).kind == "limited"
    assert s.report("aider", b"hello\n").kind == "cut"


def test_a_plain_client_is_judged_by_its_exit_code_unless_there_is_a_sign() -> None:
    """Signs of a user's own turn a success into what they mean; without any the exit code has the word."""
    rules = Rules("mine", {"limited": ("quota is used up",)})
    for text, kind in ((b"the quota is used up, try again in 5 minutes", "limited"), (b"fine", "")):
        reader = reader_for("plain", rules)
        reader.feed(text)
        found = reader.close(Ending(0))
        assert (found.kind, found.decides) == (kind, bool(kind))


# --- anything at all --------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN = sorted(
    {word for raw in DONE.values() for line in raw.decode().split("\n") if line for word in json.loads(line)}
)
TYPES = ("system", "assistant", "result", "rate_limit_event", "turn.completed", "turn.failed", "item.completed",
         "error", "thread.started", "step_start", "step_finish", "text", "tool_use", "message", "init")  # fmt: skip
EVENTS = st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=5).flatmap(
    lambda event: st.sampled_from(TYPES).map(lambda kind: {**event, "type": kind})
)


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=25, deadline=None)
@given(st.lists(EVENTS, max_size=6), st.binary(max_size=60), st.integers(0, 255) | st.none())
def test_no_stream_makes_a_reader_fail(client: str, events: list[Any], noise: bytes, code: int | None) -> None:
    """Whatever the values of known events are, and whatever bytes come between, there is a report."""
    rules = s.rules(client) if client != "plain" else Rules("plain", {"infra": (".",)})
    reader = reader_for(client, rules)
    for event in events:
        reader.feed(json.dumps(event).encode() + b"\n" + noise)
    found = reader.close(Ending(code, noise.decode("utf-8", "replace"), s.NOW))
    assert (found.failure is None) == (found.kind in ("done", ""))


@pytest.mark.parametrize("client", DONE)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_a_reader_does_not_know_changes_nothing(client: str, data: st.DataObject) -> None:
    """Unknown lines and events, text before an event, and another order of keys lead to the same report."""
    noise = st.sampled_from([b"", b"warning: {odd}\n", b'{"type":"novelty","x":[1]}\n', b"\xff\xfe\n", b"[1, 2]\n"])
    odd = b""
    for line in DONE[client].splitlines():
        event = json.loads(line)
        keys = data.draw(st.permutations(list(event)))
        odd += data.draw(noise) + data.draw(st.sampled_from([b"", b"npm notice "]))
        odd += json.dumps({key: event[key] for key in keys}).encode() + b"\n"
    assert s.report(client, odd) == s.report(client, DONE[client])


@pytest.mark.parametrize(
    "line", [b'{"type":"result"}}', b'{"type":"result"} and more', b'[{"type":"result"}]', b'{"type":']
)
def test_half_an_event_is_none(line: bytes) -> None:
    """What is glued to something else, or the end of something larger, is not taken for an event."""
    inner = json.dumps(s.claude_result()).encode()
    assert s.report("claude", line.replace(b'{"type":"result"}', inner)).kind == "cut"


# --- how long to wait -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Please try again in 7s.", timedelta(seconds=7)),
        ("try again in 1m30s", timedelta(seconds=90)),
        ("Retrying after 8354ms...", timedelta(milliseconds=8354)),
        ("try again in 2 hours and 5 minutes", timedelta(hours=2, minutes=5)),
        ("retry-after: 20", timedelta(seconds=20)),
        ("You've hit your limit · resets 10:35pm (UTC)", timedelta(hours=4, minutes=35)),
        ("Claude AI usage limit reached|1795028400", timedelta(hours=1)),
        ("Claude AI usage limit reached|9795028400", None),
        ("try again at 5:00 PM.", timedelta(hours=23)),
        ("try again at Nov 20th, 2026 5:16 PM.", timedelta(days=1, hours=23, minutes=16)),
        ("try again later", None),
        ("exceeded limit 429 in 99 days", None),
        ("at 99:99", None),
        ("usage limit, resets 5:59pm (UTC)", timedelta(minutes=-1)),
        ("try again at 5:46 PM", timedelta(minutes=-14)),
        ("try again at 5:45 PM", timedelta(hours=23, minutes=45)),
        ("limit reached ∙ resets 3am (America/Los_Angeles)", timedelta(hours=17)),
        ("limit reached ∙ resets 8pm (Europe/Nowhere)", timedelta(hours=2)),
        ("try again at 7:04:05 PM", timedelta(hours=1, minutes=4)),
        ("resets at: 2026-11-19T05:00:00Z", timedelta(hours=11)),
        ("available until 2026-11-19 05:00:00.123 UTC", timedelta(hours=11)),
        ("resets at 2026-11-19T05:00:00+02:00", timedelta(hours=9)),
        ("resets at 2026-13-40 05:00", None),
        ("resets Dec 1, 10am", timedelta(days=12, hours=16)),
        ("resets Oct 1, 10am", None),
        ("retry after 20", timedelta(seconds=20)),
        ("retry after 20 minutes", timedelta(minutes=20)),
        ("please wait 30 seconds", timedelta(seconds=30)),
    ],
)
def test_the_words_for_waiting_are_read(message: str, expected: timedelta | None) -> None:
    """Spans and instants are read as they are meant, and what cannot be meant is not."""
    now = datetime(2026, 11, 18, 18, 0, tzinfo=UTC)
    wait = wait_in(message, now)
    at = wait.until_ms if wait.for_ms is None else int(now.timestamp() * 1000) + wait.for_ms
    assert at == (None if expected is None else int((now + expected).timestamp() * 1000))


@pytest.mark.parametrize(
    ("now", "message", "expected"),
    [
        ("2026-11-19T00:00:20", "resets 11:59pm", "2026-11-18T23:59:00"),
        ("2026-11-18T23:59:50", "resets 12am", "2026-11-19T00:00:00"),
        ("2026-11-19T00:00:20", "resets 12am", "2026-11-19T00:00:00"),
        ("2026-12-31T20:00:00", "resets Jan 2, 10am", "2027-01-02T10:00:00"),
        ("2027-03-01T00:05:00", "try again at Feb 29th, 2028 1:00 AM", None),
        ("2027-02-20T00:05:00", "try again at Feb 29th, 1:00 AM", None),
    ],
)
def test_around_midnight_a_day_is_not_lost(now: str, message: str, expected: str | None) -> None:
    """An hour that is only just gone by is not that of the next day, nor is a date one of the year that is over."""
    found = wait_in(message, datetime.fromisoformat(f"{now}Z"))
    until = None if expected is None else int(datetime.fromisoformat(f"{expected}Z").timestamp() * 1000)
    assert found == (until, None)


def test_a_limit_ends_when_its_own_message_says() -> None:
    """What stands in the log of a client counts only where the message of the limit does not tell."""
    limit = s.claude_error("rate_limit", 429, result="limit reached · resets 8pm (UTC)")
    noise = "at 7:30 PM it began; retry in 3s"
    assert s.report("claude", limit, 1, noise).resets_at_ms == int((s.NOW + timedelta(hours=2)).timestamp() * 1000)
    assert s.report("claude", s.claude_error("rate_limit", 429, result="no"), 1, noise).retry_after_ms == 3_000


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=60) | st.from_regex(r"(in|at|resets|retry-after) ?[0-9:]{1,12} ?(s|h|pm|days)?", fullmatch=True)
)
def test_no_words_for_waiting_do_harm(message: str) -> None:
    """Whatever stands in a message, a wait is one within a month, or none."""
    wait = wait_in(message, s.NOW)
    begin, most, late = int(s.NOW.timestamp() * 1000), 33 * 86_400_000, 900_000
    assert wait.for_ms is None or 0 <= wait.for_ms <= most
    assert wait.until_ms is None or begin - late < wait.until_ms <= begin + most
