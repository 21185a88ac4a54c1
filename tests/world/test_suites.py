"""Which command runs the tests of a repository, by the files in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.world.suites import Suite, suites_of


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({"Makefile": "all: x\ntest: all\n\tpytest\n"}, Suite("make test", "Makefile")),
        ({"Makefile": "check:\n\ttrue\n"}, Suite("make check", "Makefile")),
        ({"Makefile": "test := 1\nbuild:\n", "tox.ini": ""}, Suite("tox", "tox.ini")),
        ({"justfile": "test *args:\n  cargo test\n"}, Suite("just test", "justfile")),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, Suite("npm test", "package.json")),
        (
            {"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""},
            Suite("pnpm test", "package.json"),
        ),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, None),
        ({"package.json": "[1"}, None),
        ({"package.json": '{"scripts": []}'}, None),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, Suite("python -m pytest -q", "pyproject.toml")),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, None),
        ({"Cargo.toml": ""}, Suite("cargo test", "Cargo.toml")),
        ({"go.mod": "module x\n"}, Suite("go test ./...", "go.mod")),
        ({"runtests.py": ""}, Suite("python runtests.py", "runtests.py")),
        ({"configure": "for file in Makefile\n"}, Suite("./configure && make check", "configure")),
        ({"CMakeLists.txt": "project(x)\n"}, None),
        (
            {"CMakeLists.txt": "include(CTest)\n"},
            Suite("cmake -B build && cmake --build build && ctest --test-dir build", "CMakeLists.txt"),
        ),
    ],
)
def test_what_runs_the_tests(tmp_path: Path, files: dict[str, str], found: Suite | None) -> None:
    """A target of make comes first, then what a file of the language says; whatever cannot be read says nothing."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert next(suites_of(tmp_path), None) == found


def test_what_is_no_file_says_nothing(tmp_path: Path) -> None:
    """A folder of that name, or one too large to be meant, is passed by."""
    (tmp_path / "Makefile").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n" + "#" * 1_000_000)
    assert [*suites_of(tmp_path)] == []
