"""The settings shown: merged, explained, and as a JSON schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from loopr.errors import UserError
from loopr.world.settings import explain, json_schema, load, show
from loopr.world.settings.schema import SCHEMA

ROOT = Path(__file__).resolve().parents[2]

EVERYTHING = """
types:
  code: {run: [work, 5], wrap: [sh, "{command}"], lane: [a, b], env: {set: {X: 1}},
         escalate: {refused: {after: 2, agent: codex}}, fallback: [codex, gemini], budget: {tokens: 1}}
  spec:
lanes: {a: {usd_per_mtok: 1.5, slow_above: 0.5}}
projects: {api: {weight: 0.5}}
executor: {kind: local}
notify: [a://b]
"""


def test_what_is_shown_loads_as_the_same_settings(tmp_path: Path) -> None:
    """The merged settings as YAML are a settings file that says the same."""
    (tmp_path / "loopr.yml").write_text(EVERYTHING)
    settings = load(tmp_path, environ={}, home=None)
    (tmp_path / "loopr.yml").write_text(show(settings))
    again = load(tmp_path, environ={}, home=None)
    assert again.values == settings.values
    assert again.policy == settings.policy


def test_a_key_is_explained_with_value_origin_and_what_it_hides(tmp_path: Path) -> None:
    """`explain` tells the value, where it came from, what it means, its default, its range and earlier layers."""
    (tmp_path / "loopr.yml").write_text("concurrency:\n  per_type: {code: 9}\n")
    settings = load(tmp_path, environ={"LOOPR_CONCURRENCY__PER_TYPE__CODE": "8"}, home=None)
    assert explain(settings, "concurrency.per_type.code") == [
        ("key", "concurrency.per_type.code"),
        ("value", "8"),
        ("from", "LOOPR_CONCURRENCY__PER_TYPE__CODE"),
        ("meaning", "How many loops of this type may be occupied; null is no limit."),
        ("default", "50"),
        ("allowed", "a whole number of at least 1 or null"),
        ("shadowed", "loopr.yml:2:14: 9"),
    ]
    assert ("from", "built in") in explain(settings, "types.plan.child")
    assert ("default", "spec") in explain(settings, "types.plan.child")
    assert ("from", "LOOPR_CONCURRENCY__PER_TYPE__CODE") in explain(settings, "concurrency")


@pytest.mark.parametrize("key", ["concurrency.max_lops", "lanes.nobody.env", "", "version.x"])
def test_a_key_that_is_not_there_is_named_with_the_nearest(key: str) -> None:
    """`explain` of a misspelt key is an error of usage, not a crash."""
    settings = load(None, environ={}, home=None)
    with pytest.raises(UserError, match="is not a known key") as caught:
        explain(settings, key)
    assert caught.value.exit_code == 2
    if key == "concurrency.max_lops":
        assert caught.value.hint == "did you mean concurrency.max_loops?"


def test_every_key_can_be_explained() -> None:
    """Each key of the merged defaults has a meaning, an origin and a range."""

    def paths(values: dict[str, Any], path: str) -> list[str]:
        inner = [(f"{path}.{name}" if path else name, each) for name, each in values.items()]
        return [
            each for name, value in inner for each in [name, *(paths(value, name) if isinstance(value, dict) else [])]
        ]

    settings = load(None, environ={}, home=None)
    for path in paths(dict(settings.values), ""):
        rows = dict(explain(settings, path))
        assert rows["meaning"].endswith(".")
        assert rows["from"] == "built in"
        assert rows["allowed"]


def values(text: str) -> Any:
    """Read a YAML text as plain values with a reader that is not ours."""
    return YAML(typ="safe", pure=True).load(text)


def test_the_schema_accepts_what_loads() -> None:
    """The JSON schema is a valid one, and the annotated file and a full one fit it."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for text in ((ROOT / "loopr.yml").read_text(), EVERYTHING, show(load(None, environ={}, home=None))):
        assert [error.message for error in validator.iter_errors(values(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "concurrency: {per_type: {code: 0}}",
        "concurency: {}",
        "projects: {a: {weight: 0}}",
        "land: {mode: never}",
        "types: {Code: {}}",
        "types: {code: {wrap: [a]}}",
        "lanes: {ramp: 1}",
        "artifacts: {dir: ../x}",
        "version: 2",
    ],
)
def test_the_schema_refuses_what_is_refused(text: str) -> None:
    """An editor with the JSON schema marks what loopr would refuse."""
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(values(text))


def test_every_key_of_the_schema_has_its_sentence() -> None:
    """The JSON schema describes every property."""

    def undescribed(schema: Any, path: str) -> list[str]:
        inner = schema.get("properties", {})
        missing = [f"{path}.{name}" for name, each in inner.items() if not each.get("description", "").endswith(".")]
        return missing + [each for name, child in inner.items() for each in undescribed(child, f"{path}.{name}")]

    assert undescribed(json_schema(), "") == []
    assert set(json_schema()["properties"]) == set(SCHEMA.keys)
