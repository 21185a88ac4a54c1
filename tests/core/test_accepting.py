"""Which settings are in force: what is taken up, what is held back, and what a person's word does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.accepting import accept, accept_one, holds_back
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.model import Terms
from loopr.core.policy import Policy, encode_policy
from loopr.core.shared import Accepted
from loopr.core.turn import perform

NEW = o.SettingsSeen("new", "old", ("types.code.check",))


def accepted(*, at_work: bool = False) -> Forest:
    """Return a forest in which settings were accepted, with a loop at work or none."""
    forest = Forest()
    events: list[e.Event] = [w.SettingsAccepted("old", "ada")]
    if at_work:
        events += [e.Declared("p", "plan", None, Terms("p")), e.LeaseGranted("p", 1, 1, "default")]
    perform(forest, events, 1)
    return forest


def see(forest: Forest, seen: o.SettingsSeen) -> list[e.Event]:
    """Let a forest learn what the files say."""
    return perform(forest, interpret(forest, seen, 2), 2)


def test_the_first_ones_are_accepted() -> None:
    """A workspace that has accepted nothing yet, also one from before, takes what is there."""
    forest = Forest()
    perform(forest, [w.EngineStarted(1, "host")], 1)
    assert not holds_back(forest)  # an engine from before nobody has told of accepted settings
    assert see(forest, o.SettingsSeen("a", "", names=("loopr.yml",))) == [
        w.SettingsAccepted("a", "the first beginning", names=("loopr.yml",))
    ]


def test_what_changes_while_nothing_is_at_work_is_taken_up() -> None:
    """With nothing at work and nothing held back a change counts at once."""
    forest = accepted()
    assert see(forest, NEW) == [w.SettingsAccepted("new", "nothing was at work")]
    assert forest.shared.accepted == Accepted("new")


def test_what_changes_while_an_attempt_lives_is_held_back_for_good() -> None:
    """It does not count when the attempt is over, nor does what changes later; what is put back is held no more."""
    forest = accepted(at_work=True)
    assert see(forest, NEW) == [w.SettingsHeld("new", ("types.code.check",))]
    assert see(forest, NEW) == []
    perform(forest, [e.LeaseReleased("p", 1, "over")], 3)
    more = o.SettingsSeen("newer", "old", ("hooks.on_park", "types.code.check"))
    assert see(forest, more) == [w.SettingsHeld("newer", ("hooks.on_park", "types.code.check"))]
    assert see(forest, o.SettingsSeen("old", "old")) == [w.SettingsPutBack()]
    assert see(forest, NEW) == [w.SettingsAccepted("new", "nothing was at work")]


def test_after_an_engine_that_died_all_is_held_back() -> None:
    """One that has ended in good order, and the one that serves itself, are no reason."""
    forest = accepted()
    perform(forest, [w.EngineStarted(1, "host")], 2)
    assert holds_back(forest) and not holds_back(forest, serving=True)
    perform(forest, [w.EngineEnded()], 3)
    assert not holds_back(forest)


def test_what_was_seen_while_an_attempt_lived_is_held_back_though_it_is_over_by_now() -> None:
    """A look that another decision overtakes still was made when it was made."""
    assert see(accepted(), replace(NEW, during=True)) == [w.SettingsHeld("new", NEW.keys)]


@pytest.mark.parametrize("at_work", [False, True])
def test_what_only_paces_the_work_counts_at_once(at_work: bool) -> None:
    """A change that leads to nothing else is accepted as a whole, whoever is at work."""
    forest = accepted(at_work=at_work)
    assert see(forest, replace(NEW, keys=())) == [w.SettingsAccepted("new", "what counts at once")]


def test_what_paces_the_work_counts_beside_what_is_held_back() -> None:
    """Of texts that are held back that part is in force; it goes when they are accepted or put back."""
    forest = accepted(at_work=True)
    assert see(forest, replace(NEW, live=True))[1] == w.SettingsAccepted("old", "what counts at once", "new")
    assert forest.shared.accepted == Accepted("old", "new", "new", NEW.keys)
    assert see(forest, replace(NEW, live=True)) == []
    perform(forest, accept(forest, "new", "ada"), 3)
    assert forest.shared.accepted == Accepted("new")


def test_a_look_at_what_is_out_of_force_means_nothing() -> None:
    """What was compared with other settings than those in force is compared again."""
    assert see(accepted(), replace(NEW, over="older")) == []


def test_a_person_takes_one_setting_and_leaves_the_rest_held() -> None:
    """The key counts, what else the files say does not, though nothing would be held back but for the past."""
    forest = accepted()
    perform(forest, [w.SettingsHeld("new", ("a", "b"))], 2)
    rest = o.SettingsSeen("newer", "one", ("b",))
    perform(forest, accept_one(forest, "one", "ada", rest), 3)
    assert forest.shared.accepted == Accepted("one", "", "newer", ("b",))


def test_a_key_that_is_set_while_nothing_is_at_work_needs_no_word() -> None:
    """The next look takes it up with all else."""
    forest = accepted()
    assert perform(forest, accept_one(forest, "one", "ada", o.SettingsSeen("one", "one")), 3) == []


def test_a_policy_of_settings_that_are_out_of_force_is_not_remembered() -> None:
    """Whoever loaded it before others were accepted loads again."""
    forest, policy = accepted(), Policy(max_loops=3)
    stale = o.PolicySeen(policy, "seal", ("older", ""))
    assert perform(forest, interpret(forest, stale, 2), 2) == []
    fresh = replace(stale, of=("old", ""))
    assert perform(forest, interpret(forest, fresh, 2), 2) == [w.PolicyLoaded(encode_policy(policy), "seal")]


def test_what_is_in_force_is_the_same_after_a_restart() -> None:
    """Rows and events lead to the same, and a row from before says that nothing was accepted."""
    forest = accepted(at_work=True)
    see(forest, replace(NEW, live=True))
    rows = {key: body for table, key, body in forest.take_rows().changes if table == "records" and body}
    again = Forest.from_rows([], rows, [], 2)
    assert again.shared.accepted == forest.shared.accepted
    assert Forest.from_rows([], {"engine": "[1,false,0,false]"}, [], 2).shared.engine.serving is False
