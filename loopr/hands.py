"""What performs effects on the tree as files, and what only pretends to.

Knows how an entry becomes an artifact on disk and how one is read back; everything it learns is an observation. Must
never decide what is written, or when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from loopr.core import observations as o
from loopr.core.entries import Artifact, Entry
from loopr.core.model import Loop
from loopr.core.policy import Policy, TypePolicy
from loopr.core.rendering import declared_artifact, leaf_artifact
from loopr.core.values import shown
from loopr.errors import NotFound, PlanError, Problem
from loopr.world.archive import Archive
from loopr.world.artifacts import artifact_path, digest, parse_artifact, read_artifact_file, scan
from loopr.world.publishing import publish, put_back
from loopr.world.runs import OUTPUT, Runs

LONGEST_PATH = 400  # of a path in a message
_SETTINGS = frozenset({".yml", ".yaml"})
_AS_FRONT_MATTER = "an outline in YAML goes between two lines of `---`, at the top of a file such as plan.md"


class _Circumstances(TypedDict):
    """What a file is read as."""

    type_name: str
    types: Mapping[str, TypePolicy]
    fallback_id: str
    depth: int


class FileHands:
    """Writes and reads the tree as files."""

    def __init__(self, root: Path, specs: Path, state: Path, policy: Policy) -> None:
        """Name the folders and the ladder."""
        self.root, self._specs, self._inputs, self._policy = root, specs, state / "inputs", policy
        self.archive, self._runs = Archive(state), Runs(state)

    def write_declared(self, loop_id: str, type_name: str, project: str, entry: Entry) -> o.DeclaredWritten:
        """Write the artifact of a declared loop and report it."""
        text, artifact = declared_artifact(entry, type_name, self._policy.types, project=project)
        path = artifact_path(self._specs, loop_id, type_name)
        return o.DeclaredWritten(loop_id, self._publish(path, text), artifact, self._place(loop_id, type_name))

    def _publish(self, path: Path, text: str) -> str:
        """Put the text in its place and return its digest."""
        raw = text.encode()
        publish(path, raw)
        return digest(raw)

    def publish_plan(self, plan: str, type_name: str, text: str) -> None:
        """Put a plan where it is watched."""
        self._keep(self._publish(artifact_path(self._specs, plan, type_name), text), text.encode())

    def _keep(self, found: str, raw: bytes) -> None:
        """Keep a copy of what a person wrote: it is nowhere else, but for a loop's own and for what its entry says."""
        self.archive.keep(found, raw)

    def keep_input(self, plan: str, text: str) -> None:
        """Keep a plan that declares nothing as the input of its command."""
        self._publish(self._inputs / f"{plan}.md", text)

    def digest_of(self, loop_id: str, type_name: str) -> str | None:
        """Return the digest of a loop's artifact as it is on disk, None if there is none."""
        path = artifact_path(self._specs, loop_id, type_name)
        return digest(path.read_bytes()) if path.is_file() else None

    def look(self, loop_id: str, type_name: str, known: str = "") -> o.Observation | None:
        """Report a loop's artifact as it is on disk, None if there is none; one of a `known` digest is not read."""
        name = self._place(loop_id, type_name)
        try:
            path = artifact_path(self._specs, loop_id, type_name)
            if not os.path.lexists(path):
                return None
            if known and self.digest_of(loop_id, type_name) == known:
                return o.FileUnchanged(loop_id)
            artifact, found = read_artifact_file(path, self.root, **self._circumstances(loop_id, type_name))
            raw = path.read_bytes()
            if digest(raw) == found:
                self._keep(found, raw)
        except PlanError as error:
            return o.FileRefused(loop_id, name, str(error))
        except FileNotFoundError:
            return None
        return o.FileSeen(loop_id, found, artifact, name)

    def _place(self, loop_id: str, type_name: str) -> str:
        """Return how messages call a loop's artifact."""
        return f"{self._policy.artifacts_dir}/{loop_id}/{type_name}.md"

    def _circumstances(self, loop_id: str, type_name: str) -> _Circumstances:
        """Say what a file is read as, if it is the artifact of a loop."""
        return {
            "type_name": type_name,
            "types": self._policy.types,
            "fallback_id": loop_id.rpartition("/")[2],
            "depth": loop_id.count("/"),
        }

    def look_everywhere(self, plan: str, known: Mapping[str, str]) -> Iterator[o.Observation]:
        """Report every artifact of a plan that is on disk; `known` has digests by loop."""
        for found in scan(self._specs, self._policy.types).found:
            if found.loop_id.partition("/")[0] == plan:
                seen = self.look(found.loop_id, found.type, known.get(found.loop_id, ""))
                if seen is not None:
                    yield seen

    # -- what is gone

    def is_gone(self, loop: Loop) -> bool:
        """Say whether nothing stands where a loop's artifact belongs."""
        try:
            return not os.path.lexists(artifact_path(self._specs, loop.id, loop.type))
        except PlanError:  # a link on the way: what is behind it is not ours to know
            return False

    def copy_of(self, loop: Loop, entry: Entry | None) -> bytes | None:
        """Return the artifact of a complete loop from what is kept, None if no copy is the very one."""
        return next((each for each in self._copies(loop, entry) if digest(each) == loop.artifact), None)

    def _copies(self, loop: Loop, entry: Entry | None) -> Iterator[bytes]:
        """Give what may be a loop's artifact: a person's, what an attempt handed over, what its entry says."""
        archived = self.archive.find(loop.artifact)
        if archived is not None:
            yield archived
        for attempt in reversed(self._runs.attempts(loop.name)):
            output = self._runs.folder(loop.name, attempt) / OUTPUT
            if output.is_file():
                yield output.read_bytes()
        types = self._policy.types
        if entry is not None and loop.type in types:
            said = {"project": loop.project, "title": loop.title or loop.id}
            for commit in (loop.landed, ""):  # of an earlier generation, where the present one had nothing to land
                yield leaf_artifact(entry, loop.type, types, **said, commit=commit).encode()
            yield declared_artifact(entry, loop.type, types, project=loop.project)[0].encode()

    def rescue(self, runs: Iterable[Path], wanted: Set[str]) -> None:
        """Keep what was handed over in run folders that are about to go, as far as it is an artifact of now."""
        for output in (each / OUTPUT for each in runs):
            if output.is_file() and digest(raw := output.read_bytes()) in wanted:
                self._keep(digest(raw), raw)

    def put_back(self, loop: Loop, raw: bytes) -> bool:
        """Put an artifact back where nothing stands; say whether that was done."""
        return put_back(artifact_path(self._specs, loop.id, loop.type), raw)


class PaperHands(FileHands):
    """Reads the tree as files, and only pretends to write: what it would have written is read back from memory."""

    def __init__(self, root: Path, specs: Path, state: Path, policy: Policy) -> None:
        """Name the folders and the ladder; nothing is written yet."""
        super().__init__(root, specs, state, policy)
        self._written: dict[Path, bytes] = {}

    def _publish(self, path: Path, text: str) -> str:
        """Keep the text in mind, and return its digest."""
        self._written[path] = text.encode()
        return digest(self._written[path])

    def _keep(self, found: str, raw: bytes) -> None:
        """Keep nothing."""

    def put_back(self, loop: Loop, raw: bytes) -> bool:
        """Keep the artifact in mind."""
        self._written[artifact_path(self._specs, loop.id, loop.type)] = raw
        return True

    def digest_of(self, loop_id: str, type_name: str) -> str | None:
        """Return the digest of a loop's artifact as it would be on disk, None if there would be none."""
        raw = self._written.get(artifact_path(self._specs, loop_id, type_name))
        return digest(raw) if raw is not None else super().digest_of(loop_id, type_name)

    def look(self, loop_id: str, type_name: str, known: str = "") -> o.Observation | None:
        """Report a loop's artifact as it would be on disk."""
        raw = self._written.get(self._specs / loop_id / f"{type_name}.md")
        if raw is None:
            return super().look(loop_id, type_name, known)
        if digest(raw) == known:
            return o.FileUnchanged(loop_id)
        place = self._place(loop_id, type_name)
        artifact = parse_artifact(raw, place, **self._circumstances(loop_id, type_name))
        return o.FileSeen(loop_id, digest(raw), artifact, place)


def read_plan_file(path: Path, name: str, policy: Policy) -> tuple[str, str, Artifact]:
    """Read a plan file, which messages call by a name: its text, its digest and what it says."""
    if path.suffix in _SETTINGS:
        raise PlanError("is YAML, and a plan is Markdown", where=shown(name, LONGEST_PATH), hint=_AS_FRONT_MATTER)
    try:
        artifact, found = read_artifact_file(
            path, path.parent, type_name=policy.root_type, types=policy.types, fallback_id=path.stem
        )
    except NotFound as error:
        hint = "name a Markdown file that describes a plan"
        raise NotFound("there is no such file", where=shown(name, LONGEST_PATH), hint=hint) from error
    except PlanError as error:
        names = shown(path.name, LONGEST_PATH), shown(name, LONGEST_PATH)
        raise PlanError("", problems=[_renamed(each, *names) for each in error.problems]) from error
    raw = path.read_bytes()
    if digest(raw) != found:
        raise PlanError("was written to while it was read", where=shown(name, LONGEST_PATH), hint="start it again")
    return raw.decode(), found, artifact


def _renamed(problem: Problem, old: str, new: str) -> Problem:
    """Call the file in which something is wrong by another name."""
    where = problem.where
    return replace(problem, where=new + where.removeprefix(old)) if where.startswith(old) else problem
