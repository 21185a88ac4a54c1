"""What an artifact says: its own few words, and one entry for each child it declares.

Knows the parsed values and their digests. Must never know how they were written (`fields.py`, `headings.py`) or
where they are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from loopr.core.marked import Position
from loopr.core.policy import DEFAULT_PROJECT, NO_BUDGET, Amounts, Budget, read_amounts

DIGEST_LENGTH = 32
START = Position(1, 1)

Command: TypeAlias = tuple[str, ...] | str


@dataclass(frozen=True, slots=True)
class Entry:
    """One declared child: what it is to do, what it waits for, and the children it declares itself.

    An implied entry was not written: it stands for the one leaf of a parent that declares none.
    An `empty` one says in so many words that nothing is below it. One that is `ticked` is done by
    the word of its file, which is no part of the work.
    """

    id: str
    title: str
    body: str = ""
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    run: Command | None = None
    agent: str | None = None
    check: Command | None = None
    budget: Budget = NO_BUDGET
    parallel: bool | None = None
    children: tuple[Entry, ...] = ()
    implied: bool = False
    priority: int | None = None
    inputs: tuple[str, ...] = ()
    leaf: bool | None = None
    empty: bool = False
    resources: Amounts | None = None
    resources_at: Position = field(default=START, compare=False)
    position: Position = field(default=START, compare=False)
    ticked: bool = field(default=False, compare=False)

    @property
    def just_works(self) -> bool:
        """Whether it may end without an artifact: it has work of its own and no children."""
        return not self.children and just_works(run=self.run is not None, agent=self.agent is not None, leaf=self.leaf)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One parsed file; `declares` tells an outline that is there, even empty, from none at all."""

    id: str
    title: str
    project: str = DEFAULT_PROJECT
    parallel: bool = True
    budget: Budget = NO_BUDGET
    entries: tuple[Entry, ...] = ()
    declares: bool = False
    text: str = ""
    warnings: tuple[str, ...] = ()
    project_at: Position = field(default=START, compare=False)
    priority: int | None = None

    @property
    def empty(self) -> bool:
        """Whether it says in so many words that there is nothing below, as `tasks: []` does."""
        return self.declares and not self.entries


def just_works(*, run: bool, agent: bool, leaf: bool | None) -> bool:
    """Say whether an entry may just do the work that a command or agent of its own does: by itself only a command."""
    return run if leaf is None else leaf and (run or agent)


def identity(entry: Entry) -> str:
    """Return the digest of the work of a loop: no place, needs, inputs, budget, priority, resources, children."""
    said = [entry.id, entry.title, entry.body, entry.files, entry.run, entry.agent, entry.check]
    other = entry.leaf is not None and entry.leaf is not (entry.run is not None)  # than what it is by itself
    return _digest([*said, entry.leaf] if other else said)


def plan_identity(plan: Artifact) -> str:
    """Return the digest of what would make a plan's own command do other work: never its project or budget."""
    return _digest([plan.title, plan.text])


def outline_digest(entry: Entry) -> str:
    """Return the digest of an entry's nested children with all they say, or "" if it is silent."""
    return _digest([encode_entry(child) for child in entry.children]) if entry.children or entry.empty else ""


def encode_entry(entry: Entry) -> dict[str, Any]:
    """Turn an entry into plain JSON values; what was not said, and the position, is left out."""
    plain: dict[str, Any] = {"id": entry.id, "title": entry.title}
    for key in ("body", "needs", "files", "inputs", "agent", "implied"):
        if value := getattr(entry, key):
            plain[key] = list(value) if isinstance(value, tuple) else value
    for key in ("run", "check"):
        if (command := getattr(entry, key)) is not None:
            plain[key] = command if isinstance(command, str) else list(command)
    if not entry.budget.unlimited:
        limits = {"tokens": entry.budget.tokens, "micro_usd": entry.budget.micro_usd, "secs": entry.budget.secs}
        plain["budget"] = {key: limit for key, limit in limits.items() if limit is not None}
    if entry.parallel is not None:
        plain["parallel"] = entry.parallel
    for key in ("priority", "leaf"):
        if (value := getattr(entry, key)) is not None:
            plain[key] = value
    if entry.resources is not None:
        plain["resources"] = dict(entry.resources)
    if entry.children or entry.empty:
        plain["children"] = [encode_entry(child) for child in entry.children]
    return plain


def decode_entry(plain: Mapping[str, Any]) -> Entry:
    """Read an entry back from plain JSON values; keys of a later version are ignored."""
    return Entry(
        id=plain["id"],
        title=plain["title"],
        body=plain.get("body", ""),
        needs=tuple(plain.get("needs", ())),
        files=tuple(plain.get("files", ())),
        run=_command(plain.get("run")),
        agent=plain.get("agent"),
        check=_command(plain.get("check")),
        budget=Budget(**plain.get("budget", {})),
        parallel=plain.get("parallel"),
        children=tuple(decode_entry(child) for child in plain.get("children", ())),
        implied=plain.get("implied", False),
        priority=plain.get("priority"),
        inputs=tuple(plain.get("inputs", ())),
        leaf=plain.get("leaf"),
        empty=plain.get("children") == [],
        resources=read_amounts(plain["resources"].items()) if "resources" in plain else None,
    )


def implied_entry(child_type: str, child_id: str, title: str, whole: str) -> Entry:
    """Return the one child of a parent that declares none: its body is the parent's whole artifact without stamps."""
    return Entry(id=child_id, title=title or child_type, body=whole, implied=True)


def _command(value: Any) -> Command | None:
    """Read a command back: a text for the shell, or an argument vector."""
    return tuple(value) if isinstance(value, list) else value


def _digest(value: Any) -> str:
    """Digest plain values in the one way of writing them that JSON leaves no choice in."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
