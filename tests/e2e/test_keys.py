"""Keys that a command prints: no surface passes one on, and the log itself stays as it was."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, Repo, opened

KEY, PASSWORD, KNOWN = "pat-0123456789", "p4ssw0rd-of-db", "postgres-1234"
SECRETS = {
    "GH_PAT": KEY,
    "DATABASE_URL": f"postgres://me:{PASSWORD}@db/x",
    "DB_PASSWORD": KNOWN,
}
COMMAND = """
printf '%s\\n' "$GH_PAT" "$DATABASE_URL" "$DB_PASSWORD"
printf '%s\\n' "$GH_PAT" "$DATABASE_URL" "$DB_PASSWORD" >&2
exit 3
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository whose one loop has printed its keys twice, and failed."""
    with opened(tmp_path) as found:
        found.env |= SECRETS
        found.found({"compose.yml": f"password: {KNOWN}\n"})
        command = found.script("code", COMMAND)
        found.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}', max_iterations: 2}}\n")
        found.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
        found.loopr("start", "plan.md", code=1)
        yield found


def hidden(text: str) -> None:
    """Check that no key is in a text, and that what everybody may read is."""
    assert KEY not in text
    assert PASSWORD not in text
    assert KNOWN in text


def test_logs_hide_keys_in_a_pipe(repo: Repo) -> None:
    """`logs` hides them as text, as events and as JSON; --unveiled is refused there."""
    for words in (("logs", "demo/a"), ("logs", "demo/a", "--raw"), ("logs", "demo/a", "--json")):
        hidden(repo.loopr(*words).out)
    assert "terminal" in repo.loopr("logs", "demo/a", "--unveiled", code=2).err
    assert "terminal" in repo.loopr("logs", "demo/a", "--unveiled", "--json", code=2).out


def test_logs_show_keys_on_a_terminal(repo: Repo) -> None:
    """--unveiled shows them to a person at a terminal; without it they are hidden there too."""
    assert KEY in on_terminal(repo, "logs", "demo/a", "--unveiled")
    hidden(on_terminal(repo, "logs", "demo/a"))


def on_terminal(repo: Repo, *words: str) -> str:
    """Run loopr on a terminal of its own, and return what it shows."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(LOOPR, [str(LOOPR), "-C", str(repo.root), *words], repo.env)
    said = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # it has ended
            break
        if not piece:
            break
        said += piece
    os.close(terminal)
    os.waitpid(pid, 0)
    return said.decode()


def test_nothing_else_passes_a_key_on(repo: Repo) -> None:
    """No event, view, prompt or feedback has one; the log on disk is as it was printed."""
    everything = json.dumps(repo.events())
    for words in (("why", "demo/a"), ("show", "demo/a", "--json"), ("status",), ("prompt", "demo/a")):
        everything += repo.loopr(*words).out
    runs = repo.state / "runs/demo.a.g1"
    everything += "".join(each.read_text() for each in runs.glob("*/*.md"))
    everything += "".join(each.read_text() for each in runs.glob("*/refusal.json"))
    hidden(everything)
    assert KEY in (runs / "1/stdout.log").read_text()


def test_doctor_names_variables_that_look_like_keys(repo: Repo) -> None:
    """They are named as long as every command gets them, and no more once `env.only` says who gets in."""
    said = repo.loopr("doctor", code=None).out
    assert "DATABASE_URL, DB_PASSWORD, GH_PAT reach the commands of code" in said
    repo.loopr("set", "types.code.env.only", '["GH_PAT"]')
    assert "reach the commands" not in repo.loopr("doctor", code=None).out


def test_the_state_folder_is_for_its_owner_alone(repo: Repo) -> None:
    """The folder of the state lets nobody else in, and no file in it is for others either."""
    repo.loopr("pause", "--all")
    assert repo.state.stat().st_mode & 0o777 == 0o700
    files = [each for each in repo.state.rglob("*") if not each.is_dir() and not each.is_symlink()]
    assert [str(each) for each in files if each.stat().st_mode & 0o077] == []
