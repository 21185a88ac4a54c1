"""Bringing a plan home: through the checkout that has the base branch, or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from loopr.world.repo import home, landing, touching, watch
from loopr.world.repo.ground import Ground, open_ground
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.words import CameHome, HomeCandidate, Message, Refusal
from tests.world.repo.grounds import (
    PLAN,
    begin,
    digest,
    git,
    ground_of,
    log,
    plant,
    shows,
    stands,
    try_to_land,
    work,
    write,
)

MESSAGE = Message("Bring oauth home", at_ms=1_700_000_000_000)


def done_plan(tmp_path: Path, files: dict[str, str] | None = None) -> tuple[Path, Ground]:
    """Make a plan whose one loop has landed."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", files or {"a.txt": "changed\n", "new/n.txt": "new\n"})
    try_to_land(ground, "oauth.one.g1")
    return root, ground


def candidate(ground: Ground, onto: str = "main") -> HomeCandidate:
    """Build what would come home."""
    built = home.build_home(ground, landing.Onto(PLAN, stands(ground)), onto, MESSAGE)
    assert isinstance(built, HomeCandidate), built
    return built


def refused(ground: Ground, built: HomeCandidate, root: Path) -> list[str]:
    """Try to come home, and return why not; nothing may have changed."""
    before = digest(root)
    answer = home.bring_home(ground, built)
    assert isinstance(answer, Refusal), answer
    assert digest(root) == before
    assert home.home_problems(ground, built) == answer.problems
    return [problem.message for problem in answer.problems]


def test_a_plan_comes_home_by_fast_forward(tmp_path: Path) -> None:
    """The base branch and its checkout get the plan's commits; a second time there is nothing to do."""
    root, ground = done_plan(tmp_path)
    write(root, {"mine.txt": "untracked\n", "src/b.py": "b = 'edited by me'\n"})
    built = candidate(ground)
    assert built.changed == ("a.txt", "new/n.txt")
    assert [line.split(" ", 1)[1] for line in built.commits] == ["Work of oauth.one.g1"]
    answer = home.bring_home(ground, built)
    assert answer == CameHome("main", git(root, "rev-parse", "loopr/oauth"), root)
    assert (root / "a.txt").read_text() == "changed\n"
    assert git(root, "status", "--porcelain") == "M src/b.py\n?? mine.txt"
    assert isinstance(home.bring_home(ground, candidate(ground)), CameHome)


def test_a_plan_comes_home_to_a_base_that_went_on(tmp_path: Path) -> None:
    """A base with commits of its own gets a merge, which can be judged in a room of its own before it lands."""
    root, ground = done_plan(tmp_path)
    write(root, {"src/b.py": "b = 5\n"})
    git(root, "commit", "-qam", "meanwhile")
    built = candidate(ground)
    before = digest(root)
    room = home.take_home_room(ground, built.plan, built.new)
    assert git(room.folder, "rev-parse", "HEAD^{tree}") == built.tree
    assert (room.folder / "src" / "b.py").read_text() == "b = 5\n"
    assert (room.folder / "a.txt").read_text() == "changed\n"
    write(room.folder, {"junk.txt": "junk\n", "a.txt": "spoilt\n"})
    home.leave_home_room(ground, PLAN)
    assert digest(root) == before
    assert isinstance(home.bring_home(ground, built), CameHome)
    assert log(root, "main")[-1] == "Bring oauth home"
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "for-each-ref", "refs/heads/loopr/oauth.home") == ""


def test_a_base_that_no_checkout_has_is_moved_alone(tmp_path: Path) -> None:
    """Where nobody has the base checked out, its branch moves and no file does."""
    root, ground = done_plan(tmp_path)
    git(root, "checkout", "-q", "-b", "elsewhere")
    assert home.bring_home(ground, candidate(ground)) == CameHome("main", git(root, "rev-parse", "loopr/oauth"), None)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_homecoming_is_not_taken_for_something_that_a_loop_has_done(tmp_path: Path) -> None:
    """What runs while a plan comes home to a branch that no checkout has, or that keeps no log, is not to be blamed."""
    root, ground = done_plan(tmp_path)
    git(root, "config", "core.logAllRefUpdates", "false")
    shutil.rmtree(root / ".git" / "logs")
    for words in (["checkout", "-q", "--detach"], ["checkout", "-q", "main"]):
        git(root, *words)
        before = watch.look(ground)
        assert isinstance(home.bring_home(ground, candidate(ground)), CameHome)
        assert all(each.by_person for each in watch.changes(ground, before, watch.look(ground)))
        assert watch.look(ground) != before
        git(root, "update-ref", "refs/heads/main", "main~1")


def test_a_bare_repository_gets_its_branch_moved(tmp_path: Path) -> None:
    """In a bare repository the base branch moves though HEAD names it."""
    seed = plant(tmp_path / "seed")
    root = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(root))
    ground = open_ground(root, worktrees=tmp_path / "worktrees")
    begin(ground)
    work(ground, "oauth.one.g1", {"a.txt": "changed\n"})
    try_to_land(ground, "oauth.one.g1")
    assert isinstance(home.bring_home(ground, candidate(ground)), CameHome)
    assert shows(root, "main", "a.txt") == "changed"


def test_identical_files_are_adopted(tmp_path: Path) -> None:
    """What lies there already as it would land is no obstacle: untracked, ignored, edited or deleted alike."""
    root, ground = done_plan(tmp_path)
    git(root, "config", "core.excludesFile", str(tmp_path / "ignore"))
    (tmp_path / "ignore").write_text("new/\n")
    write(root, {"a.txt": "changed\n", "new/n.txt": "new\n"})
    answer = home.bring_home(ground, candidate(ground))
    assert isinstance(answer, CameHome)
    assert answer.adopted == ("a.txt", "new/n.txt")
    assert git(root, "status", "--porcelain") == ""


def test_adopting_can_be_undone(tmp_path: Path) -> None:
    """When the last step fails after all, the user's index is what it was."""
    root, ground = done_plan(tmp_path)
    write(root, {"a.txt": "changed\n", "new/n.txt": "new\n"})
    before = git(root, "status", "--porcelain")
    door = ground.users_door
    entries = changed_entries(door, "main", "loopr/oauth")
    adopted, held = touching.adopt(door, entries)
    assert adopted == ["a.txt", "new/n.txt"]
    assert git(root, "status", "--porcelain") != before
    touching.undo(door, held)
    assert git(root, "status", "--porcelain") == before


def seen(root: Path) -> tuple[object, ...]:
    """Return what a person sees of their checkout: what is staged, what differs, and every file."""
    files = {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}
    return git(root, "status", "--porcelain"), git(root, "ls-files", "--stage"), files


def test_what_git_has_begun_is_undone(tmp_path: Path) -> None:
    """When git writes the files and then cannot move the branch, the checkout is as it was, edits and all."""
    root, ground = done_plan(tmp_path, {"a.txt": "changed\n", "new/n.txt": "new\n", "same.txt": "same\n"})
    write(root, {"same.txt": "same\n", "mine.txt": "untracked\n", "src/b.py": "b = 'edited by me'\n"})
    built = candidate(ground)
    lock = root / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    before = seen(root)
    assert isinstance(home.bring_home(ground, built), Refusal)
    assert seen(root) == before
    lock.unlink()
    assert isinstance(home.bring_home(ground, built), CameHome)
    assert git(root, "status", "--porcelain") == "M src/b.py\n?? mine.txt"


def test_a_file_that_was_half_written_is_put_back(tmp_path: Path) -> None:
    """What a failed move has left of a path is undone, whether git had it before or not; nothing else is touched."""
    root, ground = done_plan(tmp_path)
    write(root, {"mine.txt": "untracked\n", "src/b.py": "b = 'edited by me'\n"})
    before = seen(root)
    write(root, {"a.txt": "chan", "new/n.txt": "n"})
    door = ground.users_door
    touching.put_back(door, git(root, "rev-parse", "main"), changed_entries(door, "main", "loopr/oauth"))
    assert seen(root) == before


def test_what_a_person_writes_while_a_plan_comes_home_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is edited or made just before git would write it makes git refuse, and is not taken for git's own."""
    root, ground = done_plan(tmp_path, {"a.txt": "changed\n", "new/n.txt": "new\n", "src/b.py": "b = 2\n"})
    built, real = candidate(ground), touching.adopt
    mine = {"a.txt": "mine\n", "new/n.txt": "mine too\n"}

    def slowly(*given: Any) -> Any:
        done = real(*given)
        write(root, mine)
        return done

    monkeypatch.setattr(home, "adopt", slowly)
    assert isinstance(home.bring_home(ground, built), Refusal)
    assert {path: (root / path).read_text() for path in mine} == mine
    assert git(root, "status", "--porcelain") == "M a.txt\n?? new/"


def test_what_a_person_commits_while_a_plan_comes_home_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the branch has moved just before git would move it, the checkout stays at what the person committed."""
    root, ground = done_plan(tmp_path)
    built, real = candidate(ground), touching.adopt

    def slowly(*given: Any) -> Any:
        done = real(*given)
        git(root, "rm", "-q", "a.txt")
        git(root, "commit", "-q", "-m", "mine")
        return done

    monkeypatch.setattr(home, "adopt", slowly)
    assert isinstance(home.bring_home(ground, built), Refusal)
    assert git(root, "status", "--porcelain") == ""


def test_files_with_odd_names_come_home(tmp_path: Path) -> None:
    """A name that begins with a quotation mark, or has a line break in it, is taken as it is."""
    files = {'"a.txt"': "quoted\n", 'new/"n': "half\n", "line\nbreak": "broken\n"}
    root, ground = done_plan(tmp_path, files)
    write(root, {'"a.txt"': "quoted\n", "line\nbreak": "broken\n"})
    answer = home.bring_home(ground, candidate(ground))
    assert isinstance(answer, CameHome), answer
    assert {path: (root / path).read_text() for path in files} == files
    assert set(answer.adopted) == {'"a.txt"', "line\nbreak"}


OBSTACLES = {
    "edited": ({"a.txt": "mine\n"}, [], "a.txt differs from the last commit"),
    "untracked": ({"new/n.txt": "mine\n"}, [], "new/n.txt is there"),
    "file-for-folder": ({"new": "mine\n"}, [], "new/n.txt is there"),
    "staged": ({"a.txt": "mine\n"}, [["add", "a.txt"]], "a.txt has other changes staged"),
    "merging": ({}, [["update-ref", "MERGE_HEAD", "HEAD"]], "a merge is not ended"),
    "bisecting": ({}, [["bisect", "start"]], "main is being bisected"),
    "twice": ({}, [["worktree", "add", "-q", "-f", "../twice", "main"]], "checked out twice"),
    "moved": ({}, [["commit", "-q", "--allow-empty", "-m", "x"]], "main has moved meanwhile"),
}


@pytest.mark.parametrize("name", list(OBSTACLES))
def test_each_obstacle_is_a_refusal_that_names_it(name: str, tmp_path: Path) -> None:
    """Whatever of the user's would be touched stops the plan with its name, and everything stays as it is."""
    files, commands, words = OBSTACLES[name]
    root, ground = done_plan(tmp_path)
    built = candidate(ground)
    write(root, files)
    for command in commands:
        git(root, *command)
    assert any(words in message for message in refused(ground, built, root))


def test_an_ignored_file_that_differs_is_a_refusal(tmp_path: Path) -> None:
    """A file that git ignores is not overwritten either."""
    root, ground = done_plan(tmp_path, {"secret.cfg": "from the loop\n"})
    with (root / ".git" / "info" / "exclude").open("a") as file:
        file.write("secret.cfg\n")
    write(root, {"secret.cfg": "mine\n"})
    assert refused(ground, candidate(ground), root) == ["secret.cfg is there, and git does not have it"]


def test_a_rebase_of_the_base_is_a_refusal(tmp_path: Path) -> None:
    """While the base itself is being rebased, nothing lands on it."""
    root, ground = done_plan(tmp_path, {"other.txt": "o\n"})
    git(root, "checkout", "-q", "-b", "topic")
    write(root, {"a.txt": "topic\n"})
    git(root, "commit", "-qam", "topic")
    git(root, "checkout", "-q", "main")
    write(root, {"a.txt": "main\n"})
    git(root, "commit", "-qam", "main")
    built = candidate(ground)
    git(root, "rebase", "topic", check=False)
    assert refused(ground, built, root) == [f"main is being rebased in {root}"]


def test_a_conflict_with_the_base_is_a_refusal(tmp_path: Path) -> None:
    """A plan that conflicts with the base names the files."""
    root, ground = done_plan(tmp_path)
    write(root, {"a.txt": "mine\n"})
    git(root, "commit", "-qam", "mine")
    built = home.build_home(ground, landing.Onto(PLAN, stands(ground)), "main", MESSAGE)
    assert isinstance(built, Refusal)
    assert built.problems[0].message == "loopr/oauth conflicts with main in a.txt"


def test_a_plan_without_a_base_branch_is_home_on_any(tmp_path: Path) -> None:
    """One that began detached is home once a branch of a person's, or HEAD, has all of it."""
    root, ground = done_plan(tmp_path)
    assert not home.is_home(ground, stands(ground), "")
    git(root, "branch", "mine", "loopr/oauth")
    assert home.is_home(ground, stands(ground), "")
    git(root, "branch", "--delete", "--force", "mine")
    assert not home.is_home(ground, stands(ground), "")
    git(root, "checkout", "--quiet", "--detach", "loopr/oauth")
    assert home.is_home(ground, stands(ground), "")


@pytest.mark.parametrize(("onto", "words"), [("", "detached"), ("nowhere", 'no branch called "nowhere"')])
def test_a_base_that_is_no_branch_is_a_refusal(onto: str, words: str, tmp_path: Path) -> None:
    """A plan that began detached, or a branch that is not there, needs --onto."""
    _, ground = done_plan(tmp_path)
    built = home.build_home(ground, landing.Onto(PLAN, stands(ground)), onto, MESSAGE)
    assert isinstance(built, Refusal)
    assert words in built.problems[0].message


def test_a_folder_of_the_users_that_becomes_a_file_is_kept(tmp_path: Path) -> None:
    """A path that is a folder with files of the user's, and a file in the plan, is a refusal."""
    root, ground = done_plan(tmp_path, {"out": "a file\n"})
    write(root, {"out/mine.txt": "mine\n"})
    assert refused(ground, candidate(ground), root) == ["out is there, and git does not have it"]


def test_folders_and_files_may_change_places(tmp_path: Path) -> None:
    """A folder that becomes a file, and a file that becomes a folder, come home into a clean checkout."""
    root = plant(tmp_path / "repo", {"a": "file\n", "b/c.txt": "c\n", "link": "x\n"})
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {})
    (tree.folder / "a").unlink()
    (tree.folder / "b" / "c.txt").unlink()
    (tree.folder / "b").rmdir()
    (tree.folder / "link").unlink()
    (tree.folder / "link").symlink_to("b")
    work(ground, "oauth.one.g1", {"a/inside.txt": "i\n", "b": "file now\n"}, 2)
    try_to_land(ground, "oauth.one.g1", 2)
    assert isinstance(home.bring_home(ground, candidate(ground)), CameHome)
    assert (root / "b").read_text() == "file now\n"
    assert (root / "link").readlink() == Path("b")
    assert git(root, "status", "--porcelain") == ""
