"""What a try costs does not grow with their number: counted in files, lines and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

KEPT, TRIES = 55, 70


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def test_a_loop_that_is_refused_often_keeps_the_last_of_it(repo: Repo) -> None:
    """Feedback names the last fifty refusals and their number; folders of older tries go."""
    note = 'test "$LOOPR_ITERATION" -lt 62 || wc -lc < "$LOOPR_FEEDBACK_FILE" >> "$DESK/sizes"'
    command = repo.script("code", f"{note}\necho $LOOPR_ITERATION >> tries\necho no $LOOPR_ITERATION\nexit 1")
    repo.settings(
        f"types: {{plan: {{child: code}}, code: {{run: '{command}', max_iterations: {TRIES}}}}}\n"
        f"retry: {{no_progress: 1000}}\nlogs: {{keep_attempts: {KEPT}}}\n"
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.loops()["demo/a"]["iteration"] == TRIES
    runs = repo.state / "runs/demo.a.g1"
    numbers = sorted(int(each.name) for each in runs.iterdir() if each.name.isdecimal())
    assert numbers == list(range(TRIES - KEPT, TRIES + 1))
    said = (runs / str(TRIES) / "feedback.md").read_text()
    assert said.startswith(f"no {TRIES - 1}\n")
    assert f"Refused before that (the last 50 of {TRIES - 2} iterations):" in said
    told = [line for line in said.splitlines() if line.startswith("- iteration ")]
    assert [int(each.split()[2].rstrip(":")) for each in told] == list(range(TRIES - 51, TRIES - 1))
    assert len(set(repo.note("sizes").splitlines())) == 1
    assert f"no {TRIES - 1}" in repo.loopr("logs", "demo/a", "--attempt", str(TRIES - 1)).out
    assert int(repo.git("rev-list", "--count", "main..loopr/demo.a.g1")) <= 2 + TRIES % 32
    whole = [str(each) for each in range(1, TRIES + 1)]
    assert repo.git("show", "loopr/demo.a.g1:tries").split() == whole
    kept = repo.git("for-each-ref", "--format=%(objectname)", "refs/loopr/backup/demo.a.g1").split()
    assert {repo.git("show", f"{each}:tries").count("\n") for each in kept} >= {30, 62}
    gone = repo.loopr("logs", "demo/a", "--attempt", "3", code=3)
    assert "there is of" in gone.err
