"""Several repositories under one engine: each plan works in its own, and the shares hold across them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

WORK = """
begin
echo "$LOOPR_LOOP for $LOOPR_PROJECT" > "$(basename "$LOOPR_LOOP").txt"
{more}
end
"""
REPORT = """echo '{"schema": 1, "status": "done", "usage": {"input_tokens": 1000}}' > "$LOOPR_RESULT_FILE"\n"""


class Fleet:
    """A workspace, and the repositories beside it that its projects work in."""

    def __init__(self, ws: Repo) -> None:
        self.ws = ws

    def top(self, name: str) -> Path:
        """Return the top of a repository."""
        return self.ws.root if name == "." else self.ws.root.parent / name

    def git(self, name: str, *words: str) -> str:
        """Call git in one repository."""
        return self.ws.git(*words, cwd=self.top(name))

    def found(self, *names: str) -> None:
        """Make repositories, each with a commit and a file that a person is at work on."""
        for name in names:
            self.top(name).mkdir()
            self.git(name, "init", "--quiet", "--initial-branch=main")
            (self.top(name) / "README").write_text(f"this is {name}\n")
            self.git(name, "add", "README")
            self.git(name, "commit", "--quiet", "--message=first")
            (self.top(name) / "README").write_text(f"this is {name}, half edited\n")

    def settings(self, projects: str, more: str = "", work: str = "") -> None:
        """Write the settings: code loops that leave a file, for some projects."""
        run = self.ws.script("code", WORK.replace("{more}", work))
        text = f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\nprojects:\n{projects}\n{more}"
        self.ws.write({"loopr.yml": f"worktrees: {{min_free_gb: 0}}\n{text}\n"})

    def plan(self, name: str, count: int = 2, project: str = "") -> str:
        """Write a plan with some code loops, and return its file."""
        tasks = "".join(f"  - id: {name}-{number}\n" for number in range(1, count + 1))
        text = f"---\nid: {name}\nproject: {project or name}\ntasks:\n{tasks}---\n# Plan {name}\n"
        self.ws.write({f"{name}.md": text})
        return f"{name}.md"

    def landed(self, name: str, plan: str) -> list[str]:
        """Return the files that a plan has brought to its branch in one repository."""
        return self.git(name, "diff", "--name-only", "main", f"loopr/{plan}").splitlines()

    def plans(self, name: str) -> set[str]:
        """Return the plans of which a repository has any ref at all."""
        refs = self.git(name, "for-each-ref", "--format=%(refname)").splitlines()
        return {ref.split("/")[-1].partition(".")[0] for ref in refs if "loopr/" in ref}

    def users(self, name: str) -> tuple[str, ...]:
        """Return what of a repository is a person's: checkout, index, HEAD, and refs that are not loopr's."""
        refs = [each for each in self.git(name, "for-each-ref").splitlines() if "loopr/" not in each]
        asked = (("symbolic-ref", "HEAD"), ("ls-files", "--stage"), ("diff",), ("status", "--porcelain"))
        return (*refs, *(self.git(name, *words) for words in asked))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Give a workspace in a repository of its own, and room beside it."""
    with opened(tmp_path, root=tmp_path / "ws") as ws:
        ws.found()
        yield Fleet(ws)


TWO = "  api: {repo: ../api, weight: 3}\n  web: {repo: ../web/}"


def test_each_plan_lands_in_its_own_repository_only(fleet: Fleet) -> None:
    """Three plans in three repositories are driven by one engine, and nothing else of any of them is touched."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    names = {"api": "api", "web": "web", ".": "default"}
    plans = [fleet.plan(plan) for plan in names.values()]
    before = {name: fleet.users(name) for name in ("api", "web")}
    fleet.ws.loopr("start", *plans)
    for name, plan in names.items():
        assert fleet.plans(name) == {plan}
        assert fleet.landed(name, plan) == [f"{plan}-1.txt", f"{plan}-2.txt"]
        assert fleet.git(name, "show", f"loopr/{plan}:{plan}-1.txt") == f"{plan}/{plan}-1 for {plan}"
    assert {name: fleet.users(name) for name in before} == before
    assert sorted(each.name for each in (fleet.ws.root / "specs").iterdir()) == ["api", "default", "web"]
    assert not (fleet.top("api") / "specs").exists()


def test_each_repository_in_its_own_way(fleet: Fleet) -> None:
    """A project says for itself where its plans begin, what sets worktrees up and what judges a landing."""
    fleet.found("api", "web")
    fleet.git("api", "branch", "develop")
    own = "git: {base: develop}, worktrees: {setup: 'touch was-set-up'}, land: {check: 'test -e was-set-up && exit 3'}"
    fleet.settings(f"  api: {{repo: ../api, {own}}}\n  web: {{repo: ../web}}")
    fleet.ws.loopr("start", fleet.plan("api", 1), fleet.plan("web", 1))
    assert fleet.landed("api", "api") == ["api-1.txt", "was-set-up"]
    assert fleet.landed("web", "web") == ["web-1.txt"]
    bound = {each["data"]["plan"]: each["data"]["base_branch"] for each in fleet.ws.events("plan_bound")}
    assert bound == {"api": "develop", "web": "main"}
    assert "land.check said no" in fleet.ws.loopr("land", "--yes", "api", code=1).err
    fleet.git("web", "checkout", "--quiet", "--", "README")
    fleet.ws.loopr("land", "--yes", "web")
    assert (fleet.top("web") / "web-1.txt").exists()


def test_the_verbs_find_the_repository_of_a_loop(fleet: Fleet) -> None:
    """land, diff, shell, show, doctor and config check work in the repository of the plan, from any of them."""
    fleet.found("api", "web")
    fleet.settings(TWO, work='if [ "$LOOPR_LOOP" = web/web-1 ]; then tell "$PWD"; wait_at gate; fi')
    gate = fleet.ws.gate("gate")
    engine = fleet.ws.begin("start", fleet.plan("api"), fleet.plan("web"))
    (folder,) = fleet.ws.heard()
    assert folder == str(fleet.ws.root / "worktrees/web.web-1.g1")
    fleet.ws.until("landed", 2, "api/")
    assert "+api/api-1 for api" in fleet.ws.loopr("diff", "api/api-1").out
    fleet.git("api", "checkout", "--quiet", "--", "README")
    fleet.ws.loopr("land", "--yes", "api")
    assert (fleet.top("api") / "api-2.txt").read_text() == "api/api-2 for api\n"
    where = fleet.ws.loopr("shell", "web/web-1", "--json", cwd=fleet.top("web")).document
    assert (where["folder"], where["branch"]) == (folder, "loopr/web.web-1.g1")
    assert "project web, in ../web" in fleet.ws.loopr("show", "web/web-1", cwd=Path(folder)).out
    gate.open()
    engine.ended()
    assert fleet.ws.loopr("config", "check", cwd=fleet.top("api")).out == "the settings are sound\n"
    found = fleet.ws.loopr("doctor", "--json").document
    texts = [each["text"] for each in found["checks"] if each["check"] == "base"]
    assert [text.partition(":")[0] for text in texts[1:]] == ["../api", "../web"], texts


def test_weights_hold_across_repositories(fleet: Fleet) -> None:
    """While both projects have work, three attempts of the heavier one begin for each of the lighter one."""
    fleet.found("api", "web")
    fleet.settings(TWO, "concurrency: {max_loops: 4}", REPORT)
    fleet.ws.loopr("start", fleet.plan("web", 20), fleet.plan("api", 20))
    begun = [line.split()[1].partition("/")[0] for line in fleet.ws.diary() if line.startswith("+")]
    assert len(begun) == 40
    # of the first 20 leases 15 ± 1 are api's; what four attempts at once note down may be overtaken by as many others
    assert 11 < begun[:20].count("api") < 19, begun


def test_a_budget_stops_its_project_and_no_other(fleet: Fleet) -> None:
    """A project whose budget is spent starts nothing more until its window frees some; the other one goes on."""
    fleet.found("api", "web")
    report = f'if [ "$LOOPR_PROJECT" = api ]; then\n{REPORT}fi'
    fleet.settings("  api: {repo: ../api, budget: {tokens: 2000}}\n  web: {repo: ../web}", work=report)
    engine = fleet.ws.begin("start", fleet.plan("api", 4), fleet.plan("web", 3))
    fleet.ws.until("landed", 5)
    assert "the tokens budget of project api is reached" in fleet.ws.loopr("why", "api/api-3").out
    engine.signal(signal.SIGTERM)
    engine.ended(143)
    assert len(fleet.landed("api", "api")) == 2
    assert len(fleet.landed("web", "web")) == 3
    rows = {each["key"]: each for each in fleet.ws.loopr("usage", "--json").document["rows"]}
    assert (rows["api"]["measured"]["attempts"], rows["api"]["measured"]["tokens"]) == (2, 2000)
    assert (rows["web"]["measured"]["attempts"], rows["web"]["measured"]["tokens"]) == (3, 0)


def test_a_project_that_may_spend_nothing_is_told_apart(fleet: Fleet) -> None:
    """Where a project may spend nothing at all, the others are done and the exit code says that a budget is reached."""
    fleet.found("api", "web")
    fleet.settings("  api: {repo: ../api, budget: {tokens: 0}}\n  web: {repo: ../web}")
    fleet.ws.loopr("start", fleet.plan("api"), fleet.plan("web"), code=5)
    assert (fleet.plans("api"), fleet.landed("web", "web")) == (set(), ["web-1.txt", "web-2.txt"])


def test_an_engine_that_dies_leaves_both_repositories_to_the_next(fleet: Fleet) -> None:
    """Attempts in two repositories live on while their engine is killed; the next one adopts and lands both, once."""
    fleet.found("api", "web")
    fleet.settings(TWO, work='tell "$LOOPR_LOOP"; wait_at gate')
    gate = fleet.ws.gate("gate")
    plans = [fleet.plan("api", 1), fleet.plan("web", 1)]
    before = {name: fleet.users(name) for name in ("api", "web")}
    engine = fleet.ws.begin("start", *plans)
    assert sorted(fleet.ws.heard(2)) == ["api/api-1", "web/web-1"]
    os.kill(engine.pid, signal.SIGKILL)
    engine.process.wait()
    second = fleet.ws.begin("run")
    fleet.ws.until("engine_started", 2)
    gate.open()
    second.ended()
    assert sorted(line for line in fleet.ws.diary() if line.startswith("+")) == ["+ api/api-1 1", "+ web/web-1 1"]
    for name in ("api", "web"):
        assert fleet.landed(name, name) == [f"{name}-1.txt"]
    assert {name: fleet.users(name) for name in before} == before


def test_gc_clears_away_in_every_repository(fleet: Fleet) -> None:
    """Once plans are home and forgotten, no ref and no worktree of loopr's is left in any repository."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    fleet.ws.loopr("start", fleet.plan("api"), fleet.plan("web"))
    kept = fleet.ws.loopr("gc", "--dry-run", "--json").document["kept"]
    assert {each["repo"] for each in kept if each["kind"] == "branch"} == {"../api", "../web"}
    for name in ("api", "web"):
        fleet.git(name, "checkout", "--quiet", "--", "README")
        fleet.ws.loopr("land", "--yes", name)
        for loop in (f"{name}/{name}-1", f"{name}/{name}-2", name):
            fleet.ws.loopr("gc", "--yes", "--forget", loop)
    (fleet.ws.root / "loopr.local.yml").write_text("worktrees: {pool: 0}\n")
    gone = fleet.ws.loopr("gc", "--json").document["removed"]
    assert {each["repo"] for each in gone if each["kind"] == "worktree"} == {"../api", "../web"}
    for name in ("api", "web"):
        assert fleet.plans(name) == set()
        assert len(fleet.git(name, "worktree", "list").splitlines()) == 1


def test_a_project_without_a_repository_beside_one_with(tmp_path: Path) -> None:
    """Where the workspace is in no repository its own plans work in plain folders, and others in theirs."""
    with opened(tmp_path, root=tmp_path / "ws") as ws:
        ws.root.mkdir()
        fleet = Fleet(ws)
        fleet.found("api")
        fleet.settings("  api: {repo: ../api}")
        ws.loopr("start", fleet.plan("api"), fleet.plan("default"))
        assert fleet.landed("api", "api") == ["api-1.txt", "api-2.txt"]
        found = json.loads(ws.loopr("ls", "--json", cwd=fleet.top("api")).out)["loops"]
        assert {each["status"] for each in found} == {"complete"}
        assert (ws.root / "worktrees/default.default-1.g1/default-1.txt").is_file()
        assert (ws.root / ".loopr/loopr.db").is_file()


def test_a_project_may_do_without_the_workspaces_repository(fleet: Fleet) -> None:
    """A project whose repository is null works without git, although the workspace is in one."""
    fleet.settings("  notes: {repo: null}")
    fleet.ws.loopr("start", fleet.plan("notes"), fleet.plan("default"))
    assert fleet.plans(".") == {"default"}
    assert (fleet.ws.root / "worktrees/notes.notes-1.g1/notes-1.txt").read_text() == "notes/notes-1 for notes\n"
    refused = fleet.ws.loopr("land", "--yes", "notes", code=78)
    assert "no repository" in refused.err


def test_a_project_is_added_and_none_is_moved_while_it_is_at_work(fleet: Fleet) -> None:
    """A running engine takes up a new repository; one with a plan that is not over stays where it is, also later."""
    fleet.found("api", "web", "else")
    fleet.settings("  api: {repo: ../api}", work="if [ $LOOPR_PROJECT = api ]; then tell here; wait_at gate; fi")
    gate = fleet.ws.gate("gate")
    engine = fleet.ws.begin("start", fleet.plan("api", 1))
    fleet.ws.heard()
    sound = (fleet.ws.root / "loopr.yml").read_text()
    fleet.ws.write({"loopr.yml": sound.replace("../api", "../else")})
    fleet.ws.until("settings_held")
    refused = fleet.ws.loopr("config", "accept", "--yes", code=78)
    assert "api began in ../api and is not over, so that it cannot be ../else yet" in refused.err
    sound = sound.replace("../api}", "../api}\n  web: {repo: ../web}")
    fleet.ws.write({"loopr.yml": sound})
    fleet.ws.loopr("config", "accept", "--yes")
    fleet.ws.loopr("start", "--no-run", fleet.plan("web", 1))  # without waiting for the engine to read the settings
    fleet.ws.until("landed", 1, "web/web-1")
    engine.signal(signal.SIGTERM)
    gate.open()
    engine.ended(143)
    fleet.ws.write({"loopr.yml": sound.replace("../api", "../else")})
    refused = fleet.ws.loopr("run", code=78)
    assert "loopr.yml:6:9 projects.api.repo: api began in ../api" in refused.err
    fleet.ws.write({"loopr.yml": sound})
    fleet.ws.loopr("run")
    assert (fleet.landed("api", "api"), fleet.landed("web", "web")) == (["api-1.txt"], ["web-1.txt"])
    fleet.ws.write({"loopr.yml": sound.replace("../api", "../else")})
    fleet.ws.loopr("start", fleet.plan("later", 1, "api"))
    assert (fleet.landed("else", "later"), fleet.plans("api")) == (["later-1.txt"], {"api"})
    assert "+api/api-1 for api" in fleet.ws.loopr("diff", "api/api-1").out


def test_a_pull_worker_works_in_the_repository_of_its_project(fleet: Fleet) -> None:
    """A lease that is taken while no engine runs is made ready in the project's repository, and lands there."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    text = (fleet.ws.root / "loopr.yml").read_text()
    fleet.ws.write({"loopr.yml": "\n".join("  code: {}" if "run:" in line else line for line in text.split("\n"))})
    fleet.ws.loopr("start", "--no-run", fleet.plan("api", 1), fleet.plan("web", 1))
    (lease,) = fleet.ws.loopr("lease", "take", "--project", "web", "--json").document["leases"]
    folder = Path(lease["worktree"])
    assert str(folder) in fleet.git("web", "worktree", "list")
    (folder / "by-hand.txt").write_text("done\n")
    fleet.ws.loopr("lease", "complete", lease["lease"], cwd=folder)
    fleet.ws.loopr("run", code=4)
    assert (fleet.landed("web", "web"), fleet.plans("api")) == (["by-hand.txt"], set())


def test_plans_come_home_to_their_own_repositories(fleet: Fleet) -> None:
    """With `land.mode: auto` each plan that is done lands on the branch that is checked out in its repository."""
    fleet.found("api", "web")
    fleet.settings(TWO, "land: {mode: auto}")
    fleet.ws.loopr("start", fleet.plan("api", 1), fleet.plan("web", 1))
    for name in ("api", "web"):
        assert (fleet.top(name) / f"{name}-1.txt").is_file()
        assert (fleet.top(name) / "README").read_text() == f"this is {name}, half edited\n"
    assert fleet.git(".", "log", "--format=%s") == "first"


def test_a_plan_stays_where_it_began_whoever_pays(fleet: Fleet) -> None:
    """A plan whose project changes is paid by the other one, and goes on in the repository that it began in."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    fleet.ws.loopr("start", fleet.plan("work", 1, "api"))
    fleet.ws.loopr("start", fleet.plan("work", 2, "web"))
    assert fleet.ws.loops()["work/work-2"]["project"] == "web"
    assert fleet.landed("api", "work") == ["work-1.txt", "work-2.txt"]
    assert fleet.plans("web") == set()


def test_a_misspelt_project_reaches_no_repository(fleet: Fleet) -> None:
    """Where projects have repositories, a plan of one that nobody knows is refused, and nothing is stored."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    refused = fleet.ws.loopr("start", fleet.plan("apo"), code=2)
    assert "there is no project apo" in refused.err
    assert fleet.ws.loops() == {}


CAPPED = "  web: {budget: {tokens: 0}, max_concurrent: 1}"
LOST = "there is no web, and web names it"
UNPAID = "no engine would begin (`loopr config check`): there is no project web, and"


def test_a_misspelt_project_escapes_no_budget(fleet: Fleet) -> None:
    """A plan of a project that nobody knows is refused with its place and the nearest name; `default` is known."""
    fleet.settings(CAPPED)
    for words in (["start"], ["start", "--dry-run"], ["simulate"]):
        refused = fleet.ws.loopr(*words, fleet.plan("typo", 1, "wbe"), code=2)
        assert "typo.md:3:10 project: there is no project wbe (did you mean web?" in refused.err
    assert fleet.ws.loops() == {}
    fleet.ws.loopr("start", fleet.plan("default", 1))
    (fleet.ws.root / "loopr.yml").write_text("types: {plan: {child: code}, code: {run: 'true'}}\n")
    refused = fleet.ws.loopr("start", fleet.plan("other", 1, "api"), code=2)
    assert "other.md:3:10 project: there is no project api (add `projects: {api: {}}` to loopr.yml)" in refused.err


def test_a_project_whose_plan_is_not_over_stays_in_the_settings(fleet: Fleet) -> None:
    """Settings without it are refused wherever they are read, until its plans are cancelled, or pay otherwise."""
    fleet.settings(CAPPED)
    sound = (fleet.ws.root / "loopr.yml").read_text()
    fleet.ws.loopr("start", "--no-run", fleet.plan("web", 1))
    fleet.ws.write({"loopr.yml": sound.replace("web:", "shop:")})
    for words in (["run"], ["lease", "take"], ["set", "projects.more.weight", "2"]):
        refused = fleet.ws.loopr(*words, code=78).err
        assert LOST in refused, words
        assert "`loopr start web.md` with the new one, and take web out after that" in refused
    assert LOST in fleet.ws.loopr("config", "check", code=78).out
    assert LOST in fleet.ws.loopr("doctor", code=None).out
    for words in (["status"], ["tree"], ["why", "web/web-1"], ["next"], ["next", "--pull"]):
        told = fleet.ws.loopr(*words)
        assert UNPAID in " ".join((told.out + told.err).split()), words
        assert "`loopr run` goes on" not in told.out + told.err, words
    fleet.ws.write({"loopr.yml": sound + CAPPED.replace("web:", "shop:")})
    assert LOST not in fleet.ws.loopr("config", "check").out
    fleet.ws.loopr("start", "--no-run", fleet.plan("web", 1, "shop"))
    fleet.ws.write({"loopr.yml": sound.replace("web:", "shop:")})
    assert "the settings are sound" in fleet.ws.loopr("config", "check").out
    assert "reached" in fleet.ws.loopr("why", "web/web-1").out
    fleet.ws.write({"loopr.yml": sound})
    fleet.ws.loopr("config", "check", code=78)
    fleet.ws.loopr("cancel", "web")
    fleet.ws.loopr("config", "check")


def test_a_plan_that_is_done_needs_its_project_until_it_is_home(fleet: Fleet) -> None:
    """How a plan is judged on its way home is said by its project: that may go once the plan is there."""
    fleet.settings("  web: {}")
    fleet.ws.loopr("start", fleet.plan("web", 1))
    sound = (fleet.ws.root / "loopr.yml").read_text()
    fleet.ws.write({"loopr.yml": sound.replace("web:", "shop:")})
    assert LOST in fleet.ws.loopr("config", "check", code=78).out
    fleet.ws.write({"loopr.yml": sound})
    fleet.ws.loopr("land", "web", "--yes")
    fleet.ws.write({"loopr.yml": sound.replace("web:", "shop:")})
    fleet.ws.loopr("config", "check")


def test_an_engine_at_work_keeps_the_numbers_of_a_project_that_goes(fleet: Fleet) -> None:
    """Where a project leaves the settings while its plan is at work, that is a problem, and nothing changes."""
    gate = fleet.ws.gate("gate")
    fleet.settings("  web: {max_concurrent: 1}", work="tell $LOOPR_LOOP; wait_at gate\n")
    engine = fleet.ws.begin("start", fleet.plan("web", 2))
    fleet.ws.heard(1)
    sound = (fleet.ws.root / "loopr.yml").read_text()
    fleet.ws.write({"loopr.yml": sound.replace("web:", "shop:")})
    fleet.ws.until("settings_held", 1)
    refused = fleet.ws.loopr("config", "accept", "--yes", code=78)
    assert LOST in refused.err
    explained = fleet.ws.loopr("config", "explain", "projects.web.max_concurrent").out
    assert "held back  null (it is taken out)" in explained
    assert set(fleet.ws.loopr("status", "--json").document["projects"]) == {"default", "web"}
    fleet.ws.write({"loopr.yml": sound})
    gate.open()
    engine.ended(0)


def test_a_repository_that_is_gone_stops_its_own_verbs_only(fleet: Fleet) -> None:
    """What is not there is named by the engine and by doctor, and gc goes on in all others."""
    fleet.found("api", "web")
    fleet.settings(TWO)
    fleet.ws.loopr("start", fleet.plan("api", 1), fleet.plan("web", 1))
    shutil.move(fleet.top("web"), fleet.top("moved"))
    assert "loopr.yml:7:9 projects.web.repo: ../web is not there" in fleet.ws.loopr("run", code=78).err
    found = fleet.ws.loopr("gc", "--dry-run", "--json")
    assert {each["repo"] for each in found.document["kept"] if each["kind"] == "branch"} == {"../api"}
    assert "../web is not there" in found.err
    assert "+api/api-1 for api" in fleet.ws.loopr("diff", "api/api-1").out
    assert fleet.ws.loopr("diff", "web/web-1", code=78).err.startswith("loopr: the repository ../web is not there")
    assert not fleet.ws.loopr("doctor", "--json", code=None).document["ok"]
