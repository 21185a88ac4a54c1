"""The name of a generation: its branch, its worktree folder and its run folder are called so.

Knows ids only. A name that a file system would not take is cut, and a hash keeps it apart from its neighbours.
"""

from __future__ import annotations

import hashlib
import re

MAX_NAME_BYTES = 200
_HASH_LENGTH = 12
_ROOM = ".judge-"
_ROOM_NAME = re.compile(r".*\.g\d+\.judge-\d+")


def generation_name(loop_id: str, generation: int) -> str:
    """Return the name of a generation: `oauth/tokens/store` in its first is `oauth.tokens.store.g1`."""
    end = f".g{generation}"
    plain = loop_id.replace("/", ".")
    if len(plain) + len(end) <= MAX_NAME_BYTES:
        return plain + end
    mark = hashlib.sha256(loop_id.encode()).hexdigest()[:_HASH_LENGTH]
    kept = plain[: MAX_NAME_BYTES - len(end) - _HASH_LENGTH - 1].rstrip(".-")
    return f"{kept}-{mark}{end}"


def judge_room(name: str, attempt: int) -> str:
    """Return what the clean folder is called in which an attempt of a generation is judged."""
    return f"{name}{_ROOM}{attempt}"


def is_judge_room(name: str) -> bool:
    """Say whether something is called as the folders of judges are; no generation is."""
    return _ROOM_NAME.fullmatch(name) is not None
