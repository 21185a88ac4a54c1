"""A goal in words: the plan that it becomes, and all that is refused before a byte is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.goals import Work, goal_plan
from loopr.core.ladder import Ladder
from loopr.core.policy import TypePolicy, default_types
from loopr.core.values import CURLY
from loopr.world.artifacts import parse_artifact
from tests.ui.calls import everything
from tests.ui.scenes import Desk

DEEP = {"plan": TypePolicy("plan", "epic"), "epic": TypePolicy("epic", "story"), "story": TypePolicy("story", None)}
WORDS = "Make the login test green"
FILE = "specs/make-the-login-7ca579/plan.md"


def test_a_plan_of_one_loop(desk: Desk) -> None:
    """It is written where artifacts lie and enqueued; the same words again are the same plan."""
    told = desk("goal", WORDS, "--check", "make test", "--run", "./work.sh", "--no-run")
    assert (told.code, told.err.splitlines()[0]) == (0, f"wrote {FILE}")
    assert (desk.folder / FILE).read_text().splitlines()[-5:] == [
        f'            title: "{WORDS}"',
        '            run: "./work.sh"',
        '            check: "make test"',
        "---",
        f"# {WORDS}",
    ]
    loops = desk("ls", "--json").document["loops"]
    assert [each["type"] for each in loops] == ["plan", "spec", "phase", "code"]
    assert loops[-1]["title"] == WORDS
    before = everything(desk.folder / "specs")
    again = desk("goal", *WORDS.split(), "--check", "make test", "--run", "./work.sh", "--no-run")
    assert (again.code, again.err.splitlines()[0]) == (0, f"as before: {FILE}")
    assert everything(desk.folder / "specs") == before


def test_another_goal_never_takes_the_place(desk: Desk) -> None:
    """A file that says something else is kept, and the ways on are named."""
    desk("goal", WORDS, "--check", "true", "--run", "x", "--no-run")
    before = everything(desk.folder / "specs")
    answer = desk("goal", WORDS, "--check", "false", "--run", "x", "--no-run")
    assert answer.code == 2
    assert "is there already, and says something else" in answer.err
    assert "--id NAME gives this goal another place" in answer.err
    assert f"edit {FILE}, then `loopr start {FILE}`" in answer.err
    assert everything(desk.folder / "specs") == before
    assert desk("goal", WORDS, "--check", "false", "--run", "x", "--no-run", "--id", "other").code == 0
    assert (desk.folder / "specs/other/plan.md").is_file()


def test_a_dry_run_prints_the_plan(desk: Desk) -> None:
    """It prints the very text that would be written, as JSON too, and changes nothing."""
    before = everything(desk.folder)
    said = desk("goal", "Tidy up", "--check", "true", "--run", "x", "--dry-run")
    assert said.code == 0
    assert everything(desk.folder) == before
    shown = desk("goal", "Tidy up", "--check", "true", "--run", "x", "-n", "--json").document
    assert (shown["file"], shown["text"]) == ("specs/tidy-up/plan.md", said.out)
    desk("goal", "Tidy up", "--check", "true", "--run", "x", "--no-run")
    assert (desk.folder / "specs/tidy-up/plan.md").read_text() == said.out


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ("", ["--run", "x"], (2, "a goal needs what judges it")),
        ("", ["--check", " ", "--run", "x"], (2, "the check has no words")),
        ("", ["--check", "true", "--run", "x", "--agent", "claude"], (2, "--run and --agent both do the work")),
        ("", ["--check", "true"], (2, "none of aider, claude, codex, gemini, opencode is installed here: say --agent")),
        ("", ["--check", "true", "--agent", "claud"], (78, "did you mean claude?")),
        ("", ["--check", "true", "--agent", "./bin/pal"], (2, "--run ./bin/pal has a command of your own do the work")),
        ("", ["--check", "true", "--agent", "claude"], (78, "there is no program claude")),
        ("", ["--check", "true", "--run", "x", "--id", "A B"], (2, "--id a-b")),
        ("code: {run: x, check: y}", ["--check", "none"], (2, "types.code has a judge of its own")),
        ("plan: {child: null}", ["--check", "true", "--run", "x"], (78, "the ladder ends at the plan")),
    ],
)
def test_a_goal_that_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, settings: str, options: list[str], told: tuple[int, str]
) -> None:
    """Whatever is missing or wrong is told with what to type, and nothing is written."""
    bare_path(desk, monkeypatch)
    desk.write("loopr.yml", f"version: 1\ntypes: {{{settings}}}\n")
    answer = desk("goal", WORDS, *options)
    assert (answer.code, told[1] in answer.err) == (told[0], True), answer
    assert not (desk.folder / "specs").exists()


def bare_path(desk: Desk, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Let no agent be installed but some that do nothing."""
    for name in ("git", *programs):
        there = desk.write(f"bin/{name}", '#!/bin/sh\nexec /usr/bin/git "$@"\n' if name == "git" else "#!/bin/sh\n")
        there.chmod(0o755)
    monkeypatch.setenv("PATH", f"{desk.folder / 'bin'}:/bin")


@pytest.mark.parametrize(
    ("settings", "programs", "worker"),
    [
        ("", ["codex"], 'agent: "codex"'),
        ("code: {agent: claude}", ["codex", "claude"], ""),
        ("code: {run: make code}", [], ""),
    ],
)
def test_who_works_where_nobody_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, settings: str, programs: list[str], worker: str
) -> None:
    """The type's own command or agent, else the one agent that is installed; of several none is chosen."""
    bare_path(desk, monkeypatch, *programs)
    desk.write("loopr.yml", f"version: 1\ntypes: {{{settings}}}\n")
    text = desk("goal", WORDS, "--check", "true", "-n").out
    assert ("agent:" in text or "run:" in text) is bool(worker)
    assert worker in text
    bare_path(desk, monkeypatch, "codex", "claude")
    desk.write("loopr.yml", "version: 1\n")
    assert "installed are claude, codex: say --agent claude" in desk("goal", WORDS, "--check", "true").err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("check: make test", "judged by types.code.check: make test"),
        ("check: [make, a b], approve: true", "judged by types.code.check: make 'a b', types.code.approve: a person"),
        ("check: none", "judged by nothing: types.code.check is none"),
    ],
)
def test_what_judges_where_no_check_is_named(desk: Desk, code: str, said: str) -> None:
    """The judge of the type is named, on paper too; a check of the goal's own is in its plan."""
    desk.write("loopr.yml", f"version: 1\ntypes: {{code: {{run: sh, {code}}}}}\n")
    assert said in desk("goal", WORDS, "-n").err.splitlines()
    assert desk("goal", WORDS, "--no-run").err.splitlines()[0] == f"wrote {FILE}; {said}"
    assert "judged by" not in desk("goal", "Another", "--check", "true", "-n").err


@pytest.mark.parametrize(
    ("code", "options", "lines"),
    [
        ("{}", ["--run", "x"], ['    run: "x"', '    check: "y"']),
        ("{run: [make, code]}", [], ['    run: ["make", "code"]', '    check: "y"']),
        ("{agent: claude}", [], ['    agent: "claude"', '    check: "y"', "    leaf: true"]),
    ],
)
def test_a_ladder_whose_middle_is_judged(desk: Desk, code: str, options: list[str], lines: list[str]) -> None:
    """The goal just does the work at the first level: a plan that is written out would pass over the judge."""
    desk.write("bin/claude", "#!/bin/sh\n").chmod(0o755)
    desk.write("loopr.yml", f"version: 1\ntypes: {{spec: {{check: make spec}}, code: {code}}}\n")
    text = desk("goal", WORDS, "--check", "y", *options, "--dry-run").out
    assert text.splitlines()[3:-2] == ["specs:", "  - id: spec", f'    title: "{WORDS}"', *lines]


def test_all_that_is_not_said_is_told_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names neither a judge nor a worker hears of both."""
    bare_path(desk, monkeypatch)
    said = desk("goal", WORDS).err
    assert "a goal needs what judges it" in said
    assert "nobody is named who works for the goal" in said


@pytest.mark.parametrize("settings", ["code: {run: x, check: y}", "code: {run: x, check: none}"])
def test_the_type_may_have_the_judge(desk: Desk, settings: str) -> None:
    """Where the type judges its loops, or says that nothing does, a goal needs no check of its own."""
    desk.write("loopr.yml", f"version: 1\ntypes: {{{settings}}}\n")
    assert "check" not in desk("goal", WORDS, "-n").out


@given(st.text(min_size=1).filter(lambda words: bool(words.strip(" \n\r\t"))), st.sampled_from([default_types(), DEEP]))
def test_any_words_are_read_back(words: str, types: dict[str, TypePolicy]) -> None:
    """Whatever a person types, the file is a sound plan with one loop at the end of the ladder, check and all."""
    runs = words.isprintable() and not words.startswith(CURLY)
    goal = goal_plan(words, Ladder(types), Work(run=words if runs else None, check='a "b" \\ c: #'))
    plan = parse_artifact(goal.text.encode(), "p.md", type_name="plan", types=types, fallback_id="x")
    assert plan.id == goal.id
    (entry,) = plan.entries
    for _ in range(len(Ladder(types).levels()) - 2):
        (entry,) = entry.children
    assert (entry.children, entry.check) == ((), 'a "b" \\ c: #')
    assert not runs or entry.run == words


def test_a_long_goal(tmp_path: Path) -> None:
    """Its first line, shortened, is the title; all of it is the body and the text of the plan."""
    words = f"Rewrite {'all of it ' * 20}\n\nBecause of #3."
    text = goal_plan(words, Ladder(default_types()), Work(run="x", check="y")).text
    plan = parse_artifact(text.encode(), "p.md", type_name="plan", types=default_types(), fallback_id="x")
    assert plan.title.endswith(" …")
    assert plan.entries[0].children[0].children[0].body == words
    assert plan.text.endswith(f"{words}\n")
