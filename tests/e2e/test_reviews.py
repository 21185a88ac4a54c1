"""Agents that review: what they are asked, what their answers come to, and who pays for them.

The clients are programs of the test's own, under the names of real ones, that write what those would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import streams_of as s
from tests.e2e.repos import Repo
from tests.e2e.test_agents import FAST, client, repo, says, words

__all__ = ["repo"]
PASSES = ("draft", "completeness", "feasibility", "order", "final")
PLAN = "---\nid: demo\n---\n# Demo\n\nA greeting from everyone.\n"
SPEC = "---\nchildren: [{id: a, title: Say hello}]\n---\n# Demo\n\nTwo words.\n"
REVIEWED = (
    "types:\n"
    "  plan: {child: part, agent: claude, review: {agent: codex, passes: 5}}\n"
    "  part: {child: code}\n"
    "  code: {run: 'echo hello > hello.txt'}\n" + FAST
)


def codex_says(*said: str) -> bytes:
    """Return a stream of Codex that says something and ends well."""
    items = [
        {"type": "item.completed", "item": {"id": str(n), "type": "agent_message", "text": t}}
        for n, t in enumerate(said)
    ]
    used = {"input_tokens": 90, "cached_input_tokens": 0, "output_tokens": 10}
    return s.lines(*items, {"type": "turn.completed", "usage": used})


@pytest.fixture
def written(repo: Repo) -> Iterator[Repo]:
    """Give a repository with a plan that an agent writes, and that another one reviews five times."""
    repo.settings(REVIEWED)
    repo.write({"plan.md": PLAN})
    (repo.desk / "spec").write_text(SPEC)
    client(repo, "claude", f'cp "$DESK/spec" "$LOOPR_OUTPUT"; cat > /dev/null; {says(repo, "well", words("Done."))}')
    yield repo


def asked(repo: Repo) -> list[str]:
    """Return what reviewers were asked, in turn."""
    return [each.read_text() for each in sorted(repo.desk.glob("asked.*"), key=lambda each: int(each.suffix[1:]))]


def reviewer(repo: Repo, answer: str) -> None:
    """Let Codex keep what it is asked, and answer by some words of the shell, in which $n is its number."""
    script = 'n=1; while test -e "$DESK/asked.$n"; do n=$((n + 1)); done; cat > "$DESK/asked.$n"'
    client(repo, "codex", f"{script}\n{answer}")


def test_five_passes_approve(written: Repo) -> None:
    """Each of five reviews is asked about something else, on the lane of who reviews, and what they used is paid."""
    reviewer(written, says(written, "yes", codex_says("I have looked.", "**APPROVED: it is clear.**")))
    written.loopr("start", "plan.md")
    assert written.statuses() == {"demo": "complete", "demo/a": "complete", "demo/a/code": "complete"}
    found = asked(written)
    assert len(found) == 5
    for number, (name, text) in enumerate(zip(PASSES, found, strict=True), 1):
        assert text.startswith("You review `demo`,")
        assert f"review {number} of 5" in text
        assert [each for each in PASSES if f"- **{each}**:" in text] == [name]
        assert "A greeting from everyone." in text
        assert "Say hello" in text
    spent = written.loopr("show", "demo", "--json").document["loop"]["usage"]
    assert spent["tokens"] == 460 + 5 * 100
    (ended,) = [each for each in written.events("work_ended") if each["loop"] == "demo"]
    assert ended["data"]["lane"] == "codex"
    assert "review 1 of 5" in written.loopr("prompt", "demo", "--review").out
    third = written.loopr("prompt", "demo", "--pass", "3", "--json").document
    assert (third["sent"], third["prompt"]) == (True, found[2])
    shown = written.loopr("logs", "demo", "--review").out
    assert "APPROVED: it is clear." in shown
    assert '"type"' not in shown


def test_a_rejection_is_the_feedback_of_the_next_try(written: Repo) -> None:
    """A no of any pass ends the review; the next try is told why, and only what has changed is reviewed anew."""
    no = says(written, "no", codex_says("Two entries are missing.", "REJECTED: name who greets whom"))
    yes = says(written, "yes", codex_says("APPROVED: fine"))
    reviewer(written, f"if test $n = 2; then {no}; else {yes}; fi")
    client(
        written,
        "claude",
        'cat > "$DESK/prompt.$LOOPR_ITERATION"; sed "s/Two/$LOOPR_ITERATION/" "$DESK/spec" > "$LOOPR_OUTPUT"\n'
        + says(written, "well", words("Done.")),
    )
    written.loopr("start", "plan.md")
    (refused,) = written.events("refused")
    assert refused["data"]["reason"] == "the review 2 of 5 said no: name who greets whom"
    second = (written.desk / "prompt.2").read_text()
    assert "Two entries are missing." in second
    assert '"type"' not in second
    found = asked(written)
    assert len(found) == 2 + 5
    assert "Two entries are missing." in found[-1], "the reviewer sees what was refused before"
    assert written.statuses()["demo"] == "complete"


def test_a_reviewer_at_its_limit_costs_nothing(written: Repo) -> None:
    """A limit of the reviewer rests its lane; afterwards only the review goes on, where it was."""
    retry = s.lines({"type": "error", "message": "Rate limit reached. Please try again in 1s."})
    failed = s.lines({"type": "turn.failed", "error": {"message": "Rate limit reached. Please try again in 1s."}})
    limit = says(written, "limit", retry + failed)
    reviewer(
        written, f"if test $n = 3; then {limit}; exit 1; else {says(written, 'yes', codex_says('APPROVED: x'))}; fi"
    )
    written.loopr("start", "plan.md")
    loop = written.loops()["demo"]
    assert (loop["status"], loop["iteration"], loop["failures"]) == ("complete", 1, 0)
    assert [each["data"]["lane"] for each in written.events("lane_rested")] == ["codex"]
    assert len(asked(written)) == 6, "what was approved is not asked again"
    assert len(list((written.state / "runs/demo.g1").glob("*/stdout.log"))) == 1, "the command ran once"


def test_a_reviewer_outlives_the_engine(written: Repo) -> None:
    """A review that goes on while no engine lives is heard out by the next one, and no pass is asked twice."""
    gate = written.gate("gate")
    yes = says(written, "yes", codex_says("APPROVED: fine"))
    reviewer(written, f"if test $n = 3; then tell here; wait_at gate; fi; {yes}")
    engine = written.begin("start", "plan.md")
    written.heard()
    engine.kill()
    gate.open()
    written.loopr("run")
    assert set(written.statuses().values()) == {"complete"}
    assert len(asked(written)) == 5
    assert written.loopr("show", "demo", "--json").document["loop"]["usage"]["tokens"] == 460 + 5 * 100


def test_a_reviewer_changes_nothing(repo: Repo) -> None:
    """A reviewer sees what would land and which files those are; what it does to them is no part of the work."""
    repo.settings(
        "types:\n  plan: {child: code}\n  code: {run: 'echo hello > hello.txt', review: {agent: claude}}\n" + FAST
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
    yes = says(repo, "yes", words("APPROVED: it is there"))
    client(
        repo,
        "claude",
        f'cat > "$DESK/asked.1"; cat hello.txt > "$DESK/seen"; echo bad > hello.txt; echo x > new; {yes}',
    )
    repo.loopr("start", "plan.md")
    assert "- `hello.txt`" in asked(repo)[0]
    assert (repo.desk / "seen").read_text() == repo.on_branch("demo", "hello.txt") + "\n" == "hello\n"
    assert "new" not in repo.git("ls-tree", "--name-only", "loopr/demo").split()
    usage = json.loads(next(repo.state.glob("runs/demo.a.g1/1/review.*/usage.json")).read_text())
    assert usage["measured"] is True


def test_what_others_land_meanwhile_is_no_reason_to_review_again(repo: Repo) -> None:
    """A yes of an agent is for the work it was about: where another tree lands than it saw, only the check is asked."""
    gate = repo.gate("gate")
    repo.settings(
        "types:\n  plan: {child: code}\n"
        "  code: {run: 'basename $LOOPR_LOOP > $(basename $LOOPR_LOOP)', check: 'echo >> \"$DESK/checked\"',\n"
        "         review: {agent: claude}}\nlanes: {claude: {max_concurrent: 2}}\n" + FAST
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    yes = says(repo, "yes", words("APPROVED: fine"))
    wait = 'echo >> "$DESK/reviewed"; case $LOOPR_LOOP in */a) tell here; wait_at gate ;; esac'
    client(repo, "claude", f"cat > /dev/null; {wait}; {yes}")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed")
    gate.open()
    engine.ended()
    assert repo.statuses() == dict.fromkeys(("demo", "demo/a", "demo/b"), "complete")
    assert (repo.desk / "reviewed").read_text() == "\n" * 2
    assert (repo.desk / "checked").read_text() == "\n" * 3, "once each, and that of a again with the work of b"


@pytest.mark.parametrize(
    ("said", "code", "status"),
    [
        ("It looks good to me.", 0, "failed"),
        ("APPROVED: well\nREJECTED: no, on second thoughts", 0, "failed"),
        ("REJECTED: x\nAPPROVED: y", 0, "complete"),
    ],
)
def test_only_a_clear_yes_is_one(repo: Repo, said: str, code: int, status: str) -> None:
    """An agent that gives no verdict has not approved, and of several the last one counts."""
    repo.settings(
        "types:\n  plan: {child: code}\n  code: {run: 'true', review: {agent: claude}, max_iterations: 1}\n" + FAST
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
    client(repo, "claude", f"cat > /dev/null; {says(repo, 'said', words(said))}; exit {code}")
    repo.loopr("start", "plan.md", code=None)
    assert repo.statuses()["demo/a"] == status


def test_a_prompt_of_ones_own_reviews(written: Repo) -> None:
    """`prompts/TYPE.review.md` takes the place of the built-in one, and knows its variables."""
    own = "Look at {{ looks | join(', ') }} of `{{ loop_id }}` ({{ number }}/{{ passes }}): {{ artifact }}\n"
    written.write({"prompts/plan.review.md": own})
    reviewer(written, says(written, "yes", codex_says("APPROVED: fine")))
    written.loopr("start", "plan.md", "--no-run")
    before = written.loopr("prompt", "demo", "--review", "--pass", "2")
    assert before.out == "Look at completeness of `demo` (2/5): (what it will have handed over)\n"
    written.loopr("run")
    assert asked(written)[1].startswith("Look at completeness of `demo` (2/5): ---\nchildren:")
    other = written.loopr("prompt", "demo/a", "--review", code=2)
    assert "no agent reviews a part" in other.err


def test_settings_of_a_review_that_cannot_be(repo: Repo) -> None:
    """A review by nobody who is known, or by two, is refused where it is written; a short form replaces a long one."""
    repo.write({"loopr.yml": "types: {code: {review: {agent: cluade}}}\n"})
    assert (
        "types.code.review.agent: cluade names no preset (did you mean claude?"
        in repo.loopr("config", "check", code=78).out
    )
    repo.write({"loopr.yml": "types: {code: {review: {agent: claude, run: x}}}\n"})
    assert "types.code.review.run: cannot stand beside" in repo.loopr("config", "check", code=78).out
    repo.write({"loopr.yml": "types: {code: {review: {agent: claude, passes: 2}}}\n"})
    shown = repo.loopr("config", "show", "--set", "types.code.review=./review", "types.code.review", "--json").document
    assert '"agent": null' in json.dumps(shown)
    assert Path("loopr.yml").name in repo.loopr("config", "explain", "types.code.review.passes").out
