"""The first line of a script: which program is to run it, and whether that is on this machine.

Reads one line. Must never run anything, nor know the purpose of a script.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 256  # as far as a kernel reads


def absent_interpreter(script: Path) -> str:
    """Return the program that the first line of a script names and that is not here, else nothing.

    Only a whole path can be told so: the program that `env` finds depends on its PATH. A line end
    of Windows is part of the name.
    """
    with suppress(OSError, ValueError), script.open("rb") as file:
        line = file.readline(MOST_BYTES)
        words = line[2:].replace(b"\t", b" ").strip(b" \n").split(b" ")
        if line.startswith(b"#!") and words[0].startswith(b"/"):
            named = os.fsdecode(words[0])
            return "" if Path(named).exists() else named.replace("\r", "\\r")
    return ""
