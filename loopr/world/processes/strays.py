"""What carries a workspace's mark and belongs to no attempt that anybody waits for.

Knows marks. Must never know attempts beyond their leases.
"""

from __future__ import annotations

from collections.abc import Collection

from loopr.world.launcher import proc, traces

ROUNDS = 10  # what forks faster than it is killed, or cannot be killed at all, is left for the next sweep


def sweep(workspace: str, spared: Collection[str]) -> int:
    """Kill what carries the mark of a workspace and none of the leases to be spared; return how many that were."""
    ended: set[tuple[int, int]] = set()
    for _ in range(ROUNDS):
        strays = {seen for seen, lease in traces.marked(workspace).items() if lease not in spared}
        strays |= set(proc.descendants(*(seen.pid for seen in strays)).values())
        if not strays:
            break
        proc.kill_and_wait(strays)
        ended |= {(seen.pid, seen.start) for seen in strays}
    return len(ended)
