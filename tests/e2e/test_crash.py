"""Whoever is struck down at whatever moment: `start` again ends the plan, and nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import subprocess
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from loopr.core import events as e
from loopr.core.codec import decode
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Failure, Loop, Status
from loopr.engine import compare, recall
from loopr.world.artifacts import digest
from loopr.world.journal import Journal
from loopr.world.lock import holder
from tests.e2e.crashing import LOOPS, PLAN, Life, Round, ours, play, prepare

PATIENCE_SECS = 60.0
STEPS, EFFECTS, MOMENTS_SECS = 800, 3000, 2.0
ROUNDS, SOAK = 44, int(os.environ.get("CRASH_ROUNDS", "1000"))
MEMORY = Path("/dev/shm")
POINTS = [
    *("begin", "adopted", "sensed", "remembered", "before append", "after append"),
    *("attempt asks for Do", "attempt asks for Run", "attempt goes on", "attempt is over"),
    *("judge asks for Do", "judge asks for Run", "judge is over"),
    *("land asks for Do", "land is over", "tidy asks for Do", "before refs are dropped", "tidy is over"),
]
VICTIMS = [
    *(["engine"] * 6 + ["behind", "clock", "launcher", "supervisor", "all", "machine"]),
    *("stop", "engine and launcher", "engine and supervisors", "stopped launcher", "stopped supervisors"),
]


def lives_of(seed: int) -> tuple[Life, ...]:
    """Draw the strikes of a round: whom, timed by what, and when; the earlier ones hit the beginning more often."""
    dice = random.Random(f"lives {seed}")
    kind = VICTIMS[seed % len(VICTIMS)]
    lives: list[Life] = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        victim = "engine" if kind == "behind" else kind
        by = dice.choice(["step", "effect", "moment"])
        most = {"step": STEPS, "effect": EFFECTS, "moment": MOMENTS_SECS}[by] * dice.choice([0.05, 0.3, 1])
        at = dice.uniform(0.02, most) if by == "moment" else dice.randint(1, int(most))
        behind = dice.choice([500, 10_000, 3_600_000]) * (len(lives) + 1) if kind in ("behind", "clock") else 0
        lives.append(Life(victim, by, at, behind))
    if kind == "behind":
        lives.append(Life("", "step", 0, 14_400_000))
    if kind == "stop":  # by an engine after one that was killed
        lives = [each._replace(victim="engine") for each in lives] + [Life("stop", "step", dice.randint(1, 60))]
    return tuple(lives)


class Aftermath:
    """What a round has left behind."""

    def __init__(self, made: Round) -> None:
        """Read the journal and the ledger."""
        self.made = made
        with Journal.open(made.state / "loopr.db", readonly=True) as journal:
            self.differences = compare(journal) + journal.integrity()
            self.forest = recall(journal)[0]
            self.events = [decode(each.event, each.version, each.data) for each in journal.since(0)]
        self.lines: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        for word, loop, attempt, _ in made.ledger():
            self.lines[loop, attempt][word] += 1

    @property
    def loops(self) -> dict[str, Loop]:
        """Every loop as it is now."""
        return {loop.id: loop for loop in self.forest.tree.walk()}

    @property
    def spared(self) -> bool:
        """Say whether nobody struck a command, or what watches one."""
        spares = ("engine", "launcher", "engine and launcher", "stopped launcher", "stopped supervisors", "clock", "")
        return all(life.victim in spares for life in self.made.lives)

    @property
    def excused(self) -> float:
        """Return how many attempts may have broken: one that was at its very end when its only witness was killed."""
        struck = Counter(life.victim for life in self.made.lives)
        many = struck["all"] + struck["machine"] + struck["engine and supervisors"]
        return float("inf") if many else struck["supervisor"]

    def of(self, *kinds: type[e.LoopEvent]) -> list[e.LoopEvent]:
        """Return the events of some kinds."""
        return [each for each in self.events if isinstance(each, kinds)]

    def stopped(self) -> set[tuple[str, int]]:
        """Return the attempts that were ended because the engine was told to."""
        return {(each.loop, each.attempt) for each in self.events if isinstance(each, e.Stopped)}

    def broken(self) -> set[tuple[str, int]]:
        """Return the attempts that ended because something vanished under them."""
        found = {(each.loop, each.attempt) for each in self.events if isinstance(each, e.Broke)}
        assert all(each.failure is Failure.INFRA for each in self.events if isinstance(each, e.Broke))
        return found

    def complaints(self) -> Iterator[str]:
        """Name everything that is not as it should be."""
        yield from self.differences
        yield from self._of_loops()
        yield from self._of_attempts()
        yield from self._of_judges()
        yield from self._of_artifacts()
        yield from self._of_branches()
        yield from self._of_worktrees()
        yield from self._of_checkout()
        yield from self._of_state()

    def _of_loops(self) -> Iterator[str]:
        """Every loop is there and complete, and nothing is wrong."""
        if set(self.loops) != set(LOOPS):
            yield f"loops: {sorted(set(self.loops) ^ set(LOOPS))}"
        yield from (
            f"{loop.id} is {loop.status}: {loop.reason}"
            for loop in self.loops.values()
            if loop.status is not Status.COMPLETE or loop.ending is not None
        )
        yield from (f"problem: {place}: {text}" for place, text in self.forest.shared.problems.items())

    def _of_attempts(self) -> Iterator[str]:
        """Every attempt ran once, to its end unless it was killed, and there are no more than were asked for."""
        broken = self.broken()
        if len(broken) > self.excused:
            yield f"nobody touched a command, and yet: {self.of(e.Broke)}"
        if any(each.launch for each in self.events if isinstance(each, e.Broke)):
            yield f"nothing was wrong with any setup, and yet: {self.of(e.Broke)}"
        odd = self.of(e.Limited, e.SetAside, e.LeaseReleased, e.LeaseExpired, Conflicted)
        odd += [] if any(life.victim == "stop" for life in self.made.lives) else self.of(e.Stopped)
        odd += [each for each in self.of(e.ArtifactAccepted) if self.made.plan_runs or each.loop != PLAN]
        if odd:
            yield f"nobody asked for {odd}"
        started = Counter((each.loop, each.attempt) for each in self.events if isinstance(each, e.AttemptStarted))
        yield from (f"{key} started {count} times" for key, count in started.items() if count > 1)
        for key, words in self.lines.items():
            if words["untold"]:
                yield f"{key} was not told why it was refused"
            if words["unready"]:
                yield f"{key} began before its worktree was set up"
            if words["begin"] != 1 or words["end"] != 1:
                ended_early = words["begin"] == 1 and key in broken | self.stopped()
                if not ended_early:
                    yield f"{key}: {dict(words)}"
        for loop in self.made.working:
            numbers = sorted(number for name, number in self.lines if name == loop)
            known = {number for name, number in broken if name == loop}
            wanted = 1 + (loop in self.made.refused)
            again = {number for name, number in self.stopped() if name == loop} - known
            made = len(set(numbers) - known)
            if not made - len(again) <= wanted <= made:
                yield f"{loop} made attempts {numbers}, of which {sorted(known)} broke; {wanted} were asked for"
            refusals = [each for each in self.events if isinstance(each, Refused) and each.loop == loop]
            if len(refusals) != wanted - 1:
                yield f"{loop} was refused {len(refusals)} times"
            landed = [each for each in self.events if isinstance(each, e.Landed) and each.loop == loop]
            if len(landed) != 1:
                yield f"{loop} landed {len(landed)} times"

    def _of_judges(self) -> Iterator[str]:
        """No judge was asked twice about one thing, and each answered."""
        yield from self._of_company()
        for (loop, attempt), words in self.lines.items():
            folder = self.made.state / "runs" / f"{loop.replace('/', '.')}.g1" / str(attempt)
            asked = len(list(folder.glob("check.*/run.json")))
            if words["asked"] != words["answered"] and self.spared:
                yield f"the judge of {loop}#{attempt}: {dict(words)}"
            ran = words["asked"] if self.spared else words["answered"]  # one that was ended is asked again
            if ran > asked:
                yield f"the judge of {loop}#{attempt} ran {ran} times for {asked} trees"

    def _of_company(self) -> Iterator[str]:
        """Never are two commands at work for one loop at the same time."""
        ends = {pid: word for word, _, _, pid in self.made.ledger() if word in ("end", "answered")}
        at_work: dict[str, int] = {}
        for word, loop, attempt, pid in self.made.ledger():
            if word in ("begin", "asked"):
                if loop in at_work:
                    yield f"{loop}#{attempt}: {word} while {at_work[loop]} was still at work"
                if pid in ends:
                    at_work[loop] = pid
            elif word in ("end", "answered") and at_work.get(loop) == pid:
                del at_work[loop]

    def _of_artifacts(self) -> Iterator[str]:
        """Every artifact is in its place, as it was handed over."""
        for loop in self.loops.values():
            path = self.made.repo / "specs" / loop.id / f"{loop.type}.md"
            if not path.is_file():
                yield f"{path} is not there"
            elif digest(path.read_bytes()) != loop.artifact:
                yield f"{path} is not what was published"
            source = self.made.root / "tools" / f"{loop.id.replace('/', '.')}.md"
            if loop.id in self.made.hands_over and path.is_file() and path.read_bytes() != source.read_bytes():
                yield f"{path} is not what was handed over"
        odd = [each for each in (self.made.repo / "specs").rglob("*") if each.is_file() and each.suffix != ".md"]
        yield from (f"{each} is left over" for each in odd)

    def _of_branches(self) -> Iterator[str]:
        """The plan branch is a line of one commit a loop, and no other branch is left."""
        made = self.made
        names = {f"{loop.replace('/', '.')}.g1" for loop in made.landing}
        kept = {"refs/heads/main", *(f"refs/loopr/landed/{name}" for name in names)}
        if names:
            kept |= {f"refs/heads/loopr/{PLAN}", f"refs/loopr/plans/{PLAN}"}
        refs = set(made.git("for-each-ref", "--format=%(refname)").splitlines())
        if refs != kept:
            yield f"refs too many {sorted(refs - kept)}, too few {sorted(kept - refs)}"
        if f"refs/heads/loopr/{PLAN}" in refs:
            yield from self._of_plan_branch()
        checked = made.git("fsck", "--strict", "--no-dangling", "--no-progress")
        if checked:
            yield f"fsck: {checked}"

    def _of_plan_branch(self) -> Iterator[str]:
        """Every loop's change is there once, in a commit of one parent, with all that its attempts left."""
        made, words = self.made, "%(trailers:key=Loopr-Loop,valueonly,separator=)"
        rows = made.git("log", f"--format=%p|{words}", f"main..loopr/{PLAN}").splitlines()
        if any(len(row.partition("|")[0].split()) != 1 for row in rows):
            yield "the plan branch is not linear"
        landed, wanted = Counter(row.partition("|")[2] for row in rows), Counter(made.landing)
        if landed != wanted:
            yield f"landed too often: {landed - wanted}, not landed: {wanted - landed}"
        files = self._files(f"loopr/{PLAN}")
        for loop in sorted(made.landing):
            name, tried = (files.pop(f"notes/{loop.replace('/', '.')}{end}", "").split() for end in ("", ".attempts"))
            of_loop = [(str(number), words) for (each, number), words in sorted(self.lines.items()) if each == loop]
            begun, ended = {number for number, _ in of_loop}, {number for number, words in of_loop if words["end"]}
            if name != [loop] or not ended <= set(tried) <= begun or len(set(tried)) != len(tried):
                yield f"{loop} left {name} and {tried}; of its attempts {sorted(begun)} these ended: {sorted(ended)}"
        if files.keys() != {"kept", "loopr.yml", "plan.md"}:
            yield f"files on the plan branch: {sorted(files)}"

    def _files(self, commit: str) -> dict[str, str]:
        """Read every file of a commit."""
        archive = subprocess.run(
            ["git", "archive", "--format=tar", commit], cwd=self.made.repo, capture_output=True, check=True
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as opened:
            files = {each.name: opened.extractfile(each) for each in opened.getmembers() if each.isfile()}
            return {name: file.read().decode() for name, file in files.items() if file is not None}

    def _of_worktrees(self) -> Iterator[str]:
        """No worktree is in use, and no folder is left."""
        made = self.made
        listed = [
            line.split(" ", 1)[1]
            for line in made.git("worktree", "list", "--porcelain").splitlines()
            if line.startswith("worktree ")
        ]
        pool = made.repo / "worktrees" / ".pool"
        odd = [each for each in listed if Path(each) != made.repo and Path(each).parent != pool]
        yield from (f"the worktree {each} is in use" for each in odd)
        slots = made.state / "worktrees.json"
        rows = json.loads(slots.read_text()) if slots.exists() else []
        yield from (f"the slot {row} is not free" for row in rows if row["state"] != "free")
        if {f"{pool}/{row['id']}" for row in rows if row["state"] == "free"} != {
            each for each in listed if Path(each).parent == pool
        }:
            yield f"slots {rows} and worktrees {listed} differ"
        left = (
            [each.name for each in (made.repo / "worktrees").iterdir() if each.name != ".pool"]
            if (made.repo / "worktrees").is_dir()
            else []
        )
        if left:
            yield f"folders left: {left}"
        locks = [
            str(each)
            for each in (made.repo / ".git").rglob("*.lock")
            if "loopr" not in each.relative_to(made.repo / ".git").parts[:1]
        ]
        if locks:
            yield f"locks of git's: {locks}"

    def _of_checkout(self) -> Iterator[str]:
        """The user's checkout is as it was."""
        made = self.made
        if made.git("symbolic-ref", "HEAD") != "refs/heads/main" or made.git("rev-list", "--count", "main") != "1":
            yield "the user's branch has moved"
        status = made.git("status", "--porcelain")
        if status != "?? specs/":
            yield f"the user's checkout: {status!r}"

    def _of_state(self) -> Iterator[str]:
        """Nobody holds the lock, and nobody noted trouble."""
        state = self.made.state
        if holder(state / "engine.lock") is not None:
            yield "the lock is held"
        for name in ("engine.log", "launcher.log"):
            text = (state / name).read_text() if (state / name).exists() else ""
            if text:
                yield f"{name}: {text}"


def nobody_is_left(root: Path) -> bool:
    """Wait until every process of a round has ended, and say whether that came to pass."""
    while left := ours(root):
        pid = next(iter(left))
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], PATIENCE_SECS)
        os.close(descriptor)
        if not ended:
            return False
    return True


@contextmanager
def arena(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory, where there is one; whoever fails there finds all of it in `tmp_path`."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path / "round"
        return
    folder = Path(tempfile.mkdtemp(prefix="loopr-crash-", dir=MEMORY))
    try:
        yield folder / "round"
    except BaseException:
        special = shutil.ignore_patterns("*.bell", "*.sock")
        shutil.copytree(folder / "round", tmp_path / "round", symlinks=True, ignore=special)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def survive(made: Round) -> list[str]:
    """Play a round, demand all that was promised, and return the points that were struck."""
    done = play(made)
    lives = made.root / "lives"
    log = lives.read_text() if lives.exists() else ""
    told = f"seed {made.seed}: {made.lives}\n{log}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, f"exit {done.returncode}\n{told}"
    assert nobody_is_left(made.root), f"{ours(made.root)}\n{told}"
    complaints = list(Aftermath(made).complaints())
    assert not complaints, "\n".join([*complaints, told])
    return [f"{each['struck']} at {each['at']}" for each in map(json.loads, log.splitlines()) if "struck" in each]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nothing_is_lost_and_nothing_done_twice(tmp_path: Path, seed: int) -> None:
    """Whoever is killed at whatever moment, the plan ends with every loop's work landed exactly once."""
    with arena(tmp_path) as root:
        survive(prepare(root, seed, lives_of(seed)))


@pytest.mark.parametrize("place", range(len(POINTS)), ids=[point.replace(" ", "-") for point in POINTS])
def test_nothing_is_lost_at_a_point(tmp_path: Path, place: int) -> None:
    """The same for an engine that is killed at one of the points that it names."""
    with arena(tmp_path) as root:
        struck = survive(prepare(root, place, (Life("engine", POINTS[place], 1 + place % 3 * (place > 1)),)))
        assert struck == [f"engine at {POINTS[place]}"]


@pytest.mark.parametrize("seed", [3, 6, 8])
def test_a_worktree_is_set_up_although_a_crash_came_between(tmp_path: Path, seed: int) -> None:
    """An engine that is killed while a worktree is set up leaves none in which a command begins unprepared."""
    with arena(tmp_path) as root:
        made = prepare(root, seed, (Life("engine", "attempt asks for Run", 1),))
        assert (root / "tools" / "setup.sh").exists(), "this seed sets nothing up: take another one"
        survive(made)


def test_a_judge_from_before_a_crash_does_not_share_its_worktree(tmp_path: Path) -> None:
    """A judge that outlived its engine has ended before another tree is laid into the worktree that it works in."""
    with arena(tmp_path) as root:
        survive(prepare(root, 2, (Life("engine", "land is over", 4),), slow_judge_secs=3))


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_nothing_is_lost_in_many_rounds(tmp_path: Path) -> None:
    """The same for many rounds; the points that were struck are printed."""
    struck: Counter[str] = Counter()
    for seed in range(ROUNDS, ROUNDS + SOAK):
        with arena(tmp_path / str(seed)) as root:
            struck.update(survive(prepare(root, seed, lives_of(seed))))
    for point, count in struck.most_common():
        print(f"{count:5d} {point}")
