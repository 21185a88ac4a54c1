"""The packages that the tests of a Python project need: an extra, a group, lists, programs.

Reads the files at the top of a checkout. Must never install anything, nor know where.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

PROJECT = "pyproject.toml"
_SCRIPT, _FIELDS, _LIST, _LISTS = "setup.py", "setup.cfg", "requirements.txt", "requirements"
_EXTRAS_OF = "optional-dependencies"
_NAMES = ("test", "tests", "testing", "dev", "develop", "development")
_MOST_NAMED, _MOST_BYTES = 8, 1_000_000
_KIND = "(?:dev|devel|develop|development|test|tests|testing)"
_FOR_TESTS = re.compile(rf"requirements[-_.]{_KIND}\.txt|{_KIND}[-_.]requirements\.txt")
_WITHIN = re.compile(rf"(?:requirements[-_.])?{_KIND}\.txt")
_TESTS = re.compile(r"(?:^|[-_./])(?:test|tests|testing)[-_.]")
_TOOLS = "pytest|tox|nox|coverage|mypy|ruff|black|flake8|pylint|isort|pyright|hypothesis"
_TOOL = re.compile(rf"""(?:^|[\s;&|(/'"`@]|-m)(?P<name>{_TOOLS})(?![\w./=-])""", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_ALSO = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)")
_OWN = re.compile(r"(?:-e|--editable)?[\s=]*\.(?:\[[^]]*\])?")
_PARTS, _PIP = re.compile(r"[;&|\n]+"), re.compile(r"\b(?:pip[\d.]*|uv)\b")
_EXTRAS = re.compile(r"""(?:^|[\s='"])\./?\[(?P<names>[\w\s,.-]+)\]""")


class _Project(NamedTuple):
    """A project as its files declare it; `installs` says whether pip can install it."""

    installs: bool
    needs: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = {}
    groups: Mapping[str, tuple[str, ...]] = {}


class _Listed(NamedTuple):
    """A list of requirements: the lists that it includes, and all packages that it leads to."""

    lists: frozenset[str]
    needs: tuple[str, ...]


class Needs(NamedTuple):
    """The arguments of pip; with `by_group` a pip that is older than 25.1 cannot read them."""

    words: tuple[str, ...]
    by_group: bool = False

    def __str__(self) -> str:
        """Return the arguments as the shell takes them."""
        plain = (each if '"' in each else each.replace("'", '"') for each in self.words)
        return " ".join(map(shlex.quote, plain))


def needs_of(top: Path, texts: Iterable[str], programs: Iterable[str] = ()) -> Needs:
    """Return the arguments of pip for the tests of a checkout, by its files and texts of commands.

    `programs` are those of an environment that is there; pytest among them is wanted too.
    """
    project, lists = _project(top), _lists(top)
    extra, group = (_first(each) for each in (project.extras, project.groups))
    dev = _for_tests(lists)
    with_plain = _LIST in lists and not (project.installs and project.needs)
    plain = [_LIST] * (with_plain and not any(_LIST in lists[each].lists for each in dev))
    has_own = any(_OWN.fullmatch(need) for each in (*plain, *dev) for need in lists[each].needs)
    own = ["-e", f".[{extra}]" if extra else "."] * (project.installs and not has_own)
    needs = [*(() if project.installs else project.needs), *project.groups.get(group, ())]
    by_group = len(project.groups.get(group, ())) > _MOST_NAMED
    named = ["--group", group] if by_group else needs
    files = [word for each in (*plain, *dev) for word in ("-r", each)]
    listed = [need for each in (*plain, *dev) for need in lists[each].needs]
    every = *project.needs, *project.extras.get(extra, ()), *needs, *listed
    provided = {_called(each) for each in every}
    wanted = dict.fromkeys(found["name"] for text in texts for found in _TOOL.finditer(text))
    wanted |= dict.fromkeys(each for each in programs if each == "pytest")
    missing = [each for each in wanted if each not in provided]
    return Needs((*own, *named, *files, *missing), by_group)


def depends(top: Path) -> bool:
    """Say whether the files of a checkout name anything that pip has to install for its tests."""
    project = _project(top)
    extra, group = (_first(each) for each in (project.extras, project.groups))
    named = project.extras.get(extra) or project.groups.get(group)
    return bool(project.needs or named or _lists(top))


def unknown_extras(command: str, text: str) -> tuple[list[str], list[str]]:
    """List the extras that a command installs undeclared, and those that the project declares.

    Where the file leaves open which there are, all count as declared.
    """
    parts = [each for each in _PARTS.split(command) if _PIP.search(each)]
    found = ",".join(each["names"] for part in parts for each in _EXTRAS.finditer(part))
    named = [each.strip() for each in found.split(",") if each.strip()]
    declared = _declared(_read_toml(text) or {}) if named else None
    if declared is None:
        return [], []
    known = {_called(each) for each in declared}
    return [each for each in dict.fromkeys(named) if _called(each) not in known], declared


def _declared(found: Mapping[str, Any]) -> list[str] | None:
    """List the extras that a project declares; None where that is not said there."""
    project = found.get("project")
    if not isinstance(project, dict) or _EXTRAS_OF in _strings(project.get("dynamic")):
        return None
    extras = project.get(_EXTRAS_OF, {})
    return list(extras) if isinstance(extras, dict) else None


# --- the files of a project -----------------------------------------------------------------------


def _project(top: Path) -> _Project:
    """Read the project that a checkout declares."""
    text, has_script = _text(top / PROJECT), (top / _SCRIPT).is_file()
    found = _read_toml(text)
    if found is None:
        return _Project(installs=True)
    project = found.get("project")
    uv = _table(_table(found, "tool"), "uv")
    installs = has_script or isinstance(project, dict) or "build-system" in found
    table = _table(found, "project")
    extras = _old_extras(_text(top / _FIELDS)) if installs else {}
    extras |= {name: _strings(each) for name, each in _table(table, _EXTRAS_OF).items()}
    groups = _table(found, "dependency-groups")
    return _Project(
        installs and uv.get("package") is not False,
        _strings(table.get("dependencies")),
        extras,
        {name: tuple(dict.fromkeys(_grouped(groups, name, ()))) for name in groups},
    )


def _grouped(groups: Mapping[str, Any], name: str, above: tuple[str, ...]) -> Iterator[str]:
    """Give the requirements of a group, with those of the groups that it includes."""
    rows = groups.get(name)
    for each in rows if isinstance(rows, list) and name not in above else ():
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict) and isinstance(within := each.get("include-group"), str):
            yield from _grouped(groups, within, (*above, name))


def _old_extras(text: str) -> dict[str, tuple[str, ...]]:
    """Return the extras that a setup.cfg declares."""
    fields = ConfigParser(interpolation=None)
    try:
        fields.read_string(text)
    except Error:
        return {}
    section = "options.extras_require"
    rows = fields.items(section) if fields.has_section(section) else []
    return {name: tuple(filter(None, value.split("\n"))) for name, value in rows}


def _lists(top: Path) -> dict[str, _Listed]:
    """Map the lists of requirements of a checkout that tests may need to their contents."""
    here, within = ([each.name for each in _files_in(top / at)] for at in (".", _LISTS))
    names = [each for each in here if each == _LIST or _FOR_TESTS.fullmatch(each)]
    names += [f"{_LISTS}/{each}" for each in within if _WITHIN.fullmatch(each)]
    return {each: _listed(top, each, frozenset()) for each in names}


def _for_tests(lists: Mapping[str, _Listed]) -> list[str]:
    """List the lists of requirements for development, but for those that another one includes.

    In the place of one that includes a list for tests stands that one: it is smaller, and fits sooner.
    """
    dev = [each for each in lists if each != _LIST]
    included = {name for each in dev for name in lists[each].lists - {each}}
    found = dict[str, None]()
    for each in dev:
        tests = [name for name in dev if name in lists[each].lists and _TESTS.search(name)]
        if each not in included:
            found.update(dict.fromkeys(tests if tests and not _TESTS.search(each) else [each]))
    return list(found)


def _listed(top: Path, name: str, above: frozenset[str]) -> _Listed:
    """Read a list of requirements, and those that it includes."""
    lists, needs = set[str](), list[str]()
    for row in _text(top / name).splitlines():
        line = row.partition(" #")[0].strip()
        if found := _ALSO.fullmatch(line):
            other = _joined(PurePosixPath(name).parent, found[1])
            lists.add(other)
            if other not in above and other != name:
                within = _listed(top, other, above | {name})
                lists |= within.lists
                needs += within.needs
        elif line and line[0] != "#":
            needs.append(line)
    return _Listed(frozenset(lists), tuple(needs))


def _joined(folder: PurePosixPath, name: str) -> str:
    """Return the path of a list that is named in another one."""
    parts = list[str]()
    for each in (folder / name).parts:
        if each == ".." and parts:
            parts.pop()
        else:
            parts.append(each)
    return "/".join(parts)


def _first(names: Mapping[str, tuple[str, ...]]) -> str:
    """Return the name under which the needs of tests stand; "" for none."""
    return next((each for each in _NAMES if each in names), "")


def _called(need: str) -> str:
    """Return the name of a requirement as pip compares it."""
    found = _NAME.match(need)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _strings(value: object) -> tuple[str, ...]:
    """Return the texts of a list; none of anything else."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _table(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table within another one, empty where there is none."""
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _read_toml(text: str) -> Mapping[str, Any] | None:
    """Read a text as TOML; None of one that is not."""
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def _files_in(folder: Path) -> list[Path]:
    """List the files of a folder, by name."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    """Read a file, nothing of one that is not there, or is no text of a usual size."""
    try:
        fits = path.is_file() and path.stat().st_size <= _MOST_BYTES
        return path.read_text("utf-8", errors="replace") if fits else ""
    except OSError:
        return ""
