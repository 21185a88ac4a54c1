"""What a person sees of the work while it is done: lines in a pipe, a picture on a terminal, and the last word."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure, Loop
from loopr.core.policy import Budget, Policy
from loopr.ui.preparing import NO_SETUPS, Setups
from loopr.ui.progress import Progress, clip
from loopr.ui.render import Paint, columns
from loopr.world.launcher.proc import boot_id, start_time
from loopr.world.launcher.words import OUTCOME, RUN, Outcome, Run
from loopr.world.runs import Runs
from tests.core.stories import Story, go_on, settings
from tests.ui.scenes import NOON
from tests.ui.terminals import Line

WHOLE = "plan auth: tokens; api needs tokens"
GOES_ON = "next: `loopr run` goes on"


def nothing(loop: Loop) -> str:
    """No loop has said anything."""
    return ""


class Watched:
    """A story whose events are shown to a progress, turn by turn, as an engine does."""

    def __init__(self, progress: Progress, policy: Policy | None = None) -> None:
        self.story = Story(policy or settings(), NOON)
        self.progress, self._told = progress, len(self.story.log)

    def __call__(self, text: str, tail: Callable[[Loop], str] = nothing) -> None:
        """Play lines of a story, each a turn."""
        for line in text.strip().splitlines():
            go_on(self.story, line)
            self.show(tail)

    def show(self, tail: Callable[[Loop], str] = nothing) -> None:
        """Show what has happened since."""
        fresh = [event for event, _ in self.story.log[self._told :]]
        self._told = len(self.story.log)
        self.progress.show(self.story.forest, fresh, self.story.now, tail)

    def close(self) -> None:
        """End."""
        self.progress.close(self.story.forest, self.story.now)


class Piped(Watched):
    """A story that is told into a pipe."""

    def __init__(self, policy: Policy | None = None, plans: tuple[str, ...] = ()) -> None:
        self.written: list[str] = []
        paint = Paint(False)
        super().__init__(
            Progress(self.written.append, live=False, width=80, height=0, paint=paint, plans=plans), policy
        )

    def lines(self) -> list[str]:
        """Return what has been written since the last call."""
        found = "".join(self.written).splitlines()
        self.written.clear()
        return found


def told(text: str, policy: Policy | None = None, plans: tuple[str, ...] = ()) -> list[str]:
    """Tell a story into a pipe, and return its lines."""
    piped = Piped(policy, plans)
    piped(text)
    return piped.lines()


# --- in a pipe ----------------------------------------------------------------------------------------------------


def test_a_life_in_a_pipe() -> None:
    """What is worth a line has one, with the time first, and nothing else has."""
    assert told(f"""
        {WHOLE}
        choose auth/tokens
        began auth/tokens
        wait 20s
        used auth/tokens 900 tokens 20s
        ended auth/tokens
        judged auth/tokens: refused the tests say no
        choose auth/tokens
        wait 1s
        began auth/tokens
        wait 40s
        ended auth/tokens
        judged auth/tokens
        landed auth/tokens: store
    """) == [
        "12:00:00 auth  done  by a person's file",
        "12:00:00 auth/tokens  started",
        "12:00:20 auth/tokens  refused  the tests say no",
        "12:00:21 auth/tokens  started  try 2",
        "12:01:01 auth/tokens  landed  2 tries  1 min  900 tok",
    ]


def test_every_way_to_stop_is_told() -> None:
    """Parked, failed, backing off, limited, waiting for approval and cancelled have a line each with the reason."""
    policy = settings(types={"spec": {"max_iterations": 1, "approve": True}})
    piped = Piped(policy)
    piped("plan p: a; b; c; d; e")
    go_on(piped.story, "choose p/a p/b p/c p/d p/e")
    for name in "abcde":
        go_on(piped.story, f"began p/{name}")
    piped.show()
    piped.lines()
    piped("""
        ended p/a: config no such program: make
        ended p/b: refused exit 1
        ended p/c: infra died of signal 9
        ended p/d: limited 429 too many after=60s
        ended p/e
        judged p/e
        cancel p/c: enough
    """)
    assert piped.lines() == [
        "12:00:00 p/a  parked  no such program: make",
        "12:00:00 p/b  failed  refused 1 time, its limit: exit 1",
        "12:00:00 p/c  infra  died of signal 9  again at 12:00:30",
        "12:00:00 p/d  limited  429 too many",
        "12:00:00 lane default  backing off until 12:01:00  429 too many",
        "12:00:00 p/e  waits for approval  `loopr approve p/e`",
        "12:00:00 p/c  cancelled by ada  enough",
    ]


def test_a_budget_that_all_wait_for_is_told_once() -> None:
    """Once nothing is at work any more, a budget is told for which loops wait, until when, and once."""
    piped = Piped(settings(budget=Budget(tokens=900), window_ms=7_200_000))
    piped("plan p: a; b\nchoose p/a\nbegan p/a\nwait 5s\nused p/a 900 tokens 5s")
    piped.lines()
    piped("wait 2s\nended p/a: refused no\nwait 2s")
    assert piped.lines() == [
        "12:00:07 p/a  refused  no",
        "12:00:09 the tokens budget of the workspace is reached: 2 loops wait until 14:00:07",
    ]
    piped("wait 5m\nwait 1h\nwait 1h\nchoose p/b\nbegan p/b\nused p/b 900 tokens 5s\nended p/b: refused no\nwait 2s")
    assert [each[9:] for each in piped.lines() if "budget" in each] == [
        "the tokens budget of the workspace is reached: 2 loops wait until 16:05:09"
    ]


def test_a_queue_that_stays_too_long_is_told_again() -> None:
    """While more wait than should, a line says so every 30 seconds, with how many by then; afterwards none does."""
    piped = Piped(settings(max_loops=1, soft_limit=1))
    piped("plan p: a; b; c\nchoose p/a\n" + "wait 10s\n" * 8)
    late = "queue delayed; respecting caps ({0} waiting: {0} spec; the soft limit is 1)"
    said = [line for line in piped.lines() if "queue" in line]
    assert said == [f"{at} {late.format(2)}" for at in ("12:00:10", "12:00:40", "12:01:10")]
    piped("plan p: a; b; c; d\nwait 10s\nwait 10s")
    assert [line for line in piped.lines() if "queue" in line] == [f"12:01:40 {late.format(3)}"]
    piped("cancel p/c\ncancel p/d\n" + "wait 20s\n" * 3)
    assert [line for line in piped.lines() if "queue" in line] == []
    piped("plan p: a; b; c; d; e\nwait 1s")
    assert [line for line in piped.lines() if "queue" in line] == [f"12:02:41 {late.format(2)}"]


def test_what_concerns_everything_is_told() -> None:
    """Engine, host, lanes, holds and problems have lines of their own, a problem of several lines only one."""
    piped = Piped()
    piped(WHOLE)
    piped.lines()
    piped(
        "engine begins\nengine drains\nmalformed auth/tokens: specs/auth/tokens:1:1 is\nhost full: no space\nhost fine"
    )
    piped.story.see(o.FileRefused("auth/api", "specs/auth/api", "first\nsecond"))
    piped.story.wish(wishes.pause(piped.story.forest, "workspace:", "ada", "lunch"))
    piped.show()
    assert piped.lines() == [
        "12:00:00 engine  started, pid 2 on here",
        "12:00:00 engine  draining, asked by ada: nothing more starts",
        "12:00:00 specs/auth/tokens:1:1  problem  is",
        "12:00:00 host  nothing starts  no space",
        "12:00:00 host  takes work again",
        "12:00:00 specs/auth/api  problem  first second",
        "12:00:00 workspace  paused by ada  lunch",
    ]


def test_what_was_wrong_before_is_told_at_the_beginning() -> None:
    """Whoever begins to watch hears of a problem that an earlier engine has met, once, and of a fresh one not twice."""
    piped = Piped()
    story = piped.story
    go_on(story, WHOLE)
    story.see(o.Noticed("auth/api", "the branch is gone"))
    piped._told = len(story.log)  # all that was before anybody watched
    go_on(story, "engine begins")
    story.see(o.Noticed("auth/tokens", "so is this one"))
    piped.show()
    piped("engine drains")
    assert piped.lines() == [
        "12:00:00 engine  started, pid 2 on here",
        "12:00:00 auth/tokens  problem  so is this one",
        "12:00:00 auth/api  problem  the branch is gone",
        "12:00:00 engine  draining, asked by ada: nothing more starts",
    ]


def test_a_backoff_from_before_is_told_at_the_beginning() -> None:
    """Whoever begins to watch hears which loops wait by the clock for their next try; another plan's are not told."""
    for plans, others in (((), True), (("q",), False)):
        piped = Piped(plans=plans)
        go_on(piped.story, "plan p: a\nplan q: b\nchoose p/a q/b\nbegan p/a\nended p/a: infra the disk has gone")
        piped._told = len(piped.story.log)
        piped("engine begins")
        said = [line for line in piped.lines() if "retries after" in line]
        assert bool(said) is others, said
        if others:
            assert said[0].startswith("12:00:00 p/a  retries after failure 1: the disk has gone  until 12:00:")
        piped("engine drains")
        assert not [line for line in piped.lines() if "retries after" in line]


def test_the_tries_of_many_turns() -> None:
    """What is told late, several turns at a time, has the number of the try that each line is about."""
    piped = Piped()
    piped(WHOLE)
    piped.lines()
    for line in 2 * ("choose auth/tokens", "began auth/tokens", "ended auth/tokens: refused no", "wait 1h"):
        go_on(piped.story, line)
    piped.show()
    assert [line.partition("auth/tokens  ")[2] for line in piped.lines()] == [
        "started",
        "refused  no",
        "started  try 2",
        "refused  no",
    ]


def test_many_declared_loops_are_one_line() -> None:
    """What completes by declaration in one turn is counted, not listed."""
    piped = Piped(settings("code"))
    piped("plan p: a (x; y; z); b (u)")
    piped.lines()
    go_on(piped.story, "settle")
    piped.show()
    assert piped.lines() == ["12:00:00 p  6 loops need no work of their own"]


def test_only_what_was_asked_for_is_told() -> None:
    """With plans named, other plans have no lines and no part in the last word; what concerns everything has."""
    piped = Piped(plans=("auth",))
    piped("""
        plan auth: tokens
        plan pay: card
        choose auth/tokens pay/card
        began pay/card
        engine drains
        ended pay/card: config broken
    """)
    assert piped.lines() == [
        "12:00:00 auth  done  by a person's file",
        "12:00:00 engine  draining, asked by ada: nothing starts but what was chosen already",
    ]
    piped.close()
    assert piped.lines() == ["0 of 1 done · 1 starting", GOES_ON]


def test_a_tick_says_nothing_in_a_pipe() -> None:
    """While nothing happens a pipe is told nothing."""
    piped = Piped()
    piped(WHOLE)
    piped.lines()
    piped.progress.tick(piped.story.forest, NOON + 5_000, nothing)
    assert piped.written == []


def test_foreign_control_characters_never_reach_the_reader() -> None:
    """What a command has said is shown without what a terminal would obey, on one line."""
    piped = Piped()
    piped(f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens")
    piped.lines()
    piped.story.see(o.AttemptEnded("auth/tokens", 1, o.Trouble(Failure.CONFIG, "bad \x1b[31mred\nline")))
    piped.show()
    assert piped.lines() == ["12:00:00 auth/tokens  parked  bad �[31mred line"]


def calls_of(act: Callable[[], object]) -> int:
    """Count the calls of functions written in Python."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def test_a_line_costs_the_same_in_a_large_tree() -> None:
    """In a pipe an event costs the same in a tree of a few loops and in one of hundreds."""
    costs = []
    for size in (3, 300):
        piped = Piped(settings(max_loops=1))
        piped("plan p: " + "; ".join(f"s{n}" for n in range(size)))
        go_on(piped.story, "choose p/s0\nbegan p/s0")
        costs.append(calls_of(piped.show))
        assert piped.lines()[-1] == "12:00:00 p/s0  started"
    assert costs[0] == costs[1]


def test_whoever_watches_may_leave() -> None:
    """A reader that is gone ends the telling, not the work."""
    reader, writer = os.pipe()
    os.close(reader)
    paint = Paint(False)
    progress = Progress(lambda text: os.write(writer, text.encode()), live=False, width=80, height=0, paint=paint)
    Watched(progress)(WHOLE)
    os.close(writer)
    Watched(progress)(WHOLE)


# --- the last word ------------------------------------------------------------------------------------------------


def last_word(text: str, policy: Policy | None = None) -> list[str]:
    """Play a story, and return what is said at its end."""
    piped = Piped(policy)
    piped(text)
    piped.lines()
    piped.close()
    found = piped.lines()
    piped.close()
    piped("wait 1s\nengine drains")
    assert piped.lines() == [], "something was said after the last word"
    return found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wait 1s", ["no loops", "next: `loopr start PLAN`"]),
        (f"{WHOLE}\nengine begins\nengine drains\nengine leaves", ["0 of 2 done · 2 waiting", GOES_ON]),
        (
            f"{WHOLE}\nchoose auth/tokens\nfinish auth/tokens\nchoose auth/api\nfinish auth/api",
            ["2 of 2 done", "next: `loopr land auth`"],
        ),
        (
            f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens\nended auth/tokens: config no such program",
            [
                "0 of 2 done · 1 waiting · 1 parked",
                "parked  auth/tokens: no such program; `loopr reset auth/tokens`",
                "next: `loopr why auth/tokens`; once mended, `loopr reset auth`",
            ],
        ),
        (
            f"{WHOLE}\nchoose auth/tokens",
            ["0 of 2 done · 1 waiting · 1 starting", "next: `loopr tree auth`"],
        ),
        (
            f"{WHOLE}\npause auth/tokens",
            [
                "0 of 2 done · 2 waiting",
                "paused  auth/tokens: `loopr resume auth/tokens`",
                "next: `loopr why auth/tokens`",
            ],
        ),
        (
            f"{WHOLE}\ngone-file auth",
            [
                "0 of 2 done · 2 waiting",
                "missing  specs/auth/plan.md: `loopr doctor --fix` puts it back",
                "next: `loopr why auth/tokens`",
            ],
        ),
        (
            f"{WHOLE}\ncancel auth/tokens: not needed",
            [
                "0 of 2 done · 1 waiting · 1 cancelled",
                "cancelled  auth/tokens: not needed",
                "next: `loopr why auth/tokens`",
            ],
        ),
        (
            "plan p: a; b; c\npause workspace: lunch",
            [
                "0 of 3 done · 3 waiting",
                "waiting  3 loops: the workspace is paused by ada: lunch; `loopr resume --all`",
                "next: `loopr why p/a`",
            ],
        ),
    ],
)
def test_the_last_word(text: str, said: list[str]) -> None:
    """At the end stand the counts, what needs a person, and the command that is of most use; once."""
    assert last_word(text) == said


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("", "; once mended, `loopr retry p`"),
        ("\ncancel p/b: late", "; once mended, `loopr retry p/a`"),
        ("\nplan p: a; b needs a; c\npause p/c", "; once mended, `loopr retry p`"),
        ("\nplan p: a; b needs a; c", ""),
    ],
)
def test_the_last_word_says_how_a_failure_begins_again(then: str, said: str) -> None:
    """Where nothing goes on the line says how the plan does, with no word for what is cancelled."""
    approves = settings(types={"spec": {"approve": True}})
    failed = "plan p: a; b needs a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nreject p/a: no"
    assert last_word(failed + then, approves)[-1] == f"next: `loopr why p/a`{said}"


def test_the_last_word_names_each_that_waits_for_approval() -> None:
    """The one that `next` names is left out only where it is the only one."""
    both = "plan p: a; b\nchoose p/a p/b\nbegan p/a\nended p/a\njudged p/a\nbegan p/b\nended p/b\njudged p/b"
    approves = settings(types={"spec": {"approve": True}})
    told = [f"approval  p/{each}: `loopr approve p/{each}` or `loopr reject p/{each}`" for each in "ab"]
    assert last_word(both, approves) == ["0 of 2 done · 2 approval", *told, "next: `loopr approve p/a`"]
    assert "approval  " not in "".join(last_word("plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a", approves))


@pytest.mark.parametrize(("names", "next_one"), [("a", "approve p/a"), ("a b", "diff --waiting")])
def test_the_last_word_names_what_waits_beside_what_is_stuck(names: str, next_one: str) -> None:
    """Where something is parked and something waits for approval, both ways on are named."""
    told = "".join(f"\nbegan p/{each}\nended p/{each}\njudged p/{each}" for each in names.split())
    chosen = " ".join(f"p/{each}" for each in names.split())
    text = f"plan p: {'; '.join(names.split())}; z\nchoose {chosen} p/z{told}"
    approves = settings(types={"spec": {"approve": True}})
    lines = last_word(f"{text}\nbegan p/z\nended p/z: config no make", approves)
    assert lines[-1] == f"next: `loopr why p/z`, or `loopr {next_one}`"


def test_the_last_word_names_what_a_person_must_write() -> None:
    """Loops without a command are named with their file, at most ten of them."""
    lines = last_word("plan p: " + "; ".join(f"s{n:02}" for n in range(12)), settings("code"))
    assert lines[0] == "0 of 12 done · 12 waiting"
    assert lines[1] == "waiting  p/s00: a person must write its spec.md: specs/p/s00/spec.md"
    assert lines[-2:] == ["waiting  … and 2 more", "next: `loopr why p/s00`"]


def test_a_setup_that_takes_long(tmp_path: Path) -> None:
    """A worktree that is being set up is told after two seconds and then each minute."""
    piped = Piped(plans=("auth",))
    piped("plan auth: tokens\nplan other: x\nchoose auth/tokens other/x")
    folders = [being_set_up(tmp_path, each, NOON) for each in ("auth.tokens.g1", "other.x.g1")]
    piped.progress = Progress(
        piped.written.append,
        live=False,
        width=80,
        height=0,
        paint=Paint(False),
        plans=("auth",),
        setups=Setups(tmp_path),
    )
    piped.show()
    piped.lines()

    def told(secs: int) -> list[str]:
        piped(f"wait {secs}s")
        return [line for line in piped.lines() if "tokens" in line or "other" in line]

    assert told(1) == []
    words = "being set up for {}: `loopr logs -f auth/tokens`"
    assert told(2) == [f"12:00:03 auth/tokens  {words.format('3 s')}"]
    assert told(30) == []
    assert told(30) == [f"12:01:03 auth/tokens  {words.format('1 min 3 s')}"]
    (folders[0] / OUTCOME).write_text(json.dumps(Outcome("exited", 0)._asdict()))
    assert told(90) == []


# --- on a terminal ------------------------------------------------------------------------------------------------


class Drawn(Watched):
    """A story that is drawn on a terminal."""

    def __init__(
        self,
        line: Line,
        policy: Policy | None = None,
        plans: tuple[str, ...] = (),
        color: bool = False,
        setups: Setups = NO_SETUPS,
    ):
        self.line = line
        line.write("$ loopr run\r\n")
        paint, (width, height) = Paint(color), line.size()
        super().__init__(
            Progress(
                line.write,
                live=True,
                width=width,
                height=height,
                paint=paint,
                plans=plans,
                setups=setups,
                size=line.size,
            ),
            policy,
        )

    def later(self, ms: int, tail: Callable[[Loop], str] = nothing) -> list[str]:
        """Let time pass, and return what is on the terminal then."""
        self.story.now += ms
        self.progress.tick(self.story.forest, self.story.now, tail)
        return self.line.lines()


@pytest.fixture
def line() -> Iterator[Line]:
    """Give a terminal of the usual size."""
    found = Line(80, 24)
    yield found
    found.close()


def test_the_picture_has_the_last_line_of_a_setup(tmp_path: Path) -> None:
    """The last line of what sets a worktree up stands there without keys."""
    wide = Line(160, 24)
    drawn = Drawn(wide, setups=Setups(tmp_path, lambda text: text.replace("key", "[hidden]")))
    drawn("plan auth: tokens\nchoose auth/tokens")
    (being_set_up(tmp_path, "auth.tokens.g1", NOON) / "stdout.log").write_text("one\ngot key\n")
    words = "being set up, `loopr logs -f auth/tokens`: got [hidden]"
    assert any(each.endswith(words) for each in drawn.later(1_500))
    wide.close()


def being_set_up(state: Path, name: str, since: int) -> Path:
    """Leave the claim of a setup that this process runs, and return its folder."""
    folder = Runs(state).ensure(name, 1, "setup")
    pid, start = os.getpid(), start_time(os.getpid())
    alive = pid, start, pid, start
    run = Run("x", boot_id(), 0, *alive, since, 0, (), "", "", "", 0, 0, 0, 0, 20, 12)
    (folder / RUN).write_text(json.dumps(run._asdict()))
    return folder


def said(loop: Loop) -> str:
    """Every loop has said what it is."""
    return f"this is \x1b[31m{loop.id}"


def test_the_picture_is_redrawn_in_place(line: Line) -> None:
    """The tree stands once on the screen, below what was there, with what runs, since when, and its last line."""
    drawn = Drawn(line, color=True)
    drawn(f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens", said)
    assert drawn.later(41_000, said) == [
        "$ loopr run",
        "auth       plan  0 of 2 done",
        "├─ tokens  spec  running      41 s  this is �[31mauth/tokens",
        "└─ api     spec  waiting      needs tokens",
        "0 of 2 done · 1 waiting · 1 running",
    ]
    drawn("ended auth/tokens\njudged auth/tokens\nlanded auth/tokens: store")
    assert drawn.later(1_000) == [
        "$ loopr run",
        "auth         plan   0 of 2 done",
        "├─ tokens    spec   0 of 1 done  41 s",
        "│  └─ store  phase  ready",
        "└─ api       spec   waiting      needs tokens (0 of 1 done)",
        "0 of 2 done · 2 waiting",
    ]


def test_what_is_waited_for_stands_under_the_tree(line: Line) -> None:
    """Lanes that rest, people, budgets and a draining engine are named."""
    drawn = Drawn(line, settings(types={"spec": {"approve": True}}))
    drawn("plan p: a; b; c\nchoose p/a p/b p/c\nbegan p/a\nended p/a\njudged p/a\nbegan p/b")
    drawn("ended p/b: limited 429 after=60s\nengine drains\nmalformed p/c: spec.md:1 is")
    assert drawn.later(1_000)[5:] == [
        "lane default: backing off until 12:01:00 (1 hit): 429",
        "the engine is draining: nothing more starts; `loopr stop --now` ends what runs",
        "1 problem: `loopr status` tells",
        "waits for a person: `loopr approve p/a`",
        "0 of 3 done · 1 waiting · 1 starting · 1 approval",
    ]


def test_a_person_and_a_budget_are_waited_for(line: Line) -> None:
    """What only a person can write, and what nobody has money for, is named once with its reason."""
    drawn = Drawn(line, settings("phase", types={"phase": {}}, budget=Budget(tokens=0)))
    drawn("plan p: a; b\ndrop p/a: x")
    found = drawn.later(1_000)
    assert "waits for a person: a person must write its spec.md: specs/p/b/spec.md" not in found
    assert "waits: the tokens budget of the workspace is reached" in found


def test_a_picture_is_one_write_and_at_most_ten_a_second(line: Line) -> None:
    """Whatever happens within a tenth of a second is drawn together, each picture in one write."""
    drawn = Drawn(line)
    drawn(WHOLE)
    line.writes.clear()
    for _ in range(30):
        drawn.story.now += 10
        drawn.show()
    assert len(line.writes) == 3
    assert all(each.startswith("\r\x1b[") and each.endswith("\x1b[J") for each in line.writes)


def test_long_lines_and_large_trees_are_cut(line: Line) -> None:
    """On a small screen nothing wraps and nothing scrolls: lines are cut, the tree is folded, the counts stay."""
    line.resize(30, 8)
    drawn = Drawn(line)
    drawn("plan p: " + "; ".join(f"a-very-long-name-of-a-specification-{n}" for n in range(30)))
    drawn("choose " + " ".join(f"p/a-very-long-name-of-a-specification-{n}" for n in range(30)), said)
    for _ in range(3):
        lines = drawn.later(1_000, said)
    assert (line.terminal.wrapped, line.terminal.top) == (0, 1 if len(lines) == 8 else 0)
    assert lines[-2:] == ["└─ … 26 more: 26 starting", "0 of 30 done · 30 starting"]
    assert max(map(columns, lines)) <= 29
    assert lines[1].startswith("p ")


def test_wide_characters_are_counted(line: Line) -> None:
    """A last line in characters of two columns is cut where the screen ends."""
    line.resize(40, 10)
    drawn = Drawn(line)
    drawn(f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens")
    lines = drawn.later(1_000, lambda loop: "日本語" * 30)
    assert line.terminal.wrapped == 0
    assert 38 <= columns(lines[2]) <= 39


@pytest.mark.parametrize("size", [(40, 24), (120, 24), (25, 24), (80, 10), (20, 6), (79, 24)])
def test_a_resized_terminal_has_one_picture(line: Line, size: tuple[int, int]) -> None:
    """Made narrower, wider or lower, the screen has the picture once, without a rest of the old one."""
    drawn = Drawn(line)
    drawn("plan p: a; b; c\nchoose p/a p/b p/c\nbegan p/a\nbegan p/b")
    drawn.later(1_000, lambda loop: "word " * 30)
    line.resize(*size)
    for _ in range(2):
        lines = drawn.later(1_000, lambda loop: "word " * 30)
    shown = [row for row, _ in line.terminal.rows[line.terminal.top :]]
    assert sum(row.startswith("├─ a") for row in shown) == 1
    assert sum(row.startswith("0 of 3 done") for row in shown) == 1
    assert max(map(columns, shown)) < size[0]
    if size[1] == 24:
        assert lines[0] == "$ loopr run"
        assert len([row for row in lines if row.startswith("p ")]) == 1


def test_the_last_word_takes_the_place_of_the_picture(line: Line) -> None:
    """At the end the picture is gone, and the last word stays."""
    drawn = Drawn(line)
    drawn(f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens\nended auth/tokens: config no such program")
    drawn.later(1_000)
    drawn.close()
    drawn.later(1_000)
    drawn.show()
    assert line.lines() == [
        "$ loopr run",
        "0 of 2 done · 1 waiting · 1 parked",
        "parked  auth/tokens: no such program; `loopr reset auth/tokens`",
        "next: `loopr why auth/tokens`; once mended, `loopr reset auth`",
    ]


def test_a_tail_is_read_once_a_second(line: Line) -> None:
    """However often a picture is drawn, the files of a running loop are read once a second."""
    asked = []
    drawn = Drawn(line)
    drawn(f"{WHOLE}\nchoose auth/tokens\nbegan auth/tokens")
    asked.clear()
    for _ in range(20):
        drawn.later(100, lambda loop: asked.append(loop.id) or "")  # type: ignore[func-returns-value]
    assert len(asked) == 2


@given(st.text(st.sampled_from("ab 日\u0301"), max_size=30), st.integers(1, 40), st.integers(0, 30))
def test_a_clipped_text_fits(text: str, width: int, at: int) -> None:
    """A text with colours in it never takes more than its width, loses nothing if it fits, and ends uncoloured."""
    painted = text[:at] + Paint(True)("bad", text[at:])
    bare = clip(painted, width).replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert columns(bare) <= width
    assert bare == text if columns(text) <= width else bare.endswith("…")
    assert clip(painted, width).count("\x1b[31m") == clip(painted, width).count("\x1b[0m")
