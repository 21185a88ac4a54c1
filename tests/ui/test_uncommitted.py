"""Files that commands name: what loops would not find, or could not run, is told with the cure."""

from __future__ import annotations

import subprocess

import pytest

from tests.ui.calls import git, loopr
from tests.ui.scenes import Desk

MADE = 'worktrees: {setup: "python -m venv .venv && .venv/bin/pip install pytest"}'


def said_of(desk: Desk, run: str, check: str = "true", settings: str = "") -> str:
    """Return what a dry run says of a plan with one entry."""
    desk.write("loopr.yml", f"version: 1\n{settings}")
    entry = f"{{id: a, run: {run}, check: {check}}}"
    path = desk.write("plan.md", f"---\nid: p\nspecs:\n  - {entry}\n---\n# P\n")
    answer = desk("start", "--dry-run", path)
    assert answer.code == 0, answer
    return answer.err


def commit(desk: Desk, *names: str) -> None:
    """Commit some files."""
    git(desk.folder, "add", *names)
    git(desk.folder, "commit", "-qm", "files")


def environment(desk: Desk, folder: str = ".venv") -> None:
    """Make a virtual environment that git ignores, as far as anybody looks at it."""
    desk.write(".gitignore", f"{folder}\n")
    desk.write(f"{folder}/pyvenv.cfg", "home = /usr/bin\n")
    for name in ("pip", "pytest", "activate"):
        desk.write(f"{folder}/bin/{name}", "#!/bin/sh\n").chmod(0o755)


# --- virtual environments -------------------------------------------------------------------------


def test_a_virtual_environment_is_never_copied(desk: Desk) -> None:
    """Each worktree makes what lies in one: the setting is named, and no list of copies."""
    environment(desk)
    commit(desk, ".gitignore")
    said = said_of(desk, ".venv/bin/pip list", ".venv/bin/pytest -q")
    told = "in a virtual environment: .venv/bin/pip, .venv/bin/pytest; add to loopr.yml, so"
    assert told in said
    assert f"`{MADE}`" in said
    assert ".worktreeinclude" not in said
    (desk.folder / ".gitignore").unlink()
    assert told in (said := said_of(desk, ".venv/bin/pip list", ".venv/bin/pytest -q"))
    assert "commit first" not in said.replace(".gitignore", "")


def test_the_setting_fits_the_checkout(desk: Desk) -> None:
    """It names the folder as it is called, and a list of requirements where there is no project."""
    environment(desk, "env")
    desk.write("requirements.txt", "pytest\n")
    said = said_of(desk, "env/bin/pytest")
    assert "python -m venv env && env/bin/pip install -r requirements.txt" in said
    desk.write("pyproject.toml", "[project]\n")
    assert "env/bin/pip install -e . -r requirements.txt" in said_of(desk, "env/bin/pytest")


MAKEFILE = "VENV = .venv\ntest:\n\t$(VENV)/bin/python -m pytest\n"


@pytest.mark.parametrize("way", ["check", "run", "land"])
def test_an_environment_behind_make(desk: Desk, way: str) -> None:
    """It is told with the line that names it, as one that the command itself names is."""
    environment(desk)
    desk.write(".venv/bin/python", "#!/bin/sh\n")
    desk.write("requirements.txt", "flask\n")
    desk.write("requirements-dev.txt", "pytest\n")
    desk.write("Makefile", MAKEFILE)
    commit(desk, ".gitignore", "Makefile")
    run, check = ("make", "true") if way == "run" else ("true", "make test")
    named = (run, "true", "land: {check: make test}\n") if way == "land" else (run, check)
    said = said_of(desk, *named)
    words = "in a virtual environment: .venv/bin/python (Makefile:3); add to loopr.yml, so"
    assert words in said
    assert "venv/bin/pip install -r requirements.txt -r requirements-dev.txt" in said
    desk.write("Makefile", MAKEFILE.replace("$(VENV)/bin/", ""))
    assert words in said_of(desk, *named), "what is committed counts"
    commit(desk, "Makefile")
    assert "in a virtual environment" not in said_of(desk, *named)


def test_an_environment_that_make_makes_is_not_remarked_on(desk: Desk) -> None:
    """Neither where the recipe makes it, nor where the setup does, itself or by make."""
    environment(desk)
    desk.write(".venv/bin/python", "#!/bin/sh\n")
    made = "ready:\n\tpython -m venv .venv\n"
    desk.write("Makefile", f"{MAKEFILE}{made}all: ready test\n")
    commit(desk, ".gitignore", "Makefile")
    setup = "worktrees: {{setup: {}}}\n"
    told = "in a virtual environment: .venv/bin/python (Makefile:3); loops find none of them unless"
    assert told in said_of(desk, "true", "make test", setup.format("echo ready"))
    assert "virtual" not in said_of(desk, "true", "make all")
    assert "virtual" not in said_of(desk, "true", "make test", setup.format("make ready"))
    assert "virtual" not in said_of(desk, "true", "make test", setup.format("cp -r /opt/own .venv"))


def test_an_environment_that_the_check_at_the_end_names(desk: Desk) -> None:
    """What judges on the way home begins without it too."""
    environment(desk)
    commit(desk, ".gitignore")
    said = said_of(desk, "true", settings="land: {check: .venv/bin/pytest}\n")
    assert "in a virtual environment: .venv/bin/pytest; add to loopr.yml, so that" in said


def test_an_extra_that_is_not_declared(desk: Desk) -> None:
    """The setup would install nothing for it: that is told with those that are."""
    setup = "worktrees: {setup: \"pip install -e '.[test]'\"}\n"
    named = "worktrees.setup names the extra test, which pyproject.toml does not declare"
    for more, others in (("", "no extra is declared"), ("docs = []", "declared: docs")):
        text = f"[project]\nname = 'x'\n[project.optional-dependencies]\n{more}\n"
        desk.write("pyproject.toml", text)
        commit(desk, "pyproject.toml")
        words = f"{named} and pip installs nothing for; {others}"
        assert words in said_of(desk, "true", settings=setup)
        assert words in loopr("config", "check", "-C", desk.folder).err
    desk.write("pyproject.toml", text.replace("docs", "test"))
    commit(desk, "pyproject.toml")
    assert "extra" not in said_of(desk, "true", settings=setup)
    assert "extra" not in loopr("config", "check", "-C", desk.folder).err
    gone = "worktrees: {setup: \"cd a && pip install '.[b]'\"}\n"
    assert "extra" not in said_of(desk, "true", settings=gone)


def test_what_the_setup_makes_is_not_remarked_on(desk: Desk) -> None:
    """Neither its own words nor those of commands are told that lie in a folder that it names."""
    named = ".venv/bin/pip list", ".venv/bin/pytest -q", f"{MADE}\n"
    assert ".venv" not in said_of(desk, *named)
    environment(desk)
    commit(desk, ".gitignore")
    assert ".venv" not in said_of(desk, *named)


def test_a_folder_of_the_commit_is_not_made_by_the_setup(desk: Desk) -> None:
    """What is not committed in it is told, though the setup names the folder."""
    desk.write("tools/kept.sh", "true\n")
    commit(desk, "tools")
    desk.write("tools/work.sh", "true\n")
    said = said_of(desk, "sh tools/work.sh", settings="worktrees: {setup: cp -r tools build}\n")
    assert "not committed as here: tools/work.sh" in said


def test_a_setup_that_does_not_name_the_folder(desk: Desk) -> None:
    """It may make them all the same, and that is said."""
    environment(desk)
    desk.write(".gitignore", ".venv\n.env\n")
    desk.write(".env", "A=1\n")
    commit(desk, ".gitignore")
    said = said_of(desk, "sh gone.sh", ".venv/bin/pytest .env", "worktrees: {setup: make ready}\n")
    assert ".venv/bin/pytest; loops find none of them unless worktrees.setup makes them" in said
    assert "ignored by git: .env; unless worktrees.setup makes them, loops get the checkout's own if" in said
    fails = "what runs it fails, unless worktrees.setup or a loop makes it before"
    assert f"neither committed nor here: gone.sh, Makefile; {fails}" in said


@pytest.mark.parametrize("words", [".venv", ".venv/bin/*", "# ours\n\n.v*"])
def test_a_virtual_environment_in_the_list_of_copies(desk: Desk, words: str) -> None:
    """A start is refused with the line that names it, and with the setting that makes one."""
    environment(desk)
    desk.write(".worktreeinclude", f"{words}\n")
    commit(desk, ".gitignore", ".worktreeinclude")
    entry = "{id: a, run: 'true', check: .venv/bin/pytest}"
    path = desk.write("plan.md", f"---\nid: p\nspecs: [{entry}]\n---\n")
    told = f".worktreeinclude:{words.count(chr(10)) + 1} copies .venv, a virtual environment"
    for verb in (("start", "--dry-run"), ("start", "--no-run"), ("start",)):
        answer = desk(*verb, path)
        assert (answer.code, told in answer.err) == (78, True), answer
        assert f"leave it out there; add to loopr.yml, so that each worktree makes one: `{MADE}`" in answer.err
    assert not (desk.folder / "specs/p").exists()
    desk.write("loopr.yml", f"version: 1\n{MADE}\n")
    assert "leave it out there; worktrees.setup makes it in each worktree" in desk("start", path).err
    desk.write(".worktreeinclude", ".env\n")
    assert desk("start", "--dry-run", path).code == 0


def test_a_copied_file_that_names_the_checkout(desk: Desk) -> None:
    """It is told: a loop that goes by it would work in the checkout."""
    desk.write(".gitignore", ".env\n.other\n")
    desk.write(".worktreeinclude", ".env\n.other\n")
    desk.write(".env", f"DATA={desk.folder}/data\n")
    desk.write(".other", f"DATA={desk.folder}-not/data\n")
    commit(desk, ".gitignore", ".worktreeinclude")
    said = said_of(desk, "true")
    assert ".worktreeinclude copies .env, which names the whole path of your checkout" in said


def test_a_script_that_leads_back_is_not_proposed_for_a_copy(desk: Desk) -> None:
    """A program whose first line is one of the checkout's needs a setup; a plain one may be copied."""
    desk.write(".gitignore", "tools/bin/\n")
    for name, first in (("a", f"{desk.folder}/py/bin/python"), ("b", "/bin/sh")):
        desk.write(f"tools/bin/{name}", f"#!{first}\n").chmod(0o755)
    commit(desk, ".gitignore")
    said = said_of(desk, "true", "tools/bin/a && tools/bin/b")
    assert "leads back into the checkout: tools/bin/a; loops find it where worktrees.setup" in said
    assert "ignored by git: tools/bin/b; loops get the checkout's own if .worktreeinclude" in said


# --- scripts --------------------------------------------------------------------------------------


def test_a_script_without_its_executable_bit(desk: Desk) -> None:
    """One that is begun by its path is told with what sets the bit, one that sh reads is not."""
    for name in ("x.sh", "y.sh", "z.sh"):
        desk.write(f"scripts/{name}", "#!/bin/sh\n").chmod(0o644)
    commit(desk, "scripts")
    run = '"cd scripts && ./x.sh --all"'
    said = said_of(desk, run, '"sh scripts/y.sh && test -e scripts/z.sh"')
    cure = "chmod +x scripts/x.sh && git add --chmod=+x scripts/x.sh"
    assert f"committed without the executable bit: scripts/x.sh; `{cure}`, then commit\n" in said
    hooks = "hooks: {pre_run: chmod -R +x scripts}\n"
    assert "executable" not in said_of(desk, run, settings=hooks)
    subprocess.run(["sh", "-ec", cure], cwd=desk.folder, check=True)
    git(desk.folder, "commit", "-qm", "executable")
    assert git(desk.folder, "status", "--porcelain", "scripts") == ""
    assert "executable" not in said_of(desk, run)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("python3 scripts/missing.py --all", "scripts/missing.py"),
        ("[python3, scripts/missing.py]", "scripts/missing.py"),
        ("sh -eu x.sh", "x.sh"),
        ("bash x.sh", "x.sh"),
        ("node build.js", "build.js"),
        ("ruby a.rb", "a.rb"),
        ("perl -w a.pl", "a.pl"),
        ('"A=1 python3 -u a.py | tee log.txt"', "a.py"),
        ('"cd web && node build.js"', "web/build.js"),
        ('"./nowhere.sh && make"', "nowhere.sh"),
    ],
)
def test_a_file_for_an_interpreter_that_is_nowhere(desk: Desk, run: str, name: str) -> None:
    """It is told as a script that is begun is, until it is there."""
    told = f"neither committed nor here: {name}; what runs it fails, unless a loop makes it before"
    assert told in said_of(desk, run)
    desk.write(name, "\n")
    assert "neither committed" not in said_of(desk, run)
    commit(desk, name)
    (desk.folder / name).unlink()
    assert "neither committed" not in said_of(desk, run)


@pytest.mark.parametrize(
    "run",
    [
        "python3 -m tool.x",
        "python3 -c 'import x.y'",
        "sh -c ./x.sh",
        '"cat > x.py <<EOF\\nprint(1)\\nEOF\\npython3 x.py"',
        '"curl -o x.py http://example.org/x.py && python3 x.py"',
        '"echo hello > x.sh; sh x.sh"',
        '"test -x ./x.sh && ./x.sh"',
        '"./x.sh 2>/dev/null || true"',
        '"cd $HOME && ./x.sh"',
        '"cd /usr && python3 x.py"',
        '"sh tools/*.sh"',
        '"python3 $SCRIPT.py"',
        "python3 /usr/x.py",
        "node app",
    ],
)
def test_what_a_command_may_make_or_find_is_not_foretold(desk: Desk, run: str) -> None:
    """Where something else comes first, or only the shell knows the file, nothing is said of it."""
    assert "neither committed" not in said_of(desk, run)


def test_a_script_whose_interpreter_is_not_here(desk: Desk) -> None:
    """The program that its first line names is told, unless a wrapper may bring it."""
    desk.write("tools/odd.sh", "#!/usr/bin/nope -x\n").chmod(0o755)
    desk.write("tools/crlf.sh", "#!/bin/sh\r\ntrue\r\n").chmod(0o755)
    desk.write("tools/fine.sh", "#!/usr/bin/env nope\n").chmod(0o755)
    commit(desk, "tools")
    said = said_of(desk, "./tools/odd.sh", "./tools/crlf.sh")
    assert "the first line of tools/odd.sh names /usr/bin/nope, which is not here" in said
    assert "the first line of tools/crlf.sh names /bin/sh\\r, which is not here" in said
    assert "first line" not in said_of(desk, "./tools/fine.sh", "sh tools/odd.sh")
    wrapped = "types: {spec: {wrap: [env, '{command}']}}\n"
    assert "first line" not in said_of(desk, "./tools/odd.sh", settings=wrapped)


def test_a_program_that_git_ignores_is_made_by_each(desk: Desk) -> None:
    """A file that one loop builds and git ignores stays in its worktree, which is foretold."""
    desk.write(".gitignore", "build/\n")
    commit(desk, ".gitignore")
    said = said_of(desk, "./build/tests gone.sh")
    assert "git ignores build/tests: no loop gets it from another, each has to make it" in said
    assert "neither committed nor here: build/tests" not in said
