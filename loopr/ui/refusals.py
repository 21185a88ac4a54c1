"""What a request is told that cannot be fulfilled: the same words and the same document on every surface.

Knows the errors. Must never know a terminal or a protocol.
"""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from loopr.errors import LooprError, UserError, WorldError

SCHEMA = 1
BUG = 70
_REMEDIES = {
    errno.ENOSPC: "free some space, `loopr gc` finds what loopr no longer needs, then try again",
    errno.EDQUOT: "free some space, `loopr gc` finds what loopr no longer needs, then try again",
    errno.EROFS: "the file system is read-only: mount it writable",
    errno.EACCES: "check the owner and the permissions there",
    errno.EPERM: "check the owner and the permissions there",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


class Refusal(NamedTuple):
    """What is wrong, a line for each problem, apart from that what to do if there is only one, and the exit code."""

    code: str
    lines: tuple[str, ...]
    hint: str
    exit_code: int

    def document(self) -> dict[str, Any]:
        """Return the document of a failure."""
        message = "\n".join(self.lines)
        return {"schema": SCHEMA, "error": {"code": self.code, "message": message, "hint": self.hint or None}}


def refusal(error: Exception) -> Refusal:
    """Say what an error means to whoever asked."""
    match error:
        case UserError():
            return Refusal(error.code, *_problems(error), error.exit_code)
        case WorldError():
            return Refusal(error.code, (error.message,), error.hint, error.exit_code)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            hint = _REMEDIES.get(error.errno or 0, "")
            return Refusal(WorldError.code, (f"{where}{error.strerror or error}",), hint, WorldError.exit_code)
    code = error.code if isinstance(error, LooprError) else LooprError.code
    return Refusal(code, (f"{type(error).__name__}: {error}",), "this is a bug of loopr's: please report it", BUG)


def _problems(error: UserError) -> tuple[tuple[str, ...], str]:
    """Return a line for each problem; the hint of a single one stands apart."""
    first, *more = error.problems
    if more:
        return tuple(str(each) for each in error.problems), ""
    return (f"{first.where} {first.message}".strip(),), "" if first.hint in first.message else first.hint
