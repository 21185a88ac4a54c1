"""The first plans that people write: each works, or is refused before anything runs, with what to write instead.

One table: whoever changes what a file may say changes its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from loopr.core.fields import ENTRY_KEYS
from tests.core.test_imported import TASKS
from tests.e2e.repos import Repo
from tests.e2e.test_offered_words import typed

WORK = '{run: \'echo x > "$(basename "$LOOPR_LOOP").txt"\', check: none}'
FOUR = f"types: {{code: {WORK}}}\n"
TWO = f"types: {{plan: {{child: task}}, task: {WORK}}}\n"
JOBS = f"types: {{plan: {{child: job}}, job: {WORK}}}\n"
LEAVES = "leaf" in ENTRY_KEYS


class Works(NamedTuple):
    """A plan that is driven to its end: the last parts of the ids of all that landed."""

    name: str
    settings: str
    file: str
    text: str
    landed: str
    options: tuple[str, ...] = ()


class Refused(NamedTuple):
    """A plan that is refused, with words that say what to do."""

    name: str
    settings: str
    file: str
    text: str
    said: str
    code: int = 2
    options: tuple[str, ...] = ()


def front(yaml: str, body: str = "# P\n") -> str:
    """Write front matter."""
    return f"---\nid: p\n{yaml}---\n{body}"


NESTED = """\
specs:
  - id: tokens
    phases:
      - {id: store, title: Tables}
      - {id: refresh, needs: [store]}
"""
PHASES_RUN = """\
specs:
  - id: s
    phases:
      - {id: one, run: echo 1 > one.txt, check: test -e one.txt}
      - {id: two, run: echo 2 > two.txt, check: test -e two.txt, needs: [one]}
      - {id: three, run: echo 3 > three.txt, check: test -e three.txt}
"""
WORKING = (
    Works("the README's outline", FOUR, "plan.md", front(NESTED), "code code"),
    Works("a command for each task", TWO, "plan.md", front("tasks:\n  - {id: a, run: echo 1 > a.txt}\n"), "a"),
    Works("a command as a list", TWO, "plan.md", front("tasks: [{id: a, run: [touch, a.txt]}]\n"), "a"),
    Works("bare words", TWO, "plan.md", front("tasks: [Write it, Test it]\n"), "test-it write-it"),
    Works(
        "words that need words",
        TWO,
        "plan.md",
        front("tasks:\n  - Write it\n  - title: Test it\n    needs: Write it\n"),
        "test-it write-it",
    ),
    Works(
        "one need as one word", TWO, "plan.md", front("tasks:\n  - build\n  - {id: test, needs: build}\n"), "build test"
    ),
    Works("curly quotes", TWO, "plan.md", front("tasks:\n  - build\n  - {id: t, needs: [“build”]}\n"), "build t"),
    Works(
        "a list below a heading", TWO, "plan.md", "# P\n\n## Tasks\n\n- one: The first\n- **Two** and more\n", "one two"
    ),
    Works("a numbered list", TWO, "plan.md", "# P\n\n## Tasks\n1. one\n2) two\n", "one two"),
    Works("a checklist", TWO, "plan.md", "# P\n## Tasks\n- [ ] one\n- [x] two\n- [ ] three\n", "one three"),
    Works("a list in a list", TWO, "plan.md", "# P\n## Tasks\n- one\n    - a detail\n- two\n", "one two"),
    Works("groups of a list", TWO, "plan.md", "# P\n## Tasks\n### Back\n- one\n### Front\n- two\n", "one two"),
    Works(
        "headings as tasks",
        TWO,
        "plan.md",
        "# P\n## Tasks\n### Write it\nin C\n### Test it\n- Needs: Write it\n",
        "test-it write-it",
    ),
    Works("needs in words", TWO, "plan.md", "# P\n## Tasks\n- a: The first\n- b: B\n  - Needs: The first\n", "a b"),
    Works("an editor of another system", TWO, "plan.md", "\ufeff# P\r\n\r\n## Tasks\r\n- one\r\n- two\r\n", "one two"),
    Works("letters of the world", TWO, "plan.md", "# Größe 🎯\n## Tasks\n- Überprüfen\n", "uberprufen"),
    Works(
        "a ladder of one's own",
        JOBS,
        "plan.md",
        front("jobs:\n  - build\n  - {id: test, needs: [build]}\n"),
        "build test",
    ),
    Works("one task in words", TWO, "fix it.md", "# Fix the bug\n\nIt is in `a.py`.\n", "task"),
    Works("a list of things to do", TWO, "todo.md", "# To do\n\n- [ ] one\n- [x] two\n- [ ] three\n", "one three"),
    Works("a task list of spec-kit", FOUR, "tasks.md", TASKS.partition("## Phase 3")[0], "t002 t003 t004 t005 t006"),
    Works(
        "an export of beads",
        FOUR,
        "issues.jsonl",
        json.dumps({"id": "bd-1", "title": "One"}),
        "bd-1",
        ("--from", "beads"),
    ),
    Works(
        "an export of GitHub",
        TWO,
        "issues.json",
        '[{"number": 4, "title": "One", "state": "OPEN"}]',
        "4",
        ("--from", "github"),
    ),
    *(
        (
            Works("phases that do the work", "", "plan.md", front(PHASES_RUN), "one three two"),
            Works("a spec that does the work", "", "plan.md", front("specs:\n  - {id: s, run: touch s.txt}\n"), "s"),
        )
        if LEAVES
        else ()
    ),
)
REFUSED = (
    Refused("a Makefile", TWO, "Makefile", "# build\nall:\n\tcc x.c\n", "Makefile:1:1 this is no Markdown by its name"),
    Refused("a workflow of GitHub", TWO, "ci.yml", "on: push\njobs: {}\n", "ci.yml is YAML, and a plan is Markdown"),
    Refused(
        "a workflow in front matter",
        FOUR,
        "p.md",
        front("jobs:\n  build: {steps: [{run: make}]}\n"),
        'p.md:3:1 unknown key "jobs" (the children of type plan stand under `specs`)',
    ),
    Refused("a README", TWO, "README.md", "# Us\n\nWe are nice.\n", "README.md:1:1 this is no plan by its name"),
    Refused("a log", TWO, "run.log", "12:00 began\n", "run.log:1:1 this is no Markdown by its name"),
    Refused("a list without a heading", TWO, "todo.md", "- one\n", "todo.md:1:1 this has no heading, and no outline"),
    Refused("an export without a word", TWO, "issues.jsonl", "{}\n", "say what it is an export of: --from beads"),
    Refused(
        "no fences",
        TWO,
        "p.md",
        "id: p\ntasks:\n  - a\n",
        "p.md:1:1 `tasks:` on line 2 is not read: this is front matter",
    ),
    Refused("a fence too long", TWO, "p.md", "----\ntasks:\n  - a\n----\n", "is not read: this is front matter"),
    Refused("a fence that is never closed", TWO, "p.md", "---\ntasks: [a]\n", "p.md:1:1 front matter that begins here"),
    Refused("an empty file", TWO, "p.md", "\n", "p.md:1:1 is empty"),
    Refused(
        "an indent too few",
        TWO,
        "p.md",
        front("tasks:\n  - id: a\n   run: x\n"),
        "(indent it by 0 like line 3, or by 4 like",
    ),
    Refused("a tab", TWO, "p.md", front("tasks:\n\t- id: a\n"), "p.md:4:1 a tab cannot indent"),
    Refused("a colon in a title", TWO, "p.md", front("tasks:\n  - title: Fix: it\n"), 'in quotes: - title: "Fix: it")'),
    Refused("a bracket", TWO, "p.md", front("tasks: [a, b\n"), "p.md:3:8 not valid YAML: the [ that begins here"),
    Refused(
        "words of compose",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, depends_on: [b]}\n  - b\n"),
        "it is called `needs` here",
    ),
    Refused(
        "a command",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, command: make}\n"),
        'p.md:4:13 unknown key "command" (it is called `run`',
    ),
    Refused(
        "steps",
        FOUR,
        "p.md",
        front("specs:\n  - {id: a, steps: [x]}\n"),
        "the children of type spec stand under `phases`",
    ),
    Refused("tasks in a plan", FOUR, "p.md", front("tasks: [a]\n"), "the children of type plan are called `specs`"),
    Refused(
        "retries", TWO, "p.md", front("tasks:\n  - {id: a, retries: 3}\n"), "`types.task.max_iterations` in loopr.yml"
    ),
    Refused(
        "a timeout",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, timeout: 10m}\n"),
        "`types.task.timeouts.wall_secs` in loopr.yml",
    ),
    Refused(
        "a type", TWO, "p.md", front("tasks:\n  - {id: a, type: code}\n"), "the level says the type: this is a task"
    ),
    Refused(
        "names as keys",
        TWO,
        "p.md",
        front("tasks:\n  build: {run: make}\n"),
        "write `- id: build` in place of `build:`",
    ),
    Refused(
        "a name before its keys",
        TWO,
        "p.md",
        front("tasks:\n  - build:\n      run: make\n"),
        "write `- id: build`, with the other",
    ),
    Refused(
        "a name before its command",
        TWO,
        "p.md",
        front("tasks:\n  - test: python3 -m pytest -q\n"),
        'p.md:4:5 "test" is no key of an entry, and it has no id or title (write `- {id: test, run: "python3',
    ),
    Refused("a run for the plan", TWO, "p.md", front("run: make\n"), "`run` stands in an entry under `tasks`"),
    Refused("a slip of the pen", TWO, "p.md", front("tasks:\n  - {id: a, nedds: [b]}\n"), 'did you mean "needs"?'),
    Refused(
        "nobody of that name",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, needs: [b]}\n"),
        'p.md:4:21 needs "b", which is not',
    ),
    Refused(
        "a title of two",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, title: T}\n  - {id: b, title: T}\n  - {id: c, needs: [T]}\n"),
        "the title of 2 siblings: a, b",
    ),
    Refused("a circle", TWO, "p.md", front("tasks:\n  - {id: a, needs: [b]}\n  - {id: b, needs: [a]}\n"), "a → b → a"),
    Refused("twice the same", TWO, "p.md", front("tasks: [a, a]\n"), 'two children have the id "a"'),
    Refused(
        "an agent that is none", TWO, "p.md", front("tasks:\n  - {id: a, agent: claud}\n"), "did you mean claude?", 78
    ),
    Refused(
        "an agent that is not here",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, agent: aider}\n"),
        "there is no program aider",
        78,
    ),
    Refused(
        "a project that is none",
        f"{TWO}projects: {{web: {{}}}}\n",
        "p.md",
        "---\nproject: wbe\ntasks: [a]\n---\n# P\n",
        "wbe",
    ),
    Refused(
        "a program that is not here",
        TWO,
        "p.md",
        front("tasks:\n  - {id: a, run: [no-such-tool]}\n"),
        "there is no program no-such-tool",
        78,
    ),
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in a folder with a blank in its name."""
    found = Repo(tmp_path / "a b").found()
    yield found
    found.close()


def prepared(repo: Repo, settings: str, files: Mapping[str, str]) -> Repo:
    """Write settings and files."""
    repo.settings(settings)
    for name, text in files.items():
        (repo.root / name).write_text(text, encoding="utf-8", newline="")
    return repo


@pytest.mark.parametrize("plan", WORKING, ids=lambda plan: plan.name)
def test_a_first_plan_that_works(repo: Repo, plan: Works) -> None:
    """It is driven to its end, and all that it declares has landed."""
    prepared(repo, plan.settings, {plan.file: plan.text})
    repo.loopr("start", *plan.options, plan.file)
    landed = sorted(each["loop"].rpartition("/")[2] for each in repo.events("landed"))
    assert " ".join(landed) == plan.landed
    assert set(repo.statuses().values()) == {"complete"}


@pytest.mark.parametrize("plan", REFUSED, ids=lambda plan: plan.name)
def test_a_first_plan_that_is_refused(repo: Repo, plan: Refused) -> None:
    """It is refused before anything is stored, with the place and what to write."""
    prepared(repo, plan.settings, {plan.file: plan.text})
    ended = repo.loopr("start", *plan.options, plan.file, code=plan.code)
    assert plan.said in ended.err, ended.err
    assert repo.loopr("ls", "--json").document["loops"] == []
    assert not (repo.root / "specs").exists()


@pytest.mark.parametrize(("answer", "taken"), [("y\n", True), ("\n", False)])
def test_a_terminal_is_asked_about_what_may_be_no_plan(repo: Repo, answer: str, taken: bool) -> None:
    """On a terminal the person says whether it is one; no is the default."""
    prepared(repo, TWO, {"notes.md": "Fix the bug in a.py.\n"})
    said = typed(repo, answer, "start", "--no-run", "notes.md")
    assert "notes.md:1:1 this has no heading, and no outline: all of it would be one task. Go on?" in said
    assert ("notes/task" in repo.statuses()) is taken
