"""The door of this package: layers are read, checked, merged and built.

Knows how the other modules of this package fit together. Must never know who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loopr.errors import SettingsError
from loopr.world.settings import ladder
from loopr.world.settings.agree import agree
from loopr.world.settings.build import build
from loopr.world.settings.check import check, problems
from loopr.world.settings.layers import Story, gather, merge
from loopr.world.settings.parts import Settings
from loopr.world.settings.presets import Found, Shelf, mentions, preset_of
from loopr.world.settings.reading import Fault, Node, Read
from loopr.world.settings.schema import SCHEMA


def load(
    workspace: Path | None, *, environ: Mapping[str, str], home: Path | None, overrides: Sequence[str] = ()
) -> Settings:
    """Load the settings of a workspace from all layers, or raise with every problem at once."""
    return settle(gather(workspace, environ, home, overrides), workspace)


def settle(layers: Iterable[Read], workspace: Path | None = None) -> Settings:
    """Turn what the layers say into settings, or raise with every problem at once."""
    faults: list[Fault] = []
    roots: list[Node] = []
    for root, unreadable in layers:
        faults += unreadable
        if root is not None:
            kept, wrong = check(root)
            faults += wrong
            roots.append(kept)
    story: Story = {}
    values = merge(SCHEMA, roots, ladder.unsaid(roots), "", story)
    values["types"] = ladder.of(values["types"], roots)
    shelf = Shelf(workspace, roots)
    found = _presets(values, story, shelf)
    values["agents"] = {name: each.values for name, each in found.items()}
    faults += [fault for each in found.values() for fault in each.faults]
    faults += agree(values, story, shelf, frozenset(fault.key.partition(".")[0] for fault in faults))
    if faults:
        raise refusal(faults)
    ladder.fill_priorities(values)
    return build(values, story, shelf, {name: preset_of(name, each) for name, each in found.items()})


def _presets(values: Mapping[str, Any], story: Story, shelf: Shelf) -> dict[str, Found]:
    """Read the presets that are named, and those of the workspace that nobody names if nothing is wrong with them."""
    named = {*values["agents"], *(name for _, name in mentions(values))}
    found = {name: shelf.find(name, story) for name in sorted(named) if name in shelf.names}
    others = {name: shelf.find(name) for name in shelf.own if name not in named}
    return found | {name: each for name, each in others.items() if not each.faults}


def refusal(faults: Sequence[Fault]) -> SettingsError:
    """Word everything that is wrong as one error."""
    found = problems(faults)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return SettingsError(f"{found[0]}{more}", problems=found)
