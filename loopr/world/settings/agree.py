"""What several keys must agree on, once the layers are merged.

Knows the merged values and who said them. Must never know how a single key is checked, nor what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from loopr.world.settings import ladder
from loopr.world.settings.layers import Story
from loopr.world.settings.reading import Fault

Rule = Callable[[Mapping[str, Any], Story], Iterable[Fault]]


def agree(values: Mapping[str, Any], story: Story, wrong: frozenset[str]) -> list[Fault]:
    """Return what does not fit together; a rule that reads a top key which is wrong already keeps silent.

    An empty name among the wrong ones means that a whole layer could not be read: then no rule can tell anything.
    """
    found: list[Fault] = []
    if "" in wrong:
        return found
    for rule, reads in _RULES:
        if wrong.isdisjoint(reads):
            found += rule(values, story)
    return found


def where_of(story: Story, path: str) -> str:
    """Say where the value of a key was written, or that of the nearest map around it."""
    while path:
        if story.get(path):
            return story[path][-1].where
        path = path.rpartition(".")[0]
    return ""


def _folders(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """The folders of artifacts and worktrees lie beside each other."""
    specs, trees = (PurePosixPath(values[top]["dir"]) for top in ("artifacts", "worktrees"))
    for top, folder in (("artifacts", specs), ("worktrees", trees)):
        if not folder.parts:
            where = where_of(story, f"{top}.dir")
            yield Fault(f"{top}.dir", where, "must be a folder below the workspace, not the workspace")
    if specs.is_relative_to(trees) or trees.is_relative_to(specs):
        key = max(("artifacts.dir", "worktrees.dir"), key=lambda each: len(story.get(each, ())))
        message = f"artifacts.dir ({specs}) and worktrees.dir ({trees}) must not contain each other"
        yield Fault(key, where_of(story, key), message)


def _queue(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A plan is not deferred before anybody was warned."""
    soft, hard = values["queue"]["soft_limit"], values["queue"]["hard_limit"]
    if soft is not None and hard is not None and hard < soft:
        where = where_of(story, "queue.hard_limit")
        yield Fault("queue.hard_limit", where, f"must be at least queue.soft_limit ({soft}), not {hard}")


def _one_worker(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A type has a command or an agent, not both."""
    for name, each in values["types"].items():
        if each["run"] is not None and each["agent"] is not None:
            run, agent = f"types.{name}.run", f"types.{name}.agent"
            message = f"cannot stand beside {agent} ({where_of(story, agent)})"
            yield Fault(run, where_of(story, run), message, "keep one and write null for the other")


def _escalation(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """An escalation names who takes over."""
    for name, each in values["types"].items():
        for failure, step in each["escalate"].items():
            if step["agent"] is None:
                path = f"types.{name}.escalate.{failure}"
                yield Fault(path, where_of(story, path), "names no agent", f"add agent: NAME to {path}")


def _money(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A money budget over a command needs the price of its lane, because only agents report what they cost."""
    shared = ["budget", *(f"projects.{name}.budget" for name in values["projects"])]
    for name, each in values["types"].items():
        paths = [*shared, f"types.{name}.budget"]
        budget = next((f"{path}.usd" for path in paths if _at(values, path)["usd"] is not None), None)
        if budget is None or each["run"] is None:
            continue
        for lane in each["lane"] or ("default",):
            if (values["lanes"].get(lane) or {}).get("usd_per_mtok") is None:
                price = f"lanes.{lane}.usd_per_mtok"
                message = f"needs {price}, because types.{name}.run reports no cost"
                yield Fault(budget, where_of(story, budget), message, f"set {price}, or give the type an agent")


def _at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a dotted path."""
    value: Any = values
    for part in path.split("."):
        value = value[part]
    return value


_RULES: tuple[tuple[Rule, frozenset[str]], ...] = (
    (ladder.faults, frozenset({"types"})),
    (ladder.strangers, frozenset({"types", "scheduler", "concurrency", "retry"})),
    (_folders, frozenset({"artifacts", "worktrees"})),
    (_queue, frozenset({"queue"})),
    (_one_worker, frozenset({"types"})),
    (_escalation, frozenset({"types"})),
    (_money, frozenset({"types", "lanes", "budget", "projects"})),
)
