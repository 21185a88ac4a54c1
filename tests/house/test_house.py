"""The rules of the house that no ready-made tool checks: sizes, names, docstrings, and where SQL may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "loopr"

MODULE_LINES = 350
FUNCTION_LINES = 40

SQL = re.compile(
    r"\b(SELECT\s[^;]*\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|PRAGMA\s+\w+"
    r"|(CREATE|DROP|ALTER)\s+(TEMP\s+|UNIQUE\s+)?(TABLE|INDEX|VIEW|TRIGGER)|BEGIN\s+(IMMEDIATE|EXCLUSIVE|DEFERRED))\b"
)
EMPTY_WORDS = re.compile(r"(Manager|Handler|Helper|Util|Utils|Service|Info|Data|Base)(?=[A-Z_]|$)")
EMPTY_STEMS = re.compile(r"(^|_)(manager|handler|helper|util|service)s?(_|$)|^(base|common|misc)$")
LEFTOVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
REGISTRIES = re.compile(
    r"\b(pypi|pythonhosted|npmjs|yarnpkg|crates|rubygems|artifactory|jfrog)\.(org|com|io)\b|-index-url\b|--find-links\b"
    r"|https?://[^\s)>\"']*/simple\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w.~*}/<-])(/(home|Users|root|work|tmp|mnt|srv)/[\w.]|[A-Z]:\\Users\\)")

SKIPPED_FOLDERS = {"worktrees", "build", "dist", "__pycache__", "node_modules"}
OWN_FOLDERS = {".ci", ".github"}
CODE_SUFFIXES = {".py", ".sh", ".toml", ".js", ".css", ".html"}

Found = Iterator[str]


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Parse every module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def texts(folder: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Read every text file of the project; git is not asked, so that an unpacked archive is checked too."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name not in OWN_FOLDERS
            if not hidden and path.name not in SKIPPED_FOLDERS and not path.is_symlink():
                yield from texts(path)
        elif path.is_file() and path.name != "loopr.local.yml":
            content = path.read_bytes()
            if b"\0" not in content:
                yield path, content.decode("utf-8", "replace")


def at(path: Path, line: int) -> str:
    """Name a place as an editor opens it."""
    return f"{path.relative_to(ROOT)}:{line}"


def matches(pattern: re.Pattern[str], wanted: Callable[[Path], bool]) -> Found:
    """Name each line of the project's files in which a pattern is found."""
    for path, text in texts():
        if wanted(path):
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    yield f"{at(path, number)} {line.strip()[:120]}"


def is_code(path: Path) -> bool:
    """Tell code and build files from prose."""
    return path.suffix in CODE_SUFFIXES or path.name == "Makefile" or path.parent.name == ".ci"


def report(found: Found) -> None:
    """Fail with one line for each place."""
    places = list(found)
    assert not places, "\n" + "\n".join(places)


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Give the public functions and classes of a module, and the public methods of those classes."""
    queue: list[ast.stmt] = list(tree.body)
    for node in queue:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                queue.extend(node.body)


def prose(tree: ast.Module) -> set[int]:
    """Give the identities of the constants that are docstrings: bare strings among the statements."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_a_module_holds_one_idea() -> None:
    """No module of the package is longer than 350 lines."""
    sizes = ((path, path.read_text("utf-8").count("\n")) for path, _ in trees())
    report(f"{at(path, lines)} is longer than {MODULE_LINES} lines" for path, lines in sizes if lines > MODULE_LINES)


def long_functions() -> Found:
    """Name the functions that do not fit on a screen."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    yield f"{at(path, node.lineno)} {node.name} has {lines} lines"


def test_a_function_fits_on_a_screen() -> None:
    """No function of the package has more than 40 lines."""
    report(long_functions())


def test_a_module_opens_with_what_it_knows() -> None:
    """Every module of the package begins with a docstring."""
    report(f"{at(path, 1)} has no docstring" for path, tree in trees() if not ast.get_docstring(tree))


def test_what_is_public_is_explained() -> None:
    """Every public function, class and method of the package has a docstring."""
    report(
        f"{at(path, node.lineno)} {node.name} has no docstring"
        for path, tree in trees()
        for node in public(tree)
        if not ast.get_docstring(node)
    )


def test_sql_lives_in_the_journal() -> None:
    """SQL is written in loopr/world/journal only, so that a change of schema has one place."""
    report(
        f"{at(path, node.lineno)} {node.value.strip()[:80]!r}"
        for path, tree in trees()
        if not path.relative_to(PACKAGE).as_posix().startswith("world/journal")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if SQL.search(node.value) and id(node) not in prose(tree)
    )


def empty_names() -> Found:
    """Name what is called after nothing in particular."""
    for path, tree in trees():
        if EMPTY_STEMS.search(path.stem):
            yield f"{at(path, 1)} the module's name says nothing"
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and EMPTY_WORDS.search(node.name):
                yield f"{at(path, node.lineno)} class {node.name}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and EMPTY_STEMS.search(node.name):
                yield f"{at(path, node.lineno)} def {node.name}"


def test_names_say_something() -> None:
    """Nothing is called Manager, Handler, Helper, Util, Service, Info, Data or Base."""
    report(empty_names())


def test_nothing_is_left_for_later() -> None:
    """Code holds no notes to its own author: what is missing is an issue, what is wrong is mended."""
    report(matches(LEFTOVERS, is_code))


def test_no_file_names_a_registry() -> None:
    """Where packages come from is the machine's business: no file names a registry or an index."""
    report(matches(REGISTRIES, lambda path: path != Path(__file__)))


def test_no_file_names_a_place_on_one_machine() -> None:
    """No file holds an absolute path that exists on its author's machine only."""
    report(matches(MACHINE_PATHS, lambda path: path != Path(__file__)))


@pytest.mark.parametrize(
    ("pattern", "caught", "let_by"),
    [
        (SQL, "SELECT seq FROM events", "select the oldest from the queue"),
        (SQL, "PRAGMA synchronous=FULL", "a pragmatic choice"),
        (SQL, "INSERT OR REPLACE INTO loops", "INSERT a coin into the slot"),
        (EMPTY_WORDS, "LoopManager", "Managed"),
        (EMPTY_WORDS, "DataFrameThing", "Database"),
        (EMPTY_STEMS, "text_utils", "utilisation"),
        (EMPTY_STEMS, "common", "common_directory"),
        (LEFTOVERS, "# " + "TO" + "DO later", "todos"),
        (REGISTRIES, "pip install -i https://mirror.example/simple loopr", "a simple page"),
        (MACHINE_PATHS, "cd /home/ada/loopr", "https://example.org/home/ada"),
        (MACHINE_PATHS, '"/tmp/x"', "$HOME/tmp/x"),
    ],
)
def test_each_rule_can_fail(pattern: re.Pattern[str], caught: str, let_by: str) -> None:
    """A rule catches what it is about, and lets its nearest innocent neighbour by."""
    assert pattern.search(caught)
    assert not pattern.search(let_by)
