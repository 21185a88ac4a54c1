"""What people and loops write in a simulated world: ladders, settings, outlines and their edits, all from one chance.

Knows how a valid file looks. Knows nothing of the forest's state beyond the ids that a need may name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from loopr.core.entries import Artifact, Entry, encode_entry, implied_entry
from loopr.core.policy import (
    DEFAULT_LANE,
    NO_BUDGET,
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

IDS = ("a", "b", "c")
LANES = (DEFAULT_LANE, "north", "south")
ESCALATIONS: tuple[dict[str, Step], ...] = (
    {},
    {},
    {"refused": Step(1, "south"), "conflict": Step(1, "north")},
    {"refused": Step(9, "south")},
    {"infra": Step(1, "north"), "timeout": Step(2, "south")},
)
PROJECTS = ("default", "other")
PLACES = ("", "", "", "command", "judge", "landing")
OFFERS: tuple[dict[str, int], ...] = ({}, {}, {"db": 1}, {"db": 2, "mem": 3})
LADDERS = (("plan", "spec", "phase", "code"), ("epic", "story", "task"), ("job", "step"))


def digest_of(artifact: Artifact) -> str:
    """Digest all that a file says."""
    plain = [
        artifact.id,
        artifact.title,
        artifact.project,
        artifact.parallel,
        [*vars_of(artifact.budget)],
        artifact.priority,
        artifact.text,
    ]
    text = json.dumps([*plain, artifact.declares, [encode_entry(each) for each in artifact.entries]])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def vars_of(budget: Budget) -> tuple[int | None, ...]:
    """List the limits of a budget."""
    return budget.tokens, budget.micro_usd, budget.secs


class Author:
    """Writes with a chance of its own, so that what is written does not depend on what else happens."""

    def __init__(self, seed: int, *, priced: bool = True) -> None:
        """Draw the workspace's ladder; `priced` lets lanes have prices."""
        self.chance = Random(seed * 7919 + 1)
        self.ladder = self.chance.choice(LADDERS)
        self.priced = priced
        self.commands = self.chance.choice((0.95, 0.95, 0.5))
        self.wants = Random(seed * 17 + 3)
        self._versions = 0
        self.is_hot = Random(seed * 37 + 5).random() < 0.3  # everybody changes the same files there
        self.hard_to_please = Random(seed * 31 + 7).choice(PLACES)  # there the same no is said again and again

    # --- settings ---------------------------------------------------------------------------------------------------

    def policy(self) -> Policy:
        """Draw settings: mostly narrow ceilings, so that something is always short."""
        draw, offers = self.chance, self.wants.choice(OFFERS)
        retry = Retry(
            base_ms=draw.choice((1_000, 30_000)),
            cap_ms=60_000,
            max_attempts=draw.choice((2, 3, 5)),
            max_launch_failures=draw.choice((2, 3)),
            max_conflicts=draw.choice((1, 2)) + bool(self.hard_to_please),
            no_progress=draw.choice((0, 2, 3)),
            same_answer=draw.choice((None, 2, 4)),
        )
        return Policy(
            types=self._types(offers),
            priority=Priority(base={name: 40 + 20 * depth for depth, name in enumerate(self.ladder)}),
            retry=retry,
            max_loops=draw.choice((0, 1, 2, 2, 3, 4, 50)) + 3 * self.is_hot,
            max_api_calls=draw.choice((1, 1, 2, 0)),
            per_type={name: draw.choice((1, 1, 2, 2, 50)) + 3 * self.is_hot for name in self.ladder},
            starvation_ms=draw.choice((0, 20_000, 60_000, 3_600_000)),
            batch_size=draw.choice((0, 0, 0, 1, 2)),
            spawn_delay_ms=draw.choice((0, 0, 700)),
            merge_turn_ms=draw.choice((2_000, 20_000, 3_600_000)),
            lease_ttl_ms=draw.choice((20_000, 60_000)),
            ramp=draw.random() < 0.8,
            lanes=self._lanes(),
            projects={
                name: ProjectPolicy(
                    Fraction(draw.choice((1, 1, 3))),
                    draw.choice((None, None, 1, 2)),
                    self._budget(0.08),
                )
                for name in PROJECTS
            },
            window_ms=draw.choice((120_000, 86_400_000)),
            budget=self._budget(0.06),
            loops_per_plan=draw.choice((30, 30, 6)),
            resources=offers,
            max_worktrees=self.wants.choice((None, 1, 1, 2)),
        )

    def _wanted(self, offers: Mapping[str, int]) -> Amounts:
        """Draw what is wanted of what is offered: all of it, some, or nothing."""
        draw = self.wants
        return tuple((name, draw.randint(1, most)) for name, most in sorted(offers.items()) if draw.random() < 0.6)

    def _types(self, offers: Mapping[str, int]) -> dict[str, TypePolicy]:
        """Draw what each type runs with."""
        draw, types = self.chance, {}
        for place, name in enumerate(self.ladder):
            child = self.ladder[place + 1] if place + 1 < len(self.ladder) else None
            types[name] = TypePolicy(
                name,
                child,
                has_command=draw.random() < self.commands,
                judged=draw.random() < 0.3,
                reviewed=draw.random() < 0.1,
                approve=draw.random() < 0.2,
                stale=draw.choice(("tell", "redo")),
                parallel=draw.random() < 0.8,
                lanes=draw.choice((LANES[:1], LANES[:1], LANES[1:2], LANES[1:], (LANES[1], LANES[0]))),
                max_iterations=max(draw.choice((1, 2, 3, 100)), 100 * bool(self.hard_to_please)),
                budget=Budget(secs=60) if draw.random() < 0.08 else NO_BUDGET,
                agent=draw.choice(("", "", LANES[1])),
                escalate=draw.choice(ESCALATIONS),
                judge_lanes=draw.choice(((), (), LANES[1:2], LANES[1:])),
                fallback=draw.choice(((), (), (), LANES[2:], (LANES[2], LANES[1]))),
                resources=self._wanted(offers) if self.wants.random() < 0.4 else (),
            )
        return types

    def _lanes(self) -> dict[str, LanePolicy]:
        """Draw the lanes' limits and prices."""
        price = 1_000_000 if self.priced and self.chance.random() < 0.5 else None
        draw = self.chance
        return {name: LanePolicy(draw.choice((None, 1, 2)), price, draw.choice((None, 500, 900))) for name in LANES[1:]}

    def _budget(self, likely: float) -> Budget:
        """Draw a budget that is soon used up."""
        draw = self.chance
        if draw.random() >= likely:
            return NO_BUDGET
        return draw.choice((Budget(tokens=0), Budget(tokens=4_000), Budget(secs=90), Budget(micro_usd=5_000)))

    def edited_policy(self, old: Policy) -> Policy:
        """Change one or two things, ceilings above all, down as well as up."""
        new, draw = self.policy(), self.chance
        if self.wants.random() < 0.15:
            return replace(old, resources=new.resources, types=new.types)
        keys = ("max_loops", "max_api_calls", "per_type", "batch_size", "lanes", "projects", "budget", "types", "retry")
        if not self.priced:  # a journal on disk gives back the charges of the window that was in force
            new = replace(new, window_ms=old.window_ms)
        chosen = draw.sample(
            (*keys, "starvation_ms", "ramp", "window_ms", "priority", "lease_ttl_ms"), draw.choice((1, 2))
        )
        if "types" in chosen:  # what they want is offered; entries that were written before may want more
            old = replace(old, resources=new.resources)
        return replace(old, **{key: getattr(new, key) for key in chosen})

    @staticmethod
    def generous(old: Policy) -> Policy:
        """Lift every limit that could keep work waiting for ever, as a person would who wants it all done."""
        types = {
            name: TypePolicy(name, each.child, each.has_command, each.judged, each.reviewed, parallel=each.parallel)
            for name, each in old.types.items()
        }
        projects = {name: ProjectPolicy() for name in old.projects}
        lifted = replace(old, max_loops=4, max_api_calls=4, batch_size=0, loops_per_plan=200, resources=OFFERS[-1])
        return replace(lifted, types=types, projects=projects, lanes={}, per_type={}, budget=NO_BUDGET)

    # --- artifacts --------------------------------------------------------------------------------------------------

    def child_of(self, type_name: str) -> str | None:
        """Return the type of a type's children."""
        place = self.ladder.index(type_name) + 1
        return self.ladder[place] if place < len(self.ladder) else None

    def plan(self, plan_id: str, policy: Policy) -> Artifact:
        """Write a plan file: mostly with children, now and then with none."""
        declares = self.chance.random() < 0.85
        entries = self.entries(self.ladder[0], policy, nested=0.4) if declares else ()
        project = self.chance.choice(PROJECTS)
        made = self.artifact(plan_id, self.ladder[0], entries, project=project, budget=self._budget(0.1))
        return replace(made, priority=self._priority(0.15))

    def _priority(self, likely: float) -> int | None:
        """Draw how much sooner than others something goes."""
        return self.chance.choice((-1000, -5, -1, 0, 1, 20, 1000)) if self.chance.random() < likely else None

    def artifact(
        self,
        name: str,
        type_name: str,
        entries: tuple[Entry, ...],
        *,
        project: str = "default",
        budget: Budget = NO_BUDGET,
        parallel: bool = True,
    ) -> Artifact:
        """Make a file; a parent of leaves that declares none gets its implied child, as the reader of files does."""
        self._versions += 1
        text = f"{name} version {self._versions}"
        child = self.child_of(type_name)
        declares = bool(entries)
        if not declares and child is not None and self.child_of(child) is None:
            entries = (implied_entry(child, child, name, text),)
        return Artifact(name, name, project, parallel, budget, entries, declares, text)

    def written(self, entry: Entry, type_name: str) -> Artifact:
        """Write the artifact of a declared loop from its entry: the same entry gives the same file."""
        child = self.child_of(type_name)
        entries = entry.children
        if not entries and child is not None:
            entries = (implied_entry(child, child, entry.title, entry.body),)
        return Artifact(entry.id, entry.title, entries=entries, declares=bool(entry.children), text=entry.body)

    def nothing(self, name: str) -> Artifact:
        """Make a file that says in so many words that nothing is below."""
        self._versions += 1
        return Artifact(name, name, declares=True, text=f"{name} version {self._versions}")

    def product(self, loop_id: str, type_name: str, policy: Policy) -> Artifact:
        """Write what a loop hands over: fewer children than a person would, and none that surprise."""
        entries = self.entries(type_name, policy, nested=0.1, most=2, plain=True)
        return self.artifact(loop_id.rpartition("/")[2], type_name, entries)

    def entries(
        self,
        type_name: str,
        policy: Policy,
        *,
        nested: float = 0.2,
        most: int = 3,
        plain: bool = False,
        others: Sequence[str] = (),
    ) -> tuple[Entry, ...]:
        """Draw the children of a loop; each needs only ones before it, or loops elsewhere that exist."""
        child = self.child_of(type_name)
        if child is None:
            return ()
        ids = IDS[: self.chance.choice(range(1, most + 1))]
        return tuple(self._entry(ids, place, child, policy, nested, plain, others) for place in range(len(ids)))

    def _entry(  # noqa: PLR0917 (each of them is drawn apart, and none is left out)
        self,
        ids: Sequence[str],
        place: int,
        child: str,
        policy: Policy,
        nested: float,
        plain: bool,
        others: Sequence[str],
    ) -> Entry:
        """Draw one child."""
        draw = self.chance
        own = policy.type_of(child)
        may_nest = self.child_of(child) is not None and not (own.judged or own.reviewed or own.approve)
        children = self.entries(child, policy, nested=nested / 2, most=2) if may_nest and draw.random() < nested else ()
        needs = tuple(each for each in ids[:place] if draw.random() < 0.3)
        if others and draw.random() < 0.4:
            needs += (draw.choice(others),)
        run = "make" if not plain and not children and draw.random() < 0.25 else None
        return Entry(
            ids[place],
            f"{child} {ids[place]}",
            body=draw.choice(("", "more words")),
            needs=needs,
            run=run,
            leaf=draw.choice((None, None, True, False)) if run else None,
            budget=Budget(secs=45) if not plain and draw.random() < 0.06 else NO_BUDGET,
            parallel=draw.choice((None, None, None, True, False)),
            children=children,
            priority=None if plain else self._priority(0.12),
            resources=self._wanted(policy.resources) if self.wants.random() < 0.12 else None,
        )

    def edited(self, old: Artifact, type_name: str, policy: Policy, others: Sequence[str]) -> Artifact:
        """Change a file as a person does: one entry more, less, other, elsewhere; or only its words."""
        child = self.child_of(type_name)
        entries = list(old.entries)
        if child is None or (not old.declares and self.chance.random() < 0.5):
            return self._again(old, entries)
        if any(each.implied for each in entries):
            entries = []
        _EDITS[self.chance.choice(sorted(_EDITS))](self, entries, child, policy, others)
        if not entries:
            entries = list(self.entries(type_name, policy))
        ids = {each.id for each in entries}
        entries = [self._sound(each, place, ids, entries) for place, each in enumerate(entries)]
        return replace(self._again(old, entries), declares=True, parallel=self.chance.random() < 0.8)

    def _sound(self, entry: Entry, place: int, ids: set[str], entries: list[Entry]) -> Entry:
        """Drop needs that would make the outline unsound: on nobody, or on a later sibling."""
        before = {each.id for each in entries[:place]}
        return replace(entry, needs=tuple(each for each in entry.needs if "/" in each or each in before & ids))

    def _again(self, old: Artifact, entries: list[Entry]) -> Artifact:
        """Write a file anew with these entries, now and then for another project."""
        self._versions += 1
        implied = [replace(each, body=f"{old.id} again") if each.implied else each for each in entries]
        project = self.chance.choice(PROJECTS) if self.chance.random() < 0.1 else old.project
        return replace(old, entries=tuple(implied), text=f"{old.id} version {self._versions}", project=project)

    # --- edits --------------------------------------------------------------------------------------------------------

    def add(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Declare one more, or one that was gone."""
        free = [each for each in IDS if each not in {entry.id for entry in entries}]
        if free:
            ids = [each.id for each in entries] + [self.chance.choice(free)]
            entries.append(self._entry(ids, len(ids) - 1, child, policy, 0.3, False, others))

    def remove(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Declare one less."""
        if len(entries) > 1:
            entries.pop(self.chance.randrange(len(entries)))

    def reword(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Make one other work, or the work it was before."""
        if entries:
            place = self.chance.randrange(len(entries))
            entries[place] = replace(entries[place], body=self.chance.choice(("", "more words", "other words")))

    def reorder(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Put the last one first."""
        if entries:
            entries.insert(0, entries.pop())

    def rewire(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Let one need others than before."""
        if entries:
            place = self.chance.randrange(len(entries))
            needs = tuple(each.id for each in entries[:place] if self.chance.random() < 0.5)
            far = (self.chance.choice(others),) if others and self.chance.random() < 0.5 else ()
            entries[place] = replace(entries[place], needs=needs + far)

    def nest(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Give one other nested children, or none."""
        own = policy.type_of(child)
        if entries and self.child_of(child) is not None and not (own.judged or own.reviewed or own.approve):
            place = self.chance.randrange(len(entries))
            children = self.entries(child, policy, most=2) if self.chance.random() < 0.7 else ()
            work = {"run": None, "leaf": None} if children else {}
            entries[place] = replace(entries[place], children=children, **work)

    def serialise(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Let some run one after another, or side by side again."""
        for place, each in enumerate(entries):
            entries[place] = replace(each, parallel=self.chance.choice((None, True, False)))

    def prefer(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Let one go sooner or later than the others, or as those above it."""
        if entries:
            place = self.chance.randrange(len(entries))
            entries[place] = replace(entries[place], priority=self._priority(0.8))

    def limit(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Give one a budget of its own."""
        if entries:
            place = self.chance.randrange(len(entries))
            entries[place] = replace(entries[place], budget=self.chance.choice((NO_BUDGET, Budget(secs=45))))

    def employ(self, entries: list[Entry], child: str, policy: Policy, others: Sequence[str]) -> None:
        """Give one a command of its own in place of its children, or ask it for children, or not."""
        own = policy.type_of(child)
        if entries and not (own.judged or own.reviewed or own.approve):
            place = self.chance.randrange(len(entries))
            leaf = self.chance.choice((None, True, False))
            entries[place] = replace(entries[place], children=(), run="make", leaf=leaf)


_EDITS = {
    "add": Author.add,
    "employ": Author.employ,
    "limit": Author.limit,
    "nest": Author.nest,
    "prefer": Author.prefer,
    "remove": Author.remove,
    "reorder": Author.reorder,
    "reword": Author.reword,
    "rewire": Author.rewire,
    "serialise": Author.serialise,
}
