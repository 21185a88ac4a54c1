"""What `start` does with lists of work from elsewhere: each becomes a plan before it is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loopr.ui import render
from loopr.ui.cli.frame import Frame

if TYPE_CHECKING:
    from loopr.ui.lists import Listed
    from loopr.ui.requests import Plan

KINDS = ("beads", "github", "jsonl", "spec-kit", "checklist")
_BOX = re.compile(rb"\] T|[-*+.)][ \t]+\[[ xX]\][ \t]")
MOST_REMARKS = 10


def with_lists(
    frame: Frame,
    given: Sequence[str],
    said: Mapping[str, str | None],
    ask: Callable[[str], bool],
    *,
    dry_run: bool,
) -> tuple[list[Path], list[Plan]]:
    """Put a plan in the place of each list among some files; on paper, return the plans and write nothing.

    What is said of them is the `kind` of their lists, and the `own_id` of the plan.
    """
    kind, own_id = said.get("kind"), said.get("own_id")
    paths = [frame.directory / each for each in given]
    if kind is own_id is None and not any(map(_may_be_list, paths)):
        return paths, []
    from loopr.ui.enqueueing import rehearse
    from loopr.ui.gate import pass_gate
    from loopr.ui.lists import place_list, read_lists  # most plans are none

    workspace = frame.workspace
    lists = read_lists(workspace, paths, kind, own_id)
    if not lists:
        return paths, []
    plans = [each.plan for each in lists.values()]
    if not dry_run:
        pass_gate(workspace, "start", [str(each) for each in lists], lambda scene: [each.id for each in plans])
        rehearse(workspace, plans, ask, to_run=False)  # a refusal leaves nothing behind
    for each in lists.values():
        _tell(frame, each, fresh=not dry_run and place_list(workspace, each, ask))
    if dry_run:
        return [path for path in paths if path not in lists], plans
    return [lists[path].plan.path if path in lists else path for path in paths], []


def _may_be_list(path: Path) -> bool:
    """Tell whether a file may be a task list or a checklist, without reading it as one."""
    try:
        return path.suffix == ".md" and path.is_file() and _BOX.search(path.read_bytes()) is not None
    except OSError:
        return False


def _tell(frame: Frame, listed: Listed, *, fresh: bool) -> None:
    """Say what became of a list."""
    number = listed.left_out
    out = f"; {number} {'is' if number == 1 else 'are'} closed, and left out" if number else ""
    word = "wrote" if fresh else "plan"
    frame.note(f"{word} {render.plain(listed.plan.source)}, taken from {render.plain(listed.source)}{out}")
    for remark in listed.remarks[:MOST_REMARKS]:
        frame.note(f"  {render.plain(remark)}")
    if len(listed.remarks) > MOST_REMARKS:
        frame.note(f"  … {len(listed.remarks) - MOST_REMARKS} more")
