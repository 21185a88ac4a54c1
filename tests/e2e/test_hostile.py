"""Commands that cheat, each beside two honest siblings: nothing unjudged lands, and the siblings do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hostile import HONEST, SCENES, Scene
from tests.e2e.repos import LOOPR, Repo, opened

PLAN = """\
---
id: p
codes:
  - {id: bad}
  - {id: one}
  - {id: two, needs: [one]}
---
# P
"""
EVIL_PLAN = "---\nid: evil\ncodes: [{id: x, run: 'true', check: 'true'}]\n---\n# Evil\n"
CHECK = """\
name=$(basename "$LOOPR_LOOP")
test "$(cat "$name.txt")" = good
"""
SETTINGS = """\
types:
  plan: {child: code}
  code: {run: [sh, DESK/work], check: 'CHECK', max_iterations: 2}
retry: {base_secs: 0.01, jitter: 0, max_attempts: 3}
"""
QUICK = "timeouts: {wall_secs: 30, grace_secs: 0.5}\n"
WORK = """\
export SUPERVISOR=$PPID
case "$LOOPR_LOOP" in
  */bad) sh "$DESK/bad"; printf '\\n\\n\\n' > "$DESK/acted"
    test ! -e "$DESK/code" || exit "$(cat "$DESK/code")"
    exit 0 ;;
  */one) read -r _ < "$DESK/acted" ;;
esac
echo good > "$(basename "$LOOPR_LOOP").txt"
"""
ORDERS = """\
import json, os, socket, sys
order = {"argv": ["touch", sys.argv[2]], "id": "x", "dir": os.getcwd(), "cwd": os.getcwd(), "env": {}}
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        line = socket.socket(socket.AF_UNIX)
        try:
            os.chdir(folder)
            line.connect(name)
            line.sendall(json.dumps({"do": "run", **order}).encode() + b"\\n" + b"run\\n")
        except OSError:
            pass
for fd in range(3, 64):
    try:
        os.write(fd, b"run\\n")
    except OSError:
        pass
"""
DECIDED = ("approved", "rejected", "cancelled", "held", "scope_held", "settings_accepted", "plan_came_home", "retried")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan, its check, and what a person has in one."""
    with opened(tmp_path) as found:
        home = tmp_path / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\n\tname = A Person\n\temail = person@example.org\n")
        found.env |= {"L": str(LOOPR), "PY": sys.executable}
        found.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        del found.env["GIT_CONFIG_GLOBAL"]  # the device that it names elsewhere in the tests is everybody's
        files = {
            "check.sh": CHECK,
            "tools/check.sh": f"cd ..\n{CHECK}",
            "setup.sh": "true\n",
            "pre.sh": "true\n",
            "evil.md": EVIL_PLAN,
            "plan.md": PLAN,
        }
        found.found(files)
        found.git("commit", "--quiet", "--allow-empty", "--message=second")
        found.git("branch", "side")
        found.git("tag", "v1")
        for name, text in (("work", WORK), ("orders.py", ORDERS)):
            (found.desk / name).write_text(text)
        found.gate("acted")
        yield found


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_command_that_cheats(repo: Repo, scene: Scene) -> None:
    """Nothing that it left lands unjudged, nothing is decided by it, and its siblings land without a person."""
    (repo.desk / "bad").write_text(f"{scene.script}\necho evil > bad.txt\n")
    more = "" if "wall_secs" in scene.more else QUICK
    worktrees = "" if "worktrees:" in scene.more else "worktrees: {min_free_gb: 0}\n"
    rules = SETTINGS.replace("DESK", str(repo.desk)).replace("CHECK", scene.check)
    repo.write({"loopr.yml": f"{worktrees}{rules}{more}{scene.more}"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=settings")
    before = repo.git("rev-parse", "main", "side").split()
    process = repo.begin("start", "plan.md")
    process.ended(None)
    states = repo.statuses()
    assert (states["p/one"], states["p/two"]) == ("complete", "complete"), states
    assert states["p/bad"] != "complete"
    assert "evil" not in {each.partition("/")[0] for each in states}
    assert_unjudged_is_nowhere(repo, scene, before)
    assert_nothing_ran(repo, scene)
    assert_told(repo, scene)


@pytest.mark.parametrize("scene", HONEST, ids=lambda scene: scene.name)
def test_work_in_a_folder_that_the_check_names(repo: Repo, scene: Scene) -> None:
    """A folder is no judge: work on a file in it lands as it is, and nothing is put back."""
    work = repo.desk / "work"
    work.write_text(scene.script)
    rules = SETTINGS.replace("DESK", str(repo.desk)).replace("CHECK", scene.check)
    plan = "---\nid: p\ncodes: [{id: bad}]\n---\n# P\n"
    repo.write({"src/main.txt": "bad\n", "plan.md": plan, "loopr.yml": f"worktrees: {{min_free_gb: 0}}\n{rules}"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=settings")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("p", "src/main.txt") == "good"
    assert [each["data"]["put_back"] for each in repo.events() if each["event"] == "landed"] == [[]]


def assert_unjudged_is_nowhere(repo: Repo, scene: Scene, before: list[str]) -> None:
    """Check that nothing came onto a branch but what loopr has landed there, and that no loop has decided."""
    events, (main, side) = repo.events(), before
    stands = [each["data"]["new"] for each in events if each["event"] == "plan_moved"][-1]
    landed = {each["data"]["commit"] for each in events if each["event"] == "landed"}
    log = repo.git("log", "--format=%h %s", f"{main}..{stands}")
    assert set(repo.git("rev-list", f"{main}..{stands}").split()) <= landed, log
    assert repo.git("ls-tree", "--name-only", stands, "bad.txt") == ""
    assert scene.lags or repo.git("rev-parse", "refs/heads/loopr/p") == stands
    assert scene.main or repo.git("rev-parse", "main") == main
    assert repo.git("rev-parse", "side") == side
    deciding = [each for each in events if each["event"] in DECIDED and "p/bad" in each["actor"]]
    assert not deciding, deciding


def assert_nothing_ran(repo: Repo, scene: Scene) -> None:
    """Check that no planted program ran as the engine, nor runs as the person, and that no order was followed."""
    assert not (repo.desk / "escaped").exists()
    assert not (repo.desk / "ran").exists(), "a planted program ran"
    if scene.person:
        return
    repo.git("status")
    assert not (repo.desk / "ran").exists(), "a planted program runs when the person asks git"


def assert_told(repo: Repo, scene: Scene) -> None:
    """Check that what it did is told somewhere where a person looks."""
    told = json.dumps(repo.events()) + repo.loopr("status").out + repo.loopr("doctor", code=None).out
    for words in scene.told:
        assert words in told, words
