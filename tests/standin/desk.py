"""Where a real client is started from in tests: a home, an environment and a network of its own.

Knows which variables and files make each client talk to the stand-in, and nothing else. Must never know what it is
asked to do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.standin.answers import Text
from tests.standin.clients import CLIENTS
from tests.standin.island import Island
from tests.standin.server import Chosen, Standin

KEY = "sk-standin-0123456789abcdef"
CODEX_SETTINGS = """\
model = "gpt-5-codex"
model_provider = "standin"
[model_providers.standin]
name = "standin"
base_url = "{url}/v1"
env_key = "STANDIN_KEY"
wire_api = "responses"
"""
OPENCODE_SETTINGS = """\
{{
  "model": "standin/m",
  "provider": {{
    "standin": {{
      "npm": "@ai-sdk/openai-compatible",
      "options": {{"baseURL": "{url}/v1", "apiKey": "{{env:STANDIN_KEY}}"}},
      "models": {{"m": {{"limit": {{"context": 200000, "output": 8000}}, "cost": {{"input": 1, "output": 5}}}}}}
    }},
    "anthropic": {{"options": {{"baseURL": "{url}/v1"}}}}
  }}
}}
"""
GEMINI_SETTINGS = '{"general": {"maxAttempts": 2}, "security": {"auth": {"selectedType": "gemini-api-key"}}}\n'
"""What a person is told to write: the defaults of the preset are read only where all above them is root's."""


class Desk:
    """A home with nothing but what a client needs, an island, and the stand-in on it."""

    def __init__(self, folder: Path, island: Island, standin: Standin, clients: Mapping[str, Path]) -> None:
        """Lay everything out."""
        self.folder, self.island, self.standin = folder, island, standin
        self.home, self.scratch, self.bin = folder / "home", folder / "scratch", folder / "bin"
        self.scratch.mkdir(parents=True)
        self.bin.mkdir()
        for name, settings in (
            (".codex/config.toml", CODEX_SETTINGS.format(url=standin.url)),
            (".config/opencode/opencode.json", OPENCODE_SETTINGS.format(url=standin.url)),
            (".gemini/settings.json", GEMINI_SETTINGS),
        ):
            (self.home / name).parent.mkdir(parents=True)
            (self.home / name).write_text(settings)
        for name, program in clients.items():
            (self.bin / name).symlink_to(program)

    def environment(self, **more: str) -> dict[str, str]:
        """Return all that a client is given: nothing of this machine but where its programs are."""
        url = self.standin.url
        plain = {
            "PATH": os.pathsep.join([str(self.bin), *_programs()]),
            "HOME": str(self.home),
            "TMPDIR": str(self.scratch),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "STANDIN_KEY": KEY,
            "OPENAI_API_KEY": KEY,
            "OPENAI_API_BASE": f"{url}/v1",
            "AIDER_MODEL": "openai/gpt-4o",
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": url,
        }
        if "CLAUDE_CODE_OAUTH_TOKEN" in more:
            del plain["ANTHROPIC_API_KEY"]
        return plain | more

    def start(self, argv: list[str], cwd: Path, stdin: Path, **more: str) -> subprocess.Popen[bytes]:
        """Start a client on the island, in a session of its own."""

        def there() -> subprocess.Popen[bytes]:
            with stdin.open("rb") as source:
                return subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=self.environment(**more),
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )

        return self.island.do(there)

    def make_database(self) -> None:
        """Let opencode make its database: of several that do so in a new home at once, some fail."""
        argv, nowhere = [str(self.bin / "opencode"), "session", "list"], Path(os.devnull)
        self.start(argv, self.folder, nowhere).communicate()


def _programs() -> list[str]:
    """Return where this machine keeps its ordinary programs."""
    return [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each.endswith("bin")]


@contextmanager
def at_a_desk(folder: Path, *names: str, otherwise: Chosen = lambda asked: Text()) -> Iterator[Desk]:
    """Give a desk with some clients on it; NoIsland or NotInstalled says what is missing."""
    clients = {name: CLIENTS[name].found() for name in names}
    island = Island()
    standin = island.do(lambda: Standin(otherwise))
    try:
        desk = Desk(folder, island, standin, clients)
        if "opencode" in clients:
            desk.make_database()
        yield desk
    finally:
        standin.close()
        island.close()
