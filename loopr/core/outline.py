"""From a parsed artifact to the children it declares: the door of this idea, the only part that world imports.

Knows both forms of an outline and which one counts. Must never know a disk, YAML, or the loops that exist already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopr.core.entries import (
    DIGEST_LENGTH,
    START,
    Artifact,
    Entry,
    decode_entry,
    encode_entry,
    identity,
    implied_entry,
    outline_digest,
)
from loopr.core.fields import (
    ARTIFACT_KEYS,
    MAX_CHILDREN,
    MAX_DEPTH,
    STAMP_KEY,
    Reading,
    check_trust,
    is_empty,
    outline_problem,
    read_children,
    read_pairs,
)
from loopr.core.headings import Line, item_siblings, read_lines
from loopr.core.ladder import CHILDREN, Ladder
from loopr.core.likeness import lost_fences
from loopr.core.marked import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair, Position, Scalar
from loopr.core.needs import check_siblings, resolve_needs
from loopr.core.policy import DEFAULT_PROJECT, TypePolicy
from loopr.core.rendering import render_artifact
from loopr.core.sections import first_title, read_items, sections_of, warn_of_lists
from loopr.core.slugs import id_problem, one_line, slug
from loopr.core.values import kind, shown

__all__ = [
    "DIGEST_LENGTH",
    "MAX_CHILDREN",
    "MAX_DEPTH",
    "STAMP_KEY",
    "Artifact",
    "Entry",
    "Findings",
    "Ladder",
    "Marked",
    "MarkedList",
    "MarkedMap",
    "MarkedScalar",
    "Pair",
    "Position",
    "Scalar",
    "decode_entry",
    "encode_entry",
    "id_problem",
    "identity",
    "implied_entry",
    "one_line",
    "outline_digest",
    "read_outline",
    "render_artifact",
    "resolve_needs",
    "shown",
    "slug",
]


def read_outline(
    fields: Marked | None,
    body: str,
    *,
    type_name: str,
    types: Mapping[str, TypePolicy],
    fallback_id: str,
    findings: Findings,
    body_line: int = 1,
    whole: str | None = None,
    depth: int = 0,
    written_by_loop: bool = False,
) -> Artifact:
    """Read an artifact, or raise one `PlanError` with everything that is wrong with it.

    `fields` is its front matter, `body` the text after it, from line `body_line` on, `whole` the
    text without stamps (the default is `body`), `depth` the number of ancestors of its loop.
    """
    reading = Reading(Ladder(types), findings, _distrusted(written_by_loop, type_name, types))
    lines = read_lines(findings, body, body_line)
    pairs = _read_top(reading, fields, type_name, depth + 1)
    title = reading.title(pairs) or first_title(lines, reading.ladder, type_name)
    own_id = reading.id(pairs, slug(title or fallback_id))
    declared = _read_declared(reading, pairs, lines, type_name, depth + 1)
    title = title or one_line(fallback_id) or own_id
    artifact = Artifact(
        id=own_id,
        title=title,
        project=_read_project(reading, pairs),
        parallel=reading.flag(pairs, "parallel") is not False,
        budget=reading.budget(pairs),
        entries=declared or (() if depth and declared == () else _implied(reading, type_name, title, whole or body)),
        declares=declared is not None,
        text=body,
        warnings=tuple(findings.warnings),
        project_at=pairs["project"].value.at if "project" in pairs else START,
        priority=_read_priority(reading, pairs, type_name, depth),
    )
    findings.raise_if_any()
    return artifact


def _distrusted(by_loop: bool, type_name: str, types: Mapping[str, TypePolicy]) -> str | None:
    """Name the type of a loop that wrote an artifact, unless it may say all in one."""
    trusted = type_name in types and types[type_name].trust_outline
    return type_name if by_loop and not trusted else None


def _implied(reading: Reading, type_name: str, title: str, whole: str) -> tuple[Entry, ...]:
    """Return the one child of an artifact that says nothing of children, if its type gets one by itself."""
    child = reading.ladder.child(type_name)
    return (implied_entry(child, slug(child), title, whole),) if child and reading.ladder.implies(type_name) else ()


def _read_top(
    reading: Reading,
    fields: Marked | None,
    type_name: str,
    depth: int,
) -> dict[str, Pair]:
    """Return the front matter by key; empty front matter is the same as none."""
    if fields is None or (isinstance(fields, MarkedScalar) and fields.value is None):
        return {}
    if not isinstance(fields, MarkedMap):
        message = f"front matter must be keys and values, not {kind(fields)}"
        reading.findings.refuse(fields.at, message, "write `title: ...`")
        return {}
    if reading.ladder.child(type_name) is None:  # nothing is below a leaf: an empty key is true
        known = reading.ladder.all_keys()
        told = tuple(each for each in fields.pairs if each.key not in known or not is_empty(each.value))
        fields = replace(fields, pairs=told)
    return read_pairs(reading, fields, type_name, ARTIFACT_KEYS, depth)


def _read_declared(
    reading: Reading, pairs: Mapping[str, Pair], lines: tuple[Line, ...], type_name: str, depth: int
) -> tuple[Entry, ...] | None:
    """Return the children of the form that counts, or None if the artifact has no outline."""
    items = read_items(lines, reading.ladder, type_name)
    children = pairs.get(CHILDREN)
    if children is not None:
        if items:
            message = f"this list is not read: the front matter declares `{children.key}`"
            reading.findings.warn(items[0].at, message)
        said = children.value
        if depth > 1 and isinstance(said, MarkedScalar) and said.value is None:
            return None  # a key without a list says nothing; only of a plan more is asked
        return read_children(reading, said, type_name, depth)
    child = reading.ladder.child(type_name)
    if not items or child is None:
        if not pairs and (lost := lost_fences(lines, reading.ladder, type_name)) is not None:
            reading.findings.refuse(*lost)
        return None
    if problem := outline_problem(len(items), depth):
        reading.findings.refuse(items[0].at, *problem)
        return ()
    warn_of_lists(reading.findings, sections_of(lines, reading.ladder, type_name))
    siblings = list(item_siblings(reading.findings, items, child))
    return tuple(each.entry for each in check_siblings(reading.findings, siblings))


def _read_priority(reading: Reading, pairs: Mapping[str, Pair], type_name: str, depth: int) -> int | None:
    """Read how much sooner than others a plan goes; below the plan its parent's outline says it, or nothing does."""
    if depth and "priority" in pairs:
        message = f"the priority of a {type_name} stands in its parent's outline, so this is never read"
        reading.findings.refuse(pairs["priority"].at, message, "write it beside the entry, or at the top of the plan")
        return None
    if reading.distrusted is not None:
        check_trust(reading, {key: pair for key, pair in pairs.items() if key == "priority"})
    return reading.priority(pairs)


def _read_project(reading: Reading, pairs: Mapping[str, Pair]) -> str:
    """Read who pays; whether that project exists is asked of the settings later."""
    text = reading.text(pairs, "project")
    if text is None:
        return DEFAULT_PROJECT
    if not text.strip() or one_line(text) != text:
        reading.findings.refuse(pairs["project"].value.at, "project: must be a name on one line", "such as `api`")
    return text
