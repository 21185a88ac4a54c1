"""Plans that may be none: asked about where there is a person, refused where there is not."""

from __future__ import annotations

import pytest

from tests.ui.scenes import Desk, flat

TWO_LEVELS = "version: 1\ntypes: {plan: {child: code}, code: {run: make code, check: none}}\n"
FENCELESS = "id: p\nspecs:\n  - id: a\n    run: make\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "plan.md",
            "id: p\ntitle: T\n\nDo it.\n",
            "plan.md:1:1 `id:` at the top is not read: it looks like front matter",
        ),
        (
            "plan.md",
            "just some words\n",
            "plan.md:1:1 this has no heading, and no outline: all of it would be one task",
        ),
        ("README.md", "# My project\n\n- nice\n", "README.md:1:1 this is no plan by its name"),
        ("Makefile", "# build\nall:\n\tmake x\n", "Makefile:1:1 this is no Markdown by its name"),
        ("run.log", "2026 started\n", "run.log:1:1 this is no Markdown by its name"),
    ],
)
def test_a_file_that_is_no_plan(desk: Desk, name: str, text: str, said: str) -> None:
    """It is refused off a terminal with what would make it one, foretold by a dry run, and taken with --yes."""
    desk.write("loopr.yml", TWO_LEVELS)
    path = desk.write(name, text)
    answer = desk("start", "--no-run", path)
    assert (answer.code, said in answer.err, "--yes takes it as it is" in answer.err) == (2, True, True), answer
    assert desk("ls", "--json").document["loops"] == []
    assert f"it would ask: {said}" in desk("start", "--dry-run", path).err
    assert desk("start", "--no-run", "--yes", path).code == 0
    assert ": nothing has changed\n" in desk("start", "--no-run", path).err


@pytest.mark.parametrize("before", ["", "# Title\n\n", "\n---\n", "----\n", "***\n"])
def test_fences_that_were_forgotten(desk: Desk, before: str) -> None:
    """An outline as keys and values that nothing would read is refused at its place, also with --yes."""
    path = desk.write("plan.md", before + FENCELESS + "---\n# P\n")
    line = 2 + before.count("\n")
    answer = desk("start", "--no-run", "--yes", path)
    assert answer.code == 2
    assert f"plan.md:{line - 1}:1 `specs:` on line {line} is not read: this is front matter, without" in answer.err
    assert "put a line `---` before it, as the first of the file" in answer.err


def test_an_answer_in_a_chat(desk: Desk) -> None:
    """Front matter inside a block of code is refused with the line of the block; an example further down is not."""
    block = f"```markdown\n---\n{FENCELESS}---\n# P\n```\n"
    answer = desk("start", "--no-run", "--yes", desk.write("plan.md", f"\n{block}"))
    assert (answer.code, "plan.md:2:1 this is front matter inside a block of code" in answer.err) == (2, True)
    assert desk("start", "--no-run", desk.write("p.md", f"# P\n\n{block}")).code == 0


@pytest.mark.parametrize(
    "text", [flat(["a"]), "# Fix the bug\n\nIt is in `a.py`.\n", "## Tasks\n- a\n", "---\nid: x\n---\nwords\n"]
)
def test_what_is_a_plan(desk: Desk, text: str) -> None:
    """A heading, an outline or front matter is enough."""
    desk.write("loopr.yml", TWO_LEVELS)
    text = text.replace("specs", "tasks").replace("Specs", "Tasks")
    assert desk("start", "--no-run", desk.write("p.md", text)).code == 0


def test_plain_words_for_a_command(desk: Desk) -> None:
    """Where the plan's own type has a command, which writes the outline, words without a heading are enough."""
    desk.write("loopr.yml", "version: 1\ntypes: {plan: {run: make plan}}\n")
    assert desk("start", "--no-run", desk.write("p.md", "Add sign-in, please.\n")).code == 0
    assert desk("start", "--no-run", desk.write("q.md", FENCELESS)).code == 2
    assert desk("start", "--no-run", desk.write("Makefile", "all:\n")).code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "---\nid: p\n---\n# P\n\n- [ ] one\n",
            "the checklist on line 6 declares nothing: put it under a heading `## Tasks`",
        ),
        ("# P\n### Tasks\n- one\n", "`### Tasks` on line 2 opens no outline here: write `## Tasks`"),
        ("# P\n## Tasks\n### one\nwords\n", ""),
        (
            "# P\n## Tasks\nwords\n#### one\n",
            "`## Tasks` on line 2 has no list below it: write `### one` in place of `#### one`",
        ),
        (
            "# P\n## Tasks\n#### one\n- run: make\n#### two\n- run: make\n",
            "`## Tasks` on line 2 has no list below it: write `### one` in place of `#### one`",
        ),
        ("# P\n## Specs\n- one\n", "`## Specs` on line 2 opens no outline here: write `## Tasks`"),
        ("# P\n## Implementation tasks:\n- one\n", "`## Implementation tasks:` on line 2 opens no outline here"),
        ("# P\n## Notes\n- one\n", ""),
        (
            "## One\n\n```sh\nmake one\n```\n\n## Two\nwords\n",
            "`## One` on line 1 is no task, for all of this file is one",
        ),
        ("# One\n- a\n- b\n\n# Two\n", "`# One` on line 1 is no task"),
        ("---\nid: p\n---\n# P\n## Context\n### One\n\n### Two\n", "`### One` on line 6 is no task"),
        ("# P\n\n1. one\n2. two\n", "the list on line 3 declares nothing, for all"),
        ("# P\n\n| task | how |\n|---|:-:|\n| a | b |\n", "the table on line 3 declares nothing, for all"),
        ("# P\n\n- one\n- two\n\n## A\n\n## B\n", "the list on line 3 declares nothing"),
        ("# P\n\n## Next steps:\n- one\n", "`## Next steps:` on line 3 opens no outline here"),
        ("# P\n\n## Steps\n\nwords\n", ""),
        ("# P\n\nwords\n- one\n", ""),
        ("# P\n\n```\n- one\n- two\n## A\n## B\n```\n", ""),
        ("---\nid: p  # one\n# two\n# three\n---\n# P\nwords\n", ""),
        (
            "---\ntasks: [a]\n---\n# P\n## Tasks\n- one\n",
            "plan.md:6:1 this list is not read: the front matter declares",
        ),
    ],
)
def test_a_list_that_nobody_reads(desk: Desk, text: str, said: str) -> None:
    """A list that was most likely meant as the outline is remarked on, with what would make it one."""
    desk.write("loopr.yml", TWO_LEVELS)
    told = desk("start", "--dry-run", desk.write("plan.md", text)).err
    remarks = [line.strip() for line in told.splitlines() if " on line " in line or "is not read" in line]
    assert [line[: len(said)] for line in remarks] == [said] * bool(said), told


def test_a_text_that_another_reads(desk: Desk) -> None:
    """Headings and lists are not remarked on where a command or a person writes what is below."""
    text = "# P\n\n1. one\n2. two\n\n## A\n## B\n"
    for settings in ("version: 1\n", TWO_LEVELS.replace("code}", "code, run: make plan}")):
        desk.write("loopr.yml", settings)
        told = desk("start", "--dry-run", desk.write("plan.md", text)).err
        assert " on line " not in told, told


def test_a_remark_when_a_plan_is_stored(desk: Desk) -> None:
    """A start that drives nothing says too that a list is not read."""
    desk.write("loopr.yml", TWO_LEVELS)
    told = desk("start", "--no-run", desk.write("plan.md", "# P\n\n1. one\n2. two\n")).err
    assert "the list on line 3 declares nothing" in told
