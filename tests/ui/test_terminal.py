"""A terminal that is stopped holds up nobody, and gets what it was owed once it goes on."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from loopr.ui.progress import Screen
from loopr.ui.terminal import Terminal
from tests.e2e.repos import LOOPR, PATIENCE_SECS, opened

PICTURE = [f"line {number}" for number in range(200)]


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Give both ends of a terminal: the one that is read, and the one that is written to."""
    master, slave = pty.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


def opened_at(slave: int) -> Terminal:
    """Open the terminal that a descriptor leads to."""
    found = Terminal.behind_of(slave)
    assert found is not None
    return found


def test_what_is_no_terminal(tmp_path: Path) -> None:
    """A file is no terminal, and is left to whoever writes to it."""
    with (tmp_path / "file").open("w") as file:
        assert Terminal.behind_of(file.fileno()) is None


def test_a_stopped_terminal_is_not_waited_for(ends: tuple[int, int]) -> None:
    """While a terminal is stopped pictures are left out; once it goes on it gets what was begun, and all that stays."""
    master, slave = ends
    terminal = opened_at(slave)
    screen = Screen(terminal.write, lambda: (80, 300), terminal)
    termios.tcflow(slave, termios.TCOOFF)
    for number in range(2_000):
        screen.draw([f"picture {number}", *PICTURE])
    screen.print(["the end"])
    termios.tcflow(slave, termios.TCOON)
    heard = b""
    while terminal.lags or b"the end" not in heard:
        heard += os.read(master, 1 << 16)
    terminal.close()
    assert heard.count(b"picture ") < 100
    assert b"picture 0\x1b" in heard


def test_the_last_words_to_a_stopped_terminal(ends: tuple[int, int]) -> None:
    """At the end a terminal that takes nothing is left after a moment, and one that nobody has any more at once."""
    termios.tcflow(ends[1], termios.TCOOFF)
    terminal = opened_at(ends[1])
    terminal.write("the end")
    terminal.close()
    terminal.close()


def test_work_goes_on_behind_a_stopped_terminal(tmp_path: Path, ends: tuple[int, int]) -> None:
    """Work that is watched on a terminal comes to its end although the terminal was stopped with Ctrl-S meanwhile."""
    master, slave = ends
    Thread(target=_read, args=(os.dup(master),), daemon=True).start()
    with opened(tmp_path) as repo:
        repo.found()
        repo.gate("gate")
        run = repo.script("code", "tell x; wait_at gate; seq 2000")
        repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n")
        names = ", ".join(f"{{id: {name}}}" for name in "abcdefgh")
        repo.write({"plan.md": f"---\nid: demo\nchildren: [{names}]\n---\n# Demo\n"})
        environment = {**repo.env, "TERM": "xterm"}
        with subprocess.Popen(
            [LOOPR, "start", "plan.md"], cwd=repo.root, env=environment, stdin=slave, stderr=slave
        ) as it:
            try:
                repo.heard(8, attached=False)
                termios.tcflow(slave, termios.TCOOFF)
                repo.gates["gate"].open()
                assert it.wait(PATIENCE_SECS) == 0
            finally:
                it.kill()
        assert set(repo.statuses().values()) == {"complete"}


def _read(descriptor: int) -> None:
    """Read what is written to a terminal until it is gone."""
    try:
        while os.read(descriptor, 1 << 16):
            pass
    except OSError:
        os.close(descriptor)
