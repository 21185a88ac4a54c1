"""The list of what needs a person, as rows and as lines; and what of it only the world knows.

Must never know a terminal, nor decide what belongs there (`core/inbox.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopr.core import inbox
from loopr.core.inbox import Beside, Call
from loopr.core.model import OCCUPYING, Loop, Status
from loopr.core.scene import Scene
from loopr.core.states import WORDS
from loopr.ui.stands import STALE
from loopr.wiring import Workspace

MOST_NAMED = 3  # loops of one row
MOST_BELOW = 5  # rows for one loop
_LABELS = {inbox.FILE: "waiting", inbox.RESOURCE: "waiting", inbox.HOME: "done"}
"""What stands in front of a row where that is no word for what it is about."""


def call_row(call: Call) -> dict[str, Any]:
    """Return one thing that needs a person as data."""
    about = list(call.about)
    return {"kind": call.kind, "about": about, "text": call.words, "command": call.command, "stops": call.stops}


def call_of(row: Mapping[str, Any]) -> Call:
    """Return the row that is written as data."""
    return Call(row["kind"], tuple(row["about"]), row["text"], row["command"], row["stops"])


def label(call: Call) -> str:
    """Say in one word how that stands which needs a person."""
    return _LABELS.get(call.kind, call.kind)


def words(call: Call) -> str:
    """Say in a line what needs a person, and what to type."""
    more = f" and {len(call.about) - MOST_NAMED} more" if len(call.about) > MOST_NAMED else ""
    about = f"{', '.join(call.about[:MOST_NAMED])}{more}: " if call.about else ""
    other = call.command.replace("approve", "reject", 1)
    match call.kind:
        case inbox.APPROVAL:
            said = f"{call.words}; " if call.words != inbox.ASKED else ""
            return f"{about}{said}`{call.command}` or `{other}`"
        case inbox.OFFERED:
            return f"{call.words}: `{call.command}` or `{other}`"
        case inbox.FILE:
            return f"{about}{call.words}"
        case inbox.BRANCH | inbox.SETTINGS:
            return call.words
    return f"{about}{call.words}; `{call.command}`"


def beside(workspace: Workspace, scene: Scene, held: str, now: int) -> Beside:
    """Say what the scene does not know: which plans are done and not home; `held` is what is said of settings."""
    plans = (each for each in scene.tree.children(None) if scene.tree.at_rest(each))
    done = [each for each in plans if has_landed(scene, each)]
    if not done:
        return Beside((), held, now)
    from loopr.ui.bases import is_home  # git is slow to import, and few workspaces come here

    return Beside(tuple(each for each in done if not is_home(workspace, scene, each)), held, now)


def has_landed(scene: Scene, plan: str) -> bool:
    """Say whether a plan has a base, be it only a commit, that any of its loops has gone beyond."""
    bound = scene.shared.plans.get(plan)
    if bound is None or not (bound.base_branch or bound.base_commit):
        return False
    return any(loop.landed not in ("", bound.base_commit) for loop in scene.tree.walk(plan))


def concerns(call: Call, tops: Sequence[str]) -> Call | None:
    """Return of a row what is about some subtrees, nothing where none of it is."""
    about = tuple(each for each in call.about if any(each == top or each.startswith(f"{top}/") for top in tops))
    return call._replace(about=about) if about else None


def below(scene: Scene, loop: Loop) -> list[tuple[str, str]]:
    """Say what a loop with open loops below it waits for there, a few: what needs a person first, then what is at work.

    Where there is neither, the first that wait are named.
    """
    if loop.status is not Status.COMPLETE or scene.tree.at_rest(loop.id):
        return []
    calls = (concerns(each, [loop.id]) for each in inbox.inbox(scene) if each.stops)
    found = [(label(each), words(each)) for each in calls if each is not None]
    inside = [each for each in scene.tree.walk(loop.id) if each.id != loop.id]
    found += [(WORDS[each.status], each.id) for each in inside if each.status in OCCUPYING]
    if not found:
        found = [(_waits(each), f"{each.id}: `loopr why {each.id}`") for each in inside if each.waits]
    more = [("", f"and {len(found) - MOST_BELOW} more: `loopr tree {loop.id}`")] if len(found) > MOST_BELOW else []
    return [*found[:MOST_BELOW], *more]


def of_update(scene: Scene, loop: Loop) -> Call | None:
    """Return the row that says why a plan has not taken its base, None where there is none."""
    calls = (each for each in inbox.inbox(scene) if each.kind == inbox.UPDATE)
    return next((each for each in calls if each.about == (loop.id,)), None)


def _waits(loop: Loop) -> str:
    """Say in a word how a loop stands that waits for its turn."""
    return STALE if loop.status is Status.COMPLETE else WORDS[loop.status]
