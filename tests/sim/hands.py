"""What the simulated world does with effects: processes, judges, landings, published files.

Every effect may be asked for again at any time. Attempts live without the engine; judges and landings die with it, a
landing after any of its steps. Decides nothing but luck.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loopr.core import observations as o
from loopr.core import owed as w
from loopr.core.declaring import outline_problems
from loopr.core.entries import Artifact, Entry
from loopr.core.forest import Forest
from loopr.core.model import Failure, Loop, Status, Usage
from loopr.core.observations import Trouble
from loopr.core.plan_observations import ForeignSeen
from tests.sim.author import digest_of
from tests.sim.merges import some_files

if TYPE_CHECKING:
    from tests.sim.world import World

Key = tuple[str, int]
WALL_CLOCK_MS = 600_000

COMMAND_TROUBLES = (
    Failure.REFUSED,
    Failure.REFUSED,
    Failure.INFRA,
    Failure.TIMEOUT,
    Failure.LIMITED,
    Failure.LANE,
    Failure.HOST,
    Failure.CONFIG,
    Failure.BLOCKED,
)
JUDGE_TROUBLES = (Failure.REFUSED, Failure.REFUSED, Failure.INFRA, Failure.TIMEOUT, Failure.LIMITED, Failure.HOST)
LANDING_TROUBLES = (
    Failure.CONFLICT,
    Failure.CONFLICT,
    Failure.REFUSED,
    Failure.INFRA,
    Failure.LIMITED,
    Failure.HOST,
)


@dataclass
class Process:
    """One attempt's process: it runs until `trouble` or a good end, or until it is killed."""

    key: Key
    alive: bool = True
    trouble: Trouble | None = None
    never_ends: bool = False
    stopping: bool = False
    stubborn: bool = False
    launched: bool = True


class Hands:
    """All that is done for loops outside of the core."""

    def __init__(self, world: World) -> None:
        """Begin with nothing under way."""
        self.world = world
        self.processes: dict[Key, Process] = {}
        self.products: dict[Key, Artifact] = {}
        self.branches: dict[str, str] = {}
        self.gave_way: dict[Key, str] = {}
        self.touched: dict[Key, tuple[str, ...]] = {}
        self.stays: dict[Key, str] = {}
        self._tried: dict[str, Entry] = {}
        self._busy: set[tuple[str, Key]] = set()
        self.hard_to_please = world.author.hard_to_please
        self._without_input: set[Key] = set()

    def perform(self, effect: w.Effect, loop: Loop) -> None:
        """Do what is owed, or go on with it."""
        match effect:
            case w.StartAttempt():
                self._start(loop)
            case w.StopAttempt():
                self._stop((effect.loop, effect.attempt))
            case w.PackWorktree():
                self._once("pack", loop, self.world.chance.choice((5, 2_000)), self._packed)
            case w.Judge():
                self._once("judge", loop, self.world.chance.choice((5, 2_000)), self._judged)
            case w.Land():
                lands = loop.lease is not None and loop.lease.lands
                took, then = (5, self._move_branch) if lands else (self._slow(), self._make_ready)
                self._once("move" if lands else "land", loop, took, then)
            case w.WriteDeclared() if not self._refused_before(loop):
                self._once("write", loop, 5, self._written)

    def engine_died(self) -> None:
        """Forget what the engine had under way."""
        self._busy.clear()

    def alive(self) -> Iterator[Key]:
        """List the attempts whose process lives."""
        return (key for key, each in self.processes.items() if each.alive)

    def candidate(self, loop: Loop, artifact: Artifact) -> None:
        """Take a person's file as what will be published."""
        self.products[loop.id, loop.attempt] = artifact

    def adopt(self, forest: Forest, *, starting: bool = True) -> Iterator[o.Observation]:
        """Say what became of every attempt that the forest believes in."""
        for loop in list(forest.loops.values()):
            lease = loop.lease
            if lease is None or lease.expires_at is not None or loop.status not in (Status.LEASED, Status.RUNNING):
                continue
            process = self.processes.get((loop.id, lease.attempt))
            if process is None:
                if loop.status is Status.LEASED and starting:
                    yield o.AttemptLost(loop.id, lease.attempt)
                elif loop.status is Status.RUNNING:
                    yield o.AttemptEnded(loop.id, lease.attempt, Trouble(Failure.INFRA, "it vanished"))
                continue
            if process.launched:
                yield o.AttemptBegan(loop.id, lease.attempt, "base")
            if not process.alive:
                yield o.AttemptEnded(loop.id, lease.attempt, process.trouble)

    # --- attempts ---------------------------------------------------------------------------------------------------

    def _start(self, loop: Loop) -> None:
        """Start the attempt's process, or say once more what became of it."""
        key = (loop.id, loop.attempt)
        process = self.processes.get(key)
        if process is None and (key in self._without_input or self._has_no_input(loop)):
            self._without_input.add(key)
            self.world.met("luck: an input went before its attempt began")
            self.world.report(o.InputGone(*key))
            return
        if process is None:
            process = self.processes[key] = self._launch(key, loop)
        if process.launched:
            self.world.report(o.AttemptBegan(*key, "base"))
        if not process.alive:
            self.world.report(o.AttemptEnded(*key, process.trouble))

    def _has_no_input(self, loop: Loop) -> bool:
        """Say whether the file that a loop works from is not there."""
        judge_only = loop.lease is not None and loop.lease.judge_only
        return loop.parent is not None and not judge_only and loop.parent not in self.world.files

    def _launch(self, key: Key, loop: Loop) -> Process:
        """Draw what will become of an attempt."""
        world, draw = self.world, self.world.chance
        unlucky = draw.random() if world.faulty else 1.0
        if unlucky < 0.05:
            world.met("fault: an attempt did not start")
            return Process(key, False, Trouble(Failure.INFRA, "no worktree", launch=True), launched=False)
        process = Process(key, stubborn=unlucky > 0.9 and world.faulty)
        self.products[key] = self._product(loop)
        judge_only = loop.lease is not None and loop.lease.judge_only
        if unlucky < 0.1 and not judge_only:
            world.met("fault: an attempt never ended")
            process.never_ends = True
            process.trouble = Trouble(Failure.TIMEOUT, "wall clock")
            world.later(WALL_CLOCK_MS, lambda: self._end(process))
            return process
        if unlucky < (0.8 if self.hard_to_please == "command" else 0.4) and not judge_only:
            process.trouble = self.trouble(Failure.REFUSED if unlucky > 0.4 else draw.choice(COMMAND_TROUBLES))
        if world.faulty and not judge_only and self._is_ever_limited(loop):
            process.trouble = self.trouble(Failure.LIMITED)
        took = 1 if judge_only else draw.choice((5, 4_000, 30_000, 90_000))
        if draw.random() < 0.4:
            used = Usage(draw.choice((None, 100, 3_000)), draw.choice((None, 900)), draw.choice((0, took)))
            world.later(took // 2, lambda: self._used(process, used))
        if world.faulty and loop.lane is not None and draw.random() < 0.2:
            level = o.LaneLevel(loop.lane, draw.choice((300, 700, 950)), draw.choice((None, world.wall + 90_000)))
            world.later(took // 3, lambda: world.report(level))
        world.later(took, lambda: self._end(process))
        return process

    def _is_ever_limited(self, loop: Loop) -> bool:
        """Say whether a loop is one whose command always says that it is limited: there are some in some worlds."""
        return self.world.seed % 4 == 0 and zlib.crc32(loop.id.encode()) % 4 == 0

    def _product(self, loop: Loop) -> Artifact:
        """Draw what a loop hands over; a judge alone looks at what the last attempt left."""
        if loop.lease is not None and loop.lease.judge_only and (loop.id, loop.attempt - 1) in self.products:
            return self.products[loop.id, loop.attempt - 1]
        if self._is_silent(loop):
            self.world.met("luck: a loop just did the work")
            return self.world.author.nothing(loop.id.rpartition("/")[2])
        return self.world.author.product(loop.id, loop.type, self.world.settings)

    def _is_silent(self, loop: Loop) -> bool:
        """Draw whether a loop that may just do the work does so."""
        parent = self.world.author.child_of(loop.type) is not None
        return parent and self.world.shadow.is_leaf(loop) and self.world.chance.random() < 0.7

    def _as_leaf(self, loop: Loop) -> bool:
        """Say whether a loop has handed over nothing, or nothing but that."""
        artifact = self.products.get((loop.id, loop.attempt))
        return artifact is not None and not artifact.entries

    def trouble(self, failure: Failure) -> Trouble:
        """Draw the details of trouble."""
        draw, wall = self.world.chance, self.world.wall
        self.world.met(f"trouble: {failure.value}")
        answers = ("same",) if self.hard_to_please else ("", "same", "same", "other")
        signature = draw.choice(answers) if failure in (Failure.REFUSED, Failure.CONFLICT) else ""
        if failure is not Failure.LIMITED:
            work, quiet = (draw.choice(("", "w1", "w1", "w2")), draw.random() < 0.2) if signature else ("", False)
            tips = [f"t{draw.randint(1, 99)}"] if self.world.author.is_hot else ["", "t1", "t2", "t3"]
            tip = draw.choice(tips) if failure is Failure.CONFLICT else ""
            trouble = Trouble(failure, failure.value, signature, work=work, quiet=quiet, tip=tip)
            if failure not in (Failure.REFUSED, Failure.CONFLICT):
                return trouble
            return replace(trouble, paths=some_files(draw, 1) if tip else (), touched=some_files(draw))
        return Trouble(
            failure,
            "429",
            resets_at=draw.choice((None, None, wall + 50_000)),
            retry_after_ms=draw.choice((None, 7_000)),
        )

    def _used(self, process: Process, used: Usage) -> None:
        """Report what a living attempt has used."""
        if process.alive:
            self.world.report(o.AttemptUsed(*process.key, used))

    def _end(self, process: Process) -> None:
        """Let a process come to its end, if nobody killed it before."""
        if process.alive:
            process.alive = False
            self.world.report(o.AttemptEnded(*process.key, process.trouble))

    def kill(self, key: Key) -> None:
        """Let a process die by somebody's hand."""
        process = self.processes[key]
        process.trouble = Trouble(Failure.INFRA, "killed")
        self._end(process)

    def _stop(self, key: Key) -> None:
        """End a process, at once or after it was asked nicely for long."""
        process = self.processes.get(key)
        if process is None or not process.alive:
            self.world.report(o.StopSeen(*key))
        elif not process.stopping:
            process.stopping = True
            self.world.later(20_000 if process.stubborn else 50, lambda: self._stopped(process))

    def _stopped(self, process: Process) -> None:
        """Report that a process is gone with all its descendants."""
        process.alive = False
        self.world.report(o.StopSeen(*process.key))

    # --- what the engine does itself ----------------------------------------------------------------------------------

    def _once(self, what: str, loop: Loop, took: int, then: object) -> None:
        """Do one thing for an attempt unless it is under way."""
        mark = (what, (loop.id, loop.attempt))
        if mark in self._busy:
            return
        self._busy.add(mark)

        def happen() -> None:
            self._busy.discard(mark)
            then(loop)  # type: ignore[operator]

        self.world.later(took, happen, dies_with_engine=True)

    def _packed(self, loop: Loop) -> None:
        """Say that a worktree is packed, or that something in it would be lost."""
        self.world.met("luck: a worktree was packed")
        unlucky = self.world.faulty and self.world.chance.random() < 0.2
        self.world.report(o.PackingDone(loop.id, loop.attempt, "it holds a socket" if unlucky else ""))

    def _judged(self, loop: Loop) -> None:
        """Say what the judge says."""
        unlucky = self.world.faulty and self.world.chance.random() < (
            0.6 if self.world.author.is_hot else 0.7 if self.hard_to_please == "judge" else 0.25
        )
        troubles = (Failure.CONFLICT,) if self.world.author.is_hot else JUDGE_TROUBLES
        trouble = self.trouble(self.world.chance.choice(troubles)) if unlucky else self._unsound(loop)
        if trouble is None:
            self.world.report(o.SaidYes(loop.id, loop.attempt, "check", f"{loop.attempt}"))
        if loop.attempt % 2:
            self.world.report(o.StepTook(loop.id, loop.attempt, "check", 2_000))
        self.world.report(o.Judged(loop.id, loop.attempt, trouble, self._as_leaf(loop)))

    def _unsound(self, loop: Loop) -> Trouble | None:
        """Refuse an outline that the tree cannot take; what a loop hands over then is smaller."""
        artifact = self.products.get((loop.id, loop.attempt))
        now = self.world.shadow.loops.get(loop.id)
        if artifact is None or now is None or not outline_problems(self.world.shadow, now, artifact, ""):
            return None
        failure = Failure.REFUSED if self.world.faulty else Failure.BLOCKED  # or it would be tried again and again
        return Trouble(failure, "its outline does not count")

    def _slow(self) -> int:
        """Draw how long the tree that would land is judged."""
        return self.world.chance.choice((5, 300, 20_000))

    def _make_ready(self, loop: Loop) -> None:
        """Judge the tree that would land, and announce where the plan branch would move."""
        world, key = self.world, (loop.id, loop.attempt)
        if world.faulty and world.chance.random() < (0.8 if self.hard_to_please == "landing" else 0.2):
            failure = world.chance.choice(LANDING_TROUBLES)
            world.report(o.LandingFailed(*key, self.trouble(Failure.CONFLICT if self.hard_to_please else failure)))
            return
        unsound = self._unsound(loop)
        if unsound is not None:
            world.report(o.LandingFailed(*key, unsound))
            return
        old = world.shadow.shared.tip(loop.plan).stands
        touched = self.touched.setdefault(key, some_files(world.chance, world.author.is_hot))
        if touched and world.chance.random() < 0.3:
            world.report(o.LandingTouches(*key, touched))
            return
        new = old if world.chance.random() < 0.1 else f"{loop.id}#{loop.attempt}"
        world.report(o.LandingReady(*key, old, new, "tip", touched))

    def _move_branch(self, loop: Loop) -> None:
        """Bring the commits to the plan branch, then go on in steps of which each may be the last."""
        world, moving = self.world, self.world.shadow.shared.tip(loop.plan).moving
        if moving is not None and moving.loop == loop.id:
            if world.faulty and world.chance.random() < 0.02:
                world.met("fault: what was announced cannot be")
                trouble = self.trouble(Failure.INFRA)
                world.report(o.LandingFailed(loop.id, loop.attempt, trouble))
                return
            stands = self.branches.get(loop.plan, moving.old)
            if world.faulty and world.chance.random() < 0.1:
                world.met("fault: somebody moved a plan's branch")
                stands = "theirs"
            if stands not in (moving.old, moving.new):
                world.report(ForeignSeen(loop.plan, stands, "kept", moving.old))
            self.branches[loop.plan] = moving.new
        self._once("publish", loop, 2, self._publish)

    def _publish(self, loop: Loop) -> None:
        """Put the artifact on disk, unless a person's file that nobody has read yet lies there."""
        artifact = self.products.get((loop.id, loop.attempt))
        if artifact is None:
            artifact = self.products[loop.id, loop.attempt] = self._product(loop)
        key, there, now = (loop.id, loop.attempt), self.world.files.get(loop.id), self._now(loop)
        ours, lies = digest_of(artifact), digest_of(there) if there is not None else ""
        theirs = {now.offers.offered, now.offers.counts} - {""}
        if self._as_leaf(loop) and lies in theirs - {ours}:
            self.world.met("luck: a file outlived a loop that handed over nothing")
            self.world.contents[ours] = artifact
            self.stays[key] = lies
        elif not self._put(loop, artifact, *theirs):
            self.stays[key] = lies
        elif lies in theirs - {ours} or lies == now.offers.offered != "":
            self.gave_way[key] = lies
        self._once("tell", loop, 2, self._landed)

    def _landed(self, loop: Loop) -> None:
        """Report the landing."""
        artifact = self.products[loop.id, loop.attempt]
        key, moving = (loop.id, loop.attempt), self.world.shadow.shared.tip(loop.plan).moving
        commit = f"{loop.id}#{loop.attempt}" if moving is not None and moving.loop == loop.id else ""
        handed_over, lies, now = None if self._as_leaf(loop) else artifact, self.stays.get(key, ""), self._now(loop)
        if lies and lies == now.artifact == now.offers.counts != now.offers.offered and handed_over is None:
            artifact = handed_over = self.world.contents[lies]
        gave_way, stays = self.gave_way.get(key, ""), key in self.stays
        self.world.report(o.LandingDone(*key, commit, digest_of(artifact), handed_over, gave_way, stays))

    def _now(self, loop: Loop) -> Loop:
        """Return a loop as the engine believes it to be by now."""
        return self.world.shadow.loops[loop.id]

    def _put(self, loop: Loop, artifact: Artifact, *also: str) -> bool:
        """Publish a file over what loopr knows, and say whether it is there; any other stays."""
        world, ours = self.world, digest_of(artifact)
        there = world.files.get(loop.id, artifact)
        now = world.shadow.loops.get(loop.id)
        world.contents[ours] = artifact
        if there is None or digest_of(there) not in {now.artifact if now else "", ours, *also}:
            return False
        world.write(loop.id, artifact)
        return True

    def _refused_before(self, loop: Loop) -> bool:
        """Say whether this very entry was written already, and its outline does not count: then a person must help."""
        tried = self._tried.get(loop.id)
        stands = self.world.place(loop.id) in self.world.shadow.shared.problems
        return stands and tried is not None and tried == self.world.journal.entry(loop.id)

    def _written(self, loop: Loop) -> None:
        """Write the artifact of a loop that completes by declaration."""
        entry = self.world.journal.entry(loop.id)
        if entry is None:
            return
        self._tried[loop.id] = entry
        artifact = self.world.author.written(entry, loop.type)
        if self._put(loop, artifact, *self.world.shadow.loops[loop.id].offers.rejected):
            self.world.report(o.DeclaredWritten(loop.id, digest_of(artifact), artifact, self.world.place(loop.id)))
        else:
            self.world.report(self.world.file_seen(loop.id))
