"""Where settings may come from, and a seal that tells whether any of it has changed.

Knows the names of files and variables, never what is in them; imports next to nothing, so that a verb which only shows
can see in a moment that the policy it remembers still holds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from loopr import __version__

FILE = "loopr.yml"
LOCAL_FILE = "loopr.local.yml"
PREFIX = "LOOPR_"
PRESETS = "agents"


def files(workspace: Path | None, environ: Mapping[str, str], home: Path | None) -> list[tuple[Path, str]]:
    """Name the files that may exist, with what to call them in messages."""
    found: list[tuple[Path, str]] = []
    xdg = environ.get("XDG_CONFIG_HOME", "")
    if xdg.startswith("/"):
        found.append(_labelled(Path(xdg) / "loopr" / FILE, home))
    elif home is not None:
        found.append(_labelled(home / ".config" / "loopr" / FILE, home))
    if workspace is not None:
        found += [(workspace / name, name) for name in (FILE, LOCAL_FILE)]
    return found


def preset_files(workspace: Path | None) -> list[Path]:
    """Name the files of the workspace that may be agent presets."""
    if workspace is None:
        return []
    try:
        with os.scandir(workspace / PRESETS) as entries:
            return sorted(workspace / PRESETS / each.name for each in entries if each.name.endswith(".yml"))
    except OSError:
        return []


def _labelled(path: Path, home: Path | None) -> tuple[Path, str]:
    """Call a file by its place below the home folder where it is there."""
    inside = home is not None and path.is_relative_to(home)
    return path, f"~/{path.relative_to(home)}" if home and inside else str(path)


def variables(environ: Mapping[str, str]) -> list[str]:
    """Name the variables that set something; those that loopr gives to commands have no double underscore."""
    return sorted(name for name in environ if name.startswith(PREFIX) and "__" in name[len(PREFIX) :])


def seal(workspace: Path | None, environ: Mapping[str, str], home: Path | None, overrides: Sequence[str] = ()) -> str:
    """Return a digest of all that the settings are made from, this version's defaults included."""
    digest = hashlib.sha256(__version__.encode())
    for path, _ in files(workspace, environ, home):
        try:
            digest.update(b"file" + hashlib.sha256(path.read_bytes()).digest())
        except OSError:
            digest.update(b"none")
    for path in preset_files(workspace):
        try:
            found = path.stat()
        except OSError:
            continue
        digest.update(f"\0{path.name}\0{found.st_mtime_ns}\0{found.st_size}".encode(errors="surrogateescape"))
    for name in variables(environ):
        digest.update(f"\0{name}\0{environ[name]}".encode(errors="surrogateescape"))
    for each in overrides:
        digest.update(f"\0--set\0{each}".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]
