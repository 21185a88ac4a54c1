"""Where a workspace is: its root, the repository around it, and the folder that remembers its state.

Reads a few small files of git's by hand, because the verbs that only show must not wait for git. Must never know what
is in the workspace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loopr.errors import SettingsError

SETTINGS_FILE = "loopr.yml"
OLD_REFS = "old"  # below refs/loopr/: what was kept when a journal was begun anew
_STATE_ROOT = "workspace"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace on disk; `repository` is None where there is no git."""

    root: Path
    state: Path
    repository: Path | None

    @property
    def journal(self) -> Path:
        """The one file that remembers everything."""
        return self.state / "loopr.db"

    @property
    def lock(self) -> Path:
        """The engine's lock."""
        return self.state / "engine.lock"


def find_place(start: Path) -> Place:
    """Find the workspace that a folder belongs to: upwards to loopr.yml or specs/, else the top of the repository."""
    start = start.resolve()
    if not start.is_dir():
        raise SettingsError(f"{start} is not a folder", hint="name one with -C")
    top = repository_around(start)
    common = common_git_dir(top) if top is not None else None
    state = common / "loopr" if common is not None else None
    known = _remembered(state) if state is not None else None
    found = _upwards(start, _is_workspace, until=top)
    if known is not None and (found is None or _foreign_checkout(known, top)):
        found = known
    root = found or top or start
    if known is not None and root != known and _is_workspace(known):  # else it was moved here, as the hint says
        hint = "one repository has one workspace: go there, or move its loopr.yml and specs/ here"
        raise SettingsError(f"this repository's workspace is {known}, not {root}", hint=hint)
    repository = repository_around(root)  # of the workspace, not of `start`, which may be another one that it drives
    return Place(root, common_git_dir(repository) / "loopr" if repository else root / ".loopr", repository)


def repository_around(folder: Path) -> Path | None:
    """Return the top of the checkout, or the bare repository, that a folder is in; None if it is in none."""
    return _upwards(folder, _is_repository)


def _upwards(start: Path, wanted: Callable[[Path], bool], until: Path | None = None) -> Path | None:
    """Return the nearest folder, from `start` upwards to `until`, that is wanted."""
    for folder in (start, *start.parents):
        if wanted(folder):
            return folder
        if folder == until:
            return None
    return None


def _is_workspace(folder: Path) -> bool:
    """Say whether a folder looks like a workspace."""
    return (folder / SETTINGS_FILE).is_file() or (folder / "specs").is_dir()


def _is_repository(folder: Path) -> bool:
    """Say whether a folder is the top of a checkout, or a bare repository; git, too, takes no `.git` without a HEAD."""
    dot_git = folder / ".git"
    if dot_git.is_file() or os.path.lexists(dot_git / "HEAD"):
        return True
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _foreign_checkout(known: Path, top: Path | None) -> bool:
    """Say whether we stand in another checkout of the repository than the one with the workspace."""
    return top is not None and top != known and top not in known.parents


def is_workspace(place: Place, folder: Path) -> bool:
    """Say whether a folder is a workspace's own, or a checkout of its repository."""
    folder = Path(os.path.realpath(folder))
    if folder == place.root:
        return True
    try:
        top = repository_around(folder)
        state = common_git_dir(top) / "loopr" if top is not None else folder / ".loopr"
        return state == place.state
    except (SettingsError, OSError):
        return False


def own_git_dir(top: Path) -> Path:
    """Return the git directory of one checkout, or the bare repository itself."""
    dot_git = top / ".git"
    if dot_git.is_dir():
        return dot_git
    return _pointer(dot_git, "gitdir:") if dot_git.exists() else top


def common_git_dir(top: Path) -> Path:
    """Return the git directory that all worktrees of a checkout share."""
    own = own_git_dir(top)
    common = own / "commondir"
    return (own / common.read_text().strip()).resolve() if common.is_file() else own


def _pointer(file: Path, key: str) -> Path:
    """Follow a file of the form `gitdir: PATH`."""
    text = file.read_text(errors="surrogateescape").strip()
    if not text.startswith(key):
        raise SettingsError(f"{file} does not say where the repository is", hint="`git worktree repair` may mend it")
    found = (file.parent / text.removeprefix(key).strip()).resolve()
    if not found.is_dir():
        raise SettingsError(f"{file} points to {found}, which is not there", hint="`git worktree repair` may mend it")
    return found


def other_workspace(place: Place, state: Path) -> Path | None:
    """Return the workspace that a repository's state folder belongs to, if that is another one and still there."""
    known = _remembered(state)
    return known if known is not None and known != place.root and _is_workspace(known) else None


def _remembered(state: Path) -> Path | None:
    """Return the workspace that a state folder belongs to, if it still exists."""
    file = state / _STATE_ROOT
    try:
        text = file.read_bytes() if file.is_file() else b""
    except OSError:
        return None
    if not text:
        return None
    root = (state / os.fsdecode(text)).resolve()
    return root if root.is_dir() else None


def is_remembered(place: Place) -> bool:
    """Say whether the state folder knows that it belongs to this workspace."""
    return _remembered(place.state) == place.root


def remember_place(place: Place) -> None:
    """Write down, relative to the state folder, which workspace it belongs to; a moved repository keeps its state."""
    place.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keep_to_owner(place.state)
    file = place.state / _STATE_ROOT
    text = os.fsencode(os.path.relpath(place.root, place.state))
    if file.is_file() and file.read_bytes() == text:
        return
    fresh = file.with_name(f"{_STATE_ROOT}.{os.urandom(6).hex()}.new")  # other threads and processes may do the same
    fresh.touch(0o600)
    fresh.write_bytes(text)
    fresh.replace(file)


def _keep_to_owner(folder: Path) -> None:
    """Keep others out of a folder: prompts, logs and costs are in it."""
    mode = folder.stat()
    if mode.st_mode & 0o077 and mode.st_uid == os.geteuid():
        folder.chmod(0o700)


def traces(place: Place) -> str:
    """Name what an earlier journal has left of loops: their runs or their refs; nothing where there is neither."""
    if _has_any(place.state / "runs"):
        return f"there are runs of loops in {place.state / 'runs'}"
    if place.repository is None:
        return ""
    common = common_git_dir(place.repository)
    kinds = [each for each in _names(common / "refs" / "loopr") if each != OLD_REFS]
    loose = any(_has_any(common / "refs" / "loopr" / each) for each in kinds)
    packed = any(
        " refs/loopr/" in line and f" refs/loopr/{OLD_REFS}/" not in line
        for line in _read(common / "packed-refs").split("\n")
    )
    return "there are refs of loops under refs/loopr/" if loose or packed else ""


def _has_any(folder: Path) -> bool:
    """Say whether a file is anywhere below a folder."""
    return any(files for _, _, files in os.walk(folder))


def _names(folder: Path) -> list[str]:
    """List a folder, nothing if there is none."""
    try:
        return [each.name for each in folder.iterdir()]
    except OSError:
        return []


class Head(NamedTuple):
    """A branch and the commit it points to; no branch where HEAD is detached, no commit where it is unborn."""

    branch: str
    commit: str


def head_of(top: Path, branch: str | None = None) -> Head:
    """Return what is checked out at the top of a checkout, or where a named branch stands."""
    name = f"ref: refs/heads/{branch}" if branch else _read(own_git_dir(top) / "HEAD")
    if _COMMIT.fullmatch(name):
        return Head("", name)
    ref = name.removeprefix("ref:").strip()
    return Head(ref.removeprefix("refs/heads/"), commit_of(top, ref))


def commit_of(top: Path, ref: str) -> str:
    """Return where a ref stands, nothing if there is none."""
    common = common_git_dir(top)
    loose = _read(common / ref)
    return loose if _COMMIT.fullmatch(loose) else _packed(common, ref)


def _read(file: Path) -> str:
    """Read a small file, nothing if it is not there, or is no file."""
    try:
        return file.read_text(errors="surrogateescape").strip() if file.is_file() else ""
    except OSError:
        return ""


def _packed(common: Path, ref: str) -> str:
    """Look a ref up among the packed ones."""
    for line in _read(common / "packed-refs").split("\n"):
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return ""
