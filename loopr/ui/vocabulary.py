"""The words in which work under way is steered: every wish, what it takes, and how it is put to the core.

One table for every surface; whatever cannot be understood is refused here, before anything is looked at. Must never
know what a wish leads to (`core/wishes.py`), nor a workspace, a terminal or a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import wishes
from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.gates import closed_gates
from loopr.core.model import Loop, Status
from loopr.core.observations import FileSeen
from loopr.core.redo_events import RedoAsked
from loopr.core.redoing import redo_stale
from loopr.core.scene import Scene
from loopr.core.slugs import id_problem
from loopr.errors import NotFound, UserError
from loopr.ui.convoys import convoy_name, find_convoy
from loopr.ui.groups import CONVOY
from loopr.ui.options import DRY_RUN, Option, check_options

LANE, PROJECT = "lane:", "project:"
_IN_WORDS = ("reason", "feedback")
"""Options that take words for a person."""


class Wish(NamedTuple):
    """What somebody asks for: its name, what it is about as they wrote it, and how."""

    name: str
    ids: tuple[str, ...] = ()
    options: Mapping[str, str | bool | int] = MappingProxyType({})

    def asks(self, option: str) -> bool:
        """Say whether an option is given, and not empty."""
        return bool(self.options.get(option))

    def says(self, option: str) -> str:
        """Return what an option says, nothing if it is not given."""
        return str(self.options.get(option, ""))


class Asker(NamedTuple):
    """Who has a wish, which, and when."""

    wish: Wish
    by: str
    now: int
    read: Callable[[Loop, str], FileSeen] | None = None

    @property
    def word(self) -> wishes.Word:
        """What a person says of a file that is offered."""
        word = wishes.Word(self.wish.asks("file"), self.by)
        return word._replace(read=self.read) if self.read is not None else word


One = Callable[[Scene, str, Asker], Iterator[Event]]
Together = Callable[[Scene, tuple[str, ...], Asker], Iterator[Event]]
Already = Callable[[Scene, str, int], str]


class Rule(NamedTuple):
    """What a wish means and takes; how it is decided, for one thing after another or for all together.

    `prefixes` begin the names of what is no loop; of the `options`, `required` must say something. `asks`: whoever
    would lose work, or decide on many at once, is asked before. `already` says why nothing may have changed.
    """

    meaning: str
    one: One | None = None
    together: Together | None = None
    options: Mapping[str, Option] = MappingProxyType({})
    prefixes: tuple[str, ...] = ()
    required: str = ""
    asks: bool = False
    already: Already = lambda scene, name, now: "nothing has changed"


def check(wish: Wish) -> None:
    """Refuse a wish that nobody can understand, whatever there is in the workspace."""
    rule = RULES.get(wish.name)
    if rule is None:
        raise UserError(f"there is no wish {wish.name!r}", hint=f"known: {', '.join(RULES)}")
    check_options(wish.name, rule.options, wish.options)
    _refuse_sentences(wish, rule)
    if rule.required and not wish.says(rule.required).strip():
        hint = f'--{rule.required} "..." must say something'
        raise UserError(f"{wish.name} without {rule.required}", hint=hint)
    if wish.asks("all") and wish.ids:
        raise UserError(f"{wish.name} names {wish.ids[0]}, and everything", hint="leave one of the two out")
    if wish.asks("stale") and wish.asks("fresh"):
        raise UserError("--fresh makes loops anew, --stale does those again that are stale", hint="leave one out")
    if not (wish.ids or wish.asks("all") or wish.asks("new") or wish.asks("stale")):
        everything = ", or take --all" if "all" in rule.options else ""
        raise UserError(f"{wish.name} names no loop", hint=f"`loopr ls` lists them{everything}")


def _refuse_sentences(wish: Wish, rule: Rule) -> None:
    """Refuse words for a person where a loop is to be named, as far as an option takes them."""
    option = next((each for each in _IN_WORDS if each in rule.options), "")
    prefixes = CONVOY, *rule.prefixes, PROJECT
    for text in wish.ids if option else ():  # no id has a space
        if " " in text.strip() and not text.startswith(prefixes):
            raise NotFound(f"there is no loop {text!r}", hint=f'words go into `--{option} "..."`')


# --- how each is decided --------------------------------------------------------------------------------------------


def _pause(scene: Scene, name: str, asker: Asker) -> Iterator[Event]:
    """Hold something, and stop what lives there if that is asked for."""
    return wishes.pause(scene, name, asker.by, asker.wish.says("reason"), at_once=asker.wish.asks("now"))


def _retry(scene: Scene, name: str, asker: Asker) -> Iterator[Event]:
    """Begin again, or make anew; what is stale is asked for together."""
    if asker.wish.asks("stale"):
        return iter(())
    if asker.wish.asks("fresh"):
        return wishes.renew(scene, name, asker.by)
    return wishes.retry(scene, name, asker.by, asker.now)


def _retry_together(scene: Scene, names: tuple[str, ...], asker: Asker) -> Iterator[Event]:
    """Ask for all that is stale to be done again."""
    return redo_stale(scene, names, asker.by) if asker.wish.asks("stale") else iter(())


def _reset(scene: Scene, name: str, asker: Asker) -> Iterator[Event]:
    """Bring back a loop or a lane."""
    if name.startswith(LANE):
        return wishes.reset_lane(scene, name.removeprefix(LANE), asker.by)
    return wishes.unpark(scene, name, asker.by)


def _form(scene: Scene, members: tuple[str, ...], asker: Asker) -> Iterator[Event]:
    """Make a convoy that there is not yet, or add to one that there is."""
    name = convoy_name(asker.wish.says("name"))
    if not asker.wish.asks("new"):
        return wishes.form_convoy(scene, find_convoy(scene, name), members)
    known, problem = scene.shared.convoys.get(name), id_problem(name)
    if problem is not None:
        raise UserError(problem, hint="a convoy is called as loops are")
    if known is not None and set(known.members) != set(members):
        hint = f"`loopr convoy add @{name} ID...` adds to it, `loopr convoy show @{name}` tells what it has"
        raise UserError(f"there is a convoy @{name} already, with other members", hint=hint)
    return wishes.form_convoy(scene, name, members)


# --- why nothing has changed ----------------------------------------------------------------------------------------


def _is_held(scene: Scene, name: str, now: int) -> str:
    """Say whose hold is kept, or that nothing is left to hold."""
    if scene.tree.at_rest(name):
        return "it is done: nothing of it is left to start"
    hold = scene.loops[name].hold if name in scene.loops else scene.shared.holds.get(name)
    if hold is None:
        return "nothing has changed"
    return f"paused already by {hold.by}" + (f": {hold.reason}" if hold.reason else "")


def _is_free(scene: Scene, name: str, now: int) -> str:
    """Say that there is no hold of its own, and which other one binds it."""
    loop = scene.loops.get(name)
    gates = closed_gates(scene, loop, now) if loop is not None else ()
    other = next((gate.reason for gate in gates if gate.gate == "paused"), "")
    return f"not paused by itself: {other}" if other else "not paused"


def _is_over(scene: Scene, name: str, now: int) -> str:
    """Say why there is nothing left to cancel."""
    if scene.tree.at_rest(name):
        return "it is done: nothing of it is left to cancel"
    status = scene.loops[name].status
    if status is Status.LANDING:
        return "cancelled already, as soon as it has landed"
    open_below = status is Status.COMPLETE and not scene.tree.called_off(name)
    return "it is done itself, and held already" if open_below else "cancelled already"


def _is_complete(scene: Scene, name: str, now: int) -> str:
    """Say that what changed is below."""
    return "it is done itself; what is stuck below it begins again"


_REASON = Option("why, for whoever asks", str)
_WORKSPACE = "the whole workspace"
_FILE = Option("the file that came while loops were at work, not the work of the loop")
_SHOWN_AT = Option("only what is as it was at that event, which `diff --waiting` names; asks no more", int, least=1)

RULES: Mapping[str, Rule] = {
    "pause": Rule(
        "Start nothing more of a loop and all below it, of a project, or of the workspace; what runs ends and lands.",
        one=_pause,
        options={
            "all": Option(_WORKSPACE),
            "now": Option("stop live tries too; it costs them nothing"),
            "reason": _REASON,
        },
        prefixes=(PROJECT,),
        already=_is_held,
    ),
    "resume": Rule(
        "Let go on what was paused or cleared.",
        one=lambda scene, name, asker: wishes.resume(scene, name, asker.by),
        options={"all": Option(f"{_WORKSPACE}, with what was cleared, but not what is paused by itself")},
        prefixes=(PROJECT,),
        already=_is_free,
    ),
    "cancel": Rule(
        "End loops with all that is unfinished below them; what is complete stays so, and what lives is stopped.",
        one=lambda scene, name, asker: wishes.cancel(scene, name, asker.by, asker.wish.says("reason")),
        options={"reason": _REASON},
        already=_is_over,
        asks=True,
    ),
    "retry": Rule(
        "Begin again what is parked, failed, cancelled or backing off, of a complete loop all such below it: "
        "counters at zero, in the same worktree. What a cancel holds is let go on.",
        one=_retry,
        together=_retry_together,
        already=_is_complete,
        options={
            "fresh": Option("make them anew, also complete ones, with nothing of what was done"),
            "stale": Option("do those again that are older than what they need: all such below them, or in all"),
        },
        asks=True,
    ),
    "reset": Rule(
        "Let parked loops try again where they stood, of a complete one all below it; end a lane's rest, or take a "
        "parked lane back into use.",
        one=_reset,
        already=_is_complete,
        prefixes=(LANE,),
        asks=True,
    ),
    "clear": Rule(
        "Take pending loops out of the queue until they are resumed.",
        together=lambda scene, names, asker: wishes.clear(scene, names, asker.by),
        options={"all": Option("all that is pending")},
        already=_is_held,
    ),
    "dispatch": Rule(
        "Put pending loops ahead of the queue, in this order, and past no gate.",
        together=lambda scene, names, asker: wishes.dispatch(scene, names, asker.by),
        options={"dry_run": DRY_RUN._replace(meaning="show what `next` would then be; write nothing")},
        already=lambda scene, name, now: "goes next already",
    ),
    "approve": Rule(
        "Let loops land that wait for a person's yes, or take the files that are offered for them; of a complete loop "
        "or a plan all such below it.",
        one=lambda scene, name, asker: wishes.approve(scene, name, asker.word),
        options={"file": _FILE, "at": _SHOWN_AT},
        asks=True,
    ),
    "reject": Rule(
        "End loops that wait for a person, with a no, or forget the files that are offered for them; of a complete "
        "loop or a plan all such below it.",
        one=lambda scene, name, asker: wishes.reject(scene, name, asker.wish.says("reason"), asker.word),
        options={"reason": _REASON, "file": _FILE, "at": _SHOWN_AT},
        asks=True,
    ),
    "iterate": Rule(
        "Send loops that wait for a person round once more, outside their count of refusals; of a complete loop or "
        "a plan all such below it.",
        one=lambda scene, name, asker: wishes.iterate(scene, name, asker.wish.says("feedback")),
        options={"feedback": Option("what the next try is told", str), "at": _SHOWN_AT},
        required="feedback",
        asks=True,
    ),
    "convoy": Rule(
        "Form a convoy of loops and plans that exist, or let more of them join one that has not landed.",
        together=_form,
        options={
            "name": Option("what it is called", str),
            "new": Option("form it, though nothing joins it yet"),
        },
        required="name",
        already=lambda scene, name, now: "has all of these already",
    ),
}
"""Every wish by its name."""

DID: Mapping[type[Event], str] = {
    e.Held: "paused",
    w.ScopeHeld: "paused",
    e.Stopped: "stopped",
    e.Lifted: "resumed",
    w.ScopeLifted: "resumed",
    e.Cancelled: "cancelled",
    e.Deferred: "cancelled once it has landed",
    e.Retried: "retried",
    e.Renewed: "made anew",
    RedoAsked: "to be done again",
    e.Unparked: "reset",
    w.LaneReset: "reset",
    e.Approved: "approved",
    e.Rejected: "rejected",
    e.ArtifactAccepted: "file taken",
    e.CandidateReplaced: "file taken",
    f.OfferRejected: "file rejected",
    e.IterationAsked: "sent back",
    w.LoopsDispatched: "dispatched",
    w.ConvoyFormed: "formed",
}
"""What is done by each event that a wish may lead to."""

HELD: Mapping[str, str] = {"clear": "cleared", "cancel": "held"}
"""What a hold of a loop is called where it is not a pause."""
