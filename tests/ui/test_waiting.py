"""What waits for a person, shown as a whole, and a word on exactly that."""

from __future__ import annotations

import hashlib

import pytest

from loopr.core import offer_events as f
from loopr.core.model import Status
from loopr.ui.steering import fulfil
from loopr.ui.vocabulary import Wish
from loopr.wiring import Workspace
from loopr.world.repo.ground import Ground
from loopr.world.runs import OUTPUT, Runs
from tests.ui.calls import git
from tests.ui.scenes import COMMANDS, Desk, flat
from tests.ui.test_diff import work

APPROVED = COMMANDS.replace("run: make spec", "run: make spec, approve: true")


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give a repository in which three specs of a plan run, whose work a person must approve."""
    shop.write("loopr.yml", APPROVED)
    shop.start(flat("abc"))
    shop.choose()
    return shop.branch()


def await_word(shop: Desk, ground: Ground, *loops: str) -> None:
    """Bring loops to where they wait for a person, each with a file of its own."""
    for each in loops:
        shop.run(each)
        work(ground, each, {f"{each[-1]}.txt": f"{each}\n"})
        shop.end(each)
        shop.judge(each)


def again(shop: Desk, ground: Ground, loop: str) -> None:
    """Send a loop back, and bring it there once more."""
    assert shop("iterate", loop, "--feedback", "more").code == 0
    assert loop in shop.choose()
    shop.run(loop)
    shop.end(loop)
    shop.judge(loop)


def test_all_that_waits_is_shown(shop: Desk, ground: Ground) -> None:
    """Each diff stands under the id of its loop, with what it hands over, and the number to type is told."""
    await_word(shop, ground, "p/a", "p/b")
    folder = Runs(Workspace(shop.folder).place.state).ensure("p.a.g1", 1)
    (folder / OUTPUT).write_text("# Spec a\n")
    answer = shop("diff", "--waiting", "p")
    heads = [line for line in answer.out.splitlines() if line.startswith("==> ")]
    assert [line.split()[1] for line in heads] == ["p/a", "p/b"]
    assert "+p/a" in answer.out and "+p/b" in answer.out and "+# Spec a" in answer.out
    seq = Workspace(shop.folder).look().seq
    assert answer.err == f"2 loops wait: `loopr approve p --at {seq}` takes exactly what is shown here\n"
    found = shop("diff", "--waiting", "--json").document
    assert found["at"] == seq
    assert [(each["id"], [file["path"] for file in each["files"]]) for each in found["waiting"]] == [
        ("p/a", ["a.txt"]),
        ("p/b", ["b.txt"]),
    ]
    assert found["waiting"][0]["handed_over"].endswith("+# Spec a\n")


def test_nothing_that_waits_is_said(shop: Desk, ground: Ground) -> None:
    """Where nothing waits that is no error; without --waiting a loop must be named."""
    assert shop("diff", "--waiting", "p") == (0, "", "nothing of p waits for a person's word\n")
    assert shop("diff", "--waiting", "--json").document["waiting"] == []
    assert shop("diff").code == 2
    for words in (["approve", "p"], ["iterate", "p", "--feedback", "x"]):
        answer = shop(*words)
        assert (answer.code, "nothing of p waits for your word" in answer.err) == (2, True)


def test_exactly_what_was_shown_is_approved(shop: Desk, ground: Ground) -> None:
    """A word with a number takes what waited then as it was; who came later or has other work stays, and is named."""
    await_word(shop, ground, "p/a", "p/b")
    at = shop("diff", "--waiting", "p", "--json").document["at"]
    again(shop, ground, "p/b")
    await_word(shop, ground, "p/c")
    answer = shop("approve", "p", "--at", str(at))
    assert answer.code == 0
    assert "1 of 3 loops of p approved; 1 has changed since it was shown (p/b), 1 was not shown (p/c)" in answer.err
    assert [shop.loop(f"p/{each}").status for each in "abc"] == [Status.LANDING, Status.AWAITING, Status.AWAITING]


def test_what_leaves_the_work_as_it_is_changes_no_list(shop: Desk, ground: Ground) -> None:
    """A loop that was held meanwhile is as it was shown."""
    await_word(shop, ground, "p/a", "p/b")
    at = shop("diff", "--waiting", "p", "--json").document["at"]
    assert shop("pause", "p/a").code == 0 and shop("resume", "p/a").code == 0
    assert shop("reject", "p", "--at", str(at)).code == 0
    assert shop.loop("p/a").status is Status.FAILED and shop.loop("p/b").status is Status.FAILED


def test_a_loop_that_is_named_itself(shop: Desk, ground: Ground) -> None:
    """A number binds the word on one loop too, and one that is to come is refused."""
    await_word(shop, ground, "p/a")
    at = shop("diff", "--waiting", "a", "--json").document["at"]
    again(shop, ground, "p/a")
    answer = shop("approve", "a", "--at", str(at))
    assert (answer.code, "p/a: it has changed since it was shown" in answer.err) == (2, True)
    answer = shop("approve", "a", "--at", "9999")
    assert (answer.code, "nothing was shown at 9999" in answer.err) == (2, True)
    assert shop.loop("p/a").status is Status.AWAITING


def test_a_change_between_the_look_and_the_word(shop: Desk, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while a word with a number is on its way stays too."""
    await_word(shop, ground, "p/a", "p/b")
    workspace = Workspace(shop.folder, actor="ada")
    at = workspace.look().seq
    real = Workspace.turn

    def turn(self: Workspace) -> object:
        monkeypatch.setattr(Workspace, "turn", real)
        again(shop, ground, "p/b")
        return real(self)

    monkeypatch.setattr(Workspace, "turn", turn)
    answer = fulfil(workspace, Wish("approve", ("p",), {"at": at}))
    assert [each["id"] for each in answer.done] == ["p/a"]
    assert ("p/b", "it has changed since it was shown") in answer.groups[0].left


def test_a_file_that_came_since_nothing_has_looked(shop: Desk, ground: Ground) -> None:
    """A word looks first at the places of what it decides on: a loop with another file stays, and is named.

    The file is a person's, and `diff --waiting` and `status` show it.
    """
    await_word(shop, ground, "p/a", "p/b", "p/c")
    at = shop("diff", "--waiting", "p", "--json").document["at"]
    shop.write("specs/p/b/spec.md", "---\nphases: []\n---\n# By hand\n")
    answer = shop("approve", "p", "--at", str(at), "--yes")
    assert "2 of 3 loops of p approved; 1 has changed since it was shown (p/b)" in answer.err
    assert (shop.loop("p/a").status, shop.loop("p/b").status) == (Status.LANDING, Status.AWAITING)
    assert not shop.loop("p/b").offers.offered
    said = shop("diff", "--waiting", "p").out
    assert "specs/p/b/spec.md is a person's file by now" in said
    assert "+# By hand" in said
    (row,) = shop("status", "--json").document["inbox"]
    assert row["text"] == "specs/p/b/spec.md is a person's file by now"
    assert "specs/p/b/spec.md is a person's file by now; `loopr approve p/b`" in shop("status").out


def test_a_branch_that_somebody_has_moved(shop: Desk, ground: Ground) -> None:
    """A loop onto whose branch commits came after its check stays, when many are approved; its own name takes it."""
    await_word(shop, ground, "p/a", "p/b")
    at = shop("diff", "--waiting", "p", "--json").document["at"]
    folder = ground.worktrees / "p.b.g1"
    (folder / "late.txt").write_text("late\n")
    git(folder, "add", "late.txt")
    git(folder, "commit", "--quiet", "--message=late")
    assert "somebody has committed on its branch" in shop("diff", "--waiting", "p").out
    answer = shop("approve", "p", "--at", str(at))
    assert "1 has changed since it was shown (p/b)" in answer.err
    assert shop("approve", "p", "--yes").code == 2
    assert [shop.loop(f"p/{each}").status for each in "ab"] == [Status.LANDING, Status.AWAITING]
    assert shop("approve", "p/b").code == 0


def test_one_that_waits_for_two_words(shop: Desk, ground: Ground) -> None:
    """A loop whose work waits and for which a file is offered stays when many are approved, and each word is named."""
    await_word(shop, ground, "p/a", "p/b")
    text = b"---\nphases: [k]\n---\n# A\n"
    digest = hashlib.sha256(text).hexdigest()[:32]
    Workspace(shop.folder).hands().keep(digest, text)
    shop.decide(lambda forest, now: iter([f.ArtifactOffered("p/a", digest, ("p/c",))]))
    answer = shop("diff", "--waiting", "p")
    assert "(an offered file: `loopr approve p/a --file` takes it) <==\ncame while p/c ran\n" in answer.out
    assert "+phases: [k]" in answer.out and "but for p/a: that wants words of its own" in answer.err
    assert "1 of 3 loops of p approved; 1 waits for two words" in shop("approve", "p").err
    answer = shop("approve", "p")
    assert (answer.code, "only those wait that wait for two words: p/a" in answer.err) == (2, True)


def test_many_are_sent_back_with_one_word(shop: Desk, ground: Ground) -> None:
    """`iterate PLAN` sends back all that waits below it, and asks before it does that to several."""
    await_word(shop, ground, "p/a", "p/b")
    answer = shop("iterate", "p", "--feedback", "shorter, please")
    assert (answer.code, "iterate takes 2 loops: p/a, p/b" in answer.err) == (2, True)
    answer = shop("iterate", "p", "--feedback", "shorter, please", "--yes")
    assert (answer.code, "2 of 3 loops of p sent back; 1 is starting" in answer.err) == (0, True)
    assert [shop.loop(f"p/{each}").iteration for each in "abc"] == [2, 2, 1]
