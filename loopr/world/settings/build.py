"""Merged values -> the typed settings and the policy that decisions see.

Knows the names of the keys and their units: milliseconds, micro-dollars, bytes and exact fractions come out. Must never
know a file or a rule of core.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import Any

from loopr.core.policy import (
    DEFAULT_LANE,
    DEFAULT_MAX_ITERATIONS,
    Amounts,
    Budget,
    LanePolicy,
    Policy,
    Priority,
    ProjectPolicy,
    Retry,
    Step,
    TypePolicy,
)
from loopr.world.settings.keys import NO_CHECK
from loopr.world.settings.ladder import in_order
from loopr.world.settings.layers import Story
from loopr.world.settings.parts import (
    LEFT_OPEN,
    Artifacts,
    Cache,
    Commits,
    Environment,
    Git,
    Land,
    LaneSettings,
    Logs,
    ProjectSettings,
    Settings,
    Timeouts,
    TypeSettings,
    Worktrees,
    check_of,
)
from loopr.world.settings.presets import Preset, Shelf
from loopr.world.settings.schema import SCHEMA

Values = Mapping[str, Any]

GIB = 1024**3
MIB = 1024**2
_USUAL: Mapping[str, int] = SCHEMA.keys["retry"].keys["max_iterations"].default
_SAID_OF_POLICY = ("check", "approve", "max_iterations")
_NO_HOOKS = ("timeout_secs", "may_decide")


def build(values: Values, story: Story, shelf: Shelf, agents: Mapping[str, Preset]) -> Settings:
    """Build the typed settings from sound merged values, what the layers said, and the presets that were read."""
    names = in_order(values["types"])
    timeouts = _timeouts(values["timeouts"])
    hooks = {name: each for name, each in values["hooks"].items() if each is not None and name not in _NO_HOOKS}
    return Settings(
        values=values,
        story=story,
        policy=_policy(values, names, agents, story),
        types=MappingProxyType(
            {name: _type_settings(name, values, agents, timeouts, _said(name, values, story)) for name in names}
        ),
        lanes=MappingProxyType({name: _lane_settings(name, each) for name, each in _lanes(values)}),
        projects=MappingProxyType({name: _project_settings(name, each) for name, each in values["projects"].items()}),
        artifacts=_artifacts(values["artifacts"]),
        worktrees=_worktrees(values["worktrees"]),
        git=Git(values["git"]["base"], values["git"]["branch_prefix"]),
        land=Land(values["land"]["mode"], values["land"]["history"], check_of(values["land"]["check"])),
        timeouts=timeouts,
        logs=_logs(values["logs"]),
        hooks=MappingProxyType(hooks),
        hook_ms=_ms(values["hooks"]["timeout_secs"]),
        notify=tuple(values["notify"]),
        notify_on=frozenset(values["notify_on"]),
        commit=_commits(values["commit"]),
        max_file_bytes=scaled(values["commit"]["max_file_mb"], MIB),
        plan_base=values["plan_base"],
        union=tuple(values["merge"]["union"]),
        agents=MappingProxyType(dict(agents)),
        shelf=shelf,
    )


def scaled(value: float, unit: int) -> int:
    """Return a number in a smaller whole unit, half up."""
    return value * unit if isinstance(value, int) else int(exact(value) * unit + Fraction(1, 2))


def exact(value: float) -> Fraction:
    """Return the fraction that was written, not its nearest binary one."""
    return Fraction(str(value))


def _ms(secs: float) -> int:
    """Return whole milliseconds."""
    return scaled(secs, 1000)


def _per_type(concurrency: Values, names: list[str], story: Story) -> dict[str, int]:
    """Return the limits of types; without a ceiling on loops only those bind that somebody has written."""
    limits = {name: limit for name in names if (limit := concurrency["per_type"].get(name)) is not None}
    if concurrency["max_loops"] > 0:
        return limits
    return {name: limit for name, limit in limits.items() if story.get(f"concurrency.per_type.{name}")}


def _policy(values: Values, names: list[str], agents: Mapping[str, Preset], story: Story) -> Policy:
    """Build what decisions see."""
    scheduler, concurrency, queue = (values[each] for each in ("scheduler", "concurrency", "queue"))
    share = values["fair_share"]
    lanes = {name: _lane_policy(each) for name, each in _lanes(values)}
    return Policy(
        types={name: _type_policy(name, values, agents, _said(name, values, story)) for name in names},
        priority=_priority(scheduler["priority"], names),
        retry=_retry(values["retry"]),
        max_loops=concurrency["max_loops"],
        max_api_calls=concurrency["max_api_calls"],
        per_type=_per_type(concurrency, names, story),
        starvation_ms=_ms(scheduler["starvation_secs"]),
        poll_interval_ms=_ms(scheduler["poll_interval_secs"]),
        batch_size=values["dispatch"]["batch_size"],
        spawn_delay_ms=_ms(values["dispatch"]["spawn_delay_secs"]),
        soft_limit=queue["soft_limit"],
        hard_limit=queue["hard_limit"],
        lease_ttl_ms=_ms(values["lease"]["ttl_secs"]),
        merge_turn_ms=_ms(values["merge"]["turn_secs"]),
        ramp=values["lanes"]["ramp"],
        lanes={name: each for name, each in lanes.items() if name != DEFAULT_LANE or each != LanePolicy()},
        agents={name: each.lanes for name, each in agents.items() if each.lanes != (name,)},
        projects={name: _project_policy(each) for name, each in values["projects"].items()},
        window_ms=scaled(share["window_hours"], 3_600_000),
        tokens_per_second=exact(share["tokens_per_second"]),
        budget=_budget(values["budget"]),
        loops_per_plan=values["limits"]["loops_per_plan"],
        max_load=None if scheduler["max_load"] is None else exact(scheduler["max_load"]),
        min_free_bytes=scaled(values["worktrees"]["min_free_gb"], GIB),
        artifacts_dir=values["artifacts"]["dir"],
        worktrees_dir=values["worktrees"]["dir"],
        branch_prefix=values["git"]["branch_prefix"],
        hooks_may_decide=values["hooks"]["may_decide"],
        resources=dict(_amounts(values["resources"])),
        max_worktrees=values["worktrees"]["max"],
    )


def _said(name: str, values: Values, story: Story) -> tuple[str, ...]:
    """Name what is set for one type, and not for all, of how the work of its loops is judged."""
    each, places = values["types"][name], ("check", *LEFT_OPEN, "max_iterations")
    found = [key for key in places if story.get(f"types.{name}.{key}") and each[key] is not None]
    if each["review"]["run"] is not None or each["review"]["agent"] is not None:
        found.append("review")
    if "max_iterations" not in found and _max_iterations(name, values) != _USUAL.get(name, DEFAULT_MAX_ITERATIONS):
        found.append("max_iterations")
    return (*found, *(_clock(key) for key, secs in each["timeouts"].items() if secs is not None))


def _type_policy(name: str, values: Values, agents: Mapping[str, Preset], said: tuple[str, ...]) -> TypePolicy:
    """Build what decisions see of one type."""
    each = values["types"][name]
    return TypePolicy(
        name=name,
        child=each["child"],
        has_command=each["run"] is not None or each["agent"] is not None,
        judged=check_of(each["check"]) is not None,
        reviewed=each["review"]["run"] is not None or each["review"]["agent"] is not None,
        approve=each["approve"],
        parallel=each["parallel"],
        lanes=_lanes_of(each, agents),
        max_iterations=_max_iterations(name, values),
        budget=_budget(each["budget"]),
        trust_outline=each["trust_outline"],
        agent=each["agent"] or "",
        judge_lanes=_judge_lanes(each, agents),
        escalate={failure: Step(step["after"], step["agent"]) for failure, step in each["escalate"].items()},
        fallback=tuple(each["fallback"] or ()),
        may=tuple(each["may"]),
        inputs=tuple(each["inputs"]),
        stale=each["stale"],
        said=tuple(key for key in said if key in _SAID_OF_POLICY),
        resources=_amounts(each["resources"]),
        worktree=each["worktree"],
    )


def _amounts(values: Values) -> Amounts:
    """Return amounts by name, without those that a layer has taken back."""
    return tuple(sorted((name, amount) for name, amount in values.items() if amount is not None))


def _lanes_of(values: Values, agents: Mapping[str, Preset]) -> tuple[str, ...]:
    """Return the lanes of a type: its own, else those of its agent."""
    agent = agents.get(values["agent"] or "")
    return tuple(values["lane"] or (agent.lanes if agent is not None else (DEFAULT_LANE,)))


def _judge_lanes(values: Values, agents: Mapping[str, Preset]) -> tuple[str, ...]:
    """Return the lanes of a type's judges: its own for them, else those of the agent that reviews."""
    agent = agents.get(values["review"]["agent"] or "")
    return tuple(values["judge_lane"] or (agent.lanes if agent is not None else ()))


def _max_iterations(name: str, values: Values) -> int:
    """Return a type's own number, else that of the retry block, else 100."""
    own: int | None = values["types"][name]["max_iterations"]
    shared: int = values["retry"]["max_iterations"].get(name, DEFAULT_MAX_ITERATIONS)
    return shared if own is None else own


def _priority(values: Values, names: list[str]) -> Priority:
    """Build the terms of the score."""
    terms = {key: values[key] for key in Priority.__dataclass_fields__ if key != "base"}
    return Priority(base={name: values[name] for name in names}, **terms)


def _retry(values: Values) -> Retry:
    """Build how often and how soon a loop may fail."""
    return Retry(
        base_ms=_ms(values["base_secs"]),
        factor=exact(values["factor"]),
        cap_ms=_ms(values["cap_secs"]),
        jitter=exact(values["jitter"]),
        max_attempts=values["max_attempts"],
        max_launch_failures=values["max_launch_failures"],
        max_conflicts=values["max_conflicts"],
        no_progress=values["no_progress"],
        same_answer=values["same_answer"],
    )


def _budget(values: Values) -> Budget:
    """Build a budget, its money in millionths of a dollar."""
    return Budget(values["tokens"], _micro_usd(values["usd"]), values["secs"])


def _micro_usd(usd: float | None) -> int | None:
    """Return money in whole micro-dollars."""
    return None if usd is None else scaled(usd, 1_000_000)


def _lanes(values: Values) -> list[tuple[str, Any]]:
    """Return the lanes, without the switch that lives beside them."""
    return [(name, each) for name, each in values["lanes"].items() if name != "ramp"]


def _lane_policy(values: Values) -> LanePolicy:
    """Build what decisions see of a lane."""
    slow_above = values["slow_above"]
    thousandths = None if slow_above is None else scaled(slow_above, 1000)
    price = _micro_usd(values["usd_per_mtok"])
    return LanePolicy(values["max_concurrent"], price, thousandths, _ms(values["max_rest_secs"]))


def _lane_settings(name: str, values: Values) -> LaneSettings:
    """Build what the world needs of a lane."""
    return LaneSettings(name, _environment(values["env"]))


def _project_policy(values: Values) -> ProjectPolicy:
    """Build what decisions see of a project."""
    return ProjectPolicy(exact(values["weight"]), values["max_concurrent"], _budget(values["budget"]))


def _type_settings(
    name: str, values: Values, agents: Mapping[str, Preset], shared: Timeouts, said: tuple[str, ...]
) -> TypeSettings:
    """Build what the world needs of a type."""
    each = values["types"][name]
    same = ("child", "run", "agent", "approve", "parallel", "worktree", "wrap", "protect", "protect_added",
            "clean", "trust_outline")  # fmt: skip
    return TypeSettings(
        name=name,
        **{key: each[key] for key in same},
        check=check_of(each["check"]),
        unjudged=each["check"] == NO_CHECK,
        review=each["review"]["run"],
        review_agent=each["review"]["agent"],
        review_passes=each["review"]["passes"],
        lanes=_lanes_of(each, agents),
        max_iterations=_max_iterations(name, values),
        env=_environment(each["env"]),
        timeouts=_timeouts(each["timeouts"], shared),
        budget=_budget(each["budget"]),
        said=said,
    )


def _environment(values: Values) -> Environment:
    """Build what is changed in an environment."""
    chosen = {name: each for name, each in values["set"].items() if each is not None}
    return Environment(MappingProxyType(chosen), values["unset"], values["only"])


def _timeouts(values: Values, shared: Timeouts | None = None) -> Timeouts:
    """Build timeouts; what is left out comes from `shared`."""
    chosen = {_clock(key): _ms(each) for key, each in values.items() if each is not None}
    return shared._replace(**chosen) if shared else Timeouts(**chosen)


def _clock(key: str) -> str:
    """Return what a timeout is called once it is in milliseconds."""
    return key.replace("_secs", "_ms")


def _logs(values: Values) -> Logs:
    """Build what is kept of attempts."""
    return Logs(values["keep_days"], values["keep_attempts"], scaled(values["max_mb_per_attempt"], MIB))


def _commits(values: Values) -> Commits:
    """Build how commits are worded."""
    pairs = (each.partition(": ")[::2] for each in values["trailers"])
    return Commits(values["message"], values["author"] or "", values["signoff"], tuple(pairs))


def _artifacts(values: Values) -> Artifacts:
    """Build where the tree of files is."""
    return Artifacts(_folder(values["dir"]), values["settle_ms"], values["stamp"])


def _project_settings(name: str, values: Values) -> ProjectSettings:
    """Build what the world needs of a project."""
    repo = normpath(values["repo"]) if values["repo"] is not None else ""
    own = values["git"]["base"], values["worktrees"]["setup"], values["land"]["check"]
    return ProjectSettings(name, repo, *own)


def _worktrees(values: Values) -> Worktrees:
    """Build how worktrees are kept."""
    kept = Cache(*(tuple(_folder(each) for each in values["cache"][name]) for name in Cache._fields))
    return Worktrees(_folder(values["dir"]), values["pool"], values["include"], values["setup"], kept)


def _folder(path: str) -> str:
    """Write a folder in one way, without ./ in front or / behind."""
    return str(PurePosixPath(path))
