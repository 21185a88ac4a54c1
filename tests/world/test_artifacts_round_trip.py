"""What loopr writes from an entry, it reads back as that entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from loopr.core.outline import Artifact, Entry, outline_digest, render_artifact, slug
from loopr.core.policy import NO_BUDGET, Budget, default_types
from loopr.core.slugs import one_line, pattern_problem
from loopr.core.values import CURLY
from loopr.world.artifacts import digest, parse_artifact

TYPES = default_types()
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20)
MARKDOWN = st.lists(
    st.sampled_from(
        ["## Phases", "## Tasks", "1. **A**", "- a: A", "```", "<!--", "---", "", "  x", "\ty", "# h", "loopr: x"]
    )
    | TEXTS,
    max_size=6,
).map("\n".join)
BODIES = MARKDOWN.map(lambda text: text.strip("\n").rstrip())
TITLES = (TEXTS | st.sampled_from(["null", "true", "1", "~", "a: b", "- x", "```", "<!--"])).map(one_line).filter(bool)
IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,5}", fullmatch=True).map(slug) | st.sampled_from(
    ["null", "1", "1e5", "y", "no"]
)
SHELL = TEXTS.filter(lambda each: each.strip() and not each.startswith(CURLY))
COMMANDS = st.none() | SHELL | st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3).map(tuple)
LIMITS = st.none() | st.integers(0, 10**12)
CODE_BELOW = 2  # levels: those of phases and their tasks
OUTLINES = {0: st.just(())}
PLAIN = st.builds(
    Entry,
    id=IDS,
    title=TITLES,
    body=BODIES,
    needs=st.just(()) | st.just(("plan/other/place",)),
    files=st.lists(TEXTS.filter(lambda each: not pattern_problem(each)), max_size=2, unique=True).map(tuple),
    inputs=st.lists(TEXTS.filter(lambda each: not pattern_problem(each)), max_size=2, unique=True).map(tuple),
    budget=st.just(NO_BUDGET) | st.builds(Budget, LIMITS, LIMITS, LIMITS),
    parallel=st.none() | st.booleans(),
)


def below(levels: int) -> st.SearchStrategy[tuple[Entry, ...]]:
    """Draw outlines that are at most that many levels deep."""
    if levels == 0:
        return st.just(())
    works = st.tuples(COMMANDS, st.none() | TEXTS, COMMANDS, st.none() | st.booleans())
    working = st.builds(worked, PLAIN, works, st.just(levels))
    parents = st.builds(lambda entry, children: replace(entry, children=children), PLAIN, below(levels - 1))
    return st.lists(working | parents, max_size=3, unique_by=lambda each: each.id).map(chain)


def worked(entry: Entry, work: tuple[Any, Any, Any, Any], levels: int) -> Entry:
    """Give an entry work and a judge of its own, none that nobody would read; the phases of these have their `code`."""
    run, agent, check, leaf = work
    if run is not None:
        agent = None
    elif agent is None:
        check, leaf = check if levels != CODE_BELOW else None, None
    return replace(entry, run=run, agent=agent, check=check, leaf=leaf if levels > 1 else None)


def chain(entries: list[Entry]) -> tuple[Entry, ...]:
    """Let every entry need the one before it."""
    needs = [(), *((each.id,) for each in entries)]
    return tuple(replace(each, needs=(*each.needs, *need)) for each, need in zip(entries, needs, strict=False))


def read(text: str, type_name: str) -> Artifact:
    """Read what was written."""
    return parse_artifact(text.encode(), "f.md", type_name=type_name, types=TYPES, fallback_id="zzz")


@given(
    st.builds(lambda entry, children: replace(entry, children=children), PLAIN, below(3)), st.sampled_from(["", "api"])
)
@example(Entry("a", "A", children=(Entry("b", "B", "x\n\n  y\n \nz"),)), "")
@example(Entry("a", "A", children=(Entry("b", "B", "\u2028\ufeff\x7f\x85\U0001f600\n'\""),)), "")
def test_an_artifact_reads_back_as_its_entry(entry: Entry, project: str) -> None:
    """The artifact written from an entry has its id, title, body and, to the last field, its children."""
    text = render_artifact(entry, "plan", TYPES, project=project or "default")
    artifact = read(text, "plan")
    assert artifact.entries == entry.children
    assert (artifact.id, artifact.title, artifact.project) == (entry.id, entry.title, project or "default")
    assert outline_digest(Entry("x", "x", children=artifact.entries)) == outline_digest(entry)
    assert artifact.text.removeprefix(f"# {entry.title}\n").strip("\n") == entry.body
    assert render_artifact(replace(entry, children=artifact.entries), "plan", TYPES, project=artifact.project) == text
    assert digest(text.encode()) == digest(render_artifact(entry, "plan", TYPES, project=project or "default").encode())


@given(PLAIN)
@example(Entry("a", "A", "## Tasks\n- no: No"))
def test_a_phase_without_tasks_gets_its_code(entry: Entry) -> None:
    """A body that looks like an outline does not grow children which its entry never declared."""
    (only,) = read(render_artifact(entry, "phase", TYPES), "phase").entries
    assert only.implied


def test_what_it_looks_like() -> None:
    """The artifact of a declared loop is a document that a person would write."""
    entry = Entry(
        "oauth",
        "Add OAuth",
        "First this.\nThen that.",
        children=(
            Entry("tokens", "Token storage", "Tables.\n\nAnd a repository.", run=("make", "spec"), parallel=False),
            Entry(
                "api", "API", needs=("tokens",), budget=Budget(500, 1_500_000), children=(Entry("routes", "Routes"),)
            ),
        ),
    )
    assert render_artifact(entry, "plan", TYPES) == (
        """---
id: oauth
title: "Add OAuth"
specs:
  - id: tokens
    title: "Token storage"
    body: |-
      Tables.

      And a repository.
    run: ["make", "spec"]
    parallel: false
  - id: api
    title: "API"
    needs: ["tokens"]
    budget: {tokens: 500, usd: 1.5}
    phases:
      - id: routes
        title: "Routes"
---
# Add OAuth

First this.
Then that.
"""
    )
