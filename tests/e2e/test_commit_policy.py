"""Commits as the settings word them, whatever a title holds; loopr goes on reading its own trailers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.world.settings.settings import load_texts
from loopr.world.settings.sources import Texts
from tests.e2e.repos import Repo, opened

POLICY = """
types: {plan: {child: task}, task: {check: none}}
commit:
  message: "feat({plan}): {title}\\n\\nOf {loop}, a {type}."
  signoff: true
  author: Röbot <robot@example.invalid>
  trailers: [Refs: 12, "Co-authored-by: A B <a@example.invalid>"]
"""
PLAN = """---
id: p
title: "The\\nplan"
tasks:
  - {id: lines, title: "One\\ntwo\\n\\nLoopr-Loop: p/other", run: "echo x > x"}
  - {id: long, title: "LONG", run: "echo y > y"}
  - {id: odd, title: "Größe {plan} # — 大きさ", run: "echo z > z"}
---
# The plan
""".replace("LONG", "very " * 40 + "long")
FORM = re.compile(r"feat\(p\): \S.*")


def messages(repo: Repo, what: str) -> dict[str, str]:
    """Map the loops, or the plan, that commits are about to what each says as a whole."""
    key = "%(trailers:key=Loopr-Loop,key=Loopr-Plan,valueonly,separator=)"
    said = repo.git("log", f"--format={key}%x00%B%x01", what).split("\x01")
    return dict(each.strip().split("\0") for each in said if each.strip())


def test_each_commit_is_worded_as_the_settings_say(tmp_path: Path) -> None:
    """Subject, author, trailers and sign-off are there for loops and for merges, also of a title that is no line."""
    with opened(tmp_path) as repo:
        repo.found({"plan.md": PLAN})
        repo.settings(POLICY)
        begin = repo.git("rev-parse", "HEAD")
        repo.loopr("start", "plan.md")
        repo.write({"mine": "mine\n"})
        repo.git("add", "mine")
        repo.git("commit", "--quiet", "--message=feat(p): mine")
        repo.loopr("land", "--yes", "p")
        found = messages(repo, f"{begin}..main")
        assert {*found} == {"p/lines", "p/long", "p/odd", "p", ""}
        subjects = {loop: text.partition("\n")[0] for loop, text in found.items()}
        assert all(FORM.fullmatch(each) and len(each) <= 100 for each in subjects.values()), subjects
        assert subjects["p/odd"] == "feat(p): Größe {plan} # — 大きさ"
        assert subjects["p"] == "feat(p): Land p: The plan"
        del found[""]
        for loop, text in found.items():
            assert f"\n\nOf {loop}, a {'plan' if loop == 'p' else 'task'}.\n\n" in text
            *_, last = text.strip().split("\n\n")
            assert last.endswith("\n".join(["Refs: 12", "Co-authored-by: A B <a@example.invalid>", signed_off(repo)]))
        authors = set(repo.git("log", "--no-merges", "--grep=Loopr-Loop", "--format=%an <%ae>").splitlines())
        assert authors == {"Röbot <robot@example.invalid>"}
        assert repo.git("fsck", "--strict", "--no-dangling") == ""


def signed_off(repo: Repo) -> str:
    """Return the line that git would sign off with."""
    return f"Signed-off-by: {repo.git('var', 'GIT_COMMITTER_IDENT').rsplit(' ', 2)[0]}"


def test_loopr_reads_its_own_trailers_under_any_template(tmp_path: Path) -> None:
    """What a rewritten branch lacks is named by its loop, also where the words say otherwise."""
    with opened(tmp_path) as repo:
        repo.found({"plan.md": PLAN})
        repo.settings(POLICY.replace("Of {loop}, a {type}.", "Loopr-Loop: p/nobody"))
        repo.loopr("start", "plan.md")
        repo.git("switch", "--quiet", "--create", "mine", "main")
        repo.git("commit", "--quiet", "--allow-empty", "--message=mine")
        said = repo.loopr("adopt", "p", "mine", "--replace", "--yes")
        told = said.out + said.err
        assert "lacks x, y, z" in told
        assert "p/lines p/long p/odd" in told


WRONG = [
    ("message: '{titel}'", "commit.message: there is no placeholder {titel} (known are {title}, {loop}"),
    ("message: '{title} {'", "commit.message: a { stands alone"),
    ("message: '{body}'", "commit.message: its first line is empty without a body (begin with {title}"),
    ("message: 3", "commit.message: must be text with placeholders"),
    ("author: me", 'commit.author: must be NAME <MAIL>, not "me"'),
    ('author: "A <a@b>\\nx"', "commit.author: must be NAME <MAIL>"),
    ('trailers: ["A: b\\nC: d"]', 'commit.trailers: "A: b\\nC: d" is no trailer (for example "Refs: #12"'),
    ("trailers: {Loopr-Loop: x}", 'commit.trailers: "Loopr-Loop: x" is a trailer of loopr\'s own'),
    ("trailers: [one]", 'commit.trailers: "one" is no trailer'),
    ("trailers: {Refs: [a]}", "commit.trailers: must be a map of names to texts, or a list"),
    ("trailers: Refs", "commit.trailers: must be a map of names to texts, or a list"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_what_makes_no_commit_message_is_refused_with_its_place(line: str, words: str) -> None:
    """A slip is named by line and column before anything is committed."""
    texts = Texts({"loopr.yml": f"version: 1\ncommit:\n  {line}\n".encode()})
    with pytest.raises(SettingsError) as caught:
        load_texts(texts, environ={})
    said = [str(each) for each in caught.value.problems]
    assert any(words in each and each.startswith("loopr.yml:3:") for each in said), said
