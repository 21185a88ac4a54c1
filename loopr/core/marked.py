"""Values of a mapping with the place where each was written, and the list of what is wrong with them.

Knows positions and plain values. Must never know the parser they came from: `world/front_matter.py` hands them in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from loopr.errors import PlanError, Problem

Scalar: TypeAlias = str | int | float | bool | None


class Position(NamedTuple):
    """A place in a file, both numbers counted from 1."""

    line: int
    col: int


@dataclass(frozen=True, slots=True)
class MarkedScalar:
    """One plain value, and the way it was spelt: `1.10` is a number but also a fine title."""

    at: Position
    value: Scalar
    text: str


@dataclass(frozen=True, slots=True)
class MarkedList:
    """A sequence."""

    at: Position
    items: tuple[Marked, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """One key of a mapping with its value; `at` is where the key stands."""

    key: str
    at: Position
    value: Marked


@dataclass(frozen=True, slots=True)
class MarkedMap:
    """A mapping, in the order of the file."""

    at: Position
    pairs: tuple[Pair, ...]

    def get(self, key: str) -> Pair | None:
        """Return the pair of a key, or None."""
        return next((pair for pair in self.pairs if pair.key == key), None)


Marked: TypeAlias = MarkedScalar | MarkedList | MarkedMap


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything wrong or doubtful that was found in one file, so that a person reads it once."""

    source: str
    problems: list[tuple[Position, Problem]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def where(self, at: Position) -> str:
        """Return a place as `file:line:col`."""
        return f"{self.source}:{at.line}:{at.col}"

    def refuse(self, at: Position, message: str, hint: str = "") -> None:
        """Note a problem that makes the file invalid."""
        self.problems.append((at, Problem(message, self.where(at), hint)))

    def warn(self, at: Position, message: str) -> None:
        """Note something that is read, but perhaps not as it was meant."""
        self.warnings.append(f"{self.where(at)} {message}")

    def error(self) -> PlanError:
        """Return the error that says all problems at once, in the order of the file."""
        problems = [problem for _, problem in sorted(self.problems, key=lambda each: each[0])]
        return PlanError(problems[0].message, hint=problems[0].hint, problems=problems)

    def raise_if_any(self) -> None:
        """Raise if anything was refused."""
        if self.problems:
            raise self.error()
