"""Output without bounds: on disk, in memory, and past the death of whoever reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world.attempting import Yard, murder

pytestmark = pytest.mark.soak  # of a part that nothing calls yet: run by `make soak` until it can be relied upon

MIB = 1 << 20


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a workspace, and see that nothing is left of it."""
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def size_of(folder: Path) -> int:
    """Return what a folder takes on disk; files may go while we look."""
    sizes = []
    for path in folder.iterdir():
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return sum(sizes)


def peak_kb(pid: int) -> int:
    """Return the most memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("mib", [48, pytest.param(1024, marks=pytest.mark.soak)])
def test_endless_output_is_bounded(yard: Yard, mib: int) -> None:
    """However much a command says, disk and memory are bounded, and head and tail are there with what is missing."""
    head, tail = 2 * MIB, MIB
    said = f"echo first; head -c {mib * MIB} /dev/zero | tr '\\0' x; echo; echo last"
    go = yard.bell("go")
    yard.start("x", f"{said}; read _ < {go}", head_bytes=head, tail_bytes=tail)
    yard.pid("x")
    supervisor = yard.claim("x")["supervisor"]
    while yard.attempts.tail("x") != ["last"]:
        assert size_of(yard.folder("x")) <= head + 3 * tail + 4096
        yard.attempts.poll(0)
    memory = peak_kb(supervisor)
    go.ring()
    outcome = yard.outcome("x")
    assert memory < 40 << 10
    assert outcome.stdout_bytes == mib * MIB + len("first\n\nlast\n")
    text = (yard.folder("x") / "stdout.log").read_bytes()
    cut = outcome.stdout_bytes - head - tail
    mark = f"\n[loopr: {cut} bytes were cut here]\n".encode()
    assert text.startswith(b"first\nxxx")
    assert text.endswith(b"xxx\nlast\n")
    assert text[head : head + len(mark)] == mark
    assert len(text) == head + len(mark) + tail
    assert size_of(yard.folder("x")) < head + tail + 4096


def test_a_command_outlives_its_reader(yard: Yard) -> None:
    """When the supervisor dies nobody gets a SIGPIPE, no output is lost, and the whole of it is in one log."""
    lines = 20_000
    bell, go = yard.bell("bell"), yard.bell("go")
    said = 'i=0; while [ $i -lt {n} ]; do echo "line $i"; i=$((i + 1)); done'
    yard.start(
        "x", f"{said.format(n=lines)}; echo > {bell}; read _ < {go}; {said.format(n=lines)}; echo end >&2; exit 3"
    )
    yard.pid("x")
    bell.wait()
    murder(yard.claim("x")["supervisor"])
    go.ring()
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code) == ("exited", 3)
    expected = "".join(f"line {number}\n" for number in range(lines))
    assert yard.written("x", "stdout.log") == expected * 2
    assert yard.written("x", "stderr.log") == "end\n"
    assert outcome.stdout_bytes == 2 * len(expected)
