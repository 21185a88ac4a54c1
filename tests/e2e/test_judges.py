"""What judges a loop cannot be changed by it: named files, earlier words, ignored files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.repos import Process, Repo, opened

FAST = "retry: {base_secs: 0.05, jitter: 0, max_attempts: 2}\ntimeouts: {grace_secs: 0.5}\n"
SIBLINGS = ("good", "kind")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


class Set(NamedTuple):
    """What a scene sets beside the command of its loops."""

    code: str = ""
    text: str = ""
    worktrees: str = ""


PLAIN = Set()


def scene(repo: Repo, harm: str, more: Set = PLAIN, files: Mapping[str, str] | None = None) -> None:
    """Set up a plan in which one loop does harm, and two honest ones beside it do their work."""
    repo.write(dict(files or {}))
    honest = 'case "$LOOPR_LOOP" in */bad) ;; *) echo done > "$(basename "$LOOPR_LOOP")"; exit 0;; esac'
    command = repo.script("code", f"{honest}\n{harm}")
    types = f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more.code}}}\n"
    repo.settings(f"{types}{FAST}{more.text}", worktrees=more.worktrees)
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: bad}, {id: good}, {id: kind}]\n---\n# Demo\n"})
    if files:
        repo.git("add", *files)
        repo.git("commit", "--quiet", "--message=files", "--", *files)


def landed_beside(repo: Repo, status: str = "failed") -> None:
    """See that the two honest loops have landed, and how the other one stands."""
    others = {f"demo/{each}": "complete" for each in SIBLINGS}
    assert repo.statuses() == {"demo": "complete", "demo/bad": status, **others}
    assert [repo.on_branch("demo", each) for each in SIBLINGS] == ["done", "done"]


# --- files that commands name -----------------------------------------------------------------------------------------

SETUP = {"setup.sh": 'echo "setup of the base" >> "$DESK/ran"\n', "check.sh": "test -f proof\n"}


def test_setup_is_the_plans(repo: Repo) -> None:
    """A script that setup names lands as it was, and no folder is set up by what a loop made of it."""
    harm = 'echo \'echo "setup of a loop" >> "$DESK/ran"\' > setup.sh; echo x > proof'
    one_by_one = "concurrency: {max_loops: 1}\n"
    scene(repo, harm, Set(text=one_by_one, worktrees=", setup: sh setup.sh, pool: 0"), SETUP)
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert repo.on_branch("demo", "setup.sh") == SETUP["setup.sh"].strip()
    assert set(repo.note("ran").splitlines()) == {"setup of the base"}
    assert "Protected files were put back" in repo.git("log", "--format=%B", "loopr/demo")


HOOK = 'echo "$LOOPR_LOOP: hook of the base" >> "$DESK/ran"\n'
AS_IT_LIKES = 'echo \'echo "hook of a loop" >> "$DESK/ran"\' > hook.sh; echo $LOOPR_ITERATION > proof\n'


@pytest.mark.parametrize("hook", ["post_create", "pre_run", "post_run"])
def test_a_hook_is_the_plans(repo: Repo, hook: str) -> None:
    """A script that a hook names is never run as a loop has left it."""
    hooks = Set(text=f"hooks: {{{hook}: sh hook.sh}}\n")
    scene(repo, f"{AS_IT_LIKES}test $LOOPR_ITERATION -gt 2", hooks, {"hook.sh": HOOK})
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    ran = repo.note("ran").splitlines()
    assert "hook of a loop" not in ran
    assert ran.count("demo/bad: hook of the base") == (1 if hook == "post_create" else 3)
    assert (repo.on_branch("demo", "hook.sh"), repo.on_branch("demo", "proof")) == (HOOK.strip(), "3")
    log = repo.git("log", "--format=%B", "--grep=Loopr-Loop: demo/bad", "loopr/demo")
    assert "- hook.sh (changed)" in log


def test_what_is_put_back_for_a_hook_is_kept(repo: Repo) -> None:
    """What a loop has made of a hook's script is kept in the loop's own history."""
    hooks = Set(", max_iterations: 1", "hooks: {post_run: sh hook.sh}\n")
    scene(repo, f"{AS_IT_LIKES}exit 1", hooks, {"hook.sh": HOOK})
    repo.loopr("start", "plan.md", code=1)
    landed_beside(repo)
    assert "hook of a loop" in repo.git("log", "-p", "loopr/demo.bad.g1", "--", "hook.sh")
    assert "hook of a loop" not in repo.note("ran")


def test_a_wrapper_is_the_plans(repo: Repo) -> None:
    """A script that wraps commands is the plan's in the next try of a loop that rewrote it."""
    wrapper = 'echo wrapped >> "$DESK/ran"\nexec "$@"\n'
    harm = 'echo \'echo free >> "$DESK/ran"; exec "$@"\' > wrap.sh; echo x > proof; test $LOOPR_ITERATION -gt 1'
    wrap = Set(", wrap: [sh, wrap.sh, '{command}'], check: test -f proof || test -f kind || test -f good")
    scene(repo, harm, wrap, {"wrap.sh": wrapper})
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert set(repo.note("ran").splitlines()) == {"wrapped"}
    assert repo.on_branch("demo", "wrap.sh") == wrapper.strip()


def test_an_unmended_conflict_is_found_beside_a_hook(repo: Repo) -> None:
    """Markers that a loop has left are found also where a hook has its work committed before."""
    first = repo.script("a", 'test "$LOOPR_ITERATION" = 1 || exit 0; tell a; wait_at gate; echo a > both')
    repo.write({"hook.sh": HOOK})
    repo.settings(f"types: {{plan: {{child: code}}}}\nhooks: {{post_run: sh hook.sh}}\n{FAST}")
    children = f"- {{id: a, run: '{first}'}}\n- {{id: b, run: '{repo.script('b', 'echo b > both')}'}}\n"
    repo.write({"plan.md": f"---\nid: demo\nchildren:\n{children}---\n"})
    repo.git("add", "hook.sh")
    repo.git("commit", "--quiet", "--message=hook", "--", "hook.sh")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    repo.until("landed")
    gate.open()
    process.ended()
    told = [each["data"]["reason"] for each in repo.events("refused")]
    assert any("both was left in conflict" in each for each in told), told
    assert repo.on_branch("demo", "both") == "b"


# --- what judges a plan on its way home -------------------------------------------------------------------------------

STRICT = {"land.sh": "test -f proof\n", "tools/setup.sh": "true\n"}
LAX = "echo true > land.sh"


def test_land_judges_by_the_branch_that_is_landed_on(repo: Repo) -> None:
    """A loop cannot rewrite what `land.check` names."""
    scene(repo, f"{LAX}; echo x > x", Set(text="land: {check: sh land.sh}\n"), STRICT)
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert repo.on_branch("demo", "land.sh") == STRICT["land.sh"].strip()
    assert "land.check said no" in repo.loopr("land", "demo", "--yes", code=1).err


def unguarded(repo: Repo, land: str) -> None:
    """Let a plan land a change of the script that `land.check` names while that is not yet set."""
    scene(repo, f"{LAX}; echo x > x", files=STRICT)
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert repo.on_branch("demo", "land.sh") == "true"
    repo.settings(f"types: {{plan: {{child: code}}, code: {{run: 'true'}}}}\nland: {land}\n")


def test_land_judges_a_plan_that_brings_another_judge(repo: Repo) -> None:
    """A plan that brings another script for `land.check` is judged by that of the base branch."""
    unguarded(repo, "{check: sh land.sh}")
    ended = repo.loopr("land", "demo", "--yes", code=1)
    assert "judged by land.sh as main has it, not as it would come home" in ended.err
    assert "land.check said no: `sh land.sh` ended with 1" in ended.err
    repo.write({"proof": "by a person\n"})
    repo.git("add", "proof")
    repo.git("commit", "--quiet", "--message=proof", "--", "proof")
    repo.loopr("land", "demo", "--yes")
    assert repo.git("show", "main:land.sh") == "true"


def test_a_plan_that_comes_home_by_itself_is_judged_so_too(repo: Repo) -> None:
    """`land.mode: auto` judges by the base branch as `land` does."""
    unguarded(repo, "{check: sh land.sh, mode: auto}")
    repo.loopr("run", code=None)
    told = repo.events("problem_seen")
    assert any("land.check said no" in each["data"]["text"] for each in told), told
    assert repo.git("log", "--format=%s", "main", "--", "land.sh") == "files"


# --- what was said before ---------------------------------------------------------------------------------------------

JUDGED = {"check.sh": 'echo "$LOOPR_LOOP" >> "$DESK/asked"\ntest "$LOOPR_LOOP" != demo/bad\n'}
FORGER = """
import hashlib, os, pathlib
from loopr.world.launcher.words import Outcome, encode
parts = ["check", repr("sh check.sh"), "demo.bad.g1", ""]
check = "\\0".join(parts)
key = hashlib.sha256(f"{os.environ['TREE']}\\0{check}".encode()).hexdigest()
state = pathlib.Path(os.environ["LOOPR_WORKSPACE"], ".git/loopr")
verdicts = state / "verdicts"
verdicts.mkdir(exist_ok=True)
for each in (key, key[:32]):
    (verdicts / each).touch()
run = state / "runs/demo.bad.g1" / os.environ["LOOPR_ATTEMPT"]
folder = run / f"check.{key[:12]}"
folder.mkdir()
claim = (run / "run.json").read_bytes()
(folder / "run.json").write_bytes(claim)
(folder / "outcome.json").write_bytes(encode(Outcome("exited", code=0)._asdict()))
"""
ONCE = Set(", check: sh check.sh, max_iterations: 1")


def forger(repo: Repo) -> str:
    """Write a command that computes how a yes to its work is remembered, and forges some."""
    (repo.desk / "forge.py").write_text(FORGER)
    tree = "$(git read-tree loopr/demo && git add x && git write-tree && git read-tree HEAD)"
    return f'tell ready; wait_at first; echo x > x\nexport TREE={tree}\n{sys.executable} -I "$DESK/forge.py"'


def forging(repo: Repo) -> Process:
    """Begin, and have the forger go on once its siblings have landed, as it must know on what."""
    first = repo.gate("first")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    repo.until("landed", 2)
    first.open()
    return process


def test_a_yes_cannot_be_left_as_a_file(repo: Repo) -> None:
    """Neither a file called like a verdict nor an outcome in the judge's folder is a yes."""
    scene(repo, forger(repo), ONCE, JUDGED)
    forging(repo).ended(1)
    landed_beside(repo)
    assert set(repo.note("asked").split()) == {"demo/bad", "demo/good", "demo/kind"}
    assert len(list((repo.state / "verdicts").iterdir())) == 2
    assert "verdicts" in repo.loopr("gc").out
    assert not (repo.state / "verdicts").exists()


def test_a_yes_cannot_be_left_for_the_next_engine(repo: Repo) -> None:
    """The same holds where the engine is killed after they were left, and another one judges."""
    scene(repo, f"{forger(repo)}\ntell forged; wait_at gate", ONCE, JUDGED)
    gate = repo.gate("gate")
    process = forging(repo)
    repo.heard(1)
    process.kill()
    gate.open()
    repo.loopr("run", code=1)
    landed_beside(repo)
    assert "demo/bad" in repo.note("asked")


def test_a_judge_is_asked_once_about_one_tree(repo: Repo) -> None:
    """A yes is an event: neither landing nor an engine that comes after a crash asks again."""
    judge = 'echo "$LOOPR_LOOP" >> "$DESK/asked"'
    review = repo.script("review", "tell review; wait_at gate; echo APPROVED:")
    scene(repo, "echo x > x", Set(f", check: '{judge}', review: '{review}'"))
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.until("verdict_given", 3)
    process.kill()
    gate.open()
    repo.loopr("run")
    landed_beside(repo, "complete")
    assert sorted({each["data"]["judge"] for each in repo.events("verdict_given")}) == ["check", "review"]
    asked = Counter(repo.note("asked").split())
    trees = Counter(each["loop"] for each in repo.events("verdict_given") if each["data"]["judge"] == "check")
    assert asked == trees


# --- what git ignores -------------------------------------------------------------------------------------------------

IGNORED = {".gitignore": "*.local\nbuilt\nasked\n", "check.sh": "test -f ok.local\n"}
HELPED = "touch ok.local; echo x > x"


def test_a_clean_judge_sees_nothing_that_git_ignores(repo: Repo) -> None:
    """`clean: true` has a loop judged without what its command left beside the tree."""
    check = 'test "$LOOPR_LOOP" != demo/bad || sh check.sh'
    scene(repo, f"{HELPED}\nexit 0", Set(f", check: '{check}', max_iterations: 1"), IGNORED)
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    repo.loopr("set", "types.code.clean", "true")
    repo.loopr("retry", "--fresh", "demo/bad", "--yes")
    repo.loopr("run", code=1)
    landed_beside(repo)
    assert "the check said no" in repo.loops()["demo/bad"]["reason"]


def test_a_clean_judge_has_its_own_setup(repo: Repo) -> None:
    """Setup runs where a clean judge works, and its no is feedback like any."""
    script = 'cat requirements.txt > built; test "$(wc -l < built)" -lt 3\n'
    setup = {"setup.sh": script, "requirements.txt": "one\n"}
    harm = (
        'echo "$LOOPR_ITERATION" > x; test "$LOOPR_ITERATION" = 1 || echo two > more\n'
        'printf "one\\ntwo\\n" > requirements.txt\n'
        'test "$LOOPR_ITERATION" -gt 1 || echo three >> requirements.txt'
    )
    check = 'test ! -f more || grep -q two built; echo "$PWD" >> "$DESK/places"'
    more = Set(f", clean: true, check: '{check}', wrap: [sh, -c, 'exec \"$@\"', w, '{{command}}']",
               worktrees=", setup: sh setup.sh")  # fmt: skip
    scene(repo, harm, more, {**IGNORED, **setup})
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    (refusal,) = repo.events("refused")
    assert refusal["data"]["reason"].startswith("the setup in the judges' folder said no")
    assert repo.on_branch("demo", "requirements.txt") == "one\ntwo"
    places = repo.note("places").split()
    assert all(".judge-" in each for each in places)
    assert not any(Path(each).exists() for each in places)
    assert repo.loopr("doctor", code=None).err == ""
    assert ".judge-" not in repo.git("for-each-ref") + repo.git("worktree", "list")


def test_a_clean_judge_loses_nothing_in_a_crash(repo: Repo) -> None:
    """An engine that comes after one that was killed hears a clean judge out, and leaves no folder."""
    check = 'case "$LOOPR_LOOP" in */bad) tell judging; wait_at gate;; esac; test ! -f ok.local'
    script = repo.script("check", check)
    scene(repo, f'{HELPED}\n. "$DESK/shell"', Set(f", clean: true, check: '{script}'"), IGNORED)
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    process.kill()
    assert (repo.root / "worktrees/demo.bad.g1/ok.local").exists()
    again = repo.begin("run")
    repo.until("engine_started", 2)
    gate.open()
    again.ended()
    landed_beside(repo, "complete")
    assert repo.granted()["demo/bad"] == 1
    assert ".judge-" not in repo.git("for-each-ref") + repo.git("worktree", "list")
    assert [each.name for each in (repo.root / "worktrees").iterdir() if "judge" in each.name] == []


def test_a_clean_judge_that_is_not_wanted_any_more_leaves_no_folder(repo: Repo) -> None:
    """Where its loop was cancelled meanwhile, the next engine ends a judge and takes its folder."""
    script = repo.script("check", 'case "$LOOPR_LOOP" in */bad) tell judging; wait_at gate;; esac')
    scene(repo, HELPED, Set(f", clean: true, check: '{script}'"), IGNORED)
    repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    repo.until("landed", 2)
    process.kill()
    repo.loopr("cancel", "demo/bad")
    repo.loopr("run", code=None)
    landed_beside(repo, "cancelled")
    assert [each.name for each in (repo.root / "worktrees").iterdir() if "judge" in each.name] == []
    assert ".judge-" not in repo.git("for-each-ref")


def test_a_clean_judge_that_is_told_to_stop_leaves_no_folder(repo: Repo) -> None:
    """A stop while a clean judge works ends it and takes its folder away."""
    script = repo.script("check", "tell judging; wait_at gate")
    scene(repo, HELPED, Set(f", clean: true, check: '{script}'"), IGNORED)
    repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    repo.loopr("stop", "--now")
    process.ended(None)
    assert [each.name for each in (repo.root / "worktrees").iterdir() if "judge" in each.name] == []
    assert ".judge-" not in repo.git("for-each-ref")


# --- honest work ------------------------------------------------------------------------------------------------------


def test_a_task_that_adds_a_dependency_lands_and_comes_home(repo: Repo) -> None:
    """A list of dependencies is work, though setup, the check and `land.check` name it."""
    named = "sh setup.sh requirements.txt"
    more = Set(f", check: '{named}'", f"land: {{check: '{named}'}}\n", f", setup: {named}")
    files = {"setup.sh": 'test -s "$1"\n', "requirements.txt": "one\n"}
    scene(repo, "echo two >> requirements.txt", more, files)
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert repo.on_branch("demo", "requirements.txt") == "one\ntwo"
    assert "judged by" not in repo.loopr("land", "demo", "--yes").err
    assert repo.git("show", "main:requirements.txt") == "one\ntwo"


def test_a_task_that_changes_the_checks_script_has_a_check_of_its_own(repo: Repo) -> None:
    """An entry whose own check does not name the script may change it for later loops."""
    scene(
        repo,
        'printf "test -f x || test -f good || test -f kind\\n" > check.sh; echo x > x',
        ONCE,
        {"check.sh": "false\n"},
    )
    children = "{id: bad, check: 'sh -n ./check.sh*'}, {id: good, needs: [bad]}, {id: kind, needs: [bad]}"
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    landed_beside(repo, "complete")
    assert repo.on_branch("demo", "check.sh").startswith("test -f x")


# --- nothing judges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worker", ["run: 'true'", "agent: claude"])
def test_nothing_judges_is_told_until_it_is_meant(repo: Repo, worker: str) -> None:
    """A type that works without a judge is told at `start` and in a dry run, unless it is meant."""
    words = "nothing judges code: what ends with 0 lands"
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    for judge, told in (
        ("", 1),
        (", check: none", 0),
        (", approve: true", 0),
        (", review: cat", 0),
        (", check: [none]", 0),
    ):
        repo.settings(f"types: {{plan: {{child: code}}, code: {{{worker}{judge}}}}}\n")
        for verb in (["start", "--dry-run"], ["start", "--no-run"]):
            assert repo.loopr(*verb, "plan.md").err.count(words) == told, (judge, verb)
        repo.loopr("config", "check")


def test_none_is_no_check(repo: Repo) -> None:
    """The bare word runs nothing wherever a check may stand; in a list it is a program."""
    bare = Set(", check: none", "land: {check: none}\n")
    scene(repo, "echo x > x", bare)
    children = "{id: bad, check: [none]}, {id: good}, {id: kind}"
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    landed_beside(repo, "parked")
    assert "there is no such program" in repo.loops()["demo/bad"]["reason"]
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children.replace('[none]', 'none')}]\n---\n# Demo\n"})
    repo.loopr("set", "types.code.check", "exit 1")
    repo.loopr("start", "plan.md")
    repo.loopr("land", "demo", "--yes")
