"""A plan played in virtual time from the command line; `tests/core` plays the simulation itself."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.ui.calls import everything
from tests.ui.scenes import OAUTH, Desk, flat


def test_a_plan_in_words(desk: Desk) -> None:
    """A chart, the makespan, waiting times and the critical path, no wider than 80 columns."""
    lines = desk.lines("simulate", desk.write("plan.md", OAUTH))
    assert max(map(len, lines)) <= 80
    assert "makespan 4m, 2% of 50 slots used, 4 tries" in lines
    assert lines[lines.index("critical path:") + 1 :] == [
        "  oauth/tokens/store/code 1m",
        "  oauth/tokens/refresh/code 1m",
        "  oauth/endpoints 1m",
        "  oauth/endpoints/phase/code 1m",
        "by declaration: oauth, oauth/tokens, oauth/tokens/store, oauth/tokens/refresh",
        "by a person: oauth/tokens/store/code, oauth/endpoints",
    ]


def test_it_writes_nothing(desk: Desk) -> None:
    """Neither a plan that is known nor a file that is not leaves a trace, in the journal or anywhere else."""
    path = desk.write("plan.md", OAUTH)
    before = everything(desk.folder)
    fresh = desk("simulate", path)
    assert everything(desk.folder) == before
    desk.start()
    before = everything(desk.folder)
    known = desk("simulate", "oauth")
    assert everything(desk.folder) == before
    assert (fresh.code, known.out) == (0, fresh.out)


def test_a_subtree(desk: Desk) -> None:
    """A loop is played with what is below it, and nothing else of its plan."""
    desk.start()
    ran = [each["id"] for each in desk("simulate", "tokens", "--json").document["runs"]]
    assert ran == ["oauth/tokens/store/code", "oauth/tokens/refresh/code"]


def test_durations(desk: Desk) -> None:
    """How long attempts take may be said for a type, for single loops in a file, and for all others."""
    path = desk.write("plan.md", OAUTH)
    desk.write("took.csv", "oauth/tokens/store/code,10m\n")

    def makespan(*options: str) -> float:
        found: float = desk("simulate", path, "--json", *options).document["makespan_secs"]
        return found

    assert makespan() == 240
    assert makespan("--attempt", "30s") == 120
    assert makespan("--duration", "code=5m") == 60 + 3 * 300
    assert makespan("--durations", "took.csv") == 180 + 600
    assert makespan("--judging", "10s", "--landing", "5s") == 4 * 75


def test_the_same_seed_plays_the_same(desk: Desk) -> None:
    """With chances a seed decides everything, and another seed decides otherwise."""
    path = desk.write("p.md", flat([f"s{n}" for n in range(8)]))
    chances = (
        "--failures",
        "30%",
        "--limits",
        "0.2",
        "--lost",
        "0.1",
        "--duration",
        "code=10s..90s",
        "--json",
        "--at",
        "+0s",
    )
    one, again, other = (desk("simulate", path, *chances, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again
    assert one.document["makespan_secs"] != other.document["makespan_secs"]


def test_a_picture(desk: Desk) -> None:
    """The picture is sound XML, at the path from where one stands, and the text is printed all the same."""
    answer = desk("simulate", desk.write("plan.md", OAUTH), "--svg", "out.svg")
    assert "makespan 4m" in answer.out
    assert ET.parse(desk.folder / "out.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("nope.md",), 3, "there is no file 'nope.md'"),
        (("nobody",), 3, "there is no loop 'nobody'"),
        (("x" * 300,), 3, "there is no loop"),
        (("plan.md", "--failures", "2"), 2, "--failures"),
        (("plan.md", "--duration", "code=soon"), 2, "soon"),
        (("plan.md", "--duration", "cod=5s"), 2, "cod"),
        (("plan.md", "--durations", "nope.csv"), 3, "nope.csv there is no such file"),
        (("plan.md", "--durations", "bad.csv"), 2, "bad.csv:1"),
        (("plan.md", "--seed", "-1"), 2, "--seed"),
        (("bad.md",), 2, "bad.md:1:1 is empty"),
        (("plan.md", "--svg", "no/such/folder.svg"), 78, "folder.svg"),
    ],
)
def test_what_cannot_be_played(desk: Desk, options: tuple[str, ...], code: int, words: str) -> None:
    """A wrong option or file is refused in words with its own exit code, and prints no data."""
    desk.write("plan.md", OAUTH)
    desk.write("bad.md", "")
    desk.write("bad.csv", "oauth,when it is done\n")
    given = [desk.folder / each if each.endswith(".md") and code != 3 else each for each in options]
    answer = desk("simulate", *given)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err
    assert "Traceback" not in answer.err
