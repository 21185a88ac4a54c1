"""What a start would be refused for, beside what its plans say: its dry run tells it too.

Knows what an engine looks at before it begins. Must never know a terminal, nor write or take
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loopr.errors import Problem, SettingsError
from loopr.grounds import check_homes, grounds_of
from loopr.payers import check_payers
from loopr.ui.enqueueing import Admitted
from loopr.ui.requests import Plan, refused_programs
from loopr.wiring import Workspace


def refusals(
    workspace: Workspace,
    admitted: Admitted,
    plans: Sequence[Plan],
    *,
    to_run: bool,
    drives: bool,
) -> list[Problem]:
    """List what keeps plans that were brought in on paper from being started.

    They are `to_run` now, or only enqueued; who `drives` them is the command itself.
    """
    forest = admitted.forest
    checks: list[Callable[[], object]] = [
        lambda: grounds_of(workspace),
        lambda: check_homes(workspace, forest),
        lambda: check_payers(workspace, forest),
    ]
    found = list(_said_by(workspace.engine))
    if drives and not found and workspace.engine() is None:
        found += [problem for check in checks for problem in _said_by(check)]
    for plan, done in zip(plans, admitted.done, strict=True):
        if to_run and done.absent:
            found += refused_programs(forest, workspace, plan)
    return list(dict.fromkeys(found))


def _said_by(check: Callable[[], object]) -> Iterator[Problem]:
    """Give what a check refuses, if it does."""
    try:
        check()
    except SettingsError as error:
        yield from error.problems
