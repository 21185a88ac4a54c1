"""Templates of commit messages: every title makes one subject, and nothing that is written in vain is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.wording import LINE, MOST_IN_SUBJECT, PLACEHOLDERS, USUAL, fill, slips_in

ABOUT = {
    "title": "Add tokens",
    "loop": "oauth/tokens",
    "plan": "oauth",
    "type": "code",
    "body": "iteration 1",
}


@pytest.mark.parametrize(
    ("template", "subject", "body"),
    [
        (USUAL, "Add tokens", "iteration 1"),
        ("feat({plan}): {title}", "feat(oauth): Add tokens", ""),
        (
            "{type}: {title}\n\nFor {loop}.\n\n{body}\n",
            "code: Add tokens",
            "For oauth/tokens.\n\niteration 1",
        ),
        ("\n  {{{title}}}  x\n", "{Add tokens} x", ""),
        ("{title}\nat once", "Add tokens", "at once"),
    ],
)
def test_a_template_becomes_a_subject_and_a_body(template: str, subject: str, body: str) -> None:
    """Placeholders are filled, doubled braces are braces, and what follows the first line is the body."""
    assert list(slips_in(template)) == []
    assert fill(template, ABOUT) == (subject, body)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{titel}", "there is no placeholder {titel}"),
        ("{} x", "there is no placeholder {}"),
        ("{title} {", "a { stands alone"),
        ("}{title}", "a } stands alone"),
        ("{title!r}", "there is no placeholder {title!r}"),
        (" \n", "its first line is empty without a body"),
        ("{body}\n{title}", "its first line is empty without a body"),
    ],
)
def test_what_is_no_template_says_what_is_known(template: str, words: str) -> None:
    """A slip is named as it was written, with what may stand there."""
    found = dict(slips_in(template))
    assert words in found
    assert "{title}" in found[words]


def test_braces_of_a_title_are_its_own() -> None:
    """A value is never read as a template."""
    assert fill("{title} of {plan}", {**ABOUT, "title": "{plan} {{x}} {"}) == (
        "{plan} {{x}} { of oauth",
        "",
    )


def test_a_long_title_is_cut_at_a_word_and_stands_whole_in_the_body() -> None:
    """No line of the message is longer than linters let pass, and no word is lost."""
    title = " ".join(["words"] * 40)
    subject, body = fill("feat: {title}\n\n{body}", {**ABOUT, "title": title})
    assert subject.endswith("words…")
    first, _, rest = body.partition("\n\n")
    assert (first.replace("\n", " "), rest) == (f"feat: {title}", "iteration 1")
    assert max(map(len, body.splitlines())) <= LINE


@given(st.sampled_from([USUAL, "feat({plan}): {title}", "{title}: {body}"]), st.text(), st.text())
def test_any_title_makes_one_line(template: str, title: str, body: str) -> None:
    """Whatever is in a title, the subject is one line, not empty where the title is not, and of a bounded length."""
    subject, _ = fill(template, {**dict.fromkeys(PLACEHOLDERS, ""), "title": title, "body": body})
    assert len(subject) <= MOST_IN_SUBJECT
    assert len(subject.splitlines()) <= 1
    assert subject or not title.split()
