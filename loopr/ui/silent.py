"""Types whose loops must hand over an outline, while their command says nowhere where that belongs.

Told only of commands that a reader sees through: one that may be a script, or an agent that reads
its prompt, is left alone. Must never know the files that a command has left.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.forest import Forest
from loopr.core.model import FINISHED
from loopr.core.policy import Policy
from loopr.errors import Problem
from loopr.wiring import Workspace
from loopr.world.judges import first_words
from loopr.world.settings import Settings
from loopr.world.settings.parts import TypeSettings

_PLACES = ("LOOPR_OUTPUT", ".loopr/")
_WORDS = """: [ basename cat cd chmod cmp cp cut date dd diff dirname echo exit expr false grep
head install ln ls mkdir mktemp mv printf pwd readlink realpath rm rmdir sed seq sha256sum sleep
sort stat sync tail tee test touch tr true uname uniq wait wc yes"""
_SEEN_THROUGH = frozenset(_WORDS.split())
"""Programs, and words of the shell, that do as their arguments say, and look at nothing else."""


def silent_types(settings: Settings) -> list[Problem]:
    """List the types whose command cannot hand over the outline that it must."""
    kinds = settings.types.values()
    return [_told(settings, each) for each in kinds if each.child is not None and _is_silent(each)]


def silent_remarks(workspace: Workspace, forest: Forest, plan: str) -> Iterator[str]:
    """Give the same for a plan: of types that a loop of it works by, or may by its outline."""
    if forest.tree.done(plan):
        return
    loops = [each for each in forest.tree.walk(plan) if each.status not in FINISHED]
    working = {each.type for each in loops if not each.command and not each.outline}
    known = {each.type for each in forest.tree.walk(plan)}
    for kind in workspace.settings.types.values():
        declares = _above(forest.policy, kind.name) & working and kind.name not in known
        if kind.child is not None and (kind.name in working or declares) and _is_silent(kind):
            yield str(_told(workspace.settings, kind))


def _above(policy: Policy, name: str) -> set[str]:
    """Name the types above one."""
    found = set[str]()
    above = next((each for each, own in policy.types.items() if own.child == name), None)
    while above is not None and above not in found:
        found.add(above)
        above = next((each for each, own in policy.types.items() if own.child == above), None)
    return found


def _is_silent(kind: TypeSettings) -> bool:
    """Say whether a type's command is a text of plain words of which none names the place."""
    if not isinstance(kind.run, str) or kind.wrap is not None:
        return False
    programs = first_words(kind.run)
    named = any(each in kind.run for each in _PLACES)
    return bool(programs) and not named and _SEEN_THROUGH.issuperset(programs)


def _told(settings: Settings, kind: TypeSettings) -> Problem:
    """Name the duty of such a command, and the other thing that a person may mean."""
    key = f"types.{kind.name}.run"
    words = f"the command of a {kind.name} must write its outline to $LOOPR_OUTPUT, and does not"
    hint = f"to just do the work put `run` into an entry, or name its {kind.child} children there"
    return Problem(f"{key}: {words}", settings.origin(key), hint)
