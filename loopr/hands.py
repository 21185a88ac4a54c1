"""What performs effects on the tree as files, and what only pretends to.

Knows how an entry becomes an artifact on disk and how one is read back; everything it learns is an observation. Must
never decide what is written, or when.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from loopr.core import observations as o
from loopr.core.entries import Artifact, Entry
from loopr.core.policy import Policy
from loopr.core.rendering import render_artifact
from loopr.errors import NotFound, PlanError
from loopr.world.artifacts import artifact_path, digest, parse_artifact, publish, read_artifact_file, scan


class FileHands:
    """Writes and reads the tree as files."""

    def __init__(self, root: Path, specs: Path, inputs: Path, policy: Policy, name_of: Callable[[Path], str]) -> None:
        """Name the folders and the ladder; `name_of` says how messages call a path."""
        self._root, self._specs, self._inputs, self._policy, self._name = root, specs, inputs, policy, name_of

    def write_declared(self, loop_id: str, type_name: str, project: str, entry: Entry) -> o.DeclaredWritten:
        """Write the artifact of a declared loop and report it."""
        text = render_artifact(entry, type_name, self._policy.types, project=project)
        path = artifact_path(self._specs, loop_id, type_name)
        artifact = parse_artifact(
            text.encode(),
            self._name(path),
            type_name=type_name,
            types=self._policy.types,
            fallback_id=entry.id,
            depth=loop_id.count("/"),
        )
        return o.DeclaredWritten(loop_id, self._publish(path, text), artifact, self._name(path))

    def _publish(self, path: Path, text: str) -> str:
        """Put the text in its place and return its digest."""
        return publish(path, text)

    def publish_plan(self, plan: str, type_name: str, text: str) -> None:
        """Put a plan where it is watched."""
        self._publish(artifact_path(self._specs, plan, type_name), text)

    def keep_input(self, plan: str, text: str) -> None:
        """Keep a plan that declares nothing as the input of its command."""
        self._publish(self._inputs / f"{plan}.md", text)

    def digest_of(self, loop_id: str, type_name: str) -> str | None:
        """Return the digest of a loop's artifact as it is on disk, None if there is none."""
        path = artifact_path(self._specs, loop_id, type_name)
        return digest(path.read_bytes()) if path.is_file() else None

    def look(self, loop_id: str, type_name: str) -> o.Observation | None:
        """Report a loop's artifact as it is on disk, None if there is none."""
        path = artifact_path(self._specs, loop_id, type_name)
        if not os.path.lexists(path):
            return None
        name = self._name(path)
        try:
            artifact, found = read_artifact_file(
                path,
                self._root,
                type_name=type_name,
                types=self._policy.types,
                fallback_id=loop_id.rpartition("/")[2],
                depth=loop_id.count("/"),
            )
        except PlanError as error:
            return o.FileRefused(loop_id, name, str(error))
        return o.FileSeen(loop_id, found, artifact, name)

    def look_everywhere(self, plan: str) -> Iterator[o.Observation]:
        """Report every artifact of a plan that is on disk."""
        for found in scan(self._specs, self._policy.types).found:
            if found.loop_id.partition("/")[0] == plan:
                seen = self.look(found.loop_id, found.type)
                if seen is not None:
                    yield seen


class PaperHands(FileHands):
    """Reads the tree as files, and only pretends to write."""

    def _publish(self, path: Path, text: str) -> str:
        """Return the digest that the text would have."""
        return digest(text.encode())


def read_plan_file(path: Path, policy: Policy) -> tuple[str, str, Artifact]:
    """Read a plan file: its text, its digest and what it says."""
    try:
        artifact, found = read_artifact_file(
            path, path.parent, type_name=policy.root_type, types=policy.types, fallback_id=path.stem
        )
    except NotFound as error:
        hint = "name a Markdown file that describes a plan"
        raise PlanError("there is no such file", where=str(path), hint=hint) from error
    return path.read_bytes().decode(), found, artifact
