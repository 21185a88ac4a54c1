"""Calls of the command line within this process, and real folders to call it in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from loopr.ui.cli import main

ROOT = Path(__file__).resolve().parents[2]
PLAN = """\
---
id: auth
specs:
  - id: tokens
    title: Token storage
  - id: endpoints
    title: Endpoints
    needs: [tokens]
---
# Add sign-in
"""


class Answer(NamedTuple):
    """What a call gave back."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def loopr(*arguments: str | Path) -> Answer:
    """Call the command line."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([str(each) for each in arguments])
    return Answer(code, out.getvalue(), err.getvalue())


def program(folder: Path | bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run this tree's program as a process of its own, whatever is installed."""
    command = [sys.executable, "-m", "loopr", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env=this_tree())


def this_tree() -> dict[str, str]:
    """Return an environment in which Python finds this tree first."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def git(folder: Path, *arguments: str) -> str:
    """Call git in a folder."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=first")
    return folder


def everything(folder: Path) -> dict[str, tuple[int, str]]:
    """Note the mode and the content of all that is in a folder, git's own files included."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = path.lstat().st_mode, content
    return found
