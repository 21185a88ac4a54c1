"""What all acts work with, and what each is told of its loop when it begins.

Knows where things are and what is set. Must never know a forest beyond the moment in which a task is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from loopr.core.entries import Artifact, Command, Entry
from loopr.core.forest import Forest
from loopr.core.limits import tokens_left
from loopr.core.model import Loop, Status
from loopr.core.policy import OWN_REPO, Policy
from loopr.driving.sentry import Sentry
from loopr.errors import SettingsError
from loopr.grounds import ground_of
from loopr.hands import FileHands
from loopr.world.environment import free_slot, port_base
from loopr.world.place import Place
from loopr.world.prompts import Prompts, Sibling
from loopr.world.repo.ground import Ground
from loopr.world.repo.named import files_among
from loopr.world.runs import Runs
from loopr.world.settings import Settings
from loopr.world.settings.parts import TypeSettings, check_of
from loopr.world.settings.presets import Preset
from loopr.world.veil import Veil

OWN_FOLDER = ".loopr"
MOST_SIBLINGS = 100
MOST_NAMED = 256  # commits of which it is remembered which words are files


class Above(NamedTuple):
    """The loop above one, whose artifact is its input, and the entry that it was declared with."""

    loop: Loop
    entry: Entry | None


class Task(NamedTuple):
    """One loop at the moment in which an act begins, with what is around it.

    `tip` is where its plan stands; `begins` is true while the branch of that is still to be made. A `leaf` may just do
    the work: its `type` is then the own one, as far as that says anything, and else the last one.
    """

    loop: Loop
    entry: Entry | None
    type: TypeSettings
    policy: Policy
    base_commit: str
    input: Path
    parent_title: str = ""
    siblings: tuple[Sibling, ...] = ()
    preset: Preset | None = None
    repo: str = OWN_REPO
    tokens_left: int | None = None
    reviewer: Preset | None = None
    tip: str = ""
    begins: bool = False
    above: Above | None = None
    leaf: bool = False
    plans: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the loop's generation."""
        return self.loop.name

    @property
    def attempt(self) -> int:
        """The attempt that the act is about."""
        return self.loop.attempt

    @property
    def title(self) -> str:
        """What the loop is called."""
        return self.loop.title or self.loop.id

    @property
    def limits(self) -> dict[str, int]:
        """The clocks of the attempt in seconds, for messages."""
        clocks = self.type.timeouts
        return {
            "wall_secs": clocks.wall_ms // 1000,
            "idle_secs": clocks.idle_ms // 1000,
            "first_byte_secs": clocks.first_byte_of(agent=self.preset is not None) // 1000,
            "check_secs": clocks.check_ms // 1000,
        }

    @property
    def check(self) -> Command | None:
        """The command that judges the tree."""
        own = self.entry.check if self.entry is not None else None
        return self.type.check if own is None else check_of(own)

    @property
    def command(self) -> Command:
        """The command that does the work."""
        if self.preset is not None:
            return self.preset.command
        command = self.entry.run if self.entry is not None and self.entry.run is not None else self.type.run
        if command is not None:
            return command
        raise SettingsError(f"{self.loop.type} has no command any more", hint=f"set types.{self.loop.type}.run")


@dataclass
class Kit:
    """What acts work with; `settings` are replaced when they change."""

    place: Place
    settings: Settings
    grounds: dict[str, Ground]  # by what the settings call each
    sentries: dict[str, Sentry]
    hands: FileHands
    runs: Runs
    prompts: Prompts
    inherited: Mapping[str, str]
    clock: Callable[[], int]
    heard_before: int = 0  # the event after which this engine began: of what came later it tells
    offered_notify: tuple[str, ...] = ()  # addresses of settings that are held back
    entries: Callable[[str], Entry | None] = lambda loop_id: None
    counting: Lock = field(default_factory=Lock)
    outlines: dict[str, tuple[tuple[bytes, Policy], Artifact]] = field(default_factory=dict)  # judged, not yet landed
    _folders: dict[str, Path] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)
    _veil: tuple[Settings, Veil] | None = None
    _named: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)

    @property
    def specs(self) -> Path:
        """The folder that mirrors the tree."""
        return self._below_root(self.settings.artifacts.dir)

    @property
    def worktrees(self) -> Path:
        """The folder in which every loop has its own."""
        return self._below_root(self.settings.worktrees.dir)

    def _below_root(self, name: str) -> Path:
        """Return a folder of the workspace; a path that is kept is taken apart only once."""
        if name not in self._folders:
            self._folders[name] = Path(f"{self.place.root}/{name}")
        return self._folders[name]

    def ground_of(self, task: Task) -> Ground | None:
        """Return the repository that a loop works in, None if it works in an empty folder."""
        ground = self.grounds.get(task.repo) if task.type.worktree else None
        return replace(ground, plans=task.plans) if ground is not None else None

    def sentry_of(self, task: Task) -> Sentry | None:
        """Return who keeps an eye on the repository that a loop works in."""
        return self.sentries.get(task.repo) if task.type.worktree else None

    def _open(self, repo: str) -> None:
        """Open a repository that is not open: its plan may have come before the settings in which it is new."""
        if repo not in ("", OWN_REPO, *self.grounds):
            self.grounds[repo] = ground_of(self, repo)
            self.sentries.setdefault(repo, Sentry(self.grounds[repo], repo, self.clock))

    def repo_of(self, forest: Forest, loop: Loop) -> str:
        """Return what the repository of a loop is called: the one that its plan began in."""
        bound = forest.shared.plans.get(loop.plan)
        if bound is not None:
            return bound.repo
        known = self.settings.projects.get(loop.project)
        return known.repo if known is not None else OWN_REPO

    def ports(self, run: str) -> int:
        """Return the first port of the block that belongs to a run, until `free_ports`."""
        with self.counting:
            slot = self._ports.setdefault(run, free_slot(set(self._ports.values())))
        return port_base(slot, self.place.root)

    def hold_ports(self, run: str, slot: int) -> None:
        """Let a run have a certain block of ports."""
        self._ports[run] = slot

    def free_ports(self, run: str) -> None:
        """Let others have a run's ports."""
        self._ports.pop(run, None)

    def let_go(self, task: Task) -> None:
        """Take back what was given to an attempt that does not start."""
        self.free_ports(task.loop.lease_id)
        sentry = self.sentry_of(task)
        if sentry is not None:
            sentry.forget(task.loop.lease_id)

    def hide(self, text: str) -> str:
        """Hide keys in what a command has said, whichever it was: those of the engine and of the settings."""
        return self.veil().over(text)

    def veil(self) -> Veil:
        """Return what hides the keys of the engine and of the settings."""
        if self._veil is None or self._veil[0] is not self.settings:
            self._veil = (self.settings, Veil(self.inherited, *self.settings.given_variables()))
        return self._veil[1]

    def named_files(self, ground: Ground, commit: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return which words are files of a commit."""
        known = self._named.get((commit, words)) if words else ()
        if known is None:
            if len(self._named) >= MOST_NAMED:
                self._named.clear()
            known = self._named[commit, words] = tuple(files_among(ground, commit, words))
        return known

    def task(self, forest: Forest, loop: Loop, entry: Entry | None) -> Task:
        """Take down what an act about a loop must know."""
        leaf = forest.is_leaf(loop)
        kind = self.settings.leaf_of(loop.type) if leaf else self.settings.types.get(loop.type)
        if kind is None:
            raise SettingsError(f"there is no type {loop.type} any more", hint="put it back under `types` in loopr.yml")
        agent = loop.lease.agent if loop.lease is not None else forest.agent_of(loop)
        repo = self.repo_of(forest, loop)
        self._open(repo)
        parent = forest.loops.get(loop.parent) if loop.parent is not None else None
        tip = forest.shared.tip(loop.plan)
        if parent is None:
            above = Path(f"{self.place.state}/inputs/{loop.id}.md")
        else:
            above = Path(f"{self.specs}/{parent.id}/{parent.type}.md")
        return Task(
            loop,
            entry,
            kind,
            forest.policy,
            forest.shared.plans[loop.plan].base_commit if loop.plan in forest.shared.plans else "",
            above,
            parent.title if parent is not None else "",
            siblings_of(forest, loop) if loop.status is Status.LEASED else (),
            self.settings.preset(agent) if agent else None,
            repo,
            tokens_left(forest, loop, self.clock()),
            self._reviewer(kind),
            tip.stands,
            tip.begins,
            Above(parent, self.entries(parent.id)) if parent is not None else None,
            leaf,
            frozenset(forest.tree.children(None)),
        )

    def with_outline(self, task: Task) -> Task:
        """Return the task of a loop that has handed over an outline: it is judged as its own type."""
        kind = self.settings.types.get(task.loop.type, task.type)
        return task._replace(type=kind, reviewer=self._reviewer(kind), leaf=False)

    def _reviewer(self, kind: TypeSettings) -> Preset | None:
        """Return the agent that reviews what loops of a type leave."""
        return self.settings.preset(kind.review_agent) if kind.review_agent else None


def siblings_of(forest: Forest, loop: Loop) -> tuple[Sibling, ...]:
    """Name the loops beside one, those before and behind it in the outline first."""
    if loop.parent is None:
        return ()
    names = [each for each in forest.tree.children(loop.parent) if each != loop.id]
    found = [forest.loops[each] for each in names[:MOST_SIBLINGS]]
    return tuple(Sibling(each.id, each.title, str(each.status)) for each in found)
