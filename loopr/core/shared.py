"""What all loops of a workspace share: policy, lanes, holds, the engine, the host, plans, convoys, problems.

Each is a small frozen value under a key, so that it can be a row of the journal. Knows no loop, and no event: those are
applied by `shared_steps.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loopr.core.model import Hold
from loopr.core.offers import Kept
from loopr.core.policy import OWN_REPO, Policy, decode_policy, encode_policy
from loopr.core.redo import NO_ROUND, Round
from loopr.core.tips import NO_TIP, Tip, read_tip

WORKSPACE = "workspace:"
"""The scope under which everything is held; a plan may be called `workspace`, and no id has a colon."""


class Lane(NamedTuple):
    """A provider account: how often it was hit, until when it rests, and how it ramps up again.

    `level` is the share of its provider's window that was used, in thousandths; it holds until `level_until`.
    `worked_for` is the loop that was served first after a rest.
    """

    hits: int = 0
    rest_from: int = 0
    rest_until: int = 0
    rest_grant: int = 0
    ramp: int | None = None
    parked: str = ""
    reason: str = ""
    level: int = 0
    level_until: int = 0
    worked_for: str = ""


_FRESH_LANE = Lane()


def project_scope(name: str) -> str:
    """Return the scope under which a project is held."""
    return f"project:{name}"


class Convoy(NamedTuple):
    """A named set of loops that lands when all of them are done."""

    members: tuple[str, ...] = ()
    landed_at: int | None = None


class Bound(NamedTuple):
    """The file a plan was started from, the branch and commit its work begins at, and the repository they are in.

    `repo` is written as in the settings of its project; nothing where the project has none.
    """

    source: str
    digest: str
    base_branch: str = ""
    base_commit: str = ""
    repo: str = OWN_REPO


class Denied(NamedTuple):
    """The last that is told of a wish that a loop was refused: its lease, about what, how often."""

    lease: str
    about: str
    tries: int
    at: int


class Suspects(NamedTuple):
    """The loops that were at work when something was harmed, the last lease granted then, and what was harmed."""

    number: int
    loops: tuple[str, ...]
    grant: int
    names: tuple[str, ...]


class Moved(NamedTuple):
    """Where a person's branch went while loops were at work, and whether a person's checkout explains it."""

    old: str
    new: str
    during: tuple[str, ...]
    explained: bool
    undo: str


def moved_key(repo: str, branch: str) -> str:
    """Return the key under which the move of a branch is remembered."""
    return f"{repo} {branch}"


class Engine(NamedTuple):
    """What decisions know of the engine that serves the workspace."""

    started_at: int = 0
    draining: bool = False
    last_grant_at: int = 0
    cut_short: bool = False
    serving: bool = False  # since the settings are accepted ones: it has begun, and has not ended in good order


class Host(NamedTuple):
    """Why the machine takes no more work, when to ask it again, and how often in a row it has refused some."""

    reason: str = ""
    until: int = 0
    refusals: int = 0


class Accepted(NamedTuple):
    """The settings in force, by the seals of their texts, and what the files say beside them.

    Of the texts under `live`, where that is another seal, counts what may change while loops are at
    work. `held` is the seal of what is held back, and `keys` name what of it would change.
    """

    seal: str = ""
    live: str = ""
    held: str = ""
    keys: tuple[str, ...] = ()


class Shared:
    """The state beside the loops."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with the built-in policy and nothing else."""
        self.policy = policy or Policy()
        self.policy_known = False
        self.seal = ""
        self.accepted = Accepted()
        self.lanes: dict[str, Lane] = {}
        self.holds: dict[str, Hold] = {}
        self.lifted: dict[str, int] = {}
        self.completed: dict[str, int] = {}
        self.convoys: dict[str, Convoy] = {}
        self.plans: dict[str, Bound] = {}
        self.tips: dict[str, Tip] = {}
        self.problems: dict[str, str] = {}
        self.heard: dict[str, int] = {}
        self.denied: dict[str, Denied] = {}
        self.moved: dict[str, Moved] = {}
        self.suspects: tuple[Suspects, ...] = ()
        self.looked = 0
        self.engine = Engine()
        self.host = Host()
        self.dispatch: tuple[str, ...] = ()
        self.grants = 0
        self.files_looked = 0
        self.kept: dict[str, Kept] = {}
        self.rounds: dict[str, Round] = {}
        self.dirty: set[str] = set()

    def lane(self, name: str) -> Lane:
        """Return a lane's state; one that was never hit works."""
        return self.lanes.get(name, _FRESH_LANE)

    def tip(self, plan: str) -> Tip:
        """Return where the branch of a plan stands."""
        return self.tips.get(plan, NO_TIP)

    def round(self, plan: str) -> Round:
        """Return what has happened to a plan since it was last started."""
        return self.rounds.get(plan, NO_ROUND)

    def asked_again(self, plan: str, at: int) -> None:
        """Note that something of a plan was asked to be done again since it was last started."""
        known = self.round(plan)
        if not known.used_at:
            self.put("round", plan, known._replace(used_at=at))

    def paced_until(self) -> int:
        """Say from when the next round may begin, after one that was cut short."""
        if not self.engine.cut_short or not self.policy.batch_size:
            return 0
        return self.engine.last_grant_at + max(self.policy.spawn_delay_ms, self.policy.poll_interval_ms)

    def granted(self, grant: int, *, pulled: bool) -> None:
        """Note a grant: the count goes on; the engine's own says that the round after one cut short has begun."""
        self.grants = grant
        self.dirty.add("grants")
        if self.engine.cut_short and not pulled:
            self.engine = self.engine._replace(cut_short=False)
            self.dirty.add("engine")

    def left_queue(self, loop_id: str) -> None:
        """Note that a loop waits no longer: whoever dispatched it has had their wish, or it is void."""
        if loop_id in self.dispatch:
            self.queue_up(tuple(each for each in self.dispatch if each != loop_id))

    def queue_up(self, loops: tuple[str, ...]) -> None:
        """Set who goes ahead of the queue, each once."""
        self.dispatch = tuple(dict.fromkeys(loops))
        self.dirty.add("dispatch")

    def denied_to(self, loop_id: str, wish: str) -> Denied | None:
        """Return the last that is told of a wish that a loop was refused."""
        return self.denied.get(f"{loop_id} {wish}")

    def suspect(self, suspects: tuple[Suspects, ...]) -> None:
        """Set of whom no two are at work at once."""
        self.suspects = suspects
        self.dirty.add("suspects")

    def has_looked(self, number: int) -> None:
        """Note up to which look all is told."""
        self.looked = max(self.looked, number)
        self.dirty.add("looked")

    def finished(self, project: str, at: int) -> None:
        """Note when a project last had a completion."""
        self.put("completed", project, at)

    def put(self, kind: str, key: str, value: Any) -> None:
        """Set a value and remember that its row must follow."""
        self._tables()[kind][key] = value
        self.dirty.add(f"{kind}/{key}")

    def drop(self, kind: str, key: str) -> None:
        """Drop a value and its row."""
        self._tables()[kind].pop(key, None)
        self.dirty.add(f"{kind}/{key}")

    # --- rows ------------------------------------------------------------------------------------------------------

    def row(self, key: str) -> Any:
        """Return the plain value of a row, None if it is no more."""
        kind, _, name = key.partition("/")
        if kind == "policy":
            return encode_policy(self.policy)
        if not name:
            return getattr(self, kind)
        return self._tables()[kind].get(name)

    def row_keys(self) -> list[str]:
        """List the keys of all rows."""
        named = [f"{kind}/{name}" for kind, table in self._tables().items() for name in table]
        own = ("policy", "seal", "accepted", "engine", "host", "dispatch", "grants", "looked", "suspects")
        return sorted([*own, "files_looked", *named])

    def read(self, rows: Mapping[str, Any]) -> None:
        """Take the state from rows."""
        for key, value in rows.items():
            kind, _, name = key.partition("/")
            match kind:
                case "policy":
                    self.policy = decode_policy(value)
                    self.policy_known = True
                case "engine":
                    self.engine = Engine(*value)
                case "host":
                    self.host = Host(*value)
                case "dispatch":
                    self.dispatch = tuple(value)
                case "seal":
                    self.seal = value
                case "accepted":
                    self.accepted = Accepted(value[0], value[1], value[2], tuple(value[3]))
                case "grants":
                    self.grants = value
                case "looked":
                    self.looked = value
                case "files_looked":
                    self.files_looked = value
                case "suspects":
                    self.suspects = tuple(Suspects(each[0], tuple(each[1]), each[2], tuple(each[3])) for each in value)
                case _ if kind in _READ:
                    self._tables()[kind][name] = _READ[kind](value)

    def _tables(self) -> dict[str, dict[str, Any]]:
        """Map the kinds of rows with a name to where they are kept."""
        return {
            "lane": self.lanes,
            "hold": self.holds,
            "lifted": self.lifted,
            "completed": self.completed,
            "convoy": self.convoys,
            "plan": self.plans,
            "tip": self.tips,
            "problem": self.problems,
            "heard": self.heard,
            "denied": self.denied,
            "moved": self.moved,
            "kept": self.kept,
            "round": self.rounds,
        }


_READ: Mapping[str, Any] = {
    "lane": lambda value: Lane(*value),
    "hold": lambda value: Hold(*value),
    "lifted": int,
    "completed": int,
    "convoy": lambda value: Convoy(tuple(value[0]), value[1]),
    "plan": lambda value: Bound(*value),
    "tip": read_tip,
    "problem": str,
    "heard": int,
    "denied": lambda value: Denied(*value),
    "moved": lambda value: Moved(value[0], value[1], tuple(value[2]), *value[3:]),
    "kept": lambda value: Kept(value[0], tuple(value[1])),
    "round": lambda value: Round(*value),
}
