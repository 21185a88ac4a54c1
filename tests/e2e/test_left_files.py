"""Files at a loop's place that loopr did not write stay there: beside work, and where a loop is to be made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

LEAF = "echo x > x.txt; tell busy; wait_at gate"
HANDS_OVER = LEAF + '; printf "# Handed over\\n" > "$LOOPR_OUTPUT"'
BY_HAND = "---\nphases: []\n---\n# By hand\n"
TYPO = "---\nphases: [\n---\n# A person's own words\n"
PLACE = "specs/demo/s/spec.md"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def at_work(repo: Repo, run: str) -> Process:
    """Begin a plan of one spec with a command of its own, up to where that waits."""
    repo.gate("gate")
    repo.settings("types:\n  code: {check: 'true', run: 'echo c > c'}\n")
    entry = f"{{id: s, run: '{repo.script('leaf', run)}'}}"
    repo.write({"plan.md": f"---\nid: demo\nspecs: [{entry}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    return process


def ended(repo: Repo, process: Process) -> str:
    """Let the command go on, and return what lies at the loop's place when all is over."""
    repo.gates["gate"].open()
    process.ended()
    return (repo.root / PLACE).read_text()


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_a_silent_loop_leaves_an_offered_file(repo: Repo, word: str) -> None:
    """A loop that hands nothing over lands, and a file that came beside it stays, offered until a person says more."""
    process = at_work(repo, LEAF)
    repo.drop("demo/s/spec.md", BY_HAND)
    repo.until("artifact_offered")
    assert ended(repo, process) == BY_HAND
    assert repo.statuses()["demo/s"] == "complete"
    assert repo.on_branch("demo", "x.txt") == "x"
    assert repo.events("offer_replaced", "offer_gone") == []
    document = repo.loopr("status", "--json").document
    assert [each["loop"] for each in document["offered"]] == ["demo/s"]
    assert ("offered", False) in [(each["kind"], each["stops"]) for each in document["inbox"]]
    repo.loopr(word, "demo/s", "--file")
    repo.loopr("run")
    text = (repo.root / PLACE).read_text()
    assert (text == BY_HAND) is (word == "approve")
    assert ("## Landed" in text) is (word == "reject")
    assert repo.loopr("status", "--json").document["offered"] == []


def test_what_is_handed_over_takes_its_place(repo: Repo) -> None:
    """A loop that hands something over publishes it, and the file that came beside it is kept and named."""
    process = at_work(repo, HANDS_OVER)
    repo.drop("demo/s/spec.md", BY_HAND)
    (offered,) = repo.until("artifact_offered")
    assert "# Handed over" in ended(repo, process)
    digest = offered["data"]["digest"]
    assert [each["data"]["digest"] for each in repo.events("offer_replaced")] == [digest]
    assert (repo.state / f"archive/{digest}.md").read_text() == BY_HAND


def test_a_malformed_file_stays_and_stays_wrong(repo: Repo) -> None:
    """A file that nobody can read is not called mended when a loop lands beside it."""
    process = at_work(repo, LEAF)
    repo.drop("demo/s/spec.md", TYPO)
    repo.until("artifact_unread")
    assert ended(repo, process) == TYPO
    assert repo.events("problem_gone") == []
    assert len(repo.events("problem_seen")) == 1
    (repo.root / PLACE).write_text(TYPO.replace("[", "[]"))
    repo.loopr("run")
    assert len(repo.events("problem_gone")) == 1
    assert repo.statuses()["demo/s"] == "complete"


@pytest.mark.parametrize("run", [LEAF, HANDS_OVER])
def test_a_file_that_counts_outlives_a_silent_redo(repo: Repo, run: str) -> None:
    """What a person wrote at a leaf's place gives way to what its redoing hands over only, and then it is named."""
    ended(repo, at_work(repo, run))
    noted = (repo.root / PLACE).read_text() + "\nmy note\n"
    repo.drop("demo/s/spec.md", noted)
    repo.loopr("run")
    (accepted,) = (each["data"] for each in repo.events("artifact_accepted") if each["loop"] == "demo/s")
    repo.loopr("retry", "--fresh", "--yes", "demo/s")
    process = repo.begin("run")
    process.ended()
    assert repo.granted() == {"demo/s": 2}
    text, replaced = (repo.root / PLACE).read_text(), repo.events("offer_replaced")
    if run is LEAF:
        assert (text, replaced) == (noted, [])
    else:
        assert "my note" not in text
        assert [each["data"]["digest"] for each in replaced] == [accepted["digest"]]
        assert (repo.state / f"archive/{accepted['digest']}.md").read_text() == noted
    assert repo.statuses()["demo/s"] == "complete"


def test_a_file_that_counts_goes_on_to(repo: Repo) -> None:
    """Children that a person's file declares are there once a command has taken their place in the entry."""
    repo.settings("types:\n  code: {check: none, run: 'echo c > c.txt'}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s}]\n---\n"})
    repo.loopr("start", "--no-run", "plan.md")
    repo.drop("demo/s/spec.md", "---\nphases: [w]\n---\n# By hand\n")
    repo.loopr("run")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [v]}]\n---\n"})
    repo.loopr("start", "--yes", "plan.md", code=4)
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, run: 'echo s > s.txt'}]\n---\n"})
    repo.loopr("start", "--yes", "plan.md")
    assert "# By hand" in (repo.root / PLACE).read_text()
    assert repo.on_branch("demo", "s.txt") == "s"
    assert repo.statuses()["demo/s/w/code"] == "complete"


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_both_words_lead_out_of_the_gate(repo: Repo, word: str) -> None:
    """A person's file whose entry names other children waits in the one list, and each line that is told is taken."""
    mine = "---\nphases: [w]\n---\n# By hand\n"
    repo.settings("types:\n  code: {check: none, run: 'echo c > c.txt'}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s}]\n---\n"})
    repo.loopr("start", "--no-run", "plan.md")
    repo.drop("demo/s/spec.md", mine)
    repo.loopr("run")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [x]}]\n---\n"})
    repo.loopr("start", "--yes", "plan.md", code=4)
    document = repo.loopr("status", "--json").document
    (call,) = document["inbox"]
    assert (call["about"], call["command"], call["stops"]) == (["demo/s"], "loopr approve demo/s --file", True)
    assert not any(each["stranded"] for each in document["plans"])
    assert "+phases: [w]" in repo.loopr("diff", "--waiting").out
    repo.loopr(word, "demo/s", "--file")
    repo.loopr("run")
    text, loops = (repo.root / PLACE).read_text(), repo.statuses()
    assert (text == mine, "demo/s/w" in loops, "demo/s/x" in loops) == (
        (True, True, False) if word == "approve" else (False, False, True)
    )
    assert set(loops.values()) == {"complete"}
    if word == "reject":
        (digest,) = (each["data"]["digest"] for each in repo.events("offer_rejected"))
        assert (repo.state / f"archive/{digest}.md").read_text() == mine


def test_a_file_that_came_after_the_word(repo: Repo) -> None:
    """A file that comes once a loop is approved, before an engine lands it, is a person's."""
    repo.settings("types:\n  code: {check: none, approve: true, run: 'echo c > c.txt'}\n")
    specs = ", ".join(f"{{id: {each}, run: 'echo {each} > {each}.txt'}}" for each in "ab")
    repo.write({"plan.md": f"---\nid: demo\nspecs: [{specs}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=4)
    repo.loopr("approve", "demo/a")
    repo.drop("demo/a/spec.md", BY_HAND)
    repo.drop("demo/b/spec.md", BY_HAND)
    repo.loopr("approve", "demo/b")
    repo.loopr("run")
    assert repo.events("artifact_offered") == []
    assert [each["data"]["during"] for each in repo.events("artifact_accepted") if each["loop"] == "demo/a"] == [[]]
    assert [each["loop"] for each in repo.events("candidate_replaced")] == ["demo/b"], "a word looks first"
    assert {(repo.root / f"specs/demo/{each}/spec.md").read_text() for each in "ab"} == {BY_HAND}
    assert set(repo.statuses().values()) == {"complete"}


def test_a_file_for_what_waits_for_approval(repo: Repo) -> None:
    """A person's file takes the place of what was handed over: a run says so, the list too, and it is what lands."""
    repo.settings("types:\n  code: {check: none, approve: true, run: 'echo c > c.txt'}\n")
    leaf = 'echo x > x.txt; printf "# Its own\\n" > "$LOOPR_OUTPUT"'
    entry = f"{{id: s, run: '{repo.script('leaf', leaf)}'}}"
    repo.write({"plan.md": f"---\nid: demo\nspecs: [{entry}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=4)
    repo.drop("demo/s/spec.md", BY_HAND)
    assert "has a person's file" in repo.loopr("run", code=4).err
    assert f"{PLACE} is a person's file by now" in repo.loopr("status").out
    shown = repo.loopr("diff", "--waiting").out
    assert "-# Its own" in shown and "+# By hand" in shown
    repo.loopr("approve", "demo/s")
    repo.loopr("run")
    assert (repo.root / PLACE).read_text() == BY_HAND
    assert repo.statuses()["demo/s"] == "complete"
