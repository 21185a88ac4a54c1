"""Items that are ticked off in a plan of headings: left out where they are no loops yet, and else left alone."""

from __future__ import annotations

from tests.ui.scenes import Desk

TWO_LEVELS = "version: 1\ntypes: {plan: {child: task}, task: {run: make it}}\n"
PLAN = "# P\n\n## Tasks\n- [x] plan it: Plan it\n- [ ] build: Build it\n  - Needs: plan it\n- [ ] ship: Ship it\n"
PLAN = PLAN.replace("plan it: Plan it", "Plan it")


def ids(desk: Desk) -> list[str]:
    """Return the ids of all loops."""
    return [each["id"] for each in desk("ls", "--json").document["loops"]]


def test_what_is_ticked_off_does_not_run(desk: Desk) -> None:
    """It is no loop, who needs it waits for nothing, and `start` says so, on paper too; unticked it is work again."""
    desk.write("loopr.yml", TWO_LEVELS)
    path = desk.write("p.md", PLAN)
    assert "1 ticked off, left out: plan-it" in desk("start", "-n", path).err
    told = desk("start", "--no-run", path)
    assert (told.code, "1 ticked off, left out: plan-it" in told.err) == (0, True), told
    assert ids(desk) == ["p", "p/build", "p/ship"]
    assert desk.loop("p/build").needs == ()
    assert desk("doctor").code == 0
    path.write_text(PLAN.replace("[x]", "[ ]"))
    assert desk("start", "--no-run", path).code == 0
    assert ids(desk) == ["p", "p/plan-it", "p/build", "p/ship"]
    assert desk.loop("p/build").needs == ("p/plan-it",)


def test_what_is_ticked_off_later_stays(desk: Desk) -> None:
    """A loop that is there stays as it is when its item is ticked off, and what needs it goes on needing it."""
    desk.write("loopr.yml", TWO_LEVELS)
    path = desk.write("p.md", PLAN.replace("[x]", "[ ]"))
    assert desk("start", "--no-run", path).code == 0
    before = desk.loop("p/plan-it")
    path.write_text(PLAN)
    told = desk("start", "--no-run", path).err
    assert "ticked off" not in told
    assert (desk.loop("p/plan-it"), desk.loop("p/build").needs) == (before, ("p/plan-it",))


def test_a_plan_in_which_all_is_done(desk: Desk) -> None:
    """There is nothing to start, which is said, and nothing is stored."""
    desk.write("loopr.yml", TWO_LEVELS)
    told = desk("start", "--no-run", desk.write("p.md", PLAN.replace("[ ]", "[X]")))
    assert (told.code, "every item is ticked off" in told.err) == (2, True), told
    assert ids(desk) == []
