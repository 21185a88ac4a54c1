"""Which worktree serves which loop: a small file under the state folder, written whole and by rename.

A slot is a worktree with an administrative folder of its own; its checkout is renamed from the pool to the loop's name
and back. If the file is lost it is told anew from what git has. Must never know what a checkout contains.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from loopr.errors import WorldError
from loopr.world.repo.calls import Door
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.ground import OWN_FOLDER, Ground
from loopr.world.repo.locks import held

LOCK_REASON = "loopr"
PRIVATE_INDEX = "loopr-index"
INDEX_MARK = "loopr-index-at"  # names the commit of that index
LAST_LOOP = "loopr-last"  # names the loop of which all was committed, and no command has begun since
_ID = "loopr-"
_SERVING = frozenset({"preparing", "used", "returning"})
_HEAD = re.compile(r"ref: refs/|[0-9a-f]{40}")

Slots = dict[str, "Slot"]


class Slot(NamedTuple):
    """One worktree: `preparing` until its files are right, `used`, `returning`, `free`, or `retired` with the why."""

    id: str
    name: str = ""
    state: str = "free"
    folder: str = ""
    why: str = ""

    def place(self, ground: Ground) -> Path:
        """The folder with its files."""
        return ground.worktrees / (self.folder or f"{ground.pool_folder}/{self.id}")

    def pool_place(self, ground: Ground) -> Path:
        """Where its folder is while nobody uses it."""
        return ground.worktrees / ground.pool_folder / self.id

    def admin(self, ground: Ground) -> Path:
        """Its administrative folder inside the git directory."""
        return ground.common / "worktrees" / self.id

    def lock(self, ground: Ground) -> Path:
        """The lock around what is done to its files."""
        return ground.state / "locks" / f"{self.id}.lock"


class Opened(NamedTuple):
    """A worktree whose lock is held, with git standing before it."""

    ground: Ground
    slot: Slot
    door: Door

    @property
    def name(self) -> str:
        """The loop it serves."""
        return self.slot.name

    @property
    def admin(self) -> Path:
        """Its administrative folder."""
        return self.slot.admin(self.ground)

    @property
    def place(self) -> Path:
        """The folder with its files."""
        return self.slot.place(self.ground)

    @property
    def branch(self) -> str:
        """The full name of the loop's branch."""
        return self.ground.branch(self.slot.name)


@contextmanager
def opened(ground: Ground, slot: Slot, *, mend: bool = True) -> Iterator[Opened]:
    """Hold a worktree's lock, mend what ties it to git, and give git before it."""
    with held(slot.lock(ground)) as descriptor:
        if mend:
            point(ground, slot)
        yield Opened(
            ground,
            slot,
            Door(slot.admin(ground), ground.common, slot.place(ground), union=ground.union).keeping(descriptor),
        )


def load(ground: Ground) -> Slots:
    """Read all slots; a file that is lost or broken is told anew."""
    try:
        rows: list[dict[str, Any]] = json.loads(read_line(_file(ground)))
        return {row["id"]: Slot(**row) for row in rows}
    except (OSError, ValueError, TypeError, KeyError):
        return {slot.id: slot for slot in _told_anew(ground)}


def save(ground: Ground, slots: Slots) -> None:
    """Write all slots; only for whoever holds the lock around what worktrees share."""
    fresh = _file(ground).with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_text(json.dumps([slot._asdict() for slot in slots.values()]), encoding="utf-8")
    fresh.replace(_file(ground))


def slot_of(ground: Ground, name: str) -> Slot | None:
    """Return the slot that serves a loop now, None if there is none."""
    return among(load(ground), name)


def among(slots: Slots, name: str) -> Slot | None:
    """Return the slot that serves a loop now, None if there is none."""
    return next((each for each in slots.values() if each.name == name and each.state in _SERVING), None)


def need_slot(ground: Ground, name: str) -> Slot:
    """Return the slot of a loop, or raise that it has no worktree."""
    slot = slot_of(ground, name)
    if slot is None or not slot.place(ground).is_dir():
        raise WorldError(f"the worktree of {name} is gone", hint="it is made anew from its branch at the next attempt")
    return slot


def next_id(ground: Ground, slots: Slots) -> str:
    """Return an id that neither we nor git use for a worktree, but for one that was cut short while it was made."""
    number = 1
    while (each := Slot(f"{_ID}{number}")).id in slots or _is_taken(ground, each):
        number += 1
    return each.id


def _is_taken(ground: Ground, slot: Slot) -> bool:
    """Say whether something has this id; what lies in the pool and was never written down was never handed out."""
    if slot.admin(ground).exists():
        return read_line(slot.admin(ground) / "gitdir") != f"{slot.place(ground)}/.git"
    return os.path.lexists(slot.place(ground))


def point(ground: Ground, slot: Slot) -> None:
    """Write anew what ties a folder to its administrative folder: a command may have changed any of it."""
    admin, place = slot.admin(ground), slot.place(ground)
    ensure_locked(admin)
    _displace(place)
    for file, text in (
        (admin / "gitdir", f"{place}/.git"),
        (admin / "commondir", "../.."),
        (place / ".git", f"gitdir: {admin}"),
    ):
        if read_line(file) != text or file.is_symlink():
            write_line(file, text)
    if slot.name and not _HEAD.match(read_line(admin / "HEAD")):
        write_line(admin / "HEAD", f"ref: {ground.branch(slot.name)}")


def ensure_locked(admin: Path) -> None:
    """Lock a worktree in git, so that no prune takes it; a person's own reason stays."""
    admin.mkdir(parents=True, exist_ok=True)
    if not (admin / "locked").is_file():
        write_line(admin / "locked", LOCK_REASON)


def displaced(place: Path) -> list[Path]:
    """List the repositories that somebody made in the place of the worktree's own `.git` file."""
    return sorted((place / OWN_FOLDER).glob("displaced-*.git"))


def _displace(place: Path) -> None:
    """Put a `.git` that is a folder of somebody's out of the way: it may hold commits."""
    dot_git = place / ".git"
    if dot_git.is_dir() and not dot_git.is_symlink():
        aside = place / OWN_FOLDER / f"displaced-{len(displaced(place)) + 1}.git"
        aside.parent.mkdir(exist_ok=True)
        dot_git.rename(aside)


def write_line(file: Path, text: str) -> None:
    """Write a small file of git's, by rename."""
    with suppress(FileNotFoundError):
        if file.is_symlink():
            file.unlink()
    fresh = file.with_name(file.name + ".loopr-new")
    fresh.write_bytes(os.fsencode(text) + b"\n")
    fresh.replace(file)


def copy_over(source: Path, target: Path) -> None:
    """Copy a file over another by rename, so that no half of it is ever there."""
    fresh = target.with_name(target.name + ".loopr-new")
    shutil.copyfile(source, fresh)
    fresh.replace(target)


def note_index(admin: Path, commit: str) -> None:
    """Note that our own index stands at a commit."""
    write_line(admin / INDEX_MARK, f"{commit} {_version(admin / PRIVATE_INDEX)}")


def index_at(admin: Path) -> str:
    """Return the commit that our own index stands at, nothing if anybody may have written to it since."""
    commit, _, version = read_line(admin / INDEX_MARK).partition(" ")
    return commit if version and version == _version(admin / PRIVATE_INDEX) else ""


def _version(file: Path) -> str:
    """Tell a file from whatever is later in its place: nobody can set when it was last changed."""
    try:
        facts = file.stat()
    except OSError:
        return ""
    return f"{facts.st_ino} {facts.st_ctime_ns} {facts.st_size}"


def _file(ground: Ground) -> Path:
    """The file that remembers the slots."""
    ground.state.mkdir(parents=True, exist_ok=True)
    return ground.state / "worktrees.json"


def _told_anew(ground: Ground) -> list[Slot]:
    """Tell from git's own folders which worktrees are ours; what was being prepared counts as used, to be safe."""
    found = []
    for admin in sorted((ground.common / "worktrees").glob(f"{_ID}*")):
        folder = Path(read_line(admin / "gitdir")).parent
        if folder.parent == ground.worktrees / ground.pool_folder:
            found.append(Slot(admin.name))
        elif folder.is_relative_to(ground.worktrees):
            name = folder.relative_to(ground.worktrees).as_posix()
            found.append(Slot(admin.name, name, "used", name))
    return found
