"""Every example runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/demo.sh"))
LOOPR = Path(sys.executable).with_name("loopr")

SHOWN = {
    "by-hand": [
        "oauth: 6 declared, 2 complete by declaration",
        "oauth: 1 declared, 1 complete by declaration",
        "needs oauth/tokens (4 of 5 complete)",
        "1  oauth/tokens/refresh/code  default",
        "makespan 50m",
    ],
    "ladder": ["typed: 10 declared, 2 complete by declaration", "held by type:", "held by needs:", "makespan "],
}


def play(name: str, cwd: Path, *arguments: str, **environ: str) -> str:
    """Run the script of an example with a temporary folder of its own, and return what it prints."""
    scratch = cwd / "a scratch folder"
    scratch.mkdir()
    script = ["sh", str(EXAMPLES / name / "demo.sh"), *arguments]
    env = {**os.environ, "TMPDIR": str(scratch), **environ}
    ran = subprocess.run(script, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert list(scratch.iterdir()) == [], "it leaves something behind"
    return ran.stdout


def test_every_example_is_tried() -> None:
    """A folder of examples/ has a script that runs it, and this file knows what it shows."""
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == NAMES == sorted(SHOWN)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    """An example runs with the loopr on the path, in a folder with spaces, and leaves nothing behind."""
    printed = play(name, tmp_path, PATH=os.pathsep.join([str(LOOPR.parent), os.environ["PATH"]]))
    missing = [line for line in SHOWN[name] if line not in printed]
    assert not missing, printed


@pytest.mark.parametrize("name", NAMES)
def test_an_example_can_be_kept(name: str, tmp_path: Path) -> None:
    """An example that is given a folder works there, with the loopr that is named, and leaves it to be looked at."""
    play(name, tmp_path, "to keep", LOOPR=str(LOOPR))
    listed = subprocess.run([LOOPR, "-C", tmp_path / "to keep", "ls"], capture_output=True, text=True, check=True)
    assert "complete" in listed.stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_example_tells_when_it_fails(name: str, tmp_path: Path) -> None:
    """An example ends with an error where loopr does."""
    script = ["sh", str(EXAMPLES / name / "demo.sh"), str(tmp_path / "x")]
    ran = subprocess.run(script, env={**os.environ, "LOOPR": "false"}, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
