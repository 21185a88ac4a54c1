"""The engine's side of attempts: commands are started, watched, adopted and ended through the launcher.

    attempts = Attempts.open(state_folder)      # connects, if a launcher runs; starts none
    attempts.submit(AttemptSpec(...))           # starts the launcher if need be; a second time is no news
    attempts.fileno(), attempts.poll()          # one selector: Began and Ended
    attempts.kill(id, "cancelled")              # Ended follows once nothing of it is left
    attempts.adopt({id: folder, ...})           # after a restart: what became of what was running

This process never forks, waits for no attempt and reads no output. Whatever happens to it, the launcher or a
supervisor, an attempt runs at most once, and one that began ends with an outcome in its folder.

Linux only, like the launcher. Knows run folders and the launcher. Must never know why an attempt runs.
"""

from __future__ import annotations

from loopr.world.launcher.words import OUTCOME, AttemptSpec, Outcome, Reason
from loopr.world.processes.attempts import Attempts
from loopr.world.processes.news import Began, Ended, State
from loopr.world.processes.progress import last_lines

__all__ = ["OUTCOME", "AttemptSpec", "Attempts", "Began", "Ended", "Outcome", "Reason", "State", "last_lines"]
