"""The checks of the machine: what is installed, its disks, its limits.

Must never know git's settings, nor what is remembered.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator

from loopr.errors import SettingsError
from loopr.ui.checkup.rows import Finding
from loopr.ui.programs import missing_programs
from loopr.ui.unjudged import remedy, unjudged_types
from loopr.wiring import Workspace
from loopr.world.git_facts import git_version
from loopr.world.host_facts import free_bytes, is_full, mount_of, watch_limit
from loopr.world.journal import SQLITE_NEEDED, sqlite_is_sound, sqlite_version
from loopr.world.settings import Settings
from loopr.world.settings.parts import TypeSettings
from loopr.world.veil import key_variables

PYTHON_NEEDED = (3, 11)
GIT_NEEDED = (2, 38)
FEW_WATCHES = 8192
MOST_KEYS = 5
_GIB = 1024**3


def programs() -> list[Finding]:
    """Check what loopr stands on, wherever it is called."""
    return [_python(), _sqlite(), _git()]


def _python() -> Finding:
    """Check the interpreter."""
    text = f"{platform.python_version()}, {platform.python_implementation()}"
    ok = sys.version_info >= PYTHON_NEEDED
    return Finding("python", ok, text, "" if ok else f"loopr needs {_dotted(PYTHON_NEEDED)} or later")


def _sqlite() -> Finding:
    """Check the library that keeps the journal."""
    if sqlite_is_sound():
        return Finding("sqlite", True, sqlite_version())
    hint = f"install an apsw that brings SQLite {_dotted(SQLITE_NEEDED)} or later"
    return Finding("sqlite", False, f"{sqlite_version()} can damage the journal when its log is reset", hint)


def _git() -> Finding:
    """Check that git can merge trees without a checkout."""
    version = git_version()
    hint = f"install git {_dotted(GIT_NEEDED)} or later"
    if version is None:
        return Finding("git", False, "there is no git on the PATH", hint)
    if version < GIT_NEEDED:
        text = f"{_dotted(version) or 'of no known version'}, whose merge-tree cannot merge without a checkout"
        return Finding("git", False, text, hint)
    return Finding("git", True, _dotted(version))


def _dotted(version: tuple[int, ...]) -> str:
    """Write a version."""
    return ".".join(map(str, version))


def _disk(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Check that something would be started at all."""
    free, wanted = free_bytes(workspace.place.root), settings.policy.min_free_bytes
    text = f"{free / _GIB:.1f} GiB free, {wanted / _GIB:g} GiB wanted"
    if is_full(workspace.place.root):
        yield Finding("disk", False, f"no space is left: {text}", "free some space: nothing goes on until then")
        return
    hint = "" if free >= wanted else "free some space, or lower worktrees.min_free_gb: nothing starts until then"
    yield Finding("disk", free >= wanted, text, hint)


def _file_system(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Check that the journal lies where one machine alone writes."""
    mount = mount_of(workspace.place.state)
    if mount is None:
        yield Finding("file system", None, "this system does not say what is mounted where")
    elif mount.is_remote:
        text = f"{workspace.place.state} is on {mount.type}: the journal's log needs memory that one machine shares"
        yield Finding("file system", False, text, "keep the repository on a local disk")
    else:
        yield Finding("file system", True, f"{mount.type} at {mount.point}")


def _watches(_: Workspace, __: Settings) -> Iterator[Finding]:
    """Tell how many folders may be watched; a tree that is not watched is still scanned."""
    limit = watch_limit()
    if limit is None:
        yield Finding("watches", None, "this system has no limit that can be read")
    elif limit < FEW_WATCHES:
        hint = "raise fs.inotify.max_user_watches; until then a large tree is only scanned"
        yield Finding("watches", None, f"only {limit} folders may be watched", hint)
    else:
        yield Finding("watches", True, f"{limit} folders may be watched")


def _named(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Check that what the types name is installed; a plan that leads there is refused otherwise."""
    try:
        problems = missing_programs(workspace, None, "")
    except SettingsError:  # a finding of its own
        return
    yield from (Finding("programs", False, f"{each.where} {each.message}".strip(), each.hint) for each in problems)
    if not problems:
        yield Finding("programs", True, "whatever a type names is there")


def _lets_all_in(settings: Settings, kind: TypeSettings) -> bool:
    """Say whether a type has a command that gets every variable."""
    if kind.env.only is not None or not (kind.run or kind.agent):
        return False
    return kind.agent is None or settings.preset(kind.agent).only is None


def _keys(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Remark on variables that look like keys and reach every command."""
    found = key_variables(workspace.environ)
    open_types = [each.name for each in settings.types.values() if _lets_all_in(settings, each)]
    if not found or not open_types:
        yield Finding("keys", True, "no variable that looks like a key reaches every command")
        return
    more = f" and {len(found) - MOST_KEYS} more" if len(found) > MOST_KEYS else ""
    text = f"{', '.join(found[:MOST_KEYS])}{more} reach the commands of {', '.join(open_types)}"
    hint = f"types.{open_types[0]}.env.only lets in no other variables than those it names"
    yield Finding("keys", None, text, hint)


def _judged(_: Workspace, settings: Settings) -> Iterator[Finding]:
    """Remark on types that work by themselves and that nothing judges."""
    found = unjudged_types(settings)
    if found:
        yield Finding("judges", None, f"nothing judges {', '.join(found)}: what ends with 0 lands", remedy(found))
    else:
        yield Finding("judges", True, "whatever works by itself is judged, or said not to be")


def _writable(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Check that the workspace and the state may be written to; nothing is written to find out."""
    place = workspace.place
    folders = [each for each in (place.root, place.state) if each.exists()]
    closed = [each for each in folders if not os.access(each, os.W_OK)]
    frozen = [each for each in folders if os.statvfs(each).f_flag & os.ST_RDONLY]
    if frozen:
        hint = "mount it writable: nothing can be started until then"
        yield Finding("writable", False, f"{frozen[0]} is on a file system that is read-only", hint)
    elif closed:
        hint = "check its owner and its permissions: nothing can be started until then"
        yield Finding("writable", False, f"{closed[0]} may not be written to", hint)
    else:
        yield Finding("writable", True, "the workspace and its state may be written to")


CHECKS = (
    ("programs", _named),
    ("judges", _judged),
    ("writable", _writable),
    ("keys", _keys),
    ("disk", _disk),
    ("file system", _file_system),
    ("watches", _watches),
)
