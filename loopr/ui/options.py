"""What a wish or a question may be given, told once for every surface.

Knows names, kinds and meanings. Must never know how any surface spells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loopr.errors import UserError


class Option(NamedTuple):
    """One thing that may be given: what it means, of which kind it is (`object`: any), and what it may be."""

    meaning: str
    kind: type = bool
    many: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0


AT = Option("as it will be, or was, at an instant or +10m", str)
DRY_RUN = Option("show what would change; write nothing")
YES = Option("go on where a person would be asked")

_SAID: Mapping[type, str] = {bool: "true or false", str: "a text", int: "a whole number", object: "a value"}


def check_options(name: str, known: Mapping[str, Option], given: Mapping[str, Any]) -> None:
    """Refuse what nobody knows, and what is of another kind than it should be."""
    for each, value in given.items():
        option = known.get(each)
        if option is None:
            all_known = ", ".join(known)
            hint = f"known: {all_known}" if known else "it has none"
            raise UserError(f"{name} has no option {each!r}", hint=hint)
        if not _fits(option, value):
            raise UserError(f"{each} of {name} is {value!r}", hint=_expected(option))


def _fits(option: Option, value: Any) -> bool:
    """Say whether a value may stand there."""
    if option.many:
        return isinstance(value, list | tuple) and all(_fits(option._replace(many=False), each) for each in value)
    if option.kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= (option.least or 0)
    return isinstance(value, option.kind) and (not option.choices or value in option.choices)


def _expected(option: Option) -> str:
    """Say what may stand there."""
    said = f"one of {', '.join(option.choices)}" if option.choices else _SAID[option.kind]
    said += f" of at least {option.least}" if option.kind is int else ""
    return f"a list, each {said}" if option.many else said
