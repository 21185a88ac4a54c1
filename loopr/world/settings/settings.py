"""The door of this package: layers are read, checked, merged and built.

Knows how the other modules of this package fit together. Must never know who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loopr.errors import SettingsError
from loopr.world.settings import ladder
from loopr.world.settings.agree import agree
from loopr.world.settings.build import build
from loopr.world.settings.check import check, problems
from loopr.world.settings.layers import Story, file_layers, merge, with_given
from loopr.world.settings.live import blend
from loopr.world.settings.parts import Settings
from loopr.world.settings.presets import Found, Shelf, mentions, preset_of
from loopr.world.settings.reading import Fault, Node, Read
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.sources import MAX_BYTES, NOTHING, PROMPTS, Texts, labels, read_texts


def load(
    workspace: Path | None, *, environ: Mapping[str, str], home: Path | None, overrides: Sequence[str] = ()
) -> Settings:
    """Load the settings of a workspace from all layers as they are now, or raise with every problem at once."""
    return load_texts(read_texts(workspace, environ, home), environ=environ, home=home, overrides=overrides)


def load_texts(
    texts: Texts,
    later: Texts | None = None,
    *,
    environ: Mapping[str, str],
    home: Path | None = None,
    overrides: Sequence[str] = (),
) -> Settings:
    """Load the settings that texts say; of `later` texts only what may change while loops are at work."""
    called = labels(environ, home)
    layers = file_layers(texts, called)
    if later is not None:
        layers = blend(layers, file_layers(later, called))
    return settle(with_given(layers, environ, overrides), texts)


def settle(layers: Iterable[Read], texts: Texts = NOTHING) -> Settings:
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
    shelf = Shelf(texts, roots)
    faults += _prompt_faults(texts)
    found = _presets(values, story, shelf)
    values["agents"] = {name: each.values for name, each in found.items()}
    faults += [fault for each in found.values() for fault in each.faults]
    faults += agree(values, story, shelf, frozenset(fault.key.partition(".")[0] for fault in faults))
    if faults:
        raise refusal([_of_a_type(each, values["types"]) for each in faults])
    ladder.fill_priorities(values)
    return build(values, story, shelf, {name: preset_of(name, each) for name, each in found.items()})


def _of_a_type(fault: Fault, types: Mapping[str, Any]) -> Fault:
    """Name a type of the ladder where a hint leaves open which: the last one, if it is known."""
    last = next((name for name, each in types.items() if each.get("child") is None), "")
    return fault._replace(hint=fault.hint.replace("TYPE", last)) if last else fault


def _prompt_faults(texts: Texts) -> Iterator[Fault]:
    """Give the prompts that cannot be read, or not as a whole."""
    for name, words in texts.unreadable.items():
        if name.startswith(f"{PROMPTS}/"):
            yield Fault("", name, f"cannot be read: {words}")
    for name, raw in texts.below(PROMPTS).items():
        if len(raw) > MAX_BYTES:
            yield Fault("", f"{PROMPTS}/{name}", f"is larger than {MAX_BYTES // 1024} KiB")


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
