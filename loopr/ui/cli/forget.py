"""The part of `gc` that lets go what is kept of loops that are over, because a person names them.

A loop that is named itself goes with all that is kept of it. Of a plan, a parent or a convoy only that goes which is
safe elsewhere, or has landed: work that is nowhere else wants its own name. Must never know how a ref is deleted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core import wishes
from loopr.core.dropping import drop, may_drop
from loopr.core.events import Event
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import UserError
from loopr.ui import views
from loopr.ui.cli.frame import Frame
from loopr.ui.cli.gc import items_of, sizes_of
from loopr.ui.cli.land import turn_or_beside
from loopr.ui.groups import CONVOY, members
from loopr.ui.in_use import ENDED, in_use, is_over, living, names_of
from loopr.ui.names import counted, find_id
from loopr.ui.remains import Item, lines_of, row_of, say_bytes

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground


class Asked(NamedTuple):
    """How loops are to be forgotten."""

    dry_run: bool
    yes: bool
    verbose: bool


class Meant(NamedTuple):
    """What is meant by a text: the loops that are over, those that are not, and whether it is more than one by name."""

    text: str
    loops: tuple[Loop, ...]
    left: tuple[Loop, ...] = ()
    many: bool = False


class Kept(NamedTuple):
    """What is kept of the loops of one plan: what goes, and what stays."""

    plan: str
    ground: Ground
    loops: tuple[Loop, ...]
    goes: list[Item]
    stays: list[Item]


def forget_all(frame: Frame, scene: Scene, text: str, how: Asked) -> None:
    """Let go what is kept of a loop that is over, or of all below a loop, a plan or a convoy that are."""
    meant, dropped = _meant(scene, text), list[str]()
    kept = _kept(frame, scene, meant)
    if not how.dry_run:
        _ask(meant, kept, how.yes)
        with turn_or_beside(frame.workspace):
            meant = _still(frame, meant)
            _forget(frame, meant)
            dropped = _drop(frame, scene, meant)
            kept = [_let_go(frame, scene, each, {loop.id for loop in meant.loops}) for each in kept]
    _report(frame, meant, kept, how)
    if not frame.as_json and not how.dry_run:
        for plan in dropped:
            frame.note(f"{plan} has left the tree; `loopr start {scene.shared.plans[plan].source}` brings it back")


def _forget(frame: Frame, meant: Meant) -> None:
    """Have nothing more said of the landed work of the meant loops that are no longer declared."""
    gone = [each for each in meant.loops if each.status is Status.INVALIDATED]
    names = [each.id for each in gone if each.landed or not meant.many]
    if names:
        with frame.workspace.visit() as engine:
            engine.mind.decide(partial(_forgetting, names))


def _forgetting(names: Sequence[str], forest: Scene, now: int) -> Iterator[Event]:
    """Decide that loops are forgotten, each with all below it, and each once."""
    for name in sorted(names):
        if len(names) == 1 or forest.loops[name].landed:
            yield from wishes.forget(forest, name)


def _dropping(asked: tuple[str, str], forest: Scene, now: int) -> Iterator[Event]:
    """Decide that a plan leaves the tree, as somebody has asked."""
    yield from drop(forest, *asked)


def _drop(frame: Frame, scene: Scene, meant: Meant) -> list[str]:
    """Take out of the tree the plans that are meant and were cancelled before anything of them landed."""
    plans = [each.id for each in meant.loops if may_drop(scene, each.id)]
    if plans:
        with frame.workspace.visit() as engine:
            for plan in plans:
                engine.mind.decide(partial(_dropping, (plan, frame.workspace.actor)))
    return plans


# --- who is meant ---------------------------------------------------------------------------------------------------


def _meant(scene: Scene, text: str) -> Meant:
    """Return the loops that are meant; one that is not over is refused where it stands alone."""
    if text.startswith(CONVOY):
        return _several(scene, text, members(scene, text))
    loop = scene.loops[find_id(scene.loops, text)]
    if loop.status is Status.INVALIDATED:
        return Meant(loop.id, (loop, *_no_more_declared(scene, loop)))
    if scene.tree.has_children(loop.id) or _no_more_declared(scene, loop):
        return _several(scene, loop.id, [*scene.tree.walk(loop.id), *_no_more_declared(scene, loop)])
    if not _may_go(scene, loop):
        raise _not_over(loop.id)
    return Meant(loop.id, (loop,))


def _several(scene: Scene, text: str, loops: Sequence[Loop]) -> Meant:
    """Part loops into those that are over and the others."""
    every = {each.id: each for each in loops}.values()
    over = tuple(each for each in every if _may_go(scene, each))
    if not over:
        raise _not_over(text)
    return Meant(text, over, tuple(each for each in every if each not in over), many=True)


def _no_more_declared(scene: Scene, top: Loop) -> list[Loop]:
    """List the loops below another one that are no longer declared."""
    gone = sorted(each for each in scene.tree.by_status[Status.INVALIDATED] if each.startswith(f"{top.id}/"))
    return [scene.loops[each] for each in gone]


def _may_go(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop may be forgotten; a plan only when it is done, or goes on no more."""
    if loop.parent is None:
        return scene.tree.done(loop.id) or (loop.status in ENDED and is_over(loop)) or may_drop(scene, loop.id)
    return is_over(loop)


def _not_over(text: str) -> UserError:
    """Say that something may go on."""
    return UserError(f"cannot forget {text}: it is not over", hint=f"`loopr cancel {text}` ends it first")


def _still(frame: Frame, meant: Meant) -> Meant:
    """Leave out what has begun again since it was looked at."""
    scene = frame.workspace.look().scene
    loops = [scene.loops[each.id] for each in meant.loops if each.id in scene.loops]
    over = tuple(each for each in loops if _may_go(scene, each))
    return meant._replace(loops=over, left=(*meant.left, *(each for each in loops if each not in over)))


# --- what is kept of them -------------------------------------------------------------------------------------------


def _kept(frame: Frame, scene: Scene, meant: Meant) -> list[Kept]:
    """List by plan what is kept of loops, and what of it goes."""
    from loopr.grounds import ground_of_plan

    found: list[Kept] = []
    for plan in dict.fromkeys(each.plan for each in meant.loops):
        ground = ground_of_plan(frame.workspace, scene, plan)
        loops = tuple(each for each in meant.loops if each.plan == plan)
        if ground is not None:
            found.append(_kept_of(ground, scene, Kept(plan, ground, loops, [], []), many=meant.many))
    return found


def _kept_of(ground: Ground, scene: Scene, kept: Kept, *, many: bool) -> Kept:
    """List the refs that are kept of loops; the branch of a plan goes only if a person's own has its work."""
    from loopr.world.repo.leftovers import leftovers

    names = {name for each in kept.loops for name in names_of(each)}
    own = kept.plan if any(each.parent is None for each in kept.loops) else ""
    if not many:
        _refuse_held(ground, names)
    rows = leftovers(ground, in_use(scene) - ({own} if own else set()), living())
    items = items_of(scene, [each for each in rows if each.kind in ("branch", "ref")], None)
    branch = next((each for each in items if own and (each.kind, each.name) == ("branch", own)), None)
    if branch is not None and not branch.may_go:
        raise UserError(f"cannot forget {own}: {branch.why}", hint=f"loopr land {own}")
    wanted = [each for each in items if each is not branch and _owner(each) in names]
    landed = {_owner(each) for each in wanted if each.landed}
    stays = [each for each in wanted if many and not _is_done_with(each, landed)]
    goes = [each for each in wanted if each not in stays]
    return kept._replace(goes=[*goes, *([branch] if branch is not None else [])], stays=stays)


def _is_done_with(item: Item, landed: Set[str]) -> bool:
    """Say whether what is kept is safe elsewhere, or of work that has landed."""
    return item.may_go or item.landed or (item.name.startswith("backup/") and _owner(item) in landed)


def _refuse_held(ground: Ground, names: Set[str]) -> None:
    """Refuse to forget what somebody has checked out: git would not let the branch go."""
    from loopr.world.repo.checkouts import checkouts

    branches = {ground.branch(each) for each in names}
    for each in checkouts(ground):
        if each.branch in branches:
            hint = "`loopr gc` gives that folder back first, or says why not" if each.ours else "switch it there"
            raise UserError(f"the branch {each.branch.removeprefix('refs/heads/')} is in {each.folder}", hint=hint)


def _owner(item: Item) -> str:
    """Return the generation that a branch or a ref belongs to."""
    return item.name if item.kind == "branch" else item.name.split("/")[1]


# --- the word -------------------------------------------------------------------------------------------------------


def _ask(meant: Meant, kept: Sequence[Kept], yes: bool) -> None:
    """Ask a person, if there is one, and say what goes; without one only --yes goes on."""
    if yes:
        return
    goes = [item for each in kept for item in each.goes]
    if meant.many:
        size = sum(sizes_of({str(n): each.ground for n, each in enumerate(kept)}, _by_ground(kept)).values())
        told = f"{len(goes)} ref{'s' * (len(goes) != 1)}{f', {say_bytes(size)}' if size else ''}"
        what = f"{len(meant.loops)} loop{'s' * (len(meant.loops) != 1)} of {meant.text} ({told})"
    else:
        lost = [each.name for each in goes if not each.may_go]
        what = f"{meant.text}, with what is nowhere else in {', '.join(lost)}" if lost else meant.text
    if not sys.stdin.isatty():
        hint = "--yes goes on, --dry-run shows what would be let go"
        raise UserError(f"nobody is there to be asked: forget {what}?", hint=hint)
    click.confirm(f"Forget {what}?", abort=True, err=True)


def _by_ground(kept: Sequence[Kept]) -> list[Item]:
    """Name the repository of each thing that goes by its place among those that are looked at."""
    return [item._replace(repo=str(number)) for number, each in enumerate(kept) for item in each.goes]


def _let_go(frame: Frame, scene: Scene, kept: Kept, still: Set[str]) -> Kept:
    """Delete the refs that no checkout holds, and return what went."""
    from loopr.grounds import base_of
    from loopr.world.repo.ground import PLANS, WORK
    from loopr.world.repo.leftovers import let_go

    wanted = [each for each in kept.goes if (each.loop or kept.plan) in still]
    marks = [mark + each.name for each in wanted if each.kind == "branch" for mark in (PLANS, WORK)]
    gone = let_go(kept.ground, [*(each.place for each in wanted), *marks])
    whole = kept.plan in still and kept.plan in {each.id for each in kept.loops}
    if whole and (base := base_of(kept.ground, scene, kept.plan)):
        with frame.workspace.visit() as engine:
            engine.mind.decide(lambda forest, now: wishes.begin_at(forest, kept.plan, base))
    return kept._replace(goes=[each for each in wanted if each.place in gone])


def _report(frame: Frame, meant: Meant, kept: Sequence[Kept], how: Asked) -> None:
    """Say what went, what stays, and who was not over."""
    ids = [each.id for each in meant.loops]
    goes = [item._replace(lets_go=False) for each in kept for item in each.goes]
    stays = [item for each in kept for item in each.stays]
    if frame.as_json:
        body = {"dry_run": how.dry_run, "removed": [*map(row_of, goes)], "kept": [*map(row_of, stays)]}
        left = [{"id": each.id, "status": each.status} for each in meant.left]
        frame.document(views.document(wiring.wall_clock(), body | {"forgotten": ids, "left": left}))
        return
    words = ("would go", "would stay") if how.dry_run else ("removed", "kept")
    for word, items in zip(words, (goes, stays), strict=True):
        frame.lines(lines_of(word, items, frame.width, all_named=how.verbose))
    forgotten = f"{'would be ' if how.dry_run else ''}forgotten"
    if not meant.many:
        frame.note(f"{forgotten}: {', '.join(ids)}")
        return
    total = len(meant.loops) + len(meant.left)
    counts = Counter("not done" if each.status is Status.COMPLETE else people_say(each) for each in meant.left)
    rest = ", ".join(f"{number} {'is' if number == 1 else 'are'} {word}" for word, number in counts.items())
    told = f"{len(ids)} of {counted(total, 'loop')} of {meant.text}"
    frame.note(f"{forgotten}: {told}{f'; {rest}' if rest else ''}")
