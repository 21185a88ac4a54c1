"""The settings of a workspace: loopr.yml and the layers around it -> one frozen `Settings` with its `Policy`.

`schema.py` has every key as data; `reading.py` turns YAML into nodes that know their place; `layers.py` finds and
merges what files, variables and `--set` say; `check.py`, `ladder.py` and `agree.py` find every problem at once;
`build.py` makes the typed values of `parts.py`; `edit.py` and `splice.py` change a key in place; `explain.py` shows.
Knows files and variables. Must never know a rule of core, nor another module of world.
"""

from __future__ import annotations

from loopr.world.settings.edit import set_key
from loopr.world.settings.explain import explain, json_schema, show
from loopr.world.settings.parts import (
    Artifacts,
    Environment,
    Escalation,
    Git,
    Land,
    LaneSettings,
    Logs,
    ProjectSettings,
    Serve,
    Settings,
    Timeouts,
    TypeSettings,
    Worktrees,
)
from loopr.world.settings.settings import load

__all__ = [
    "Artifacts",
    "Environment",
    "Escalation",
    "Git",
    "Land",
    "LaneSettings",
    "Logs",
    "ProjectSettings",
    "Serve",
    "Settings",
    "Timeouts",
    "TypeSettings",
    "Worktrees",
    "explain",
    "json_schema",
    "load",
    "set_key",
    "show",
]
