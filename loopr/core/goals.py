"""A goal in words becomes a plan of one loop: its text, with the judge and whoever does the work.

Knows words and the levels of the ladder. Must never know a file, a setting, nor who is installed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import NamedTuple

from loopr.core.entries import Command
from loopr.core.ladder import Ladder
from loopr.core.slugs import one_line, slug

LONGEST_TITLE = 72
_LONGEST_ID = 24
_MARK = 6
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class Work(NamedTuple):
    """Who does the work and what judges it, where the type does not say so."""

    run: Command | None = None
    agent: str | None = None
    check: str | None = None


class Goal(NamedTuple):
    """A plan of one loop: its id, and the text of its file."""

    id: str
    text: str


def goal_plan(words: str, ladder: Ladder, work: Work, own_id: str = "") -> Goal:
    """Write the plan of one loop whose task the words are.

    It is at the end of the ladder; where levels between are judged, it just does the work at the first of them.
    """
    said = _CONTROL.sub("", words.replace("\r\n", "\n").replace("\r", "\n")).strip()
    title, goal_id = title_of(said), own_id or id_of(said)
    root, *levels = ladder.levels()
    levels = levels[:1] if ladder.judged_between() else levels
    lines = ["---", f"id: {goal_id}", f"title: {_quoted(title)}"]
    indent, above = "", root
    for name in levels:
        lines += [f"{indent}{ladder.keys(above)[0]}:", f"{indent}  - id: {slug(name)}"]
        indent, above = f"{indent}    ", name
    lines += [f"{indent}title: {_quoted(title)}"]
    lines += [f"{indent}body: {_quoted(said)}"] if said != title else []
    told = zip(("run", "agent", "check"), work, strict=True)
    lines += [f"{indent}{key}: {_quoted(value)}" for key, value in told if value]
    lines += [f"{indent}leaf: true"] if work.agent and ladder.child(levels[-1]) is not None else []
    lines += ["---", f"# {title}"]
    lines += ["", said] if said != title else []
    return Goal(goal_id, "\n".join(lines) + "\n")


def title_of(words: str) -> str:
    """Return the first line of some words as a title, shortened between two of them."""
    line = one_line(words.partition("\n")[0]).lstrip("#").strip()
    if len(line) <= LONGEST_TITLE:
        return line
    return f"{line[: LONGEST_TITLE - 2].rpartition(' ')[0] or line[: LONGEST_TITLE - 2]} …"


def id_of(words: str) -> str:
    """Make an id of the first few words; one that leaves some out has a short hash of all of them."""
    whole = slug(one_line(words))
    if len(whole) <= _LONGEST_ID:
        return whole
    kept = whole[: _LONGEST_ID - _MARK].rpartition("-")[0] or whole[: _LONGEST_ID - _MARK]
    return f"{kept}-{hashlib.sha256(words.encode()).hexdigest()[:_MARK]}"


def _quoted(said: Command) -> str:
    """Write a text, or the words of a command, as YAML reads it back, whatever is in it."""
    return json.dumps(said, ensure_ascii=False)
