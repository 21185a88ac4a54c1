"""A task list as spec-kit writes it, as items: `- [ ] T001 [P] [US1] Words about src/x.py`, in phases.

Knows lines. Must never know a file, nor the ladder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import NamedTuple

from loopr.core.fields import tidy
from loopr.core.headings import heading_of, read_lines
from loopr.core.imported import Item
from loopr.core.marked import Findings
from loopr.core.slugs import one_line, pattern_problem, slug

TASK = re.compile(r"[-*] \[(?P<done>[ xX])\] +(?:\*\*)?(?P<id>T-?\d{1,5}[a-z]?)(?:\*\*)?[:.]?(?P<rest> .*)$")
_LABEL = re.compile(r"\s*(?:\*\*)?\[(?P<label>[A-Za-z]{1,5}\d{0,4})\](?:\*\*)?")
_PHASE = re.compile(r"(?P<name>phase[ -]\w+)\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/:.-])`?((?:[\w.@-]+/)+[\w.@-]*[\w-]\.[A-Za-z0-9]{1,8})`?(?![\w/])")
_TITLE = re.compile(r"tasks?\s*:\s*", re.IGNORECASE)
_STORY = re.compile(r"US\d+", re.IGNORECASE)


class TaskList(NamedTuple):
    """A task list: what it is about, and its phases and tasks as items."""

    title: str
    items: tuple[Item, ...]


@dataclass(slots=True)
class _Task:
    """One line of the list with what is indented below it."""

    id: str
    title: str
    labels: tuple[str, ...]
    done: bool
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Phase:
    """A section with tasks."""

    title: str
    tasks: list[_Task] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def stories(self) -> set[str]:
        """The user stories that all of its tasks are about; none where one is about none."""
        found = [{each.upper() for each in task.labels if _STORY.fullmatch(each)} for task in self.tasks]
        return set().union(*found) if all(found) else set()


def is_task_list(text: str) -> bool:
    """Tell a task list of spec-kit from any other text: it has tasks with numbers, and no front matter."""
    return not text.startswith("---") and any(TASK.match(line) for line in text.split("\n")) if text else False


def read_task_list(text: str, kept: Collection[str] = ()) -> TaskList:
    """Read a task list; what is ticked off is closed, but for the ids that are kept.

    A task that may run beside others waits for the last one before it that may not, which waits for all since; phases
    follow each other, but those of user stories, which wait for what comes before all of them.
    """
    title, phases = _read(text)
    items: list[Item] = []
    names: list[str] = []
    for phase in phases:
        numbered = _PHASE.match(phase.title)
        name = slug(numbered["name"] if numbered else phase.title)
        while name in names:
            name = slug(f"{phase.title} {len(names) + 1}")
        names.append(name)
    before = _order(phases, names, kept)
    for phase, name in zip(phases, names, strict=True):
        items.append(Item(name, phase.title, tidy("\n".join(phase.words)), before[name], group=True))
        items += _tasks(phase, name, kept)
    return TaskList(title, tuple(items))


def _read(text: str) -> tuple[str, list[_Phase]]:
    """Split a text into its title and the sections that have tasks."""
    title, phase = "", _Phase("Tasks")
    phases: list[_Phase] = []
    for line in read_lines(Findings(""), text.replace("\r\n", "\n"), 1):
        heading = heading_of(line)
        if heading and heading.level <= 2:
            if heading.level == 1 and not title:
                title = one_line(_TITLE.sub("", heading.text, count=1))
            phase = _Phase(one_line(heading.text))
            continue
        found = None if line.code else TASK.match(line.text)
        if found:
            phases += [] if phase in phases else [phase]
            phase.tasks.append(_task(found["id"], found["rest"], done=found["done"] != " "))
        elif phase.tasks and (line.width or line.blank) and not heading:
            phase.tasks[-1].lines.append(line.text)
        elif not phase.tasks and not heading and _PHASE.match(phase.title):
            phase.words.append(line.text)
    return title, phases


def _task(own_id: str, rest: str, *, done: bool) -> _Task:
    """Read one task: its labels, then its words."""
    labels: list[str] = []
    while found := _LABEL.match(rest):
        labels.append(found["label"])
        rest = rest[found.end() :]
    return _Task(own_id, one_line(rest).lstrip("-–—:. "), tuple(labels), done)


def _order(phases: Sequence[_Phase], names: Sequence[str], kept: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Say which phases each of them waits for; one that is all ticked off is waited for no more."""
    found: dict[str, tuple[str, ...]] = {}
    base: tuple[str, ...] = ()
    stories: list[str] = []
    for phase, name in zip(phases, names, strict=True):
        is_open = any(not task.done or task.id in kept for task in phase.tasks)
        if phase.stories:
            found[name] = base
            stories += [name] if is_open else []
            continue
        found[name] = tuple(stories) or base
        if is_open:
            base, stories = (name,), []
    return found


def _tasks(phase: _Phase, name: str, kept: Collection[str]) -> Iterator[Item]:
    """Give the tasks of a phase with what each waits for; what is done is waited for no more."""
    last: tuple[str, ...] = ()
    beside: list[str] = []
    for task in phase.tasks:
        closed = task.done and task.id not in kept
        own = "P" in task.labels
        needs = last if own or not beside else tuple(beside)
        if not closed:
            if own:
                beside.append(task.id)
            else:
                last, beside = (task.id,), []
        yield Item(
            task.id,
            task.title or task.id,
            tidy(dedent("\n".join(task.lines))),
            needs,
            name,
            _files(task.title),
            closed=closed,
        )


def _files(words: str) -> tuple[str, ...]:
    """Find the paths that a task names."""
    found = dict.fromkeys(each[1] for each in _PATH.finditer(words))
    return tuple(each for each in found if pattern_problem(each) is None)
