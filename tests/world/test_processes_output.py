"""Output without bounds: on disk, in memory, and past the death of whoever reads it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.world.attempting import Yard, murder, wait_gone

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


@pytest.mark.parametrize("mib", [64, pytest.param(1024, marks=pytest.mark.soak)])
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 256 KiB, where the machine lets us."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_no_outcome(yard: Yard, small_disk: Path) -> None:
    """On a full disk a command runs to its end, and its outcome is told as soon as there is room for it."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (100 << 10))
    run = small_disk / "run"
    run.mkdir()
    full, gate = yard.bell("full"), yard.bell("gate")
    yard.start("x", f"head -c 1000000 /dev/zero; echo > {full}; read _ < {gate}; exit 3", folder=run)
    pid = yard.pid("x")
    full.wait()  # what may still be in the pipe fits into what the ballast leaves, and an outcome besides
    gate.ring()
    wait_gone(pid)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "more").write_bytes(b"x" * 8192)
    assert "x" not in yard.ended
    ballast.unlink()
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code, outcome.stdout_bytes) == ("exited", 3, 1_000_000)
    assert "No space left" in outcome.message


def test_on_a_full_disk_nothing_is_started(yard: Yard, small_disk: Path) -> None:
    """An attempt that cannot be claimed does not start, says why, and may be tried again."""
    run = small_disk / "run"
    run.mkdir()
    ballast = small_disk / "ballast"
    with suppress(OSError):
        ballast.write_bytes(b"x" * (1 << 20))
    outcome = yard.run("x", "true", folder=run)
    assert (outcome.reason, outcome.cause) == ("not_started", "ENOSPC")
    assert list(run.iterdir()) == []
    ballast.unlink()
    assert yard.run("x2", "true", folder=run).code == 0


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
