"""Nothing is granted before the artifacts have been looked at, whoever decides; who only shows says what differs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: pl\nspecs: [{id: s1, phases: [{id: p1, tasks: [{id: c1}, {id: c2}]}]}]\n---\n# Plan\n"
PHASE = "specs/pl/s1/p1/phase.md"
CODE = 'wc -c < "$LOOPR_INPUT" >> "$DESK/sizes"; say ran; echo work > "$LOOPR_ATTEMPT.txt"'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def enqueue(repo: Repo, more: str = "", *, run: bool = True) -> Path:
    """Enqueue a plan with two code loops, and return the artifact that they work from."""
    code = f"{{run: '{repo.script('code', CODE)}'}}" if run else "{}"
    repo.settings(f"types:\n  code: {code}\n{more}")
    repo.write({"plan.md": PLAN})
    repo.loopr("start", "--no-run", "plan.md")
    return repo.root / PHASE


def gates(repo: Repo, loop: str) -> dict[str, str]:
    """Return why a loop waits."""
    return {each["gate"]: each["reason"] for each in repo.loopr("why", loop, "--json").document["gates"]}


# --- an engine that begins ------------------------------------------------------------------------------------------


def test_nothing_runs_without_its_input(repo: Repo) -> None:
    """An artifact that went while no engine ran keeps its children from being leased, from the first grant on."""
    phase = enqueue(repo)
    text = phase.read_bytes()
    phase.unlink()
    repo.loopr("run", code=4)
    assert (repo.granted(), repo.diary()) == ({}, [])
    assert PHASE in gates(repo, "c1")["artifact"]
    phase.write_bytes(text)
    repo.loopr("run")
    assert (repo.diary(), repo.note("sizes").split()) == (["ran", "ran"], [f"{len(text)}"] * 2)


def test_what_is_missing_need_not_settle(repo: Repo) -> None:
    """At the first look of an engine nobody is in the middle of writing a file that is not there."""
    phase = enqueue(repo, "artifacts: {settle_ms: 60000}\n")
    phase.unlink()
    process = repo.begin("run")
    repo.until("artifact_gone")
    process.signal(15)
    process.ended(None)
    assert repo.granted() == {}


def test_a_file_that_differs_is_read_before_the_first_grant(repo: Repo) -> None:
    """A file of a moment ago is waited for until it has settled: a loop that it does not declare is never leased."""
    phase = enqueue(repo, "artifacts: {settle_ms: 2000}\n")
    phase.write_text(phase.read_text().replace("c2", "c3"))
    repo.loopr("run")
    assert repo.granted().keys() == {"pl/s1/p1/c1", "pl/s1/p1/c3"}


def test_what_is_known_need_not_settle(repo: Repo) -> None:
    """An engine that begins right after the artifacts were written waits for none of them."""
    enqueue(repo, "artifacts: {settle_ms: 60000}\n")
    process = repo.begin("run")
    repo.until("landed", 2)
    process.signal(15)
    process.ended(None)


def test_an_input_that_goes_between_lease_and_start(repo: Repo) -> None:
    """A lease whose input has gone before its attempt begins goes back: no failure, no iteration, and no command."""
    phase = enqueue(repo, "dispatch: {spawn_delay_secs: 3}\n")
    process = repo.begin("run")
    repo.until("attempt_started")
    repo.until("lease_granted", 2)
    phase.unlink()
    process.ended(4)
    loops = repo.loops()
    second = next(each for each in ("pl/s1/p1/c1", "pl/s1/p1/c2") if loops[each]["status"] == "pending")
    assert (loops[second]["failures"], loops[second]["iteration"], len(repo.diary())) == (0, 1, 1)
    assert PHASE in gates(repo, second)["artifact"]
    assert [each["loop"] for each in repo.events("lease_released")] == [second]


def test_what_lies_at_the_place_of_an_input_costs_no_try(repo: Repo) -> None:
    """A loop whose input is no file any more works from the text that counts, as beside a broken one."""
    phase = enqueue(repo)
    text = phase.read_bytes()
    phase.unlink()
    phase.mkdir()
    for words in (["tree"], ["next"], ["ls", "--ready"], ["tree", "c1"], ["ls", "c1", "--json"]):
        assert f"{PHASE} is not a regular file any more" in repo.loopr(*words).out, words
    said = repo.loopr("run", code=None).err
    assert f"{PHASE}  problem  is not a regular file" in said and "Errno" not in said
    assert (repo.diary(), repo.note("sizes").split()) == (["ran", "ran"], [f"{len(text)}"] * 2)
    assert {each["failures"] for each in repo.loops().values()} == {0}


# --- leases without an engine ---------------------------------------------------------------------------------------


def test_no_lease_without_an_input(repo: Repo) -> None:
    """Where no engine runs, a lease is decided on the files as they are: without its input no loop is leased."""
    phase = enqueue(repo, run=False)
    text = phase.read_bytes()
    phase.unlink()
    ended = repo.loopr("lease", "take", "--holder", "ada", "--limit", "5", code=75)
    assert f"its input {PHASE} is not on disk" in ended.err
    assert repo.granted() == {}
    phase.write_bytes(text)
    taken = repo.loopr("lease", "take", "--holder", "ada", "--limit", "5", "--json").document["leases"]
    assert sorted(each["loop"] for each in taken) == ["pl/s1/p1/c1", "pl/s1/p1/c2"]
    assert all(Path(each["environment"]["LOOPR_INPUT"]).read_bytes() == text for each in taken)


@pytest.mark.parametrize("left", ["c1", "c3"])
def test_no_lease_for_what_is_no_longer_declared(repo: Repo, left: str) -> None:
    """What a changed artifact declares counts at once, and what it declares no more is leased to nobody."""
    phase = enqueue(repo, run=False)
    both = "tasks:\n- id: c1\n- id: c2\n"
    repo.drop("pl/s1/p1/phase.md", f"---\ntasks: [{{id: {left}}}]\n---\n# By hand\n")
    assert both not in phase.read_text()
    taken = repo.loopr("lease", "take", "--holder", "ada", "--limit", "5", "--json").document["leases"]
    assert [each["loop"] for each in taken] == [f"pl/s1/p1/{left}"]


def test_no_lease_for_what_a_person_has_done(repo: Repo) -> None:
    """A file at the place of the very loop that would be leased completes it first."""
    enqueue(repo, run=False)
    repo.drop("pl/s1/p1/c1/code.md", "# By hand\n")
    taken = repo.loopr("lease", "take", "--holder", "ada", "--limit", "5", "--json").document["leases"]
    assert [each["loop"] for each in taken] == ["pl/s1/p1/c2"]
    assert repo.statuses()["pl/s1/p1/c1"] == "complete"


# --- who only shows -------------------------------------------------------------------------------------------------

SHOWING = ("tree", "ls", "status", "show c1", "why c1", "next")


def told(repo: Repo, verb: str) -> dict[str, str]:
    """Return what a verb says of files that differ, by loop; on paper it says the same as in JSON."""
    rows = repo.loopr(*verb.split(), "--json").document["unread"]
    said = " ".join(repo.loopr(*verb.split()).out.split())
    for each in rows:
        gone = each["text"].endswith("is gone since it was read")
        does = "`loopr doctor --fix` puts it back" if gone else "`loopr run` takes it up"
        assert (each["text"] in said, does in said) == (True, True), said
    return {each["id"]: each["text"] for each in rows}


@pytest.mark.parametrize("way", ["gone", "other", "touched"])
def test_views_say_that_a_file_differs(repo: Repo, way: str) -> None:
    """Where no engine runs, a view tells that an artifact is not what was read, and writes nothing."""
    phase = enqueue(repo, run=False)
    assert [told(repo, verb) for verb in SHOWING] == [{}] * len(SHOWING)
    if way == "gone":
        phase.unlink()
    elif way == "other":
        phase.write_text(phase.read_text().replace("c2", "c3"))
    else:
        phase.touch()
    words = {"gone": "is gone since it was read", "other": "differs from what was read"}
    wanted = {"pl/s1/p1": f"{PHASE} {words[way]}"} if way in words else {}
    before = len(repo.events())
    assert [told(repo, verb) for verb in SHOWING] == [wanted] * len(SHOWING)
    assert len(repo.events()) == before


def test_a_tree_names_what_is_gone_as_long_as_it_is(repo: Repo) -> None:
    """Also where an engine has seen it, with what puts it back; once it is back, no more."""
    phase = enqueue(repo)
    repo.loopr("run")
    assert "gone" not in repo.loopr("tree").out
    phase.unlink()
    said = "`loopr doctor --fix` puts it back"
    assert f"{PHASE} is gone since it was read; {said}" in " ".join(repo.loopr("tree").out.split())
    repo.loopr("run")
    assert f"{PHASE} is gone; {said}" in " ".join(repo.loopr("tree").out.split())
    assert "gone" not in repo.loopr("tree", "pl/s1/p1/c1").out
    shutil.rmtree(repo.root / "specs")
    repo.loopr("run")
    assert "5 artifacts are gone; `loopr doctor --fix` puts" in repo.loopr("tree").out
    repo.loopr("doctor", "--fix", code=None)
    assert "gone" not in repo.loopr("tree").out


def test_views_say_that_the_file_which_is_asked_for_is_there(repo: Repo) -> None:
    """Whoever is asked for a file, and has put it there while no engine runs, reads that one is needed to take it."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', CODE)}'}}\n")
    repo.write({"plan.md": "---\nid: pl\nspecs: [{id: s}, {id: t, needs: [s]}]\n---\n# Plan\n"})
    repo.loopr("start", "plan.md", code=4)
    repo.drop("pl/s/spec.md", "---\nphases: [{id: p, tasks: [{id: c}]}]\n---\n# By hand\n")
    words = {"pl/s": "no engine runs, and a file is there for pl/s: specs/pl/s/spec.md"}
    for verb in ("tree", "ls", "status", "show s", "why s", "why t", "next"):
        assert told(repo, verb) == words
    repo.loopr("run", code=4)
    assert told(repo, "status") == {}
    assert repo.diary() == ["ran"]


def test_a_round_is_foretold_by_the_files_as_they_are(repo: Repo) -> None:
    """`next` shows what would be granted once the files have been read, and remembers none of it."""
    phase = enqueue(repo)
    phase.write_text(phase.read_text().replace("c2", "c3"))
    grants = [each["id"] for each in repo.loopr("next", "--json").document["grants"]]
    assert grants == ["pl/s1/p1/c1", "pl/s1/p1/c3"]
    assert "pl/s1/p1/c3" not in repo.loops()
    phase.unlink()
    body = repo.loopr("next", "--json").document
    assert (body["grants"], {each["gate"] for each in body["held"]}) == ([], {"artifact"})


def test_while_an_engine_looks_no_view_does(repo: Repo) -> None:
    """A file that an engine has yet to read is no news of a view's."""
    phase = enqueue(repo, "artifacts: {settle_ms: 60000}\n")
    repo.script("code", "tell began; wait_at gate")
    repo.gate("gate")
    process = repo.begin("run")
    repo.heard()
    phase.write_text(phase.read_text().replace("c2", "c3"))
    assert told(repo, "status") == {}
    process.kill()
    assert list(told(repo, "status")) == ["pl/s1/p1"]


def test_the_machine_is_looked_at_too(repo: Repo) -> None:
    """Where no engine has looked, `next` and `why` say that the machine is short of something, or is no more."""
    enqueue(repo)
    short = ("--set", "worktrees.min_free_gb=1000000")
    body = repo.loopr("next", "--json", *short).document
    assert (body["grants"], {each["gate"] for each in body["held"]}) == ([], {"host"})
    assert "the disk is nearly full" in repo.loopr("why", "c1", *short).out
    assert repo.loopr("next", "--json", "--at", "+1m", *short).document["grants"] != []
    process = repo.begin("run", *short)
    repo.until("host_changed")
    process.kill()
    assert [each["id"] for each in repo.loopr("next", "--json").document["grants"]] == ["pl/s1/p1/c1", "pl/s1/p1/c2"]
    assert gates(repo, "c1") == {}
