"""What a loop or a plan has changed, as git tells it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from loopr.core.model import Failure
from loopr.world.repo import commits, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Message, Worktree
from tests.ui.calls import git, loopr, this_tree
from tests.ui.scenes import Desk, flat


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give the repository of a workspace in which p/a and p/b are leased and run."""
    (shop.folder / "a.txt").write_text("one\n")
    git(shop.folder, "add", "a.txt")
    git(shop.folder, "commit", "--quiet", "--message=a")
    shop.start(flat(["a", "b"]))
    shop.choose()
    for each in ("p/a", "p/b"):
        shop.run(each)
    return shop.branch()


def work(ground: Ground, loop: str, files: dict[str, str | bytes]) -> Worktree:
    """Take the worktree of a loop, write files, and commit them as the engine does."""
    name = f"{loop.replace('/', '.')}.g1"
    tree = worktrees.take(ground, name, git(ground.common, "rev-parse", "refs/heads/loopr/p"))
    for path, text in files.items():
        (tree.folder / path).write_bytes(text.encode() if isinstance(text, str) else text)
    commits.commit_attempt(ground, name, 1, Message(f"Work of {loop}", at_ms=1))
    return tree


def landed(shop: Desk, ground: Ground, loop: str) -> str:
    """Land what a loop has committed, as the engine does, and return the commit."""
    return shop.bring_home(ground, loop, Message("x", trailers=(("Loopr-Loop", loop),)))


def test_a_loop_that_has_not_landed(shop: Desk, ground: Ground) -> None:
    """What a loop has committed is shown against the place where it parted from its plan, whatever came there since."""
    work(ground, "p/a", {"a.txt": "one\ntwo\n"})
    work(ground, "p/b", {"b.txt": "b\n"})
    landed(shop, ground, "p/b")
    answer = shop("diff", "a")
    assert [line for line in answer.out.splitlines() if line[:1] in "+-"] == ["--- a/a.txt", "+++ b/a.txt", "+two"]
    assert answer.err == "try 1 is at work: what it has not committed is not shown\n"
    shop.end("p/a", Failure.REFUSED, "no")
    assert shop("diff", "a").err == ""


def test_what_a_person_has_put_on_the_plan(shop: Desk, ground: Ground) -> None:
    """A loop that has taken over a commit of a person's that the plan adopted does not show it as its own."""
    git(shop.folder, "checkout", "--quiet", "loopr/p")
    (shop.folder / "hers.txt").write_text("hers\n")
    git(shop.folder, "add", "hers.txt")
    git(shop.folder, "commit", "--quiet", "--message=hers")
    git(shop.folder, "checkout", "--quiet", "main")
    assert shop("adopt", "p").code == 0
    work(ground, "p/a", {"a.txt": "two\n"})
    assert [row["path"] for row in shop("diff", "a", "--json").document["files"]] == ["a.txt"]


def test_a_landed_loop_and_its_plan(shop: Desk, ground: Ground) -> None:
    """A landed loop is shown as the one commit it became, a plan as all that has landed since its base."""
    for loop, file in (("p/a", "new.txt"), ("p/b", "b.txt")):
        work(ground, loop, {file: "x\n"})
        landed(shop, ground, loop)
    assert shop.lines("diff", "a", "--stat") == [
        " new.txt | 1 +",
        " 1 file changed, 1 insertion(+)",
    ]
    (shop.folder / "a.txt").write_text("meanwhile\n")
    git(shop.folder, "commit", "--quiet", "--all", "--message=meanwhile")
    assert [row["path"] for row in shop("diff", "p", "--json").document["files"]] == ["b.txt", "new.txt"]


def test_a_loop_that_had_nothing_to_land(shop: Desk, ground: Ground) -> None:
    """A loop that changed nothing landed on another's commit, which is not shown as its own."""
    work(ground, "p/b", {"b.txt": "x\n"})
    commit = landed(shop, ground, "p/b")
    work(ground, "p/a", {})
    assert landed(shop, ground, "p/a") == commit
    assert shop("diff", "a") == (0, "", "p/a had nothing to land\n")


def test_nothing_landed_on_a_persons_commit(shop: Desk, ground: Ground) -> None:
    """A first loop that changed nothing landed where its plan began: that commit of a person's is not its change."""
    work(ground, "p/a", {})
    assert landed(shop, ground, "p/a") == git(shop.folder, "rev-parse", "main")
    assert shop("diff", "a") == (0, "", "p/a had nothing to land\n")


def test_nothing_to_show_is_said(shop: Desk, ground: Ground) -> None:
    """A loop and a plan without a change say so, and where there may be one that is not committed."""
    work(ground, "p/a", {})
    shop.end("p/a", Failure.CONFIG, "no")
    assert shop("diff", "a") == (
        0,
        "",
        "nothing is committed on the branch of p/a that its plan lacks; `loopr shell p/a` looks at what lies in its"
        " worktree\n",
    )
    assert shop("diff", "p") == (0, "", "nothing has landed on the branch of p yet\n")


def test_as_json(shop: Desk, ground: Ground) -> None:
    """As JSON there are both commits, the lines of each file, and the text unless only the count is wanted."""
    work(ground, "p/a", {"a.txt": "two\n", "odd\tname.bin": b"\0\xff"})
    body = shop("diff", "a", "--json").document
    assert body["files"] == [
        {"path": "a.txt", "added": 1, "removed": 1},
        {"path": "odd\tname.bin", "added": None, "removed": None},
    ]
    assert (body["id"], body["from"]) == ("p/a", git(shop.folder, "rev-parse", "main"))
    assert body["to"] == git(shop.folder, "rev-parse", "loopr/p.a.g1")
    assert "+two" in body["diff"]
    assert shop("diff", "a", "--stat", "--json").document["diff"] is None


def test_what_has_no_branch(shop: Desk) -> None:
    """A plan and a loop that never ran, and one that was complete at once, each say why there is nothing to show."""
    shop.start("---\nid: p\nspecs:\n  - id: a\n    phases: [{id: x}]\n---\n")
    for loop, words in (("p", "p has no branch yet"), ("x", "it is waiting"), ("p/a", "it is done without any")):
        answer = shop("diff", loop)
        assert (answer.code, words in answer.err) == (3, True), answer


def test_colours_on_a_terminal(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git paints the change where a person reads it on a terminal, and nowhere else, nor where no colour is wanted."""
    work(ground, "p/a", {"a.txt": "two\n"})
    assert "\x1b" not in shop("diff", "a").out
    assert b"\x1b[32m+" in on_terminal(shop.folder, "diff", "a")
    assert b"\x1b" not in on_terminal(shop.folder, "diff", "a", "--no-color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert b"\x1b" not in on_terminal(shop.folder, "diff", "a")


def on_terminal(folder: Path, *arguments: str) -> bytes:
    """Run this tree's program with a terminal for its output, and return what it wrote there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "loopr", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, env=this_tree()):
        os.close(theirs)
        said = b""
        with suppress(OSError):  # that is how a terminal ends
            while part := os.read(ours, 4096):
                said += part
    os.close(ours)
    return said


def test_programs_of_the_settings_are_not_run(shop: Desk, ground: Ground, tmp_path: Path) -> None:
    """A repository's own diff programs are not started by whoever only reads."""
    work(ground, "p/a", {"a.txt": "two\n", ".gitattributes": "*.txt diff=x\n"})
    git(shop.folder, "config", "diff.external", f"touch {tmp_path}/ran; echo")
    git(shop.folder, "config", "diff.x.textconv", f"touch {tmp_path}/ran; cat")
    assert "+two" in shop("diff", "a").out
    assert not (tmp_path / "ran").exists()


def test_without_a_repository(tmp_path: Path) -> None:
    """Where there is no git there is no change to show, and no crash."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "plan.md").write_text(flat(["a"]))
    assert loopr("start", "-C", tmp_path, "--no-run", tmp_path / "plan.md").code == 0
    answer = loopr("diff", "-C", tmp_path, "a")
    assert (answer.code, "in no repository" in answer.err) == (78, True)
