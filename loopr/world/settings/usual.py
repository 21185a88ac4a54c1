"""Words that other programs use for what is set here, and what is no setting at all but belongs into a plan.

The one table of them for `types`, and for the top of the file. Must never know a file or a layer.
"""

from __future__ import annotations

from collections.abc import Mapping

_IN_A_PLAN = "that stands in an entry of a plan, such as plan.md"

OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "did you mean types.{type}.run?": (
        "command", "commands", "cmd", "script", "scripts", "shell", "exec", "execute", "action"),
    "did you mean types.{type}.check?": (
        "test", "tests", "verify", "validate", "validation", "judge", "gate", "until", "success", "done_when"),
    "did you mean types.{type}.max_iterations?": (
        "retries", "retry", "max_retries", "attempts", "max_attempts", "tries", "iterations", "max_loops"),
    "did you mean types.{type}.timeouts.wall_secs?": (
        "timeout", "timeout_secs", "timeout_minutes", "timeout_seconds", "deadline", "max_time", "wall_secs"),
    "did you mean types.{type}.child?": ("children", "steps", "tasks", "jobs", "stages", "next", "subtype"),
    "did you mean types.{type}.agent?": ("assistant", "provider", "client", "engine", "tool"),
    "an agent preset names the model: `loopr agent list` shows which there are": ("model", "llm"),
    "did you mean types.{type}.env?": ("environment", "variables", "vars"),
    "what it is asked stands in prompts/{type}.md, and in the entries of a plan": (
        "prompt", "description", "instructions", "body", "title"),
    f"{_IN_A_PLAN}": ("needs", "depends_on", "depends", "after", "requires", "files", "id"),
    "the name of the type is its key: take it out": ("type", "kind", "name"),
}  # fmt: skip

OF_ALL: Mapping[str, tuple[str, ...]] = {
    "work stands in a plan, such as plan.md; this file says who does it": (
        "jobs", "tasks", "steps", "stages", "specs", "phases", "plans", "plan", "workflow", "id", "title"),
    "did you mean retry.max_attempts? how often a loop may be refused is types.TYPE.max_iterations": (
        "retries", "max_retries", "attempts", "max_attempts"),
    "did you mean types.TYPE.max_iterations?": ("max_iterations", "iterations"),
    "did you mean timeouts.wall_secs?": ("timeout", "timeout_secs", "timeout_minutes"),
    "that is said of a type: types.TYPE.run": ("run", "command", "cmd", "script"),
    "that is said of a type: types.TYPE.check": ("check", "test", "verify"),
    "that is said of a type: types.TYPE.agent": ("agent", "assistant", "provider"),
    "did you mean concurrency.max_loops?": ("parallel", "parallelism", "workers", "max_workers", "threads"),
}  # fmt: skip

_TYPES = {word: hint for hint, words in OF_TYPES.items() for word in words}
_ALL = {word: hint for hint, words in OF_ALL.items() for word in words}


def usual(path: str) -> str:
    """Say what leads from an unknown key to ours, where its word is a usual one elsewhere; "" where it is none."""
    first, *rest = path.split(".")
    if first == "types" and len(rest) == 2:
        return _TYPES.get(_plain(rest[1]), "").replace("{type}", rest[0])
    return "" if rest else _ALL.get(_plain(first), "")


def _plain(word: str) -> str:
    """Return a word as it is looked up."""
    return word.casefold().replace("-", "_")
