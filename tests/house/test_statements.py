"""The page of statements: every one has its place, stands as it says, and has a test that keeps it true."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/statements.md"
COUNTS = {"0": 30, "1": 43, "2": 26, "3": 50, "4": 20}


class Row(NamedTuple):
    """One statement."""

    number: str
    text: str
    where: str
    stands: str
    test: str


def rows() -> list[Row]:
    """Read the page."""
    found = re.findall(r"^\| (\d\.\d+) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return [Row(number, *(cell.strip() for cell in rest.split(" | "))) for number, rest in found]


@cache
def functions(path: str) -> frozenset[str]:
    """Name the tests of a file."""
    file = ROOT / path
    tree = ast.parse(file.read_text()) if file.is_file() else ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, kinds) and each.name.startswith("test_"))


def test_every_statement_has_its_row() -> None:
    """Statements are numbered within their document, and none is left out or said twice."""
    expected = [f"{part}.{number}" for part, most in COUNTS.items() for number in range(1, most + 1)]
    assert [each.number for each in rows()] == expected
    assert len(expected) == 169
    assert [each.number for each in rows() if not each.text] == []


def test_every_statement_stands_as_it_says() -> None:
    """A statement works, or is otherwise for a reason that is given: none is missing, and none works in part."""
    assert [each for each in rows() if not re.fullmatch(r"works|otherwise: \S.{10,}", each.stands)] == []


def test_every_statement_has_a_test_that_is_there() -> None:
    """A statement names the file and the function of its test."""
    lost = []
    for each in rows():
        path, _, name = each.test.strip("`").partition("::")
        if name not in functions(path):
            lost.append((each.number, each.test))
    assert lost == []
