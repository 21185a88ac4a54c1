"""The outline as keys and values: which keys an artifact and its entries take, and what each becomes.

Knows front matter as marked values. Must never know YAML, a file or the headings form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loopr.core.bridges import bridge, meant
from loopr.core.entries import Command, Entry
from loopr.core.ladder import CHILDREN, Ladder, plurals
from loopr.core.loose import Work, as_entry, as_items, as_list, as_meant, called
from loopr.core.marked import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair, Position
from loopr.core.needs import Sibling, check_siblings
from loopr.core.own_work import check_read, read_leaf
from loopr.core.policy import NO_BUDGET, Budget
from loopr.core.slugs import id_problem, nearest, one_line, pattern_problem, slug
from loopr.core.values import (
    kind,
    read_budget,
    read_command,
    read_flag,
    read_priority,
    read_resources,
    read_text,
    read_texts,
    refuse_key,
    shown,
)

MAX_CHILDREN = 1000
MAX_DEPTH = 8
STAMP_KEY = "loopr"
ARTIFACT_KEYS = ("id", "title", "project", "parallel", "budget", "priority", STAMP_KEY)
ENTRY_KEYS = (
    "id",
    "title",
    "body",
    "needs",
    "files",
    "inputs",
    "run",
    "agent",
    "check",
    "leaf",
    "budget",
    "priority",
    "parallel",
    "resources",
)
UNTRUSTED_KEYS = ("id", "title", "body", "needs", "files", "inputs", "parallel", "resources")
OWN_WORK_KEYS = ("run", "agent", "check", "leaf")


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading one artifact goes by; `distrusted` is the type of the loop that wrote it, if it may not say all."""

    ladder: Ladder
    findings: Findings
    distrusted: str | None = None

    def work(self, type_name: str) -> Work:
        """Say whether an entry of a type may name its command, and whether its type has none."""
        own = self.ladder.types.get(type_name)
        idle = own is not None and own.child is None and not own.has_command
        return Work(may_run=self.distrusted is None, must_run=idle)

    def text(self, pairs: Mapping[str, Pair], key: str) -> str | None:
        """Read a text of a mapping, or None where it is left out."""
        pair = pairs.get(key)
        return read_text(self.findings, key, pair.value) if pair else None

    def title(self, pairs: Mapping[str, Pair]) -> str:
        """Read the title as one line that is safe to show; "" where it is left out."""
        return one_line(self.text(pairs, "title") or "")

    def flag(self, pairs: Mapping[str, Pair], key: str) -> bool | None:
        """Read true or false, or None where it is left out."""
        pair = pairs.get(key)
        return read_flag(self.findings, key, pair.value) if pair else None

    def command(self, pairs: Mapping[str, Pair], key: str) -> Command | None:
        """Read a command, or None where it is left out."""
        pair = pairs.get(key)
        return read_command(self.findings, key, pair.value) if pair else None

    def budget(self, pairs: Mapping[str, Pair]) -> Budget:
        """Read the budget, unlimited where it is left out."""
        pair = pairs.get("budget")
        return read_budget(self.findings, pair.value) if pair else NO_BUDGET

    def priority(self, pairs: Mapping[str, Pair]) -> int | None:
        """Read how much sooner than others it goes, or None where it is left out."""
        pair = pairs.get("priority")
        return read_priority(self.findings, pair.value) if pair else None

    def id(self, pairs: Mapping[str, Pair], default: str) -> str:
        """Read an id that was written, or fall back on one that was made."""
        text = self.text(pairs, "id")
        if text is None:
            return default
        if problem := id_problem(text):
            self.findings.refuse(pairs["id"].value.at, problem, f"write `id: {slug(text)}`")
            return slug(text)
        return text


def read_pairs(
    reading: Reading,
    value: MarkedMap,
    type_name: str,
    keys: tuple[str, ...],
    depth: int,
) -> dict[str, Pair]:
    """Return the pairs of a mapping by key, with the children under "children"; refuse any others.

    `depth` is that of the children. They are read also under a key that is not known: all that is
    wrong is told at once.
    """
    children = reading.ladder.keys(type_name)
    pairs: dict[str, Pair] = {}
    for pair in value.pairs:
        declares = pair.key in children
        name = CHILDREN if declares else pair.key
        if not declares and name not in keys:
            refuse_key(reading.findings, pair, (*keys, *children), _hint(reading.ladder, type_name, pair.key, keys))
            if _means_children(reading.ladder, pair, (*keys, *children), children):
                read_children(reading, pair.value, type_name, depth)
        elif name in pairs:
            message = f'"{pair.key}" and "{pairs[name].key}" both declare the children'
            reading.findings.refuse(pair.at, message, f"keep one of them, such as `{children[0]}`")
        else:
            pairs[name] = pair
    return pairs


def _means_children(
    ladder: Ladder,
    pair: Pair,
    known: tuple[str, ...],
    children: tuple[str, ...],
) -> bool:
    """Tell whether a list stands under a word that most likely means the children's key."""
    word = pair.key.strip().casefold()
    if not isinstance(pair.value, MarkedList):
        return False
    means = word in ladder.all_keys() or meant(word) == CHILDREN
    return means or nearest(word, known) in children


def _hint(ladder: Ladder, type_name: str, key: str, keys: tuple[str, ...]) -> str:
    """Say what leads to ours, to somebody who used the children's key of another type or a word from elsewhere."""
    if key not in ladder.all_keys():
        return bridge(ladder, type_name, key, keys)
    child = ladder.child(type_name)
    if child is None:
        return f"the type {type_name} has no children"
    said = f"the children of type {type_name} are called `{ladder.keys(type_name)[0]}`"
    if ladder.child(child) is not None:
        said += f"; a {child} with a `run` of its own just does the work"
    below = next((each for each in ladder.levels()[2:] if key in plurals(each)), "")
    if below and type_name == ladder.levels()[0]:
        ladder_so = f"types: {{{type_name}: {{child: {below}}}}}"
        said += f"; to leave out the levels between: `{ladder_so}` in loopr.yml"
    return said


def read_children(reading: Reading, value: Marked, parent_type: str, depth: int) -> tuple[Entry, ...]:
    """Read one outline, whose entries are at the given depth, with all that is nested in it."""
    child_type = reading.ladder.child(parent_type)
    if child_type is None or (isinstance(value, MarkedScalar) and value.value is None):
        return ()
    if not isinstance(value, MarkedList):
        message = f"the children of type {parent_type} must be a list, not {kind(value)}"
        reading.findings.refuse(value.at, message, as_list(value, reading.work(child_type)))
        _read_siblings(reading, as_items(value, ENTRY_KEYS), child_type, depth)
        return ()
    if problem := outline_problem(len(value.items), depth):
        reading.findings.refuse(value.at, *problem)
        return ()
    return _read_siblings(reading, value.items, child_type, depth)


def _read_siblings(
    reading: Reading,
    items: Sequence[Marked],
    type_name: str,
    depth: int,
) -> tuple[Entry, ...]:
    """Read the entries of one outline, and their needs of each other."""
    read = [_read_entry(reading, item, type_name, depth) for item in items]
    siblings = [each for each in read if each is not None]
    return tuple(each.entry for each in check_siblings(reading.findings, siblings))


def is_empty(value: Marked) -> bool:
    """Say whether an outline says in so many words that it declares nothing."""
    return isinstance(value, MarkedList) and not value.items


def _works(pairs: Mapping[str, Pair]) -> bool:
    """Say whether an entry names a command or an agent, which declares the loops below it."""
    return "run" in pairs or "agent" in pairs


def outline_problem(count: int, depth: int) -> tuple[str, str] | None:
    """Say why an outline of this many entries at this depth is too large, and what to do."""
    if count > MAX_CHILDREN:
        return f"declares {count} children, the limit is {MAX_CHILDREN}", "group them under another level"
    if count and depth > MAX_DEPTH:
        return f"declares loops at depth {depth}, the limit is {MAX_DEPTH}", "use fewer levels"
    return None


def _read_entry(reading: Reading, value: Marked, type_name: str, depth: int) -> Sibling | None:
    """Read one entry; None if it is so wrong that nothing can be said of its siblings."""
    said = as_entry(reading.findings, value, ENTRY_KEYS, reading.work(type_name))
    said = said or as_meant(value, ENTRY_KEYS)
    if said is None:
        return None
    pairs = read_pairs(reading, said, type_name, ENTRY_KEYS, depth + 1)
    title = reading.title(pairs)
    entry_id = reading.id(pairs, slug(title) if title else "")
    if not entry_id:
        reading.findings.refuse(value.at, "an entry needs an id or a title", "write `title: ...`")
        entry_id = slug(called(said)) if called(said) else ""
    entry = Entry(entry_id, title or entry_id, position=value.at)
    found = _read_keys(reading, pairs, type_name, depth, entry)
    return found if entry_id else None


def _read_keys(
    reading: Reading,
    pairs: Mapping[str, Pair],
    type_name: str,
    depth: int,
    entry: Entry,
) -> Sibling:
    """Read the keys of an entry beside its id and its title."""
    check_trust(reading, pairs)
    needs, needs_at = _read_needs(reading, pairs)
    children = pairs.get(CHILDREN)
    nested = read_children(reading, children.value, type_name, depth + 1) if children else ()
    empty = children is not None and is_empty(children.value) and not _works(pairs)
    empty = empty and (reading.distrusted is None or reading.ladder.child(type_name) is not None)
    if children and (nested or empty):
        _check_passed_over(reading, pairs, children, type_name)
    elif reading.distrusted is None:
        check_read(reading.findings, reading.ladder, pairs, type_name)
    entry = replace(
        entry,
        body=tidy(reading.text(pairs, "body") or ""),
        needs=needs,
        files=_read_files(reading, pairs, "files"),
        run=reading.command(pairs, "run"),
        agent=reading.text(pairs, "agent"),
        check=reading.command(pairs, "check"),
        budget=reading.budget(pairs),
        parallel=reading.flag(pairs, "parallel"),
        children=nested,
        priority=reading.priority(pairs),
        resources=read_resources(reading.findings, pairs["resources"].value) if "resources" in pairs else None,
        resources_at=pairs["resources"].value.at if "resources" in pairs else entry.position,
        inputs=_read_files(reading, pairs, "inputs"),
        leaf=None if nested or empty else read_leaf(reading.findings, reading.ladder, pairs, type_name),
        empty=empty,
    )
    return Sibling(entry, pairs["id"].value.at if "id" in pairs else entry.position, needs_at)


def _read_needs(reading: Reading, pairs: Mapping[str, Pair]) -> tuple[tuple[str, ...], tuple[Position, ...]]:
    """Read what an entry waits for, each once, with the place of each."""
    pair = pairs.get("needs")
    places: dict[str, Position] = {}
    for text, at in read_texts(reading.findings, "needs", pair.value) if pair else ():
        places.setdefault(text.strip(), at)
    return tuple(places), tuple(places.values())


def _read_files(reading: Reading, pairs: Mapping[str, Pair], key: str) -> tuple[str, ...]:
    """Read the paths that an entry means to touch, or works from."""
    pair = pairs.get(key)
    texts = read_texts(reading.findings, key, pair.value) if pair else ()
    return check_files(reading.findings, texts, key)


def check_files(findings: Findings, texts: tuple[tuple[str, Position], ...], key: str = "files") -> tuple[str, ...]:
    """Return path patterns, each once, and refuse those that leave the repository."""
    for text, at in texts:
        if problem := pattern_problem(text):
            findings.refuse(at, f"{key}: {problem}", "write it relative to the top, such as `src/api/**`")
    return tuple(dict.fromkeys(text for text, _ in texts))


def check_trust(reading: Reading, pairs: Mapping[str, Pair]) -> None:
    """Refuse what a loop may not say of its children: a command that it chose would run with nobody asked."""
    if reading.distrusted is None:
        return
    for key, pair in pairs.items():
        if key not in UNTRUSTED_KEYS and key != CHILDREN:
            hint = f"`types.{reading.distrusted}.trust_outline: true` allows it"
            message = f'"{shown(key)}" may not be set in an artifact that a {reading.distrusted} loop wrote'
            reading.findings.refuse(pair.at, message, hint)


def _check_passed_over(reading: Reading, pairs: Mapping[str, Pair], children: Pair, type_name: str) -> None:
    """Refuse children under an entry that has work or a judge of its own: it would complete without either."""
    for key in OWN_WORK_KEYS:
        if key in pairs:
            message = f"an entry with `{children.key}` does no work of its own, so `{key}` would never be used"
            reading.findings.refuse(pairs[key].at, message, f"take out `{key}` or `{children.key}`")
    if reading.ladder.judged(type_name):
        message = f"`{children.key}` here would pass over the check, review or approval of type {type_name}"
        reading.findings.refuse(children.at, message, f"let the {type_name} declare its own children")


def tidy(text: str) -> str:
    """Return a text without blank lines before it and without blanks after it."""
    return text.strip("\n").rstrip()
