"""Every test runs on a machine of its own: an empty home, no git settings, no variables of loopr's, one time zone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A red build is the fault of what changed, so CI draws the same examples each time; a desk and a soak look further.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("desk", max_examples=50, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; what we start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

DEFAULT_SEEDS = 2000

LEAKS = ("LOOPR", "GIT_", "XDG_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "TRACEPARENT", "EDITOR")
SLOWS = ("PYTHONDONTWRITEBYTECODE",)  # with it every process that a test starts would compile all of loopr anew

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada Tester",
    "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_NAME": "Ada Tester",
    "GIT_COMMITTER_EMAIL": "ada@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run two tests for each processor: half of their time they wait for a process, a disk or a clock."""
    return 2 * (os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make soak` play more simulated worlds than `make test`."""
    parser.addoption("--seeds", type=int, default=DEFAULT_SEEDS, help="how many simulated worlds to play")


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> range:
    """Give the seeds of the simulated worlds that this run plays."""
    return range(request.config.getoption("--seeds"))


@pytest.fixture(scope="session", autouse=True)
def hermetic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Take from the environment all that differs between machines, for this process and the ones it starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith((*LEAKS, *SLOWS))]:
            patch.delenv(name)
        for name, value in IDENTITY.items():
            patch.setenv(name, value)
        patch.setenv("TZ", "UTC")
        live_in(tmp_path_factory.mktemp("home"), patch)
        time.tzset()
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder of its own to a test that writes there."""
    folder = tmp_path / "home"
    folder.mkdir()
    live_in(folder, monkeypatch)
    return folder


def live_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Point everything that a program looks up as the user's own at a folder."""
    patch.setenv("HOME", str(folder))
    patch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    patch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    patch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
    patch.setenv("XDG_DATA_HOME", str(folder / ".local" / "share"))
