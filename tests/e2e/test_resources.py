"""Named resources with a real engine: never more at once than there is, and loops are told what there is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

OFFER = "resources: {simulator: 1, db: 2}\n"
TYPES = "types:\n  plan: {{child: phase}}\n  phase: {{child: task, run: '{phase}'}}\n  task: {{{task}}}\n"
ROOM = "concurrency: {max_loops: 8}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository of its own."""
    with opened(tmp_path) as found:
        yield found.found()


def test_who_has_it_has_it_until_the_check_has_ended(repo: Repo) -> None:
    """Of all that want it one works or is judged at a time, beside those that do not; who waits is told who has it."""
    check = repo.script("check", "begin; tell judged; wait_at gate; end")
    free = repo.script("free", "begin; tell free; wait_at gate; end")
    task = repo.script("task", "begin; end")
    own = f"{{run: '{task}', check: '{check}', resources: {{simulator: 1}}}}"
    repo.settings(f"{OFFER}{ROOM}types:\n  plan: {{child: task}}\n  task: {own}\n")
    entries = f"[{{id: a}}, {{id: b}}, {{id: c}}, {{id: d, run: '{free}', resources: {{}}}}]"
    repo.write({"plan.md": f"---\nid: p\ntasks: {entries}\n---\n"})
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    waits = {each["id"]: each["gates"][0] for each in repo.loops().values() if each["status"] == "pending"}
    assert waits["p/b"]["gate"] == "resource"
    assert waits["p/b"]["reason"] == "resource simulator: 1 of 1 held by p/a"
    assert repo.loopr("status", "--json").document["resources"]["simulator"]["by"] == ["p/a"]
    assert "simulator: 1 of 1 held by p/a" in repo.loopr("status").out
    gate.open()
    process.ended()
    assert repo.most_at_once(lambda loop: loop != "p/d") == 1
    assert repo.most_at_once() > 1


def test_an_outline_that_names_what_is_not_there_is_handed_back(repo: Repo) -> None:
    """A loop that names a resource which nobody offers is told so, with the name that is most like it."""
    outline = "---\\ntasks: [{id: x, title: X, resources: {%s: 1}}]\\n---\\n# Q\\n"
    name = "test $LOOPR_ITERATION = 1 && name=simulater || name=simulator"
    phase = repo.script("phase", f'{name}; printf -- "{outline}" $name > "$LOOPR_OUTPUT"')
    task = repo.script("task", "say $LOOPR_LOOP")
    repo.settings(OFFER + ROOM + TYPES.format(phase=phase, task=f"run: '{task}'"))
    repo.write({"plan.md": "---\nid: p\nphases: [{id: a}]\n---\n"})
    repo.loopr("start", "plan.md")
    refused = repo.events("refused")
    assert [each["loop"] for each in refused] == ["p/a"]
    assert "resources.simulater: the settings offer none" in refused[0]["data"]["reason"]
    assert repo.diary() == ["p/a/x"]


def test_a_plan_that_names_what_is_not_there_is_refused(repo: Repo) -> None:
    """A plan is refused with the line of what nobody offers; what is taken back later is told, and mended by a line."""
    task = repo.script("task", "say $LOOPR_LOOP")
    types = f"types:\n  plan: {{child: task}}\n  task: {{run: '{task}'}}\n"
    repo.settings(OFFER + types)
    repo.write({"plan.md": "---\nid: p\ntasks:\n  - {id: a, resources: {databse: 1}}\n---\n"})
    ended = repo.loopr("start", "plan.md", code=2)
    assert "plan.md:4:24 resources.databse: the settings offer none" in ended.err
    repo.write({"plan.md": "---\nid: p\ntasks:\n  - {id: a, resources: {db: 2}}\n---\n"})
    repo.loopr("start", "--no-run", "plan.md")
    repo.settings(types)
    repo.loopr("run", code=1)
    assert "the settings offer none" in " ".join(repo.loopr("why", "p/a").out.split())
    (row,) = repo.loopr("status", "--json").document["inbox"]
    assert (row["about"], row["command"]) == (["p/a"], "loopr set resources.db 2")
    repo.loopr("set", "resources.db", "2")
    repo.loopr("run")
    assert repo.diary() == ["p/a"]
