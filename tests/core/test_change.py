"""Artifacts and change: what a new file means, what is done again, and what is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopr.core import observations as o
from loopr.core.declaring import lost_work
from loopr.core.entries import Entry, identity, outline_digest
from loopr.core.events import ArtifactSeen
from loopr.core.filing import plan_declares
from loopr.core.model import Status
from loopr.core.owed import StopAttempt, WriteDeclared, owed
from loopr.core.policy import Budget
from loopr.core.workspace_events import PlanBound, ProblemGone, ProblemSeen
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings, tell

WAITING = "began p/a\nended p/a\njudged p/a"
LANDING = f"{WAITING}\nlands p/a: b0 b1"
ENTRY = Entry("a", "A", "body", ("b",), ("src/**",), "./x", "claude", ("make", "test"), Budget(tokens=5), False)

# --- identity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"id": "z"}, {"title": "Z"}, {"body": "z"}, {"files": ("z",)}, {"run": None}, {"run": ("./x",)},
        {"agent": "z"}, {"check": None},
    ],
)  # fmt: skip
def test_what_makes_other_work(other: dict[str, object]) -> None:
    """Id, title, body, files, and run, agent or check of the entry make it other work."""
    assert identity(replace(ENTRY, **other)) != identity(ENTRY)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [{"needs": ()}, {"parallel": True}, {"parallel": None}, {"budget": Budget()}, {"children": (Entry("k", "K"),)}],
)
def test_what_does_not(other: dict[str, object]) -> None:
    """Needs, parallel, budget, place and nested children leave it the same work."""
    assert identity(replace(ENTRY, **other)) == identity(ENTRY)  # type: ignore[arg-type]


def test_nested_children_have_a_digest_of_their_own() -> None:
    """Any change below an entry, also of needs and order, changes the digest of its outline and not its identity."""
    k, m = Entry("k", "K"), Entry("m", "M")
    digests = {outline_digest(replace(ENTRY, children=each)) for each in ((), (k,), (k, m), (m, k))}
    digests.add(outline_digest(replace(ENTRY, children=(k, replace(m, needs=("k",))))))
    assert len(digests) == 5
    assert outline_digest(ENTRY) == ""


# --- a changed outline -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["a needs b; b", "b; a", "a serial; b", "a budget 5; b", "a; b # note", "a; b; c"])
@pytest.mark.parametrize("state", ["", "choose p/a", "choose p/a\nbegan p/a", f"choose p/a\n{LANDING}\nlanded p/a: x"])
def test_circumstances_invalidate_nothing(change: str, state: str) -> None:
    """Place, needs, parallel and budget take effect at once and leave status, lease and generation alone."""
    story = tell(f"plan p: a; b\npause p/b\n{state}")
    before = story["p/a"]
    go_on(story, f"plan p: {change}")
    after = story["p/a"]
    assert (after.status, after.lease, after.generation) == (before.status, before.lease, before.generation)
    story.verify()


@pytest.mark.parametrize(
    ("state", "generation"),
    [
        ("", 1),
        ("choose p/a", 2),
        ("choose p/a\nbegan p/a", 2),
        ("choose p/a\nbegan p/a\nended p/a", 2),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a", 2),
        ("choose p/a\nended p/a: config no", 2),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a\nreject p/a: no", 2),
        ("choose p/a\nbegan p/a\nended p/a\njudged p/a\napprove p/a\nlanded p/a: x", 2),
    ],
)
def test_a_changed_input_begins_anew(state: str, generation: int) -> None:
    """Another body makes a loop pending again, as the next generation if it was ever leased; what lives is stopped."""
    story = tell(f"plan p: a\n{state}", settings(types={"spec": {"approve": True}}))
    live = story["p/a"].status in ("leased", "running", "checking")
    go_on(story, "plan p: a body new")
    loop = story["p/a"]
    assert (loop.status, loop.generation, loop.lease) == ("pending", generation, None)
    assert (loop.iteration, loop.failures, loop.signature) == (1, 0, "")
    assert [each for each in owed(story.forest) if isinstance(each, StopAttempt)] == (
        [StopAttempt("p/a", 1)] if live else []
    )
    story.verify()


def test_a_cancelled_loop_stays_cancelled_when_its_input_changes() -> None:
    """A changed input brings no cancelled loop back; what its entry says now counts when it is retried."""
    story = tell("plan p: a\ncancel p/a\nplan p: a body new\np/a is cancelled\nretry p/a\np/a is pending")
    before = story["p/a"].identity
    go_on(story, "plan p: a body new # same\np/a has generation 1")
    assert story["p/a"].identity == before


def test_equal_output_touches_nothing_below() -> None:
    """When a parent runs again and hands over the same, nothing below it is touched: early cut-off."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: x; y\nchoose p/a/x, p/a/y\nfinish p/a/x: k")
    go_on(story, "choose p/a/x/k")
    below = {each.id: each for each in story.forest.tree.walk("p/a")}
    go_on(story, f"renew p/a\nchoose p/a\n{LANDING}\nlanded p/a: x; y # another file, the same outline")
    for loop_id in ("p/a/x", "p/a/y", "p/a/x/k"):
        assert story[loop_id] == below[loop_id]
    story.verify()


def test_other_output_touches_what_differs() -> None:
    """When a parent hands over something else, only the children whose entry differs are done again."""
    tell(f"""
        plan p: a
        choose p/a
        {LANDING}
        landed p/a: x; y; z
        choose p/a/x, p/a/y, p/a/z
        finish p/a/x: k
        finish p/a/y: k
        renew p/a
        p/a/x is complete
        choose p/a/x/k, p/a/y/k, p/a
        {LANDING}
        landed p/a: x; y body new; w
        p/a/x is complete
        p/a/y has status pending generation 2
        p/a/z is invalidated
        p/a/w is pending
    """)


def test_a_plan_of_a_persons_own_stands_for_all_below_it() -> None:
    """Made anew is all below it that was tried and is over: what waits or runs, or was never tried, is left alone."""
    policy = settings("spec phase code")
    story = tell("plan p: a; b; c; d; e", policy)
    story.choose()
    go_on(
        story,
        "finish p/a: x\nlost p/e\npause p/e\nchoose p/a/x\nbegan p/b\nended p/b: config no\nbegan p/c\ncancel p/d",
    )
    go_on(story, "renew p")
    assert {each.id: each.generation for each in story.forest.loops.values()} == {
        "p": 1, "p/a": 2, "p/a/x": 1, "p/b": 2, "p/c": 1, "p/d": 2, "p/e": 1,
    }  # fmt: skip
    assert story["p/c"].status is Status.RUNNING
    story.verify()


def test_the_old_artifact_of_a_parent_that_runs_again_is_no_news() -> None:
    """The published artifact of the last generation, seen again by a rescan, does not complete the next one."""
    tell(f"""
        plan p: a
        choose p/a
        {LANDING}
        landed p/a: x
        renew p/a
        ignores drop p/a: x
        p/a is pending
        gone-file p/a
        drop p/a: x
        p/a is pending
    """)


# --- undeclared, and declared again ----------------------------------------------------------------------------------


def test_what_is_no_longer_declared_leaves_with_its_subtree() -> None:
    """A loop whose entry is gone is invalidated with all below it; what lives there is stopped."""
    story = tell("plan p: a (k; l); b\nsettle\nchoose p/a/k, p/a/l, p/b\nbegan p/a/k\nplan p: b")
    assert [each.id for each in story.forest.loops.values() if each.status is Status.INVALIDATED] == [
        "p/a", "p/a/k", "p/a/l",
    ]  # fmt: skip
    assert story.forest.tree.below["p"].total == 1
    assert {each.loop for each in owed(story.forest) if isinstance(each, StopAttempt)} == {"p/a/k", "p/a/l"}
    assert story.forest.occupancy.total == 3


def test_finished_work_comes_back_complete() -> None:
    """A loop that is declared again with the same input is complete, with all that left together with it."""
    story = tell("""
        plan p: a (k; l); b
        settle
        choose p/a/k, p/a/l, p/b
        finish p/a/k: x
        plan p: b
        gone p/a/l
        p/a/k is invalidated
        wait 1h
        plan p: a (k; l); b # again
        p/a is complete
        p/a/k has status complete generation 1
        p/a/k/x is pending
        p/a/l has status pending generation 2
    """)
    assert story["p/a/k"].landed == "c0ffee"


def test_other_work_of_the_same_name_comes_back_pending() -> None:
    """A loop that is declared again with another input is pending, as the next generation if it was ever leased."""
    tell(
        f"plan p: a; b\nchoose p/a, p/b\n{LANDING}\nlanded p/a: x\nplan p: b\nplan p: a body new; b\n"
        "p/a has status pending generation 2"
    )
    tell("plan p: a; b\nplan p: b\nplan p: a body new; b\np/a has status pending generation 1")


def test_a_declared_loop_that_comes_back_with_other_children_is_settled_again() -> None:
    """A loop that completed by declaration is not complete any more if it comes back with other nested children."""
    tell(
        "plan p: a (k); b\nsettle\nplan p: b\nplan p: a (k; l); b\np/a is pending\nsettle\n"
        "p/a/l is pending\np/a/k is pending"
    )
    story = tell(
        "plan p: a (k); b\nsettle\nplan p: a (k; l); b\nplan p: b\nplan p: a (k; l); b # again\np/a is pending"
    )
    go_on(story, "settle\np/a is complete\np/a/l is pending")


def test_a_loop_whose_attempt_still_dies_comes_back_finished() -> None:
    """Finished work that left while a later attempt of it was dying is complete when it is declared again."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}\nlanded p/a: x\nrenew p/a\nchoose p/a\nbegan p/a\nplan p: b")
    assert story["p/a"].ending is not None
    go_on(story, "plan p: a\np/a is complete")
    assert story["p/a"].occupying
    story.verify()


def test_landed_work_that_an_artifact_would_lose_is_listed() -> None:
    """Before an artifact counts it can be asked which loops with landed work it would no longer declare."""
    story = tell("plan p: a (k; l); b\nsettle\nchoose p/a/k, p/a/l, p/b\nfinish p/a/k: x")
    for words, lost in (
        ("b", ["p/a/k"]),
        ("a; b", ["p/a/k"]),
        ("a (l); b", ["p/a/k"]),
        ("a (k)", []),
        ("a (k; l); b", []),
    ):
        assert lost_work(story.forest, "p", outline(words).entries) == lost
    assert lost_work(story.forest, "nobody", outline("b").entries) == []


def test_a_renamed_entry_is_another_loop() -> None:
    """A renamed entry leaves the old loop behind and makes a new one."""
    tell("plan p: tokens\nplan p: token-storage\np/tokens is invalidated\np/token-storage is pending")


# --- a landing that has begun is never interrupted -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ("plan p: a body new", "status pending generation 2"),
        ("plan p: b", "status invalidated"),
        ("cancel p/a", "status cancelled"),
        ("pause now p/a", "status pending"),
        ("plan p: a (k)", "status pending generation 1"),
    ],
)
def test_a_landing_that_has_not_begun_gives_way(change: str, after: str) -> None:
    """What ends a loop that is checked ends one that waits to land, at once; its slot is kept until it has ended."""
    story = tell(f"plan p: a\nchoose p/a\n{WAITING}\n{change}\np/a has {after}\nignores landed p/a: x")
    assert story["p/a"].lease is None
    assert story["p/a"].ending is not None
    story.verify()
    assert tell(f"plan p: a\nchoose p/a\n{WAITING}\n{change}\ngone p/a")["p/a"].ending is None


def test_where_a_plan_stands_follows_from_its_events() -> None:
    """A plan begins at its base, moves by what is announced, and stays where what was announced cannot be."""
    story = tell(f"plan p: a; b\nchoose p/a, p/b\n{WAITING}\nignores lands p/a: elsewhere b1")
    tip = story.forest.shared.tip("p")
    assert (tip.at, tip.stands, tip.begins) == ("", "b0", True)
    go_on(story, "lands p/a: b0 b1\nignores lands p/a: b0 b2")
    assert story.forest.shared.tip("p") == ("b0", ("b0", "b1", "landed", "p/a", "tip", "", ()))
    go_on(story, "landed p/a: x\nbegan p/b\nended p/b\njudged p/b\nignores lands p/b: b0 b2\nlands p/b: b1 b2")
    assert story.forest.shared.tip("p").stands == "b1"
    go_on(story, "landed p/b: infra the commit is gone")
    assert story.forest.shared.tip("p") == ("b1", None)
    story.verify()


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ("plan p: a body new", "status pending generation 2"),
        ("plan p: b", "status invalidated"),
        ("cancel p/a", "status complete"),
        ("plan p: a (k)", "status pending generation 1"),
        ("pause p/a", "status complete"),
        ("plan p: a needs b; b", "status complete"),
        ("plan p: a body new\nplan p: a # back", "status complete generation 1"),
        ("plan p: b\nplan p: a # back", "status complete generation 1"),
        ("plan p: a body new\nplan p: a body newer", "status pending generation 2"),
        ("cancel p/a\nplan p: a body new", "status pending generation 2"),
    ],
)
def test_what_arrives_while_landing_is_applied_afterwards(change: str, after: str) -> None:
    """Whatever arrives while a loop is landing leaves it alone, and the last of it counts once it has landed."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}")
    lease = story["p/a"].lease
    go_on(story, change)
    assert (story["p/a"].status, story["p/a"].lease) == ("landing", lease)
    story.verify()
    go_on(story, f"landed p/a: x\np/a has {after}")
    assert story["p/a"].deferred is None
    assert story["p/a"].landed == "c0ffee"
    assert (story["p/a"].hold is not None) == ("cancel" in change or "pause" in change)
    story.verify()


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ("plan p: a body new", "status pending generation 2 iteration 1"),
        ("plan p: b", "status invalidated"),
        ("cancel p/a", "status cancelled"),
        ("cancel p/a\nplan p: a body new", "status cancelled generation 1"),
    ],
)
def test_what_arrived_counts_also_if_the_landing_failed(change: str, after: str) -> None:
    """If the landing fails, what arrived meanwhile is applied to the loop as it then is."""
    story = tell(f"plan p: a\nchoose p/a\n{LANDING}\n{change}\nlanded p/a: conflict both\np/a has {after}")
    assert story["p/a"].deferred is None


def test_a_child_that_lands_while_its_parent_leaves_and_comes_back() -> None:
    """A child that was landing when its parent left the tree is there again when the parent is, whenever that is."""
    began = "plan p: a (k); b\nsettle\nchoose p/a/k, p/b\nbegan p/a/k\nended p/a/k\njudged p/a/k"
    begin = f"{began}\nlands p/a/k\nplan p: b\nwait 1s"
    tell(
        f"{begin}\np/a/k is landing\nlanded p/a/k: x\np/a/k is invalidated\nwait 1s\n"
        "plan p: a (k); b # again\np/a/k is complete"
    )
    tell(f"{begin}\nplan p: a (k); b # again\np/a/k is landing\nlanded p/a/k: x\np/a is complete\np/a/k is complete")


def test_a_file_that_arrives_while_landing_waits() -> None:
    """A person's file for a loop that is landing changes nothing yet; seen again afterwards, it is a person's."""
    tell(f"""
        plan p: a
        choose p/a
        {LANDING}
        ignores drop p/a: mine
        landed p/a: theirs
        p/a/theirs is pending
        drop p/a: mine
        p/a/mine is pending
        p/a/theirs is invalidated
    """)


# --- a person's file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        "",
        "choose p/a",
        "choose p/a\nbegan p/a",
        "choose p/a\nbegan p/a\nended p/a",
        "choose p/a\nended p/a: config no",
        "choose p/a\nbegan p/a\nended p/a: refused no",
    ],
)
def test_a_persons_file_completes_a_loop(state: str) -> None:
    """A person's file that passes the format check completes a loop in any of these states; what lives stops, free."""
    story = tell(f"plan p: a\n{state}", settings(types={"spec": {"max_iterations": 1}}))
    live = story["p/a"].status in ("leased", "running", "checking")
    go_on(story, "drop p/a: mine\np/a is complete\np/a/mine is pending")
    loop = story["p/a"]
    assert (loop.artifact, loop.on_disk, loop.failures, loop.iteration) == (digest_of("mine"), True, 0, 1)
    assert (loop.ending is not None) is live
    story.verify()


def test_a_persons_edit_of_a_complete_loop_compares_its_children() -> None:
    """Editing the artifact of a complete loop changes its children as an edit of the outline, and nothing else."""
    tell(f"""
        plan p: a
        choose p/a
        {LANDING}
        landed p/a: x; y
        choose p/a/x, p/a/y
        finish p/a/x: k
        drop p/a: x; y body new; z
        p/a has status complete generation 1
        p/a/x is complete
        p/a/y has status pending generation 2
        p/a/z is pending
    """)


def test_a_persons_file_for_a_loop_that_waits_for_approval_is_the_candidate() -> None:
    """The candidate is replaced and still needs the approval."""
    story = tell(
        f"plan p: a\nchoose p/a\n{LANDING}\ndrop p/a: mine\np/a is awaiting_approval\nignores drop p/a: mine",
        settings(types={"spec": {"approve": True}}),
    )
    assert story["p/a"].artifact == digest_of("mine")


def test_a_persons_file_for_a_cancelled_loop_is_a_warning() -> None:
    """A file for a cancelled loop is reported with what to do, once, and changes nothing else."""
    story = tell("plan p: a\ncancel p/a\ndrop p/a: mine\np/a is cancelled\nignores drop p/a: mine")
    assert "`loopr retry p/a`" in story.forest.shared.problems["specs/p/a"]


def test_a_file_of_an_invalidated_loop_is_left_alone() -> None:
    """The file of a loop that is no longer declared changes nothing."""
    tell("plan p: a; b\nplan p: b\ndrop p/a: mine\np/a is invalidated")


def test_a_leaf_is_completed_by_its_file() -> None:
    """Dropping the file of a leaf completes it, although it declares nothing."""
    tell("plan p: a (b (c))\nsettle\ndrop p/a/b/c: # done\np/a/b/c is complete")


def test_a_malformed_file_leaves_the_tree_as_it_was() -> None:
    """A file that cannot be read, or declares nothing where its type needs children, is reported and refused whole."""
    story = tell(
        "plan p: a\nmalformed p/a: specs/p/a/spec.md:3:1 no colon\np/a is pending\ndrop p/a: # nothing\np/a is pending"
    )
    assert "a spec must declare its phase children" in story.forest.shared.problems["specs/p/a"]
    go_on(story, "drop p/a: x\np/a is complete")
    assert story.forest.shared.problems == {}


def test_an_outline_with_one_bad_need_counts_not_at_all() -> None:
    """If one need names nobody, none of the outline's children are declared."""
    story = tell("plan p: a\ndrop p/a: x; y needs p/nobody\np/a is pending")
    assert "p/a/x" not in story.forest.loops
    assert "which no loop is called" in story.forest.shared.problems["specs/p/a"]


def test_a_cycle_across_outlines_is_refused_and_drawn() -> None:
    """Needs that run in a circle through several outlines are refused by the artifact that closes it."""
    story = tell("plan p: a; b needs a\ndrop p/a: x; y needs p/b\np/a is pending")
    assert "needs form a cycle" in story.forest.shared.problems["specs/p/a"]


def test_a_cycle_through_nested_children_is_refused() -> None:
    """A circle that closes through the children nested in an entry is seen before any of them is declared."""
    story = tell("plan p: a (k needs p/b); b needs a\np is pending")
    assert "needs form a cycle" in story.forest.shared.problems["p.md"]


def test_a_plan_holds_only_so_many_loops() -> None:
    """An outline that would bring a plan above its limit is refused whole; one that just fills it is taken."""
    story = tell("plan p: a\ndrop p/a: x; y; z\np/a is pending", settings(loops_per_plan=4))
    assert "plan p would hold 5 loops, its limit is 4" in story.forest.shared.problems["specs/p/a"]
    go_on(story, "drop p/a: x; y\np/a is complete")
    go_on(story, "drop p/a: v; w # two others instead\np/a/w is pending\ndrop p/a: v; w; x\np/a/w is pending")
    assert story["p/a/x"].status == "invalidated"


def test_what_is_nested_counts_before_it_is_declared() -> None:
    """An outline whose nested loops would not all have room is refused as a whole, before any of them is declared."""
    tight = settings(loops_per_plan=4)
    story = tell("plan p: a (x; y); b\np is pending", tight)
    assert "plan p would hold 5 loops, its limit is 4" in story.forest.shared.problems["p.md"]
    go_on(story, "plan p: a (x; y)\nsettle\np/a/y is pending\nplan p: a (x; z)\nsettle\np/a/z is pending")
    assert "p.md" not in story.forest.shared.problems
    go_on(story, "plan p: a (x; y; z)\nsettle\np/a/y is invalidated")
    assert "plan p would hold 5 loops, its limit is 4" in story.forest.shared.problems["p.md"]


def test_a_handed_over_outline_that_cannot_count_is_reported() -> None:
    """If what a loop hands over cannot count any more when it has landed, that is reported rather than swallowed."""
    story = tell(f"plan p: a; b\nchoose p/a, p/b\n{LANDING}\nlanded p/a: x needs p/gone\np/a is complete")
    assert "which no loop is called" in story.forest.shared.problems["specs/p/a/spec.md"]


def test_an_outline_that_could_not_count_when_it_landed_counts_once_it_can() -> None:
    """The same file again says nothing while it cannot count; once it can, its children come and the report goes."""
    story = tell(f"plan p: a; b\nchoose p/a, p/b\n{LANDING}\nlanded p/a: x needs p/c")
    again = o.FileSeen("p/a", digest_of("x needs p/c"), outline("x needs p/c"), "specs/p/a/spec.md")
    assert story.see(again) == []
    assert "p/a/x" not in story.forest.loops
    assert "which no loop is called" in story.forest.shared.problems["specs/p/a/spec.md"]
    go_on(story, "plan p: a; b; c")
    story.see(again)
    assert (story["p/a/x"].needs, story.forest.shared.problems) == (("p/c",), {})
    assert story.see(again) == []
    story.verify()


def test_an_outline_that_never_counted_is_not_forgotten_with_its_file() -> None:
    """The report stays while the file is gone, so that the plan does not pass for done; it counts once it is back."""
    story = tell(f"plan p: a; b\nchoose p/a, p/b\n{LANDING}\nlanded p/a: x needs p/c\ngone-file p/a")
    assert "which no loop is called" in story.forest.shared.problems["specs/p/a/spec.md"]
    go_on(story, "plan p: a; b; c")
    story.see(o.FileSeen("p/a", digest_of("x needs p/c"), outline("x needs p/c"), "specs/p/a/spec.md"))
    assert (story["p/a/x"].needs, story.forest.shared.problems) == (("p/c",), {})


def test_a_declared_outline_that_cannot_count_settles_nothing() -> None:
    """A loop whose entry declares what nobody may need waits with its report, however often its file is written."""
    story = tell("plan p: a (x needs p/c); b\np/a is pending")
    artifact = story.entry_of("p/a")
    written = o.DeclaredWritten("p/a", digest_of(str(artifact)), artifact, "specs/p/a/spec.md")
    assert [type(each) for each in story.see(written)] == [ArtifactSeen, ProblemSeen]
    seen = o.FileSeen("p/a", written.digest, artifact, written.place)
    assert story.see(written, seen) == []
    assert (story["p/a"].status, "p/a/x" in story.forest.loops) == (Status.PENDING, False)
    go_on(story, "plan p: a (x needs p/c); b; c")
    assert [type(each) for each in story.see(seen)] == [ProblemGone]
    story.see(written)
    assert (story["p/a"].status, story["p/a/x"].status) == (Status.COMPLETE, Status.PENDING)
    assert story.see(written, seen, o.FileUnchanged("p/a"), o.FileUnchanged("p/b")) == []
    story.verify()


def test_what_was_written_too_late_settles_nothing() -> None:
    """An entry that declares nothing by now is not complete by what was written for it before."""
    story = tell("plan p: a (x)\np/a is pending")
    artifact = story.entry_of("p/a")
    go_on(story, "plan p: a\np/a is pending")
    assert story.see(o.DeclaredWritten("p/a", digest_of(str(artifact)), artifact, "specs/p/a/spec.md")) == []


def test_what_is_written_takes_the_place_of_what_could_not_be_read() -> None:
    """Once a declared loop's own file lies there, nothing is remembered of the one that was no artifact."""
    story = tell("plan p: a (x)")
    story.see(o.FileRefused("p/a", "specs/p/a/spec.md", "no colon", "d0"))
    assert story["p/a"].offers.unread == "d0"
    artifact = story.entry_of("p/a")
    story.see(o.DeclaredWritten("p/a", digest_of(str(artifact)), artifact, "specs/p/a/spec.md"))
    assert (story["p/a"].status, story["p/a"].offers.unread) == (Status.COMPLETE, "")
    assert story.forest.shared.problems == {}


def test_a_missing_file_closes_a_gate_and_does_nothing_else() -> None:
    """When an artifact is gone its pending children wait; running ones go on, and coming back opens the gate."""
    tell("""
        plan p: a; b
        dispatch p/a
        choose p/a, p/b
        lost p/b
        gone-file p
        p is complete
        ignores gone-file p
        why p/b: artifact specs/p/plan.md is not on disk; `loopr doctor --fix` puts it back
        p/a is leased
        drop p: a; b
        why p/b: nothing
    """)


# --- plans -----------------------------------------------------------------------------------------------------------


def test_starting_a_plan_twice_does_nothing_the_second_time() -> None:
    """The same file again leads to no event, whatever became of the plan."""
    tell("plan p: a; b\nignores plan p: a; b\nchoose p/a, p/b\nignores plan p: a; b\ncancel p\nignores plan p: a; b")
    tell("ask p: # do it\nignores ask p: # do it\nchoose p\nignores ask p: # do it")


def test_a_plan_that_declares_nothing_waits_for_its_command() -> None:
    """A file without an outline is the plan's input: the plan is pending, and another text makes it begin anew."""
    story = tell(
        "ask p: # do it\np is pending\nchoose p\nbegan p\nask p: # do it better\np has status pending generation 2"
    )
    assert story["p"].ending is not None
    story = tell("ask p: # do it\nwhy p: manual specs/p/plan.md", settings(commands=""))
    go_on(story, "drop p: a\np is complete\np/a is pending")


def test_a_plan_is_bound_to_its_file() -> None:
    """Where a plan came from, and the branch and commit its work begins at, are remembered from the first start on."""
    story = tell("plan p: a")
    bound = story.forest.shared.plans["p"]
    assert (bound.source, bound.base_branch, bound.base_commit) == ("p.md", "main", "b0")
    story.see(o.PlanOffered("p", outline("a; b", "p"), "d2", "moved.md", "other", "b9"))
    bound = story.forest.shared.plans["p"]
    assert (bound.source, bound.digest, bound.base_branch, bound.base_commit) == ("moved.md", "d2", "main", "b0")
    story.verify()


def test_a_plan_file_that_has_moved_is_bound_anew_and_says_no_more() -> None:
    """The same text at another place is noted as the plan's file, once."""
    story = tell("plan p: a")
    moved = o.PlanOffered("p", outline("a", "p"), digest_of("a"), "moved.md", "other", "b9")
    assert [type(each) for each in story.see(moved)] == [PlanBound]
    bound = story.forest.shared.plans["p"]
    assert (bound.source, bound.base_branch, bound.base_commit) == ("moved.md", "main", "b0")
    assert story.see(moved) == []


@pytest.mark.parametrize("declares", [False, True])
@pytest.mark.parametrize("by_command", [False, True])
@pytest.mark.parametrize("entries", ["", "a"])
def test_which_plan_files_are_the_plan_s_artifact(declares: bool, by_command: bool, entries: str) -> None:
    """A file that says its children is; one that implies a child only where no command would make the children."""
    story = Story(settings("plan spec phase code" if by_command else "spec phase code"))
    artifact = replace(outline(entries, "p"), declares=declares)
    assert plan_declares(story.forest, artifact) == (declares or (bool(entries) and not by_command))


@pytest.mark.parametrize(
    "state",
    [
        "", "cancel p", "cancel p/a", "choose p/b\nbegan p/b", "drop p/a: x; y", "renew p\ncancel p",
        f"renew p\nchoose p\n{LANDING.replace('p/a', 'p')}",
    ],
)  # fmt: skip
def test_all_below_a_plan_are_paid_by_the_project_of_its_file(state: str) -> None:
    """Whatever a plan stands for at that moment, one that goes to another project takes all below it along."""
    story = tell(f"plan p: a (k); b\n{state}")
    story.see(o.PlanOffered("p", outline("a (k); b", "p", project="q"), "d2", "p.md"))
    assert {loop.project for loop in story.forest.tree.walk("p")} == {"q"}
    story.verify()


def test_a_plan_file_changes_its_title_and_budget_at_once() -> None:
    """Title and budget of a plan are taken from its file without doing anything again."""
    story = tell("plan p: a")
    story.see(o.PlanOffered("p", outline("a", "New title", budget=Budget(tokens=9)), "d2", "p.md"))
    assert (story["p"].title, story["p"].budget.tokens, story["p"].status) == ("New title", 9, "complete")
    assert story["p/a"].generation == 1


@pytest.mark.parametrize("moment", ["p is pending", "choose p\nbegan p", "choose p\nbegan p\nended p\njudged p"])
def test_a_budget_in_a_plan_file_makes_no_command_begin_anew(moment: str) -> None:
    """Raising the budget in a file that a plan's command works from counts at once, and undoes nothing."""
    story = tell(f"ask p: # do it\n{moment}")
    before, same = story["p"], outline("# do it", "p")
    story.see(o.PlanOffered("p", replace(same, budget=Budget(tokens=9)), "another digest", "p.md"))
    now = story["p"]
    assert (now.status, now.generation, now.attempt) == (before.status, before.generation, before.attempt)
    assert now.budget.tokens == 9
    story.verify()


# --- by declaration --------------------------------------------------------------------------------------------------


def test_declared_loops_complete_level_by_level() -> None:
    """Loops whose entry declares their children complete without a lease, a slot or a command, from the top down."""
    story = tell("plan p: a (b (c; d)); e\nsettle", settings(max_loops=1))
    found = {each.id: each.status for each in story.forest.loops.values()}
    assert {key for key, status in found.items() if status is Status.COMPLETE} == {"p", "p/a", "p/a/b"}
    assert all(each.attempt == 0 for each in story.forest.loops.values())
    assert "p/a/b/c" in found


def test_a_phase_without_a_command_gets_its_one_code() -> None:
    """A loop without a command whose children are implied completes by declaration, with one leaf, called `code`."""
    tell("plan p: a (b)\nsettle\np/a/b is complete\np/a/b/code is pending", settings(commands="code"))


def test_a_phase_with_a_command_runs_it() -> None:
    """Where the type has a command, a phase that declares nothing is asked for its children."""
    tell("plan p: a (b)\nsettle\np/a/b is pending\nchoose p/a/b")


@pytest.mark.parametrize("judge", ["judged", "reviewed", "approve"])
def test_a_type_with_a_judge_is_not_passed_over(judge: str) -> None:
    """An implied child does not complete a loop by declaration past a check, a review or an approval."""
    tell("plan p: a (b)\nsettle\nwhy p/a/b: manual specs/p/a/b/phase.md", settings("code", {"phase": {judge: True}}))


def test_one_that_declares_nothing_waits_for_a_person() -> None:
    """A spec without a command and without declared phases waits for a person."""
    tell("plan p: a\nsettle\nwhy p/a: manual specs/p/a/spec.md", settings(commands="code"))


def test_declaration_waits_for_holds_parent_and_needs() -> None:
    """A declared loop completes as soon as holds, parent and needs let it, whatever slots, lanes and host say."""
    story = tell("plan p: a (k); b needs a (l)\npause p/a\nhost sick\nsettle\np/a is pending\np/b is pending")
    go_on(story, "resume p/a\nsettle\np/a is complete\np/b is pending\nhost fine\nchoose p/a/k\nfinish p/a/k: x")
    go_on(story, "drop p/a/k/x: # done\nsettle\np/b is complete")
    story.verify()


def test_other_nested_children_settle_again() -> None:
    """When only the children nested in an entry change, the loop writes its artifact again; its work is not redone."""
    story = tell(
        "plan p: a (k; l)\nsettle\nchoose p/a/k, p/a/l\nplan p: a (k body new; m)\np/a has status pending generation 1"
    )
    assert [each for each in owed(story.forest) if isinstance(each, WriteDeclared)] == [WriteDeclared("p/a", 0)]
    go_on(
        story, "settle\np/a is complete\np/a/k has status pending generation 2\np/a/l is invalidated\np/a/m is pending"
    )
    story.verify()


def test_an_entry_that_declares_no_children_any_more_is_asked_again() -> None:
    """A loop whose nested children are taken out of its entry runs its command, or waits for a person."""
    tell("plan p: a (k)\nsettle\nplan p: a\np/a is pending\nchoose p/a")


# --- projects --------------------------------------------------------------------------------------------------------


def test_everything_below_a_plan_is_paid_by_its_project() -> None:
    """Children take the project of their plan, also those that are declared later by somebody else's file."""
    story = Story()
    story.see(o.PlanOffered("p", outline("a (k)", "p", project="api"), "d", "p.md"))
    go_on(story, "settle\ndrop p/a/k: x")
    assert {each.project for each in story.forest.loops.values()} == {"api"}
    story.verify()


def test_a_child_that_left_before_its_parent_stays_gone() -> None:
    """A loop that comes back brings back what left with it, and not what it had dropped at the same instant."""
    story = tell("plan p: s; t\nchoose p/s, p/t\nfinish p/s: a; b\nfinish p/t: x")
    go_on(story, "drop p/s: b\nplan p: t")
    gone = [story[each].status for each in ("p/s", "p/s/a", "p/s/b")]
    assert gone == ["invalidated"] * 3
    go_on(story, "plan p: s; t")
    assert (story["p/s"].status, story["p/s/a"].status, story["p/s/b"].status) == ("complete", "invalidated", "pending")
    story.verify()
