"""A command that tries to reach the launcher: `python intruder.py PLACE...` tells what it could do, one line each.

It looks for sockets by name below the places that it is given and among those that the kernel lists, for descriptors
and memory of launchers and supervisors, and for anything but its own three files among what it was given. Whatever it
reaches it is told to run a command.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROGRAM = b"loopr.world.launcher"
PIDFD_GETFD = 438
ORDER = {
    **{"id": "intruder", "folder": "/", "argv": ["sh", "-c", 'echo outside > "$MARK"'], "cwd": "/"},
    **{"env": {"MARK": os.environ.get("MARK", os.devnull)}, "stdin": "/dev/null", "claims": "/"},
    **{"wall_ms": 0, "idle_ms": 0, "first_byte_ms": 0, "grace_ms": 0, "head_bytes": 99, "tail_bytes": 99},
}
SAID = [json.dumps({"do": "hello", "proto": 2, "version": ""}), json.dumps({"do": "kill", "id": "x", "reason": ""})]
WORDS = "\n".join([*SAID, json.dumps({"do": "run", "id": "i", "folder": "/"}) + "\t" + json.dumps(ORDER), ""])


def names(places: list[str]) -> Iterator[str]:
    """Give the names of sockets."""
    for place in places:
        for folder, _, files in os.walk(place):
            for name in files:
                with suppress(OSError):
                    if stat.S_ISSOCK(Path(folder, name).stat().st_mode):
                        yield f"{folder}/{name}"
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        with suppress(IndexError):
            name = line.split()[7]
            yield from [name] if name.startswith("@") and ("loopr" in name or "launcher" in name) else []


def connects(name: str) -> bool:
    """Tell whether something hears us by a name; what does is told to run a command."""
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.settimeout(5)
        os.chdir(os.path.dirname(name) or "/")  # noqa: PTH120
        connection.connect(f"\0{name[1:]}" if name.startswith("@") else os.path.basename(name))  # noqa: PTH119
        connection.sendall(WORDS.encode())
        return bool(connection.recv(1))
    return False


def watchers() -> Iterator[int]:
    """Give the launchers and supervisors that we can see."""
    for name in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError):
            if name.isdigit() and PROGRAM in Path(f"/proc/{name}/cmdline").read_bytes():
                yield int(name)


def reaches_into(pid: int) -> Iterator[str]:
    """Tell what of another process we can look at, or get hold of; root can, and is not asked."""
    if os.getuid() == 0:
        return
    for what in ("fd/0", "environ", "mem"):
        with suppress(OSError):
            os.close(os.open(f"/proc/{pid}/{what}", os.O_RDONLY))
            yield what
    with suppress(OSError):
        yield f"fd {len(list(Path(f'/proc/{pid}/fd').iterdir()))}"
    with suppress(OSError):
        call, pidfd = ctypes.CDLL(None, use_errno=True).syscall, os.pidfd_open(pid)
        for number in range(16):
            if (found := call(PIDFD_GETFD, pidfd, number, 0)) >= 0:
                yield f"descriptor {number}"
                with suppress(OSError):
                    os.write(found, WORDS.encode())


def own() -> Iterator[str]:
    """Give what we were given beside three files, and what of it is a socket."""
    for name in sorted(os.listdir("/proc/self/fd"), key=int):  # noqa: PTH208
        with suppress(OSError):
            kind = stat.S_IFMT(os.fstat(int(name)).st_mode)
            if int(name) > 2 or kind == stat.S_IFSOCK:
                yield f"{name} {Path(f'/proc/self/fd/{name}').readlink()}"


def main(places: list[str]) -> None:
    """Try it all."""
    given = list(own())  # before anything of ours is open
    for each in given:
        print("given", each)
    for name in set(names(places)):
        print("name", name, "answers" if connects(name) else "is silent")
    for pid in watchers():
        print("sees a watcher")
        for each in reaches_into(pid):
            print("reaches", pid, each)
    print("done")


if __name__ == "__main__":
    main(sys.argv[1:])
