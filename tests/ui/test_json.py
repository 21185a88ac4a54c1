"""The documents that programs read: exactly the keys of the formats, always all, and one on stdout whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure, Usage
from tests.ui.calls import loopr
from tests.ui.scenes import COMMANDS, OAUTH, Desk, flat

HEAD = {"schema", "generated_at"}
DOCUMENTS = {
    "tree": "workspace loops counts progress lanes unread",
    "ls": "workspace loops counts progress lanes unread",
    "status": "engine paused capacity counts progress queue lanes projects problems moved offered stale warnings "
    "resources worktrees unread ready plans inbox setups",
    "next": "at grants held refused unread",
    "why a": "setup update conflict id runnable gates offered stale redo score story unread",
    "show a": "loop attempts children frees denied unread progress places",
    "simulate p": "makespan_secs utilisation waiting_secs critical_path runs counts unfinished ways foretold",
    "start -n p.md": "workspace loops counts progress lanes dry_run plans ways",
}
LOOP_KEYS = (
    "id type title status state done below project parent needs depth generation iteration max_iterations attempt "
    "failures launch_failures conflicts score gates lease lane agent branch base_commit worktree input output usage "
    "created_at started_at updated_at reason stale redo"
)
LOOP = set(LOOP_KEYS.split())
PARTS = {
    "below": "total complete running parked failed done of",
    "score": "total base age depth retry priority",
    "usage": "tokens usd seconds beside_seconds estimated",
    "lease": "id holder expires_at",
}


def busy(shop: Desk) -> Desk:
    """Fill a workspace with loops in many states."""
    shop.write("loopr.yml", COMMANDS.replace("make spec}", "make spec, lane: hal}"))
    shop.start(flat(["a", "b", "c", "d", "e"]), "p.md")
    shop.start(OAUTH)
    shop.choose()
    shop.run("p/a")
    shop.see(o.AttemptUsed("p/a", 1, Usage(None, None, 5000)))
    shop.end("p/a", Failure.CONFIG, "no make")
    shop.see(o.FileRefused("p/b", "specs/p/b/spec.md", "bad"))
    shop.wish(wishes.pause, "workspace:", "ada", "")
    return shop


def arguments(shop: Desk, line: str) -> list[str]:
    """Split a command line; a plan file is named with its folder."""
    return [str(shop.folder / each) if each.endswith(".md") else each for each in line.split()]


@pytest.mark.parametrize("line", DOCUMENTS)
@pytest.mark.parametrize("full", [False, True])
def test_a_document_has_exactly_its_keys(shop: Desk, line: str, full: bool) -> None:
    """Every document has its keys and no other, in a busy workspace as in one with a single loop."""
    if full:
        busy(shop)
    else:
        shop.start(flat(["a"]), "p.md")
    answer = shop(*arguments(shop, line), "--json")
    assert answer.code == 0, answer
    assert set(answer.document) == HEAD | set(DOCUMENTS[line].split())
    assert (answer.document["schema"], answer.document["generated_at"]) == (1, "2026-01-01T12:00:00.000Z")


def test_a_loop_has_one_shape(shop: Desk) -> None:
    """A loop has every key wherever it is, whatever its state; what is absent is null and an empty list is a list."""
    busy(shop)
    show = shop("show", "p", "--json").document
    rows = [*shop("tree", "--json").document["loops"], *shop("ls", "--json").document["loops"]]
    rows += [show["loop"], *show["children"], *shop("start", "-n", shop.folder / "p.md", "--json").document["loops"]]
    for row in rows:
        assert set(row) == LOOP
        for key, wanted in PARTS.items():
            assert row[key] is None or set(row[key]) == set(wanted.split())
        assert all(set(gate) == {"gate", "reason", "until"} for gate in row["gates"])
        assert isinstance(row["needs"], list)
    assert {row["id"]: row for row in rows}["p/b"]["lease"] == {"id": "p/b#1", "holder": "engine", "expires_at": None}


def test_the_parts_of_a_status(shop: Desk) -> None:
    """The parts of the status have exactly their keys too."""
    body = busy(shop)("status", "--json").document
    assert set(body["engine"]) == {"running", "pid", "host", "since", "draining", "stays"}
    assert set(body["paused"]) == {"by", "at", "reason"}
    assert {"max_loops", "occupied", "free", "per_type", "max_api_calls"} <= set(body["capacity"])
    assert set(body["queue"]) == {"depth", "by_type", "soft_limit", "hard_limit"}
    assert set(body["projects"]["default"]) == {"weight", "usage", "share", "target", "occupied", "budget"}


def test_the_parts_of_a_round(shop: Desk) -> None:
    """Grants and what is held have exactly their keys."""
    shop.start()
    body = shop("next", "--json").document
    assert [set(each) for each in body["grants"]] == [{"id", "lease", "project", "score", "lane", "agent", "stands_in"}]
    assert {tuple(each) for each in body["held"]} == {("id", "gate", "reason", "until")}


def test_the_parts_of_a_story(shop: Desk) -> None:
    """Each line of a story has its number, instant, event and words."""
    story = busy(shop)("why", "p/a", "--json").document["story"]
    assert {tuple(each) for each in story} == {("seq", "at", "event", "text", "seconds")}
    assert [each["seq"] for each in story] == sorted(each["seq"] for each in story)


def test_an_instant_in_the_past_or_future_heads_the_document(shop: Desk) -> None:
    """With --at a document says that instant, and not the clock's."""
    shop.start()
    for verb in ("tree", "ls", "status", "next"):
        body = shop(verb, "--json", "--at", "2026-06-01T00:00:00Z").document
        assert body["generated_at"] == "2026-06-01T00:00:00.000Z"


@pytest.mark.parametrize("verb", ["tree", "ls", "status", "next"])
def test_an_empty_workspace_has_documents_too(desk: Desk, verb: str) -> None:
    """Before anything is planned the documents are the same, with empty lists."""
    body = desk(verb, "--json").document
    assert set(body) == HEAD | set(DOCUMENTS[verb].split())
    assert body.get("loops", []) == []


Break = Callable[[Desk], object]
FAILURES: dict[str, tuple[str, int, str, Break]] = {
    "no such loop": ("show nobody", 3, "unknown_id", lambda desk: desk.start()),
    "no such verb": ("tre", 2, "usage", lambda desk: None),
    "no such option": ("tree --bogus", 2, "usage", lambda desk: None),
    "a bad time": ("tree --at soon", 2, "usage", lambda desk: None),
    "a missing argument": ("why", 2, "usage", lambda desk: None),
    "no such event": ("events --type nope", 2, "usage", lambda desk: desk.start()),
    "no such plan": ("start --no-run nope.md", 3, "unknown_id", lambda desk: None),
    "a bad plan": ("start --no-run bad.md", 2, "bad_file", lambda desk: desk.write("bad.md", "")),
    "bad settings": ("tree", 78, "bad_settings", lambda desk: desk.write("loopr.yml", "bogus: 1")),
    "a bad setting for once": ("tree --set bogus=1", 78, "bad_settings", lambda desk: None),
    "a damaged journal": ("tree", 78, "bad_settings", lambda desk: desk.write(".git/loopr/loopr.db", "junk" * 999)),
    "no picture": ("simulate bad.md --svg no/x", 78, "world", lambda desk: desk.write("bad.md", flat(["a"]))),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_one_document(desk: Desk, name: str) -> None:
    """What goes wrong is told on stdout as the one document there, with its codes, and nowhere else."""
    line, exit_code, code, prepare = FAILURES[name]
    prepare(desk)
    answer = loopr(
        *(each for each in line.split()[:1]), "-C", desk.folder, *arguments(desk, " ".join(line.split()[1:])), "--json"
    )
    assert (answer.code, answer.err) == (exit_code, "")
    body = json.loads(answer.out)
    assert set(body) == {"schema", "error"}
    assert (body["schema"], body["error"]["code"]) == (1, code)
    assert set(body["error"]) == {"code", "message", "hint"}
    assert body["error"]["message"]


def test_a_hint_stands_apart(desk: Desk) -> None:
    """The remedy of a single problem is the hint, not a part of the message."""
    path = desk.write("plan.md", "")
    error = desk("start", "--no-run", path, "--json").document["error"]
    assert error == {
        "code": "bad_file",
        "message": "plan.md:1:1 is empty",
        "hint": "write a title, and what is to be done",
    }


def test_a_bug_is_told_as_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is exit 70 with one document, and its trace is on stderr for the report."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("loopr.ui.views.tree", broken)
    answer = desk("tree", "--json")
    assert answer.code == 70
    assert answer.document["error"]["message"] == "ZeroDivisionError: oh"
    assert "Traceback" in answer.err
