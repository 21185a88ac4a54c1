"""The folder that an engine's claims are linked from: as long as it is there, what the engine has ordered may begin.

The next engine takes it away before it looks what has begun. So an order that its launcher only comes to then begins
nothing, however long somebody has stopped that launcher.

Knows folders. Must never know what is claimed.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from loopr.errors import WorldError

PREFIX = "claims."
TRIES = 5  # something may be written into it while it is taken away


class Claims:
    """The folder of one engine; made with the first order."""

    def __init__(self, state: Path) -> None:
        """Name it after nobody else's."""
        self._state, self._folder = state, f"{state}/{PREFIX}{os.getpid()}.{time.monotonic_ns()}"

    def end_earlier(self) -> None:
        """See that nothing begins any more that an earlier engine has ordered."""
        for name in os.listdir(self._state) if self._state.is_dir() else ():  # noqa: PTH208 # names are enough
            if name.startswith(PREFIX):
                _take_away(self._state / name)

    def ensure(self) -> str:
        """Return where it is, and that it is there."""
        try:
            os.mkdir(self._folder)  # noqa: PTH102 # asked for every order
        except FileExistsError:
            pass
        except OSError as error:
            raise WorldError(f"{self._folder} cannot be made: {error.strerror}") from error
        return self._folder

    def close(self) -> None:
        """See that nothing begins any more that this engine has ordered; where that fails, the next one sees to it."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _take_away(folder: Path) -> None:
    """Take a folder away, and with it what is in it at that moment."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    raise WorldError(f"{folder} cannot be removed", hint="remove it, then run again")
