"""Settings that change while loops are at work: they are held back until a person takes them."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, PATIENCE_SECS, Process, Repo, opened
from tests.e2e.test_hooks_notify import LOCAL, Page, page, until_told

__all__ = ["page"]
CHECK = 'test -e "done-$(basename "$LOOPR_LOOP")"'
HONEST = 'touch "done-$(basename "$LOOPR_LOOP")"'
EASIER = 'sed -i "s/max_iterations: 2, check: .*/max_iterations: 2, check: exit 0}/" "$LOOPR_WORKSPACE/loopr.yml"'
KEY = "types.code.check"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        found.env |= LOCAL
        yield found.found()


def ready(repo: Repo, cheat: str, *, children: str = "{id: a}, {id: b}, {id: c}", text: str = "") -> None:
    """Let `a` cheat, and its siblings do their work once the gate is open."""
    check = repo.script("check", CHECK)
    work = repo.script("code", f'case "$LOOPR_LOOP" in */a) {cheat} ;; *) wait_at gate; {HONEST} ;; esac')
    repo.settings(
        "retry: {base_secs: 0.01, no_progress: 9}\ntimeouts: {grace_secs: 1}\n"
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{work}', max_iterations: 2, check: '{check}'}}\n{text}"
    )
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})
    repo.gate("gate")


def held(repo: Repo) -> list[str]:
    """Name what is held back, as the journal has it last."""
    found = repo.events("settings_held", "settings_accepted", "settings_put_back")[-1]
    return list(found["data"].get("keys", []))


def statuses(repo: Repo) -> dict[str, str]:
    """Return where each loop below the plan stands."""
    return {each.partition("/")[2]: status for each, status in repo.statuses().items() if "/" in each}


def told_everywhere(repo: Repo, key: str = KEY) -> None:
    """What is held back is in every place where a person looks."""
    words = f"held back: {key}; `loopr config accept` shows and takes it"
    assert words in repo.loopr("status").out
    assert words in repo.loopr("doctor", code=None).out


def typed(repo: Repo, *words: str, answer: str) -> tuple[int, str]:
    """Type a command on a terminal, and an answer where it asks."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(LOOPR), *words],
            cwd=repo.root,
            env=repo.env,
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.write(master, f"{answer}\n".encode())
        out, err = process.communicate(timeout=PATIENCE_SECS)
    finally:
        os.close(master)
        os.close(slave)
    return process.returncode, (out + err).decode()


def begun(repo: Repo) -> Process:
    """Start the plan."""
    return repo.begin("start", "plan.md")


LOCALLY = "printf 'types: {code: {check: exit 0}}\\n' > \"$LOOPR_WORKSPACE/loopr.local.yml\""


@pytest.mark.parametrize("cheat", [EASIER, LOCALLY])
def test_a_loop_cannot_change_what_judges_it(repo: Repo, cheat: str) -> None:
    """A check that a command writes into the settings judges nobody: it is told, siblings land, and it stays held."""
    ready(repo, cheat)
    engine = begun(repo)
    repo.until("settings_held")
    engine.says(f"held back: {KEY}; `loopr config accept` shows and takes it")
    told_everywhere(repo)
    repo.until("refused", 2)
    repo.gates["gate"].open()
    engine.ended(1)
    assert statuses(repo) == {"a": "failed", "b": "complete", "c": "complete"}
    repo.loopr("retry", "demo/a")
    again = repo.loopr("run", code=1)
    assert f"held back: {KEY}" in again.err
    assert statuses(repo)["a"] == "failed"
    assert held(repo) == [KEY]
    told_everywhere(repo)
    explained = repo.loopr("config", "explain", KEY).out
    assert "held back  exit 0" in explained


def test_what_a_command_does_last_is_seen_before_it_counts_as_over(repo: Repo) -> None:
    """The only loop changes the settings in its last breath and lands: the next run does not take it for a person's."""
    ready(repo, f"{HONEST}; {EASIER}", children="{id: a}")
    begun(repo).ended()
    assert statuses(repo) == {"a": "complete"}
    repo.loopr("run")
    assert held(repo) == [KEY]
    assert "exit 0" not in repo.loopr("config", "show", KEY).out


def test_prompts_are_those_that_were_accepted(repo: Repo) -> None:
    """A template that a command writes is none: later prompts, and those that are shown, are the accepted ones."""
    cheat = f'mkdir -p "$LOOPR_WORKSPACE/prompts"; echo CHEAT > "$LOOPR_WORKSPACE/prompts/code.md"; {HONEST}'
    ready(repo, cheat, children="{id: a}, {id: b, needs: [a]}")
    engine = begun(repo)
    repo.until("settings_held")
    assert held(repo) == ["prompts/code.md"]
    repo.until("attempt_started", 2)
    prompts = [path.read_text() for path in (repo.state / "runs").rglob("prompt.md")]
    assert len(prompts) == 2 and not any("CHEAT" in each for each in prompts)
    assert "CHEAT" not in repo.loopr("prompt", "demo/b").out
    assert "+CHEAT" in repo.loopr("config", "accept", "--dry-run").out
    repo.loopr("config", "accept", "--yes")
    repo.gates["gate"].open()
    engine.ended()
    repo.loopr("retry", "--fresh", "--yes", "demo/b")
    assert "CHEAT" in repo.loopr("prompt", "demo/b").out


def test_a_command_that_outlives_its_engine_changes_nothing(repo: Repo) -> None:
    """An engine is killed and a command edits the settings: the next one, and the one after it, go by the old ones."""
    ready(repo, f"tell a; wait_at late; {EASIER}; tell done", children="{id: a}")
    late = repo.gate("late")
    engine = begun(repo)
    repo.heard()
    engine.kill()
    late.open()
    repo.heard(attached=False)
    assert f"held back: {KEY}" in repo.loopr("status").out
    assert f"held back: {KEY}" in repo.loopr("run", code=1).err
    assert statuses(repo) == {"a": "failed"}
    repo.loopr("run", code=1)
    assert held(repo) == [KEY]


def test_an_engine_that_was_killed_with_nothing_at_work_holds_back_too(repo: Repo) -> None:
    """What changed after an engine died may be the doing of what it has left behind: it is asked about."""
    ready(repo, "kill -9 $$", children="{id: a}")
    repo.loopr("set", "retry.base_secs", "3600")
    repo.loopr("set", "retry.cap_secs", "3600")
    engine = begun(repo)
    repo.until("broke")
    engine.kill()
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("check: '", "check: 'true; : "))
    told_everywhere(repo)
    repo.loopr("run", "--for", "1s", code=75)
    assert held(repo) == [KEY]


def test_config_accept_takes_what_it_shows(repo: Repo) -> None:
    """Off a terminal it takes --yes; then the work that goes on is judged by what was shown."""
    ready(repo, f"{EASIER}; tell a; wait_at gate", children="{id: a}")
    engine = begun(repo)
    repo.heard()
    repo.until("settings_held")
    refused = repo.loopr("config", "accept", code=2)
    assert "nobody is there to be asked" in refused.err and "→ exit 0" in refused.out
    assert held(repo) == [KEY]
    repo.loopr("config", "accept", "--yes")
    assert repo.events("settings_accepted")[-1]["data"]["by"] not in ("", "nothing was at work")
    repo.until("policy_loaded", 1)
    repo.gates["gate"].open()
    engine.ended()
    assert statuses(repo) == {"a": "complete"}
    assert "nothing is held back" in repo.loopr("config", "accept").out


def test_set_takes_its_key_and_no_other(repo: Repo) -> None:
    """A person's word counts at once, also while something is held back; all else stays so."""
    ready(repo, f"{EASIER}; tell a; wait_at gate", children="{id: a}")
    engine = begun(repo)
    repo.heard()
    repo.until("settings_held")
    repo.loopr("set", "types.code.approve", "true")
    assert repo.loopr("config", "show", "types.code.approve").out == "true\n"
    assert "exit 0" not in repo.loopr("config", "show", KEY).out
    assert held(repo) == [KEY]
    repo.loopr("set", KEY, "exit 0")
    repo.gates["gate"].open()
    repo.until("passed")
    assert statuses(repo) == {"a": "awaiting_approval"}
    assert held(repo) == []
    engine.ended(4)


def test_a_set_key_is_never_told_as_held(repo: Repo) -> None:
    """While loops are at work a person sets keys one after the other: none of it is held back for a moment."""
    ready(repo, "tell a; wait_at gate", children="{id: a}")
    engine = begun(repo)
    repo.heard()
    for number in range(1, 6):
        repo.loopr("set", "types.code.max_iterations", str(number))
    repo.gates["gate"].open()
    engine.ended(1)
    assert repo.events("settings_held") == []
    assert repo.loopr("config", "show", "types.code.max_iterations").out == "5\n"


def test_a_held_change_that_does_not_load_is_told_and_changes_nothing(repo: Repo) -> None:
    """Garbage in the settings halts nobody: siblings land, the next run goes on, and nothing of it can be accepted."""
    ready(repo, 'echo "types: [" > "$LOOPR_WORKSPACE/loopr.yml"')
    engine = begun(repo)
    repo.until("settings_held")
    engine.says("the settings are wrong, those from before hold")
    repo.gates["gate"].open()
    engine.ended(1)
    assert statuses(repo) == {"a": "failed", "b": "complete", "c": "complete"}
    assert "they do not load" in repo.loopr("run", code=1).err
    assert "they do not load" in repo.loopr("status").out
    repo.loopr("config", "accept", "--yes", code=78)
    repo.git("checkout", "--", "loopr.yml")
    repo.loopr("run", code=1)
    assert repo.events("settings_put_back")
    assert "held back" not in repo.loopr("status").out


def test_what_paces_the_work_comes_into_force_at_once(repo: Repo) -> None:
    """A ceiling that is raised by hand counts while loops are at work, also beside something that is held back."""
    ready(repo, f"{EASIER}; tell a; wait_at gate", text="concurrency: {max_loops: 1}\n")
    engine = begun(repo)
    repo.heard()
    repo.until("settings_held")
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("max_loops: 1", "max_loops: 3"))
    repo.until("attempt_started", 3)
    repo.gates["gate"].open()
    engine.ended(1)
    assert statuses(repo) == {"a": "failed", "b": "complete", "c": "complete"}
    assert held(repo) in ([], [KEY]) and KEY in repo.loopr("status").out


def test_the_address_that_was_put_in_is_told_too(repo: Repo, page: Page) -> None:
    """Whoever turns the news elsewhere is heard of there, and where it went before."""
    other = Page()
    try:
        cheat = f'printf \'notify: ["%s"]\\n\' "{other.url}" > "$LOOPR_WORKSPACE/loopr.local.yml"'
        ready(repo, cheat, text=f"notify: ['{page.url}']\n")
        engine = begun(repo)
        for each in (page, other):
            until_told(each, "settings")
        repo.gates["gate"].open()
        engine.ended(1)
        assert [each["kind"] for _, _, each in other.got] == ["settings"]
        assert "held back: notify" in other.got[0][2]["text"]
    finally:
        other.close()


def test_a_plan_that_names_what_is_held_back_is_refused_with_the_reason(repo: Repo) -> None:
    """An agent and a project that only held settings have are named as such."""
    more = "agents: {mine: {run: [true]}}\\nprojects: {fresh: {weight: 2}}\\n"
    ready(repo, f"printf '{more}' >> \"$LOOPR_WORKSPACE/loopr.yml\"; {HONEST}", children="{id: a}")
    begun(repo).ended()
    repo.write({"other.md": "---\nid: other\nchildren: [{id: x, agent: mine}]\n---\n# Other\n"})
    refused = repo.loopr("start", "other.md", code=78)
    assert "names no preset: it is only in settings that are held back" in refused.err
    repo.write({"third.md": "---\nid: third\nproject: fresh\nchildren: [{id: x}]\n---\n# Third\n"})
    refused = repo.loopr("start", "third.md", code=2)
    assert "there is no project fresh: it is only in settings that are held back" in refused.err
    repo.loopr("config", "accept", "--yes")
    repo.loopr("start", "--no-run", "third.md")


@pytest.mark.parametrize(("answer", "status"), [("y", "complete"), ("n", "failed")])
def test_run_on_a_terminal_shows_it_and_asks(repo: Repo, answer: str, status: str) -> None:
    """A yes takes what was shown, a no goes on with what was accepted."""
    ready(repo, EASIER, children="{id: a}")
    begun(repo).ended(1)
    repo.loopr("retry", "demo/a")
    code, said = typed(repo, "run", answer=answer)
    assert "→ exit 0" in said and "Take these settings?" in said
    assert code == (0 if status == "complete" else 1)
    assert statuses(repo) == {"a": status}


def test_accepted_settings_that_are_gone_are_never_replaced_in_silence(repo: Repo) -> None:
    """With other texts in the files it is 78 and a line to type; a person's word mends it."""
    ready(repo, f'{EASIER}; rm -r "$LOOPR_WORKSPACE"/.git/loopr/accepted', children="{id: a}")
    begun(repo).ended(1)
    refused = repo.loopr("run", code=78)
    assert "the accepted settings are gone" in refused.err and "loopr config accept" in refused.err
    repo.loopr("config", "accept", "--yes")
    repo.loopr("retry", "demo/a")
    repo.loopr("run")
    assert statuses(repo) == {"a": "complete"}


def test_accepted_settings_that_are_altered_are_not_believed(repo: Repo) -> None:
    """Where the files still say the same they are kept anew; nothing of what was altered counts."""
    alter = 'for each in "$LOOPR_WORKSPACE"/.git/loopr/accepted/*; do sed -i "s/check.sh/none.sh/" "$each"; done'
    ready(repo, alter, children="{id: a}")
    begun(repo).ended(1)
    repo.loopr("retry", "demo/a")
    repo.loopr("run", code=1)
    assert statuses(repo) == {"a": "failed"}
    assert "check.sh" in repo.loopr("config", "show", KEY).out


def test_an_edit_while_nothing_is_at_work_is_taken_up_at_once(repo: Repo) -> None:
    """Between two runs a person changes what they like, and it counts, as ever."""
    ready(repo, "true", children="{id: a}")
    first = begun(repo).ended(1)
    assert "settings  accepted as they are: loopr.yml" in first.err
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("check: '", "check: 'true; : "))
    assert "true; :" in repo.loopr("config", "show", KEY).out
    repo.loopr("retry", "demo/a")
    repo.loopr("run")
    assert statuses(repo) == {"a": "complete"}
    assert not repo.events("settings_held")


def test_a_pull_worker_that_changes_the_settings_is_held_back(repo: Repo) -> None:
    """A lease is an attempt: what changes while it is held waits, with an engine or without."""
    ready(repo, "true", children="{id: a}")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("lease", "take", "--holder", "ada")
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("check: '", "check: 'true; : "))
    assert f"held back: {KEY}" in repo.loopr("status").out
    assert f"held back: {KEY}" in repo.loopr("lease", "complete", "demo/a#1").err
    repo.loopr("run", code=1)
    assert statuses(repo) == {"a": "failed"}


def test_a_loop_accepts_nothing_and_sets_nothing_for_itself(repo: Repo) -> None:
    """The verb is refused within a loop, and neither `--set` nor a variable changes what holds there."""
    cheat = (
        f'{EASIER}; loopr config accept --yes > "$DESK/said" 2>&1 || true;'
        f' loopr config show {KEY} --set {KEY}=mine >> "$DESK/said" 2>&1 || true;'
        f' LOOPR_TYPES__CODE__CHECK=mine loopr config show {KEY} > "$DESK/shown" 2>&1'
    )
    ready(repo, cheat, children="{id: a}")
    repo.env["PATH"] = f"{LOOPR.parent}:{repo.env['PATH']}"
    begun(repo).ended(1)
    said = repo.note("said")
    assert "`config accept`" in said or "config accept" in said
    assert "--set is not for a loop, a hook or a worker" in said
    assert "check.sh" in repo.note("shown")
    assert held(repo) == [KEY]
