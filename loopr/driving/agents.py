"""What an agent preset adds to an attempt: its environment before, and what its stream says of the work afterwards.

Knows where the output of an attempt lies, and which reader understands it. Must never know what an outcome costs.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from loopr.core.limits import FULL
from loopr.core.model import Usage
from loopr.core.observations import LaneLevel
from loopr.driving.kit import Kit, Task
from loopr.world.agents import CodexReader, Ending, Reader, Report, Rules, Share, Used, reader_for
from loopr.world.agents.sessions import read_session
from loopr.world.environment import Changes, changed
from loopr.world.launcher.words import STREAMS
from loopr.world.processes import Outcome
from loopr.world.repo.contents import has_text
from loopr.world.settings.presets import Preset
from loopr.world.veil import Veil

TMP = "tmp"
PIECE_BYTES = 1 << 20
ERROR_BYTES = 16 << 10
_WORDS_KEPT = 40
_TEXT_KEPT = 8 << 10


class Heard(NamedTuple):
    """What was heard of an agent: the report of its stream, and the last of what it said; `text` is both."""

    report: Report
    said: str

    @property
    def text(self) -> str:
        """What a person or the next try is to read."""
        return "\n\n".join(filter(None, [self.report.message, self.said]))

    def usage(self, wall_ms: int) -> Usage | None:
        """Return what was used, None where nothing is known of it."""
        used = self.report.used
        return None if used.tokens is None and used.micro_usd is None else usage_of(used, wall_ms)


def usage_of(used: Used, wall_ms: int = 0) -> Usage:
    """Turn what a client said of its use into what is counted; figures that it rounded are an estimate."""
    return Usage(used.tokens, used.micro_usd, wall_ms, estimated=not used.measured)


def changes_for(preset: Preset | None, own: Path) -> list[Changes]:
    """List what a preset changes in the environment; a TMPDIR of the attempt's own is made anew below `own`."""
    if preset is None:
        return []
    changes = [Changes(preset.set, preset.unset, preset.only)]
    if preset.own_tmpdir:
        tmp = own / TMP
        if tmp.is_symlink() or not tmp.is_dir():
            tmp.unlink(missing_ok=True)
        shutil.rmtree(tmp, ignore_errors=True)
        tmp.mkdir(exist_ok=True)
        changes.append(Changes({"TMPDIR": str(tmp)}))
    return changes


def rules_of(preset: Preset | None) -> Rules:
    """Return the rules by which the messages of a preset's client are read."""
    return Rules() if preset is None else Rules(preset.name, preset.signs, preset.success, preset.mend)


def reader_of(task: Task, noted: Mapping[str, str]) -> Reader | None:
    """Make a reader for the output of an attempt, by what it was started with; None where a plain command runs."""
    kind = noted.get("reader", "")
    if not kind:
        return None
    preset = task.preset if task.preset is not None and task.preset.name == noted.get("agent") else None
    rules = rules_of(preset)
    return None if kind == "plain" and not rules.has_signs else reader_for(kind, rules)


def hear_out(kit: Kit, task: Task, outcome: Outcome) -> Heard | None:
    """Read all that an agent has said, and keep what it used beside it; None where a plain command ran."""
    reader = reader_of(task, kit.runs.circumstances(task.name, task.attempt))
    return None if reader is None else _hear_out(kit, task, _Voice(task.preset, reader), outcome)


def hear_review(kit: Kit, task: Task, reviewer: Preset, step: str, outcome: Outcome) -> Heard:
    """Read all that an agent has said that reviewed, and keep what it used beside it."""
    return _hear_out(kit, task, _Voice(reviewer, reader_for(reviewer.reader, rules_of(reviewer)), step), outcome)


class _Voice(NamedTuple):
    """One run of an agent: its preset as it is now, what reads it, and the step that it was, if it was one."""

    preset: Preset | None
    reader: Reader
    step: str = ""


def _hear_out(kit: Kit, task: Task, voice: _Voice, outcome: Outcome) -> Heard:
    """Let a reader read all that one run has written."""
    preset, reader, step = voice
    run = kit.runs.folder(task.name, task.attempt, step)
    words: deque[str] = deque(maxlen=_WORDS_KEPT)
    for piece in _pieces(run / STREAMS[0]):
        words.extend(reader.feed(piece))
    code = outcome.code if outcome.reason == "exited" else None
    ended = outcome.started_at + outcome.wall_ms if outcome.started_at else kit.clock()  # it may be read long after it
    now = datetime.fromtimestamp(ended / 1000).astimezone()
    ending = Ending(code, _end_of(run / STREAMS[1]), now, _is_later(run / STREAMS[1], run / STREAMS[0]))
    if isinstance(reader, CodexReader) and reader.failed and reader.session:
        begun = datetime.fromtimestamp((outcome.started_at or kit.clock()) / 1000)
        reader.feed_session(read_session(_environ(kit, task, preset), reader.session, begun))
    veil, report = veil_of(kit, task, preset), reader.close(ending)
    hidden = report._replace(message=veil.over(report.message), last=veil.over(report.last))
    hidden = hidden._replace(denials=tuple(veil.over(each) for each in report.denials))
    kit.runs.note_usage(task.name, task.attempt, _kept(hidden), step)
    return Heard(hidden, veil.over("\n".join(words))[-_TEXT_KEPT:])


def veil_of(kit: Kit, task: Task, preset: Preset | None) -> Veil:
    """Return what hides the keys that a command of a task was given, in what it has said."""
    ground = kit.ground_of(task)

    def is_public(key: str) -> bool:
        return ground is not None and has_text(ground.door, task.base_commit, key)

    return Veil(_environ(kit, task, preset), is_public=is_public)


def level_of(lane: str, share: Share) -> LaneLevel:
    """Say how much of a lane's window is used, in thousandths, and until when that holds."""
    return LaneLevel(lane, int(share.part * FULL), share.ends_ms)


def _environ(kit: Kit, task: Task, preset: Preset | None) -> Mapping[str, str]:
    """Return the environment that an agent had, as far as the settings make it."""
    lane = kit.settings.lanes.get(task.loop.lane or "")
    first = [Changes(preset.set, preset.unset, preset.only)] if preset is not None else []
    settings = [Changes(*each.env) for each in (lane, task.type) if each is not None]
    return changed(kit.inherited, [*first, *settings])


def _kept(report: Report) -> dict[str, object]:
    """Return what of a report is kept beside the output."""
    used = report.used
    return {
        "input_tokens": used.input_tokens,
        "cached_input_tokens": used.cached_input_tokens,
        "output_tokens": used.output_tokens,
        "cost_usd": None if used.micro_usd is None else used.micro_usd / 1_000_000,
        "measured": used.measured and used.tokens is not None,
        "session": report.session or None,
        "end": report.kind or None,
        "message": report.message or None,
        "denials": list(report.denials),
        "last": report.last or None,
    }


def _pieces(path: Path) -> Iterator[bytes]:
    """Give a file piece by piece, nothing of one that is not there."""
    with suppress(OSError), path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _is_later(path: Path, other: Path) -> bool:
    """Say whether a file was last written to after another one."""
    with suppress(OSError):
        return path.stat().st_mtime_ns > other.stat().st_mtime_ns
    return False


def _end_of(path: Path) -> str:
    """Return the end of a file as text."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - ERROR_BYTES))
        return file.read().decode("utf-8", "replace")
    return ""
