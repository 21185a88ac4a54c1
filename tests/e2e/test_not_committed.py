"""A file that was not committed, or that nothing here can run: whatever it fails says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.world.dialect import lacking
from tests.e2e.repos import Repo, opened

IS_PLAIN = bool(lacking(frozenset({"source"})))
needs_plain_sh = pytest.mark.skipif(not IS_PLAIN, reason="sh is bash under another name here")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan of one loop, and scripts that are not committed."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.write(
            {"plan.md": "---\nid: demo\ncodes: [{id: a}]\n---\n# Demo\n", "tools/work.sh": "#!/bin/sh\necho x > x\n"}
        )
        (repo.root / "tools/work.sh").chmod(0o755)
        yield repo


def reason(repo: Repo, code: str) -> str:
    """Drive the plan with a type until it can get no further, whatever is asked, and return why."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{{code}}}\nretry: {{no_progress: 1, base_secs: 0.05}}\n")
    repo.loopr("start", "--yes", "plan.md", code=1)
    found: str = repo.loops()["demo/a"]["reason"]
    assert found in repo.loopr("why", "a").out.replace("\n            ", " ")
    return found


@pytest.mark.parametrize(
    "code",
    [
        "run: ./tools/work.sh, check: none",
        "run: [./tools/work.sh], check: none",
        "run: sh tools/work.sh, check: none",
        "run: 'true', check: ./tools/work.sh",
    ],
)
def test_what_is_not_committed_is_named(repo: Repo, code: str) -> None:
    """A loop that failed by it has that in its reason, and once it is committed it goes on."""
    assert "tools/work.sh was in your checkout, but not committed" in reason(repo, code)
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=tools")
    repo.loopr("retry", "a")
    repo.loopr("run")
    assert repo.statuses()["demo/a"] == "complete"


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("run: ./tools/work.sh, check: none", "loopr.yml:4:10 types.code.run"),
        ("run: 'true', check: 'cd tools && sh work.sh'", "loopr.yml:4:23 types.code.check"),
        ("run: 'true', check: ./tools/work.sh", "loopr.yml:4:23 types.code.check"),
    ],
)
def test_a_script_that_is_not_committed_is_asked_about(repo: Repo, code: str, key: str) -> None:
    """Nothing of the plan is begun or stored before it is committed; `--no-run` begins nothing, and may store it."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{{code}}}\n")
    cure = "`git add tools/work.sh`, then commit; --yes starts it as it is"
    words = f"{key}: not committed: tools/work.sh; loops work on what is committed ({cure})"
    assert f"it would ask: {words}" in repo.loopr("start", "--dry-run", "plan.md").err
    assert repo.loopr("start", "plan.md", code=2).err == f"loopr: {words}\n"
    assert repo.loops() == {}
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=tools")
    repo.loopr("start", "plan.md")
    assert repo.statuses()["demo/a"] == "complete"


def test_a_script_that_a_plan_lacks_is_no_uncommitted_one(repo: Repo) -> None:
    """Once work has landed, a script that is new on the base is told as that; with the plan at home it is there."""
    settings = "types:\n  plan: {child: code}\n  code: {check: none}\nretry: {no_progress: 1}\n"
    entry = "---\nid: demo\ncodes:\n  - {id: a, run: sh tools/work.sh}\n"
    repo.settings(settings)
    repo.write({"plan.md": f"{entry}---\n# Demo\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=one")
    repo.loopr("start", "plan.md")
    for name, told in (("b", True), ("c", False)):
        repo.write({f"tools/{name}.sh": f"echo {name} > {name}\n"})
        entry += f"  - {{id: {name}, run: sh tools/{name}.sh}}\n"
        repo.write({"plan.md": f"{entry}---\n# Demo\n"})
        repo.git("add", "--all")
        repo.git("commit", "--quiet", f"--message={name}")
        lacks = f"not on loopr/demo as here: tools/{name}.sh; `loopr update demo` brings what main has"
        dry = repo.loopr("start", "--dry-run", "plan.md").err
        assert (lacks in dry, "not committed" in dry) == (told, False)
        said = repo.loopr("start", "plan.md", code=int(told)).err
        assert (lacks in said, "not committed" in said) == (told, False)
        if told:
            why = f"tools/{name}.sh was committed, but not yet on loopr/demo: `loopr update demo`"
            assert why in repo.loops()[f"demo/{name}"]["reason"]
            repo.loopr("update", "demo")
            repo.loopr("retry", name)
            repo.loopr("run")
            repo.loopr("land", "--yes", "demo")
        assert repo.statuses()[f"demo/{name}"] == "complete"


def test_the_branch_that_lacks_a_script_is_named(repo: Repo) -> None:
    """Where plans begin at another branch than is checked out, that is where it has to be committed."""
    repo.settings("git: {base: main}\ntypes:\n  plan: {child: code}\n  code: {run: sh tools/work.sh, check: none}\n")
    repo.git("switch", "--quiet", "--create", "mine")
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=tools")
    said = repo.loopr("start", "plan.md", code=2).err
    assert "run: not committed on main: tools/work.sh; loops work on what is committed (commit that on main; " in said


SCENES = {
    "plain": ("run: sh tools/work.sh", "", True),
    "an environment is made": ("run: sh tools/work.sh", ", setup: python -m venv .v && .v/bin/pip install -e .", True),
    "another name ends so": ("run: sh tools/work.sh, check: ls homework.sh work.shy", "", True),
    "the setup makes it": ("run: sh tools/work.sh", ", setup: mkdir -p tools && echo true > tools/work.sh", False),
    "the setup may make it": ("run: sh tools/work.sh", ", setup: ./boot", False),
    "the work makes it": ("run: 'echo true > tools/work.sh', check: sh tools/work.sh", "", False),
    "something comes before": ("run: 'echo x > x; sh tools/work.sh'", "", False),
    "git ignores it": ("run: ./odd/work.sh", "", True),
    "git ignores it, and it is not here": ("run: ./odd/made > x", "", True),
    "git ignores it, and a setup may make it": ("run: ./odd/work.sh", ", setup: make it", False),
    "git ignores it, and it is copied": ("run: ./odd/copied", "", False),
    "git ignores it, and work comes before": ("run: make it, check: ./odd/work.sh", "", False),
    "a link leads to it": ("run: sh link/work.sh", "", False),
    "it is of another repository": ("run: sh other/work.sh", "", False),
    "a wrapper may bring it": ("run: sh tools/work.sh, wrap: [env, '{command}']", "", False),
    "no worktree begins it": ("run: sh tools/work.sh, worktree: false", "", False),
    "it is in an environment": ("run: venv/bin/work.sh", "", False),
    "another recipe is there": ("run: make it", "", False),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_script_is_asked_about_where_it_would_be_missing(repo: Repo, name: str) -> None:
    """One that the plan or the setup makes, or that is not the project's own, is no question."""
    code, worktrees, asked = SCENES[name]
    folders = ("odd", "venv/bin", "other", "boot.d")
    repo.write({f"{each}/work.sh": "#!/bin/sh\n" for each in folders})
    repo.write({"venv/pyvenv.cfg": "", ".gitignore": "odd\n", "GNUmakefile": "it:\n\ttrue\n", "boot": "#!/bin/sh\n"})
    (repo.root / "other/.git").mkdir()
    (repo.root / "link").symlink_to("tools")
    for each in ("boot", "venv/bin/work.sh"):
        (repo.root / each).chmod(0o755)
    repo.write({".worktreeinclude": "odd/copied\n", "odd/copied": ""})
    repo.git("add", "GNUmakefile", ".gitignore", "boot", "link", ".worktreeinclude")
    repo.git("commit", "--quiet", "--message=more")
    repo.write({"Makefile": ""})
    ends = "" if "check" in code else ", check: none"
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{{code}{ends}}}\n", worktrees=worktrees)
    said = repo.loopr("start", "--dry-run", "plan.md").err
    assert ("it would ask" in said) is asked, said
    assert repo.loopr("start", "--no-run", "plan.md").code == 0


def test_what_git_ignores_is_not_to_be_committed(repo: Repo) -> None:
    """A file that git ignores gets into worktrees by another way."""
    repo.write({".gitignore": "tools/\n"})
    found = reason(repo, "run: ./tools/work.sh, check: none")
    assert "tools/work.sh was in your checkout, but git ignored it: .worktreeinclude may name it" in found


def environment(repo: Repo) -> None:
    """Make a virtual environment that git ignores, as far as anybody looks at it."""
    scripts = {f".venv/bin/{name}": "#!/bin/sh\n" for name in ("activate", "pytest")}
    repo.write({".gitignore": ".venv\n", ".venv/pyvenv.cfg": "home = /usr/bin\n", **scripts})
    (repo.root / ".venv/bin/pytest").chmod(0o755)


def test_a_virtual_environment_is_made_anew(repo: Repo) -> None:
    """A program of one is not copied: the reason names the setup that makes it in each worktree."""
    environment(repo)
    found = reason(repo, "run: 'true', check: .venv/bin/pytest -q")
    assert "in a virtual environment, which loops do not get" in found
    setup = "python -m venv .venv && .venv/bin/pip install pytest"
    cure = f'`worktrees: {{setup: "{setup}"}}` in loopr.yml'
    assert found.endswith(f"{cure} makes one in each worktree")
    assert ".worktreeinclude" not in found


def test_a_recipe_that_names_a_virtual_environment(repo: Repo) -> None:
    """The reason names the setup that fits, as where the check itself names a program of one."""
    environment(repo)
    repo.write({"Makefile": "test:\n\t.venv/bin/pytest -q\n", "requirements.txt": "flask\n"})
    repo.git("add", "Makefile", ".gitignore")
    repo.git("commit", "--quiet", "--message=make")
    found = reason(repo, "run: 'true', check: make test")
    assert ".venv/bin/pytest was in your checkout, in a virtual environment, which" in found
    assert ".venv/bin/pip install -r requirements.txt pytest" in found


def test_no_loop_works_with_a_copied_environment(repo: Repo) -> None:
    """A list of copies that names one since the start parks the loop; nothing of it has run."""
    environment(repo)
    repo.settings("types:\n  plan: {child: code}\n  code: {run: touch x, check: 'true'}\n")
    repo.loopr("start", "--no-run", "plan.md")
    repo.write({".worktreeinclude": ".venv/\n"})
    repo.loopr("run", code=1)
    loop = repo.loops()["demo/a"]
    told = ".worktreeinclude:1 copies .venv, a virtual environment"
    assert (loop["status"], told in loop["reason"]) == ("parked", True), loop
    assert "`loopr doctor` names the setting that makes it in each worktree" in loop["reason"]
    seen = repo.loopr("doctor", code=78).out
    assert told in seen
    assert 'worktrees: {setup: "python -m venv .venv && .venv/bin/pip install pytest"}' in seen
    (repo.root / ".worktreeinclude").unlink()
    repo.loopr("reset", "demo")
    repo.loopr("run")
    assert repo.statuses()["demo/a"] == "complete"


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        ("mkdir -p .venv/bin", "but worktrees.setup had not made it here"),
        ("echo ready", "which worktrees.setup has to make anew in each worktree"),
    ],
)
def test_a_setup_that_did_not_make_it(repo: Repo, setup: str, told: str) -> None:
    """Where worktrees are set up the reason is what that has not done."""
    environment(repo)
    repo.settings(
        "types:\n  plan: {child: code}\n  code: {run: .venv/bin/pytest -q, check: none}\n",
        worktrees=f", setup: {setup}",
    )
    repo.loopr("start", "plan.md", code=1)
    found = repo.loops()["demo/a"]["reason"]
    assert ".venv/bin/pytest was in your checkout, " in found
    assert found.endswith(told)


@needs_plain_sh
def test_a_word_of_bashs_is_the_cause(repo: Repo) -> None:
    """What sh did not find is told with what it has in its place, and no file is blamed for it."""
    environment(repo)
    found = reason(repo, "run: 'source .venv/bin/activate && pytest', check: none")
    assert found.startswith("there is no such program (exit 127): ")
    assert found.endswith("source: not found; sh has `.`")


@needs_plain_sh
def test_a_setup_with_a_word_of_bashs(repo: Repo) -> None:
    """A setup that fails by one says so too."""
    repo.settings(
        "types: {plan: {child: code}, code: {run: echo, check: none}}\nretry: {max_attempts: 1}\n",
        worktrees=", setup: source .venv/bin/activate",
    )
    repo.loopr("start", "plan.md", code=1)
    assert "source: not found; sh has `.`" in repo.loops()["demo/a"]["reason"]


@pytest.mark.parametrize(
    "code",
    [
        "run: frobnicate tools/work.sh, check: none",
        "run: [env, frobnicate, tools/work.sh], check: none",
        "run: 'true', check: frobnicate tools/work.sh",
    ],
)
def test_a_program_that_is_not_here_is_the_cause(repo: Repo, code: str) -> None:
    """A file that is not committed is blamed for no program that could not be begun anyway."""
    assert "committed" not in reason(repo, code)


@pytest.mark.parametrize("run", ["./tools/odd.sh", "[./tools/odd.sh]"])
def test_a_script_whose_interpreter_is_missing(repo: Repo, run: str) -> None:
    """The reason is the program that its first line names, though the script itself is there."""
    repo.write({"tools/odd.sh": "#!/usr/bin/nope\n"})
    (repo.root / "tools/odd.sh").chmod(0o755)
    repo.git("add", "tools/odd.sh")
    repo.git("commit", "--quiet", "--message=tools")
    found = reason(repo, f"run: {run}, check: none")
    assert found.endswith("the first line of tools/odd.sh named /usr/bin/nope, which was not here")


@pytest.mark.parametrize("run", ["./tools/plain.sh", "[./tools/plain.sh]"])
def test_a_script_without_its_executable_bit(repo: Repo, run: str) -> None:
    """The reason is how it was committed, with the command that mends it."""
    repo.write({"tools/plain.sh": "#!/bin/sh\n"})
    repo.git("add", "tools/plain.sh")
    repo.git("commit", "--quiet", "--message=tools")
    cure = "`chmod +x tools/plain.sh && git add --chmod=+x tools/plain.sh`, then commit"
    found = reason(repo, f"run: {run}, check: none")
    assert found.endswith(f"tools/plain.sh was committed without its executable bit: {cure}")


def test_other_failures_are_not_blamed_on_it(repo: Repo) -> None:
    """A no that says nothing of the file has its own reason alone."""
    found = reason(repo, "run: 'echo tools/work.sh > x', check: 'test -e y || cat tools/work.sh 2>/dev/null'")
    assert "committed" not in found


FORETOLD = """\
---
id: told
codes:
  - {id: a, check: tools/work.sh}
  - {id: b, run: "cat $LOOPR_PROMPT_FILE | no-such-agent -p"}
  - {id: c, run: "command -v no-such-tool || no-such-tool"}
  - {id: d, run: "pip install no-such-linter && no-such-linter"}
---
# Told
"""


def test_what_every_command_needs_is_looked_for(repo: Repo) -> None:
    """Checks of entries, presets, recipes and programs within a text count; what a text may bring does not."""
    repo.settings("types:\n  plan: {child: code}\n  code: {agent: own, check: make test && no-such-judge}\n")
    repo.write({"told.md": FORETOLD, "agents/own.yml": "run: [python3, own.py]\n", "own.py": "", "Makefile": ""})
    said = repo.loopr("start", "--dry-run", "told.md").err
    (lying,) = (line for line in said.splitlines() if "not committed as here" in line)
    assert all(name in lying for name in ("Makefile", "own.py", "tools/work.sh"))
    assert "told.md:5:5 run: there is no program no-such-agent" in said
    assert "types.code.check: there is no program no-such-judge" in said
    assert "no-such-tool" not in said and "no-such-linter" not in said
    repo.git("rm", "--quiet", "--cached", "--ignore-unmatch", "Makefile")
    (repo.root / "Makefile").unlink()
    assert "neither committed nor here: Makefile" in repo.loopr("start", "--dry-run", "told.md").err


def test_what_is_mended_in_the_settings_reaches_a_worktree_that_is_there(repo: Repo) -> None:
    """A setup, or a list of files to copy, that is added after a failure counts for the next try of the same loop."""
    settings = "types:\n  plan: {child: code}\n  code: {run: ./made/tool && cat .env > out.txt, check: none}\n"
    repo.write({".gitignore": "made\n.env\n", ".env": "A=1\n"})
    repo.git("add", ".gitignore")
    repo.git("commit", "--quiet", "--message=Ignore")
    repo.settings(settings)
    repo.loopr("start", "--yes", "plan.md", code=1)
    setup = "mkdir made; echo '#!/bin/sh' > made/tool; chmod +x made/tool; echo set up >> $DESK/setups"
    repo.loopr("set", "worktrees.setup", setup)
    repo.write({".worktreeinclude": ".env\n"})
    repo.loopr("reset", "a")
    repo.loopr("run")
    assert repo.statuses()["demo/a"] == "complete"
    assert repo.on_branch("demo", "out.txt") == "A=1"
    assert repo.note("setups").splitlines() == ["set up"]


def test_an_active_environment_of_the_checkout_judges_no_worktree(repo: Repo) -> None:
    """A judge of the checkout's own files is out of reach, which is told before; one that the setup makes is found."""
    home = repo.root / ".venv"
    judge = home / "bin/judge-it"
    repo.write({".gitignore": ".venv\n", ".venv/pyvenv.cfg": "", ".venv/bin/judge-it": "#!/bin/sh\ntrue\n"})
    repo.write({".venv/lib/python3/site-packages/own.pth": f"{repo.root}/src\n"})
    judge.chmod(0o755)
    repo.git("add", ".gitignore")
    repo.git("commit", "--quiet", "--message=Ignore")
    active = {"PATH": f"{home}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": str(home)}
    repo.settings("types:\n  plan: {child: code}\n  code: {run: echo x > x, check: judge-it}\n")
    words = "loops do not get .venv, which is active and runs the checkout's own files"
    assert words in repo.loopr("start", "--dry-run", "plan.md", **active).err
    repo.loopr("start", "plan.md", code=1, **active)
    assert "loops do not get .venv of your checkout" in repo.loops()["demo/a"]["reason"]
    made = "mkdir -p .venv/bin; echo 'exit 1' > .venv/bin/judge-it; chmod +x .venv/bin/judge-it"
    repo.loopr("set", "worktrees.setup", made)
    repo.loopr("reset", "a", **active)
    repo.loopr("run", code=1, **active)
    assert repo.loops()["demo/a"]["reason"].startswith("the check said no: exit 1")
