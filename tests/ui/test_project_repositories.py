"""The repositories of projects, as the settings name them: what can be worked in, and what is wrong with the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.grounds import claim, ground_of, grounds_of, repository_problems
from loopr.wiring import Workspace
from loopr.world.place import find_place, remember_place


def git(folder: Path, *words: str) -> None:
    """Call git in a folder."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def plant(folder: Path) -> Path:
    """Make a repository with a commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=first")
    return folder


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """Give a workspace with a repository beside it."""
    plant(tmp_path / "api")
    return plant(tmp_path / "ws")


def workspace(ws: Path, *projects: str) -> Workspace:
    """Set a workspace up with some projects."""
    lines = "".join(f"  {each}\n" for each in projects)
    (ws / "loopr.yml").write_text(f"version: 1\nprojects:\n{lines}")
    return Workspace(ws, environ={})


def problems(ws: Path, *projects: str) -> list[str]:
    """Return what is wrong with the repositories of some projects."""
    return [str(each) for each in repository_problems(workspace(ws, *projects))]


def test_repositories_that_can_be_worked_in(ws: Path) -> None:
    """The workspace's own, one beside it, one that two projects share, none at all: each is opened once."""
    found = workspace(ws, "api: {repo: ../api}", "web: {repo: ../api/}", "own: {}", "notes: {repo: null}")
    assert list(grounds_of(found)) == [".", "../api"]
    assert ground_of(found, "../api").common == (ws.parent / "api/.git").resolve()


def test_pools_of_repositories_are_kept_apart(ws: Path) -> None:
    """Repositories share the folder of worktrees, and none the folder in which clean ones wait."""
    own, api = grounds_of(workspace(ws, "api: {repo: ../api}")).values()
    assert own.worktrees == api.worktrees == ws.resolve() / "worktrees"
    assert own.pool_folder != api.pool_folder
    assert own.state != api.state


@pytest.mark.parametrize(
    ("repo", "said"),
    [
        ("../gone", "../gone is not there (clone it there"),
        ("../bare.git", "../bare.git is a bare repository (add a checkout"),
        ("../plain", "../plain is no repository (`git init` there"),
        ("loopr.yml", "loopr.yml is no repository"),
        ("../linked", "../linked is the same repository as ../api (write ../api"),
        ("../link", "../link is the same repository as ../api (write ../api"),
        ("../ws", "../ws is the same repository as . (write ."),
        ("../api/sub", "../api/sub is a folder in a repository, and not its top (write ../api:"),
        ("sub", "sub is a folder in a repository, and not its top (write .:"),
        ("inner", "inner of it lies inside . of default (move it beside that"),
        ("../api/inner", "../api/inner of it lies inside ../api of api (move it beside that"),
        ("../circle", "../circle"),
        ("../other", "../other belongs to the workspace"),
    ],
)
def test_a_repository_that_cannot_be_worked_in(ws: Path, repo: str, said: str) -> None:
    """Whatever keeps a repository from being worked in is said at the line that names it, with what to do."""
    git(ws.parent, "init", "--quiet", "--bare", "bare.git")
    for name in ("plain", "api/sub", "ws/sub"):
        (ws.parent / name).mkdir()
    for name in ("ws/inner", "api/inner"):
        plant(ws.parent / name)
    git(ws.parent / "api", "worktree", "add", "--quiet", "../linked", "-b", "topic")
    (ws.parent / "link").symlink_to("api")
    (ws.parent / "circle").symlink_to("circle")
    other = plant(ws.parent / "other")
    (other / "specs").mkdir()
    remember_place(find_place(other))
    found = problems(ws, "api: {repo: ../api}", f"it: {{repo: {repo}}}")
    assert len(found) == 1, found
    assert found[0].startswith("loopr.yml:4:8 projects.it.repo: "), found
    assert said in found[0]


def test_every_problem_is_said_at_once(ws: Path) -> None:
    """Several repositories with something wrong are refused together."""
    with pytest.raises(SettingsError) as caught:
        grounds_of(workspace(ws, "a: {repo: ../x}", "b: {repo: ../y}"))
    assert [each.where for each in caught.value.problems] == ["loopr.yml:3:7", "loopr.yml:4:7"]


def test_a_file_where_the_worktrees_belong(ws: Path) -> None:
    """What stands in the place of the folder of worktrees is refused by its name, before anything is tried."""
    (ws / "worktrees").write_text("mine\n")
    with pytest.raises(SettingsError) as caught:
        grounds_of(workspace(ws))
    assert [(each.where, bool(each.hint)) for each in caught.value.problems] == [(str(ws / "worktrees"), True)]


def test_a_repository_inside_a_workspace_without_one(tmp_path: Path) -> None:
    """A workspace that is in no repository may have its repositories inside, but not in its own folders."""
    ws = tmp_path / "ws"
    plant(ws / "api")
    plant(ws / "specs/web")
    assert problems(ws, "api: {repo: api}") == []
    assert "lies in specs, which is loopr's" in problems(ws, "web: {repo: specs/web}")[0]


def test_the_way_back_from_a_repository(ws: Path) -> None:
    """From a repository that is worked in loopr finds the workspace that drives it, with that one's state."""
    found = workspace(ws, "api: {repo: ../api}")
    claim(found.place, ground_of(found, "../api"))
    assert find_place(ws.parent / "api") == found.place == find_place(ws)
    assert problems(ws, "api: {repo: ../api}") == []


def test_a_repository_has_one_workspace(ws: Path) -> None:
    """A repository that one workspace drives is refused to another, until the first one is there no more."""
    found = workspace(ws, "api: {repo: ../api}")
    claim(found.place, ground_of(found, "../api"))
    second = plant(ws.parent / "second")
    assert "belongs to the workspace" in problems(second, "api: {repo: ../api}")[0]
    (ws / "loopr.yml").unlink()
    assert problems(second, "api: {repo: ../api}") == []
