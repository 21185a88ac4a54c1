"""Names of other schedulers: each of them leads to a key that there is, wherever it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.errors import UserError
from loopr.world.settings import load, set_key
from loopr.world.settings.check import misspelt
from loopr.world.settings.elsewhere import OTHERS, Other, elsewhere
from loopr.world.settings.schema import find


@pytest.mark.parametrize("other", OTHERS, ids=lambda each: each.name)
def test_every_name_leads_to_a_key_that_there_is(other: Other) -> None:
    """What a name is called here is a key of the schema, and what takes no setting says what takes its place."""
    if other.ours:
        assert find(other.ours.replace("PROJECT", "web").replace("TYPE", "code")) is not None
    else:
        assert other.why
    found = elsewhere(other.name)
    assert found is not None
    assert found.ours == other.ours
    assert misspelt(other.name) == other.ours


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("scheduler: {max_polecats: 5}", "1:13", "did you mean concurrency.max_loops?"),
        ("scheduler: {batch_size: 1}", "1:13", "did you mean dispatch.batch_size?"),
        ("agents: {perFlow: {implement: 1}}", "1:10", "did you mean concurrency.per_type?"),
        ("agents: {maxConcurrent: 1}", "1:10", "did you mean concurrency.max_loops?"),
        ("maxConcurrent: 1", "1:1", "did you mean concurrency.max_loops?"),
        ("projects: {web: {credit_weight: 3}}", "1:18", "did you mean projects.web.weight?"),
        ("staleLockTimeout: 600", "1:1", "nothing is to be set: a lock dies with the process that holds it"),
        ("git: {bas: x}", "1:7", "did you mean git.base?"),
        ("projects: {web: {base: x}}", "1:18", "did you mean git.base?"),
    ],
)
def test_a_foreign_name_is_refused_with_ours(tmp_path: Path, text: str, where: str, hint: str) -> None:
    """A name of another scheduler is refused with its place and what it is called here; no other hint is worse."""
    (tmp_path / "loopr.yml").write_text(text)
    with pytest.raises(UserError) as caught:
        load(tmp_path, environ={}, home=None)
    assert [(each.where, each.hint) for each in caught.value.problems] == [(f"loopr.yml:{where}", hint)]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("executor.kind", "dask", "dask is not in this version"),
        ("serve.port", "8000", "is not in this version"),
        ("scheduler.max_polecats", "5", "did you mean concurrency.max_loops?"),
    ],
)
def test_what_leads_nowhere_cannot_be_set(tmp_path: Path, key: str, value: str, words: str) -> None:
    """What nothing reads is refused where it would be set, and the file stays as it is."""
    path = tmp_path / "loopr.yml"
    path.write_text("version: 1\n")
    with pytest.raises(UserError) as caught:
        set_key(path, key, value, environ={}, home=None)
    assert words in str(caught.value)
    assert path.read_text() == "version: 1\n"
