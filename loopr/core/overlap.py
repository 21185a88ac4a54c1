"""Whether two loops mean to touch the same files, by the patterns that their entries give.

Knows patterns as text: `*` and `?` within a part of a path, `**` for any parts; a folder stands for all that is below
it. In doubt the answer is yes, for all that hangs on it is a remark. Must never know which files there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations

from loopr.core.model import Loop

ANY = "**"
_WILD = frozenset("*?[")
_ENDS = _WILD | {"]"}


def overlapping(loops: Iterable[Loop]) -> Iterator[tuple[Loop, Loop, str]]:
    """Give the pairs of siblings that mean to touch the same files, each with a pattern of the first one."""
    families: dict[str | None, list[Loop]] = {}
    for loop in loops:
        if loop.files:
            families.setdefault(loop.parent, []).append(loop)
    for family in families.values():
        for one, other in combinations(family, 2):
            shared = next((each for each in one.files if any(meet(each, that) for that in other.files)), None)
            if shared is not None:
                yield one, other, shared


def meet(one: str, other: str) -> bool:
    """Say whether some file may fit two patterns, each of which may name a folder."""
    return _meet(_parts(one), _parts(other), holds=not _WILD & set(one.rpartition("/")[2]))


def covers(patterns: Iterable[str], path: str) -> bool:
    """Say whether a file fits one of some patterns; the signs in its own name mean themselves."""
    return any(_meet(_parts(path), _parts(each), holds=False, is_path=True) for each in patterns)


def _parts(pattern: str) -> tuple[str, ...]:
    """Split a pattern into the parts of a path."""
    return tuple(each for each in pattern.split("/") if each not in ("", "."))


def _meet(one: tuple[str, ...], other: tuple[str, ...], *, holds: bool, is_path: bool = False) -> bool:
    """Say whether some path fits both.

    Where the first one `holds`, it may be a folder, as the other one if its end is plain. Where it
    `is_path` it is no pattern.
    """
    alike = _fits if is_path else _alike
    other_holds = bool(other) and not _WILD & set(other[-1])

    @cache
    def meets(at: int, there: int) -> bool:
        if there == len(other):
            return other_holds or set(one[at:]) <= {ANY}
        if at == len(one):
            return holds or set(other[there:]) <= {ANY}
        if one[at] == ANY and not is_path:
            return meets(at + 1, there) or meets(at, there + 1)
        if other[there] == ANY:
            return meets(at, there + 1) or meets(at + 1, there)
        return alike(one[at], other[there]) and meets(at + 1, there + 1)

    return meets(0, 0)


def _fits(name: str, part: str) -> bool:
    """Say whether a name fits a part of a pattern, or is called so."""
    return name == part or fnmatchcase(name, part)


def _alike(one: str, other: str) -> bool:
    """Say whether some name fits both: of two with wild signs, by what stands before the first and after the last."""
    if not (_WILD & set(one) and _WILD & set(other)):
        return fnmatchcase(one, other) or fnmatchcase(other, one)
    (begins, ends), (starts, stops) = _fixed(one), _fixed(other)
    before = begins.startswith(starts) or starts.startswith(begins)
    return before and (ends.endswith(stops) or stops.endswith(ends))


def _fixed(part: str) -> tuple[str, str]:
    """Return what is fixed at both ends of a part."""
    wild = [place for place, sign in enumerate(part) if sign in _ENDS]
    return part[: wild[0]], part[wild[-1] + 1 :]
