"""What somebody who watches the work sees: the tree folded to the screen, what is waited for, and the last word.

Costs as much as is drawn, whatever the size of the tree: everything else is read from counters. Must never know a
terminal, a clock, or what was drawn before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from loopr.core.forest import Forest
from loopr.core.gates import closed_for_group
from loopr.core.inbox import OFFERED, STALE, Beside, Call, inbox, land_line
from loopr.core.left_out import LEFT_PLACE
from loopr.core.model import OCCUPYING, Loop, Status
from loopr.core.settled import Standing, may_go_on, standing
from loopr.ui import needed, render, views
from loopr.ui.folding import Line, fold
from loopr.ui.newer_inputs import Newer
from loopr.ui.older import stale_lines, stale_loops
from loopr.ui.stands import IsReady, footer, to_do_again
from loopr.ui.telling import within
from loopr.ui.times import localized

Tail = Callable[[Loop], str]
IsHome = Callable[[Forest, str], bool]
Newest = Callable[[Forest, Sequence[str]], Sequence[Newer]]
"""Says of a plan that is done whether there is nothing of it left to bring home."""
_LEFT = (Status.FAILED, Status.PARKED, Status.AWAITING, Status.CANCELLED)
MOST_NAMED = 3  # of a kind, beside the picture
MOST_LISTED = 10  # of a kind, at the end
MOST_GROUPS = 200  # that are asked what they wait for, in one picture
CEILINGS = frozenset({"serial", "project", "type", "resource", "worktrees", "capacity", "pace"})
"""Gates that are no news: something else runs meanwhile."""
TOLD_APART = frozenset({"lane", "paused", "host", "drain"})


def tops_of(forest: Forest, wanted: Sequence[str]) -> list[str]:
    """Return the roots of what is looked at: what is wanted and there, none below another, else every plan."""
    if not wanted:
        return forest.tree.children(None)
    known = dict.fromkeys(each for each in wanted if each in forest.loops)
    return [each for each in known if not within(known, each.rpartition("/")[0])]


def counts(forest: Forest, tops: Iterable[str]) -> dict[str, int]:
    """Count the loops at and below some tops by status, from the counters, in the order of a life."""
    roots = list(tops)
    listed = [each for each in forest.tree.by_status if each is not Status.INVALIDATED]
    found: dict[Status, int] = {status: len(_listed(forest, roots, status)) for status in listed}
    below = [forest.tree.below[each] for each in roots]
    own = [forest.loops[each].status for each in roots]
    found[Status.COMPLETE] = sum(each.complete for each in below) + own.count(Status.COMPLETE)
    total = sum(each.total for each in below) + len([each for each in own if each is not Status.INVALIDATED])
    found[Status.PENDING] = total - sum(found.values())
    return {status.value: found[status] for status in Status if found.get(status)}


def _listed(forest: Forest, tops: Sequence[str], status: Status) -> list[Loop]:
    """List the loops at and below some tops that have a status which is kept in a list."""
    plans = set(tops)
    return [forest.loops[each] for each in forest.tree.by_status[status] if within(plans, each)]


# --- the live picture ---------------------------------------------------------------------------------------------


def picture(
    forest: Forest, tops: Sequence[str], now: int, *, size: tuple[int, int], paint: render.Paint, tail: Tail
) -> list[str]:
    """Draw the tree, what is waited for and the counts, on a screen of so many columns and lines."""
    width, height = size
    most = max(1, height // 2)
    sums = _sums(forest, tops, width)[:most]
    waits = awaited(forest, tops, now)[: most - len(sums)]
    foot = [*(paint("warn", render.fit(each, width)) for each in waits), *sums]
    room = max(1, height - len(foot))
    shown, left_out = _fitting(forest, tops, room)
    lines = fold(forest, shown, room - bool(left_out))[: room - bool(left_out)]
    drawn = render.tree_lines(forest, lines, now, width, paint, is_ready=_readiness(forest, now))
    drawn = [_with_tail(line, text, paint, tail) for line, text in zip(lines, drawn, strict=True)]
    return [*drawn, *([paint("dim", f"… {left_out} more")] if left_out else []), *foot]


def _sums(forest: Forest, tops: Sequence[str], width: int) -> list[str]:
    """Say how much is done, and how all else stands."""
    again = len(to_do_again(forest, tops))
    return footer(counts(forest, tops), forest.tree.done_of(tops), width, again=again)


def _readiness(forest: Forest, now: int) -> IsReady:
    """Make what says of pending loops whether they are ready, at the cost of those that are."""
    groups = [group for _, group in islice(forest.ready.groups(), MOST_GROUPS)]
    free = [each for each in groups if not closed_for_group(forest, forest.loops[next(iter(each.members))], now)]
    ready = {member for each in free for member in each.members}
    return lambda loop: loop.id in ready


def _fitting(forest: Forest, tops: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return the tops that have room, those that are not done first, and how many have none."""
    if len(tops) <= room:
        return list(tops), 0
    first = sorted(tops, key=forest.tree.at_rest)[: room - 1]
    kept = [each for each in tops if each in set(first)]
    return kept, len(tops) - len(kept)


def _with_tail(line: Line, text: str, paint: render.Paint, tail: Tail) -> str:
    """Put the last line of a running loop's output behind it."""
    if line.loop is None or line.loop.status not in OCCUPYING:
        return text
    said = render.plain(tail(line.loop))
    return f"{text}  {paint('dim', said)}" if said else text


def awaited(forest: Forest, tops: Sequence[str], now: int) -> list[str]:
    """Say what is waited for: lanes, people, the host, budgets, whoever holds everything."""
    lines = render.lane_lines(views.lanes(forest), forest, now) + render.hold_lines(forest, now)
    if forest.shared.engine.draining:
        lines.append("the engine is draining: nothing more starts; `loopr stop --now` ends what runs")
    if forest.shared.host[0]:
        lines.append(f"nothing starts: {render.plain(forest.shared.host[0])}")
    lines += map(render.plain, views.problem_lines(forest))
    return lines + _people(forest, tops) + _groups(forest, tops, now)


def at_rest(forest: Forest, tops: Sequence[str], now: int) -> str:
    """Say what an engine that stays waits for, once nothing goes on by itself."""
    waits = [each for each in awaited(forest, tops, now) if each.startswith("waits")]
    found = counts(forest, tops)
    badly = [f"{found[each]} {each}" for each in ("failed", "parked") if each in found]
    if waits:
        more = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
        words = f"{', '.join([*badly, waits[0]])}{more}"
    else:
        done = standing(forest, tops, now) is Standing.DONE
        words = ", ".join(badly) or ("nothing is left to do" if done else "waits for a person: `loopr tree` tells")
    return f"settled: {words} (stays; `loopr stop` ends it)"


def _people(forest: Forest, tops: Sequence[str]) -> list[str]:
    """Say what a person must say yes or no to."""
    loops = _listed(forest, tops, Status.AWAITING)
    lines = [f"waits for a person: `loopr approve {each.id}`" for each in loops[:MOST_NAMED]]
    return lines + (["waits for a person: more, see `loopr ls`"] if len(loops) > MOST_NAMED else [])


def _groups(forest: Forest, tops: Sequence[str], now: int) -> list[str]:
    """Say what loops wait for that could run otherwise, each reason once."""
    plans, found = set(tops), dict[str, None]()
    for _, group in islice(forest.ready.groups(), MOST_GROUPS):
        member = next((each for each in group.members if within(plans, each)), None)
        gate = closed_for_group(forest, forest.loops[member], now) if member is not None else None
        if gate is None or gate.gate in TOLD_APART | CEILINGS:
            continue
        words = render.gate_words(gate, now)
        more = f" ({len(group.members)} like this)" if gate.gate == "manual" and len(group.members) > 1 else ""
        found[f"waits for a person: {words}{more}" if gate.gate == "manual" else f"waits: {words}"] = None
    return [*list(found)[:MOST_NAMED], *(["waits: more, see `loopr ls`"] if len(found) > MOST_NAMED else [])]


# --- the last word ------------------------------------------------------------------------------------------------


def no_news(forest: Forest, tops: Sequence[str]) -> Sequence[Newer]:
    """Say that no plan has other inputs."""
    return ()


def last_word(
    forest: Forest, tops: Sequence[str], now: int, width: int, is_home: IsHome, *, newest: Newest = no_news
) -> list[str]:
    """Sum up: the counts, what went wrong, what waits for whom, and what to type next."""
    forest.advance(now)
    lines = _sums(forest, tops, width)
    upcoming = _next(forest, tops, now, is_home)
    told: dict[str, list[Call]] = {}
    for call in inbox(forest, Beside(_away(forest, tops, is_home), now=now)):
        found = needed.concerns(call, tops)
        if found is not None and found.kind != STALE:
            told.setdefault(needed.label(found), []).append(found)
    for word, calls in told.items():
        alone = calls[0] if len(calls) == 1 and calls[0].kind != OFFERED else None
        is_next = alone is not None and alone.command in upcoming  # which is told below
        lines += _named(word, [] if is_next else [needed.words(each) for each in calls])
    loops = _listed(forest, tops, Status.CANCELLED)
    lines += _named("cancelled", [f"{each.id}: {each.reason or 'no reason was given'}" for each in loops])
    is_over = (forest.tree.at_rest, forest.tree.called_off)
    names = [each for each in forest.tree.held if within(set(tops), each) and not any(over(each) for over in is_over)]
    held = [forest.loops[each] for each in names]
    lines += _named("paused", [f"{each.id}: `loopr resume {each.id}`" for each in held])
    lines += _named("waiting", _waiting(forest, tops, now))
    lines += _named("missing", _missing(forest, tops))
    lines += _named("stale", list(stale_lines(forest, sorted({each.partition("/")[0] for each in tops}))))
    rows = [call for calls in told.values() for call in calls]
    above = {f"{call.kind} of {name}" for call in rows for name in call.about}
    others = (each for each in forest.shared.problems.items() if not each[0].startswith(LEFT_PLACE))
    problems = sorted(each for each in others if each[0] not in above)
    lines += _named("problem", [localized(render.at_place(*each), now) for each in problems])
    newer = newest(forest, tops)
    lines += [render.plain(each.words) for each in newer[:MOST_LISTED]]
    if newer and upcoming.startswith(("`loopr land", "`loopr tree")):
        upcoming = f"`{newer[0].command}`, or {upcoming}"
    return [*lines, f"next: {upcoming}{_begin_again(forest, tops, now)}"]


def _away(forest: Forest, tops: Sequence[str], is_home: IsHome) -> tuple[str, ...]:
    """Name the plans that are done, have landed something, and are not home."""
    done = (each for each in tops if forest.tree.at_rest(each) and needed.has_landed(forest, each))
    return tuple(each for each in done if not is_home(forest, each))


def _named(word: str, texts: Sequence[str]) -> list[str]:
    """List what is of one kind, as far as a person reads."""
    lines = [f"{word}  {render.plain(each)}" for each in texts[:MOST_LISTED]]
    return lines + ([f"{word}  … and {len(texts) - MOST_LISTED} more"] if len(texts) > MOST_LISTED else [])


def _waiting(forest: Forest, tops: Sequence[str], now: int) -> list[str]:
    """Say what loops wait for that could run otherwise, by their reason."""
    plans, others = set(tops), dict[str, int]()
    for _, group in forest.ready.groups():
        members = sorted(each for each in group.members if within(plans, each))
        gate = closed_for_group(forest, forest.loops[members[0]], now) if members else None
        if gate is not None and gate.gate not in CEILINGS | {"manual"}:
            words = render.gate_words(gate, now)
            others[words] = others.get(words, 0) + len(members)
    return [f"{n} loop{'s' * (n != 1)}: {words}" for words, n in others.items()]


def _missing(forest: Forest, tops: Sequence[str]) -> list[str]:
    """Say which artifacts somebody has taken away that loops are to work from, and how they come back."""
    found = []
    for loop in (each for top in tops for each in forest.tree.walk(top)):
        children = map(forest.loops.__getitem__, forest.tree.children(loop.id))
        if loop.artifact and not loop.on_disk and any(each.status is Status.PENDING for each in children):
            again = f"; `loopr retry --fresh {loop.id}` does it again" if loop.parent else ""
            place = forest.policy.place_of(loop.id, loop.type)
            found.append(f"{place}: `loopr doctor --fix` puts it back{again}")
    return found


def _next(forest: Forest, tops: Sequence[str], now: int, is_home: IsHome) -> str:
    """Return the command that is of most use now."""
    if not tops:
        return "`loopr start PLAN`"
    stuck = *_listed(forest, tops, Status.FAILED), *_listed(forest, tops, Status.PARKED)
    waiting = _listed(forest, tops, Status.AWAITING)
    if stuck:
        others = "diff --waiting" if waiting[1:] else f"approve {waiting[0].id}" if waiting else ""
        return f"`loopr why {stuck[0].id}`{f', or `loopr {others}`' if others else ''}"
    if waiting:
        return f"`loopr approve {waiting[0].id}`"
    offered = [each for each in sorted(forest.tree.offered) if within(set(tops), each)]
    if offered:
        return f"`loopr approve {offered[0]} --file`"
    unfinished = next((each for each in tops if not (forest.tree.at_rest(each) or _is_cancelled(forest, each))), None)
    if unfinished is None:
        old = next((each for each in tops if stale_loops(forest, [each])), None)
        away = next(iter(_away(forest, tops, is_home)), None)
        home = f"`{land_line(forest, away)}`" if away else "`loopr tree`"
        return f"`loopr retry --stale {old}`, or {home}" if old is not None else home
    if forest.shared.engine.draining or _may_go_on(forest, tops, now):
        return "`loopr run` goes on"
    if forest.tree.below[unfinished].running or forest.loops[unfinished].status in OCCUPYING:
        return f"`loopr tree {unfinished}`"
    if forest.tree.done(unfinished):
        return f"`loopr why {next(each for each in forest.tree.redoing if within({unfinished}, each))}`"
    return f"`loopr why {_first_open(forest, unfinished)}`"


def _begin_again(forest: Forest, tops: Sequence[str], now: int) -> str:
    """Name the verbs that go on where all that is left has failed or is parked; `start` does not.

    To retry the whole would bring back what a person has cancelled: there each loop is named.
    """
    ways: dict[str, list[str]] = {"retry": [], "reset": []}
    for top in tops:
        failed, parked, waiting, cancelled = (_listed(forest, [top], each) for each in _LEFT)
        if waiting or not (failed or parked) or may_go_on(forest, [top], now):
            continue
        each_one = [loop.id for loop in (*failed, *parked)] if failed and cancelled else [top]
        ways["retry" if failed else "reset"] += each_one
    said = [f"`loopr {verb} {' '.join(names)}`" for verb, names in ways.items() if names]
    few = all(len(names) <= MOST_NAMED for names in ways.values())
    return f"; once mended, {' and '.join(said)}" if said and few else ""


def _is_cancelled(forest: Forest, top: str) -> bool:
    """Say whether all that is not done of a plan is cancelled."""
    return forest.loops[top].status is Status.CANCELLED or forest.tree.called_off(top)


def _may_go_on(forest: Forest, tops: Sequence[str], now: int) -> bool:
    """Say whether no gate holds some loop back: whoever drove it was stopped before its turn."""
    plans = set(tops)
    alike = ([each for each in group.members if within(plans, each)] for _, group in forest.ready.groups())
    return any(each and closed_for_group(forest, forest.loops[each[0]], now) is None for each in alike)


def _first_open(forest: Forest, top: str) -> str:
    """Return the first loop, from a top downwards, that is not complete itself, always at what is not done."""
    while forest.loops[top].status is Status.COMPLETE:
        top = next(each for each in forest.tree.children(top) if not forest.tree.done(each))
    return top
