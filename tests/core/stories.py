"""A tiny language for stories about decisions: one line is one thing that happens, or one thing that must hold.

`tell` plays a story on a real forest, through `turn.think` and the wishes. After every story three forests are
compared: the one that lived it, one replayed from the encoded events, and one built from the rows that a journal would
hold; their rows, their indexes and their next decisions must be the same.

    plan auth: tokens; api needs tokens     a person starts a plan that declares these specs (see `outlines.py`)
    ask auth                                ... or one that declares nothing
    drop auth/tokens: store                 a person drops the artifact of a loop
    slip auth/tokens: store                 it comes while the loop q/x is at work: nobody knows whose it is
    choose auth/tokens, auth/api            the next round grants exactly these, in this order (`choose nobody`)
    take ada 2: auth/tokens                 a pull worker is given these
    began|ended|judged|landed|gone ID       what the engine reports of the present attempt, or of `ID#ATTEMPT`
    inputless ID                            the artifact it works from had gone before its attempt began
    judged-as-leaf ID                       ... of a loop that just did the work
    says-yes ID: check KEY                  a judge of the present attempt has said yes to something
    lands ID: OLD NEW FILE                  its landing is made ready, from one commit of the plan to another
    touches ID: FILE                        its landing would change these files, and is not judged yet
    ended ID: infra died of signal 9        ... with trouble: class, words, `launch`, `sig=`, `work=`, `after=`, `in=`
    packed ID: words                        its worktree is packed, or stays for that reason
    used ID 100 tokens 20s                  what the attempt has used so far
    empty ID                                it has landed, and there was nothing to land
    finish ID: store                        everything from `began` to `landed` at once, with what it hands over
    day passes                              an engine that stays looks for what was first done again a day ago
    settle                                  what completes by declaration is written, level by level
    wait 5m                                 time passes
    why ID: gate some words                 this gate is closed and says so (`why ID: nothing` if none is)
    ID is running | ID has iteration 2      what must hold of a loop
    redo ID: words                          its work is to be done again, and what rests on it if it lands something
    redo-stale ID | starts PLAN             a person asks for all that is stale there, or starts the plan anew
    takes PLAN BASE: ID words               the plan has taken a base on which a loop has other inputs, for that reason
    approve-file|reject-file ID: tokens      a person's word on an offered file, of a text that says this
    pause|resume|cancel|retry|renew|reset|approve|reject|iterate|dispatch|clear|forget|deny|renew-lease ... ID
    refuses LINE | ignores LINE             the line is refused, or it leads to nothing; either way nothing changes
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from loopr.core import observations as o
from loopr.core import redoing, wishes
from loopr.core.events import Event
from loopr.core.model import Failure, Loop, Usage
from loopr.core.owed import WriteDeclared, owed
from loopr.core.policy import Policy
from loopr.core.shared import WORKSPACE
from loopr.core.staleness import stale_below
from loopr.core.taking import Taken, take_base
from loopr.errors import UserError
from tests.core.outlines import digest_of, outline
from tests.core.workspaces import START, STEADY, Story, ladder, same, settings, whole

__all__ = ["START", "STEADY", "Story", "go_on", "ladder", "millis", "outline", "settings", "tell", "whole"]

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_OPTIONS = re.compile(r"\b(sig|after|resets|lane|by|work|said|tip|in)=(\S+)")


def millis(text: str) -> int:
    """Read a duration such as `90s`."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    return int(found[1]) * _UNITS[found[2]]


# --- the language ----------------------------------------------------------------------------------------------------


def tell(text: str, policy: Policy | None = None) -> Story:
    """Play a story under a policy, compare the three forests, and return how it stands."""
    story = Story(policy)
    go_on(story, text)
    story.verify()
    return story


def go_on(story: Story, text: str) -> None:
    """Play further lines of a story."""
    for line in text.splitlines():
        if line.strip():
            try:
                _play(story, line.strip())
            except AssertionError as error:
                raise AssertionError(f"{line.strip()!r}: {error}") from error


def _play(story: Story, line: str) -> list[Event]:
    """Play one line."""
    head, *tail = re.split(r":(?:\s+|$)", line, maxsplit=1)  # not the colon inside of `lane:default`
    rest = "".join(tail)
    verb, *words = head.split()
    if len(words) > 0 and words[0] in ("is", "has"):
        return _holds(story, verb, words)
    if verb in _REPORTS:
        return story.see(*_REPORTS[verb](story, words[0], rest or " ".join(words[1:])))
    if verb in _WISHES:
        return story.wish(_WISHES[verb](story, words, rest))
    return _VERBS[verb](story, words, rest, line)


def _holds(story: Story, loop_id: str, words: list[str]) -> list[Event]:
    """Check the state of a loop."""
    loop = story[loop_id]
    pairs = [("status", words[1])] if words[0] == "is" else list(zip(words[1::2], words[2::2], strict=True))
    for name, value in pairs:
        found = str(getattr(loop, name))
        if found != value:
            raise AssertionError(f"{name} is {found} ({loop.reason})")
    return []


def _names(words: Iterable[str]) -> list[str]:
    """Read a list of ids with or without commas."""
    return [each for each in " ".join(words).replace(",", " ").split() if each not in ("nobody", "nothing")]


def _choose(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Play a round that grants exactly these, in this order."""
    same(story.choose(), _names(words), "other loops were chosen")
    return []


def _take(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Let a pull worker take exactly these, in this order."""
    same(story.take(words[0], int((words[1:] or ["1"])[0])), _names([rest]), "other loops were taken")
    return []


def _wait(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Let time pass."""
    story.now += millis(words[0])
    return []


def _why(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Check that a gate is closed and what it says, or that none is."""
    found, (gate, _, said) = story.gates(words[0]), rest.partition(" ")
    if gate == "nothing":
        same(found, {}, "closed")
    elif gate not in found:
        raise AssertionError(f"{gate} is open; closed are {found}")
    elif said.strip() not in found[gate]:
        raise AssertionError(f"{gate} says {found[gate]!r}")
    return []


def _settle(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Write what is owed by declaration, level by level."""
    while due := [effect for effect in owed(story.forest) if isinstance(effect, WriteDeclared)]:
        for effect in due:
            artifact = story.entry_of(effect.loop)
            story.see(o.DeclaredWritten(effect.loop, digest_of(str(artifact)), artifact, place(effect.loop)))
    return []


def _finish(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Let attempts that were granted go well from beginning to end."""
    for loop_id in _names(words):
        for report in ("began", "ended", "judged"):
            story.see(*_REPORTS[report](story, loop_id, ""))
        story.see(*_landed(story, loop_id, rest))
    return []


def _refuses(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Check that a line is refused with words for a person, and that nothing changes."""
    before = story.forest.all_rows()
    try:
        _play(story, line.removeprefix("refuses "))
    except UserError as error:
        if not str(error):
            raise AssertionError("it was refused without a word") from error
    else:
        raise AssertionError("it was not refused")
    same(before, story.forest.all_rows(), "it was refused, but something changed")
    return []


def _ignores(story: Story, words: list[str], rest: str, line: str) -> list[Event]:
    """Check that a line leads to no event at all."""
    same(_play(story, line.removeprefix("ignores ")), [], "it led to")
    return []


_VERBS: dict[str, Callable[[Story, list[str], str, str], list[Event]]] = {
    "choose": _choose,
    "take": _take,
    "wait": _wait,
    "why": _why,
    "settle": _settle,
    "finish": _finish,
    "refuses": _refuses,
    "ignores": _ignores,
}


# --- reports of the engine -------------------------------------------------------------------------------------------


def place(loop_id: str) -> str:
    """Return where the artifact of a loop lies."""
    return f"specs/{loop_id}"


def _key(story: Story, name: str) -> tuple[str, int]:
    """Read `ID#ATTEMPT`; without a number it is the present attempt."""
    loop_id, _, attempt = name.partition("#")
    return loop_id, int(attempt or story[loop_id].attempt)


def trouble(story: Story, text: str) -> o.Trouble | None:
    """Read trouble: a class, the words, `launch`, and what a provider said of the time."""
    if not text:
        return None
    said = dict(_OPTIONS.findall(text))
    name, _, words = _OPTIONS.sub("", text).strip().partition(" ")
    return o.Trouble(
        Failure(name),
        words.replace("launch", "").strip() or "it went wrong",
        said.get("sig", ""),
        launch="launch" in words.split(),
        resets_at=story.now + millis(said["resets"]) if "resets" in said else None,
        retry_after_ms=millis(said["after"]) if "after" in said else None,
        lane=said.get("lane", ""),
        vouched=said.get("by") == "reader",
        harm="harm" in words.split(),
        work=said.get("work", ""),
        quiet=said.get("said") == "nothing",
        tip=said.get("tip", ""),
        paths=tuple(said["in"].split(",")) if "in" in said else (),
    )


def _offered(story: Story, plan: str, rest: str) -> Iterator[o.Observation]:
    """A person starts a plan."""
    yield o.PlanOffered(plan, outline(rest, plan), digest_of(rest), f"{plan}.md", "main", "b0")


def _dropped(story: Story, loop_id: str, rest: str) -> Iterator[o.Observation]:
    """A person drops an artifact."""
    yield o.FileSeen(loop_id, digest_of(rest), outline(rest), place(loop_id))


def _lands(story: Story, name: str, rest: str) -> Iterator[o.Observation]:
    """A loop's landing is made ready, from one commit of its plan to another."""
    loop_id, attempt = _key(story, name)
    old, new, *touched = rest.split() or ("", "")
    yield o.LandingReady(loop_id, attempt, old, new, "tip" if old else "", tuple(touched))


def _slipped(story: Story, loop_id: str, rest: str) -> Iterator[o.Observation]:
    """An artifact comes or changes while a loop called q/x is at work."""
    loop = story.forest.loops.get(loop_id)
    title = loop.title if loop is not None and loop.parent is None else ""
    yield o.FileSeen(loop_id, digest_of(rest), outline(rest, title), place(loop_id), ("q/x",))


def _landed(story: Story, name: str, rest: str) -> Iterator[o.Observation]:
    """A loop has landed, with what it hands over, or it could not land."""
    loop_id, attempt = _key(story, name)
    if rest.partition(" ")[0] in set(Failure):
        found = trouble(story, rest)
        assert found is not None
        yield o.LandingFailed(loop_id, attempt, found)
    else:
        yield o.LandingDone(loop_id, attempt, "c0ffee", digest_of(rest or loop_id), outline(rest) if rest else None)


def _took(story: Story, name: str, rest: str) -> Iterator[o.Observation]:
    """`took p/a setup 2s`: a step beside the command is over."""
    step, _, span = rest.strip().partition(" ")
    yield o.StepTook(name, story[name].attempt, step, int(span.removesuffix("s")) * 1000)


def _used(story: Story, name: str, rest: str) -> Iterator[o.Observation]:
    """An attempt has used so much."""
    tokens = re.search(r"(\d+) tokens", rest)
    usd = re.search(r"(\d+) usd", rest)
    took = re.search(r"(\d+(?:ms|s|m|h))\b", rest)
    usage = Usage(
        int(tokens[1]) if tokens else None, int(usd[1]) * 1_000_000 if usd else None, millis(took[1]) if took else 0
    )
    yield o.AttemptUsed(*_key(story, name), usage)


_REPORTS: dict[str, Callable[[Story, str, str], Iterable[o.Observation]]] = {
    "plan": _offered,
    "ask": _offered,
    "drop": _dropped,
    "slip": _slipped,
    "malformed": lambda story, name, rest: [o.FileRefused(name, place(name), rest or "it cannot be read")],
    "gone-file": lambda story, name, rest: [o.FileGone(name)],
    "began": lambda story, name, rest: [o.AttemptBegan(*_key(story, name), "b0")],
    "lost": lambda story, name, rest: [o.AttemptLost(*_key(story, name))],
    "inputless": lambda story, name, rest: [o.InputGone(*_key(story, name))],
    "used": _used,
    "took": _took,
    "ended": lambda story, name, rest: [o.AttemptEnded(*_key(story, name), trouble(story, rest))],
    "stopped": lambda story, name, rest: [o.AttemptStopped(*_key(story, name), rest or "it was stopped")],
    "judged": lambda story, name, rest: [o.Judged(*_key(story, name), trouble(story, rest))],
    "judged-as-leaf": lambda story, name, rest: [o.Judged(*_key(story, name), trouble(story, rest), as_leaf=True)],
    "says-yes": lambda story, name, rest: [o.SaidYes(*_key(story, name), *rest.split())],
    "lands": _lands,
    "touches": lambda story, name, rest: [o.LandingTouches(*_key(story, name), tuple(rest.split()))],
    "landed": _landed,
    "empty": lambda story, name, rest: [o.LandingDone(*_key(story, name), "", digest_of(name), None)],
    "packed": lambda story, name, rest: [o.PackingDone(*_key(story, name), rest)],
    "gone": lambda story, name, rest: [o.StopSeen(*_key(story, name))],
    "day": lambda story, name, rest: [o.DayPassed()],
    "host": lambda story, name, rest: [o.HostSeen("" if name == "fine" else rest or name)],
    "harm": lambda story, name, rest: [o.HarmSeen(story.now, ("refs/heads/main",), (name, *rest.split()))],
    "engine": lambda story, name, rest: [
        {"begins": o.EngineBegan(2, "here"), "drains": o.EngineDrains("ada"), "leaves": o.EngineLeft()}[name]
    ],
}


# --- wishes ----------------------------------------------------------------------------------------------------------


def _pause(story: Story, words: list[str], rest: str) -> Iterator[Event]:
    """Hold something."""
    return wishes.pause(story.forest, _scope(words[-1]), "ada", rest, at_once="now" in words)


def _word(story: Story, rest: str) -> wishes.Word:
    """A person's word on a file; the text that is kept says this."""

    def read(loop: Loop, digest: str) -> o.FileSeen:
        title = loop.title if loop.parent is None else ""
        return o.FileSeen(loop.id, digest, outline(rest, title), place(loop.id))

    return wishes.Word(file=True, by="ada", read=read)


def _scope(word: str) -> str:
    """Read what is held: in a line a colon would end the words."""
    return WORKSPACE if word == "workspace" else word


_WISHES: dict[str, Callable[[Story, list[str], str], Iterator[Event]]] = {
    "pause": _pause,
    "resume": lambda story, words, rest: wishes.resume(story.forest, _scope(words[0]), "ada"),
    "clear": lambda story, words, rest: wishes.clear(story.forest, tuple(_names(words)), "ada"),
    "cancel": lambda story, words, rest: wishes.cancel(story.forest, words[0], "ada", rest),
    "retry": lambda story, words, rest: wishes.retry(story.forest, words[0], "ada", story.now),
    "redo": lambda story, words, rest: redoing.ask_redo(
        story.forest, story.forest.loops[words[0]], rest or "because", "ada", cascades=True, again=True
    ),
    "redo-stale": lambda story, words, rest: redoing.redo_stale(
        story.forest, [each.id for each in stale_below(story.forest.tree, words[0])], "ada"
    ),
    "takes": lambda story, words, rest: take_base(
        story.forest, words[0], Taken(words[1], tuple(filter(None, rest.split("; "))))
    ),
    "starts": lambda story, words, rest: redoing.begin_round(story.forest, words[0]),
    "renew": lambda story, words, rest: wishes.renew(story.forest, words[0], "ada"),
    "reset": lambda story, words, rest: (
        wishes.reset_lane(story.forest, words[0].removeprefix("lane:"), "ada")
        if words[0].startswith("lane:")
        else wishes.unpark(story.forest, words[0], "ada")
    ),
    "approve": lambda story, words, rest: wishes.approve(story.forest, words[0]),
    "reject": lambda story, words, rest: wishes.reject(story.forest, words[0], rest),
    "approve-file": lambda story, words, rest: wishes.approve(story.forest, words[0], _word(story, rest)),
    "reject-file": lambda story, words, rest: wishes.reject(story.forest, words[0], "", _word(story, rest)),
    "iterate": lambda story, words, rest: wishes.iterate(story.forest, words[0], rest),
    "dispatch": lambda story, words, rest: wishes.dispatch(story.forest, tuple(_names(words)), "ada"),
    "forget": lambda story, words, rest: wishes.forget(story.forest, words[0]),
    "convoy": lambda story, words, rest: wishes.form_convoy(story.forest, words[0], tuple(_names([rest]))),
    "deny": lambda story, words, rest: wishes.deny(story.forest, words[0], words[1], rest, int(words[2])),
    "renew-lease": lambda story, words, rest: wishes.renew_lease(story.forest, words[0], story.now),
    "complete-lease": lambda story, words, rest: wishes.complete_lease(story.forest, words[0], story.now),
    "release-lease": lambda story, words, rest: wishes.release_lease(
        story.forest, words[0], story.now, trouble(story, rest), "given back"
    ),
    "reclaim-lease": lambda story, words, rest: wishes.reclaim_lease(story.forest, words[0], story.now, "ada"),
}
