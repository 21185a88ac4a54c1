"""What performs effects on the tree as files, and what only pretends to.

Knows how an entry becomes an artifact on disk and how one is read back; everything it learns is an observation. Must
never decide what is written, or when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from loopr.core import observations as o
from loopr.core.entries import Artifact, Entry
from loopr.core.model import Loop
from loopr.core.offering import may_give_way
from loopr.core.policy import Policy, TypePolicy
from loopr.core.rendering import Left, declared_artifact, leaf_artifact
from loopr.core.values import shown
from loopr.errors import NotFound, PlanError, Problem, UserError
from loopr.world.archive import Archive
from loopr.world.artifacts import artifact_path, digest, ensure_folders, parse_artifact, read_artifact_file, scan
from loopr.world.publishing import clear, publish, put_back
from loopr.world.runs import OUTPUT, Runs
from loopr.world.stamping import going_on
from loopr.world.swapping import content

LONGEST_PATH = 400  # of a path in a message
During = tuple[str, ...] | None
_SETTINGS = frozenset({".yml", ".yaml"})
_AS_FRONT_MATTER = "an outline in YAML goes between two lines of `---`, at the top of a file such as plan.md"


def changed_at(path: Path) -> int:
    """Return when a file has changed last, in milliseconds, 0 if there is none: a time that no command sets back."""
    try:
        return os.lstat(path).st_ctime_ns // 1_000_000
    except OSError:
        return 0


class _Circumstances(TypedDict):
    """What a file is read as."""

    type_name: str
    types: Mapping[str, TypePolicy]
    fallback_id: str
    depth: int


class FileHands:
    """Writes and reads the tree as files."""

    def __init__(self, root: Path, specs: Path, state: Path, policy: Policy, *, stamps: bool = False) -> None:
        """Name the folders and the ladder, and say whether artifacts carry stamps."""
        self._stamps = stamps
        self.root, self._specs, self._inputs, self._policy = root, specs, state / "inputs", policy
        self.archive, self._runs = Archive(state), Runs(state)

    def write_declared(self, loop: Loop, entry: Entry) -> o.Observation | None:
        """Write the artifact of a declared loop and report it; a file that is not the known one stays.

        Such a file is reported instead, and so is what leaves no place for one; None if it has gone meanwhile.
        """
        try:
            path = self._free_path(loop.id, loop.type)
        except PlanError as error:
            return self._refused(loop.id, loop.type, error)
        text, artifact = declared_artifact(entry, loop.type, self._policy.types, project=loop.project)
        raw = text.encode()
        if not self._publish(path, raw, may_give_way(loop) | {digest(raw)}):
            return self.look(loop.id, loop.type, during=())
        return o.DeclaredWritten(loop.id, digest(raw), artifact, self._place(loop.id, loop.type))

    def _free_path(self, loop_id: str, type_name: str) -> Path:
        """Return where a loop's artifact lies; refuse a link, or what is no folder, on the way."""
        path = artifact_path(self._specs, loop_id, type_name)
        ensure_folders(self._specs, path)
        return path

    def _refused(self, loop_id: str, type_name: str, error: UserError) -> o.FileRefused:
        """Report what lies at a loop's place and is no artifact."""
        return o.FileRefused(loop_id, self._place(loop_id, type_name), str(error), self._digest_at(loop_id, type_name))

    def _publish(self, path: Path, raw: bytes, known: Set[str]) -> bool:
        """Put a text in its place, and say whether it is there; what is not of a known digest stays."""
        return publish(path, self.as_published(raw, content(path)), lambda there: digest(there) in known)

    def as_published(self, raw: bytes, there: bytes | None) -> bytes:
        """Return a text as it takes the place of another: where stamps are wanted their history goes on."""
        text = going_on(raw, there) if self._stamps else raw
        return text if digest(text) == digest(raw) else raw

    def publish_plan(self, plan: str, type_name: str, text: str, known: Set[str]) -> None:
        """Put a plan where it is watched; a file there that is not of a known digest stays, and is told."""
        path, raw = artifact_path(self._specs, plan, type_name), text.encode()
        self._keep(digest(raw), raw)
        if not self._publish(path, raw, known | {digest(raw)}):
            hint, where = "it was saved just now: start the plan again", self._place(plan, type_name)
            raise PlanError("is not the file that was there a moment ago", where=where, hint=hint)

    def _keep(self, found: str, raw: bytes) -> None:
        """Keep a copy of what a person wrote: it is nowhere else, but for a loop's own and for what its entry says."""
        self.archive.keep(found, raw)

    def keep_input(self, plan: str, text: str) -> None:
        """Keep a plan that declares nothing as the input of its command."""
        self._write_input(self._inputs / f"{plan}.md", text.encode())

    def _write_input(self, path: Path, raw: bytes) -> None:
        """Write a file of the state."""
        publish(path, raw)

    def digest_of(self, loop_id: str, type_name: str) -> str | None:
        """Return the digest of a loop's artifact as it is on disk, None if there is none."""
        path = artifact_path(self._specs, loop_id, type_name)
        return digest(path.read_bytes()) if path.is_file() else None

    def changed_at(self, loop_id: str, type_name: str) -> int:
        """Return when a loop's artifact on disk has changed last, 0 if there is none."""
        with suppress(PlanError):
            return changed_at(artifact_path(self._specs, loop_id, type_name))
        return 0

    def _digest_at(self, loop_id: str, type_name: str) -> str:
        """Return the digest of whatever lies at a loop's place, nothing where it cannot be read."""
        with suppress(PlanError):
            raw = content(artifact_path(self._specs, loop_id, type_name))
            return digest(raw) if raw is not None else ""
        return ""

    def look(self, loop_id: str, type_name: str, known: str = "", during: During = None) -> o.Observation | None:
        """Report a loop's artifact as it is on disk, None if there is none; one of a `known` digest is not read.

        `during` are the loops that were at work since it was looked at last, None if nothing was.
        """
        name = self._place(loop_id, type_name)
        try:
            path = self._free_path(loop_id, type_name)
            if not os.path.lexists(path):
                return None
            if known and self.digest_of(loop_id, type_name) == known:
                return o.FileUnchanged(loop_id)
            artifact, found = read_artifact_file(path, self.root, **self._circumstances(loop_id, type_name))
            raw = path.read_bytes()
            if digest(raw) == found:
                self._keep(found, raw)
        except (PlanError, NotFound) as error:
            is_gone = isinstance(error, NotFound) and not path.is_symlink()  # a link may lead nowhere
            return None if is_gone else self._refused(loop_id, type_name, error)
        except FileNotFoundError:
            return None
        return o.FileSeen(loop_id, found, artifact, name, during)

    def _place(self, loop_id: str, type_name: str) -> str:
        """Return how messages call a loop's artifact."""
        return self._policy.place_of(loop_id, type_name)

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

    # -- what is offered

    def kept_file(self, loop: Loop, known: str) -> o.FileSeen | None:
        """Return what the text of a digest says as a loop's artifact, None where that is kept nowhere."""
        raw = self.text_of(loop, None, known)
        if raw is None:
            return None
        place = self._place(loop.id, loop.type)
        artifact = parse_artifact(raw, place, **self._circumstances(loop.id, loop.type))
        return o.FileSeen(loop.id, known, artifact, place)

    def keep(self, known: str, raw: bytes) -> None:
        """Keep a text that is offered, under its digest."""
        self._keep(known, raw)

    def text_of(self, loop: Loop, entry: Entry | None, known: str) -> bytes | None:
        """Return the text of a digest, from its place or from what is kept."""
        there = content(artifact_path(self._specs, loop.id, loop.type))
        if there is not None and digest(there) == known:
            return there
        return self.copy_of(loop._replace(artifact=known), entry)

    def replace_offered(self, loop: Loop, entry: Entry | None, offered: str) -> None:
        """Put the text that counts in the place of a file that was offered; without one, the place is empty again.

        The file stays in the archive, and any other that is there by now stays where it is.
        """
        path = artifact_path(self._specs, loop.id, loop.type)
        there = content(path)
        if there is None or digest(there) != offered:
            return
        self._keep(offered, there)
        raw = self.text_of(loop, entry, loop.artifact) if loop.artifact else None
        if raw is not None:
            publish(path, raw, lambda each: digest(each) == offered)
        else:
            clear(path, lambda each: digest(each) == offered)

    def lay(self, loop: Loop, known: str, before: str) -> None:
        """Put a text that counts by a person's word at its loop's place, if that has nothing but the one `before`."""
        raw = self.archive.find(known)
        if raw is not None:
            publish(artifact_path(self._specs, loop.id, loop.type), raw, lambda each: digest(each) == before)

    # -- what is gone

    def is_gone(self, loop: Loop) -> bool:
        """Say whether nothing stands where a loop's artifact belongs."""
        try:
            return not os.path.lexists(self._free_path(loop.id, loop.type))
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
            for commit in (loop.landed, ""):  # of an earlier generation, where the present one had nothing to land
                left = Left(commit, loop.title or loop.id)
                yield leaf_artifact(entry, loop.type, types, left, project=loop.project).encode()
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

    def _publish(self, path: Path, raw: bytes, known: Set[str]) -> bool:
        """Keep the text in mind, unless a file would stay that is there."""
        if path not in self._written and os.path.lexists(path):
            there = content(path)
            if there is None or digest(there) not in known:
                return False
        self._written[path] = raw
        return True

    def _write_input(self, path: Path, raw: bytes) -> None:
        """Keep the text in mind."""
        self._written[path] = raw

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

    def look(self, loop_id: str, type_name: str, known: str = "", during: During = None) -> o.Observation | None:
        """Report a loop's artifact as it would be on disk."""
        raw = self._written.get(self._specs / loop_id / f"{type_name}.md")
        if raw is None:
            return super().look(loop_id, type_name, known, during)
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
