"""What is refused, by whom, what the next try is told of it, and when there is no next try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

SAID = Path(__file__).parent.parent / "world" / "said"
KEEP = 'cp "$LOOPR_FEEDBACK_FILE" "$DESK/feedback.$(basename "$LOOPR_LOOP").$LOOPR_ITERATION" || true\n'
FORMAT = f"""
begin
{KEEP}
case $LOOPR_ITERATION in
1) ;;
2) printf -- '---\\ntasks: [{{id: a, needs: [nobody]}}]\\n---\\n# Phase\\n' > "$LOOPR_OUTPUT" ;;
3) printf -- '---\\ntsks: [{{id: a}}]\\n---\\n# Phase\\n' > "$LOOPR_OUTPUT" ;;
4) printf -- '---\\ntasks: [{{id: a, run: "rm -rf everything"}}]\\n---\\n# Phase\\n' > "$LOOPR_OUTPUT" ;;
5) printf -- '---\\ntasks: [{{id: a}}]\\n---\\n# Phase\\n' > "$LOOPR_OUTPUT" ;;
esac
end
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def one(repo: Repo, code: str, *, check: str = "", more: str = "") -> None:
    """Set a repository up for a plan with one code loop."""
    run = repo.script("code", f"{KEEP}{code}")
    judge = f", check: '{repo.script('check', check)}'" if check else ""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{judge}{more}}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})


def test_refused_by_format(repo: Repo) -> None:
    """No artifact, an unknown need, a misspelt key and a command in an entry are each refused, and told in words."""
    repo.settings(f"types:\n  phase: {{run: '{repo.script('phase', FORMAT)}'}}\n  code: {{run: 'true'}}\n")
    repo.write({"plan.md": "---\nspecs: [{id: s, phases: [{id: p}]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert repo.statuses() == dict.fromkeys(("demo", "demo/s", "demo/s/p", "demo/s/p/a"), "complete")
    assert repo.loops()["demo/s/p"]["iteration"] == 5
    assert repo.note("feedback.p.1") == ""
    said = {number: repo.note(f"feedback.p.{number}") for number in (2, 3, 4, 5)}
    assert "no artifact was handed over" in said[2]
    assert "nobody" in said[3]
    assert "output.md:2" in said[3], said[3]
    assert "tsks" in said[4] and "tasks" in said[4]
    assert "run" in said[5]
    assert [f"- iteration {each}:" in said[5] for each in (1, 2, 3)] == [True] * 3


@pytest.mark.parametrize("exit_code", [1, 128, 255])
def test_refused_by_the_check(repo: Repo, exit_code: int) -> None:
    """A check's no is the next iteration; its words are the feedback, and what was done stays in the worktree."""
    code = 'echo "$LOOPR_ITERATION" >> tries'
    no = f'{{ echo "only $(wc -l < tries) lines"; exit {exit_code}; }}'
    one(repo, code, check=f'test "$(wc -l < tries)" -ge 3 || {no}')
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 3, 3)]
    assert repo.on_branch("demo", "tries").split() == ["1", "2", "3"]
    assert repo.note("feedback.a.1") == ""
    assert "only 1 lines" in repo.note("feedback.a.2")
    third = repo.note("feedback.a.3")
    assert "only 2 lines" in third
    assert "- iteration 1: the check said no" in third


def test_the_headline_of_a_no_names_the_failing_test(repo: Repo) -> None:
    """`tree`, `why` and the progress name the test that failed, and not what npm and make say behind it."""
    (repo.desk / "said").write_bytes((SAID / "npm-mocha.txt").read_bytes())
    behind = "echo 'npm warn Unknown user config' >&2; echo 'make: *** [Makefile:3: test] Error 2' >&2"
    one(repo, "echo x > x", check=f'cat "$DESK/said"; {behind}; exit 2', more=", max_iterations: 1")
    began = repo.loopr("start", "plan.md", code=1)
    why = "the check said no: exit 2: Ledger #total() adds up: AssertionError"
    assert why in began.err
    for verb in (("tree",), ("why", "a"), ("status",)):
        assert why in " ".join(repo.loopr(*verb).out.split()), verb


@pytest.mark.parametrize("exit_code", [7, 128, 255])
def test_refused_by_its_own_exit_code(repo: Repo, exit_code: int) -> None:
    """A command's own exit code is a refusal with its last output as feedback, and no check is asked."""
    no = f'{{ echo "a word"; echo "an error" >&2; exit {exit_code}; }}'
    code = f'test "$LOOPR_ITERATION" = 2 || {no}; echo x > x'
    one(repo, code, check='say "judged"')
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 2)]
    assert "a word" in repo.note("feedback.a.2")
    assert "an error" in repo.note("feedback.a.2")
    assert repo.diary() == ["judged"]


def test_feedback_is_in_the_prompt_too(repo: Repo) -> None:
    """A command that reads nothing but its prompt learns why the last try was refused; each try is a new process."""
    code = (
        'say $$; cat > "$DESK/prompt.$LOOPR_ITERATION"; test "$LOOPR_ITERATION" = 2 || { echo "a plain word"; exit 1; }'
    )
    one(repo, code)
    repo.loopr("start", "plan.md")
    assert "a plain word" not in repo.note("prompt.1")
    assert "a plain word" in repo.note("prompt.2")
    assert len(set(repo.diary())) == 2


def test_no_progress(repo: Repo) -> None:
    """The same answer to the same work three times is the end, and it is said so; what was committed stays."""
    one(repo, "echo x > x; echo the same; exit 1")
    end = repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["attempt"]) == ("failed", 3)
    assert loop["reason"] == "exit 1: the same, 3 times, nothing changed (retry.no_progress)"
    assert "3 times, nothing changed" in end.err
    assert repo.git("show", "loopr/demo.a.g1:x") == "x"
    assert repo.landed("demo") == []


def test_another_answer_is_progress(repo: Repo) -> None:
    """Refusals that differ only in times, long hex and the worktree's path are the same; others are not."""
    one(repo, 'date; pwd; echo "0x$(date +%s%N)"; echo "$LOOPR_ITERATION of many"; exit 1', more=", max_iterations: 5")
    repo.loopr("start", "plan.md", code=1)
    assert repo.loops()["demo/a"]["attempt"] == 5

    repo.script("code", 'date; pwd; echo "0x$(date +%s%N)"; exit 1')
    repo.write({"other.md": "---\nchildren: [{id: b}]\n---\n# Other\n"})
    repo.loopr("start", "other.md", code=1)
    assert repo.loops()["other/b"]["attempt"] == 3


def test_max_iterations(repo: Repo) -> None:
    """The last iteration that is allowed is the last: failed, exit 1, and what needs the loop does not run."""
    run = repo.script("code", 'say "$LOOPR_LOOP"; echo "$LOOPR_ITERATION words"; exit 1')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', max_iterations: 2}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.diary() == ["demo/a", "demo/a"]
    assert repo.statuses() == {"demo": "complete", "demo/a": "failed", "demo/b": "pending"}
    why = repo.loopr("why", "demo/b", "--json").document["gates"]
    assert [each["gate"] for each in why] == ["needs"]
    assert "needs a" in why[0]["reason"] and "failed" in why[0]["reason"]
    assert repo.loopr("run", code=1).code == 1
    assert repo.diary() == ["demo/a", "demo/a"], "nothing but a person brings it back"


def test_a_person_finishes_what_has_failed(repo: Repo) -> None:
    """A leaf that has failed is complete once a person drops its artifact, and what waited for it goes on."""
    run = repo.script("code", 'test "$LOOPR_LOOP" = demo/b')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', max_iterations: 1}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    repo.drop("demo/a/code.md", "# Done by hand\n")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_the_check_sees_what_would_land(repo: Repo) -> None:
    """The check runs on the merged tree: what a sibling has landed meanwhile is there."""
    held = repo.gate("held")
    code = """
    tell "$LOOPR_LOOP"
    test "$LOOPR_LOOP" = demo/a || wait_at held
    echo x > "$(basename "$LOOPR_LOOP").txt"
    """
    run, judge = repo.script("code", code), repo.script("check", 'ls > "$DESK/seen.$(basename "$LOOPR_LOOP")"')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: '{judge}'}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    repo.loopr("wait", "demo/a")
    held.open()
    process.ended()
    assert repo.note("seen.b").split() == ["README", "a.txt", "b.txt", "loopr.yml"]


def test_what_a_check_writes_never_lands(repo: Repo) -> None:
    """A check may build and break whatever it likes in its folder: only what the command made lands."""
    check = 'touch junk; echo spoilt >> README; rm -f x; git add --all; test "$LOOPR_ITERATION" = 2'
    one(repo, 'ls > "$DESK/there.$LOOPR_ITERATION"; echo "$LOOPR_ITERATION" > x', check=check)
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 2)]
    assert repo.git("diff", "--name-only", "main", "loopr/demo").split() == ["x"]
    assert repo.note("there.2").split() == ["README", "loopr.yml", "x"], "nor does the next try find it"


def test_what_git_ignores_stays_for_the_next_try(repo: Repo) -> None:
    """Files that git ignores, such as what was installed, stay in the worktree from one try to the next."""
    repo.write({".gitignore": "cache/\n"})
    repo.git("add", ".gitignore")
    repo.git("commit", "--quiet", "--message=ignore")
    code = 'mkdir -p cache; echo "$LOOPR_ITERATION" >> cache/made; cp cache/made "$DESK/made"; echo x >> x'
    one(repo, code, check='test "$LOOPR_ITERATION" = 2')
    repo.loopr("start", "plan.md")
    assert repo.note("made").split() == ["1", "2"]
    assert repo.git("diff", "--name-only", "main", "loopr/demo").split() == ["x"]


def test_a_review(repo: Repo) -> None:
    """A review reads the artifact; only a last line that begins with APPROVED: is a yes, and its reason is feedback."""
    review = """
    cat > "$DESK/read.$LOOPR_ITERATION"
    case $LOOPR_ITERATION in
    1) echo "REJECTED: too short" ;;
    2) echo "APPROVED: no"; echo "well" ;;
    3) echo "fine"; echo "APPROVED: yes" ;;
    esac
    """
    run = f'{KEEP}echo "# Try $LOOPR_ITERATION" > "$LOOPR_OUTPUT"; echo x >> x'
    command = repo.script("review", review)
    one(repo, run, more=f", review: '{command}'")
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 3, 3)]
    assert "too short" in repo.note("feedback.a.2")
    assert "well" in repo.note("feedback.a.3")
    assert [repo.note(f"read.{each}") for each in (1, 2, 3)] == [f"# Try {each}\n" for each in (1, 2, 3)]
