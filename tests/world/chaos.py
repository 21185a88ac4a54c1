"""An engine that may be killed at any moment: `python chaos.py ROOT COUNT WIDTH` has COUNT attempts made, then ends.

What it has submitted and what has ended stands in `journal`, a line each, written before it goes on; when it is started
again it adopts what is open.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from loopr.errors import WorldError
from loopr.world.processes import Attempts, AttemptSpec, Began, Ended

PATIENCE_SECS = 60.0


def spec(root: Path, number: int) -> AttemptSpec:
    """Describe an attempt: it says when it starts and ends, takes a moment, and leaves a stray now and then."""
    folder = root / "runs" / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    ledger = root / "ledger" / str(number)
    stray = "setsid sleep 1000 & " if number % 5 == 0 else ""
    pause = number * 7 % 40 / 1000
    script = (
        f"echo start >> {ledger}; echo said {number}; {stray} sleep {pause}; echo end >> {ledger}; exit {number % 50}"
    )
    env = {"PATH": os.environ["PATH"], "LOOPR_WORKSPACE": str(root), "LOOPR_LEASE": f"{number}#1"}
    return AttemptSpec(str(number), folder, ("sh", "-c", script), root / "tree", env, Path(os.devnull), grace_ms=50)


def main(root: Path, count: int, width: int) -> None:
    """Have all attempts made that have not ended yet."""
    journal = root / "journal"
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    ended = {line["ended"] for line in lines if "ended" in line}
    opened = {line["submitted"] for line in lines if "submitted" in line} - ended
    attempts = Attempts.open(root / "state")
    with journal.open("a", buffering=1) as log:
        states = attempts.adopt({number: root / "runs" / number for number in sorted(opened)})
        again = [number for number, state in states.items() if state == "unclaimed"]
        ahead = [*again, *(number for number in map(str, range(count)) if number not in ended | opened)]
        while ahead or attempts.live:
            with suppress(WorldError):  # somebody kills launchers faster than they start: try again
                while ahead and len(attempts.live) < width:
                    log.write(json.dumps({"submitted": ahead[0]}) + "\n")
                    attempts.submit(spec(root, int(ahead[0])))
                    ahead.pop(0)
            events: list[Began | Ended] = []
            with suppress(WorldError):
                events = attempts.poll(PATIENCE_SECS if attempts.live else 0)
            for event in events:
                if isinstance(event, Ended):
                    log.write(json.dumps({"ended": event.id, "outcome": event.outcome._asdict()}) + "\n")
    attempts.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
