"""Thousands of simulated worlds, each from one seed: whatever goes wrong in them, the promises hold."""

from __future__ import annotations

import pytest

from tests.sim.play import play

PARTS = 40


@pytest.mark.parametrize("part", range(PARTS))
def test_every_world_keeps_the_promises(part: int, seeds: range) -> None:
    """In every simulated world all promises hold after every step, and everything comes to rest."""
    for seed in seeds[part::PARTS]:
        play(seed)
