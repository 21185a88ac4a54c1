"""Entries that are written as people say them: a bare title, a name in front of its keys, a dash of another kind.

Knows the shape of one entry. A bare title is an entry; whatever else has a meaning that can be guessed is refused with
what to write. Must never know what a key is good for.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from loopr.core.bridges import means_name
from loopr.core.marked import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair
from loopr.core.slugs import id_problem, slug
from loopr.core.values import kind, shown

_NO_BLANK = re.compile(r"(?P<key>[A-Za-z_]+):(?P<value>\S.*)$")
_DASH = re.compile(r"[-*+\u2010-\u2015\u2022\u00b7\s]+(?=\w)")


def as_entry(findings: Findings, value: Marked, keys: Collection[str]) -> MarkedMap | None:
    """Return an entry as keys and values, whose title it is where it is a text alone; None where it is neither."""
    if isinstance(value, MarkedMap):
        return _named(findings, value, keys)
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


def as_list(value: Marked) -> str:
    """Say how children are written as a list, to somebody who wrote something else."""
    first = value.pairs[0] if isinstance(value, MarkedMap) and value.pairs else None
    if first is None or id_problem(first.key) is not None:
        return "write one `- title: ...` for each child"
    if isinstance(first.value, MarkedScalar) and first.key in ("id", "title"):
        return f"write `- {first.key}: {shown(first.value.text)}`, with a dash before the first key of each child"
    return f"write `- id: {first.key}` in place of `{shown(first.key)}:`, with its keys below, and so for each child"


def _named(findings: Findings, value: MarkedMap, keys: Collection[str]) -> MarkedMap | None:
    """Refuse an entry whose id or title stands where its first key belongs, with what to write; return any other."""
    pair = value.pairs[0] if value.pairs else None
    if pair is None or {"id", "title"} & {each.key for each in value.pairs}:
        return value
    dash = _DASH.match(pair.key)
    if dash and pair.key[dash.end() :] in keys:
        hint = f"write `- {pair.key[dash.end() :]}: ...`: a plain dash, a blank, then the key"
        findings.refuse(pair.at, f'"{shown(pair.key)}" is no key', hint)
        return None
    if pair.key in keys or isinstance(pair.value, MarkedList) or means_name(pair.key):
        return value
    if isinstance(pair.value, MarkedMap) or not pair.value.text:
        hint = f"write `- id: {slug(pair.key)}`, with the other keys below it"
    elif len(value.pairs) > 1:
        return value
    elif id_problem(pair.key):
        hint = f'write `- "{shown(pair.key)}: {shown(pair.value.text)}"`'
    else:
        hint = f"write `- {{id: {pair.key}, title: {shown(pair.value.text)}}}`"
    findings.refuse(pair.at, f'"{shown(pair.key)}" is no key of an entry, and it has no id or title', hint)
    return None
