"""Which commands run the tests of a repository, by the files that say so.

Reads a few files at the top of a folder. Must never run anything, nor know what a command is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST_BYTES = 1_000_000
_TARGET = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_RECIPE = re.compile(r"^@?(test|check)\b[^:=\n]*:(?!=)", re.MULTILINE)
_PYTEST = re.compile(r"^\[tool\.pytest|^\[tool:pytest\]|^\[pytest\]|\bpytest\b", re.MULTILINE)
_NO_TEST = "no test specified"
_LOCKS = {
    "pnpm-lock.yaml": "pnpm test",
    "yarn.lock": "yarn test",
    "bun.lockb": "bun run test",
    "bun.lock": "bun run test",
}
_PLAIN = {
    "tests/runtests.py": "python tests/runtests.py",
    "runtests.py": "python runtests.py",
    "tox.ini": "tox",
    "noxfile.py": "nox",
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "mix.exs": "mix test",
    "pom.xml": "mvn -q test",
    "gradlew": "./gradlew test",
    ".rspec": "bundle exec rspec",
    "phpunit.xml": "vendor/bin/phpunit",
    "phpunit.xml.dist": "vendor/bin/phpunit",
}
_BUILDS = {
    "configure": (re.compile(r"\bMakefile\b"), "./configure && make check"),
    "CMakeLists.txt": (
        re.compile(r"^\s*(?:enable_testing|include\s*\(\s*CTest)", re.MULTILINE | re.IGNORECASE),
        "cmake -B build && cmake --build build && ctest --test-dir build",
    ),
    "meson.build": (re.compile(r"^\s*test\s*\(|\bsubdir\b", re.MULTILINE), "meson setup build && meson test -C build"),
}


class Suite(NamedTuple):
    """A command that runs the tests, and the file that says so."""

    command: str
    file: str


def suites_of(root: Path) -> Iterator[Suite]:
    """Give the commands that run tests of what lies in a folder, those of a runner's file first."""
    for name, pattern, program in (
        *((name, _TARGET, "make") for name in ("GNUmakefile", "makefile", "Makefile")),
        *((name, _RECIPE, "just") for name in ("justfile", "Justfile", ".justfile")),
    ):
        found = sorted(pattern.findall(_text(root / name)), reverse=True)  # test before check
        if found:
            yield Suite(f"{program} {found[0]}", name)
    yield from _npm(root)
    for name in ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"):
        if _PYTEST.search(_text(root / name)):
            yield Suite("python -m pytest -q", name)
            break
    yield from (Suite(command, name) for name, command in _PLAIN.items() if (root / name).is_file())
    for name, (pattern, command) in _BUILDS.items():
        if pattern.search(_text(root / name)):
            yield Suite(command, name)


def _npm(root: Path) -> Iterator[Suite]:
    """Give the test script of a package.json, by the program whose lock file lies beside it."""
    try:
        scripts = json.loads(_text(root / "package.json") or "{}").get("scripts", {})
        script = scripts.get("test", "")
    except (ValueError, AttributeError):
        return
    if not script or _NO_TEST in script:
        return
    locked = (command for lock, command in _LOCKS.items() if (root / lock).is_file())
    yield Suite(next(locked, "npm test"), "package.json")


def _text(path: Path) -> str:
    """Read a file, nothing where there is none, or it is no text of a usual size."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return ""
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
