"""What reaches a command and what does not: environments, sandboxes, and a secret that is looked for everywhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import streams_of as s
from tests.e2e.repos import Repo, opened

KEY = "sk-planted-0123456789abcdef"
GUIDE = Path(__file__).parents[2] / "docs/guide/limits-and-budgets.md"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, code: str, names: str = "a") -> None:
    """Set a repository up for a plan with code loops, as the settings of their type say."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {code}\n")
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})


# --- what all worktrees share -----------------------------------------------------------------------------------------

HARMS = {
    "git config core.worktree /nowhere": "config core.worktree (is put back)",
    "git config core.bare true": "config core.bare (is put back)",
    "git config --add core.hooksPath /nowhere/hooks": "config core.hookspath (is put back)",
    "git update-ref -d refs/heads/main": "refs/heads/main (was {main}, is put back)",
    "git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree})": "refs/heads/main (was {main}, is put back; "
    "what it was moved to is kept as refs/loopr/backup/put-back/",
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_users_checkout_works_after_whatever_a_loop_did(repo: Repo, harm: str) -> None:
    """What keeps the user's checkout from working is put back when the attempt ends; its loop is parked and says so."""
    repo.git("config", "core.hooksPath", "/usr/share/mine")
    plan(repo, f"{{run: '{repo.script('code', harm)}'}}")
    before, settings = repo.users(), sorted(repo.git("config", "--list", "--local").splitlines())
    repo.loopr("start", "plan.md", code=1)
    assert (repo.users(), sorted(repo.git("config", "--list", "--local").splitlines())) == (before, settings)
    reason = repo.loops()["demo/a"]["reason"]
    assert HARMS[harm].format(main=repo.git("rev-parse", "main")[:12]) in reason, reason
    assert repo.git("rev-parse", "--show-toplevel") == str(repo.root)


# --- secrets ----------------------------------------------------------------------------------------------------------


def everything_with(repo: Repo, words: str) -> list[str]:
    """List the files of the workspace in which some words are, in whatever way; settings are left aside.

    So are those in force, which lie in the state folder as they were written, for their owner alone.
    """
    found, accepted = [], repo.state / "accepted"
    for path in sorted(repo.root.rglob("*")):
        if accepted in path.parents and path.is_file():
            assert path.stat().st_mode & 0o777 == 0o600
            continue
        said = path.name not in ("loopr.local.yml", "loopr.yml") and path.is_file() and not path.is_symlink()
        if said and words.encode() in path.read_bytes():
            found.append(str(path.relative_to(repo.root)))
    return found


def test_a_planted_key_is_nowhere(repo: Repo) -> None:
    """Keys that commands are given, by loopr's environment, a lane or a type, are in no file that loopr writes.

    That holds for prompts, feedback, logs, the journal and what is kept beside attempts, through refusals, limits, a
    crash of the engine, hooks, a parked lane and a broken command.
    """
    script = repo.script(
        "code",
        'test "$OUTER_KEY$LANE_KEY$TYPE_KEY" = "${PLANTED}1${PLANTED}2${PLANTED}3" || exit 78\n'
        'case "$LOOPR_LOOP-$LOOPR_ITERATION" in */a-1) echo no; exit 1;; */b-*) kill -9 $$;; */c-*) exit 127;; esac\n'
        'if test "$LOOPR_ATTEMPT" = 2; then tell waits; wait_at gate; exit 75; fi; echo done > work',
    )
    hook = repo.script("hook", "cat > /dev/null")
    plan(repo, f"{{run: '{script}', check: 'test -e work', review: 'echo APPROVED:', lane: paid}}", "a b c")
    keys = {"lanes": {"paid": {"env": {"set": {"LANE_KEY": f"{KEY}2"}}}}}
    keys |= {"types": {"code": {"env": {"set": {"TYPE_KEY": f"{KEY}3"}}}}}
    repo.write({"loopr.local.yml": json.dumps(keys | {"retry": {"base_secs": 0.1, "max_attempts": 2}})})
    repo.write({"loopr.yml": (repo.root / "loopr.yml").read_text() + f"hooks: {{on_park: '{hook}'}}\n"})
    repo.env |= {"OUTER_KEY": f"{KEY}1", "PLANTED": KEY}
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    process.kill()
    gate.open()
    repo.loopr("run", code=1)
    for words in (
        "status --json",
        "show demo/a --json",
        "why demo/b --json",
        "events --json",
        "prompt demo/b",
        "doctor",
    ):
        assert KEY not in repo.loopr(*words.split(), code=None).out
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete", "demo/b": "parked", "demo/c": "parked"}
    assert everything_with(repo, KEY) == []


def kept_with(repo: Repo, words: str) -> set[str]:
    """Name the kinds of files in which loopr keeps some words, beside what commands themselves have written."""
    return {Path(each).suffix for each in everything_with(repo, words) if not each.startswith("worktrees/")}


def test_a_key_that_is_printed_goes_no_further_than_the_log(repo: Repo) -> None:
    """A command, a check, a review and a result file that tell a key leave it in logs alone: no try hears of it."""
    script = repo.script(
        "code",
        'case "$LOOPR_LOOP-$LOOPR_ITERATION" in\n*/a-1) echo "it is $TYPE_TOKEN"; exit 1 ;;\n'
        '*/b-*) printf \'{"schema": 1, "status": "blocked", "message": "no %s"}\' "$OUTER_KEY" '
        '> "$LOOPR_RESULT_FILE" ;;\n'
        'esac\ncp "$LOOPR_PROMPT_FILE" "prompt$LOOPR_ITERATION"',
    )
    check = 'test "$LOOPR_ITERATION" != 2 || { echo "$LANE_SECRET"; exit 1; }'
    review = 'test "$LOOPR_ITERATION" -gt 3 && echo APPROVED: || echo "REJECTED: $OUTER_KEY"'
    plan(repo, f"{{run: '{script}', check: '{check}', review: '{review}', lane: paid}}", "a b")
    keys = {"lanes": {"paid": {"env": {"set": {"LANE_SECRET": f"{KEY}2"}}}}}
    keys |= {"types": {"code": {"env": {"set": {"TYPE_TOKEN": f"{KEY}3"}}}}}
    repo.write({"loopr.local.yml": json.dumps(keys)})
    end = repo.loopr("start", "plan.md", code=1, OUTER_KEY=f"{KEY}1")
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete", "demo/b": "parked"}
    assert kept_with(repo, KEY) == {".log"}
    assert [each["data"]["reason"].count("***") for each in repo.events("refused", "set_aside")].count(0) == 0
    assert KEY not in end.out + end.err
    assert ["***" in repo.on_branch("demo", f"prompt{each}") for each in (2, 3, 4)] == [True] * 3


def test_a_key_that_hooks_and_landings_print_is_told_nowhere(repo: Repo) -> None:
    """Last words of hooks, and of a landing that was refused, are told without keys on every surface."""
    plan(repo, "{run: 'echo done > work'}")
    hooks = {"on_complete": "echo $OUTER_KEY; exit 3", "on_settle": "echo $DB_URL; exit 3"}
    land = {"mode": "auto", "check": ["sh", "-c", "echo $OUTER_KEY; exit 1", f"{KEY}1"]}
    repo.write({"loopr.local.yml": json.dumps({"hooks": hooks, "land": land})})
    outer = {"OUTER_KEY": f"{KEY}1", "DB_URL": f"postgres://me:{KEY}2@db/x"}
    said = repo.loopr("start", "plan.md", code=None, **outer)
    places = {each["data"]["place"] for each in repo.events("problem_seen")}
    assert {"hook on_complete", "hook on_settle", "landing of demo"} <= places
    surfaces = [said.out + said.err]
    for words in ("status", "status --json", "events", "events --json", "doctor", "tree", "logs demo/a"):
        surfaces.append(repo.loopr(*words.split(), code=None).out)
    assert [each.count("***") > 0 for each in surfaces[:5]] == [True] * 5
    assert [KEY in each for each in surfaces] == [False] * len(surfaces)
    assert not [each for each in everything_with(repo, KEY) if each.endswith((".db", ".db-wal", "engine.log"))]


def test_a_key_that_an_agent_tells_goes_no_further_than_its_log(repo: Repo) -> None:
    """What an agent said last, and why it ended, are kept without its key, also where the words are cut within it."""
    plan(repo, "{agent: own, max_iterations: 2}")
    talk = {"type": "text", "text": f"{'x' * 185} {KEY}"}
    said = s.lines(
        {"type": "assistant", "message": {"id": "m", "content": [talk]}},
        s.claude_result(is_error=True, subtype="error_max_turns", errors=[f"{'x' * 985} {KEY}"], result=None),
    )
    (repo.desk / "said").write_bytes(said)
    agents = {"own": {"run": ["cat", str(repo.desk / "said")], "reader": "claude"}}
    types = {"code": {"env": {"set": {"OWN_TOKEN": KEY}}}}
    repo.write({"loopr.local.yml": json.dumps({"agents": agents, "types": types})})
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses() == {"demo": "complete", "demo/a": "failed"}
    assert kept_with(repo, KEY[:9]) == {".log"}
    assert repo.events("refused")[0]["data"]["reason"].endswith(" ***")


def test_the_search_finds_what_is_there(repo: Repo) -> None:
    """A command that prints its key is not protected from itself: the search finds it in its log."""
    plan(repo, "{run: 'echo $OUTER_KEY'}")
    repo.loopr("start", "plan.md", OUTER_KEY=KEY)
    assert any(each.endswith("stdout.log") for each in everything_with(repo, KEY))


# --- environments -----------------------------------------------------------------------------------------------------


def names(repo: Repo, env: str, **outer: str) -> set[str]:
    """List the variables that a command sees, loopr's own left aside."""
    plan(repo, f"{{run: 'env -0 > \"$DESK/env\"', check: 'env -0 > \"$DESK/judge\"', env: {env}}}")
    repo.loopr("start", "plan.md", **outer)
    found = [{each.partition("=")[0] for each in repo.note(name).split("\0") if each} for name in ("env", "judge")]
    assert found[0] - {"_"} == found[1] - {"_"}
    return {each for each in found[0] if not each.startswith("LOOPR")}


def test_only_what_is_named_gets_in(repo: Repo) -> None:
    """With `env.only` a command and its judge have the basics, what is named and what is set, and nothing else."""
    outer = {"SECRET": "x", "AWS_KEY": "x", "CI": "1", "CI_URL": "y", "LC_TIME": "C", "CLAUDECODE": "1"}
    found = names(repo, "{only: [DESK, CI*, AWS_KEY], unset: [AWS_*], set: {MINE: 1}}", **outer)
    assert {"PATH", "HOME", "LC_TIME", "CI", "CI_URL", "MINE", "DESK"} <= found
    assert not {"SECRET", "AWS_KEY", "CLAUDECODE"} & found
    known = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PWD", "OLDPWD"}
    known |= {"DESK", "CI", "CI_URL", "MINE", "TRACEPARENT", "GIT_CEILING_DIRECTORIES", "SHLVL", "_"}
    assert {each for each in found if not each.startswith("LC_")} <= known


def test_everything_else_gets_in_by_default(repo: Repo) -> None:
    """Without it a command has what loopr was started with, less what is taken out, by name or with stars."""
    found = names(
        repo, "{unset: [SECRET, 'AWS_*']}", SECRET="x", AWS_KEY="x", AWS_ID="x", OTHER="1", GIT_DIR="/nowhere"
    )
    assert "OTHER" in found
    assert not {"SECRET", "AWS_KEY", "AWS_ID", "GIT_DIR"} & found


# --- sandboxes --------------------------------------------------------------------------------------------------------


def test_a_wrap_goes_around_command_and_judges(repo: Repo) -> None:
    """What is given as `wrap` is put around the command, the check and the review, with placeholders filled in."""
    wrap = json.dumps(["env", "WRAPPED={loop}", "{command}"])
    judge = 'test "$WRAPPED" = demo/a'
    judges = f"check: '{judge}', review: '{judge} && echo APPROVED:'"
    plan(repo, f"{{run: [sh, -c, 'echo $WRAPPED > made'], {judges}, wrap: {wrap}}}")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "made") == "demo/a"


def bubblewrap_runs() -> bool:
    """Say whether a sandbox can be made here at all."""
    if shutil.which("bwrap") is None:
        return False
    words = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not bubblewrap_runs(), reason="bubblewrap does not run here")
def test_the_sandbox_of_the_guide(repo: Repo) -> None:
    """In the sandbox that the guide shows a command writes in its worktree, and nowhere else; its work lands."""
    outside = [repo.root / "README", Path.home() / "mark of a sandbox", repo.root / "worktrees" / "mark"]
    script = "; ".join(f"{{ echo outside > '{each}'; }} 2> /dev/null || true" for each in outside)
    (wrap,) = re.findall(r"wrap: (\[bwrap.*?\])", GUIDE.read_text(), re.DOTALL)
    run = json.dumps(["sh", "-c", f"echo inside > made; {script}"])
    plan(repo, f"{{run: {run}, check: test -e made, wrap: {' '.join(wrap.split())}}}")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "made") == "inside"
    assert [each.exists() for each in outside] == [True, False, False]
    assert outside[0].read_text() == "what was there\n"
