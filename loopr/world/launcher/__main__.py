"""The launcher as a program: `python -I -S -c BOOT ROOT STATE_FOLDER LINGER_SECS`, see `loopr.world.processes`.

It leaves whoever started it at once (a fork, a session of its own), puts its socket into the state folder by rename, so
that the newest launcher is the one that is found, and says `ready` on its standard output. Paths of sockets have 107
bytes: it works in the state folder and binds a name. Two launchers at once do no harm, since attempts are claimed on
disk.

Knows how to become a daemon. Must never know what a launcher does.
"""

# it starts in milliseconds
# ruff: noqa: PTH104, PTH108, PTH116, PTH208

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress

from loopr import __version__
from loopr.world.launcher import proc, words
from loopr.world.launcher.reception import Reception

OWN_TROUBLE = 70
BACKLOG = 64


def main(state: str, linger_secs: float) -> None:
    """Become the launcher of a state folder; returns in no process."""
    os.chdir(state)
    if os.fork():
        os._exit(0)
    code = OWN_TROUBLE
    try:
        for name in os.listdir("/proc/self/fd"):  # what an engine that was started carelessly left open
            if int(name) > 2:
                with suppress(OSError):
                    os.close(int(name))
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        proc.become_subreaper()
        with _listening() as listener:
            inode = os.stat(words.SOCKET).st_ino
            reception = Reception(listener, __version__, linger_secs)
            gc.collect()
            gc.freeze()  # pages that nobody writes to are shared by all supervisors
            _say_ready()
            reception.serve()
            _remove_socket(inode)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _listening() -> socket.socket:
    """Open a socket under the name that engines look for; only its owner may connect."""
    fresh = f"{words.SOCKET}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    listener.bind(fresh)
    os.umask(mask)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    os.rename(fresh, words.SOCKET)
    return listener


def _say_ready() -> None:
    """Tell whoever started us that we listen, and let go of the pipe."""
    with suppress(OSError):
        os.write(1, b"ready\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.close(null)


def _remove_socket(inode: int) -> None:
    """Take our own socket away, not that of a launcher that took our place."""
    with suppress(OSError):
        if os.stat(words.SOCKET).st_ino == inode:
            os.unlink(words.SOCKET)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
