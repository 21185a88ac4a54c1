"""The page on what other schedulers call settings.

Must never know how a page is written to disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopr.core.bridges import ELSEWHERE, OURS
from loopr.core.ladder import CHILDREN
from loopr.world.settings.elsewhere import NOT_YET, NOT_YET_VALUES, OTHERS, SOURCES, Other
from loopr.world.settings.keys import Key
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.usual import OF_ALL, OF_TYPES
from pages.markdown import code, page, table


def other_names_page() -> str:
    """Say what settings of other schedulers are called here, and where a default differs on purpose."""
    head = ("there", "default there", "here", "default here", "on the difference")
    return page(
        "Names of other schedulers",
        "`loopr/world/settings/elsewhere.py`, `usual.py` beside it and `loopr/core/bridges.py`",
        "What settings are called here that other schedulers call otherwise. `loopr config check` says the same where "
        "it finds one of them in `loopr.yml`. Nothing is translated by itself, for defaults and units differ.",
        *(f"## From {source}\n\n{table(head, _rows(source))}" for source in SOURCES),
        f"## In a plan\n\n{table(('there', 'here'), _words_of_plans())}",
        f"## In types, and at the top of loopr.yml\n\n{table(('there', 'here'), _words_of_settings())}",
        "## Not in this version\n\nWhat nothing reads is refused, until it leads somewhere:\n\n" + "\n".join(_absent()),
    )


def _rows(source: str) -> Iterator[Sequence[str]]:
    """List the names of one scheduler."""
    for each in OTHERS:
        if each.source == source:
            yield code(each.name), each.default, code(each.ours) if each.ours else "nothing", _default(each), each.why


def _words_of_plans() -> Iterator[Sequence[str]]:
    """List the words that lead to our keys of an outline, and those that lead elsewhere."""
    for ours, words in OURS.items():
        yield _listed(words), "the key of the next level, such as `tasks`" if ours == CHILDREN else code(ours)
    for hint, words in ELSEWHERE.items():
        yield _listed(words), hint.replace("{type}", "TYPE").replace("{word}", "KEY").replace("{body}", "body")


def _words_of_settings() -> Iterator[Sequence[str]]:
    """List the words that lead to our keys of a type, and of the file."""
    for hint, words in (*OF_TYPES.items(), *OF_ALL.items()):
        found = re.match(r"did you mean ([\w.{}]+)\?(.*)", hint)
        said = f"{code(found[1].replace('{type}', 'TYPE'))}{';' if found[2] else ''}{found[2]}" if found else hint
        yield _listed(words), said.replace("{type}", "TYPE")


def _listed(words: Sequence[str]) -> str:
    """List words."""
    return ", ".join(map(code, words))


def _absent() -> Iterator[str]:
    """List what is not in this version, with why."""
    yield from (f"- `{key.replace('*', 'TYPE')}`: {why}" for key, why in NOT_YET.items())
    yield from (f"- `{key}: {value}`: {why}" for (key, value), why in NOT_YET_VALUES.items())


def _default(other: Other) -> str:
    """Return the default of our key, as the page on settings has it."""
    key: Key | None = SCHEMA
    for part in other.ours.split(".") if other.ours else ():
        key = (key.keys.get(part) or key.rest) if key is not None else None
    if key is None or not other.ours:
        return ""
    if key.kind == "map":
        return ", ".join(f"{name} {value}" for name, value in (key.default or {}).items())
    return "none" if key.default is None else str(key.default).lower()
