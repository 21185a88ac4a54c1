"""What all acts work with, and what each is told of its loop when it begins.

Knows where things are and what is set. Must never know a forest beyond the moment in which a task is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from loopr.core.entries import Command, Entry
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.policy import Policy
from loopr.driving.sentry import Sentry
from loopr.errors import SettingsError
from loopr.hands import FileHands
from loopr.world.environment import free_slot, port_base
from loopr.world.place import Place
from loopr.world.prompts import Prompts, Sibling
from loopr.world.repo.ground import Ground
from loopr.world.repo.named import files_among
from loopr.world.runs import Runs
from loopr.world.settings import Settings
from loopr.world.settings.parts import TypeSettings

OWN_FOLDER = ".loopr"
MOST_SIBLINGS = 100


class Task(NamedTuple):
    """One loop at the moment in which an act begins, with what is around it."""

    loop: Loop
    entry: Entry | None
    type: TypeSettings
    policy: Policy
    base_commit: str
    input: Path
    parent_title: str = ""
    siblings: tuple[Sibling, ...] = ()

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
    def check(self) -> Command | None:
        """The command that judges the tree."""
        return self.entry.check if self.entry is not None and self.entry.check is not None else self.type.check

    @property
    def command(self) -> Command:
        """The command that does the work."""
        own = self.entry
        agent = (own.agent if own is not None and own.run is None else None) or self.type.agent
        command = own.run if own is not None and own.run is not None else self.type.run
        if own is not None and own.run is None and own.agent is not None:
            command = None
        if command is not None:
            return command
        if agent:
            hint = f"give the type a `run:` that starts {agent}"
            raise SettingsError(f"agent: {agent} names a preset, and this version has none", hint=hint)
        raise SettingsError(f"{self.loop.type} has no command any more", hint=f"set types.{self.loop.type}.run")


@dataclass
class Kit:
    """What acts work with; `settings` are replaced when they change, `beginning` is held while a branch is made."""

    place: Place
    settings: Settings
    ground: Ground | None
    sentry: Sentry | None
    hands: FileHands
    runs: Runs
    prompts: Prompts
    inherited: Mapping[str, str]
    clock: Callable[[], int]
    beginning: Lock = field(default_factory=Lock)
    counting: Lock = field(default_factory=Lock)
    _ports: dict[str, int] = field(default_factory=dict)
    _named: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)

    @property
    def specs(self) -> Path:
        """The folder that mirrors the tree."""
        return Path(f"{self.place.root}/{self.settings.artifacts.dir}")

    @property
    def worktrees(self) -> Path:
        """The folder in which every loop has its own."""
        return Path(f"{self.place.root}/{self.settings.worktrees.dir}")

    def ground_of(self, task: Task) -> Ground | None:
        """Return the repository that a loop works in, None if it works in an empty folder."""
        return self.ground if task.type.worktree else None

    def ports(self, run: str) -> int:
        """Return the first port of the block that belongs to a run, until `free_ports`."""
        with self.counting:
            slot = self._ports.setdefault(run, free_slot(set(self._ports.values())))
        return port_base(slot, self.place.root)

    def free_ports(self, run: str) -> None:
        """Let others have a run's ports."""
        self._ports.pop(run, None)

    def named_files(self, ground: Ground, commit: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return which words are files of a commit."""
        known = self._named.get((commit, words))
        if known is None:
            known = self._named[commit, words] = tuple(files_among(ground, commit, words))
        return known

    def is_yes(self, key: str) -> bool:
        """Say whether a verdict of yes is remembered under a key."""
        return (self.place.state / "verdicts" / key).is_file()

    def note_yes(self, key: str) -> None:
        """Remember a verdict of yes: a full disk only means that it is asked for again."""
        folder = self.place.state / "verdicts"
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            (folder / key).touch()

    def task(self, forest: Forest, loop: Loop, entry: Entry | None) -> Task:
        """Take down what an act about a loop must know."""
        kind = self.settings.types.get(loop.type)
        if kind is None:
            raise SettingsError(f"there is no type {loop.type} any more", hint="put it back under `types` in loopr.yml")
        parent = forest.loops.get(loop.parent) if loop.parent is not None else None
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
            _siblings(forest, loop) if loop.status is Status.LEASED else (),
        )


def _siblings(forest: Forest, loop: Loop) -> tuple[Sibling, ...]:
    """Name the loops beside one, those before and behind it in the outline first."""
    if loop.parent is None:
        return ()
    names = [each for each in forest.tree.children(loop.parent) if each != loop.id]
    found = [forest.loops[each] for each in names[:MOST_SIBLINGS]]
    return tuple(Sibling(each.id, each.title, str(each.status)) for each in found)
