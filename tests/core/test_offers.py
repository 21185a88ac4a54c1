"""What is remembered of files that do not count, and where a plan's branch may stand: tables over the values alone."""

from __future__ import annotations

from itertools import product

import pytest

from loopr.core.model import Status
from loopr.core.offering import is_foreign, may_give_way, offered_words
from loopr.core.offers import MOST_REJECTED, NO_OFFERS, Offers, read_offers
from loopr.core.tips import Moving, Tip, read_tip
from tests.core.stories import tell

FULL = Offers("o", ("p/a",), "b", "u", ("r", "s"), "c")


def test_what_is_left_once_nothing_waits() -> None:
    """What a person has said no to, and which file counts, stay; what waited goes."""
    assert FULL.without() == Offers(rejected=("r", "s"), counts="c")


@pytest.mark.parametrize(("digest", "rejected"), [("t", ("r", "s", "t")), ("r", ("s", "r")), ("s", ("r", "s"))])
def test_what_is_left_after_a_no(digest: str, rejected: tuple[str, ...]) -> None:
    """Each file is remembered once, the latest last, and nothing else is."""
    assert FULL.refuse(digest) == Offers(rejected=rejected)


def test_only_the_last_of_many_are_remembered() -> None:
    """The list of those that were rejected has a bound, which is reached and not passed."""
    offers = NO_OFFERS
    for number in range(MOST_REJECTED + 3):
        offers = offers.refuse(str(number))
    assert offers.rejected == tuple(str(number) for number in range(3, MOST_REJECTED + 3))


@pytest.mark.parametrize("offers", [NO_OFFERS, FULL])
def test_offers_are_read_back(offers: Offers) -> None:
    """Whatever is written of them comes back."""
    assert read_offers([list(each) if isinstance(each, tuple) else each for each in offers]) == offers


@pytest.mark.parametrize(("unread", "offered", "counts"), list(product(("", "u"), ("", "own", "o"), ("", "own", "c"))))
@pytest.mark.parametrize("artifact", ["", "own"])
@pytest.mark.parametrize(
    "is_there", [(there, at) for there in (False, True) for at in (Status.PENDING, Status.COMPLETE)]
)
def test_what_is_not_to_be_written_over(
    unread: str, offered: str, counts: str, artifact: str, is_there: tuple[bool, Status]
) -> None:
    """A file that is none, one that waits, one that counts while its loop is made anew; never loopr's.

    What counts and is not loopr's never gives way, wherever it lies.
    """
    story, (on_disk, status) = tell("plan p: a"), is_there
    offers = Offers(offered=offered, unread=unread, rejected=("r",), counts=counts)
    loop = story["p/a"]._replace(status=status, artifact=artifact, on_disk=on_disk, offers=offers)
    waits = offered not in ("", artifact)
    made_anew = counts == artifact == "own" and on_disk and status is Status.PENDING
    assert (is_foreign(story.forest, loop, 0) is not None) == (bool(unread) or waits or made_anew)
    assert may_give_way(loop) == {each for each in (artifact, "r") if each and each != counts}


@pytest.mark.parametrize("number", range(8))
def test_who_was_at_work_when_a_file_came(number: int) -> None:
    """Five are named, and how many more there were."""
    story = tell("plan p: a")
    names = tuple(f"q/{each}" for each in range(number))
    said = offered_words(story.forest, story["p/a"]._replace(offers=Offers("o", names)))
    assert ("more" in said) == (number > 5)
    assert said.count("q/") == min(number, 5)
    assert f"{' and ' + str(number - 5) + ' more' if number > 5 else ''} ran: " in said


@pytest.mark.parametrize(
    ("tip", "begins", "stands", "has"),
    [
        (Tip(), False, "", ""),
        (Tip("a"), False, "a", "a"),
        (Tip("", Moving("", "n", "started")), True, "n", "n"),
        (Tip("a", Moving("a", "n", "landed", "p/x", "t")), False, "a", "an"),
        (Tip("a", Moving("o", "n", "adopted")), False, "a", "aon"),
    ],
)
def test_where_a_branch_stands(tip: Tip, begins: bool, stands: str, has: str) -> None:
    """While it moves both ends are loopr's, and work is cut from where it was, or from where it is to begin."""
    assert (tip.begins, tip.stands) == (begins, stands)
    assert [each for each in "anot" if tip.has(each)] == sorted(has, key="anot".index)
    assert read_tip([tip.at, list(tip.moving) if tip.moving else None]) == tip
