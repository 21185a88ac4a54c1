"""What pull workers say of leases that they have, fulfilled for every surface alike: that they live, or are done.

All the leases of a wish are decided on together, or none is. Must never know what a word leads to (`core/wishes.py`),
nor a terminal or a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from loopr.core import wishes
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Failure
from loopr.core.naming import generation_name
from loopr.core.observations import Trouble
from loopr.core.scene import Scene
from loopr.errors import Problem, StaleLease, UserError
from loopr.ui.gate import pass_gate
from loopr.ui.names import find_id
from loopr.ui.steering import deciding
from loopr.ui.views import Row, document, loop_row
from loopr.wiring import Workspace
from loopr.world.runs import Refusal, Runs

Quote = Callable[[Forest, str, int], Iterator[Event]]
NOTHING: Mapping[str, Trouble] = {}
MOST_DIGITS = 100


def renew(workspace: Workspace, leases: Sequence[str]) -> Row:
    """Keep leases alive for their whole time again."""
    _pass(workspace, "lease renew", leases)
    return _quoted(workspace, leases, "renewed", wishes.renew_lease)


def complete(workspace: Workspace, leases: Sequence[str]) -> Row:
    """Hand work over to the engine; what the worker's result file says can make that stricter, never milder."""
    from loopr.driving.pulling import read_word

    _pass(workspace, "lease complete", leases)
    told: dict[str, Trouble] = {}

    def quote(forest: Forest, lease: str, now: int) -> Iterator[Event]:
        if wishes.handed_over(forest, lease):
            return
        folder = Place(workspace, forest, lease).folder
        used, trouble = read_word(folder) if folder is not None else (None, None)
        if trouble is not None:
            told[lease] = trouble
        yield from wishes.complete_lease(forest, lease, now, used, trouble)

    return _quoted(workspace, leases, "handed over", quote, ends=True, told=told)


def release(
    workspace: Workspace, leases: Sequence[str], reason: str, *, failed: bool = False, refused: bool = False
) -> Row:
    """Give leases back: free, as a failure, or as a refused iteration with the reason as the feedback of the next."""
    from loopr.driving.pulling import give_up

    if failed and refused:
        hint = "--failed: the work could not be done here; --refused: it was done, and is not good enough"
        raise UserError("--failed and --refused do not go together", hint=hint)
    reason = reason if reason.strip() else ""
    if refused and not reason:
        hint = "--feedback says what the next try does otherwise"
        raise UserError("a lease that is given back as refused needs feedback", hint=hint)
    _pass(workspace, "lease release", leases)
    told: dict[str, Trouble] = {}

    def quote(forest: Forest, lease: str, now: int) -> Iterator[Event]:
        words = reason or f"given back by {workspace.actor}"
        folder = Place(workspace, forest, lease).folder
        if failed:
            told[lease] = Trouble(Failure.INFRA, reason or f"given up as failed by {workspace.actor}")
        elif refused:
            told[lease] = give_up(folder or workspace.place.root, words)
        yield from wishes.release_lease(forest, lease, now, told.get(lease), words)

    did = "given up as failed" if failed else "given back as refused" if refused else "given back"
    return _quoted(workspace, leases, did, quote, ends=True, told=told)


def reclaim(workspace: Workspace, leases: Sequence[str]) -> Row:
    """Take leases back whose holders have been silent for too long, all of these if none is named.

    Each counts as one failure.
    """
    seen = workspace.look()
    named = leases or [each for each in _timed(seen.scene) if _has_expired(seen.scene, each, seen.now)]
    _pass(workspace, "lease reclaim", named)
    if not named:
        return document(seen.now, {"leases": []})
    late: set[str] = set()

    def quote(forest: Forest, lease: str, now: int) -> Iterator[Event]:
        if not leases and not _has_expired(forest, lease, now):  # its holder has said something meanwhile
            late.add(lease)
            return
        yield from wishes.reclaim_lease(forest, lease, now, workspace.actor)

    body = _quoted(workspace, named, "reclaimed", quote)
    return body | {"leases": [each for each in body["leases"] if each["lease"] not in late]}


def _has_expired(scene: Scene, lease: str, now: int) -> bool:
    """Say whether a lease is held whose holder has been silent for too long."""
    loop_id, _, attempt = lease.rpartition("#")
    loop = scene.loops.get(loop_id)
    held = loop.lease if loop is not None and str(loop.attempt) == attempt else None
    return held is not None and held.expires_at is not None and now >= held.expires_at


def _timed(scene: Scene) -> list[str]:
    """List the leases that pull workers have."""
    timed = [scene.loops[each] for each in sorted(scene.tree.timed)]
    return [f"{loop.id}#{loop.attempt}" for loop in timed if loop.lease is not None]


def _pass(workspace: Workspace, wish: str, leases: Sequence[str]) -> None:
    """Pass the gate with a word about leases."""
    pass_gate(workspace, wish, leases, lambda scene: [_named(scene, each) for each in leases])


def _quoted(
    workspace: Workspace,
    names: Sequence[str],
    did: str,
    quote: Quote,
    *,
    ends: bool = False,
    told: Mapping[str, Trouble] = NOTHING,
) -> Row:
    """Decide on all leases that are named, or on none; `ends` if their work is done, `told` what is wrong with it."""
    if not names:
        raise UserError(
            "no lease is named", hint="`loopr lease list` lists them; in a worker's shell $LOOPR_LEASE does"
        )
    leases: list[str] = []
    stale: list[str] = []

    def course(forest: Forest, now: int) -> Iterator[Event]:
        leases[:], stale[:] = dict.fromkeys(_named(forest, each) for each in names), []
        for lease in leases:
            try:
                yield from quote(forest, lease, now)
            except StaleLease:
                stale.append(lease)
        if stale:
            raise StaleLease("")

    with deciding(workspace) as engine:
        try:
            engine.mind.decide(course)
        except StaleLease as error:
            raise StaleLease("", problems=[_stale(workspace, engine.forest, each) for each in stale]) from error
        forest, now = engine.forest, engine.mind.now()
        for lease in leases if ends else ():  # before the engine is told: the next attempt asks for it
            Place(workspace, forest, lease).end(told.get(lease))
    return document(now, {"leases": [_answer(forest, lease, did, now) for lease in leases]})


def _answer(scene: Scene, lease: str, did: str, now: int) -> Row:
    """Return what was done to a lease, and where that leaves its loop."""
    row = loop_row(scene, scene.loops[lease.rpartition("#")[0]], now)
    present = row["lease"] if row["lease"] is not None and row["lease"]["id"] == lease else None
    return {"lease": lease, "did": did, "expires_at": present["expires_at"] if present else None, "loop": row}


def _named(scene: Scene, text: str) -> str:
    """Return the lease that is meant; its loop may be named shortly, its attempt never."""
    loop, sign, attempt = text.rpartition("#")
    if not sign or not attempt.isdecimal() or len(attempt) > MOST_DIGITS:
        raise UserError(
            f"{text[:MOST_DIGITS]!r} is no lease", hint="a lease is called LOOP#ATTEMPT: `loopr lease list`"
        )
    return f"{find_id(scene.loops, loop)}#{int(attempt)}"


def _stale(workspace: Workspace, scene: Scene, lease: str) -> Problem:
    """Say that a lease is over, and where the work is kept that was done under it."""
    place = Place(workspace, scene, lease)
    words, folder = place.kept()
    kept = f"; {words} {workspace.name_of(folder)}" if folder is not None else ""
    return Problem(f"stale lease: {lease} is not held any more{kept}", hint="take another one: `loopr lease take`")


# --- folders ----------------------------------------------------------------------------------------------------------


class Place:
    """What lies on disk for a lease."""

    def __init__(self, workspace: Workspace, scene: Scene, lease: str) -> None:
        """Find the run folder of the lease's attempt, which may be of an earlier generation."""
        loop_id, _, attempt = lease.rpartition("#")
        self._workspace, self._scene = workspace, scene
        self._loop, self._attempt = scene.loops[loop_id], int(attempt)
        self._runs = Runs(workspace.place.state, workspace.place.root)
        names = (generation_name(loop_id, each) for each in range(self._loop.generation, 0, -1))
        self._name = next((each for each in names if self._runs.folder(each, self._attempt).is_dir()), self._loop.name)

    @property
    def folder(self) -> Path | None:
        """Where the work is, None if it was never given a place."""
        return self._runs.place_of(self._name, self._attempt)

    @property
    def holder(self) -> str:
        """Who has the lease, or had it."""
        lease = self._loop.lease
        if lease is not None and lease.attempt == self._attempt:
            return lease.holder
        return self._runs.circumstances(self._name, self._attempt).get("holder", "")

    def end(self, trouble: Trouble | None) -> None:
        """Write down that the worker is done, and why if it gave up."""
        from loopr.driving.sites import note_ended

        if self.folder is None:
            return
        note_ended(self._runs, self._name, self._attempt)
        if trouble is not None and trouble.failure is Failure.REFUSED:
            noted = self._runs.circumstances(self._name, self._attempt).get("iteration", "")
            iteration = int(noted) if noted.isdecimal() else self._loop.iteration
            self._runs.note_refusal(self._name, self._attempt, Refusal(iteration, trouble.reason, trouble.reason))

    def kept(self) -> tuple[str, Path | None]:
        """Say where the work is kept, if any was begun."""
        from loopr.driving.sites import whereabouts
        from loopr.grounds import ground_of_plan

        ground = ground_of_plan(self._workspace, self._scene, self._loop.plan)
        return whereabouts(self._runs, ground, self._name, self._attempt)
