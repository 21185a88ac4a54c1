"""What was made from old files is never called complete: a changed input is done again, with all that it changes.

A pipeline of files: each page is made from a clean file, and that from one of the data that people commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

FILES = int(os.environ.get("LOOPR_TEST_FILES", "12"))
CLEAN = "mkdir -p clean && sed s/raw/clean/ data/{0}.csv > clean/{0}.csv"
PAGE = "mkdir -p pages && sed s/clean/page/ clean/{0}.csv > pages/{0}.md"
FIRST = ["book/clean/f001", "book/pages/f001"]
OWN = "types:\n  plan: {child: stage}\n  stage: {child: code}\n  code: {check: test -d data}\n"


def names() -> list[str]:
    """Name the files."""
    return [f"f{number:03}" for number in range(1, FILES + 1)]


def plan() -> str:
    """Write the plan: two stages, and a loop in each for each file."""
    clean = [f"      - {{id: {each}, run: '{CLEAN.format(each)}', inputs: [data/{each}.csv]}}" for each in names()]
    pages = [f"      - {{id: {each}, run: '{PAGE.format(each)}', needs: [book/clean/{each}]}}" for each in names()]
    lines = ["---", "id: book", "stages:", "  - id: clean", "    codes:", *clean, "  - id: pages", "    codes:", *pages]
    return "\n".join([*lines, "---", "# Book", ""])


def checked() -> str:
    """Write a plan in which the check of each loop names the file that it makes."""
    clean = "{id: clean, run: 'sort data/f001.csv > clean.csv', check: cat clean.csv, inputs: [data]}"
    page = "{id: page, run: 'head -n 1 clean.csv > page.md', check: cat page.md, needs: [clean]}"
    return f"---\nid: small\nstages:\n  - id: s\n    codes:\n      - {clean}\n      - {page}\n---\n# Small\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with data, and a plan that has made a page of each file."""
    with opened(tmp_path) as found:
        found.found({f"data/{each}.csv": f"raw {each}\n" for each in names()})
        found.settings(OWN)
        found.write({"plan.md": plan()})
        found.loopr("start", "plan.md")
        assert set(found.statuses().values()) == {"complete"}
        yield found


def change(repo: Repo, name: str, text: str) -> None:
    """Commit a file on main."""
    repo.write({name: text})
    repo.git("add", name)
    repo.git("commit", "--quiet", "--message", f"Change {name}", "--", name)


def leased(repo: Repo, since: int) -> list[str]:
    """Name the loops that were granted a lease after a number of events."""
    return sorted(each["data"]["loop"] for each in repo.events("lease_granted")[since:])


def restart(repo: Repo, *words: str) -> tuple[list[str], str]:
    """Start the plan again, and say who was at work and what it said."""
    before = len(repo.events("lease_granted"))
    said = repo.loopr("start", "plan.md", *words).err
    return leased(repo, before), said


def squash(repo: Repo, plan: str = "book") -> None:
    """Bring the plan to main as a squashed pull request does."""
    repo.git("merge", "--squash", f"loopr/{plan}")
    repo.git("commit", "--quiet", "--message=The book (#1)")


def land(repo: Repo, plan: str = "book") -> None:
    """Bring the plan home."""
    repo.loopr("land", plan, "--yes")


@pytest.mark.parametrize("home", [land, squash, None], ids=["after land", "after a squashed pull request", "not home"])
def test_one_changed_file_does_its_own_chain_again(repo: Repo, home: object) -> None:
    """Of all loops the two of that file are at work, its page has the new words, and nothing is done twice."""
    if callable(home):
        home(repo)
    change(repo, "data/f001.csv", "raw anew\n")
    change(repo, "notes.txt", "nobody's input\n")
    assert f"{FIRST[0]}: data/f001.csv is another since" in repo.loopr("doctor").out
    assert "has other inputs (data/f001.csv): book/clean/f001" in repo.loopr("start", "--dry-run", "plan.md").err
    assert "book/clean/f001; `loopr start plan.md` does that again" in repo.loopr("land", "--dry-run", "book").err
    again, said = restart(repo)
    assert again == FIRST
    assert re.search(rf"main is \d commits on: 1 of {FILES} has other inputs \(data/f001.csv\): book/clean/f001", said)
    assert repo.on_branch("book", "pages/f001.md") == "page anew"
    assert repo.on_branch("book", "pages/f002.md") == "page f002"
    assert repo.on_branch("book", "notes.txt") == "nobody's input"
    assert set(repo.statuses().values()) == {"complete"}
    asked = [each["data"] for each in repo.events("redo_asked")]
    assert [each["loop"] for each in asked] == FIRST
    assert all(re.fullmatch(r"data/f001.csv is another since [0-9a-f]{7}", each["cause"]) for each in asked)
    assert restart(repo)[0] == []
    repo.loopr("land", "book", "--yes")
    assert (repo.root / "pages" / "f001.md").read_text() == "page anew\n"
    assert restart(repo)[0] == []


def test_what_comes_out_the_same_goes_no_further(repo: Repo) -> None:
    """A loop that makes the same of another input lands nothing, and whoever needs it stays as it is."""
    change(repo, "data/f001.csv", "clean f001\n")
    assert restart(repo)[0] == FIRST[:1]
    assert repo.on_branch("book", "data/f001.csv") == "clean f001"


def test_a_base_that_changes_nobodys_input_is_left_until_somebody_asks(repo: Repo) -> None:
    """It is taken with --update, and where the settings say so; nothing is done again for it."""
    change(repo, "notes.txt", "one\n")
    assert restart(repo)[0] == []
    assert "notes.txt" not in repo.git("ls-tree", "--name-only", "loopr/book")
    again, said = restart(repo, "--update")
    assert (again, "main is 1 commit on; it goes on with main merged, types.code.check said yes" in said) == ([], True)
    assert repo.on_branch("book", "notes.txt") == "one"
    change(repo, "notes.txt", "two\n")
    assert restart(repo, "--set", "plan_base=follow")[0] == []
    assert repo.on_branch("book", "notes.txt") == "two"


@pytest.mark.parametrize("words", ["conflict", "no"])
def test_a_base_that_does_not_fit_is_not_taken(repo: Repo, words: str) -> None:
    """A conflict or a no takes nothing and is told; what is to be done goes on from the old base."""
    change(repo, "data/f001.csv", "raw anew\n")
    if words == "conflict":
        change(repo, "clean/f002.csv", "mine\n")
    else:
        repo.settings(OWN + "land: {check: test -e absent}\n")
    tip = repo.git("rev-parse", "loopr/book")
    again, said = restart(repo)
    assert again == []
    assert "not taken, so it goes on from the old base" in said
    conflict = "conflicts with loopr/book in clean/f002.csv"
    why = conflict if words == "conflict" else "land.check said no"
    assert why in said
    rows = repo.loopr("status", "--json").document["inbox"]
    (row,) = [each for each in rows if each["kind"] == "update"]
    assert (row["about"], row["command"]) == (["book"], "loopr update book")
    assert why in row["text"]
    assert repo.git("rev-parse", "loopr/book") == tip


def test_a_conflict_that_a_person_resolves_counts_as_the_base(repo: Repo, tmp_path: Path) -> None:
    """What is merged by hand as the refusal says, and adopted, brings the new inputs along."""
    change(repo, "data/f001.csv", "raw anew\n")
    change(repo, "clean/f002.csv", "mine\n")
    told = repo.loopr("update", "book", code=1).err
    assert "main conflicts with loopr/book in clean/f002.csv" in told
    room = tmp_path / "book-merge"
    repo.git("worktree", "add", "--quiet", "--detach", str(room), repo.git("rev-parse", "loopr/book"))
    repo.git("merge", "--quiet", "--strategy-option=ours", "main", cwd=room)
    assert (
        f"{FIRST[0]} has other inputs: data/f001.csv is another since"
        in repo.loopr("adopt", "book", "HEAD", cwd=room).err
    )
    assert restart(repo)[0] == FIRST
    assert repo.on_branch("book", "pages/f001.md") == "page anew"


def test_who_is_at_work_during_an_update_is_done_again_afterwards(repo: Repo) -> None:
    """It goes on and lands what it has made of the old file; then it is done again, and whoever needs it."""
    gate = repo.gate("gate")
    work = repo.script("slow", f"tell at work\nwait_at gate\n{CLEAN.format('f001')}")
    repo.settings(
        f"types:\n  plan: {{child: stage}}\n  stage: {{child: code}}\n  code: {{check: 'true', run: '{work}'}}\n"
    )
    lines = ["---", "id: late", "stages:", "  - id: s", "    codes:", "      - {id: a, inputs: [data]}"]
    page = f"      - {{id: b, needs: [a], run: '{PAGE.format('f001')}'}}"
    repo.write({"late.md": "\n".join([*lines, page, "---", "# Late", ""])})
    process = repo.begin("start", "late.md")
    repo.heard()
    change(repo, "data/f001.csv", "raw anew\n")
    assert "late/s/a has other inputs: data/f001.csv is another since" in repo.loopr("update", "late").err
    assert [each["data"]["loop"] for each in repo.events("inputs_moved")] == ["late/s/a"]
    gate.open()
    process.ended()
    late = [each["data"]["loop"] for each in repo.events("lease_granted") if each["data"]["loop"].startswith("late/")]
    assert sorted(late) in (["late/s/a", "late/s/a", "late/s/b"], ["late/s/a", "late/s/a", "late/s/b", "late/s/b"])
    assert repo.on_branch("late", "pages/f001.md") == "page anew"


def test_what_is_not_committed_is_named_and_does_not_count(repo: Repo) -> None:
    """A file that is another in the checkout only leads to no work, and `start` says so."""
    repo.write({"data/f001.csv": "raw anew\n", "data/new.csv": "nobody's\n"})
    told = "not committed as here: data/f001.csv, which 1 loop names as inputs"
    assert told in repo.loopr("start", "--dry-run", "plan.md").err
    again, said = restart(repo)
    assert again == []
    assert told in said


def test_a_start_with_nothing_to_do_writes_nothing(repo: Repo) -> None:
    """A base that has gone on without touching an input begins no engine, be the plan home or not."""
    change(repo, "notes.txt", "one\n")
    before = len(repo.events())
    assert "nothing to do" in repo.loopr("start", "plan.md").err
    assert len(repo.events()) == before
    land(repo)
    change(repo, "notes.txt", "two\n")
    before = len(repo.events())
    assert "nothing to do" in repo.loopr("start", "plan.md").err
    assert len(repo.events()) == before


@pytest.mark.parametrize("home", [land, None], ids=["after land", "not home"])
def test_who_is_made_anew_hears_of_the_base(repo: Repo, home: object) -> None:
    """A plan that is home begins again at its base, and one that is not names the verb that merges it."""
    if callable(home):
        home(repo)
    change(repo, "notes.txt", "one\n")
    said = repo.loopr("retry", "--fresh", "--yes", *FIRST[:1]).err
    assert ("goes on from main as it is now" if home else "`loopr update book`") in said
    repo.loopr("run")
    assert repo.git("ls-tree", "--name-only", "loopr/book", "notes.txt") == ("notes.txt" if home else "")


@pytest.mark.parametrize("home", [land, squash, None], ids=["after land", "after a squashed pull request", "not home"])
def test_a_product_that_the_check_names_is_made_again(tmp_path: Path, home: object) -> None:
    """A file that a loop has landed itself is no judge of it, again and again; be it home or not."""
    with opened(tmp_path) as repo:
        repo.found({"data/f001.csv": "m\n"})
        repo.settings("types:\n  plan: {child: stage}\n  stage: {child: code}\n  code: {}\n")
        repo.write({"plan.md": checked()})
        repo.loopr("start", "plan.md")
        for word in ("k", "c"):
            if callable(home):
                home(repo, "small")
            change(repo, "data/f001.csv", f"m\n{word}\n")
            again, said = restart(repo)
            assert again == ["small/s/clean", "small/s/page"], said
            assert repo.on_branch("small", "page.md") == word


def test_a_half_that_came_home_goes_on_from_the_base(repo: Repo) -> None:
    """What landed of a plan that is not done is brought home; the plan stands at main then, and redoes what is old."""
    bad = "      - {id: bad, run: 'false'}"
    repo.write({"plan.md": plan().replace("\n---\n# Book", f"\n{bad}\n---\n# Book")})
    repo.loopr("start", "plan.md", "--set", "retry.max_attempts=1", "--set", "retry.no_progress=1", code=1)
    change(repo, "data/f001.csv", "raw anew\n")
    said = repo.loopr("land", "--partial", "--yes", "book").err
    assert "goes on from main as it is now" in said
    assert repo.git("rev-parse", "loopr/book") == repo.git("rev-parse", "main")
    repo.loopr("start", "plan.md", code=None)
    assert repo.on_branch("book", "pages/f001.md") == "page anew"


def test_a_start_beside_an_engine_at_work_takes_the_base(repo: Repo) -> None:
    """What keeps an engine busy is another plan, so the base is taken at once, and that engine does the chain again."""
    gate = repo.gate("gate")
    work = repo.script("slow", "tell at work\nwait_at gate")
    repo.write({"other.md": f"---\nid: other\nstages:\n  - id: s\n    codes:\n      - {{id: a, run: '{work}'}}\n---\n"})
    engine = repo.begin("start", "other.md")
    repo.heard()
    change(repo, "data/f001.csv", "raw anew\n")
    before = len(repo.events("lease_granted"))
    said = repo.loopr("start", "plan.md").err
    assert f"1 of {FILES} has other inputs (data/f001.csv): {FIRST[0]}" in said
    assert leased(repo, before) == FIRST
    assert repo.on_branch("book", "pages/f001.md") == "page anew"
    gate.open()
    engine.ended()


MAKE = "out/%.txt: in/%.txt\n\tmkdir -p out && cp $< $@\n\nzine/%.txt: out/%.txt\n\tmkdir -p zine && cp $< $@\n"


def made(number: int) -> str:
    """Write two entries: what make makes of a file, and of that."""
    first = (
        f"{{id: o{number}, run: 'make out/{number}.txt', check: 'test -s out/{number}.txt', inputs: [in/{number}.txt]}}"
    )
    then = f"{{id: z{number}, run: 'make zine/{number}.txt', check: 'test -s zine/{number}.txt', needs: [o{number}]}}"
    return f"      - {first}\n      - {then}\n"


@pytest.mark.parametrize("home", [land, squash, None], ids=["after land", "after a squashed pull request", "not home"])
def test_make_sees_which_files_are_newer(tmp_path: Path, home: object) -> None:
    """A product that is checked out anew is older than an input that has changed, whatever git came to first."""
    numbers = range(1, 9)
    with opened(tmp_path) as repo:
        repo.found({"Makefile": MAKE, **{f"in/{each}.txt": "old\n" for each in numbers}})
        repo.settings("types:\n  plan: {child: stage}\n  stage: {child: code}\n  code: {}\n")
        entries = "".join(map(made, numbers))
        repo.write({"plan.md": f"---\nid: mk\nstages:\n  - id: s\n    codes:\n{entries}---\n# Made\n"})
        repo.loopr("start", "plan.md")
        for word in ("new", "newest"):
            if callable(home):
                home(repo, "mk")
                assert "nothing to do" in repo.loopr("start", "plan.md").err
                assert "not brought home" not in repo.loopr("status").out
            for each in numbers:
                change(repo, f"in/{each}.txt", f"{word}\n")
            restart(repo)
            assert [repo.on_branch("mk", f"zine/{each}.txt") for each in numbers] == [word] * len(numbers)


def test_land_of_what_has_come_home_under_another_name_brings_nothing(repo: Repo) -> None:
    """After a squashed pull request `land` makes no commit, and no verb names the plan as not at home."""
    squash(repo)
    before = repo.git("rev-parse", "main")
    assert "land book" not in repo.loopr("run").err
    assert "main has all of book already" in repo.loopr("land", "book", "--yes").err
    assert repo.git("rev-parse", "main") == before


def test_an_input_that_is_no_file_of_the_base_is_named(repo: Repo) -> None:
    """A slip in a pattern is told before anything runs, and so is a file that another loop makes."""
    page = "{id: x, run: 'true > x.txt', inputs: [data/*.csv, dta/*.csv, clean/f001.csv]}"
    repo.write({"x.md": f"---\nid: x\nstages:\n  - id: s\n    codes:\n      - {page}\n---\n# X\n"})
    told = "no file of the base is dta/*.csv, clean/f001.csv, inputs of x/s/x"
    assert told in repo.loopr("start", "--dry-run", "x.md").err
    assert told in repo.loopr("start", "x.md").err


def test_what_is_done_says_that_its_inputs_are_others(repo: Repo) -> None:
    """The last word of `run` and `status` name the loops and the command, as long as a start would do them again."""
    words = "inputs changed: book/clean/f001; `loopr start plan.md` does it again"
    assert words not in repo.loopr("status").out + repo.loopr("run").err
    change(repo, "data/f001.csv", "raw anew\n")
    said = repo.loopr("run").err
    assert words in said
    assert "next: `loopr start plan.md`, or `loopr land book`" in said
    assert words in repo.loopr("status", "--json").document["warnings"]
    repo.loopr("start", "plan.md")
    assert words not in repo.loopr("status").out + repo.loopr("run").err


@pytest.mark.parametrize(("status", "code"), [("failed", 1), ("parked", 78)])
def test_a_mended_input_brings_back_what_it_had_stopped(repo: Repo, status: str, code: int) -> None:
    """A loop that failed or was parked over a file begins anew, with what rests on it, once that is another."""
    fussy = f"if grep bad data/f001.csv; then exit {code}; fi; {CLEAN.format('f001')}"
    change(repo, "data/f001.csv", "bad\n")
    repo.write({"plan.md": plan().replace(CLEAN.format("f001"), fussy)})
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses()[FIRST[0]] == status
    change(repo, "data/f001.csv", "raw mended\n")
    again, said = restart(repo)
    assert f"1 of {FILES} has other inputs (data/f001.csv): {FIRST[0]}" in said
    assert (again, set(repo.statuses().values())) == (FIRST, {"complete"})
    assert repo.on_branch("book", "pages/f001.md") == "page mended"


def test_a_file_of_a_person_has_no_inputs(tmp_path: Path) -> None:
    """Of a loop that failed and that a person completed by a file nothing is said when an input of it is another."""
    with opened(tmp_path) as repo:
        repo.found({"data": "one\n"})
        repo.settings("types: {plan: {child: stage}, stage: {child: code}, code: {check: none}}\n")
        entry = "{id: s, codes: [{id: a, run: exit 1, inputs: [data]}]}"
        repo.write({"plan.md": f"---\nid: small\nstages: [{entry}]\n---\n# Small\n"})
        repo.loopr("start", "plan.md", code=1)
        repo.write({"specs/small/s/a/code.md": "# Done by hand\n"})
        repo.loopr("run")
        change(repo, "data", "two\n")
        assert "other inputs" not in restart(repo)[1]


def test_a_base_that_went_on_is_told_of_what_is_done(repo: Repo) -> None:
    """A start of a plan that is done and not home says what its base has more, and writes no event."""
    change(repo, "notes.txt", "one\n")
    before = len(repo.events())
    said = restart(repo)[1]
    assert "main has commits that loopr/book lacks; to bring them there: `loopr update book`" in said
    assert "nothing to do" in said
    assert len(repo.events()) == before


def test_work_that_the_base_has_no_more_is_named(repo: Repo) -> None:
    """Files that loops made and that a person takes away on the base are named, with what makes them again."""
    land(repo)
    repo.git("rm", "--quiet", "pages/f002.md")
    repo.git("commit", "--quiet", "--message=Away")
    lost = "main lacks pages/f002.md, made here: `loopr retry --fresh book/pages/f002` makes it again"
    assert lost in restart(repo)[1]
    assert lost in restart(repo, "--no-run")[1]
    first = repo.git("rev-list", "--max-parents=0", "main")
    refused = repo.loopr("adopt", "book", first, "--replace", code=2).err
    assert "made here: `loopr retry --fresh book/clean/f001" in refused


def test_a_conflicting_base_leads_to_the_lines_that_mend_it(repo: Repo) -> None:
    """Where a start cannot take the base, the way on is `update`, which names the lines; not the same start again."""
    change(repo, "data/f001.csv", "raw anew\n")
    change(repo, "clean/f002.csv", "mine\n")
    said = restart(repo)[1]
    assert "the base conflicts: `loopr update book` says how that is mended" in said
    assert "next: `loopr start plan.md`" not in said
