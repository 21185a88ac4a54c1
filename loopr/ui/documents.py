"""The documents of the verbs that show the state of a workspace, the same for every surface.

Each looks once and changes nothing. Must never know a terminal or a protocol.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loopr.core.grouping import Waits
from loopr.core.inbox import FILE, OFFERED, inbox
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.core.shared import Host
from loopr.core.states import WORDS
from loopr.errors import NotFound, UserError
from loopr.ui import needed, story, tries, views
from loopr.ui.conflicting import conflict_row
from loopr.ui.holding import held
from loopr.ui.names import find_id
from loopr.ui.newer_inputs import newer_inputs
from loopr.ui.resources import resource_rows, worktrees_row
from loopr.ui.stands import ALL_WORDS, is_like
from loopr.ui.unattended import serves, tell_landing, unattended, unpaid
from loopr.ui.unread import behind, is_served, unread, unread_anywhere
from loopr.ui.views import Row
from loopr.ui.whereabouts import whereabouts
from loopr.wiring import Scenery, Workspace, differs

if TYPE_CHECKING:
    from loopr.core.forest import Forest
    from loopr.ui.preview import Leases


class Filter(NamedTuple):
    """Which loops a list is to have: those that are like all of this."""

    loop: str | None = None
    status: Sequence[str] = ()
    type: Sequence[str] = ()
    project: Sequence[str] = ()
    ready: bool = False


def tree(workspace: Workspace, seen: Scenery, loop: str | None) -> Row:
    """Return the hierarchy, or what is below a loop."""
    top = find_id(seen.scene.loops, loop) if loop else None
    return listed(workspace, seen, seen.scene.tree.walk(top))


def chosen_loops(seen: Scenery, wanted: Filter) -> list[Loop]:
    """List the loops that a filter lets through, in tree order."""
    scene, now = seen.scene, seen.now
    check_known("type", wanted.type, scene.policy.types)
    check_known("project", wanted.project, projects_of(scene))
    check_known("status", wanted.status, ALL_WORDS)
    waits = Waits(scene, now)
    every: Iterable[Loop] = scene.tree.walk(find_id(scene.loops, wanted.loop) if wanted.loop else None)
    if {Status.INVALIDATED.value, WORDS[Status.INVALIDATED]} & set(wanted.status):
        every = [*every, *(scene.loops[each] for each in sorted(scene.tree.by_status[Status.INVALIDATED]))]
    return [
        each
        for each in every
        if (not wanted.status or is_like(scene, each, waits.first_closed(each), wanted.status))
        and (not wanted.type or each.type in wanted.type)
        and (not wanted.project or each.project in wanted.project)
        and (not wanted.ready or (each.waits and waits.first_closed(each) is None))
    ]


def projects_of(scene: Scene) -> set[str]:
    """Name the projects that there are."""
    return {*scene.policy.projects, *(each.project for each in scene.loops.values())}


def check_known(what: str, given: Sequence[str], known: Iterable[str]) -> None:
    """Refuse a word that can match no loop."""
    for each in given:
        if each not in set(known):
            raise UserError(f"there is no {what} {each!r}", hint=f"known: {', '.join(sorted(known))}")


def listed(workspace: Workspace, seen: Scenery, loops: Iterable[Loop]) -> Row:
    """Return a list of loops."""
    chosen = list(loops)
    body = views.tree(seen.scene, seen.now, str(workspace.place.root), chosen)
    return body | {"unread": unread(workspace, seen.scene, behind(seen.scene, chosen))}


def to_start(workspace: Workspace, scene: Scene) -> list[str]:
    """Name the plan files that a start would take up: no text that is offered, or was rejected."""
    offers = {bound.source: scene.loops[plan].offers for plan, bound in scene.shared.plans.items()}
    told = {name: {each.offered, *each.rejected} - {""} for name, each in offers.items()}
    root = workspace.place.root
    found = workspace.changed_sources(scene)
    return [each for each in found if all(differs(root / each, known) for known in told[each])]


def status(workspace: Workspace, seen: Scenery) -> Row:
    """Return what the workspace as a whole is doing; on a full disk nobody could have written down that it is."""
    from loopr.ui.convoys import progress_row  # no other view of many loops needs it
    from loopr.world.host_facts import is_full

    engine = workspace.engine()
    body = views.status(seen.scene, seen.now, engine, to_start(workspace, seen.scene))
    body["unread"] = unread_anywhere(workspace, seen.scene)
    body["setups"] = setups_now(workspace, seen)
    body["resources"] = resource_rows(seen.scene)
    body["worktrees"] = worktrees_row(seen.scene)
    plans = [each for each in seen.scene.tree.children(None) if not seen.scene.tree.done(each)]
    body["plans"] = [{"id": each} | progress_row(seen.scene, [each], seen.now) for each in plans]
    body["warnings"] += filter(None, [unattended(seen.scene, seen.now, engine, body["ready"])])
    if seen.live:
        done = [each for each in seen.scene.tree.children(None) if seen.scene.tree.at_rest(each)]
        body["warnings"] += [each.words for each in newer_inputs(workspace, seen.scene, done)]
    found = held(workspace, seen.scene.shared.accepted)
    beside = needed.beside(workspace, seen.scene, found.words if found else "", seen.now)
    calls = inbox(seen.scene, beside)
    body["inbox"] = [needed.call_row(each) for each in calls]
    moves = {name.partition("/")[0] for each in calls if each.kind in (FILE, OFFERED) for name in each.about}
    for row in body["plans"]:
        # a person moves it: they write a file, or decide on one
        row["stranded"] = row["stranded"] and row["id"] not in moves
    if found:
        body["warnings"].insert(0, found.words)
    if is_full(state := workspace.place.state):
        body["warnings"].insert(0, f"no space is left on the disk of {state}: nothing goes on until there is some")
    return body


def show(workspace: Workspace, seen: Scenery, loop: str) -> Row:
    """Return one loop with its attempts and its children."""
    from loopr.ui.convoys import progress_row

    found = _found(seen, loop)
    try:
        with workspace.journal() as journal:
            attempts = tries.attempts(journal.story(found.id))
    except NotFound:
        attempts = []
    body = views.show(seen.scene, found, seen.now, attempts)
    tell_landing(body["loop"]["gates"], workspace.engine())
    children = (seen.scene.loops[each] for each in seen.scene.tree.children(found.id))
    body["unread"] = unread(workspace, seen.scene, behind(seen.scene, (found, *children)))
    body["places"] = whereabouts(workspace, seen.scene, found)
    return body | {"progress": progress_row(seen.scene, [found.id], seen.now)}


def why(workspace: Workspace, seen: Scenery, loop: str) -> Row:
    """Return why a loop does not run, its score and its story."""
    found = _found(seen, loop)
    with workspace.journal() as journal:
        told = story.story(journal.story(found.id))
    if seen.live:
        _probe(workspace, seen.scene)
    body = views.why(seen.scene, found, seen.now, told)
    tell_landing(body["gates"], workspace.engine())
    body["gates"] = [_with_lookalikes(workspace, seen.scene, found, each) for each in body["gates"]]
    setups = setups_now(workspace, seen, found)
    body["setup"] = next((each for each in setups if each["loop"] == found.id), None)
    refused = needed.of_update(seen.scene, found)
    body["update"] = needed.call_row(refused) if refused is not None else None
    body["conflict"] = conflict_row(found)
    return body | {"unread": unread(workspace, seen.scene, behind(seen.scene, (found,)))}


def setups_now(workspace: Workspace, seen: Scenery, top: Loop | None = None) -> list[Row]:
    """List the worktrees that are being set up, all or those of a loop and below it."""
    if not seen.scene.tree.by_status[Status.LEASED]:
        return []
    from loopr.ui.preparing import setups_of  # slow to import, and seldom needed

    found = setups_of(workspace).within(seen.scene, (top.id,) if top is not None else ())
    return [each.row(seen.now) for each in found]


def _probe(workspace: Workspace, scene: Scene) -> None:
    """Look at the machine as an engine that begins would, where none runs that has looked."""
    if is_served(workspace):
        return
    from loopr.world.host_facts import short_of

    policy = scene.policy
    scene.shared.host = Host(short_of(workspace.place.root, policy.min_free_bytes, policy.max_load))


def _with_lookalikes(workspace: Workspace, scene: Scene, loop: Loop, gate: Row) -> Row:
    """Name the files that may have been meant for the one that a gate waits for."""
    sought = {"manual": loop, "artifact": scene.loops.get(loop.parent or "")}.get(gate["gate"])
    if sought is None:
        return gate
    from loopr.world.lookalikes import Sought, lookalikes

    folder = scene.policy.artifacts_dir
    specs = workspace.place.root / folder
    near = lookalikes(specs, Sought(sought.id, sought.type, scene.policy.types, scene.loops.__contains__))
    names = ", ".join(f"{folder}/{each.relative_to(specs).as_posix()}" for each in near)
    return gate | {"reason": f"{gate['reason']}; perhaps meant for it: {names}"} if names else gate


def _found(seen: Scenery, loop: str) -> Loop:
    """Return the loop that is meant."""
    return seen.scene.loops[find_id(seen.scene.loops, loop)]


def pulled(pull: bool, given: Mapping[str, Any]) -> Leases | None:
    """Read which leases are to be foretold, None where it is the engine's next round."""
    said = {name: value for name, value in given.items() if value}
    if not pull:
        if said:
            raise UserError(f"--{next(iter(said))} goes with --pull", hint="`loopr next --pull` shows leases")
        return None
    from loopr.ui.preview import MOST_LEASES, Leases

    return Leases(said.get("limit", MOST_LEASES), tuple(said.get("type", ())), tuple(said.get("project", ())))


def coming(workspace: Workspace, at: int | None, wanted: Leases | None = None) -> Row:
    """Return the next round of launches, or the leases that are wanted, before they are decided."""
    from loopr.ui.preview import next_leases, next_round

    gc.disable()  # as in `Workspace.look`
    forest, seq, now = workspace.ponder(at)
    if wanted is not None:
        check_known("type", wanted.types, forest.policy.types)
        check_known("project", wanted.projects, projects_of(forest))

    refused = {"refused": None if serves(workspace.engine()) else unpaid(forest) or None}

    def foretell(forest: Forest) -> Row:
        if wanted is not None:
            return next_leases(forest, now, wanted) | refused
        if at is None:
            _probe(workspace, forest)
        return next_round(forest, now) | refused

    known: tuple[Forest, int] | None = (forest, seq)
    if not unread_anywhere(workspace, forest):
        body, known = foretell(forest), None  # which changes the forest
        grants = (forest.loops[each["id"]] for each in body["grants"])
        if not unread(workspace, forest, behind(forest, grants)):
            return body | {"unread": []}
    from loopr.driving.first_look import learn_files  # slow to import, and most files are as they were read

    found = unread(workspace, forest, forest.tree.walk(), most=None)  # what comes instead may rest on any
    with workspace.rehearsal(at, known) as engine:
        learn_files(engine, [each["id"] for each in found])
        return foretell(engine.forest) | {"unread": found}
