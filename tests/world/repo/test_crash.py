"""An engine that is killed between any two steps does the same work once, when it is started again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loopr.driving.ending import known_names
from loopr.world.repo import commits, conflicts, landing, returning, slots
from loopr.world.repo.ground import Ground
from loopr.world.repo.left_out import LeftOut, Span, keep_left_out
from loopr.world.repo.packing import pack_worktree
from loopr.world.repo.words import Candidate, Clash
from loopr.world.repo.worktrees import put
from tests.world.repo.grounds import (
    Crash,
    Landed,
    begin,
    build,
    crash_before_step,
    digest,
    git,
    ground_of,
    land,
    log,
    plant,
    say,
    shows,
    stands,
    take,
    try_to_land,
    work,
    write,
)

POINTS = 100
CONFLICT_POINTS = 40


def repeated(step: Callable[[], Any], point: int) -> tuple[Any, bool]:
    """Crash in a step at a point, then repeat it; returns its answer, and whether the point was beyond its end."""
    try:
        with crash_before_step(point):
            return step(), True
    except Crash:
        return step(), False


def through(root: Path, prepare: Callable[[Ground, str], None], step: Callable[[Ground, str], Any]) -> list[str]:
    """Let each loop crash at its own point of a step, one point after the other; returns their names."""
    ground = ground_of(root)
    begin(ground)
    names = []
    for point in range(POINTS):
        name = f"oauth.n{point}.g1"
        prepare(ground, name)
        names.append(name)
        _, over = repeated(partial(step, ground, name), point)
        if over:
            return names
    raise AssertionError("the step never ended")


def test_taking_a_worktree_survives_any_crash(tmp_path: Path) -> None:
    """A worktree whose making was cut short anywhere is made by the second try, with nothing left over."""
    root = plant(tmp_path / "repo")
    names = through(root, lambda *_: None, take)
    assert len(names) > 5
    ground = ground_of(root)
    for name in names:
        tree = take(ground, name)
        assert not tree.fresh
        assert git(tree.folder, "status", "--porcelain", "--ignored") == ""
        assert git(tree.folder, "symbolic-ref", "HEAD") == f"refs/heads/{tree.branch}"
    folders = {path.name for path in (root / "worktrees").iterdir() if path.name != ".pool"}
    assert folders == set(names)


def test_reusing_a_worktree_survives_any_crash(tmp_path: Path) -> None:
    """A pooled worktree whose cleaning was cut short anywhere comes clean on the second try."""
    root = plant(tmp_path / "repo")

    def prepare(ground: Ground, name: str) -> None:
        tree = take(ground, f"{name}.before")
        write(tree.folder, {"junk.txt": "junk\n", "a.txt": "changed\n"})
        assert returning.release(ground, f"{name}.before").outcome == "pooled"

    names = through(root, prepare, take)
    ground = ground_of(root)
    for name in names:
        folder = take(ground, name).folder
        assert git(folder, "status", "--porcelain", "--ignored") == ""
        assert not (folder / "junk.txt").exists()


def test_what_a_crash_kept_from_being_filled_is_not_taken_away(tmp_path: Path) -> None:
    """A folder that git was filling when it was killed is no loop's work: nothing of it is committed."""
    root, name = plant(tmp_path / "repo"), "oauth.n1.g1"
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, name)
    slot = slots.slot_of(ground, name)
    assert slot is not None
    put(ground, slot._replace(state="preparing"))
    (tree.folder / "a.txt").unlink()
    done = commits.commit_attempt(ground, name, 1, say(name))
    assert (done.tip, done.refused) == (tree.tip, ())
    assert (take(ground, name).folder / "a.txt").is_file()


def test_committing_survives_any_crash(tmp_path: Path) -> None:
    """A commit that was cut short anywhere is there once after the second try, with every file."""
    root = plant(tmp_path / "repo")

    def prepare(ground: Ground, name: str) -> None:
        write(take(ground, name).folder, {"new.txt": name, "src/b.py": "b = 2\n"})

    names = through(root, prepare, lambda ground, name: commits.commit_attempt(ground, name, 1, say(name)))
    for name in names:
        assert log(root, f"loopr/{name}") == ["first", f"Work of {name}"]
        assert shows(root, f"loopr/{name}", "new.txt") == name
        assert git(root / "worktrees" / name, "status", "--porcelain") == ""


def test_putting_back_what_never_lands_survives_any_crash(tmp_path: Path) -> None:
    """Killed after the commit, between note and files: the second time all is as the plan has it, and was noted."""
    root = plant(tmp_path / "repo", {"a.txt": "a\n", "specs/api/x": "x\n"})
    ground = replace(ground_of(root), plans=frozenset({"api"}))
    tip, noted, over, point = begin(ground), list[LeftOut](), False, 0

    def step(name: str, crash: AbstractContextManager[None]) -> None:
        done = commits.commit_attempt(ground, name, 1, say(name), tip)
        with crash:
            keep_left_out(ground, name, done, Span(tip, tip, 1), noted.append)

    while not over:
        name = f"oauth.n{point}.g1"
        folder = take(ground, name).folder
        write(folder, {"new.txt": "n\n", "specs/api/x": f"{name}\n", "specs/api/new": "n\n"})
        try:
            step(name, crash_before_step(point))
            over = True
        except Crash:
            step(name, nullcontext())
        assert git(folder, "status", "--porcelain") == ""
        assert git(root, "diff", "--name-only", "main", f"loopr/{name}") == "new.txt"
        assert (folder / "specs/api/x").read_text() == "x\n"
        assert [each.path for each in noted[-1].files] == ["specs/api/new", "specs/api/x"]
        assert shows(root, noted[-1].after, "specs/api/x") == name
        point += 1
    assert point > 2


def test_packing_survives_any_crash(tmp_path: Path) -> None:
    """A worktree whose packing was cut short anywhere is packed by the second try: nothing is lost, nothing twice."""
    root = plant(tmp_path / "repo")
    write(root, {".git/info/exclude": "*.pyc\n"})

    def prepare(ground: Ground, name: str) -> None:
        folder = take(ground, name).folder
        write(folder, {"new.txt": name, "junk.pyc": "ignored"})
        (folder / "a.txt").unlink()

    def step(ground: Ground, name: str) -> None:
        assert pack_worktree(ground, name, 1, say(name)) == ""

    names = through(root, prepare, step)
    assert len(names) > 10
    ground = ground_of(root)
    assert {path.name for path in (root / "worktrees").iterdir()} == {".pool"}
    assert {each.name for each in slots.load(ground).values()} == {""}
    for name in names:
        assert log(root, f"loopr/{name}") == ["first", f"Work of {name}"]
        again = take(ground, name)
        assert again.fresh and (again.folder / "new.txt").read_text() == name
        assert not (again.folder / "a.txt").exists() and not (again.folder / "junk.pyc").exists()


def test_what_cannot_be_packed_stays(tmp_path: Path) -> None:
    """A file that may not be committed, a process inside or a repository made there keep a folder with all in it."""
    root, name = plant(tmp_path / "repo"), "oauth.one.g1"
    ground = replace(ground_of(root), max_file_bytes=100)
    begin(ground)
    folder = take(ground, name).folder
    write(folder, {"new.txt": "mine\n"})
    assert pack_worktree(ground, name, 1, say(name), lambda _: "process 7 lives in it") == "process 7 lives in it"
    write(folder, {"large.bin": "x" * 200})
    assert "large.bin" in pack_worktree(ground, name, 1, say(name))
    (folder / "large.bin").unlink()
    (folder / ".git").unlink()
    git(folder, "init", "--quiet")
    assert "repository of its own" in pack_worktree(ground, name, 1, say(name))
    assert (folder / "new.txt").read_text() == "mine\n"
    assert slots.slot_of(ground, name) is not None


def test_landing_survives_any_crash(tmp_path: Path) -> None:
    """A landing that was cut short anywhere is on the plan branch exactly once after the second try."""
    root = plant(tmp_path / "repo")
    before = digest(root)

    def prepare(ground: Ground, name: str) -> None:
        work(ground, name, {f"{name}.txt": "x\n"})

    landed = set()  # what the engine's journal says

    def step(ground: Ground, name: str) -> None:
        if name not in landed:
            assert isinstance(try_to_land(ground, name), Landed)
            landed.add(name)
        released = returning.release(ground, name)
        assert released.outcome in ("pooled", "absent"), released

    names = through(root, prepare, step)
    assert log(root, "loopr/oauth") == ["first", *(f"Work of {name}" for name in names)]
    heads = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/loopr").splitlines()
    assert heads == ["loopr/oauth"]
    assert {slot.state for slot in slots.load(ground_of(root)).values()} == {"free"}
    assert git(root, "for-each-ref", "refs/loopr/backup") == "", "nothing was ever in danger"
    assert digest(root) == before


def test_what_is_left_of_a_loop_is_found_until_all_of_it_is_gone(tmp_path: Path) -> None:
    """A loop whose refs went only in part before a crash is still known, so that the next engine takes the rest."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    for point in range(POINTS):
        name = f"oauth.n{point}.g1"
        work(ground, name, {f"{name}.txt": "x\n"})
        assert isinstance(try_to_land(ground, name), Landed)
        assert any(name in ref for ref in git(root, "for-each-ref", "refs/loopr/candidate").splitlines())
        try:
            with crash_before_step(point, "unlink"):
                returning.release(ground, name)
                break
        except Crash:
            left = git(root, "for-each-ref", "--format=%(refname)").splitlines()
            rest = [ref for ref in left if ref.endswith(name) and not ref.startswith("refs/loopr/landed/")]
            assert not rest or name in known_names(ground), rest
            returning.release(ground, name)
    assert point > 5
    assert git(root, "for-each-ref", "refs/loopr/candidate", "refs/loopr/work", "refs/heads/loopr/oauth.*") == ""


def test_landing_of_a_sibling_that_is_behind_survives_any_crash(tmp_path: Path) -> None:
    """The same holds where plan and loop have to be merged first, and nothing is kept that is safe without that."""
    root = plant(tmp_path / "repo")

    def prepare(ground: Ground, name: str) -> None:
        work(ground, name, {f"{name}.txt": "x\n"})
        work(ground, f"{name}.first", {f"{name}.first.txt": "x\n"})
        assert isinstance(try_to_land(ground, f"{name}.first"), Landed)

    names = through(root, prepare, try_to_land)
    landed = log(root, "loopr/oauth")
    assert len(landed) == len(set(landed)) == 1 + 2 * len(names)
    assert git(root, "for-each-ref", "refs/loopr/backup") == "", "nothing was ever in danger"


def test_what_is_judged_after_a_crash_is_what_would_land(tmp_path: Path) -> None:
    """A tree whose laying for a judge was cut short anywhere is there whole when the next engine asks the judge."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)

    def ask(name: str) -> Candidate:
        built = build(ground, name, 1)
        assert isinstance(built, Candidate)
        landing.lay_candidate(ground, built, 1)
        return built

    for point in range(POINTS):
        name, sibling = f"oauth.n{point}.g1", f"oauth.o{point}.g1"
        work(ground, name, {f"{name}.txt": "x\n"})
        work(ground, sibling, {f"{sibling}.txt": "x\n"})
        assert isinstance(try_to_land(ground, sibling), Landed)
        built, over = repeated(partial(ask, name), point)
        folder = root / "worktrees" / name
        assert git(folder, "diff", "--name-status", built.tree) == ""
        assert git(folder, "status", "--porcelain") == ""
        if over:
            break
    assert point > 5


def test_an_intent_that_was_announced_is_carried_out_once(tmp_path: Path) -> None:
    """The same intent, carried out again and again, moves the plan branch once, whichever of its refs was moved."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    built = build(ground, "oauth.one.g1", 1)
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))  # type: ignore[arg-type]
    assert intent == landing.make_intent(ground, built, say("oauth.one.g1"))  # type: ignore[arg-type]
    for ref in ("refs/loopr/landed/oauth.one.g1", "refs/loopr/plans/oauth"):
        assert land(ground, intent).brought.foreign is None
        git(root, "update-ref", "-d", ref)  # as if killed between two of its refs
    assert land(ground, intent).brought.outcome == "right"
    assert stands(ground) == intent.new
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1"]


def test_laying_a_conflict_survives_any_crash(tmp_path: Path) -> None:
    """A conflict whose laying was cut short anywhere lies there whole after the second try, and nothing is lost."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.winner.g1", {"a.txt": "won\n"})

    def prepare(ground: Ground, name: str) -> None:
        work(ground, name, {"a.txt": f"{name}\n", f"{name}.txt": "x\n"})

    def step(ground: Ground, name: str) -> None:
        clash = build(ground, name, 1)
        assert isinstance(clash, Clash)
        conflicts.lay_clash(ground, clash)

    for point in range(CONFLICT_POINTS):
        prepare(ground, f"oauth.n{point}.g1")
    assert isinstance(try_to_land(ground, "oauth.winner.g1"), Landed)
    names = through(root, lambda *_: None, step)
    for name in names:
        folder = root / "worktrees" / name
        assert "<<<<<<< loopr/oauth (the plan)\nwon\n" in (folder / "a.txt").read_text()
        assert git(folder, "status", "--porcelain").split() == ["M", "a.txt", "??", f"{name}.txt"]
        assert git(folder, "rev-parse", "HEAD") == git(root, "rev-parse", "loopr/oauth")
        (backup,) = git(root, "for-each-ref", "--format=%(refname)", f"refs/loopr/backup/{name}").splitlines()
        assert shows(root, backup, f"{name}.txt") == "x"


def test_beginning_again_survives_any_crash(tmp_path: Path) -> None:
    """A loop that leaves its conflict stands clean at the plan's tip, and a ref keeps all of it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.winner.g1", {"a.txt": "won\n"})
    for point in range(CONFLICT_POINTS):
        work(ground, f"oauth.n{point}.g1", {"a.txt": "lost\n", "new.txt": "x\n"})
    assert isinstance(try_to_land(ground, "oauth.winner.g1"), Landed)

    def prepare(ground: Ground, name: str) -> None:
        clash = build(ground, name, 1)
        assert isinstance(clash, Clash)
        conflicts.lay_clash(ground, clash)
        assert commits.commit_attempt(ground, name, 2, say(name, 2)).moved

    def step(ground: Ground, name: str) -> None:
        landing.begin_again(ground, name, stands(ground))

    for name in through(root, prepare, step):
        folder = root / "worktrees" / name
        assert (folder / "a.txt").read_text() == "won\n" and not (folder / "new.txt").exists()
        assert git(folder, "status", "--porcelain") == ""
        assert git(folder, "rev-parse", "HEAD") == git(root, "rev-parse", "loopr/oauth")
        kept = git(root, "for-each-ref", "--format=%(refname)", f"refs/loopr/backup/{name}").split()
        assert {"<<<<<<<" in shows(root, each, "a.txt") for each in kept} == {False, True}


def test_a_conflict_that_was_written_down_but_not_laid_is_laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed right after the conflict was written down, the engine lays it when it asks again."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.late.g1", {"a.txt": "late\n"})
    work(ground, "oauth.early.g1", {"a.txt": "early\n"})
    try_to_land(ground, "oauth.early.g1")
    clash = try_to_land(ground, "oauth.late.g1")
    assert isinstance(clash, Clash)
    with monkeypatch.context() as patch:
        patch.setattr(conflicts, "lay_files", lambda *_: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            conflicts.lay_clash(ground, clash)
    again = build(ground, "oauth.late.g1", 1)
    assert isinstance(again, Clash)
    conflicts.lay_clash(ground, again)
    assert "<<<<<<<" in (root / "worktrees" / "oauth.late.g1" / "a.txt").read_text()


@pytest.mark.parametrize("text", ["", "{", "[1, 2]"])
def test_a_lost_list_of_worktrees_is_told_anew(text: str, tmp_path: Path) -> None:
    """Without the file that says which worktree serves whom, every loop still finds its own, and the pool is known."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    take(ground, "oauth.two.g1")
    returning.release(ground, "oauth.two.g1")
    before = {slot.id: (slot.name, slot.state) for slot in slots.load(ground).values()}
    (ground.state / "worktrees.json").write_text(text)
    assert {slot.id: (slot.name, slot.state) for slot in slots.load(ground).values()} == before
    assert take(ground, "oauth.one.g1").git_dir == tree.git_dir
