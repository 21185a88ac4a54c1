"""Fair share: which project gets the next slot, in exact fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core.fairness import next_project, ratios_of, usage_of
from loopr.core.model import Usage
from loopr.core.policy import ProjectPolicy
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings


def start(story: Story, plan: str, children: int, project: str | None = None) -> None:
    """Start a plan of a project with so many specs."""
    text = "; ".join(f"s{number:03}" for number in range(children))
    artifact = outline(text, plan, project=project or plan)
    story.see(o.PlanOffered(plan, artifact, digest_of(text), f"{plan}.md"))


def weights(**given_weights: float) -> dict[str, ProjectPolicy]:
    """Return projects with these weights, in this order."""
    return {name: ProjectPolicy(Fraction(str(weight))) for name, weight in given_weights.items()}


def spend(story: Story, loop_id: str, tokens: int | None, ms: int = 0, landed: bool = True) -> None:
    """Let a leased loop use so much and end, well or set aside."""
    attempt = story[loop_id].attempt
    story.see(
        o.AttemptBegan(loop_id, attempt),
        o.AttemptUsed(loop_id, attempt, Usage(tokens, None, ms)),
        o.AttemptEnded(loop_id, attempt),
        o.Judged(loop_id, attempt),
    )
    done = o.LandingDone(loop_id, attempt, "c0", f"d-{loop_id}", outline("x (y)"))
    trouble = o.LandingFailed(loop_id, attempt, o.Trouble("config", "enough"))  # type: ignore[arg-type]
    story.see(done if landed else trouble)
    if landed:
        go_on(story, f"cancel {loop_id}/x")


def used(story: Story, project: str, tokens: int) -> None:
    """Let a project have used so much, with a completion, in one attempt of a plan of its own."""
    start(story, f"{project}-past", 1, project)
    go_on(story, f"dispatch {project}-past/s000\nchoose {project}-past/s000")
    spend(story, f"{project}-past/s000", tokens)


def shares(story: Story, *names: str) -> dict[str, Fraction]:
    """Return how far each project is above its share."""
    return ratios_of(story.forest, names, story.now)


def test_the_project_furthest_below_its_share_is_next() -> None:
    """With weights 3 and 1 and a use of 1,000 and 500 the first project is next, at exactly -1/12 and +1/12."""
    story = Story(settings(projects=weights(a=3, b=1), max_loops=1))
    used(story, "a", 1000)
    used(story, "b", 500)
    start(story, "pa", 3, "a")
    start(story, "pb", 3, "b")
    assert shares(story, "a", "b") == {"a": Fraction(-1, 12), "b": Fraction(1, 12)}
    assert story.choose() == ["pa/s000"]
    story.verify()


def test_the_shares_converge() -> None:
    """Over 200 rounds of equal loops, weights 3 and 1 lead to 150 and 50 grants, within two loops."""
    story = Story(settings(projects=weights(a=3, b=1), max_loops=1))
    start(story, "a", 200)
    start(story, "b", 200)
    counted: Counter[str] = Counter()
    for number in range(200):
        story.now += 1000
        (chosen,) = story.choose()
        counted[chosen[0]] += 1
        spend(story, chosen, 100, landed=number < 2)
        if number >= 20:
            assert abs(counted["a"] - Fraction(3, 4) * (number + 1)) <= 2
    assert abs(counted["a"] - 150) <= 2


def test_two_equal_projects_share_one_round() -> None:
    """Two equal projects and four slots in one round get two slots each: grants of the round count at once."""
    story = Story(settings(projects=weights(a=1, b=1), max_loops=4))
    start(story, "a", 4)
    start(story, "b", 4)
    assert story.choose() == ["a/s000", "b/s000", "a/s001", "b/s001"]
    story.verify()


def test_weights_count_inside_of_one_round() -> None:
    """Weights 3 and 1 and eight slots in one round give six and two."""
    story = Story(settings(projects=weights(a=3, b=1), max_loops=8))
    start(story, "a", 9)
    start(story, "b", 9)
    assert Counter(each[0] for each in story.choose()) == {"a": 6, "b": 2}


def test_who_has_completed_nothing_goes_first() -> None:
    """A project without a completion in the window and with nothing occupied goes ahead of any ratio, once."""
    story = Story(settings(projects=weights(a=1000, b=1), max_loops=3))
    used(story, "a", 10)
    start(story, "pa", 5, "a")
    start(story, "pb", 5, "b")
    assert [each[:2] for each in story.choose()] == ["pb", "pa", "pa"]


def test_use_without_a_completion_goes_first_all_the_same() -> None:
    """A project that has used much and completed nothing goes ahead of one that completed something for little."""
    story = Story(settings(projects=weights(a=1, b=1), max_loops=1))
    used(story, "a", 10)
    start(story, "b", 3)
    (chosen,) = story.choose()
    spend(story, chosen, 1000, landed=False)
    assert shares(story, "a", "b")["a"] < 0 < shares(story, "a", "b")["b"]
    assert next_project(story.forest, ["a", "b"], story.now) == "b"
    start(story, "pa", 1, "a")
    go_on(story, "dispatch pa/s000\nchoose pa/s000")
    assert next_project(story.forest, ["a", "b"], story.now) == "b"
    story.verify()


def test_a_completion_counts_for_one_window() -> None:
    """At the end of the window, to the millisecond, a completion no longer counts as one."""
    story = Story(settings(projects=weights(a=1000, b=1), max_loops=1))
    used(story, "a", 10)
    used(story, "b", 10)
    go_on(story, "wait 23h")
    start(story, "again", 1, "a")
    go_on(story, "dispatch again/s000\nchoose again/s000")
    spend(story, "again/s000", 10)
    start(story, "pa", 1, "a")
    start(story, "pb", 1, "b")
    story.now += 3_599_999
    assert next_project(story.forest, ["a", "b"], story.now) == "a"
    assert next_project(story.forest, ["a", "b"], story.now + 1) == "b"


def test_an_idle_project_does_not_flatten_the_others() -> None:
    """What a big project without a runnable loop used and weighs does not enter the ratios of those that compete."""
    story = Story(settings(projects=weights(big=1000, a=3, b=1), max_loops=1))
    used(story, "big", 1_000_000)
    used(story, "a", 1000)
    used(story, "b", 500)
    start(story, "pa", 1, "a")
    start(story, "pb", 1, "b")
    assert shares(story, "a", "b") == {"a": Fraction(-1, 12), "b": Fraction(1, 12)}
    assert story.choose() == ["pa/s000"]


def test_ties_go_by_the_order_in_the_file() -> None:
    """Projects with equal ratios are served in the order in which the settings list them."""
    for names in (("zeta", "alpha"), ("alpha", "zeta")):
        story = Story(settings(projects={name: ProjectPolicy() for name in names}, max_loops=2))
        start(story, "alpha", 1)
        start(story, "zeta", 1)
        assert story.choose() == [f"{name}/s000" for name in names]
        story.verify()


def test_ratios_are_exact() -> None:
    """Shares are fractions: weights of one third and two thirds, written as such, tie at a use of one to two."""
    third = ProjectPolicy(Fraction(1, 3))
    story = Story(settings(projects={"b": ProjectPolicy(Fraction(2, 3)), "a": third}, max_loops=1))
    used(story, "a", 1)
    used(story, "b", 2)
    assert shares(story, "a", "b") == {"a": Fraction(0), "b": Fraction(0)}
    assert next_project(story.forest, ["a", "b"], story.now) == "b"
    story.verify()


def test_a_late_joiner_catches_up_on_one_window_only() -> None:
    """A project that joins late is served until its share of the window is even; older use does not count."""
    story = Story(settings(projects=weights(a=1, b=1), max_loops=1))
    start(story, "a", 60)
    for _ in range(20):
        story.now += 1000
        (chosen,) = story.choose()
        spend(story, chosen, 100, landed=False)
    story.now += 86_400_000
    for _ in range(4):
        story.now += 1000
        (chosen,) = story.choose()
        spend(story, chosen, 100, landed=False)
    start(story, "b", 60)
    served = []
    for _ in range(8):
        story.now += 1000
        (chosen,) = story.choose()
        served.append(chosen[0])
        spend(story, chosen, 100, landed=False)
    assert "".join(served[:4]) == "bbbb"
    assert Counter(served[4:]) == {"a": 2, "b": 2}


def test_use_is_cost_or_time_and_never_zero() -> None:
    """An attempt that reported no tokens counts its seconds times tokens per second in the shares, and nowhere else."""
    story = Story(settings(projects=weights(a=1, b=1)))
    start(story, "a", 1)
    story.choose()
    spend(story, "a/s000", None, ms=3_500)
    assert usage_of(story.forest, "a", ["a"], story.now) == 175_000  # 175 tokens, in thousandths
    assert (story["a/s000"].spent.cost, story["a/s000"].spent.estimated) == (0, False)


def test_an_occupied_loop_counts_at_least_the_mean() -> None:
    """A loop at work counts the larger of its cost so far and its project's mean cost of an attempt."""
    story = Story(settings(projects=weights(a=1, b=1)))
    used(story, "a", 100)
    start(story, "a", 1)
    assert usage_of(story.forest, "a", ["a"], story.now) == 100_000
    go_on(story, "choose a/s000\nbegan a/s000")
    assert usage_of(story.forest, "a", ["a"], story.now) == 200_000
    go_on(story, "used a/s000 250 tokens 1s")
    assert usage_of(story.forest, "a", ["a"], story.now) == 350_000


def test_without_a_mean_of_its_own_a_project_takes_that_of_the_others() -> None:
    """An unmeasured project's loops count the mean of the competing projects, and one where nothing was measured."""
    story = Story(settings(projects=weights(a=1, b=1)))
    start(story, "b", 1)
    go_on(story, "choose b/s000")
    assert usage_of(story.forest, "b", ["a", "b"], story.now) == 1_000
    used(story, "a", 300)
    assert usage_of(story.forest, "b", ["a", "b"], story.now) == 300_000
    assert usage_of(story.forest, "b", ["b"], story.now) == 1_000


def test_with_one_project_the_score_alone_decides() -> None:
    """A single competing project is next, whatever it used."""
    story = Story(settings(projects=weights(a=1, b=1), max_loops=1))
    used(story, "a", 10_000)
    assert next_project(story.forest, ["a"], story.now) == "a"


def test_a_plan_that_changes_its_project_is_paid_by_the_other() -> None:
    """Changing `project` in a plan moves all below it to the other payer at once, for what comes."""
    story = Story(settings(projects=weights(a=1, b=1)))
    start(story, "p", 2, "a")
    story.see(o.PlanOffered("p", outline("s000; s001", "p", project="b"), "other", "p.md"))
    assert {each.project for each in story.forest.loops.values()} == {"b"}
    story.verify()


@given(
    st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(1, 9), st.integers(0, 10**6)), min_size=2),
    st.sampled_from([1, 7, Fraction(1, 3)]),
)
def test_scaling_all_weights_changes_nothing(projects: dict[str, tuple[int, int]], factor: Fraction) -> None:
    """The choice depends on the proportions of the weights only, and the ratios always sum up to zero."""
    found = []
    for scale in (Fraction(1), Fraction(factor)):
        policy = {name: ProjectPolicy(weight * scale) for name, (weight, _) in projects.items()}
        story = Story(settings(projects=policy))
        for name, (_, tokens) in projects.items():
            used(story, name, tokens)
        names = list(projects)
        ratios = shares(story, *names)
        assert sum(ratios.values()) in (0, -1)  # -1: nobody has used anything
        found.append((next_project(story.forest, names, story.now), ratios))
    assert found[0] == found[1]


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_nobody_starves_beside_a_heavy_project(slots: int) -> None:
    """However small its weight, a project with something runnable gets a slot as soon as it has nothing."""
    story = Story(settings(projects=weights(heavy=1000, light=0.001), max_loops=slots))
    start(story, "heavy", 20)
    start(story, "light", 2)
    first = story.choose()
    if slots > 1:
        assert any(each.startswith("light") for each in first)
    else:
        spend(story, first[0], 5)
        assert story.choose()[0].startswith("light")
