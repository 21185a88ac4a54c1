"""The one door to git: every call names its git directory and its work tree, and none relies on discovery.

Knows how git is started and which of its habits are switched off for calls of ours. Must never know loops, branches or
what an answer means.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from loopr.errors import SettingsError, WorldError
from loopr.world.repo.locks import foreign_lock

Settings = tuple[tuple[str, str], ...]
Kept = tuple[int, ...]
Environment = dict[str, str]

QUIET: Settings = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.editor", "true"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("rerere.enabled", "false"),
    ("rebase.autoStash", "false"),
    ("merge.autoStash", "false"),
    ("rebase.updateRefs", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("i18n.commitEncoding", "utf-8"),
    ("core.filesRefLockTimeout", "1000"),
    ("core.packedRefsTimeout", "1000"),
    ("advice.addEmbeddedRepo", "false"),
    ("log.showSignature", "false"),
)
"""What is off even in a checkout of the user's."""

OURS: Settings = (
    ("core.sparseCheckout", "false"),
    ("core.splitIndex", "false"),
    ("index.sparse", "false"),
    ("core.ignoreStat", "false"),
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.safecrlf", "false"),
    ("merge.directoryRenames", "false"),
    ("merge.conflictStyle", "merge"),
    ("status.showUntrackedFiles", "all"),
    ("core.untrackedCache", "false"),
    ("core.preloadIndex", "false"),
)
"""What is fixed besides in worktrees of ours: a command may have set it otherwise."""

LOCAL_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)
"""What `git rev-parse --local-env-vars` lists, and what changes how a repository is found or named."""

_TRIES = 9
_ENOUGH_SECS = 2.0  # git has waited for a lock by itself then, and what holds it may hold it for ever
_FIRST_WAIT_SECS = 0.005
_PASSING = re.compile(
    r"failed to read .*commondir|could not create (leading )?director|could not lock config file"
    r"|could not open '.*/worktrees/.*' for writing|gc is already running"
    r"|Unable to create '.*\.lock': File exists|Another git process seems to be running"
)
_HOST = re.compile(
    r"No space left|Read-only file system|Too many open files|Cannot allocate memory|Input/output error"
    r"|Resource temporarily unavailable|quota exceeded|\.lock': File exists|could not lock config file",
    re.IGNORECASE,
)
_TOLD_LINES = 6


class Said(NamedTuple):
    """The answer of one call of git."""

    code: int
    out: bytes
    err: str

    @property
    def line(self) -> str:
        """The answer as one line of text."""
        return os.fsdecode(self.out).strip()

    @property
    def parts(self) -> list[str]:
        """The answer as texts that end with a NUL each."""
        return os.fsdecode(self.out).split("\0")[:-1]


class GitFailed(WorldError):
    """Git refused; `said` is what it said, and `host` is true where the machine is the cause.

    `lock` tells of a lock file of another git, if that kept it waiting.
    """

    def __init__(self, what: str, said: Said) -> None:
        """Name the call in words, and hand over the answer."""
        lines = [line for line in said.err.splitlines() if not line.startswith("hint:")]
        self.said = said
        self.host = bool(_HOST.search(said.err))
        self.lock = foreign_lock(said.err)
        super().__init__(f"{what}: " + " ".join(lines[-_TOLD_LINES:] or [f"git ended with {said.code}"]))


@dataclass(frozen=True, slots=True)
class Door:
    """Git, standing before one git directory and one work tree; any thread may use it."""

    git_dir: Path
    common: Path
    work_tree: Path
    settings: Settings = QUIET + OURS
    variables: tuple[tuple[str, str], ...] = ()
    kept: Kept = ()  # locks that a git which outlives us keeps held
    union: tuple[str, ...] = ()  # patterns of files whose both sides a merge keeps

    def with_index(self, index: Path) -> Door:
        """Return the same door with an index of its own."""
        return replace(self, variables=(*self.variables, ("GIT_INDEX_FILE", str(index))))

    def keeping(self, *descriptors: int) -> Door:
        """Return the same door, whose calls keep these locks for as long as they run, whatever becomes of us."""
        return replace(self, kept=(*self.kept, *descriptors))

    def ask(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> Said:
        """Call git and return whatever it answers; what passes by itself is tried again for half a second or so."""
        named = {"GIT_DIR": str(self.git_dir), "GIT_COMMON_DIR": str(self.common), "GIT_WORK_TREE": str(self.work_tree)}
        command = [*(word for key, value in self.settings for word in ("-c", f"{key}={value}")), *arguments]
        guard = GUARDS.get(self.common)
        own = dict(self.variables) | dict(variables or {})
        wait_secs, ends = _FIRST_WAIT_SECS, time.monotonic() + _ENOUGH_SECS
        for left in reversed(range(_TRIES)):
            guarded = guard(self) if guard is not None else {}  # each time: settings may change while it waits
            said = call(self.work_tree, command, named | guarded | own, stdin, self.kept)
            if said.code == 0 or not left or not _PASSING.search(said.err) or time.monotonic() > ends:
                break
            time.sleep(wait_secs)
            wait_secs *= 2
        return said

    def run(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> Said:
        """Call git and return its answer, or raise what it says."""
        said = self.ask(*arguments, stdin=stdin, variables=variables)
        if said.code:
            raise GitFailed(f"git {arguments[0]} failed in {self.work_tree}", said)
        return said


GUARDS: dict[Path, Callable[[Door], Environment]] = {}
"""By repository, what overrules settings that nobody knew of when the work began (`guarding.py`)."""


def call(folder: Path, words: list[str], environment: Mapping[str, str], stdin: bytes = b"", kept: Kept = ()) -> Said:
    """Run git once in a folder, apart from our terminal, without what a hook or a caller left in the environment.

    The folder goes to git itself: GitPython would replace a $NAME in its path, and where that leads nowhere go on
    wherever we happen to stand.
    """
    if not folder.is_dir():
        raise WorldError(f"the folder {folder} is gone", hint="it is made anew at the next attempt")
    inherited = [name for name in LOCAL_VARIABLES if name in os.environ and name not in environment]
    drop = ["env", *(word for name in inherited for word in ("-u", name))] if inherited else []
    calm = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
    command = [*drop, "git", "-C", str(folder), *words]
    if not stdin:
        return _execute(command, calm | dict(environment), None, kept)
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        return _execute(command, calm | dict(environment), given, kept)


def _execute(command: list[str], environment: dict[str, str], given: IO[bytes] | None, kept: Kept) -> Said:
    """Start git through GitPython, one object for each call: a shared one is not safe among threads."""
    try:
        from git.cmd import Git
        from git.exc import GitCommandNotFound
    except ImportError as error:
        raise _no_git() from error
    try:
        said = Git().execute(
            command,
            istream=cast(BinaryIO | None, given),
            env=environment,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            start_new_session=True,
            pass_fds=kept,
        )
    except GitCommandNotFound as error:
        raise _no_git() from error
    except OSError as error:
        raise WorldError(f"git cannot be started: {error.strerror or error}") from error
    return Said(int(said[0]), bytes(said[1]), str(said[2]))


def _no_git() -> SettingsError:
    """Say that there is no git."""
    return SettingsError("git cannot be used", hint="install git 2.38 or newer")
