"""Commands that go to extremes: children that hide, output without end, input nobody reads; hooks, and odd places."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

ONE = "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"
MIB = 1 << 20


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository that is not founded yet."""
    with opened(tmp_path) as found:
        yield found


def ready(repo: Repo, script: str, more: str = "", text: str = "", plan: str = ONE) -> None:
    """Found the repository, with settings and a plan of one loop."""
    repo.found()
    run = repo.script("code", f'{script}\necho x > "$(basename "$LOOPR_LOOP").txt"')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{text}")
    repo.write({"plan.md": plan})


def landed(repo: Repo) -> None:
    """See that all is complete at the first try."""
    stands = {(each["status"], each["iteration"], each["failures"]) for each in repo.loops().values()}
    assert stands == {("complete", 1, 0)}


# --- processes ------------------------------------------------------------------------------------------------------

HIDING = """\
# grandchildren that leave the session, the parent, the environment, and that do not hear SIGTERM
setsid sh -c 'trap "" TERM; echo $$ >> "$DESK/pids"; exec cat "$DESK/never"' &
(setsid sh -c 'trap "" TERM; echo $$ >> "$DESK/pids"; cat "$DESK/never"; :' &)
env -i DESK="$DESK" sh -c '(setsid sh -c "trap \\"\\" TERM; echo \\$\\$ >> $DESK/pids; cat $DESK/never; :" &)'
tell "$LOOPR_LOOP"
cat "$DESK/never"
"""


def living(repo: Repo) -> set[int]:
    """Return those of the grandchildren that live, and whatever carries the mark of the workspace; loopr has none."""
    found = {int(each) for each in repo.note("pids").split() if Path(f"/proc/{each}").exists()}
    mark = f"LOOPR_WORKSPACE={repo.root}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
        except OSError:
            continue
    return {each for each in found if not is_zombie(each)}


def is_zombie(pid: int) -> bool:
    """Say whether a process is over, and only waits to be asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_stop_now_with_hidden_grandchildren(repo: Repo) -> None:
    """After `stop --now` of 64 loops nothing lives that any of them has started, however it hid; and it was free."""
    os.mkfifo(repo.desk / "never")
    names = ", ".join(f"{{id: l{number}}}" for number in range(64))
    text = "concurrency: {max_loops: 64, per_type: {code: 64}}\ntimeouts: {grace_secs: 0.5}\n"
    ready(repo, HIDING, text=text, plan=f"---\nid: demo\nchildren: [{names}]\n---\n# Demo\n")
    process = repo.begin("start", "plan.md")
    repo.heard(64)
    assert len(living(repo)) >= 64
    repo.loopr("stop", "--now")
    assert living(repo) == set()
    process.ended(None)
    loops = repo.loops()
    assert {each["status"] for name, each in loops.items() if name != "demo"} == {"pending"}
    assert {each["failures"] for each in loops.values()} == {0}
    assert len(repo.note("pids").split()) >= 64


# --- output ---------------------------------------------------------------------------------------------------------


def test_output_without_end(repo: Repo) -> None:
    """Of 64 MiB of output head and tail are kept within the limit on disk, and `logs` shows what was cut."""
    script = 'echo "the very first line"; yes "0123456789abcde" | head -c 67108864; echo "the very last line"'
    ready(repo, script, text="logs: {max_mb_per_attempt: 2}\n")
    repo.loopr("start", "plan.md")
    landed(repo)
    run = repo.state / "runs/demo.a.g1/1"
    assert sum(each.stat().st_size for each in run.iterdir()) <= 2 * MIB
    said = repo.loopr("logs", "demo/a").out
    assert said.startswith("the very first line\n")
    assert said.rstrip().endswith("the very last line")
    assert "bytes were cut here" in said
    assert "the very last line" in repo.loopr("logs", "--tail", "1", "demo/a").out


def test_output_that_is_no_text(repo: Repo) -> None:
    """Output that is not UTF-8, with NULs and control characters, fails no loop and no verb."""
    bad = "printf '\\377\\376\\000\\033[2J\\033]0;title\\007 end of it\\n'"
    keep = 'cp "$LOOPR_FEEDBACK_FILE" "$DESK/feedback"'
    script = f"{bad}; {bad} >&2; test $LOOPR_ITERATION = 2 || {{ {bad}; exit 1; }}; {keep}"
    ready(repo, script)
    repo.loopr("start", "plan.md")
    assert repo.loops()["demo/a"]["iteration"] == 2
    assert "end of it" in repo.note("feedback")
    assert "end of it" in repo.loopr("logs", "demo/a").out + repo.loopr("logs", "demo/a", "--json").out
    for words in (["show", "demo/a"], ["why", "demo/a"], ["events"], ["tree"], ["ls"]):
        assert "\x1b" not in repo.loopr(*words).out


# --- input ----------------------------------------------------------------------------------------------------------

LONG = 900_000


@pytest.mark.parametrize(
    "script",
    [
        'cat > "$DESK/prompt"',
        "exec 0<&-",
        'tell a; read -r first < "$DESK/gate"',
        "head -c 10 > /dev/null",
        'cat "$LOOPR_PROMPT_FILE" > "$DESK/prompt"',
    ],
    ids=["reads", "closes", "never reads", "reads some", "file"],
)
def test_a_long_prompt(repo: Repo, script: str) -> None:
    """A prompt of 900 KB reaches a command that reads it, and one that does not want it is not disturbed."""
    gate = repo.gate("gate")
    gate.open()
    repo.found()
    run = repo.script("code", f"{script}\necho x > x")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n")
    body = "word " * (LONG // 5)
    repo.write({"plan.md": f"---\nid: demo\nchildren:\n  - id: a\n    body: '{body}END'\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    landed(repo)
    if "prompt" in script:
        assert len(repo.note("prompt")) > LONG and "word END" in repo.note("prompt")


# --- hooks ----------------------------------------------------------------------------------------------------------

UNLUCKY = "hooks: {{{hook}: 'echo no luck >&2; exit 3'}}\nretry: {{base_secs: 0.05}}\n"


@pytest.mark.parametrize("hook", ["on_complete", "on_settle", "post_run"])
def test_hooks_that_fail(repo: Repo, hook: str) -> None:
    """A hook that fails is reported and changes nothing."""
    ready(repo, "", text=UNLUCKY.format(hook=hook))
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.events("problem_seen")[0]["data"]["place"] == f"hook {hook}"
    assert f"hook {hook}" in repo.loopr("status").out


@pytest.mark.parametrize("hook", ["pre_run", "post_create"])
def test_hooks_that_keep_an_attempt_from_starting(repo: Repo, hook: str) -> None:
    """A hook before the command that fails parks the loop after a few launches, with its last words."""
    ready(repo, "", text=UNLUCKY.format(hook=hook))
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert loop["status"] == "parked"
    assert "no luck" in loop["reason"] and hook in loop["reason"]


# --- places ---------------------------------------------------------------------------------------------------------


def test_two_engines_at_once(tmp_path: Path) -> None:
    """Two repositories' engines work at once; stopping one leaves the other's commands alone."""
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        for each in (one, two):
            each.gate("gate")
            ready(each, "tell $LOOPR_LOOP; wait_at gate")
        first, second = one.begin("start", "plan.md"), two.begin("start", "plan.md")
        one.heard()
        two.heard()
        one.loopr("stop", "--now")
        first.ended(None)
        assert not second.has_ended and living(two)
        one.gates["gate"].open()
        one.loopr("run")
        two.gates["gate"].open()
        second.ended()
        landed(one)
        landed(two)


NAME = "a new\nline and  spaces " + "x" * 120


def test_an_odd_and_long_place(tmp_path: Path) -> None:
    """In a place with a line break, spaces and a long name an engine in the background, its stop and its logs work."""
    with opened(tmp_path / "x", root=tmp_path / NAME / "repo") as repo:
        repo.gate("gate")
        ready(repo, "echo hello; tell $LOOPR_LOOP; wait_at gate")
        repo.loopr("start", "--detach", "plan.md")
        repo.heard(attached=False)
        assert repo.loopr("logs", "demo/a").out == "hello\n"
        repo.loopr("stop", "--now")
        assert living(repo) == set()
        repo.gates["gate"].open()
        repo.loopr("run")
        landed(repo)
        assert repo.loopr("doctor", "--json").document["ok"] is True
