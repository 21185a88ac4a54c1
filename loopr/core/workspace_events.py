"""Every event that is about more than one loop: plans, policy, engine, host, holds, lanes, convoys, problems.

Beside them what a loop was refused, which changes nothing in it. Past tense, like all events. Knows neither what they
change (`forest.py`) nor how they are written down (`codec.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loopr.core.events import Event, LoopEvent
from loopr.core.policy import OWN_REPO


@dataclass(frozen=True, slots=True)
class PlanBound(Event):
    """A plan is bound to the file it was started from, or was taken over from a file that moved.

    `repo` is the repository that its work begins in, for good, as the settings of its project write it.
    """

    plan: str
    source: str
    digest: str
    base_branch: str = ""
    base_commit: str = ""
    repo: str = OWN_REPO


@dataclass(frozen=True, slots=True)
class PolicyLoaded(Event):
    """The policy that decisions use from here on, whole; `seal` tells what it was made from, unchanged."""

    policy: Mapping[str, Any]
    seal: str = ""


@dataclass(frozen=True, slots=True)
class SettingsAccepted(Event):
    """The settings in force are those whose texts have this seal, because of a person or a rule.

    `live` is the seal of later texts of which only that counts which may change while loops are at
    work; `names` are the files that there were.
    """

    seal: str
    by: str
    live: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingsHeld(Event):
    """The files say something else, which is held back; `keys` name what would change."""

    seal: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsPutBack(Event):
    """The files say again what is accepted: nothing is held back any more."""


@dataclass(frozen=True, slots=True)
class HostChanged(Event):
    """The machine can take no further work for a reason, or (an empty one) it can again; probed again at `until`."""

    reason: str
    until: int = 0
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class HostWorked(Event):
    """The machine has let an attempt be made since it refused something: what it refuses next is a first time."""


@dataclass(frozen=True, slots=True)
class EngineStarted(Event):
    """An engine serves the workspace."""

    pid: int
    host: str


@dataclass(frozen=True, slots=True)
class EngineDraining(Event):
    """The engine starts nothing more."""

    by: str


@dataclass(frozen=True, slots=True)
class EngineEnded(Event):
    """The engine left in good order.

    `looked` is the count of leases granted by then, if it has seen all files since the last ended.
    """

    looked: int = -1


@dataclass(frozen=True, slots=True)
class ClockMoved(Event):
    """The clock was behind the last event: every stored instant moves with it."""

    by_ms: int


@dataclass(frozen=True, slots=True)
class RoundCut(Event):
    """A round of grants ended before its work did, because of the pace; the next one comes after the delay."""


@dataclass(frozen=True, slots=True)
class ScopeHeld(Event):
    """A person paused a project (`project:NAME`) or the whole workspace (`workspace`)."""

    scope: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ScopeLifted(Event):
    """The pause of a project or of the workspace is over."""

    scope: str
    by: str


@dataclass(frozen=True, slots=True)
class LoopsDispatched(Event):
    """A person wants these loops next, ahead of the queue and past no gate."""

    loops: tuple[str, ...]
    by: str


@dataclass(frozen=True, slots=True)
class LaneRested(Event):
    """A lane rests until an instant; `grant` is the last lease granted before, so later ones are told apart."""

    lane: str
    hits: int
    until: int
    grant: int
    reason: str


@dataclass(frozen=True, slots=True)
class LaneWorked(Event):
    """An attempt of a loop, granted after the rest, ended well or by its own doing: no more hits, a wider ramp."""

    lane: str
    ramp: int | None
    loop: str = ""


@dataclass(frozen=True, slots=True)
class LaneMeasured(Event):
    """A provider says how much of a lane's window is used, in thousandths, until it begins anew."""

    lane: str
    level: int
    until: int


@dataclass(frozen=True, slots=True)
class LaneParked(Event):
    """A lane is of no use until a person mends its account."""

    lane: str
    reason: str


@dataclass(frozen=True, slots=True)
class LaneReset(Event):
    """A person ended a lane's rest, or mended it."""

    lane: str
    by: str


@dataclass(frozen=True, slots=True)
class ConvoyFormed(Event):
    """A convoy has these further members; its first such event makes it."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConvoyLanded(Event):
    """All members of a convoy are done."""

    name: str


@dataclass(frozen=True, slots=True)
class PlanCameHome(Event):
    """A plan's work is on a branch of a person's; `commit` is where that stands now.

    It is `partial` where the plan is not done: what had landed up to then is there.
    """

    plan: str
    branch: str
    commit: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class SharedGrew(Event):
    """What all worktrees share changed in a way that harms nobody: by a loop that ran then, or by a person."""

    during: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedHarmed(Event):
    """What all worktrees share was changed so that it harms somebody, while these loops were at work.

    One that was alone is to blame. Of several no two are at work at once until one has ended without harm.
    """

    number: int
    names: tuple[str, ...]
    during: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SuspectsCleared(Event):
    """A loop that was at work when something was harmed has ended without harm: these may run beside each other."""

    loop: str
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BranchMoved(Event):
    """A person's branch was moved while loops were at work, by a person's checkout or else not, and it stays."""

    number: int
    repo: str
    branch: str
    old: str
    new: str
    during: tuple[str, ...]
    explained: bool
    undo: str = ""


@dataclass(frozen=True, slots=True)
class ListenerHeard(Event):
    """A hook or an address has been told of all that concerns it up to an event; one that is new begins there."""

    listener: str
    upto: int


@dataclass(frozen=True, slots=True)
class ListenerLeft(Event):
    """A hook or an address is set no more; should it come back it begins anew."""

    listener: str


@dataclass(frozen=True, slots=True)
class FileKept(Event):
    """A file that nothing counts by yet came while loops were at work: it has their trust once it may count.

    It is the plan's own, or one for a loop that is not declared yet; without a digest it is remembered no longer.
    """

    place: str
    digest: str
    during: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProblemSeen(Event):
    """A file or a plan needs a person's eye."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class ProblemGone(Event):
    """What was wrong there is not any more."""

    place: str


@dataclass(frozen=True, slots=True)
class SteeringRefused(LoopEvent):
    """A loop wished for what is not for it: under which lease, for what, about whom, how often.

    Of the tries of one wish under one lease the first is told, and each that doubles the last told.
    """

    lease: str
    wish: str
    about: str = ""
    tries: int = 1
