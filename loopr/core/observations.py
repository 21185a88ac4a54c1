"""Everything that the world may report: what was seen, what came of an effect.

An observation may be late, repeated or stale; `intake.py` is the one place that forgives. Knows no decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.entries import Artifact
from loopr.core.model import Failure, Usage
from loopr.core.observed import (
    DeclaredWritten,
    FileGone,
    FileKept,
    FileRefused,
    FileSeen,
    FileUnchanged,
    InputGone,
    Observation,
    PackingDone,
    PlanOffered,
    StepTook,
)
from loopr.core.policy import Policy

__all__ = [
    "DeclaredWritten",
    "FileGone",
    "FileKept",
    "FileRefused",
    "FileSeen",
    "FileUnchanged",
    "InputGone",
    "Observation",
    "PackingDone",
    "PlanOffered",
    "StepTook",
]
"""What stands in `observed.py`; the rest is below."""

# --- attempts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something did not end well: its class, the words for a person, and what a provider said of the time.

    `vouched` is true where the reader of a preset has read that time in what the client itself reports, `harm` where
    it is something that was done to others. Of a no, `work` is the digest of all that the loop has made of its plan,
    `touched` are files of that, and `quiet` is true where no word comes with it; `tip` is where the plan stood that a
    change is in conflict with, in `paths`. `remedy` is what a person can do where it is said again and again.
    """

    failure: Failure
    reason: str
    signature: str = ""
    launch: bool = False
    resets_at: int | None = None
    retry_after_ms: int | None = None
    lane: str = ""
    vouched: bool = False
    harm: bool = False
    work: str = ""
    quiet: bool = False
    tip: str = ""
    remedy: str = ""
    paths: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptBegan(Observation):
    """The attempt's process runs; `supervisor` names who watches it."""

    loop: str
    attempt: int
    base_commit: str = ""
    supervisor: str = ""


@dataclass(frozen=True, slots=True)
class AttemptLost(Observation):
    """A leased attempt has no process and never had one: our own crash came first."""

    loop: str
    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptUsed(Observation):
    """What the attempt has used so far, in all."""

    loop: str
    attempt: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class LaneLevel(Observation):
    """A provider says how much of a lane's window is used, in thousandths, and if it does when that begins anew."""

    lane: str
    level: int
    resets_at: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnded(Observation):
    """The attempt's command is over: well, or with trouble."""

    loop: str
    attempt: int
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class AttemptStopped(Observation):
    """The attempt's command was ended together with an engine that could not write that down."""

    loop: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class SaidYes(Observation):
    """A judge said yes to a tree; `key` is the digest of that and of how it judges."""

    loop: str
    attempt: int
    judge: str
    key: str


@dataclass(frozen=True, slots=True)
class Judged(Observation):
    """The judge is over: it said yes, or there is trouble; `as_leaf` where it judged a loop that just did the work."""

    loop: str
    attempt: int
    trouble: Trouble | None = None
    as_leaf: bool = False


@dataclass(frozen=True, slots=True)
class LandingReady(Observation):
    """A loop's landing is made and judged: it would move the plan's branch from one commit to another.

    Both are the same where it has nothing to land, and empty where it works without git. It would change the `touched`
    files.
    """

    loop: str
    attempt: int
    old: str = ""
    new: str = ""
    loop_tip: str = ""
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LandingTouches(Observation):
    """A landing that is being made ready would change these files; nobody has judged it yet."""

    loop: str
    attempt: int
    touched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LandingDone(Observation):
    """The loop's commits are on the plan branch and its artifact is published.

    A file at its place that loopr did not write `gave_way` to the handed over one, by its digest;
    or it `stays`.
    """

    loop: str
    attempt: int
    commit: str
    digest: str
    artifact: Artifact | None = None
    gave_way: str = ""
    stays: bool = False
    put_back: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # files that its judges name, and that it has made itself


@dataclass(frozen=True, slots=True)
class LandingFailed(Observation):
    """The loop's change does not fit the plan branch, or the second check said no."""

    loop: str
    attempt: int
    trouble: Trouble


@dataclass(frozen=True, slots=True)
class StopSeen(Observation):
    """An attempt that was told to stop has ended, all its descendants too."""

    loop: str
    attempt: int


# --- the engine and its machine -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PolicySeen(Observation):
    """The settings lead to this policy now; `seal` is the digest of what they are made from."""

    policy: Policy
    seal: str = ""
    of: tuple[str, str] | None = None  # the accepted settings that it was made from, and the later ones beside them


@dataclass(frozen=True, slots=True)
class SettingsSeen(Observation):
    """The files of the settings have this seal now; `over` is that of the accepted ones they were compared with.

    `keys` name what differs, but for what counts at once; `live` says that something of that kind does, and can be
    taken beside the accepted ones. `during` says that changes were held back when it was seen, `serving` that the
    engine saw it, which has been there since the last look.
    """

    seal: str
    over: str
    keys: tuple[str, ...] = ()
    live: bool = False
    during: bool = False
    serving: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostSeen(Observation):
    """The machine can take no further work for a reason, or (an empty one) it can; how often it has refused so far."""

    reason: str
    until: int = 0
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class Noticed(Observation):
    """Something that only a person can mend is in the way of an effect, or (an empty text) is not any more."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class CameHome(Observation):
    """A person's branch holds a plan's work now, all of it or what had landed (`partial`)."""

    plan: str
    branch: str
    commit: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class GrowthSeen(Observation):
    """While a loop was at work these came to what all worktrees share, or changed there, and harm nobody."""

    during: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HarmSeen(Observation):
    """While these loops were at work what all worktrees share was changed so that it harms somebody.

    `number` grows with each look that finds something: told twice, it counts once.
    """

    number: int
    names: tuple[str, ...]
    during: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BranchMoveSeen(Observation):
    """A person's branch was moved while these loops were at work, and stays where it is.

    `explained` is true where a person's own checkout has done it, by its own log; `undo` says what takes it back.
    """

    number: int
    repo: str
    branch: str
    old: str
    new: str
    during: tuple[str, ...]
    explained: bool
    undo: str = ""


@dataclass(frozen=True, slots=True)
class ListenersSet(Observation):
    """These hooks and addresses are set now; whoever of them is new hears of what comes after an event."""

    listeners: tuple[str, ...]
    upto: int


@dataclass(frozen=True, slots=True)
class ListenerTold(Observation):
    """A hook or an address has been told of all that concerns it up to an event."""

    listener: str
    upto: int


@dataclass(frozen=True, slots=True)
class EngineBegan(Observation):
    """An engine has taken the workspace."""

    pid: int
    host: str


@dataclass(frozen=True, slots=True)
class EngineDrains(Observation):
    """Somebody asked the engine to stop."""

    by: str


@dataclass(frozen=True, slots=True)
class EngineLeft(Observation):
    """The engine gives the workspace back; `looked`, if it has seen all files since the last loop was at work."""

    looked: bool = False


@dataclass(frozen=True, slots=True)
class DayPassed(Observation):
    """An engine that stays sees that a day has passed since something of a plan was first done again."""


@dataclass(frozen=True, slots=True)
class ClockBehind(Observation):
    """The clock is behind the last event by so much."""

    by_ms: int
