"""The files of runners: which lines a command has run, and which programs those count on."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.world.recipes import lines_behind, makes_environment, programs_of, reader, texts_of

MAKEFILE = """\
VENV := venv
PY = $(VENV)/bin/python
.PHONY: test
all: test
test: lint
\t@$(PY) -m pytest
lint:
\t./venv/bin/ruff check
maybe:
\t[ -x venv/bin/python ] && venv/bin/python -m pytest
ready: ; python -m venv $(VENV)
made: ready
\t$(VENV)/bin/pytest
round: round
\ttrue
"""
JUSTFILE = """\
py := 'venv/bin/python'
@default: test

test *args: lint
    {{py}} -m pytest {{args}}

lint:
    ruff check
"""
SCRIPTS = '{"scripts": {\n  "test": "venv/bin/pytest",\n  "lint": "venv/bin/ruff check"\n}}\n'
RUFF, PYTHON = ("Makefile", "venv/bin/ruff", 8), ("Makefile", "venv/bin/python", 6)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Give a folder with a file for each runner."""
    for name, text in {"Makefile": MAKEFILE, "justfile": JUSTFILE, "package.json": SCRIPTS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("make", {RUFF, PYTHON}),
        ("make test", {RUFF, PYTHON}),
        ("true && A=1 make -s lint", {RUFF}),
        (("make", "lint"), {RUFF}),
        (("sh", "-c", "make lint"), {RUFF}),
        ("just", {("justfile", "venv/bin/python", 5)}),
        ("npm run lint", {("package.json", "venv/bin/ruff", 3)}),
        ("make maybe", set()),
        ("make round", set()),
        ("make nothing", set()),
        ("make -C web test", set()),
        ("cd web && make test", set()),
        ("remake test", set()),
        ("cargo test", set()),
        ("", set()),
        (None, set()),
    ],
)
def test_the_programs_that_a_recipe_counts_on(
    top: Path, command: str | tuple[str, ...] | None, found: set[tuple[str, str, int]]
) -> None:
    """Each has its file and its line; one that the line asks for first is left out."""
    programs = programs_of(lines_behind(command, reader(top)))
    assert {(line.file, path, line.number) for path, line in programs.items()} == found


def test_a_recipe_that_makes_an_environment(top: Path) -> None:
    """It counts where the command leads to it, through another rule too."""
    read = reader(top)
    assert makes_environment(texts_of(["make made"], read))
    assert makes_environment(["uv sync"])
    assert not makes_environment(texts_of(["make test", None], read))


@pytest.mark.parametrize("times", [60, 400])
def test_a_variable_that_names_itself_ends(tmp_path: Path, times: int) -> None:
    """However often a file has a value put in, its lines stay short, and the reading ends."""
    values = "$(A)" * times
    (tmp_path / "Makefile").write_text(f"A = {values}\ntest:\n\t$(A)\n\tvenv/bin/pytest\n")
    lines = lines_behind("make test", reader(tmp_path))
    assert max(len(each.text) for each in lines) <= 2_000
    assert list(programs_of(lines)) == ["venv/bin/pytest"]


def test_marks_and_comments_of_a_recipe(tmp_path: Path) -> None:
    """The marks before a line are none of it, and a comment has nothing run."""
    (tmp_path / "Makefile").write_text("test:\n\t# venv/bin/ruff is not used\n\t-@venv/bin/pytest\n")
    assert list(programs_of(lines_behind("make test", reader(tmp_path)))) == ["venv/bin/pytest"]
