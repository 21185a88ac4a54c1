"""Where a plan stands is said by the journal alone: nothing lands that loopr did not land.

Each scene is beside two honest siblings that land without a person. The likeliest first: an agent that commits on the
plan's branch because it thinks that this is how work is handed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.e2e.repos import Repo, opened

HONEST = ("b", "c")
JUDGE = "test -z \"$(cat forbidden 2> /dev/null)\" || { echo 'forbidden has words in it'; exit 1; }"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a check that is a file of it."""
    with opened(tmp_path) as found:
        yield found.found({"check.sh": f"{JUDGE}\n"})


def lay_out(repo: Repo, first: str, *, others: str = "", more: str = "") -> None:
    """Set up a plan of three tasks: `first` is the command of a, its honest siblings write a file of their own."""
    honest = f'{others}\necho "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP").txt"'
    work = repo.script("work", f"case $LOOPR_LOOP in\n*/a) {first} ;;\n*) {honest} ;;\nesac")
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{work}', check: sh check.sh, max_iterations: 2}}\n{more}"
    )
    children = ", ".join(f"{{id: {each}}}" for each in ("a", *HONEST))
    repo.write({"plan.md": f"---\nid: p\nchildren: [{children}]\n---\n# Demo\n"})


def foreign(repo: Repo) -> list[dict[str, object]]:
    """Return what was told of tips that loopr did not make."""
    return [each["data"] for each in repo.events("tip_foreign")]


def tip(repo: Repo) -> str:
    """Return where the journal says that the plan stands."""
    moved: str = repo.events("plan_moved")[-1]["data"]["new"]
    return moved


MOVES = {
    "git checkout -q loopr/p; echo exit 0 > check.sh; echo x > forbidden; git commit -qam x; git add forbidden; "
    "git commit -qm y": "an agent that commits on the plan branch",
    "echo exit 0 > check.sh; echo x > forbidden; git add -A; git commit -qm x; "
    "git update-ref refs/heads/loopr/p HEAD": "a ref that is moved",
    "echo exit 0 > check.sh; echo x > forbidden; git add -A; git commit -qm x; "
    "git update-ref refs/heads/loopr/p HEAD; git update-ref refs/loopr/plans/p HEAD": "both refs moved together",
    "echo exit 0 > check.sh; echo x > forbidden; git add -A; git commit -qm x; "
    'until git push -q --force "$LOOPR_WORKSPACE" HEAD:loopr/p; do sleep 0.1; done': "a push",
}


@pytest.mark.parametrize("move", MOVES, ids=MOVES.values())
def test_a_loop_that_moves_the_plan_branch_lands_nothing_by_that(repo: Repo, move: str) -> None:
    """Its commit is kept, put back and told with its lease; its work and its siblings' are judged by the old check."""
    lay_out(repo, move)
    repo.loopr("start", "plan.md", code=1)
    assert [repo.statuses()[f"p/{each}"] for each in ("a", *HONEST)] == ["failed", "complete", "complete"]
    assert repo.on_branch("p", "check.sh") == JUDGE
    assert "forbidden" not in repo.git("ls-tree", "--name-only", "loopr/p").split()
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/b", "p/c"]
    assert tip(repo) == repo.git("rev-parse", "loopr/p") == repo.git("rev-parse", "refs/loopr/plans/p")
    told = foreign(repo)
    assert told
    assert all(any(str(each).startswith("p/a#") for each in found["during"]) for found in told), told  # type: ignore[attr-defined]
    kept = [str(each["kept"]) for each in told if each["kept"]]
    assert all(re.fullmatch(r"refs/loopr/backup/p/\d{13}-[0-9a-f]{12}", each) for each in kept)
    assert any("forbidden" in repo.git("ls-tree", "--name-only", each).split() for each in kept)
    repo.loopr("cancel", "p/a")
    repo.loopr("land", "p", code=1)


def test_a_loop_that_committed_on_the_plan_branch_may_be_judged_and_land(repo: Repo) -> None:
    """An honest agent that thinks it must merge to the branch itself lands what it did, judged, by loopr's hand."""
    lay_out(repo, "git checkout -q loopr/p; echo a > a.txt; git add a.txt; git commit -qm mine")
    repo.loopr("start", "plan.md")
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/a", "p/b", "p/c"]
    assert repo.on_branch("p", "a.txt") == "a"
    assert repo.git("rev-list", "--count", "--grep=^mine$", "main..loopr/p") == "0"
    repo.loopr("land", "p", "--yes")


REMOVALS = {
    "git update-ref -d refs/heads/loopr/p": "the branch",
    "git for-each-ref --format='delete %(refname)' refs/loopr | git update-ref --stdin": "refs/loopr",
    "git for-each-ref --format='delete %(refname)' refs/loopr refs/heads/loopr/p | git update-ref --stdin": "both",
    "git update-ref refs/heads/loopr/p main~1 2> /dev/null || git update-ref refs/heads/loopr/p main": "moved back",
}


@pytest.mark.parametrize("removal", REMOVALS, ids=REMOVALS.values())
def test_what_is_deleted_is_put_back_from_the_journal(repo: Repo, removal: str) -> None:
    """Branches and refs that a loop has deleted are put back, and everybody lands."""
    go = repo.gate("go")
    lay_out(repo, f"wait_at go; {removal}; echo a > a.txt", others='echo "$LOOPR_LOOP" > own.txt; rm own.txt')
    run = repo.begin("start", "plan.md")
    repo.until("landed", 2)
    go.open()
    run.ended(0)
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/a", "p/b", "p/c"]
    assert tip(repo) == repo.git("rev-parse", "loopr/p") == repo.git("rev-parse", "refs/loopr/plans/p")
    repo.loopr("land", "p", "--yes")


def test_deleted_refs_are_no_circle(repo: Repo) -> None:
    """Where all of refs/loopr is gone while nothing runs, the plan is started again and goes on where it stood."""
    lay_out(repo, 'test -e "$DESK/mended" || exit 78; echo a > a.txt')
    repo.loopr("start", "plan.md", code=1)
    for ref in repo.git("for-each-ref", "--format=%(refname)", "refs/loopr", "refs/heads/loopr").split():
        repo.git("update-ref", "-d", ref)
    (repo.desk / "mended").touch()
    repo.loopr("reset", "p/a")
    repo.loopr("start", "plan.md")
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/a", "p/b", "p/c"]


def test_a_person_who_has_the_branch_checked_out_holds_nobody_up(repo: Repo, tmp_path: Path) -> None:
    """Both slots go on; `status`, `tree` and `land` say that the branch lags and where; it follows when it is free."""
    go, last = repo.gate("go"), repo.gate("last")
    lay_out(repo, "wait_at go; echo a > a.txt; wait_at last", others="wait_at go")
    run = repo.begin("start", "plan.md")
    repo.until("attempt_started", 3)
    mine = tmp_path / "mine"
    repo.git("worktree", "add", "--quiet", str(mine), "loopr/p")
    go.open()
    repo.until("landed", 2)
    assert repo.git("rev-parse", "loopr/p") == repo.git("rev-parse", "main")
    assert repo.git("status", "--porcelain", cwd=mine) == ""
    repo.until("problem_seen", words="lags")
    words = f"loopr/p lags: checked out in {mine}"
    assert words in repo.loopr("status").out
    assert words[:60] in repo.loopr("tree").out
    repo.git("checkout", "--quiet", "--detach", cwd=mine)
    repo.until("problem_gone")
    assert repo.git("rev-parse", "loopr/p") == tip(repo)
    repo.git("checkout", "--quiet", "loopr/p", cwd=mine)
    last.open()
    run.ended(0)
    assert foreign(repo) == []
    landing = repo.loopr("land", "p", "--yes")
    assert words in landing.err
    assert repo.git("rev-parse", "main") == tip(repo) != repo.git("rev-parse", "loopr/p")


def test_a_person_who_amends_a_finished_plan(repo: Repo, tmp_path: Path) -> None:
    """An amended tip is told and left; `land` names three ways, and one asks nothing where the files are the same."""
    lay_out(repo, "echo a > a.txt")
    repo.loopr("start", "plan.md")
    landed = tip(repo)
    repo.git("worktree", "add", "--quiet", str(tmp_path / "mine"), "loopr/p")
    repo.git("commit", "--quiet", "--amend", "--message=better words", cwd=tmp_path / "mine")
    amended = repo.git("rev-parse", "loopr/p")
    repo.loopr("run")
    assert repo.git("rev-parse", "loopr/p") == amended
    assert [(each["tip"], each["back"]) for each in foreign(repo)] == [(amended, "")]
    repo.loopr("run")
    assert len(foreign(repo)) == 1, "it is told once"
    refused = repo.loopr("land", "p", "--yes", code=1)
    for way in ("loopr adopt p`", "--as-recorded", "--replace"):
        assert way in refused.err
    assert repo.git("rev-parse", "main") != landed
    repo.loopr("adopt", "p", "--replace")
    assert tip(repo) == amended
    assert landed in repo.git("for-each-ref", "--format=%(objectname)", "refs/loopr/backup/p")
    repo.loopr("land", "p", "--yes")
    assert repo.git("rev-parse", "main") == amended


def test_what_a_finished_plan_has_recorded_may_land_without_the_rest(repo: Repo) -> None:
    """`land --as-recorded` leaves out what somebody has put on the branch."""
    lay_out(repo, "echo a > a.txt")
    repo.loopr("start", "plan.md")
    landed = tip(repo)
    theirs = repo.git("commit-tree", "-p", "loopr/p", "-m", "theirs", "loopr/p^{tree}")
    repo.git("update-ref", "refs/heads/loopr/p", theirs)
    repo.loopr("land", "p", "--yes", code=1)
    repo.loopr("land", "p", "--yes", "--as-recorded")
    assert repo.git("rev-parse", "main") == landed


def test_a_persons_commit_while_nothing_runs_is_kept_and_adopted(repo: Repo) -> None:
    """A commit on the plan branch is not cut from: it is kept and told, and `adopt` brings it in."""
    lay_out(repo, 'test -e "$DESK/mended" || exit 78; test -e mine.txt && echo a > a.txt')
    repo.loopr("start", "plan.md", code=1)
    repo.git("checkout", "--quiet", "loopr/p")
    repo.write({"mine.txt": "mine\n"})
    repo.git("add", "mine.txt")
    repo.git("commit", "--quiet", "--message=mine")
    mine = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "--quiet", "main")
    (repo.desk / "mended").touch()
    repo.loopr("reset", "p/a")
    repo.loopr("run", code=1)
    told = foreign(repo)[-1]
    assert (told["tip"], told["during"]) == (mine, [])
    assert repo.git("rev-parse", str(told["kept"])) == mine
    assert "mine.txt" not in repo.git("ls-tree", "--name-only", "loopr/p").split()
    repo.loopr("adopt", "p")
    assert repo.on_branch("p", "mine.txt") == "mine"
    assert [each["data"]["why"] for each in repo.events("plan_moved")][-1] == "adopted"
    repo.loopr("retry", "p/a")
    repo.loopr("run")
    assert {"a.txt", "b.txt", "c.txt", "mine.txt"} <= set(repo.git("ls-tree", "--name-only", "loopr/p").split())


def test_a_commit_that_conflicts_is_adopted_by_the_lines_that_are_told(repo: Repo, tmp_path: Path) -> None:
    """A conflict is refused with its files and the lines to type; what is made by these is adopted."""
    lay_out(repo, "echo a > a.txt")
    repo.loopr("start", "plan.md")
    repo.write({"a.txt": "another\n"})
    repo.git("add", "a.txt")
    repo.git("commit", "--quiet", "--message=other words")
    refused = repo.loopr("adopt", "p", "main", code=2)
    assert "a.txt" in refused.err
    line = re.search(r"`(git worktree add [^`]*)`", refused.err.replace("\n", " "))
    assert line is not None, refused.err
    words = re.sub(r"\s+", " ", line[1])
    assert words.startswith(f"git worktree add --detach ../p-merge {tip(repo)[:12]} && cd ../p-merge && git merge ")
    room = tmp_path / "p-merge"
    repo.git("worktree", "add", "--quiet", "--detach", str(room), tip(repo))
    repo.git("merge", "--quiet", "-X", "ours", "main", cwd=room)
    repo.loopr("adopt", "p", "HEAD", cwd=room)
    assert tip(repo) == repo.git("rev-parse", "HEAD", cwd=room) == repo.git("rev-parse", "loopr/p")
    repo.loopr("land", "p", "--yes")


def test_no_loop_adopts(repo: Repo) -> None:
    """A loop's command cannot have anything adopted."""
    lay_out(repo, 'git commit -q --allow-empty -m x; loopr adopt p HEAD || echo $? > "$DESK/said"')
    repo.loopr("start", "plan.md", PATH=f"{Path(__import__('sys').executable).parent}:{repo.env['PATH']}")
    assert repo.note("said").strip() == "2"
    assert not [each for each in repo.events("plan_moved") if each["data"]["why"] == "adopted"]


def forget_where_plans_stand(repo: Repo) -> None:
    """Make the journal one from before it said where plans stand."""
    connection = apsw.Connection(str(repo.state / "loopr.db"))
    names = ("landing_began", "plan_moving", "plan_moved")
    connection.execute(f"DELETE FROM events WHERE event IN ({', '.join('?' * len(names))})", names)
    connection.execute("DELETE FROM records WHERE key LIKE 'tip/%'")
    connection.close()


def test_a_journal_from_before_takes_the_refs_once(repo: Repo) -> None:
    """Where it says nothing a plan stands where refs/loopr/plans/* is, once, and that is told."""
    lay_out(repo, 'test -e "$DESK/mended" || exit 78; echo a > a.txt')
    repo.loopr("start", "plan.md", code=1)
    landed = tip(repo)
    repo.write({"later.md": "---\nid: later\nchildren: [{id: b}]\n---\n# Later\n"})
    repo.loopr("start", "--no-run", "later.md")
    forget_where_plans_stand(repo)
    assert "b.txt" in repo.loopr("diff", "p").out
    (repo.desk / "mended").touch()
    repo.loopr("reset", "p/a")
    assert [each["data"] for each in repo.events("tips_taken")] == [{"plans": ["p"]}]
    assert repo.events("plan_moved")[0]["data"] == {"plan": "p", "old": "", "new": landed, "why": "started"}
    assert "the journal is from before" in repo.loopr("events").out
    repo.loopr("run")
    assert len(repo.events("tips_taken")) == 1
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/a", "p/b", "p/c"]
    assert [loop for loop, *_ in repo.landed("later")] == ["later/b"]
    assert repo.loopr("doctor", code=None).err == ""


def test_many_moves_of_one_attempt_are_bounded(repo: Repo) -> None:
    """Of what an attempt makes again and again the first and the last ten are kept."""
    again = (
        'for i in $(seq 24); do c=$(git commit-tree -p main -m "$i" main^{tree}); '
        "git update-ref refs/heads/loopr/p $c; "
        'until test "$(git rev-parse loopr/p)" != $c; do sleep 0.01; done; done; echo a > a.txt'
    )
    lay_out(repo, again)
    repo.loopr("start", "plan.md")
    kept = repo.git("for-each-ref", "--format=%(contents:subject)", "refs/loopr/backup/p").split()
    assert kept[:10] == [str(each) for each in range(1, 11)]
    assert kept[-1] == "24"
    assert len(kept) <= 20 * 4, "of each set of attempts that were at work together"
    assert len(foreign(repo)) <= 10 * 4
    assert sorted(loop for loop, *_ in repo.landed("p")) == ["p/a", "p/b", "p/c"]
