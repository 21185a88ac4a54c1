"""A network with nothing but a loopback: whatever is opened or started there can reach nothing else.

Network namespaces belong to threads, so one thread of the test process lives there, and works for the others. Must
never know what is done on the island.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
Made = TypeVar("Made")


class NoIsland(Exception):
    """This machine, or this user, cannot have a network of its own."""


class Island:
    """One thread in a network of its own."""

    def __init__(self) -> None:
        """Leave the network of everyone else, and bring the loopback up."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="island")
        try:
            self.do(_cast_off)
        except (OSError, AttributeError) as error:
            self.close()
            message = f"no network namespace ({error}): be root, or run under `unshare --map-root-user`"
            raise NoIsland(message) from error

    def do(self, work: Callable[[], Made]) -> Made:
        """Let something be done there: sockets that it opens, and processes that it starts, are there for good."""
        return self._thread.submit(work).result()

    def close(self) -> None:
        """Leave the island; it goes under with the last process that is on it."""
        self._thread.shutdown()


def _cast_off() -> None:
    """Move this thread to a new network, and bring its loopback up."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
