"""Work of loops that is not in a commit that a plan is to stand at: files they made, and it lacks.

Knows commits and their trailers. Must never decide the fate of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopr.world.repo.ground import Ground
from loopr.world.repo.scanning import changed_entries

MOST_ASKED = 20
_ABSENT = "000000"


def missing_work(ground: Ground, stands: str, then: str) -> dict[str, str]:
    """Return the files that a plan has now and would lack then, each with the loop that made it.

    Of very many files the first are looked at; files that no loop made are left out.
    """
    gone = [each.path for each in changed_entries(ground.door, stands, then) if each.mode == _ABSENT]
    found = {path: _maker(ground, stands, path) for path in gone[:MOST_ASKED]}
    return {path: loop for path, loop in found.items() if loop}


def _maker(ground: Ground, commit: str, path: str) -> str:
    """Return the loop whose landing last changed a file; nothing where somebody else did."""
    trailer = "--format=%(trailers:key=Loopr-Loop,valueonly,separator=%x00)%x00"
    said = ground.door.ask("log", "-1", trailer, commit, "--", f":(top,literal){path}")
    return said.parts[0] if said.code == 0 and said.parts else ""


def missing_words(found: dict[str, str], base: str, known: Sequence[str]) -> str:
    """Say which files are gone, and which command makes them again; `known` are declared loops."""
    makers = list(dict.fromkeys(each for each in found.values() if each in known))
    paths = [path for path, loop in found.items() if loop in makers]
    if not paths:
        return ""
    named = f"{', '.join(paths[:3])}{f' and {len(paths) - 3} more' if len(paths) > 3 else ''}"
    them = "it" if len(paths) == 1 else "them"
    return f"{base} lacks {named}, made here: `loopr retry --fresh {' '.join(makers[:5])}` makes {them} again"
