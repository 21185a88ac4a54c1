"""From a worktree to a landed commit, one loop after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.world.repo import landing, returning
from loopr.world.repo.words import Candidate, Landed, Overtaken, Refusal, Waits
from tests.world.repo.grounds import (
    PLAN,
    begin,
    digest,
    git,
    ground_of,
    log,
    plant,
    say,
    shows,
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
    built = landing.build_candidate(ground, "oauth.two.g1", PLAN, 1)
    assert isinstance(built, Candidate)
    landing.lay_candidate(ground, built, 1)
    assert (tree.folder / "one.txt").read_text() == "1\n"
    assert git(tree.folder, "rev-parse", "HEAD^{tree}") == built.tree
    write(tree.folder, {"coverage.xml": "<x/>", "a.txt": "spoilt\n"})
    landing.end_judging(ground, "oauth.two.g1")
    assert git(tree.folder, "status", "--porcelain") == ""
    landed = landing.land(ground, landing.make_intent(ground, built, say("oauth.two.g1")))
    assert isinstance(landed, Landed)
    assert git(root, "rev-parse", f"{landed.commit}^{{tree}}") == built.tree


def test_a_candidate_on_an_old_tip_is_overtaken(tmp_path: Path) -> None:
    """A sibling that lands in between sends a loop back to build its candidate again."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    work(ground, "oauth.two.g1", {"two.txt": "2\n"})
    built = landing.build_candidate(ground, "oauth.two.g1", PLAN, 1)
    assert isinstance(built, Candidate)
    intent = landing.make_intent(ground, built, say("oauth.two.g1"))
    try_to_land(ground, "oauth.one.g1")
    assert isinstance(landing.land(ground, intent), Overtaken)
    assert not landing.has_landed(ground, intent.name, intent)
    assert isinstance(try_to_land(ground, "oauth.two.g1"), Landed)
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1", "Work of oauth.two.g1"]


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
    built = landing.build_candidate(ground, "oauth.one.g1", PLAN, 1)
    assert isinstance(built, Candidate)
    landing.land(ground, landing.make_intent(ground, built, say("oauth.one.g1"), "merge"))
    assert "by the command" in log(root, "loopr/oauth")
    assert git(root, "log", "--first-parent", "--format=%s", "loopr/oauth").splitlines()[-1] == "first"
    assert git(root, "rev-list", "--count", "--first-parent", "loopr/oauth") == "2"


def test_a_loop_without_a_change_lands_without_a_commit(tmp_path: Path) -> None:
    """An empty candidate moves no branch, and is known to have landed."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = begin(ground)
    work(ground, "oauth.one.g1", {})
    built = landing.build_candidate(ground, "oauth.one.g1", PLAN, 1)
    assert isinstance(built, Candidate)
    assert built.empty
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))
    assert not landing.has_landed(ground, intent.name, intent)
    assert landing.land(ground, intent) == Landed(tip)
    assert landing.has_landed(ground, intent.name, intent)
    assert git(root, "rev-parse", "loopr/oauth") == tip


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
    outcomes = [landing.take_over(ground, f"oauth.{name}.g1", PLAN, 1).outcome for name in ("fits", "idle", "clashes")]
    assert outcomes == ["moved", "moved", "left alone"]
    assert (fits.folder / "a.txt").read_text() == "theirs\n"
    assert (fits.folder / "fits.txt").read_text() == "x\n"
    assert git(idle.folder, "rev-parse", "HEAD") == git(root, "rev-parse", "loopr/oauth")
    assert (clashes.folder / "a.txt").read_text() == "mine\n"
    for tree in (fits, idle, clashes):
        assert git(tree.folder, "status", "--porcelain") == ""
    assert landing.take_over(ground, "oauth.fits.g1", PLAN, 1).outcome == "current"


def test_a_plan_branch_that_somebody_moved_forward_is_the_new_tip(tmp_path: Path) -> None:
    """A commit that a person put on the plan branch is kept below what lands next."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    git(root, "worktree", "add", "-q", str(tmp_path / "mine"), "loopr/oauth")
    write(tmp_path / "mine", {"person.txt": "p\n"})
    git(tmp_path / "mine", "add", "-A")
    git(tmp_path / "mine", "commit", "-qm", "by a person")
    waits = try_to_land(ground, "oauth.one.g1")
    assert isinstance(waits, Waits)
    assert str(tmp_path / "mine") in waits.problem.message
    git(tmp_path / "mine", "checkout", "-q", "--detach")
    assert isinstance(try_to_land(ground, "oauth.one.g1"), Landed)
    assert log(root, "loopr/oauth") == ["first", "by a person", "Work of oauth.one.g1"]


@pytest.mark.parametrize("how", ["rewound", "deleted"])
def test_a_plan_branch_that_lost_commits_stops_landing(how: str, tmp_path: Path) -> None:
    """A plan branch without recorded commits refuses what lands next, with both ends named, until it is mended."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    first = begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    work(ground, "oauth.two.g1", {"two.txt": "2\n"})
    try_to_land(ground, "oauth.one.g1")
    tip = git(root, "rev-parse", "loopr/oauth")
    git(root, "branch", "-f", "loopr/oauth", first) if how == "rewound" else git(root, "branch", "-D", "loopr/oauth")
    refused = try_to_land(ground, "oauth.two.g1")
    assert isinstance(refused, Refusal)
    assert tip in refused.problems[0].message
    assert how == "deleted" or first in refused.problems[0].message
    git(root, "branch", "-f", "loopr/oauth", tip)
    assert isinstance(try_to_land(ground, "oauth.two.g1"), Landed)


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


def test_a_loop_that_has_landed_is_known_by_its_name(tmp_path: Path) -> None:
    """The name alone tells that a loop has landed, also after others, and a person, have moved the plan's branch on."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    work(ground, "oauth.two.g1", {"two.txt": "2\n"})
    built = landing.build_candidate(ground, "oauth.one.g1", PLAN, 1)
    assert isinstance(built, Candidate)
    intent = landing.make_intent(ground, built, say("oauth.one.g1"))
    assert not landing.has_landed(ground, "oauth.one.g1", intent)
    landed = landing.land(ground, intent)
    try_to_land(ground, "oauth.two.g1")
    by_person = git(root, "commit-tree", "-m", "p", "-p", "loopr/oauth", "main^{tree}")
    git(root, "update-ref", "refs/heads/loopr/oauth", by_person)
    assert landing.has_landed(ground, "oauth.one.g1")
    assert not landing.has_landed(ground, "oauth.none.g1")
    before = git(root, "rev-parse", "loopr/oauth")
    assert landing.land(ground, intent) == landed
    assert git(root, "rev-parse", "loopr/oauth") == before


def test_a_plan_branch_that_a_person_has_checked_out_waits_with_the_place(tmp_path: Path) -> None:
    """While the plan's branch is checked out in the user's own checkout, landing is put off, and says where."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    git(root, "checkout", "-q", "loopr/oauth")
    waits = try_to_land(ground, "oauth.one.g1")
    assert isinstance(waits, Waits)
    assert waits.reason == "checked out"
    assert (str(root) in waits.problem.message, waits.problem.hint) == (True, "switch it there")
    assert not landing.has_landed(ground, "oauth.one.g1")
    git(root, "checkout", "-q", "main")
    assert isinstance(try_to_land(ground, "oauth.one.g1"), Landed)


def test_tries_that_are_taken_together_are_kept(tmp_path: Path) -> None:
    """One commit with the same files takes their place, a ref keeps them, and what lands is the same."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    name = "oauth.one.g1"
    landing.take_together(ground, take(ground, name).name, PLAN, 1)
    for number in range(5):
        tree = work(ground, name, {"one.txt": f"{number}\n"})
    before = git(root, "rev-parse", f"loopr/{name}")
    (tree.folder / "half.local").write_text("ignored or not, it stays")
    for _ in range(2):
        landing.take_together(ground, name, PLAN, 1)
        assert log(root, f"loopr/{name}") == ["first", "Earlier tries, taken together"]
    assert (tree.folder / "half.local").exists()
    assert git(root, "rev-parse", f"loopr/{name}^{{tree}}") == git(root, "rev-parse", f"{before}^{{tree}}")
    kept = git(root, "for-each-ref", "--format=%(objectname)", f"refs/loopr/backup/{name}").split()
    assert before in kept
    assert isinstance(try_to_land(ground, name), Landed)
    assert shows(root, "loopr/oauth", "one.txt") == "4"
