"""Refs of loopr's own, moved without starting git: most moves of a loop are of its own branch and of what marks it.

Knows how git moves and deletes a ref, by a lock file and a rename, so that both may do it at the same time; what is out
of the ordinary is left to git. Must never touch a ref that is not below a prefix of ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from loopr.world.repo.calls import Door
from loopr.world.repo.making import habits_of
from loopr.world.repo.packed import PACKED
from loopr.world.repo.ref_locks import lock_file, lock_ref, taking_turns, unlock_ref
from loopr.world.repo.refs import Move, any_packed_below, move_refs, read_refs

_LOGGED = "loopr <loopr@localhost>"


def put_refs(door: Door, moves: Sequence[Move], why: str) -> None:
    """Set refs one after the other, each only from where it was expected; `RefRaced` at the first that was elsewhere.

    A crash may come between two of them: only for refs whose order makes that harmless.
    """
    for move in moves:
        put_together(door, [move], why)


def put_together(door: Door, moves: Sequence[Move], why: str) -> None:
    """Set refs, all or none; `RefRaced` where one was not where it was expected. A crash leaves the last undone."""
    plain = habits_of(door).plain  # else others may have to write where we make folders
    with taking_turns(door.common):
        done = plain and _put(door, moves, why)
    if not done:  # one is locked, or elsewhere, or a branch is in the way: git knows how to wait, and what to say
        move_refs(door, moves, why)


def drop_refs(door: Door, refs: Mapping[str, str], why: str) -> None:
    """Delete refs, all or none, each only where it is expected; for whoever holds the lock around what all share.

    One after the other: a crash leaves the last ones.
    """
    with taking_turns(door.common):
        done = _drop(door, refs)
    if not done:
        move_refs(door, [Move(ref, "", old) for ref, old in refs.items()], why)


def _put(door: Door, moves: Sequence[Move], why: str) -> bool:
    """Set some refs, and say whether that was done; nothing has changed if not."""
    with _locking(door.common, {move.ref: move.new for move in moves}) as locked:
        before = read_refs(door, *(move.ref for move in moves)) if locked else {}
        if not locked or not all(_may_move(door, move, before.get(move.ref, "")) for move in moves):
            return False
        for count, move in enumerate(moves):
            try:
                lock_file(door.common, move.ref).replace(door.common / move.ref)
            except OSError:
                if count:
                    raise
                return False
            _log(door, move._replace(old=before.get(move.ref, "")), why)
        return True


def _may_move(door: Door, move: Move, before: str) -> bool:
    """Say whether a ref is where it was expected, and nothing is in its way."""
    return move.old in (None, before) and bool(before or _is_free(door, move.ref))


def _drop(door: Door, refs: Mapping[str, str]) -> bool:
    """Delete some refs of which none is packed, and say whether that was done; nothing has changed if not."""
    with _locking(door.common, dict.fromkeys((*refs, PACKED), "")) as locked:  # so that nobody packs one meanwhile
        if not locked or read_refs(door, *refs) != refs or any(any_packed_below(door, ref) for ref in refs):
            return False
        for ref in refs:
            (door.common / "logs" / ref).unlink(missing_ok=True)
            (door.common / ref).unlink()
        return True


@contextmanager
def _locking(common: Path, refs: Mapping[str, str]) -> Iterator[bool]:
    """Lock refs with the commits that they shall have, and say whether that could be done."""
    tried: list[str] = []
    try:
        for ref, commit in refs.items():
            tried.append(ref)
            if not lock_ref(common, ref, commit):
                yield False
                return
        yield True
    finally:
        for ref in tried:
            unlock_ref(common, ref)


def _is_free(door: Door, ref: str) -> bool:
    """Say whether a ref may be made: nothing else lies there, and no packed ref is above or below it."""
    above = [ref.rsplit("/", count)[0] for count in range(1, ref.count("/"))]
    return not (os.path.lexists(door.common / ref) or read_refs(door, *above) or any_packed_below(door, f"{ref}/"))


def _log(door: Door, move: Move, why: str) -> None:
    """Go on with the log of a branch where git keeps one."""
    with suppress(OSError), (door.common / "logs" / move.ref).open("r+", encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        log.write(f"{move.old or '0' * len(move.new)} {move.new} {_LOGGED} {int(time.time())} +0000\t{why}\n")
