"""Test runners that would collect the tests in the worktrees of loops too, and the line that keeps them out.

Reads the files in which a runner is set up, and nothing else. Must never change one.
"""

from __future__ import annotations

import re
from pathlib import Path

_PYTEST = {
    "pytest.ini": re.compile(r"^\[pytest\]", re.MULTILINE),
    "pyproject.toml": re.compile(r"^\[tool\.pytest", re.MULTILINE),
    "tox.ini": re.compile(r"^\[pytest\]", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[tool:pytest\]", re.MULTILINE),
}
_KEPT_OUT = re.compile(r"^\s*testpaths\s*=", re.MULTILINE)


def collecting(root: Path, worktrees: str) -> str:
    """Say that pytest would collect what lies in the worktrees, and what keeps it out; nothing where it does not."""
    for name, section in _PYTEST.items():
        try:
            text = (root / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if not section.search(text):
            continue
        if _KEPT_OUT.search(text) or re.search(rf"(--ignore=|norecursedirs[^#]*){re.escape(worktrees)}", text):
            return ""
        return f"pytest would collect the tests in {worktrees}/ too: add `--ignore={worktrees}` to `addopts` in {name}"
    return ""
