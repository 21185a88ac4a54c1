"""Who is next: the score with its parts, and the order that is kept without sorting."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core import ranking, scoring
from loopr.core.choose import choose
from loopr.core.events import LeaseGranted
from loopr.core.fairness import next_project
from loopr.core.forest import Forest
from loopr.core.gates import closed_gates, first_closed, group_ready_since, ready_since
from loopr.core.grouping import queue, queue_depth
from loopr.core.limits import pick_lane
from loopr.core.model import Loop
from loopr.core.policy import Policy, Priority
from loopr.core.scoring import Score, score
from loopr.core.settled import is_settled
from tests.core.outlines import digest_of, outline
from tests.core.stories import START, Story, go_on, settings, tell, whole
from tests.core.worlds import HAPPENINGS, begin, policies

MINUTE = 60_000


def loop(type_name: str, depth: int, iteration: int = 1, created: int = START) -> Loop:
    """Make a loop to be scored."""
    return Loop("x", type_name, "x", None, 0, depth, "default", iteration=iteration, created=created)


def total(each: Loop, minutes: float = 0, policy: Policy | None = None) -> int:
    """Return the score of a loop so many minutes after its creation."""
    return score(policy or Policy(), each, START + int(minutes * MINUTE), 0).total


@pytest.mark.parametrize(
    ("each", "minutes", "expected"),
    [(loop("code", 3), 5, 135), (loop("phase", 2), 30, 130), (loop("code", 3, 5), 1, 111)],
)
def test_the_worked_examples_hold(each: Loop, minutes: int, expected: int) -> None:
    """The three worked examples have the scores 135, 130 and 111."""
    assert total(each, minutes) == expected


def test_the_worked_examples_come_in_their_order() -> None:
    """A round grants the three loops of the worked examples in the order 135, 130, 111."""
    story = Story()
    go_on(story, "plan p: a (b)\nplan q: a (b (c))\nplan r: a (b (c))\nsettle")
    change: dict[str, dict[str, Any]] = {
        "q/a/b/c": {"created": story.now - 5 * MINUTE},
        "p/a/b": {"created": story.now - 30 * MINUTE},
        "r/a/b/c": {"created": story.now - MINUTE, "iteration": 5},
    }
    forest = Forest(story.forest.policy)
    rows = [each._replace(**change.get(each.id, {})) for each in story.forest.loops.values()]
    for each in sorted(rows, key=lambda row: row.depth):
        forest.tree.put(each)
    forest.advance(story.now)
    forest.reindex()
    assert granted(forest, story.now) == ["q/a/b/c", "p/a/b", "r/a/b/c"]


def test_what_is_deep_goes_before_what_is_broad() -> None:
    """Twenty loops just below their plans wait for one below three ancestors, of equal age and with equal bases."""
    story = Story(settings(max_loops=1, priority=Priority(base={})))
    broad = "\n".join(f"plan a{number}: x" for number in range(20))
    go_on(story, f"{broad}\nplan z: a (b (c))\nsettle")
    assert story.choose() == ["z/a/b/c"]
    go_on(story, "ended z/a/b/c: config no")
    assert story.choose() == ["a0/x"]


def granted(forest: Forest, now: int) -> list[str]:
    """Play a round on a forest and return who was granted a lease."""
    found = []
    for event in choose(forest, now):
        forest.apply(event, now)
        if isinstance(event, LeaseGranted):
            found.append(event.loop)
    return found


@pytest.mark.parametrize(
    ("minutes", "boost"), [(0, 0), (0.999, 0), (1, 1), (49.99, 49), (50, 50), (51, 50), (9999, 50)]
)
def test_age_counts_whole_minutes_up_to_its_cap(minutes: float, boost: int) -> None:
    """Age is worth a point for each whole minute, and no more than the cap."""
    assert score(Policy(), loop("spec", 1), START + int(minutes * MINUTE), 0).age == boost


@pytest.mark.parametrize(("iteration", "penalty"), [(1, 0), (2, 5), (6, 25), (7, 30), (8, 30), (99, 30)])
def test_retries_cost_up_to_a_cap(iteration: int, penalty: int) -> None:
    """Each iteration after the first costs five points, and no more than thirty."""
    assert score(Policy(), loop("code", 3, iteration), START, 0).retry == penalty


@pytest.mark.parametrize(("depth", "boost"), [(0, 0), (1, 10), (3, 30), (8, 80)])
def test_depth_is_the_number_of_ancestors(depth: int, boost: int) -> None:
    """Each ancestor is worth ten points."""
    assert score(Policy(), loop("code", depth), START, 0) == Score(100 + boost, 100, 0, boost, 0, 0)


def test_a_clock_before_the_creation_is_no_age() -> None:
    """A loop that seems to come from the future has no age, rather than a negative one."""
    assert total(loop("code", 0), -5) == 100


def test_terms_of_zero_switch_a_part_off() -> None:
    """Boosts and penalties of zero leave the base alone."""
    flat = Policy(priority=Priority({"code": 7}, 0, 0, 0, 0, 0))
    assert total(loop("code", 5, 9), 500, flat) == 7
    assert total(loop("plan", 5, 9), 500, flat) == 0


def test_equal_scores_are_first_come_first_served() -> None:
    """Of loops with one score the older goes first, then the one that comes first in the outline, then the id."""
    tell(
        """
        plan p: z; y; x
        wait 10ms
        plan o: b; a
        choose p/z
        lost p/z
        choose p/z
        lost p/z
        plan p: y; z; x
        dispatch o/a
        choose o/a
        """,
        settings(max_loops=1, priority=Priority(age_boost_per_minute=0)),
    )
    tell("plan p: z; y; x\nwait 10ms\nplan o: b; a\nchoose p/z, p/y, p/x, o/b, o/a")


@pytest.mark.parametrize("order", list(itertools.permutations(["p", "q", "r"])))
def test_insertion_order_decides_nothing(order: tuple[str, ...]) -> None:
    """Plans that arrive in another order in the same instant are chosen in the same order."""
    story = Story()
    for plan in order:
        go_on(story, f"plan {plan}: b; a")
    assert story.choose() == ["p/b", "p/a", "q/b", "q/a", "r/b", "r/a"]


def test_a_loop_that_left_and_came_back_stands_where_it_stood() -> None:
    """Pausing and resuming a loop does not change its place among equals."""
    tell("plan p: a; b; c\npause p/a\nresume p/a\npause p/b\nchoose p/a, p/c\nresume p/b\nchoose p/b")


def test_a_place_in_the_outline_takes_effect_at_once() -> None:
    """Loops that change places in their outline change places in the queue."""
    tell("plan p: a (k); b (l)\nsettle\nplan p: b (l); a (k) # again\nchoose p/b/l, p/a/k")


def test_more_iterations_mean_later() -> None:
    """A loop that was refused goes behind its fresh siblings."""
    tell("plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a: refused no\nlost p/b\nchoose p/b, p/a")


def test_a_loop_that_starves_goes_ahead_of_every_score() -> None:
    """A spec that has been ready for an hour beside endless fresh code gets its turn, and not a millisecond earlier."""
    story = Story(settings(max_loops=1))
    go_on(story, "plan p: a\nplan q: b (k (x))\nsettle")
    assert story.choose() == ["q/b/k/x"]
    story.now += 3_599_999
    assert turn(story, "q/b/k/x") == ["q/b/k/x"]
    story.now += 1
    assert turn(story, "q/b/k/x") == ["p/a"]
    story.verify()


def turn(story: Story, running: str) -> list[str]:
    """Give a slot back and play a round, in which that loop is as fresh as ever."""
    go_on(story, f"began {running}\nended {running}: refused no")
    return story.choose()


def test_the_longest_wait_starves_first() -> None:
    """Of several that starve, whoever has been ready longest goes first, whatever the scores."""
    story = Story(settings(max_loops=1, starvation_ms=600_000))
    go_on(story, "plan p: b (k (x))\nsettle\nchoose p/b/k/x\nplan q: z")
    story.now += 1000
    go_on(story, "plan r: a (l)\nsettle")
    story.now += 600_000
    assert turn(story, "p/b/k/x") == ["q/z"]
    go_on(story, "ended q/z: config no")
    assert story.choose() == ["r/a/l"]


@pytest.mark.parametrize(
    "again",
    [
        "pause q/z\nresume q/z",
        "pause project:default\nresume project:default",
        "pause workspace\nresume workspace",
        "gone-file q\ndrop q: z",
        "engine begins",
        "pause q\nresume q",
        "clear q/z\nresume q/z",
    ],
)
def test_ready_since_begins_again(again: str) -> None:
    """Whoever was held, had no input or no engine, is ready only since that was mended."""
    story = Story(settings(max_loops=1, starvation_ms=600_000))
    go_on(story, "plan p: b (k (x))\nsettle\nchoose p/b/k/x\nplan q: z\nwait 5m")
    go_on(story, again)
    story.now += 300_000
    assert turn(story, "p/b/k/x") == ["p/b/k/x"]
    story.now += 300_000
    assert turn(story, "p/b/k/x") == ["q/z"]


def test_starvation_off_leaves_the_score_alone() -> None:
    """With `starvation_secs` 0 the score alone decides, for ever."""
    story = Story(settings(max_loops=1, starvation_ms=0))
    go_on(story, "plan p: b (k (x))\nsettle\nchoose p/b/k/x\nplan q: z\nwait 1d")
    assert turn(story, "p/b/k/x") == ["p/b/k/x"]


# --- priority --------------------------------------------------------------------------------------------------------


def first_of(text: str, policy: Policy | None = None) -> list[str]:
    """Play a story with one slot, and return who gets it."""
    story = tell(text, policy or settings(max_loops=1))
    return story.choose()


def test_a_priority_is_a_term_of_the_score() -> None:
    """It is added as it stands, above and below 0."""
    plain = score(Policy(), loop("code", 3), START, 0)
    for number in (-1000, -1, 7, 1000):
        assert score(Policy(), loop("code", 3), START, number) == plain._replace(
            total=plain.total + number, priority=number
        )
    assert first_of("plan p: a; b; c priority 1") == ["p/c"]
    assert first_of("plan p: a priority -1; b") == ["p/b"]


def offer(plan: str, text: str, priority: int | None, project: str = "default") -> o.PlanOffered:
    """Start a plan whose front matter has a priority."""
    artifact = replace(outline(text, plan), priority=priority, project=project)
    return o.PlanOffered(plan, artifact, digest_of(f"{priority} {text}"), f"{plan}.md", "main", "b0")


def test_the_nearest_priority_counts() -> None:
    """An entry's own goes before that of those above it, the nearest of these before the plan's; 0 is one too."""
    story = tell("plan q: z")
    story.see(offer("p", "a priority 5 (k (x; y priority 0)); b (l (m)); c priority -2", 3))
    go_on(story, "settle")
    found = {each.id: story.forest.priority_of(each) for each in story.forest.loops.values()}
    assert found == {
        **{"q": 0, "q/z": 0, "p": 3, "p/a": 5, "p/a/k": 5, "p/a/k/x": 5, "p/a/k/y": 0},
        **{"p/b": 3, "p/b/l": 3, "p/b/l/m": 3, "p/c": -2},
    }
    story.verify()


def test_a_changed_priority_counts_at_once_for_all_below() -> None:
    """A plan or an entry that is changed moves all below it that says none, and nothing is done again."""
    story = tell("plan p: a (k)\nplan q: b (k)\nsettle", settings(max_loops=1))
    before = {each.id: (each.generation, each.identity) for each in story.forest.loops.values() if each.parent}
    go_on(story, "plan q: b priority 2 (k)")
    assert (whole(story.forest, story.now), story.choose()) == (None, ["q/b/k"])
    go_on(story, "lost q/b/k")
    story.see(offer("p", "a (k)", 3))
    assert story.choose() == ["p/a/k"]
    assert before == {each.id: (each.generation, each.identity) for each in story.forest.loops.values() if each.parent}
    story.verify()


def test_a_priority_passes_no_gate_and_no_project() -> None:
    """The highest waits for what it needs, and for its project's turn, as any other does."""
    assert first_of("plan p: a; b priority 1000 needs a") == ["p/a"]
    story = tell("plan p: a; b", settings(max_loops=2))
    story.see(offer("q", "c priority 1000; d", 1000, "other"))
    assert sorted(story.choose()) == ["p/a", "q/c"]


STARVES = settings(max_loops=1, starvation_ms=600_000)


def starving(outline_text: str, *waits: int) -> list[str]:
    """Fill the only slot, let plans with one loop each begin so many seconds apart, and see who is next in the end."""
    story = Story(STARVES)
    go_on(story, f"plan p: b (k (x))\nsettle\nchoose p/b/k/x\n{outline_text.splitlines()[0]}")
    for line, wait in itertools.zip_longest(outline_text.splitlines()[1:], waits, fillvalue=""):
        story.now += 1000 * int(wait)
        go_on(story, str(line))
    return turn(story, "p/b/k/x")


def test_among_the_starving_the_higher_goes_first() -> None:
    """Of those that starve the higher goes first, then the longest, until one has waited for twice as long."""
    assert starving("plan q: a\nplan r: b priority 3\nplan s: c priority 3", 1, 1, 600) == ["r/b"]
    assert starving("plan q: a\nplan r: b priority 3", 1, 1198) == ["r/b"]
    assert starving("plan q: a\nplan r: b priority 3", 1, 1199) == ["q/a"]


def test_what_is_higher_and_starves_not_yet_comes_later() -> None:
    """A higher one that has not waited for so long leaves the turn to one that has, for all its score."""
    assert starving("plan q: a\nplan r: b priority 999", 600, 0) == ["q/a"]


def test_what_is_below_0_never_starves_its_betters() -> None:
    """However long it waits: whatever has more goes first while it is ready; among its like it has its turn."""
    assert starving("plan q: a priority -1", 90_000) == ["p/b/k/x"]
    assert starving("plan q: a priority -1\nplan r: b priority -2", 1, 90_000) == ["p/b/k/x"]
    assert starving("plan q: a priority -1\nplan r: b", 90_000, 600) == ["r/b"]
    story = Story(STARVES)
    go_on(story, "plan p: b priority -2 (k (x))\nsettle\nchoose p/b/k/x\nplan q: a priority -2\nplan r: c priority -3")
    story.now += 90_000_000
    assert turn(story, "p/b/k/x") == ["q/a"]
    go_on(story, "ended q/a: config no")
    assert story.choose() == ["p/b/k/x"], "-3 never goes ahead of -2 by waiting"


def test_a_pick_among_thousands_of_priorities_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is so far behind that age lifts nobody over the best is not looked at."""
    story = tell("\n".join(f"plan p{n}: a priority {n - 1000}" for n in range(0, 2001, 4)), settings(max_loops=1))
    asked = list[int]()

    def counting(policy: Policy, created: int, now: int) -> int:
        asked.append(created)
        return scoring.age_boost(policy, created, now)

    monkeypatch.setattr(ranking, "age_boost", counting)
    assert story.choose() == ["p2000/a"]
    assert len(asked) < 60


# --- dispatch and pace -----------------------------------------------------------------------------------------------


def test_dispatch_goes_ahead_of_everything_but_the_gates() -> None:
    """What a person dispatches goes next, in the order given, ahead of every score, and past no gate."""
    tell(
        """
        plan p: a; b; c; d needs a
        plan q: b (k (x))
        settle
        dispatch p/d, p/c, p/b
        choose p/c
        lost p/c
        choose p/b
        lost p/b
        choose q/b/k/x
        """,
        settings(max_loops=1),
    )


def test_dispatch_twice_puts_the_later_wish_first() -> None:
    """A second dispatch goes ahead of the first, and the same one again changes nothing."""
    tell(
        "plan p: a; b; c\ndispatch p/b\nignores dispatch p/b\ndispatch p/c\nchoose p/c\nlost p/c\nchoose p/b",
        settings(max_loops=1),
    )


def test_a_batch_cuts_a_round_short() -> None:
    """A round grants at most `batch_size`, and the next comes after the longer of the two delays."""
    policy = settings(batch_size=2, spawn_delay_ms=3_000, poll_interval_ms=1_000)
    tell(
        """
        plan p: a; b; c; d; e
        choose p/a, p/b
        choose nobody
        wait 2999ms
        choose nobody
        wait 1ms
        choose p/c, p/d
        wait 3s
        choose p/e
        """,
        policy,
    )
    exact = tell("plan p: a; b\nchoose p/a, p/b\nplan p: a; b; c", policy)
    assert exact.choose() == ["p/c"]


def test_the_pace_is_a_gate() -> None:
    """What a cut round left says until when it waits, counts as waiting for a slot, and is not settled."""
    story = tell("plan p: a; b; c\nchoose p/a", settings(batch_size=1, spawn_delay_ms=20_000))
    assert [(each.gate, each.until) for each in closed_gates(story.forest, story["p/b"], story.now)] == [
        ("pace", story.now + 20_000)
    ]
    assert queue_depth(story.forest, story.now) == {"spec": 2}
    go_on(story, "dispatch p/c\nwait 19999ms\nwhy p/c: pace\nchoose nobody\nbegan p/a\nended p/a: infra died")
    assert not is_settled(story.forest, story.now)
    go_on(story, "wait 1ms\nwhy p/c: nothing\nchoose p/c\nwhy p/b: pace")


def test_the_pace_outlives_the_engine() -> None:
    """The next engine begins no round before the one that was due, however the last engine ended."""
    begun = "plan p: a; b\nengine begins\nchoose p/a\nwait 17s"
    for end in ("engine begins", "engine drains\nengine leaves\nengine begins"):
        tell(f"{begun}\n{end}\nchoose nobody\nwait 3s\nchoose p/b", settings(batch_size=1, spawn_delay_ms=20_000))


def test_the_pace_binds_no_pull_worker() -> None:
    """A worker takes what it asks for meanwhile, and the engine's next round comes no sooner for that."""
    tell(
        "plan p: a; b; c\nchoose p/a\ntake ada: p/b\nchoose nobody\nwait 20s\nchoose p/c",
        settings(batch_size=1, spawn_delay_ms=20_000),
    )


def test_without_a_batch_there_is_no_pace() -> None:
    """Whoever takes the size of a batch away opens the gate at once."""
    story = tell("plan p: a; b\nchoose p/a", settings(batch_size=1, spawn_delay_ms=20_000))
    story.see(o.PolicySeen(settings(batch_size=0, spawn_delay_ms=20_000)))
    assert story.choose() == ["p/b"]


# --- the incremental order is the sorted one -------------------------------------------------------------------------


def full_score(forest: Forest, each: Loop, now: int) -> int:
    """Compute the score as the specification writes it."""
    terms = forest.policy.priority
    age = min(terms.age_boost_max, terms.age_boost_per_minute * (max(0, now - each.created) // MINUTE))
    penalty = min(terms.retry_penalty_max, terms.retry_penalty_per_iteration * (each.iteration - 1))
    depth = terms.depth_boost_per_level * each.depth
    return terms.base.get(each.type, 0) + age + depth - penalty + priority_of(forest, each)


def priority_of(forest: Forest, each: Loop) -> int:
    """Say which priority a loop has: its own, else that of the nearest above it."""
    names = each.id.split("/")
    above = (forest.loops["/".join(names[:length])].priority for length in range(len(names), 0, -1))
    return next((said for said in above if said is not None), 0)


def gives_way(forest: Forest, each: Loop, loops: list[Loop], now: int) -> bool:
    """Say whether a loop has asked a lane in vain that has not worked since, more often than another that wants it."""
    if not each.in_vain or not forest.shared.lane(each.vain_on).hits:
        return False
    lane = pick_lane(forest, each, now)

    def count(other: Loop) -> int:
        """Count how often a loop has asked that lane in vain."""
        return other.in_vain if other.vain_on == lane else 0

    return any(count(other) < count(each) for other in loops if pick_lane(forest, other, now) == lane)


def sorted_next(forest: Forest, now: int) -> str | None:
    """Find the next loop by looking at every gate of every loop and sorting all that are left."""
    loops = [each for each in forest.loops.values() if first_closed(forest, each, now) is None]
    if not loops:
        return None
    for dispatched in forest.shared.dispatch:
        if any(each.id == dispatched for each in loops):
            return dispatched
    loops = [each for each in loops if not gives_way(forest, each, loops, now)]
    project = next_project(forest, sorted({each.project for each in loops}), now)
    loops = [each for each in loops if each.project == project]
    if mending := [each for each in loops if each.clash.number]:
        return min(mending, key=lambda each: each.clash.number).id
    since = {each.id: max(ready_since(forest, each), group_ready_since(forest, each)) for each in loops}
    limit = forest.policy.starvation_ms
    said = {each.id: priority_of(forest, each) for each in loops}
    least = max(said.values()) if max(said.values()) < 0 else 0
    starving = [each for each in loops if limit and since[each.id] <= now - limit and said[each.id] >= least]
    if starving:
        overdue = {each.id: since[each.id] <= now - 2 * limit for each in starving}

        def rank(each: Loop) -> tuple[object, ...]:
            """Say in which order those that starve go."""
            tail = since[each.id], each.created, forest.tree.order(each), each.id
            return (False, 0, *tail) if overdue[each.id] else (True, -said[each.id], *tail)

        return min(starving, key=rank).id
    return min(
        loops, key=lambda each: (-full_score(forest, each, now), each.created, forest.tree.order(each), each.id)
    ).id


def compare_round(story: Story) -> None:
    """Play a round and compare every grant with what sorting everything finds at that instant."""
    batch, count = story.forest.policy.batch_size, 0
    paced = story.now < story.forest.shared.paced_until()
    expected = None
    events = []
    for event in choose(story.forest, story.now):
        if isinstance(event, LeaseGranted):
            expected = sorted_next(story.forest, story.now)
            assert event.loop == expected
            count += 1
        story.forest.apply(event, story.now)
        events.append(event)
    if not paced and not (batch and count >= batch):
        assert sorted_next(story.forest, story.now) is None
    story.wish(())  # writes the rows down
    story.log += [(event, story.now) for event in events]


@hypothesis_settings(suppress_health_check=list(HealthCheck))
@given(policies(), HAPPENINGS)
def test_the_incremental_order_is_the_sorted_one(policy: Policy, happenings: list) -> None:  # type: ignore[type-arg]
    """Whatever happened before, each grant is what sorting every loop without a closed gate finds at that instant."""
    story = begin(policy)
    for step, number in happenings:
        step(story, number)
        whole(story.forest, story.now)
    compare_round(story)


@hypothesis_settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(policies(), HAPPENINGS)
def test_whatever_happens_the_three_forests_agree(policy: Policy, happenings: list) -> None:  # type: ignore[type-arg]
    """Living, replaying the events and starting from the rows lead to the same forest and the same decisions."""
    story = begin(policy)
    for step, number in happenings:
        step(story, number)
    story.verify()


@hypothesis_settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(policies(), HAPPENINGS, st.sampled_from([-86_400_000, -3_600_000, -1, 5_000]))
def test_a_clock_that_moves_takes_everything_along(policy: Policy, happenings: list, by_ms: int) -> None:  # type: ignore[type-arg]
    """After the clock was set back, rows and replay still agree, and nobody is let out of its backoff too early."""
    story = begin(policy)
    for step, number in happenings:
        step(story, number)
    story.now += by_ms
    story.see(o.ClockBehind(-by_ms))
    story.verify()
    compare_round(story)


def test_a_policy_that_changes_the_terms_changes_the_order() -> None:
    """A new policy ranks what waits already by its own terms."""
    story = Story(settings(max_loops=1))
    go_on(story, "plan p: a\nplan q: b (k)\nsettle")
    terms = replace(Priority(), base={"plan": 0, "spec": 500, "phase": 0, "code": 0})
    story.see(o.PolicySeen(settings(max_loops=1, priority=terms)))
    assert story.choose() == ["p/a"]
    story.verify()


def test_two_digests_of_one_outline_are_two_files() -> None:
    """The shorthand of these tests can say the same in two different files."""
    assert digest_of("a; b") != digest_of("a; b # again")
    assert outline("a; b").entries == outline("a; b # again").entries


def test_an_instant_that_has_passed_is_kept() -> None:
    """What is asked between two events is asked of the later instant, and time never goes back by itself."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a: infra x")
    at = story.forest.at
    story.forest.advance(at + 60_000)
    assert (story.forest.at, queue(story.forest, story.forest.at).ready) == (at + 60_000, 1)
    story.forest.advance(at)
    assert story.forest.at == at + 60_000
