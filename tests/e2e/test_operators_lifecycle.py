"""The lifecycle from the command line: whatever a person can bring about is reached, and all else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core.judge_events import Conflicted, JudgeWaits, LandingWaits, MergeTurnEnded, Refused, VerdictGiven
from loopr.core.lifecycle import LIFECYCLE
from loopr.core.model import Status
from loopr.core.plan_events import InputsMoved, LandingBegan
from loopr.core.redo_events import RedoAsked, RedoBegan
from loopr.core.workspace_events import SteeringRefused
from loopr.core.worktree_events import WorktreeKept, WorktreePacked, WorktreePacking
from loopr.world.journal import Journal
from tests.e2e.operators import STATUSES, TOP, Way, ids, names, restart, stand, ways
from tests.e2e.repos import Repo, opened

EVERY = names("x", STATUSES)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """Give a workspace with a loop in every status, which nothing moves: for what changes nothing."""
    with opened(tmp_path_factory.mktemp("still")) as repo:
        stand(repo.found(), EVERY)
        yield repo


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def last_seq(repo: Repo) -> int:
    """Return the number of the last event."""
    with Journal.open(repo.state / "loopr.db", readonly=True) as journal:
        return journal.last_seq()


# --- what is refused ------------------------------------------------------------------------------------------------

SAID = {"pending": "waiting", "leased": "starting", "awaiting": "waiting for approval", "complete": "done"}
SAID["invalidated"] = "undeclared"
"""How people are told of a status that has another name among them."""
DECIDED = "only a loop that waits for approval can be decided on"
GONE = "it is not declared any more, so nothing of it will run"
NOT_OVER = "wait until it has ended, or `loopr cancel` it first"
BUSY = dict.fromkeys(("leased", "running", "checking", "awaiting", "landing"), NOT_OVER)
REFUSED: dict[str, dict[str, str]] = {
    "reset": {
        each: "only a parked loop is reset; `loopr retry` begins a failed one again"
        for each in STATUSES
        if each != "parked"
    },
    **{
        verb: {each: DECIDED for each in STATUSES if each != "awaiting"}
        for verb in ("approve", "reject", "iterate --feedback more")
    },
    "retry": {
        "pending": "it waits its turn by itself: `loopr why` says for what",
        "complete": "`loopr retry --fresh {}` makes it anew",
        "invalidated": GONE,
        **BUSY,
    },
    "retry --fresh --yes": {"pending": NOT_OVER, "invalidated": GONE, **BUSY},
    "cancel": {"invalidated": GONE},
    "clear": {each: "only pending loops stand in the queue" for each in STATUSES if each != "pending"},
    "dispatch": {each: "only pending loops can go next" for each in STATUSES if each != "pending"},
}
"""By verb, the statuses in which it is refused, and what a person is told to do instead."""
LEASES = {
    "renew": set(STATUSES),
    "complete": set(STATUSES) - {"checking"},  # that is handed over already, and its worker may ask again
    "release": set(STATUSES),
    "reclaim": set(STATUSES),
}
FORGOTTEN = ("complete", "cancelled", "invalidated")


@pytest.mark.parametrize("verb", REFUSED)
def test_what_does_not_fit_is_refused_as_a_whole(still: Repo, verb: str) -> None:
    """A verb that fits none of the loops it names tells of each why, with the way on, exits with 2, changes nothing."""
    before, wrong = last_seq(still), REFUSED[verb]
    fits = [f"{each}-x" for each in STATUSES if each not in wrong]
    ended = still.loopr(*verb.split(), *fits, *(f"{each}-x" for each in wrong), "--json", code=2)
    word = " ".join(each for each in verb.split() if each not in ("--yes", "--feedback", "more"))
    said = {each: f"cannot {word} {TOP}{each}-x: it is {SAID.get(each, each)}" for each in wrong}
    hints = {each: hint.format(f"{TOP}{each}-x") for each, hint in wrong.items()}
    lines = [f"{said[each]} ({hint})" for each, hint in hints.items()]
    if len(wrong) == 1:
        lines = list(said.values())
        assert ended.document["error"]["hint"] in hints.values()
    assert sorted(ended.document["error"]["message"].splitlines()) == sorted(lines)
    assert ended.document["error"]["code"] == "usage"
    assert last_seq(still) == before


@pytest.mark.parametrize("verb", LEASES)
def test_only_who_has_a_lease_may_quote_it(still: Repo, verb: str) -> None:
    """Whatever the status, a word about a lease that no worker has is stale, with exit 3, and changes nothing."""
    before = last_seq(still)
    ended = still.loopr("lease", verb, *(f"{each}-x#1" for each in STATUSES), code=3)
    lines = ended.err.splitlines()
    found = {line.partition(TOP)[2].partition("-x#1 is not held any more")[0] for line in lines}
    assert found == LEASES[verb], lines
    assert last_seq(still) == before


@pytest.mark.parametrize("verb", ["pause", "iterate --feedback x", "dispatch", "wait", "lease take --project"])
def test_what_nobody_knows_is_told(still: Repo, verb: str) -> None:
    """A loop or a project that there is not is exit 3 with its name, also beside one that there is."""
    before = last_seq(still)
    known = [] if verb.startswith("lease") else ["pending-x"]
    assert "nowhere" in still.loopr(*verb.split(), *known, "nowhere", code=3).err
    assert last_seq(still) == before


def test_a_plan_that_a_person_has_written_stands_for_all_below_it(still: Repo) -> None:
    """To make such a plan anew is to make anew all below it that was tried and is over, once that is wanted."""
    before = last_seq(still)
    asked = still.loopr("retry", "--fresh", "demo", code=2).err
    anew, _, rest = asked.partition("would be made anew")
    assert "--yes goes on" in rest and f"{TOP}failed-x" in anew
    assert f"{TOP}pending-x" not in anew and f"{TOP}running-x" not in asked
    assert last_seq(still) == before


@pytest.mark.parametrize("status", ["parked", "running"])
def test_what_is_not_over_is_not_forgotten(still: Repo, status: str) -> None:
    """`gc --forget` refuses what may still go on, with exit 2, and names the verb that ends it."""
    before = last_seq(still)
    ended = still.loopr("gc", "--forget", f"{status}-x", "--yes", code=2)
    assert f"cannot forget {TOP}{status}-x: it is not over" in ended.err
    assert f"`loopr cancel {TOP}{status}-x` ends it first" in ended.err
    assert last_seq(still) == before


@pytest.mark.soak
@pytest.mark.parametrize(("verb", "status"), [(verb, status) for verb, found in REFUSED.items() for status in found])
def test_each_alone_is_refused_so(still: Repo, verb: str, status: str) -> None:
    """Each status by itself is refused by each verb with its own message, hint and exit code."""
    before = last_seq(still)
    ended = still.loopr(*verb.split(), f"{status}-x", code=2)
    assert f"{TOP}{status}-x: it is {STATUSES[status]}\n  hint: {REFUSED[verb][status]}\n" in ended.err
    assert last_seq(still) == before


# --- what is reached ------------------------------------------------------------------------------------------------

S = Status
LIVE = {S.LEASED, S.RUNNING, S.CHECKING}
BY_HAND: list[type[e.LoopEvent]] = [
    *(e.Declared, e.LeaseGranted, e.Settled, e.LeaseReleased, e.LeaseExpired, e.LeaseRenewed, e.WorkEnded, Refused),
    *(e.SetAside, e.Approved, e.Rejected, e.IterationAsked, e.CandidateReplaced, e.Stopped, e.ArtifactAccepted),
    *(e.InputChanged, e.OutlineChanged, e.EntryChanged, e.Undeclared, e.DeclaredAgain, e.Deferred, e.Cancelled),
    *(e.Unparked, e.Retried, e.Renewed, e.Held, e.Lifted, e.Forgotten),
]
"""What a person, a script or a pull worker can bring about."""
OTHERS = {
    *(e.AttemptStarted, e.UsageSeen, JudgeWaits, e.Limited, e.Broke, e.Passed, e.Landed, Conflicted),
    *(e.AttemptGone, e.ArtifactSeen, e.ArtifactGone, VerdictGiven, LandingBegan, SteeringRefused),
    *(RedoAsked, RedoBegan, InputsMoved, LandingWaits, MergeTurnEnded, e.StepTimed),
    *(WorktreePacking, WorktreePacked, WorktreeKept),
    *(f.ArtifactOffered, f.ArtifactUnread, f.OfferGone, f.OfferReplaced, f.OfferRejected, f.CompletionUndone),
}
"""What the engine alone finds out, what files become, and what a loop is refused: other tests bring it about."""
NOT_BY_HAND: dict[type[e.LoopEvent], set[Status]] = {
    e.LeaseReleased: {S.LEASED},  # what our own crash came before
    e.LeaseExpired: {S.LEASED},  # a pull worker's loop runs at once
    Refused: {S.CHECKING, S.LANDING},  # the engine's own verdicts
    e.SetAside: {S.LEASED, S.CHECKING, S.LANDING},
    e.Deferred: {S.LANDING},  # only what has begun to land, which an engine does
    e.OutlineChanged: LIVE | {S.AWAITING, S.LANDING, S.PARKED, S.FAILED},  # settled: no lease
}
"""Of these, the statuses in which it is the engine that does, or nobody."""
BOTH_ENDS = {
    (e.LeaseGranted, S.LEASED), (e.LeaseGranted, S.RUNNING), (e.LeaseExpired, S.PENDING), (e.LeaseExpired, S.PARKED),
    (Refused, S.PENDING), (Refused, S.FAILED), (e.DeclaredAgain, S.PENDING), (e.DeclaredAgain, S.COMPLETE),
    (e.Passed, S.AWAITING), (e.Passed, S.LANDING), (e.Landed, S.COMPLETE), (e.AttemptGone, S.PENDING),
    (e.ArtifactGone, S.COMPLETE), (e.ArtifactSeen, S.COMPLETE),
}  # fmt: skip
MOVED = ("pending", "leased", "running", "checking", "complete", "parked", "failed")
COHORTS = {
    "drop": (*MOVED, "awaiting"),
    "edit": (*MOVED, "awaiting", "landing"),
    "gone": (*MOVED, "awaiting", "landing", "cancelled"),
    "cancel": (*MOVED, "awaiting", "landing"),
    "stop": ("leased", "running", "checking", "landing"),
    "retry": ("parked", "failed"),
    "fresh": ("complete", "parked", "failed", "cancelled"),
    "say": ("awaiting",),
    "no": ("awaiting",),
    "again": ("awaiting",),
    "reset": ("parked",),
    "keep": ("leased", "complete", "invalidated"),
}
"""What is done to loops, and the statuses in which that finds them."""
PULLED = ("back", "refused", "blocked", "late", "last")


def of(cohort: str) -> list[str]:
    """Name the loops of a cohort."""
    return names(cohort, COHORTS[cohort])


def test_every_way_is_gone(repo: Repo) -> None:
    """Every transition that a person, a script or a pull worker can cause is reached from the command line."""
    loops = [name for cohort in COHORTS for name in of(cohort)]
    stand(repo, loops)
    loops.remove("invalidated-keep")
    repo.loopr("gc", "--forget", "invalidated-keep", "--yes")
    for verb in ("pause", "resume"):  # what is done is held by nothing, but with something open below it
        repo.loopr(verb, TOP.rstrip("/"))
    repo.loopr("pause", *ids([*loops, "invalidated-keep"]))
    repo.loopr("resume", *ids([*loops, "invalidated-keep"]))
    pull(repo, loops)
    steer(repo)
    change(repo, loops)
    repo.gates["gate"].open()
    repo.loopr("run", "--set", "types.code.approve=false", code=1)
    assert "nothing is wrong" in repo.loopr("doctor", code=None).out
    assert missing(set(ways(repo))) == []


def pull(repo: Repo, loops: list[str]) -> None:
    """Go all the ways of a pull worker's lease; the loops that are declared for that move all others along."""
    restart(repo, loops, first=names("pull", PULLED))
    taken = repo.loopr("lease", "take", "--limit", "9", "--json").document["leases"]
    assert [each["loop"] for each in taken] == ids(names("pull", PULLED))
    result = Path(taken[PULLED.index("blocked")]["environment"]["LOOPR_RESULT_FILE"])
    result.write_text('{"schema": 1, "status": "blocked", "message": "no key"}')
    repo.loopr("lease", "renew", "late-pull#1", "last-pull#1", "--set", "lease.ttl_secs=0.001")
    repo.loopr("lease", "complete", "blocked-pull#1")
    repo.loopr("lease", "release", "back-pull#1")
    repo.loopr("lease", "release", "refused-pull#1", "--refused", "--reason", "it is not what was asked for")
    repo.loopr("lease", "reclaim", "late-pull#1")
    repo.loopr("lease", "reclaim", "last-pull#1", "--set", "retry.max_attempts=1")


def steer(repo: Repo) -> None:
    """Say all that can be said of loops that are there."""
    repo.loopr("pause", "--now", *of("stop"))
    repo.loopr("reset", *of("reset"))
    repo.loopr("retry", "late-pull", *of("retry"))
    repo.loopr("retry", "--fresh", "--yes", *of("fresh"))
    repo.loopr("cancel", *of("cancel"))
    repo.loopr("retry", "parked-cancel")
    repo.loopr("approve", *of("say"))
    repo.loopr("reject", *of("no"))
    repo.loopr("iterate", *of("again"), "--feedback", "once more")


def change(repo: Repo, loops: list[str]) -> None:
    """Change the plan and the artifacts under the loops."""
    for each in of("drop"):
        repo.drop(f"{TOP}{each}/code.md", "# By hand\n")
    kept = repo.root / "specs" / TOP / "complete-keep/code.md"
    text = kept.read_text()
    kept.unlink()
    first = names("pull", PULLED)
    restart(repo, [each for each in loops if each not in of("gone")], first=first, bodies=of("edit"))
    repo.loopr("approve", *(each for each in of("drop") if each != "complete-drop"), "--file")  # that counts at once
    kept.write_text(text)
    restart(repo, loops, first=first, bodies=of("edit"))


def missing(reached: set[Way]) -> list[str]:
    """Name what is in the table and was not reached."""
    assert {*BY_HAND, *OTHERS} == set(LIFECYCLE), "is it a person who brings that about?"
    left = {(way.event, way.old) for way in reached}
    right = {(way.event, way.new) for way in reached}
    wanted = [(event, old) for event in BY_HAND for old in LIFECYCLE[event].froms - NOT_BY_HAND.get(event, set())]
    found = [f"{event.__name__} from {old}" for event, old in wanted if (event, old) not in left]
    return found + [f"{event.__name__} to {new}" for event, new in BOTH_ENDS if (event, new) not in right]
