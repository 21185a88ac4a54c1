"""A command of a type that must hand over an outline, and cannot, is told before it is tried."""

from __future__ import annotations

import pytest

from tests.ui.calls import loopr
from tests.ui.scenes import Desk

LADDER = """\
types:
  plan: {{child: spec}}
  spec: {{child: phase}}
  phase: {{child: code{run}}}
  code: {{run: echo y > y, check: none}}
"""
PLAN = "---\nid: {id}\nspecs: [{{id: s, phases: [{{id: a{entry}}}]}}]\n---\n# P\n"
TOLD = "types.phase.run: the command of a phase must write its outline to $LOOPR_OUTPUT"
REMEDY = "to just do the work put `run` into an entry, or name its code children there"


def told(desk: Desk, run: str, entry: str = "", name: str = "p") -> list[bool]:
    """Say whether a dry run, a start and the check of the settings tell of a command."""
    desk.write("loopr.yml", LADDER.format(run=f", run: {run}" if run else ""))
    path = desk.write(f"{name}.md", PLAN.format(id=name, entry=entry))
    said = [desk("start", way, path).err for way in ("--dry-run", "--no-run")]
    checked = loopr("config", "check", "-C", desk.folder).err
    assert all(REMEDY in each for each in (*said, checked) if TOLD in each)
    return [TOLD in each for each in (*said, checked)]


@pytest.mark.parametrize("run", [
    "'echo x > x'",
    "'mkdir -p out && date > out/now; cd out || exit 1'",
    "'X=1 printf done'",
    "'true'",
])  # fmt: skip
def test_a_command_that_cannot_hand_over_is_told(desk: Desk, run: str) -> None:
    """What only names other files is told by the dry run, by the start, and of the settings."""
    assert told(desk, run) == [True, True, True]


@pytest.mark.parametrize("run", [
    """'echo "# A" > "$LOOPR_OUTPUT"'""",
    "'cat a.md > .loopr/output.md'",
    "./phase.sh",
    "make phase",
    "my-agent --go",
    "'echo $(plan-it)'",
    "[echo, x]",
    "'echo x > x', wrap: [sandbox, '{command}']",
    "",
])  # fmt: skip
def test_what_may_hand_over_is_left_alone(desk: Desk, run: str) -> None:
    """A script, an agent, or a command that names the place may do what it must."""
    assert told(desk, run) == [False, False, False]


@pytest.mark.parametrize("entry", [", run: echo z > z", ", codes: [{id: x}]"])
def test_a_plan_without_such_a_loop_is_told_nothing(desk: Desk, entry: str) -> None:
    """Where entries do the work, or have children, the command of the type is not asked."""
    assert told(desk, "'echo x > x'", entry) == [False, False, True]


def test_what_is_still_to_be_declared_is_told(desk: Desk) -> None:
    """Where a spec has yet to declare its phases, their command is looked at already."""
    desk.write("loopr.yml", LADDER.format(run=", run: 'echo x > x'"))
    path = desk.write("p.md", "---\nid: p\nspecs: [{id: s}]\n---\n# P\n")
    assert TOLD in desk("start", "--dry-run", path).err
