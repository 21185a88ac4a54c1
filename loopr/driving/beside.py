"""What happens beside the work: hooks are told of events, and artifacts are stamped where that is wanted.

None of it ever changes the tree: a hook that fails is reported, a stamp that cannot be set is left out. Knows events by
their names only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.codec import encode
from loopr.core.entries import Command
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.workspace_events import ConvoyLanded
from loopr.driving.acts import Act, Do, Run, Tell
from loopr.driving.attempting import tail_of
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.errors import LooprError
from loopr.world import feedback
from loopr.world.artifacts import digest
from loopr.world.environment import GIT_LOCAL
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.stamping import Stamp, ensure_stamp

HOOK_MS = 60_000
EVENT_FILE = "event.json"
_PARKS = (e.SetAside, e.Broke, e.Conflicted, e.LeaseExpired)
_COMPLETES = (e.Landed, e.Settled, e.ArtifactAccepted)


class Beside:
    """Tells hooks and stamps artifacts."""

    def __init__(self, kit: Kit, jobs: Jobs) -> None:
        self._kit, self._jobs = kit, jobs
        self._count = 0
        self._said_settled = False
        self._due: dict[str, Stamp] = {}

    def heed(self, forest: Forest, events: Iterable[Event], now: int) -> None:
        """Do what the settings want to follow some events."""
        stamps, hooks = self._kit.settings.artifacts.stamp, self._kit.settings.hooks
        auto = self._kit.settings.land.mode == "auto"
        if not stamps and not auto and not any(hooks.values()):
            return
        for event in events:
            if isinstance(event, e.LoopEvent):
                loop = forest.loops[event.loop]
                self._hook(_hook_of(event, loop), event, loop, now)
                if auto and isinstance(event, _COMPLETES) and forest.tree.done(loop.plan):
                    self._jobs.begin(
                        Key("home", f"home of {loop.plan}", loop.attempt), self._bring_home(loop.plan, now), _nothing
                    )
                if stamps and loop.on_disk:
                    note = loop.reason
                    self._due[loop.id] = Stamp(str(loop.status), loop.attempt, loop.iteration, now, note)
            elif isinstance(event, ConvoyLanded):
                self._hook("on_convoy_complete", event, None, now)
        key = Key("stamp", "", 0)
        if self._due and key not in self._jobs:
            due, self._due = self._due, {}
            self._jobs.begin(key, self._stamp([(forest.loops[each], stamp) for each, stamp in due.items()]), _nothing)

    def settled(self, forest: Forest, now: int) -> bool:
        """Tell the hook that everything has settled, once; say whether it had to be told."""
        if self._kit.settings.hooks.get("on_settle") is None or self._said_settled:
            return False
        self._hook("on_settle", None, None, now)
        self._said_settled = True
        return True

    def _hook(self, name: str, event: Event | None, loop: Loop | None, now: int) -> None:
        """Begin to tell a hook, if there is one."""
        command = self._kit.settings.hooks.get(name) if name else None
        if command is None:
            return
        self._count += 1
        key = Key("hook", f"{name}:{loop.id if loop else ''}", now + self._count)
        self._jobs.begin(key, self._tell(name, command, event, loop, now), _nothing)

    def _tell(self, name: str, command: Command, event: Event | None, loop: Loop | None, now: int) -> Act:
        """Run a hook with the event on its standard input; a failure is reported and changes nothing."""
        spec = self._spec(name, command, event, loop, now)
        outcome: Outcome = yield Run(spec.id, spec)
        place = f"hook {name}"
        if outcome.code == 0:
            yield Tell(o.Noticed(place, ""))
        else:
            end = feedback.bounded(tail_of(spec.folder)).strip().rpartition("\n")[2]
            words = f"failed ({outcome.reason} {outcome.code}): {end} (its log is in {spec.folder})"
            yield Tell(o.Noticed(place, words))
        return None

    def _spec(self, name: str, command: Command, event: Event | None, loop: Loop | None, now: int) -> AttemptSpec:
        """Say how a hook is run: in the workspace, with the event as JSON."""
        step = f"{name}.{now}.{self._count}"
        folder = self._kit.runs.ensure("hooks", 0, step)
        said: dict[str, Any] = {"hook": name, "at": now, "loop": loop.id if loop else None}
        if event is not None:
            kind, _, body = encode(event)
            said |= {"event": kind, "data": json.loads(body)}
        if loop is not None:
            said |= {"status": str(loop.status), "reason": loop.reason}
        (folder / EVENT_FILE).write_text(json.dumps(said), encoding="utf-8")
        run = self._kit.runs.id_of("hooks", 0, step)
        own = {
            "LOOPR": "1",
            "LOOPR_WORKSPACE": str(self._kit.place.root),
            "LOOPR_LEASE": run,
            "LOOPR_LOOP": loop.id if loop else "",
            "LOOPR_HOOK": name,
        }
        argv = ("sh", "-c", command) if isinstance(command, str) else tuple(command)
        inherited = self._inherited()
        stdin = folder / EVENT_FILE
        return AttemptSpec(run, folder, argv, self._kit.place.root, inherited | own, stdin, wall_ms=HOOK_MS)

    def _bring_home(self, plan: str, now: int) -> Act:
        """Bring a plan that is done to its base branch, as `loopr land` does it; a refusal is reported."""
        folder = self._kit.runs.ensure("home", 0, f"{plan}.{now}")
        run = self._kit.runs.id_of("home", 0, f"{plan}.{now}")
        root = self._kit.place.root
        argv = (sys.executable, "-P", "-m", "loopr", "land", "-C", str(root), "--yes", plan)
        inherited = self._inherited()
        outcome: Outcome = yield Run(run, AttemptSpec(run, folder, argv, root, inherited, Path(os.devnull)))
        said = feedback.bounded(tail_of(folder)).strip() or f"it ended with {outcome.reason} {outcome.code}"
        yield Tell(o.Noticed(f"landing of {plan}", "" if outcome.code == 0 else said))
        return None

    def _inherited(self) -> dict[str, str]:
        """Return what loopr was started with, but for what is about a loop or a repository."""
        kept = self._kit.inherited.items()
        return {key: value for key, value in kept if not key.startswith("LOOPR") and key not in GIT_LOCAL}

    def _stamp(self, due: list[tuple[Loop, Stamp]]) -> Act:
        """Stamp some artifacts."""
        yield Do(lambda: self._stamp_all(due))
        return None

    def _stamp_all(self, due: list[tuple[Loop, Stamp]]) -> None:
        """Stamp artifacts; whatever keeps us from it is no reason to stop."""
        for loop, stamp in due:
            path = self._kit.specs / loop.id / f"{loop.type}.md"
            with suppress(LooprError, OSError):
                ensure_stamp(path, stamp, expected=loop.artifact, digest=digest)


def _hook_of(event: e.LoopEvent, loop: Loop) -> str:
    """Say which hook hears of an event."""
    if isinstance(event, _COMPLETES) and loop.status is Status.COMPLETE:
        return "on_complete"
    if isinstance(event, _PARKS) and loop.status is Status.PARKED:
        return "on_park"
    return ""


def _nothing(error: Exception) -> None:
    """Report nothing: what happens beside the work never changes it."""
