"""The folders of runs: where the files of an attempt lie, and what is kept there for the next one.

    runs/<generation>/<attempt>/         prompt.md, stdout.log, stderr.log, run.json, outcome.json, output.md ...
    runs/<generation>/<attempt>/<step>/  the same for what ran beside the command: setup, check.KEY, review.KEY

Knows folders and small files. Must never know a loop, nor what an outcome means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

OUTPUT, REFUSAL, CIRCUMSTANCES, USAGE = "output.md", "refusal.json", "circumstances.json", "usage.json"


class Refusal(NamedTuple):
    """Why an attempt was refused: in one line, and with all that helps to mend it."""

    iteration: int
    reason: str
    text: str


class Runs:
    """All run folders of a workspace."""

    def __init__(self, state: Path) -> None:
        """Name the folder of the state."""
        self.root = state / "runs"

    def folder(self, name: str, attempt: int, step: str = "") -> Path:
        """Return the folder of one attempt, or of a step beside its command."""
        return Path(f"{self.root}/{name}/{attempt}/{step}" if step else f"{self.root}/{name}/{attempt}")

    def ensure(self, name: str, attempt: int, step: str = "") -> Path:
        """Make the folder of an attempt, or of a step, and return it."""
        folder = self.folder(name, attempt, step)
        try:
            folder.mkdir()
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            pass
        return folder

    @staticmethod
    def id_of(name: str, attempt: int, step: str = "") -> str:
        """Return how the launcher calls a run: its folder, from `runs/` on."""
        return f"{name}/{attempt}/{step}" if step else f"{name}/{attempt}"

    def attempts(self, name: str) -> list[int]:
        """List the attempts of a generation that have a folder, the first one first."""
        try:
            found = [each.name for each in (self.root / name).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(each) for each in found if each.isdigit())

    def steps(self, name: str, attempt: int) -> dict[str, Path]:
        """Map the ids of an attempt and of the steps beside it to their folders, as far as they are there."""
        folder = self.folder(name, attempt)
        if not folder.is_dir():
            return {}
        beside = sorted(each for each in folder.iterdir() if each.is_dir())
        return {self.id_of(name, attempt): folder} | {self.id_of(name, attempt, each.name): each for each in beside}

    def note_refusal(self, name: str, attempt: int, refusal: Refusal) -> None:
        """Keep why an attempt was refused, for the feedback of the next ones."""
        _write(self.ensure(name, attempt) / REFUSAL, refusal._asdict())

    def refusals(self, name: str, before: int) -> Iterator[Refusal]:
        """Give the refusals of the attempts before one, oldest first."""
        for attempt in self.attempts(name):
            said = _read(self.folder(name, attempt) / REFUSAL) if attempt < before else None
            if said is not None:
                with suppress(TypeError):
                    yield Refusal(**said)

    def note_circumstances(self, name: str, attempt: int, **said: str) -> None:
        """Keep under what circumstances an attempt runs, for an engine that comes after a crash."""
        _write(self.ensure(name, attempt) / CIRCUMSTANCES, said)

    def circumstances(self, name: str, attempt: int) -> dict[str, str]:
        """Return under what circumstances an attempt runs; nothing where that is not known."""
        said = _read(self.folder(name, attempt) / CIRCUMSTANCES)
        return {key: str(value) for key, value in said.items()} if said is not None else {}

    def last_with(self, name: str, before: int, file: str) -> Path | None:
        """Return the newest such file of the attempts before one."""
        for attempt in reversed(self.attempts(name)):
            path = self.folder(name, attempt) / file
            if attempt < before and path.is_file():
                return path
        return None


def _write(path: Path, said: dict[str, Any]) -> None:
    """Write a small JSON document by rename."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(said), encoding="utf-8", errors="surrogatepass")
    fresh.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    """Read a small JSON document, None where there is none."""
    try:
        said = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None
