"""All about one loop: where it stands, its attempts, its children."""

from __future__ import annotations

from loopr.core import observations as o
from loopr.core.model import Failure, Usage
from tests.ui.calls import git
from tests.ui.scenes import COMMANDS, Desk, flat


def test_a_loop_that_waits(desk: Desk) -> None:
    """Its names, its state and why, where its files are, and when it came to be."""
    desk.start()
    assert desk.lines("show", "endpoints") == [
        "id       oauth/endpoints",
        "title    endpoints",
        "type     spec, project default",
        "status   waiting",
        "why      needs tokens (0 of 2 done)",
        "needs    oauth/tokens",
        "input    specs/oauth/plan.md",
        "output   specs/oauth/endpoints/spec.md",
        "created  12:00:00",
    ]


def test_a_loop_with_children(desk: Desk) -> None:
    """What is below it is counted, and its children are listed with their titles."""
    desk.start()
    lines = desk.lines("show", "oauth")
    assert "subtree  5 below" in lines
    assert "input    plan.md" in lines
    assert lines[-2:] == [
        "oauth/tokens     spec  0 of 2 done  Token storage",
        "oauth/endpoints  spec  waiting      endpoints",
    ]


def test_what_a_loop_sets_free(desk: Desk) -> None:
    """Who waits for nothing but this loop and what is below it is named."""
    desk.start()
    assert "frees    oauth/endpoints" in desk.lines("show", "tokens")
    assert desk("show", "tokens", "--json").document["frees"] == ["oauth/endpoints"]
    assert desk("show", "endpoints", "--json").document["frees"] == []


def test_where_a_loop_works(shop: Desk) -> None:
    """The worktree of a loop is named from the first attempt on, for as long as its work is not over."""
    shop.start(flat(["a"]))
    assert not [line for line in shop.lines("show", "p/a") if line.startswith("worktree")]
    shop.choose()
    assert "worktree  worktrees/p.a.g1" in shop.lines("show", "p/a")


def test_where_the_work_of_a_loop_lies(shop: Desk) -> None:
    """The branch, the landed commit and the folder of the last run are named, each from when it is there."""
    shop.start(flat(["a"]))
    places = {"branch": None, "landed": None, "logs": None}
    assert shop("show", "p/a", "--json").document["places"] == places
    shop.choose()
    git(shop.folder, "branch", "loopr/p.a.g1")
    (shop.folder / ".git/loopr/runs/p.a.g1/1").mkdir(parents=True)
    places |= {"branch": "loopr/p.a.g1", "logs": ".git/loopr/runs/p.a.g1/1"}
    assert shop("show", "p/a", "--json").document["places"] == places
    shop.land("p/a", "k")
    said = [line.split() for line in shop.lines("show", "p/a")]
    assert [each for each in said if each[:1] in (["landed"], ["logs"])] == [
        ["landed", "c0ffee"],
        ["logs", ".git/loopr/runs/p.a.g1/1"],
    ]


def test_a_long_reason_is_wrapped(shop: Desk) -> None:
    """A sentence takes as many lines as it needs, below each other; no word of it is lost."""
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.CONFIG, "no such program " * 8)
    lines = shop.lines("show", "p/a")
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count("no such program") == 8 * 3  # why, reason, the attempt


def attempts(desk: Desk, loop: str = "p/a") -> list[dict[str, object]]:
    """Return the attempts of a loop."""
    found: list[dict[str, object]] = desk("show", loop, "--json").document["attempts"]
    return found


def test_the_attempts_of_a_loop(shop: Desk) -> None:
    """Every attempt is told once, in order, with its iteration, its class, its instants and what it used."""
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.clock.at += 60_000
    shop.see(o.AttemptUsed("p/a", 1, Usage(1200, 30_000, 60_000)))
    shop.end("p/a", Failure.REFUSED, "the check said no")
    shop.choose()
    shop.run("p/a")
    shop.see(o.StepTook("p/a", 2, "setup", 27_000))
    shop.clock.at += 30_000
    shop.end("p/a", Failure.INFRA, "died of signal 9")
    shop.clock.at += 60_000
    shop.choose()
    assert attempts(shop) == [
        {
            "attempt": 1,
            "iteration": 1,
            "outcome": "refused: the check said no",
            "class": "refused",
            "started_at": "2026-01-01T12:00:00.000Z",
            "ended_at": "2026-01-01T12:01:00.000Z",
            "exit": None,
            "usage": {"tokens": 1200, "usd": 0.03, "seconds": 60.0, "estimated": False},
            "log": None,
            "lane": "default",
            "agent": None,
            "steps": [],
        },
        {
            "attempt": 2,
            "iteration": 2,
            "outcome": "infra: try 2 ended without a verdict: died of signal 9",
            "class": "infra",
            "started_at": "2026-01-01T12:01:00.000Z",
            "ended_at": "2026-01-01T12:01:30.000Z",
            "exit": None,
            "usage": None,
            "log": None,
            "lane": "default",
            "agent": None,
            "steps": [{"step": "setup", "seconds": 27.0}],
        },
        {
            "attempt": 3,
            "iteration": 2,
            "outcome": None,
            "class": None,
            "started_at": "2026-01-01T12:02:30.000Z",
            "ended_at": None,
            "exit": None,
            "usage": None,
            "log": None,
            "lane": "default",
            "agent": None,
            "steps": [],
        },
    ]
    lines = shop.lines("show", "p/a")
    assert "used      1.2k tokens, $0.03, 1 min 30 s, and 27 s for setup and judges" in lines
    assert "tries     3, 1 of at most 30 refused" in lines
    assert lines[lines.index("tries:") + 1 :] == [
        "    1  12:00:00  1 min  refused: the check said no",
        "    2  12:01:00   30 s  infra: try 2 ended without a verdict: died of signal 9;",
        "                        setup 27 s",
        "    3  12:02:30    0 s  has not ended",
    ]
    told = "\n".join(shop.lines("why", "p/a"))
    assert "after 1 min: refused: the check said no" in told
    assert "after 30 s: infra: try 2 ended" in " ".join(told.split())


def test_every_end_of_an_attempt_has_its_class(shop: Desk) -> None:
    """However an attempt ends, it does not stay open in the list."""
    shop.write("loopr.yml", COMMANDS.replace("make spec}", "make spec, lane: [hal, bob]}"))
    shop.start(flat(["a"]))
    ends = [
        (Failure.LIMITED, "429", "limited"),
        (Failure.TIMEOUT, "too long", "timeout"),
        (Failure.HOST, "the disk is full", "host"),
        (Failure.CONFIG, "no such program", "config"),
    ]
    for failure, reason, _ in ends:
        shop.choose()
        shop.run("p/a")
        shop.end("p/a", failure, reason)
        shop.clock.at += 3_600_000
        shop.see(o.HostSeen(""))
    assert [each["class"] for each in attempts(shop)] == [name for _, _, name in ends]
    assert all(each["ended_at"] for each in attempts(shop))


def test_a_landed_loop(shop: Desk) -> None:
    """A landed attempt is ok, and its loop says that it is done once nothing below it is left."""
    shop.start(flat(["a"]))
    shop.choose()
    shop.land("p/a")
    assert [(each["class"], each["outcome"]) for each in attempts(shop)] == [("ok", "landed as c0ffee")]
    assert "status   done" in shop.lines("show", "p/a")


def test_a_loop_that_is_gone_can_still_be_shown(shop: Desk) -> None:
    """A loop that is no longer declared keeps its story."""
    shop.start(flat(["a", "b"]))
    shop.start(flat(["b"]))
    assert "status   undeclared" in shop.lines("show", "p/a")
    assert shop.lines("why", "p/a")[1].endswith("it is no longer declared by its parent")


def test_failures_are_told(shop: Desk) -> None:
    """How many attempts failed in a row, and how many did not even start, is told beside the last reason."""
    shop.start(flat(["a"]))
    assert not [line for line in shop.lines("show", "p/a") if line.startswith("failures")]
    for number, launch in enumerate((False, True, True)):
        assert shop.choose() == ["p/a"]
        shop.end("p/a", Failure.INFRA, f"no worktree {number}", launch=launch)
        shop.clock.at += 300_000
    lines = shop.lines("show", "p/a")
    assert "failures  3, 2 of them did not start" in lines
    (row,) = (each for each in shop("ls", "--json").document["loops"] if each["id"] == "p/a")
    assert (row["failures"], row["launch_failures"]) == (3, 2)
    assert "no worktree 2" in row["reason"]
    assert shop("show", "p/a", "--json").document["loop"]["launch_failures"] == 2


def test_a_try_has_ended_once_its_command_has(shop: Desk) -> None:
    """Whatever is waited for after the command, the time of the try stands still, and is told apart from the wait."""
    shop.write("loopr.yml", COMMANDS.replace("make spec}", "make spec, lane: hal, approve: true}"))
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.clock.at += 19_000
    shop.end("p/a")
    assert "    1  12:00:00  19 s  try 1 ended well; it is judged" in shop.lines("show", "p/a")
    shop.clock.at += 1_000
    shop.judge("p/a")
    shop.clock.at += 3_600_000
    lines = shop.lines("show", "p/a")
    assert {"status approval, since 12:00:20", "used 19 s"} <= {" ".join(each.split()) for each in lines}
    assert "    1  12:00:00  19 s  it passed, and waits for a person" in lines
    assert shop.lines("why", "p/a")[0] == "p/a (spec): approval, since 12:00:20"
    shop("approve", "p/a")
    shop.clock.at += 60_000
    assert "    1  12:00:00  19 s  approved" in shop.lines("show", "p/a")
    assert "p/a spec landing 19 s · since 13:00:20" in [" ".join(each.split()) for each in shop.lines("ls")]
