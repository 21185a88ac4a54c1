"""Which command runs the tests of a repository, by the files that say so.

Reads a few files at the top of a folder. Must never run anything, nor know what the command is for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

MOST_BYTES = 1_000_000
_TARGET = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_RECIPE = re.compile(r"^@?(test|check)\b[^:=\n]*:(?!=)", re.MULTILINE)
_PYTEST = re.compile(r"^\[tool\.pytest|^\[tool:pytest\]|^\[pytest\]|\bpytest\b", re.MULTILINE)
_NO_TEST = "no test specified"
_LOCKS = {"pnpm-lock.yaml": "pnpm test", "yarn.lock": "yarn test", "bun.lockb": "bun run test"}
_PLAIN = {
    "tox.ini": "tox",
    "noxfile.py": "nox",
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "mix.exs": "mix test",
    "pom.xml": "mvn -q test",
    "gradlew": "./gradlew test",
}


class Suite(NamedTuple):
    """A command that runs the tests, and the file that says so."""

    command: str
    file: str


def suite_of(root: Path) -> Suite | None:
    """Return the command that runs the tests of what lies in a folder, None where no file says so."""
    for name, pattern, program in (
        *((name, _TARGET, "make") for name in ("GNUmakefile", "makefile", "Makefile")),
        *((name, _RECIPE, "just") for name in ("justfile", "Justfile", ".justfile")),
    ):
        found = sorted(pattern.findall(_text(root / name)), reverse=True)  # test before check
        if found:
            return Suite(f"{program} {found[0]}", name)
    if (script := _npm(root)) is not None:
        return script
    for name in ("pytest.ini", "pyproject.toml", "setup.cfg"):
        if _PYTEST.search(_text(root / name)):
            return Suite("python -m pytest -q", name)
    return next((Suite(command, name) for name, command in _PLAIN.items() if (root / name).is_file()), None)


def _npm(root: Path) -> Suite | None:
    """Return the test script of a package.json, by the program whose lock file lies beside it."""
    try:
        scripts = json.loads(_text(root / "package.json") or "{}").get("scripts", {})
        script = scripts.get("test", "")
    except (ValueError, AttributeError):
        return None
    if not script or _NO_TEST in script:
        return None
    command = next((command for lock, command in _LOCKS.items() if (root / lock).is_file()), "npm test")
    return Suite(command, "package.json")


def _text(path: Path) -> str:
    """Read a file, nothing where there is none, or it is no text of a usual size."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return ""
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
