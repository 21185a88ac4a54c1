"""What a loop plants while it is at work does not run in the verbs that a person types meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

PLAN = "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"
OTHER = "---\nid: other\nchildren: [{id: x}]\n---\n# Other\n"
RULES = "a.txt filter=e diff=e merge=e\\n"
PROGRAMS = {
    "a clean filter": "config filter.e.clean",
    "a smudge filter": "config filter.e.smudge",
    "a process filter": "config filter.e.process",
    "a merge driver": "config merge.e.driver",
    "a text for diffs": "config diff.e.textconv",
    "a file system monitor": "config core.fsmonitor",
}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a program that leaves a note when it runs, and one filter of a person's."""
    with opened(tmp_path) as found:
        found.found()
        (found.desk / "ran.sh").write_text('echo ran >> "$DESK/ran"; cat\n')
        (found.desk / "mine").write_text('[filter "mine"]\n\tsmudge = "sed s/b/B/"\n')
        found.git("config", "include.path", str(found.desk / "mine"))
        yield found


def planting(repo: Repo, deed: str) -> Process:
    """Let one plan be done, and a loop of another plant something and go on; return the engine."""
    run = repo.script(
        "code",
        f'''
case "$LOOPR_LOOP" in
  other/x) tell ready; wait_at deed; {deed}
    rm -f "$DESK/ran"; tell done; wait_at rest ;;
  *) printf 'kept.txt filter=mine\\n' > .gitattributes; echo b > kept.txt ;;
esac
echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP").txt"''',
    )
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: 'ls *.txt'}}\n")
    repo.write({"plan.md": PLAN, "other.md": OTHER})
    deeds = repo.gate("deed")
    repo.loopr("start", "plan.md")
    process = repo.begin("start", "other.md")
    repo.heard(1)
    deeds.open()
    repo.heard(1)
    return process


@pytest.mark.parametrize("kind", PROGRAMS)
def test_to_land_runs_nothing_planted(repo: Repo, kind: str) -> None:
    """`land --dry-run` and `land` beside a loop heed no program of its; a person's own filter goes on."""
    rest = repo.gate("rest")
    rules = f'printf "{RULES}" > "$LOOPR_WORKSPACE/.git/info/attributes"'
    process = planting(repo, f'git {PROGRAMS[kind]} "sh $DESK/ran.sh"; {rules}')
    repo.write({"settings.txt": "x\n"})
    repo.loopr("land", "demo", "--dry-run", "--yes")
    assert repo.note("ran") == ""
    repo.loopr("land", "demo", "--yes")
    assert repo.note("ran") == ""
    assert (repo.root / "a.txt").read_text() == "demo/a\n"
    assert (repo.root / "kept.txt").read_text() == "B\n"
    rest.open()
    process.ended(None)
    assert repo.note("ran") == ""


@pytest.mark.parametrize("deed", ["config filter.mine.smudge", "config filter.e.smudge"])
def test_to_take_a_lease_runs_nothing_planted(repo: Repo, deed: str) -> None:
    """A worktree that is made for a worker while another one works is laid by a person's filters alone."""
    repo.settings("types:\n  plan: {child: code}\n  code: {}\n")
    repo.write({".gitattributes": "kept.txt filter=mine\n", "kept.txt": "b\n", "other.txt": "b\n"})
    repo.git("add", ".")
    repo.git("commit", "--quiet", "--message=rules")
    repo.write({"plan.md": PLAN.replace("{id: a}", "{id: a}, {id: b}")})
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("lease", "take")
    repo.git(*deed.split(), "sh $DESK/ran.sh")
    if "mine" not in deed:
        (repo.root / ".git/info/attributes").write_text("other.txt filter=e\n")
    (lease,) = repo.loopr("lease", "take", "--json").document["leases"]
    assert (Path(lease["worktree"]) / "kept.txt").read_text() == "B\n"
    assert (Path(lease["worktree"]) / "other.txt").read_text() == "b\n"
    assert repo.note("ran") == ""
