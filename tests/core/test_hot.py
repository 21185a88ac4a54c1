"""Files that several loops change at once: who mends a conflict next, and who waits meanwhile."""

from __future__ import annotations

import pytest

from loopr.core.owed import Land, StartAttempt, owed
from loopr.core.policy import Policy
from tests.core.stories import Story, go_on, settings, tell

HOUR = "wait 1h"


def worked(*names: str) -> str:
    """Let attempts end well, and their judges say yes."""
    return "\n".join(f"began p/{each}\nended p/{each}\njudged p/{each}" for each in names)


def clashed(*names: str, paths: str = "notes", tip: str = "t1") -> str:
    """Let attempts end well, and their work be in conflict."""
    said = f"conflict both in={paths} tip={tip}"
    return "\n".join(f"began p/{each}\nended p/{each}\njudged p/{each}: {said}" for each in names)


def lands_next(story: Story) -> list[str]:
    """List the landings that are owed."""
    return [each.loop for each in owed(story.forest) if isinstance(each, Land)]


def behind(*names: str, policy: Policy | None = None) -> Story:
    """Let p/b mend a conflict, and the landing of p/a wait for that."""
    beside = "".join(f"; {each}" for each in names)
    text = f"plan p: a; b{beside}\nchoose p/a, p/b\n{clashed('b')}\nchoose p/b\n{worked('a')}\ntouches p/a: notes"
    return tell(text, policy or settings(max_loops=2))


def test_a_conflict_keeps_its_turn() -> None:
    """Its loop is granted again before all that have not had a first try, whatever the score says."""
    story = tell(f"plan p: a; b; c; d\nchoose p/a, p/b\n{clashed('a', 'b')}\nchoose p/a, p/c", settings(max_loops=2))
    assert story["p/b"].clash.number == 2
    go_on(story, f"{worked('a')}\nlanded p/a\nchoose p/b")
    story.verify()


def test_a_conflict_comes_before_what_starves() -> None:
    """A loop that has waited for very long comes after one with a conflict to mend, and before all others."""
    policy = settings(max_loops=2, starvation_ms=60_000)
    story = tell(f"plan p: a; b; c; d\nchoose p/a, p/b\n{HOUR}\n{clashed('b')}\nchoose p/b", policy)
    go_on(story, f"{worked('a')}\nlanded p/a\nchoose p/c")


def test_what_was_dispatched_comes_first() -> None:
    """A person's word goes before a conflict."""
    policy = settings(max_loops=1)
    tell(f"plan p: a; b\nchoose p/a\n{clashed('a')}\ndispatch p/b\nchoose p/b", policy)


def test_other_projects_have_their_turn_first() -> None:
    """The order is that of a project; which one is next says its share."""
    story = tell(f"plan p: a; b\nplan q: x\nchoose p/a\n{clashed('a')}", settings(max_loops=1))
    assert story.choose() == ["p/a"]


def test_one_of_several_is_mended_at_a_time() -> None:
    """Of conflicts with a file in common the first is mended first; one in other files goes on beside it."""
    story = tell(
        f"""
        plan p: a; b; c
        choose p/a, p/b, p/c
        {clashed("b", paths="notes,list")}
        {clashed("a", paths="list")}
        {clashed("c", paths="other")}
        choose p/b, p/c
        why p/a: merge p/b mends its conflict in list first
        """
    )
    go_on(story, f"{worked('b')}\nlanded p/b\nchoose p/a")
    story.verify()


def test_one_that_cannot_go_on_lets_the_next_mend() -> None:
    """The first by order is the first of those that may run."""
    tell(f"plan p: a; b\nchoose p/a, p/b\n{clashed('a', 'b')}\npause p/a\nchoose p/b\nresume p/a\nchoose nobody")


def test_the_branches_of_plans_are_their_own() -> None:
    """A turn in one plan holds back nothing of another, and no landing there."""
    story = tell(f"plan p: a\nplan q: x\nchoose p/a, q/x\n{clashed('a')}\nchoose p/a")
    go_on(story, "began q/x\nended q/x\njudged q/x\nignores touches q/x: notes")
    assert lands_next(story) == ["q/x"]


def test_landings_in_the_same_files_let_others_pass() -> None:
    """Who would change the files waits, the one behind it lands, and after the turn both go on."""
    story = tell(f"plan p: a; b; c\nchoose p/a, p/b, p/c\n{clashed('c')}\nchoose p/c\n{worked('a', 'b')}")
    assert lands_next(story) == ["p/a"]
    go_on(story, "touches p/a: list notes")
    assert lands_next(story) == ["p/b"]
    assert "its landing waits: p/c mends its conflict in notes first" in story.gates("p/a")["status"]
    go_on(story, "ignores touches p/a: list notes\nlanded p/b\nbegan p/c")
    assert lands_next(story) == []
    go_on(story, "ended p/c\njudged p/c")
    assert lands_next(story) == ["p/c"]
    go_on(story, "landed p/c")
    assert lands_next(story) == ["p/a"]
    story.verify()


def test_a_landing_that_is_judged_already_waits_too() -> None:
    """What is ready to land in the files of a turn does not begin, and is made ready anew after it."""
    story = tell(f"plan p: a; c\nchoose p/a, p/c\n{clashed('c')}\nchoose p/c\n{worked('a')}\nlands p/a: b0 b1 notes")
    assert story["p/a"].lease is not None and story["p/a"].lease.behind == ("notes",)
    assert not story["p/a"].lease.lands and lands_next(story) == []


def test_a_landing_that_has_begun_is_never_held() -> None:
    """It ends; the loop whose turn it is begins upon what it brings."""
    story = tell(f"plan p: a; c\nchoose p/a, p/c\n{worked('a')}\nlands p/a: b0 b1 notes\n{clashed('c')}\nchoose p/c")
    assert lands_next(story) == ["p/a"]
    assert not [each for each in owed(story.forest) if isinstance(each, StartAttempt)]
    go_on(story, "ignores touches p/a: notes\nlanded p/a")
    assert [each.loop for each in owed(story.forest) if isinstance(each, StartAttempt)] == ["p/c"]


def test_a_landing_that_waits_takes_no_slot() -> None:
    """It does not count for `max_loops` while it lets others pass."""
    story = behind("c", "d")
    go_on(story, "choose p/c")
    go_on(story, f"{worked('b')}\nlanded p/b\nwhy p/d: capacity all 2 slots are taken")
    story.verify()


def test_two_turns_that_meet_land_in_order() -> None:
    """Loops that mend different files and change those of each other land in the order of their conflicts."""
    story = tell(
        f"plan p: a; b\nchoose p/a, p/b\n{clashed('b', paths='x')}\n{clashed('a', paths='y')}\nchoose p/b, p/a"
    )
    go_on(story, f"{worked('a', 'b')}\ntouches p/a: x y\nignores touches p/b: x y")
    assert lands_next(story) == ["p/b"]
    go_on(story, "landed p/b")
    assert lands_next(story) == ["p/a"]


def test_a_turn_takes_no_longer_than_it_may() -> None:
    """After `merge.turn_secs` others land again, and the loop waits like any other."""
    policy = settings(max_loops=2, merge_turn_ms=600_000)
    story = tell(
        f"plan p: a; b; c\nchoose p/a, p/b\n{clashed('b')}\nchoose p/b\n{worked('a')}\ntouches p/a: notes", policy
    )
    go_on(story, "wait 599s")
    story.round()
    assert lands_next(story) == []
    go_on(story, "wait 1s")
    story.round()
    assert lands_next(story) == ["p/a"] and story["p/b"].clash.paths == ("notes",)
    story.verify()


def test_a_no_keeps_the_place_and_frees_the_files() -> None:
    """Between two tries others land; the next try comes before all else, and the clock of the turn goes on."""
    policy = settings(max_loops=2, merge_turn_ms=600_000)
    story = tell(
        f"plan p: a; b; c\nchoose p/a, p/b\n{clashed('b')}\nchoose p/b\n{worked('a')}\ntouches p/a: notes", policy
    )
    go_on(story, "wait 5m\nbegan p/b\nended p/b: refused no")
    assert lands_next(story) == ["p/a"]
    go_on(story, "choose p/b, p/c")
    assert lands_next(story) == []
    go_on(story, "wait 5m")
    story.round()
    assert lands_next(story) == ["p/a"]


def test_a_pull_worker_has_no_turn() -> None:
    """It may take long: nobody waits for it."""
    story = tell(
        f"plan p: a; b\nchoose p/a, p/b\n{clashed('b')}\ntake ada 1: p/b\n{worked('a')}\nignores touches p/a: notes"
    )
    assert lands_next(story) == ["p/a"]


@pytest.mark.parametrize(("files", "waits"), [("docs/**", True), ("notes", False), ("docs/news", True)])
def test_from_the_second_conflict_on_nothing_else_begins_there(files: str, waits: bool) -> None:
    """What means to touch the same files is not granted until the loop has landed."""
    story = tell(
        f"plan p: a; b files {files}\npause p/b\nchoose p/a\n{clashed('a', paths='docs/news')}\nchoose p/a\nresume p/b"
    )
    go_on(story, "why p/b: nothing\npause p/b")
    go_on(story, f"{clashed('a', paths='docs/news', tip='t2')}\nchoose p/a\nresume p/b")
    assert ("merge" in story.gates("p/b")) is waits
    assert story.choose() == ([] if waits else ["p/b"])
    go_on(story, f"{worked('a')}\nlanded p/a\nwhy p/b: {'nothing' if waits else 'status'}")
    story.verify()


def test_a_conflict_in_other_files_is_a_first_one() -> None:
    """Only conflicts in the same files count together."""
    story = tell(f"plan p: a\nchoose p/a\n{clashed('a', paths='x')}\nchoose p/a\n{clashed('a', paths='y', tip='t2')}")
    assert story["p/a"].clash.times == 1


@pytest.mark.parametrize("ends", ["ended p/b: config no", "cancel p/b", "pause now p/b", "plan p: a"])
def test_who_goes_no_further_holds_nobody(ends: str) -> None:
    """A loop that is parked, cancelled, stopped or gone has no turn any more."""
    story = tell(
        f"plan p: a; b\nchoose p/a, p/b\n{clashed('b')}\nchoose p/b\n{worked('a')}\ntouches p/a: notes\nbegan p/b"
    )
    assert lands_next(story) == []
    go_on(story, ends)
    assert lands_next(story) == ["p/a"]
    story.verify()


def test_a_conflict_from_before_has_no_turn() -> None:
    """An event that says nothing of files holds nobody back."""
    story = tell("plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a\njudged p/a: conflict both\nchoose p/a")
    go_on(story, f"{worked('b')}\nignores touches p/b: notes")
    assert lands_next(story) == ["p/b"]


def test_a_loop_without_a_turn_waits_for_no_landing() -> None:
    """Once its turn is over it begins as any other, also beside a landing that has begun."""
    story = behind(policy=settings(max_loops=2, merge_turn_ms=600_000))
    go_on(story, "wait 10m")
    story.round()
    go_on(story, "lands p/a: b0 b1 notes\nbegan p/b\nended p/b: refused no\nchoose p/b")
    assert [each.loop for each in owed(story.forest) if isinstance(each, StartAttempt)] == ["p/b"]
