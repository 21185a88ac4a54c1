"""Puts the parts of a running engine together.

Knows how the modules of this package fit. Must never know who asks, nor hold anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loopr.core.accepting import holds_back
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.observations import SettingsSeen
from loopr.driving.beside import Beside
from loopr.driving.driver import Driver, Step
from loopr.driving.effects import Effects
from loopr.driving.hearing import Hearing
from loopr.driving.jobs import Jobs
from loopr.driving.kit import Kit
from loopr.driving.looking import Looking
from loopr.driving.resting import Resting
from loopr.driving.rules import Reloaded, Rules
from loopr.driving.sentry import Sentry
from loopr.driving.upkeep import Upkeep
from loopr.engine import Engine, Journalled, Mind
from loopr.errors import SettingsError
from loopr.grounds import Settled, Written, check_homes, grounds_of, tips_in
from loopr.hands import FileHands
from loopr.inforce import Basis, InForce
from loopr.payers import check_payers
from loopr.world.bell import Bell
from loopr.world.journal import Journal
from loopr.world.launcher import proc
from loopr.world.place import Place, own_git_dir
from loopr.world.processes import Attempts
from loopr.world.prompts import Prompts
from loopr.world.runs import Runs
from loopr.world.settings.sources import PRESETS, PROMPTS
from loopr.world.watching import Glance

if TYPE_CHECKING:
    from loopr.world.settings import Settings

LOG = "engine.log"
_FIXED = ("artifacts.dir", "worktrees.dir", "git.branch_prefix")


class Surroundings(Settled, Protocol):
    """The workspace, as far as an engine needs one."""

    actor: str
    environ: Mapping[str, str]

    @property
    def in_force(self) -> InForce:
        """What the files say, and what was accepted of it."""
        ...

    def hands(self) -> FileHands:
        """Make hands for the present settings."""
        ...


def build(around: Surroundings, stack: ExitStack, clock: Callable[[], int], step: Step) -> Driver:
    """Build an engine for whoever holds the lock; the stack closes what it opens."""
    place = around.place
    if not place.journal.exists():
        grounds_of(around)  # what is wrong is said before anything is made
    journal = stack.enter_context(Journal.open(place.journal, create=True))
    mind = Mind(Journalled(journal), clock, around.actor)
    before = mind.seq
    begun = around.in_force.take_up(mind)
    around.in_force.held_now.clear()  # that is told as it happens
    kit = kit_of(around, clock)
    kit.heard_before = before
    check_homes(around, mind.forest)
    check_payers(around, mind.forest)
    proc.become_private()  # nor can a command take our line to the launcher from us
    around.in_force.tidy(mind.forest.shared.accepted)
    take_tips(around, mind)
    attempts = Attempts.open(place.state)
    stack.callback(attempts.close)
    engine = Engine(mind, kit.hands)
    kit.entries = mind.find_entry
    jobs = Jobs(attempts, clock, place.state / LOG, step)
    looking = _looking(around, kit)
    effects = Effects(kit, jobs, looking.busy)
    looking.take_over(engine, effects.adopt(mind.forest))
    return Driver(
        engine,
        journal=journal,
        attempts=attempts,
        effects=effects,
        looking=looking,
        bell=stack.enter_context(Bell(place.state)),
        upkeep=Upkeep(place.root, place.state),
        rules=Rules(Source(around, kit, engine), mind.forest.shared.accepted, kit.hands),
        beside=Beside(kit, jobs, journal),
        hearing=Hearing(kit.runs),
        resting=Resting(Glance(_beside(place))),
        step=step,
        begun=begun,
    )


def _looking(around: Surroundings, kit: Kit) -> Looking:
    """Look at the artifacts as often as the settings say."""
    poll_ms, settle_ms = around.settings.policy.poll_interval_ms, around.settings.artifacts.settle_ms
    return Looking(kit.specs, settle_ms, poll_ms, kit.clock, around.place.repository)


def _beside(place: Place) -> list[Path]:
    """Name the folders where people change what an engine goes by: its settings, and where their checkout stands."""
    top = place.repository
    return [place.root, place.root / PROMPTS, place.root / PRESETS, *([own_git_dir(top)] if top is not None else [])]


def take_tips(around: Settled, mind: Mind) -> None:
    """Take plans to stand where the refs say, where the journal is from before it said so."""
    found = tips_in(around, mind.forest)
    if found is not None:
        mind.decide(lambda forest, now: interpret(forest, found, now))


def kit_of(around: Surroundings, clock: Callable[[], int]) -> Kit:
    """Gather what acts work with."""
    place = around.place
    grounds = grounds_of(around)
    return Kit(
        place,
        around.settings,
        grounds,
        {repo: Sentry(ground, repo, clock) for repo, ground in grounds.items()},
        around.hands(),
        Runs(place.state, place.root),
        _prompts(around),
        dict(around.environ),  # the system's own mapping decodes all of it again and again
        clock,
    )


def _prompts(around: Surroundings) -> Prompts:
    """Return the templates that are in force."""
    return Prompts(around.in_force.prompts(around.in_force.basis), around.place.root / PROMPTS)


class Source(NamedTuple):
    """Where a running engine gets other settings from, for everything that uses them."""

    around: Surroundings
    kit: Kit
    engine: Engine

    @property
    def doubt(self) -> str:
        """What keeps settings from loading that were compared last, and are held back."""
        return self.around.in_force.doubt

    def marks(self) -> list[object]:
        """Return what changes at a glance where a file of the settings changes."""
        return self.around.in_force.marks()

    def is_being_set(self) -> bool:
        """Say whether somebody is setting a key at this moment."""
        from loopr.world.settings.edit import is_turn

        return is_turn(self.around.place.root)

    def compare(self, forest: Forest) -> SettingsSeen:
        """Compare the files with what is accepted; what an engine cannot take up while it runs raises."""
        accepted, holds = forest.shared.accepted, holds_back(forest, serving=True)
        seen = self.around.in_force.compare(accepted, holds=holds, serving=True)
        if seen.seal != accepted.seal and not (seen.keys and holds):
            self._check(self.around.in_force.settings(Basis(seen.seal)), forest)
        self.around.in_force.secure(seen)
        return seen

    def offer(self, forest: Forest) -> None:
        """Note who is to be told of settings that are held back, beside those who are told by the accepted ones."""
        held = forest.shared.accepted.held
        told = self.around.in_force.addresses(held) if held else ()
        self.kit.offered_notify = tuple(each for each in told if each not in self.kit.settings.notify)

    def _check(self, fresh: Settings, forest: Forest) -> None:
        """Refuse settings that an engine cannot take up while it runs."""
        for key in _FIXED:
            if fresh.value(key) != self.kit.settings.value(key):
                hint = "stop it, then run again"
                raise SettingsError(f"{key} cannot change while an engine runs", where=key, hint=hint)
        view = Written(self.around.place, fresh)
        grounds_of(view)
        check_homes(view, forest)
        check_payers(view, forest)

    def reload(self, forest: Forest) -> Reloaded:
        """Load the settings that are accepted by now."""
        around, kit = self.around, self.kit
        around.in_force.use(forest.shared.accepted)
        policy, fresh = around.in_force.seen_policy(), around.settings
        self._check(fresh, forest)
        grounds = grounds_of(around)
        kit.settings, kit.grounds = fresh, grounds
        kit.sentries = {
            repo: kit.sentries.get(repo) or Sentry(ground, repo, kit.clock) for repo, ground in grounds.items()
        }
        kit.hands, kit.prompts = around.hands(), _prompts(around)
        self.engine.hands = kit.hands
        self.engine.mind.heed_policy(policy)
        return Reloaded(policy, kit.hands)
