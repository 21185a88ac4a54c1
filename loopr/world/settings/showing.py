"""The settings shown: merged, one key explained, and as a JSON schema for editors.

Knows the schema and what the layers said. Must never change anything.
"""

from __future__ import annotations

from typing import Any

from loopr.world.settings.keys import Key, allowed
from loopr.world.settings.parts import LEFT_OPEN, Settings
from loopr.world.settings.preset_keys import PRESET
from loopr.world.settings.reading import plain
from loopr.world.settings.schema import SCHEMA, find
from loopr.world.settings.writing import block, flow

_JSON_TYPES = {
    "whole": "integer",
    "number": "number",
    "flag": "boolean",
    "text": "string",
    "template": "string",
    "map": "object",
}
_SCALAR = {"type": ["string", "number", "boolean"]}


def show(settings: Settings) -> str:
    """Write the merged settings as YAML, but for what a type leaves to the last one: written out, it would be said."""
    types = {
        name: {key: value for key, value in each.items() if key not in LEFT_OPEN or key in settings.types[name].said}
        for name, each in settings.values["types"].items()
    }
    return block({**settings.values, "types": types})


def explain(settings: Settings, key: str) -> list[tuple[str, str]]:
    """Tell everything about one key as rows of a word and what it says."""
    value = settings.value(key)
    known = find(key)
    assert known is not None  # every merged value has a key
    rows = [("key", key), ("value", flow(value)), ("from", settings.origin(key)), ("meaning", known.meaning)]
    if known.kind != "map":
        rows.append(("default", flow(settings.default(key))))
    rows.append(("allowed", allowed(known) + (" or null" if known.null else "")))
    if known.keys:
        rows.append(("keys", ", ".join(known.keys)))
    return rows + [("shadowed", f"{node.where}: {flow(plain(node))}") for node in settings.shadowed(key)]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of loopr.yml."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "loopr.yml", **_json(SCHEMA)}


def preset_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of an agent preset, as a file in agents/ has it."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "agents/NAME.yml", **_json(PRESET)}


def _json(key: Key) -> dict[str, Any]:
    """Describe one key."""
    described: dict[str, Any] = {"description": key.meaning, **_JSON_KINDS.get(key.kind, _json_scalar)(key)}
    if key.kind != "map" and (key.default is not None or key.null):
        described["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    return described


def _json_scalar(key: Key) -> dict[str, Any]:
    """Describe a number, a flag or a text."""
    kind = _JSON_TYPES[key.kind]
    described: dict[str, Any] = {"type": [kind, "null"] if key.null else kind}
    bounds = {"minimum": key.least, "exclusiveMinimum": key.above, "maximum": key.most}
    described |= {word: bound for word, bound in bounds.items() if bound is not None}
    if key.choices:
        described["enum"] = list(key.choices)
    elif key.pattern:
        described["pattern"] = f"^(?:{key.pattern})$"
    return described


def _json_map(key: Key) -> dict[str, Any]:
    """Describe a map; one with nothing in it reads as null in YAML."""
    described: dict[str, Any] = {"type": ["object", "null"]}
    if key.short:
        return {"anyOf": [_json_map(key._replace(short="")), _json(key.keys[key.short])]}
    if key.keys:
        described["properties"] = {name: _json(child) for name, child in key.keys.items()}
    described["additionalProperties"] = _json(key.rest) if key.rest else False
    if key.names:
        fixed = "".join(f"{name}|" for name in key.keys)
        described["propertyNames"] = {"pattern": f"^(?:{fixed}{key.names.pattern})$"}
    return described


def _json_texts(key: Key) -> dict[str, Any]:
    """Describe a list of texts."""
    kinds = ["array", "null"] if key.null else "array"
    return {"type": kinds, "items": {"type": "string", "pattern": f"^(?:{key.pattern})$"}}


def _json_names(key: Key) -> dict[str, Any]:
    """Describe a name or a list of names."""
    name = {"type": "string", "pattern": f"^(?:{key.pattern})$"}
    return {"anyOf": [name, {"type": "array", "items": name, "minItems": 1}, {"type": "null"}]}


def _json_command(_key: Key) -> dict[str, Any]:
    """Describe a command."""
    vector = {"type": "array", "items": _SCALAR, "minItems": 1}
    return {"anyOf": [{"type": "string", "pattern": r"\S"}, vector, {"type": "null"}]}


def _json_wrap(_key: Key) -> dict[str, Any]:
    """Describe an argument vector with a place for the command."""
    return {"type": ["array", "null"], "items": _SCALAR, "contains": {"const": "{command}"}, "maxContains": 1}


def _json_trailers(_key: Key) -> dict[str, Any]:
    """Describe trailers, as a map or as a list of lines."""
    lines = {"type": "array", "items": {"type": ["string", "object"]}}
    return {"anyOf": [{"type": "object", "additionalProperties": _SCALAR}, lines]}


def _json_loose(_key: Key) -> dict[str, Any]:
    """Describe a scalar that is taken as it is written."""
    return {"type": ["string", "number", "boolean", "null"]}


_JSON_KINDS = {
    "map": _json_map,
    "texts": _json_texts,
    "names": _json_names,
    "command": _json_command,
    "wrap": _json_wrap,
    "trailers": _json_trailers,
    "loose": _json_loose,
}
