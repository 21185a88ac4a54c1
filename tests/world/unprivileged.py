"""An engine of a user without privileges that runs one command: `python unprivileged.py ROOT ARGV...`.

The command's output is this program's, and its exit code too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from loopr.world.launcher import proc
from tests.world.attempting import Yard


def main(root: Path, argv: list[str]) -> int:
    """Run the command, and see that nothing is left."""
    proc.become_private()
    yard = Yard(root)
    outcome = yard.run("x", *argv)
    print(yard.written("x", "stdout.log") + yard.written("x", "stderr.log"), end="")
    yard.close()
    return 99 if outcome.code is None else outcome.code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
