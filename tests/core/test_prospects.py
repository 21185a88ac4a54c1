"""How far some loops have come, beside a plain count, and the longest way beside a plain search."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from loopr.core.model import FINISHED, OCCUPYING, Loop, Status
from loopr.core.policy import Policy
from loopr.core.prospects import prospect
from loopr.core.scene import Scene
from tests.core.stories import Story, settings, tell
from tests.core.worlds import HAPPENINGS, begin, policies

TREE = "plan p: a (x; y needs x); ab needs a; b; c serial; d serial"


def members(scene: Scene, tops: list[str]) -> list[Loop]:
    """List each loop that is named or lies below one that is, once."""
    found = {loop.id: loop for top in tops for loop in scene.tree.walk(top)}
    return [loop for loop in found.values() if loop.status is not Status.INVALIDATED]


def own(scene: Scene, name: str) -> int:
    """Return how many loops must be complete in turn up to the end of a loop's own work."""
    loop = scene.loops[name]
    if loop.status in FINISHED:
        return 0
    before = [whole(scene, need) for need in loop.needs if need in scene.loops]
    before += [own(scene, loop.parent)] if loop.parent is not None else []
    return 1 + max(before, default=0)


def whole(scene: Scene, name: str) -> int:
    """Return the same up to the end of all that is below a loop."""
    if scene.tree.done(name):
        return 0
    return max(own(scene, name), *(whole(scene, each) for each in scene.tree.children(name)), 0)


def check(story: Story, tops: list[str]) -> None:
    """Compare what is said of some loops with what is counted one by one."""
    scene = story.forest
    found, loops = prospect(scene, tops, story.now), members(scene, tops)
    states = [loop.status for loop in loops]
    assert found.total == len(loops)
    assert found.complete == states.count(Status.COMPLETE)
    assert found.at_work == sum(each in OCCUPYING for each in states)
    assert found.failed == states.count(Status.FAILED) + states.count(Status.PARKED)
    assert found.cancelled == states.count(Status.CANCELLED)
    assert found.waits == len(loops) - found.complete - found.at_work - found.failed - found.cancelled >= 0
    assert len(found.way) == len(set(found.way)) == max((whole(scene, each) for each in tops), default=0)
    for first, then in pairwise(found.way):
        rests_on = {*scene.loops[then].needs, scene.loops[then].parent}
        assert any(f"{first}/".startswith(f"{each}/") for each in rests_on), (first, then)
    assert not (found.stranded and all(map(scene.tree.done, tops)))


STATES = [
    "", "choose p/b\nbegan p/b", "choose p/b\nended p/b: config no", "cancel p/b", "cancel p/a", "plan p: a (x); ab",
]  # fmt: skip


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_any_of_them_together(state: str, number: int) -> None:
    """Whichever are named, each loop counts once: one below another, one whose name begins another's, one that left."""
    story = tell(f"{TREE}\nsettle\npause p/c\npause p/a\n{state}", settings(max_loops=1))
    for tops in combinations(["p", "p/a", "p/a/x", "p/a/y", "p/ab", "p/b"], number):
        check(story, list(tops))


@hypothesis_settings(suppress_health_check=list(HealthCheck))
@given(policies(), HAPPENINGS)
def test_whatever_happens(policy: Policy, happenings: list) -> None:  # type: ignore[type-arg]
    """In any workspace what is said of each plan, and of all, is what a plain count says."""
    story = begin(policy)
    for step, number in happenings:
        step(story, number)
    plans = list(story.forest.tree.children(None))
    for tops in ([], plans, *([each] for each in plans)):
        check(story, tops)
