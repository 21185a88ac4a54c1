"""The pages about the code say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from loopr import errors
from loopr.core.gates import GATES
from loopr.core.model import Status
from loopr.core.settled import Standing
from loopr.ui.cli import VERBS
from loopr.ui.curfew import INTERRUPTED, TERMINATED
from loopr.world.settings.keys import Key
from loopr.world.settings.schema import SCHEMA

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PACKAGE = ROOT / "loopr"
ARCHITECTURE = DOCS / "architecture.md"

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *ROOT.glob("*/README.md")])
HAND_WRITTEN = [ROOT / "README.md", ARCHITECTURE, *sorted((DOCS / "guide").glob("*.md")), ROOT / "tests" / "README.md"]

LINK = re.compile(r"\[[^\]\n]+\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MENTION = re.compile(
    r"`((?:loopr|docs|tests|examples|core|world|ui|engine|wiring|recall)/[a-z0-9_./-]*|Makefile|[a-z]+\.toml)`"
)


def prose(path: Path) -> str:
    """Return a page without what is fenced."""
    return FENCED.sub("", path.read_text("utf-8"))


def name_of(path: Path) -> str:
    """Name a page as a person opens it."""
    return path.relative_to(ROOT).as_posix()


def section(page: Path, heading: str) -> str:
    """Return what stands under a heading of a page, down to the next heading."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{name_of(page)} has no heading {heading!r}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """Return every word in code in the first column of the tables of a text."""
    cells = re.findall(r"^\| ((?:[^|\\]|\\.)*)\|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


# --- what is drawn from the code ----------------------------------------------------------------------------------


def test_the_generated_pages_are_up_to_date() -> None:
    """The committed pages are the ones that the code leads to."""
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    ran = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"run `make docs`:\n{ran.stdout}{ran.stderr}"


def test_every_verb_is_in_the_reference() -> None:
    """A verb that exists has its place in the reference."""
    headings = re.findall(r"^## (\w+)", (REFERENCE / "verbs.md").read_text("utf-8"), re.MULTILINE)
    existing = [name for name, (module, _) in VERBS.items() if find_spec(f"loopr.ui.cli.{module}")]
    assert list(dict.fromkeys(headings)) == existing


def keys(path: str, key: Key) -> Iterator[str]:
    """List the paths of all keys with a fixed name."""
    for name, each in key.keys.items():
        yield f"{path}{name}"
        yield from keys(f"{path}{name}.", each)


def test_every_setting_is_in_the_reference() -> None:
    """A key of loopr.yml is in the reference with its whole path, or is one of its headings."""
    page = (REFERENCE / "settings.md").read_text("utf-8")
    every = list(keys("", SCHEMA))
    assert len(every) > 70
    assert [each for each in every if f"| `{each}` |" not in page and f"## {each}\n" not in page] == []


# --- what is written by hand --------------------------------------------------------------------------------------


def test_every_module_has_its_place_in_the_architecture() -> None:
    """The architecture names every module of the package in the table of its folder, and no other."""
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        inside = folder.relative_to(PACKAGE).as_posix()
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
        named = first_cells(section(ARCHITECTURE, "The rooms" if inside == "." else inside))
        assert sorted(named) == sorted(modules | packages), f"docs/architecture.md, {inside}"


def test_the_readme_lists_the_verbs() -> None:
    """The README's table has every verb, and none that does not exist."""
    listed = [word for cell in first_cells(section(ROOT / "README.md", "Verbs")) for word in cell.split()[:1]]
    assert [name for name in VERBS if name not in listed] == []
    assert [name for name in listed if not name.isdigit() and name not in VERBS] == []


def test_the_readme_has_every_exit_code() -> None:
    """What loopr can end with, by an error, by how things stand or by a signal, is in one table, and in the README."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.LooprError)]
    ends = {*(each.exit_code for each in kinds), *Standing, INTERRUPTED, TERMINATED}
    assert ends == errors.EXITS.keys()
    told = re.findall(r"^\| (\d+) \| (.*) \|$", section(ROOT / "README.md", "Verbs"), re.MULTILINE)
    assert {int(number): words for number, words in told} == errors.EXITS


def test_the_glossary_knows_every_status_and_gate() -> None:
    """The glossary lists the statuses and the gates that there are, in their order."""
    glossary = DOCS / "glossary.md"
    assert first_cells(section(glossary, "Status")) == [each.value for each in Status]
    assert first_cells(section(glossary, "Gates")) == [name for name, _ in GATES]


def test_the_guide_says_how_every_gate_opens() -> None:
    """The guide lists every gate in the order in which they are asked."""
    guide = DOCS / "guide" / "why-does-it-wait.md"
    assert first_cells(section(guide, "Every gate")) == [name for name, _ in GATES]


# --- links and paths ----------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made from their words."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, text: str) -> Iterator[str]:
    """Name each link of a text that leads nowhere."""
    for found in LINK.finditer(text):
        target, _, anchor = found["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield found["target"]


def missing(text: str) -> Iterator[str]:
    """Name each path of this project in a text that does not exist, as it stands or as a module."""
    for mention in MENTION.findall(text):
        path = mention.rstrip("/")
        if not any((ROOT / place).exists() for place in (path, f"loopr/{path}", f"loopr/{path}.py")):
            yield mention


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link to a page, a file or a heading of this project finds it."""
    assert list(broken(page, prose(page))) == []


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=name_of)
def test_every_path_that_is_named_exists(page: Path) -> None:
    """A page that people write names only files that are there."""
    assert list(missing(prose(page))) == []


def test_each_rule_can_fail() -> None:
    """A link and a path that lead nowhere are found, those that lead somewhere are let by."""
    links = (
        "[a](guide/getting-started.md) [b](nowhere.md) [c](glossary.md#gates) [d](glossary.md#nothing) [e](#the-idea)"
    )
    assert list(broken(ARCHITECTURE, links)) == ["nowhere.md", "glossary.md#nothing"]
    assert list(missing("`core/gates` `core/nothing` `docs/` `tests/house` `loopr/nothing.py` `specs/x`")) == [
        "core/nothing",
        "loopr/nothing.py",
    ]
