"""A tree of loops that is driven to its end, and what a second look at it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

THREE = ("a", "b", "c")
PLACE = 'git rev-parse --show-toplevel >> "$DESK/places"\n'
CODE = """
begin
git rev-parse --show-toplevel >> "$DESK/places"
echo "$LOOPR_LOOP" > "$(echo "$LOOPR_LOOP" | tr / .).txt"
cat "$LOOPR_INPUT" > "input of $(echo "$LOOPR_LOOP" | tr / .)"
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def tree(repo: Repo, names: str = "a b c") -> Repo:
    """Set a repository up for a plan of which every loop has a command, each with as many children."""
    entries = f'for each in {names}; do echo "  - id: $each"; done'
    children = f'{{ echo ---; echo $1:; {entries}; echo ---; echo "# $2"; }}'
    write = f'begin; {PLACE}set -- %s "$LOOPR_LOOP"; {children} > "$LOOPR_OUTPUT"; end'
    repo.settings(
        "types:\n"
        f"  plan: {{run: '{repo.script('plan', write % 'specs')}'}}\n"
        f"  spec: {{run: '{repo.script('spec', write % 'phases')}'}}\n"
        f"  phase: {{run: '{repo.script('phase', write % 'tasks')}'}}\n"
        f"  code: {{run: '{repo.script('code', CODE)}'}}\n"
    )
    repo.write({"plan.md": "# Demo\n"})
    return repo


def test_a_whole_tree(repo: Repo) -> None:
    """Forty loops each work in a worktree of their own and land, and the user's checkout is as it was."""
    tree(repo)
    users = repo.users()
    repo.loopr("start", "plan.md")
    statuses = repo.statuses()
    assert set(statuses.values()) == {"complete"}
    assert sorted(Counter(each.count("/") for each in statuses).items()) == [(0, 1), (1, 3), (2, 9), (3, 27)]
    places = repo.note("places").splitlines()
    assert len(places) == len(set(places)) == 40
    assert str(repo.root) not in places
    assert {Path(each).parent for each in places} == {repo.root / "worktrees"}
    assert repo.users() == users
    assert repo.loopr("doctor", "--json").document["ok"] is True

    branch = [each for each in repo.landed("demo") if each[0].count("/") == 3]
    assert sorted(branch) == [(f"demo/{s}/{p}/{c}", 1, 1) for s in THREE for p in THREE for c in THREE]
    assert repo.git("rev-list", "--min-parents=2", "loopr/demo") == ""
    assert repo.git("merge-base", "main", "loopr/demo") == repo.git("rev-parse", "main")
    files = repo.git("ls-tree", "-r", "--name-only", "loopr/demo").splitlines()
    assert len([each for each in files if each.endswith(".txt")]) == 27
    assert not [each for each in files if each.startswith(("specs/", "worktrees/", ".loopr"))]


def test_the_tree_as_files(repo: Repo) -> None:
    """Every loop's artifact stands in specs/ in the loop's own place, and a leaf's names the commit that landed."""
    tree(repo, "a")
    repo.loopr("start", "plan.md")
    specs = repo.root / "specs"
    found = {str(each.relative_to(specs)) for each in specs.rglob("*") if each.is_file()}
    assert found == {"demo/plan.md", "demo/a/spec.md", "demo/a/a/phase.md", "demo/a/a/a/code.md"}
    assert repo.git("rev-parse", "loopr/demo") in (specs / "demo/a/a/a/code.md").read_text()


def test_a_second_start_does_nothing(repo: Repo) -> None:
    """Starting a finished plan again, or running, grants nothing, moves no branch and writes no artifact."""
    tree(repo, "a b")
    repo.loopr("start", "plan.md")
    specs = {each: each.stat().st_mtime_ns for each in (repo.root / "specs").rglob("*.md")}
    tip, granted = repo.git("rev-parse", "loopr/demo"), repo.granted()
    repo.loopr("start", "plan.md")
    repo.loopr("run")
    assert repo.granted() == granted
    assert repo.git("rev-parse", "loopr/demo") == tip
    assert {each: each.stat().st_mtime_ns for each in (repo.root / "specs").rglob("*.md")} == specs


def test_nothing_is_left_behind(repo: Repo) -> None:
    """After the end no process, no lock and no branch of a landed loop's hinders: gc finds nothing that must stay."""
    tree(repo, "a")
    repo.loopr("start", "plan.md")
    assert repo.loopr("status", "--json").document["engine"]["running"] is False
    names = {each.name for each in (repo.root / "worktrees").iterdir()}
    assert not [each for each in names if each.startswith("demo")], names


def test_an_edited_phase_runs_its_code_again(repo: Repo) -> None:
    """An edit of one phase's artifact runs the code below that entry again, on top of what has landed, and no other."""
    tree(repo, "a b")
    repo.loopr("start", "plan.md")
    first = repo.granted()
    repo.drop("demo/a/b/phase.md", "---\ntasks:\n  - {id: a}\n  - {id: b, body: Do it better.}\n---\n# demo/a/b\n")
    repo.loopr("start", "plan.md")
    assert repo.granted() - first == Counter({"demo/a/b/b": 1})
    assert set(repo.statuses().values()) == {"complete"}
    loop = repo.loops()["demo/a/b/b"]
    assert (loop["generation"], loop["attempt"]) == (2, 2)
    assert len({each for each in repo.note("places").splitlines() if "demo.a.b.b.g" in each}) == 2


def test_an_edited_implied_child_runs_again(repo: Repo) -> None:
    """A phase that implies its code is that code's whole input: an edit of its text runs the code again."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', CODE)}'}}\n")
    repo.write({"plan.md": "---\nspecs: [{id: s, phases: [{id: p}, {id: q}]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    first = repo.granted()
    assert first == Counter({"demo/s/p/code": 1, "demo/s/q/code": 1})
    repo.drop("demo/s/p/phase.md", "# p\n\nWith other words.\n")
    repo.loopr("run")
    assert repo.granted() - first == Counter({"demo/s/p/code": 1})
    assert "With other words" in repo.on_branch("demo", "input of demo.s.p.code")


def test_early_cut_off(repo: Repo) -> None:
    """A changed entry runs its loop again; if that hands over the same bytes, nothing below it runs."""
    tree(repo, "a b")
    repo.loopr("start", "plan.md")
    first = repo.granted()
    repo.drop("demo/plan.md", "---\nspecs:\n  - {id: a, body: More about it.}\n  - id: b\n---\n# Demo\n")
    repo.loopr("start", "plan.md")
    assert repo.granted() - first == Counter({"demo/a": 1})
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.loops()["demo/a"]["generation"] == 2


def test_a_changed_plan_file(repo: Repo) -> None:
    """A plan file that declares its tree is taken up again by start: new entries run, the others are left alone."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', CODE)}'}}\n")
    plan = "---\nid: demo\nspecs: [{id: s, phases: [{id: p}%s]}]\n---\n# Demo\n"
    repo.write({"plan.md": plan % ""})
    repo.loopr("start", "plan.md")
    repo.write({"plan.md": plan % ", {id: q}"})
    repo.loopr("run")
    assert repo.granted() == Counter({"demo/s/p/code": 1}), "the original is read by start only"
    repo.loopr("start", "plan.md")
    assert repo.granted() == Counter({"demo/s/p/code": 1, "demo/s/q/code": 1})


def test_children_start_from_what_has_landed(repo: Repo) -> None:
    """A loop that needs another finds that one's work in its worktree, and so does one of a later generation."""
    code = 'ls > "seen by $(basename "$LOOPR_LOOP")"; echo 1 > "$(basename "$LOOPR_LOOP").txt"'
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', code)}'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: first}, {id: then, needs: [first]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert "first.txt" in repo.on_branch("demo", "seen by then").splitlines()
    assert "then.txt" not in repo.on_branch("demo", "seen by first").splitlines()
    order = [each[0] for each in repo.landed("demo")]
    assert order == ["demo/first", "demo/then"]
