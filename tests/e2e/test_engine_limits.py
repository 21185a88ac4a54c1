"""What is no verdict: limits, wrong settings, death by a signal, and clocks that run out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.driving.stepping import LOST_TRIES
from tests.e2e.repos import Repo, opened

RETRY = "retry: {base_secs: 0.05, jitter: 0, max_attempts: 3}\n"
FIRST = 'first() { test ! -e "$DESK/not first" && touch "$DESK/not first"; }\n'
VANISH = """\
vanish() {
    until grep -q '"pid":[1-9]' "$1/run.json"; do :; done
    found=$(sed 's/.*"launcher":\\([0-9]*\\).*"supervisor":\\([0-9]*\\).*/\\1 \\2/' "$1/run.json")
    ${2:-true} "$1/run.json"
    kill -9 $found $$
}
"""  # in this order: nobody is left to see how it ended


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, script: str, *, more: str = "", text: str = RETRY, names: str = "a", worktrees: str = "") -> None:
    """Set a repository up for a plan with code loops of some names."""
    run = repo.script("code", FIRST + script)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{text}", worktrees=worktrees)
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})


def test_a_limit_costs_nothing(repo: Repo) -> None:
    """After exit 75 the lane rests, then the loop goes on in its own worktree, in the same iteration, free of cost."""
    plan(repo, 'if first; then echo half > work; exit 75; fi; cat work > "$DESK/found"; echo whole > work')
    end = repo.loopr("start", "plan.md")
    assert "backing off" in end.err
    assert repo.note("found") == "half\n"
    assert repo.landed("demo") == [("demo/a", 2, 1)]
    loop = repo.loops()["demo/a"]
    assert (loop["failures"], loop["iteration"], loop["attempt"]) == (0, 1, 2)


def test_while_a_lane_rests_nobody_starts_on_it(repo: Repo) -> None:
    """One limit holds back all loops of the lane until its rest is over, and loops of another lane not at all."""
    repo.settings(
        "types:\n  plan: {child: code}\n"
        f"  code: {{run: '{repo.script('code', FIRST + 'say $LOOPR_LOOP; if first; then exit 75; fi')}', lane: x}}\n"
        "lanes: {x: {max_concurrent: 1}}\n"
    )
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    rest = repo.events("lane_rested")
    assert len(rest) == 1
    assert rest[0]["data"]["lane"] == "x"
    granted = [each["at"] for each in repo.events("lease_granted")]
    assert len(granted) == 3
    assert all(each >= rest[0]["at"] for each in granted[1:])
    assert set(repo.statuses().values()) == {"complete"}


def test_the_result_file_names_the_time(repo: Repo) -> None:
    """A result file that says limited is a limit, whatever the exit code, and its retry_after_secs is kept."""
    result = '{"schema": 1, "status": "limited", "message": "come back", "retry_after_secs": 3600}'
    plan(repo, f"if first; then echo '{result}' > \"$LOOPR_RESULT_FILE\"; exit 0; fi")
    process = repo.begin("start", "plan.md")
    rest = repo.until("lane_rested")[0]
    assert rest["data"]["reason"] == "come back"
    assert rest["data"]["until"] - rest["at"] == 3_600_000
    assert repo.loopr("why", "demo/a", "--json").document["gates"][0]["gate"] == "lane"
    process.signal(2)
    process.ended(130)
    assert repo.loops()["demo/a"]["status"] == "pending"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("echo no key >&2; exit 78", "(exit 78): no key"),
        ("exit 126", "(exit 126)"),
        ("no-such-program-anywhere", "no-such-program-anywhere: not"),
    ],
    ids=["78", "126", "127"],
)
def test_what_is_wrongly_configured(repo: Repo, run: str, words: str) -> None:
    """Exit 78, 126 and 127 park the loop at once with the reason in its own words, and the plan ends with 1."""
    plan(repo, run)
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["attempt"]) == ("parked", 1)
    assert words in loop["reason"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("[./no-such-program]", "(exit 127): ./no-such-program: does not exist"),
        ("[./README]", "(exit 126): ./README: not executable"),
        ("[sh, -c, '{no} {loop}; exit 78']", "(exit 78)"),
    ],
)
def test_a_program_that_cannot_be_run(repo: Repo, run: str, words: str) -> None:
    """A program that is missing or not executable is parked at once and named, as is whatever says so itself."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: {run}}}\n{RETRY}")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["attempt"]) == ("parked", 1), loop["reason"]
    assert words in loop["reason"]


def test_an_agent_that_cannot_be_run(repo: Repo) -> None:
    """An agent whose program is missing is parked with that, and not with what it has not said."""
    agents = "agents: {absent: {extends: codex, run: [./none]}}"
    repo.settings(f"types: {{plan: {{child: code}}, code: {{agent: absent}}}}\n{agents}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    assert repo.loops()["demo/a"]["reason"] == "there is no such program (exit 127): ./none: does not exist"


def test_parked_until_a_person_mends_it(repo: Repo) -> None:
    """A parked loop is not tried again by any engine; the tree around it goes on."""
    plan(repo, 'say "$LOOPR_LOOP"; test "$LOOPR_LOOP" != demo/a || exit 78', names="a b")
    repo.loopr("start", "plan.md", code=1)
    repo.loopr("run", code=1)
    assert sorted(repo.diary()) == ["demo/a", "demo/b"]
    assert repo.statuses() == {"demo": "complete", "demo/a": "parked", "demo/b": "complete"}


@pytest.mark.parametrize("death", ["kill -9 $$", "kill -SEGV $$", "exit 137"])
def test_died_by_a_signal(repo: Repo, death: str) -> None:
    """A death by a signal is one failure and a delay, no verdict; then the same iteration is tried again."""
    plan(repo, f"echo x >> work; if first; then {death}; fi")
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 1)]
    assert repo.on_branch("demo", "work").split() == ["x", "x"], "what it left was kept"
    broke = repo.events("broke")
    assert len(broke) == 1
    granted = repo.events("lease_granted")
    assert granted[1]["at"] >= broke[0]["at"]


def test_failures_have_an_end(repo: Repo) -> None:
    """As many failures in a row as allowed park the loop with the last reason, after growing delays."""
    plan(repo, "kill -9 $$")
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["attempt"], loop["iteration"]) == ("parked", 3, 1)
    assert "signal 9" in loop["reason"] and "max_attempts" in loop["reason"]


@pytest.mark.parametrize(
    ("clock", "script", "words"),
    [
        ("wall_secs: 1", "while :; do echo x; wait_at never; done", "longer than 1 s"),
        ("wall_secs: 1", "trap '' TERM; (trap '' TERM; wait_at never) & wait_at never", "longer than 1 s"),
        ("idle_secs: 1", "echo x; wait_at never", "silent for 1 s"),
        ("first_byte_secs: 1", "wait_at never", "said nothing for 1 s"),
    ],
    ids=["wall", "wall and stubborn", "idle", "first byte"],
)
def test_clocks(repo: Repo, clock: str, script: str, words: str) -> None:
    """A command whose time is up is ended with all it has started; that is a failure, which says which clock."""
    repo.gate("never")
    plan(
        repo,
        f'if first; then echo half > work; echo $$ > "$DESK/pid"; {script}; fi',
        more=f", timeouts: {{{clock}, grace_secs: 1}}",
    )
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 1)]
    broke = repo.events("broke")
    assert len(broke) == 1
    assert words in broke[0]["data"]["reason"]
    assert broke[0]["data"]["failure"] == "timeout"
    assert repo.on_branch("demo", "work") == "half"
    assert not Path(f"/proc/{repo.note('pid').strip()}").exists()


def test_a_check_that_takes_too_long(repo: Repo) -> None:
    """A check whose own time is up has said no."""
    repo.gate("never")
    judge = repo.script("check", 'test "$LOOPR_ITERATION" = 2 || wait_at never')
    plan(repo, "echo x > x", more=f", check: '{judge}', timeouts: {{check_secs: 1, grace_secs: 1}}")
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 2)]


def test_a_check_that_is_limited(repo: Repo) -> None:
    """If the check and not the command was limited, the next attempt runs the check alone."""
    judge = repo.script("check", FIRST + "say judged; if first; then exit 75; fi")
    plan(repo, "say worked; echo x > x", more=f", check: '{judge}'")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["worked", "judged", "judged"]
    assert repo.landed("demo") == [("demo/a", 2, 1)]


def test_blocked_says_the_result_file(repo: Repo) -> None:
    """A result file that says blocked parks the loop with its message; one that says done passes no check."""
    done, blocked = (json.dumps({"schema": 1, "status": each, "message": "ask Ada"}) for each in ("done", "blocked"))
    script = f"""
    case $LOOPR_LOOP in
    */a) echo '{blocked}' > "$LOOPR_RESULT_FILE" ;;
    */b) echo '{done}' > "$LOOPR_RESULT_FILE" ;;
    esac"""
    plan(repo, script, more=", check: exit 1, max_iterations: 1", names="a b")
    repo.loopr("start", "plan.md", code=1)
    loops = repo.loops()
    assert (loops["demo/a"]["status"], loops["demo/b"]["status"]) == ("parked", "failed")
    assert "ask Ada" in loops["demo/a"]["reason"]


def test_a_result_file_that_counts_for_nothing(repo: Repo) -> None:
    """One that is not as it should be is told, with the reason, until the loop's next try leaves none that is so."""
    plan(repo, """echo x > x; if first; then echo '{"status": "blocked"}' > "$LOOPR_RESULT_FILE"; exit 1; fi""")
    said = repo.loopr("start", "plan.md").err
    assert "demo/a result.json  problem  the result file is ignored: schema must be 1" in said
    assert "demo/a result.json  mended" in said
    assert repo.landed("demo") == [("demo/a", 2, 2)]
    assert repo.loopr("status", "--json").document["problems"] == []


def test_nothing_to_do(repo: Repo) -> None:
    """Exit 77 with an unchanged worktree completes the loop; with a changed one it is as good as 0."""
    plan(repo, 'test "$LOOPR_LOOP" = demo/a || echo x > x; exit 77', names="a b")
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert Counter(each[0] for each in repo.landed("demo"))["demo/b"] == 1


def test_a_setup_that_fails(repo: Repo) -> None:
    """If worktrees.setup fails nothing has started, so it runs again before the next try; in the end it is parked."""
    setup = repo.script("setup", 'say "setup"; exit 3')
    plan(repo, "say work", worktrees=f", setup: '{setup}'")
    repo.loopr("start", "plan.md", code=1)
    assert repo.diary() == ["setup"] * 3
    loop = repo.loops()["demo/a"]
    assert loop["status"] == "parked"
    assert "setup" in loop["reason"]


def test_a_setup_that_is_mended(repo: Repo) -> None:
    """A setup that fails once and works the next time is followed by the command, in a folder that is prepared."""
    setup = repo.script("setup", FIRST + "if first; then exit 3; fi; echo ready > .ready")
    plan(repo, "cat .ready", worktrees=f", setup: '{setup}'")
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 2, 1)]


def test_a_setup_that_is_lost(repo: Repo) -> None:
    """A setup that is killed with all that watched it runs again, and costs the loop neither attempt nor failure."""
    setup = repo.script(
        "setup", f'{FIRST}{VANISH}say setup; if first; then vanish "$LOOPR_LOG_DIR/setup"; fi; echo 1 > r'
    )
    plan(repo, "cat r", worktrees=f", setup: '{setup}'")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["setup"] * 2
    assert repo.events("broke") == []
    assert repo.landed("demo") == [("demo/a", 1, 1)]


def test_a_setup_that_is_lost_again_and_again(repo: Repo) -> None:
    """One that takes all that watches it down whenever it runs has an end, and its loop says so."""
    setup = repo.script("setup", f'{VANISH}say setup; vanish "$(ls -d "$LOOPR_LOG_DIR"/setup* | tail -n 1)"')
    text = RETRY.replace("max_attempts: 3", "max_launch_failures: 1")
    plan(repo, "say work", text=text, worktrees=f", setup: '{setup}'")
    repo.loopr("start", "plan.md", code=1)
    assert repo.diary() == ["setup"] * LOST_TRIES
    assert "the setup command failed (lost)" in repo.loops()["demo/a"]["reason"]


def test_a_machine_that_was_restarted(repo: Repo) -> None:
    """An attempt that is lost because the machine was restarted costs nothing: the next one begins where it was."""
    other_boot = """other_boot() { sed -i 's/"boot_id":"/&another/' "$1"; }\n"""
    plan(repo, f'{VANISH}{other_boot}if first; then vanish "$LOOPR_LOG_DIR" other_boot; fi')
    repo.loopr("start", "plan.md")
    assert repo.events("broke") == []
    (free,) = repo.events("limited")
    assert "restarted" in free["data"]["reason"]
    assert repo.loops()["demo/a"]["attempt"] == 2
