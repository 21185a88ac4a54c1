"""Texts that sh could not run: each is told with its place before it runs, and refuses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from loopr.world.dialect import lacking
from tests.ui.calls import loopr
from tests.ui.scenes import Desk

IS_PLAIN = bool(lacking(frozenset({"[["})))
needs_plain_sh = pytest.mark.skipif(not IS_PLAIN, reason="sh is bash under another name here")
CURE = "write `bash -c '...'`"


def plan(*entries: str) -> str:
    """Write a plan of specs with commands of their own."""
    listed = "".join(f"  - {{id: s{number}, {each}}}\n" for number, each in enumerate(entries))
    return f"---\nid: p\nspecs:\n{listed}---\n# P\n"


def dry_run(desk: Desk, text: str) -> str:
    """Return what a dry run says of a plan."""
    answer = desk("start", "--dry-run", desk.write("plan.md", text))
    assert answer.code == 0, answer
    return answer.err


def simulated(desk: Desk, text: str) -> str:
    """Return what a simulation says of a plan."""
    return desk("simulate", desk.write("plan.md", text)).err


def started(desk: Desk, text: str) -> str:
    """Return what is said where a plan is enqueued."""
    return desk.start(text).err


@pytest.mark.parametrize("told", [dry_run, simulated, started])
def test_a_text_that_sh_cannot_read(desk: Desk, told: Callable[[Desk, str], str]) -> None:
    """It is told with the place of its entry and the words of sh, by every verb that foretells."""
    said = told(desk, plan("run: 'if true; echo x', check: \"test -e 'x\""))
    assert "plan.md:4:5 run: sh cannot read it: " in said
    assert "plan.md:4:5 check: sh cannot read it: " in said
    assert "yntax error" in said


def test_a_text_with_several_lines(desk: Desk) -> None:
    """Where it is not the first line that sh cannot read, that line is told."""
    assert "(line 3)" in dry_run(desk, plan(r'run: "echo a\necho b\nfi\n"'))


@needs_plain_sh
def test_what_bash_could_read_is_told_so(desk: Desk) -> None:
    """A text that only bash can read comes with the way to give it to bash."""
    said = dry_run(desk, plan("run: 'diff <(echo a) <(echo b)'"))
    assert f"(bash can: {CURE})" in said


@pytest.mark.parametrize(
    "text",
    [
        "echo {worktree} {a,b} ${x:-y}",
        'for f in *; do test -s "$f" || exit 1; done',
        "cat <<EOF\n[[ source\nEOF",
        "bash -c '[[ -f x ]] && source y'",
        "bash <<'EOF'\nsource a\n[[ -f b ]]\nEOF\n",
        "grep -q source x; echo [[",
        "source() { echo mine; }",
        ". ./env.sh && [ -f x ]",
    ],
)
def test_what_sh_can_run_is_passed_over(desk: Desk, text: str) -> None:
    """Placeholders, words of bash's that begin no command, and texts for bash are no fault."""
    desk.write("loopr.yml", "version: 1\n")
    said = dry_run(desk, plan(f"run: {json.dumps(text)}"))
    assert "sh " not in said
    assert "bash" not in said


@needs_plain_sh
@pytest.mark.parametrize(
    ("text", "word", "cure"),
    [
        ("[[ -f x ]]", "[[", f"{CURE}, or `[`"),
        ("test -e x && [[ -f x ]]", "[[", f"{CURE}, or `[`"),
        ("if [[ -f x ]]; then echo y; fi", "[[", f"{CURE}, or `[`"),
        ("A=1 source env.sh", "source", "sh has `.`"),
        ("(pushd src; make)", "pushd", CURE),
        ("declare -a names", "declare", CURE),
    ],
)
def test_words_that_only_bash_has(desk: Desk, text: str, word: str, cure: str) -> None:
    """One that begins a command anywhere in a text is told with what to write in its place."""
    said = dry_run(desk, plan(f'run: "{text}"'))
    assert f"plan.md:4:5 run: `{word}` is bash's, and sh runs this ({cure})\n" in said


@needs_plain_sh
def test_what_sh_is_given_by_a_list(desk: Desk) -> None:
    """A text after `sh -c` in a list is one for sh, and after `bash -c` it is none."""
    said = dry_run(desk, plan("run: [sh, -c, 'source x'], check: [bash, -c, '[[ -f x ]]']"))
    assert "run: `source` is bash's" in said
    assert "check:" not in said


@needs_plain_sh
def test_texts_of_the_settings(desk: Desk) -> None:
    """Those of types, setup, hooks and the way home are told with their line, no wrapped one."""
    desk.write(
        "loopr.yml",
        "types:\n"
        "  spec: {run: 'source a', check: none}\n"
        "  phase: {run: 'shopt -s x', wrap: [env, '{command}'], check: none}\n"
        "worktrees: {setup: 'python -m venv .venv && pushd .venv'}\n"
        "hooks: {post_run: '[[ -f x ]]'}\n"
        "land: {check: 'declare x'}\n",
    )
    said = dry_run(desk, plan("title: S"))
    for place, key, word in (
        ("2:10", "types.spec.run", "source"),
        ("4:13", "worktrees.setup", "pushd"),
        ("5:9", "hooks.post_run", "[["),
        ("6:8", "land.check", "declare"),
    ):
        assert f"loopr.yml:{place} {key}: `{word}` is bash's" in said
    assert "shopt" not in said
    checked = loopr("config", "check", "-C", desk.folder).err
    assert "types.spec.run: `source` is bash's" in checked


@needs_plain_sh
def test_the_same_fault_is_told_once(desk: Desk) -> None:
    """Many entries with one fault are one line with some places; of many faults some are told."""
    said = dry_run(desk, plan(*["run: 'source x'"] * 7))
    (line,) = [each for each in said.splitlines() if "source" in each]
    assert line.startswith("  plan.md:4:5 run: `source` is bash's, and sh runs this; as in run (")
    assert line.endswith(" and 4 more (sh has `.`)")
    assert len(line) <= 160
    words = ("source", "pushd", "popd", "shopt", "declare", "mapfile", "readarray", "[[")
    said = dry_run(desk, plan(*[f"run: '{each} x'" for each in words]))
    assert said.count("is bash's") == 5
    assert "sh cannot run 3 more as they are written" in said


def test_very_many_texts(desk: Desk) -> None:
    """Only a hundred different texts are shown to sh."""
    said = dry_run(desk, plan(*[f"run: 'echo {each}'" for each in range(100)], "run: 'fi'"))
    assert "cannot read" not in said


@needs_plain_sh
def test_a_refusal_has_the_other_faults_too(desk: Desk) -> None:
    """A start that is refused for a missing program names what else would fail too."""
    text = plan("run: [no-such-tool]", "run: no-such-word", "run: 'source x'", "run: 'fi'")
    foretold = dry_run(desk, text)
    refused = desk("start", desk.write("plan.md", text))
    assert refused.code == 78
    for words in (
        "plan.md:4:5 run: there is no program no-such-tool",
        "plan.md:5:5 run: there is no program no-such-word",
        "plan.md:6:5 run: `source` is bash's",
        "plan.md:7:5 run: sh cannot read it",
    ):
        assert words in foretold
        assert words in refused.err
    assert desk("ls", "--json").document["loops"] == []


def test_faults_are_data_too(desk: Desk) -> None:
    """With --json each plan has them under a key of their own."""
    path = desk.write("plan.md", plan("run: 'fi'"))
    (row,) = desk("start", "--dry-run", path, "--json").document["plans"]
    (told,) = row["unreadable"]
    assert told.startswith("plan.md:4:5 run: sh cannot read it")


@needs_plain_sh
@pytest.mark.parametrize("options", [["--dry-run"], ["--no-run"]])
def test_a_goal_is_told_what_a_plan_is(desk: Desk, options: list[str]) -> None:
    """What is foretold of a plan is told of a goal: files, programs and texts."""
    desk.write(".gitignore", ".venv\n")
    for check in (".venv/bin/pytest", "[[ -f x ]]", "frobnicate"):
        words = ["goal", f"Get {check}", "--check", check, "--run", "./nope.sh"]
        said = desk(*words, *options).err
        assert "neither committed nor here: " in said
        assert "nope.sh" in said
        assert ("[[" in said, "frobnicate" in said) == ("[[" in check, "frob" in check)
