"""Who may steer, decided on plain values: loops, hooks, pull workers, judges and persons."""

from __future__ import annotations

import pytest

from loopr.core.authority import ACTS, Asker, Refusal, Rights, reach, refusal
from loopr.core.policy import MAY, Policy, TypePolicy, decode_policy, encode_policy

ADA = Asker("person", "ada")
HOOK = Asker("hook", "hook on_park")
JUDGE = Asker("judge", "land.check")
LOOP = Asker("loop", "p/a#3", "p/a#3", "live", "spec")
OVER = LOOP._replace(state="over")
UNKNOWN = LOOP._replace(state="unknown", type="")
WORKER = LOOP._replace(kind="worker")
EVERYTHING = Rights(MAY, started={"mine"}, plans={"p", "mine", "other"})
NEVER = sorted(
    {"approve", "reject", "iterate", "set", "config accept", "adopt", "update", "land", "land --yes"}
    | {"stop", "run", "resume", "reset", "clear", "gc", "gc --forget", "doctor --fix", "doctor --try", "init"}
)
DECIDING = {"approve", "set", "adopt", "land --yes", "config accept"}


def refused(asker: Asker, wish: str, *targets: str, rights: Rights = EVERYTHING, line: str = "") -> Refusal:
    """Return a refusal that there must be."""
    found = refusal(asker, wish, rights, targets, line)
    assert found is not None
    return found


def allowed(asker: Asker, wish: str, *targets: str, rights: Rights = EVERYTHING) -> bool:
    """Say whether a wish is let through."""
    return refusal(asker, wish, rights, targets) is None


@pytest.mark.parametrize("wish", ACTS)
def test_a_person_may_do_anything(wish: str) -> None:
    """Nothing is refused to a person, whatever the settings say."""
    assert allowed(ADA, wish, "p/b", rights=Rights())


@pytest.mark.parametrize("wish", ACTS)
def test_nothing_is_let_through_by_default(wish: str) -> None:
    """Without a setting a loop, a lease that is over or unknown, and what judges may change nothing."""
    for asker in (LOOP, OVER, UNKNOWN, JUDGE):
        assert not allowed(asker, wish, "p/a/x", rights=Rights())


@pytest.mark.parametrize("wish", NEVER)
def test_some_things_no_setting_allows(wish: str) -> None:
    """What decides, judges, ends or brings home is never a loop's, though all is set that can be."""
    for asker in (LOOP, WORKER, OVER, UNKNOWN, JUDGE):
        assert not allowed(asker, wish, "p/a/x", rights=EVERYTHING._replace(hooks_decide=True))
    assert "in a shell that no loop started" in refused(LOOP, wish).hint


def test_every_wish_is_never_a_loops_or_has_a_word() -> None:
    """A wish belongs to those that no setting allows, or to a word of `may`; no word is without a wish."""
    assert sorted(name for name, act in ACTS.items() if not act.may) == NEVER
    assert {act.may for act in ACTS.values() if act.may} == set(MAY)


@pytest.mark.parametrize("wish", [name for name, act in ACTS.items() if act.may])
def test_a_word_opens_what_is_below(wish: str) -> None:
    """With its word a loop has a wish for what is below it and for plans that it started, for nothing else."""
    only = EVERYTHING._replace(may=(ACTS[wish].may,))
    assert allowed(LOOP, wish, "p/a/x", "p/a/x/y", "mine", "mine/z", rights=only)
    scopes = () if wish in ("start", "goal") else ("workspace:", "project:default")
    for target in ("p/a", "p/ab/x", "p/b", "p", "other", *scopes):
        assert target in refused(LOOP, wish, "p/a/x", target, rights=only).reason
    others = EVERYTHING._replace(may=tuple(each for each in MAY if each != ACTS[wish].may))
    assert f"{ACTS[wish].may}]" in refused(LOOP, wish, "p/a/x", rights=others).hint


def test_a_new_plan_is_whose_loop_starts_it() -> None:
    """With `start` a loop may enqueue a plan that there is not yet, and none that somebody else started."""
    assert allowed(LOOP, "start", "new", "mine")
    assert not allowed(LOOP, "start", "new", "other")
    assert not allowed(LOOP, "start", "p")
    assert not allowed(LOOP, "cancel", "new")


def test_a_lease_below_is_named_with_its_attempt() -> None:
    """A word about a lease is judged by the loop that it is for."""
    assert allowed(LOOP, "lease renew", "p/a/x#2")
    assert not allowed(LOOP, "lease renew", "p/b#2")


@pytest.mark.parametrize("wish", ["lease renew", "lease complete", "lease release"])
def test_a_worker_has_its_own_lease(wish: str) -> None:
    """A pull worker renews, completes and releases its own lease; nobody else's."""
    for asker in (WORKER, LOOP, OVER, UNKNOWN):  # of one that is over the lease itself says so
        assert allowed(asker, wish, "p/a#3", rights=Rights())
        assert not allowed(asker, wish, "p/a#3", "p/b#1", rights=Rights())
        assert not allowed(asker, wish, "p/a#2", rights=Rights())
    assert not allowed(WORKER, "lease reclaim", "p/a#3", rights=Rights())
    assert not allowed(WORKER, "lease take", rights=Rights())


@pytest.mark.parametrize("wish", ACTS)
def test_a_hook_is_a_person_that_does_not_decide(wish: str) -> None:
    """A hook may do what a person may, but what decides, which `hooks.may_decide` allows."""
    assert allowed(HOOK, wish, "p/b", rights=Rights()) == (wish not in DECIDING)
    assert allowed(HOOK, wish, "p/b", rights=Rights(hooks_decide=True))


def test_a_refusal_says_what_to_do() -> None:
    """Each says who asks and why not, the setting that would allow it, and the line to type."""
    told = refused(LOOP, "cancel", "p/b", rights=Rights(("retry",)), line="loopr cancel b")
    assert told.reason == "this is the command of p/a (lease p/a#3): it may not cancel"
    assert "`types.spec.may: [retry, cancel]`" in told.hint
    assert "`loopr cancel b`" in told.hint
    for asker in (OVER, UNKNOWN, WORKER):
        assert "`unset LOOPR_LEASE`" in refused(asker, "stop").hint
    assert "`git init`" in refused(LOOP, "init").hint
    assert "is over" in refused(OVER, "stop").reason
    assert "not in the journal" in refused(UNKNOWN, "stop").reason
    assert "process 12 above" in refused(LOOP._replace(pid=12), "stop").reason
    assert "`loopr set hooks.may_decide true`" in refused(HOOK, "approve", rights=Rights()).hint
    assert "what judges may never stop" in refused(JUDGE, "stop").reason


def test_how_far_a_loop_reaches() -> None:
    """A loop takes leases of what is below it and of plans that it started; anybody else of all."""
    assert set(reach(LOOP, EVERYTHING)) == {"p/a/", "mine/"}
    assert reach(ADA, EVERYTHING) == reach(HOOK, EVERYTHING) == ()


def test_what_is_allowed_is_journalled() -> None:
    """What loops and hooks may do is part of the policy; an older one allows nothing."""
    types = {"code": TypePolicy("code", may=("start", "lease"))}
    policy = Policy(types=types, hooks_may_decide=True)
    assert decode_policy(encode_policy(policy)) == policy
    old = encode_policy(policy)
    del old["hooks_may_decide"], old["types"]["code"]["may"]
    assert decode_policy(old).type_of("code").may == ()
    assert not decode_policy(old).hooks_may_decide
