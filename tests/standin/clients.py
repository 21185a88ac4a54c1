"""The real clients, at the versions that were measured, in a cache folder outside the repository.

    python -m tests.standin.clients [NAME…]     install what is not there yet, and say where it is

Knows how each is installed and which program to start. Must never know what it is asked to do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CACHE = os.environ.get("LOOPR_TEST_CLIENTS") or os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/loopr-test-clients"
CACHE = Path(_CACHE).expanduser()
"""Where they are kept; read once, because tests live in a home of their own."""
DONE = "installed"
PATIENCE_SECS = 900


class NotInstalled(Exception):
    """A client is not there, or could not be installed."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client: its package, its version, where its program lies in what was installed, and what that runs on."""

    name: str
    package: str
    version: str
    program: str
    install: Callable[[Client], None]
    runs_on: str = ""

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return CACHE / f"{self.name}-{self.version}"

    def found(self) -> Path:
        """Return its program; the native one, so that no other process stands between."""
        programs = sorted(self.folder.glob(self.program)) if (self.folder / DONE).exists() else []
        if not programs:
            raise NotInstalled(f"{self.name} {self.version} is not installed here: `make clients` does that")
        if self.runs_on and shutil.which(self.runs_on) is None:
            raise NotInstalled(f"{self.name} {self.version} runs on {self.runs_on}, and there is none on this machine")
        return programs[0]

    def ensure(self) -> Path:
        """Install it unless it is there; another process that does the same is waited for."""
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.folder / DONE).exists():
                shutil.rmtree(self.folder, ignore_errors=True)
                self.install(self)
                (self.folder / DONE).touch()
        return self.found()


def _from_npm(client: Client) -> None:
    """Install with npm: no scripts are run, the platform's own package brings the native program."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled(f"{client.name} comes from npm, and there is none on this machine")
    words = ("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    _call([npm, *words, "--prefix", str(client.folder), f"{client.package}@{client.version}"], client)


def _from_pypi(client: Client) -> None:
    """Install with pip, in an environment of its own."""
    venv.create(client.folder, with_pip=True)
    words = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _call([str(client.folder / "bin/python"), *words, f"{client.package}=={client.version}"], client)


def _call(argv: list[str], client: Client) -> None:
    """Run an installer."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_SECS)
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"{client.name} {client.version} was not installed within {PATIENCE_SECS} s") from error
    if done.returncode != 0:
        end = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise NotInstalled(f"{client.name} {client.version} cannot be installed: {' / '.join(end)}")


CLIENTS = {
    each.name: each
    for each in (
        Client(
            "claude",
            "@anthropic-ai/claude-code",
            "2.1.326",  # npm on Node 20 would take a much older one by itself; the native program needs no Node
            "node_modules/@anthropic-ai/claude-code-*/claude",
            _from_npm,
        ),
        Client("codex", "@openai/codex", "0.169.0", "node_modules/@openai/codex-*/vendor/*/bin/codex", _from_npm),
        Client("opencode", "opencode-ai", "1.18.33", "node_modules/opencode-linux-*/bin/opencode", _from_npm),
        Client(
            "gemini",
            "@google/gemini-cli",
            "0.61.0",
            "node_modules/@google/gemini-cli/bundle/gemini.js",
            _from_npm,
            "node",
        ),
        Client("aider", "aider-chat", "0.86.2", "bin/aider", _from_pypi),
    )
}


def main(names: list[str]) -> int:
    """Install what is asked for, all if nothing is, and say how it went."""
    failed = False
    for name in names or CLIENTS:
        try:
            print(f"{name} {CLIENTS[name].version}: {CLIENTS[name].ensure()}")
        except NotInstalled as error:
            failed = True
            print(error, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
