"""Operators who say anything of anything in simulated worlds: no promise is broken, heard or refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from loopr.ui.vocabulary import RULES
from tests.sim.journals import DiskJournal
from tests.sim.operating import PROMISES, play

WORLDS = range(400_000, 400_050)
PARTS = 40


def test_any_word_in_any_state_keeps_the_promises() -> None:
    """Thousands of random wishes of operators keep every promise, do what they say, and let everything come to rest."""
    met: Counter[str] = Counter()
    for seed in WORLDS:
        met.update(play(seed))
    assert sum(count for name, count in met.items() if name.startswith(("done: ", "refused: "))) > 500
    assert [each for each in RULES if not met[f"done: {each}"]] == []
    assert [each for each in RULES if not met[f"refused: {each}"]] == []


def test_every_word_has_a_promise() -> None:
    """A new wish must say what is true of all that it names."""
    assert PROMISES.keys() == RULES.keys()


@pytest.mark.parametrize("seed", range(410_000, 410_003))
def test_words_that_are_remembered_on_disk_keep_them_too(seed: int, tmp_path: Path) -> None:
    """With the real journal below it is the same."""
    journal = DiskJournal(tmp_path / "loopr.db")
    try:
        play(seed, journal)
        assert journal.integrity() == []
    finally:
        journal.close()


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_operators_who_never_stop(part: int, seeds: range) -> None:
    """Hundreds of thousands of words keep them too."""
    for seed in seeds[part::PARTS]:
        play(420_000 + seed, steps=300)
