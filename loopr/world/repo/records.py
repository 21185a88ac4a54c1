"""What is remembered of a conflict that was laid into a worktree, until the next attempt has answered it.

Knows one small file for each loop under the state folder. Must never know git.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Clash


class Record(NamedTuple):
    """A conflict: after which attempt it was found, and all that is needed to lay it again."""

    attempt: int
    clash: Clash


def write_record(ground: Ground, clash: Clash) -> None:
    """Remember a conflict, by rename."""
    file = _file(ground, clash.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_text(json.dumps(clash._asdict()), encoding="utf-8")
    fresh.replace(file)


def read_record(ground: Ground, name: str) -> Record | None:
    """Return the conflict that a loop has to answer, None if there is none."""
    try:
        row = json.loads(_file(ground, name).read_bytes())
        clash = Clash(**row)._replace(files=tuple(row["files"]), messages=tuple(row["messages"]), laid=True)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Record(clash.attempt, clash)


def forget_record(ground: Ground, name: str) -> None:
    """Forget the conflict of a loop."""
    _file(ground, name).unlink(missing_ok=True)


def _file(ground: Ground, name: str) -> Path:
    """The file that remembers."""
    return ground.state / "conflicts" / f"{name}.json"
