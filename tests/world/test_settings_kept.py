"""Accepted settings in their folder: whatever lies there is read or refused, and closed again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.world.settings import kept
from loopr.world.settings.sources import Texts

TEXTS = Texts({"loopr.yml": b"parallel: 3\n"}, {})


def open_files() -> int:
    """Count what this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("what", ["as kept", "gone", "a folder", "a pipe", "a link"])
def test_reading_leaves_nothing_open(what: str, tmp_path: Path) -> None:
    """An engine that finds something else in the place of its settings says so, as often as it is asked."""
    kept.keep(tmp_path, TEXTS)
    path = tmp_path / kept.FOLDER / TEXTS.seal
    if what != "as kept":
        path.rename(tmp_path / "aside")
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a link":
        path.symlink_to(tmp_path / "aside")
    before = open_files()
    for _ in range(3):
        if what == "as kept":
            assert kept.recall(tmp_path, TEXTS.seal).packed == TEXTS.packed
            continue
        with pytest.raises(SettingsError, match="the accepted settings"):
            kept.recall(tmp_path, TEXTS.seal)
    assert open_files() == before
