"""The dialect of `sh`: it is asked about a text before that runs, and about words of bash.

Knows the words of bash and their stand-ins. Must never run a text, nor know its purpose.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache

_BY_BASH = "write `bash -c '...'`"
BASH_ONLY = {
    "source": "sh has `.`",
    "[[": f"{_BY_BASH}, or `[`",
    **dict.fromkeys(
        (
            *("pushd", "popd", "dirs", "shopt", "declare", "typeset", "let", "mapfile"),
            *("readarray", "function", "select", "coproc", "builtin", "disown", "compgen"),
        ),
        _BY_BASH,
    ),
}
"""First words of a command that only bash has, each with its stand-in for sh."""

Answer = subprocess.CompletedProcess[str]

_PATIENCE_SECS = 5
_SAID = re.compile(r"[^:\n]*: (?:(?:line )?(?P<line>\d+): )?(?P<words>.+)")
_NOT_FOUND = re.compile(r": (?P<word>[^\s:]+): (?:command )?not found$")
_LACKS = 'for word; do command -v "$word" >/dev/null 2>&1 || printf "%s\\n" "$word"; done'


@lru_cache(maxsize=1000)
def complaint(text: str) -> str:
    """Return why sh cannot read a text, in its own words; nothing where it can, or is not here."""
    said = _asked("sh", ("-n",), text)
    if said is None or said.returncode == 0:
        return ""
    found = _SAID.match(said.stderr)
    if found is None:
        return said.stderr.strip().partition("\n")[0]
    line = int(found["line"] or 1)
    return found["words"] + (f" (line {line})" if line > 1 else "")


def cure_of(text: str) -> str:
    """Name the cure of a text that sh cannot read: nothing, unless bash can."""
    said = _asked("bash", ("-n",), text)
    return f"bash can: {_BY_BASH}" if said is not None and said.returncode == 0 else ""


@lru_cache(maxsize=100)
def lacking(words: frozenset[str]) -> frozenset[str]:
    """Return which words sh does not know; none of them where sh is bash under another name."""
    said = _asked("sh", ("-c", _LACKS, "sh", *sorted(words)), "") if words else None
    return words.intersection(said.stdout.split()) if said is not None else frozenset()


def cure_in(line: str) -> str:
    """Name the cure where a shell's line tells that it lacks a word of bash's; else nothing."""
    found = _NOT_FOUND.search(line)
    return BASH_ONLY.get(found["word"], "") if found else ""


def _asked(shell: str, words: Sequence[str], text: str) -> Answer | None:
    """Ask a shell that is given a text as its input, None where it does not answer."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        return subprocess.run(
            [shell, *words],
            input=text,
            env=env,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_PATIENCE_SECS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
