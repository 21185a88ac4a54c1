"""Why a loop does not run: every closed gate, the score with its parts, the story so far."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopr.core import wishes
from loopr.core.model import Failure
from tests.ui.scenes import COMMANDS, MINUTE, Desk, flat


def test_a_loop_that_waits(desk: Desk) -> None:
    """All closed gates in their order, the score with its parts, and the story, each on a line of its own."""
    desk.start()
    desk.clock.at += 5 * MINUTE
    assert desk.lines("why", "oauth/endpoints") == [
        "oauth/endpoints (spec): waiting",
        "  needs     needs tokens (0 of 2 done)",
        "  manual    a person must write its spec.md: specs/oauth/endpoints/spec.md",
        "  score     75 = type 60 + age 5 + depth 10; the highest goes first",
        "story:",
        "      8  12:00:00  declared by its parent's artifact",
    ]


def test_a_loop_that_is_next(shop: Desk) -> None:
    """A loop without a closed gate says that it is its turn that it waits for."""
    shop.start(flat(["a"]))
    assert shop.lines("why", "a")[0] == "p/a (spec): no gate is closed: it waits for its turn, `loopr next`"
    body = shop("why", "a", "--json").document
    assert (body["runnable"], body["gates"]) == (True, [])


def test_the_story_of_a_plan_begins_with_its_start(desk: Desk) -> None:
    """A plan has no parent, so its story does not speak of one."""
    desk.start()
    told = [each["text"] for each in desk("why", "oauth", "--json").document["story"]]
    assert told == ["enqueued as a plan", "a person's artifact was accepted: done"]


def test_no_word_and_no_command_is_broken(shop: Desk) -> None:
    """A path that is wider than the room has a line of its own, and a command stays on one line."""
    path = f"src/{'deep/' * 20}add_discounts.py"
    shop.start(flat(["a-version-module-9b8"]))
    shop.choose()
    shop.run("p/a-version-module-9b8")
    shop.end("p/a-version-module-9b8", Failure.CONFIG, f"there is no file such as {path} in it")
    said = [line.strip() for line in shop.lines("why", "a-version-module-9b8")]
    assert path in said
    assert any("`loopr reset p/a-version-module-9b8`" in line for line in said)
    assert any(path in line for line in shop.lines("show", "a-version-module-9b8"))


def test_a_long_story_is_told_whole(shop: Desk) -> None:
    """Reasons wrap at 80 columns, and no word of them is lost."""
    reason = " ".join(f"word{n}" for n in range(40))
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.CONFIG, reason)
    lines = shop.lines("why", "a")
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count(reason) == 2


def test_each_state_says_what_it_waits_for(shop: Desk) -> None:
    """A loop that is not pending names what its state waits for, and who can end that."""
    shop.write("loopr.yml", COMMANDS.replace("make spec}", "make spec, approve: true}"))
    shop.start(flat(["run", "check", "ok", "park", "fail", "stop"]))
    shop("set", "concurrency.per_type.spec", "6")
    shop.choose()
    for name in ("run", "check", "ok", "park", "fail"):
        shop.run(f"p/{name}")
    for name in ("check", "ok", "fail"):
        shop.end(f"p/{name}")
    for name in ("ok", "fail"):
        shop.judge(f"p/{name}")
    shop.end("p/park", Failure.CONFIG, "no make")
    shop.wish(wishes.reject, "p/fail", "no good")
    shop.wish(wishes.cancel, "p/stop", "ada")
    said = {name: shop("why", name, "--json").document["gates"][0] for name in ("run", "check", "ok", "park", "fail")}
    assert {each["gate"] for each in said.values()} == {"status"}
    assert said["run"]["reason"] == "try 1 runs"
    assert said["check"]["reason"] == "try 1 is being judged"
    assert "`loopr approve p/ok`" in said["ok"]["reason"]
    assert said["park"]["reason"] == "it is parked: no make; `loopr reset p/park` once that is mended"
    assert said["fail"]["reason"] == "it failed: no good; `loopr retry p/fail` begins again"
    stopped = [each["gate"] for each in shop("why", "stop", "--json").document["gates"]]
    assert stopped == ["status", "stopping"]


def test_the_output_of_a_check_that_said_no_is_named(shop: Desk) -> None:
    """Of a loop whose judge said no last, the command that prints the words is told once."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    for name in "ab":
        shop.run(f"p/{name}")
    assert "logs --" not in "".join(shop.lines("why", "a"))
    shop.end("p/a", Failure.REFUSED, "the check said no: exit 1")
    assert "  check     `loopr logs --check p/a` prints what it said" in shop.lines("why", "a")
    shop.end("p/b", Failure.CONFIG, "the review 2 of 3 said no: exit 127")
    assert "".join(shop.lines("why", "b")).count("`loopr logs --review p/b`") == 1


def test_a_gate_that_opens_by_itself_says_when(shop: Desk) -> None:
    """A backoff names its end, and is gone at that very instant."""
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.INFRA, "died of signal 9")
    (gate,) = shop("why", "a", "--json").document["gates"]
    assert (gate["gate"], gate["reason"]) == ("backoff", "retries after failure 1: died of signal 9")
    assert shop("why", "a", "--at", gate["until"], "--json").document["runnable"] is True


def test_a_cancel_is_told_once(shop: Desk) -> None:
    """A sentence does not repeat itself where the reason is what it says already."""
    shop.start(flat(["a"]))
    shop.wish(wishes.cancel, "p/a", "ada")
    assert shop("why", "a", "--json").document["story"][-1]["text"] == "cancelled by ada"


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["pause", "cancel", "choose", "wait", "start"]), max_size=4))
def test_whatever_next_grants_has_no_closed_gate(shop: Desk, steps: list[str]) -> None:
    """A loop is in the next round only if `why` names no gate of it; one that is not has one, or no slot is left."""
    shop.start(flat(["a", "b", "c"]))
    for number, step in enumerate(steps):
        target = f"p/{'abc'[number % 3]}"
        if step == "choose":
            shop.choose()
        elif step == "wait":
            shop.clock.at += MINUTE
        elif step == "start":
            shop.start(flat(["k"], f"q{number}"), f"q{number}.md")
        elif shop.loop(target).status == "pending":
            shop.wish(wishes.pause if step == "pause" else wishes.cancel, target, "ada", "")
    grants = {each["id"] for each in shop("next", "--json").document["grants"]}
    for loop in shop("ls", "--json").document["loops"]:
        assert shop("why", loop["id"], "--json").document["runnable"] == (not loop["gates"])
        assert not (loop["id"] in grants and loop["gates"])
