"""What one check found, how it is told, and how a check that fails itself becomes a finding.

Must never know a single check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from loopr.errors import LooprError, UserError, WorldError
from loopr.ui import render
from loopr.ui.times import localized

_WORDS = {True: ("ok", "good"), False: ("wrong", "bad"), None: ("note", "warn")}


class Finding(NamedTuple):
    """One row of the checkup; `ok` is None where a check does not apply, or only remarks on something."""

    check: str
    ok: bool | None
    text: str
    hint: str = ""


def finding_lines(
    found: Iterable[Finding],
    paint: render.Paint,
    size: int,
    at: int,
) -> Iterator[str]:
    """Set each finding on a line, its remedy below it; the names of checks take `size` columns."""
    for each in found:
        word, color = _WORDS[each.ok]
        text = localized(render.plain(each.text, keep_lines=True), at)
        text = text.replace("\n", "\n" + " " * (size + 9))
        yield f"{paint(color, f'{word:5}')}  {each.check:{size}}  {text}"
        if each.hint:
            yield f"{'':5}  {'':{size}}  {paint('dim', '→ ' + render.plain(each.hint))}"


def guarded(check: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return what a check found; what stops it is what it found."""
    try:
        return list(look())
    except (LooprError, OSError) as error:
        return stopped(check, error)


def stopped(check: str, error: LooprError | OSError) -> list[Finding]:
    """Turn an error into findings, one for each thing that is wrong."""
    if isinstance(error, UserError):
        return [Finding(check, False, f"{each.where} {each.message}".strip(), each.hint) for each in error.problems]
    if isinstance(error, WorldError):
        return [Finding(check, False, error.message, error.hint)]
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return [Finding(check, False, f"{where}{error.strerror or error}")]
    return [Finding(check, False, str(error))]
