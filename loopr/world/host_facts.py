"""What the machine says of itself: disks, mounts, and how many folders may be watched.

Reads, and changes nothing. Must never know loops, nor how much is enough.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

_MOUNTS = Path("/proc/self/mountinfo")
_WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")
LEAST_BYTES = 256 * 1024  # with less than that neither a journal nor git gets far
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK = re.compile(
    r"(fuse\.)?(nfs\d?|cifs|smb\d?|smbfs|afs|9p|ceph|lustre|gpfs|beegfs|glusterfs|orangefs|ocfs2|gfs2|ncpfs|coda|davfs2?"
    r"|sshfs|s3fs|goofys|gcsfuse|rclone|curlftpfs)"
)


class Mount(NamedTuple):
    """The file system that a path is on: where it is mounted and of what type."""

    point: str
    type: str

    @property
    def is_remote(self) -> bool:
        """Say whether other machines may write there too."""
        return _NETWORK.fullmatch(self.type) is not None


def mount_of(path: Path, table: str | None = None) -> Mount | None:
    """Return the mount that a path is on, None where the system does not say; `table` is in the form of mountinfo."""
    if table is None:
        try:
            table = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    real, found = os.path.realpath(path), None
    for line in table.splitlines():
        mount = _mount(line)
        # of two at the same place the later one covers the earlier
        if mount and _holds(mount.point, real) and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _mount(line: str) -> Mount | None:
    """Read one line: the fields up to a lone hyphen vary in number, the type stands behind it."""
    before, hyphen, after = line.partition(" - ")
    fields = before.split(" ")
    if not hyphen or len(fields) < 5:
        return None
    point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])  # only blanks and backslashes are escaped
    return Mount(point, after.split(" ")[0])


def _holds(point: str, path: str) -> bool:
    """Say whether a path is at or below a mount point."""
    return path == point or path.startswith(point.rstrip("/") + "/")


def free_bytes(folder: Path) -> int:
    """Return how much of the disk below a folder is free for this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


DISK, LOAD = "the disk is nearly full", "the machine is busy"


def short_of(folder: Path, least_bytes: int, most_load: Fraction | None) -> str:
    """Say what the machine is short of, by what must be free and how busy it may be; nothing if all is well."""
    if free_bytes(folder) < least_bytes:
        return f"{DISK}: less than {least_bytes / 1024**3:g} GiB free (worktrees.min_free_gb)"
    if most_load is not None and os.getloadavg()[0] > most_load:
        return f"{LOAD}: above {float(most_load):g} (scheduler.max_load)"
    return ""


def is_full(folder: Path) -> bool:
    """Say whether next to nothing can be written below a folder any more: no space, or no room for another file."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < LEAST_BYTES or (found.f_files > 0 and found.f_favail == 0)


def watch_limit() -> int | None:
    """Return how many folders a user may watch, None where the system has no such limit."""
    try:
        return int(_WATCHES.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
