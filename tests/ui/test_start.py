"""Enqueueing plans: what is new, what has changed, what is refused; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.core.model import Failure
from loopr.engine import compare
from loopr.wiring import Workspace
from tests.ui.calls import Answer, everything, git, loopr, repository
from tests.ui.scenes import COMMANDS, OAUTH, Clock, Desk, flat
from tests.ui.test_adopt import commit

ALL = [
    "oauth",
    "oauth/tokens",
    "oauth/tokens/store",
    "oauth/tokens/store/code",
    "oauth/tokens/refresh",
    "oauth/endpoints",
]


def ids(desk: Desk, *options: str) -> list[str]:
    """Return the ids of all loops in tree order."""
    return [each["id"] for each in desk("ls", "--json", *options).document["loops"]]


def statuses(desk: Desk) -> dict[str, str]:
    """Return where each loop stands."""
    return {each["id"]: each["status"] for each in desk("ls", "--json").document["loops"]}


def seq(desk: Desk) -> int:
    """Return how many events there are."""
    with Workspace(desk.folder).journal() as journal:
        return journal.last_seq()


def sound(desk: Desk) -> list[str]:
    """Say where the rows of the journal differ from its events."""
    with Workspace(desk.folder).journal() as journal:
        return compare(journal)


# --- a plan -------------------------------------------------------------------------------------------------------


def test_a_plan_without_an_outline(desk: Desk) -> None:
    """A plan that declares nothing, or under another heading, is told how it would, unless a command writes that."""
    words = "it declares no specs: list them under `## Specs`, or as `specs:` in front matter"
    desk.write("plan.md", "# P\n\n## Tasks\n- one\n")
    for options in (("-n",), ("--no-run",)):
        assert words in desk("start", *options, desk.folder / "plan.md").err
    assert words not in desk("start", "-n", desk.folder / "plan.md", "--set", "types.plan.run=make plan").err
    desk.write("plan.md", "# P\n\n## Specs\n- one\n")
    assert words not in desk("start", "--no-run", desk.folder / "plan.md").err
    assert ids(desk) == ["p", "p/one"]


@pytest.mark.parametrize("verb", ["start", "run", "reset"])
def test_a_plan_goes_along_with_its_base(shop: Desk, verb: str) -> None:
    """As long as nothing of a plan has landed, whoever starts, runs or resets it finds it where its base is."""
    shop.start(flat(["a"]))
    shop.branch()
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=mended")
    words = {"start": ("start", "--no-run", shop.folder / "plan.md"), "run": ("run", "--for", "0s")}
    if verb == "reset":
        assert shop.choose() == ["p/a"]
        shop.run("p/a")
        shop.end("p/a", Failure.CONFIG, "broken")
    answer = shop(*words.get(verb, ("reset", "p/a")))
    main = git(shop.folder, "rev-parse", "main")
    assert f"nothing of p has landed, so it goes on from main as it is now, {main[:12]}" in answer.err
    assert git(shop.folder, "rev-parse", "loopr/p") == main
    assert Workspace(shop.folder).look().scene.shared.plans["p"].base_commit == main
    assert "main" not in shop("start", "--no-run", shop.folder / "plan.md").err


def test_commits_that_a_plan_lacks(shop: Desk) -> None:
    """A plan that is started again is told of commits that its own branch lacks, and how they come there."""
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=begin")
    shop.start(flat(["a"]))
    shop.branch()
    assert "lacks" not in shop("start", "--no-run", shop.folder / "plan.md").err
    shop("adopt", "p", commit(shop, "main", "landed.txt"))
    git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=a tool")
    told = "main has commits that loopr/p lacks; to bring them there: `loopr update p`"
    assert told in shop("start", "--no-run", shop.folder / "plan.md").err
    assert told in shop("start", "--dry-run", shop.folder / "plan.md").err
    assert shop("adopt", "p", "main").code == 0
    assert "lacks" not in shop("start", "--no-run", shop.folder / "plan.md").err


def test_a_plan_that_was_cleared_away(desk: Desk) -> None:
    """A plan whose copy is gone is put back by starting it again, though nothing has changed in it."""
    desk.start(flat(["a"]))
    copy = desk.folder / "specs/p/plan.md"
    text = copy.read_text()
    copy.unlink()
    assert desk.start(flat(["a"])).err == "p: nothing has changed\n"
    assert copy.read_text() == text
    assert "is not on disk" not in desk("why", "p/a").out


def test_a_new_plan(desk: Desk) -> None:
    """It is copied, its declared loops are complete and have their files, and the report says what to type next."""
    answer = desk.start()
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.splitlines() == [
        "oauth: 6 new (2 written out in the plan)",
        "  see it with `loopr tree oauth`, or play it with `loopr simulate oauth`",
    ]
    assert ids(desk) == ALL
    assert (desk.folder / "specs/oauth/plan.md").read_text() == OAUTH
    written = sorted(str(each.relative_to(desk.folder)) for each in (desk.folder / "specs").rglob("*.md"))
    assert written == ["specs/oauth/plan.md", "specs/oauth/tokens/spec.md", "specs/oauth/tokens/store/phase.md"]
    assert sound(desk) == []


def test_twice_is_once(desk: Desk) -> None:
    """Starting the same plan again writes no event and touches no file."""
    desk.start()
    before, events = everything(desk.folder / "specs"), seq(desk)
    again = desk.start()
    assert (again.code, again.err) == (0, "oauth: nothing has changed\n")
    assert (everything(desk.folder / "specs"), seq(desk)) == (before, events)


def test_a_dry_run_shows_it_and_writes_nothing(desk: Desk) -> None:
    """With --dry-run the tree is drawn as it would be, and no byte changes: not of the state, not of git's."""
    path = desk.write("plan.md", OAUTH)
    before = everything(desk.folder)
    dry = desk("start", "--dry-run", path)
    assert dry.err == "oauth: 6 new (2 written out in the plan)\nnothing was written\n"
    assert everything(desk.folder) == before
    desk.start()
    drawn, on_paper = desk.lines("tree")[:-1], dry.out.splitlines()
    assert [each.split("  ")[0] for each in drawn] == [each.split("  ")[0] for each in on_paper]
    ways = ("by declaration", "by declaration", "by declaration", "by a person")
    assert [way in line for way, line in zip(ways, on_paper, strict=False)] == [True] * 4


def test_a_dry_run_knows_what_it_would_have_written(shop: Desk) -> None:
    """What a plan on paper needs of its own copy is there: its children are ready, and can be played."""
    path = shop.write("p.md", flat(["a", "b"]))
    assert "├─ a  spec  hands over      ready" in shop("start", "-n", path).out
    played = shop("simulate", path, "--json").document
    assert (played["unfinished"], played["counts"]) == ([], {"complete": 7})


def test_a_plan_without_an_outline_waits(desk: Desk) -> None:
    """A plan that declares nothing is published nowhere; it is kept as input, and waits for a person's file."""
    desk.start("# Just an idea\n\nWrite me.\n", "idea.md")
    assert statuses(desk) == {"just-an-idea": "pending"}
    assert not (desk.folder / "specs").exists()
    assert (desk.folder / ".git/loopr/inputs/just-an-idea.md").read_text().endswith("Write me.\n")
    desk.write("specs/just-an-idea/plan.md", "# Just an idea\n\n## Specs\n- a: A\n")
    desk("start", "--no-run", desk.folder / "idea.md")
    assert statuses(desk) == {"just-an-idea": "complete", "just-an-idea/a": "pending"}


# --- a changed plan -----------------------------------------------------------------------------------------------


def test_an_edited_plan(desk: Desk) -> None:
    """New entries appear, entries that went are invalidated with all below them, the others stay as they are."""
    desk.start()
    edited = OAUTH.replace("      - {id: store, title: Tables and repository}\n", "")
    edited = edited.replace(", needs: [store]", "").replace("needs: [tokens]", "needs: [tokens]\n  - id: docs")
    answer = desk.start(edited)
    assert answer.code == 0
    assert ids(desk) == [ALL[0], ALL[1], ALL[4], "oauth/tokens/refresh/code", ALL[5], "oauth/docs"]
    assert ids(desk, "--status", "invalidated") == [ALL[2], ALL[3]]
    assert sound(desk) == []


def test_a_changed_title_is_work_to_do_again(desk: Desk) -> None:
    """An entry whose own words changed is told, and so is a change of needs, which is no other work."""
    desk.start()
    retitled = desk.start(OAUTH.replace("title: Token storage", "title: Token store"))
    assert retitled.err.splitlines()[0] == "oauth: 1 reworded"
    again = desk.start(OAUTH.replace("Token storage", "Token store").replace("    needs: [tokens]\n", ""))
    assert again.err.splitlines() == ["oauth: 1 with other needs", "  other needs: oauth/endpoints"]
    assert desk.loop("oauth/endpoints").needs == ()


def test_a_renamed_entry(desk: Desk) -> None:
    """A renamed entry is a new loop, and the report says how it keeps its work."""
    desk.start()
    answer = desk.start(OAUTH.replace("id: tokens", "id: token-storage").replace("[tokens]", "[token-storage]"))
    said = "  oauth/tokens is gone, oauth/token-storage is new; `id: tokens` in its entry keeps its work"
    assert said in answer.err.splitlines()


def test_a_moved_plan_file(desk: Desk) -> None:
    """A plan whose old path is gone is taken over from its new one."""
    desk.start()
    (desk.folder / "plan.md").rename(desk.folder / "moved.md")
    answer = desk("start", "--no-run", desk.folder / "moved.md")
    assert (answer.code, answer.err) == (0, "oauth: nothing has changed\n")
    assert desk("show", "oauth", "--json").document["loop"]["input"] == "moved.md"


def test_another_file_of_the_same_id(desk: Desk) -> None:
    """While the first file is there, another one with its id is refused, with both named."""
    desk.start()
    before, events = everything(desk.folder / "specs"), seq(desk)
    answer = desk.start(flat(["x"], "oauth"), "other.md")
    assert (answer.code, answer.err) == (
        2,
        "loopr: other.md plan oauth belongs to plan.md (give it another `id:`, or start plan.md)\n",
    )
    assert (everything(desk.folder / "specs"), seq(desk)) == (before, events)


def test_a_changed_id(desk: Desk) -> None:
    """A file that was started under one id cannot become another plan."""
    desk.start()
    answer = desk.start(OAUTH.replace("id: oauth", "id: openid"))
    assert answer.code == 2
    assert "was started as oauth, and its id is openid now (put `id: oauth` into its front matter" in answer.err
    assert "openid" not in ids(desk)


def test_an_edited_copy(desk: Desk) -> None:
    """A person may edit the copy below specs/ as well: the next start takes it, and the source is left alone."""
    desk.start()
    desk.write("specs/oauth/plan.md", OAUTH.replace("needs: [tokens]", "needs: [tokens]\n  - id: docs"))
    assert desk.start().code == 0
    assert "oauth/docs" in ids(desk)
    assert (desk.folder / "plan.md").read_text() == OAUTH


@pytest.mark.parametrize("taken", [False, True])
def test_source_and_copy_both_edited(desk: Desk, taken: bool) -> None:
    """If both were edited nobody's words are lost unasked, not even after the copy's were taken; --yes decides."""
    desk.start()
    copy = desk.write("specs/oauth/plan.md", OAUTH.replace("needs: [tokens]", "needs: [tokens]\n  - id: docs"))
    if taken:
        desk.start()
    edited = OAUTH + "\nMore words.\n"
    answer = desk.start(edited)
    assert answer.code == 2
    assert "plan.md has changed, and so has its copy specs/oauth/plan.md (bring the two together" in answer.err
    assert "docs" in copy.read_text()
    assert desk.start(edited, "plan.md", "--yes").code == 0
    assert copy.read_text() == edited
    assert "oauth/docs" not in ids(desk)


def test_landed_work_is_not_dropped_unasked(shop: Desk) -> None:
    """Off a terminal, a start after which landed work is no longer declared needs --yes."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.land("p/a", "k")
    shop.land("p/b", "k")
    before = everything(shop.folder / "specs")
    answer = shop.start(flat(["b"]))
    assert answer.code == 2
    assert "no longer declares loops with landed work: p/a" in answer.err
    assert "--yes" in answer.err
    assert everything(shop.folder / "specs") == before
    assert ids(shop) == ["p", "p/a", "p/a/k", "p/b", "p/b/k"]
    assert shop.start(flat(["b"]), "plan.md", "--yes").code == 0
    assert ids(shop) == ["p", "p/b", "p/b/k"]


# --- several plans ------------------------------------------------------------------------------------------------


def test_several_plans(desk: Desk) -> None:
    """Several files are several plans, in the order in which they were named; naming one twice is naming it once."""
    one, two = desk.write("one.md", flat(["a"], "one")), desk.write("two.md", flat(["b"], "two"))
    answer = desk("start", "--no-run", two, one, desk.folder / "." / "two.md", str(desk.folder) + "/specs/../two.md")
    assert answer.code == 0, answer
    assert [line for line in answer.err.splitlines() if " new" in line] == ["two: 2 new", "one: 2 new"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nid: two\nspecs: [\n---\n", "two.md:"),
        ("---\nid: one\nspecs:\n  - {id: b}\n---\n", "has the id of one.md: one"),
        ("---\nid: two\nspecs:\n  - {id: b, needs: [nope/x]}\n---\n", "two.md"),
        ("---\nid: old\nspecs:\n  - {id: b}\n---\n", "two.md plan old belongs to old.md"),
    ],
)
def test_all_plans_or_none(desk: Desk, text: str, words: str) -> None:
    """If one of several plans is bad, in whatever way, none is enqueued and nothing is written."""
    desk.start(flat(["z"], "old"), "old.md")
    one, two = desk.write("one.md", flat(["a"], "one")), desk.write("two.md", text)
    before, events = everything(desk.folder / "specs"), seq(desk)
    answer = desk("start", "--no-run", one, two)
    assert answer.code == 2
    assert words in answer.err
    assert (everything(desk.folder / "specs"), seq(desk)) == (before, events)


def test_every_problem_of_every_plan_at_once(desk: Desk) -> None:
    """Several bad files are told together, each problem on a line with its place."""
    bad = "---\nid: Bad!\nspecz: []\n---\n"
    one, two = desk.write("sub/plan.md", bad), desk.write("plan.md", bad)
    answer = desk("start", "--no-run", one, two)
    assert answer.code == 2
    places = [line.removeprefix("loopr: ").split()[0] for line in answer.err.splitlines()]
    assert places == ["sub/plan.md:2:5", "sub/plan.md:3:1", "plan.md:2:5", "plan.md:3:1"]


def test_a_full_queue_defers_new_plans_only(shop: Desk) -> None:
    """At the hard limit a plan that is not known yet is deferred with exit 75; a known one is not."""
    shop.write("loopr.yml", COMMANDS + "queue: {soft_limit: 1, hard_limit: 2}\nconcurrency: {max_loops: 1}\n")
    shop.start(flat(["a", "b", "c"]))
    shop.choose()
    before, events = everything(shop.folder / "specs"), seq(shop)
    answer = shop.start(flat(["x"], "q"), "q.md")
    assert answer.code == 75
    assert answer.err == (
        "loopr: the queue is full: 2 loops wait for a slot, the hard limit is 2\n"
        "  hint: nothing was stored: start the plan later, or raise queue.hard_limit\n"
    )
    assert (everything(shop.folder / "specs"), seq(shop)) == (before, events)
    assert shop.start(flat(["a", "b", "c", "d"])).code == 0
    assert shop("approve", "p", "--file").code == 0
    assert "p/d" in ids(shop)


# --- files that a person drops ------------------------------------------------------------------------------------


def test_a_dropped_artifact_is_taken(desk: Desk) -> None:
    """The next start takes what was dropped: its loop is complete, its children are declared, and on it goes below."""
    desk.start()
    desk.write("specs/oauth/tokens/store/code/code.md", "# Done\n")
    answer = desk.start()
    assert answer.code == 0
    assert statuses(desk)["oauth/tokens/store/code"] == "complete"
    assert statuses(desk)["oauth/tokens/refresh"] == "complete"  # it needed the store, and is settled now
    assert "oauth/tokens/refresh/code" in ids(desk)
    desk.write(
        "specs/oauth/endpoints/spec.md", "# Endpoints\n\n## Phases\n1. **Routes**\n2. **Docs**\n   - Needs: routes\n"
    )
    assert "oauth: 3 new" in desk.start().err
    assert desk.loop("oauth/endpoints/docs").needs == ("oauth/endpoints/routes",)
    assert sound(desk) == []


def test_artifacts_that_were_there_first(desk: Desk) -> None:
    """Artifacts that lie in specs/ before their plan is started are taken with it."""
    desk.write("specs/p/a/spec.md", "# A\n\n## Phases\n1. **Only**\n")
    desk.start(flat(["a", "b"]))
    assert statuses(desk) == {
        "p": "complete",
        "p/a": "complete",
        "p/a/only": "complete",
        "p/a/only/code": "pending",
        "p/b": "pending",
    }


def test_a_missing_artifact_closes_a_gate(desk: Desk) -> None:
    """Deleting an artifact does nothing to what is complete; what would start from it waits until it is back."""
    desk.start()
    before = statuses(desk)
    path = desk.folder / "specs/oauth/tokens/store/phase.md"
    text = path.read_text()
    path.unlink()
    desk.start()
    reason = "its input specs/oauth/tokens/store/phase.md is not on disk; `loopr doctor --fix` puts it back"
    found = {"gate": "artifact", "reason": reason, "until": None}
    assert desk("why", "store/code", "--json").document["gates"][0] == found
    assert statuses(desk) == before
    path.write_text(text)
    desk.start()
    assert found not in desk("why", "store/code", "--json").document["gates"]


@pytest.mark.parametrize("text", ["", "---\nid: x\n", "---\nphasez: []\n---\n", "# Nothing declared\n", "\xff"])
def test_a_malformed_artifact_is_reported_until_it_is_mended(desk: Desk, text: str) -> None:
    """The tree stays as it was, the problem is told with its place, and mending the file takes the report back."""
    desk.start()
    before = statuses(desk)
    path = desk.write("specs/oauth/endpoints/spec.md", text.encode("latin-1"))
    answer = desk.start()
    assert answer.code == 0
    assert "  problem: specs/oauth/endpoints/spec.md" in answer.err
    assert statuses(desk) == before
    assert "1 problem: `loopr status` tells" in desk.lines("tree")
    (problem,) = desk("status", "--json").document["problems"]
    assert problem["place"] == "specs/oauth/endpoints/spec.md"
    assert problem["text"].startswith("specs/oauth/endpoints/spec.md")
    events = seq(desk)
    desk.start()
    assert seq(desk) == events, "the same problem is told once"
    path.write_text("# Endpoints\n\n## Phases\n1. **Routes**\n")
    desk.start()
    assert desk("status", "--json").document["problems"] == []
    assert statuses(desk)["oauth/endpoints"] == "complete"


def test_a_malformed_artifact_that_is_deleted_is_forgotten(desk: Desk) -> None:
    """A report about a file does not outlive the file."""
    desk.start()
    path = desk.write("specs/oauth/endpoints/spec.md", "")
    desk.start()
    path.unlink()
    desk.start()
    assert desk("status", "--json").document["problems"] == []


def test_a_link_in_the_tree_is_not_followed(desk: Desk) -> None:
    """A folder of the tree that is a link is reported in words, not written through."""
    outside = desk.folder.parent / "outside"
    outside.mkdir()
    (desk.folder / "specs/oauth").mkdir(parents=True)
    (desk.folder / "specs/oauth/tokens").symlink_to(outside)
    answer = desk.start()
    assert answer.code == 0
    assert "specs/oauth/tokens is a symbolic link, which is not followed here" in answer.err
    assert list(outside.iterdir()) == []
    events = seq(desk)
    desk.start()
    assert seq(desk) == events, "the same problem is told once"
    (desk.folder / "specs/oauth/tokens").unlink()
    desk.start()
    assert desk("status", "--json").document["problems"] == []
    assert statuses(desk)["oauth/tokens"] == "complete"


# --- bad files ----------------------------------------------------------------------------------------------------

HEAD = "---\nid: p\nspecs:\n"


def named(text: str, key: str = "specs") -> str:
    """Write a plan with an id of its own, or one spec with that id."""
    return f'---\nid: "{text}"\nspecs: [{{id: a}}]\n---\n' if key == "id" else f'{HEAD}  - {{id: "{text}"}}\n---\n'


NESTED = "  - id: a\n    phases:\n      - id: b\n        tasks:\n          - id: c\n            children: [{id: d}]\n"
DEEP = f"{HEAD}{NESTED}---\n"
BAD = {
    "unclosed front matter": ("---\nid: p\nspecs: [{id: a}]\n", "plan.md:1:1", "---"),
    "a tab": (f"{HEAD}\t- id: a\n---\n", "plan.md:4:1", "spaces"),
    "an alias": (f"{HEAD}  - &x {{id: a}}\n  - *x\n---\n", "plan.md:4:5", "write the value out"),
    "an anchor bomb": (
        "---\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n---\n",
        "plan.md:2:4",
        "write the value out",
    ),
    "Latin-1": ("---\nid: p\ntitle: caf\xe9\n---\n".encode("latin-1"), "plan.md:3:11", "UTF-8"),
    "a NUL": (f"{HEAD}  - {{id: a}}\n---\n# A\0\n", "plan.md:6:4", "UTF-8"),
    "an empty file": ("", "plan.md:1:1", "write a title"),
    "only a BOM": (b"\xef\xbb\xbf", "plan.md:1:1", "write a title"),
    "2 MiB": ("# P\n" + "x" * 2**21, "plan.md", "other files"),
    "1,001 children": (
        HEAD + "".join(f"  - {{id: s{n}}}\n" for n in range(1001)) + "---\n",
        "plan.md:4:3",
        "limit is 1000",
    ),
    "too deep": (DEEP, "plan.md:9:13", "no children"),
    "duplicate ids": (f"{HEAD}  - {{id: a}}\n  - {{id: a}}\n---\n", "plan.md:5:10", "line 4"),
    "a duplicate key": ("---\nid: p\nid: q\nspecs: [{id: a}]\n---\n", "plan.md:3:1", "id"),
    "unknown needs": (f"{HEAD}  - {{id: a, needs: [b]}}\n---\n", "plan.md:4:21", "name a sibling"),
    "a need of its own": (f"{HEAD}  - {{id: a, needs: [a]}}\n---\n", "plan.md:4:21", "a → a"),
    "a cycle": (
        f"{HEAD}  - {{id: a, needs: [b]}}\n  - {{id: b, needs: [c]}}\n  - {{id: c, needs: [a]}}\n---\n",
        "plan.md:4:21",
        "a → b → c → a",
    ),
    "an unknown key": ("---\nid: p\nspecz: [{id: a}]\n---\n", "plan.md:3:1", 'did you mean "specs"?'),
    **{
        f"{key} {text[:9]!r}": (named(text, key), "plan.md:2:5" if key == "id" else "plan.md:4:10", "write `id: ")
        for text in ("../x", "a/b", ".", "..", "-x", "CON", "nul", "A b", "😀", "x" * 300, "é", "")
        for key in ("id", "specs")
        if text
    },
}


def refused(answer: Answer, place: str, remedy: str) -> None:
    """Check that a bad file was refused as a person needs it: one line with its place, and what to do."""
    assert (answer.code, answer.out) == (2, "")
    (line,) = answer.err.splitlines()
    assert line.startswith(f"loopr: {place} ")
    assert remedy in line
    assert len(line) < 400


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused(desk: Desk, name: str) -> None:
    """One line names file, line, column and the remedy, exit 2; state, tree and disk are as before, new or known."""
    text, place, remedy = BAD[name]
    path = desk.write("plan.md", text)
    before = everything(desk.folder)
    refused(desk("start", "--no-run", path), place, remedy)
    refused(desk("start", "--dry-run", path), place, remedy)
    left = {each for each in everything(desk.folder) if each not in before}
    assert left <= {".git/loopr", ".git/loopr/loopr.db", ".git/loopr/engine.lock", ".git/loopr/workspace"}
    assert ids(desk) == []


def test_a_known_plan_that_turns_bad(desk: Desk) -> None:
    """A plan that was edited into something bad changes neither its tree nor its copy."""
    desk.start(flat(["a", "b"]))
    before, events, tree = everything(desk.folder / "specs"), seq(desk), desk.lines("tree")
    for text, place, remedy in BAD.values():
        refused(desk("start", "--no-run", desk.write("plan.md", text)), place, remedy)
    assert (everything(desk.folder / "specs"), seq(desk)) == (before, events)
    assert [line for line in desk.lines("tree") if "plan.md" not in line] == tree


@pytest.mark.parametrize(
    "text",
    ["\ufeff" + OAUTH, OAUTH.replace("\n", "\r\n"), OAUTH.replace("\n", "\r"), "\ufeff" + OAUTH.replace("\n", "\r\n")],
)
def test_editors_habits_are_no_problem(desk: Desk, text: str) -> None:
    """A BOM or another kind of line end makes no other plan; the copy is the file, to the byte."""
    path = desk.write("plan.md", text)
    assert desk("start", "--no-run", path).code == 0
    assert ids(desk) == ALL
    assert (desk.folder / "specs/oauth/plan.md").read_bytes() == path.read_bytes()
    assert desk("start", "--no-run", path).err == "oauth: nothing has changed\n"


@pytest.mark.parametrize("kind", ["folder", "pipe", "circle"])
def test_what_is_no_file_is_refused(desk: Desk, kind: str) -> None:
    """A folder, a pipe or a link in a circle is refused at once, and nothing waits for it."""
    import os

    path = desk.folder / "plan.md"
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "circle": lambda: path.symlink_to("plan.md")}[kind]()
    answer = desk("start", "--no-run", path)
    assert (answer.code, answer.out) == (2, "")
    assert "plan.md is " in answer.err


def test_settings_are_no_plan(desk: Desk) -> None:
    """A file in YAML, such as the settings that somebody names by mistake, is refused with what a plan is."""
    answer = desk("start", "--no-run", desk.write("loopr.yml", "version: 1\n"))
    assert (answer.code, "loopr.yml is YAML, and a plan is Markdown" in answer.err) == (2, True)


def test_a_missing_file(desk: Desk) -> None:
    """A plan file that does not exist is exit 3, by the name that was typed; with a bad one beside it it is exit 2."""
    answer = desk("start", "--no-run", "nope.md")
    assert (answer.code, answer.err.splitlines()) == (
        3,
        ["loopr: nope.md there is no such file (name a Markdown file that describes a plan)"],
    )
    assert desk("start", "--no-run", "nope.md", desk.write("bad.md", "")).code == 2


@pytest.mark.parametrize("settings", ["types: [", "bogus: 1\n", "concurrency: {max_loops: many}\n"])
def test_bad_settings(desk: Desk, settings: str) -> None:
    """Bad settings are exit 78 with their place, whatever verb meets them, and nothing is written."""
    desk.write("loopr.yml", settings)
    path = desk.write("plan.md", OAUTH)
    before = everything(desk.folder)
    for arguments in (("start", "--no-run", path), ("start", "-n", path), ("tree",), ("status",), ("simulate", path)):
        answer = desk(*arguments)
        assert answer.code == 78
        assert answer.err.startswith("loopr: loopr.yml:1:")
    assert everything(desk.folder) == before


# --- where the workspace is ---------------------------------------------------------------------------------------


def test_from_a_subfolder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace is found from any folder inside it; a plan is named from where one stands."""
    path = desk.write("docs/plans/plan.md", OAUTH)
    monkeypatch.chdir(path.parent)
    assert loopr("start", "--no-run", "plan.md").code == 0
    assert (desk.folder / "specs/oauth/plan.md").is_file()
    monkeypatch.chdir(desk.folder / "specs/oauth")
    assert loopr("show", "oauth", "--json").document["loop"]["input"] == "docs/plans/plan.md"


def test_a_second_workspace(desk: Desk) -> None:
    """One repository has one workspace: a second one is exit 78, and the first is named."""
    desk.start()
    desk.write("sub/loopr.yml", "version: 1\n")
    path = desk.write("sub/plan.md", flat(["a"]))
    for arguments in (("start", "--no-run", path), ("tree",)):
        answer = loopr(arguments[0], "-C", desk.folder / "sub", *arguments[1:])
        assert answer.code == 78
        assert f"this repository's workspace is {desk.folder}, not {desk.folder / 'sub'}" in answer.err


def test_a_workspace_below_the_top_of_its_repository(tmp_path: Path, clock: Clock) -> None:
    """A folder with loopr.yml is the workspace, though the repository is larger."""
    repo = repository(tmp_path / "repo")
    desk = Desk(repo / "part", clock)
    desk.write("loopr.yml", "version: 1\n")
    desk.start()
    assert (repo / "part/specs/oauth/plan.md").is_file()
    assert (repo / ".git/loopr/loopr.db").is_file()
    assert loopr("tree", "-C", repo).code == 0


def test_without_git(tmp_path: Path, clock: Clock) -> None:
    """A folder without git is a workspace too; its state is in .loopr/."""
    desk = Desk(tmp_path / "plain", clock)
    desk.start()
    assert ids(desk) == ALL
    assert (desk.folder / ".loopr/loopr.db").is_file()
    below = desk.folder / "some/where"
    below.mkdir(parents=True)
    assert len(loopr("ls", "-C", below).out.splitlines()) == len(ALL)


def test_from_a_linked_worktree(desk: Desk, tmp_path: Path) -> None:
    """Every checkout of a repository shows the one workspace; a plan elsewhere is bound by its full path."""
    desk.start()
    linked = tmp_path / "linked"
    git(desk.folder, "worktree", "add", "--quiet", str(linked))
    assert loopr("tree", "-C", linked).out == desk("tree").out
    (linked / "other.md").write_text(flat(["a"], "other"))
    assert loopr("start", "--no-run", "-C", linked, "other.md").code == 0
    assert not (linked / "specs").exists()
    assert desk("show", "other", "--json").document["loop"]["input"] == str(linked / "other.md")


def test_a_bare_repository(tmp_path: Path, clock: Clock) -> None:
    """A bare repository is no reason to crash; one without a commit is told what it needs."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    desk = Desk(bare, clock)
    assert desk("tree").code == 0
    answer = desk.start()
    assert answer.code == 78
    assert "has no commit yet" in answer.err


def test_a_checkout_whose_repository_is_gone(tmp_path: Path) -> None:
    """A .git file that leads nowhere is exit 78, and nothing is made where it leads."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/.git").write_text("gitdir: ../gone/repo\n")
    (tmp_path / "here/plan.md").write_text(OAUTH)
    answer = loopr("start", "-C", tmp_path / "here", "--no-run", "plan.md")
    assert answer.code == 78
    assert "which is not there" in answer.err
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("name", ["with space", "new\nline", "ünïcode—漢", "-dash", "quo'te\"s", "$HOME;ls", "*"])
def test_odd_names_of_folders_and_files(tmp_path: Path, clock: Clock, name: str) -> None:
    """Folders and plan files may be called anything that a file system takes."""
    desk = Desk(repository(tmp_path / name), clock)
    path = desk.write(f"{name}.md", OAUTH)
    assert desk("start", "--no-run", path).code == 0
    assert desk("start", "--no-run", path).err == "oauth: nothing has changed\n"
    assert desk("tree", "--json").document["workspace"] == str(desk.folder)
    assert desk("show", "oauth", "--json").document["loop"]["input"] == f"{name}.md"
    assert all(desk(verb).code == 0 for verb in ("tree", "ls", "status", "next", "events"))
    (problem,) = desk("start", "--no-run", desk.write(f"bad {name}.md", "")).err.splitlines()
    assert problem.startswith("loopr: bad ")


def test_a_name_that_is_no_text(tmp_path: Path, clock: Clock) -> None:
    """A file name that is not UTF-8 works, or is refused in words."""
    desk = Desk(repository(tmp_path / "caf\udce9"), clock)
    path = desk.write("\udce9.md", OAUTH)
    answer = desk("start", "--no-run", path)
    assert answer.code in (0, 2), answer
    assert desk("tree").code == 0
    assert desk("tree", "--json").document["workspace"] == str(desk.folder)


def test_files_that_are_not_committed(shop: Desk) -> None:
    """What commands name that is here, but not so in the commit that loops begin at, is told with what to do."""
    shop.write(
        "loopr.yml", "version: 1\ntypes: {spec: {run: sh tools/spec.sh > out.txt, check: [sh, ./tools/check.sh, -q]}}\n"
    )
    shop.write("tools/spec.sh", "true\n")
    shop.write("out.txt", "\n")
    shop.write("tools/check.sh", "true\n")
    shop.write("plan.md", flat(["a"]))
    git(shop.folder, "add", "tools/check.sh")
    git(shop.folder, "commit", "-qm", "tools")
    start = ("start", "--no-run", shop.folder / "plan.md")
    told = "  not committed as here: tools/spec.sh; loops work on what is committed, so commit first\n"
    assert told in shop(*start).err
    shop.write("tools/check.sh", "false\n")
    assert "not committed as here: tools/spec.sh, tools/check.sh;" in shop(*start).err
    git(shop.folder, "add", "tools")
    git(shop.folder, "commit", "-qm", "more tools")
    said = shop(*start).err
    assert "goes on from main as it is now" in said
    assert "not committed" not in said


def test_files_that_git_ignores(shop: Desk) -> None:
    """A secret is never to be committed: what git ignores is told so, and not at all where each loop gets a copy."""
    shop.write("loopr.yml", "version: 1\ntypes: {spec: {run: [sh, -c, true, .env, secret.pem]}}\n")
    shop.write(".gitignore", ".env\nsecret.pem\n")
    shop.write(".env", "COLOUR=blue\n")
    shop.write("secret.pem", "key\n")
    shop.write("plan.md", flat(["a"]))
    start = ("start", "--no-run", shop.folder / "plan.md")
    said = shop(*start).err
    assert "  ignored by git: .env, secret.pem; loops get the checkout's own if .worktreeinclude names it, and" in said
    assert "commit first" not in said
    shop.write(".worktreeinclude", ".env\nsecret.pem\n")
    said = shop(*start).err
    assert "ignored by git" not in said
    assert "commit first" not in said


# --- what an edit comes to ----------------------------------------------------------------------------------------


EDITED = """\
---
id: p
budget: {usd: 10}
specs:
  - {id: a, title: Another}
  - {id: b, body: Other words.}
  - {id: d, needs: [b]}
  - id: e
---
# P
"""


def test_an_edit_is_told(shop: Desk) -> None:
    """What is new, to do again, gone and reworded is counted and named, and so is the budget, on paper and in truth."""
    shop.start(flat(["a", "b", "c", "d"]).replace("specs:", "budget: {usd: 1}\nspecs:", 1))
    assert "p/a" in shop.choose()
    told = [
        "p: 1 new, 1 to do again, 1 gone, 1 reworded; budget 1 -> 10 USD; 1 with other needs",
        "  p/c is gone, p/e is new; `id: c` in its entry keeps its work",
        "  to do again: p/a",
        "  reworded: p/b",
        "  other needs: p/d",
    ]
    dry = shop.start(EDITED, "plan.md", "--dry-run").err.splitlines()
    dry = [each for each in dry if not any(word in each for word in ("judge", "check", "Makefile"))]
    asks = dry.pop(1)
    assert "only offers it: `loopr approve p --file`" in asks
    assert dry == [*told, "nothing was written"]
    said = shop.start(EDITED).err.splitlines()
    assert said[0] == f"p: nothing has changed yet: its file waits for a word, and comes to: {told[0][3:]}"


def test_an_edit_has_a_document(shop: Desk) -> None:
    """With --json what an edit comes to is data: ids by kind, and each of the other terms with both values."""
    shop.start(flat(["a", "b", "c", "d"]).replace("specs:", "budget: {usd: 1}\nspecs:", 1))
    shop.choose()
    shop.land("p/a", "k")
    answer = shop.start(EDITED, "plan.md", "--json", "--yes")
    (row,) = answer.document["plans"]
    assert (row["declared"], row["changed"], row["gone"], row["reworded"]) == (["p/e"], ["p/a"], ["p/c"], ["p/b"])
    assert row["terms"][0] == {"loop": "p", "key": "budget", "before": {"usd": 1.0}, "after": {"usd": 10.0}}
    assert shop.start(EDITED).err.splitlines()[0] == "p: nothing has changed"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (("# P\n", "# P\n\nMore words.\n"), "only its own words have changed"),
        (
            ("specs:", "budget: {tokens: 2000, secs: 3600}\nspecs:"),
            "budget none -> 2k tokens; budget none -> 1 h of work",
        ),
        (("specs:", "priority: 5\nspecs:"), "priority none -> 5"),
        (("  - id: a\n  - id: b\n", "  - id: b\n  - id: a\n"), "another order"),
        (("specs:", "# later\nspecs:"), "the file is another, and means the same"),
    ],
)
def test_small_edits_are_told(shop: Desk, edit: tuple[str, str], told: str) -> None:
    """Nothing has changed only where that is so: each small edit has its own words."""
    text = "---\nid: p\nspecs:\n  - id: a\n  - id: b\n---\n# P\n"
    shop.start(text)
    assert edit[0] in text
    assert shop.start(text.replace(*edit, 1)).err.splitlines()[0] == f"p: {told}"


def test_a_file_of_a_persons_own_is_told(desk: Desk) -> None:
    """A loop that a person's file completes is told of by the next start."""
    desk.start(flat(["a"]))
    desk.write("specs/p/a/spec.md", "# A\n\n## Phases\n- one\n")
    said = desk.start(flat(["a"])).err.splitlines()
    assert said == [
        "p: 2 new (1 written out in the plan), 1 done by a file of yours",
        "  new: p/a/one",
        "  done by a file: p/a",
    ]


def test_a_link_that_leads_nowhere_is_told_as_one(desk: Desk) -> None:
    """A plan file that is a link to nothing is named with where it leads: exit 3."""
    (desk.folder / "plan.md").symlink_to("plans/gone.md")
    answer = desk("start", "--no-run", desk.folder / "plan.md")
    assert answer.code == 3
    assert "plan.md is a link to plans/gone.md, which is not there" in answer.err


def test_a_file_that_would_be_offered(shop: Desk) -> None:
    """A dry run says that a file which changed while loops ran waits for a word; `next:` names it."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    plan = shop.write("plan.md", flat(["a", "b", "c"]))
    asks = "  plan.md changed while p/a, p/b ran: a start asks at a terminal whether that is yours, and"

    def foretold() -> list[str]:
        return shop("start", "--dry-run", plan).err.splitlines()

    assert f"{asks} else only offers it: `loopr approve p --file`" in foretold()
    assert "p: nothing has changed yet: its file waits" in shop("start", "--no-run", plan).err
    for each in ("p/a", "p/b"):
        shop.land(each, "k")
    *told, upcoming, alone = shop("wait", "p").err.splitlines()
    assert upcoming == "next: `loopr approve p --file`"
    assert any(line.startswith("offered  specs/p/plan.md is offered") for line in told)
    assert "approve" not in shop("wait", "p/a").err  # it is about the plan
    shop("reject", "p", "--file")
    assert f"{asks} else refuses it" in foretold()
