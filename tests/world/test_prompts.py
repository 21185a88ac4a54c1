"""A prompt says what is known of an iteration, asks for what can be read back, and names the line of a bad template."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.outline import Ladder
from loopr.core.policy import TypePolicy, default_types
from loopr.errors import SettingsError, WorldError
from loopr.world.artifacts import parse_artifact
from loopr.world.prompts import (
    BUILT_IN,
    Iteration,
    Prompts,
    Sibling,
    fenced,
    render_context,
    write_files,
)

OWN_LADDER = {
    "epic": TypePolicy("epic", "story"),
    "story": TypePolicy("story", "chore"),
    "chore": TypePolicy("chore"),
}
LADDERS = {name: ladder for ladder in (default_types(), OWN_LADDER) for name in ladder}
PLAIN = Iteration(
    loop_id="oauth/tokens", type="spec", title="Token storage", body="", child="phase", children_key="phases"
)
FULL = replace(
    PLAIN,
    body="Tables for tokens.\n\n\n  indented {{ not }} a {% template %}",
    iteration=3,
    max_iterations=30,
    generation=2,
    has_landed=True,
    output_path=".loopr/spec.md",
    context_path=".loopr/context.md",
    result_path=".loopr/result.json",
    siblings=[Sibling("oauth/endpoints", "Endpoints", "running")],
    parent="oauth",
    parent_title="Add OAuth",
    parent_artifact="# Add OAuth\n```\ncode\n```\n",
    feedback="E  assert 1 == 2\n```",
    files=["src/**", "docs/a.md"],
    check="make test",
    review="./review",
    protected=["loopr.yml"],
)


def of_type(name: str, iteration: Iteration = FULL) -> Iteration:
    """Make the iteration one of another type."""
    ladder = Ladder(LADDERS[name])
    keys = ladder.keys(name)
    return replace(
        iteration,
        type=name,
        child=ladder.child(name),
        children_key=keys[0] if keys else "",
        implies_child=ladder.implies(name),
    )


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("iteration", [PLAIN, FULL], ids=["plain", "full"])
def test_the_example_passes_the_format_check(name: str, iteration: Iteration) -> None:
    """Whoever hands over exactly the example of a prompt is understood: its children are declared, in order."""
    prompt = Prompts().render(of_type(name, replace(iteration, output_path="out.md")))
    (example,) = re.findall(r"^~~~markdown\n(.*?)^~~~$", prompt, re.DOTALL | re.MULTILINE)
    artifact = parse_artifact(
        example.encode(), "example.md", type_name=name, types=LADDERS[name], fallback_id="x", written_by_loop=True
    )
    assert artifact.warnings == ()
    if LADDERS[name][name].child is None:
        assert artifact.entries == ()
    else:
        first, second = artifact.entries
        assert artifact.declares
        assert not first.implied
        assert second.needs == (first.id,)
        assert first.body and second.body and first.files


@pytest.mark.parametrize("name", LADDERS)
def test_a_prompt_begins_with_a_plain_line(name: str) -> None:
    """The first line is a sentence, whatever the loop is called."""
    for title in ("/compact", "!rm", "# x"):
        first = Prompts().render(of_type(name, replace(FULL, title=title, body="/clear"))).split("\n")[0]
        assert re.fullmatch(r"You [\w ]+ `oauth/tokens`, one piece of a larger work\.", first)


def test_a_prompt_says_all_that_is_known() -> None:
    """Each thing that is known of an iteration is in its prompt, as it was given."""
    prompt = Prompts().render(FULL)
    for said in (
        FULL.body,
        "try 3 of 30",
        "````\nE  assert 1 == 2\n```\n````",
        "earlier version",
        ".loopr/spec.md",
        ".loopr/context.md",
        ".loopr/result.json",
        "- `oauth/endpoints` Endpoints: running",
        "`oauth` (Add OAuth)",
        "````markdown\n# Add OAuth\n```\ncode\n```\n````",
        "`src/**`, `docs/a.md`",
        "`make test`",
        "Another reader",
        "`loopr.yml`",
    ):
        assert said in prompt


def test_a_prompt_says_nothing_of_what_is_not_there() -> None:
    """A first try without parent, siblings, check or files says nothing about any of them."""
    prompt = Prompts().render(PLAIN)
    for said in (
        "try 1",
        "refused. What",
        "belongs to `",
        "beside you",
        "judged",
        "earlier version",
        "put back",
        "blocked",
    ):
        assert said not in prompt
    assert "\n\n\n" not in prompt


def test_what_the_body_says_already_is_not_said_twice() -> None:
    """A child whose task is its parent's whole artifact is not given that artifact again."""
    prompt = Prompts().render(replace(FULL, body="# Add OAuth\n```\ncode\n```"))
    assert prompt.count("# Add OAuth") == 1


def test_a_large_parent_is_named_only() -> None:
    """An artifact of a parent that would fill the prompt is left to the context file."""
    prompt = Prompts().render(replace(FULL, parent_artifact="long " * 10_000))
    assert len(prompt) < 10_000
    assert ".loopr/context.md" in prompt


def test_a_prompt_of_five_megabytes() -> None:
    """A task may be as long as it likes."""
    body = "x" * 5_000_000
    assert body in Prompts().render(replace(PLAIN, body=body))


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_what_is_given_is_text(body: str, feedback: str, parent: str) -> None:
    """No text that a loop or a person wrote is taken for a template, or breaks out of its fence."""
    prompt = Prompts().render(replace(FULL, body=body, feedback=feedback, parent_artifact=parent))
    assert body.strip() in prompt
    if feedback:
        assert fenced(feedback) in prompt


@given(st.lists(st.sampled_from(["```", "````", "  ```", "~~~", "x", "", "`"]), max_size=8).map("\n".join))
def test_a_fence_holds(text: str) -> None:
    """Nothing inside a fence can close it."""
    first, *inner, last = fenced(text, "sh").split("\n")
    assert first == f"{last}sh"
    assert not any(line.strip().startswith(last) for line in inner)


# --- templates of the workspace -------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Give the folder of a workspace's own templates."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    return folder


def of(folder: Path) -> Prompts:
    """Return the templates that lie in a folder now."""
    return Prompts({each.name: each.read_bytes() for each in folder.iterdir()}, folder)


def test_a_template_of_the_workspace_wins(own: Path) -> None:
    """A template of one's own takes the place of the built-in one of that name, and of no other."""
    (own / "spec.md").write_text("Mine: {{ title }}")
    prompts = of(own)
    assert prompts.render(FULL) == "Mine: Token storage\n"
    assert "Settle what is to be built" not in prompts.render(of_type("code"))


def test_a_default_of_the_workspace_is_for_types_without_a_template(own: Path) -> None:
    """An own default is for own types; plan, spec, phase and code keep theirs."""
    (own / "default.md").write_text("Mine: {{ type }}")
    assert of(own).render(of_type("story")) == "Mine: story\n"
    assert "specification" in of(own).render(FULL)


def test_a_template_may_build_on_a_built_in_one(own: Path) -> None:
    """An own template can extend the built-in one of the same name and change a part of it."""
    (own / "spec.md").write_text(
        '{% extends "loopr/spec.md" %}{% block output %}Also draw it.\n{{ super() }}{% endblock %}'
    )
    prompt = of(own).render(FULL)
    assert "Also draw it." in prompt
    assert "phases:" in prompt


def test_what_changes_in_the_folder_changes_nothing_by_itself(own: Path) -> None:
    """Templates are what was accepted, not what lies in the folder by now."""
    (own / "spec.md").write_text("One")
    prompts = of(own)
    (own / "spec.md").write_text("Another")
    assert prompts.render(FULL) == "One\n"


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ("One\nTwo {{ titel }}", 2, "'titel' is undefined", 'did you mean "title"?'),
        ("One\n\n{{ nothing_like_it }}", 3, "undefined", "known variables: body, check, child"),
        ("One\n{% if x %}", 2, "", "mend the template"),
        ("One\n{{ title.nope }}", 2, "nope", "mend the template"),
        ("One\n{{ title | shout }}", 2, "shout", "mend the template"),
        ("One\n{{ 1 / 0 }}", 2, "division", "mend the template"),
        ("One\n{{ title.__class__.__mro__ }}", 2, "unsafe", "mend the template"),
        ("One\n{{ range(10000000) | list }}", 2, "Range too big", "mend the template"),
        ("One\n{% include 'none.md' %}", 2, "none.md", "mend the template"),
        ("  /compact", 1, "begins with a /", "plain line"),
        ("{# nothing #}", 1, "is empty", "plain line"),
    ],
)
def test_a_bad_template_is_named_with_its_line(own: Path, text: str, line: int, said: str, hint: str) -> None:
    """Whatever is wrong with a template, the error has its file, its line and what to do."""
    path = own / "spec.md"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        of(own).render(FULL)
    (problem,) = caught.value.problems
    assert problem.where == f"{path}:{line}"
    assert said in problem.message
    assert hint in problem.hint


def test_an_error_in_a_part_names_the_part(own: Path) -> None:
    """If a template includes another, the error names the file it is in."""
    (own / "spec.md").write_text("One\n{% include 'part.md' %}")
    (own / "part.md").write_text("a\nb\n{{ oops }}")
    with pytest.raises(SettingsError) as caught:
        of(own).render(FULL)
    assert caught.value.problems[0].where == f"{own / 'part.md'}:3"


def test_a_template_that_is_no_text_is_said(own: Path) -> None:
    """A template that is not UTF-8 is refused, not guessed at."""
    (own / "spec.md").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="bad template"):
        of(own).render(FULL)


def test_nothing_is_loaded_before_it_is_needed() -> None:
    """Importing the module does not import jinja2."""
    program = "import sys, loopr.world.prompts; print('jinja2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=BUILT_IN.parents[1]
    )
    assert done.stdout == "False\n"


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_context_names_siblings_and_parent() -> None:
    """The context file has the siblings with their states and all of the parent's artifact, in Markdown."""
    text = render_context(FULL)
    assert "- `oauth/endpoints` Endpoints: running" in text
    assert "````markdown\n# Add OAuth\n```\ncode\n```\n````" in text
    assert render_context(PLAIN) == "# Context of oauth/tokens\n"


def test_files_are_written_as_a_whole(tmp_path: Path) -> None:
    """Each file lands under its own name, replaces what was there, and leaves nothing beside it."""
    folder = tmp_path / ".loopr"
    folder.mkdir()
    for _ in range(2):
        write_files(folder, {"prompt.md": "prompt é\udcff", "feedback.md": "", "context.md": "context\r\n"})
    assert sorted(each.name for each in folder.iterdir()) == ["context.md", "feedback.md", "prompt.md"]
    assert (folder / "prompt.md").read_bytes() == "prompt é".encode() + b"\xff"
    assert (folder / "context.md").read_bytes() == b"context\r\n"


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """A link that a command left where a file belongs is replaced; what it points to stays as it was."""
    folder, victim = tmp_path / ".loopr", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("mine")
    (folder / "prompt.md").symlink_to(victim)
    write_files(folder, {"prompt.md": "text"})
    assert victim.read_text() == "mine"
    assert (folder / "prompt.md").read_text() == "text"


@pytest.mark.parametrize("kind", ["link", "file", "folder in the way"])
def test_a_planted_folder_is_said(tmp_path: Path, kind: str) -> None:
    """A folder that is a link or a file, or a name that is taken by a folder, is an error that says what to do."""
    folder = tmp_path / ".loopr"
    (tmp_path / "elsewhere").mkdir()
    if kind == "link":
        folder.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        folder.write_text("x")
    else:
        (folder / "prompt.md").mkdir(parents=True)
    with pytest.raises(WorldError, match="move what stands in its place"):
        write_files(folder, {"prompt.md": "text"})
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert kind != "folder in the way" or list(folder.iterdir()) == [folder / "prompt.md"]
