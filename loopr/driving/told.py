"""The feedback for a try on those before it: why they were refused, by judges or by a person.

Knows the folders of runs, and reads a person's words in the journal. Must never know how a prompt
is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from loopr.core.codec import decode
from loopr.core.events import IterationAsked, LeaseGranted, Rejected
from loopr.driving.kit import Kit, Task
from loopr.driving.left_out import left_words
from loopr.errors import LooprError
from loopr.world import prompts
from loopr.world.feedback import MAX_EARLIER, Earlier, render_feedback
from loopr.world.journal import Journal
from loopr.world.runs import Refusal, Try

MOST_EVENTS = 1_000


def feedback_of(kit: Kit, task: Task) -> str:
    """Say why the last try was refused, and in a line each why those before it were; and what of it never lands."""
    last = next(kit.runs.tries_before(task.name, task.attempt), None)
    text = _refusals(kit, task, last)
    left = left_words(kit, task.name, last.attempt) if last is not None else ""
    return "\n\n".join(filter(None, [text.rstrip("\n"), left])) + "\n" if left and left not in text else text


def _refusals(kit: Kit, task: Task, last: Try | None) -> str:
    """Say why the last try was refused, and in a line each why those before it were."""
    laid = kit.runs.clash(task.name, task.attempt)
    if task.loop.iteration == 1:
        return _before_this_count(kit, task, last, laid) if last is not None else ""
    if last is not None and last.iteration == task.loop.iteration and last.refusal is None:
        with suppress(OSError):
            return _still_to_do(kit, task, last)
    past = list(islice(_of_this_count(kit, task), MAX_EARLIER + 2))[::-1]
    if past and past[-1].iteration == task.loop.iteration - 1:
        text, earlier = _with_clash(past[-1], laid), past[:-1]
    else:
        text, earlier = task.loop.reason, past  # a person asked for another try
    return render_feedback(text, [Earlier(each.iteration, each.reason) for each in earlier])


def _with_clash(refusal: Refusal, laid: str) -> str:
    """Add the words on a conflict that lies in the worktree by now; they say more of one than its reason."""
    text = refusal.text or ("" if laid else refusal.reason)
    return "\n\n".join(filter(None, [text, laid]))


def _before_this_count(kit: Kit, task: Task, last: Try, laid: str) -> str:
    """Give the faults of the last try, though the iterations are counted anew since then."""
    if said := _said_since(kit, task, last.attempt):
        return render_feedback(said)
    if last.refusal is not None:
        return render_feedback(_with_clash(last.refusal, laid))
    with suppress(OSError):
        return _still_to_do(kit, task, last)
    return ""


def _still_to_do(kit: Kit, task: Task, last: Try) -> str:
    """Read the feedback that a try was given that came to no verdict."""
    path = kit.runs.folder(task.name, last.attempt) / prompts.FEEDBACK
    return path.read_text(encoding="utf-8")


def _said_since(kit: Kit, task: Task, attempt: int) -> str:
    """Return a person's last words on the work of an attempt, if there are any."""
    with suppress(LooprError), Journal.open(kit.place.journal, readonly=True) as journal:
        for record in reversed(journal.story(task.loop.id, MOST_EVENTS)):
            event = decode(record.event, record.version, record.data)
            if isinstance(event, Rejected | IterationAsked):
                return event.reason
            if isinstance(event, LeaseGranted) and event.attempt <= attempt:
                break
    return ""


def _of_this_count(kit: Kit, task: Task) -> Iterator[Refusal]:
    """Give the refusals since the iterations were last counted from one, the newest first."""
    later = task.loop.iteration
    for each in kit.runs.tries_before(task.name, task.attempt):
        if each.iteration > later:
            return
        if each.iteration < later and each.refusal is not None:  # else counted anew after it
            yield each.refusal
        later = each.iteration
