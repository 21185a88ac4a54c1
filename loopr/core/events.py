"""Every event about one loop: what was decided, never what still has to be; a replay needs no policy and no clock.

Knows no rule of when an event is allowed (`lifecycle.py`), nor how one is written down (`codec.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.model import Failure, Status, Terms, Usage
from loopr.core.policy import Amounts


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was decided or learned."""


@dataclass(frozen=True, slots=True)
class LoopEvent(Event):
    """An event about one loop; `lifecycle.py` says from which states it is allowed."""

    loop: str


# --- how a loop comes to be declared, and changes -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared(LoopEvent):
    """An artifact declares the loop for the first time; `entry` is its whole entry as JSON."""

    type: str
    parent: str | None
    terms: Terms
    entry: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredAgain(LoopEvent):
    """A loop that was no longer declared is back; complete at once if its finished work has this very input."""

    to: Status
    terms: Terms
    entry: str = ""


@dataclass(frozen=True, slots=True)
class EntryChanged(LoopEvent):
    """Terms that count at once and invalidate nothing: place, needs, parallel, budget, priority, children."""

    terms: Terms
    entry: str = ""


@dataclass(frozen=True, slots=True)
class InputChanged(LoopEvent):
    """The loop's input is another one: it begins anew, as a new generation if it was ever leased."""

    terms: Terms
    generation: int
    entry: str = ""


@dataclass(frozen=True, slots=True)
class OutlineChanged(LoopEvent):
    """A loop that completes by declaration declares other children: its artifact must be written again."""

    terms: Terms
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Undeclared(LoopEvent):
    """The loop's entry is gone, `alone` while its parent's stays; else its parent leaves too."""

    alone: bool = False


@dataclass(frozen=True, slots=True)
class Deferred(LoopEvent):
    """Something arrived while the loop was landing; it is applied once the landing is over."""

    change: str
    data: str


@dataclass(frozen=True, slots=True)
class Forgotten(LoopEvent):
    """A person wants no more reminders of an invalidated loop's landed work."""


@dataclass(frozen=True, slots=True)
class ArtifactSeen(LoopEvent):
    """The artifact of a complete loop is on disk, settled."""

    digest: str


@dataclass(frozen=True, slots=True)
class ArtifactGone(LoopEvent):
    """The artifact of a loop is not on disk any more; its pending children wait for it."""


@dataclass(frozen=True, slots=True)
class ArtifactAccepted(LoopEvent):
    """A file that loopr did not write is the loop's result: a person's, or it came `during` the work of others."""

    digest: str
    by: str = "person"
    during: tuple[str, ...] = ()
    theirs: bool = True


@dataclass(frozen=True, slots=True)
class CandidateReplaced(LoopEvent):
    """A person edited the artifact of a loop that waits for approval: that file is the candidate now."""

    digest: str


@dataclass(frozen=True, slots=True)
class Settled(LoopEvent):
    """The loop's entry declares its children, so loopr wrote its artifact and it is complete."""

    digest: str


# --- one attempt --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseGranted(LoopEvent):
    """The loop may make one attempt."""

    attempt: int
    grant: int
    lane: str
    holder: str = "engine"
    expires_at: int | None = None
    judge_only: bool = False
    agent: str = ""
    work: int = 0  # the grant of the attempt that its work comes from: its own, or the one that is only judged
    holds: Amounts = ()  # the resources that it has until its work is judged


@dataclass(frozen=True, slots=True)
class AttemptStarted(LoopEvent):
    """The attempt's process runs; by `supervisor` it is found again, whatever commands may have written meanwhile."""

    attempt: int
    base_commit: str = ""
    supervisor: str = ""


@dataclass(frozen=True, slots=True)
class UsageSeen(LoopEvent):
    """What the attempt has used so far, in all."""

    attempt: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class StepTimed(LoopEvent):
    """A step beside the attempt's command, as its setup or its check, took a second or more."""

    attempt: int
    step: str
    ms: int


@dataclass(frozen=True, slots=True)
class LeaseRenewed(LoopEvent):
    """A pull worker is alive and keeps its lease."""

    attempt: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class LeaseReleased(LoopEvent):
    """The attempt is given back, free of cost: by its worker, or because our own crash came before its start."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseExpired(LoopEvent):
    """A silent worker's lease was reclaimed, which counts as one failure."""

    attempt: int
    to: Status
    not_before: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkEnded(LoopEvent):
    """The command ended well; the engine judges what it left, on another lane if its judges have one."""

    attempt: int
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Passed(LoopEvent):
    """The check said yes."""

    attempt: int
    to: Status


@dataclass(frozen=True, slots=True)
class Limited(LoopEvent):
    """The lane or the host could not carry the attempt: it costs nothing; `rests` is the lane that rests by it."""

    attempt: int
    failure: Failure
    reason: str
    judge_only: bool = False
    rests: str = ""


@dataclass(frozen=True, slots=True)
class Broke(LoopEvent):
    """The attempt ended without a verdict: one failure, and a delay."""

    attempt: int
    failure: Failure
    launch: bool
    to: Status
    not_before: int
    reason: str
    judge_only: bool = False


@dataclass(frozen=True, slots=True)
class SetAside(LoopEvent):
    """No further attempt can help until a person mends something; an attempt that is still `live` must end first."""

    attempt: int
    failure: Failure
    reason: str
    live: bool = False


@dataclass(frozen=True, slots=True)
class Stopped(LoopEvent):
    """The attempt was told to stop, free of cost; its slot is kept until it is known to have ended."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptGone(LoopEvent):
    """An attempt that was told to stop has ended."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Landed(LoopEvent):
    """The loop's commits are on the plan branch and its artifact is published."""

    attempt: int
    commit: str
    digest: str
    put_back: tuple[
        str, ...
    ] = ()  # what the loop had changed, and lands as the plan has it: protected files, or left out
    after: int = 0  # how many leases had been granted by then
    own: tuple[str, ...] = ()  # files that its judges name, and that it has made itself


# --- what a person says -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Approved(LoopEvent):
    """A person said yes."""


@dataclass(frozen=True, slots=True)
class Rejected(LoopEvent):
    """A person said no, for good."""

    reason: str


@dataclass(frozen=True, slots=True)
class IterationAsked(LoopEvent):
    """A person wants another try, with feedback; it is not counted against the maximum."""

    reason: str


@dataclass(frozen=True, slots=True)
class Held(LoopEvent):
    """A person paused the loop with all below it."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lifted(LoopEvent):
    """The pause of a loop is over."""

    by: str


@dataclass(frozen=True, slots=True)
class Cancelled(LoopEvent):
    """A person ended the loop."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unparked(LoopEvent):
    """A parked loop may try again; its failures are forgiven, its iteration is kept."""

    by: str


@dataclass(frozen=True, slots=True)
class Retried(LoopEvent):
    """All counters begin again, in the same worktree."""

    by: str


@dataclass(frozen=True, slots=True)
class Renewed(LoopEvent):
    """The loop is made anew, as a new generation.

    Where it has a `reason` of its own, such as other inputs, the loops that rest on it follow,
    should it land something.
    """

    by: str
    generation: int
    reason: str = ""
