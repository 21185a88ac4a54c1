"""The settings that follow from the facts of a repository, each with its reason."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from loopr.ui.drafting import CHECK, SETUP, Facts, Proposal, blocks_of, drafted, makes, ranked, scalar
from loopr.world.suites import Suite

PROGRAMS = frozenset({"make", "npm", "python", "git", "cargo", "bundle", "tox"})
NPM, PYTEST = Suite("npm test", "package.json"), Suite("python -m pytest -q", "pytest.ini")
MAKE, RUNTESTS = Suite("make test", "Makefile"), Suite("python tests/runtests.py", "tests/runtests.py")
STEPS = "python -m venv .venv && .venv/bin/pip install -e ."


def facts(*files: str, suites: tuple[Suite, ...] = (), **more: object) -> Facts:
    """Give the facts of a repository with some files, all of which its suites are of."""
    every = frozenset((*files, *(each.file for each in suites)))
    own = {"programs": PROGRAMS, "steps": STEPS} | more
    return Facts(every, suites=tuple(ranked(suites, every)), **own)  # type: ignore[arg-type]


def value(found: list[Proposal], key: str) -> str:
    """Return the value of a key that is used; nothing where none is."""
    return next((each.value for each in found if each.key == key and each.used), "")


def test_the_suite_is_that_of_the_main_language() -> None:
    """A runner of any language comes first, then the language with most files: django is no npm project."""
    files = "django/a.py", "django/b.py", "js/a.js", "tests/test_x.py"
    django = facts(*files, suites=(NPM, RUNTESTS), has_packages=True)
    assert value(drafted(django), CHECK) == ".venv/bin/python tests/runtests.py"
    assert value(drafted(django), SETUP) == STEPS
    assert value(drafted(facts(*files, suites=(NPM, RUNTESTS, MAKE))), CHECK) == "make test"
    express = facts("a.js", "b.js", "tool.py", suites=(NPM, PYTEST), has_packages=True)
    assert value(drafted(express), CHECK) == "npm test"


def test_what_cannot_run_is_a_comment_with_its_reason() -> None:
    """A suite without tests, or without its program, gives way to the next one."""
    without = facts("a.py", suites=(PYTEST, Suite("nox", "noxfile.py"), Suite("tox", "tox.ini")))
    checks = {each.value: each for each in drafted(without) if each.key == CHECK}
    assert checks[".venv/bin/python -m pytest -q"].why == "pytest.ini: no test_*.py is committed yet"
    assert checks["nox"].why == "noxfile.py: there is no program nox here"
    assert [each.value for each in checks.values() if each.used] == ["tox"]


@pytest.mark.parametrize(
    ("lines", "check"),
    [
        (["pytest -q"], 'PATH="$PWD/.venv/bin:$PATH" make test'),
        (["@FLAG=1 python3 -m unittest"], 'PATH="$PWD/.venv/bin:$PATH" make test'),
        ([".venv/bin/pytest"], 'PATH="$PWD/.venv/bin:$PATH" make test'),
        (["cc -o x x.c", "./x"], "make test"),
        (["uv run pytest"], "make test"),
    ],
)
def test_a_recipe_finds_the_programs_of_its_environment(lines: list[str], check: str) -> None:
    """Where a recipe begins python by its name, the check puts that of the worktree first."""
    found = drafted(facts("a.py", suites=(MAKE,), behind={"make test": lines}, wants_environment=True))
    assert value(found, CHECK) == check
    assert (value(found, SETUP) == STEPS) == (check != "make test")


@pytest.mark.parametrize(
    ("files", "setup"),
    [
        (("package.json", "package-lock.json"), "npm ci"),
        (("package.json",), "npm install --no-package-lock"),
        ((".gitmodules", "package.json", "package-lock.json"), "git submodule update --init --recursive && npm ci"),
        (("package.json", "yarn.lock"), ""),
    ],
)
def test_packages_come_by_their_lock_file(files: tuple[str, ...], setup: str) -> None:
    """The installer is that of the lock file; where it is not here its line is a comment."""
    found = drafted(facts("a.js", *files, suites=(NPM,), has_packages=True))
    assert value(found, SETUP) == setup
    assert any(each.key == SETUP for each in found)
    assert makes(facts(), found) == (("node_modules/",) if setup else ())


def test_what_is_set_elsewhere_stays() -> None:
    """Where other settings judge or set up already, the proposals stand as comments."""
    found = drafted(facts("a.py", "test_a.py", suites=(PYTEST,), is_judged=True, is_set_up=True))
    assert {each.key for each in found} == {CHECK, SETUP}
    assert not any(each.used for each in found)


def test_a_plain_folder_gets_no_worktrees() -> None:
    """Without git there is nothing to set up, and the check is as its file says."""
    found = drafted(Facts(frozenset(), is_repository=False, suites=(MAKE,), programs=PROGRAMS))
    assert found == [Proposal(CHECK, "make test", "Makefile")]


def test_the_blocks_are_yaml_with_and_without_their_marks() -> None:
    """Used lines are read as they are meant, and the others once their # is gone."""
    own = facts("a.js", "package-lock.json", "History.md", suites=(NPM, PYTEST), has_packages=True)
    blocks = blocks_of(drafted(own), ["plan", "code"])
    lines = [line for each in blocks.values() for line in each]
    assert YAML(typ="safe").load("\n".join(lines)) == {
        "types": {"code": {"check": "npm test"}},
        "worktrees": {"setup": "npm ci"},
    }
    marked = [line for line in lines if line.startswith("#") and "check" not in line]
    found = YAML(typ="safe").load("\n".join(line.removeprefix("#") for line in [*blocks["worktrees"][:1], *marked]))
    assert found["merge"] == {"union": ["History.md"]}


@pytest.mark.parametrize("text", ["make test", "a: b", "a #b", "'x'", "true", "[a]", '"a" && $B', "ü", "- a", "a\\b"])
def test_a_text_is_read_as_it_was(text: str) -> None:
    """Quotes are set where YAML would read something else."""
    assert YAML(typ="safe").load(f"a: {scalar(text)}") == {"a": text}
