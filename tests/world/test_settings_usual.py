"""Words of other programs in loopr.yml: each leads to a key that there is, and none of them is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from loopr.core.bridges import ELSEWHERE, OURS
from loopr.core.fields import ENTRY_KEYS
from loopr.errors import SettingsError
from loopr.world.settings import load
from loopr.world.settings.check import unknown
from loopr.world.settings.schema import find
from loopr.world.settings.usual import OF_ALL, OF_TYPES, usual


@pytest.mark.parametrize(("table", "path"), [(OF_TYPES, "types.code."), (OF_ALL, "")])
def test_every_word_leads_to_a_key_that_there_is(table: Mapping[str, tuple[str, ...]], path: str) -> None:
    """A word is no key of ours where it is asked about, and what is named instead is one."""
    words = [word for each in table.values() for word in each]
    assert len(set(words)) == len(words)
    for hint, told in table.items():
        key = re.search(r"(?:did you mean|said of a type:) ([\w.{}]+?)\??(?:$|\s)", hint)
        if key:
            assert find(key[1].replace("{type}", "code").replace("TYPE", "code")) is not None, hint
        for word in told:
            assert find(path + word) is None, word
            assert unknown(path + word, "f:1:1").hint == usual(path + word) != ""


def test_a_word_is_looked_up_as_people_write_it() -> None:
    """Case and dashes do not count; elsewhere in the file the word means nothing."""
    assert usual("types.job.Max-Retries") == "did you mean types.job.max_iterations?"
    assert usual("lanes.x.command") == usual("types.x.y.command") == ""


@pytest.mark.parametrize(
    ("given", "types", "hint"),
    [
        ("max_iterations=3", "", "types.code.max_iterations"),
        ("max_iterations=3", "types: {plan: {child: job}, job: {}}", "types.job.max_iterations"),
        ("retry.max_iterations=3", "", "retry.max_iterations.code"),
        ("concurrency.per_type=3", "", "concurrency.per_type.code"),
    ],
)
def test_what_is_said_of_a_type(tmp_path: Path, given: str, types: str, hint: str) -> None:
    """The hint names a type that there is, and a key that takes the value."""
    (tmp_path / "loopr.yml").write_text(types)
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, environ={}, home=None, overrides=[given])
    assert [each.hint for each in refused.value.problems] == [f"did you mean {hint}?"]
    load(tmp_path, environ={}, home=None, overrides=[f"{hint}=3"])


def test_words_of_an_outline() -> None:
    """None of them is a key of an entry, each leads to one way only, and keys of a type are such."""
    words = [word for table in (OURS, ELSEWHERE) for each in table.values() for word in each]
    assert len(set(words)) == len(words)
    assert {word for each in OURS.values() for word in each}.isdisjoint(ENTRY_KEYS)
    assert set(OURS) - {"project", "children"} <= set(ENTRY_KEYS)
    of_types = next(told for hint, told in ELSEWHERE.items() if "{word}" in hint)
    assert [word for word in of_types if find(f"types.code.{word}") is None] == []
