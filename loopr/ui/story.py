"""From journalled events to sentences: the story so far.

Knows a phrase for every event. Must never know what an event changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loopr.core.offers import FILE
from loopr.core.policy import DEFAULT_LANE
from loopr.core.redo import redo_words
from loopr.ui.times import say_duration
from loopr.ui.views import Row, instant

_ENGINE = "engine"


def story(records: Iterable[Any]) -> list[Row]:
    """Tell events as rows with a sentence each, and for each that ends a try how long its command took."""
    rows, began, ended = [], 0, 0
    for each in records:
        data = json.loads(each.data)
        is_end = bool(began) and (each.event in ENDS or "failure" in data)
        ended = each.at if each.event == "work_ended" else 0 if each.event == "lease_granted" else ended
        rows.append(
            {
                "seq": each.seq,
                "at": instant(each.at),
                "event": each.event,
                "text": sentence(each.event, data),
                "seconds": ((ended or each.at) - began) / 1000 if is_end else None,
            }
        )
        began = each.at if each.event in ("lease_granted", "attempt_started") else 0 if is_end else began
    return rows


def event_row(record: Any) -> Row:
    """Return one event as `loopr events --json` prints it."""
    return {
        "seq": record.seq,
        "at": instant(record.at),
        "event": record.event,
        "loop": record.loop,
        "actor": record.actor,
        "data": json.loads(record.data),
    }


def sentence(event: str, data: Mapping[str, Any]) -> str:
    """Tell one event in words."""
    phrase = _PHRASES.get(event)
    if phrase is None:
        return event.replace("_", " ")
    return phrase(data) if callable(phrase) else phrase.format_map(_Gaps(data))


class _Gaps(dict[str, Any]):
    """Fields of an event, with nothing where an older version had none."""

    def __missing__(self, key: str) -> str:
        """Leave a gap."""
        return ""


def _because(words: str) -> Callable[[Mapping[str, Any]], str]:
    """Make a phrase that ends with the reason, if there is one."""

    def phrase(data: Mapping[str, Any]) -> str:
        reason = data.get("reason") or ""
        head = words.format_map(_Gaps(data))
        return f"{head}: {reason}" if reason not in ("", head) else head

    return phrase


def _granted(data: Mapping[str, Any]) -> str:
    """Tell of a lease: the worker that took it, a lane of its own, and the agent that works."""
    taken = "try {attempt}, its turn has come" if data.get("holder") == _ENGINE else "try {attempt} taken by {holder}"
    lane = "" if data.get("lane") == DEFAULT_LANE else ", on lane {lane}"
    agent = ", for {agent}" if data.get("agent") else ""
    return (taken + lane + agent).format_map(_Gaps(data))


def _landed(data: Mapping[str, Any]) -> str:
    """Tell as which commit work has landed, if there was any, and which files are the plan's own again."""
    commit = data.get("commit") or ""
    head = f"landed as {commit[:12]}" if commit else "done; it had nothing to land"
    back = data.get("put_back") or ()
    return f"{head}; put back: {back if isinstance(back, str) else ', '.join(back)}" if back else head


def _meanwhile(data: Mapping[str, Any]) -> str:
    """Tell who was at work when a file came."""
    names = data.get("during") or "loops"
    return f"while {names if isinstance(names, str) else ', '.join(names)} ran"


def _accepted(data: Mapping[str, Any]) -> str:
    """Tell whose file is its artifact."""
    if data.get("by") == FILE:
        return f"a file was accepted as its artifact, which came {_meanwhile(data)}: done"
    return "a person's artifact was accepted: done"


def _redo(data: Mapping[str, Any]) -> str:
    """Tell why work is to be done again, and who says so."""
    said = redo_words(str(data.get("cause", "")), str(data.get("landed", "")))
    return f"to be done again: {said}" + (f"; asked by {data['by']}" if data.get("by") else "")


def _kept(data: Mapping[str, Any]) -> str:
    """Tell of a file that nothing counts by yet, and when it is remembered no longer."""
    came = f"came {_meanwhile(data)}" if data.get("digest") else "is a person's now"
    return f"{data.get('place', '')} {came}"


def _grown(data: Mapping[str, Any]) -> str:
    """Tell what came while a loop was at work, by whomever."""
    names = data.get("names", "")
    told = names if isinstance(names, str) else ", ".join(names)
    return f"while {data.get('during', '')} ran: {told} came or changed, which harms nobody"


def _denied(data: Mapping[str, Any]) -> str:
    """Tell what a loop was refused, and how often."""
    wish = f"{data.get('wish', '')} {data.get('about', '')}".strip()
    tries = data.get("tries", 1)
    often = f", {tries} times by now" if tries != 1 else ""
    return f"{data.get('lease', '')} was refused `{wish}`{often}: it is not for a loop"


def _timed(data: Mapping[str, Any]) -> str:
    """Say how long a setup or a judge took."""
    ms = data.get("ms", 0)
    took = say_duration(ms) if isinstance(ms, int) else f"{ms} milliseconds"
    return f"its {data.get('step', '')} took {took}"


def _listed(names: str | Iterable[str]) -> str:
    """Write names as a list; a generator of pages gives a word in their place."""
    return names if isinstance(names, str) else ", ".join(names)


def _harmed(data: Mapping[str, Any]) -> str:
    """Tell what was harmed while loops were at work."""
    during, names = _listed(data.get("during", "")), _listed(data.get("names", ""))
    return f"while {during} ran, somebody changed what all worktrees share: {names}"


def moved_words(branch: str, during: str | Iterable[str], *, explained: bool, undo: str) -> str:
    """Tell that a person's branch has moved while loops were at work."""
    said = f"{branch} moved while {_listed(during)} ran: "
    if explained:
        return said + "by your checkout"
    return f"{said}by none of your checkouts{f'; {undo}' if undo else ''}"


def _branch_moved(data: Mapping[str, Any]) -> str:
    """Tell that a person's branch has moved."""
    explained = data.get("explained") is True
    undo = str(data.get("undo", ""))
    return moved_words(str(data.get("branch", "")), data.get("during", ""), explained=explained, undo=undo)


def _came_home(data: Mapping[str, Any]) -> str:
    """Tell that a plan's work is on a branch of a person's, or what of it had landed."""
    head = "what has landed of plan {plan} is home" if data.get("partial") is True else "plan {plan} is home"
    return f"{head}: {{branch}} is at {{commit}}".format_map(_Gaps(data))


def _held_back(data: Mapping[str, Any]) -> str:
    """Tell which settings do not count yet."""
    keys = data.get("keys", "")
    return f"settings are held back: {keys if isinstance(keys, str) else ', '.join(keys)}"


def _moved(words: str) -> Callable[[Mapping[str, Any]], str]:
    """Make a phrase about the branch of a plan, with its commits short."""

    def phrase(data: Mapping[str, Any]) -> str:
        short = {key: str(data.get(key) or "")[:12] for key in ("old", "new")}
        return words.format_map(_Gaps({**data, **short}))

    return phrase


def foreign(data: Mapping[str, Any]) -> str:
    """Tell what was found on a plan's branch, what became of it, and who was at work meanwhile."""
    tip, during = data.get("tip") or "", data.get("during") or ()
    told = f"its branch stood at {tip[:12]}, which loopr did not make" if tip else "its branch was gone"
    told += "; it is put back" if data.get("back") else "; it is left so"
    told += f", and that is kept as {data['kept']}" if data.get("kept") else ""
    return told + (f"; while {during if isinstance(during, str) else ', '.join(during)} ran" if during else "")


_PHRASES: Mapping[str, str | Callable[[Mapping[str, Any]], str]] = {
    "declared": lambda data: "declared by its parent's artifact" if data.get("parent") else "enqueued as a plan",
    "declared_again": "declared again, {to}",
    "entry_changed": "its entry changed; nothing has to run again",
    "input_changed": "its input changed: it is to be done anew",
    "outline_changed": "its declared children changed: its artifact is written again",
    "undeclared": "no longer declared",
    "deferred": "{change} waits until the landing is over",
    "artifact_seen": "its artifact is on disk",
    "artifact_gone": "its artifact is missing",
    "artifact_accepted": _accepted,
    "artifact_offered": lambda data: f"a file is offered as its artifact, which came {_meanwhile(data)}",
    "artifact_unread": "a file at its place is no artifact, and is left alone",
    "offer_gone": "the file at its place is no other any more",
    "offer_replaced": "it handed over its own: what lay there is kept as archive/{digest}.md of the state folder",
    "offer_rejected": "the offered file was rejected by {by}; it is kept as archive/{digest}.md of the state folder",
    "completion_undone": "the file that had completed it was rejected by {by}: it waits again",
    "file_kept": _kept,
    "candidate_replaced": "a person replaced the candidate",
    "settled": "done: it needs no work of its own",
    "lease_granted": _granted,
    "attempt_started": "try {attempt} started",
    "usage_seen": "try {attempt} reported its use",
    "step_timed": _timed,
    "lease_renewed": "lease renewed",
    "lease_released": _because("try {attempt} given back"),
    "lease_expired": _because("try {attempt} reclaimed"),
    "work_ended": "try {attempt} ended well; it is judged",
    "verdict_given": "its {judge} said yes",
    "judge_waits": _because("try {attempt} ended well; its judge waits"),
    "passed": "it passed",
    "refused": _because("refused"),
    "conflicted": _because("conflict while landing"),
    "limited": _because("{failure}, free of cost"),
    "broke": _because("{failure}: try {attempt} ended without a verdict"),
    "set_aside": _because("parked, {failure}"),
    "stopped": _because("try {attempt} told to stop"),
    "attempt_gone": "try {attempt} has ended",
    "landed": _landed,
    "approved": "approved",
    "rejected": _because("rejected"),
    "iteration_asked": _because("another try was asked for"),
    "held": _because("paused by {by}"),
    "lifted": "resumed by {by}",
    "cancelled": _because("cancelled by {by}"),
    "unparked": "reset by {by}",
    "retried": "retried by {by}",
    "worktree_packing": "its worktree is to be packed: another loop needs the room",
    "worktree_packed": "its worktree is packed: all of it is on its branch, and is laid again for its next try",
    "worktree_kept": "its worktree stays: {why}",
    "renewed": _because("made anew by {by}"),
    "redo_asked": _redo,
    "redo_began": "it is done again from here on",
    "round_began": "plan {plan} is started anew: each of its loops may be done again once more by itself",
    "plan_bound": "plan {plan} is bound to {source}",
    "policy_loaded": "the policy was loaded",
    "settings_accepted": "settings were accepted, by {by}",
    "settings_held": _held_back,
    "settings_put_back": "the settings are as they were accepted: nothing is held back",
    "host_changed": _because("the machine was looked at"),
    "host_worked": "the machine works again",
    "engine_started": "engine {pid} on {host} started",
    "engine_draining": "the engine drains, asked by {by}",
    "engine_ended": "the engine ended in good order",
    "clock_moved": "the clock moved by {by_ms} ms",
    "round_cut": "a round was cut short by the pace",
    "scope_held": _because("{scope} paused by {by}"),
    "scope_lifted": "{scope} resumed by {by}",
    "loops_dispatched": "next, asked by {by}",
    "lane_rested": _because("lane {lane} rests"),
    "lane_worked": "lane {lane} works again",
    "lane_measured": "lane {lane}: {level} of 1000 parts of its provider's window are used",
    "lane_parked": _because("lane {lane} is parked"),
    "lane_reset": "lane {lane} was reset by {by}",
    "convoy_formed": "convoy @{name} was formed",
    "convoy_landed": "convoy @{name} landed",
    "plan_came_home": _came_home,
    "shared_grew": _grown,
    "shared_harmed": _harmed,
    "suspects_cleared": "{loop} ended without harm: those that ran with it then may run side by side again",
    "branch_moved": _branch_moved,
    "problem_seen": "a problem at {place}: {text}",
    "problem_gone": "the problem at {place} is gone",
    "listener_heard": "{listener} has heard of all that concerns it up to event {upto}",
    "listener_left": "{listener} is set no more",
    "forgotten": "forgotten",
    "steering_refused": _denied,
    "landing_waits": "its landing waits: another mends a conflict in the same files first",
    "merge_turn_ended": "its turn to mend its conflict is over: others land again (merge.turn_secs)",
    "landing_began": "its landing begins",
    "plan_moving": _moved("the branch of {plan} is about to move to {new}: {why}"),
    "plan_moved": _moved("the branch of {plan} stands at {new}: {why}"),
    "inputs_moved": "its inputs are others by now: {why}; it is done again afterwards",
    "plan_stayed": _because("the branch of {plan} stays where it is"),
    "tip_foreign": lambda data: f"{data.get('plan', '')}: {foreign(data)}",
    "tips_taken": "where plans stand is taken from refs, this once: the journal is from before it said so",
}

ENDS: Mapping[str, str] = {
    "lease_released": "released",
    "lease_expired": "infra",
    "judge_waits": "limited",
    "refused": "refused",
    "conflicted": "conflict",
    "stopped": "stopped",
    "landed": "ok",
    "rejected": "rejected",
    "artifact_accepted": "stopped",
    "cancelled": "stopped",
    "input_changed": "stopped",
    "undeclared": "stopped",
}
"""The events that end a try, each with the class of that end."""
