"""Checklists that are started as they are: each open box becomes a loop of the last type."""

from __future__ import annotations

import pytest

from tests.ui.scenes import Desk
from tests.ui.test_ticked import TWO_LEVELS, ids

LIST = """\
# To do

Some words.

- [ ] Fix the login
  It fails on `Safari`.
  - [ ] with a test

## Search
- [x] Index
1. [ ] **Order results** by how good they are
- a remark
* [ ] Fix the login

```
- [ ] an example
```
"""


def test_each_open_box_is_a_loop(desk: Desk) -> None:
    """Headings group them, what is below a box is its text, and nothing waits for anything; on paper too."""
    path = desk.write("todo.md", LIST)
    said = "plan specs/todo/plan.md, taken from todo.md; 1 is closed, and left out\n"
    assert desk("start", "-n", path).err.startswith(said)
    told = desk("start", "--no-run", path)
    assert (told.code, told.err.startswith(said.replace("plan specs", "wrote specs"))) == (0, True), told
    assert "types.code has no command and no agent" in told.err
    assert [each for each in ids(desk) if each.count("/") == 3] == [
        "todo/spec/phase/fix-the-login",
        "todo/spec/search/order-results",
        "todo/spec/search/fix-the-login-2",
    ]
    plan = (desk.folder / "specs/todo/plan.md").read_text()
    assert r"It fails on `Safari`.\n- [ ] with a test" in plan
    assert ("needs" not in plan, "an example" not in plan) == (True, True)


def test_items_without_a_box_are_told(desk: Desk) -> None:
    """One that stands among boxes is left out and told with its line; notes below a heading of their own are not."""
    notes = "\n## Notes\n\n- see the wiki\n"
    path = desk.write(
        "todo.md", f"---\ntags: [x]\n---\n# To do\n\n- [ ] one\n  - with a test\n- two\n- [?] three\n{notes}"
    )
    told = [line.strip() for line in desk("start", "-n", path).err.splitlines() if "is left out" in line]
    assert told == [
        "line 8 is left out, since it has no box: write `- [ ] two`",
        "line 9 is left out, since it has no box: write `- [ ] three`",
    ]
    tasks = desk.write("tasks.md", f"# Tasks\n\n- [ ] T001 one\n- [ ] two\n{notes}")
    told = [line.strip() for line in desk("start", "-n", tasks).err.splitlines() if "is left out" in line]
    assert told == ["line 4 is left out, since it has no box with a number: write `- [ ] T001 two`"]


def test_keys_below_a_box_are_told(desk: Desk) -> None:
    """What would be a key of an entry is text of a box here, and told with its line; words and code are not."""
    text = "# P\n- [ ] one\n  - run: make\n  Needs: two\n  ```\n  - run: make\n  ```\n- [ ] two\n  run it\nrun: no\n"
    told = desk("start", "-n", desk.write("todo.md", text)).err
    assert [line.strip() for line in told.splitlines() if "text of its box" in line] == [
        "`run:` on line 3 is read as text of its box; in front matter it counts: `run: ...` beside its title",
        "`Needs:` on line 4 is read as text of its box; in front matter it counts: `needs: ...` beside its title",
    ]


def test_a_newer_checklist(desk: Desk) -> None:
    """A box that is ticked off before its work was done is gone, and no other is called otherwise for it."""
    desk.write("loopr.yml", TWO_LEVELS.replace("make it", "make it, check: none"))
    path = desk.write("docs/my list.md", LIST)
    assert "no command" not in desk("start", "--no-run", path).err
    assert ids(desk) == ["my-list", "my-list/fix-the-login", "my-list/order-results", "my-list/fix-the-login-2"]
    path.write_text(LIST.replace("- [ ] Fix", "- [x] Fix", 1))
    told = desk("start", "--no-run", path)
    assert (told.code, "1 gone" in told.err) == (0, True), told
    assert ids(desk) == ["my-list", "my-list/order-results", "my-list/fix-the-login-2"]
    again = desk("start", "--no-run", path).err
    assert "my-list: nothing has changed\n" in again


def test_what_was_done_stays(desk: Desk) -> None:
    """A box that is ticked off once its work was done keeps the loop with it."""
    path = desk.write("todo.md", LIST)
    assert desk("start", "--no-run", path).code == 0
    desk.write("specs/todo/spec/phase/fix-the-login/code.md", "# Done by hand\n")
    assert desk("start", "--no-run", path).code == 0
    path.write_text(LIST.replace("- [ ] Fix", "- [x] Fix", 1))
    assert desk("start", "--no-run", path).code == 0
    assert desk.loop("todo/spec/phase/fix-the-login").status.value == "complete"


@pytest.mark.parametrize(
    ("name", "settings", "text", "said"),
    [
        ("a.md", TWO_LEVELS, "- [x] one\n", "a.md has nothing that is open"),
        ("a.md", TWO_LEVELS, "- [ ] one (needs x)\n", "`(needs x)` of one is not read: a box waits for nothing"),
        ("a.md", TWO_LEVELS, "- [ ] one (after x)\n", "`(after x)` of one-after-x is not read: a box waits for"),
        ("README.md", TWO_LEVELS, LIST, "this is no plan by its name"),
        ("a.md", TWO_LEVELS.replace("task}", "task, run: make plan}"), LIST, "to-do: 1 new"),
        ("a.md", TWO_LEVELS, "id: p\ntitle: T\n\n- [ ] one\n", "it looks like front matter"),
        ("a.md", TWO_LEVELS, "# P\n## Tasks\n- [ ] one\n- [ ] two\n", "p: 3 new"),
        ("a.md", TWO_LEVELS, "- [ ] one\n\n    - [ ] two\n", "a: 2 new"),
    ],
)
def test_what_is_taken_as_before(desk: Desk, name: str, settings: str, text: str, said: str) -> None:
    """A file with an outline, one of another kind, and words for the plan's own command are no checklists."""
    desk.write("loopr.yml", settings)
    told = desk("start", "--no-run", desk.write(name, text))
    assert said in told.err, told


@pytest.mark.parametrize(
    "front", ["name: my list", "tags: [home]\ndate: 2026-01-01", "aliases:\n  - mine\nstatus: open"]
)
def test_a_checklist_with_front_matter_of_others(desk: Desk, front: str) -> None:
    """Keys of other programs at the top of a checklist are passed over."""
    path = desk.write("mine.md", f"---\n{front}\n---\n{LIST}")
    told = desk("start", "--no-run", path)
    assert "wrote specs/mine/plan.md, taken from mine.md" in told.err, told
    assert desk.loop("mine").title == "To do"


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("id: a\nname: x", "it is called `title` here; --from checklist takes its boxes"),
        ("titel: x", 'did you mean "title"? --from checklist takes its boxes'),
    ],
)
def test_a_checklist_that_may_be_a_plan(desk: Desk, front: str, said: str) -> None:
    """Front matter with a key of ours, or nearly one, is refused, and the option named."""
    path = desk.write("a.md", f"---\n{front}\n---\n{LIST}")
    told = desk("start", "--no-run", path)
    assert (told.code, said in told.err) == (2, True), told
    assert desk("start", "--no-run", "--from", "checklist", path).code == 0
    outline = desk.write("b.md", f"---\n{front}\n---\n# B\n## Specs\n- [ ] one\n")
    assert "--from checklist" not in desk("start", "--no-run", outline).err


def test_a_plan_with_a_checklist_that_was_started_before(desk: Desk) -> None:
    """It goes on as the plan that it is, also where boxes are added to its words."""
    desk.write("loopr.yml", TWO_LEVELS)
    path = desk.write("p.md", "# P\n\nDo it.\n")
    assert desk("start", "--no-run", path).code == 0
    path.write_text("# P\n\nDo it.\n\n- [ ] with tests\n")
    told = desk("start", "--no-run", path)
    assert (told.code, ids(desk)) == (0, ["p", "p/task"]), told
    assert "the checklist on line 5 declares nothing" in told.err


def test_two_checklists_of_one_name(desk: Desk) -> None:
    """The second is refused, and gets a name of its own by --id."""
    desk.write("loopr.yml", TWO_LEVELS)
    assert desk("start", "--no-run", desk.write("a/todo.md", LIST)).code == 0
    other = desk.write("b/todo.md", LIST)
    assert "--id NAME gives this list another place" in desk("start", "--no-run", other).err
    assert desk("start", "--no-run", "--from", "checklist", "--id", "mine", other).code == 0
    assert "mine/fix-the-login" in ids(desk)
