"""From an effect that is owed to the act that does it.

Every effect may be asked for again at any time: one that is under way is not begun twice. Knows which act does what.
Must never know how one is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from loopr.core import observations as o
from loopr.core import owed as w
from loopr.core.declaring import outline_problems
from loopr.core.entries import Artifact, Entry
from loopr.core.forest import Forest
from loopr.core.hot import touched_turns
from loopr.core.model import Loop, Status, Terms
from loopr.core.naming import generation_name, is_judge_room, judge_room
from loopr.core.resources import too_few
from loopr.core.tips import BRANCH_PLACE
from loopr.driving.acts import Act, Do, Later, Run, StopAsked, Tell
from loopr.driving.attempting import attempt
from loopr.driving.ending import give_back, known_names, make_room, pack, stop
from loopr.driving.jobs import Jobs, Key
from loopr.driving.judging import Fits, judge
from loopr.driving.keeping import copy_journal
from loopr.driving.kit import Kit, Task
from loopr.driving.landing import Course, bring_home
from loopr.driving.lookout import heed, resume
from loopr.driving.materials import is_judge
from loopr.driving.outcomes import trouble_before
from loopr.driving.sites import site_of
from loopr.driving.tips import at_work
from loopr.errors import LooprError, Problem, SettingsError, WorldError
from loopr.hands import FileHands, changed_at
from loopr.world.processes import OUTCOME, Outcome
from loopr.world.repo.ground import Ground
from loopr.world.repo.leftovers import remove_stale_locks
from loopr.world.repo.plain import clear_going
from loopr.world.repo.worktrees import ensure_ignored

Entries = Callable[[str], Entry | None]
DECLARED_AT_ONCE = 64
_UNJUDGED = frozenset({Status.LEASED, Status.RUNNING})
_JUDGED = frozenset({Status.CHECKING, Status.LANDING})
_WORKING = frozenset(Status) - {Status.COMPLETE, Status.INVALIDATED}


class Effects:
    """Begins acts for what is owed."""

    def __init__(self, kit: Kit, jobs: Jobs, writing: set[str]) -> None:
        self.kit, self.jobs, self._writing = kit, jobs, writing
        self._known: set[str] = set()
        self._tried: dict[str, Terms] = {}
        self._given: set[str] = set()
        self._due: set[str] = set()  # plain folders that are to be given back
        self._next_start = 0

    # -- after a restart

    def adopt(self, forest: Forest) -> int | None:
        """Take up what runs on behalf of the loops, and end whatever else carries the workspace's mark.

        Return when the last of them ended, 0 if nothing is known of any, None if one lives.
        """
        for ground in self.kit.grounds.values():
            remove_stale_locks(ground)
            ensure_ignored(ground)
        folders: dict[str, Path] = {}
        supervisors: dict[str, str] = {}
        for loop_id in forest.occupancy.loops:
            loop = forest.loops[loop_id]
            owner = loop.lease or loop.ending
            if owner is not None and owner.expires_at is None:
                folders |= self._folders_of(loop, owner.attempt)
                name = self._name_of(loop, owner.attempt)
                supervisors[self.kit.runs.id_of(name, owner.attempt)] = owner.supervisor
        with suppress(LooprError, OSError):  # what cannot be read now is looked at by the first attempt that ends
            resume(self.kit, forest)
        states = self.jobs.attempts.adopt(folders, supervisors)
        self._known = {run for run, state in states.items() if state != "unclaimed"}
        self.jobs.attempts.sweep(str(self.kit.place.root), lambda lease: self._is_pulled(forest, lease))
        if "alive" in states.values() or any(_is_pulled(forest.loops[each]) for each in forest.occupancy.loops):
            return None
        return max((changed_at(folders[run] / OUTCOME) for run in states), default=0)

    def _folders_of(self, loop: Loop, attempt: int) -> dict[str, Path]:
        """Map the runs of an attempt to their folders; none judges while its command runs."""
        steps = self.kit.runs.steps(self._name_of(loop, attempt), attempt)
        if loop.status not in _UNJUDGED:
            return steps
        return {run: folder for run, folder in steps.items() if not is_judge(folder.name)}

    def heed(self, forest: Forest, loop: Loop) -> None:
        """Keep an eye on a loop that is at work, and on none that is not any more."""
        with suppress(LooprError, OSError):  # looked for again when its work is taken in
            heed(self.kit, forest, loop)

    def _is_pulled(self, forest: Forest, lease: str) -> bool:
        """Say whether a lease is, or was, a pull worker's: its processes are not ours to end."""
        loop_id, _, attempt = lease.rpartition("#")
        loop = forest.loops.get(loop_id)
        if loop is None or not attempt.isdecimal():
            return False
        site = site_of(self.kit.runs, self._name_of(loop, int(attempt)), int(attempt))
        return site is not None and bool(site.holder)

    def _name_of(self, loop: Loop, attempt: int) -> str:
        """Return the generation that an attempt belongs to: one that is told to stop may be of an earlier one."""
        for generation in range(loop.generation, 0, -1):
            name = generation_name(loop.id, generation)
            if self.kit.runs.folder(name, attempt).is_dir():
                return name
        return loop.name

    # -- effects

    def begin(self, forest: Forest, entries: Entries, effect: w.Effect) -> None:
        """Begin the act that does an effect, unless it is under way."""
        loop = forest.loops[effect.loop]
        match effect:
            case w.StartAttempt() | w.FollowAttempt():
                self._attempt(forest, entries, loop, follow=isinstance(effect, w.FollowAttempt))
            case w.Judge():
                fits, left = _fits(forest, loop), self._judges_left(loop)
                self._begin("judge", loop, forest, entries, lambda task: judge(self.kit, task, fits, left))
            case w.Land() if not self._plan_lands(loop.plan):
                moving = forest.shared.tip(loop.plan).moving
                ours = moving if moving is not None and moving.loop == loop.id else None
                lags = f"{BRANCH_PLACE}{loop.plan}" in forest.shared.problems
                held = partial(touched_turns, forest, loop)
                course = Course(_fits(forest, loop), held, self._judges_left(loop), ours, at_work(forest), lags)
                self._begin("land", loop, forest, entries, lambda task: bring_home(self.kit, task, course))
            case w.PackWorktree():
                self._pack(forest, entries, loop)
            case w.StopAttempt():
                self._stop(forest, entries, loop, effect.attempt)

    def _attempt(self, forest: Forest, entries: Entries, loop: Loop, *, follow: bool) -> None:
        """Make an attempt, or follow the one that runs."""
        run = self.kit.runs.id_of(loop.name, loop.attempt)
        key = Key("attempt", loop.id, loop.attempt)
        if key in self.jobs:
            return
        judge_only = loop.lease is not None and loop.lease.judge_only
        if follow and run not in self._known and not judge_only:
            self.jobs.suppose(run, Outcome("lost", message="nothing is left of it but its beginning"))
        known = follow or run in self._known
        at = 0 if known or judge_only else self._take_turn(forest)
        self._begin("attempt", loop, forest, entries, lambda task: attempt(self.kit, task, known=known, not_before=at))

    def _pack(self, forest: Forest, entries: Entries, loop: Loop) -> None:
        """Pack the worktree of a loop; one that is given back at this moment needs no more."""
        task = self._task(forest, entries, loop)
        if not isinstance(task, Task):  # nothing of it can be done now: it stays
            self.jobs.begin(Key("tidy", loop.name, 0), _tell(_kept(loop, task)), lambda error: _kept(loop, error))
            return
        act = make_room(self.kit, task, self.kit.ground_of(task))
        self.jobs.begin(Key("tidy", loop.name, 0), act, lambda error: _kept(loop, error))

    def _take_turn(self, forest: Forest) -> int:
        """Say when an attempt may begin: launches follow each other at the pace that the settings ask for."""
        at = max(self.kit.clock(), self._next_start)
        self._next_start = at + forest.policy.spawn_delay_ms
        return at

    def _judges_left(self, loop: Loop) -> list[str]:
        """List the judges of an attempt that an earlier engine has asked, and that nobody has heard out yet."""
        own = self.kit.runs.id_of(loop.name, loop.attempt)
        left = [run for run in self._known if run.startswith((f"{own}/check", f"{own}/review"))]
        self._known.difference_update(left)
        return left

    def _stop(self, forest: Forest, entries: Entries, loop: Loop, number: int) -> None:
        """End an attempt, whatever act is at work for it."""
        if self.jobs.stop(loop.id, number, loop.reason):
            return
        name = self._name_of(loop, number)
        live = self._end_all(name, number, loop.reason)
        key = Key("stop", loop.id, number)
        task = self._task(forest, entries, loop._replace(attempt=number))
        if isinstance(task, Task):
            self.jobs.begin(key, stop(self.kit, task, name, live), lambda error: o.StopSeen(loop.id, number))
        else:
            self.jobs.begin(key, _tell(o.StopSeen(loop.id, number), live), lambda error: None)

    def _begin(self, kind: str, loop: Loop, forest: Forest, entries: Entries, act: Callable[[Task], Act]) -> None:
        """Begin one act about the present attempt of a loop."""
        key = Key(kind, loop.id, loop.attempt)
        if key in self.jobs:
            return
        task = self._task(forest, entries, loop)

        def broken(error: Exception) -> o.Observation:
            return _ended(kind, loop, error)

        if isinstance(task, Task):
            self.jobs.begin(key, act(task), broken)
        else:
            self.jobs.begin(key, _tell(broken(task), self._end_all(loop.name, loop.attempt, str(task))), broken)

    def _end_all(self, name: str, attempt: int, reason: str) -> list[str]:
        """End what lives of an attempt that nobody can take up, and list it."""
        live = [run for run in self.kit.runs.steps(name, attempt) if run in self._known]
        for run in live:
            self.jobs.attempts.kill(run, reason)
        return live

    def _task(self, forest: Forest, entries: Entries, loop: Loop) -> Task | SettingsError:
        """Take down what an act must know, or say why there can be none."""
        try:
            return self.kit.task(forest, loop, entries(loop.id))
        except SettingsError as error:
            return error

    def _plan_lands(self, plan: str) -> bool:
        """Say whether a landing of a plan is under way."""
        return any(key.loop.partition("/")[0] == plan for key in self.jobs.of_kind("land"))

    # -- declared loops

    def declare(self, forest: Forest, entries: Entries) -> None:
        """Write the artifacts of loops that complete by declaration, some at a time."""
        key = Key("declare", "", 0)
        if not forest.settling or key in self.jobs:
            return
        due = [each for each in forest.settled_now() if self._may_write(forest, forest.loops[each])]
        work = [(forest.loops[each], entry) for each in due[:DECLARED_AT_ONCE] if (entry := entries(each))]
        if work:
            self.jobs.begin(key, self._declare(work), lambda error: None)

    def _may_write(self, forest: Forest, loop: Loop) -> bool:
        """Say whether a declared artifact may be written: not where that was refused, until something changes."""
        place = forest.policy.place_of(loop.id, loop.type)
        return place not in forest.shared.problems or self._tried.get(loop.id) != loop.terms

    def _declare(self, work: Iterable[tuple[Loop, Entry]]) -> Act:
        """Write some artifacts, and tell what came of each."""
        hands, work = self.kit.hands, list(work)
        names = {loop.id for loop, _ in work}
        self._tried |= {loop.id: loop.terms for loop, _ in work}
        self._writing |= names
        try:
            while isinstance(seen := (yield Do(lambda: _all_written(hands, work))), Problem):
                yield Later(seen)
        finally:
            self._writing -= names
        for each in seen:
            if each is not None:
                yield Tell(each)
        return None

    # -- folders

    def tidy(self, forest: Forest, loop: Loop) -> None:
        """Give back the folders of generations that are over."""
        if loop.ending is not None:
            return
        for generation in range(1, loop.generation):
            name = generation_name(loop.id, generation)
            if name not in self._given:
                self._given.add(name)
                self._give_back(name, self._ground_of(forest, loop))
        if loop.status not in _WORKING:
            self._give_back(loop.name, self._ground_of(forest, loop))

    def tidy_leftovers(self, forest: Forest) -> None:
        """Give back the folders that an earlier engine did not come to, or was just taking away."""
        clear_going(self.kit.worktrees)
        wanted = {loop.name for loop in forest.loops.values() if loop.status in _WORKING or loop.ending is not None}
        names = {name for ground in self.kit.grounds.values() for name in known_names(ground)}
        if self.kit.worktrees.is_dir():
            names |= {each.name for each in self.kit.worktrees.iterdir() if each.is_dir()}
        for loop in forest.loops.values():
            for name in (generation_name(loop.id, each) for each in range(1, loop.generation + 1)):
                if name in names and name not in wanted:
                    self._give_back(name, self.kit.grounds.get(self.kit.repo_of(forest, loop)))
        owners = [each for each in forest.loops.values() if each.status in _JUDGED or each.ending is not None]
        judged = {judge_room(each.name, each.attempt) for each in owners}
        for repo, ground in self.kit.grounds.items():
            for room in filter(is_judge_room, known_names(ground) - judged):
                self._give_back(room, ground)
            self.jobs.begin(Key("pack", repo, 0), pack(ground), lambda error: None)
        self.jobs.begin(Key("copy", "", 0), copy_journal(self.kit.place.journal), lambda error: None)

    def _give_back(self, name: str, ground: Ground | None) -> None:
        """Begin to give a folder back; plain ones together, since each is little work."""
        plain = ground is None
        key, due = (Key("tidy", "plain folders", 0), self._due) if plain else (Key("tidy", name, 0), set[str]())
        due.add(name)
        self.jobs.begin(key, give_back(self.kit, ground, due), lambda error: None)

    def _ground_of(self, forest: Forest, loop: Loop) -> Ground | None:
        """Return the repository that a loop works in, as far as the settings of now tell."""
        kind = self.kit.settings.types.get(loop.type)
        return self.kit.grounds.get(self.kit.repo_of(forest, loop)) if kind is None or kind.worktree else None


def _is_pulled(loop: Loop) -> bool:
    """Say whether a pull worker has a loop: it may live, and nobody watches it."""
    owner = loop.lease or loop.ending
    return owner is not None and owner.expires_at is not None


def _fits(forest: Forest, loop: Loop) -> Fits:
    """Return what says whether an outline may count for a loop as the tree is by then."""

    def fits(artifact: Artifact, where: str) -> list[Problem]:
        return [*outline_problems(forest, loop, artifact, where), *too_few(forest, loop, artifact, where)]

    return fits


def _tell(seen: o.Observation, live: Iterable[str] = ()) -> Act:
    """Make an act of which only the end is known, once nothing of what lives is left."""
    for run in live:
        with suppress(StopAsked):
            yield Run(run)
    return seen


def _ended(kind: str, loop: Loop, error: Exception) -> o.Observation:
    """Say what the failure of an act itself means."""
    trouble = trouble_before(error)
    match kind:
        case "judge":
            return o.Judged(loop.id, loop.attempt, trouble)
        case "land":
            return o.LandingFailed(loop.id, loop.attempt, trouble)
    return o.AttemptEnded(loop.id, loop.attempt, trouble)


def _kept(loop: Loop, error: Exception) -> o.Observation:
    """Say that the worktree of a loop stays, since it could not be packed."""
    return o.PackingDone(loop.id, loop.attempt, str(error) or type(error).__name__)


def _all_written(hands: FileHands, work: Iterable[tuple[Loop, Entry]]) -> list[o.Observation | None] | Problem:
    """Write some declared artifacts, or say what keeps the disk from taking them; twice is once."""
    try:
        return [hands.write_declared(loop, entry) for loop, entry in work]
    except (WorldError, OSError) as error:
        return Problem(f"declared artifacts wait: {error}", "artifacts")
