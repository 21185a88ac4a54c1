"""Readers of what coding agents say: from the stream of a client to what its work came to.

    reader = reader_for("claude", Rules("claude", signs, success, mend))
    for word in reader.feed(piece):      # what was newly said or done, while it runs
        ...
    report = reader.close(Ending(code))  # outcome, usage, session, what was not permitted, when a limit ends

A reader is pure: bytes go in, and nothing it meets makes it fail; an unknown line, a cut one or another order of keys
changes nothing. An exit code alone is believed only where a stream cannot tell. Knows clients, never a loop or a disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopr.world.agents.claude import ClaudeReader
from loopr.world.agents.codex import CodexReader
from loopr.world.agents.gemini import GeminiReader
from loopr.world.agents.opencode import OpencodeReader
from loopr.world.agents.plain import AiderReader, PlainReader
from loopr.world.agents.reader import Reader
from loopr.world.agents.words import Ending, Report, Rules, Share, Used

__all__ = ["CodexReader", "Ending", "Reader", "Report", "Rules", "Share", "Used", "reader_for"]

READERS: Mapping[str, type[Reader]] = {
    "plain": PlainReader,
    "claude": ClaudeReader,
    "codex": CodexReader,
    "opencode": OpencodeReader,
    "gemini": GeminiReader,
    "aider": AiderReader,
}


def reader_for(name: str, rules: Rules | None = None) -> Reader:
    """Make a fresh reader of a kind."""
    return READERS.get(name, PlainReader)(rules or Rules(name))
