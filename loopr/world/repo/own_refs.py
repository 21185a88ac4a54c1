"""Refs of loopr's own, moved without starting git: most moves of a loop are of its own branch and of what marks it.

Knows how git moves a ref, by a lock file and a rename, so that both may do it at the same time; what is out of the
ordinary is left to git. Must never delete a ref, nor move one that is not below a prefix of ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from loopr.world.repo.calls import Door
from loopr.world.repo.ref_locks import lock_file, lock_ref, taking_turns, unlock_ref
from loopr.world.repo.refs import Move, any_packed_below, move_refs, read_refs

_LOGGED = "loopr <loopr@localhost>"


def put_refs(door: Door, moves: Sequence[Move], why: str) -> None:
    """Set refs one after the other, each only from where it was expected; `RefRaced` at the first that was elsewhere.

    A crash may come between two of them: only for refs whose order makes that harmless.
    """
    for move in moves:
        with taking_turns(door.common):
            done = _put(door, move, why)
        if not done:  # it is locked, or elsewhere, or a branch is in the way: git knows how to wait, and what to say
            move_refs(door, [move], why)


def _put(door: Door, move: Move, why: str) -> bool:
    """Set one ref, and say whether that was done; nothing has changed if not."""
    if not lock_ref(door.common, move.ref, move.new):
        return False
    try:
        before = read_refs(door, move.ref).get(move.ref, "")
        if move.old not in (None, before) or not (before or _is_free(door, move.ref)):
            return False
        lock_file(door.common, move.ref).replace(door.common / move.ref)
        _log(door, move._replace(old=before), why)
        return True
    except OSError:
        return False
    finally:
        unlock_ref(door.common, move.ref)


def _is_free(door: Door, ref: str) -> bool:
    """Say whether a ref may be made: nothing else lies there, and no packed ref is above or below it."""
    above = [ref.rsplit("/", count)[0] for count in range(1, ref.count("/"))]
    return not (os.path.lexists(door.common / ref) or read_refs(door, *above) or any_packed_below(door, f"{ref}/"))


def _log(door: Door, move: Move, why: str) -> None:
    """Go on with the log of a branch where git keeps one."""
    with suppress(OSError), (door.common / "logs" / move.ref).open("r+", encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        log.write(f"{move.old or '0' * len(move.new)} {move.new} {_LOGGED} {int(time.time())} +0000\t{why}\n")
