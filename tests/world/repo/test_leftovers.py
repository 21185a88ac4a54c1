"""What loopr leaves behind: what may go, what is kept and why, and that nothing unmerged ever goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.world.repo import commits, conflicts, home, landing, leftovers, returning, slots
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Clash, HomeCandidate, Leftover, Message
from tests.world.repo.grounds import (
    PLAN,
    begin,
    git,
    ground_of,
    plant,
    say,
    shows,
    stands,
    take,
    try_to_land,
    work,
    write,
)


def found(ground: Ground, in_use: set[str]) -> dict[tuple[str, str], Leftover]:
    """List what is left, by kind and name."""
    return {(each.kind, each.name): each for each in leftovers.leftovers(ground, in_use)}


def collect(ground: Ground, in_use: set[str]) -> list[tuple[str, str]]:
    """Clear away all that may go, and return what went."""
    listed = leftovers.leftovers(ground, in_use)
    return [(each.kind, each.name) for each in leftovers.clear_away(ground, listed, in_use)]


def test_what_is_in_use_is_kept(tmp_path: Path) -> None:
    """Nothing of a loop that is not over goes, whatever its state."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    assert collect(ground, {"oauth.one.g1", PLAN}) == []
    assert tree.folder.is_dir()


def test_work_that_has_not_landed_is_kept(tmp_path: Path) -> None:
    """The commits of a loop that is over but has not landed stay; only its clean folder goes."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    listed = found(ground, {PLAN})
    assert not listed["branch", "oauth.one.g1"].may_go
    assert "not landed" in listed["branch", "oauth.one.g1"].why
    assert ("worktree", "loopr-1") in collect(ground, {PLAN})
    assert not tree.folder.exists()
    assert shows(root, "loopr/oauth.one.g1", "one.txt") == "1"


@pytest.mark.parametrize("name", ["precious.txt", ".env", "a.txt", "specs/note.md"])
def test_a_folder_with_uncommitted_files_is_kept(name: str, tmp_path: Path) -> None:
    """A worktree in which somebody left files, new or changed, stays; looking changes nothing in it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    write(tree.folder, {name: "precious\n"})
    before = git(tree.folder, "status", "--porcelain")
    assert "worktree" not in {kind for kind, _ in collect(ground, set())}
    assert "not committed" in found(ground, set())["worktree", "loopr-1"].why
    assert git(tree.folder, "status", "--porcelain") == before
    assert (tree.folder / name).read_text() == "precious\n"


def test_what_has_landed_goes_but_for_the_loops_own_commits(tmp_path: Path) -> None:
    """Branch and candidate of a loop that has landed go; the commits it was squashed from stay until forgotten."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    work(ground, "oauth.one.g1", {"two.txt": "1\n"}, 2)
    try_to_land(ground, "oauth.one.g1", 2)
    gone = collect(ground, {PLAN})
    assert {kind for kind, _ in gone} == {"worktree", "branch", "ref"}
    assert git(root, "for-each-ref", "--format=%(refname)").split() == [
        *("refs/heads/loopr/oauth", "refs/heads/main"),
        *("refs/loopr/landed/oauth.one.g1", "refs/loopr/plans/oauth"),
    ]
    assert leftovers.forget(ground, "oauth.one.g1") == ["refs/loopr/landed/oauth.one.g1"]


def test_a_backup_is_kept_while_it_is_the_only_place(tmp_path: Path) -> None:
    """The version before a conflict is in nothing that landed, so it stays until a person lets it go."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.late.g1", {"a.txt": "late\n"})
    work(ground, "oauth.early.g1", {"a.txt": "early\n"})
    try_to_land(ground, "oauth.early.g1")
    clash = try_to_land(ground, "oauth.late.g1")
    assert isinstance(clash, Clash)
    laid = conflicts.lay_clash(ground, clash)
    write(root / "worktrees" / "oauth.late.g1", {"a.txt": "both\n"})
    commits.commit_attempt(ground, "oauth.late.g1", 2, say("oauth.late.g1", 2))
    try_to_land(ground, "oauth.late.g1", 2)
    collect(ground, set())
    collect(ground, set())
    assert shows(root, laid.backup, "a.txt") == "late"
    assert laid.backup in leftovers.forget(ground, "oauth.late.g1")


def test_a_plan_branch_goes_once_the_plan_is_home(tmp_path: Path) -> None:
    """The branch of a plan that is over goes only when a branch of the user's contains it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    assert ("branch", PLAN) not in collect(ground, set())
    built = home.build_home(ground, landing.Onto(PLAN, stands(ground)), "main", Message("home"))
    assert isinstance(built, HomeCandidate)
    home.bring_home(ground, built)
    assert ("branch", PLAN) in collect(ground, set())
    assert git(root, "for-each-ref", "refs/heads/loopr", "refs/loopr/plans") == ""
    assert begin(ground) == git(root, "rev-parse", "main")


def test_what_others_put_beside_ours_is_kept(tmp_path: Path) -> None:
    """A folder and a branch that loopr did not make are named or left alone, and never go."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    take(ground, "oauth.one.g1")
    write(root / "worktrees" / "mine", {"x.txt": "x\n"})
    git(root, "branch", "loopr/mine")
    gone = collect(ground, set())
    assert ("folder", "mine") not in gone
    assert found(ground, set())["folder", "mine"].why == "loopr does not know it"
    assert (root / "worktrees" / "mine" / "x.txt").exists()
    assert git(root, "branch", "--list", "loopr/mine")


def test_a_branch_that_the_user_looks_at_is_kept(tmp_path: Path) -> None:
    """A loop's branch that is checked out somewhere is deleted neither on release nor by the gc."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    git(root, "worktree", "add", "-q", "-f", str(tmp_path / "look"), "loopr/oauth.one.g1")
    returning.release(ground, "oauth.one.g1")
    collect(ground, set())
    assert git(tmp_path / "look", "rev-parse", "--verify", "HEAD")
    assert "checked out" in found(ground, set())["branch", "oauth.one.g1"].why


def test_a_folder_in_which_somebody_lives_is_kept(tmp_path: Path) -> None:
    """A live process in a worktree keeps it, and what changes between listing and clearing is looked at again."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    listed = leftovers.leftovers(ground, set())
    assert any(each.kind == "worktree" and each.may_go for each in listed)
    leftovers.clear_away(ground, listed, set(), lambda _: "process 7 lives in it")
    assert tree.folder.is_dir()


def test_a_worktree_that_is_taken_meanwhile_is_kept(tmp_path: Path) -> None:
    """A folder that an engine gives to another loop while it is looked at is kept, and is no error."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    take(ground, "oauth.one.g1")

    def taken(place: Path) -> str:
        place.rename(place.with_name("oauth.two.g1"))
        return ""

    listed = [each for each in leftovers.leftovers(ground, set(), taken) if each.kind == "worktree"]
    assert [(each.may_go, each.why) for each in listed] == [(False, "the engine has just taken it")]


def test_more_than_the_pool_keeps_may_go(tmp_path: Path) -> None:
    """When the pool was made smaller, the gc takes what is too much."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    names = [f"oauth.n{number}.g1" for number in range(3)]
    for name in names:
        take(ground, name)
    for name in names:
        returning.release(ground, name)
    smaller = ground_of(root, pool=1)
    assert sum(kind == "worktree" for kind, _ in collect(smaller, set())) == 2
    assert len(git(root, "worktree", "list").splitlines()) == 2


def test_the_worktree_of_a_loop_that_is_over_goes_to_the_pool(tmp_path: Path) -> None:
    """What the gc takes from a finished loop serves the next one, as far as the pool has room."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root, pool=1)
    begin(ground)
    trees = [work(ground, f"oauth.{name}.g1", {f"{name}.txt": "x\n"}) for name in ("one", "two", "live")]
    for name in ("one", "two"):
        try_to_land(ground, f"oauth.{name}.g1")
    assert sum(kind == "worktree" for kind, _ in collect(ground, {PLAN, "oauth.live.g1"})) == 2
    assert [tree.folder.is_dir() for tree in trees] == [False, False, True]
    assert [slot.state for slot in slots.load(ground).values()].count("free") == 1
    assert take(ground, "oauth.next.g1").git_dir in [tree.git_dir for tree in trees[:2]]
