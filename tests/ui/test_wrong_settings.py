"""What can still be seen and done while nobody can decide by the settings as they stand."""

from __future__ import annotations

import pytest

from loopr.wiring import Workspace
from loopr.world.lock import EngineLock
from tests.ui.scenes import COMMANDS, Desk

WRONG = f"{COMMANDS}zebra: 1\n"
SHOWING = [
    *(("tree",), ("ls",), ("status",), ("next",), ("usage",), ("events",)),
    *(("show", "tokens"), ("why", "tokens"), ("wait", "--timeout", "0s", "tokens")),
]


@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
def test_what_is_remembered_is_shown_by_the_settings_from_before(shop: Desk, words: tuple[str, ...]) -> None:
    """A verb that only shows gives the very same under settings that are broken, and says so beside it."""
    shop.start()
    before = shop(*words)
    assert "settings" not in before.err
    shop.write("loopr.yml", WRONG)
    after = shop(*words)
    assert (after.code, after.out) == (before.code, before.out)
    if words[0] not in ("usage", "events"):  # these ask no settings at all
        assert "the settings are wrong, this goes by those from before:\nloopr.yml" in after.err
        assert "zebra: is not a known key" in after.err


def test_a_document_stays_one(shop: Desk) -> None:
    """What is told of the settings never gets into the document."""
    shop.start()
    shop.write("loopr.yml", WRONG)
    done = shop("tree", "--json")
    assert done.document["schema"] == 1
    assert "zebra" not in done.out
    assert "zebra" in done.err


@pytest.mark.parametrize("wrong", [WRONG, "{ bad", "types: {code: {run: [}}\n"])
def test_holding_and_ending_need_no_settings(shop: Desk, wrong: str) -> None:
    """Without an engine too they go by the accepted settings, and say so; what begins something is refused."""
    shop.start()
    shop.write("loopr.yml", wrong)
    policies = shop("events", "--json").out.count("policy_loaded")
    for words in (("pause", "tokens"), ("resume", "tokens"), ("cancel", "tokens"), ("retry", "tokens"), ("gc",)):
        done = shop(*words)
        assert done.code == 0, (words, done)
        assert "the settings are wrong, this goes by those from before:\nloopr.yml" in done.err, words
    assert shop("clear", "--all").code == 0
    for words in (
        ("start", "auth.md"),
        ("run", "--once"),
        ("reset", "tokens"),
        ("pause", "tokens", "--set", "zebra=1"),
    ):
        assert shop(*words).code == 78, words
    assert shop("events", "--json").out.count("policy_loaded") == policies
    shop.write("loopr.yml", COMMANDS)
    assert "settings" not in shop("pause", "tokens").err


def test_an_operator_is_heard_beside_an_engine(shop: Desk) -> None:
    """Where an engine goes on by the settings from before, it can be steered."""
    shop.start()
    with EngineLock.acquire(Workspace(shop.folder).place.lock, "engine"):
        shop.write("loopr.yml", WRONG)
        assert shop("pause", "tokens").code == 0
    assert "paused" in "\n".join(shop.lines("tree"))


def test_what_is_wrong_in_this_very_call_is_refused(shop: Desk) -> None:
    """A value that was given with the call is no reason to show anything else."""
    shop.start()
    assert shop("tree", "--set", "zebra=1").code == 78


def test_without_a_memory_there_is_nothing_to_go_by(shop: Desk) -> None:
    """Before the first start wrong settings are an error."""
    shop.write("loopr.yml", WRONG)
    assert shop("tree").code == 78
