"""The checks of what a workspace says and remembers: settings, journal, lock, artifacts.

Must never know git or the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from loopr.core.codec import decode
from loopr.core.entries import decode_entry
from loopr.core.forest import Forest
from loopr.core.left_out import LEFT_OUT, LEFT_PLACE
from loopr.core.model import Status
from loopr.core.observations import FileRefused
from loopr.engine import ENTRIES, compare, recall
from loopr.errors import LooprError, NotFound, SettingsError
from loopr.payers import unknown_projects
from loopr.ui.checkup.rows import Finding, stopped
from loopr.ui.damage import first_damaged
from loopr.ui.holding import held
from loopr.ui.mending import gone
from loopr.ui.strangers import free_folder, remarks_on, strangers
from loopr.ui.unread import remedy, unread_anywhere
from loopr.ui.views import instant
from loopr.wiring import Workspace
from loopr.world.artifacts import scan
from loopr.world.journal import Journal
from loopr.world.journal_copies import behind_its_copy, newest_copy, put_back_line
from loopr.world.lock import holder
from loopr.world.notify import INSTALL, lacks
from loopr.world.settings import Settings

MOST_ODD = 20
MOST_TRIES = 3
_BROKEN_ROW = (ValueError, LookupError, TypeError, AttributeError)


def _settings(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Report every problem of the settings."""
    try:
        workspace.settings  # noqa: B018 - they are read when they are asked for
    except SettingsError as error:
        yield from stopped("settings", error)
    else:
        lost = list(_payers(workspace))
        yield from lost
        found = held(workspace)
        if found is None and not lost:
            yield Finding("settings", True, "nothing is wrong in any layer")
        elif found is not None:
            yield Finding("settings", None, found.words, "`loopr config accept` shows what it is, and takes it")


def _payers(workspace: Workspace) -> Iterator[Finding]:
    """Report projects of plans that the settings do not know."""
    try:
        found = unknown_projects(workspace, workspace.look().scene)
    except (LooprError, *_BROKEN_ROW):  # the check of the journal tells
        return
    yield from (Finding("settings", False, f"{each.where} {each.message}".strip(), each.hint) for each in found)


def _engine(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Tell who holds the workspace."""
    found = holder(workspace.place.lock)
    if found is None:
        yield Finding("engine", True, "none is running")
    else:
        name = "an engine" if found["kind"] == "engine" else "a command"
        since = f", since {instant(found['since'])}" if found["since"] else ""
        who = f"pid {found['pid']} on {found['host']}{since}" if found["pid"] else "it has not said who it is"
        yield Finding("engine", True, f"{name} holds the workspace: {who}")


def _journal(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Check the file that remembers everything, and that there is only one."""
    try:
        with workspace.journal() as journal:
            problems = journal.integrity()
            text = f"{journal.last_seq()} events, {journal.size() / 1024:.0f} KiB" if not problems else ""
    except NotFound:
        yield Finding("journal", None, "there is none yet: `loopr start PLAN` begins one")
    else:
        place = workspace.place.journal
        back = put_back_line(place, newest_copy(place))
        hint = f"keep a copy of {place}, then {back}, or begin a new one: `loopr init --anew`"
        yield from (Finding("journal", False, line, hint) for line in problems)
        behind = behind_its_copy(place)
        if behind:
            yield Finding("journal", False, behind)
        elif not problems:
            yield Finding("journal", True, text)
    other = workspace.place.root / ".loopr" / workspace.place.journal.name
    if other.exists() and other != workspace.place.journal:
        text = f"{other} was left behind when the workspace became a repository: nothing reads it any more"
        yield Finding("journal", None, text, f"stop what runs, and move it to {workspace.place.state}, or delete it")


def _replay(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Check that the rows are what the events lead to."""
    try:
        with workspace.journal() as journal:
            found = _compared(journal)
    except (NotFound, SettingsError):  # the check of the journal tells
        return
    except _BROKEN_ROW as error:
        with workspace.journal() as journal:
            place = first_damaged(journal) or "a row"
        found = [f"{place} cannot be read: {type(error).__name__}: {error}"]
    if found is None:
        yield Finding("replay", None, "the journal is being written too fast to compare", "try again in a moment")
    elif not found:
        yield Finding("replay", True, "the events lead to the rows as they are")
    else:
        hint = "please report it, with a copy of the journal" + _copy_words(workspace)
        yield from (Finding("replay", False, line, hint) for line in found[:MOST_ODD])


def _copy_words(workspace: Workspace) -> str:
    """Name the newest copy of the journal, if there is one."""
    copy = newest_copy(workspace.place.journal)
    return f"; its newest copy is {copy.path}, up to event {copy.seq}" if copy is not None else ""


def _compared(journal: Journal) -> list[str] | None:
    """Compare rows and events of the same moment, None if there was none; the first line says where they part."""
    for _ in range(MOST_TRIES):
        seq = journal.last_seq()
        found = compare(journal)
        if not found:
            return found
        parted = first_difference(journal)
        if journal.last_seq() == seq:
            where = f"rows and events part at event {parted}" if parted else "there are rows that no event led to"
            return [where, *found]
    return None


def first_difference(journal: Journal) -> int | None:
    """Return the event after which rows and events lead to different things, None if no event says so."""
    try:
        rows = recall(journal)[0].all_rows()
    except LooprError:
        rows = {}
    kept = {key: json.dumps(value, separators=(",", ":")) for key, value in rows.items()}
    forest, parted = Forest(), dict[tuple[str, str], int]()
    for each in journal.since(0):
        try:
            forest.apply(decode(each.event, each.version, each.data), each.at)
        except LooprError:
            return each.seq
        for table, key, body in forest.take_rows().changes:
            if kept.get((table, key)) == body:
                parted.pop((table, key), None)
            elif table != "entries":
                parted.setdefault((table, key), each.seq)
    return min(parted.values(), default=None)


def _specs(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Remark on files in the tree that no loop has."""
    folder = workspace.place.root / settings.artifacts.dir
    seen = scan(folder, settings.policy.types)
    odd = [Finding("specs", None, f"{each.where} {each.message}", each.hint) for each in seen.odd]
    known = _known_loops(workspace)
    if known is not None:
        hint = "`loopr start` the plan it belongs to, or declare it there; it is ignored until then"
        strays = [found for found in seen.found if found.loop_id not in known]
        odd += [Finding("specs", None, f"{workspace.name_of(each.path)} belongs to no loop", hint) for each in strays]
        found, plans = strangers(workspace, settings), {each.partition("/")[0] for each in known}
        odd += [Finding("specs", None, *each) for each in remarks_on(found, plans, free_folder(workspace, plans))]
    odd += (*_gone(workspace, settings), *_unread(workspace))
    yield from odd[:MOST_ODD]
    if len(odd) > MOST_ODD:
        yield Finding("specs", None, f"… and {len(odd) - MOST_ODD} more")
    if not odd:
        count = len(seen.found)
        yield Finding("specs", True, f"{count} artifact{'s' * (count != 1)} in {settings.artifacts.dir}/")


def _unread(workspace: Workspace) -> Iterator[Finding]:
    """Name the artifacts that differ from what was read, and what is wrong with them; an engine at work tells that."""
    try:
        scene = workspace.look().scene
        rows = unread_anywhere(workspace, scene)
    except (LooprError, *_BROKEN_ROW):  # that is found by the checks before this one
        return
    if not rows:
        return
    with workspace.rehearsal() as engine:
        for row in rows:
            seen = engine.hands.look(row["id"], scene.loops[row["id"]].type)
            if isinstance(seen, FileRefused):
                yield Finding("specs", False, seen.text, "mend it: nothing below it is taken up until then")
            else:
                yield Finding("specs", None, row["text"], remedy(row))


def _gone(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Name the artifacts of complete loops that are not there, and say how each comes back."""
    try:
        scene, hands = workspace.look().scene, workspace.hands()
    except (LooprError, *_BROKEN_ROW):  # that is found by the checks before this one
        return
    missing = list(gone(scene, hands, scene.tree.children(None)))
    if not missing:
        return
    with workspace.journal() as journal:
        for loop in missing:
            place = f"{settings.artifacts.dir}/{loop.id}/{loop.type}.md"
            waiting = any(scene.loops[each].status is Status.PENDING for each in scene.tree.children(loop.id))
            entry = journal.row(ENTRIES, loop.id)
            kept = hands.copy_of(loop, decode_entry(json.loads(entry)) if entry else None) is not None
            again = f"`loopr retry --fresh {loop.id}` does it again"
            hint = f"`loopr doctor --fix` puts it back; {again}" if kept else f"no copy of it is kept; {again}"
            more = ", and what is below it waits for it" if waiting else ""
            yield Finding("specs", False if waiting else None, f"{place} is gone{more}", hint)


def _known_loops(workspace: Workspace) -> set[str] | None:
    """Return the loops that are remembered, None where the journal cannot tell."""
    try:
        with workspace.journal() as journal:
            return {key for key, _ in journal.rows("loops")}
    except NotFound:
        return set()
    except LooprError:
        return None


def _told(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Remark on hooks that fail, addresses that nobody can be told at, plans that do not come home, files left out."""
    from loopr.driving.beside import PLACES

    missing = lacks(settings.notify)
    if missing:
        yield Finding("hooks", None, missing, INSTALL)
    try:
        with workspace.journal() as journal:
            rows = dict(journal.rows("records"))
    except (NotFound, SettingsError):  # the check of the journal tells
        rows = {}
    for key in sorted(each for each in rows if each.startswith("problem/")):
        place = key.removeprefix("problem/")
        if place.startswith(LEFT_PLACE):
            yield Finding(LEFT_OUT, None, f"{place.removeprefix(LEFT_PLACE)}: {json.loads(rows[key])}")
        elif place.startswith(PLACES):
            yield Finding("hooks", None, f"{place}: {json.loads(rows[key])}")


CHECKS = (
    ("settings", _settings),
    ("hooks", _told),
    ("journal", _journal),
    ("replay", _replay),
    ("engine", _engine),
    ("specs", _specs),
)
