"""From an entry to the Markdown of the artifact that it stands for: the inverse of reading one.

Knows how to write the few kinds of YAML that an outline needs, always the same bytes for the same entry. Must never
know a YAML library: quoted texts and lists are written as JSON, which is YAML too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from loopr.core.entries import Artifact, Command, Entry, implied_entry
from loopr.core.headings import read_lines
from loopr.core.ladder import Ladder
from loopr.core.marked import Findings
from loopr.core.policy import DEFAULT_PROJECT, Budget, TypePolicy
from loopr.core.sections import read_items
from loopr.core.slugs import slug

_MICRO = 1_000_000
_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # YAML wants these escaped, JSON does not


def render_artifact(
    entry: Entry, type_name: str, types: Mapping[str, TypePolicy], *, project: str = DEFAULT_PROJECT
) -> str:
    """Write the artifact of a loop that its entry declares; reading it back gives the entry's children again."""
    ladder, text, outline = Ladder(types), _text_of(entry), list[str]()
    if entry.children:
        outline = list(_children(entry.children, ladder, type_name))
    elif entry.empty:
        outline = [f"{ladder.keys(type_name)[0]}: []"]
    elif _reads_as_outline(text, ladder, type_name):
        outline = [f"{ladder.keys(type_name)[0]}:"]  # says nothing, but the list in the text is not read beside it
    return _artifact(entry, project, outline, text)


def _text_of(entry: Entry) -> str:
    """Return what an entry says in words."""
    return f"# {entry.title}\n\n{entry.body}\n" if entry.body else f"# {entry.title}\n"


def _artifact(entry: Entry, project: str, outline: list[str], text: str) -> str:
    """Put an outline before a text."""
    lines = [f"id: {_text(entry.id)}", f"title: {_text(entry.title)}"]
    if project != DEFAULT_PROJECT:
        lines.append(f"project: {_text(project)}")
    return "\n".join(["---", *lines, *outline, "---", text])


class Left(NamedTuple):
    """What a loop has left that handed over no outline: the commit that came of it, its title, and perhaps a note."""

    commit: str
    title: str
    note: str = ""


def leaf_artifact(
    entry: Entry, type_name: str, types: Mapping[str, TypePolicy], left: Left, *, project: str = DEFAULT_PROJECT
) -> str:
    """Write the artifact of a loop that handed over no outline: its note, else what was asked and what came of it.

    It says in so many words that nothing is below, where its type has children.
    """
    keys, text = Ladder(types).keys(type_name), left.note or _text_of(entry)
    if left.commit and not left.note:
        text = f"{text}\n## Landed\n\n- {left.commit} {left.title}\n"
    return _artifact(entry, project, [f"{keys[0]}: []"] if keys else [], text)


def declared_artifact(
    entry: Entry, type_name: str, types: Mapping[str, TypePolicy], *, project: str = DEFAULT_PROJECT
) -> tuple[str, Artifact]:
    """Return the text of a declared loop's artifact, and what reading it would give."""
    text = render_artifact(entry, type_name, types, project=project)
    ladder, child, entries = Ladder(types), Ladder(types).child(type_name), entry.children
    if not entries and not entry.empty and child is not None and ladder.implies(type_name):
        entries = (implied_entry(child, slug(child), entry.title, text),)
    return text, Artifact(entry.id, entry.title, project, entries=entries, declares=bool(entry.children) or entry.empty)


def _reads_as_outline(text: str, ladder: Ladder, type_name: str) -> bool:
    """Tell whether a text has a list that would be taken for children which the entry does not have."""
    return bool(read_items(read_lines(Findings(""), text, 1), ladder, type_name))


def _children(entries: tuple[Entry, ...], ladder: Ladder, type_name: str) -> Iterator[str]:
    """Write an outline, each entry below a dash."""
    child = ladder.child(type_name) or ""
    yield f"{ladder.keys(type_name)[0]}:"
    for entry in entries:
        for index, line in enumerate(_entry(entry, ladder, child)):
            yield f"{'    ' if index else '  - '}{line}" if line else line


def _entry(entry: Entry, ladder: Ladder, type_name: str) -> Iterator[str]:
    """Write the keys of one entry."""
    yield f"id: {_text(entry.id)}"
    yield f"title: {_text(entry.title)}"
    if entry.body:
        yield from _body(entry.body)
    for key, value in _rest(entry).items():
        yield f"{key}: {_flow(value)}"
    if entry.children:
        yield from _children(entry.children, ladder, type_name)
    elif entry.empty:
        yield f"{ladder.keys(type_name)[0]}: []"


def _rest(entry: Entry) -> dict[str, Any]:
    """Return the keys that take one line each, without those that say nothing."""
    values: dict[str, Any] = {
        "needs": list(entry.needs) or None,
        "files": list(entry.files) or None,
        "inputs": list(entry.inputs) or None,
        "run": _command(entry.run),
        "agent": entry.agent,
        "check": _command(entry.check),
        "parallel": entry.parallel,
        "priority": entry.priority,
        "leaf": entry.leaf,
        "resources": None if entry.resources is None else dict(entry.resources),
        "budget": None if entry.budget.unlimited else _budget(entry.budget),
    }
    return {key: value for key, value in values.items() if value is not None}


def _command(command: Command | None) -> Any:
    """Return a command as JSON has it."""
    return list(command) if isinstance(command, tuple) else command


def _budget(budget: Budget) -> dict[str, Any]:
    """Return the limits of a budget as a file has them."""
    usd = None if budget.micro_usd is None else _usd(budget.micro_usd)
    return {"tokens": budget.tokens, "usd": usd, "secs": budget.secs}


def _flow(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {limit}' for key, limit in value.items() if limit is not None)}}}"
    return _UNPRINTABLE.sub(_escape, json.dumps(value, ensure_ascii=False))


def _usd(micro_usd: int) -> str:
    """Write millionths of a dollar as dollars, exactly."""
    whole, rest = divmod(micro_usd, _MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Write a text bare where nobody could take it for something else, and quoted otherwise."""
    return text if _PLAIN.fullmatch(text) and text not in _NOT_TEXT else _flow(text)


def _body(body: str) -> Iterator[str]:
    """Write a body as a block that people can read, or quoted where a block would not hold it exactly."""
    lines = body.split("\n")
    if len(lines) > 1 and lines[0][:1].strip() and all(line.isprintable() for line in lines):
        yield "body: |-"
        yield from (f"  {line}" if line else "" for line in lines)
    else:
        yield f"body: {_flow(body)}"


def _escape(found: re.Match[str]) -> str:
    """Write one character as an escape sequence."""
    return f"\\u{ord(found[0]):04x}"
