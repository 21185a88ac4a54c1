"""Fulfils what is wished for of work that is under way, for every surface alike.

A wish is decided as a whole or not at all, with or without an engine at work, and the answer is plain rows. Must never
know what a wish leads to (`core/wishes.py`), nor a terminal or a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple

from loopr.core import events as e
from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.observations import FileSeen
from loopr.core.redoing import may_redo
from loopr.core.scene import Scene
from loopr.core.turn import perform
from loopr.engine import Engine
from loopr.errors import EngineHeld, NotFound, Problem, UserError, WorldError
from loopr.ui.bases import follow_base
from loopr.ui.convoys import convoy_name
from loopr.ui.enqueued import Enqueued, loops_of, summary
from loopr.ui.gate import pass_gate
from loopr.ui.groups import (
    CONVOY,
    DECIDING,
    VERBS,
    Group,
    goes_on,
    kept_as_shown,
    members,
    reached,
    rows,
    shown,
)
from loopr.ui.meant import meant_by
from loopr.ui.names import find_id
from loopr.ui.offers import bring_in_line, kept_file, of_plans
from loopr.ui.older import asks_to_redo, depending_words, is_left, some
from loopr.ui.requests import Confirm
from loopr.ui.shown import ensure_shown, shown_at, shown_now
from loopr.ui.taken_up import take_up
from loopr.ui.unattended import tell_landing, unattended
from loopr.ui.views import Row, document, loop_row
from loopr.ui.vocabulary import DID, HELD, LANE, PROJECT, RULES, Asker, Wish, check
from loopr.wiring import Workspace

MOST_NAMED = 5
STOPPED = DID[e.Stopped]
_AGAIN = frozenset({"reset", "retry"})
_HOLDS = frozenset({"pause", "resume", "cancel", "clear", "retry"})
"""Wishes that need no settings but those from before."""
_WORDS_ON_FILES = frozenset({"approve", "reject"})
_FLAGS = ("all", "now", "fresh", "stale", "file")
_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING})


class Answer(NamedTuple):
    """What has become of a wish: what was done, what was so already, and what else there is to say of this wish."""

    now: int
    done: tuple[Row, ...]
    unchanged: tuple[Row, ...]
    more: Row
    groups: tuple[Group, ...] = ()
    edits: tuple[Enqueued, ...] = ()  # the effect of words on files, by plan

    def document(self) -> Row:
        """Return the document of the answer."""
        return document(self.now, {"done": list(self.done), "unchanged": list(self.unchanged)} | self.more)


def fulfil(workspace: Workspace, wish: Wish, confirm: Confirm = lambda text: False) -> Answer:
    """Do what is wished, all of it or nothing, and say what came of it; whoever would lose work is asked before."""
    check(wish)
    if not wish.asks("dry_run"):
        pass_gate(workspace, wish.name, _said(wish), lambda scene: touched(scene, wish))
    if wish.name in _HOLDS:
        workspace.doubt = workspace.in_force.go_by_accepted()
    course = Course(wish, workspace.actor)
    if wish.name in DECIDING and workspace.remembers():
        with deciding(workspace) as engine:
            _look_first(engine, wish)  # so that the files are shown as they lie there
    _ask_on_groups(workspace, course, confirm)
    if wish.asks("dry_run"):
        return _alone(_rehearse(workspace, course), "")
    if not workspace.remembers():
        _rehearse(workspace, course)  # so that a refusal leaves nothing behind
    if wish.asks("fresh"):
        _ask(workspace, course, confirm)
    if wish.asks("stale"):
        _ask_on_stale(workspace, course, confirm)
    with deciding(workspace) as engine:
        bases = _follow_bases(engine, workspace, wish)
        course.read = partial(kept_file, engine)
        before = of_plans(engine)
        _look_first(engine, wish)
        loops = _with_offers(engine.forest) if wish.name in _WORDS_ON_FILES else {}
        engine.mind.decide(course)
        bring_in_line(engine, course.events, before)
        edits = tuple(_edit(engine, workspace, course.events, loops[plan], plan) for plan in loops)
    answer = course.answer(engine.forest, engine.mind.now())._replace(edits=edits)
    holder = workspace.engine()
    tell_landing((gate for row in answer.done if row["loop"] for gate in row["loop"]["gates"]), holder)
    alone = unattended(engine.forest, answer.now, holder)
    return _alone(answer._replace(more=answer.more | bases), alone)


def _alone(answer: Answer, words: str) -> Answer:
    """Put into an answer that no engine runs for what it sets free, None where that is not so."""
    return answer._replace(more=answer.more | {"unattended": words or None})


def _follow_bases(engine: Engine, workspace: Workspace, wish: Wish) -> Row:
    """Let the plans of loops that try again begin where their bases are now, and say that, or what they lack."""
    if wish.name not in _AGAIN:
        return {}
    said: list[str] = []
    with suppress(UserError, WorldError):  # what is wrong is told by the wish itself, or by who needs the branch
        loops = engine.forest.loops
        names = meant_by(engine.forest, wish, engine.mind.now()).names
        for plan in dict.fromkeys(loops[each].plan for each in names if each in loops):
            said += filter(None, [follow_base(engine, workspace, plan, anew=wish.asks("fresh"))])
    return {"bases": said}


@contextmanager
def deciding(workspace: Workspace) -> Iterator[Engine]:
    """Decide in a turn of our own, or beside the engine that serves the workspace."""
    with ExitStack() as stack:
        try:
            engine = stack.enter_context(workspace.turn())
        except EngineHeld:  # whoever that is, and even if it has gone by now: what is decided is journalled
            engine = stack.enter_context(workspace.visit())
        yield engine


def _with_offers(forest: Forest) -> dict[str, dict[str, Loop]]:
    """Return the loops of each plan of which a file waits for a word, as they are before that."""
    plans = dict.fromkeys(forest.loops[each].plan for each in sorted(forest.tree.offered))
    return {plan: loops_of(forest, plan) for plan in plans}


def _edit(
    engine: Engine,
    workspace: Workspace,
    events: list[Event],
    before: Mapping[str, Loop],
    plan: str,
) -> Enqueued:
    """Sum up the effect of a word on a file in a plan, once its declared loops are settled."""
    with suppress(WorldError):  # the next run settles them
        if any(isinstance(each, e.ArtifactAccepted) for each in events):
            events = [*events, *take_up(engine, workspace, plan)]
    return summary(engine, plan, before, events)._replace(problems=())


def _look_first(engine: Engine, wish: Wish) -> None:
    """Learn the files at the places of loops that are decided on, where no engine looks."""
    if wish.name not in DECIDING or not engine.settles:
        return
    from loopr.driving.first_look import learn_files  # slow to import

    learn_files(engine, meant_by(engine.forest, wish, engine.mind.now()).names)


def _rehearse(workspace: Workspace, course: Course) -> Answer:
    """Decide on paper, and tell which loops would start next."""
    from loopr.ui.preview import next_round

    forest, _, now = workspace.ponder()
    perform(forest, course(forest, now), now)
    answer = course.answer(forest, now)
    coming = next_round(forest, now)
    return answer._replace(more=answer.more | {"next": {key: coming[key] for key in ("at", "grants", "held")}})


def _ask(workspace: Workspace, course: Course, confirm: Confirm) -> None:
    """Tell what depends on loops that would be made anew, and go on only if that is wanted."""
    from loopr.core.graph import descendants  # slow to import

    forest, _, now = workspace.ponder()
    perform(forest, course(forest, now), now)
    names = tuple(each.loop for each in course.events if isinstance(each, e.Renewed))
    found = {each for name in names for each in descendants(forest.tree, name)}.difference(names)
    text = f"{some(names)} would be made anew; {depending_words(forest, names, found)}"
    if not confirm(text):
        raise UserError(text, hint="--yes goes on")


def _ask_on_groups(workspace: Workspace, course: Course, confirm: Confirm) -> None:
    """Show what a group has come to where the verb decides on it, and go on with exactly that if it is wanted."""
    wish = course.wish
    rule = VERBS.get(wish.name)
    if rule is None or not rule.asks or wish.asks("all") or not workspace.remembers():
        return
    seen = workspace.look()
    names, found = meant_by(seen.scene, wish, seen.now)
    if wish.asks("at"):
        course.shown = shown_at(workspace, seen, names, int(wish.options["at"]))
    if wish.asks("at") or not found:
        return
    course.shown = shown_now(workspace, seen, [each for group in found for each in group.taken])
    all_of_it = reached(seen.scene, course.shown) if rule.tops else ()
    listed = [each.id for each in all_of_it if rule.applies(seen.scene, each, seen.now)] or [*course.shown]
    text = shown(wish.name, listed)
    if len(listed) > 1 and not confirm(text):
        raise UserError(text, hint=goes_on(wish.name))


def _ask_on_stale(workspace: Workspace, course: Course, confirm: Confirm) -> None:
    """Show what is stale, and go on with exactly that if it is wanted."""
    if not workspace.remembers():
        return
    seen = workspace.look()
    course.only = meant_by(seen.scene, course.wish, seen.now).names
    old = [each for each in course.only if may_redo(seen.scene, seen.scene.loops[each], stale=True)]
    if len(old) > 1 and not confirm(text := asks_to_redo(old)):
        raise UserError(text, hint="--yes goes on")


# --- on its way through a mind --------------------------------------------------------------------------------------


class Course:
    """A wish on its way through a mind: what it means in the state that it meets, and what it leads to there."""

    def __init__(self, wish: Wish, by: str) -> None:
        """Set out."""
        self.wish, self._by = wish, by
        self.events: list[Event] = []
        self.names: tuple[str, ...] = ()
        self.groups: list[Group] = []
        self.shown: Mapping[str, tuple[object, ...]] | None = None  # how the loops of groups were when they were shown
        self.read: Callable[[Loop, str], FileSeen] | None = None
        self.only: tuple[str, ...] | None = None  # the stale loops that were shown

    def __call__(self, forest: Forest, now: int) -> Iterator[Event]:
        """Decide; if somebody was faster, all of it anew."""
        forest.advance(now)
        meant = meant_by(forest, self.wish, now)
        self.names, self.groups, self.events = *meant, []
        if self.shown is not None:
            self.groups = kept_as_shown(forest, meant.groups, self.shown, VERBS[self.wish.name].did)
            stays = {name for each in meant.groups for name in each.taken} - self._kept()
            self.names = tuple(each for each in meant.names if each not in stays)
            if self.wish.asks("at"):
                ensure_shown(forest, set(self.names) - self._kept(), self.shown)
        if self.only is not None:
            self.names = tuple(each for each in meant.names if each in self.only)
        for event in _decided(forest, self.names, Asker(self.wish, self._by, now, self.read)):
            self.events.append(event)
            yield event

    def _kept(self) -> set[str]:
        """Name the loops of groups that are taken."""
        return {name for each in self.groups for name in each.taken}

    def answer(self, forest: Forest, now: int) -> Answer:
        """Say what has become of the wish, in the state that it has led to."""
        wish, already = self.wish, RULES[self.wish.name].already if not self.wish.asks("stale") else is_left
        done = tuple({"id": name, "did": did} | _about(forest, name, now) for name, did in self._did())
        touched = {row["id"] for row in done if row["did"] != STOPPED}
        subjects = (f"@{convoy_name(wish.says('name'))}",) if wish.name == "convoy" else self.names
        unchanged = tuple(
            {"id": name, "why": already(forest, name, now)} | _about(forest, name, now)
            for name in subjects
            if name not in touched
        )
        return Answer(now, done, unchanged, self._more(forest), tuple(self.groups))

    def _did(self) -> Iterator[tuple[str, str]]:
        """Say what was done to what, in order."""
        for event in self.events:
            if type(event) not in DID:
                continue  # it follows from the wish, below the loop or beside it
            did = HELD.get(self.wish.name, DID[e.Held]) if isinstance(event, e.Held) else DID[type(event)]
            match event:
                case e.LoopEvent(loop=name) | w.ScopeHeld(scope=name) | w.ScopeLifted(scope=name):
                    yield name, did
                case w.LaneReset(lane=name):
                    yield f"{LANE}{name}", did
                case w.ConvoyFormed(name=name):
                    yield f"@{name}", did if self.wish.asks("new") else "joined"
                case w.LoopsDispatched(loops=names):
                    yield from ((name, did) for name in names)

    def _more(self, forest: Forest) -> Row:
        """Say what else belongs to the answer: what a pause lets run on, what would start next (see `_rehearse`)."""
        more: Row = {"groups": rows(self.groups)}
        if self.wish.name == "pause":
            return more | {"running": [each.id for each in reached(forest, self.names) if each.status in _LIVE]}
        if self.wish.name == "dispatch":
            return more | {"dry_run": self.wish.asks("dry_run"), "next": None}
        return more


def _about(scene: Scene, name: str, now: int) -> Row:
    """Return a loop as views have it, under its key; nothing for what is no loop."""
    loop = scene.loops.get(name)
    return {"loop": loop_row(scene, loop, now) if loop is not None else None}


def _decided(scene: Scene, names: tuple[str, ...], asker: Asker) -> Iterator[Event]:
    """Decide on all that is named, or tell all that is refused."""
    rule = RULES[asker.wish.name]
    if rule.together is not None:
        yield from rule.together(scene, names, asker)
    if rule.one is None:
        return
    problems: list[Problem] = []
    for name in sorted(names, key=lambda each: -each.count("/")):  # to retry what is above brings back what is below
        try:
            yield from rule.one(scene, name, asker)
        except NotFound:
            raise
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError("", problems=problems)


# --- for the gate ---------------------------------------------------------------------------------------------------


def _said(wish: Wish) -> list[str]:
    """Say what a wish is about, as it was typed."""
    verb = "create" if wish.asks("new") else "add"
    named = [verb, f"@{convoy_name(wish.says('name'))}"] if wish.name == "convoy" else []
    return [*named, *wish.ids, *(f"--{each}" for each in _FLAGS if wish.asks(each))]


def touched(scene: Scene, wish: Wish) -> list[str]:
    """Name all that a wish touches: of a convoy whoever is in it already, of a group those too that it leaves."""
    known = scene.shared.convoys.get(convoy_name(wish.says("name"))) if wish.name == "convoy" else None
    texts = wish.ids if wish.name in VERBS else ()
    of_convoys = [each.id for text in texts if text.startswith(CONVOY) for each in members(scene, text)]
    others = [
        text if text.startswith(PROJECT) else find_id(scene.loops, text)
        for text in texts
        if not text.startswith((CONVOY, LANE))
    ]
    meant = meant_by(scene, wish, 0).names
    return [*meant, *of_convoys, *others, *(known.members if known is not None else ())]
