"""Puts back what harms a person's git or the next loop: programs, hooks, what leads git astray, branches of others.

What was there at the last look comes back, by comparison with what was seen: nothing is put back that has changed once
more since, nor a branch that a checkout holds which does not say that it has not moved. What was there instead is
kept. Must never know who made a change.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable

from loopr.world.repo.calls import Door, GitFailed
from loopr.world.repo.checkouts import Checkout, checkouts, read_lines
from loopr.world.repo.ground import HEADS, Ground, backup_ref
from loopr.world.repo.harmless import remotes_in
from loopr.world.repo.keeping import bring_back, digest_of
from loopr.world.repo.programs import HOOKS, runs_program
from loopr.world.repo.refs import Move, RefRaced, commit_of, move_refs
from loopr.world.repo.watch import SHALLOW
from loopr.world.repo.words import Change

_PUT_BACK = ("core.", "extensions.")
IS_BACK = "is put back"
KEPT = "put-back"  # stands in backups where others have the name of a loop
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def put_back(ground: Ground, found: Iterable[Change], known: Collection[str] | None = None) -> dict[str, str]:
    """Put back what can be; return what came of each that was tried by its name, in words.

    `known` are the checkouts whose word counts, all where it is None.
    """
    tried = ((each.name, _back(ground, each, known)) for each in found)
    return {name: words for name, words in tried if words}


def _back(ground: Ground, change: Change, known: Collection[str] | None) -> str:
    """Put one change back, if it is one of those; return what came of it, nothing if nothing was done."""
    try:
        if change.what == "config":
            return _setting(ground, change)
        if change.name == SHALLOW and _lacks_parents(ground):
            return "stays: commits before those that it names are not here"
        if change.what in ("hooks", "info") and digest_of(ground.common / change.name) == change.after:
            return bring_back(ground, change.name, change.before)
        if change.what == "replace":
            return _ref(ground, change)
        if change.what == "ref" and change.before and change.name.startswith(HEADS):
            return _branch(ground, change, known)
    except RefRaced:  # somebody is at it
        return ""
    except (GitFailed, OSError) as error:
        return f"could not be put back: {error}"
    return ""


# --- refs -------------------------------------------------------------------------------------------------------------


def _branch(ground: Ground, change: Change, known: Collection[str] | None) -> str:
    """Put a branch back, unless a checkout has it that would not be right then; say how a person takes it back."""
    others = [each for each in checkouts(ground) if not each.ours]
    holding = [each for each in others if each.branch == change.name or change.name in each.busy]
    told = [each for each in holding if known is None or each.mark in known]
    if all(_stands_at(each) == change.before and not each.busy for each in told) and (told or not holding):
        return _ref(ground, change)
    place = (told or holding)[0]
    if change.name in place.busy:
        return f"stays: it is being {place.busy[change.name]} in {place.folder}"
    return f"stays: `git -C {place.folder} reset --keep {change.before[:12]}` takes it back"


def _stands_at(checkout: Checkout) -> str:
    """Return where a checkout's own log says that it stands, nothing if there is none."""
    log = read_lines(checkout.git_dir / "logs" / "HEAD")
    return log[-1].partition(" ")[2].partition(" ")[0] if log else ""


def _ref(ground: Ground, change: Change) -> str:
    """Put a ref back, and keep what it was moved to: it may be a person's, whose program writes no log."""
    if not all(not each or _ID.fullmatch(each) for each in (change.before, change.after)):
        return ""  # it leads to another ref, or to nothing: what that means is for a person to say
    with ground.alone() as door:
        lost = commit_of(door, change.after) if change.after else ""
        kept = backup_ref(KEPT, lost) if lost else ""
        moves = [Move(change.name, change.before, change.after), *([Move(kept, lost)] if lost else [])]
        move_refs(door, moves, "loopr: put back")
    return f"{IS_BACK}; what it was moved to is kept as {kept}" if kept else IS_BACK


def _lacks_parents(ground: Ground) -> bool:
    """Say whether a history does end where git was told that it does: what comes before was never fetched."""
    ends = [each for each in read_lines(ground.common / SHALLOW) if _ID.fullmatch(each)]
    texts = (ground.door.ask("cat-file", "commit", each).line for each in ends)
    heads = [line.split(" ") for text in texts for line in text.partition("\n\n")[0].splitlines()]
    parents = "".join(f"{words[1]}\n" for words in heads if words[0] == "parent").encode()
    return b" missing" in ground.door.run("cat-file", "--batch-check", stdin=parents).out if parents else False


# --- settings ---------------------------------------------------------------------------------------------------------


def _setting(ground: Ground, change: Change) -> str:
    """Put a setting back, if it is the one that was seen."""
    file, _, key = change.name.partition(" ")
    before, after = (_values(each) for each in (change.before, change.after))
    remote = remotes_in([key])
    if not (key.startswith(_PUT_BACK) or runs_program(key) or (change.slip and remote)):
        return ""
    with ground.alone() as door:
        if remote and not runs_program(key) and not _is_default(door, *remote):
            return ""
        place = str(ground.common / file)
        if _now(door, place, key) != after:
            return ""
        if after:
            door.run("config", "--file", place, "--unset-all", key)
        for each in before:
            door.run("config", "--file", place, "--add", key, each)
    return IS_BACK


def by_hand(change: Change) -> str:
    """Return how a person sets a folder of hooks that a tool has set; nothing for other changes."""
    values = _values(change.after)
    if not (change.slip and change.name.endswith(f" {HOOKS}") and len(values) == 1 and values[0].isprintable()):
        return ""
    return f"`git config core.hooksPath {shlex.quote(values[0])}` sets it, if it is yours"


def _is_default(door: Door, remote: str) -> bool:
    """Say whether git would go to a remote that nobody has named."""
    urls = door.ask("config", "--local", "--name-only", "--get-regexp", r"^remote\..*\.url$").line.splitlines()
    return remote == "origin" or remotes_in(urls) <= {remote}


def _values(settings: str) -> list[str]:
    """Return the values of a setting, as they were seen."""
    return [each.partition("\n")[2] for each in settings.split("\0") if each]


def _now(door: Door, place: str, key: str) -> list[str]:
    """Return the values that a setting has now."""
    return door.ask("config", "--file", place, "-z", "--get-all", key).parts
