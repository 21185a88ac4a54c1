"""What a program costs with everything that it starts: wall time and CPU time, also of what outlives it.

Must never know what it runs. Linux only where something outlives its parent: elsewhere that CPU time is not counted.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36
QUIET_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
LAST_LINES = 15
REST_SECS = 60


class Cost(NamedTuple):
    """What one run took."""

    wall_secs: float
    cpu_secs: float


class Broken(Exception):
    """A program ended with an error; the message is its last output."""


def adopt_orphans() -> None:
    """Become the parent of whatever outlives its own, so that its CPU time can be asked for."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cost_of(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, *, fails: bool = False) -> Cost:
    """Run a program to its end and to that of all that it started; `fails`: an error of it is no news."""
    adopt_orphans()
    before = _cpu_secs()
    log = cwd.parent / f"{cwd.name}.log"
    with log.open("wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(argv, cwd=cwd, env=_env(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        process.wait()
        wall_secs = time.perf_counter() - started
    _reap()
    if process.returncode and not fails:
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:])
        raise Broken(f"{Path(argv[0]).name} ended with {process.returncode}:\n{tail}")
    return Cost(wall_secs, _cpu_secs() - before)


def _env(more: Mapping[str, str] | None) -> dict[str, str]:
    """Return an environment in which nobody's git settings and no outer make count, and bytecode is kept as usual."""
    ours = ("MAKE", "MFLAGS", "LOOPR", "PYTHONDONTWRITEBYTECODE")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return plain | QUIET_GIT | dict(more or {})


def _cpu_secs() -> float:
    """Return the CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap() -> None:
    """Wait for what the program left running: a launcher, for example, waits some seconds for more work."""
    patience = time.monotonic() + REST_SECS
    while time.monotonic() < patience:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.02)
    raise Broken(f"it left processes behind that do not end within {REST_SECS} s")


def fast_place() -> Path | None:
    """Return a folder in memory, where the machine has one; None: where temporary files live."""
    place = Path("/dev/shm")
    return place if place.is_dir() and os.access(place, os.W_OK) else None
