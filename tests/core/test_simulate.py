"""A plan in virtual time: by hand on small trees, and what the engine's promises come to over many rounds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.durations import Spread, constant
from loopr.core.entries import Artifact, Entry
from loopr.core.forest import Forest
from loopr.core.model import Failure, Status
from loopr.core.played import Played, Run, most_at_once
from loopr.core.policy import Budget, LanePolicy, Policy, ProjectPolicy, Retry, TypePolicy
from loopr.core.simulate import Options, simulate
from loopr.core.turn import perform, think

MINUTE = 60_000
SHORT = {"plan": TypePolicy("plan", "code"), "code": TypePolicy("code", has_command=True)}
"""A ladder of two rungs: a plan file that declares its code loops leaves nothing else to run."""


def policy(max_loops: int = 2, **more: Any) -> Policy:
    """Make a policy of two rungs with no ceiling but the number of loops."""
    return Policy(**{"types": SHORT, "per_type": {}, "max_loops": max_loops, "poll_interval_ms": 0} | more)


def code(*ids: str, chain: bool = False, **more: Any) -> tuple[Entry, ...]:
    """Write entries of code loops; in a chain each needs the one before."""
    return tuple(
        Entry(each, each, needs=(ids[place - 1],) if chain and place else (), **more) for place, each in enumerate(ids)
    )


def offer(plan: str, entries: Iterable[Entry] = (), **more: Any) -> o.PlanOffered:
    """Offer a plan file that declares these children, or none."""
    entries = tuple(entries)
    artifact = Artifact(plan, plan.title(), entries=entries, declares=bool(entries), **more)
    return o.PlanOffered(plan, artifact, f"digest of {plan}", f"{plan}.md")


def play(rules: Policy, *offered: o.Observation, now: int = 0, plan: str | None = None, **options: Any) -> Played:
    """Play plans from an empty workspace."""
    return simulate(Forest(rules), now, Options(**options), plan=plan, offered=offered)


def when(played: Played) -> dict[str, list[tuple[int, int]]]:
    """Say when each loop ran, in whole seconds since the beginning."""
    found: dict[str, list[tuple[int, int]]] = {}
    for run in played.runs:
        found.setdefault(run.id, []).append(((run.start - played.at) // 1000, (run.end - played.at) // 1000))
    return found


def outcomes(played: Played, loop_id: str) -> list[str]:
    """List how the attempts of a loop ended."""
    return [run.outcome for run in played.runs if run.id == loop_id]


# --- small trees by hand ---------------------------------------------------------------------------------------------


def test_four_equal_leaves_on_two_slots_take_two_rounds() -> None:
    """Four loops of a minute on two slots end after two minutes, with every slot used."""
    played = play(policy(2), offer("p", code("a", "b", "c", "d")))
    assert when(played) == {"p/a": [(0, 60)], "p/b": [(0, 60)], "p/c": [(60, 120)], "p/d": [(60, 120)]}
    assert (played.makespan_ms, played.utilisation, played.slots) == (2 * MINUTE, Fraction(1), 2)
    assert played.counts == {Status.COMPLETE: 5}
    assert played.unfinished == ()
    assert played.waiting["code"] == (0, MINUTE)


def test_three_leaves_on_two_slots_leave_one_slot_idle() -> None:
    """Utilisation is the slot time that was taken as a part of all there was."""
    played = play(policy(2), offer("p", code("a", "b", "c")))
    assert played.utilisation == Fraction(3, 4)


def test_serial_siblings_run_one_after_another() -> None:
    """Loops that must not run beside each other do not, however many slots there are."""
    played = play(policy(9), offer("p", code("a", "b", "c", parallel=False)))
    assert when(played) == {"p/a": [(0, 60)], "p/b": [(60, 120)], "p/c": [(120, 180)]}


def test_parallel_siblings_ignore_a_serial_one() -> None:
    """A parallel loop starts beside the serial ones."""
    played = play(policy(9), offer("p", [*code("a", "b", parallel=False), *code("c")]))
    assert when(played) == {"p/a": [(0, 60)], "p/b": [(60, 120)], "p/c": [(0, 60)]}


def test_a_ceiling_on_a_type_holds() -> None:
    """No more loops of a type run at once than its ceiling, though slots are free."""
    played = play(policy(9, per_type={"code": 1}), offer("p", code("a", "b", "c")))
    assert played.makespan_ms == 3 * MINUTE
    assert most_at_once(played.runs) == 1


def test_needs_make_a_chain_and_the_critical_path() -> None:
    """The critical path is the chain that takes longest, with the time of each loop on it."""
    entries = [*code("a", "b", chain=True), *code("c")]
    played = play(policy(9), offer("p", entries), loops={"p/b": constant(2 * MINUTE), "p/c": constant(MINUTE)})
    assert played.makespan_ms == 3 * MINUTE
    assert played.critical_path == (("p/a", MINUTE), ("p/b", 2 * MINUTE))
    assert played.waiting == {"code": (0, 0)}


def test_without_a_ceiling_the_slots_are_the_most_that_were_taken() -> None:
    """With direct dispatch the peak counts as the number of slots."""
    played = play(policy(0), offer("p", code("a", "b", "c")), loops={"p/a": constant(3 * MINUTE)})
    assert (played.slots, played.utilisation) == (3, Fraction(5, 9))


def test_declared_loops_take_no_time() -> None:
    """Only the leaf of a plan that is declared all the way down costs a minute, and nothing else is ever leased."""
    leaf = Entry("store", "Store", children=(Entry("code", "Code"),))
    played = play(Policy(), offer("p", [Entry("tokens", "Tokens", children=(leaf,))]))
    assert when(played) == {"p/tokens/store/code": [(0, 60)]}
    assert played.counts == {Status.COMPLETE: 4}


def test_a_loop_without_a_command_is_played_as_if_a_person_did_it() -> None:
    """A plan without an outline hands over one spec, that one phase, whose one code is implied: three runs."""
    played = play(Policy(), offer("p"))
    assert when(played) == {"p": [(0, 60)], "p/spec": [(60, 120)], "p/spec/phase/code": [(120, 180)]}
    assert [part.id for part in played.parts] == ["p", "p/spec", "p/spec/phase", "p/spec/phase/code"]
    assert played.unfinished == ()


def test_a_phase_with_a_command_runs_and_hands_over_its_code() -> None:
    """A type that has a command is never passed over."""
    types = dict(Policy().types) | {"phase": TypePolicy("phase", "code", has_command=True)}
    played = play(Policy(types=types), offer("p", [Entry("s", "S", children=(Entry("f", "F"),))]))
    assert when(played) == {"p/s/f": [(0, 60)], "p/s/f/code": [(60, 120)]}


def test_judging_and_landing_take_the_time_they_are_given() -> None:
    """A slot is kept while its loop is judged and lands, and of one plan one loop lands at a time."""
    played = play(policy(2), offer("p", code("a", "b")), judging=constant(10_000), landing=constant(5000))
    assert when(played) == {"p/a": [(0, 75)], "p/b": [(0, 80)]}


def test_a_landing_is_not_overtaken() -> None:
    """A loop that comes first in the tree but later to its landing waits for the one that is landing already."""
    times = {"p/a": constant(62_000), "p/b": constant(60_000)}
    played = play(policy(2), offer("p", code("a", "b")), landing=constant(5000), loops=times)
    assert when(played) == {"p/a": [(0, 70)], "p/b": [(0, 65)]}


def test_plans_land_beside_each_other() -> None:
    """Two plans do not wait for each other's landings."""
    played = play(policy(2), offer("p", code("a")), offer("q", code("a")), landing=constant(5000))
    assert when(played) == {"p/a": [(0, 65)], "q/a": [(0, 65)]}


def test_approvals_are_given_at_once() -> None:
    """A loop that waits for a person lands in the same instant."""
    types = dict(SHORT) | {"code": TypePolicy("code", has_command=True, approve=True)}
    played = play(policy(types=types), offer("p", code("a")))
    assert (played.makespan_ms, outcomes(played, "p/a")) == (MINUTE, ["complete"])


def test_launches_keep_the_pace_of_the_settings() -> None:
    """Launches of a round follow each other, and a round that was cut short is followed by the next after the delay."""
    played = play(policy(9, spawn_delay_ms=5000), offer("p", code("a", "b")))
    assert [run.start for run in played.runs] == [0, 5000]
    cut = play(policy(9, batch_size=1, poll_interval_ms=20_000), offer("p", code("a", "b", "c")))
    assert [run.start for run in cut.runs] == [0, 20_000, 40_000]


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_loop_that_is_always_refused_fails_at_its_maximum() -> None:
    """Every no begins the next iteration at once, and the last one is the end."""
    types = dict(SHORT) | {"code": TypePolicy("code", has_command=True, max_iterations=3)}
    played = play(policy(types=types), offer("p", code("a")), failure_rate=Fraction(1))
    assert when(played) == {"p/a": [(0, 60), (60, 120), (120, 180)]}
    assert outcomes(played, "p/a") == ["refused"] * 3
    assert [(left.id, left.gate) for left in played.unfinished] == [("p/a", "status")]
    assert played.counts == {Status.COMPLETE: 1, Status.FAILED: 1}


def test_lost_attempts_wait_for_their_backoff_and_park() -> None:
    """Attempts without a verdict are retried after 30, then 60 seconds, and the third is the last."""
    retry = Retry(jitter=Fraction(0), max_attempts=3)
    played = play(policy(retry=retry), offer("p", code("a")), infra_rate=Fraction(1))
    assert when(played) == {"p/a": [(0, 60), (90, 150), (210, 270)]}
    assert played.counts[Status.PARKED] == 1
    assert "parked" in played.unfinished[0].reason


def test_a_refused_loop_is_tried_again_until_it_passes() -> None:
    """With some failures everything completes in the end, in more attempts and more time than without."""
    smooth, rough = (play(policy(3), offer("p", code(*"abcdefgh")), failure_rate=rate) for rate in (0, Fraction(1, 2)))
    assert rough.counts == smooth.counts == {Status.COMPLETE: 9}
    assert len(rough.runs) > len(smooth.runs) == 8
    assert rough.makespan_ms > smooth.makespan_ms
    assert rough.utilisation > 0


def test_a_limit_rests_the_lane_and_costs_the_loop_nothing() -> None:
    """While its lane rests nobody starts on it, other lanes go on, and no iteration or failure is counted."""
    types = {
        "plan": TypePolicy("plan", "code"),
        "code": TypePolicy("code", has_command=True, lanes=("api",)),
    }
    rules = policy(1, types=types, lanes={"api": LanePolicy()})
    seed = next(each for each in range(100) if _limited(rules, each) == ["limited", "complete"])
    played = play(rules, offer("p", code("a", "b")), limit_rate=Fraction(1, 4), retry_after_ms=300_000, seed=seed)
    assert when(played)["p/a"] == [(0, 60), (420, 480)]
    assert when(played)["p/b"][0] == (360, 420)
    assert played.counts == {Status.COMPLETE: 3}


def _limited(rules: Policy, seed: int) -> list[str]:
    """Say how the attempts of the first loop end under a seed."""
    played = play(rules, offer("p", code("a", "b")), limit_rate=Fraction(1, 4), retry_after_ms=300_000, seed=seed)
    return outcomes(played, "p/a")


def test_an_attempt_of_a_loop_that_reaches_its_own_budget_parks_it() -> None:
    """A loop's own time is a limit also where nobody reports any use."""
    played = play(policy(), offer("p", code("a", budget=Budget(secs=30))))
    assert outcomes(played, "p/a") == ["budget"]
    assert played.counts == {Status.COMPLETE: 1, Status.PARKED: 1}


def test_a_plan_stops_at_its_budget() -> None:
    """A plan with time for two loops leaves the third waiting at the gate `budget`."""
    played = play(policy(1), offer("p", code("a", "b", "c"), budget=Budget(secs=120)))
    assert len(played.runs) == 2
    assert [(left.id, left.gate) for left in played.unfinished] == [("p/c", "budget")]


def test_a_simulation_that_never_ends_is_cut_short() -> None:
    """A lane that is limited for ever ends at the number of events that the caller allows, and says so."""
    played = play(policy(), offer("p", code("a")), limit_rate=Fraction(1), max_events=500)
    assert played.cut_short
    assert played.events < 520
    assert played.unfinished[0].id == "p/a"


# --- the same again --------------------------------------------------------------------------------------------------

ROUGH: dict[str, Any] = {
    "attempt": Spread(30_000, 90_000),
    "failure_rate": Fraction(1, 5),
    "infra_rate": Fraction(1, 10),
    "limit_rate": Fraction(1, 20),
}


def test_the_same_question_gets_the_same_answer() -> None:
    """Two simulations of the same forest, options and instant are equal in every part."""
    entries = code(*(f"c{n}" for n in range(40)))
    assert play(policy(4), offer("p", entries), **ROUGH) == play(policy(4), offer("p", entries), **ROUGH)


def test_another_seed_is_another_world() -> None:
    """The seed changes the durations and what goes wrong."""
    entries = code(*(f"c{n}" for n in range(40)))
    first, second = (play(policy(4), offer("p", entries), seed=seed, **ROUGH) for seed in (1, 2))
    assert first.runs != second.runs


def test_another_instant_shifts_everything_by_the_same_amount() -> None:
    """Virtual time is relative: only what depends on the calendar could differ, and nothing does."""
    entries = code(*(f"c{n}" for n in range(20)))
    first, second = (play(policy(4), offer("p", entries), now=now, **ROUGH) for now in (0, 10**12))
    assert when(first) == when(second)
    assert [run.end - run.start for run in first.runs] == [run.end - run.start for run in second.runs]


@pytest.mark.parametrize("seed", range(20))
def test_ceilings_hold_at_every_instant(seed: int) -> None:
    """Whatever goes wrong, no more attempts of a workspace or of a type are alive than its ceiling allows."""
    leaf = tuple(Entry(f"c{n}", "c") for n in range(4))
    specs = [Entry(f"s{n}", "s", children=(Entry("f", "f", children=leaf), Entry("g", "g"))) for n in range(4)]
    rules = Policy(max_loops=5, per_type={"code": 3, "spec": 1, "plan": 1}, starvation_ms=600_000)
    played = play(rules, offer("p", specs), offer("q"), seed=seed, **ROUGH, judging=Spread(0, 9000))
    assert played.counts == {Status.COMPLETE: len(played.parts)}
    assert most_at_once(played.runs) <= 5
    assert most_at_once([run for run in played.runs if run.type == "code"]) <= 3
    attempts = [(run.id, run.attempt) for run in played.runs]
    assert len(set(attempts)) == len(attempts)


# --- a workspace that is under way -----------------------------------------------------------------------------------


def under_way() -> Forest:
    """Make a workspace in which one loop of three is complete, one runs and one waits."""
    forest = Forest(policy(2, max_api_calls=1))
    think(forest, [offer("p", code("a", "b", "c"))], 1000)
    for name in "ab":
        think(forest, [o.AttemptBegan(f"p/{name}", 1)], 1000)
    think(forest, [o.AttemptEnded("p/a", 1), o.Judged("p/a", 1)], 50_000, choosing=False)
    think(forest, [o.LandingDone("p/a", 1, "commit", "digest")], 50_000, choosing=False)
    return forest


def test_what_runs_already_counts_as_starting_now() -> None:
    """What is complete stays so, what runs takes its time from now, and what waits comes after it."""
    played = simulate(under_way(), 100_000)
    assert when(played) == {"p/b": [(0, 60)], "p/c": [(0, 60)]}
    assert [run.attempt for run in played.runs] == [1, 1]
    assert played.makespan_ms == MINUTE


def test_a_held_loop_stays_and_says_why() -> None:
    """A person's pause is not lifted by a simulation."""
    forest = under_way()
    forest.apply(e.Held("p/c", "ada", "not yet"), 60_000)
    played = simulate(forest, 100_000)
    assert list(when(played)) == ["p/b"]
    assert [(left.id, left.gate) for left in played.unfinished] == [("p/c", "paused")]


def test_a_parked_lane_stays_parked() -> None:
    """A simulation does not mend an account."""
    forest = under_way()
    forest.apply(w.LaneParked("default", "billing"), 60_000)
    assert [(left.id, left.gate) for left in simulate(forest, 100_000).unfinished] == [("p/c", "lane")]


def test_an_engine_that_was_stopping_works_again() -> None:
    """A simulation says what would happen if the engine ran on a machine that is well again."""
    forest = under_way()
    forest.apply(w.EngineDraining("ada"), 60_000)
    forest.apply(w.HostChanged("no space", 130_000), 60_000)
    assert when(simulate(forest, 100_000))["p/c"] == [(30, 90)]


def test_a_stopped_attempt_frees_its_slot() -> None:
    """What was told to stop has ended by the time the simulation begins, and its loop runs again."""
    forest = under_way()
    forest.apply(e.Stopped("p/b", 1, "paused"), 60_000)
    played = simulate(forest, 100_000)
    assert outcomes(played, "p/b") == ["stopped", "complete"]
    assert played.counts == {Status.COMPLETE: 4}


def test_a_pull_worker_keeps_its_lease_alive() -> None:
    """An attempt of a pull worker takes as long as any other, beyond what its lease lasts without a sign."""
    rules = policy(1)
    forest = Forest(rules)
    think(forest, [offer("p", code("a"))], 0, choosing=False)
    perform(forest, [e.LeaseGranted("p/a", 1, 1, "default", "worker", 300_000)], 0)
    played = simulate(forest, 0, Options(attempt=constant(900_000)))
    assert when(played) == {"p/a": [(0, 900)]}


def test_an_attempt_that_only_judges_again_takes_no_time_of_its_own() -> None:
    """After a limited judge the command is skipped: what is left is the judging."""
    forest = Forest(policy(1))
    think(forest, [offer("p", code("a"))], 0)
    think(forest, [o.AttemptBegan("p/a", 1), o.AttemptEnded("p/a", 1)], 60_000, choosing=False)
    think(forest, [o.Judged("p/a", 1, o.Trouble(Failure.LIMITED, "429"))], 60_000, choosing=False)
    played = simulate(forest, 60_000, Options(judging=constant(7000)))
    assert when(played) == {"p/a": [(2, 9)]}


def test_an_implied_child_is_not_touched_by_its_parent_settling_again() -> None:
    """A phase that is made anew by declaration declares the very child it had, which stays complete."""
    forest, said = (
        Forest(Policy()),
        {"p/s/f": Entry("f", "F"), "p/s/f/code": Entry("code", "F", body="whole", implied=True)},
    )
    think(forest, [offer("p", [Entry("s", "S", children=(said["p/s/f"],))])], 0)
    for loop_id, inner in (("p/s", said["p/s/f"]), ("p/s/f", said["p/s/f/code"])):
        think(forest, [o.DeclaredWritten(loop_id, "d", Artifact("x", "X", entries=(inner,)), "x.md")], 0)
    think(forest, [o.FileSeen("p/s/f/code", "d", Artifact("code", "Code"), "code.md")], 0)
    forest.apply(e.Renewed("p/s/f", "ada", 2), 1000)
    played = simulate(forest, 1000, entries=said.get)
    assert played.runs == ()
    assert played.counts == {Status.COMPLETE: 4}


def test_a_command_that_runs_again_keeps_the_children_it_has() -> None:
    """A plan that is made anew hands over the same children, which stay complete."""
    types = dict(SHORT) | {"plan": TypePolicy("plan", "code", has_command=True)}
    forest = Forest(policy(types=types))
    think(forest, [offer("p", code("a"))], 0)
    think(forest, [o.FileSeen("p/a", "d", Artifact("a", "A"), "a.md"), o.StopSeen("p/a", 1)], 0)
    forest.apply(e.Renewed("p", "ada", 2), 1000)
    played = simulate(forest, 1000)
    assert when(played) == {"p": [(0, 60)]}
    assert [part.id for part in played.parts] == ["p", "p/a"]


def test_a_loop_that_is_made_anew_hands_over_what_it_had() -> None:
    """Children that are there already are not touched when their parent runs again."""
    forest = Forest(Policy())
    said = {"p/s": Entry("s", "S", children=(Entry("f", "F"),))}
    think(forest, [offer("p", said.values())], 0)
    think(forest, [o.DeclaredWritten("p/s", "d", Artifact("s", "S", entries=said["p/s"].children), "s.md")], 0)
    forest.apply(e.Renewed("p/s", "ada", 2), 1000)
    played = simulate(forest, 1000, entries=said.get)
    assert [part.id for part in played.parts] == ["p", "p/s", "p/s/f", "p/s/f/code"]
    assert list(when(played)) == ["p/s/f/code"]


def test_one_plan_is_reported_while_others_compete() -> None:
    """A report on one plan has only its loops, and waits for the slots that another plan took first."""
    offered = offer("a", code("x", "y")), offer("b", code("z"))
    played = play(policy(1), *offered, plan="b")
    assert when(played) == {"b/z": [(120, 180)]}
    assert played.counts == {Status.COMPLETE: 2}
    assert (played.makespan_ms, played.utilisation) == (3 * MINUTE, Fraction(1))
    assert played.critical_path == (("b/z", MINUTE),)
    assert played.waiting == {"code": (2 * MINUTE, 2 * MINUTE)}


def test_the_slots_of_others_count_until_the_plan_is_done() -> None:
    """Nothing after the end of the plan counts, nor is it played."""
    entries = code(*(f"c{n}" for n in range(50)))
    offered = offer("a", entries), offer("b", code("z"))
    played = play(policy(0), *offered, plan="b", loops={"a/c0": constant(3 * MINUTE)}, max_events=500)
    assert (played.makespan_ms, played.slots, played.utilisation) == (MINUTE, 51, Fraction(1))
    serial = offer("a", code(*(f"c{n}" for n in range(50)), chain=True))
    assert not play(policy(2), serial, offered[1], plan="b", max_events=80).cut_short


def test_what_others_do_after_the_plan_has_stopped_does_not_count() -> None:
    """A plan that parks ends its makespan there, though others go on for longer."""
    offered = offer("a", code("x")), offer("b", code("z", budget=Budget(secs=30)))
    played = play(policy(2), *offered, plan="b", loops={"a/x": constant(9 * MINUTE)})
    assert played.counts[Status.PARKED] == 1
    assert (played.makespan_ms, played.utilisation) == (MINUTE // 2, Fraction(1))


def test_durations_of_loops_that_never_ran_are_named() -> None:
    """A file of durations with a misspelt loop does not pass in silence."""
    played = play(policy(), offer("p", code("a")), loops={"p/a": constant(1), "p/aa": constant(1)})
    assert played.unused == ("p/aa",)


# --- fairness and starvation -----------------------------------------------------------------------------------------


def _shares(first: int, second: int, rounds: int, **more: Any) -> list[Run]:
    """Play two plans of two projects with weights, one slot, until so many loops ran."""
    projects = {"big": ProjectPolicy(Fraction(first)), "small": ProjectPolicy(Fraction(second))}
    names = [f"c{n}" for n in range(rounds)]
    rules = policy(1, projects=projects)
    offered = [offer(each, code(*names), project=each) for each in projects]
    return list(play(rules, *offered, **more).runs[:rounds])


def test_two_plans_share_by_weight() -> None:
    """Over 200 rounds weights of 3 and 1 come to 150 and 50 within two loops, and so they do after every round."""
    runs = _shares(3, 1, 200)
    served = [run.id.startswith("big") for run in runs]
    assert abs(sum(served) - 150) <= 2
    assert all(abs(sum(served[:n]) - Fraction(3 * n, 4)) <= 2 for n in range(1, 201))


def test_shares_are_of_cost_and_not_of_loops() -> None:
    """A project whose loops take three times as long gets a third of them at equal weight."""
    runs = _shares(1, 1, 200, loops={f"big/c{n}": constant(3 * MINUTE) for n in range(200)})
    assert abs(sum(run.id.startswith("big") for run in runs) - 50) <= 2


def test_a_plan_that_is_runnable_for_an_hour_gets_its_turn() -> None:
    """Fresh code outranks a plan for ever, until the plan has been ready for an hour; without the guard it is last."""
    types = {
        "plan": TypePolicy("plan", "code", has_command=True),
        "code": TypePolicy("code", has_command=True),
    }
    fresh = offer("busy", code(*(f"c{n}" for n in range(90)), chain=True))
    guarded = play(policy(1, types=types), fresh, offer("slow"))
    assert when(guarded)["slow"] == [(3600, 3660)]
    off = play(policy(1, types=types, starvation_ms=0), fresh, offer("slow"))
    assert when(off)["slow"] == [(5400, 5460)]


def test_a_lane_starts_slowly_after_its_rest() -> None:
    """After its rest a lane takes one loop, and twice as many with each that ends well: one, two, eight."""
    forest = Forest(policy(50))
    think(forest, [offer("p", code(*(f"c{n}" for n in range(11))))], 0, choosing=False)
    forest.apply(w.LaneRested("default", 1, 30_000, 0, "429"), 0)
    played = simulate(forest, 0)
    starts = [run.start // 1000 for run in played.runs]
    assert [starts.count(at) for at in (30, 90, 150)] == [1, 2, 8]
