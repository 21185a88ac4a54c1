"""A log on disk: head, tail, and what is said about the rest."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from loopr.world.launcher.log import Log

SIZES = st.integers(0, 40)
CHUNKS = st.lists(st.binary(min_size=1, max_size=60), max_size=12)


def feed(log: Log, output: bytes) -> None:
    """Have a log take output from a pipe."""
    reader, writer = os.pipe2(os.O_NONBLOCK)
    os.write(writer, output)
    os.close(writer)
    while log.take(reader):
        pass
    os.close(reader)


def expected(output: bytes, head: int, tail: int) -> bytes:
    """Say what a log has to hold in the end."""
    kept = min(tail, max(0, len(output) - head))
    cut = len(output) - head - kept
    if cut <= 0:
        return output
    return output[:head] + f"\n[loopr: {cut} bytes were cut here]\n".encode() + output[len(output) - kept :]


@given(CHUNKS, SIZES, SIZES, st.integers(0, 12))
def test_head_and_tail_are_kept(chunks: list[bytes], head: int, tail: int, taken_over: int) -> None:
    """Whatever comes in whatever pieces, head and tail are kept, also if another process goes on in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdout.log"
        log = Log(str(path), head, tail)
        for number, chunk in enumerate(chunks):
            if number == taken_over and tail:  # without a tail, what was dropped is known to nobody
                log._close()
                log = Log.resume(str(path), head, tail)
            feed(log, chunk)
            size = sum(each.stat().st_size for each in Path(folder).iterdir())
            assert size <= head + 2 * tail
        log.finish()
        output = b"".join(chunks)
        assert log.total == len(output)
        assert (path.read_bytes() if path.exists() else b"") == expected(output, head, tail)
        assert path.exists() or not output or not head + tail
        assert [each.name for each in Path(folder).iterdir()] in ([], ["stdout.log"])


def test_a_log_that_was_being_put_in_order_is_put_in_order_again(tmp_path: Path) -> None:
    """Whoever takes over from one that was killed while it joined head and tail ends with the same log."""
    path = tmp_path / "stdout.log"
    log = Log(str(path), 4, 4)
    feed(log, b"headmiddletail")
    log._close()
    with path.open("ab") as half:
        half.write(b"\n[loopr: 6 bytes we")
    Log.resume(str(path), 4, 4).finish()
    assert path.read_bytes() == b"head\n[loopr: 6 bytes were cut here]\ntail"


def test_a_disk_that_refuses_stops_nothing(tmp_path: Path) -> None:
    """What cannot be written is counted and mentioned, and the output goes on being taken."""
    log = Log(str(tmp_path / "missing" / "stdout.log"), 4, 4)
    feed(log, b"more than there is room for")
    log.finish()
    assert log.total == 27
    assert "No such file" in log.trouble
