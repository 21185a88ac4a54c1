"""Many threads at once: no failure, nothing lost, one folder for one loop."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loopr.world.repo import commits, returning, slots
from tests.world.repo.grounds import (
    Landed,
    begin,
    digest,
    git,
    ground_of,
    log,
    plant,
    say,
    take,
    try_to_land,
    work,
    write,
)

THREADS = 8
ROUNDS = 3


def test_eight_threads_take_commit_land_and_release(tmp_path: Path) -> None:
    """Eight threads live whole lives of loops side by side, with user commands in between; every change lands once."""
    root = plant(tmp_path / "repo")
    before = digest(root)
    ground = ground_of(root, pool=3)
    begin(ground)
    line = threading.Lock()  # landings are serial per plan

    def live(number: int) -> list[str]:
        names = [f"oauth.t{number}r{each}.g1" for each in range(ROUNDS)]
        for name in names:
            tree = take(ground, name)
            write(tree.folder, {f"{name}.txt": name})
            assert commits.commit_attempt(ground, name, 1, say(name)).moved
            with line:
                assert isinstance(try_to_land(ground, name), Landed)
            assert returning.release(ground, name).outcome in ("pooled", "removed")
        return names

    with ThreadPoolExecutor(THREADS + 1) as pool:
        stop = threading.Event()
        user = pool.submit(_as_a_user, root, stop)
        lives = [pool.submit(live, number) for number in range(THREADS)]
        try:
            names = sorted(name for each in lives for name in each.result())
        finally:
            stop.set()
        user.result()
    landed = log(root, "loopr/oauth")
    assert sorted(landed[1:]) == [f"Work of {name}" for name in names]
    assert len(git(root, "ls-tree", "--name-only", "loopr/oauth").splitlines()) == 3 + len(names)
    assert {slot.state for slot in slots.load(ground).values()} == {"free"}
    assert len(slots.load(ground)) <= ground.pool
    assert git(root, "worktree", "prune", "-n", "-v") == ""
    assert digest(root) == before


def _as_a_user(root: Path, stop: threading.Event) -> None:
    """Do what a person does while loops run."""
    while not stop.is_set():
        for words in (["worktree", "prune"], ["pack-refs", "--all"], ["status", "--porcelain"], ["worktree", "list"]):
            git(root, *words, check=False)


def test_two_threads_that_take_the_same_pool_get_two_folders(tmp_path: Path) -> None:
    """One pooled worktree goes to one of two loops that ask at once."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    work(ground, "oauth.first.g1", {})
    returning.release(ground, "oauth.first.g1")
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda name: take(ground, name), ["oauth.one.g1", "oauth.two.g1"])
    assert one.git_dir != two.git_dir
    assert one.folder.name == "oauth.one.g1"


def test_a_worktree_is_locked_from_the_first_moment_that_git_can_see_it(tmp_path: Path) -> None:
    """Whoever looks at any moment, as `git worktree prune` does, finds a new worktree whole and locked."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        bare = pool.submit(_seen_bare, root / ".git" / "worktrees", stop)
        try:
            for number in range(20):
                take(ground, f"oauth.n{number}.g1")
        finally:
            stop.set()
        assert bare.result() == set()


def _seen_bare(places: Path, stop: threading.Event) -> set[str]:
    """Look again and again, and return what was ever missing in a worktree."""
    missing: set[str] = set()
    while not stop.is_set():
        admins = list(places.iterdir()) if places.is_dir() else []
        for name in ("locked", "gitdir", "HEAD", "commondir"):
            missing |= {name for admin in admins if not (admin / name).exists()}
    return missing
