"""What several keys must agree on, once the layers are merged.

Knows the merged values and who said them. Must never know how a single key is checked, nor what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from loopr.core.policy import DEFAULT_LANE
from loopr.world.settings import ladder
from loopr.world.settings.check import nearest
from loopr.world.settings.layers import Story
from loopr.world.settings.presets import REPORT_COST, Shelf, unknown_agents
from loopr.world.settings.reading import Fault

Rule = Callable[[Mapping[str, Any], Story], Iterable[Fault]]


def agree(values: Mapping[str, Any], story: Story, shelf: Shelf, wrong: frozenset[str]) -> list[Fault]:
    """Return what does not fit together; a rule that reads a top key which is wrong already keeps silent.

    An empty name among the wrong ones means that a whole layer could not be read: then no rule can tell anything.
    """
    found: list[Fault] = []
    if "" in wrong:
        return found
    for rule, reads in _RULES:
        if wrong.isdisjoint(reads):
            found += rule(values, story)
    if "types" not in wrong:
        found += unknown_agents(values, story, shelf.names)
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


def _cache(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """What is kept of setups goes by something, and lies nowhere else."""
    kept = values["worktrees"]["cache"]
    if bool(kept["key"]) == bool(kept["paths"]):
        return
    path = f"worktrees.cache.{'paths' if kept['paths'] else 'key'}"
    lacks = "key, the files that the setup goes by" if kept["paths"] else "paths, what the setup makes"
    yield Fault(path, where_of(story, path), f"has no meaning without worktrees.cache.{lacks}")


def _queue(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A plan is not deferred before anybody was warned."""
    soft, hard = values["queue"]["soft_limit"], values["queue"]["hard_limit"]
    if soft is not None and hard is not None and hard < soft:
        where = where_of(story, "queue.hard_limit")
        yield Fault("queue.hard_limit", where, f"must be at least queue.soft_limit ({soft}), not {hard}")


def _one_worker(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A type has a command or an agent, not both, and so has its review."""
    found = {f"types.{name}": each for name, each in values["types"].items()}
    for path, each in (found | {f"{path}.review": each["review"] for path, each in found.items()}).items():
        if each["run"] is not None and each["agent"] is not None:
            run, agent = f"{path}.run", f"{path}.agent"
            message = f"cannot stand beside {agent} ({where_of(story, agent)})"
            yield Fault(run, where_of(story, run), message, "keep one and write null for the other")


def _escalation(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """An escalation names who takes over."""
    for name, each in values["types"].items():
        for failure, step in each["escalate"].items():
            if step["agent"] is None:
                path = f"types.{name}.escalate.{failure}"
                yield Fault(path, where_of(story, path), "names no agent", f"add agent: NAME to {path}")


def _fallback(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """Whoever stands in does so for somebody else."""
    for name, each in values["types"].items():
        path = f"types.{name}.fallback"
        if each["fallback"] and each["run"] is None and each["agent"] is None:
            message = "stands in for nobody: without run and agent a person does the work"
            yield Fault(path, where_of(story, path), message, f"add agent: NAME to types.{name}")
        elif each["agent"] in (each["fallback"] or ()):
            yield Fault(path, where_of(story, path), f"names {each['agent']}, whose work it is", "name another agent")


def _resources(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """What a type wants of the machine's resources is offered."""
    offers = {name: offered for name, offered in values["resources"].items() if offered is not None}
    for name, each in values["types"].items():
        for resource, amount in each["resources"].items():
            offered = offers.get(resource)
            if amount is None or (offered is not None and amount <= offered):
                continue
            path = f"types.{name}.resources.{resource}"
            offer = f"add resources: {{{resource}: {amount}}}"
            if offered is None:
                near = nearest(resource, offers)
                hint = f"did you mean {near}? Else {offer}" if near else offer
                yield Fault(path, where_of(story, path), "is not offered: resources does not name it", hint)
            else:
                message = f"wants {amount}, and resources offers {offered} ({where_of(story, f'resources.{resource}')})"
                yield Fault(path, where_of(story, path), message, "want fewer, or offer more")


def _money(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A money budget needs the price of the lane of whatever does not report what it costs: commands, some agents."""
    shared = ["budget", *(f"projects.{name}.budget" for name in values["projects"])]
    for name in values["types"]:
        paths = [*shared, f"types.{name}.budget"]
        budget = next((f"{path}.usd" for path in paths if _at(values, path)["usd"] is not None), "")
        for worker, lane in _without_cost(values, name) if budget else ():
            if (values["lanes"].get(lane) or {}).get("usd_per_mtok") is None:
                price = f"lanes.{lane}.usd_per_mtok"
                message = f"needs {price}, because {worker} reports no cost"
                other = "name an agent that reports it" if worker.startswith("agent ") else "give the type an agent"
                yield Fault(budget, where_of(story, budget), message, f"set {price}, or {other}")


def _without_cost(values: Mapping[str, Any], name: str) -> Iterable[tuple[str, str]]:
    """Name what works for a type, or reviews its work, and does not say what it costs, with each of its lanes."""
    each = values["types"][name]
    if each["run"] is not None:
        yield from ((f"types.{name}.run", lane) for lane in each["lane"] or (DEFAULT_LANE,))
    others = ((agent, None) for agent in each["fallback"] or ())
    for agent, lanes in ((each["agent"], each["lane"]), (each["review"]["agent"], each["judge_lane"]), *others):
        preset = values["agents"].get(agent)
        if preset is not None and preset["reader"] not in REPORT_COST:
            yield from ((f"agent {agent}", lane) for lane in lanes or preset.get("lane") or (agent,))


def _gitless(values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A project without a repository has no say in what happens in one."""
    for name, each in values["projects"].items():
        for top, key in (("git", "base"), ("worktrees", "setup"), ("land", "check")):
            if each["repo"] is None and each[top][key] is not None:
                path = f"projects.{name}.{top}.{key}"
                hint = f"take it out, or give the project a repository: projects.{name}.repo"
                yield Fault(path, where_of(story, path), "has no meaning where the project works without git", hint)


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
    (_cache, frozenset({"worktrees"})),
    (_gitless, frozenset({"projects"})),
    (_one_worker, frozenset({"types"})),
    (_escalation, frozenset({"types"})),
    (_fallback, frozenset({"types"})),
    (_resources, frozenset({"types", "resources"})),
    (_money, frozenset({"types", "lanes", "budget", "projects", "agents"})),
)
