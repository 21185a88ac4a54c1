"""Setup and checks, tried in a scratch worktree of the base; and a fault that a check has to notice.

Knows what is run, and what its end tells of loops. Must never change the checkout, nor a plan.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.policy import DEFAULT_PROJECT, OWN_REPO
from loopr.driving.outcomes import with_headline
from loopr.errors import Deferred, EngineHeld
from loopr.ui.checkup.rows import Finding
from loopr.ui.drafting import LANGUAGE_OF, language_of, languages_of
from loopr.ui.homecoming import end_group, judge_environment
from loopr.ui.names import counted
from loopr.ui.times import say_duration
from loopr.wiring import Workspace
from loopr.world.faults import is_source, plant
from loopr.world.git_facts import GitFacts
from loopr.world.judges import paths_in
from loopr.world.place import Head, own_git_dir
from loopr.world.settings.keys import Command
from loopr.world.settings.parts import Environment

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

ROOM, LOCK, LOGS = "doctor.try", "try.lock", "try"
TAIL_BYTES = 64 * 1024
LONGEST_END_SECS, LOOK_SECS = 2, 0.02
AGAIN = "then `loopr doctor --try` again"
_COPIES = re.compile(r"\bpip3?\s+install\s+(?:(?!-e\b|--editable\b)\S+\s+)*\.(?:\[[^]]*\])?(?=$|[\s;&|'\"])")
Say = Callable[[str, int], None]
"""Hears at each second which command runs, and for how many milliseconds; none once it has ended."""


class _Check(NamedTuple):
    """A check, the types that it judges, and how it is run."""

    command: Command
    types: tuple[str, ...]
    clean: bool
    env: Environment

    @property
    def shown(self) -> str:
        """The command as one line."""
        return _shown(self.command)


class _Ran(NamedTuple):
    """How a command ended: why that is a no, where there is one; how long it took, where its output lies."""

    why: str
    took_ms: int
    log: Path


class _Bench(NamedTuple):
    """All that a trial works with: the repository, the commit, and who hears of what runs."""

    workspace: Workspace
    ground: Ground
    base: Head
    say: Say

    @property
    def at(self) -> str:
        """The base in words."""
        return f"{self.base.branch or 'HEAD'} at {self.base.commit[:8]}"


def tried(workspace: Workspace, say: Say) -> Iterator[Finding]:
    """Run the setup and each check once on the untouched base, and again with a fault planted."""
    from loopr.grounds import ground_beside

    top = workspace.place.repository
    base = workspace.start_point(top)
    if top is None or not base.commit:
        yield Finding("try", None, "there is no commit, and a worktree begins at one")
        return
    if not workspace.remembers():
        with workspace.turn():  # else refs of a trial that is killed would tell of a journal that is lost
            pass
    ground = ground_beside(workspace, workspace.look().scene, OWN_REPO)
    bench = _Bench(workspace, ground, base, say)
    yield from _without(workspace)
    checks = _checks(workspace)
    with _alone(ground):
        for clean in (True, False):
            own = [each for each in checks if each.clean is clean]
            if own or not (clean or checks):
                yield from _in_room(bench, own, clean=clean)


def _without(workspace: Workspace) -> Iterator[Finding]:
    """Say which types have a check that is not tried, or none."""
    types = workspace.settings.types.values()
    wrapped = [each.name for each in types if each.check is not None and each.wrap is not None]
    if wrapped:
        yield Finding("check", None, f"not tried: {', '.join(wrapped)} runs inside `wrap`")
    if not any(each.check is not None and each.worktree for each in types):
        hint = "`loopr set types.TYPE.check 'COMMAND'` lets a command judge what its loops make"
        yield Finding("check", None, "no type has a check in a worktree: nothing to try", hint)


def _checks(workspace: Workspace) -> list[_Check]:
    """List the checks that run in worktrees, each once."""
    found: dict[str, _Check] = {}
    for each in workspace.settings.types.values():
        if each.check is not None and each.worktree and each.wrap is None:
            same = repr((each.check, each.clean, each.env))
            own = _Check(each.check, (), each.clean, each.env)
            others = found.get(same, own).types
            found[same] = own._replace(types=(*others, each.name))
    return list(found.values())


@contextmanager
def _alone(ground: Ground) -> Iterator[None]:
    """Let one trial at a time have the scratch worktree."""
    from loopr.world.lock import EngineLock

    try:
        lock = EngineLock.acquire(ground.state / LOCK, "turn", wait_turn_secs=0)
    except EngineHeld:
        raise Deferred("another `loopr doctor --try` is at work", hint="wait for its end") from None
    with lock:
        yield


def _in_room(bench: _Bench, checks: Sequence[_Check], *, clean: bool) -> Iterator[Finding]:
    """Try checks in one worktree, which is given back in any case; a clean one is not set up."""
    from loopr.world.processes.strays import living_in
    from loopr.world.repo.rooms import lay_room

    ground = bench.ground
    try:
        _leave(bench)
        folder = lay_room(ground, ROOM, bench.base.commit, living_in).folder
        setup = None if clean else bench.workspace.settings.of_project(DEFAULT_PROJECT).worktrees.setup
        if setup is not None:
            found = _set_up(bench, folder, setup)
            yield found
            if not found.ok:
                return
        yield from _judged(bench, folder, checks, setup)
    finally:
        _leave(bench)


def _leave(bench: _Bench) -> None:
    """End all that a trial has left, this or one that was killed, and give the worktree back."""
    from loopr.world.processes.strays import end_bearing, living_in
    from loopr.world.repo.rooms import leave_room, room_of

    marks = {"LOOPR_WORKSPACE": str(bench.workspace.place.root), "LOOPR_PLAN": ROOM}
    room, until = room_of(bench.ground, ROOM), time.monotonic() + LONGEST_END_SECS
    end_bearing(marks)
    while room is not None and living_in(room) and time.monotonic() < until:
        time.sleep(LOOK_SECS)  # what was just becoming another program shows no mark for a moment
        end_bearing(marks)
    leave_room(bench.ground, ROOM, living_in)


def _set_up(bench: _Bench, folder: Path, setup: Command) -> Finding:
    """Run the setup."""
    ran = _run(bench, folder, setup, "setup")
    if ran.why:
        hint = f"its output: {ran.log}; mend worktrees.setup, {AGAIN}"
        return Finding("setup", False, f"`{_shown(setup)}` {ran.why}", hint)
    return Finding("setup", True, f"`{_shown(setup)}` works, in {say_duration(ran.took_ms)}")


def _judged(bench: _Bench, folder: Path, checks: Sequence[_Check], setup: Command | None) -> Iterator[Finding]:
    """Ask checks about the untouched base; those that say yes are asked again about a fault."""
    sound = []
    for number, each in enumerate(checks, 1):
        ran = _run(bench, folder, each.command, f"check-{number}", each.env)
        if ran.why:
            text = f"`{each.shown}` says no on {bench.at}, which is untouched: it {ran.why}"
            hint = f"its output: {ran.log}; until it says yes there each try of {_of(each)} is refused"
            yield Finding("check", False, text, hint)
            continue
        took = say_duration(ran.took_ms)
        yield Finding("check", True, f"`{each.shown}` says yes on {bench.at}, in {took}; it judges {_of(each)}")
        sound.append(each)
    for each in sound:
        yield _with_fault(bench, folder, each, setup)


def _with_fault(bench: _Bench, folder: Path, check: _Check, setup: Command | None) -> Finding:
    """Break all source files of the check's language at once, and see whether it says no."""
    files = GitFacts(folder, own_git_dir(folder)).files_of(bench.base.commit)
    own = set(paths_in(check.command))
    sources = [each for each in files if is_source(each) and each not in own]
    counts = languages_of(sources)
    language = language_of(check.shown)
    language = language if language in counts else next((name for name, _ in counts.most_common(1)), "")
    chosen = [each for each in sources if LANGUAGE_OF.get(Path(each).suffix.lower()) == language]
    planted = plant(folder, chosen) if language else 0
    if not planted:
        return Finding("fault", None, f"no source file to plant a fault in: `{check.shown}` is not put to the proof")
    ran = _run(bench, folder, check.command, "fault", check.env)
    where = f"a fault in {'each of ' if planted > 1 else ''}{counted(planted, f'{language} file')}"
    if ran.why:
        return Finding("fault", True, f"`{check.shown}` notices {where}: it {ran.why}")
    text = f"`{check.shown}` says yes with {where}: it does not look at this tree"
    return Finding("fault", False, text, f"{_cause(setup, language)}, {AGAIN}")


def _cause(setup: Command | None, language: str) -> str:
    """Say what most likely keeps a check from the files of its worktree."""
    if setup is not None and _COPIES.search(_shown(setup)):
        return "worktrees.setup installs a copy of the package: write `pip install -e .`"
    if language == "Python":
        own = "`python -m venv .venv && .venv/bin/pip install -e .`"
        return f"it imports an installed package or your checkout: let worktrees.setup install this tree, {own}"
    if language == "JavaScript":
        return (
            "it may run a build that nothing makes anew, or a package in `node_modules` of your checkout: build first"
        )
    return "it may run a program that is installed, or an old build: let it build first, or name the worktree's own"


# --- a command ------------------------------------------------------------------------------------


def _run(
    bench: _Bench,
    folder: Path,
    command: Command,
    key: str,
    env: Environment | None = None,
) -> _Ran:
    """Run a command to its end as a judge is run, its output in a file; nothing of its group is left."""
    log = _log_of(bench.ground, key)
    settings = bench.workspace.settings
    timeouts, is_setup = settings.timeouts, key == "setup"
    variables = judge_environment(bench.workspace, bench.ground, ROOM, folder, makes=is_setup)
    if env is not None:
        variables = {name: each for name, each in variables.items() if name not in env.unset} | dict(env.set)
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    limit_ms, begun = timeouts.wall_ms if is_setup else timeouts.check_ms, time.monotonic()
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        except OSError as error:
            return _Ran(f"cannot be started: {(error.strerror or str(error)).lower()}", 0, log)
        try:
            code = _waited(process, lambda ms: bench.say(_shown(command), ms), limit_ms)
        finally:
            end_group(process, timeouts.grace_ms)
            bench.say("", 0)
    took = round((time.monotonic() - begun) * 1000)
    return _Ran(_why(code, limit_ms, log), took, log)


def _waited(process: subprocess.Popen[bytes], say: Callable[[int], None], limit_ms: int) -> int | None:
    """Wait for a command, and say so at each second; None where it takes too long."""
    begun = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        passed = round((time.monotonic() - begun) * 1000)
        if limit_ms and passed >= limit_ms:
            return None
        say(passed)


def _why(code: int | None, limit_ms: int, log: Path) -> str:
    """Say why the end of a command is a no, with the last it said; nothing where it is a yes."""
    if code == 0:
        return ""
    if code is None:
        return f"took longer than {limit_ms / 1000:g} s"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        tail = file.read()
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    return with_headline(ended, tail)


def _log_of(ground: Ground, key: str) -> Path:
    """Return the file for the output of a command, in a folder for its owner alone."""
    folder = ground.state / LOGS
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{key}.log"


def _shown(command: Command) -> str:
    """Return a command as one line."""
    return command if isinstance(command, str) else " ".join(command)


def _of(check: _Check) -> str:
    """Name the types that a check judges."""
    return ", ".join(check.types)
