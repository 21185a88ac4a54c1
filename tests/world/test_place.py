"""Where a workspace is, as far as its folders tell."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopr.world.place import Place, find_place, remember_place, repository_around


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder some levels down."""
    found = tmp_path / "some" / "where"
    found.mkdir(parents=True)
    return found


@pytest.mark.parametrize("what", ["folder", "empty", "link to nowhere"])
def test_what_is_only_called_git_is_no_repository(folder: Path, what: str) -> None:
    """A `.git` that git itself passes by, such as what a sandbox leaves behind, is passed by here as well."""
    dot_git = folder.parent / ".git"
    if what == "link to nowhere":
        dot_git.symlink_to("nowhere")
    else:
        dot_git.mkdir()
        if what == "folder":
            (dot_git / "objects").mkdir()
    assert repository_around(folder) is None
    place = find_place(folder)
    assert (place.root, place.repository) == (folder, None)


@pytest.mark.parametrize("kind", ["checkout", "unborn", "bare"])
def test_a_repository_is_found_from_below(folder: Path, kind: str) -> None:
    """A checkout is one by the HEAD in its `.git`, also where that is a link, and a bare one by its parts."""
    top = folder.parent
    git = top if kind == "bare" else top / ".git"
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True)
    if kind == "unborn":
        (git / "HEAD").symlink_to("refs/heads/main")
    else:
        (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert repository_around(folder) == top
    assert find_place(folder).root == top


def test_a_linked_checkout_shares_the_state_of_its_repository(folder: Path) -> None:
    """The `.git` file of a linked worktree leads to the state that all checkouts of the repository share."""
    common = folder / "main" / ".git"
    own = common / "worktrees" / "one"
    own.mkdir(parents=True)
    (common / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "HEAD").write_text("ref: refs/heads/one\n")
    (own / "commondir").write_text("../..\n")
    linked = folder / "one"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {own}\n")
    place = find_place(linked)
    assert (place.root, place.state, place.repository) == (linked, common / "loopr", linked)


def test_many_may_remember_a_place_at_once(tmp_path: Path) -> None:
    """Whoever writes down at the same time where a workspace is, in one process too, hinders nobody."""
    for number in range(50):
        place = Place(tmp_path, tmp_path / f"state{number}", None)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(remember_place, [place] * 8))
        assert sorted(each.name for each in place.state.iterdir()) == ["workspace"]
        assert (place.state / "workspace").read_bytes() == b".."
