"""The nouns of this package: what is asked and what is answered, as frozen values.

Paths are absolute, commits and trees are full object names, instants are milliseconds UTC. Knows no git.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from loopr.errors import Problem

Trailers = tuple[tuple[str, str], ...]


class Message(NamedTuple):
    """What a commit says: its first line, a body, trailers; and when it was made.

    Without an author it is by whoever git names; a sign-off is by whoever commits.
    """

    subject: str
    body: str = ""
    trailers: Trailers = ()
    at_ms: int = 0
    author: str = ""
    signoff: bool = False


class Start(NamedTuple):
    """Where the work of a plan begins; `branch` is empty where HEAD is detached."""

    branch: str
    commit: str


Outcome = Literal["right", "moved", "lags", "left"]


class Brought(NamedTuple):
    """What became of a plan's branch: it is where it belongs, was moved there, lags behind, or is left elsewhere.

    `foreign` is where it stood if loopr had not brought it there (empty: it was gone), kept as the ref `kept`; `folder`
    is the checkout that holds it. `behind` is true of a commit that the plan has.
    """

    outcome: Outcome
    foreign: str | None = None
    kept: str = ""
    folder: str = ""
    behind: bool = False


class Worktree(NamedTuple):
    """The checkout of one loop; `fresh` is true where it was made or made clean by this very call.

    `tip` is where the attempt begins, `base` the newest commit of the plan that it contains. Of a
    `new` one git has written all files just now.
    """

    name: str
    folder: Path
    git_dir: Path
    branch: str
    tip: str
    base: str
    fresh: bool
    copied: tuple[str, ...] = ()
    new: bool = False


class Released(NamedTuple):
    """What became of a worktree that is needed no more: gone, or kept with a reason."""

    outcome: Literal["pooled", "removed", "kept", "absent"]
    why: str = ""


class Committed(NamedTuple):
    """What the engine committed after an attempt: the tip, whether it moved, and what it refuses.

    `lands` is true where the engine has made the whole commit by itself, and nothing in it is left out of what lands.
    """

    tip: str
    moved: bool
    refused: tuple[Problem, ...] = ()
    backup: str = ""  # where commits are kept that are not on the loop's branch
    lands: bool = False


class PutBack(NamedTuple):
    """A path that is not the loop's to change, delete or add, and that lands as the plan has it."""

    path: str
    how: Literal["changed", "deleted", "added"]


class Candidate(NamedTuple):
    """The tree that would land, and what it was made from; `refused` says why it may not land even so.

    `behind` is true while the loop's branch lacks the plan's tip, `as_is` where its own tree is the one that lands.
    """

    name: str
    plan: str
    plan_tip: str
    loop_tip: str
    tree: str
    changed: tuple[str, ...]
    behind: bool
    as_is: bool
    put_back: tuple[PutBack, ...] = ()
    refused: tuple[Problem, ...] = ()

    @property
    def empty(self) -> bool:
        """True when nothing would change on the plan branch."""
        return not self.changed


class Clash(NamedTuple):
    """The loop's change does not fit the plan's tip; `laid` is true where it lies in the worktree already."""

    name: str
    plan: str
    attempt: int
    plan_tip: str
    loop_tip: str
    merged_tip: str
    tree: str
    files: tuple[str, ...]
    messages: tuple[str, ...] = ()
    laid: bool = False


class Hunk(NamedTuple):
    """One conflict in a file: its first and last line, and its text, cut if it is long."""

    first: int
    last: int
    text: str


class ClashFile(NamedTuple):
    """A file in conflict; without hunks the two sides cannot be shown as lines."""

    path: str
    hunks: tuple[Hunk, ...]


class LaidClash(NamedTuple):
    """A conflict as it lies in the worktree: what to mend, who changed the same, where the old tip is kept."""

    backup: str
    files: tuple[ClashFile, ...]
    others: tuple[str, ...]
    messages: tuple[str, ...]

    def feedback(self) -> str:
        """Say all of it in words, for whoever has to mend it."""
        lines = ["Your change does not fit what has landed meanwhile. It lies in the worktree, with conflict markers:"]
        for file in self.files:
            where = ", ".join(f"{hunk.first}-{hunk.last}" for hunk in file.hunks)
            lines.append(f"- {file.path}" + (f" lines {where}" if where else " (see below)"))
        lines += ["Edit these files until they are right and no marker is left. What git said:"]
        lines += [f"  {message}" for message in self.messages]
        lines += ["Commits on the other side:", *(f"  {each}" for each in self.others)]
        for file in self.files:
            for hunk in file.hunks:
                lines += [f"{file.path}:{hunk.first}", hunk.text]
        return "\n".join([*lines, f"Your own version is kept at {self.backup}."])


class Intent(NamedTuple):
    """What a landing is about to do, announced before it is done; doing it twice is doing it once."""

    name: str
    plan: str
    old: str
    new: str
    loop_tip: str
    touched: tuple[str, ...] = ()


class Taken(NamedTuple):
    """What taking over the plan's tip came to, and where the loop's branch stands now."""

    outcome: Literal["current", "moved", "left alone"]
    tip: str


class HomeCandidate(NamedTuple):
    """The commit that would become the tip of the base branch, and what it was made from."""

    plan: str
    branch: str
    old: str
    new: str
    tree: str
    plan_tip: str
    commits: tuple[str, ...]
    changed: tuple[str, ...]


class Refusal(NamedTuple):
    """Why a plan does not come home; nothing was changed."""

    problems: tuple[Problem, ...]


class CameHome(NamedTuple):
    """The base branch holds the plan's work; `checkout` is the folder that was brought along, if one has the branch."""

    branch: str
    commit: str
    checkout: Path | None
    adopted: tuple[str, ...] = ()


class Leftover(NamedTuple):
    """Something of loopr's that may be needed no more: whether it may go, and why or why not."""

    kind: Literal["worktree", "branch", "ref", "folder"]
    name: str
    place: str
    may_go: bool
    why: str


class Change(NamedTuple):
    """Something shared that is not as it was: whether the user's own checkout explains it, and whether it may stay."""

    what: Literal["config", "hooks", "info", "stash", "replace", "ref", "head"]
    name: str
    before: str
    after: str
    by_person: bool = False
    harmless: bool = False
    by_loopr: bool = False  # a plan that came home, as a person wished
    slip: bool = False  # tools do this by themselves: put back where need be, and told, but no harm
