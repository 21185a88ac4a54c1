"""The folders of runs: where the files of an attempt lie, and what is kept there for the next one.

    runs/<generation>/<attempt>/         prompt.md, stdout.log, stderr.log, run.json, outcome.json, output.md ...
    runs/<generation>/<attempt>/<step>/  the same for what ran beside the command: setup, check.KEY, review.KEY,
                                         setup.2 where a crash has taken the first one

Knows folders and small files. Must never know a loop, nor what an outcome means.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

OUTPUT, REFUSAL, CIRCUMSTANCES, USAGE = "output.md", "refusal.json", "circumstances.json", "usage.json"
MOST_NOTED = 1_024
MOST_COUNTED = 1 << 20
_COUNTING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW
PUT_BACK, CLASH, LEFT_OUT = "put_back.json", "conflict.json", "left_out.json"
FOLDER = "folder"
BASE = "base_commit"


class Refusal(NamedTuple):
    """Why an attempt was refused: in one line, and with all that helps to mend it."""

    iteration: int
    reason: str
    text: str


class Try(NamedTuple):
    """One attempt that was made: which iteration it was, and why it was refused, if it was."""

    attempt: int
    iteration: int
    refusal: Refusal | None


class Runs:
    """All run folders of a workspace."""

    def __init__(self, state: Path, top: Path | None = None) -> None:
        """Name the folder of the state, and that of the workspace where folders of attempts are asked for."""
        self.root = state / "runs"
        self._top = top or Path()
        self._folders: dict[str, Path] = {}  # of late: a path that is kept is taken apart only once
        self._noted: dict[tuple[str, int], dict[str, str]] = {}  # what was noted of late is asked for several times

    def folder(self, name: str, attempt: int, step: str = "") -> Path:
        """Return the folder of one attempt, or of a step beside its command."""
        key = self.id_of(name, attempt, step)
        if key not in self._folders:
            _make_room(self._folders)
            self._folders[key] = Path(f"{self.root}/{key}")
        return self._folders[key]

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

    def clear(self, name: str, attempt: int, step: str) -> None:
        """Take away whatever lies in the folder of a step that was never begun."""
        shutil.rmtree(self.folder(name, attempt, step), ignore_errors=True)

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

    def old(self, name: str, before: int, most: int) -> list[Path]:
        """List the folders of a generation that are too many beside an attempt that begins."""
        made = [number for number in self.attempts(name) if number < before]
        return [self.folder(name, number) for number in made[: max(0, len(made) - most)]]

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

    def tries_before(self, name: str, attempt: int) -> Iterator[Try]:
        """Give the attempts before one, the newest first, as far as it is known which iteration each was."""
        for each in reversed([number for number in self.attempts(name) if number < attempt]):
            refusal = self.refusal(name, each)
            noted = self.circumstances(name, each).get("iteration", "")
            if refusal is not None:
                yield Try(each, refusal.iteration, refusal)
            elif noted.isdecimal():
                yield Try(each, int(noted), None)

    def refusal(self, name: str, attempt: int) -> Refusal | None:
        """Read why an attempt was refused, None if it was not."""
        said = _read(self.folder(name, attempt) / REFUSAL)
        with suppress(TypeError):
            return Refusal(**said) if said is not None else None
        return None

    def note_clash(self, name: str, attempt: int, text: str) -> None:
        """Keep the words on the conflict that an attempt finds in its worktree."""
        _write(self.ensure(name, attempt) / CLASH, {"text": text})

    def clash(self, name: str, attempt: int) -> str:
        """Read the words on the conflict that an attempt was given, nothing where it was given none."""
        said = _read(self.folder(name, attempt) / CLASH)
        return str(said.get("text", "")) if said is not None else ""

    def note_agent(self, name: str, attempt: int, step: str, **said: str) -> None:
        """Keep which agent a step beside the command is, for whoever reads what it says."""
        _write(self.ensure(name, attempt, step) / CIRCUMSTANCES, said)

    def reader(self, name: str, attempt: int, step: str = "") -> str:
        """Name the reader of an attempt or a step, nothing where a plain command runs."""
        said = _read(self.folder(name, attempt, step) / CIRCUMSTANCES) if step else self.circumstances(name, attempt)
        return str((said or {}).get("reader", ""))

    def note_circumstances(self, name: str, attempt: int, **said: str) -> None:
        """Keep under what circumstances an attempt runs, for an engine that comes after a crash."""
        _write(self.ensure(name, attempt) / CIRCUMSTANCES, said)
        _make_room(self._noted)
        self._noted[name, attempt] = said

    def circumstances(self, name: str, attempt: int) -> dict[str, str]:
        """Return under what circumstances an attempt runs; nothing where that is not known."""
        if (name, attempt) in self._noted:
            return self._noted[name, attempt]
        said = _read(self.folder(name, attempt) / CIRCUMSTANCES)
        return {key: str(value) for key, value in said.items()} if said is not None else {}

    def place_of(self, name: str, attempt: int) -> Path | None:
        """Return the folder that an attempt works in, None if it was never given one.

        It is told as seen from the workspace, which may have been moved since; earlier versions told all of it.
        """
        folder = self.circumstances(name, attempt).get(FOLDER, "")
        if folder.startswith("/") and not folder.startswith(f"{self._top}/"):
            folder = folder.split("/", folder.count("/") - 1)[-1]
        return self._top / folder if folder else None

    def note_usage(self, name: str, attempt: int, said: dict[str, Any], step: str = "") -> None:
        """Keep what an agent has used, and how it said that its work ended."""
        _write(self.ensure(name, attempt, step) / USAGE, said)

    def note_left_out(self, name: str, attempt: int, before: str, after: str, files: Mapping[str, str]) -> None:
        """Keep what an attempt has made of files that never land, and two commits that differ in them."""
        _write(self.ensure(name, attempt) / LEFT_OUT, {"before": before, "after": after, "files": {**files}})

    def left_out(self, name: str, attempt: int) -> dict[str, Any]:
        """Return what was kept of that; nothing where there is nothing of the kind."""
        return _read(self.folder(name, attempt) / LEFT_OUT) or {}

    def note_put_back(self, name: str, paths: Mapping[str, str]) -> None:
        """Keep which files of a generation were put back, and what had been made of them, for whoever lands it."""
        _write(self.root / name / PUT_BACK, {**self.put_back(name), **paths})

    def put_back(self, name: str) -> dict[str, str]:
        """Return which files of a generation were put back, and what had been made of each."""
        return _read(self.root / name / PUT_BACK) or {}

    def count(self, name: str, attempt: int, what: str) -> int:
        """Count something about an attempt once more, a byte each; 1 where it has no folder."""
        path = f"{self.root}/{self.id_of(name, attempt)}/{what}.count"
        try:
            descriptor = os.open(path, _COUNTING, 0o600)
        except OSError:
            return 1
        try:
            size = os.fstat(descriptor).st_size
            return size + os.write(descriptor, b".") if size < MOST_COUNTED else size
        except OSError:
            return 1
        finally:
            os.close(descriptor)

    def last_with(self, name: str, before: int, file: str) -> Path | None:
        """Return the newest such file of the attempts before one."""
        for attempt in reversed(self.attempts(name)):
            path = self.folder(name, attempt) / file
            if attempt < before and path.is_file():
                return path
        return None


def _make_room(kept: dict[Any, Any]) -> None:
    """See that what is kept of late stays little."""
    if len(kept) >= MOST_NOTED:
        kept.clear()


def _write(path: Path, said: dict[str, Any]) -> None:
    """Write a small JSON document by rename."""
    fresh = f"{path.parent}/.{path.name}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        file.write(json.dumps(said).encode("utf-8", "surrogatepass"))
    os.replace(fresh, path)  # noqa: PTH105


def _read(path: Path) -> dict[str, Any] | None:
    """Read a small JSON document, None where there is none."""
    try:
        said = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None
