"""Which files git merges by keeping the lines of both sides, as the settings say.

Git reads that in a file of attributes; ours has a person's own before it, and what a repository
says in its `.gitattributes` holds over both. Must never know what is merged.
"""

from __future__ import annotations

import os
from pathlib import Path

from loopr.world.repo.calls import Door, Settings

_KEY = "core.attributesFile"


def attributes_for(door: Door) -> Settings:
    """Return the settings of git with which a merge keeps both sides of some files; none where none are named."""
    if not door.union:
        return ()
    file = door.common / "loopr" / "attributes"
    text = _of_person(door) + b"".join(b'"%b" merge=union\n' % _quoted(each) for each in door.union)
    if not file.is_file() or file.read_bytes() != text:
        fresh = file.with_name(f".attributes.{os.getpid()}")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(text)
        fresh.replace(file)
    return ((_KEY, str(file)),)


def _of_person(door: Door) -> bytes:
    """Read what a person says of all repositories, which would not be read beside ours."""
    said = door.ask("config", "--path", "--get", _KEY).line
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - as git reads it
    try:
        text = Path(said or f"{home}/git/attributes").read_bytes()
    except OSError:
        return b""
    return text if text.endswith(b"\n") else text + b"\n"


def _quoted(pattern: str) -> bytes:
    """Write a pattern between quotes."""
    return os.fsencode(pattern.replace("\\", "\\\\").replace('"', '\\"'))
