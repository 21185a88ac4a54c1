"""By what a process is known to belong to an attempt whose supervisor is gone.

Certain traces: the mark in its environment, the session of the command, a pipe of the attempt among its descriptors, or
a parent that belongs to it. `env -i` with a session and output of its own leaves none of them; such a one is known by
working in the attempt's folder, or holding a file open there, but only if nothing else can explain it: it was orphaned,
has no terminal, began after the attempt, and carries nothing of a login, as a person's shell or editor there would.

Knows /proc. Must never signal anybody, nor take a pooled supervisor for a stray.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping

from loopr.world.launcher import proc
from loopr.world.launcher.words import LEASE_MARK, WORKSPACE_MARK, Run, mark_of

PROGRAM = b"loopr.world.launcher.__main__"
LOGIN = frozenset(
    b"DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_SESSION_ID XDG_RUNTIME_DIR SSH_CONNECTION SSH_TTY "
    b"TERM_PROGRAM INVOCATION_ID JOURNAL_STREAM LOGNAME".split()
)


def kin_of(run: Run, launcher: int) -> dict[int, proc.Stat]:
    """Return the living processes of an attempt; whatever the launcher has for a child and is no supervisor is one."""
    ours = _state_of(proc.read("/proc/self/cmdline"))
    seen_now = map(proc.stat, proc.pids())
    living = [seen for seen in seen_now if seen and seen.lives and seen.start >= run.pid_start]
    reapers = {1, seen.parent if (seen := proc.stat(launcher)) else 1}
    found: dict[int, proc.Stat] = {}
    for seen in living:
        command_line = proc.read(f"/proc/{seen.pid}/cmdline")  # empty while it becomes another program: look again
        if not command_line or (ours and _state_of(command_line) == ours):
            continue
        if _is_certain(run, seen, launcher) or _is_likely(run, seen, reapers):
            found[seen.pid] = seen
    return found | proc.descendants(*found)


def command_of(run: Run, launcher: int) -> int:
    """Return the command of an attempt whose supervisor died as it began it, so that the launcher has it now; else 0.

    It leads a session of its own, and carries its lease as soon as it is no fork of ours any more.
    """
    for pid in sorted(proc.children(launcher), key=proc.start_time):
        seen, names = proc.stat(pid), proc.environment(pid)
        lease, workspace = names.get(LEASE_MARK.encode()), names.get(WORKSPACE_MARK.encode())
        wanted = (os.fsencode(run.lease), os.fsencode(run.workspace))
        if run.lease and (lease, workspace) == wanted and seen is not None and seen.lives and seen.session == pid:
            return pid
    return 0


def _state_of(command_line: bytes) -> bytes:
    """Return the state folder of a launcher or a supervisor, which share one command line by being forks; else nothing.

    They are never kin: not those of this launcher, nor those of one before it that have an attempt in hand.
    """
    parts = command_line.split(b"\0")
    place = next((number for number, part in enumerate(parts) if PROGRAM in part), len(parts))
    return parts[place + 2] if len(parts) > place + 2 else b""


def is_ours(pid: int) -> bool:
    """Tell whether a process is a launcher or a supervisor, of any workspace."""
    return PROGRAM in proc.read(f"/proc/{pid}/cmdline")


def bears_mark(pid: int, attempt_id: str) -> bool:
    """Tell whether a process is the supervisor that has an attempt in hand."""
    return is_ours(pid) and proc.name_of(pid) == mark_of(attempt_id)


def newborn(parent: int) -> list[tuple[int, int]]:
    """Return the children of one of ours that are about to become something else, with their start times.

    As long as such a one is stopped, a supervisor that spawns it is held up with it.
    """
    return [(child, proc.start_time(child)) for child in proc.children(parent) if is_ours(child)]


def marked(workspace: str) -> dict[proc.Stat, str]:
    """Return the living processes that carry the mark of a workspace, with the lease that each belongs to."""
    found: dict[proc.Stat, str] = {}
    for pid in proc.pids():
        names = proc.environment(pid)
        if names.get(WORKSPACE_MARK.encode()) == os.fsencode(workspace) and LEASE_MARK.encode() in names:
            seen = proc.stat(pid)
            if seen and seen.lives and pid != os.getpid():
                found[seen] = os.fsdecode(names[LEASE_MARK.encode()])
    return found


def pipe_ends(run: Run, index: int) -> Iterator[str]:
    """Give paths by which the pipe of one stream can be opened, as long as someone of the attempt holds it."""
    wanted = f"pipe:[{run.pipes[index]}]"
    for pid in (run.pid, *proc.pids()):  # the command itself has it almost always
        if pid != os.getpid():
            for number, target in proc.open_files(pid):
                if target == wanted:
                    yield f"/proc/{pid}/fd/{number}"


def _is_certain(run: Run, seen: proc.Stat, launcher: int) -> bool:
    """Tell by the traces that nobody else leaves."""
    names = proc.environment(seen.pid)
    lease = names.get(LEASE_MARK.encode())
    if run.lease and lease is not None and names.get(WORKSPACE_MARK.encode()) == os.fsencode(run.workspace):
        return lease == os.fsencode(run.lease)
    if seen.parent == launcher or _in_session(run, seen, names):
        return True
    pipes = {f"pipe:[{inode}]" for inode in run.pipes}
    return any(target in pipes for _, target in proc.open_files(seen.pid))


def _in_session(run: Run, seen: proc.Stat, names: Mapping[bytes, bytes]) -> bool:
    """Tell whether it is in the command's session, and not in one of a later process that got the same number."""
    if not run.pid or run.pid not in (seen.pid, seen.session):
        return False
    leader = proc.stat(run.pid)
    return leader.start == run.pid_start if leader else not names.keys() & LOGIN


def _is_likely(run: Run, seen: proc.Stat, reapers: Container[int]) -> bool:
    """Tell by where it works, of a process that nothing else explains."""
    if not run.pid or seen.terminal or seen.parent not in reapers or proc.owner(seen.pid) != os.getuid():
        return False
    names = proc.environment(seen.pid)
    if names.keys() & LOGIN or LEASE_MARK.encode() in names:
        return False
    targets = (target for _, target in proc.open_files(seen.pid))
    return any(_inside(path, run.cwd) for path in (proc.folder(seen.pid), *targets))


def _inside(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or below it; the top of everything counts as no folder."""
    return len(folder) > 1 and (path == folder or path.startswith(folder + "/"))
