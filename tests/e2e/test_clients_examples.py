"""The examples with coding agents, as they stand: their scripts let the real clients work."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.nights import Night, night
from tests.e2e.repos import LOOPR
from tests.e2e.test_examples import EXAMPLES
from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.author import author
from tests.standin.desk import KEY
from tests.standin.server import Chosen

pytestmark = pytest.mark.clients
PATIENCE_SECS = 400


def answers(plan: str, *specs: str) -> Chosen:
    """Answer the proof, the reviews, and the loops of a plan whose specs have one phase each."""
    tree = {f"{plan}/{spec}": ("all",) for spec in specs} | {f"{plan}/{spec}/all": () for spec in specs}
    works = author(tree)

    def answer(asked: Asked) -> a.Answer:
        if asked.loop == "stop/stay":
            return a.Shell("tail -f plan.md")
        if "greeting.txt" in asked.prompt:
            return a.Text() if asked.follows else a.Edit("greeting.txt", "hello\n")
        if "You review `" in asked.prompt:
            return a.Text("I have looked.\n\nAPPROVED: it is sound")
        if asked.loop.endswith("/code") and not asked.follows:
            return a.Edit(f"tests/{asked.loop.split('/')[1]}.sh", "true\n")
        return works(asked)

    return answer


def play(repo: Night, name: str, folder: Path) -> str:
    """Run the script of an example on the island, and return what it prints."""
    argv = ["sh", str(EXAMPLES / name / "demo.sh"), "--live", str(folder)]
    env = {**repo.env, "LOOPR": str(LOOPR)}
    out = repo.laid_out.island.do(
        lambda: subprocess.Popen(
            argv, cwd=folder.parent, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    )
    printed, _ = out.communicate(timeout=PATIENCE_SECS)
    assert out.returncode == 0, printed
    return printed


def loops_of(folder: Path, env: dict[str, str]) -> dict[str, dict[str, object]]:
    """Return every loop of an example by its id."""
    argv = [str(LOOPR), "ls", "--json"]
    out = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout
    return {each["id"]: each for each in json.loads(out)["loops"]}


class Example(NamedTuple):
    """An example: who works in it, on which plan with which specs, and how often it is reviewed."""

    clients: tuple[str, ...]
    plan: str
    specs: tuple[str, ...]
    reviews: int


LIVE = {
    "claude-code": Example(("claude",), "convert", ("lengths", "temperatures"), 2 * 5),
    "codex": Example(("codex",), "words", ("wrap", "count"), 0),
    "mixed-lanes": Example(("claude", "codex"), "dates", ("weekday", "between"), 2 * 2 + 2),
}


@pytest.mark.parametrize("name", LIVE)
def test_an_example_is_driven_home(tmp_path: Path, name: str) -> None:
    """An example lands all that its agents write, each loop in its first try, reviewed as often as it says."""
    clients, plan, specs, reviews = LIVE[name]
    with night(tmp_path, *clients, otherwise=answers(plan, *specs)) as repo:
        if name == "mixed-lanes":
            repo.env["CLAUDE_CODE_OAUTH_TOKEN"] = KEY
        folder = tmp_path / "kept"
        printed = play(repo, name, folder)
        loops = loops_of(folder, repo.env)
        assert sorted(loops) == sorted(
            [plan, *(f"{plan}/{spec}{end}" for spec in specs for end in ("", "/all", "/all/code"))]
        )
        assert {each["status"] for each in loops.values()} == {"complete"}, printed
        assert {(each["iteration"], each["failures"]) for each in loops.values()} == {(1, 0)}, printed
        for spec in specs:
            assert (folder / f"tests/{spec}.sh").read_text() == "true\n"
        said = repo.standin.asked(lambda asked: "You review `" in asked.prompt)
        assert len(said) == reviews
        assert repo.left_behind() == []
