"""Where the branch of a plan stands: what the journal says of it, and the move that is announced and not yet done.

The journal alone says it; a ref anywhere else is not loopr's. Knows commits as names only. Must never know git.
"""

from __future__ import annotations

from typing import Any, NamedTuple

STARTED, LANDED, ADOPTED, UPDATED, BEGUN_AGAIN = "started", "landed", "adopted", "updated", "begun_again"
"""Why the branch of a plan moves."""

BRANCH_PLACE = "branch of "
"""How the place begins of what a person is to know of a plan's branch."""

UPDATE_PLACE = "update of "
"""How the place begins of why a plan has not taken its base."""


class Moving(NamedTuple):
    """A move that is announced: `loop` and `loop_tip` say whose landing it is, if it is one.

    `base` is the base that it takes over, and `others` are loops that have other inputs there, each with the reason.
    """

    old: str
    new: str
    why: str
    loop: str = ""
    loop_tip: str = ""
    base: str = ""
    others: tuple[str, ...] = ()


class Tip(NamedTuple):
    """Where a plan's branch stands, nothing before it has begun; while it moves both commits are loopr's."""

    at: str = ""
    moving: Moving | None = None

    @property
    def begins(self) -> bool:
        """True until the branch has been made."""
        return not self.at and self.moving is not None

    @property
    def stands(self) -> str:
        """The commit that work is cut from; the one to begin at where the branch is still to be made."""
        return self.moving.new if self.moving is not None and self.begins else self.at

    def has(self, commit: str) -> bool:
        """Say whether the branch may stand at a commit."""
        return commit == self.at or (self.moving is not None and commit in (self.moving.old, self.moving.new))


NO_TIP = Tip()


def read_tip(value: Any) -> Tip:
    """Read a tip from its row."""
    at, moving = value
    if moving is None:
        return Tip(at)
    known = Moving(*moving)
    return Tip(at, known._replace(others=tuple(known.others)))
