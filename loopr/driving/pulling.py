"""Makes ready what a pull worker needs, in the process that asks: the same as a command of the engine's is given.

Knows how an act is carried out without an engine. Must never decide who gets a lease, nor what becomes of one.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core.entries import Entry
from loopr.core.forest import Forest
from loopr.core.model import Failure, Loop, Usage
from loopr.core.observations import Trouble
from loopr.driving.acts import Asked, Do, Later, Run
from loopr.driving.attempting import prepare
from loopr.driving.kit import OWN_FOLDER, Kit, Task, siblings_of
from loopr.driving.materials import RESULT, Spot, changes_of, write_papers
from loopr.driving.outcomes import Said, trouble_of
from loopr.errors import WorldError
from loopr.world import feedback
from loopr.world.environment import LAST_SLOT, Setting, variables
from loopr.world.launcher.words import STREAMS
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.prompts import write_files
from loopr.world.result_file import Reported, read_advice

ENVIRONMENT = "environment"
MOST_PULLED = 1_000  # blocks of ports, from the last one down; the engine counts from the first one up
_OUTER = ("GIT_CEILING_DIRECTORIES", "TRACEPARENT")


class Ready(NamedTuple):
    """Where a pull worker works, and the variables that it must have beside its own."""

    folder: Path
    environment: dict[str, str]

    @property
    def prompt(self) -> Path:
        """What is to be done."""
        return Path(self.environment["LOOPR_PROMPT_FILE"])

    @property
    def output(self) -> Path:
        """Where the artifact is handed over."""
        return Path(self.environment["LOOPR_OUTPUT"])

    @property
    def script(self) -> Path:
        """The variables as a file that a shell can read."""
        return self.folder / OWN_FOLDER / ENVIRONMENT


def task_of(kit: Kit, forest: Forest, loop: Loop, entry: Entry | None) -> Task:
    """Take down what the work under a lease begins with."""
    return kit.task(forest, loop, entry)._replace(siblings=siblings_of(forest, loop))


def make_ready(kit: Kit, task: Task, alive: Callable[[], None], every_secs: float) -> Ready:
    """Prepare the folder of a lease and all that is in it; `alive` is called now and then while that takes long."""
    lease = task.loop.lease
    kit.hold_ports(task.loop.lease_id, LAST_SLOT - (lease.grant if lease is not None else 0) % MOST_PULLED)
    alone = replace(kit, sentries={})  # what all worktrees share is watched by an engine that lives on
    return _carried_out(prepare(alone, task, _write), alive, every_secs)


def _write(kit: Kit, task: Task, spot: Spot) -> Ready:
    """Write the papers of a lease, and its environment beside them."""
    setting: Setting = replace(write_papers(kit, task, spot), deadline_ms=None)  # no clock but the lease's own
    outer = {name: kit.inherited[name] for name in _OUTER if name in kit.inherited}
    found = variables(setting, outer, ceiling=kit.worktrees, changes=changes_of(kit, task))
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(found.items())]
    texts = {ENVIRONMENT: "".join(f"{line}\n" for line in lines)}
    write_files(spot.folder / OWN_FOLDER, texts, mode=0o600)
    return Ready(spot.folder, found)


# --- without an engine ------------------------------------------------------------------------------------------------


def _carried_out(act: Generator[Asked, Any, Ready], alive: Callable[[], None], every_secs: float) -> Ready:
    """Take an act from its beginning to its end, on this thread."""
    answer: Any = None
    while True:
        try:
            asked = act.send(answer)
        except StopIteration as end:
            ready: Ready = end.value
            return ready
        match asked:
            case Do(work):
                answer = work()
            case Run(_, AttemptSpec() as spec):
                answer = _run(spec, alive, every_secs)
            case Later(problem):
                raise WorldError(str(problem))
            case _:
                answer = None


def _run(spec: AttemptSpec, alive: Callable[[], None], every_secs: float) -> Outcome:
    """Run a command beside the work, within its time; its output goes where the launcher would have put it."""
    for name in STREAMS:
        (spec.folder / name).touch(0o600)  # a log may hold keys, as one of the launcher's
    out, err = ((spec.folder / name).open("wb") for name in STREAMS)
    with out, err, spec.stdin.open("rb") as stdin:
        words, folder, environ = list(spec.argv), spec.cwd, dict(spec.env)
        try:
            process = subprocess.Popen(
                words, cwd=folder, env=environ, stdin=stdin, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            return Outcome("not_started", message=f"{words[0]}: {error.strerror or error}")
    try:
        return _waited_for(process, spec.wall_ms / 1000 or float("inf"), alive, every_secs)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _waited_for(
    process: subprocess.Popen[bytes], wall_secs: float, alive: Callable[[], None], every_secs: float
) -> Outcome:
    """Wait for the end of a command, with a sign of life now and then."""
    ends = time.monotonic() + wall_secs
    while (left := ends - time.monotonic()) > 0:
        try:
            code = process.wait(min(left, every_secs))
        except subprocess.TimeoutExpired:
            alive()
            continue
        return Outcome("exited", code=code) if code >= 0 else Outcome("signalled", signal=-code)
    return Outcome("wall")


# --- what a worker says -----------------------------------------------------------------------------------------------


def read_word(folder: Path) -> tuple[Usage | None, Trouble | None]:
    """Read what a pull worker says of its work in its result file: what it has used, and what is wrong by its word."""
    advice, _ = read_advice(folder / OWN_FOLDER / RESULT)
    if advice is None:
        return None, None
    used = Usage(advice.usage.tokens, advice.usage.micro_usd) if advice.usage != Reported() else None
    return used, trouble_of(Outcome("exited", code=0), advice, Said(b"", folder), {})


def give_up(folder: Path, reason: str) -> Trouble:
    """Say what it means that a pull worker gives its work up as failed: a no, with its reason as the feedback."""
    return Trouble(Failure.REFUSED, reason, feedback.signature(None, reason.encode(), folder))
