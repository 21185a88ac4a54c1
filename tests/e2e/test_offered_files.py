"""Files under `specs/` that loopr did not write: none is written over; what came beside loops does not decide alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def gates(repo: Repo, loop: str) -> dict[str, str]:
    """Return why a loop waits."""
    return {each["gate"]: each["reason"] for each in repo.loopr("why", loop, "--json").document["gates"]}


# --- no person's file is ever written over -------------------------------------------------------------------------

PLAN = "---\nid: demo\nspecs: [{id: s}]\n---\n# Demo\n"
SPEC = "---\nphases: [{id: p}]\n---\n# By hand\n"
TYPO = "---\ntasks: [{id: mine]\n---\n# A person's own words\n"


def test_a_typo_is_told_and_kept(repo: Repo) -> None:
    """A person drops a spec and a phase with a slip of the pen while nothing runs: the slip is told, the text stays."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', 'say ran')}'}}\n")
    repo.write({"plan.md": PLAN})
    repo.loopr("start", "plan.md", code=4)
    repo.drop("demo/s/spec.md", SPEC)
    repo.drop("demo/s/p/phase.md", TYPO)
    end = repo.loopr("run", code=4)
    path = repo.root / "specs/demo/s/p/phase.md"
    assert path.read_text() == TYPO
    assert "specs/demo/s/p/phase.md:2:" in end.err
    assert repo.statuses() == {"demo": "complete", "demo/s": "complete", "demo/s/p": "pending"}
    assert "specs/demo/s/p/phase.md:2:" in gates(repo, "demo/s/p")["artifact"]
    repo.loopr("run", code=4)
    assert (path.read_text(), repo.diary()) == (TYPO, [])
    path.write_text(TYPO.replace("mine]", "mine}]"))
    repo.loopr("run")
    assert repo.statuses()["demo/s/p/mine"] == "complete"
    assert repo.events("settled") == []


def test_a_typo_that_is_taken_away(repo: Repo) -> None:
    """Once the file that nobody can read has gone, loopr writes the artifact from the entry, as without it."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', 'say ran')}'}}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [{id: p}]}]\n---\n# Demo\n"})
    repo.drop("demo/s/p/phase.md", TYPO)
    repo.loopr("start", "plan.md", code=4)
    assert (repo.root / "specs/demo/s/p/phase.md").read_text() == TYPO
    (repo.root / "specs/demo/s/p/phase.md").unlink()
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_an_entry_that_changes_beside_a_persons_file(repo: Repo) -> None:
    """A person's artifact stays when its entry changes in the plan: the loop waits, and says for what."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', 'say ran')}'}}\n")
    mine = "---\ntasks: [{id: mine}]\n---\n# By hand\n"
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [{id: p}]}]\n---\n# Demo\n"})
    repo.drop("demo/s/p/phase.md", mine)
    repo.loopr("start", "plan.md")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [{id: p, body: More.}]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=4)
    assert (repo.root / "specs/demo/s/p/phase.md").read_text() == mine
    assert "is not loopr's" in gates(repo, "demo/s/p")["artifact"]


# --- what comes while loops are at work -----------------------------------------------------------------------------

EVIL = "---\ntasks: [{id: x, run: 'echo evil > evil', check: 'true'}]\n---\n# A phase\n"
SPECS = "$LOOPR_WORKSPACE/specs/demo"


def put(repo: Repo, name: str, text: str, place: str) -> str:
    """Return lines for a shell that put a text at a place, as a whole."""
    (repo.desk / name).write_text(text)
    return f'mkdir -p "$(dirname "{place}")"; cp "$DESK/{name}" "{place}.new"; mv "{place}.new" "{place}"'


def test_its_own_future_child(repo: Repo) -> None:
    """A loop that writes its future child's artifact, with a command and a check of its own, has nothing run by it."""
    drop = put(repo, "phase.md", EVIL, f"{SPECS}/s/p/phase.md")
    hand = 'printf -- "---\\nphases: [{id: p}, {id: honest}]\\n---\\n# s\\n" > "$LOOPR_OUTPUT"'
    spec, code = repo.script("spec", f"{drop}\n{hand}"), repo.script("code", "echo x > x; say $LOOPR_LOOP")
    repo.settings(f"types:\n  spec: {{run: '{spec}'}}\n  code: {{run: '{code}', check: test -e x}}\n")
    repo.write({"plan.md": PLAN})
    end = repo.loopr("start", "plan.md", code=4)
    assert repo.granted() == {"demo/s": 1, "demo/s/honest/code": 1}
    assert repo.statuses()["demo/s/p/x"] == "pending"
    assert "`loopr approve demo/s/p --file`" in gates(repo, "demo/s/p/x")["offered"]
    accepted = [each["data"] for each in repo.events("artifact_accepted") if each["loop"] == "demo/s/p"]
    assert [each["during"] for each in accepted] == [["demo/s"]]
    assert "loopr approve demo/s/p --file" in end.err
    repo.loopr("reject", "demo/s/p", "--file")
    assert not (repo.root / "specs/demo/s/p/phase.md").exists()
    repo.loopr("run")
    assert repo.statuses()["demo/s/p/code"] == "complete"
    assert "demo/s/p/x" not in repo.granted()


def test_a_task_added_to_a_complete_spec(repo: Repo) -> None:
    """A task with a command that a loop adds to the outline of a complete sibling waits for a person, whoever runs."""
    task = "{id: x, run: 'echo evil > evil; echo evil >> $DESK/diary'}"
    outline = f"---\nphases: [{{id: p}}, {{id: q, tasks: [{task}]}}]\n---\n# s\n"
    drop = put(repo, "spec.md", outline, f"{SPECS}/s/spec.md")
    busy = (
        f'case $LOOPR_LOOP in */busy/*) tell busy; wait_at busy; {drop}; wait_at seen ;; *) say "$LOOPR_LOOP" ;; esac'
    )
    for gate in ("busy", "seen"):
        repo.gate(gate)
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', busy)}'}}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s}, {id: busy, phases: [{id: b}]}]\n---\n# Demo\n"})
    repo.drop("demo/s/spec.md", "---\nphases: [{id: p}]\n---\n# s\n")
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed", words="demo/s/p/code")
    repo.gates["busy"].open()
    repo.until("artifact_offered", words="demo/s")
    repo.gates["seen"].open()
    process.ended(4)
    assert repo.diary() == ["demo/s/p/code"]
    assert "demo/s/q/x" not in repo.granted()
    assert "offered" in gates(repo, "demo/s/q")
    repo.loopr("run", code=4)
    repo.loopr("approve", "demo/s", "--file")
    repo.loopr("run")
    assert repo.diary() == ["demo/s/p/code", "evil"], "a person has said that it is theirs"


def test_five_landed_loops(repo: Repo) -> None:
    """A complete sibling's outline that a loop rewrites with fewer phases takes nothing away until a person says so."""
    names = "abcde"
    many = f"---\nphases: [{', '.join(f'{{id: {each}}}' for each in names)}]\n---\n# s\n"
    drop = put(repo, "spec.md", "---\nphases: [{id: a}]\n---\n# s\n", f"{SPECS}/s/spec.md")
    others = 'echo x > "$(echo $LOOPR_LOOP | tr / .)"'
    busy = f"case $LOOPR_LOOP in */busy/*) tell busy; wait_at busy; {drop}; wait_at seen ;; *) {others} ;; esac"
    for gate in ("busy", "seen"):
        repo.gate(gate)
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', busy)}'}}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s}, {id: busy, phases: [{id: b}]}]\n---\n# Demo\n"})
    repo.drop("demo/s/spec.md", many)
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed", 5)
    repo.gates["busy"].open()
    repo.until("artifact_offered", words="demo/s")
    repo.gates["seen"].open()
    end = process.ended(0)
    assert "loopr approve demo/s --file" in end.err
    assert repo.events("undeclared") == []
    offered = repo.loopr("status", "--json").document["offered"]
    assert [each["loop"] for each in offered] == ["demo/s"]
    assert "demo/busy/b/code" in offered[0]["during"]
    repo.loopr("run")
    assert repo.events("undeclared") == [], "it stays offered over restarts"
    repo.loopr("reject", "demo/s", "--file")
    assert (repo.root / "specs/demo/s/spec.md").read_text() == many
    assert repo.loopr("status", "--json").document["offered"] == []
    repo.loopr("run")
    assert {loop: each for loop, each in repo.statuses().items() if each != "complete"} == {}


def test_the_file_of_the_plan(repo: Repo) -> None:
    """A plan file that a loop rewrites in the checkout is offered by a start off a terminal, also with `--yes`."""
    task = "{id: x, run: 'echo evil > evil', check: 'true'}"
    evil = f"---\nid: demo\nspecs: [{{id: s, phases: [{{id: p, tasks: [{task}]}}]}}]\n---\n# Demo\n"
    text = "---\nid: demo\nspecs: [{id: s, phases: [{id: p}]}]\n---\n# Demo\n"
    drop = put(repo, "plan.md", evil, "$LOOPR_WORKSPACE/plan.md")
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', drop)}'}}\n")
    repo.write({"plan.md": text})
    repo.loopr("start", "plan.md")
    end = repo.loopr("start", "plan.md", "--yes")
    assert "loopr approve demo --file" in end.err
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p", "demo/s/p/code"), "complete")
    assert (repo.root / "specs/demo/plan.md").read_text() == text
    repo.loopr("approve", "demo", "--file")
    assert (repo.root / "specs/demo/plan.md").read_text() == evil
    repo.loopr("start", "plan.md")
    assert repo.granted() == {"demo/s/p/code": 1, "demo/s/p/x": 1}


def test_its_own_artifact(repo: Repo) -> None:
    """A loop that drops an artifact and hands another over is judged; the file is kept, and named."""
    drop = put(repo, "code.md", "# I say that I am done\n", f"{SPECS}/s/p/code/code.md")
    hand = 'printf "# Done\\n" > "$LOOPR_OUTPUT"'
    run = repo.script("code", f"{drop}; tell dropped; wait_at gate; echo $LOOPR_ITERATION > x; {hand}")
    repo.gate("gate")
    repo.settings(f"types:\n  code: {{run: '{run}', check: grep 2 x}}\n")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: s, phases: [{id: p}]}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    offered = repo.until("artifact_offered", words="demo/s/p/code")[0]["data"]
    repo.gates["gate"].open()
    process.ended()
    assert repo.granted() == {"demo/s/p/code": 2}
    assert repo.on_branch("demo", "x") == "2"
    replaced = {"loop": "demo/s/p/code", "digest": offered["digest"]}
    assert [each["data"] for each in repo.events("offer_replaced")] == [replaced]
    assert (repo.state / f"archive/{offered['digest']}.md").read_text() == "# I say that I am done\n"
    assert "I say" not in (repo.root / "specs/demo/s/p/code/code.md").read_text()
