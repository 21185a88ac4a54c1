"""The hooks that are told of events: commands of a person's own, each run once for every event that concerns it.

A run is called after its hook and its event, so that an engine after a crash finds it again: one that lives is
followed, one that has ended was told, and one that was lost is told anew. Those about one loop are told in their order,
those about no loop after all before them. Must never change the tree, whatever comes of a hook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from loopr.core import observations as o
from loopr.core.entries import Command
from loopr.driving.acts import Act, Asked, Run, Tell
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.driving.occasions import TOLD_HOOKS, Occasion, instant
from loopr.driving.outcomes import headline_of, signal_in, tail_of
from loopr.errors import LooprError
from loopr.world.environment import GIT_LOCAL
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.veil import Veil

HOOK = "hook "
RUNS, EVENT_FILE = "hooks", "event.json"
MOST_AT_ONCE = 4
TRIES = 3  # of a run that does not come to its own end
_CUT_OFF = frozenset({"lost", "signalled", "killed"})  # with its machine, say, or by a person
REST_MS = 5_000  # where a hook cannot even be begun
Heard = Callable[[str, int], o.Observation | None]
_Name = tuple[str, int]


class Hooks:
    """Tells hooks, a few at once."""

    def __init__(self, kit: Kit, jobs: Jobs, heard: Heard) -> None:
        self._kit, self._jobs, self._heard = kit, jobs, heard
        self._waiting: dict[_Name, Occasion] = {}
        self._busy: dict[_Name, str] = {}
        self._known: set[str] = set()
        self._rests_until = 0

    def named(self) -> dict[str, str]:
        """Map the listeners that are set to the names of their hooks."""
        return {f"{HOOK}{name}": name for name in TOLD_HOOKS if name in self._kit.settings.hooks}

    @property
    def owes(self) -> bool:
        """True while a hook is told of something, or is still to be told."""
        return bool(self._waiting or self._busy)

    def take(self, occasion: Occasion) -> None:
        """Have the occasion's hook told of it when it is its turn."""
        self._waiting[occasion.hook, occasion.seq] = occasion

    def adopt(self) -> None:
        """Take up what an earlier engine has begun to tell."""
        folders = dict(each for occasion in self._waiting.values() for each in self._begun(occasion))
        states = self._jobs.attempts.adopt(folders) if folders else {}
        self._known = {run for run, state in states.items() if state != "unclaimed"}

    def _begun(self, occasion: Occasion) -> Iterator[tuple[str, Path]]:
        """Name the runs about an occasion that have a folder."""
        for number in range(1, TRIES + 1):
            step = _step(occasion, number)
            folder = self._kit.runs.folder(RUNS, 0, step)
            if folder.is_dir():
                yield self._kit.runs.id_of(RUNS, 0, step), folder

    def go_on(self, now: int) -> None:
        """Begin to tell what may be told now."""
        if now < self._rests_until or len(self._busy) >= MOST_AT_ONCE:
            return
        for name, occasion in self._next():
            del self._waiting[name]
            self._busy[name] = occasion.loop
            self._jobs.begin(Key("hook", f"{name[0]} {name[1]}", 0), self._tell(name, occasion), self._broken(occasion))

    def _next(self) -> list[tuple[_Name, Occasion]]:
        """List what may be told at once: nothing overtakes what is about the same loop, nor all of it before it."""
        found: list[tuple[_Name, Occasion]] = []
        loops = set(self._busy.values())
        for name, occasion in self._waiting.items():
            if len(self._busy) + len(found) >= MOST_AT_ONCE:
                break
            if not occasion.loop:
                if not found and not self._busy and name == next(iter(self._waiting)):
                    found.append((name, occasion))
                break
            if occasion.loop not in loops:
                loops.add(occasion.loop)
                found.append((name, occasion))
        return found

    # -- one of them

    def _tell(self, name: _Name, occasion: Occasion) -> Act:
        """Run a hook with the occasion on its standard input; a failure is reported and changes nothing."""
        listener = f"{HOOK}{occasion.hook}"
        command = self._kit.settings.hooks.get(occasion.hook)
        if command is not None:
            yield Tell(o.Noticed(listener, (yield from self._run(occasion, command))))
        self._busy.pop(name, None)
        return self._heard(listener, occasion.seq)

    def _run(self, occasion: Occasion, command: Command) -> Generator[Asked, Any, str]:
        """Run a hook to its end, again if it is cut off on the way, and say what went wrong."""
        words = ""
        for number in range(1, TRIES + 1):
            step = _step(occasion, number)
            run, folder = self._kit.runs.id_of(RUNS, 0, step), self._kit.runs.folder(RUNS, 0, step)
            spec = None if run in self._known else self._spec(occasion, command, step)
            outcome: Outcome = yield Run(run, spec)
            words = _trouble(outcome, folder, self._kit.veil())
            if not _was_cut_off(outcome):
                break
        about = f"event {occasion.seq}" + (f" ({occasion.loop})" if occasion.loop else "")
        return f"told of {about}, {words}" if words else ""

    def _broken(self, occasion: Occasion) -> Callable[[Exception], o.Observation | None]:
        """Return what a failure to begin means: the hook is told later, unless the fault is ours."""

        def broken(error: Exception) -> o.Observation | None:
            name = (occasion.hook, occasion.seq)
            self._busy.pop(name, None)
            if not isinstance(error, LooprError | OSError):
                return self._heard(f"{HOOK}{occasion.hook}", occasion.seq)
            self._waiting = dict(sorted({**self._waiting, name: occasion}.items(), key=lambda each: each[0][1]))
            self._rests_until = self._kit.clock() + REST_MS
            return o.Noticed(f"{HOOK}{occasion.hook}", f"cannot be told of event {occasion.seq} yet: {error}")

        return broken

    def _spec(self, occasion: Occasion, command: Command, step: str) -> AttemptSpec:
        """Say how a hook is run: in the workspace, with the occasion as JSON."""
        folder, run = self._kit.runs.ensure(RUNS, 0, step), self._kit.runs.id_of(RUNS, 0, step)
        stdin = folder / EVENT_FILE
        stdin.touch(0o600)
        stdin.write_text(f"{json.dumps(_document(occasion))}\n", encoding="utf-8")
        own = {
            "LOOPR": "1",
            "LOOPR_WORKSPACE": str(self._kit.place.root),
            "LOOPR_LEASE": run,
            "LOOPR_LOOP": occasion.loop,
            "LOOPR_HOOK": occasion.hook,
        }
        argv = ("sh", "-c", command) if isinstance(command, str) else tuple(command)
        environ, limit_ms = inherited(self._kit) | own, self._kit.settings.hook_ms
        return AttemptSpec(run, folder, argv, self._kit.place.root, environ, stdin, wall_ms=limit_ms)


def inherited(kit: Kit) -> dict[str, str]:
    """Return what loopr was started with, but for what is about a loop or a repository."""
    kept = kit.inherited.items()
    return {key: value for key, value in kept if not key.startswith("LOOPR") and key not in GIT_LOCAL}


def _step(occasion: Occasion, number: int) -> str:
    """Name a run: after the hook and the event, and by which try it is."""
    return f"{occasion.hook}.{occasion.seq}" + (f".{number}" if number > 1 else "")


def _document(occasion: Occasion) -> dict[str, Any]:
    """Write an occasion as a hook reads it: the event as `loopr events --json` has it, and what it means."""
    return {
        "schema": 1,
        "hook": occasion.hook,
        "seq": occasion.seq,
        "at": instant(occasion.at),
        "event": occasion.event or None,
        "loop": occasion.loop or None,
        "actor": occasion.actor or None,
        "data": dict(occasion.data),
        "status": occasion.status or None,
        "reason": occasion.reason or None,
    }


def _was_cut_off(outcome: Outcome) -> bool:
    """Say whether a hook did not come to its own end; a shell tells of a signal by a number."""
    return outcome.reason in _CUT_OFF or (outcome.reason == "exited" and signal_in(outcome.code or 0) > 0)


def _trouble(outcome: Outcome, folder: Path, veil: Veil) -> str:
    """Say what went wrong with a hook, nothing if it ended well."""
    if outcome.reason == "exited" and outcome.code == 0:
        return ""
    number = outcome.signal or signal_in(outcome.code or 0)
    by_signal = f"it was ended by signal {number}"
    words = {
        "exited": by_signal if number > 0 else f"it failed with exit {outcome.code}",
        "signalled": by_signal,
        "wall": "it took longer than hooks.timeout_secs",
        "not_started": "it could not be started",
        "lost": "it was lost again and again",
    }.get(outcome.reason, f"it ended with {outcome.reason}")
    end = headline_of(veil.over_bytes(tail_of(folder))) or outcome.message
    return f"{words}{f': {end}' if end else ''}; its log is in {folder}"
