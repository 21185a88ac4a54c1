"""Puts the parts of a running engine together.

Knows how the modules of this package fit. Must never know who asks, nor hold anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Protocol

from loopr.core.observations import PolicySeen
from loopr.driving.beside import Beside
from loopr.driving.driver import Driver, Step
from loopr.driving.effects import Effects
from loopr.driving.hearing import Hearing
from loopr.driving.jobs import Jobs
from loopr.driving.kit import Kit
from loopr.driving.looking import Looking
from loopr.driving.sentry import Sentry
from loopr.driving.upkeep import Reloaded, Upkeep
from loopr.engine import Engine, Journalled, Mind
from loopr.errors import SettingsError
from loopr.grounds import Settled, check_homes, grounds_of
from loopr.hands import FileHands
from loopr.world.bell import Bell
from loopr.world.journal import Journal
from loopr.world.launcher import proc
from loopr.world.processes import Attempts
from loopr.world.prompts import Prompts
from loopr.world.runs import Runs

LOG = "engine.log"
_FIXED = ("artifacts.dir", "worktrees.dir", "git.branch_prefix")


class Surroundings(Settled, Protocol):
    """The workspace, as far as an engine needs one."""

    actor: str
    environ: Mapping[str, str]

    def seal(self) -> str:
        """Return a digest of what the settings are made from now."""
        ...

    def seen_policy(self) -> PolicySeen:
        """Return the policy of now."""
        ...

    def hands(self) -> FileHands:
        """Make hands for the present settings."""
        ...

    def forget_settings(self) -> None:
        """Read the settings again when they are next asked for."""
        ...


def build(around: Surroundings, stack: ExitStack, clock: Callable[[], int], step: Step) -> Driver:
    """Build an engine for whoever holds the lock; the stack closes what it opens."""
    place = around.place
    kit = kit_of(around, clock)
    journal = stack.enter_context(Journal.open(place.journal, create=True))
    mind = Mind(Journalled(journal), clock, around.actor, around.seen_policy())
    check_homes(around, mind.forest)
    proc.become_private()  # nor can a command take our line to the launcher from us
    attempts = Attempts.open(place.state)
    stack.callback(attempts.close)
    engine = Engine(mind, kit.hands)
    jobs = Jobs(attempts, clock, place.state / LOG, step)
    poll_ms = around.settings.policy.poll_interval_ms
    looking = Looking(kit.specs, around.settings.artifacts.settle_ms, poll_ms, clock, place.repository)
    return Driver(
        engine,
        journal=journal,
        attempts=attempts,
        effects=Effects(kit, jobs, looking.busy),
        looking=looking,
        bell=stack.enter_context(Bell(place.state)),
        upkeep=Upkeep(kit.hands, place.state, around.seal, lambda: _reloaded(around, kit, engine)),
        beside=Beside(kit, jobs, journal),
        hearing=Hearing(kit.runs),
        step=step,
    )


def kit_of(around: Surroundings, clock: Callable[[], int]) -> Kit:
    """Gather what acts work with."""
    place = around.place
    overrides = place.root / "prompts"
    grounds = grounds_of(around)
    return Kit(
        place,
        around.settings,
        grounds,
        {repo: Sentry(ground, repo, clock) for repo, ground in grounds.items()},
        around.hands(),
        Runs(place.state),
        Prompts(overrides if overrides.is_dir() else None),
        dict(around.environ),  # the system's own mapping decodes all of it again and again
        clock,
    )


def _reloaded(around: Surroundings, kit: Kit, engine: Engine) -> Reloaded:
    """Load the settings again, for everything that uses them."""
    around.forget_settings()
    policy, fresh = around.seen_policy(), around.settings
    for key in _FIXED:
        if fresh.value(key) != kit.settings.value(key):
            raise SettingsError(f"{key} cannot change while an engine runs", where=key, hint="stop it, then run again")
    grounds = grounds_of(around)
    check_homes(around, engine.forest)
    kit.settings, kit.grounds = fresh, grounds
    kit.sentries = {repo: kit.sentries.get(repo) or Sentry(ground, repo, kit.clock) for repo, ground in grounds.items()}
    kit.hands = around.hands()
    engine.hands = kit.hands
    engine.mind.heed_policy(policy)
    return Reloaded(policy, kit.hands)
