"""`doctor --try`: setup and checks run once on the base, and a fault in its files is noticed or not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopr.world.faults import is_source, plant
from loopr.world.lock import EngineLock
from tests.ui.calls import Answer, git, loopr, repository, this_tree

IMPORTS = "python3 -c \"import sys; sys.path.insert(0, 'src'); import calc\""
FILES = {"src/calc.py": "x = 1\n", "tests/test_calc.py": "import calc\n", "setup.py": "", ".gitignore": "ready\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Give a repository with a package, a test and a tool."""
    found = repository(tmp_path / "repo")
    for name, text in FILES.items():
        (found / name).parent.mkdir(exist_ok=True)
        (found / name).write_text(text)
    git(found, "add", "-A")
    git(found, "commit", "-qm", "files")
    return found


def settings(repo: Path, check: str, setup: str = "touch ready", more: str = "") -> None:
    """Write settings in which the last type has a check."""
    kind = f"{{check: {json.dumps(check)}{more}}}"
    text = f"version: 1\ntypes: {{code: {kind}}}\nworktrees: {{setup: {json.dumps(setup)}}}\n"
    (repo / "loopr.yml").write_text(text)
    loopr("init", "-C", repo)


def tried(repo: Path) -> tuple[Answer, dict[str, dict[str, Any]]]:
    """Try it, see that nothing is left of that, and return the answer with its last rows."""
    answer = loopr("doctor", "--try", "--json", "-C", repo)
    assert left_of(repo) == "", answer
    assert git(repo, "status", "--porcelain", "--", *FILES) == ""
    rows = {each["check"]: each for each in answer.document["checks"]}
    return answer, {name: rows[name] for name in ("setup", "check", "fault", "try") if name in rows}


def left_of(repo: Path) -> str:
    """Return what is left of a trial: a folder, a branch, a ref."""
    refs = git(repo, "for-each-ref", "--format=%(refname)")
    folders = [each.name for each in (repo / "worktrees").iterdir()]
    return " ".join(each for each in [*refs.split(), *folders] if "doctor" in each)


def test_a_check_that_looks_notices_a_fault(repo: Path) -> None:
    """It says yes on the base, and no once the files of the package are broken; the trial leaves nothing."""
    settings(repo, f"test -e ready && {IMPORTS}")
    answer, rows = tried(repo)
    assert answer.code == 0, answer
    assert rows["setup"]["text"] == "`touch ready` works, in 0 s"
    assert " says yes on main at " in rows["check"]["text"]
    assert rows["check"]["text"].endswith("it judges code")
    assert "notices a fault in 1 Python file: it ended with 1: SyntaxError: unmatched ')'" in rows["fault"]["text"]
    assert [rows[each]["ok"] for each in rows] == [True, True, True]


@pytest.mark.parametrize(
    ("setup", "cause"),
    [
        ("touch ready", "it imports an installed package or your checkout"),
        (": pip install --quiet . pytest", "worktrees.setup installs a copy of the package: write `pip install -e .`"),
        (": pip install -e . pytest", "it imports an installed package or your checkout"),
    ],
)
def test_a_check_that_looks_elsewhere_is_named(repo: Path, setup: str, cause: str) -> None:
    """One that still says yes with broken files judges something else, and the likeliest cause is told."""
    elsewhere = IMPORTS.replace("'src'", f"'{repo}/src'")
    settings(repo, elsewhere, setup)
    answer, rows = tried(repo)
    assert answer.code == 78
    assert "says yes with a fault in 1 Python file: it does not look at this tree" in rows["fault"]["text"]
    assert rows["fault"]["hint"].startswith(cause)


def test_a_base_that_does_not_pass_is_told(repo: Path) -> None:
    """Where the check says no on the untouched base nothing is planted, and its last words are told."""
    settings(repo, "echo 'E   no such module'; exit 3")
    answer, rows = tried(repo)
    assert (answer.code, "fault" in rows) == (78, False)
    assert "which is untouched: it ended with 3: E no such module" in rows["check"]["text"]
    assert (repo / ".git/loopr/try/check-1.log").read_text() == "E   no such module\n"


def test_a_setup_that_fails_is_told(repo: Path) -> None:
    """Nothing else is tried."""
    settings(repo, "true", "echo 'no network' >&2; exit 9")
    answer, rows = tried(repo)
    assert (answer.code, [*rows]) == (78, ["setup"])
    assert "ended with 9: no network" in rows["setup"]["text"]


def test_a_clean_judge_is_tried_without_the_setup(repo: Path) -> None:
    """It gets a worktree with committed files alone, as it does at work."""
    settings(repo, f"test ! -e ready && {IMPORTS}", more=", clean: true")
    answer, rows = tried(repo)
    assert (answer.code, [*rows]) == (0, ["check", "fault"])


def test_without_a_check_the_setup_is_tried(repo: Path) -> None:
    """That nothing judges is remarked on, and a setup that works is told."""
    settings(repo, "none")
    answer, rows = tried(repo)
    assert answer.code == 0
    assert rows["check"]["text"] == "no type has a check in a worktree: nothing to try"
    assert rows["setup"]["ok"] is True


def test_what_keeps_worktrees_from_being_made_is_told(repo: Path) -> None:
    """A list of copies that leads back is refused there too."""
    settings(repo, "true")
    (repo / ".worktreeinclude").write_text("ready\n")
    (repo / "ready").symlink_to(repo / "src")
    answer, rows = tried(repo)
    assert answer.code == 78
    assert ".worktreeinclude:1 copies ready, a link back into the checkout" in rows["try"]["text"]


def test_one_at_a_time(repo: Path) -> None:
    """A second one has no worktree to work in, and says so."""
    settings(repo, "true")
    with EngineLock.acquire(repo / ".git/loopr/try.lock", "turn"):
        answer, rows = tried(repo)
    assert (answer.code, rows["try"]["text"]) == (78, "another `loopr doctor --try` is at work")


def test_a_loop_may_not_have_it_tried(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs commands of the settings, so it is a person's word."""
    settings(repo, "touch seen")
    monkeypatch.setenv("LOOPR_LEASE", "p/a#1")
    monkeypatch.setenv("LOOPR_WORKSPACE", str(repo))
    answer = loopr("doctor", "--try", "-C", repo)
    assert answer.code == 2
    assert "a loop may not doctor --try" in answer.err


def begun(repo: Path) -> subprocess.Popen[bytes]:
    """Begin a trial whose setup takes for ever, and wait until that runs."""
    settings(repo, "true", "echo $$ > pid; sleep 600")
    trial = subprocess.Popen(
        [sys.executable, "-m", "loopr", "doctor", "--try"],
        cwd=repo,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=this_tree(),
    )
    assert trial.stderr is not None
    assert trial.stderr.readline().startswith(b"running for 1 s: echo $$")
    return trial


def lives(pid: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_interrupted_is_put_away(repo: Path, number: signal.Signals) -> None:
    """What ran has ended with it, and the worktree is given back."""
    trial = begun(repo)
    pid = int((repo / "worktrees/doctor.try/pid").read_text())
    trial.send_signal(number)
    trial.communicate()
    assert trial.returncode == 128 + number
    assert not lives(pid)
    assert left_of(repo) == ""


def test_what_was_killed_is_put_away_by_the_next(repo: Path) -> None:
    """What it has left running is ended, and its worktree is taken anew."""
    trial = begun(repo)
    pid = int((repo / "worktrees/doctor.try/pid").read_text())
    trial.kill()
    trial.communicate()
    assert lives(pid)
    settings(repo, IMPORTS)
    answer, _ = tried(repo)
    assert answer.code == 0, answer
    assert not lives(pid)


# --- the fault ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("src/click/utils.py", True),
        ("lib/router/index.js", True),
        ("contest.py", True),
        ("src/testament.rs", True),
        ("tests/test_utils.py", False),
        ("test.js", False),
        ("src/utils_test.go", False),
        ("src/a.spec.ts", False),
        ("docs/conf.py", False),
        ("examples/a.py", False),
        ("setup.py", False),
        ("pkg/conftest.py", False),
        ("karma.conf.js", False),
        (".mocharc.js", False),
        ("scripts/build.js", False),
    ],
)
def test_sources_are_told_from_tests_and_tools(path: str, *, source: bool) -> None:
    """A fault in a test, a document or a tool would be noticed without a look at the package."""
    assert is_source(path) is source


def test_a_fault_is_planted_in_plain_files(tmp_path: Path) -> None:
    """A link is left alone: it leads to another file, which may lie elsewhere."""
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.php").write_text("<?php echo 1;\n")
    (tmp_path / "c.py").symlink_to("/dev/null")
    assert plant(tmp_path, ["a.py", "b.php", "c.py", "gone.py"]) == 2
    with pytest.raises(SyntaxError):
        compile((tmp_path / "a.py").read_text(), "a.py", "exec")
    assert (tmp_path / "b.php").read_text().startswith("<?php )( ?>\n")
