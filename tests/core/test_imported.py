"""Lists of work from elsewhere: what is read of them, and how it is laid upon the levels of the ladder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopr.core.entries import Entry
from loopr.core.imported import Item, open_items, own_ids, plan_of
from loopr.core.ladder import Ladder
from loopr.core.policy import TypePolicy, default_types
from loopr.core.speckit import is_task_list, read_task_list
from loopr.core.trackers import read_export
from loopr.errors import PlanError
from loopr.world.artifacts import parse_artifact

FOUR = default_types()
TWO = {"plan": TypePolicy("plan", "code"), "code": TypePolicy("code", None)}
THREE = {"plan": TypePolicy("plan", "spec"), "spec": TypePolicy("spec", "code"), "code": TypePolicy("code", None)}
TASKS = """\
# Tasks: Photo albums

- **[P]**: may run beside others

## Phase 1: Setup

**Purpose**: to begin

- [X] T001 Make the folders
- [ ] T002 [P] Lint by config/lint.toml

## Phase 2: Foundations

- [ ] T003 Schema in `src/db/schema.py`
- [ ] T004 [P] Sign-in in src/auth/base.py
  - keep it small
- [ ] T005 [P] Routes
- [ ] T006 Models

## Phase 3: User Story 1 - Albums 🎯

### Tests

- [ ] T007 [P] [US1] A test in tests/test_albums.py

### Work

- [ ] **T008** [US1] The album

## Phase 4: User Story 2 - Sharing

- [ ] T009 [US2] Links

## Phase N: Polish

- [ ] T010 [P] README

```text
- [ ] T999 an example
```
"""


def tree(items: Sequence[Item], types: dict[str, TypePolicy] = FOUR, kept: Sequence[str] = ()) -> dict[str, Any]:
    """Lay items upon a ladder, read the text back, and return the needs of each loop by its way from the plan."""
    left = open_items(items, kept)
    gone = {each.id for each in items} - {each.id for each in left}
    made = plan_of(left, Ladder(types), plan_id="p", title="P", about="About.", gone=gone)
    plan = parse_artifact(made.text.encode(), "p.md", type_name="plan", types=types, fallback_id="x")
    assert plan.id == "p"
    return dict(ways(plan.entries))


def ways(entries: Sequence[Entry], above: str = "") -> Any:
    """Give each entry by its way, with what it needs."""
    for each in entries:
        yield f"{above}{each.id}", each.needs
        yield from ways(each.children, f"{above}{each.id}/")


def export(kind: str, *objects: dict[str, Any]) -> list[Item]:
    """Read objects as one a line."""
    return read_export(kind, "\n".join(map(json.dumps, objects)), "x.jsonl")


def test_a_task_list_of_spec_kit() -> None:
    """Phases follow each other but for those of stories; in a phase a task waits, unless it may run beside others."""
    found = read_task_list(TASKS)
    assert found.title == "Photo albums"
    assert tree(found.items) == {
        "spec": (),
        "spec/phase-1": (),
        "spec/phase-1/t002": (),
        "spec/phase-2": ("phase-1",),
        "spec/phase-2/t003": (),
        "spec/phase-2/t004": ("t003",),
        "spec/phase-2/t005": ("t003",),
        "spec/phase-2/t006": ("t004", "t005"),
        "spec/phase-3": ("phase-2",),
        "spec/phase-3/t007": (),
        "spec/phase-3/t008": ("t007",),
        "spec/phase-4": ("phase-2",),
        "spec/phase-4/t009": (),
        "spec/phase-n": ("phase-3", "phase-4"),
        "spec/phase-n/t010": (),
    }
    by_id = {each.id: each for each in found.items}
    assert by_id["T003"].files == ("src/db/schema.py",)
    assert (by_id["T004"].title, by_id["T004"].body) == ("Sign-in in src/auth/base.py", "- keep it small")
    assert by_id["phase-1"].body == "**Purpose**: to begin"


def test_a_task_list_on_a_flat_ladder() -> None:
    """Where the ladder has no level for phases, what waits for one waits for all of its tasks."""
    found = tree(read_task_list(TASKS).items, TWO)
    assert found["t003"] == ("t002",)
    assert found["t010"] == ("t007", "t008", "t009")


def test_what_is_done_stays_in_its_place() -> None:
    """A task that was ticked off is left out and waited for no more, but stays where it is where it was done here."""
    ticked = TASKS.replace("[ ] T003", "[x] T003")
    assert "spec/phase-2/t003" not in tree(read_task_list(ticked).items)
    assert tree(read_task_list(ticked).items)["spec/phase-2/t004"] == ()
    kept = tree(read_task_list(ticked, ["T003"]).items, kept=["T003"])
    assert kept["spec/phase-2/t004"] == ("t003",)


def test_a_phase_that_is_ticked_off_is_waited_for_no_more() -> None:
    """What follows it waits for the phase before it, as long as something is open there."""
    ticked = TASKS
    for each in ("T003", "T004", "T005", "T006", "T009"):
        ticked = ticked.replace(f"[ ] {each}", f"[x] {each}")
    found = tree(read_task_list(ticked).items)
    assert found["spec/phase-3"] == ("phase-1",)
    assert found["spec/phase-n"] == ("phase-3",)


@pytest.mark.parametrize("line", ["T001: Write it", "T001 - Write it", "**T001** [P] [US1] Write it", "T001. Write it"])
def test_how_a_task_is_written(line: str) -> None:
    """What stands between a task's number and its words is no part of them."""
    assert [each.title for each in read_task_list(f"## Phase 1\n- [ ] {line}\n").items[1:]] == ["Write it"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TASKS, True),
        ("- [ ] T1 a\n", True),
        ("- [ ] Take it\n", False),
        ("---\nid: x\n---\n- [ ] T001 a\n", False),
        ("", False),
    ],
)
def test_how_a_task_list_is_told(text: str, told: bool) -> None:
    """It has tasks with numbers, and no front matter."""
    assert is_task_list(text) is told


def test_an_export_of_beads() -> None:
    """Blockers are needs, parents are groups, and what is closed or no work is left out; P0 goes before P2."""
    edge = {"type": "blocks"}
    items = export(
        "beads",
        {"id": "bd-1", "title": "Sign-in", "issue_type": "epic", "status": "open"},
        {"id": "bd-1.1", "title": "Store", "priority": 0, "description": "Hashed.", "design": "One table."},
        {"id": "bd-9", "title": "Route", "priority": 2, "dependencies": [
            {"depends_on_id": "bd-1.1", **edge}, {"depends_on_id": "bd-1", "type": "parent-child"},
            {"depends_on_id": "bd-8", "type": "related"}]},
        {"id": "bd-2", "title": "After", "dependencies": [
            {"depends_on_id": "bd-1", **edge}, {"depends_on_id": "bd-3", **edge}]},
        {"id": "bd-3", "title": "Old", "status": "closed"},
        {"id": "bd-4", "title": "Ice", "status": "deferred"},
        {"id": "bd-5", "title": "Hello", "issue_type": "message"},
        {"_type": "memory", "key": "x"},
    )  # fmt: skip
    assert tree(items) == {
        "spec": (),
        "spec/bd-1": (),
        "spec/bd-1/bd-1-1": (),
        "spec/bd-1/bd-9": ("bd-1-1",),
        "spec/phase": (),
        "spec/phase/bd-2": ("p/spec/bd-1",),
    }
    by_id = {each.id: each for each in items}
    assert by_id["bd-1.1"].body == "Hashed.\n\nDesign:\n\nOne table."
    assert (by_id["bd-1.1"].priority, by_id["bd-9"].priority) == (20, None)
    assert tree(items, TWO)["bd-2"] == ("bd-1-1", "bd-9")


def test_an_export_of_github() -> None:
    """Numbers are ids; blockers and parents count where they are exported; a pull request is none."""
    text = json.dumps([
        {"number": 3, "title": "Crash", "body": "a\r\nb", "state": "OPEN", "labels": [{"name": "bug"}]},
        {"number": 4, "title": "Part", "state": "OPEN", "parent": {"number": 5},
         "blockedBy": {"nodes": [{"number": 3}]}},
        {"number": 5, "title": "Whole", "state": "OPEN"},
        {"number": 6, "title": "Old", "state": "CLOSED"},
        {"number": 7, "title": "PR", "pull_request": {}},
    ])  # fmt: skip
    items = read_export("github", text, "x")
    assert tree(items, THREE) == {"spec": (), "spec/3": (), "5": (), "5/4": ("p/spec/3",)}


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("Depends on #3.", ("3",)),
        ("It is blocked by #3, #4 and #5, and by #9.", ("3", "4", "5")),
        ("blocked by: #4", ("4",)),
        ("See #3. It depends on a lot, #4 too. Depends on #8.", ()),
    ],
)
def test_what_an_issue_says_in_words(body: str, needs: tuple[str, ...]) -> None:
    """What it says that it waits for counts, what it only mentions does not."""
    issues = [{"number": n, "title": "T", "body": body if n == 8 else "", "state": "OPEN"} for n in (3, 4, 8)]
    assert read_export("github", json.dumps(issues), "x")[2].needs == needs


def test_lines_of_anybody() -> None:
    """`id`, `title`, `body`, `needs`, `parent`, `files`, `priority` and `done` are read, all else is not."""
    items = export(
        "jsonl",
        {"id": "a", "title": "A", "body": "b", "files": ["src/a.py", "../x"], "priority": 5000, "mood": "good"},
        {"id": "B_2", "title": "B", "needs": "a"},
        {"id": "c", "title": "C", "needs": ["B_2", "nobody"], "done": True},
    )
    assert tree(items, TWO) == {"a": (), "b-2": ("a",)}
    assert (items[0].files, items[0].priority) == (("src/a.py",), 1000)
    assert tree(items, TWO, kept=["c"])["c"] == ("b-2",)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("jsonl", '{"id": "a", "title": "A"}\n{"id": \n', "x:2:8 is no JSON"),
        ("jsonl", "words", "x:1:1 is no JSON"),
        ("jsonl", "5", "x:1:1 is no JSON object"),
        ("jsonl", '[{"id": "a", "title": "A"},\n 5]', "holds something that is no object"),
        ("jsonl", '{"id": "a"}', "x:1:1 has no id or no title"),
        ("github", '{"title": "a"}', "x:1:1 has no id or no title (export it with `gh issue list"),
        ("beads", '{"id": "a", "title": "A"}\n{"id": "a", "title": "B"}', 'x:2:1 the id "a" is on line 1 too'),
        ("beads", "[" * 100_000, "x:1:1 is no JSON: it is nested too deep"),
    ],
)
def test_an_export_that_is_refused(kind: str, text: str, said: str) -> None:
    """What is no such export is told of with its line, and with how it is exported."""
    with pytest.raises(PlanError) as caught:
        read_export(kind, text, "x")
    assert said in str(caught.value)
    assert all(each.hint for each in caught.value.problems)


def test_ids_are_kept_where_they_may_be() -> None:
    """An id that is one here stays; any other becomes one, and never that of another item."""
    ids = own_ids([Item("A.1", "x"), Item("a-1", "y"), Item("bd-7", "z"), Item("T001", "t")])
    assert (ids["a-1"], ids["bd-7"], ids["T001"]) == ("a-1", "bd-7", "t001")
    assert ids["A.1"].startswith("a-1-")
    assert len(set(ids.values())) == 4


NAMES = st.sampled_from(["a", "b", "C.1", "d", "e/f", "spec", "phase", "é"])
ITEMS = st.lists(
    st.builds(
        Item,
        NAMES,
        st.text(min_size=1),
        st.text(),
        needs=st.lists(NAMES, max_size=2).map(tuple),
        parent=NAMES | st.just(""),
        closed=st.booleans(),
    ),
    unique_by=lambda item: item.id,
)


@given(ITEMS, st.sampled_from([TWO, THREE, FOUR]), st.sets(NAMES))
def test_any_list_becomes_a_plan_or_is_refused(items: list[Item], types: dict[str, TypePolicy], kept: set[str]) -> None:
    """Every item that is open and holds no other is a loop at the last level, once; only circles are refused."""
    left = open_items(items, kept)
    assume(left)
    try:
        found = tree(items, types, list(kept))
    except PlanError as error:
        assert "cycle" in str(error), error
        return
    depth = len(Ladder(types).levels()) - 1
    last = [way.rpartition("/")[2] for way in found if way.count("/") == depth - 1]
    ids = own_ids(left)
    assert sorted(last) == sorted(ids[each.id] for each in left if not each.group)
