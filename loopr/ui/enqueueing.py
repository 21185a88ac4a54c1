"""Brings plans into the tree without driving them: all of them or none, with or without an engine at work.

Must never know what a plan leads to, nor a terminal or a protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopr.core.filing import plan_declares
from loopr.core.forest import Forest
from loopr.core.scene import Scene
from loopr.core.ways import way_of
from loopr.engine import Engine
from loopr.errors import EngineHeld
from loopr.ui import views
from loopr.ui.bases import Wants, foretold, start_from_base
from loopr.ui.edits import headline
from loopr.ui.enqueued import Enqueued
from loopr.ui.hazards import told_once
from loopr.ui.inputs import absent_inputs, uncommitted_inputs
from loopr.ui.offers import ask_on_offers
from loopr.ui.requests import Confirm, Plan, enqueue, ensure_room, nobody
from loopr.ui.uncommitted import uncommitted
from loopr.ui.unjudged import unjudged
from loopr.ui.unready import unready
from loopr.wiring import Workspace

WANTS = Wants()
NOT_YET = "a start asks at a terminal whether that is yours, and else"


class Admitted(NamedTuple):
    """What became of plans, the forest that they are in, and who serves the workspace (nobody: it was our own turn)."""

    forest: Forest
    done: tuple[Enqueued, ...]
    dry_run: bool = False
    beside: str = ""

    def document(self, workspace: Workspace, now: int | None = None) -> views.Row:
        """Return the document of the plans: their loops at an instant, and what became of each plan."""
        at = self.forest.at if now is None else now
        return _document(workspace, self.forest, at, self.done) | {"dry_run": self.dry_run}


def unchanged(workspace: Workspace, scene: Scene, plans: Sequence[str], now: int) -> views.Row:
    """Return the document of plans of which nothing is left to do."""
    done = [Enqueued(plan, True, *((),) * 6) for plan in plans]
    return _document(workspace, scene, now, done) | {"dry_run": False}


def _document(workspace: Workspace, scene: Scene, now: int, done: Sequence[Enqueued]) -> views.Row:
    """Return the loops of plans, and what became of each plan."""
    loops = [loop for each in done for loop in scene.tree.walk(each.plan)]
    body = views.tree(scene, now, str(workspace.place.root), loops)
    return body | {"plans": [each._asdict() for each in done], "ways": {each.id: way_of(scene, each) for each in loops}}


def rehearse(workspace: Workspace, plans: Sequence[Plan], confirm: Confirm, *, to_run: bool) -> Admitted:
    """Decide on paper, and write nothing: as if a person said of each file that it is theirs."""
    with workspace.rehearsal() as engine:
        ensure_room(engine, plans)
        done = [_on_paper(engine, workspace, each, confirm, to_run) for each in plans]
        both = zip(plans, done, strict=True)
        told = tuple(_foretold(engine, workspace, *each) for each in both)
        return Admitted(engine.forest, _with_hazards(workspace, plans, told), dry_run=True)


def _on_paper(engine: Engine, workspace: Workspace, plan: Plan, confirm: Confirm, to_run: bool) -> Enqueued:
    """Enqueue a plan on paper, and say whether a word would be asked for on its file."""
    asked, loop = list[str](), engine.forest.loops.get(plan.id)
    rejected = loop is not None and plan.digest in loop.offers.rejected
    offers = not rejected and plan_declares(engine.forest, plan.artifact)
    then = f"only offers it: `loopr approve {plan.id} --file`" if offers else "refuses it"

    def word(text: str) -> bool:
        asked.append(text.partition("\n")[0].removesuffix(":"))
        return _anybody(text)

    done = enqueue(engine, workspace, plan, confirm, to_run=to_run, word=word)
    told = (f"{why}: {NOT_YET} {then}" for why in asked)
    return done._replace(remarks=(*told, *done.remarks))


def _foretold(engine: Engine, workspace: Workspace, plan: Plan, done: Enqueued) -> Enqueued:
    """Add what is told of a plan on paper: what its commands would not find, what nothing judges, its base."""
    lacks = unready(engine.forest, workspace, plan) if done.edited or not done.known else None
    lying = _lying(engine, workspace, done.plan)
    return done._replace(
        remarks=(*([f"it would ask: {lacks}"] if lacks else []), *done.remarks),
        uncommitted=lying,
        unjudged=unjudged(engine, workspace, done.plan),
        base=foretold(workspace, engine.forest, done.plan) if done.known else "",
    )


def _lying(engine: Engine, workspace: Workspace, plan: str) -> tuple[str, ...]:
    """Say which files that a plan names are not committed as they are here, or are nowhere."""
    inputs = *uncommitted_inputs(workspace, engine.forest, plan), *absent_inputs(workspace, engine.forest, plan)
    return (*uncommitted(engine, workspace, plan), *inputs)


def _anybody(text: str) -> bool:
    """Say yes on paper, where nothing comes of it."""
    return True


def admit(
    workspace: Workspace,
    plans: Sequence[Plan],
    confirm: Confirm,
    *,
    to_run: bool,
    word: Confirm = nobody,
    wants: Wants = WANTS,
) -> Admitted:
    """Enqueue plans in a turn of our own, or beside the engine that serves the workspace."""
    beside = ""
    try:
        with workspace.turn() as engine:
            done = bring_in(engine, workspace, plans, confirm, to_run=to_run, word=word, wants=wants)
            return Admitted(engine.forest, done)  # the forest that it has led to: while others write it is read anew
    except EngineHeld as held:
        beside = held.problems[0].message
    with workspace.visit() as engine:
        done = bring_in(engine, workspace, plans, confirm, to_run=True, word=word, wants=wants)
        return Admitted(engine.forest, done, beside=beside)


def bring_in(
    engine: Engine,
    workspace: Workspace,
    plans: Sequence[Plan],
    confirm: Confirm,
    *,
    to_run: bool,
    word: Confirm = nobody,
    wants: Wants = WANTS,
) -> tuple[Enqueued, ...]:
    """Enqueue plans one after the other where there is room for them, and let each go along with its base.

    A `word` is a person's on files that may not be theirs; `wants` says what is wished of the base.
    """
    ensure_room(engine, plans)
    asked = wants._replace(to_run=to_run)
    done = tuple(_bring_in(engine, workspace, plan, confirm, word=word, wants=asked) for plan in plans)
    return _with_hazards(workspace, plans, done)


def _with_hazards(workspace: Workspace, plans: Sequence[Plan], done: Sequence[Enqueued]) -> tuple[Enqueued, ...]:
    """Add to plans that are new or edited what loopr does not share of their repositories."""
    pairs = zip(plans, done, strict=True)
    told = told_once(workspace, [plan for plan, each in pairs if each.edited or not each.known])
    return tuple(each._replace(hazards=told.get(each.plan, ())) for each in done)


def _bring_in(
    engine: Engine, workspace: Workspace, plan: Plan, confirm: Confirm, *, word: Confirm, wants: Wants
) -> Enqueued:
    """Enqueue a plan, and let it go along with its base."""
    done = enqueue(engine, workspace, plan, confirm, to_run=wants.to_run, word=word)
    ask_on_offers(engine, [plan.id], word, plan.digest)
    if done.waits:
        (then,) = rehearse(workspace, [plan], _anybody, to_run=False).done
        done = done._replace(then=headline(then))
    before = set(engine.forest.tree.redoing)
    base = start_from_base(engine, workspace, plan.id, wants)
    asked = tuple(each for each in sorted(engine.forest.tree.redoing) if each not in before)
    lying = _lying(engine, workspace, plan.id)
    done = done._replace(changed=(*done.changed, *asked), base=base, uncommitted=lying)
    return done._replace(unjudged=unjudged(engine, workspace, plan.id))
