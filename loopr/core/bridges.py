"""Words of other programs in an outline, and what leads from each to ours.

The one table of them: what the hints of `fields.py` say beside the nearest key. Must never know a value, nor read one:
a word of another program is refused, for what stands under it may mean something else there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopr.core.ladder import CHILDREN, Ladder
from loopr.core.slugs import nearest

OURS: Mapping[str, tuple[str, ...]] = {
    "run": ("command", "commands", "cmd", "script", "scripts", "shell", "exec", "execute", "action", "actions", "bash"),
    "check": ("test", "tests", "verify", "validate", "validation", "assert", "judge", "done_when", "success", "gate",
              "acceptance", "acceptance_criteria", "until", "expect"),
    "needs": ("depends_on", "depends", "dependencies", "dependency", "deps", "after", "requires", "require",
              "prerequisites", "blocked_by", "wait_for", "task_dep"),
    "title": ("name", "label", "summary", "heading"),
    "id": ("key", "slug", "identifier", "uid"),
    "body": ("prompt", "description", "desc", "instructions", "instruction", "details", "text", "content",
             "goal", "notes", "message"),
    "files": ("paths", "path", "touches"),
    "agent": ("assistant", "engine", "provider", "client", "tool", "runner", "assignee"),
    "parallel": ("sequential", "serial", "order", "concurrent", "parallelizable"),
    "priority": ("weight", "importance", "urgency", "rank"),
    "budget": ("cost", "max_cost", "limit", "limits", "max_tokens", "tokens", "usd"),
    "project": ("repo", "repository", "workspace"),
    CHILDREN: ("steps", "step", "jobs", "stages", "stage", "items", "todo", "todos", "subtasks", "sub_tasks", "stories",
               "epics", "milestones", "features", "nodes", "work", "units", "loops",
               "specs", "spec", "phases", "phase", "tasks", "task"),
}  # fmt: skip
"""Our keys, each with what it is called elsewhere."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "the level says the type: this is a {type}; take it out": ("type", "kind", "level"),
    "timeouts are those of a type: `types.{type}.timeouts.wall_secs` in loopr.yml": (
        "timeout", "timeouts", "timeout_minutes", "timeout_secs", "timeout_seconds", "deadline", "max_time"),
    "how often it may be refused is said of a type: `types.{type}.max_iterations` in loopr.yml": (
        "retries", "retry", "max_retries", "attempts", "max_attempts", "tries", "iterations", "max_iterations",
        "max_loops"),
    "an agent preset names the model: `agent: NAME`, and `loopr agent list` shows which there are": ("model", "llm"),
    "variables are those of a type: `types.{type}.env.set` in loopr.yml": ("env", "environment", "variables", "vars"),
    "a loop works in a worktree of its own: `cd` in its command": (
        "cwd", "workdir", "working_directory", "dir", "directory", "worktree"),
    "loopr keeps the state itself: take it out, and leave out what is done already": (
        "status", "state", "done", "completed", "complete", "passes", "closed"),
    "that is said of a type: `types.{type}.{word}` in loopr.yml": (
        "review", "approve", "lane", "judge_lane", "wrap", "escalate", "fallback", "protect", "protect_added", "clean",
        "trust_outline", "may"),
    "a plan lands on the branch `loopr/PLAN`, and begins at `git.base` of loopr.yml": ("branch", "base", "base_branch"),
    "what must be there afterwards is what the check looks at: `check: test -s FILE`": (
        "outputs", "output", "targets", "target", "produces", "creates", "artifacts"),
    "settings stand in loopr.yml": ("version", "types", "projects", "concurrency", "settings", "config", "hooks"),
    "nothing reads it: say it in `{body}` if whoever does the work should know": (
        "tags", "labels", "owner", "author", "date", "created", "updated", "estimate", "points", "issue", "url", "link",
        "layout", "draft", "comment", "note"),
}  # fmt: skip
"""What leads on where no key of ours is meant, each with the words that it answers."""

_OURS = {word: ours for ours, words in OURS.items() for word in words}
_ELSEWHERE = {word: hint for hint, words in ELSEWHERE.items() for word in words}


def bridge(ladder: Ladder, type_name: str, key: str, known: Sequence[str]) -> str:
    """Say what leads from a word of another program to ours, or "" where nothing is known of it.

    `known` are the keys that count where the word stands.
    """
    if key[:1].isspace():
        return f"it is indented with U+{ord(key[0]):04X}, which only looks like a blank: write plain blanks"
    word = _plain(key)
    if word in known:
        return f'write "{word}"'
    ours = _OURS.get(word, "")
    if ours == CHILDREN:
        return _children(ladder, type_name)
    if ours in known:
        return f"it is called `{ours}` here" + (": `parallel: false`" if ours == "parallel" else "")
    if ours or word in OURS:
        return _misplaced(ladder, type_name, ours or word)
    body = "body" if "body" in known else "the text below the front matter"
    return _ELSEWHERE.get(word, "").format(type=type_name, word=word, body=body)


def meant(key: str) -> str:
    """Return the key of ours that a word of another program means, or "" for any other word."""
    return _OURS.get(_plain(key), "")


def misspells_name(key: str) -> bool:
    """Tell whether a word is most likely `id` or `title` with a slip of the pen."""
    return nearest(key, ("id", "title")) is not None


def _plain(key: str) -> str:
    """Return a word as it is looked up: small, and with one sign between its parts."""
    return key.strip().casefold().replace("-", "_").replace(" ", "_")


def _children(ladder: Ladder, type_name: str) -> str:
    """Say where the children of a loop stand, or that it has none."""
    keys = ladder.keys(type_name)
    if keys:
        return f"the children of type {type_name} stand under `{keys[0]}`"
    return f"the type {type_name} has no children: write them into its `body`, or as entries beside it"


def _misplaced(ladder: Ladder, type_name: str, ours: str) -> str:
    """Say where a key of ours belongs that does not count where it was written."""
    if ours == "body":
        return "what is to be done stands as text below the front matter"
    if ours == "project":
        return "a plan says it for all below it, at the top of its file"
    keys = ladder.keys(type_name)
    if not keys:
        return f"`{ours}` stands in an entry, in the outline of whoever declares it"
    own = f", or for the {type_name} itself `types.{type_name}.{ours}` in loopr.yml" if ours in _OF_TYPES else ""
    return f"`{ours}` stands in an entry under `{keys[0]}`{own}"


_OF_TYPES = frozenset({"run", "check", "agent"})
