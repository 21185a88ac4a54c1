"""What runs beside the command of an attempt: setup and hooks, with their files as the plan has them.

Knows folders and how a step ended. Must never know what becomes of the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from loopr.core import observations as o
from loopr.core.entries import Command
from loopr.driving.acts import Asked, Do, Run, Tell
from loopr.driving.agents import veil_of
from loopr.driving.guarding import protect_of_steps, words_of_steps
from loopr.driving.kit import Kit, Task
from loopr.driving.materials import Spot, step_spec
from loopr.driving.outcomes import tail_of, was_stopped, with_headline
from loopr.errors import LooprError
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import put_back_in_place

LOST_TRIES = 5  # one that always takes its watchers down with it is at fault itself


class SetupFailed(LooprError):
    """What prepares a worktree has failed: the attempt did not start."""


def run_before(kit: Kit, task: Task, spot: Spot, commands: dict[str, Command | None]) -> Generator[Asked, Any, None]:
    """Run what is to run before the command; the attempt does not start if one of these fails."""
    for step, command in commands.items():
        if command is None:
            continue
        spec, outcome = yield from run_to_its_end(kit, task, spot, command, step)
        if outcome.code != 0:
            said = veil_of(kit, task, None).over_bytes(tail_of(spec.folder))
            how = outcome.reason if outcome.code is None else f"{outcome.reason} {outcome.code}"
            reason = f"the {step} command failed ({how})"
            raise SetupFailed(with_headline(reason, said or outcome.message.encode()))


def run_to_its_end(
    kit: Kit, task: Task, spot: Spot, command: Command, step: str
) -> Generator[Asked, Any, tuple[AttemptSpec, Outcome]]:
    """Run a command to its end; one that was lost with all that watched it runs again, at no cost to the loop."""
    for number in range(1, LOST_TRIES + 1):
        spec = step_spec(kit, task, spot, command, step if number == 1 else f"{step}.{number}")
        outcome: Outcome = yield Run(spec.id, spec)
        if outcome.reason != "lost" and not was_stopped(outcome):
            break
    return spec, outcome


def run_after_command(kit: Kit, task: Task, spot: Spot, commit: Callable[[], object]) -> Generator[Asked, Any, None]:
    """Run `post_run`; how that ends changes nothing.

    Where it names files of the repository the work is committed before it, so that whatever was
    made of them is kept.
    """
    command, ground = kit.settings.hooks.get("post_run"), kit.ground_of(task)
    if command is None:
        return
    try:
        if ground is not None:
            sentry = kit.sentry_of(task)  # looks first: what was planted must not run as the engine
            if sentry is not None:
                yield Do(sentry.look)
            yield Do(lambda: put_steps_back(kit, task, ground, commit))
        spec = step_spec(kit, task, spot, command, "post_run")
    except (LooprError, OSError) as error:
        yield Tell(o.Noticed("hook post_run", f"not run for {task.loop.id}: {error}"))
        return
    outcome: Outcome = yield Run(spec.id, spec)
    said = "" if outcome.code == 0 else f"failed ({outcome.reason} {outcome.code}), its log is in {spec.folder}"
    yield Tell(o.Noticed("hook post_run", said))


def put_steps_back(kit: Kit, task: Task, ground: Ground, commit: Callable[[], object]) -> None:
    """Have the files that steps and wrappers name stand as the plan has them."""
    if not words_of_steps(kit, task):
        return
    protect = protect_of_steps(kit, task, ground, task.tip)
    if protect is not None:
        commit()
        back = put_back_in_place(ground, task.name, task.tip, protect, kit.clock())
        if back:  # no later look finds them on the loop's own branch
            kit.runs.note_put_back(task.name, {each.path: each.how for each in back})
