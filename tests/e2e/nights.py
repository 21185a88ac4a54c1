"""A night: a repository, a real client and the stand-in model server, on a network where there is nothing else.

What is checked after each: no process of the night is left, and the worktrees hold no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, Process, Repo
from tests.standin.author import LOOPS, author, work_of
from tests.standin.clients import NotInstalled
from tests.standin.desk import Desk, at_a_desk
from tests.standin.island import NoIsland
from tests.standin.server import Chosen, Standin

PATIENCE_SECS = 250.0  # a client takes seconds to start, and the machine may be busy
MARKS = [pytest.mark.clients, pytest.mark.timeout(300)]
RETRY = """\
retry: {base_secs: 0.2, jitter: 0}
"""


class Night(Repo):
    """A repository whose loopr runs at a desk: on its island, in its environment."""

    patience_secs = PATIENCE_SECS

    def __init__(self, folder: Path, desk: Desk) -> None:
        """Begin with the environment of the desk, and what a repository needs."""
        super().__init__(folder)
        self.laid_out = desk
        identity = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
        self.env = {**desk.environment(), **identity, "DESK": str(self.desk)}

    @property
    def standin(self) -> Standin:
        """The model server."""
        return self.laid_out.standin

    def begin(self, *words: str, cwd: Path | None = None, **environ: str) -> Process:
        """Start loopr on the island."""
        return self.laid_out.island.do(lambda: Repo.begin(self, *words, cwd=cwd, **environ))

    def _settings(self, more: str) -> str:
        """Write what all nights have in their settings."""
        return f"agents: {{codex: {{provider: standin}}}}\n{RETRY}{more}"

    def plan(self, agent: str, more: str = "", code: str = "") -> None:
        """Set the repository up for a plan all of whose loops are one agent's."""
        types = "".join(f"  {each}: {{agent: {agent}}}\n" for each in ("plan", "spec", "phase"))
        check = "check: 'test -s work/*.txt || ls work/*.txt'"
        self.settings(f"types:\n{types}  code: {{agent: {agent}, {check}{code}}}\n{self._settings(more)}")
        self.write({"plan.md": "# Demo\n\nA greeting from everyone.\n"})

    def leaves(self, agent: str, names: str, more: str = "", code: str = "", entries: str = "") -> None:
        """Set the repository up for a plan with nothing but code loops of an agent, and entries of the test's own."""
        self.settings(f"types:\n  plan: {{child: code}}\n  code: {{agent: {agent}{code}}}\n{self._settings(more)}")
        children = ", ".join(filter(None, [*(f"{{id: {each}}}" for each in names.split()), entries]))
        self.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})

    def is_landed(self) -> None:
        """See that every loop of the plan is complete, and that what it wrote is on the plan's branch."""
        assert self.statuses() == dict.fromkeys(LOOPS, "complete")
        for loop in LOOPS:
            if loop.endswith("/code"):
                assert self.on_branch("demo", work_of(loop)) == loop

    def holding(self, words: str) -> list[str]:
        """Name the files of the repository, of its worktrees and of loopr's state in which some words are written."""
        files = [each for each in self.root.rglob("*") if each.is_file() and not each.is_symlink()]
        return [each.relative_to(self.root).as_posix() for each in files if words.encode() in each.read_bytes()]

    def left_behind(self) -> list[str]:
        """Name the processes that carry this night's home in their environment, beside loopr's own."""
        mark, own = f"HOME={self.laid_out.home}".encode(), (str(self.state), str(LOOPR))
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:1000])
        return [each for each in found if not any(part in each for part in own)]


@contextmanager
def night(folder: Path, *clients: str, otherwise: Chosen | None = None) -> Iterator[Night]:
    """Give a night with some clients; skip the test, saying why, where one of them cannot be had."""
    try:
        with at_a_desk(folder / "at", *clients, otherwise=otherwise or author()) as desk:
            repo = Night(folder, desk)
            try:
                yield repo.found()
            finally:
                repo.close()
    except (NotInstalled, NoIsland) as error:
        pytest.skip(str(error))
