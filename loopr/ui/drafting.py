"""The settings that a repository is likely to want, each with its reason, and their place in loopr.yml.

Knows facts that were seen, as plain values. Must never look at a disk, ask git, nor set anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from loopr.world.recipes import makes_environment
from loopr.world.suites import Suite

CHECK, SETUP, CACHE, UNION = "check", "worktrees.setup", "worktrees.cache", "merge.union"
INCLUDE = "worktrees.include"
MOST_SUITES, MOST_COPIES = 4, 5
_LANGUAGES = {
    "Python": "py pyx",
    "JavaScript": "js ts jsx tsx mjs cjs mts cts vue",
    "Go": "go",
    "Rust": "rs",
    "Ruby": "rb",
    "PHP": "php",
    "Elixir": "ex exs",
    "Java": "java kt scala",
    "C": "c h cc cpp hpp cxx",
    "shell": "sh bash",
}
LANGUAGE_OF = {f".{each}": name for name, ends in _LANGUAGES.items() for each in ends.split()}
_PROGRAMS = {
    "Python": "python tox nox",
    "JavaScript": "npm pnpm yarn bun",
    "Go": "go",
    "Rust": "cargo",
    "Ruby": "bundle",
    "PHP": "vendor/bin/phpunit",
    "Elixir": "mix",
    "Java": "mvn ./gradlew",
    "C": "./configure cmake meson",
}
_SPEAKS = {each: name for name, programs in _PROGRAMS.items() for each in programs.split()}
_INSTALLS = {
    "Ruby": {"Gemfile": "bundle install"},
    "PHP": {"composer.json": "composer install"},
    "Elixir": {"mix.exs": "mix deps.get"},
    "JavaScript": {
        "package-lock.json": "npm ci",
        "npm-shrinkwrap.json": "npm ci",
        "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
        ".yarnrc.yml": "yarn install --immutable",
        "yarn.lock": "yarn install --frozen-lockfile",
        "bun.lockb": "bun install --frozen-lockfile",
        "bun.lock": "bun install --frozen-lockfile",
        "package.json": "npm install --no-package-lock",
    },
}
"""The files that name packages, and the command that installs them: the first that is there."""

_FETCHED = {"JavaScript": "node_modules", "Ruby": "vendor/bundle", "PHP": "vendor"}
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests)\.py$")
_BEGINS_PYTHON = re.compile(
    r"(?:^|[;&|(]\s*)[@+-]*\s*(?:\w+=\S+\s+)*(?:python[\d.]*|pytest|py\.test|coverage|mypy|ruff|flake8)\b"
)
_LOG = re.compile(r"(?:CHANGE(?:S|LOG)|HISTORY|NEWS|RELEASES)(?:\.\w+)?", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z./][\w ./=@,&|+-]*")
_MAKES = {"Python": ("*.egg-info/", "__pycache__/"), "JavaScript": ("node_modules/",)}


class Facts(NamedTuple):
    """The facts of a repository: its committed files, and what is on the machine and in the checkout.

    `suites` run tests, and `behind` are the lines that each has a runner run. `steps` make the
    virtual environment `environment`, which something needs where it `wants_environment`. Suites
    `below` are those of folders, where there is none at the top. Other settings may judge and set
    up already.
    """

    files: frozenset[str]
    is_repository: bool = True
    suites: tuple[Suite, ...] = ()
    behind: Mapping[str, Sequence[str]] = {}
    programs: frozenset[str] = frozenset()
    environment: str = ".venv"
    wants_environment: bool = False
    steps: str = ""
    has_packages: bool = False
    copies: tuple[str, ...] = ()
    below: tuple[Suite, ...] = ()
    is_judged: bool = False
    is_set_up: bool = False


class Proposal(NamedTuple):
    """A setting that may be wanted, and the reason; one that is not `used` yet stands as a comment."""

    key: str
    value: str
    why: str
    used: bool = True


def languages_of(files: Iterable[str]) -> Counter[str]:
    """Count the files of each programming language."""
    ends = (LANGUAGE_OF.get(PurePosixPath(each).suffix.lower(), "") for each in files)
    return Counter(filter(None, ends))


def ranked(suites: Iterable[Suite], files: frozenset[str]) -> list[Suite]:
    """Order suites: those of a runner such as make first, then by the files of their language."""
    counted = languages_of(files)
    found = [*suites]
    plain = next((each for each in sorted(files) if _TEST_FILE.search(each)), "")
    if plain and not any(language_of(each.command) == "Python" for each in found):
        found.append(Suite("python -m pytest -q", plain))
    return sorted(found, key=lambda each: -counted.get(language_of(each.command), 1 << 30))


def drafted(facts: Facts) -> list[Proposal]:
    """Propose settings; a check or a setup is used only if all that it names is there."""
    checks = [*islice(_checks(facts), MOST_SUITES)]
    likely = (suite for suite, each in checks if each.used or (facts.is_judged and each.why == suite.file))
    used = next(likely, None)
    found = [each for _, each in checks]
    return found + [*_worktrees(facts, used), *_merged(facts)] if facts.is_repository else found


def makes(facts: Facts, proposals: Iterable[Proposal]) -> tuple[str, ...]:
    """List the folders, in the words of a `.gitignore`, that the proposals in use make."""
    setup = next((each.value for each in proposals if each.key == SETUP and each.used), "")
    own = [f"{facts.environment}/", *_MAKES["Python"]] if facts.environment in setup else []
    node = any(each in setup for each in ("npm ", "pnpm ", "yarn ", "bun "))
    return (*own, *(_MAKES["JavaScript"] if node else ()))


# --- the check ------------------------------------------------------------------------------------


def _checks(facts: Facts) -> Iterator[tuple[Suite, Proposal]]:
    """Propose each suite as the check: the first that can run is used, the others are named."""
    used = facts.is_judged
    for suite in facts.suites:
        lacks = _lacks(facts, suite)
        why = f"{suite.file}: {lacks}" if lacks else suite.file
        yield suite, Proposal(CHECK, _begun(facts, suite), why, not (lacks or used))
        used = used or not lacks
    yield from ((each, Proposal(CHECK, each.command, each.file, used=False)) for each in facts.below)


def _lacks(facts: Facts, suite: Suite) -> str:
    """Say what keeps a suite from running; nothing if it can."""
    if suite.file not in facts.files and facts.is_repository:
        return "not committed yet"
    if "pytest" in suite.command and not any(map(_TEST_FILE.search, facts.files)):
        return "no test_*.py is committed yet"
    absent = [each.split()[0] for each in suite.command.split(" && ") if not _is_here(facts, each)]
    return f"there is no program {absent[0]} here" if absent else ""


def _begun(facts: Facts, suite: Suite) -> str:
    """Return the command of a suite as it begins in a worktree with an environment of its own."""
    folder, words = facts.environment, suite.command
    if not facts.is_repository or not _in_environment(facts, suite):
        return words
    if words.startswith("python "):
        return f"{folder}/bin/{words}"
    return f'PATH="$PWD/{folder}/bin:$PATH" {words}'


def _in_environment(facts: Facts, suite: Suite) -> bool:
    """Say whether a suite runs programs of a virtual environment that it does not make itself."""
    if suite.command.startswith("python "):
        return True
    lines = facts.behind.get(suite.command, ())
    runs = any(map(_BEGINS_PYTHON.search, lines)) or _names_environment(facts, lines)
    return facts.wants_environment and runs and not makes_environment(lines)


def _names_environment(facts: Facts, lines: Iterable[str]) -> bool:
    """Say whether lines name programs of the environment by their place."""
    return any(f"{facts.environment}/bin/" in each for each in lines)


def language_of(command: str) -> str:
    """Return the language whose tests a command runs; nothing for a runner of any."""
    program = command.split(maxsplit=1)[0] if command.strip() else ""
    is_python = re.search(r"(?:^|/)(?:python[\d.]*|pytest|py\.test)$", program)
    return "Python" if is_python else _SPEAKS.get(program, "")


# --- worktrees ------------------------------------------------------------------------------------


def _worktrees(facts: Facts, used: Suite | None) -> Iterator[Proposal]:
    """Propose how worktrees get what is not committed."""
    main = next((name for name, _ in languages_of(facts.files).most_common(1)), "")
    language = (language_of(used.command) if used is not None else "") or main
    parts, whys = [], []
    if ".gitmodules" in facts.files:
        parts.append("git submodule update --init --recursive")
        whys.append(".gitmodules: their folders are empty in a new worktree")
    in_one = facts.wants_environment and used is None and language == "Python"
    if facts.steps and (in_one or (used is not None and _in_environment(facts, used))):
        parts.append(facts.steps)
        whys.append("a virtual environment cannot be copied: each worktree makes its own")
    elif install := _install(facts, language):
        parts.append(install[1])
        fetched = ": else node finds those of your checkout" * (language == "JavaScript")
        whys.append(f"{install[0]} names packages{fetched}")
    if parts:
        used_now = all(_is_here(facts, each) for part in parts for each in part.split(" && "))
        used_now = used_now and not facts.is_set_up
        yield Proposal(SETUP, " && ".join(parts), "; ".join(whys), used_now)
    yield from _cached(facts, language, parts)
    if facts.copies:
        names = ", ".join(facts.copies[:MOST_COPIES])
        why = f"git ignores {names}: a file of that name copies what it lists into each worktree"
        yield Proposal(INCLUDE, ".worktreeinclude", why, used=False)


def _install(facts: Facts, language: str) -> tuple[str, str] | None:
    """Return the file that names packages of a language, and the command that installs them."""
    if language == "JavaScript" and not facts.has_packages:
        return None
    files = _INSTALLS.get(language, {}).items()
    return next(((name, command) for name, command in files if name in facts.files), None)


def _cached(facts: Facts, language: str, parts: Sequence[str]) -> Iterator[Proposal]:
    """Propose to keep what an installer has fetched for the next worktree."""
    install = _install(facts, language)
    if install is not None and install[1] in parts and language in _FETCHED:
        value = f"{{key: [{install[0]}], paths: [{_FETCHED[language]}]}}"
        yield Proposal(CACHE, value, f"`{install[1]}` is run once for each {install[0]}", used=False)


def _is_here(facts: Facts, command: str) -> bool:
    """Say whether the program of a command is on the machine, or made by the setup itself."""
    program = command.split(maxsplit=1)[0]
    is_python = program == "python" and "python3" in facts.programs
    return "/" in program or program in facts.programs or is_python


# --- landing --------------------------------------------------------------------------------------


def _merged(facts: Facts) -> Iterator[Proposal]:
    """Propose to keep both sides of a list to which every change adds a line."""
    logs = sorted(each for each in facts.files if _LOG.fullmatch(each))
    if logs:
        why = "every change adds a line there: both sides of a conflict are kept"
        yield Proposal(UNION, f"[{', '.join(map(scalar, logs))}]", why, used=False)


# --- the text -------------------------------------------------------------------------------------


def scalar(text: str) -> str:
    """Write a text as YAML reads it back."""
    if _PLAIN.fullmatch(text) and text.strip() == text and text not in ("true", "false", "null"):
        return text
    return "'" + text.replace("'", "''") + "'"


def blocks_of(
    proposals: Sequence[Proposal],
    types: Sequence[str],
    agent: str = "",
) -> dict[str, list[str]]:
    """Write proposals as the blocks of the settings file that they stand in."""
    found = {}
    if agent or any(each.key == CHECK for each in proposals):
        checks = [each for each in proposals if each.key == CHECK]
        found["types"] = [*_types(checks, types, agent)]
    own = [each for each in proposals if each.key.startswith("worktrees.")]
    if own:
        found["worktrees"] = [*_block("worktrees", own)]
    found["merge"] = [*_block("merge", [each for each in proposals if each.key == UNION])]
    return {name: lines for name, lines in found.items() if lines}


def _types(checks: Sequence[Proposal], types: Sequence[str], agent: str) -> Iterator[str]:
    """Write who works for each type, and what judges the last one."""
    used = agent or any(each.used for each in checks)
    mark = "" if used else "#"
    yield f"{mark}types:"
    width = max(map(len, types)) + 1
    above = types[:-1] if agent else ()
    yield from (f"  {f'{name}:':{width}} {{agent: {agent}}}" for name in above)
    yield f"{mark}  {types[-1]}:"
    if agent:
        yield f"    agent: {agent}"
    for each in checks:
        yield f"{'' if each.used else '#'}    check: {scalar(each.value)}  # {each.why}"
    if not checks:
        yield "#    check: make test  # exit 0 is yes; it judges the tree that would land"


def _block(name: str, own: Sequence[Proposal]) -> Iterator[str]:
    """Write a block of settings, each under its reason."""
    if own:
        yield f"{'' if any(each.used for each in own) else '#'}{name}:"
    for each in own:
        mark = "" if each.used else "#"
        value = each.value if each.value[0] in "[{" else scalar(each.value)
        yield f"  # {each.why}" if not mark else f"#  # {each.why}"
        yield f"{mark}  {each.key.partition('.')[2]}: {value}"
