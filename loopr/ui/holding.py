"""What of the settings is held back: named, shown as differences, and taken by a person.

The same for every surface. Must never know a terminal or a protocol, nor decide what is held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loopr.core.shared import Accepted
from loopr.errors import LooprError, SettingsError, WorldError

if TYPE_CHECKING:
    from loopr.core.scene import Scene
    from loopr.wiring import Workspace
    from loopr.world.settings import Settings
    from loopr.world.settings.live import Difference
    from loopr.world.settings.sources import Texts


ONLY_HELD = "it is only in settings that are held back"
TAKE_HELD = "`loopr config accept` shows and takes them"


class Held(NamedTuple):
    """What is held back: what it would change, and what keeps it from loading, if anything does."""

    texts: Texts
    keys: tuple[str, ...]
    doubt: str

    @property
    def words(self) -> str:
        """Say it in one line."""
        from loopr.core.accepting import held_words

        said = f"settings are {held_words(self.keys)}"
        return f"{said}; as they are they do not load: {self.doubt}" if self.doubt else said


def accepted_of(workspace: Workspace) -> Accepted:
    """Return what is accepted, as far as a journal can be read."""
    from loopr.recall import read_accepted

    with suppress(LooprError), workspace.journal() as journal:
        return read_accepted(journal)
    return Accepted()


def held(workspace: Workspace, accepted: Accepted | None = None) -> Held | None:
    """Say what of the files is not in force, None where they are."""
    known = accepted if accepted is not None else accepted_of(workspace)
    texts = workspace.in_force.written()
    if texts.seal == known.seal or not known.seal or workspace.in_force.basis.seal == texts.seal:
        return None
    keys, doubt = workspace.in_force.keys(known, texts), ""
    try:
        workspace.in_force.load(texts)
    except SettingsError as error:
        doubt = str(error.problems[0])
    return Held(texts, keys, doubt) if keys else None


def held_settings(workspace: Workspace) -> Settings | None:
    """Return the settings as they are written, where they are held back and load."""
    found = held(workspace)
    return workspace.in_force.load(found.texts) if found is not None and not found.doubt else None


def difference_lines(workspace: Workspace, texts: Texts) -> Iterator[str]:
    """Show what texts say otherwise than the accepted ones."""
    try:
        found = workspace.in_force.differences(accepted_of(workspace), texts)
    except SettingsError as error:
        yield f"{error.problems[0].message}, so that what would change cannot be shown"
        return
    for each in found:
        yield from _lines(each)


def _lines(each: Difference) -> Iterator[str]:
    """Show one difference: a key with both values, or a file with its lines."""
    if each.lines:
        yield each.name
        yield from (f"  {line}" for line in each.lines[2:])
    else:
        where = f"  ({each.file})" if each.file != each.name else ""
        yield f"{each.name}: {_value(each.old)} → {_value(each.new)}{where}"


def _value(value: Any) -> str:
    """Write a value on one line, as it would stand in the file."""
    from loopr.world.settings.live import UNSAID
    from loopr.world.settings.writing import flow

    return "not set" if value is UNSAID else flow(value)


def take(workspace: Workspace, texts: Texts) -> None:
    """Take texts as they were shown: from now on they are in force for every process."""
    from loopr.core.accepting import accept

    settings = workspace.in_force.load(texts)
    with workspace.visit() as engine:
        _check(workspace, engine.forest, settings)
        workspace.in_force.keep(texts)
        engine.mind.decide(lambda forest, now: accept(forest, texts.seal, workspace.actor))
        workspace.in_force.use(engine.forest.shared.accepted)


def _check(workspace: Workspace, scene: Scene, settings: Settings) -> None:
    """Refuse what no engine could go by, and what one that runs cannot take up."""
    from loopr.grounds import Written, check_homes, repository_problems
    from loopr.payers import check_payers

    written, policy = Written(workspace.place, settings), settings.policy
    if problems := repository_problems(written):
        raise SettingsError("", problems=problems)
    check_homes(written, scene)
    check_payers(written, scene)
    changed = [key for key, name in FIXED.items() if getattr(policy, name) != getattr(scene.policy, name)]
    holder = workspace.engine()
    if changed and holder is not None and holder["kind"] == "engine":
        hint = "`loopr stop`, then accept it"
        raise SettingsError(f"{changed[0]} cannot change while an engine runs", where=changed[0], hint=hint)


FIXED = {"artifacts.dir": "artifacts_dir", "worktrees.dir": "worktrees_dir", "git.branch_prefix": "branch_prefix"}
"""The keys that hold as long as an engine runs, with what the policy calls them."""


def take_one(workspace: Workspace, key: str, value: str) -> None:
    """Take one setting that a person has just written, where changes are held back; all else stays held."""
    from loopr.core.accepting import accept_one, holds_back
    from loopr.world.settings.edit import edited

    if not workspace.place.journal.exists() or key in FIXED:
        return
    with workspace.visit() as engine:
        known = engine.forest.shared.accepted
        if not known.seal or not holds_back(engine.forest):
            return
        texts = edited(workspace.in_force.texts(known.seal), key, value)
        workspace.in_force.load(texts)
        workspace.in_force.keep(texts)
        rest = workspace.in_force.compare(Accepted(texts.seal), holds=True)
        workspace.in_force.secure(rest)
        engine.mind.decide(
            lambda forest, now: (
                accept_one(forest, texts.seal, workspace.actor, rest)
                if forest.shared.accepted.seal == known.seal
                else iter(())
            )
        )
        taken = engine.forest.shared.accepted
    workspace.in_force.use(taken)
    if taken.seal not in (rest.over, rest.seal):
        raise WorldError("others have accepted settings at the same time", hint="`loopr config accept` takes it")
