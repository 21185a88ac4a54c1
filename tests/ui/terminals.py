"""A terminal as far as a picture needs one, and a line to it that a program takes for a real one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from queue import Queue
from threading import Thread

from loopr.ui.render import columns

HALF = "\0"  # the second half of a wide character
CONTROL = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|([\r\n\x07])|([^\x1b\r\n\x07]+)")


class Terminal:
    """A terminal as far as a picture needs one: it wraps, scrolls, and breaks its lines anew when it is resized."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows: list[tuple[str, bool]] = [("", False)]
        self.row = self.column = self.top = 0
        self.wrapped = 0

    def feed(self, text: str) -> None:
        """Obey what is written."""
        at = 0
        while at < len(text):
            found = CONTROL.match(text, at)
            assert found, f"not understood: {text[at : at + 20]!r}"
            at = found.end()
            number, command, control, printed = found.groups()
            if command:
                self._obey(command, number)
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self._down(False)
            else:
                for sign in printed or "":
                    self._put(sign)

    def _obey(self, command: str, number: str) -> None:
        text, soft = self.rows[self.row]
        if command == "A":
            self.row = max(self.top, self.row - int(number or 1))
        elif command == "K":
            self.rows[self.row] = text[: self.column], False
        elif command == "J":
            self.rows[self.row] = text[: self.column], False
            self.rows[self.row + 1 :] = []
        else:
            assert command == "m", command

    def _down(self, soft: bool) -> None:
        self.rows[self.row] = self.rows[self.row][0], soft
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(("", False))
        self.top = max(self.top, self.row - self.height + 1)

    def _put(self, sign: str) -> None:
        if self.column + columns(sign) > self.width:
            self._down(True)
            self.column = 0
            self.wrapped += 1
        text, soft = self.rows[self.row]
        cells = sign.ljust(columns(sign), HALF)
        self.rows[self.row] = text[: self.column].ljust(self.column) + cells + text[self.column + len(cells) :], soft
        self.column += len(cells)

    def resize(self, width: int, height: int) -> None:
        """Break all lines anew; the cursor stays at the beginning of its line."""
        before = sum(not soft for _, soft in self.rows[: self.row])
        whole = "".join(text + ("" if soft else "\n") for text, soft in self.rows).split("\n")[:-1]
        self.width, self.height, self.rows = width, height, []
        for number, line in enumerate(whole):
            if number == before:
                self.row = len(self.rows)
            parts = [line[at : at + width] for at in range(0, len(line), width)] or [""]
            self.rows += [(part, part is not parts[-1]) for part in parts]
        self.top = max(0, self.row - height + 1)

    @property
    def lines(self) -> list[str]:
        """What is written on it, with what has scrolled away."""
        return [text.rstrip().replace(HALF, "") for text, _ in self.rows if text.rstrip()]


class Line:
    """A pseudo terminal with somebody who reads it all the time."""

    def __init__(self, width: int, height: int) -> None:
        self._master, self._slave = pty.openpty()
        self._read: Queue[bytes] = Queue()
        self._rest = b""
        self.terminal = Terminal(width, height)
        self.writes: list[str] = []
        self._resize(width, height)
        self._reader = Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        while True:
            try:
                self._read.put(os.read(self._master, 65536))
            except OSError:
                return

    def write(self, text: str) -> None:
        """Write as a program does."""
        self.writes.append(text)
        left = text.encode()
        while left:
            left = left[os.write(self._slave, left) :]

    @property
    def descriptor(self) -> int:
        """The end that a program writes to."""
        return self._slave

    def size(self) -> tuple[int, int]:
        """Ask for the size as a program does."""
        return tuple(os.get_terminal_size(self._slave))  # type: ignore[return-value]

    def _resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width: int, height: int) -> None:
        """Change the size, as a person does with the window's edge."""
        self.lines()
        self._resize(width, height)
        self.terminal.resize(width, height)

    def lines(self) -> list[str]:
        """Return what is written on the terminal once all has arrived there."""
        os.write(self._slave, b"\x07")
        while b"\x07" not in self._rest:
            self._rest += self._read.get(timeout=30)
        heard, _, self._rest = self._rest.partition(b"\x07")
        self.terminal.feed(heard.decode())
        return self.terminal.lines

    def close(self) -> None:
        """Hang up."""
        os.close(self._slave)
        self._reader.join(30)
        os.close(self._master)


def on_terminal(folder: Path, *arguments: str, width: int = 80, **environment: str) -> bytes:
    """Run loopr on a terminal of its own, and return what arrives there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 100, width, 0, 0))
    command = [sys.executable, "-m", "loopr", *arguments, "-C", str(folder)]
    subprocess.run(command, stdout=theirs, stderr=theirs, env={**os.environ, **environment}, check=True)
    os.close(theirs)
    found = b""
    while part := _read_on(ours):
        found += part
    os.close(ours)
    return found


def _read_on(terminal: int) -> bytes:
    """Read on; a terminal whose other end is closed is at its end."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
