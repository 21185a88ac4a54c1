"""The lock files beside refs, as git makes them, but such that one which a killed engine left is known for what it is.

Each is a second name of a file of ours, and whoever makes one holds a lock that dies with its owner: so a file of ours
that is there while nobody holds that lock was left behind. Must never know what a ref is for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from loopr.world.repo.locks import held

_TURN = "turn.lock"


@contextmanager
def taking_turns(common: Path) -> Iterator[None]:
    """Let one of us at a time lock refs, and free what somebody who was killed has left locked."""
    with held(_place(common) / _TURN):
        _free(common)
        yield


def free_left_locks(common: Path) -> None:
    """Free what somebody who was killed has left locked; whoever is at it now is waited for."""
    if _locked(common):
        with taking_turns(common):
            pass


def lock_ref(common: Path, ref: str, commit: str) -> bool:
    """Lock a ref, with the commit that it shall have in the lock file, if any; only for whose turn it is."""
    file, lock = _file(common, ref), lock_file(common, ref)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="ascii") as opened:
            if commit:
                opened.write(f"{commit}\n")
                opened.flush()
                os.fsync(opened.fileno())
        lock.hardlink_to(file)
    except OSError:
        with suppress(OSError):  # its name may be too long to be one
            file.unlink()
        return False
    return True


def unlock_ref(common: Path, ref: str) -> None:
    """End what was begun with a lock, whether or not the ref was moved."""
    lock, file = lock_file(common, ref), _file(common, ref)
    with suppress(OSError):
        if lock.samefile(file):
            lock.unlink()
    with suppress(OSError):
        file.unlink()


def lock_file(common: Path, ref: str) -> Path:
    """Where git keeps the lock of a ref."""
    return common / f"{ref}.lock"


def _free(common: Path) -> None:
    """Unlock whatever is locked by us: it is our turn, so nobody is at it."""
    for ref in _locked(common):
        unlock_ref(common, ref)


def _locked(common: Path) -> list[str]:
    """List the refs that one of us has locked."""
    with suppress(FileNotFoundError):
        return [unquote(file.name) for file in _place(common).iterdir() if file.name != _TURN]
    return []


def _place(common: Path) -> Path:
    """Where the first names of our lock files are."""
    return common / "loopr" / "moving"


def _file(common: Path, ref: str) -> Path:
    """The first name of the lock file of a ref."""
    return _place(common) / quote(ref, safe="")
