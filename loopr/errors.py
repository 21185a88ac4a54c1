"""Every error that loopr raises on purpose, and the exit code each one means.

    LooprError
    ├─ UserError        2   the request or a file is wrong; says what, where and what to do; no traceback
    │  ├─ NotAllowed    2   a loop, a hook or a pull worker wished for what is for a person
    │  ├─ NotFound      3   no such id or file, or several that match
    │  ├─ StaleLease    3   the lease that was quoted is not the loop's lease any more
    │  ├─ SettingsError 78  settings or workspace are wrong
    │  ├─ EngineHeld    6   another engine holds the workspace
    │  └─ Deferred      75  nothing could start now; the same request may work later
    ├─ WorldError           the outside world refused; becomes an observation or, at a verb, exit 78
    └─ Impossible       70  our own bug: the loop, the event and the story so far

Knows nothing of loops, files or terminals beyond the words it carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

EXITS: Mapping[int, str] = {
    0: "done",
    1: "settled with something failed, parked, or waiting for what was cancelled",
    2: "wrong usage, or a bad plan file",
    3: "no such id or file, or several that match; a stale lease",
    4: "waiting for a person",
    5: "a budget is used up",
    6: "another engine holds the workspace",
    70: "a bug of loopr's",
    75: "the queue is full, nothing could be leased now, or a `wait` or `run --for` ran out",
    78: "the settings are wrong, or the workspace cannot be used; `doctor` and `config check` have found something",
    130: "interrupted by Ctrl-C",
    143: "ended by SIGTERM",
}
"""What every exit code of loopr means; where several would apply, the first of 1, 5 and 4 does."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (``file:line:col`` or a key), what, and what to do about it."""

    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Render as one line: ``where message (hint)``."""
        head = f"{self.where} {self.message}" if self.where else self.message
        return f"{head} ({self.hint})" if self.hint else head


class LooprError(Exception):
    """The root of all errors that loopr raises on purpose."""

    exit_code = 70
    code = "internal"


class UserError(LooprError):
    """The request or a file is wrong in a way that a person can mend."""

    exit_code = 2
    code = "usage"

    def __init__(self, message: str, *, where: str = "", hint: str = "", problems: Sequence[Problem] = ()) -> None:
        """Say one problem in words, or hand over several at once through `problems`."""
        self.problems: tuple[Problem, ...] = tuple(problems) or (Problem(message, where, hint),)
        self.message = message
        self.hint = hint
        super().__init__("\n".join(str(problem) for problem in self.problems))


class NotAllowed(UserError):
    """A loop, a hook or a pull worker wished for what is for a person."""

    code = "not_allowed"


class PlanError(UserError):
    """An artifact or a plan file is malformed; the tree stays as it was."""

    code = "bad_file"


class NotFound(UserError):
    """An id or a file that does not exist, or a short id that fits several loops."""

    exit_code = 3
    code = "unknown_id"


class StaleLease(UserError):
    """A result or a renewal quoted a lease that is no longer the loop's."""

    exit_code = 3
    code = "stale_lease"


class SettingsError(UserError):
    """The settings, or the repository they sit in, cannot be used as they are."""

    exit_code = 78
    code = "bad_settings"


class EngineHeld(UserError):
    """Another engine holds the workspace."""

    exit_code = 6
    code = "engine_held"


class Deferred(UserError):
    """Nothing is wrong, but nothing could be started or leased now."""

    exit_code = 75
    code = "deferred"


class WorldError(LooprError):
    """Disk, git or SQLite refused; the same step may succeed later."""

    exit_code = 78
    code = "world"

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Say what was tried, what came back and what to do."""
        self.message = message
        self.hint = hint
        super().__init__(f"{message} ({hint})" if hint else message)


class Moved(WorldError):
    """The journal moved on since the caller read it: catch up and decide again."""

    code = "moved"


class Impossible(LooprError):
    """A bug of ours: an event that the lifecycle does not allow reached the strict part of the core."""

    exit_code = 70
    code = "impossible"
