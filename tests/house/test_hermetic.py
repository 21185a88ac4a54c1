"""What `conftest.py` promises to every test."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


def test_no_setting_of_the_machine_reaches_a_test() -> None:
    """A test sees none of its user's settings for loopr or for git."""
    listed = subprocess.run(["git", "config", "--list"], cwd=Path.home(), capture_output=True, text=True, check=False)
    assert listed.stdout == ""
    assert not [name for name in os.environ if name.startswith("LOOPR")]
    assert time.tzname == ("UTC", "UTC")


def test_a_commit_needs_no_identity_of_the_machine(tmp_path: Path) -> None:
    """A test may commit on a machine where git knows nobody."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)


def test_a_home_of_its_own_is_empty(home: Path) -> None:
    """A test that asks for a home gets an empty one, and everything that is started looks there."""
    assert list(home.iterdir()) == []
    assert Path.home() == home
    assert Path(os.environ["XDG_CONFIG_HOME"]).parent == home
