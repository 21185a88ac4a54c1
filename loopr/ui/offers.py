"""Files that are offered to a person: what they say, and what a word on one leaves to be done on the disk.

A text is taken from the archive by its digest, so that the word is on exactly what was offered. Must never know how a
word is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import unified_diff
from functools import partial
from typing import TYPE_CHECKING

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import wishes
from loopr.core.events import Event
from loopr.core.filing import plan_declares
from loopr.core.model import Loop
from loopr.core.observations import FileSeen
from loopr.core.offering import offered_words
from loopr.core.shared import Bound
from loopr.core.trust import offer_plan
from loopr.engine import Engine
from loopr.errors import LooprError, PlanError, UserError
from loopr.hands import FileHands, changed_at
from loopr.ui.names import counted

if TYPE_CHECKING:
    from loopr.ui.requests import Plan

Confirm = Callable[[str], bool]
MOST_LINES = 60


def kept_file(engine: Engine, loop: Loop, digest: str) -> FileSeen:
    """Return what the text of a digest says as a loop's artifact."""
    found = _hands(engine).kept_file(loop, digest)
    if found is None:
        hint = "save the file again, yourself, while nothing is at work"
        raise UserError(f"the text that is offered for {loop.id} is kept nowhere", hint=hint)
    return found


def of_plans(engine: Engine) -> dict[str, str]:
    """Map each plan to the digest of its artifact: a word on a plan's own file may have it written."""
    return {each: engine.forest.loops[each].artifact for each in engine.forest.tree.children(None)}


def bring_in_line(engine: Engine, events: Iterable[Event], before: Mapping[str, str]) -> None:
    """Let the files of loops be those that count after a person's words, unless they are others by now.

    `before` are the digests of plans from before those words.
    """
    hands = _hands(engine)
    for event in events:
        if isinstance(event, f.OfferRejected):
            loop = engine.forest.loops[event.loop]
            hands.replace_offered(loop, engine.mind.find_entry(loop.id), event.digest)
        elif isinstance(event, e.ArtifactAccepted) and event.loop in before:
            hands.lay(engine.forest.loops[event.loop], event.digest, before[event.loop])


def is_put_off(engine: Engine, bound: Bound | None, plan: Plan, word: Confirm) -> bool:
    """Say whether the changed file of a plan waits for a person's word, and offer it unless that is given now."""
    loop = engine.forest.loops.get(plan.id)
    if bound is None or loop is None or bound.digest == plan.digest:
        return False
    kept = engine.forest.shared.kept.get(plan.source)
    came = kept.during if kept is not None and kept.digest == plan.digest else engine.came(changed_at(plan.path))
    if came is None and plan.digest not in loop.offers.rejected:
        return False
    text = f"{plan.source} changed while {', '.join(came or ()) or 'loops'} ran"
    if word(f"{text}:\n{_difference(engine, loop, plan.text)}"):
        return False
    if plan.digest in loop.offers.rejected:
        raise PlanError("is the text that was rejected", where=plan.source, hint="change it, or start it at a terminal")
    if not plan_declares(engine.forest, plan.artifact):
        raise PlanError(
            f"{text.removeprefix(plan.source).strip()}", where=plan.source, hint="read it, and start it at a terminal"
        )
    _hands(engine).keep(plan.digest, plan.text.encode())
    engine.mind.decide(lambda forest, now: offer_plan(forest, plan.id, plan.source, plan.digest, came or ()))
    return True


def ask_on_offers(engine: Engine, plans: Sequence[str], word: Confirm, asked: str = "") -> None:
    """Ask a person for a word on each file that is offered in some plans, or in all; `asked` is one of a digest."""
    for loop in [engine.forest.loops[each] for each in sorted(engine.forest.tree.offered)]:
        if (plans and loop.plan not in plans) or loop.offers.offered == asked:
            continue
        try:
            file = kept_file(engine, loop, loop.offers.offered)
        except LooprError:  # `approve` says what is wrong with it
            continue
        raw = _hands(engine).text_of(loop, None, file.digest) or b""
        text = f"{offered_words(engine.forest, loop)}\n{_difference(engine, loop, raw.decode(errors='replace'))}"
        if word(text):
            _take(engine, loop.id)


def _take(engine: Engine, loop_id: str) -> None:
    """Take the file that is offered for a loop, by a person's word."""
    said = wishes.Word(file=True, by=engine.mind.actor, read=partial(kept_file, engine))
    before = of_plans(engine)
    events = engine.mind.decide(lambda forest, now: wishes.approve(forest, loop_id, said))
    bring_in_line(engine, events, before)


def _difference(engine: Engine, loop: Loop, text: str) -> str:
    """Show what a text changes of the one that counts."""
    hands, counts = _hands(engine), loop.offers.before or loop.artifact
    old = hands.text_of(loop, engine.mind.find_entry(loop.id), counts) if counts else b""
    lines = unified_diff((old or b"").decode(errors="replace").splitlines(), text.splitlines(), lineterm="", n=1)
    found = list(lines)[2:]
    more = [f"… and {counted(len(found) - MOST_LINES, 'more line')}"] if len(found) > MOST_LINES else []
    return "\n".join([*found[:MOST_LINES], *more])


def _hands(engine: Engine) -> FileHands:
    """Return the hands that know files; a wish on paper reads and never writes."""
    assert isinstance(engine.hands, FileHands)
    return engine.hands
