"""The line that makes an environment: it installs all that the tests of a project need."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from loopr.world.repo.pip_needs import depends, unknown_extras
from loopr.world.repo.venvs import made_anew

PLAIN = "[project]\nname = 'x'\n"
EXTRA = f"{PLAIN}[project.optional-dependencies]\n"
GROUP = f"{PLAIN}[dependency-groups]\n"
BASE, DEV = "requirements.txt", "requirements-dev.txt"
FOLDER = {
    "requirements/dev.txt": f"-r ../{BASE}\n-r test.txt\n",
    "requirements/test.txt": "pytest==8 # own\n",
}
FIELDS = "[options.extras_require]\ntests =\n  pytest\n"
MANY = ", ".join(f"'p{number}'" for number in range(9))
UP = "--upgrade pip && .venv/bin/pip install"


def installed(top: Path, files: dict[str, str], *texts: str) -> str:
    """Return the arguments of pip in the proposed setup of a checkout with some files."""
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    setup = made_anew(top, ".venv", texts).removeprefix("worktrees: {setup: ").removesuffix("}")
    found: str = json.loads(setup)  # a text of YAML in these quotes is one of JSON
    assert shlex.split(found)[:4] == ["python", "-m", "venv", ".venv"]
    return found.partition("pip install ")[2]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        (f"{EXTRA}develop = ['pytest']\n", "-e '.[develop]'"),
        (f"{EXTRA}dev = ['ruff']\n", "-e '.[dev]' pytest"),
        (f"{EXTRA}docs = ['mkdocs']\n", "-e . pytest"),
        (PLAIN, "-e . pytest"),
        (f"{PLAIN}dependencies = ['Pytest >= 8']\n", "-e ."),
        (f"{GROUP}dev = ['pytest>=8']\n", "-e . 'pytest>=8'"),
        (f"{GROUP}dev = [{{include-group = 'own'}}, 'a']\nown = ['pytest']\n", "-e . pytest a"),
        (f"{GROUP}dev = [{{include-group = 'dev'}}, 'pytest']\n", "-e . pytest"),
        (f"{GROUP}dev = ['pytest', \"a; extra<'4'\"]\n", "-e . pytest 'a; extra<\"4\"'"),
        (f"{GROUP}dev = ['pytest', {MANY}]\n", f"{UP} -e . --group dev"),
        ("[build-system]\nrequires = []\n", "-e . pytest"),
        ("[tool.ruff]\n", "pytest"),
        (f"{PLAIN}dependencies = ['a']\n[tool.uv]\npackage = false\n", "a pytest"),
        (f"{EXTRA}test = 'pytest'\n[tool]\nuv = 1\n", "-e '.[test]' pytest"),
        ("not toml", "-e . pytest"),
    ],
)
def test_what_a_project_declares_for_its_tests(tmp_path: Path, text: str, needs: str) -> None:
    """Its extra or its group is installed, and by name only the program that neither brings."""
    assert installed(tmp_path, {"pyproject.toml": text}, "python -m pytest -q") == needs


@pytest.mark.parametrize(
    ("files", "needs"),
    [
        ({BASE: "a\n", DEV: "pytest\n"}, f"-r {BASE} -r {DEV}"),
        ({BASE: "a\n", "dev-requirements.txt": f"-r {BASE}\npytest\n"}, "-r dev-requirements.txt"),
        ({BASE: "a\n", **FOLDER}, "-r requirements.txt -r requirements/test.txt"),
        ({BASE: "# pytest\na\n"}, "-r requirements.txt pytest"),
        ({BASE: f"-r {BASE}\npytest\n"}, "-r requirements.txt"),
        ({"pyproject.toml": PLAIN, "test_requirements.txt": "pytest"}, "-e . -r test_requirements.txt"),
        ({"pyproject.toml": PLAIN, DEV: "-e .\npytest\n"}, "-r requirements-dev.txt"),
        ({"pyproject.toml": PLAIN, BASE: "pytest\n"}, "-e . -r requirements.txt"),
        ({"setup.py": "", "setup.cfg": FIELDS}, "-e '.[tests]'"),
        ({"setup.py": "", "setup.cfg": "not fields"}, "-e . pytest"),
        ({}, "pytest"),
    ],
)
def test_lists_of_requirements(tmp_path: Path, files: dict[str, str], needs: str) -> None:
    """Each that is for development is installed, but for those that another one includes.

    In the place of one that includes a list for tests stands that list.
    """
    assert installed(tmp_path, files, "venv/bin/pytest") == needs


def test_programs_that_commands_name(tmp_path: Path) -> None:
    """They are installed by name; pytest also where it is in the environment that is there."""
    assert installed(tmp_path, {}, "cat pytest.ini") == ""
    texts = "mypy . && .venv/bin/ruff check", "python -mpytest"
    assert installed(tmp_path, {}, *texts) == "mypy ruff pytest"
    assert installed(tmp_path, {"requirements.txt": "a\n"}) == "-r requirements.txt"
    assert installed(tmp_path, {".venv/bin/pytest": ""}) == "-r requirements.txt pytest"


def test_a_project_that_needs_anything(tmp_path: Path) -> None:
    """Dependencies, an extra, a group or a list count; a bare project does not."""
    path = tmp_path / "pyproject.toml"
    for text in (PLAIN, f"{EXTRA}test = ['a']\n", f"{GROUP}dev = ['a']\n"):
        path.write_text(text)
        assert depends(tmp_path) is (text != PLAIN)
    path.unlink()
    (tmp_path / "requirements.txt").write_text("a\n")
    assert depends(tmp_path)


@pytest.mark.parametrize(
    ("command", "text", "unknown"),
    [
        ("pip install -e '.[test]'", PLAIN, ["test"]),
        ("pip install -e .[test,dev_x]", f"{EXTRA}Dev-X = []\n", ["test"]),
        ("pip install './[dev]'", f"{EXTRA}dev = []\n", []),
        ("pip install -e .", PLAIN, []),
        ("rm -rf ./[a-z]*.tmp; pip install .", PLAIN, []),
        ("pip install 'other[test]'", PLAIN, []),
        ("pip install -e '.[test]'", f"{PLAIN}dynamic = ['optional-dependencies']\n", []),
        ("pip install -e '.[test]'", "[tool.poetry]\n", []),
        ("pip install -e '.[test]'", "not toml", []),
    ],
)
def test_an_extra_that_is_not_declared(command: str, text: str, unknown: list[str]) -> None:
    """It is found where the file says which there are, by names as pip compares them."""
    assert unknown_extras(command, text)[0] == unknown
