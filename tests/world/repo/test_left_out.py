"""Files that never land: what lies in the folder of a plan, and in that of the worktrees; all else lands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loopr.world.repo import commits
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import end_judging, lay_candidate
from loopr.world.repo.left_out import left_out_since, put_left_out_back
from loopr.world.repo.slots import need_slot
from loopr.world.repo.words import Candidate, PutBack
from tests.world.repo.grounds import (
    Landed,
    begin,
    build,
    git,
    ground_of,
    plant,
    say,
    shows,
    stands,
    take,
    try_to_land,
    write,
)

NAME = "oauth.one.g1"
FILES = {"a.txt": "a\n", "specs/README.md": "read\n", "specs/api/openapi.yaml": "openapi: 3\n"}
PLANS = frozenset({"oauth", "api"})


def opened(tmp_path: Path, plans: frozenset[str] = PLANS, **more: object) -> tuple[Path, Ground]:
    """Plant a repository with a folder of specs of its own, and open it beside some plans."""
    root = plant(tmp_path / "repo", FILES)
    ground = replace(ground_of(root, **more), plans=plans)
    begin(ground)
    return root, ground


def left(ground: Ground, files: dict[str, str], *gone: str) -> str:
    """Let an attempt write and take away files, commit what is there, and return the commit that it began from."""
    tree = take(ground, NAME)
    write(tree.folder, files)
    for each in gone:
        (tree.folder / each).unlink()
    commits.commit_attempt(ground, NAME, 1, say(NAME))
    return tree.tip


def landed(root: Path) -> list[str]:
    """List the paths in which the plan's branch differs from main."""
    return git(root, "diff", "--name-only", "main", "loopr/oauth").splitlines()


def test_specs_and_own_files_never_land(tmp_path: Path) -> None:
    """Nothing lands of a plan's folder, of worktrees/ and of .loopr/, tracked or not, whoever commits it."""
    root, ground = opened(tmp_path)
    tree = take(ground, NAME)
    write(tree.folder, {"specs/api/openapi.yaml": "changed\n", "specs/oauth/plan.md": "n\n", "specs/new.md": "n\n"})
    write(tree.folder, {".loopr/output.md": "o\n", "a.txt": "x\n"})
    git(tree.folder, "add", "-A", "-f")
    git(tree.folder, "commit", "-qm", "by the command")
    write(tree.folder, {"worktrees/x": "x\n", "b.txt": "b\n", "specs/README.md": "more\n"})
    done = commits.commit_attempt(ground, NAME, 1, say(NAME))
    assert done.refused == ()
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert landed(root) == ["a.txt", "b.txt", "specs/README.md", "specs/new.md"]


def test_what_is_left_out_is_kept_and_put_back(tmp_path: Path) -> None:
    """It is as the plan has it at once, in the folder too; the loop's own history has what was made of it."""
    root, ground = opened(tmp_path)
    base = left(ground, {"specs/api/openapi.yaml": "x\n", "specs/api/new.yaml": "y\n", "specs/README.md": "z\n"})
    found = left_out_since(ground, NAME, base)
    assert found is not None
    assert found.files == (PutBack("specs/api/new.yaml", "added"), PutBack("specs/api/openapi.yaml", "changed"))
    put_left_out_back(ground, NAME, stands(ground), 1)
    folder = need_slot(ground, NAME).place(ground)
    assert (folder / "specs/api/openapi.yaml").read_text() == "openapi: 3\n"
    assert not (folder / "specs/api/new.yaml").exists()
    assert (folder / "specs/README.md").read_text() == "z\n"
    assert git(root, "show", f"{found.after}:specs/api/openapi.yaml") == "x"
    assert git(root, "merge-base", "--is-ancestor", found.after, f"loopr/{NAME}") == ""
    assert left_out_since(ground, NAME, base) is None
    assert git(folder, "status", "--porcelain") == ""


def test_a_file_that_moves_out_of_a_plans_folder_is_in_both_places(tmp_path: Path) -> None:
    """The new place is work and lands; the old one is as it was."""
    root, ground = opened(tmp_path)
    left(ground, {"docs/openapi.yaml": "openapi: 3\n"}, "specs/api/openapi.yaml")
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert landed(root) == ["docs/openapi.yaml"]


def test_a_plan_that_is_new_meanwhile(tmp_path: Path) -> None:
    """What was committed before there was a plan of that name is put back for the judge, and named."""
    root, before = opened(tmp_path, frozenset({"oauth"}))
    base = left(before, {"specs/api/openapi.yaml": "x\n", "b.txt": "b\n"})
    assert left_out_since(before, NAME, base) is None
    ground = replace(before, plans=PLANS)
    made = build(ground, NAME)
    assert isinstance(made, Candidate)
    assert made.put_back == (PutBack("specs/api/openapi.yaml", "changed"),)
    lay_candidate(ground, made, 1)
    seen = need_slot(ground, NAME).place(ground) / "specs/api/openapi.yaml"
    assert seen.read_text() == "openapi: 3\n"
    end_judging(ground, NAME)
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert landed(root) == ["b.txt"]


@pytest.mark.parametrize("odd", ["sp[e]cs", "s*", "a b", "!specs", "sub/specs"])
def test_a_folder_with_an_odd_name(odd: str, tmp_path: Path) -> None:
    """The name of the folder is a name, and no pattern; a judge's files are taken away whatever it is called."""
    root = plant(tmp_path / "repo", {"a.txt": "a\n", f"{odd}/api/openapi.yaml": "openapi: 3\n", "specs/api/x": "x\n"})
    ground = replace(ground_of(root, artifacts=root / odd), plans=PLANS)
    begin(ground)
    base = left(ground, {f"{odd}/api/openapi.yaml": "y\n", "specs/api/x": "y\n", f"{odd}/api/new": "y\n"})
    found = left_out_since(ground, NAME, base)
    assert found is not None
    assert [each.path for each in found.files] == [f"{odd}/api/new", f"{odd}/api/openapi.yaml"]
    paths = [each.path for each in found.files]
    told = git(root, "diff", "--name-only", found.before, found.after, "--", *paths).splitlines()
    assert told == paths
    put_left_out_back(ground, NAME, stands(ground), 1)
    made = build(ground, NAME)
    assert isinstance(made, Candidate)
    lay_candidate(ground, made, 1)
    folder = need_slot(ground, NAME).place(ground)
    write(folder, {f"{odd}/api/by-the-judge": "j\n"})
    end_judging(ground, NAME)
    assert not (folder / odd / "api/by-the-judge").exists()
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert landed(root) == ["specs/api/x"]


def test_something_else_stands_where_the_folder_belongs(tmp_path: Path) -> None:
    """A link or a file in the place of the folder, or of a plan's in it, does not land, and what it hid is back."""
    root, ground = opened(tmp_path)
    tree = take(ground, NAME)
    for each in ("README.md", "api/openapi.yaml"):
        (tree.folder / "specs" / each).unlink()
    (tree.folder / "specs/api").rmdir()
    (tree.folder / "specs").rmdir()
    (tree.folder / "specs").symlink_to("a.txt")
    commits.commit_attempt(ground, NAME, 1, say(NAME))
    put_left_out_back(ground, NAME, stands(ground), 1)
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert landed(root) == ["specs/README.md"]
    assert shows(root, "loopr/oauth", "specs/api/openapi.yaml") == "openapi: 3"


def test_ignored_files_stay(tmp_path: Path) -> None:
    """What git ignores in a plan's folder is nobody's work: it is neither kept nor taken away."""
    root = plant(tmp_path / "repo", FILES | {".gitignore": "*.log\n"})
    ground = replace(ground_of(root), plans=PLANS)
    begin(ground)
    base = left(ground, {"specs/api/run.log": "l\n", "specs/api/openapi.yaml": "x\n"})
    found = left_out_since(ground, NAME, base)
    assert found is not None
    assert [each.path for each in found.files] == ["specs/api/openapi.yaml"]
    put_left_out_back(ground, NAME, stands(ground), 1)
    assert (need_slot(ground, NAME).place(ground) / "specs/api/run.log").read_text() == "l\n"


def test_the_commit_tells_when_nothing_is_left_out(tmp_path: Path) -> None:
    """Work that lands as it is needs no second look; a commit of the command's own, or a left file, does."""
    _, ground = opened(tmp_path)
    tree = take(ground, NAME)
    lands = []
    for number, files in enumerate([{"b.txt": "b\n"}, {"specs/api/x": "x\n"}, {"c.txt": "c\n"}], start=1):
        write(tree.folder, files)
        if "c.txt" in files:
            git(tree.folder, "add", "-A")
            git(tree.folder, "commit", "-qm", "by the command")
        lands.append(commits.commit_attempt(ground, NAME, number, say(NAME, number)).lands)
    assert lands == [True, False, False]
