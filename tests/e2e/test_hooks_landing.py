"""Plans that come home by themselves: a refusal is shown, and asked again when something has changed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def ready(repo: Repo, names: str = "a", text: str = "") -> None:
    """Write settings, and a plan whose loops each write a file of their name."""
    waits = 'case "$LOOPR_LOOP" in */wait) tell wait; wait_at gate;; esac'
    run = repo.script("code", f'{waits}\nbasename "$LOOPR_LOOP" > f')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\nland: {{mode: auto}}\n{text}")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def complaints(repo: Repo) -> dict[str, str]:
    """Return what `status` says is wrong."""
    return {each["place"]: each["text"] for each in repo.loopr("status", "--json").document["problems"]}


def is_home(repo: Repo, plan: str = "demo") -> bool:
    """Say whether main has all of a plan."""
    return not repo.git("rev-list", f"main..loopr/{plan}")


def test_a_refused_landing_is_owed_over_a_restart(repo: Repo) -> None:
    """What a person has in the way keeps a plan from home; the next engine asks again, until it is home."""
    ready(repo)
    repo.write({"f": "mine\n"})
    repo.loopr("start", "plan.md")
    assert not is_home(repo) and "f is there" in complaints(repo)["landing of demo"]
    repo.loopr("run")
    assert not is_home(repo) and "landing of demo" in complaints(repo)
    (repo.root / "f").unlink()
    repo.loopr("run")
    assert is_home(repo) and complaints(repo) == {}
    assert (repo.root / "f").read_text() == "a\n"
    home = {"plan": "demo", "branch": "main", "commit": repo.git("rev-parse", "main"), "partial": False}
    assert [each["data"] for each in repo.events("plan_came_home")] == [home]
    before = repo.events()[-1]["seq"]
    repo.loopr("run")
    kinds = {each["event"] for each in repo.events() if each["seq"] > before}
    assert kinds <= {"engine_started", "engine_ended"}


def test_a_landing_is_asked_again_once_something_has_changed(repo: Repo) -> None:
    """An engine that goes on with other work brings a plan home soon after a person has mended what was in the way."""
    ready(repo)
    repo.write({"more.md": "---\nid: more\nchildren: [{id: wait}]\n---\n# More\n", "f": "mine\n"})
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md", "more.md")
    repo.heard(1)
    repo.until("problem_seen", words="landing of demo")
    tries = repo.state / "runs/home/0"
    repo.git("add", "f")
    repo.git("commit", "--quiet", "--message=mine")
    repo.until("problem_seen", words="conflicts with main")
    repo.git("rm", "--quiet", "f")
    repo.git("commit", "--quiet", "--message=not mine")
    repo.until("problem_gone", words="landing of demo")
    assert is_home(repo)
    assert len(list(tries.iterdir())) <= 6
    gate.let_on()
    process.ended(None)


def test_a_plan_that_a_person_brings_home_owes_nothing(repo: Repo) -> None:
    """`loopr land` by hand ends what is owed, at once where no engine runs; so does taking the setting back."""
    ready(repo)
    repo.write({"f": "mine\n"})
    repo.loopr("start", "plan.md")
    assert "landing of demo" in complaints(repo)
    (repo.root / "f").unlink()
    repo.loopr("land", "--yes", "demo")
    assert is_home(repo) and complaints(repo) == {}
    repo.loopr("run")
    assert complaints(repo) == {}


def test_taking_the_setting_back(repo: Repo) -> None:
    """Where plans no longer come home by themselves none is brought, and nothing is said of it any more."""
    ready(repo)
    repo.write({"f": "mine\n"})
    repo.loopr("start", "plan.md")
    (repo.root / "f").unlink()
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("mode: auto", "mode: manual"))
    repo.loopr("run")
    assert not is_home(repo) and complaints(repo) == {}


def test_a_landing_that_is_cut_off_by_a_crash(repo: Repo) -> None:
    """An engine that is killed while a plan's landing is judged leaves it owed; the next one brings it home once."""
    judge = repo.script("judge", 'tell judged; read -r _ < "$DESK/gate"')
    told = repo.script("told", 'cat >> "$DESK/told"')
    ready(repo, text=f"hooks: {{on_settle: '{told}'}}\n")
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("mode: auto", f"mode: auto, check: '{judge}'"))
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    process.signal(signal.SIGKILL)
    process.process.wait()
    gate.open()
    repo.loopr("run")
    assert is_home(repo) and complaints(repo) == {}
    merges = repo.git("log", "--format=%s", "main").splitlines()
    assert len(merges) == len(set(merges))
    assert [json.loads(line)["data"] for line in repo.note("told").splitlines()] == [{"plans": {"demo": "done"}}]
