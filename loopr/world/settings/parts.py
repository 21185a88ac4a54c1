"""The settings as one frozen value, and the parts that world modules are given, with units in their names.

Knows what each part is called, and which layer said what. Must never know a rule of core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from loopr.core.policy import Budget, Policy
from loopr.errors import UserError
from loopr.world.settings.check import nearest, unknown
from loopr.world.settings.keys import NO_CHECK, Command
from loopr.world.settings.ladder import unsaid
from loopr.world.settings.layers import Story, merge
from loopr.world.settings.presets import Preset, Shelf
from loopr.world.settings.reading import Node
from loopr.world.settings.schema import SCHEMA, find

BUILT_IN = "built in"
LEFT_OPEN = ("approve", "protect", "protect_added", "clean")
"""What a type that says nothing of it leaves to the last one, where a loop just does the work."""


class Artifacts(NamedTuple):
    """The tree as files."""

    dir: str
    settle_ms: int
    stamp: bool


class Cache(NamedTuple):
    """What setups make is kept: the committed files that they go by, and all that they make."""

    key: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Worktrees(NamedTuple):
    """How worktrees are kept; `policy.min_free_bytes` says when there is too little disk."""

    dir: str
    pool: int
    include: str | None
    setup: Command | None
    cache: Cache = Cache()


class Git(NamedTuple):
    """Names in git; no base is the branch that is checked out."""

    base: str | None
    branch_prefix: str


class Land(NamedTuple):
    """How a plan's work comes home."""

    mode: str
    history: str
    check: Command | None


class Commits(NamedTuple):
    """How commits are worded; without an author they are by whoever git names."""

    message: str
    author: str
    signoff: bool
    trailers: tuple[tuple[str, str], ...]


AGENT_SAYS_MS = 300_000


class Timeouts(NamedTuple):
    """When an attempt has taken too long."""

    wall_ms: int
    idle_ms: int
    check_ms: int
    grace_ms: int
    first_byte_ms: int | None = None

    def first_byte_of(self, *, agent: bool) -> int:
        """Return how long a command may take to write its first byte, 0 where it need not.

        An agent says soon that it works; a build that writes to a file says nothing.
        """
        if self.first_byte_ms is not None:
            return self.first_byte_ms
        return AGENT_SAYS_MS if agent else 0


class Environment(NamedTuple):
    """What is changed in the environment of a command."""

    set: Mapping[str, str]
    unset: tuple[str, ...]
    only: tuple[str, ...] | None = None


class TypeSettings(NamedTuple):
    """One type of the ladder, as the world needs it; timeouts and iterations are the ones in force."""

    name: str
    child: str | None
    run: Command | None
    agent: str | None
    check: Command | None
    review: Command | None
    review_agent: str | None
    review_passes: int
    max_iterations: int
    approve: bool
    parallel: bool
    worktree: bool
    lanes: tuple[str, ...]
    env: Environment
    wrap: tuple[str, ...] | None
    timeouts: Timeouts
    budget: Budget
    protect: tuple[str, ...]
    protect_added: str
    clean: bool
    unjudged: bool  # by decision
    trust_outline: bool
    said: tuple[str, ...]  # what is set for this very type of how its work is judged

    def judged_like(self, last: TypeSettings) -> TypeSettings:
        """Return this type for a loop that just does the work: as the last one, where nothing is set for it."""
        own = set(self.said)
        judges = ("check", "unjudged") if "check" not in own else ()
        reviews = ("review", "review_agent", "review_passes") if "review" not in own else ()
        keys = (*judges, *reviews, *(each for each in (*LEFT_OPEN, "max_iterations") if each not in own))
        clocks = {key: getattr(last.timeouts, key) for key in Timeouts._fields if key not in own}
        taken = {key: getattr(last, key) for key in keys}
        return self._replace(name=last.name, child=None, timeouts=self.timeouts._replace(**clocks), **taken)


class LaneSettings(NamedTuple):
    """One provider account, as the world needs it."""

    name: str
    env: Environment


class ProjectSettings(NamedTuple):
    """One payer, its repository as it is written in one way (nothing where it has none), and what it sets itself."""

    name: str
    repo: str
    base: str | None = None
    setup: Command | None = None
    check: Command | None = None


class Logs(NamedTuple):
    """What is kept of attempts."""

    keep_days: float
    keep_attempts: int
    max_bytes_per_attempt: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set or left at its default: the policy for decisions, the rest for the world."""

    values: Mapping[str, Any]
    story: Story
    policy: Policy
    types: Mapping[str, TypeSettings]
    lanes: Mapping[str, LaneSettings]
    projects: Mapping[str, ProjectSettings]
    artifacts: Artifacts
    worktrees: Worktrees
    git: Git
    land: Land
    timeouts: Timeouts
    logs: Logs
    hooks: Mapping[str, Command]
    hook_ms: int
    notify: tuple[str, ...]
    notify_on: frozenset[str]
    commit: Commits
    max_file_bytes: int
    plan_base: str
    union: tuple[str, ...]
    agents: Mapping[str, Preset]
    shelf: Shelf = field(compare=False, repr=False)

    def preset(self, name: str) -> Preset:
        """Return an agent preset, or raise with the names of those that there are, or with what is wrong with it."""
        return self.agents.get(name) or self.shelf.preset(name)

    def leaf_of(self, name: str) -> TypeSettings | None:
        """Return the settings of a type for a loop of it that just does the work, None where there is no such type."""
        own, last = self.types.get(name), self.types.get(self.policy.last_type)
        return own if own is None or last is None or own.child is None else own.judged_like(last)

    def of_project(self, name: str) -> Settings:
        """Return the settings as they are for the plans of a project: what it says itself wins."""
        own = self.projects.get(name)
        if own is None or own[2:] == (None, None, None):
            return self
        return replace(
            self,
            git=self.git._replace(base=own.base or self.git.base),
            worktrees=self.worktrees._replace(setup=own.setup or self.worktrees.setup),
            land=self.land._replace(check=check_of(own.check or self.land.check)),
        )

    def given_variables(self) -> list[Mapping[str, str]]:
        """List what types, lanes and agent presets give to commands in their environments."""
        places = [each.env for each in self.types.values()]
        places += [each.env for each in self.lanes.values()]
        return [*(each.set for each in places), *(each.set for each in self.agents.values())]

    def value(self, key: str) -> Any:
        """Return the merged value of a dotted key, or raise with the nearest known one."""
        return _at(self.values, key)

    def origin(self, key: str) -> str:
        """Say which layer the value of a key came from, as `loopr.yml:12:5`, a variable, `--set` or `built in`."""
        _at(self.values, key)
        said = self.story.get(key)
        return said[-1].where if said else BUILT_IN

    def shadowed(self, key: str) -> Sequence[Node]:
        """Return what earlier layers said of a key, latest first."""
        return self.story.get(key, [])[-2::-1]

    def default(self, key: str) -> Any:
        """Return what a key would be if no layer said anything of it."""
        if not self.story.get(key):
            return _at(self.values, key)
        known = find(key)
        try:
            return _at(merge(SCHEMA, (), unsaid(()), "", {}), key)
        except UserError:
            return known.default if known else None


def check_of(said: Command | None) -> Command | None:
    """Return a check as it is run: the bare word `none` is no command."""
    return None if said == NO_CHECK else said


def _at(values: Mapping[str, Any], key: str) -> Any:
    """Return the value of a dotted key."""
    value: Any = values
    parts = key.split(".")
    for place, part in enumerate(parts):
        if not isinstance(value, Mapping) or part not in value:
            fault = unknown(key, "")
            near = nearest(part, value) if isinstance(value, Mapping) else ""
            hint = fault.hint
            if near and f" {key}?" in hint:  # it may be a key, but not of anything that there is
                hint = f"did you mean {'.'.join((*parts[:place], near, *parts[place + 1 :]))}?"
            raise UserError(f"{key} {fault.message}", hint=hint or "see config show")
        value = value[part]
    return value
