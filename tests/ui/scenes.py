"""A workspace on a real repository whose clock and whose forest a test sets as it likes.

Nothing is executed in this version, so what an engine would report is reported by the test, through the very functions
that an engine uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.choose import choose
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.model import Failure, Loop, Status
from loopr.core.plan_observations import PlanStands
from loopr.grounds import ground_of
from loopr.wiring import Workspace
from loopr.world.repo import landing
from loopr.world.repo.branches import ensure_plan
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Candidate, Message
from tests.core.outlines import outline
from tests.ui.calls import Answer, loopr
from tests.world.repo.grounds import git

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
MINUTE = 60_000

COMMANDS = """\
version: 1
types:
  plan: {child: spec}
  spec: {child: phase, run: make spec}
  phase: {child: code, run: make phase}
  code: {run: make code}
"""

OAUTH = """\
---
id: oauth
title: Add OAuth
specs:
  - id: tokens
    title: Token storage
    phases:
      - {id: store, title: Tables and repository}
      - {id: refresh, title: Refresh, needs: [store]}
  - id: endpoints
    needs: [tokens]
---
# Add OAuth
Everything below the outline is for whoever does the work.
"""


@dataclass
class Clock:
    """The instant at which everything happens."""

    at: int = NOON

    def __call__(self) -> int:
        """Return it."""
        return self.at


class Desk:
    """A person's repository, with loopr at hand and an engine's reports made up."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Sit down in a folder."""
        self.folder, self.clock = folder, clock

    # --- what a person does -----------------------------------------------------------------------------------------

    def __call__(self, *arguments: str | Path) -> Answer:
        """Call loopr here."""
        verb, *rest = arguments
        return loopr(verb, "-C", self.folder, *rest)

    def lines(self, *arguments: str | Path) -> list[str]:
        """Call loopr here, and return the lines of an answer that must be a good one."""
        answer = self(*arguments)
        assert answer.code == 0, answer
        return answer.out.splitlines()

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def start(self, text: str = OAUTH, name: str = "plan.md", *options: str) -> Answer:
        """Write a plan and enqueue it."""
        return self("start", "--no-run", *options, self.write(name, text))

    # --- what an engine does ----------------------------------------------------------------------------------------

    def decide(self, decide: Callable[[Forest, int], Iterator[Event]]) -> list[Event]:
        """Let something be decided and journalled."""
        with Workspace(self.folder).turn() as engine:
            return engine.mind.decide(decide)

    def see(self, *seen: o.Observation) -> list[Event]:
        """Report observations."""

        def decide(forest: Forest, now: int) -> Iterator[Event]:
            for each in seen:
                yield from interpret(forest, each, now)

        return self.decide(decide)

    def wish(self, wish: Callable[..., Iterator[Event]], *words: Any, **more: Any) -> list[Event]:
        """Let a person wish for something that has no verb yet."""
        return self.decide(lambda forest, now: wish(forest, *words, **more))

    def choose(self) -> list[str]:
        """Play a round, and say who was granted a lease."""
        return [each.loop for each in self.decide(choose) if isinstance(each, e.LeaseGranted)]

    def loop(self, loop_id: str) -> Loop:
        """Return a loop as it is remembered."""
        return Workspace(self.folder).look().scene.loops[loop_id]

    def run(self, loop_id: str) -> None:
        """Let a leased loop's process begin."""
        self.see(o.AttemptBegan(loop_id, self.loop(loop_id).attempt, "ba5e"))

    def end(self, loop_id: str, failure: Failure | None = None, reason: str = "", **more: Any) -> None:
        """Let a running loop's command end: well, or with trouble."""
        trouble = None if failure is None else o.Trouble(failure, reason, **more)
        self.see(o.AttemptEnded(loop_id, self.loop(loop_id).attempt, trouble))

    def judge(self, loop_id: str) -> None:
        """Let the check say yes."""
        self.see(o.Judged(loop_id, self.loop(loop_id).attempt))

    def land(self, loop_id: str, children: str = "") -> None:
        """Let a loop go the whole way from its lease to its landing."""
        attempt = self.loop(loop_id).attempt
        if self.loop(loop_id).status is Status.LEASED:
            self.run(loop_id)
        if self.loop(loop_id).status is Status.RUNNING:
            self.end(loop_id)
        self.judge(loop_id)
        digest = hashlib.sha256(children.encode()).hexdigest()[:32]
        self.see(o.LandingDone(loop_id, attempt, "c0ffee", digest, outline(children) if children else None))

    def branch(self, plan: str = "p") -> Ground:
        """Make the branch of a plan that was started here, at main, as its first attempt does."""
        found, base = ground_of(Workspace(self.folder)), git(self.folder, "rev-parse", "main")
        ensure_plan(found, plan, base)
        self.see(PlanStands(plan, base))
        return found

    def bring_home(self, ground: Ground, loop_id: str, message: Message) -> str:
        """Let the commits of a loop that runs land, as the engine does it, and return the one that does."""
        loop = self.loop(loop_id)
        tip = Workspace(self.folder).look().scene.shared.tip(loop.plan).at
        built = landing.build_candidate(ground, loop.name, landing.Onto(loop.plan, tip), loop.attempt)
        assert isinstance(built, Candidate)
        intent = landing.make_intent(ground, built, message)
        self.end(loop_id)
        self.judge(loop_id)
        self.see(o.LandingReady(loop_id, loop.attempt, intent.old, intent.new, intent.loop_tip))
        landing.land(ground, intent, 1)
        self.see(o.LandingDone(loop_id, loop.attempt, intent.new, "d", None))
        return intent.new


def flat(specs: Iterable[str], plan: str = "p") -> str:
    """Write a plan whose specs are named and nothing else is said."""
    return f"---\nid: {plan}\nspecs:\n" + "".join(f"  - {{id: {each}}}\n" for each in specs) + "---\n"
