"""The virtual environment that is active where loopr was started, seen from a worktree.

One that lies in a checkout is, for a worktree, the one at the same place there. Where none is, one
that runs the checkout's own files is left out: a check would judge those. Must never make one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MARK, ACTIVE = "pyvenv.cfg", "VIRTUAL_ENV"
_LINKS = ("*.pth", "__editable__*", "*.egg-link", "*.dist-info/direct_url.json")
_MOST_BYTES = 1 << 16


def seen_from(environ: Mapping[str, str], top: Path, folder: Path, *, strict: bool = True) -> dict[str, str]:
    """Return an environment as it is for a command in a worktree of a checkout.

    Without `strict` nothing is left out, as for a setup that makes the files that are missing.
    """
    kept = dict(environ)
    if folder == top or not folder.is_dir():
        return kept
    paths = []
    for each in environ.get("PATH", os.defpath).split(os.pathsep):
        home = _environment_at(Path(each).parent, top)
        there = folder / Path(each).relative_to(top) if home is not None else None
        if there is not None and there.is_dir():
            paths.append(str(there))
        elif home is None or not (strict and leads_to(home, top)):
            paths.append(each)
    kept["PATH"] = os.pathsep.join(paths)
    active = _environment_at(Path(environ.get(ACTIVE) or "."), top)
    if active is not None:
        there = folder / active.relative_to(top)
        if there.is_dir():
            kept[ACTIVE] = str(there)
        elif strict and leads_to(active, top):
            del kept[ACTIVE]
    return kept


def left_out(environ: Mapping[str, str], top: Path) -> str:
    """Return the path in a checkout of the environment on PATH that runs its files, or ""."""
    for each in environ.get("PATH", os.defpath).split(os.pathsep):
        home = _environment_at(Path(each).parent, top)
        if home is not None and leads_to(home, top):
            return str(home.relative_to(top))
    return ""


def leads_to(home: Path, top: Path) -> bool:
    """Say whether a virtual environment runs files of a checkout, as after `pip install -e .`."""
    signs = {os.fsencode(top), os.fsencode(top.resolve())}
    for site in home.glob("lib/python*/site-packages"):
        for pattern in _LINKS:
            texts = [_beginning(each) for each in site.glob(pattern)]
            if any(sign in text for text in texts for sign in signs):
                return True
    return False


def _beginning(path: Path) -> bytes:
    """Read the beginning of a file; nothing of one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return b""


def _environment_at(folder: Path, top: Path) -> Path | None:
    """Return a folder if it is a virtual environment within a checkout."""
    if folder == top or not folder.is_relative_to(top) or not (folder / MARK).is_file():
        return None
    return folder
