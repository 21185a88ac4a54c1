"""What a person brings into a plan: whatever they name, wherever they stand, and nothing that landed is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loopr.wiring import Workspace
from tests.ui.calls import git, loopr
from tests.ui.scenes import Desk, flat


@pytest.fixture
def plan(shop: Desk) -> Desk:
    """Give a workspace with a plan that has begun at main."""
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=begin")
    shop.start(flat(["a"]))
    shop.branch()
    return shop


def tip(desk: Desk) -> str:
    """Return where the plan stands."""
    return Workspace(desk.folder).look().scene.shared.tip("p").at


def commit(desk: Desk, parent: str, name: str, text: str = "x\n") -> str:
    """Make a commit with one more file on top of another, without touching any checkout."""
    blob = git(desk.folder, "hash-object", "-w", str(desk.write(f".git/{name}.text", text)))
    place = f"--index-output={desk.folder / '.git/made'}"
    git(desk.folder, "read-tree", place, parent)
    made = {**os.environ, "GIT_INDEX_FILE": str(desk.folder / ".git/made")}
    words = ["git", "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}"]
    subprocess.run(words, cwd=desk.folder, env=made, check=True)
    said = subprocess.run(["git", "write-tree"], cwd=desk.folder, env=made, check=True, capture_output=True, text=True)
    return git(desk.folder, "commit-tree", "-p", parent, "-m", name, said.stdout.strip())


def test_forward_where_it_can_else_by_a_merge(plan: Desk) -> None:
    """What is on top of the plan is taken as it is; what is beside it is merged, and both parents stay."""
    begun = tip(plan)
    ahead, beside = commit(plan, begun, "ahead.txt"), commit(plan, begun, "beside.txt")
    assert f"p stands at {ahead[:12]}, with {ahead[:12]} adopted" in plan.lines("adopt", "p", ahead)[0]
    assert tip(plan) == git(plan.folder, "rev-parse", "loopr/p") == ahead
    document = plan("adopt", "p", beside, "--json").document
    assert (document["from"], document["adopted"], document["to"]) == (ahead, beside, tip(plan))
    assert git(plan.folder, "rev-parse", "loopr/p^1", "loopr/p^2").split() == [ahead, beside]
    assert {"ahead.txt", "beside.txt"} <= set(git(plan.folder, "ls-tree", "--name-only", "loopr/p").split())
    assert f"p has {beside[:12]} already" in plan("adopt", "p", beside).err


def test_what_others_put_on_the_branch_is_found(plan: Desk) -> None:
    """Without a commit it takes what stands on the branch; where nobody put anything there it says so."""
    answer = plan("adopt", "p")
    assert answer.code == 3
    assert "nobody has put anything else on loopr/p" in answer.err
    theirs = commit(plan, tip(plan), "theirs.txt")
    git(plan.folder, "update-ref", "refs/heads/loopr/p", theirs)
    assert plan("adopt", "p").code == 0
    assert tip(plan) == theirs


def test_a_commit_is_named_where_the_person_is(plan: Desk, tmp_path: Path) -> None:
    """HEAD is that of the checkout in which it is typed."""
    place = tmp_path / "beside"
    git(plan.folder, "worktree", "add", "--quiet", "--detach", str(place), "loopr/p")
    git(place, "commit", "--quiet", "--allow-empty", "--message=there")
    assert loopr("adopt", "-C", place, "p", "HEAD").code == 0
    assert tip(plan) == git(place, "rev-parse", "HEAD") != git(plan.folder, "rev-parse", "HEAD")


def test_a_conflict_is_told_with_the_lines_that_resolve_it(plan: Desk) -> None:
    """A conflict changes nothing, and names its files and what to type."""
    begun = tip(plan)
    one, other = commit(plan, begun, "same.txt", "one\n"), commit(plan, begun, "same.txt", "other\n")
    plan("adopt", "p", one)
    answer = plan("adopt", "p", other)
    assert answer.code == 2
    assert f"{other[:12]} conflicts with what has landed in same.txt" in answer.err
    line = f"`git worktree add --detach ../p-merge {one[:12]} && cd ../p-merge && git merge {other[:12]}`"
    assert line in answer.err
    assert tip(plan) == one


def test_a_rewrite_takes_the_place_of_what_landed(plan: Desk) -> None:
    """The same files are taken without a question; others need a yes; what was there is kept either way."""
    begun = tip(plan)
    landed = commit(plan, begun, "a.txt")
    plan("adopt", "p", landed)
    same = git(plan.folder, "commit-tree", "-p", begun, "-m", "better words", f"{landed}^{{tree}}")
    assert plan("adopt", "p", same, "--replace").code == 0
    assert tip(plan) == same
    other = commit(plan, begun, "b.txt")
    refused = plan("adopt", "p", other, "--replace")
    assert refused.code == 2
    assert "--yes replaces it all the same" in refused.err
    assert plan("adopt", "p", other, "--replace", "--yes").code == 0
    assert tip(plan) == git(plan.folder, "rev-parse", "loopr/p") == other
    kept = git(plan.folder, "for-each-ref", "--format=%(objectname)", "refs/loopr/backup/p").split()
    assert set(kept) == {landed, same}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("p/a", "main"), 2, "plans adopt"),
        (("p", "nowhere"), 3, "no commit called nowhere"),
        (("q", "main"), 3, "there is no loop 'q'"),
    ],
)
def test_what_makes_no_sense_is_refused(plan: Desk, words: tuple[str, ...], code: int, told: str) -> None:
    """A loop adopts nothing, and a name that stands for no commit is named."""
    answer = plan("adopt", *words)
    assert answer.code == code
    assert told in answer.err
    assert tip(plan) == git(plan.folder, "rev-parse", "main")
