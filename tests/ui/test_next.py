"""The next round before it is decided: a pure function of the journal and the instant."""

from __future__ import annotations

from loopr.core import wishes
from loopr.core.model import Failure
from tests.ui.calls import everything
from tests.ui.scenes import COMMANDS, NOON, Desk, flat

AT = "2026-01-01T13:00:00Z"


def grants(desk: Desk, *options: str) -> list[str]:
    """Return who would be granted a lease."""
    return [each["id"] for each in desk("next", "--json", *options).document["grants"]]


def test_the_round_in_words(shop: Desk) -> None:
    """Grants in their order with project and score, then what is held back, by its gate."""
    shop.start()
    shop.start(flat(["a", "b"]), "p.md")
    shop.wish(wishes.pause, "p/b", "ada", "")
    assert shop.lines("next") == [
        "#  loop                project  score",
        "1  oauth/tokens/store  default  100",
        "2  p/a                 default  70",
        "held by needs: 2 (oauth/tokens/refresh, oauth/endpoints)",
        "held by paused: 1 (p/b)",
    ]


def test_nothing_to_start(desk: Desk) -> None:
    """Where nothing would start, there is no table, and a hint where to look."""
    desk.start()
    answer = desk("next")
    assert answer.out.startswith("held by manual: 1 (oauth/tokens/store/code)\n")
    assert "`loopr why ID`" in answer.err


def test_the_preview_is_the_decision(shop: Desk) -> None:
    """What next shows is what the next round grants, lease by lease and in that order."""
    shop.start()
    shop.start(flat(f"s{n}" for n in range(9)), "p.md")
    shown = shop("next", "--json").document
    granted = shop.choose()
    assert [each["id"] for each in shown["grants"]] == granted
    assert [each["lease"] for each in shown["grants"]] == [f"{each}#{shop.loop(each).attempt}" for each in granted]
    assert {each["id"] for each in shown["held"]} == {
        each["id"] for each in shop("ls", "--json", "--status", "pending").document["loops"]
    }


def test_it_is_pure(shop: Desk) -> None:
    """Asked twice at the same instant it prints the same bytes, whatever the clock says, and no file changes."""
    shop.start()
    shop.start(flat(["a", "b"]), "p.md")
    shop.choose()
    before = everything(shop.folder)
    first = [shop(verb, "--at", AT, *more) for verb in ("next", "tree", "status", "ls") for more in ((), ("--json",))]
    shop.clock.at += 123_456
    again = [shop(verb, "--at", AT, *more) for verb in ("next", "tree", "status", "ls") for more in ((), ("--json",))]
    assert first == again
    assert everything(shop.folder) == before


def test_another_instant(shop: Desk) -> None:
    """At a later instant a backoff is over and scores have aged; an earlier one than the journal's end does no harm."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.INFRA, "died of signal 9")
    assert grants(shop) == []
    assert grants(shop, "--at", "+1h") == ["p/a"]
    later = shop("next", "--json", "--at", "+1h").document
    assert later["grants"][0]["score"] == {"total": 120, "base": 60, "age": 50, "depth": 10, "retry": 0, "priority": 0}
    assert later["generated_at"] == later["at"] == "2026-01-01T13:00:00.000Z"
    past = shop("next", "--json", "--at", "-1h").document
    assert (past["grants"], past["generated_at"]) == ([], "2026-01-01T11:00:00.000Z")


def test_a_round_that_was_cut_short(shop: Desk) -> None:
    """With a batch size the preview is of the next batch, at the instant at which that may begin."""
    shop.write("loopr.yml", COMMANDS + "dispatch: {batch_size: 2}\n")
    shop.start(flat(["a", "b", "c", "d", "e"]))
    assert grants(shop) == shop.choose() == ["p/a", "p/b"]
    shown = shop("next", "--json").document
    assert shown["at"] == "2026-01-01T12:00:01.000Z"
    assert [each["id"] for each in shown["grants"]] == ["p/c", "p/d"]
    assert [(each["id"], each["gate"], each["until"]) for each in shown["held"]] == [
        ("p/e", "pace", "2026-01-01T12:00:02.000Z")
    ]
    assert "held by pace: 1 (p/e)" in shop("next").out
    shop.clock.at = NOON + 1000
    assert shop.choose() == ["p/c", "p/d"]


def test_the_pace_is_told(shop: Desk) -> None:
    """A loop that waits for the next round says so and until when, waits for a slot, and keeps further plans out."""
    more = "dispatch: {batch_size: 1, spawn_delay_secs: 20}\nqueue: {soft_limit: 1, hard_limit: 2}\n"
    shop.write("loopr.yml", COMMANDS + more)
    shop.start(flat(["a", "b", "c"]))
    assert shop.choose() == ["p/a"]
    body = shop("why", "p/c", "--json").document
    assert (body["runnable"], [each["gate"] for each in body["gates"]]) == (False, ["pace"])
    assert "pace      a round launches 1 at most" in shop("why", "p/c").out
    assert "12:00:20" in shop("why", "p/c").out
    assert shop("status", "--json").document["queue"]["depth"] == 2
    assert "queue delayed" in shop("status").out
    refused = shop("start", "--no-run", shop.write("q.md", flat(["x"], "q")))
    assert refused.code == 75


def test_other_settings_for_once(shop: Desk) -> None:
    """With --set the round is shown as it would be, and the settings stay as they are."""
    shop.start(flat(["a", "b", "c"]))
    assert grants(shop, "--set", "concurrency.max_loops=1") == ["p/a"]
    assert grants(shop) == ["p/a", "p/b", "p/c"]
    assert shop("next", "--json", "--set", "concurrency.max_loops=1").document["held"][0]["gate"] == "capacity"
