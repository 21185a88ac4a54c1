"""The judge of a plan on its way home: the base branch's own, on what would come home, in a folder of its own.

Must never know what becomes of the plan.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loopr.core.model import Loop
from loopr.errors import Deferred, EngineHeld, Problem
from loopr.ui import render
from loopr.ui.askers import JUDGE
from loopr.wiring import Workspace
from loopr.world.activated import seen_from
from loopr.world.judges import judges_in
from loopr.world.settings.keys import Command

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import HomeCandidate

MOST_NAMED = 20
HOME_LOCK = "home.lock"
LAND_CHECK = "land.check"
SETUP = "worktrees.setup"


@contextmanager
def alone(ground: Ground) -> Iterator[None]:
    """Let one plan at a time be judged beside loops: that may take long, and neither an engine nor a turn waits."""
    from loopr.world.lock import EngineLock

    try:
        lock = EngineLock.acquire(ground.state / HOME_LOCK, "turn", wait_turn_secs=0)
    except EngineHeld:
        words = "another `loopr land` is at work, or an update of a plan"
        raise Deferred(words, hint="try again once it has ended") from None
    with lock:
        yield


def judged(
    workspace: Workspace,
    plan: Loop,
    ground: Ground,
    built: HomeCandidate,
    say: Callable[[str], None],
    *,
    stand_in: tuple[str, Command | None] = ("", None),
) -> Problem | None:
    """Run `land.check` on what would come home, in a worktree of its own; say why it said no.

    What it runs, and setup before it, is the base branch's: a plan has no say in how it is judged. Where there is none
    another check may stand in, with its name.
    """
    from loopr.world.repo.home import as_judged, take_home_room

    settings = workspace.settings.of_project(plan.project)
    name, check = (LAND_CHECK, settings.land.check) if settings.land.check is not None else stand_in
    if check is None:
        return None
    commands = (check, settings.worktrees.setup)
    commit, own = as_judged(ground, built, judges_in(commands))
    room = take_home_room(ground, built.plan, commit)
    if own:
        named = render.plain(", ".join(own[:MOST_NAMED]))
        say(f"judged by {named} as {built.branch} has it, not as it would come home")
    steps = (
        (SETUP, settings.worktrees.setup, settings.timeouts.wall_ms),
        (name, check, settings.timeouts.check_ms),
    )
    for key, command, limit_ms in steps:
        if command is not None:
            makes = key == SETUP
            environment = judge_environment(workspace, ground, built.plan, room.folder, makes=makes)
            why = _ran(command, room.folder, environment, (limit_ms, settings.timeouts.grace_ms))
            if why:
                return _no(built, key, command, why)
    return None


def _no(built: HomeCandidate, key: str, command: Command, why: str) -> Problem:
    """Say why a judge said no, and how what it judged is mended."""
    shown, beside = command if isinstance(command, str) else " ".join(command), f"../{built.plan}-mend"
    lines = f"git worktree add --detach {beside} {built.new[:12]} && cd {beside}"
    hint = f"mend it in another plan, or by hand: `{lines}`, commit, `loopr adopt {built.plan} HEAD`"
    return Problem(f"{key} said no: `{shown}` {why}", hint=hint)


def judge_environment(
    workspace: Workspace,
    ground: Ground,
    plan: str,
    folder: Path,
    *,
    makes: bool,
) -> dict[str, str]:
    """Return the environment of a judge: without what would tie it to another repository or to an outer loop."""
    from loopr.world.repo.worktrees import command_environment

    ours, unset = command_environment(ground)
    seen = os.environ if ground.top is None else seen_from(os.environ, ground.top, folder, strict=not makes)
    kept = {name: each for name, each in seen.items() if name not in unset and not name.startswith("LOOPR")}
    marks = {"LOOPR_WORKSPACE": str(workspace.place.root), "LOOPR_HOOK": JUDGE}  # who asks, of whatever it calls
    return kept | ours | marks | {"LOOPR": "1", "LOOPR_PLAN": plan, "LOOPR_WORKTREE": str(folder)}


def _ran(command: Command, folder: Path, environment: dict[str, str], limits_ms: tuple[int, int]) -> str:
    """Run a command to its end, its output beside ours, and say what was wrong; nothing of its group is left behind."""
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    limit_ms, grace_ms = limits_ms
    try:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True
        )
    except OSError as error:
        return f"cannot be started: {(error.strerror or str(error)).lower()}"
    try:
        code = process.wait(limit_ms / 1000 if limit_ms else None)
    except subprocess.TimeoutExpired:
        return f"took longer than {limit_ms / 1000:g} s"
    finally:
        end_group(process, grace_ms)
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with {code}" if code else ""


def end_group(process: subprocess.Popen[bytes], grace_ms: int) -> None:
    """End a command that runs too long, or that nobody waits for any more, with what is left of its group."""
    with suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace_ms / 1000)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
