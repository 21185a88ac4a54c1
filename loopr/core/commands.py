"""Words that read like a command for a shell, told from words for a person by how they begin.

A guess that hints go by, and nothing else. Must never know which programs a machine has.
"""

from __future__ import annotations

import re

_VARIABLES = re.compile(r"(?:[A-Za-z_]\w*=\S*\s+)+")
_BEGINS = re.compile(r"[a-z.~/$({!\[]")
_PATH = re.compile(
    r"(?:\.{1,2}|~)?/[\w.@-]|(?:\.?venv/|node_modules/\.)?(?:bin|scripts?|tools?)/[\w.-]|\S+\.sh\b",
)
_SIGNS = re.compile(r"\s--?[A-Za-z][\w-]*(?:[=\s]|$)|&&|\|\||\s[|<>]{1,2}\s|\$[({A-Za-z_]")
_PROGRAM = re.compile(
    r"bash|black|bundle|bun|cargo|chmod|cmake|composer|cp|curl|deno|docker|dotnet|eslint|gcc|gh|git"
    r"|golangci-lint|gradle|grep|java|jest|jq|ls|mkdir|mvn?|mypy|node|nox|npm|npx|php|pip[\d.]*"
    r"|pipx|pnpm|poetry|printf|pyright|pytest|python[\d.]*|rm|rsync|ruby|ruff|rustc|sed|sh|tar"
    r"|terraform|tox|tsc|uvx?|vitest|wget|xargs|yarn|zip"
)
_ALSO_VERB = re.compile(
    r"awk|cat|cd|cut|date|diff|echo|env|exit|false|find|go|head|just|make|rake|sort|swift|tail|task"
    r"|test|time|touch|true|watch"
)
_PROSE = re.compile(
    r"(?:a|about|after|all|an|and|any|as|at|before|by|each|every|for|from|how|if|in|into|its?|more"
    r"|my|no|of|on|or|our|out|over|some|sure|that|the|their|these|this|those|through|to|up|what|when"
    r"|where|whether|with)\b",
    re.I,
)


def may_be_command(text: str) -> bool:
    """Tell whether a text begins as a command may: with a small letter, a path, a variable."""
    return _BEGINS.match(_bare(text)) is not None


def reads_as_command(text: str) -> bool:
    """Tell whether a text is more likely a command than words for a person."""
    bare = _bare(text)
    if not _BEGINS.match(bare):
        return False
    first, _, rest = bare.partition(" ")
    if _PROGRAM.fullmatch(first) or _PATH.match(first) or _SIGNS.search(bare):
        return True
    return _ALSO_VERB.fullmatch(first) is not None and not _PROSE.match(rest.lstrip())


def _bare(text: str) -> str:
    """Return a text without the variables that are set at its beginning."""
    return _VARIABLES.sub("", f"{text.strip()} ", count=1).strip()
