"""The launcher as a program: `python -I -S -c BOOT ROOT STATE_FOLDER`, see `loopr.world.processes`.

The engine that starts it is at the other end of its standard input, and no other process ever is: there is no name by
which a command could find it. It leaves whoever started it at once (a fork, a session of its own). The state folder
only tells it from the launchers of others. Two launchers at once do no harm, since attempts are claimed on disk.

Knows how to become a daemon. Must never know what a launcher does.
"""

# it starts in milliseconds
# ruff: noqa: PTH208

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from contextlib import suppress

from loopr.world.launcher import proc
from loopr.world.launcher.reception import Reception
from loopr.world.launcher.wire import Wire

OWN_TROUBLE = 70


def main() -> None:
    """Become the launcher of whoever is at the other end of our standard input; returns in no process."""
    proc.become_private()
    os.chdir("/")
    if os.fork():
        os._exit(0)
    code = OWN_TROUBLE
    try:
        engine = _take_line()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        proc.become_subreaper()
        reception = Reception(Wire(engine))
        gc.collect()
        gc.freeze()  # pages that nobody writes to are shared by all supervisors
        reception.serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _take_line() -> int:
    """Move the line to the engine to where no process that we start inherits it, and leave nothing else open."""
    for name in os.listdir("/proc/self/fd"):  # what an engine that was started carelessly left open
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))
    line = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    return line


if __name__ == "__main__":
    main()
