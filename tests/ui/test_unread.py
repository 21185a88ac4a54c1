"""Where no engine runs, each view tells of an edit that would have work done again."""

from __future__ import annotations

import pytest

from tests.ui.scenes import Desk

LADDER = "types:\n  plan: {child: spec}\n  spec: {child: job}\n  job: {run: make job}\n"
PLAN = "---\nid: p\nspecs: [{id: s, jobs: [{id: a, run: make a}]}]\n---\n# P\n"
SPEC = "specs/p/s/spec.md"
DIFFERS = f"{SPEC} differs from what was read"
SHOWING = ("tree", "ls", "status", "show p/s", "why p/s/a", "next")


@pytest.fixture
def done(desk: Desk) -> Desk:
    """Give a workspace in which a plan is done."""
    desk.write("loopr.yml", LADDER)
    desk.start(PLAN)
    assert desk.choose() == ["p/s/a"]
    desk.land("p/s/a")
    desk.write("specs/p/s/a/job.md", "")
    return desk


def unread(desk: Desk, line: str) -> list[str]:
    """Say what a verb tells of files that differ."""
    return [each["text"] for each in desk(*line.split(), "--json").document["unread"]]


def specs(desk: Desk) -> list[str]:
    """Say what doctor finds of the artifacts, with its word for how bad that is."""
    lines = desk("doctor").out.splitlines()
    return [" ".join(each.split()) for each in lines if each.split()[1:2] == ["specs"]]


def test_an_edit_of_what_is_done_is_told_everywhere(done: Desk) -> None:
    """A part that is done has work that is done again by an edit: all views say so."""
    assert [unread(done, line) for line in SHOWING] == [[]] * len(SHOWING)
    done.write(SPEC, (done.folder / SPEC).read_text("utf-8").replace("make a", "make b"))
    assert [unread(done, line) for line in SHOWING] == [[DIFFERS]] * len(SHOWING)
    assert f"note specs {DIFFERS}" in specs(done)
    assert [each["id"] for each in done("next", "--json").document["grants"]] == ["p/s/a"]


def test_a_slip_in_what_is_done_is_wrong(done: Desk) -> None:
    """Doctor says what is wrong with an edited part that is done, with its line."""
    done.write(SPEC, "---\njobs: [\n---\n")
    assert any(each.startswith(f"wrong specs {SPEC}:3:1 ") for each in specs(done)), specs(done)
    assert unread(done, "status") == [DIFFERS]


def test_what_is_done_may_be_cleared_away(done: Desk) -> None:
    """That the file of a part that is done is gone has nothing done again, and is no news."""
    (done.folder / SPEC).unlink()
    assert unread(done, "status") == unread(done, "next") == []
