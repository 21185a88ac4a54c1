"""The texts of accepted settings, each under its seal in a folder: written as a whole or not at all, for us alone.

What is read is compared with its seal, so that nothing else can take its place. Knows files. Must never know which
seal is in force.
"""

from __future__ import annotations

import os
from pathlib import Path

from loopr.errors import SettingsError, WorldError
from loopr.world.settings.sources import Texts, seal_of

FOLDER = "accepted"
_TAKE = "put it back from a backup, or `loopr config accept` takes what the files say now"


def keep(state: Path, texts: Texts) -> None:
    """Keep texts under their seal; what is there already and is the same is left alone."""
    path = state / FOLDER / texts.seal
    try:
        if _read(path) == texts.packed:
            os.utime(path)  # as good as new to those who tidy up
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        _write(draft, texts.packed)
        draft.replace(path)
        for folder in (path.parent, state):
            _sync(folder)
    except OSError as error:
        hint = "free some space, or mend the permissions"
        raise WorldError(f"cannot write {path}: {error.strerror or error}", hint=hint) from error


def recall(state: Path, seal: str) -> Texts:
    """Return the texts that were kept under a seal, or say that they are gone or not the same any more."""
    path = state / FOLDER / seal
    try:
        raw = _read(path)
    except OSError as error:
        words = f"the accepted settings cannot be read: {error.strerror or error}"
        raise SettingsError(words, where=str(path), hint=_TAKE) from error
    if raw is None or seal_of(raw) != seal:
        words = "the accepted settings are gone" if raw is None else "the accepted settings are damaged"
        raise SettingsError(words, where=str(path), hint=_TAKE)
    return Texts.unpacked(raw)


def tidy(state: Path, wanted: frozenset[str], before_secs: float) -> None:
    """Take away what nobody wants and nobody has written since."""
    try:
        with os.scandir(state / FOLDER) as entries:
            for each in entries:
                if each.name not in wanted and each.stat(follow_symlinks=False).st_mtime < before_secs:
                    Path(each.path).unlink()
    except OSError:
        return  # it is tidied up another time


def _read(path: Path) -> bytes | None:
    """Return what a file holds, None where there is none; of a file that is no ordinary one nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)  # also that of a folder, which no file object takes over


def _write(path: Path, raw: bytes) -> None:
    """Write a new file that only we may read, safe from a power cut."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make sure that a name survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
