"""Loops that just do the work, whatever their type: they land without an artifact, judged like the last type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

NATURAL = """---
id: demo
title: The first plan that somebody writes
specs:
  - id: site
    title: The site
    phases:
      - {id: one, title: Write one, run: "echo 1 > one.txt", check: "test -s one.txt"}
      - {id: two, title: Write two, run: "cat one.txt > two.txt", check: "grep -q 1 two.txt", needs: [one]}
      - {id: three, title: Write three, run: "echo 3 > three.txt", check: "test -s three.txt"}
---
# The first plan
"""
EMPTY = "---\ntasks: []\n---\n# By hand\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository, in a folder with a space in its name."""
    with opened(tmp_path, root=tmp_path / "a folder") as found:
        yield found.found()


def phase(repo: Repo, entry: str, *, types: str = "", more: str = "") -> None:
    """Write a plan with one phase in one spec, and settings."""
    repo.settings(
        f"types:\n  code: {{check: 'true'}}\n{types}{more}" if "code:" not in types else f"types:\n{types}{more}"
    )
    repo.write({"plan.md": f"---\nid: demo\nspecs: [{{id: s, phases: [{{id: p, {entry}}}]}}]\n---\n# Demo\n"})


def test_the_most_natural_first_plan_lands(repo: Repo) -> None:
    """Phases with a command and a check land what the commands did, and loopr writes that nothing is below them."""
    repo.write({"plan.md": NATURAL})
    repo.git("add", "plan.md")
    repo.git("commit", "--quiet", "--message=plan")
    said = repo.loopr("start", "--dry-run", "plan.md")
    repo.loopr("start", "plan.md")
    assert "nothing judges" not in said.err
    assert set(repo.statuses().values()) == {"complete"}
    assert sorted(repo.landed("demo")) == [(f"demo/site/{each}", 1, 1) for each in ("one", "three", "two")]
    assert repo.on_branch("demo", "two.txt") == "1"
    text = (repo.root / "specs/demo/site/one/phase.md").read_text()
    assert "\ntasks: []\n" in text and "## Landed" in text
    assert "nothing to do" in repo.loopr("start", "plan.md").err
    (repo.root / "specs/demo/site/one/phase.md").unlink()
    repo.loopr("doctor", "--fix", code=None)
    assert (repo.root / "specs/demo/site/one/phase.md").read_text() == text


def test_judged_and_asked_as_the_last_type(repo: Repo) -> None:
    """What neither entry nor type says is the last type's: the check, whose no is the next try, and the approval."""
    check = repo.script("check", 'say "judged $LOOPR_LOOP"; test "$(wc -l < tries)" -ge 2')
    phase(repo, 'run: "echo x >> tries"', types=f"  code: {{check: '{check}', approve: true}}\n")
    repo.loopr("start", "plan.md", code=4)
    assert repo.statuses()["demo/s/p"] == "awaiting_approval"
    assert repo.diary() == ["judged demo/s/p"] * 2
    repo.loopr("approve", "demo/s/p")
    repo.loopr("run")
    assert repo.landed("demo") == [("demo/s/p", 2, 2)]


def test_what_its_own_type_says_goes_before(repo: Repo) -> None:
    """A check that its own type names, and one of its entry before that, takes the place of the last type's."""
    checks = {name: repo.script(name, f"say {name}") for name in ("ours", "last", "entry")}
    types = f"  phase: {{check: '{checks['ours']}'}}\n  code: {{check: '{checks['last']}'}}\n"
    repo.settings(f"types:\n{types}")
    entries = f"{{id: a, run: 'echo a > a'}}, {{id: b, needs: [a], run: 'echo b > b', check: '{checks['entry']}'}}"
    repo.write({"plan.md": f"---\nid: demo\nspecs: [{{id: s, phases: [{entries}]}}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["ours", "entry"]


def test_one_that_hands_over_children_is_judged_as_its_own_type(repo: Repo) -> None:
    """An outline counts as any loop's: its children are declared, and the last type's check is not asked of it."""
    check = repo.script("check", 'say "judged $LOOPR_LOOP"')
    run = repo.script("run", "printf -- '---\\ntasks: [{id: a}, {id: b}]\\n---\\n# P\\n' > \"$LOOPR_OUTPUT\"")
    phase(
        repo, f"run: '{run}'", types=f"  code: {{run: 'echo x > \"$(basename \"$LOOPR_LOOP\")\"', check: '{check}'}}\n"
    )
    repo.loopr("start", "plan.md")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p", "demo/s/p/a", "demo/s/p/b"), "complete")
    assert set(repo.diary()) == {"judged demo/s/p/a", "judged demo/s/p/b"}

    repo.script("run", "true")  # by now it has children, so silence is no answer any more
    repo.loopr("retry", "--fresh", "--yes", "demo/s/p")
    repo.loopr("run", code=1)
    reason = repo.loops()["demo/s/p"]["reason"]
    assert "no artifact was handed over" in reason and "it has children by now" in reason


def test_a_note_is_no_outline(repo: Repo) -> None:
    """Words without an outline are kept as its artifact, with nothing below; it may say so itself, too."""
    run = repo.script("run", 'printf "# Why\\n\\nBecause.\\n" > "$LOOPR_OUTPUT"; echo x > x')
    phase(repo, f"run: '{run}'")
    repo.loopr("start", "plan.md")
    file = repo.root / "specs/demo/s/p/phase.md"
    text = file.read_text()
    assert "\ntasks: []\n" in text and "Because." in text
    file.unlink()
    repo.loopr("doctor", "--fix", code=None)
    assert file.read_text() == text
    file.write_text(text.replace("tasks: []", "tasks: [{id: more}]"))
    repo.loopr("run", code=4)
    assert repo.loops()["demo/s/p"]["generation"] == 1
    assert repo.statuses()["demo/s/p/more"] == "pending"


@pytest.mark.parametrize(
    ("entry", "types", "remedy"),
    [
        ("run: 'echo x > x', leaf: false", "", "take `leaf: false` out of its entry"),
        ("agent: mine", "", "give its entry `leaf: true`"),
        ("title: P", "  phase: {run: 'echo x > x'}\n", "give its entry a `run`, or an `agent` with `leaf: true`"),
    ],
)
def test_whoever_must_hand_over_is_told_how_to_just_do_the_work(
    repo: Repo, entry: str, types: str, remedy: str
) -> None:
    """The third time that no artifact was handed over ends with what a person can do about it."""
    phase(repo, entry, types=types, more="agents: {mine: {run: [sh, -c, 'echo x > x'], lane: default}}\n")
    repo.loopr("start", "plan.md", code=1)
    reason = repo.loops()["demo/s/p"]["reason"]
    assert "no artifact was handed over" in reason and "3 times" in reason
    assert remedy in reason
    repo.write({"plan.md": (repo.root / "plan.md").read_text().replace(entry, "run: 'echo y > y'")})
    repo.loopr("start", "plan.md")
    assert repo.statuses()["demo/s/p"] == "complete"


def test_an_agent_that_may_is_asked_to_do_the_work(repo: Repo) -> None:
    """With `leaf: true` an agent gets the last type's prompt, which asks for no outline, and lands what it did."""
    agent = f"agents: {{mine: {{run: [sh, -c, 'cat > \"{repo.desk}/asked\"; echo x > x'], lane: default}}}}\n"
    phase(repo, "agent: mine, leaf: true", more=agent)
    repo.loopr("start", "plan.md")
    asked = repo.note("asked")
    assert "do the work of `demo/s/p`" in asked and "tasks:" not in asked
    assert repo.landed("demo") == [("demo/s/p", 1, 1)]


def test_a_type_that_is_there_to_declare_cannot_say_nothing_is_below(repo: Repo) -> None:
    """An explicit empty outline of a type's command is refused, and told to the next try."""
    code = f'cp "$LOOPR_FEEDBACK_FILE" "$DESK/said.$LOOPR_ITERATION" || true\nprintf -- \'{EMPTY}\' > "$LOOPR_OUTPUT"'
    run = repo.script(
        "run", code.replace("\n---\n# By hand\n", "\\n---\\n# By hand\\n").replace("---\ntasks", "---\\ntasks")
    )
    phase(repo, "title: P", types=f"  phase: {{run: '{run}'}}\n")
    repo.loopr("start", "plan.md", code=1)
    assert "a phase must declare its code children" in repo.note("said.2")


def test_a_person_completes_the_last_type(repo: Repo) -> None:
    """A file with an empty outline completes a loop of the type that has no children, which has failed."""
    phase(repo, "title: P", types="  code: {run: 'exit 3', check: none}\n")
    repo.loopr("start", "plan.md", code=1)
    repo.drop("demo/s/p/code/code.md", EMPTY)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_an_entry_that_says_nothing_is_below(repo: Repo) -> None:
    """An entry with an explicit empty outline completes by declaration, and nothing runs for it."""
    phase(repo, "tasks: []", types="  code: {run: 'echo c > c', check: none}\n")
    assert "by declaration" in repo.loopr("start", "--dry-run", "plan.md").out
    repo.loopr("start", "plan.md")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p"), "complete")
    assert "\ntasks: []\n" in (repo.root / "specs/demo/s/p/phase.md").read_text()
    assert repo.granted() == {}


NESTED = """printf -- '---\\nphases: [{id: p, tasks: []}]\\n---\\n# S\\n' > "$LOOPR_OUTPUT"
cp "$LOOPR_FEEDBACK_FILE" "$DESK/said.$LOOPR_ITERATION" || true"""


def test_a_command_says_that_nothing_is_below_an_entry(repo: Repo) -> None:
    """An empty list in an entry that a loop's own command hands over says: nothing is below."""
    run = repo.script("run", NESTED)
    repo.settings("types:\n  code: {run: 'echo c > c', check: none}\n")
    repo.write({"plan.md": f"---\nspecs: [{{id: s, run: '{run}'}}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p"), "complete")
    assert "\ntasks: []\n" in (repo.root / "specs/demo/s/p/phase.md").read_text()


def test_a_type_that_is_there_to_declare_cannot_say_it_of_an_entry(repo: Repo) -> None:
    """The same from a type's command is refused with the entry, and told to the next try."""
    run = repo.script("run", NESTED)
    code = "  code: {run: 'echo c > c', check: none}\n"
    repo.settings(f"types:\n  spec: {{run: '{run}'}}\n{code}")
    repo.write({"plan.md": "---\nspecs: [{id: s}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert "p: a phase must declare its code children" in repo.note("said.2")
    assert "demo/s/p" not in repo.statuses()


@pytest.mark.parametrize("state", ["failed", "by hand"])
def test_a_person_completes_any_loop_by_a_file(repo: Repo, state: str) -> None:
    """A file of a person's that says nothing is below completes a loop, one with a command too, and lands nothing."""
    types = "  phase: {run: 'exit 3', check: 'false'}\n" if state == "failed" else "  phase: {approve: true}\n"
    phase(repo, "title: P", types=types)
    repo.loopr("start", "plan.md", code=1 if state == "failed" else 4)
    repo.drop("demo/s/p/phase.md", EMPTY)
    repo.loopr("run")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p"), "complete")
    assert repo.events("landed") == []


def test_the_remedy_is_told_while_other_work_goes_on(repo: Repo) -> None:
    """Where each try changes something, the third equal answer says already what a person can do."""
    run = repo.script("run", "date +%N >> log; test $LOOPR_ATTEMPT -lt 4 || exit 78")
    phase(repo, f"run: '{run}', leaf: false")
    repo.loopr("start", "plan.md", code=1)
    reasons = [each["data"]["reason"] for each in repo.events("refused")]
    assert ["take `leaf: false` out" in each for each in reasons] == [False, False, True]
