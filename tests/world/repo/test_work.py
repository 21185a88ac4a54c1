"""What a loop has made of its plan has one digest, whatever its plan has landed meanwhile."""

from __future__ import annotations

from pathlib import Path

from loopr.world.repo.landing import take_over
from loopr.world.repo.work import Work, work_of
from tests.world.repo.grounds import PLAN, begin, ground_of, plant, stands, try_to_land, work

ONE, TWO = "oauth.one.g1", "oauth.two.g1"


def test_equal_work_has_an_equal_digest(tmp_path: Path) -> None:
    """Another path, content or mode is other work; the same of it again is the same, and what was there before too."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    tip = stands(ground, PLAN)

    def said(files: dict[str, str], handed_over: bytes = b"") -> str:
        work(ground, ONE, files)
        return work_of(ground, ONE, tip, handed_over).digest

    first = said({"one.txt": "1\n"})
    assert said({"one.txt": "1\n"}) == first
    assert said({"one.txt": "2\n"}) != first
    assert said({"one.txt": "1\n"}) == first
    assert said({"one.txt": "1\n"}, b"an artifact") not in ("", first)
    tree = work(ground, ONE, {"one.txt": "1\n"})
    (tree.folder / "one.txt").chmod(0o755)
    assert said({}) != first
    assert work_of(ground, ONE, "", b"") == Work()


def test_what_the_plan_lands_is_not_the_loops_work(tmp_path: Path) -> None:
    """The digest of a loop's own change stays the same when it takes over what others have landed."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    work(ground, ONE, {"one.txt": "1\n"})
    before = work_of(ground, ONE, stands(ground, PLAN)).digest
    work(ground, TWO, {"two.txt": "2\n"})
    assert try_to_land(ground, TWO)
    tip = stands(ground, PLAN)
    assert work_of(ground, ONE, tip).digest == before
    assert take_over(ground, ONE, tip, 0).outcome == "moved"
    assert work_of(ground, ONE, tip).digest == before
