"""What a command hands over: kept where no command reaches it; nothing but a plain file counts.

Must never know what is in it.
"""

from __future__ import annotations

from pathlib import Path

MAX_OUTPUT_BYTES = 1 << 20


def keep_output(source: Path, target: Path) -> None:
    """Keep what was handed over where no command reaches it; nothing but a plain file counts."""
    try:
        if source.parent.is_symlink() or source.is_symlink() or not source.is_file():
            return
        with source.open("rb") as file:
            raw = file.read(MAX_OUTPUT_BYTES + 1)
    except FileNotFoundError:
        return
    fresh = target.with_name(f".{target.name}.new")
    fresh.touch(0o600)
    fresh.write_bytes(raw)
    fresh.replace(target)


def is_plain_file(path: Path) -> bool:
    """Say whether an ordinary file is there, through no link."""
    return path.is_file() and not path.is_symlink()
