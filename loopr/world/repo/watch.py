"""What all worktrees share and no loop may change: settings, hooks, info, stash, replacements, other people's refs.

Looked at before and after an attempt. Knows how to tell a change, whether the user's own checkout explains it, and
whether it harms anybody (`harmless.py`). Must never undo one, nor know what follows from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from loopr.world.repo.checkouts import checkouts, read_lines
from loopr.world.repo.ground import HEADS, Ground
from loopr.world.repo.harmless import TAGS, harmless_additions, is_harmless_setting, is_slip, remotes_in
from loopr.world.repo.keeping import digest_of, digest_of_bytes
from loopr.world.repo.programs import runs_program
from loopr.world.repo.refs import refs_below
from loopr.world.repo.words import Change

_STASH = "refs/stash"
_OTHERS = (HEADS, TAGS, "refs/notes/", "refs/replace/")
_LOG_LINES = 200
_OWN_MOVES = "moved"  # in the state folder: a branch that no checkout holds has no log that tells of its homecomings
OUR_WORKTREES = "worktrees/loopr-"
_DERIVED = "info/refs"  # git writes it anew whenever it packs; nothing is decided by it
_STASHED = re.compile(r"\t(?:WIP on|On) ([^:]+): ")
_SWITCHED = re.compile(r"\tcheckout: moving from (\S+) to ")
_RUNS = re.compile(r"submodule\.(.+\.)?update")
Settings = Mapping[str, str]

SHALLOW = "shallow"
LONE = (SHALLOW, "objects/info/alternates")  # what a history lacks, and where objects lie besides
DETACHED = "no branch"
What = Literal["config", "hooks", "info", "stash", "replace", "ref"]


class Sight(NamedTuple):
    """What was seen: the settings of each file, a digest for each other file, a commit for each ref.

    `checkouts` are those of people that explain a move, None where any does; `heads` what each has checked out.
    """

    settings: Mapping[str, Settings]
    files: Mapping[str, str]
    refs: Mapping[str, str]
    checkouts: frozenset[str] | None = None
    heads: Mapping[str, str] = {}

    def written(self) -> str:
        """Write it down."""
        return json.dumps([*map(dict, self[:3]), sorted(self.checkouts or ()), dict(self.heads)])


def read_sight(text: str) -> Sight | None:
    """Read what was written down, None where that is nothing."""
    try:
        settings, files, refs, known, *heads = json.loads(text)
        return Sight(settings, files, refs, frozenset(known), *heads)
    except (ValueError, TypeError):
        return None


def look(ground: Ground) -> Sight:
    """See what is shared now."""
    settings = settings_of(ground)
    files = {name: seen for name in LONE if (seen := digest_of(ground.common / name))}
    for folder in ("hooks", "info"):
        for path in sorted((ground.common / folder).rglob("*")):
            name = path.relative_to(ground.common).as_posix()
            if path.exists() and not (path.is_dir() or name.endswith(".sample") or name == _DERIVED):
                files[name] = digest_of(path)
    refs = refs_below(ground.door, *(each.rstrip("/") for each in _OTHERS), _STASH, *top_refs(ground.common))
    others = {ref: commit for ref, commit in refs.items() if not ref.startswith(HEADS + ground.prefix)}
    people = [each for each in checkouts(ground) if not each.ours]
    heads = {str(each.folder): each.branch or DETACHED for each in people if not each.busy}
    return Sight(settings, files, others, frozenset(each.mark for each in people), heads)


def settings_of(ground: Ground) -> dict[str, Settings]:
    """Read the settings in each file; the key of what git cannot read is empty."""
    return {name: _settings(ground, ground.common / name) for name in setting_files(ground)}


def setting_files(ground: Ground) -> list[str]:
    """Name the files with settings of the repository: what all worktrees share, and what each has for itself."""
    found = ["config", "config.worktree"]
    with suppress(OSError), os.scandir(ground.common / "worktrees") as admins:
        own = (f"worktrees/{each.name}/config.worktree" for each in admins)
        found += sorted(each for each in own if (ground.common / each).is_file())
    return found


def top_refs(common: Path) -> list[str]:
    """Name the refs that are in no folder: the stash, and what would go before every branch and tag of that name."""
    with os.scandir(common / "refs") as found:
        return [f"refs/{each.name}" for each in found if each.is_file() and not each.name.endswith(".lock")]


def changes(ground: Ground, before: Sight, after: Sight) -> list[Change]:
    """Say what is not as it was; what a person's checkout has in its own log is a person's: moves, and new stashes.

    Only a checkout that was there before explains anything.
    """
    found = list(_set_otherwise(ground, before.settings, after.settings))
    for name, was, now in _differing(before.files, after.files):
        found.append(Change(_kind(name), name, was, now, harmless=name == SHALLOW and not now))
    for folder in before.heads.keys() & after.heads.keys():
        if before.heads[folder] != after.heads[folder]:
            found.append(Change("head", folder, before.heads[folder], after.heads[folder], slip=True))
    own = _own_moves(ground)
    logged = own | _logged(ground, before.checkouts)
    moved = list(_differing(before.refs, after.refs))
    added = {ref: now for ref, was, now in moved if not was and (ref, now) not in logged}
    harmless = harmless_additions(ground, added, after.refs)
    for ref, was, now in moved:
        by_person = (ref, now) in logged or (ref == _STASH and _all_stashed_there(ground, was, now, logged))
        change = Change(_kind(ref), ref, was, now, by_person=by_person, harmless=ref in harmless)
        found.append(change._replace(by_loopr=(ref, now) in own))
    return found


def _set_otherwise(ground: Ground, before: Mapping[str, Settings], after: Mapping[str, Settings]) -> Iterator[Change]:
    """Name the settings that are not as they were; only remotes that were there before are known.

    What a worktree of ours has for itself is its loop's business, unless it runs a program.
    """
    remotes = remotes_in(key for each in before.values() for key in each)
    for file in sorted(before.keys() | after.keys()):
        is_ours = file.startswith(OUR_WORKTREES)
        for key, was, now in _differing(before.get(file, {}), after.get(file, {})):
            values = [each.partition("\n")[2] for each in now.split("\0") if each]
            harmless = is_harmless_setting(key, values, remotes)
            if not is_ours or (now and runs_program(key)):
                slip = not harmless and not is_ours and is_slip(key, values, remotes)
                yield Change("config", f"{file} {key}".strip(), was, now, harmless=harmless, slip=slip)


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Give each key whose value is another, with both."""
    for key in sorted(before.keys() | after.keys()):
        if before.get(key, "") != after.get(key, ""):
            yield key, before.get(key, ""), after.get(key, "")


def _kind(name: str) -> What:
    """Say what sort of thing a name is."""
    if name.startswith("config"):
        return "config"
    if name.startswith("hooks/"):
        return "hooks"
    if name.startswith("info/") or name in LONE:
        return "info"
    if name == _STASH:
        return "stash"
    return "replace" if name.startswith("refs/replace/") else "ref"


def _settings(ground: Ground, file: Path) -> Settings:
    """Read the settings in a file, but for those that using submodules or branches of ours leaves there."""
    bytes_digest = digest_of(file)
    if not bytes_digest:
        return {}
    known = _SETTINGS.get((ground.prefix, bytes_digest))
    if known is None:
        known = _told_settings(ground, file, f"broken {bytes_digest}")
        if "" not in known:  # else it may be another file that keeps git from reading this one
            _SETTINGS[ground.prefix, bytes_digest] = known
    return known


_SETTINGS: dict[tuple[str, str], Settings] = {}


def is_as_seen(ground: Ground, sight: Sight, name: str, content: bytes) -> bool:
    """Say whether a look has seen a file with this content; one that it has not seen counts too."""
    digest = digest_of_bytes(content)
    if name in sight.settings:
        return any((ground.prefix, each) in _SETTINGS for each in (digest, f"{digest}x"))
    return sight.files.get(name, digest).rstrip("x") == digest


def _told_settings(ground: Ground, file: Path, broken: str) -> Settings:
    """Ask git for the settings in a file, each with all that stands under its key, or say that it cannot read them."""
    said = ground.door.ask("config", "--file", str(file), "--list", "-z")
    if said.code:
        return {"": broken}
    found: dict[str, str] = {}
    for part in said.parts:
        key, _, value = part.partition("\n")
        if not _is_left_by_use(key, value, ground.prefix):
            found[key] = f"{found[key]}\0{part}" if key in found else part
    return found


def _is_left_by_use(key: str, value: str, prefix: str) -> bool:
    """Say whether a setting is one that a command leaves which uses submodules, or its own branch."""
    if key.startswith("submodule."):
        return not (_RUNS.fullmatch(key) and value.lstrip().startswith("!"))
    return key.startswith(f"branch.{prefix}") and not key.endswith(".mergeoptions")


def note_move(ground: Ground, ref: str, commit: str) -> None:
    """Write down that a plan is about to come home, before it does: no loop has moved that branch."""
    (ground.state / _OWN_MOVES).touch(0o600)
    with (ground.state / _OWN_MOVES).open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{ref} {commit}\n")


def _own_moves(ground: Ground) -> set[tuple[str, str]]:
    """Pair branches with the commits that homecomings have moved them to lately."""
    lines = (line.partition(" ") for line in read_lines(ground.state / _OWN_MOVES)[-_LOG_LINES:])
    return {(ref, commit) for ref, _, commit in lines}


def _logged(ground: Ground, known: frozenset[str] | None) -> set[tuple[str, str]]:
    """Pair branches with the commits that people's checkouts have moved them to lately."""
    found: set[tuple[str, str]] = set()
    for each in checkouts(ground):
        if each.ours or (known is not None and each.mark not in known):
            continue
        branch = each.branch
        for line in reversed(read_lines(each.git_dir / "logs" / "HEAD")[-_LOG_LINES:]):
            found.add((branch, line.partition(" ")[2].partition(" ")[0]))
            switched = _SWITCHED.search(line)
            if switched:
                branch = HEADS + switched.group(1)
    return found


def _all_stashed_there(ground: Ground, was: str, now: str, logged: set[tuple[str, str]]) -> bool:
    """Say whether stashes were only added, each upon a branch and commit that a person's checkout has stood at."""
    lines = read_lines(ground.common / "logs" / _STASH)
    commits = [line.partition(" ")[2].partition(" ")[0] for line in lines]
    if commits[-1:] != [now] or (was and was not in commits):
        return False
    fresh = lines[commits.index(was) + 1 :] if was else lines
    return all(_stood_at(ground, line) in logged for line in fresh)


def _stood_at(ground: Ground, line: str) -> tuple[str, str]:
    """Return upon which branch and commit a stash was made, from its line in the log; empty where it does not say."""
    branch = _STASHED.search(line)
    commit = ground.door.ask("rev-parse", "--verify", "--quiet", f"{line.split(' ')[1]}^1").line
    return (HEADS + branch[1] if branch is not None else "", commit)
