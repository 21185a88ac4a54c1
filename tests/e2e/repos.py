"""Real repositories with a plan and commands of a test's own, and the installed loopr as a process in them.

Nothing here sleeps: a command says what it does on a pipe (`tell`), waits at a gate until the test opens it
(`wait_at`), and writes its life into one file (`begin`, `end`), in which all is in the order in which it happened.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Event, Thread
from typing import IO, Any, NamedTuple

from loopr.errors import NotFound
from loopr.world.journal import Journal

LOOPR = Path(sys.executable).with_name("loopr")
PATIENCE_SECS = 60.0
LOOK_SECS = 0.2  # how often whoever waits asks whether there is anybody left to wait for
SHELL = """\
set -eu
say() { printf '%s\\n' "$*" >> "$DESK/diary"; }
tell() { printf '%s\\n' "$*" > "$DESK/pipe"; }
begin() { say "+ $LOOPR_LOOP $LOOPR_ITERATION"; }
end() { say "- $LOOPR_LOOP $LOOPR_ITERATION"; }
wait_at() { read -r _ < "$DESK/$1"; }
"""


class Ended(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Process:
    """A loopr that runs; its output is read while it runs, so that it never waits for a reader."""

    patience_secs = PATIENCE_SECS

    def __init__(self, argv: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        """Start it, in a session of its own, so that a signal to it is for it alone."""
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._said: dict[str, list[str]] = {"out": [], "err": []}
        self._more = Condition()
        streams = {"out": self.process.stdout, "err": self.process.stderr}
        self._readers = [Thread(target=self._read, args=each, daemon=True) for each in streams.items()]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str, stream: IO[bytes]) -> None:
        """Read one stream to its end."""
        with stream:
            for line in stream:
                with self._more:
                    self._said[name].append(line.decode(errors="replace"))
                    self._more.notify_all()

    def lines(self, number: int, stream: str = "out") -> list[str]:
        """Wait until it has said so many lines, and return them."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._said[stream]) >= number, PATIENCE_SECS), self._said
            return self._said[stream][:number]

    def says(self, words: str, stream: str = "err") -> str:
        """Wait until it has said a line with some words in it, and return that line."""
        with self._more:
            assert self._more.wait_for(lambda: any(words in each for each in self._said[stream]), PATIENCE_SECS), (
                words,
                self._said,
            )
            return next(each for each in self._said[stream] if words in each)

    @property
    def pid(self) -> int:
        """The pid of the process itself."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """True once it is over."""
        return self.process.poll() is not None

    @property
    def said(self) -> str:
        """What it has said so far, on both streams."""
        with self._more:
            return "".join(self._said["out"] + self._said["err"])

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it, and nothing else."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def ended(self, code: int | None = 0) -> Ended:
        """Wait for its end; it must have that exit code (None: any), and no trace of a bug."""
        found = self.process.wait(self.patience_secs)
        for reader in self._readers:
            reader.join(PATIENCE_SECS)
        end = Ended(found, *("".join(self._said[each]) for each in ("out", "err")))
        assert "Traceback" not in end.err, end.err
        assert code is None or end.code == code, f"exit {end.code}, not {code}\n{end.out}\n{end.err}"
        return end


class Gate:
    """A place at which commands wait until the test lets them on."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def let_on(self, number: int = 1) -> None:
        """Let that many commands on, of those that wait or of those that come."""
        os.write(self._end, b"\n" * number)

    def open(self) -> None:
        """Let everyone on from now on."""
        plain = self._path.with_suffix(".open")
        plain.write_text("\n" * 10)
        plain.replace(self._path)
        self.let_on(4096)  # for whoever has opened the pipe already

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._end)


class Repo:
    """One repository, the desk beside it on which commands and tests leave notes, and the loopr that works there."""

    patience_secs = PATIENCE_SECS

    def __init__(self, folder: Path, *, root: Path | None = None) -> None:
        """Make the desk; the repository itself is made by `found`."""
        self.root = root or folder / "repo"
        self.desk = folder / "desk"
        self.desk.mkdir(parents=True)
        (self.desk / "shell").write_text(SHELL)
        os.mkfifo(self.desk / "pipe")
        self._pipe = os.open(self.desk / "pipe", os.O_RDWR | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)
        self._heard: list[str] = []
        self._rest = b""
        self.gates: dict[str, Gate] = {}
        self._processes: list[Process] = []
        self.env = {**os.environ, "DESK": str(self.desk), "ENV": ""}

    # -- the repository

    def found(self, files: Mapping[str, str] | None = None) -> Repo:
        """Make the repository with one commit of some files."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write({"README": "what was there\n", **(files or {})})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=first")
        return self

    def write(self, files: Mapping[str, str]) -> None:
        """Write files into the user's checkout."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def drop(self, name: str, text: str) -> None:
        """Put an artifact among the others, as an editor does: by rename."""
        path = self.root / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text)
        fresh.replace(path)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Call git in the repository."""
        argv = ["git", "-C", str(cwd or self.root), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=self.env)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def script(self, name: str, text: str) -> str:
        """Put a script for the shell on the desk, with the words of `SHELL`, and return the command that runs it."""
        (self.desk / f"{name}.sh").write_text(f'. "$DESK/shell"\n{text}\n')
        return f'sh "$DESK/{name}.sh"'

    def settings(self, text: str, *, worktrees: str = "") -> None:
        """Write loopr.yml, with what every test needs in front, and commit it."""
        self.write({"loopr.yml": f"worktrees: {{min_free_gb: 0{worktrees}}}\n{text}"})
        self.git("add", "loopr.yml")
        self.git("commit", "--quiet", "--message=settings", "--", "loopr.yml")

    # -- loopr

    def begin(self, *words: str, cwd: Path | None = None, **environ: str) -> Process:
        """Start the installed loopr in the repository."""
        process = Process([str(LOOPR), *words], cwd or self.root, {**self.env, **environ})
        process.patience_secs = self.patience_secs
        self._processes.append(process)
        return process

    def loopr(self, *words: str, code: int | None = 0, cwd: Path | None = None, **environ: str) -> Ended:
        """Run the installed loopr to its end."""
        return self.begin(*words, cwd=cwd, **environ).ended(code)

    def take(self, loop: str) -> None:
        """Wait until a file is offered for a loop, and say that it is a person's."""
        self.until("artifact_offered", words=f'"loop": "{loop}"')
        self.loopr("approve", loop, "--file")

    def loops(self) -> dict[str, dict[str, Any]]:
        """Return every loop as `ls` has it."""
        return {each["id"]: each for each in self.loopr("ls", "--json").document["loops"]}

    def statuses(self) -> dict[str, str]:
        """Return where each loop stands."""
        return {each: loop["status"] for each, loop in self.loops().items()}

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return what is in the journal, all of it or some kinds of events."""
        return [each for each in self._journal() if not kinds or each["event"] in kinds]

    def until(self, kind: str, number: int = 1, words: str = "") -> list[dict[str, Any]]:
        """Wait until the journal has so many events of a kind, with some words in their values, and return those."""
        ends, read = time.monotonic() + self.patience_secs, -1
        while True:
            if (last := self._last_seq()) != read:
                read = last
                found = [each for each in self._journal() if each["event"] == kind and words in json.dumps(each)]
                if len(found) >= number:
                    return found
            assert time.monotonic() < ends, f"no {kind} ({words}) in the journal"
            Event().wait(0.02)

    def wait_for(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that no event tells."""
        ends = time.monotonic() + self.patience_secs
        while not holds():
            assert time.monotonic() < ends
            Event().wait(0.02)

    def _last_seq(self) -> int:
        """Return the number of the last event; 0 where there is no journal."""
        with suppress(NotFound), Journal.open(self.state / "loopr.db", readonly=True) as journal:
            return journal.last_seq()
        return 0

    def _journal(self) -> list[dict[str, Any]]:
        """Read the journal without a process of its own."""
        with suppress(NotFound), Journal.open(self.state / "loopr.db", readonly=True) as journal:
            return [each._asdict() | {"data": json.loads(each.data)} for each in journal.since(0)]
        return []

    @property
    def state(self) -> Path:
        """The folder of the state."""
        return self.root / ".git/loopr"

    def granted(self) -> Counter[str]:
        """Count the attempts of each loop."""
        return Counter(each["loop"] for each in self.events("lease_granted"))

    def landed(self, plan: str) -> list[tuple[str, int, int]]:
        """Return what is on a plan's branch, oldest first: loop, attempt and iteration of each commit."""
        keys = ("Loopr-Loop", "Loopr-Attempt", "Loopr-Iteration")
        words = "%x09".join(f"%(trailers:key={key},valueonly,separator=)" for key in keys)
        lines = self.git("log", "--reverse", f"--format={words}", f"main..loopr/{plan}").splitlines()
        return [(loop, int(attempt), int(iteration)) for loop, attempt, iteration in (x.split("\t") for x in lines)]

    def on_branch(self, plan: str, path: str) -> str:
        """Return a file as a plan's branch has it."""
        return self.git("show", f"loopr/{plan}:{path}")

    def users(self) -> tuple[str, ...]:
        """Return what of the repository is the user's: the checkout, index, HEAD, and refs that are not loopr's."""
        status = self.git("status", "--porcelain", "--untracked-files=all", "--", ".", ":!specs", ":!worktrees")
        refs = [each for each in self.git("for-each-ref").splitlines() if "loopr/" not in each]
        known = [self.root / each for each in self.git("ls-files").splitlines()]
        files = {each: each.read_bytes() for each in known if each.is_file()}
        head = (self.git("symbolic-ref", "HEAD"), self.git("rev-parse", "HEAD"), self.git("ls-files", "--stage"))
        return (status, *refs, *head, repr(files))

    # -- the desk

    def gate(self, name: str) -> Gate:
        """Make a gate at which commands wait with `wait_at NAME`."""
        gate = Gate(self.desk / name)
        self.gates[name] = gate
        return gate

    def heard(self, number: int = 1, *, attached: bool = True) -> list[str]:
        """Wait until commands have told so many lines, and return them; `attached` to a process of this test's."""
        ends = time.monotonic() + PATIENCE_SECS
        while len(self._heard) < number:
            over = time.monotonic() > ends or (attached and all(each.has_ended for each in self._processes))
            if not self._poll.poll(0 if over else LOOK_SECS * 1000):
                assert not over, f"heard only {self._heard}: {[each.said for each in self._processes]}"
                continue
            with suppress(BlockingIOError):
                self._rest += os.read(self._pipe, 65536)
            *lines, self._rest = self._rest.split(b"\n")
            self._heard += [line.decode() for line in lines]
        found, self._heard = self._heard[:number], self._heard[number:]
        return found

    def note(self, name: str) -> str:
        """Return what was left on the desk under a name, nothing if there is no such note."""
        path = self.desk / name
        return path.read_text() if path.exists() else ""

    def diary(self) -> list[str]:
        """Return what commands have said, in the order in which they did."""
        return self.note("diary").splitlines()

    def most_at_once(self, counts: Callable[[str], bool] = lambda loop: True, since: int = 0) -> int:
        """Return how many commands were alive at once, of the loops that count."""
        live, most = 0, 0
        for place, line in enumerate(self.diary()):
            sign, loop = line.split()[:2]
            if sign in "+-" and counts(loop):
                live += 1 if sign == "+" else -1
                most = max(most, live) if place >= since else most
        return most

    def close(self) -> None:
        """End what is left of the processes of this test, and of what they have started in its folders."""
        for process in self._processes:
            process.kill()
        for gate in self.gates.values():
            gate.close()
        os.close(self._pipe)
        for pid in _marked(f"DESK={self.desk}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    """Find the processes with a variable of a test's own in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


@contextmanager
def opened(folder: Path, *, root: Path | None = None) -> Iterator[Repo]:
    """Give a repository that is not founded yet, and clear up behind it."""
    repo = Repo(folder, root=root)
    try:
        yield repo
    finally:
        repo.close()


def outline(key: str, names: list[str], title: str = "Title", **more: str) -> str:
    """Write an artifact that declares children."""
    front = "".join(f"{name}: {value}\n" for name, value in more.items())
    return f"---\n{front}{key}:\n" + "".join(f"  - id: {name}\n" for name in names) + f"---\n# {title}\n"
