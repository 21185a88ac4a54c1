"""Thousands of simulated worlds, each from one seed: whatever goes wrong in them, the promises hold.

`--seeds` says how many are played. To look at one that failed: `play(SEED)` in `tests/sim/play.py` tells its story.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.journals import DiskJournal
from tests.sim.play import play

PARTS = 40


@pytest.mark.parametrize("part", range(PARTS))
def test_every_world_keeps_the_promises(part: int, seeds: range) -> None:
    """In every simulated world all promises hold after every step, and everything comes to rest."""
    for seed in seeds[part::PARTS]:
        play(seed)


@pytest.mark.parametrize("seed", range(100_000, 100_016))
def test_worlds_that_remember_on_disk_keep_them_too(seed: int, tmp_path: Path) -> None:
    """A world with the real journal under it keeps the same promises as one that remembers in memory."""
    journal = DiskJournal(tmp_path / "loopr.db")
    try:
        play(seed, journal)
        assert journal.integrity() == []
    finally:
        journal.close()


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_long_lives_keep_them_too(part: int, seeds: range) -> None:
    """A world that goes on for long, with a comparison at every turn, keeps the promises to its end."""
    for seed in seeds[part::PARTS][: max(1, len(seeds) // 1000)]:
        play(200_000 + seed, steps=600, compare_every=1)
