"""From a worktree to a landed commit, one loop after the other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loopr.core.plan_observations import PlanStands
from loopr.core.tips import Moving, Tip
from loopr.driving import tips
from loopr.driving.acts import Do, Tell
from loopr.errors import SettingsError
from loopr.world.repo import landing, returning
from loopr.world.repo.calls import GitFailed
from loopr.world.repo.tips import Aim, bring, foreign_tip, kept_tips, stands_right
from loopr.world.repo.words import Brought, Candidate
from tests.world.repo.grounds import (
    PLAN,
    Landed,
    begin,
    build,
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


def test_a_loops_change_becomes_one_commit_on_a_linear_plan_branch(tmp_path: Path) -> None:
    """Two loops land one after the other: two commits with trailers on top of the base, nothing else moved."""
    root = plant(tmp_path / "repo")
    before = digest(root)
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    assert git(tree.folder, "rev-parse", "--show-toplevel") == str(tree.folder)
    work(ground, "oauth.two.g1", {"two.txt": "2\n", "src/b.py": "b = 2\n"})
    assert isinstance(try_to_land(ground, "oauth.one.g1"), Landed)
    assert isinstance(try_to_land(ground, "oauth.two.g1"), Landed)
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1", "Work of oauth.two.g1"]
    assert log(root, "loopr/oauth", "%P")[-1].count(" ") == 0
    assert "Loopr-Loop: oauth.two.g1" in git(root, "log", "-1", "--format=%(trailers)", "loopr/oauth")
    assert git(root, "log", "-1", "--format=%ct", "loopr/oauth") == "1700000000"
    assert shows(root, "loopr/oauth", "one.txt") == "1"
    assert git(tree.folder, "status", "--porcelain") == ""
    assert digest(root) == before


def test_taking_twice_gives_the_same_worktree(tmp_path: Path) -> None:
    """A loop that has a worktree keeps it, with what is in it."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    first = take(ground, "oauth.one.g1")
    (first.folder / "half.txt").write_text("half")
    second = take(ground, "oauth.one.g1")
    assert first.fresh
    assert not second.fresh
    assert (second.folder / "half.txt").read_text() == "half"


def test_the_judge_sees_the_very_tree_that_lands(tmp_path: Path) -> None:
    """The worktree holds plan and loop merged while a judge works, and none of what the judge leaves lands."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.two.g1", {"two.txt": "2\n"})
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    built = build(ground, "oauth.two.g1", 1)
    assert isinstance(built, Candidate)
    landing.lay_candidate(ground, built, 1)
    assert (tree.folder / "one.txt").read_text() == "1\n"
    assert git(tree.folder, "rev-parse", "HEAD^{tree}") == built.tree
    write(tree.folder, {"coverage.xml": "<x/>", "a.txt": "spoilt\n"})
    landing.end_judging(ground, "oauth.two.g1")
    assert git(tree.folder, "status", "--porcelain") == ""
    landed = land(ground, landing.make_intent(ground, built, say("oauth.two.g1")))
    assert isinstance(landed, Landed)
    assert git(root, "rev-parse", f"{landed.commit}^{{tree}}") == built.tree


def test_the_key_of_a_verdict_is_tree_and_check() -> None:
    """The same tree under the same check has the same key; another tree or another check has another."""
    key = landing.verdict_key("a" * 40, "make test")
    assert key == landing.verdict_key("a" * 40, "make test")
    assert key != landing.verdict_key("b" * 40, "make test")
    assert key != landing.verdict_key("a" * 40, "make lint")


def test_history_merge_keeps_the_commands_own_commits(tmp_path: Path) -> None:
    """With land.history: merge the loop's commits are the second parent of what lands."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    write(tree.folder, {"one.txt": "1\n"})
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "by the command")
    work(ground, "oauth.one.g1", {"more.txt": "2\n"})
    built = build(ground, "oauth.one.g1", 1)
    assert isinstance(built, Candidate)
    land(ground, landing.make_intent(ground, built, say("oauth.one.g1"), "merge"))
    assert "by the command" in log(root, "loopr/oauth")
    assert git(root, "log", "--first-parent", "--format=%s", "loopr/oauth").splitlines()[-1] == "first"
    assert git(root, "rev-list", "--count", "--first-parent", "loopr/oauth") == "2"


def test_a_loop_without_a_change_lands_without_a_commit(tmp_path: Path) -> None:
    """An empty candidate announces no move, and the loop's own tip is kept."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = begin(ground)
    work(ground, "oauth.one.g1", {})
    built = build(ground, "oauth.one.g1", 1)
    assert isinstance(built, Candidate)
    assert built.empty
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))
    assert intent.new == intent.old == tip
    landing.keep_own(ground, intent.name)
    assert git(root, "rev-parse", "refs/loopr/landed/oauth.one.g1") == intent.loop_tip


def test_after_landing_nothing_is_left_but_the_loops_own_commits(tmp_path: Path) -> None:
    """A released loop that has landed leaves neither branch nor worktree, only its own commits under refs/loopr/."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    assert returning.release(ground, "oauth.one.g1").outcome == "pooled"
    refs = git(root, "for-each-ref", "--format=%(refname)").replace("refs/", "").split()
    assert refs == ["heads/loopr/oauth", "heads/main", "loopr/landed/oauth.one.g1", "loopr/plans/oauth"]
    assert shows(root, "refs/loopr/landed/oauth.one.g1", "one.txt") == "1"


def test_siblings_take_over_the_new_tip_unless_it_conflicts(tmp_path: Path) -> None:
    """At a boundary a sibling gets what has landed; one that would conflict is left as it is."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    fits = work(ground, "oauth.fits.g1", {"fits.txt": "x\n"})
    idle = take(ground, "oauth.idle.g1")
    clashes = work(ground, "oauth.clashes.g1", {"a.txt": "mine\n"})
    work(ground, "oauth.one.g1", {"a.txt": "theirs\n", "one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    outcomes = [
        landing.take_over(ground, f"oauth.{name}.g1", stands(ground), 1).outcome for name in ("fits", "idle", "clashes")
    ]
    assert outcomes == ["moved", "moved", "left alone"]
    assert (fits.folder / "a.txt").read_text() == "theirs\n"
    assert (fits.folder / "fits.txt").read_text() == "x\n"
    assert git(idle.folder, "rev-parse", "HEAD") == git(root, "rev-parse", "loopr/oauth")
    assert (clashes.folder / "a.txt").read_text() == "mine\n"
    for tree in (fits, idle, clashes):
        assert git(tree.folder, "status", "--porcelain") == ""
    assert landing.take_over(ground, "oauth.fits.g1", stands(ground), 1).outcome == "current"


def test_what_somebody_else_put_on_a_plan_branch_is_kept_and_lands_nowhere(tmp_path: Path) -> None:
    """Nothing lands upon a commit that somebody put on the plan branch: it is kept, and the plan goes on without it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    git(tree.folder, "checkout", "-q", "loopr/oauth")
    write(tree.folder, {"unjudged.txt": "p\n"})
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "by a loop")
    theirs = git(root, "rev-parse", "loopr/oauth")
    git(tree.folder, "checkout", "-q", "loopr/oauth.one.g1")
    landed = try_to_land(ground, "oauth.one.g1")
    assert isinstance(landed, Landed)
    assert landed.brought == Brought("moved", theirs, f"refs/loopr/backup/oauth/1700000000000-{theirs[:12]}")
    assert git(root, "rev-parse", landed.brought.kept) == theirs
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1"]


@pytest.mark.parametrize("name", ["loopr/oauth", "loopr", "loopr/oauth/mine"])
def test_a_foreign_branch_in_the_way_is_named(name: str, tmp_path: Path) -> None:
    """A branch of somebody else's with the plan's name, or one that keeps git from making it, is exit 78."""
    root = plant(tmp_path / "repo")
    git(root, "branch", name)
    with pytest.raises(SettingsError, match=f'"{name}"'):
        begin(ground_of(root))
    git(root, "branch", "-m", name, "moved")
    begin(ground_of(root))


def test_a_foreign_branch_with_a_loops_name_is_named(tmp_path: Path) -> None:
    """A branch of somebody else's with a loop's name is exit 78, and stays."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    git(root, "branch", "loopr/oauth.one.g1")
    with pytest.raises(SettingsError, match=r"oauth\.one\.g1"):
        take(ground, "oauth.one.g1")


def test_beginning_a_plan_twice_keeps_its_tip(tmp_path: Path) -> None:
    """A plan that has a branch keeps it, wherever the base has gone since."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    git(root, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    assert begin(ground) == git(root, "rev-parse", "loopr/oauth")
    assert git(root, "rev-parse", f"refs/loopr/plans/{PLAN}") == git(root, "rev-parse", "loopr/oauth")


def test_a_plan_branch_that_a_person_has_checked_out_lags(tmp_path: Path) -> None:
    """While the plan's branch is checked out in a person's checkout it stays, and the plan goes on without it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    first = begin(ground)
    for name in ("one", "two"):
        work(ground, f"oauth.{name}.g1", {f"{name}.txt": "1\n"})
    git(root, "checkout", "-q", "loopr/oauth")
    before = digest(root)
    landed = [try_to_land(ground, f"oauth.{name}.g1") for name in ("one", "two")]
    assert [each.brought for each in landed] == [  # type: ignore[union-attr]
        Brought("lags", folder=str(root)),
        Brought("lags", first, folder=str(root), behind=True),
    ]
    assert (digest(root), git(root, "rev-parse", "loopr/oauth")) == (before, first)
    assert log(root, stands(ground)) == ["first", "Work of oauth.one.g1", "Work of oauth.two.g1"]
    git(root, "checkout", "-q", "main")
    assert bring(ground, PLAN, Aim(stands(ground)), 9) == Brought("moved", first, behind=True)
    assert git(root, "rev-parse", "loopr/oauth") == stands(ground)


def test_what_a_person_commits_on_a_branch_that_is_checked_out_stays_there_and_is_kept(tmp_path: Path) -> None:
    """A person's commit on a plan's branch is never taken from their checkout; it is kept beside it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    at = begin(ground)
    git(root, "checkout", "-q", "loopr/oauth")
    git(root, "commit", "-q", "--allow-empty", "-m", "mine")
    mine = git(root, "rev-parse", "HEAD")
    kept = f"refs/loopr/backup/oauth/0000000000005-{mine[:12]}"
    assert bring(ground, PLAN, Aim(at), 5) == Brought("left", mine, kept, str(root))
    assert bring(ground, PLAN, Aim(at, leave=True), 6) == Brought("left", mine, kept, str(root))
    assert foreign_tip(ground, PLAN, at) == git(root, "rev-parse", kept) == mine


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("tip", ["unrelated", "deleted", "rewound"])
def test_a_plan_goes_on_wherever_its_refs_are(tip: str, both: bool, tmp_path: Path) -> None:
    """Branch and copy are brought back from wherever they were moved, together or not, and what has landed stays."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    first = begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    try_to_land(ground, "oauth.one.g1")
    at, other = stands(ground), git(root, "commit-tree", "-m", "x", f"{first}^{{tree}}")
    named = {"rewound": first, "deleted": "", "unrelated": other}
    for ref in ["refs/heads/loopr/oauth", *(["refs/loopr/plans/oauth"] if both else [])]:
        git(root, "update-ref", *(["-d", ref] if tip == "deleted" else [ref, named[tip]]))
    done = bring(ground, PLAN, Aim(at), 7)
    kept = f"refs/loopr/backup/oauth/0000000000007-{named[tip][:12]}" if tip == "unrelated" else ""
    assert done == Brought("moved", named[tip], kept, behind=tip == "rewound")
    assert stands_right(ground, PLAN, at)
    assert bring(ground, PLAN, Aim(at), 8) == Brought("right")
    assert list(kept_tips(ground, PLAN)) == ([kept] if kept else [])


@pytest.mark.parametrize("planted", ["below", "symbolic", "garbage", "below its mark", "below the copy"])
def test_what_is_put_in_the_way_of_a_plans_refs_goes(planted: str, tmp_path: Path) -> None:
    """A ref that keeps the branch, the copy or a loop's mark from being made holds nobody up; its commit is kept."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    branch = "refs/heads/loopr/oauth"
    other = git(root, "commit-tree", "-m", "x", "main^{tree}")
    if planted == "garbage":
        (root / ".git" / branch).write_text("nothing\n")
    elif planted == "symbolic":
        git(root, "symbolic-ref", branch, "refs/heads/main")
    else:
        below = {"below its mark": "refs/loopr/landed/oauth.one.g1", "below the copy": "refs/loopr/plans/oauth"}
        ref = below.get(planted, branch)
        built = build(ground, "oauth.one.g1", 1)
        if planted != "below its mark":
            git(root, "update-ref", "-d", ref)
        git(root, "update-ref", f"{ref}/x", other)
    if planted in ("symbolic", "garbage"):
        built = build(ground, "oauth.one.g1", 1)
    assert isinstance(built, Candidate)
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))
    assert land(ground, intent).brought.outcome == "moved"
    assert stands_right(ground, PLAN, intent.new)
    assert list(kept_tips(ground, PLAN).values()) == ([other] if "below" in planted else [])
    assert git(root, "rev-parse", "main") == git(root, "rev-parse", "refs/heads/main")


def test_landing_twice_is_landing_once(tmp_path: Path) -> None:
    """What was announced may be done again, also by somebody who does not know that it has been."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    built = build(ground, "oauth.one.g1", 1)
    assert isinstance(built, Candidate)
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))
    assert landing.is_there(ground, intent.new)
    assert [land(ground, intent).brought.outcome for _ in range(2)] == ["moved", "right"]
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1"]
    assert not landing.is_there(ground, "1" * 40)


def test_a_git_that_cannot_answer_does_not_say_that_a_commit_is_gone(tmp_path: Path) -> None:
    """While git cannot read its settings, a packed commit is asked for in vain, which tells nothing of it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    commit, config = begin(ground), root / ".git" / "config"
    git(root, "repack", "-adq")
    text = config.read_text()
    config.write_text("[")
    with pytest.raises(GitFailed):
        landing.is_there(ground, commit)
    config.write_text(text)
    assert landing.is_there(ground, commit)


def test_what_is_told_of_a_move_is_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that can be read when the branch moves, and not a moment later: it is told that it has moved."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    old, new = begin(ground), git(root, "commit-tree", "-m", "new", "HEAD^{tree}")
    answers = iter([True, False])
    kit: Any = SimpleNamespace(clock=lambda: 1)
    jobs: Any = None
    looking = tips.Tips(kit, jobs)
    monkeypatch.setattr(tips, "is_there", lambda ground, commit: next(answers))
    monkeypatch.setattr(looking, "_recorded", lambda plan: Tip(old, Moving(old, new, "adopted")))
    act, told = looking._look_closely(ground, tips.Case(PLAN, (), leave=False, known="")), list[object]()
    answer: Any = None
    with suppress(StopIteration):
        while True:
            asked = act.send(answer)
            answer = asked.work() if isinstance(asked, Do) else told.append(asked)  # type: ignore[func-returns-value]
    assert stands_right(ground, PLAN, new)
    assert told == [Tell(PlanStands(PLAN, new))]


def test_tries_that_are_taken_together_are_kept(tmp_path: Path) -> None:
    """One commit with the same files takes their place, a ref keeps them, and what lands is the same."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    name = "oauth.one.g1"
    landing.take_together(ground, take(ground, name).name, stands(ground), 1)
    for number in range(5):
        tree = work(ground, name, {"one.txt": f"{number}\n"})
    before = git(root, "rev-parse", f"loopr/{name}")
    (tree.folder / "half.local").write_text("ignored or not, it stays")
    for _ in range(2):
        landing.take_together(ground, name, stands(ground), 1)
        assert log(root, f"loopr/{name}") == ["first", "Earlier tries, taken together"]
    assert (tree.folder / "half.local").exists()
    assert git(root, "rev-parse", f"loopr/{name}^{{tree}}") == git(root, "rev-parse", f"{before}^{{tree}}")
    kept = git(root, "for-each-ref", "--format=%(objectname)", f"refs/loopr/backup/{name}").split()
    assert before in kept
    assert isinstance(try_to_land(ground, name), Landed)
    assert shows(root, "loopr/oauth", "one.txt") == "4"
