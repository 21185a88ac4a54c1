"""From the words of a person to the loop that is meant; and things, counted.

By exact id, else by whole path segments from the end, else by how the id, or its last segment, begins. Must never guess
between several.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.errors import NotFound

MOST_NAMED = 5


def counted(number: int, word: str) -> str:
    """Count things, of which one is called by a word."""
    return f"{number} {word}{'s' * (number != 1)}"


def find_id(known: Iterable[str], text: str) -> str:
    """Return the one id that a text means; where it begins a loop and others below it, the loop is meant."""
    ids = list(known)
    if text in ids:
        return text
    wanted = text.strip("/")
    if wanted in ids:
        return wanted
    found = [each for each in ids if wanted and each.endswith(f"/{wanted}")]
    if len(found) == 1:
        return found[0]
    if not found:
        found = [each for each in ids if wanted and each.startswith(wanted)]
        top = min(found, key=len, default="")
        if found and all(each == top or each.startswith(f"{top}/") for each in found):
            return top
        found = found or [each for each in ids if wanted and each.rpartition("/")[2].startswith(wanted)]
        if len(found) == 1:
            return found[0]
    if found:
        named = ", ".join(sorted(found)[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise NotFound(f"{text!r} fits {len(found)} loops: {named}{more}", hint="name it with more of its path")
    from difflib import get_close_matches  # slow to import

    short = {each.rpartition("/")[2]: each for each in reversed(ids)}
    near = get_close_matches(wanted, ids, n=1) or [short[each] for each in get_close_matches(wanted, short, n=1)]
    hint = f"did you mean {near[0]}?" if near else "`loopr ls` lists the loops"
    raise NotFound(f"there is no loop {text!r}", hint=hint)
