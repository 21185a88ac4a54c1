"""Plans that come home by themselves (`land.mode: auto`): one that is done owes its landing on its base branch.

Owed follows from the present state, the loops' and git's, so that a restart forgets nothing. A refusal is reported, and
asked again after a growing delay, sooner when something has changed in the checkout. Must never know how one lands.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.shared import Bound, moved_key
from loopr.core.staleness import stale_below
from loopr.core.tree import Tree
from loopr.driving.acts import Act, Do, Run, Tell
from loopr.driving.hooks import inherited
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.driving.occasions import LANDING_PLACE
from loopr.driving.outcomes import headline_of, tail_of
from loopr.errors import LooprError
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.repo.ground import HEADS
from loopr.world.repo.home import is_home
from loopr.world.veil import Veil

RUNS = "home"
KEPT_RUNS = 20
EVERY_MS = 1_000
FIRST_REST_MS, LONGEST_REST_MS, LONGEST_AFTER_CHANGE_MS = 2_000, 300_000, 30_000
PATIENT_TRIES = 2  # what is in the way after so many is for a person, and nobody waits for it
Mark = tuple[int, ...]


class Leaving(NamedTuple):
    """A plan, and where it stands."""

    plan: str
    stands: str


class _Owed:
    """A landing that is owed: how often it was refused, when it is asked again, and how the checkout looked then."""

    def __init__(self, done_at: int) -> None:
        self.done_at = done_at
        self.tries, self.refused_at, self.due = 0, 0, 0
        self.mark: Mark = ()


class Homecoming:
    """Brings plans home."""

    def __init__(self, kit: Kit, jobs: Jobs) -> None:
        self._kit, self._jobs = kit, jobs
        self._owed: dict[str, _Owed] = {}
        self._home: dict[str, int] = {}
        self._stale: dict[str, tuple[int, bool]] = {}
        self._next = 0

    @property
    def owes(self) -> bool:
        """True while a landing is owed that has not been refused often enough to be left to a person."""
        return any(each.tries < PATIENT_TRIES for each in self._owed.values())

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Look once a second who owes a landing, and take back what was said of those who do not any more."""
        if now < self._next:
            return
        self._next = now + EVERY_MS
        self.reckon(forest)
        for place in forest.shared.problems:
            if place.startswith(LANDING_PLACE) and place.removeprefix(LANDING_PLACE) not in self._owed:
                yield o.Noticed(place, "")

    def reckon(self, forest: Forest) -> None:
        """Work out who owes a landing."""
        done = self._done(forest)
        for plan in self._owed.keys() - done.keys():
            del self._owed[plan]
        for plan, done_at in done.items():
            known = self._owed.get(plan)
            if (known is None or known.done_at != done_at) and self._home.get(plan) != done_at:
                self._owed[plan] = _Owed(done_at)

    def _done(self, forest: Forest) -> dict[str, int]:
        """Map the plans that are to come home by themselves, and are done, to when they became so."""
        if self._kit.settings.land.mode != "auto":
            return {}
        tree, grounds = forest.tree, self._kit.grounds
        plans = [plan for plan, bound in forest.shared.plans.items() if bound.repo in grounds and plan in tree.loops]
        waiting = {forest.loops[each].plan for each in tree.offered}  # a person has not had their word yet
        done = {plan: tree.done_at(plan) for plan in plans if tree.at_rest(plan) and plan not in waiting}
        return {plan: at for plan, at in done.items() if not self._is_stale(tree, plan, at)}

    def _is_stale(self, tree: Tree, plan: str, done_at: int) -> bool:
        """Say whether something of a plan that is done is stale, which is for a person; looked at once."""
        if not tree.needers or not tree.changed(plan):
            return False
        known = self._stale.get(plan)
        if known is None or known[0] != done_at:
            known = self._stale[plan] = done_at, bool(stale_below(tree, plan))
        return known[1]

    def go_on(self, forest: Forest, now: int) -> None:
        """Begin the landing that is due, one at a time."""
        if not self._owed or self._jobs.of_kind("home"):
            return
        for plan, owed in self._owed.items():
            if self._is_due(owed, forest, plan, now):
                bound = forest.shared.plans[plan]
                moved = forest.shared.moved.get(moved_key(bound.repo, bound.base_branch))
                if moved is not None and not moved.explained:
                    act = self._leave_to_person(plan, bound, owed)
                else:
                    act = self._bring_home(Leaving(plan, forest.shared.tip(plan).at), bound, owed, now)
                broken = partial(self._refused, plan, owed)
                self._jobs.begin(Key("home", f"home of {plan}", 0), act, broken)
                return

    def _is_due(self, owed: _Owed, forest: Forest, plan: str, now: int) -> bool:
        """Say whether to ask now: the delay is over, or something has changed and it was not asked just now."""
        if now >= owed.due:
            return True
        rest_ms = min(FIRST_REST_MS << min(owed.tries, 8), LONGEST_AFTER_CHANGE_MS)
        return now >= owed.refused_at + rest_ms and owed.mark != self._mark(forest.shared.plans[plan])

    # -- one of them

    def _bring_home(self, leaving: Leaving, bound: Bound, owed: _Owed, now: int) -> Act:
        """Bring a plan home, as `loopr land` does it."""
        plan, stands = leaving
        ground = self._kit.grounds.get(bound.repo)
        if ground is not None and not (yield Do(lambda: is_home(ground, stands, bound.base_branch))):
            step = f"{plan}.{now}"
            for old in _oldest(self._kit.runs.folder(RUNS, 0), plan):
                shutil.rmtree(old, ignore_errors=True)
            folder, run = self._kit.runs.ensure(RUNS, 0, step), self._kit.runs.id_of(RUNS, 0, step)
            root = self._kit.place.root
            argv = (sys.executable, "-P", "-m", "loopr", "land", "-C", str(root), "--yes", "--json", plan)
            spec = AttemptSpec(run, folder, argv, root, inherited(self._kit), Path(os.devnull), wall_ms=0)
            outcome: Outcome = yield Run(run, spec)
            if outcome.code != 0:
                yield Tell(self._put_off(plan, bound, owed, self._kit.hide(_words(outcome, folder, self._kit.veil()))))
                return None
        self._home[plan] = owed.done_at
        if self._owed.get(plan) is owed:
            del self._owed[plan]
        return o.Noticed(f"{LANDING_PLACE}{plan}", "")

    def _leave_to_person(self, plan: str, bound: Bound, owed: _Owed) -> Act:
        """Leave a landing to a person, where loops were at work when the branch moved and no checkout explains it."""
        words = f"{bound.base_branch} moved while loops ran, by none of your checkouts: `loopr land {plan}` asks"
        yield Tell(self._put_off(plan, bound, owed, words))
        return None

    def _put_off(self, plan: str, bound: Bound | None, owed: _Owed, words: str) -> o.Observation:
        """Ask again later, the later the more often it was refused."""
        owed.tries += 1
        owed.refused_at = self._kit.clock()
        owed.due = owed.refused_at + min(FIRST_REST_MS << min(owed.tries - 1, 16), LONGEST_REST_MS)
        owed.mark = self._mark(bound) if bound is not None else ()
        return o.Noticed(f"{LANDING_PLACE}{plan}", words)

    def _refused(self, plan: str, owed: _Owed, error: Exception) -> o.Observation | None:
        """Take what has gone wrong with asking for a refusal."""
        words = str(error) if isinstance(error, LooprError | OSError) else f"a fault of ours: {type(error).__name__}"
        return self._put_off(plan, None, owed, words)

    def _mark(self, bound: Bound) -> Mark:
        """Return how what a person may have changed looks: the index and HEAD of the checkout, the base branch."""
        ground, base = self._kit.grounds.get(bound.repo), bound.base_branch
        if ground is None:
            return ()
        names = ["index", "HEAD", "packed-refs", *([f"{HEADS}{base}"] if base else [])]
        found: list[int] = []
        for name in names:
            with suppress(OSError):
                found.append((ground.common / name).stat().st_mtime_ns)
        return tuple(found)


def _oldest(runs: Path, plan: str) -> list[Path]:
    """List the runs of a plan's landing that are too many: it may be asked for a long time."""
    found = [each for each in runs.glob(f"{plan}.*") if each.name.removeprefix(f"{plan}.").isdecimal()]
    return sorted(found, key=lambda each: int(each.name.rpartition(".")[2]))[:-KEPT_RUNS]


def _words(outcome: Outcome, folder: Path, veil: Veil) -> str:
    """Say why a landing was refused, as `loopr land --json` tells it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads((folder / "stdout.log").read_bytes())
        found = said["problems"] if "problems" in said else [said["error"]]
        return "; ".join(each["message"] + (f" ({each['hint']})" if each["hint"] else "") for each in found)
    end = headline_of(veil.over_bytes(tail_of(folder)))
    return end or f"it ended with {outcome.reason} {outcome.code if outcome.code is not None else ''}".strip()
