"""The nouns: a loop, its status, its lease, what it has used, why it waits, what is owed to it.

All of them are frozen values. Knows no rule of when one becomes another (`lifecycle.py`), no clock, disk or journal.
Instants are whole milliseconds UTC, money is whole micro-dollars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from loopr.core.clash import NO_CLASH, Clash, read_clash
from loopr.core.offers import NO_OFFERS, Offers, read_offers
from loopr.core.policy import NO_BUDGET, Amounts, Budget, read_amounts
from loopr.core.redo import NO_PAST, Past, read_past


class Status(StrEnum):
    """Where a loop stands, said from its own point of view. Readiness is never stored: gates say it."""

    PENDING = "pending"  # I wait for my turn; the gates say for what
    LEASED = "leased"  # I was chosen; my worktree and my process are owed
    RUNNING = "running"  # my command runs, or a pull worker has me
    CHECKING = "checking"  # my command ended well; the engine judges what it left
    AWAITING = "awaiting_approval"  # the check said yes, and a person must too
    LANDING = "landing"  # my commits are on their way to the plan branch
    COMPLETE = "complete"  # my work is integrated and my artifact is published
    PARKED = "parked"  # something must be mended before I may try again
    FAILED = "failed"  # my iterations are used up, or a person said no
    CANCELLED = "cancelled"  # a person ended me
    INVALIDATED = "invalidated"  # I am no longer declared


OCCUPYING = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING, Status.LANDING})
"""What takes a slot. An attempt that was told to stop and is not known to have ended takes one too."""

FINISHED = frozenset({Status.COMPLETE, Status.CANCELLED, Status.INVALIDATED})
"""What a cancel has nothing left to end in."""

STUCK = frozenset({Status.PARKED, Status.FAILED, Status.CANCELLED, Status.INVALIDATED})
"""What no time and no event of the engine brings back."""


class Failure(StrEnum):
    """What went wrong, and so what it costs (`semantics.md` section 5)."""

    REFUSED = "refused"  # somebody judged me and said no
    CONFLICT = "conflict"  # my change does not fit the plan branch any more
    INFRA = "infra"  # I ended without a verdict, and it was not my doing
    TIMEOUT = "timeout"  # one of my clocks ran out
    LIMITED = "limited"  # my provider asked for a rest
    LANE = "lane"  # my provider will not have this account at all
    HOST = "host"  # this machine cannot start anything now
    CONFIG = "config"  # I was asked for in a way that can never work
    BUDGET = "budget"  # I have used up what was mine
    BLOCKED = "blocked"  # my command says that a person must do something first


LEFT, DROPPED = "no longer declared", "no longer declared by its parent"  # with it, or alone
CLEARED = "cleared"


class Hold(NamedTuple):
    """A person's pause."""

    by: str
    at: int
    reason: str

    @property
    def is_clearing(self) -> bool:
        """Whether the loop was taken out of the queue, and goes on with the workspace."""
        return self.reason == CLEARED


class Usage(NamedTuple):
    """What an attempt has used; `tokens` and `micro_usd` are None where nobody said, which is never zero."""

    tokens: int | None = None
    micro_usd: int | None = None
    ms: int = 0
    estimated: bool = False  # where its client has rounded them, or was cut off before it could tell


NO_USAGE = Usage()


class Spent(NamedTuple):
    """What all ended attempts of a loop have used; `estimated` if any of its cost had to be derived from time."""

    tokens: int = 0  # as it was reported
    cost: int = 0  # what budgets and shares count, in thousandths of a token
    usd: int = 0  # in millionths
    ms: int = 0
    estimated: bool = False
    beside_ms: int = 0  # of setups and judges, which no budget counts


NOTHING_SPENT = Spent()


class Lease(NamedTuple):
    """The right to make one attempt; `grant` counts all grants of the workspace, so it orders leases exactly.

    `agent` is the preset that works in it, if one does; `supervisor` names who watches it, in words of the world.
    A landing that lets others pass is `behind` the turn of another loop, in these files.
    `holds` are the resources that it has until its work is judged.
    """

    attempt: int
    holder: str
    lane: str
    at: int
    grant: int
    expires_at: int | None = None
    started_at: int | None = None
    judge_only: bool = False
    agent: str = ""
    supervisor: str = ""
    lands: bool = False
    behind: tuple[str, ...] = ()
    holds: Amounts = ()


def read_lease(value: Sequence[Any]) -> Lease:
    """Read a lease back from a row."""
    lease = Lease(*value)
    return lease._replace(behind=tuple(lease.behind), holds=read_amounts(lease.holds))


class Ending(NamedTuple):
    """An attempt that was told to stop and is not known to have ended: it keeps its slot until then.

    A pull worker cannot be told; its attempt counts as ended when its lease expires.
    """

    attempt: int
    lane: str
    started_at: int | None = None
    expires_at: int | None = None
    supervisor: str = ""
    holds: Amounts = ()


class Terms(NamedTuple):
    """What an entry says of a loop: the part of a `Loop` that comes from its parent's artifact.

    `identity` is the digest of what would make it other work, `outline` that of its nested children, if it has any;
    `checked` if it names a check; `priority`, `leaf` and `resources` as they were said, if they were. A child is
    `on_offer` while it has what only a person may say, and came with a file that no person has taken yet.
    """

    title: str
    place: int = 0
    project: str = "default"
    needs: tuple[str, ...] = ()
    serial: bool = False
    identity: str = ""
    outline: str = ""
    command: bool = False
    files: tuple[str, ...] = ()
    budget: Budget = NO_BUDGET
    agent: str = ""
    checked: bool = False
    on_offer: bool = False
    priority: int | None = None
    inputs: tuple[str, ...] = ()
    leaf: bool | None = None
    resources: Amounts | None = None


class Loop(NamedTuple):
    """One node of the tree: how it was declared, then where it stands.

    `tally` counts what went wrong by class, since its counters last began; `in_vain` its limits in a row on the lane
    `vain_on`.
    """

    id: str
    type: str
    title: str
    parent: str | None
    place: int
    depth: int
    project: str
    needs: tuple[str, ...] = ()
    serial: bool = False
    identity: str = ""
    outline: str = ""
    command: bool = False
    files: tuple[str, ...] = ()
    budget: Budget = NO_BUDGET
    agent: str = ""
    checked: bool = False
    on_offer: bool = False
    priority: int | None = None
    inputs: tuple[str, ...] = ()
    leaf: bool | None = None
    resources: Amounts | None = None
    created: int = 0

    status: Status = Status.PENDING
    since: int = 0
    updated: int = 0
    generation: int = 1
    leased: bool = False
    attempt: int = 0
    iteration: int = 1
    granted_iterations: int = 0
    failures: int = 0
    launch_failures: int = 0
    conflicts: int = 0
    signature: str = ""
    repeats: int = 0
    answers: tuple[tuple[str, int], ...] = ()  # how often the same answer was given to the same work, the latest last
    answered: str = ""  # the agent that the last answer was given to
    taken_early: bool = False  # the agent of `escalate.refused` goes on, though its number is not full
    conflict_tip: str = ""
    clash: Clash = NO_CLASH
    tally: tuple[tuple[str, int], ...] = ()
    in_vain: int = 0
    vain_on: str = ""
    not_before: int = 0
    lease: Lease | None = None
    ending: Ending | None = None
    judge_only: bool = False
    engaged: bool = False
    hold: Hold | None = None
    lifted: int = 0
    reason: str = ""
    spent: Spent = NOTHING_SPENT
    live: Usage = NO_USAGE
    artifact: str = ""
    on_disk: bool = False
    seen: int = 0
    finished: str = ""
    deferred: tuple[str, str] | None = None
    base_commit: str = ""
    landed: str = ""
    yes: tuple[tuple[str, str], ...] = ()  # the last of each judge: who, and about what
    offers: Offers = NO_OFFERS
    outdated: str = ""  # which inputs are others since its lease was granted
    past: Past = NO_PAST
    packed: str = ""  # what became of its worktree since its last grant, if it has not stayed
    own: tuple[str, ...] = ()  # files that its judges name, and that it has made itself

    @property
    def plan(self) -> str:
        """The id of the plan this loop belongs to."""
        return self.id.partition("/")[0]

    @property
    def terms(self) -> Terms:
        """What the loop's entry said last."""
        return Terms(*(getattr(self, key) for key in Terms._fields))

    @property
    def lease_id(self) -> str:
        """The name of the present lease, `<loop>#<attempt>`."""
        return f"{self.id}#{self.attempt}"

    @property
    def name(self) -> str:
        """The name of this generation: branch, worktree folder and run folder are called so."""
        from loopr.core.naming import generation_name  # a hash is slow to import, and few verbs name a generation

        return generation_name(self.id, self.generation)

    @property
    def waits(self) -> bool:
        """True while the loop waits for its turn: it is pending, or complete and to be done again."""
        return self.status is Status.PENDING or (self.status is Status.COMPLETE and self.past.ask is not None)

    @property
    def redoing(self) -> bool:
        """True from the wish that complete work be done again until that is over, or has come to a stop."""
        return self.past.ask is not None and self.status not in STUCK

    @property
    def occupying(self) -> bool:
        """True while the loop takes a slot."""
        return self.ending is not None or self.status in OCCUPYING

    @property
    def holds_line(self) -> bool:
        """True while serial siblings of the same type must wait for this loop, if it is serial itself."""
        return self.engaged or self.ending is not None

    @property
    def lane(self) -> str | None:
        """The lane that the present attempt uses."""
        if self.lease is not None:
            return self.lease.lane
        return self.ending.lane if self.ending is not None else None


class Gate(NamedTuple):
    """One closed gate: its name, the reason in words, and when it opens by itself if that is known."""

    gate: str
    reason: str
    until: int | None = None


_LOOP_DEFAULTS = Loop("", "", "", None, 0, 0, "")
_NESTED: Mapping[str, Callable[[Any], Any]] = {
    "needs": tuple,
    "files": tuple,
    "inputs": tuple,
    "budget": lambda value: Budget(*value),
    "status": Status._value2member_map_.__getitem__,
    "resources": read_amounts,
    "lease": read_lease,
    "ending": lambda value: Ending(*value[:5], *map(read_amounts, value[5:])),
    "hold": lambda value: Hold(*value),
    "clash": read_clash,
    "tally": lambda value: tuple((name, count) for name, count in value),
    "answers": lambda value: tuple((mark, count) for mark, count in value),
    "spent": lambda value: Spent(*value),
    "live": lambda value: Usage(*value),
    "deferred": tuple,
    "own": tuple,
    "yes": lambda value: tuple((judge, key) for judge, key in value),
    "offers": read_offers,
    "past": read_past,
}
_READ = {name: (place, _NESTED.get(name)) for place, name in enumerate(Loop._fields)}


def encode_loop(loop: Loop) -> dict[str, Any]:
    """Turn a loop into plain JSON values, leaving out whatever has its default."""
    out: dict[str, Any] = {}
    for key, value, default in zip(Loop._fields, loop, _LOOP_DEFAULTS, strict=True):
        if value != default:
            out[key] = [value.tokens, value.micro_usd, value.secs] if isinstance(value, Budget) else value
    return out


def decode_loop(pairs: Iterable[tuple[str, Any]]) -> Loop:
    """Read a loop back: the hook of `json.loads` for the rows of loops, which makes no dictionary of any."""
    values = list(_LOOP_DEFAULTS)
    for key, value in pairs:
        place, read = _READ[key]
        values[place] = value if read is None or value is None else read(value)
    return Loop._make(values)
