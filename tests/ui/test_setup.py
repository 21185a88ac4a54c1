"""The verbs that come first: init makes what is missing and keeps what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopr.world.founding import starter
from tests.ui.calls import PLAN, everything, git, loopr, program, repository, this_tree


def excluded(repo: Path) -> list[str]:
    """Return what the repository ignores beside .gitignore, without comments."""
    lines = (repo / ".git/info/exclude").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_init_makes_a_workspace(tmp_path: Path) -> None:
    """After init there are settings, both folders, two lines for git, and nothing new to commit but settings."""
    repo = repository(tmp_path / "my repo ü")
    done = loopr("-C", repo, "init")
    assert done.code == 0
    assert (repo / "loopr.yml").read_text() == starter()
    assert (repo / "specs").is_dir()
    assert excluded(repo) == ["/worktrees/", ".loopr/"]
    (repo / "worktrees/x").mkdir()
    (repo / "worktrees/x/file").touch()
    assert git(repo, "status", "--short") == "?? loopr.yml"
    assert "made  loopr.yml" in done.out
    assert "`loopr start --dry-run plan.md`" in done.err


def test_init_may_be_repeated(tmp_path: Path) -> None:
    """A second init changes no byte, and says that there was nothing to do."""
    repo = repository(tmp_path)
    loopr("-C", repo, "init")
    before = everything(repo)
    again = loopr("-C", repo, "init")
    assert (again.code, again.out) == (0, "everything is there already\n")
    assert everything(repo) == before


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    """Settings, artifacts and the user's own lines for git stay as they are, to the byte."""
    repo = repository(tmp_path)
    (repo / "loopr.yml").write_bytes(b"version: 1\r\n# mine\r\n")
    (repo / "specs/auth").mkdir(parents=True)
    (repo / "specs/auth/plan.md").write_text("# Mine")
    (repo / ".git/info/exclude").write_bytes(b"*.log\r\n\xff-latin\nlast line")
    done = loopr("-C", repo, "init", "--json").document
    assert (repo / "loopr.yml").read_bytes() == b"version: 1\r\n# mine\r\n"
    assert (repo / "specs/auth/plan.md").read_text() == "# Mine"
    exclude = (repo / ".git/info/exclude").read_bytes()
    assert exclude == b"*.log\r\n\xff-latin\nlast line\n/worktrees/\n.loopr/\n"
    assert done["kept"] == ["loopr.yml", "specs/"]
    assert done["made"] == ["worktrees/", ".git/info/exclude", ".git/loopr/"]


@pytest.mark.parametrize("line", ["worktrees/", "/worktrees", "worktrees"])
def test_a_line_of_the_users_own_is_enough(tmp_path: Path, line: str) -> None:
    """What the user has git ignore already is not added in another spelling, and a missing file is made."""
    repo = repository(tmp_path)
    shutil.rmtree(repo / ".git/info", ignore_errors=True)
    (repo / ".git/info").mkdir()
    (repo / ".git/info/exclude").write_text(f"{line}\n")
    loopr("-C", repo, "init")
    assert excluded(repo) == [line, ".loopr/"]


def test_git_needs_no_file_to_begin_with(tmp_path: Path) -> None:
    """A repository that was made without templates gets the file that names what to ignore."""
    repo = repository(tmp_path)
    shutil.rmtree(repo / ".git/info", ignore_errors=True)
    assert loopr("-C", repo, "init").code == 0
    assert excluded(repo) == ["/worktrees/", ".loopr/"]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """With -n init says what it would make, and makes nothing."""
    repo = repository(tmp_path)
    before = everything(repo)
    done = loopr("-C", repo, "init", "-n")
    assert done.code == 0
    assert "would make  loopr.yml\nwould make  specs/\nwould make  worktrees/\n" in done.out
    assert everything(repo) == before


def test_init_works_without_git(tmp_path: Path) -> None:
    """In a plain folder the state lies in .loopr/, and init says what is different there."""
    done = loopr("-C", tmp_path, "init")
    assert done.code == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == [".loopr", "loopr.yml", "specs", "worktrees"]
    assert "git init" in done.err
    (tmp_path / "plan.md").write_text(PLAN)
    assert loopr("-C", tmp_path, "start", "--no-run", "plan.md").code == 0
    assert (tmp_path / ".loopr/loopr.db").exists()


def test_the_folders_are_those_of_the_settings(tmp_path: Path) -> None:
    """Other folders that the settings name are the ones that are made and ignored, odd characters included."""
    repo = repository(tmp_path)
    (repo / "loopr.yml").write_text('artifacts: {dir: docs/tree}\nworktrees: {dir: "trees [x]*"}\n')
    assert loopr("-C", repo, "init").code == 0
    assert (repo / "docs/tree").is_dir()
    assert not (repo / "specs").exists()
    (repo / "trees [x]*/one").mkdir()
    (repo / "trees [x]*/one/file").touch()
    (repo / "trees x").mkdir()
    (repo / "trees x/file").touch()
    assert git(repo, "status", "--short") == '?? loopr.yml\n?? "trees x/"'


def test_the_top_of_the_repository_is_the_workspace(tmp_path: Path) -> None:
    """In a subfolder init makes the workspace at the top and says so."""
    repo = repository(tmp_path)
    (repo / "src").mkdir()
    done = loopr("-C", repo / "src", "init")
    assert (repo / "loopr.yml").exists()
    assert not any((repo / "src").iterdir())
    assert f"the workspace is {repo}" in done.err


def test_a_subfolder_with_a_tree_is_the_workspace(tmp_path: Path) -> None:
    """A subfolder that has a specs/ is the workspace, and only its own worktrees/ is ignored."""
    repo = repository(tmp_path)
    (repo / "tools/specs").mkdir(parents=True)
    assert loopr("-C", repo / "tools", "init").code == 0
    assert (repo / "tools/loopr.yml").exists()
    assert not (repo / "loopr.yml").exists()
    assert excluded(repo) == ["/tools/worktrees/", ".loopr/"]


def test_one_repository_has_one_workspace(tmp_path: Path) -> None:
    """A second workspace in the repository is refused by name; once the first has moved there, it is taken."""
    repo = repository(tmp_path)
    loopr("-C", repo, "init")
    (repo / "sub/specs").mkdir(parents=True)
    refused = loopr("-C", repo / "sub", "init")
    assert refused.code == 78
    assert f"this repository's workspace is {repo}, not {repo}/sub" in refused.err
    assert not (repo / "sub/loopr.yml").exists()
    shutil.rmtree(repo / "specs")
    (repo / "loopr.yml").rename(repo / "sub/loopr.yml")
    assert loopr("-C", repo / "sub", "init").code == 0
    assert loopr("-C", repo / "sub", "init").out == "everything is there already\n"


def test_a_linked_worktree_uses_the_workspace_of_its_repository(tmp_path: Path) -> None:
    """In another checkout of the repository init explains where the workspace is, and makes nothing there."""
    repo = repository(tmp_path / "repo")
    loopr("-C", repo, "init")
    git(repo, "worktree", "add", "--quiet", "../other")
    done = loopr("-C", tmp_path / "other", "init")
    assert done.code == 0
    assert f"the workspace is {repo}, not {tmp_path}/other" in done.err
    assert [each.name for each in (tmp_path / "other").iterdir()] == [".git"]


def test_a_linked_worktree_can_be_the_workspace(tmp_path: Path) -> None:
    """Where a bare repository has its checkouts beside it, one of them becomes the workspace of all."""
    repository(tmp_path / "first")
    git(tmp_path, "clone", "--quiet", "--bare", "first", "repo.git")
    git(tmp_path / "repo.git", "worktree", "add", "--quiet", "../main")
    done = loopr("-C", tmp_path / "main", "init")
    assert done.code == 0
    assert f"this is a linked worktree of {tmp_path}/repo.git" in done.err
    assert "/worktrees/\n.loopr/\n" in (tmp_path / "repo.git/info/exclude").read_text()


@pytest.mark.parametrize("where", ["repo.git", "repo/.git"])
def test_there_must_be_a_checkout(tmp_path: Path, where: str) -> None:
    """Among git's own files init refuses, with what to do, and makes nothing."""
    git(tmp_path, "init", "--quiet", "--bare", "repo.git")
    repository(tmp_path / "repo")
    before = everything(tmp_path)
    refused = loopr("-C", tmp_path / where, "init")
    assert refused.code == 78
    assert "without a checkout" in refused.err
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["specs", "worktrees", "loopr.yml"])
@pytest.mark.parametrize("what", ["wrong kind", "dead link"])
def test_what_stands_in_the_way_is_named(tmp_path: Path, name: str, what: str) -> None:
    """A file in the place of a folder, or the other way round, is refused before anything is made."""
    repo = repository(tmp_path)
    if what == "dead link":
        (repo / name).symlink_to("nowhere")
    elif name == "loopr.yml":
        (repo / name).mkdir()
    else:
        (repo / name).touch()
    before = everything(repo)
    refused = loopr("-C", repo, "init")
    assert refused.code == 78
    assert name in refused.err
    assert everything(repo) == before


def test_wrong_settings_are_told_first(tmp_path: Path) -> None:
    """With settings that cannot be read init names their problems and makes nothing: it cannot know the folders."""
    repo = repository(tmp_path)
    (repo / "loopr.yml").write_text("artifacts: {dir: /elsewhere}\n")
    refused = loopr("-C", repo, "init", "--json")
    assert refused.code == 78
    assert "loopr.yml:1:13 artifacts.dir" in refused.document["error"]["message"]
    assert not (repo / "worktrees").exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """In a folder that one may not write to, init says so in one line and leaves nothing half done."""
    repo = repository(tmp_path / "repo")
    for folder in (repo, tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o555 if folder == repo else 0o755)
    # permissions do not stop root, who becomes somebody whom they stop once all is imported
    command = (
        "import os, sys; from loopr.ui.cli import main; main(['-C', sys.argv[1], 'init', '-n']);"
        "os.geteuid() or os.setuid(65534); sys.exit(main(['-C', sys.argv[2], 'init']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", command, str(tmp_path), str(repo)],
        capture_output=True,
        text=True,
        check=False,
        env=this_tree() | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )
    repo.chmod(0o755)
    assert done.returncode == 78, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"loopr: {repo} cannot be written to")
    assert [each.name for each in repo.iterdir()] == [".git"]


def test_a_folder_that_is_not_there_is_a_mistake_of_usage(tmp_path: Path) -> None:
    """-C with no folder is exit 2, as a document if that was asked for."""
    refused = loopr("-C", tmp_path / "nowhere", "init", "--json")
    assert refused.code == 2
    assert refused.document["error"]["code"] == "usage"


def test_the_starter_is_sound(tmp_path: Path) -> None:
    """The first settings file has no problem, neither as it is nor with every line in use."""
    (tmp_path / "loopr.yml").write_text(starter())
    assert loopr("-C", tmp_path, "config", "check").code == 0
    in_use, settings = re.subn(r"^#(?=(  +)?[a-z_]+:)", "", starter(), flags=re.MULTILINE)
    assert settings == 15
    (tmp_path / "loopr.yml").write_text(in_use)
    done = loopr("-C", tmp_path, "config", "check")
    assert (done.code, done.out) == (0, "the settings are sound\n")


def test_a_file_that_init_made_can_be_set(tmp_path: Path) -> None:
    """A key that is set in the starter lands there with all its comments kept."""
    (tmp_path / "loopr.yml").write_text(starter())
    assert loopr("-C", tmp_path, "set", "concurrency.max_loops", "8").code == 0
    assert loopr("-C", tmp_path, "config", "show", "concurrency.max_loops").out == "8\n"
    kept = [line for line in (tmp_path / "loopr.yml").read_text().splitlines() if line.startswith("#")]
    assert kept == [line for line in starter().splitlines() if line.startswith("#")]


# --- the installed program ----------------------------------------------------------------------------------------


def test_the_program_sets_up_a_folder_with_any_name(tmp_path: Path) -> None:
    """As a process of its own init works in a folder whose name is no UTF-8, and prints one document."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9 \xc3\xbc"
    os.mkdir(folder)  # noqa: PTH102 - a name in bytes
    done = program(folder, "init", "--json")
    assert done.returncode == 0
    assert b'"made": ["loopr.yml"' in done.stdout
    assert program(folder, "init").stdout == b"everything is there already\n"


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """A pipe that is closed early, as `head` does, ends the program quietly and without a failure."""
    command = [sys.executable, "-m", "loopr", "config", "schema"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, env=this_tree()) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# --- what init finds ----------------------------------------------------------------------------------------------


def committed(folder: Path, files: dict[str, str]) -> Path:
    """Make a repository with some files."""
    repo = repository(folder)
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "files")
    return repo


def set_to(repo: Path, key: str) -> str:
    """Return the value that a key has by the settings file that init has made."""
    assert loopr("config", "check", "-C", repo).code == 0
    return loopr("-C", repo, "config", "show", key).out.strip().strip('"')


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of programs that is searched before all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def program_in(folder: Path, name: str) -> None:
    """Make a program that does nothing."""
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_init_writes_what_judges_and_says_who_could_work(tmp_path: Path, path: Path) -> None:
    """A committed suite judges from then on, with its reason; an agent is only proposed."""
    repo = committed(tmp_path / "repo", {"Makefile": "test:\n\ttrue\n", "CHANGES.md": ""})
    program_in(path, "claude")
    said = loopr("init", "-C", repo)
    assert "check  `make test`, as Makefile says\n" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert set_to(repo, "types.code.check") == "make test"
    text = (repo / "loopr.yml").read_text()
    assert "    check: make test  # Makefile\n" in text
    assert text.endswith("#  union: [CHANGES.md]\n")
    assert "claude is installed: `loopr set types.code.agent claude` lets it work, likewise for spec, phase" in said.err
    assert "`loopr doctor --try`" in said.err
    assert "specs/ holds the tree as files: commit it or have git ignore it" in said.err
    assert loopr("init", "-C", repo).out == "everything is there already\n"
    (repo / "loopr.yml").write_text(text.replace("\n#merge", "\nmerge").replace("\n#  union", "\n  union"))
    assert set_to(repo, "merge.union") == "[CHANGES.md]"


def test_a_dry_run_says_what_would_be_proposed(tmp_path: Path) -> None:
    """With -n, and with --json, the proposals are told and nothing is written."""
    repo = committed(tmp_path / "repo", {"Makefile": "check:\n\ttrue\n"})
    assert "`make check`, as Makefile says" in loopr("init", "-n", "-C", repo).out
    rows = loopr("init", "-n", "--json", "-C", repo).document["proposals"]
    assert rows == [{"key": "check", "value": "make check", "why": "Makefile", "used": True}]
    assert not (repo / "loopr.yml").exists()


def test_what_is_not_committed_is_no_judge_yet(tmp_path: Path) -> None:
    """A runner's file that no worktree has stands as a comment, with the reason."""
    repo = repository(tmp_path / "repo")
    (repo / "Makefile").write_text("test:\n\ttrue\n")
    said = loopr("init", "-C", repo).out
    assert "`make test` (Makefile: not committed yet)" in said.replace("\n       ", " ")
    assert "#    check: make test  # Makefile: not committed yet\n" in (repo / "loopr.yml").read_text()
    assert set_to(repo, "types.code.check") == "null"


def test_a_python_project_gets_an_environment_in_each_worktree(tmp_path: Path) -> None:
    """What a setup makes is ignored, and the first plan is judged by it, in the tree that would land."""
    files = {
        "requirements.txt": "",
        "pytest.ini": "[pytest]\n",
        "test_x.py": "import x\n",
        "x.py": "",
    }
    repo = committed(tmp_path / "repo", files)
    loopr("init", "-C", repo)
    assert set_to(repo, "types.code.check") == ".venv/bin/python -m pytest -q"
    setup = "python -m venv .venv && .venv/bin/pip install -r requirements.txt pytest"
    assert set_to(repo, "worktrees.setup") == setup
    assert excluded(repo) == ["/worktrees/", ".loopr/", ".venv/", "*.egg-info/", "__pycache__/"]


@pytest.mark.parametrize("kind", ["plain", "active", "none", "elsewhere"])
def test_the_environment_is_that_of_the_checkout(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """A virtual environment of the checkout is in no worktree: each makes one at the same place."""
    files = {"pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n", ".gitignore": "venv\n.venv\ntools\n"}
    repo = committed(tmp_path / "repo", files | {"tests/test_x.py": ""})
    name = {"plain": "venv", "active": ".venv", "none": ".venv", "elsewhere": "tools/own"}[kind]
    site = repo / name / "lib/python3.11/site-packages"
    if kind != "none":
        site.mkdir(parents=True)
        (repo / name / "pyvenv.cfg").write_text("home = /usr/bin\n")
    if kind == "active":
        (site / "x.pth").write_text(f"{repo}\n")
        monkeypatch.setenv("PATH", f"{repo / name / 'bin'}{os.pathsep}{os.environ['PATH']}")
    loopr("init", "-C", repo)
    at = ".venv" if kind == "elsewhere" else name
    assert set_to(repo, "worktrees.setup") == f"python -m venv {at} && {at}/bin/pip install -e . pytest"
    assert set_to(repo, "types.code.check") == f"{at}/bin/python -m pytest -q"


def test_an_agent_that_is_named_works(tmp_path: Path, path: Path) -> None:
    """An agent that was named works for each type; what judges the last one stands beside it."""
    repo = committed(tmp_path / "repo", {"Makefile": "test:\n\ttrue\n"})
    program_in(path, "claude")
    assert "code.agent" not in loopr("init", "-C", repo, "--agent", "claude").err
    assert set_to(repo, "types.code.check") == "make test"
    assert {set_to(repo, f"types.{each}.agent") for each in ("spec", "phase", "code")} == {"claude"}


def test_what_git_does_for_a_person_is_told(tmp_path: Path) -> None:
    """Hooks and signatures of commits, and files that git-lfs keeps, are named."""
    repo = committed(tmp_path / "repo", {".gitattributes": "*.bin filter=lfs\n"})
    program_in(repo / ".git/hooks", "pre-commit")
    git(repo, "config", "commit.gpgsign", "true")
    said = loopr("init", "-C", repo).out
    assert "hooks  pre-commit: git runs them for your commits, loopr does not\n" in said
    assert "signs  commit.gpgsign" in said
    assert ("lfs    files are kept by git-lfs" in said) == (shutil.which("git-lfs") is None)


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("pytest.ini", "[pytest]\naddopts = -q\n", "[pytest]\naddopts = -q --ignore=worktrees\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'),
    ],
)
def test_a_test_runner_is_kept_out_of_the_worktrees(tmp_path: Path, name: str, text: str, kept: str) -> None:
    """Where pytest would collect the worktrees too, the line is told that keeps it out, until it is there."""
    repo = repository(tmp_path / "repo")
    (repo / name).write_text(text)
    words = f"add `--ignore=worktrees` to `addopts` in {name}"
    assert words in loopr("-C", repo, "init").err
    assert words in loopr("-C", repo, "doctor").out
    (repo / name).write_text(kept)
    assert "--ignore" not in loopr("-C", repo, "init").err + loopr("-C", repo, "doctor").out
