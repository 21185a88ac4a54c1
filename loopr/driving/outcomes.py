"""From how a command ended to what that means for its loop.

Knows exit codes, clocks and advice. Must never know what it costs (`core/costs.py`).
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loopr.core.model import Failure
from loopr.core.observations import AttemptEnded, AttemptStopped, Observation, Trouble
from loopr.core.wishes import STOPPED
from loopr.errors import LooprError, Problem, UserError
from loopr.world import feedback
from loopr.world.agents import Report
from loopr.world.dialect import cure_in
from loopr.world.headline import headline
from loopr.world.launcher.words import REBOOTED, STREAMS, read_outcome
from loopr.world.processes import Outcome
from loopr.world.repo.calls import GitFailed
from loopr.world.result_file import Advice, stricter

LIMITED, NOTHING_TO_DO = 75, 77
_CONFIG = {78: "it says that its settings are wrong", 126: "it cannot be executed", 127: "there is no such program"}
_CLOCKS = {
    "wall": "it ran longer than {wall_secs} s (timeouts.wall_secs)",
    "idle": "it was silent for {idle_secs} s (timeouts.idle_secs)",
    "first_byte": "it said nothing for {first_byte_secs} s after its start (timeouts.first_byte_secs)",
}
_HOST = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "the system has no file handle left",
    errno.ENOMEM: "there is no memory left",
    errno.EIO: "the disk reports an error",
    errno.EAGAIN: "no further process can be started",
}
_HOST_NAMES = {errno.errorcode[number]: words for number, words in _HOST.items()}
MOST_SAID = 120
TAIL_BYTES = 64 * 1024
_SIGNALLED, _LAST_SIGNAL = 128, 64


class Said(NamedTuple):
    """The end of what a command said, as bytes: enough for feedback and a signature."""

    tail: bytes
    worktree: Path


def trouble_of(
    outcome: Outcome, advice: Advice | None, said: Said, limits: dict[str, int], report: Report | None = None
) -> Trouble | None:
    """Say what went wrong with a command, None if nothing did; `limits` are its clocks in seconds.

    `report` is what the stream of an agent says: it has the word, where the exit code of its client is not to be
    believed.
    """
    failure, reason = _seen(outcome, limits)
    report = report if report is not None and _has_the_word(report, outcome, failure) else None
    if report is not None:
        failure, reason = report.failure, report.message
    strict = stricter(failure, advice)
    if advice is not None and strict is not failure:
        reason = advice.message or f"its result file says {strict}"
    elif report is None and (strict is Failure.REFUSED or (strict is Failure.CONFIG and not outcome.message)):
        reason = with_headline(reason, said.tail)
    if strict is None:
        return None
    resets_at = advice.resets_at_ms if advice is not None else None
    retry_after = advice.retry_after_ms if advice is not None else None
    mark = feedback.signature(outcome.code, said.tail, said.worktree) if strict is Failure.REFUSED else ""
    launch = outcome.reason == "not_started"
    vouched = False
    if report is not None and strict is report.failure and not (resets_at or retry_after):
        resets_at, retry_after, vouched = report.resets_at_ms, report.retry_after_ms, report.vouched
    quiet = strict is Failure.REFUSED and feedback.is_silent(said.tail)
    told = Trouble(strict, reason, mark, launch, resets_at=resets_at, retry_after_ms=retry_after, vouched=vouched)
    return replace(told, quiet=True) if quiet else told


def was_stopped(outcome: Outcome) -> bool:
    """Say whether a command was ended with its engine: a full disk leaves no other word of it."""
    return outcome.reason == "killed" and outcome.message.startswith(STOPPED)


def end_of(loop: str, attempt: int, trouble: Trouble | None, outcome: Outcome) -> Observation:
    """Report the end of an attempt."""
    if was_stopped(outcome):
        return AttemptStopped(loop, attempt, outcome.message)
    return AttemptEnded(loop, attempt, trouble)


def _has_the_word(report: Report, outcome: Outcome, seen: Failure | None) -> bool:
    """Say whether a stream knows better than what was seen of the end: not if it was cut short by that end itself.

    A client that waits for its provider until a clock runs out has met a limit, not a clock; nor has one that tries for
    ever what cannot be.
    """
    if outcome.reason in _CLOCKS:
        return report.failure in (Failure.LIMITED, Failure.LANE, Failure.CONFIG)
    if outcome.reason not in ("exited", "signalled") or not report.decides:
        return False
    return report.kind != "cut" or seen in (None, Failure.REFUSED)


def with_headline(reason: str, raw: bytes) -> str:
    """Add the line of an output that tells best why to a reason, with the cure that it asks for."""
    told = headline(feedback.plain(raw))
    words = told.within(MOST_SAID)
    return with_cure(f"{reason}: {words}" if words else reason, told.line)


def headline_of(raw: bytes) -> str:
    """Return the line of an output that tells best why, as a reason has room for it."""
    return headline(feedback.plain(raw)).within(MOST_SAID)


def with_cure(reason: str, line: str) -> str:
    """Add a cure to a reason where its headline tells that sh lacks a word of bash's."""
    cure = cure_in(line)
    return f"{reason}; {cure}" if cure else reason


def _added(reason: str, words: str) -> str:
    """Add words to a reason, as many as fit a line."""
    return f"{reason}: {words[:MOST_SAID]}{'…' if len(words) > MOST_SAID else ''}" if words else reason


def _seen(outcome: Outcome, limits: dict[str, int]) -> tuple[Failure | None, str]:
    """Say what the end of a command means by itself."""
    match outcome.reason:
        case "wall" | "idle" | "first_byte":
            return Failure.TIMEOUT, _CLOCKS[outcome.reason].format(**limits)
        case "not_started":
            return _not_started(outcome)
        case "lost":
            if outcome.cause == REBOOTED:
                return Failure.HOST, "the machine was restarted while it ran"
            return Failure.INFRA, outcome.message or "it vanished without saying how it ended"
        case "killed":
            return Failure.INFRA, outcome.message or "it was ended"
    if outcome.code is None:
        return Failure.INFRA, f"it died by signal {outcome.signal}"
    return _exited(outcome.code, outcome.message)


def _exited(code: int, message: str) -> tuple[Failure | None, str]:
    """Say what an exit code means; a message tells which program could not be started."""
    if code in (0, NOTHING_TO_DO):
        return None, ""
    if code == LIMITED:
        return Failure.LIMITED, "it asked for a rest (exit 75)"
    if code in _CONFIG:
        return Failure.CONFIG, _added(f"{_CONFIG[code]} (exit {code})", message)
    if number := signal_in(code):
        return Failure.INFRA, f"it died by signal {number} (exit {code})"
    return Failure.REFUSED, f"exit {code}"


def signal_in(code: int) -> int:
    """Return the signal that a shell tells of by an exit code; 0 for others, as 128 of git and 255 of perl and ssh."""
    return code - _SIGNALLED if 0 < code - _SIGNALLED <= _LAST_SIGNAL else 0


def found_nothing_to_do(run: Path) -> bool:
    """Say whether the command of an attempt has ended with 77, from the attempt's folder."""
    outcome = read_outcome(str(run))
    return outcome is not None and outcome.reason == "exited" and outcome.code == NOTHING_TO_DO


def _not_started(outcome: Outcome) -> tuple[Failure, str]:
    """Say why a command never ran."""
    if outcome.cause in _HOST_NAMES:
        return Failure.HOST, _HOST_NAMES[outcome.cause]
    return Failure.INFRA, outcome.message or "it could not be started"


def trouble_before(error: Exception) -> Trouble:
    """Say what kept an attempt from being prepared."""
    host = _host_words(error)
    if host:
        return Trouble(Failure.HOST, host)
    if isinstance(error, UserError):
        return Trouble(Failure.CONFIG, _words(error))
    return Trouble(Failure.INFRA, _words(error), launch=True)


def _host_words(error: BaseException | None) -> str:
    """Say what the machine refused, nothing if it was not the machine."""
    while error is not None:
        if isinstance(error, GitFailed) and error.lock is not None:
            return str(error.lock)
        if isinstance(error, OSError) and error.errno in _HOST:
            return _HOST[error.errno]
        found = [words for number, words in _HOST.items() if _system_words(number) in str(error)]
        if found and isinstance(error, LooprError):
            return found[0]
        error = error.__cause__
    return ""


def _system_words(number: int) -> str:
    """Return how the system, and git after it, words an error."""
    import os

    return os.strerror(number)


def _words(error: Exception) -> str:
    """Return an error on one line, with what to do about it."""
    problems = getattr(error, "problems", ())
    if problems:
        return "; ".join(str(each) for each in problems)
    return str(error) or type(error).__name__


def refusal(reason: str, text: str, worktree: Path) -> Trouble:
    """Word a verdict of no that nobody's exit code says; its signature is that of its text."""
    return Trouble(Failure.REFUSED, reason, feedback.signature(None, text.encode(), worktree))


def listed(problems: tuple[Problem, ...] | list[Problem]) -> str:
    """Write problems as a list."""
    return "\n".join(f"- {each}" for each in problems)


def tail_of(run: Path, names: tuple[str, ...] = STREAMS) -> bytes:
    """Return the end of what a command said, its errors last."""
    parts = []
    for name in names:
        with suppress(OSError), (run / name).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            parts.append(file.read())
    return b"\n".join(part for part in parts if part.strip())
