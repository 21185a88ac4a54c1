"""No more worktrees than the settings allow: those of loops that are not at work are packed, and laid again later."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: p\ntasks: [{id: a}, {id: b}, {id: c}]\n---\n"
STUCK = """
begin
echo "$LOOPR_ATTEMPT" >> "tries-$name"
echo junk > junk
ls "$LOOPR_WORKSPACE/worktrees" | wc -l > "$DESK/most-$name-$LOOPR_ATTEMPT"
test "$name" = c || test -f "$DESK/mended" || exit 127
test "$(cat made)" = made
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which one loop may have a worktree at a time."""
    with opened(tmp_path) as found:
        yield found.found({".gitignore": "junk\nmade\n", "plan.md": PLAN})


def setting(repo: Repo, body: str, task: str = "") -> None:
    """Write settings under which one loop works, and one worktree is there."""
    run = repo.script("work", f"name=${{LOOPR_LOOP##*/}}\n{body}")
    types = f"types:\n  plan: {{child: task}}\n  task: {{run: '{run}'{task}}}\n"
    bound = ", max: 1, pool: 0, setup: 'echo made > made'"
    repo.settings(f"concurrency: {{max_loops: 1}}\n{types}", worktrees=bound)


def folders(repo: Repo) -> list[str]:
    """List the worktrees of loops that are there."""
    return sorted(each.name for each in (repo.root / "worktrees").iterdir() if each.name.startswith("p."))


def test_a_parked_loop_gives_its_room_and_goes_on_where_it_was(repo: Repo) -> None:
    """Its work is on its branch, and its next try finds that, set up again; never are there two worktrees."""
    setting(repo, STUCK)
    repo.loopr("start", "--yes", "plan.md", code=1)
    assert repo.statuses() == {"p": "complete", "p/a": "parked", "p/b": "parked", "p/c": "complete"}
    assert folders(repo) in ([], ["p.b.g1"])
    assert repo.git("show", "loopr/p.a.g1:tries-a") == "1"
    assert repo.loops()["p/a"]["worktree"] is None
    assert [each["loop"] for each in repo.events("worktree_packed")] == ["p/a", "p/b"]
    shown = repo.loopr("shell", "p/a", "--", "cat", "tries-a").out
    assert shown == "1\n"
    (repo.desk / "mended").touch()
    repo.loopr("reset", "--yes", "p")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.on_branch("p", "tries-a") == "1\n2" and repo.on_branch("p", "tries-b") == "1\n2"
    assert all(each.read_text().strip() == "1" for each in repo.desk.glob("most-[bc]-*"))
    assert repo.granted() == {"p/a": 2, "p/b": 2, "p/c": 1}


def test_work_that_waits_for_a_person_is_judged_and_lands_from_a_folder_laid_again(repo: Repo) -> None:
    """Packed while it awaits its approval, it lands once approved, by judges that find all that the setup makes."""
    check = ", approve: true, check: 'test -f made && test ! -e junk'"
    setting(repo, 'begin; echo "$name" > "$name"; echo junk > junk; rm junk; end', check)
    repo.loopr("start", "--yes", "plan.md", code=4)
    assert {each["status"] for each in repo.loops().values()} == {"complete", "awaiting_approval"}
    assert len(folders(repo)) <= 1
    repo.loopr("approve", "--yes", "p")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert [repo.on_branch("p", each) for each in "abc"] == ["a", "b", "c"]
    assert repo.granted() == {"p/a": 1, "p/b": 1, "p/c": 1}


def test_an_engine_that_is_killed_while_it_packs_leaves_that_to_the_next(repo: Repo) -> None:
    """Struck down as soon as a packing was decided on, it is done by the next engine, with nothing lost."""
    setting(repo, STUCK)
    process = repo.begin("start", "--yes", "plan.md")
    repo.until("worktree_packing")
    process.signal(signal.SIGKILL)
    process.ended(None)
    repo.loopr("run", code=1)
    assert repo.git("show", "loopr/p.a.g1:tries-a") == "1"
    assert repo.statuses()["p/c"] == "complete" and len(folders(repo)) <= 1


def test_a_folder_that_cannot_be_packed_stays_and_counts_no_more(repo: Repo) -> None:
    """What may not be committed keeps its folder with all in it; others go on beside it, and it is told."""
    setting(repo, 'begin; test "$name" != a || { git init -q inner; echo x > inner/x; exit 127; }; echo > "$name"; end')
    repo.loopr("start", "--yes", "plan.md", code=1)
    assert repo.statuses() == {"p": "complete", "p/a": "parked", "p/b": "complete", "p/c": "complete"}
    assert (repo.root / "worktrees" / "p.a.g1" / "inner" / "x").is_file()
    (kept,) = repo.events("worktree_kept")
    assert "inner" in kept["data"]["why"]
