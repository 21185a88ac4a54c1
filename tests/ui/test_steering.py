"""Steering work under way: what each verb does, what it refuses, and what it says."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure
from loopr.engine import compare
from loopr.errors import UserError
from loopr.ui.steering import fulfil
from loopr.ui.vocabulary import RULES, Wish
from loopr.wiring import Workspace
from tests.ui.acting import acting
from tests.ui.calls import Answer, loopr
from tests.ui.scenes import COMMANDS, Desk, flat

HEAD = {"schema", "generated_at", "done", "unchanged", "groups", "unattended"}
ALONE = "no engine runs: `loopr run` goes on"
APPROVED = COMMANDS.replace("run: make spec", "run: make spec, approve: true")


@pytest.fixture
def four(shop: Desk) -> Desk:
    """Give a plan with four specs that wait for their turn."""
    shop.start(flat(["a", "b", "c", "d"]))
    return shop


@pytest.fixture
def asked(shop: Desk) -> Desk:
    """Give a plan with two specs whose work waits for a person, and one that runs."""
    shop.write("loopr.yml", APPROVED)
    shop.start(flat(["a", "b", "c"]))
    shop.choose()
    for each in ("p/a", "p/b", "p/c"):
        shop.run(each)
    for each in ("p/a", "p/b"):
        shop.end(each)
        shop.judge(each)
    return shop


def convoy(desk: Desk, *words: str) -> Answer:
    """Call a verb for convoys."""
    return loopr("-C", desk.folder, "convoy", *words)


def notes(answer: Answer) -> list[str]:
    """Return what was said beside the data; it must have gone well."""
    assert answer.code == 0, answer
    return answer.err.splitlines()


def seq(desk: Desk) -> int:
    """Return how many events there are; the rows are what the events lead to."""
    with Workspace(desk.folder).journal() as journal:
        assert compare(journal) == []
        return journal.last_seq()


def statuses(desk: Desk) -> dict[str, str]:
    """Return where each loop stands."""
    return {each["id"]: each["status"] for each in desk("ls", "--json").document["loops"]}


def gates(desk: Desk, loop_id: str) -> list[str]:
    """Return the names of a loop's closed gates."""
    return [each["gate"] for each in desk("why", loop_id, "--json").document["gates"]]


def did(answer: Answer) -> list[tuple[str, str]]:
    """Return what was done to what."""
    assert answer.code == 0, answer
    return [(each["id"], each["did"]) for each in answer.document["done"]]


# --- pause and resume -----------------------------------------------------------------------------------------------


def test_a_pause_and_its_end(four: Desk) -> None:
    """A pause holds a loop back and says how it ends; after `resume` it is ready again."""
    answer = four("pause", "a", "--reason", "lunch")
    assert answer.out == "p/a  paused  it is paused by ada: lunch; `loopr resume p/a`\n"
    assert notes(answer) == ["next: `loopr resume p/a`"]
    assert (gates(four, "p/a"), gates(four, "p/b")) == (["paused"], [])
    answer = four("resume", "a")
    assert (answer.out, notes(answer)) == ("p/a  resumed  ready\n", [ALONE])
    assert gates(four, "p/a") == []


def test_a_person_has_a_name_without_an_environment(four: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no variable names a person, the system's name of the account does."""
    for name in ("USER", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    four("pause", "a")
    assert f"paused by {pwd.getpwuid(os.geteuid()).pw_name};" in four("why", "a").out


def test_a_second_pause_keeps_the_first(four: Desk) -> None:
    """What is paused already stays as it is, and that is said; what is not is paused; no event is written twice."""
    four("pause", "a", "--reason", "lunch")
    answer = four("pause", "a", "b", "--reason", "tea")
    assert answer.out == "p/b  paused  it is paused by ada: tea; `loopr resume p/b`\n"
    assert notes(answer)[0] == "p/a: paused already by ada: lunch"
    before = seq(four)
    assert four("pause", "a", "b").out == ""
    assert seq(four) == before


def test_a_second_resume_says_so(four: Desk) -> None:
    """What has no pause of its own is told from what another pause holds back."""
    four("pause", "p")
    assert notes(four("resume", "c")) == ["p/c: not paused by itself: p is paused by ada; `loopr resume p`"]
    four("resume", "p")
    assert notes(four("resume", "p", "c")) == ["p: not paused", "p/c: not paused"]


@pytest.mark.parametrize(("words", "name", "back"), [
    (["--all"], "workspace", "--all"),
    (["project:default"], "project:default", "project:default"),
])  # fmt: skip
def test_a_pause_of_more(four: Desk, words: list[str], name: str, back: str) -> None:
    """The workspace and a project are paused and resumed as loops are, with the reason; twice is once."""
    answer = four("pause", *words, "--reason", "freeze")
    assert (answer.out, notes(answer)) == (f"{name}  paused\n", [f"next: `loopr resume {back}`"])
    assert gates(four, "p/d") == ["paused"]
    assert notes(four("pause", *words)) == [f"{name}: paused already by ada: freeze"]
    answer = four("resume", *words)
    assert (answer.out, gates(four, "p/d")) == (f"{name}  resumed\n", [])
    assert notes(four("resume", *words)) == [f"{name}: not paused"]


def test_a_pause_says_what_goes_on(four: Desk) -> None:
    """A live attempt goes on under a pause, which says so and how it is stopped; `--now` stops what is below."""
    four.choose()
    four.run("p/a")
    answer = four("pause", "p/a")
    assert answer.out == "p/a  paused  try 1 runs\n"
    assert notes(answer)[0] == "1 try goes on; --now stops it"
    answer = four("pause", "p", "--json")
    assert (did(answer), answer.document["running"]) == ([("p", "paused")], ["p/a", "p/b", "p/c", "p/d"])
    answer = four("pause", "project:default")
    assert notes(answer)[0] == "4 tries go on; --now stops them"
    answer = four("pause", "--now", "p/a")
    assert answer.out == "p/a  stopped  try 1 was told to stop and still lives\n"
    assert notes(answer) == [
        "p/a: paused already by ada",
        "no engine runs here: the next one ends what was told to stop",
        ALONE,
    ]
    answer = four("pause", "--now", "p", "--json")
    assert (did(answer), answer.document["running"]) == ([(f"p/{each}", "stopped") for each in "bcd"], [])
    assert set(statuses(four).values()) == {"complete", "pending"}


def test_a_pause_with_stop_is_one_line(four: Desk) -> None:
    """A loop that is paused and stopped at once has one line, and two rows in the document."""
    four.choose()
    assert four("pause", "--now", "p/a").out.startswith("p/a  paused, stopped  try 1 was told to stop")
    assert did(four("pause", "--now", "p/b", "--json")) == [("p/b", "paused"), ("p/b", "stopped")]


# --- cancel, retry, reset -------------------------------------------------------------------------------------------


def test_a_cancel_and_the_way_back(four: Desk) -> None:
    """A cancel takes what is unfinished below; the way back leads back, and no further."""
    four.choose()
    four.run("p/a")
    answer = four("cancel", "b", "--reason", "too dear")
    assert answer.out == "p/b  cancelled  try 1 was told to stop and still lives\n"
    assert notes(answer) == ["no engine runs here: the next one ends what was told to stop", "undo: `loopr retry p/b`"]
    assert four.loop("p/b").reason == "too dear"
    answer = four("cancel", "p")
    assert [line.split("  ")[0] for line in answer.out.splitlines()] == ["p", "p/a", "p/c", "p/d"]
    assert answer.out.startswith("p    cancelled  it was cancelled; `loopr retry p` brings it back\n")
    assert notes(answer)[-1] == "undo: `loopr retry p/a p/c p/d`, `loopr resume p`"
    assert notes(four("cancel", "p", "a")) == ["p: cancelled already", "p/a: cancelled already"]
    assert did(four("retry", "a", "c", "d", "--json")) == [(f"p/{each}", "retried") for each in "acd"]
    assert did(four("resume", "p", "--json")) == [("p", "resumed")]
    assert statuses(four) == {"p": "complete", "p/a": "pending", "p/b": "cancelled", "p/c": "pending", "p/d": "pending"}


def test_no_command_is_cut(shop: Desk) -> None:
    """In a pipe each command that is told can be pasted, however long the id in it is."""
    shop.start(flat(["a-task-with-a-name-that-takes-most-columns", *"bcdefgh"]))
    cut = shop("cancel", "a-task-with-a-name-that-takes-most-columns")
    assert cut.out.endswith("most-columns` brings it back\n")
    assert notes(shop("cancel", *"bcdefgh"))[-1].endswith("` and so on")


def test_a_cancel_of_what_lands(asked: Desk) -> None:
    """A cancel does not interrupt a landing that has begun, and says when it will count; another gives way to it."""
    asked("approve", "a", "b")
    assert asked("cancel", "b").out.startswith("p/b  cancelled  try 1 was told to stop")
    asked.see(o.LandingReady("p/a", asked.loop("p/a").attempt))
    assert asked("cancel", "a").out == "p/a  cancelled once it has landed  its commits land with the next `loopr run`\n"
    assert statuses(asked)["p/a"] == "landing"


def test_a_retry_brings_back_what_is_below(shop: Desk) -> None:
    """Whether what is below a cancelled loop is named with it, before it or not at all, all of it comes back."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.land("p/a", "x; y")
    for words in (["a", "a/x"], ["a/x", "a"], ["a"]):
        shop("retry", "--fresh", "--yes", "a")
        shop("cancel", "a")
        assert set(did(shop("retry", *words, "--json"))) == {(f"p/a{each}", "retried") for each in ("", "/x", "/y")}


def test_what_is_stuck_below_a_complete_loop_goes_on(asked: Desk) -> None:
    """One retry of the plan begins all again that is stuck below it, and says of the plan why it is not named."""
    asked("reject", "a")
    asked.end("p/c", Failure.CONFIG, "no such program")
    answer = asked("retry", "p")
    assert answer.out.splitlines() == ["p/a  retried  ready", "p/c  retried  ready"]
    assert notes(answer) == ["p: it is done itself; what is stuck below it begins again", ALONE]


def test_a_failed_and_a_parked_loop_go_on(asked: Desk) -> None:
    """`retry` begins a failed loop again, `reset` lets a parked one go on; each names the verb for the other's case."""
    asked("reject", "a")
    asked.end("p/c", Failure.CONFIG, "no such program")
    answer = asked("reset", "a")
    assert (answer.code, answer.err.splitlines()) == (2, [
        "loopr: cannot reset p/a: it is failed",
        "  hint: only a parked loop is reset; `loopr retry` begins a failed one again",
    ])  # fmt: skip
    answer = asked("retry", "a")
    assert (answer.out, notes(answer)) == ("p/a  retried  ready\n", [ALONE])
    answer = asked("reset", "c")
    assert (answer.out, notes(answer)) == ("p/c  reset  ready\n", [ALONE])


def test_what_earlier_tries_have_left_is_told(asked: Desk) -> None:
    """Where a try has left a worktree, a retry says that it stays so."""
    folder = asked.folder / "worktrees"
    asked("reject", "a", "b")
    asked.end("p/c", Failure.CONFIG, "no such program")
    (folder / "p.c.g1").mkdir(parents=True)
    assert notes(asked("reset", "c")) == ["its worktree stays as the last try left it", ALONE]
    assert notes(asked("retry", "a")) == [ALONE]  # nothing is left of it
    asked("cancel", "c")
    (folder / "p.b.g1").mkdir()
    said = notes(asked("retry", "b", "c"))
    assert said[0] == "their worktrees stay as the last tries left them"
    asked("cancel", "c")
    assert notes(asked("retry", "--fresh", "--yes", "c"))[-1] == ALONE
    assert asked.loop("p/c").generation == 2


def test_a_lane_is_reset(shop: Desk) -> None:
    """`reset lane:NAME` ends a rest, also together with a parked loop; a lane that nobody knows is exit 3."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.LIMITED, "429", retry_after_ms=3_600_000)
    shop.run("p/b")
    shop.end("p/b", Failure.CONFIG, "no such program")
    assert "lane" in gates(shop, "p/a")
    answer = shop("reset", "lane:other", "b")
    assert (answer.code, statuses(shop)["p/b"]) == (3, "parked")
    assert answer.err == "loopr: there is no lane other\n  hint: `loopr status` lists the lanes\n"
    assert did(shop("reset", "lane:default", "b", "--json")) == [("p/b", "reset"), ("lane:default", "reset")]
    assert gates(shop, "p/a") == []


def test_making_anew_asks(shop: Desk) -> None:
    """`retry --fresh` tells what depends on the loop; off a terminal only --yes goes on, and then it is told too."""
    shop.start("---\nid: p\nspecs: [{id: a}, {id: b, needs: [a]}, {id: c, needs: [b]}, {id: d}]\n---\n")
    shop.choose()
    shop.land("p/a", "x")
    shop.land("p/d")
    before = seq(shop)
    answer = shop("retry", "--fresh", "a")
    told = "p/a would be made anew; 3 loops depend on that: p/a/x, p/b, p/c"
    assert (answer.code, answer.err) == (2, f"loopr: {told}\n  hint: --yes goes on\n")
    assert seq(shop) == before
    answer = shop("retry", "--fresh", "--yes", "a")
    assert (answer.out, notes(answer)) == ("p/a  made anew  ready\n", [told, ALONE])
    assert (shop.loop("p/a").generation, statuses(shop)["p/a"]) == (2, "pending")
    assert "p/d would be made anew; nothing depends on that" in shop("retry", "--fresh", "d").err


def test_only_a_refusal_is_told_before_the_question(four: Desk) -> None:
    """What cannot be made anew is refused before anybody is asked, with or without --yes."""
    for words in ([], ["--yes"]):
        answer = four("retry", "--fresh", "a", *words)
        assert (answer.code, answer.err) == (
            2,
            "loopr: cannot retry --fresh p/a: it is ready\n"
            "  hint: wait until it has ended, or `loopr cancel` it first\n",
        )


def test_a_refusal_says_how_a_loop_stands_as_the_tree_does(four: Desk) -> None:
    """A loop that is ready, is paused or backs off is called that, with what ends its wait."""
    four.wish(wishes.pause, "p/b", "ada", "")
    four.wish(wishes.dispatch, ("p/a",), "ada")
    for name, word in (("a", "ready"), ("b", "paused"), ("a", "waiting")):
        if word == "waiting":
            four.choose()
            four.run("p/a")
            four.end("p/a", Failure.INFRA, "the setup said no")
        assert f"─ {name}  spec  {word}" in four("tree").out
        for verb in ("approve", "reject", "reset"):
            assert f"cannot {verb} p/{name}: it is {word}\n" in four(verb, name).err
    late = "it tries again by itself; `loopr retry p/a` ends that wait"
    assert f"  hint: {late}\n" in four("reset", "a").err
    assert four("retry", "a").out == "p/a  retried  ready\n"


# --- the queue ------------------------------------------------------------------------------------------------------


def test_clearing(four: Desk) -> None:
    """`clear` takes pending loops out of the queue, `--all` all that are left, and `resume` puts them back."""
    answer = four("clear", "a")
    assert answer.out == "p/a  cleared  it is paused by ada: cleared; `loopr resume p/a`\n"
    assert notes(answer) == ["next: `loopr resume p/a`"]
    assert notes(four("clear", "a")) == ["p/a: paused already by ada: cleared"]
    assert did(four("clear", "--all", "--json")) == [(f"p/{each}", "cleared") for each in "bcd"]
    assert notes(four("clear", "--all")) == ["nothing waits that is not paused already"]
    assert four.choose() == []
    four("resume", "c")
    assert four.choose() == ["p/c"]
    answer = four("clear", "d", "c")
    assert (answer.code, answer.err) == (
        2,
        "loopr: cannot clear p/c: it is starting\n  hint: only pending loops stand in the queue\n".replace(
            "running", "starting"
        ),
    )


def test_dispatching(four: Desk) -> None:
    """What is dispatched goes first, in its order and past no gate; twice is once."""
    four("pause", "d")
    answer = four("dispatch", "d", "c", "b")
    assert answer.out.splitlines() == [
        "p/d  dispatched  it is paused by ada; `loopr resume p/d`",
        "p/c  dispatched  ready",
        "p/b  dispatched  ready",
    ]
    assert notes(answer) == ["next: `loopr next`"]
    assert notes(four("dispatch", "d", "c")) == ["p/d: goes next already", "p/c: goes next already"]
    assert four.choose() == ["p/c", "p/b", "p/a"]
    answer = four("dispatch", "a")
    assert (answer.code, answer.err) == (
        2,
        "loopr: cannot dispatch p/a: it is starting\n  hint: only pending loops can go next\n",
    )


def test_a_dispatch_on_paper(four: Desk) -> None:
    """`--dry-run` shows what `next` would then be, and why what was named is not in it; nothing is written."""
    four("pause", "d")
    before = seq(four)
    answer = four("dispatch", "d", "c", "--dry-run")
    assert answer.out.splitlines() == [
        "#  loop  project  score",
        "1  p/c   default  70",
        "2  p/a   default  70",
        "3  p/b   default  70",
    ]
    assert notes(answer) == ["p/d would not start now: it is paused by ada; `loopr resume p/d`"]
    document = four("dispatch", "d", "c", "-n", "--json").document
    assert seq(four) == before
    assert set(document) == HEAD | {"dry_run", "next"}
    assert (document["dry_run"], set(document["next"])) == (True, {"at", "grants", "held"})
    four("dispatch", "d", "c")
    assert {key: four("next", "--json").document[key] for key in ("at", "grants", "held")} == document["next"]


# --- a person's word ------------------------------------------------------------------------------------------------


def test_approving_rejecting_and_sending_back(asked: Desk) -> None:
    """A person's yes lands, a no ends it with the reason, and feedback begins another iteration."""
    answer = asked("iterate", "a", "--feedback", "too long")
    assert (answer.out, notes(answer)) == ("p/a  sent back  ready\n", [ALONE])
    assert (asked.loop("p/a").reason, asked.loop("p/a").iteration) == ("too long", 2)
    answer = asked("reject", "b", "--reason", "not now")
    assert answer.out == "p/b  rejected  it failed: not now; `loopr retry p/b` begins again\n"
    assert notes(answer) == ["`loopr retry p/b` lets it try again"]
    asked.end("p/c")
    asked.judge("p/c")
    answer = asked("approve", "c")
    assert (answer.out, notes(answer)) == ("p/c  approved  its commits land with the next `loopr run`\n", [ALONE])


@pytest.mark.parametrize("words", [["approve"], ["reject"], ["iterate", "--feedback", "x"]])
def test_only_what_waits_for_a_person_is_decided_on(asked: Desk, words: list[str]) -> None:
    """Of several loops one that does not wait for a person refuses all, and nothing has changed: exit 2."""
    before = seq(asked)
    answer = asked(*words, "a", "c", "b")
    assert (answer.code, answer.err) == (
        2,
        f"loopr: cannot {words[0]} p/c: it is running\n  hint: only a loop that waits for approval can be decided on\n",
    )
    assert (seq(asked), statuses(asked)["p/a"]) == (before, "awaiting_approval")


# --- all or nothing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    ["pause"], ["resume"], ["cancel"], ["retry"], ["retry", "--fresh", "-y"], ["reset"], ["clear"], ["dispatch"],
    ["dispatch", "-n"], ["approve"], ["reject"], ["iterate", "--feedback", "x"],
])  # fmt: skip
def test_unknown_ids_refuse_all(four: Desk, words: list[str]) -> None:
    """All unknown ids are told at once, and whatever else is named stays as it is: exit 3."""
    before = seq(four)
    answer = four(*words, "a", "nowhere", "nobody")
    assert answer.code == 3
    assert answer.err.splitlines() == [
        "loopr: there is no loop 'nowhere' (`loopr ls` lists the loops)",
        "there is no loop 'nobody' (`loopr ls` lists the loops)",
    ]
    assert seq(four) == before
    failure = four(*words, "nowhere", "--json")
    assert (failure.code, failure.err, failure.document["error"]["code"]) == (3, "", "unknown_id")


@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("reject", 'words go into `--reason "..."`'),
        ("pause", 'words go into `--reason "..."`'),
        ("cancel", 'words go into `--reason "..."`'),
        ("iterate", 'words go into `--feedback "..."`'),
        ("retry", "`loopr ls` lists the loops"),
    ],
)
def test_words_are_no_loop(asked: Desk, verb: str, hint: str) -> None:
    """Words where a loop is to be named are refused, with the option that takes them if one does."""
    given = ["--feedback", "more"] if verb == "iterate" else []
    answer = asked(verb, "p/a", "write 11 instead", *given)
    assert answer == (3, "", f"loopr: there is no loop 'write 11 instead'\n  hint: {hint}\n")
    assert asked.loop("p/a").status == "awaiting_approval"


def test_a_missing_option_is_named(asked: Desk) -> None:
    """A verb that cannot do without an option says how that is given, and what it means."""
    answer = asked("iterate", "p/a", "write 11 instead")
    hint = '`--feedback "..."`: what the next try is told'
    assert answer == (2, "", f"loopr: Missing option '--feedback'.\n  hint: {hint}\n")


def test_every_refusal_is_told(four: Desk) -> None:
    """Each loop that refuses a wish is named with its state, and none of the others has changed."""
    four.choose()
    four.run("p/a")
    four.end("p/a", Failure.CONFIG, "no such program")
    answer = four("reset", "b", "a", "c")
    assert answer.code == 2
    assert [line.partition(" (")[0] for line in answer.err.splitlines()] == [
        "loopr: cannot reset p/b: it is starting",
        "cannot reset p/c: it is starting",
    ]
    assert statuses(four)["p/a"] == "parked"


def test_a_loop_named_twice_is_named_once(four: Desk) -> None:
    """A loop that is meant by several words is dealt with once."""
    assert did(four("pause", "a", "p/a", "--json")) == [("p/a", "paused")]
    assert did(four("dispatch", "b", "p/b", "c", "--json")) == [("p/b", "dispatched"), ("p/c", "dispatched")]


@pytest.mark.parametrize(("line", "message"), [
    ("pause", "pause names no loop"),
    ("resume", "resume names no loop"),
    ("clear", "clear names no loop"),
    ("cancel", "Missing argument 'ID|@CONVOY|project:NAME...'."),
    ("pause a --all", "pause names a, and everything"),
    ("iterate a", "Missing option '--feedback'."),
    ("iterate a --feedback=", "iterate without feedback"),
])  # fmt: skip
def test_what_says_too_little_or_too_much(four: Desk, line: str, message: str) -> None:
    """A command line that leaves open what is meant is exit 2, before anything is looked at."""
    answer = four(*line.split())
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"loopr: {message}")


def test_an_unknown_project(four: Desk) -> None:
    """A project that nobody is called is exit 3, and the known ones are named."""
    answer = four("pause", "project:nope")
    assert (answer.code, answer.err) == (3, "loopr: there is no project nope\n  hint: known: default\n")


def test_a_refusal_in_an_empty_workspace_leaves_nothing(desk: Desk) -> None:
    """Where nothing was ever started a wrong name makes no state; a pause of the workspace holds from the start."""
    assert desk("pause", "a").code == 3
    assert not (desk.folder / ".git/loopr").exists()
    assert did(desk("pause", "--all", "--json")) == [("workspace:", "paused")]
    assert notes(desk("pause", "--all")) == ["workspace: paused already by ada"]


# --- for every surface ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wish", "message"), [
    (Wish("explode", ("a",)), "there is no wish 'explode'"),
    (Wish("approve", ("a",), {"force": True}), "approve has no option 'force'"),
    (Wish("pause", ("a",), {"now": "yes"}), "now of pause is 'yes'"),
    (Wish("cancel", ("a",), {"reason": True}), "reason of cancel is True"),
    (Wish("cancel"), "cancel names no loop"),
    (Wish("iterate", ("a",), {"feedback": " "}), "iterate without feedback"),
    (Wish("convoy", ("a",)), "convoy without name"),
])  # fmt: skip
def test_a_wish_is_checked_once(four: Desk, wish: Wish, message: str) -> None:
    """Whatever surface it comes from, a wish with words that are none is refused, with what is known."""
    with pytest.raises(UserError, match=message) as refused:
        fulfil(Workspace(four.folder), wish)
    assert refused.value.exit_code == 2


def test_a_wish_needs_no_command_line(four: Desk) -> None:
    """A wish of plain values is answered in plain rows, and loses no work unless somebody says yes."""
    workspace = Workspace(four.folder, actor="hal")
    assert set(RULES) >= {"pause", "resume", "cancel", "retry", "reset", "clear", "dispatch", "approve", "reject"}
    answer = fulfil(workspace, Wish("cancel", ("a",)))
    assert (answer.done[0]["id"], answer.done[0]["did"]) == ("p/a", "cancelled")
    assert four.loop("p/a").reason == "cancelled by hal"
    fresh = Wish("retry", ("a",), {"fresh": True})
    with pytest.raises(UserError, match="would be made anew"):
        fulfil(workspace, fresh)
    assert fulfil(workspace, fresh, lambda text: True).done[0]["did"] == "made anew"


def test_the_documents(four: Desk) -> None:
    """Every document has its keys and no other; its loops are the ones that other verbs show."""
    four("pause", "a")
    answer = four("pause", "a", "b", "--json")
    document = answer.document
    assert (answer.err, set(document)) == ("", HEAD | {"running"})
    assert (document["schema"], document["generated_at"]) == (1, "2026-01-01T12:00:00.000Z")
    loops = {each["id"]: each for each in four("ls", "--json").document["loops"]}
    assert document["done"] == [{"id": "p/b", "did": "paused", "loop": loops["p/b"]}]
    assert document["unchanged"] == [{"id": "p/a", "why": "paused already by ada", "loop": loops["p/a"]}]
    assert set(four("resume", "a", "--json").document) == HEAD
    assert four("resume", "--all", "--json").document["unchanged"] == [
        {"id": "workspace:", "why": "not paused", "loop": None}
    ]
    for line in ("clear a", "resume a", "dispatch a", "cancel a", "retry a", "cancel a", "retry a --fresh --yes"):
        answer = four(*line.split(), "--json")
        assert set(answer.document) - {"dry_run", "next", "bases"} == HEAD, line


def test_words_of_others_are_safe_to_print(four: Desk) -> None:
    """A reason with control characters and lines reaches no terminal as such, and is kept as it was given."""
    reason = "tea\x1b[2J\nat five"
    answer = four("pause", "a", "--reason", reason)
    again = four("pause", "a")
    assert "\x1b" not in answer.out + again.err
    assert len(answer.out.splitlines()) == 1
    assert again.err.splitlines()[0].startswith("p/a: paused already by ada: tea")
    hold = four.loop("p/a").hold
    assert hold is not None
    assert hold.reason == reason


# --- beside an engine -----------------------------------------------------------------------------------------------


def test_beside_an_engine(four: Desk) -> None:
    """Where an engine has the workspace a wish is decided beside it, the engine goes on from there; `wait` follows."""
    with acting(four.folder) as engine:
        answer = four("pause", "a")
        assert (answer.code, answer.out.split()[:2]) == (0, ["p/a", "paused"])
        engine("choose")
        assert statuses(four) == {"p": "complete", "p/a": "pending", "p/b": "leased", "p/c": "leased", "p/d": "leased"}
        assert notes(four("resume", "a")) == ["next: `loopr wait p/a`"]
        answer = four("cancel", "b")
        assert (answer.out.split()[:2], notes(answer)) == (["p/b", "cancelled"], ["undo: `loopr retry p/b`"])
        assert four("approve", "c").code == 2
        assert notes(four("pause", "--all"))[-1] == "next: `loopr resume --all`"
        assert notes(four("resume", "--all")) == ["next: `loopr tree`"]
        engine("choose", "land p/a")
    assert statuses(four)["p/a"] == "complete"
    assert seq(four) > 0


# --- convoys --------------------------------------------------------------------------------------------------------


def test_a_convoy_is_formed_and_grows(four: Desk) -> None:
    """A convoy is created once, with or without its sign, and takes members until it lands; twice is once."""
    answer = convoy(four, "create", "@ship", "a", "b")
    assert (answer.out, notes(answer)) == ("@ship  formed\n", ["next: `loopr convoy show @ship`"])
    before = seq(four)
    assert notes(convoy(four, "create", "ship", "b", "a")) == ["@ship: has all of these already"]
    assert notes(convoy(four, "add", "@ship", "b")) == ["@ship: has all of these already"]
    assert seq(four) == before
    assert convoy(four, "add", "@ship", "b", "c").out == "@ship  joined\n"
    assert did(convoy(four, "create", "@empty", "--json")) == [("@empty", "formed")]
    document = convoy(four, "list", "--json").document
    assert [{key: value for key, value in each.items() if key != "progress"} for each in document["convoys"]] == [
        {"name": "@empty", "members": [], "total": 0, "done": 0, "landed_at": None},
        {"name": "@ship", "members": ["p/a", "p/b", "p/c"], "total": 3, "done": 0, "landed_at": None},
    ]
    assert convoy(four, "list").out.splitlines() == [
        "@empty  0 of 0 done: without members it never lands",
        "@ship   0 of 3 done: 3 waiting; the longest way: 1 loop",
    ]


@pytest.mark.parametrize(("words", "code", "said"), [
    (["create", "@ship", "c"], 2, "there is a convoy @ship already, with other members"),
    (["create", "@a/b", "c"], 2, '"a/b" is not an id'),
    (["create", "@", "c"], 2, "an id must not be empty"),
    (["create", "@new", "nowhere"], 3, "there is no loop 'nowhere'"),
    (["add", "@new", "a"], 3, "there is no convoy @new"),
    (["add", "@ship"], 2, "Missing argument 'ID...'."),
    (["show", "@new"], 3, "there is no convoy @new"),
])  # fmt: skip
def test_what_is_no_convoy(four: Desk, words: list[str], code: int, said: str) -> None:
    """A name that is taken or cannot be one, and members or convoys that there are not, are refused with words."""
    convoy(four, "create", "@ship", "a")
    before = seq(four)
    answer = convoy(four, *words)
    assert (answer.code, answer.err.startswith(f"loopr: {said}")) == (code, True), answer.err
    assert seq(four) == before


def test_a_convoy_says_what_holds_it_up(shop: Desk) -> None:
    """`show` counts what is done, and names what each of the others waits for; loops look as everywhere."""
    shop.start("---\nid: p\nspecs: [{id: a}, {id: b}, {id: c, needs: [b]}, {id: d, needs: [c]}]\n---\n")
    shop.choose()
    convoy(shop, "create", "@ship", "a", "b", "c")
    convoy(shop, "create", "@late", "d")
    shop.land("p/a")
    shop.run("p/b")
    assert convoy(shop, "show", "@ship").out.splitlines() == [
        "@ship  1 of 3 done: 1 at work, 1 waiting; the longest way: 2 loops",
        "p/a  spec  done",
        "p/b  spec  running",
        "p/c  spec  waiting",
        "",
        "held up by:",
        "  p/b  try 1 runs",
        "  p/c  needs b",
    ]
    assert convoy(shop, "show", "late").out.splitlines()[-1] == "  p/d  needs c"
    document = convoy(shop, "show", "@ship", "--json").document
    assert set(document) == {"schema", "generated_at", "convoy", "loops", "holding"}
    assert document["loops"] == shop("ls", "p", "--json").document["loops"][1:4]
    assert document["convoy"]["done"] == 1


def test_a_convoy_lands(shop: Desk) -> None:
    """A convoy whose members are done lands at the next turn of an engine, and takes no more members."""
    shop.start(flat(["a", "b"]))
    convoy(shop, "create", "@ship", "a")
    shop.choose()
    shop.land("p/a")
    assert convoy(shop, "list").out == "@ship  1 of 1 done: it lands at the engine's next turn\n"
    shop.choose()
    assert convoy(shop, "list").out == "@ship  1 of 1 done, landed 12:00:00\n"
    assert convoy(shop, "show", "@ship").out == "@ship  1 of 1 done, landed 12:00:00\np/a  spec  done\n"
    answer = convoy(shop, "add", "@ship", "b")
    assert (answer.code, answer.err) == (2, "loopr: convoy @ship has landed\n  hint: make another one\n")


def test_no_convoy_yet(desk: Desk, tmp_path: Path) -> None:
    """Where there is none, `list` says how one is made."""
    assert notes(convoy(desk, "list")) == ["there is no convoy yet: `loopr convoy create @NAME ID...`"]


def test_what_is_done_is_not_paused(desk: Desk) -> None:
    """Nothing of it is left to start: that is said, nothing changes, and in a group the others are paused."""
    desk.write("loopr.yml", "types:\n  plan: {child: code}\n  code: {run: make code}\n")
    plan = "---\nid: p\ncodes: [{id: a}, {id: b}]\n---\n# P\n"
    desk.start(plan)
    assert "p/a" in desk.choose()
    desk.land("p/a")
    before = seq(desk)
    assert notes(desk("pause", "p/a")) == ["p/a: it is done: nothing of it is left to start"]
    assert seq(desk) == before
    convoy(desk, "create", "@both", "p/a", "p/b")
    assert desk("pause", "@both").code == 0
    assert (desk.loop("p/a").hold, desk.loop("p/b").hold is not None) == (None, True)


def test_what_a_cancel_has_taken_comes_back_with_one_word(four: Desk) -> None:
    """The way back of `cancel p` is `retry p`, which leaves nothing of it held."""
    answer = four("cancel", "p", "--yes")
    assert notes(answer)[0] == "undo: `loopr retry p`"
    answer = four("retry", "p")
    assert answer.out.splitlines()[1:] == [f"p/{each}  retried  ready" for each in "abcd"]
    assert (answer.out.split()[:2], notes(answer)) == (["p", "resumed"], [ALONE])


def test_what_is_held_is_let_go_on_by_resume(four: Desk) -> None:
    """A loop that comes back alone is held with its plan, what was cleared has not failed."""
    four("cancel", "p", "--yes")
    assert notes(four("retry", "p/a"))[-1] == "next: `loopr resume p`"
    assert notes(four("resume", "p"))[-1] == ALONE
    four("retry", "p")
    four("clear", "p/c")
    refused = four("retry", "p")
    assert (refused.code, "`loopr resume p/c` lets go on what is held" in refused.err) == (2, True)
