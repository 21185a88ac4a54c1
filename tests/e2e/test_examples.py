"""Every example runs as it stands, and what it leaves behind is what it promises."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/demo.sh"))
LOOPR = Path(sys.executable).with_name("loopr")

SHOWN = {
    "by-hand": [
        "oauth: 6 new (2 written out in the plan)",
        "oauth: 1 new",
        "needs tokens (1 of 2 done)",
        "1  oauth/tokens/refresh/code  default",
        "makespan 50m",
    ],
    "claude-code": [
        "the settings are sound",
        "1  convert/lengths",
        "You write the specification `convert/lengths`",
        "This is review 5 of 5",
    ],
    "codex": ["the settings are sound", "needs wrap", "You write the specification `words/wrap`"],
    "docs-pipeline": [
        "site/index.html",
        "Chapter 3",
        "(exit code 1)",
        "1-setting-out.html#what-to-forget leads to no heading",
    ],
    "ladder": ["typed: 10 new (2 written out in the plan)", "held by type:", "held by needs:", "makespan "],
    "mixed-lanes": [
        "the settings are sound",
        "You write the specification `dates/weekday`",
        "This is review 1 of 2",
        "demo.sh --live lets the agents do it",
    ],
    "monorepo": ["budget of the workspace is reached", "share", "web  plan  done", "8 files changed"],
    "quickstart": ["6 of 6 done", "book/numbers.german:3:?", "| three | trois | drei |", "?? specs/"],
    "pull-request": [
        "refs/heads/loopr/words",
        "loopr/words into main: feat(words): count them",
        "Signed-off-by: ",
        "main is protected: open a pull request",
        "main has all of words already",
    ],
    "two-repositories": ["4 files changed", "project api, in api", "pages is home", "in all"],
    "ralph": ["line 3 of answers is wrong", "line 5 of answers is wrong", "Loopr-Iteration: 3", "5 Buzz"],
}
SET = {"monorepo": [" M loopr.yml"]}
DRIVEN = ["docs-pipeline", "monorepo", "quickstart", "ralph"]


def play(name: str, cwd: Path, *arguments: str, **environ: str) -> str:
    """Run the script of an example with a temporary folder of its own, and return what it prints."""
    scratch = cwd / "a scratch folder"
    scratch.mkdir()
    script = ["sh", str(EXAMPLES / name / "demo.sh"), *arguments]
    env = {**os.environ, "TMPDIR": str(scratch), **environ}
    ran = subprocess.run(script, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert list(scratch.iterdir()) == [], "it leaves something behind"
    return ran.stdout


def test_every_example_is_tried() -> None:
    """A folder of examples/ has a script that runs it and a place in the list, and this file knows what it shows."""
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == NAMES == sorted(SHOWN)
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in NAMES if f"]({name}/README.md)" not in listed] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    """An example runs with the loopr on the path, in a folder with spaces, and leaves nothing behind."""
    printed = play(name, tmp_path, PATH=os.pathsep.join([str(LOOPR.parent), os.environ["PATH"]]))
    missing = [line for line in SHOWN[name] if line not in printed]
    assert not missing, f"{missing} in\n{printed}"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_tells_when_it_fails(name: str, tmp_path: Path) -> None:
    """An example ends with an error where loopr does."""
    script = ["sh", str(EXAMPLES / name / "demo.sh"), str(tmp_path / "x")]
    ran = subprocess.run(script, env={**os.environ, "LOOPR": "false"}, capture_output=True, text=True, check=False)
    assert ran.returncode != 0


# --- what is left behind ------------------------------------------------------------------------------------------


class Kept:
    """An example that was given a folder to work in."""

    def __init__(self, name: str, tmp_path: Path) -> None:
        """Run it there, with the loopr that is named."""
        self.printed = play(name, tmp_path, "to keep", LOOPR=str(LOOPR))
        self.folder = tmp_path / "to keep"

    def git(self, *words: str) -> list[str]:
        """Return the lines that git prints."""
        argv = ["git", *words]
        return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=True).stdout.splitlines()

    def loopr(self, *words: str) -> str:
        """Return what loopr prints."""
        argv = [str(LOOPR), *words]
        return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def statuses(self) -> dict[str, str]:
        """Return the status of each loop."""
        return {loop["id"]: loop["status"] for loop in json.loads(self.loopr("ls", "--json"))["loops"]}

    @property
    def base(self) -> str:
        """Return the commit that the example begins with."""
        return self.git("rev-list", "--max-parents=0", "main")[0]

    def landed(self, plan: str) -> dict[str, list[str]]:
        """Return the loops whose work is on the branch of a plan, oldest first, with the paths that each changed."""
        found: dict[str, list[str]] = {}
        for commit in self.git("rev-list", "--reverse", f"{self.base}..loopr/{plan}"):
            (loop,) = filter(None, self.git("log", "-1", "--format=%(trailers:key=Loopr-Loop,valueonly)", commit))
            found[loop] = self.git("diff-tree", "--no-commit-id", "--name-only", "-r", commit)
        return found

    def iterations(self, plan: str) -> dict[str, int]:
        """Return in which iteration each loop that is on the branch of a plan got its yes."""
        words = [f"%(trailers:key={key},valueonly,separator=)" for key in ("Loopr-Loop", "Loopr-Iteration")]
        lines = self.git("log", f"--format={' '.join(words)}", f"{self.base}..loopr/{plan}")
        return {loop: int(number) for loop, number in map(str.split, lines)}

    def file(self, plan: str, path: str) -> list[str]:
        """Return the lines of a file on the branch of a plan."""
        return self.git("show", f"loopr/{plan}:{path}")


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Kept]:
    """Give what plays an example once, for all tests that look at what it leaves."""
    return cache(lambda name: Kept(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_can_be_kept(name: str, keep: Callable[[str], Kept]) -> None:
    """An example that is given a folder works there, with the loopr that is named, and leaves it to be looked at."""
    assert " done" in keep(name).loopr("ls")


@pytest.mark.parametrize("name", DRIVEN)
def test_a_driven_example_leaves_the_checkout_alone(name: str, keep: Callable[[str], Kept]) -> None:
    """The user's files are as they were, but for specs/ and what the user has set, and no engine is left."""
    kept = keep(name)
    assert kept.git("symbolic-ref", "--short", "HEAD") == ["main"]
    assert kept.git("status", "--porcelain") == [*SET.get(name, []), "?? specs/"]
    assert json.loads(kept.loopr("status", "--json"))["engine"]["running"] is False
    assert json.loads(kept.loopr("doctor", "--json"))["ok"] is True


@pytest.mark.parametrize("name", [name for name in DRIVEN if name != "quickstart"])
def test_nothing_reaches_the_users_branch_by_itself(name: str, keep: Callable[[str], Kept]) -> None:
    """What landed is on the branches of the plans and nowhere else."""
    assert keep(name).git("log", "--format=%h %s", "--grep=Loopr-Loop", "main") == []


def test_the_quickstart_is_brought_home(keep: Callable[[str], Kept]) -> None:
    """Landing the plan, and nothing before it, brings its work to the user's branch and checkout."""
    kept = keep("quickstart")
    before, _, after = kept.printed.partition("$ loopr land --yes phrases")
    assert f"$ git log --format=%h %s main\n{kept.base[:7]} A plan, and who does the work\n\n" in before
    assert after.rstrip().endswith("numbers.md")
    assert kept.git("rev-parse", "main") == kept.git("rev-parse", "loopr/phrases")
    assert (kept.folder / "book" / "numbers.md").read_text().splitlines() == kept.file("phrases", "book/numbers.md")


def test_the_quickstart_lands_a_tree_that_its_commands_declared(keep: Callable[[str], Kept]) -> None:
    """All thirteen loops, of which a person declared three, are complete, and each code loop has landed in a commit."""
    kept = keep("quickstart")
    statuses = kept.statuses()
    assert set(statuses.values()) == {"complete"}
    depths = [each.count("/") for each in statuses]
    assert [depths.count(depth) for depth in range(4)] == [1, 2, 4, 6]
    landed = {loop: paths for loop, paths in kept.landed("phrases").items() if paths}
    assert landed == {
        f"phrases/{topic}/{task}": [f"book/{file}"]
        for topic in ("greetings", "numbers")
        for task, file in (
            ("translate/french", f"{topic}.french"),
            ("translate/german", f"{topic}.german"),
            ("bind/page", f"{topic}.md"),
        )
    }
    for topic in ("greetings", "numbers"):
        order = [loop for loop in landed if loop.startswith(f"phrases/{topic}/")]
        assert order[-1] == f"phrases/{topic}/bind/page", "its needs come first"
    assert kept.file("phrases", "book/numbers.md")[-1] == "| three | trois | drei |"


def test_the_quickstart_has_one_loop_that_is_refused_once(keep: Callable[[str], Kept]) -> None:
    """What the check refused lands with the second iteration; all else lands with the first."""
    found = keep("quickstart").iterations("phrases")
    assert {loop: number for loop, number in found.items() if number > 1} == {"phrases/numbers/translate/german": 2}


def test_ralph_learns_from_each_refusal(keep: Callable[[str], Kept]) -> None:
    """A loop that is refused twice lands once, with what it learned from both refusals."""
    kept = keep("ralph")
    assert kept.statuses() == {"fizz": "complete", "fizz/play": "complete"}
    assert kept.landed("fizz") == {"fizz/play": ["answers", "lessons"]}
    assert kept.iterations("fizz") == {"fizz/play": 3}
    assert kept.file("fizz", "lessons") == ["3 Fizz", "5 Buzz"]
    assert kept.file("fizz", "answers")[-1] == "FizzBuzz"


def test_the_book_is_bound_in_order(keep: Callable[[str], Kept]) -> None:
    """Chapters come before what needs them, and serial loops add to one file in the order of the plan."""
    kept = keep("docs-pipeline")
    order = list(kept.landed("walking"))
    assert {each.split("/")[1] for each in order[:3]} == {"chapters"}
    bound = [each for each in order if each.startswith("walking/print/")]
    assert [each.rpartition("/")[2] for each in bound] == ["1-setting-out", "2-on-the-way", "3-coming-home"]
    text = kept.file("walking", "site/book.txt")
    titles = [text[place + 2] for place, line in enumerate(text) if line.startswith("Chapter ")]
    assert titles == ["Setting out", "On the way", "Coming home"]
    assert set(kept.iterations("walking").values()) == {1}


def test_a_page_with_a_broken_link_does_not_land(keep: Callable[[str], Kept]) -> None:
    """What its check refuses has failed and is not on the branch; what another plan did stays complete."""
    kept = keep("docs-pipeline")
    failed = [loop for loop, status in kept.statuses().items() if status == "failed"]
    assert failed == ["errata/chapters/4-lost-property"]
    assert kept.git("rev-parse", "loopr/errata") == kept.git("rev-parse", "main")


def test_projects_get_their_shares(keep: Callable[[str], Kept]) -> None:
    """While both have work, the heavier project is let run three times as often, and nobody above its ceiling."""
    kept = keep("monorepo")
    statuses = kept.statuses()
    assert set(statuses.values()) == {"complete"}
    granted, most = granted_and_most(kept)
    assert (granted.count("api"), granted.count("web")) == (12, 8)
    assert granted[:12].count("api") in (8, 9, 10), granted
    assert most["api"] <= 4, most
    assert most["web"] <= 2, most
    projects = json.loads(kept.loopr("status", "--json"))["projects"]
    assert {name: projects[name]["usage"] for name in most} == {"api": 12_000, "web": 8_000}


def test_a_pull_request_is_opened_once_with_or_without_a_client(keep: Callable[[str], Kept]) -> None:
    """The hook leaves what is home as it is, opens a request once, and without a client says that one is due."""
    kept = keep("pull-request")
    host = kept.folder / ".git" / "host.git"
    programs = kept.folder / ".git" / "few"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    for name in ("git", "grep", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)

    def hook(*, client: bool) -> str:
        path = [str(host.with_name("bin"))] * client + [str(programs)]
        argv = ["sh", "tools/pull-request.sh"]
        ran = subprocess.run(
            argv,
            cwd=kept.folder,
            env={**os.environ, "PATH": os.pathsep.join(path)},
            input='{"data": {"plans": {"words": "done", "other": "waiting", "empty": "done"}}}',
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    assert hook(client=False) == "", "it is home"
    kept.git("-C", str(host), "update-ref", "refs/heads/main", kept.base)
    assert hook(client=False) == "pushed loopr/words: open a pull request for it\n"
    assert hook(client=True) == "", "there is a request"
    (host / "requests").unlink()
    assert hook(client=True) == ""
    assert (host / "requests").read_text() == "loopr/words into main: feat(words): count them\n"


def granted_and_most(kept: Kept) -> tuple[list[str], dict[str, int]]:
    """Return the project of each lease in its order, and how many of each project were occupied at most."""
    granted, most, occupied = [], Counter[str](), Counter[str]()
    for line in kept.loopr("events", "--json").splitlines():
        event = json.loads(line)
        project = (event["loop"] or "").partition("/")[0]
        if event["event"] == "lease_granted":
            granted.append(project)
            occupied[project] += 1
            most[project] = max(most[project], occupied[project])
        elif event["event"] == "landed":
            occupied[project] -= 1
    return granted, most


def test_projects_land_apart(keep: Callable[[str], Kept]) -> None:
    """Each loop of a project is on the branch of its own plan, and changed what belongs to it."""
    kept = keep("monorepo")
    for plan in ("api", "web"):
        loops = [each for each in kept.statuses() if each.startswith(f"{plan}/")]
        assert kept.landed(plan) == {each: [f"{each}.txt"] for each in loops}
