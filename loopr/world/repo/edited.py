"""Which files of a person's checkout are not committed as they are there.

Must never know what a file is for, nor change one.
"""

from __future__ import annotations

from loopr.world.repo.ground import Ground

_ASK = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all")


def edited(ground: Ground) -> list[str]:
    """List the files of the checkout that are changed, added or deleted since its commit; none where git cannot say."""
    said = ground.users_door.ask(*_ASK) if ground.top is not None else None
    rows = said.parts if said is not None and said.code == 0 else []
    return [path for path in (row[3:] for row in rows) if path and not ground.is_left_out(path)]
