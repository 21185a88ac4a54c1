"""When equal answers end a loop: the same answer to the same work, many equal answers, and who takes over before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core.answers import MOST_KEPT
from loopr.core.codec import decode, encode
from loopr.core.events import LeaseGranted
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Status
from loopr.core.policy import Policy, Retry, Step, decode_policy, encode_policy
from tests.core.stories import Story, go_on, settings, tell

LANDING = "choose p/a\nbegan p/a\nended p/a\njudged p/a"


def begun(policy: Policy | None = None) -> Story:
    """Begin a story with one loop."""
    story = Story(policy)
    go_on(story, "plan p: a")
    return story


def no(story: Story, words: str) -> str:
    """Let `p/a` be refused once more, and say how it stands."""
    go_on(story, f"choose p/a\nbegan p/a\nended p/a: refused {words}")
    return str(story["p/a"].status)


def patient(**numbers: Any) -> Policy:
    """Return settings with other limits of patience."""
    return settings(retry=replace(settings().retry, **numbers))


def escalating(*agents: str, after: int = 50, **numbers: Any) -> Policy:
    """Return settings under which the second agent takes over from the first after so many refusals."""
    own: dict[str, Any] = {"agent": agents[0], "lanes": (agents[0],)}
    own |= {"escalate": {"refused": Step(after, agents[1])}} if len(agents) > 1 else {}
    return settings(types={"spec": own}, **numbers)


def workers(story: Story) -> list[str]:
    """List who was granted leases."""
    return [event.agent for event, _ in story.log if isinstance(event, LeaseGranted)]


def test_the_same_answer_to_the_same_work_is_no_progress() -> None:
    """Three of these fail the loop; the cause is said first, and the setting."""
    story = begun()
    assert [no(story, "exit 1 sig=s work=w") for _ in range(3)] == ["pending", "pending", "failed"]
    assert story["p/a"].reason == "exit 1, 3 times, nothing changed (retry.no_progress)"
    story.verify()


def test_the_same_answer_to_other_work_is_progress() -> None:
    """Nine equal answers to nine works go on; the tenth in a row is one too many, whatever the work."""
    story = begun()
    assert {no(story, f"exit 1 sig=s work=w{each}") for each in range(9)} == {"pending"}
    assert no(story, "exit 1 sig=s work=w9") == "failed"
    assert story["p/a"].reason == "exit 1, 10 times in a row (retry.same_answer)"
    story.verify()


def test_work_that_was_there_before_counts_as_the_same() -> None:
    """To go back and forth between two works is no progress, nor between two answers."""
    story = begun()
    said = [no(story, f"exit 1 sig={sig} work={work}") for sig, work in zip("ststs", "vwvwv", strict=True)]
    assert said == ["pending"] * 4 + ["failed"]
    story.verify()
    story = begun()
    assert [no(story, f"exit 1 sig=s work={work}") for work in "vwvwv"] == ["pending"] * 4 + ["failed"]


def test_another_answer_to_the_same_work_is_another_answer() -> None:
    """Three different answers to one work are no proof of standing still."""
    story = begun()
    assert {no(story, f"exit 1 sig={sig} work=w") for sig in "rstrst"} == {"pending"}


def test_without_a_work_only_many_equal_answers_count() -> None:
    """Where nothing tells what has been done, as without git, only answers count; another one begins their row anew."""
    story = begun()
    assert {no(story, "exit 1 sig=s") for _ in range(9)} == {"pending"}
    assert no(story, "exit 1 sig=t") == "pending"
    assert {no(story, "exit 1 sig=s") for _ in range(9)} == {"pending"}
    assert no(story, "exit 1 sig=s") == "failed"
    story.verify()


def test_an_answer_without_words_takes_twice_as_many() -> None:
    """A quiet check says little: nineteen times go on; to the same work three are enough all the same."""
    story = begun()
    assert {no(story, f"exit 1 sig=s work=w{each} said=nothing") for each in range(19)} == {"pending"}
    assert no(story, "exit 1 sig=s work=w19 said=nothing") == "failed"
    story = begun()
    assert [no(story, "exit 1 sig=s work=w said=nothing") for _ in range(3)][-1] == "failed"


@pytest.mark.parametrize("work", ["", " work=w"])
def test_an_answer_that_bears_no_mark_equals_none(work: str) -> None:
    """Where nothing tells one answer from another, neither equal work nor their number ends a loop."""
    story = begun()
    assert {no(story, f"exit 1{work}") for _ in range(25)} == {"pending"}
    assert (story["p/a"].repeats, story["p/a"].answers) == (1, ())
    story.verify()


@pytest.mark.parametrize("work", ["", " work=w"])
def test_both_may_be_switched_off(work: str) -> None:
    """Without either limit only iterations are used up; the settings are read back so."""
    policy = patient(no_progress=0, same_answer=None)
    assert decode_policy(encode_policy(policy)) == policy
    story = begun(policy)
    assert {no(story, f"exit 1 sig=s{work}") for _ in range(25)} == {"pending"}


def test_settings_from_before_have_a_limit_on_equal_answers() -> None:
    """A policy that a journal from before holds is read with the default."""
    data = encode_policy(Policy())
    del data["retry"]["same_answer"]
    assert decode_policy(data).retry == Retry()


def test_what_is_remembered_of_answers_has_a_bound() -> None:
    """A loop that does something else each time remembers the last of it."""
    retry = replace(settings().retry, same_answer=None, no_progress=2)
    story = begun(settings(types={"spec": {"max_iterations": 100}}, retry=retry))
    assert {no(story, f"exit 1 sig=s work=w{each}") for each in range(MOST_KEPT + 5)} == {"pending"}
    assert len(story["p/a"].answers) == MOST_KEPT
    assert no(story, "exit 1 sig=s work=w0") == "pending"
    assert no(story, "exit 1 sig=s work=w20") == "failed"
    story.verify()


def test_an_answer_that_comes_again_takes_one_place() -> None:
    """However often two answers come in turn, both are remembered once, and so is what came before them."""
    story = begun(settings(types={"spec": {"max_iterations": 200}}, retry=patient(no_progress=90).retry))
    assert no(story, "exit 1 sig=s work=w0") == "pending"
    assert {no(story, f"exit 1 sig={sig} work={sig}") for sig in "st" * MOST_KEPT} == {"pending"}
    assert [times for _, times in story["p/a"].answers] == [1, MOST_KEPT, MOST_KEPT]
    story.verify()


@pytest.mark.parametrize("wish", ["retry", "renew"])
def test_a_person_begins_the_counting_anew(wish: str) -> None:
    """After a person's word all is counted from the beginning."""
    story = begun()
    for _ in range(3):
        no(story, "exit 1 sig=s work=w")
    go_on(story, f"{wish} p/a")
    assert [no(story, "exit 1 sig=s work=w") for _ in range(3)] == ["pending", "pending", "failed"]
    story.verify()


# --- who takes over ---------------------------------------------------------------------------------------------------


def test_another_agent_takes_over_before_a_loop_fails() -> None:
    """Below its number of refusals, at once; the event says so, and its counts begin anew."""
    story = begun(escalating("small", "big"))
    assert [no(story, "exit 1 sig=s work=w") for _ in range(3)] == ["pending"] * 3
    assert story["p/a"].reason == "exit 1, 3 times, nothing changed (retry.no_progress): big takes over"
    assert [event.takes_over for event, _ in story.log if isinstance(event, Refused)] == ["", "", "big"]
    assert [no(story, "exit 1 sig=s work=w") for _ in range(3)] == ["pending", "pending", "failed"]
    assert workers(story) == ["small"] * 3 + ["big"] * 3
    assert story["p/a"].iteration == 6
    story.verify()


def test_equal_answers_begin_anew_with_each_agent() -> None:
    """Ten to the first, ten to the second, and then it has failed."""
    story = begun(escalating("small", "big"))
    said = [no(story, f"exit 1 sig=s work=w{each}") for each in range(20)]
    assert said == ["pending"] * 19 + ["failed"]
    assert workers(story) == ["small"] * 10 + ["big"] * 10


def test_the_number_of_refusals_counts_as_before() -> None:
    """An agent whose number is full takes over as ever, and nobody is said to do so early."""
    story = begun(escalating("small", "big", after=3))
    assert [no(story, "exit 1 sig=s work=w") for _ in range(6)] == ["pending"] * 5 + ["failed"]
    assert workers(story) == ["small"] * 3 + ["big"] * 3
    assert not any(event.takes_over for event, _ in story.log if isinstance(event, Refused))


def test_iterations_do_not_begin_anew() -> None:
    """The last iteration is the last, whoever works in it."""
    types = {"spec": {"agent": "small", "escalate": {"refused": Step(50, "big")}, "max_iterations": 4}}
    story = begun(settings(types=types))
    assert [no(story, "exit 1 sig=s work=w") for _ in range(4)] == ["pending"] * 3 + ["failed"]
    assert story["p/a"].reason.startswith("refused 4 times, its limit")


def test_nobody_takes_over_from_whoever_stands_still_already() -> None:
    """An escalation to the very agent that works is none."""
    story = begun(escalating("small", "small"))
    assert [no(story, "exit 1 sig=s work=w") for _ in range(3)][-1] == "failed"


@pytest.mark.parametrize(("wish", "agent"), [("retry", "small"), ("reset", "big")])
def test_whoever_took_over_early_keeps_it(wish: str, agent: str) -> None:
    """`retry` begins with the first agent again, `reset` goes on with the one that took over."""
    story = begun(escalating("small", "big"))
    for _ in range(3):
        no(story, "exit 1 sig=s work=w")
    go_on(story, f"choose p/a\nbegan p/a\nended p/a: config x\n{wish} p/a\nchoose p/a")
    assert workers(story)[-1] == agent
    story.verify()


# --- conflicts --------------------------------------------------------------------------------------------------------


def conflict(story: Story, tip: str) -> tuple[str, int, int]:
    """Let `p/a` come into conflict with a tip of its plan, and say how it stands, with its counts."""
    go_on(story, f"{LANDING}\nlanded p/a: conflict both sig=c work=w tip={tip}")
    return str(story["p/a"].status), story["p/a"].conflicts, story["p/a"].iteration


def test_a_conflict_with_another_tip_is_no_answer() -> None:
    """It is an iteration, and neither one of `max_conflicts` nor an answer; a second with the same tip is both."""
    story = begun()
    assert conflict(story, "t1") == ("pending", 1, 2)
    assert [conflict(story, f"t{each}") for each in (2, 3, 4)] == [("pending", 1, each) for each in (3, 4, 5)]
    assert story["p/a"].repeats == 1
    assert conflict(story, "t4") == ("parked", 2, 6)
    assert story["p/a"].reason == "max_conflicts: 2 conflicts while landing: both"
    story.verify()


def test_a_conflict_without_a_tip_forgets_no_tip() -> None:
    """One of which nothing says where the plan stood counts, and the next with another tip than the last does not."""
    story = begun(patient(max_conflicts=3))
    said = [conflict(story, tip)[:2] for tip in ("t1", "", "t2")]
    assert said == [("pending", 1), ("pending", 2), ("pending", 2)]


def test_a_conflict_between_two_answers_leaves_their_row() -> None:
    """What another landed meanwhile takes nothing from the row of equal answers."""
    story = begun(patient(same_answer=3))
    conflict(story, "t1")
    assert [no(story, "exit 1 sig=s"), no(story, "exit 1 sig=s")] == ["pending"] * 2
    conflict(story, "t2")
    assert no(story, "exit 1 sig=s") == "failed"


def test_a_conflict_with_another_tip_ends_nobody() -> None:
    """Also not where the agent before had so many equal answers that another has taken over."""
    story = begun(escalating("small", "big", after=50))
    conflict(story, "t1")
    assert {no(story, f"exit 1 sig=s work=w{each}") for each in range(10)} == {"pending"}
    assert conflict(story, "t2")[0] == "pending"
    assert workers(story)[-1] == "big"


def test_a_conflict_uses_up_an_iteration() -> None:
    """Also one that counts as nothing else is the last in the last iteration."""
    story = begun(settings(types={"spec": {"max_iterations": 2}}))
    conflict(story, "t1")
    assert conflict(story, "t2")[0] == "failed"


# --- journals from before ---------------------------------------------------------------------------------------------


def test_events_from_before_are_read_as_before() -> None:
    """An event that says nothing of the work is one with an equal answer, and its end stands."""
    data = '{"loop":"p/a","attempt":1,"to":"failed","signature":"s","reason":"x"}'
    refused = Refused("p/a", 1, Status.FAILED, "s", "x")
    assert decode("refused", 1, data) == refused == decode(*encode(refused))
    assert decode("conflicted", 1, data) == Conflicted("p/a", 1, Status.FAILED, "s", "x")


def test_a_row_of_answers_from_before_goes_on() -> None:
    """What a journal from before has counted counts on."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a", patient(same_answer=3))
    story.forest.apply(Refused("p/a", 1, Status.PENDING, "s", "no"), story.now)
    go_on(story, "choose p/a\nbegan p/a")
    story.forest.apply(Refused("p/a", 2, Status.PENDING, "s", "no"), story.now)
    assert story["p/a"].repeats == 2
    assert no(story, "exit 1 sig=s work=w") == "failed"
