"""The frozen numbers that decisions use, with their defaults.

Knows the words of `loopr.yml` that a decision may see. Must never know the file itself, a command line, a path or an
environment: those are settings (`world/settings.py`), which build a `Policy` and journal it whole when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

DEFAULT_LANE = "default"
DEFAULT_PROJECT = "default"
OWN_REPO = "."
"""What the repository around the workspace is called; nothing is no repository at all."""
DEFAULT_MAX_ITERATIONS = 100
MAY = ("start", "dispatch", "pause", "cancel", "retry", "lease", "convoy")
"""What `types.T.may` may let a loop do to what is below it, and to plans that it started."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A ceiling on tokens, money and time; `None` is unlimited, 0 is a real limit."""

    tokens: int | None = None
    micro_usd: int | None = None
    secs: int | None = None

    @property
    def unlimited(self) -> bool:
        """True when nothing is limited."""
        return self.tokens is None and self.micro_usd is None and self.secs is None


NO_BUDGET = Budget()


SPARE_WORKTREES = 4
"""How many worktrees there may be beside those at work, where the settings do not say it."""
RESOURCE_NAME = "[A-Za-z][A-Za-z0-9_-]{0,30}"
MAX_OFFERED = 1_000_000
Amounts = tuple[tuple[str, int], ...]
"""How much is wanted of each named resource, or held, by name."""


class Step(NamedTuple):
    """An escalation: the agent that takes over after so many failures of a class."""

    after: int
    agent: str


@dataclass(frozen=True, slots=True)
class TypePolicy:
    """What the selector must know of one type of the ladder; where judges have no lane they use the attempt's.

    `fallback` has the agents that stand in, in this order, while all lanes of whoever is before them rest. `said` names
    what the settings say of how this very type is judged, where that cannot be told from the value.
    """

    name: str
    child: str | None = None
    has_command: bool = False
    judged: bool = False
    reviewed: bool = False
    approve: bool = False
    parallel: bool = True
    lanes: tuple[str, ...] = (DEFAULT_LANE,)
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    budget: Budget = NO_BUDGET
    trust_outline: bool = False
    agent: str = ""
    escalate: Mapping[str, Step] = field(default_factory=dict)
    judge_lanes: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    stale: str = "tell"
    said: tuple[str, ...] = ()
    resources: Amounts = ()
    worktree: bool = True

    def judged_like(self, last: TypePolicy) -> TypePolicy:
        """Return this type for a loop that just does the work: judged as the last one is, where it says nothing."""
        return replace(
            self,
            child=None,
            judged=self.judged or ("check" not in self.said and last.judged),
            reviewed=self.reviewed or last.reviewed,
            judge_lanes=self.judge_lanes if self.reviewed or self.judge_lanes else last.judge_lanes,
            approve=self.approve or ("approve" not in self.said and last.approve),
            max_iterations=self.max_iterations if "max_iterations" in self.said else last.max_iterations,
        )


@dataclass(frozen=True, slots=True)
class Priority:
    """The terms of the score, `semantics.md` section 3; `base` has one number per type."""

    base: Mapping[str, int] = field(default_factory=lambda: {"plan": 40, "spec": 60, "phase": 80, "code": 100})
    age_boost_per_minute: int = 1
    age_boost_max: int = 50
    depth_boost_per_level: int = 10
    retry_penalty_per_iteration: int = 5
    retry_penalty_max: int = 30


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how soon a loop may fail before it is set aside."""

    base_ms: int = 30_000
    factor: Fraction = Fraction(2)
    cap_ms: int = 300_000
    jitter: Fraction = Fraction(1, 10)
    max_attempts: int = 6
    max_launch_failures: int = 3
    max_conflicts: int = 2
    no_progress: int = 3
    same_answer: int | None = 10


@dataclass(frozen=True, slots=True)
class LanePolicy:
    """One provider account: how many at once, and what a million tokens cost where its client does not say.

    `slow_above` is the used share of the provider's window, in thousandths, above which fewer are started.
    `max_rest_ms` is the longest rest that a result file or plain text can ask for.
    """

    max_concurrent: int | None = None
    micro_usd_per_mtok: int | None = None
    slow_above: int | None = None
    max_rest_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class ProjectPolicy:
    """One payer: its weight in the fair share, its cap and its budget."""

    weight: Fraction = Fraction(1)
    max_concurrent: int | None = None
    budget: Budget = NO_BUDGET


_PLAIN_LANE = LanePolicy()
_PLAIN_PROJECT = ProjectPolicy()


def default_types() -> dict[str, TypePolicy]:
    """Return the built-in ladder: plan, spec, phase, code."""
    return {
        "plan": TypePolicy("plan", "spec", max_iterations=50),
        "spec": TypePolicy("spec", "phase", max_iterations=30),
        "phase": TypePolicy("phase", "code", max_iterations=20),
        "code": TypePolicy("code", None, max_iterations=100),
    }


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything a decision may look at beside the forest and the clock.

    `agents` has the lanes of each agent preset that does not simply use the lane of its own name. Under settings from
    before `time_is_tokens`: what told no tokens counted in budgets by its time.
    """

    types: Mapping[str, TypePolicy] = field(default_factory=default_types)
    priority: Priority = Priority()
    retry: Retry = Retry()
    max_loops: int = 50
    max_api_calls: int = 10
    per_type: Mapping[str, int] = field(default_factory=lambda: {"plan": 2, "spec": 5, "phase": 20, "code": 50})
    starvation_ms: int = 3_600_000
    poll_interval_ms: int = 1_000
    batch_size: int = 0
    spawn_delay_ms: int = 0
    soft_limit: int | None = None
    hard_limit: int | None = None
    lease_ttl_ms: int = 300_000
    merge_turn_ms: int = 3_600_000
    ramp: bool = True
    lanes: Mapping[str, LanePolicy] = field(default_factory=dict)
    agents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    projects: Mapping[str, ProjectPolicy] = field(default_factory=lambda: {DEFAULT_PROJECT: ProjectPolicy()})
    window_ms: int = 86_400_000
    tokens_per_second: Fraction = Fraction(50)
    budget: Budget = NO_BUDGET
    loops_per_plan: int = 10_000
    max_load: Fraction | None = None
    min_free_bytes: int = 2 * 1024**3
    artifacts_dir: str = "specs"
    worktrees_dir: str = "worktrees"
    branch_prefix: str = "loopr/"
    hooks_may_decide: bool = False
    time_is_tokens: bool = False
    resources: Mapping[str, int] = field(default_factory=dict)
    max_worktrees: int | None = None

    @property
    def most_worktrees(self) -> int | None:
        """How many loops may have a worktree: never fewer than may be at work; None where that is not bounded."""
        if self.max_worktrees is not None:
            return max(self.max_worktrees, self.max_loops)
        return None if self.unbounded else self.max_loops + SPARE_WORKTREES

    @property
    def root_type(self) -> str:
        """The type at the top of the ladder, which a plan file has."""
        children = {each.child for each in self.types.values()}
        return next(name for name in self.types if name not in children)

    @property
    def last_type(self) -> str:
        """The type at the bottom of the ladder, whose loops do the work."""
        return next((name for name, each in self.types.items() if each.child is None), self.root_type)

    def leaf_of(self, name: str) -> TypePolicy:
        """Return the policy of a type for a loop of it that just does the work."""
        own = self.type_of(name)
        return own if own.child is None else own.judged_like(self.type_of(self.last_type))

    @property
    def unbounded(self) -> bool:
        """True when there is no ceiling on loops (direct dispatch), hence no queue limits."""
        return self.max_loops <= 0

    @property
    def api_ceiling(self) -> int | None:
        """How many may use lanes other than the default one at once; None where that is not bounded."""
        return self.max_api_calls if self.max_api_calls > 0 else None

    def type_of(self, name: str) -> TypePolicy:
        """Return the policy of a type; a type that left the ladder keeps a plain one without a command."""
        return self.types.get(name) or TypePolicy(name)

    def lane(self, name: str) -> LanePolicy:
        """Return the numbers of a lane, named in the settings or not."""
        return self.lanes.get(name, _PLAIN_LANE)

    def project(self, name: str) -> ProjectPolicy:
        """Return the numbers of a project, named in the settings or not."""
        return self.projects.get(name, _PLAIN_PROJECT)

    def queue_limits(self) -> tuple[int | None, int | None]:
        """Return the soft and the hard limit of the queue; both are None without a ceiling on loops."""
        if self.unbounded:
            return None, None
        soft = self.soft_limit if self.soft_limit is not None else max(8, 4 * self.max_loops)
        return soft, self.hard_limit if self.hard_limit is not None else 2 * soft

    def place_of(self, loop_id: str, type_name: str) -> str:
        """Return where the artifact of a loop belongs, as messages and problems call it."""
        return f"{self.artifacts_dir}/{loop_id}/{type_name}.md"


def encode_policy(policy: Policy) -> dict[str, Any]:
    """Turn a policy into plain JSON values; fractions become text such as "3/2"."""
    plain: dict[str, Any] = _plain(asdict(policy))
    return plain


def _plain(value: Any) -> Any:
    """Replace what JSON cannot hold, all the way down."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def decode_policy(data: Mapping[str, Any]) -> Policy:
    """Read a policy back from the journal; keys of a later version are ignored, missing ones take their default."""
    rest = {"time_is_tokens": True} | _known(Policy, data)
    rest["types"] = {name: _decode_type(each) for name, each in data["types"].items()}
    rest["priority"] = Priority(**_known(Priority, data["priority"]))
    rest["retry"] = Retry(**_fractions(_known(Retry, data["retry"]), "factor", "jitter"))
    rest["lanes"] = {name: LanePolicy(**_known(LanePolicy, each)) for name, each in data["lanes"].items()}
    rest["agents"] = {name: tuple(each) for name, each in data.get("agents", {}).items()}
    rest["projects"] = {name: _decode_project(each) for name, each in data["projects"].items()}
    rest["budget"] = Budget(**data["budget"])
    return Policy(**_fractions(rest, "tokens_per_second", "max_load"))


def _known(cls: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the keys that this version of the class has."""
    return {key: data[key] for key in cls.__dataclass_fields__ if key in data}


def _fractions(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Turn the named texts into exact fractions."""
    return data | {key: Fraction(data[key]) for key in keys if data.get(key) is not None}


def _decode_type(data: Mapping[str, Any]) -> TypePolicy:
    """Read one type back."""
    known = _known(TypePolicy, data)
    steps = {name: Step(*each) for name, each in data.get("escalate", {}).items()}
    read = {"budget": Budget(**data["budget"]), "escalate": steps}
    lists = {key: tuple(data.get(key, ())) for key in ("lanes", "judge_lanes", "fallback", "may", "inputs", "said")}
    return TypePolicy(**known | read | lists | {"resources": read_amounts(data.get("resources", ()))})


def read_amounts(value: Iterable[tuple[str, int]]) -> Amounts:
    """Read amounts back from plain values."""
    return tuple((name, amount) for name, amount in value)


def _decode_project(data: Mapping[str, Any]) -> ProjectPolicy:
    """Read one project back."""
    known = _fractions(_known(ProjectPolicy, data), "weight")
    return ProjectPolicy(**known | {"budget": Budget(**data["budget"])})
