"""Entries that are written as people say them: a bare title, a name in front of its keys, a dash of another kind.

Knows the shape of one entry. A bare title is an entry; another shape with a meaning that can be
guessed is refused, with the words to write. Must never know the use of a key, but of `run`: a name
may stand before a command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import NamedTuple

from loopr.core.bridges import meant, misspells_name
from loopr.core.commands import may_be_command, reads_as_command
from loopr.core.marked import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair
from loopr.core.slugs import id_problem, slug
from loopr.core.values import kind, shown

_NO_BLANK = re.compile(r"(?P<key>[A-Za-z_]+):(?P<value>\S.*)$")
_PLAIN = re.compile(r"[A-Za-z][\w ./()'-]*")
_LONGEST = 160
_DASH = re.compile(r"[-*+\u2010-\u2015\u2022\u00b7\s]+(?=\w)")


class Work(NamedTuple):
    """Whether an entry may name a `run`, and whether nothing else would do its work."""

    may_run: bool = True
    must_run: bool = False


def as_entry(
    findings: Findings,
    value: Marked,
    keys: Collection[str],
    work: Work,
) -> MarkedMap | None:
    """Return an entry as keys and values, whose title it is where it is a text alone; None where it is neither."""
    if isinstance(value, MarkedMap):
        return _named(findings, value, keys, work)
    if isinstance(value, MarkedScalar) and value.text.strip():
        found = _NO_BLANK.match(value.text)
        if found and found["key"] in keys:
            hint = f"write `{found['key']}: {shown(found['value'])}`"
            findings.refuse(value.at, "there is no blank after the colon of this entry", hint)
            return None
        return MarkedMap(value.at, (Pair("title", value.at, value),))
    message = f"an entry must be a title or a mapping, not {kind(value)}"
    findings.refuse(value.at, message, "write `- title: ...`")
    return None


def as_list(value: Marked, work: Work) -> str:
    """Say how children are written as a list, to somebody who wrote something else."""
    first = value.pairs[0] if isinstance(value, MarkedMap) and value.pairs else None
    if first is None or id_problem(first.key) is not None:
        return "write one `- title: ...` for each child"
    if isinstance(first.value, MarkedScalar) and first.key in ("id", "title"):
        return f"write `- {first.key}: {shown(first.value.text)}`, with a dash before the first key of each child"
    if isinstance(first.value, MarkedScalar) and first.value.text:
        return f"{_as_named(first.key, first.value.text, work)}, and so for each child"
    return f"write `- id: {first.key}` in place of `{shown(first.key)}:`, with its keys below, and so for each child"


def _named(
    findings: Findings,
    value: MarkedMap,
    keys: Collection[str],
    work: Work,
) -> MarkedMap | None:
    """Refuse an entry whose id or title stands where its first key belongs, with what to write; return any other."""
    pair = value.pairs[0] if value.pairs else None
    if pair is None or {"id", "title"} & {each.key for each in value.pairs}:
        return value
    dash = _DASH.match(pair.key)
    if dash and pair.key[dash.end() :] in keys:
        hint = f"write `- {pair.key[dash.end() :]}: ...`: a plain dash, a blank, then the key"
        findings.refuse(pair.at, f'"{shown(pair.key)}" is no key', hint)
        return None
    text = pair.value.text if isinstance(pair.value, MarkedScalar) else ""
    if pair.key in keys or isinstance(pair.value, MarkedList) or _is_known(pair.key, text):
        return value
    if not text:
        hint = f"write `- id: {slug(pair.key)}`, with the other keys below it"
    elif len(value.pairs) == 1:
        hint = _as_named(pair.key, text, work)
    elif work.may_run and _is_command_of(value, text, keys):
        name = f"id: {pair.key}" if id_problem(pair.key) is None else f"title: {_quoted(pair.key)}"
        hint = f"write `- {name}`, and below it `run: {_in_quotes(text)}`"
    else:
        return value
    findings.refuse(pair.at, f'"{shown(pair.key)}" is no key of an entry, and it has no id or title', hint)
    return None


def as_meant(value: Marked, keys: Collection[str]) -> MarkedMap | None:
    """Return the most likely meaning of a refused entry, to read on; None for no mapping."""
    first = value.pairs[0] if isinstance(value, MarkedMap) and value.pairs else None
    if first is None or not isinstance(value, MarkedMap):
        return None
    dash = _DASH.match(first.key)
    said = _of_name(first, is_command=len(value.pairs) > 1)
    if dash and first.key[dash.end() :] in keys:
        said = (Pair(first.key[dash.end() :], first.at, first.value),)
    known = {each.key for each in said}
    others = (each for each in value.pairs[1:] if each.key not in known)
    return MarkedMap(value.at, (*said, *others))


def _of_name(pair: Pair, is_command: bool) -> tuple[Pair, ...]:
    """Give a name that stands before its keys, or before its command, a key of its own."""
    inner = pair.value.pairs if isinstance(pair.value, MarkedMap) else ()
    if {"id", "title"} & {each.key for each in inner}:
        return inner
    key = "id" if id_problem(pair.key) is None else "title"
    name = Pair(key, pair.at, MarkedScalar(pair.at, pair.key, pair.key))
    if is_command and isinstance(pair.value, MarkedScalar) and pair.value.text:
        return name, Pair("run", pair.at, pair.value)
    return name, *inner


def as_items(value: Marked, keys: Collection[str]) -> tuple[Marked, ...]:
    """Return the entries that children mean most likely which are a mapping, and no list."""
    if not isinstance(value, MarkedMap):
        return ()
    if {"id", "title"} & {each.key for each in value.pairs}:
        return (value,)
    found = (as_meant(MarkedMap(each.at, (each,)), keys) for each in value.pairs)
    return tuple(each for each in found if each is not None)


def called(value: MarkedMap) -> str:
    """Return how an entry is called that says so under another key than `id` or `title`, or ""."""
    for pair in value.pairs:
        names = meant(pair.key) in ("id", "title") or misspells_name(pair.key)
        if names and isinstance(pair.value, MarkedScalar):
            return pair.value.text
    return ""


def _is_known(key: str, text: str) -> bool:
    """Tell a word that means a key of ours for a name or a command, which has a hint of its own."""
    own = meant(key)
    slips = not own and not reads_as_command(text) and misspells_name(key)
    return slips or own in ("id", "title") or (own == "run" and bool(text))


def _is_command_of(value: MarkedMap, text: str, keys: Collection[str]) -> bool:
    """Tell whether the first key of an entry stands before its command, and nothing else works."""
    others = {each.key for each in value.pairs[1:]}
    return others <= set(keys) - {"run", "agent"} and reads_as_command(text)


def _as_named(name: str, text: str, work: Work) -> str:
    """Say how a name before a text is written: as an id with its command, or with a title."""
    is_id, is_command = id_problem(name) is None, reads_as_command(text)
    own = f"id: {name}" if is_id else f"title: {_quoted(name)}"
    perhaps = work.must_run and is_id and may_be_command(text)
    if work.may_run and (is_command or perhaps):
        words = "" if is_command else ", or `title:` in place of `run:` if it is no command"
        return f"write `- {{{own}, run: {_in_quotes(text)}}}`{words}"
    if is_id:
        return f"write `- {{{own}, title: {_quoted(text)}}}`"
    return f"write `- {_in_quotes(f'{name}: {text}')}`"


def _quoted(text: str) -> str:
    """Write a text as it may stand between brackets in YAML, plain where it may."""
    return text if _PLAIN.fullmatch(text) and len(text) <= _LONGEST else _in_quotes(text)


def _in_quotes(text: str) -> str:
    """Write a text in double quotes, as YAML reads them, or dots for one too long for a message."""
    bare = text.strip()
    if len(bare) > _LONGEST:
        return "..."
    written = json.dumps(bare, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)
