"""The one list of what needs a person, beside what a wait and an exit code say of the same loops."""

from __future__ import annotations

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from loopr.core import observations as o
from loopr.core.inbox import Beside, Call, inbox
from loopr.core.model import Status
from loopr.core.policy import Budget, Policy
from loopr.core.settled import Standing, standing
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings, tell
from tests.core.worlds import HAPPENINGS, begin, policies

TWO_LEVELS = settings(types={"spec": {"child": None}})


def rows(story: Story, beside: Beside | None = None) -> list[tuple[str, str, str]]:
    """Return what each row is about, of which kind it is, and what to type."""
    found = inbox(story.forest, beside or Beside())
    return [(each.kind, " ".join(each.about), each.command) for each in found]


def test_each_row_has_the_command_that_resolves_it() -> None:
    """Approvals, files to write, what is parked and what failed stand in one list, work that waits for it first."""
    story = tell(
        "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/a\nended p/a\njudged p/a\nbegan p/b\n"
        "ended p/b: config no such program\nbegan p/c\nended p/c\njudged p/c\nreject p/c: not like this",
        settings(types={"spec": {"approve": True}}),
    )
    assert rows(story) == [
        ("approval", "p/a", "loopr approve p/a"),
        ("parked", "p/b", "loopr reset p/b"),
        ("failed", "p/c", "loopr retry p/c"),
    ]
    assert all(each.stops for each in inbox(story.forest))


def test_files_that_nobody_is_set_to_write() -> None:
    """A loop without a command is awaited once all else is open, with its file; one whose turn is not yet is not."""
    story = tell("plan p: a; b needs a", settings("code"))
    (call,) = inbox(story.forest)
    assert (call.kind, call.about) == ("file", ("p/a",))
    assert call.command == "mkdir -p specs/p/a && ${EDITOR:-vi} specs/p/a/spec.md"


def test_a_file_that_keeps_a_loop_from_completing() -> None:
    """A person's file waits for a word where its loop is to be made anew."""
    story = tell("plan p: a\ndrop p/a: b\nplan p: a (c)", settings(""))
    (call,) = [each for each in inbox(story.forest) if each.kind == "offered"]
    assert (call.about, call.command, call.stops) == (("p/a",), "loopr approve p/a --file", True)
    assert "is not loopr's" in call.words and "reject" not in call.words
    go_on(story, "reject-file p/a: b")
    assert [each for each in inbox(story.forest) if each.kind == "offered"] == []


def test_what_is_alike_is_one_row() -> None:
    """Loops of a plan that are parked for the same reason stand together; many are meant by what is above them."""
    names = [f"p/{each}" for each in "abcdef"]
    parked = "\n".join(f"began {each}\nended {each}: config no such program" for each in names)
    story = tell(f"plan p: a; b; c; d; e; f\nchoose {', '.join(names)}\n{parked}", settings(max_loops=9))
    assert rows(story) == [("parked", " ".join(names), "loopr reset p")]
    assert inbox(story.forest)[0].words == "no such program"


def test_what_changes_no_exit_code_is_told_all_the_same() -> None:
    """Plans that are not home and settings that are held back stop nothing."""
    story = tell("plan p: a")
    found = inbox(story.forest, Beside(("p",), "settings are held back: types.code.check"))
    assert found == [
        Call("home", ("p",), "it is done, and not brought home", "loopr land p", False),
        Call("settings", (), "settings are held back: types.code.check", "loopr config accept", False),
    ]


@hypothesis_settings(suppress_health_check=list(HealthCheck))
@given(policies(), HAPPENINGS)
def test_the_list_and_the_exit_code_agree(policy: Policy, happenings: list) -> None:  # type: ignore[type-arg]
    """No loop stands in a row that stops work and is done; whatever is stuck or awaits a word stands in a row."""
    story = begin(policy)
    for step, number in happenings:
        step(story, number)
    calls = inbox(story.forest)
    for call in calls:
        for name in call.about if call.stops else ():
            assert standing(story.forest, [name], story.now) is not Standing.DONE, call
    listed = {name for call in calls if call.stops for name in call.about}
    for status in (Status.PARKED, Status.FAILED, Status.AWAITING):
        assert set(story.forest.tree.by_status[status]) <= listed


def test_a_redo_that_a_pause_or_a_budget_keeps() -> None:
    """Work to be done again that only a person sets going is told of; a mere turn to wait for is not."""
    free = tell("plan p: a\nchoose p/a\nfinish p/a\nredo p/a: a word", TWO_LEVELS)
    assert free.forest.tree.redoing and kept(free) == []
    story = Story(TWO_LEVELS)
    artifact = outline("a", "p", budget=Budget(tokens=7))
    story.see(o.PlanOffered("p", artifact, digest_of("a"), "p.md"))
    go_on(story, "choose p/a\nbegan p/a\nused p/a 9 tokens 20s\nended p/a\njudged p/a\nlanded p/a\nredo p/a: a word")
    assert kept(story) == ["p/a to be done again; the tokens budget of plan p is reached"]
    go_on(story, "pause p/a: lunch")
    assert kept(story) == ["p/a to be done again; it is paused by ada: lunch; `loopr resume p/a`"]


def kept(story: Story) -> list[str]:
    """Return the rows in words at the instant of the story."""
    found = inbox(story.forest, Beside(now=story.now))
    return [f"{' '.join(each.about)} {each.words}" for each in found]
