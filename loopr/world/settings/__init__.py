"""The settings of a workspace: loopr.yml and the layers around it -> one frozen `Settings` with its `Policy`.

`sources.py` names where settings may come from; `schema.py` has every key as data; `reading.py` turns YAML into nodes
that know their place; `layers.py` merges what files, variables and `--set` say; `check.py`, `ladder.py` and `agree.py`
find every problem at once; `build.py` makes the typed values of `parts.py`; `edit.py` and `splice.py` change a key in
place; `showing.py` shows. Knows files and variables. Must never know a rule of core, nor another module of world.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopr.world.settings.edit import set_key
    from loopr.world.settings.parts import Settings
    from loopr.world.settings.settings import load
    from loopr.world.settings.showing import explain, json_schema, show

__all__ = ["Settings", "explain", "json_schema", "load", "set_key", "show"]

_HOMES = {
    "Settings": "parts",
    "explain": "showing",
    "json_schema": "showing",
    "load": "settings",
    "set_key": "edit",
    "show": "showing",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for: whoever only needs `sources.py` must not wait for the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
