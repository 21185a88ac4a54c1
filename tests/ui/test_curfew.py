"""A process that was told to end at once ends, also where its main thread does not come to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopr.ui.curfew import MARGIN_SECS, code_of, ends_at_once
from loopr.world.launcher import proc
from loopr.world.lock import END_AT_ONCE

HANGS = """
import os, signal, subprocess, sys
from loopr.ui.curfew import Curfew
child = subprocess.Popen(["sh", "-c", "trap '' TERM; echo up; cat {fifo}"], stdout=subprocess.PIPE)
child.stdout.readline()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: print(int(number), flush=True))
with Curfew(lambda: 0.1, lambda: "left to the next run: all of it"):
    print(child.pid, flush=True)
    while True:
        child.wait()
"""


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT] * 2, [END_AT_ONCE]])
def test_a_process_that_hangs_ends(tmp_path: Path, numbers: list[int]) -> None:
    """It ends with its children after its span and the margin, says what it leaves, and its code tells why."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    words = [sys.executable, "-c", HANGS.format(fifo=fifo)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    start = proc.start_time(child)
    for number in numbers:
        process.send_signal(number)
        assert process.stdout.readline() == f"{int(number)}\n"
    began = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - began >= MARGIN_SECS - 0.5
    assert process.returncode == code_of(numbers)
    assert said == "left to the next run: all of it\n"
    assert not proc.is_alive(child, start)


def test_which_signals_end_at_once() -> None:
    """The first Ctrl-C ends nothing at once; the second does, and so do the others."""
    assert not ends_at_once(signal.SIGINT, [])
    assert ends_at_once(signal.SIGINT, [signal.SIGINT])
    assert ends_at_once(signal.SIGTERM, []) and ends_at_once(END_AT_ONCE, [])


def test_what_the_exit_code_tells() -> None:
    """Ctrl-C and SIGTERM have codes of their own, the first that came; another loopr's stop has none."""
    assert code_of([signal.SIGINT, signal.SIGTERM]) == 130
    assert code_of([END_AT_ONCE, signal.SIGTERM]) == 143
    assert code_of([END_AT_ONCE]) == 4
