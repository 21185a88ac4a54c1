"""What loopr has left in a repository: what of it may go, and for everything else why it is kept.

Knows worktrees, branches and refs of loopr's. Must never know why a loop is over: it is told which ones are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

from loopr.errors import WorldError
from loopr.world.repo.checkouts import checkouts, read_line
from loopr.world.repo.commits import write_tree
from loopr.world.repo.ground import BACKUP, CANDIDATE, HEADS, LANDED, OLD, PLANS, WORK, Ground
from loopr.world.repo.locks import remove_stale
from loopr.world.repo.plain import plain_folders, remove_plain
from loopr.world.repo.refs import Move, commit_of, contained_in, move_refs, read_refs
from loopr.world.repo.returning import is_safe, release, unpushed
from loopr.world.repo.slots import LOCK_REASON, Slot, displaced, load, opened, save
from loopr.world.repo.words import Leftover
from loopr.world.repo.worktrees import Occupied, nobody, remove_worktree

_IN_USE = "in use"


def leftovers(ground: Ground, in_use: Set[str], occupied: Occupied = nobody) -> list[Leftover]:
    """List what is there; `in_use` are the names of loops that are not over and the ids of plans that are open."""
    trees = [*_worktrees(ground, in_use, occupied), *_folders(ground, in_use, occupied)]
    going = {each.name for each in trees if each.may_go}
    found = [*trees, *_branches(ground, in_use, going), *_refs(ground, in_use), *_old(ground)]
    return sorted(found, key=lambda each: (each.kind, each.name))


def clear_away(ground: Ground, items: list[Leftover], in_use: Set[str], occupied: Occupied = nobody) -> list[Leftover]:
    """Remove those of these things that may still go, and return what was removed.

    The worktree of a loop that is over goes to the pool while that has room.
    """
    still = {(each.kind, each.name) for each in leftovers(ground, in_use, occupied) if each.may_go}
    chosen = [each for each in items if (each.kind, each.name) in still]
    folders = [each.name for each in chosen if each.kind == "folder"]
    gone = remove_plain(ground.worktrees, folders) if folders else set()
    chosen = [each for each in chosen if each.kind != "folder" or each.name in gone]
    for each in chosen:
        if each.kind == "worktree":
            _give_up(ground, each.name, occupied)
    with ground.alone() as door:
        held = {each.branch for each in checkouts(ground)}
        chosen = [each for each in chosen if each.place not in held]
        refs = [each.place for each in chosen if each.kind in ("branch", "ref")]
        refs += [mark + each.name for each in chosen if each.kind == "branch" for mark in (PLANS, WORK)]
        now = read_refs(door, *refs)
        move_refs(door, [Move(ref, "", commit) for ref, commit in now.items()], "loopr: gc")
    return chosen


def _give_up(ground: Ground, slot_id: str, occupied: Occupied) -> None:
    """Let the pool have a worktree that served a loop to its end; one that was set aside is never used again."""
    slot = load(ground).get(slot_id)
    if slot is not None and slot.state not in ("free", "retired"):
        release(ground, slot.name, occupied)
    elif slot is not None:
        with ground.alone() as door:
            slots = load(ground)
            remove_worktree(ground, slots, slot, door)
            save(ground, slots)


def forget(ground: Ground, name: str) -> list[str]:
    """Delete every ref of a loop that is over, its backups too, because a person asked for it; returns them."""
    with ground.alone() as door:
        refs = read_refs(door, ground.branch(name), *(f"{kind}{name}" for kind in (WORK, CANDIDATE, LANDED)))
        refs |= read_refs(door, f"{BACKUP}{name}/")
        held = {each.branch for each in checkouts(ground)}
        gone = [ref for ref in refs if ref not in held]
        move_refs(door, [Move(ref, "", refs[ref]) for ref in gone], "loopr: forget")
    return gone


def let_go(ground: Ground, places: Iterable[str]) -> set[str]:
    """Delete these refs, but for those that a checkout holds; returns those that are gone."""
    wanted = set(places)
    with ground.alone() as door:
        held = {each.branch for each in checkouts(ground)}
        refs = {ref: commit for ref, commit in read_refs(door, *wanted).items() if ref in wanted - held}
        move_refs(door, [Move(ref, "", commit) for ref, commit in refs.items()], "loopr: forget")
    return set(refs)


def size_of(ground: Ground, places: Iterable[str]) -> int:
    """Return how many bytes these refs hold that no branch has, and nothing where git does not say."""
    refs, branches = read_refs(ground.door, *places), read_refs(ground.door, HEADS, PLANS)
    wanted = [*refs.values(), *(f"^{commit}" for commit in branches.values())]
    said = ground.door.ask("rev-list", "--objects", "--disk-usage", "--stdin", stdin="\n".join(wanted).encode())
    return int(said.line) if refs and said.code == 0 and said.line.isdecimal() else 0


def remove_stale_locks(ground: Ground) -> list[Path]:
    """Remove lock files of git's that a killed git left under refs of loopr's; their holder would be long gone."""
    places = [ground.common / "refs" / "loopr", ground.common / (HEADS + ground.prefix).rstrip("/")]
    admins = [slot.admin(ground) for slot in load(ground).values()]
    with ground.alone():
        return remove_stale([*places, *admins])


def _worktrees(ground: Ground, in_use: Set[str], occupied: Occupied) -> Iterator[Leftover]:
    """Judge each worktree."""
    free = 0
    for slot in load(ground).values():
        free += slot.state == "free"
        if slot.state == "free":
            extra = free > ground.pool
            late = _why_kept(ground, slot, occupied) if extra else ""
            why = late or ("more than worktrees.pool keeps" if extra else "kept for the next loop")
            yield Leftover("worktree", slot.id, str(slot.place(ground)), extra and not late, why)
        elif slot.state != "retired" and slot.name in in_use:
            yield Leftover("worktree", slot.id, str(slot.place(ground)), False, _IN_USE)
        else:
            why = _why_kept(ground, slot, occupied)
            set_aside = f"it was set aside ({slot.why}), and " if slot.state == "retired" else ""
            text = set_aside + (why or "all that was in it is safe elsewhere")
            yield Leftover("worktree", slot.id, str(slot.place(ground)), not why, text)


def _why_kept(ground: Ground, slot: Slot, occupied: Occupied) -> str:
    """Say why a worktree that no loop uses may not go; looks only, saves nothing."""
    place = slot.place(ground)
    if not place.is_dir():
        return ""
    try:
        why = _what_is_new(ground, slot, occupied)
    except WorldError:
        if place.is_dir():
            raise
        why = ""
    return why if place.is_dir() else "the engine has just taken it"


def _what_is_new(ground: Ground, slot: Slot, occupied: Occupied) -> str:
    """Say what of a worktree is nowhere else, or who else has it."""
    place = slot.place(ground)
    if not (slot.admin(ground) / "HEAD").is_file():
        return "git no longer knows it, so that nobody can tell what is new in it"
    why = occupied(place)
    if why:
        return why
    locked = read_line(slot.admin(ground) / "locked")
    if locked not in ("", LOCK_REASON):
        return f"it is locked: {locked}"
    with opened(ground, slot, mend=False) as at:
        if displaced(place) or not (place / ".git").is_file():
            return "a repository of its own was made in it"
        for submodule in unpushed(at):
            return submodule
        head = commit_of(at.door, "HEAD")
        if not head:
            return "its HEAD leads nowhere"
        tree, refused, _ = write_tree(at, head, all_paths=True)
        if refused or tree:
            return f"it holds files that are not committed: {refused[0].where if refused else 'see git status in it'}"
        if slot.state == "free" or _kept_elsewhere(ground, head):  # of a free one it was seen to when it came back
            return ""
        return f"its commit {head} is nowhere else"


def _kept_elsewhere(ground: Ground, commit: str) -> str:
    """Return a ref that keeps a commit if the worktree goes."""
    return contained_in(ground.door, commit, [HEADS, WORK, BACKUP, LANDED, PLANS])


def _folders(ground: Ground, in_use: Set[str], occupied: Occupied) -> Iterator[Leftover]:
    """Judge the folders beside our worktrees: plain ones are ours, and what nobody knows is not ours to judge."""
    known = {slot.place(ground) for slot in load(ground).values()}
    plain = {Path(each.place): each for each in plain_folders(ground.worktrees, in_use, occupied)}
    for parent in (ground.worktrees, ground.worktrees / ground.pool_folder):
        for path in sorted(parent.iterdir()) if parent.is_dir() else ():
            if path not in known and path.is_dir() and not path.name.startswith("."):
                yield plain.get(path) or Leftover("folder", path.name, str(path), False, "loopr does not know it")


def _branches(ground: Ground, in_use: Set[str], going: Set[str]) -> Iterator[Leftover]:
    """Judge each branch below our prefix; a worktree that is going does not hold its own."""
    holding = [each for each in checkouts(ground) if not (each.ours and each.git_dir.name in going)]
    held = {each.branch: each.folder for each in holding}
    refs = read_refs(ground.door, f"{HEADS}{ground.prefix}", PLANS, WORK)
    for ref, commit in refs.items():
        name = ref.removeprefix(HEADS + ground.prefix)
        if not ref.startswith(HEADS) or not (PLANS + name in refs or WORK + name in refs or ".aside-" in name):
            continue
        judge = _plan_branch if PLANS + name in refs else _loop_branch
        if name in in_use:
            yield Leftover("branch", name, ref, False, _IN_USE)
        elif ref in held:
            yield Leftover("branch", name, ref, False, f"it is checked out in {held[ref]}")
        else:
            yield judge(ground, name, ref, commit)


def _plan_branch(ground: Ground, name: str, ref: str, commit: str) -> Leftover:
    """Judge the branch of a plan that is not open."""
    home = _elsewhere(ground, commit, ref)
    why = f"its work is in {home}" if home else "its work is in no other branch: `loopr land` brings it home"
    return Leftover("branch", name, ref, bool(home), why)


def _elsewhere(ground: Ground, commit: str, ref: str) -> str:
    """Return a branch of the user's that contains a commit."""
    said = ground.door.ask("for-each-ref", "--format=%(refname)", f"--contains={commit}", HEADS.rstrip("/"))
    found = [each for each in said.line.split() if each != ref and not each.startswith(HEADS + ground.prefix)]
    return found[0] if found else ""


def _loop_branch(ground: Ground, name: str, ref: str, commit: str) -> Leftover:
    """Judge the branch of a loop that is over."""
    where = is_safe(ground, commit)
    why = f"its commits are in {where}" if where else "its commits have not landed"
    return Leftover("branch", name, ref, bool(where), why)


def _refs(ground: Ground, in_use: Set[str]) -> Iterator[Leftover]:
    """Judge each ref of ours that is no branch."""
    judges: dict[str, Callable[[Ground, str], tuple[bool, str]]] = {
        CANDIDATE: lambda *_: (True, "it can be made again"),
        WORK: lambda ground, commit: _spare(ground, commit, [LANDED, PLANS, HEADS]),
        BACKUP: lambda ground, commit: _spare(ground, commit, [LANDED, PLANS]),
        LANDED: lambda *_: (False, "the loop's own commits, which landed as one"),
        PLANS: lambda ground, commit: _spare(ground, commit, [HEADS]),
    }
    refs = read_refs(ground.door, *judges, HEADS + ground.prefix)
    for kind, judge in judges.items():
        for ref, commit in refs.items():
            if not ref.startswith(kind) or (kind in (PLANS, WORK) and ground.branch(ref.removeprefix(kind)) in refs):
                continue  # what marks a branch as ours goes with it
            name = ref.removeprefix(kind).partition("/")[0]
            may_go, why = (False, _IN_USE) if name in in_use else judge(ground, commit)
            yield Leftover("ref", ref.removeprefix("refs/loopr/"), ref, may_go, why)


def _old(ground: Ground) -> Iterator[Leftover]:
    """Name the journals from before of which refs are kept, each once."""
    words = {ref.removeprefix(OLD).partition("/")[0] for ref in read_refs(ground.door, OLD)}
    for word in sorted(words):
        lines = f"git for-each-ref --format='delete %(refname)' {OLD}{word} | git update-ref --stdin"
        yield Leftover("ref", f"old/{word}", OLD + word, False, f"the refs of a journal from before: `{lines}`")


def _spare(ground: Ground, commit: str, kinds: list[str]) -> tuple[bool, str]:
    """Say whether other refs keep a commit."""
    where = contained_in(ground.door, commit, kinds)
    return bool(where), f"its commits are in {where}" if where else "its commits are nowhere else"
