"""What is cleared away, what is kept and why, and what only a person lets go."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure
from loopr.ui.homecoming import HOME_LOCK
from loopr.ui.remains import Item, lines_of
from loopr.wiring import Workspace
from loopr.world.launcher.words import OUTCOME, Outcome
from loopr.world.lock import EngineLock
from loopr.world.repo import commits, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.plain import ensure_plain
from loopr.world.repo.words import Message, Worktree
from loopr.world.runs import Runs
from tests.ui.calls import git, loopr, program
from tests.ui.scenes import COMMANDS, NOON, Clock, Desk, flat

DAY_SECS = 86_400


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give the repository of a workspace in which p/a, p/b and p/c are leased and run."""
    shop.start(flat(["a", "b", "c"]))
    shop.choose()
    for each in ("p/a", "p/b", "p/c"):
        shop.run(each)
    return shop.branch()


def work(ground: Ground, name: str, text: str) -> Worktree:
    """Commit a file in the worktree of a loop, as the engine does."""
    tree = worktrees.take(ground, name, git(ground.common, "rev-parse", "refs/heads/loopr/p"))
    (tree.folder / f"{name}.txt").write_text(text)
    commits.commit_attempt(ground, name, 1, Message(f"Work of {name}", at_ms=1))
    return tree


def landed(shop: Desk, ground: Ground, loop: str) -> None:
    """Let a loop do some work and land it; its worktree is not given back, as after a crash."""
    name = f"{loop.replace('/', '.')}.g1"
    work(ground, name, "x\n")
    shop.bring_home(ground, loop, Message("x", at_ms=1))


def rows(shop: Desk, *options: str) -> dict[str, dict[tuple[str, str], str]]:
    """Call gc, and return what went and what was kept, each with its reason."""
    answer = shop("gc", "--json", *options)
    assert answer.code == 0, answer
    body = answer.document
    return {key: {(row["kind"], row["name"]): row["why"] for row in body[key]} for key in ("removed", "kept")}


def restart(shop: Desk, text: str) -> None:
    """Start the plan with other words while loops are at work: that is offered, and a person takes it."""
    assert "`loopr approve p --file`" in shop.start(text, "plan.md", "--yes").err
    assert shop("approve", "p", "--file").code == 0
    assert shop.start(text).code == 0


def refs(shop: Desk) -> list[str]:
    """List all refs."""
    return git(shop.folder, "for-each-ref", "--format=%(refname)").split()


def test_what_is_alike_is_summed_up_by_reason() -> None:
    """Sums come first, with the command that lets all go; what stands alone is named, and with `all_named` each."""
    own = Item("ref", "landed/p.1.g1", "", False, "it landed as one", None, "p/1", landed=True, lets_go=True)
    many = [own._replace(name=f"landed/p.{number}.g1", loop=f"p/{number}") for number in range(30)]
    alone = Item("branch", "p", "", False, "it is new")
    lost = [Item("branch", f"p.{n}.g1", "", False, "it is new", None, f"p/{n}", lets_go=True) for n in (40, 41)]
    items = [alone, *many]
    assert lines_of("kept", items, 80, {"p": 14_200_000}) == [
        "kept  30 refs of landed loops (14 MB): `loopr gc --forget p` lets them go",
        "kept  branch    p  it is new",
    ]
    own_words = "its commits are nowhere else"
    several = lines_of("kept", [each._replace(why=own_words) for each in lost], 120)
    assert several[0].startswith("kept  2 branches: their commits are nowhere else: `loopr gc")
    others = [each._replace(why="nowhere else") for each in lost]
    assert lines_of("kept", others, 90) == [
        "kept  2 branches: nowhere else: `loopr gc --forget LOOP` lets one go (-v names them)"
    ]
    first = [each._replace(first="loopr land p") for each in many]
    assert lines_of("kept", first, 120) == [
        "kept  30 refs of landed loops: `loopr land p`, then `loopr gc --forget p` lets them go"
    ]
    assert len(lines_of("kept", items, 200, all_named=True)) == 1 + 31
    assert lines_of("kept", [own], 120) == [
        "kept  ref       landed/p.1.g1  it landed as one: `loopr gc --forget p/1` lets it go"
    ]


# --- what goes ------------------------------------------------------------------------------------------------------


def test_what_has_landed_goes(shop: Desk, ground: Ground) -> None:
    """Worktree, branch and candidate of a landed loop go; the plan's branch and the loop's own commits stay."""
    landed(shop, ground, "p/a")
    would = rows(shop, "--dry-run")
    assert (ground.worktrees / "p.a.g1").exists()
    done = rows(shop)
    assert done["removed"] == would["removed"]
    assert set(done["removed"]) == {("worktree", "loopr-1"), ("branch", "p.a.g1"), ("ref", "candidate/p.a.g1")}
    assert not (ground.worktrees / "p.a.g1").exists()
    assert refs(shop) == ["refs/heads/loopr/p", "refs/heads/main", "refs/loopr/landed/p.a.g1", "refs/loopr/plans/p"]


@pytest.mark.parametrize("failure", [None, Failure.REFUSED, Failure.CONFIG])
def test_what_is_not_over_stays(shop: Desk, ground: Ground, failure: Failure | None) -> None:
    """Nothing of a running, a waiting or a parked loop goes: it may be tried again in the same worktree."""
    work(ground, "p.a.g1", "x\n")
    if failure is not None:
        shop.end("p/a", failure, "no")
    assert rows(shop) == {
        "removed": {},
        "kept": {("branch", "p"): "in use", ("branch", "p.a.g1"): "in use", ("worktree", "loopr-1"): "in use"},
    }
    assert shop("gc") == (0, "", "3 more in use\n")


def test_an_attempt_of_an_earlier_generation_keeps_its_worktree(shop: Desk, ground: Ground) -> None:
    """While an attempt that was told to stop still lives, the worktree of its generation is in use."""
    work(ground, "p.a.g1", "x\n")
    restart(shop, flat(["a", "b", "c"]).replace("{id: a}", "{id: a, body: other}"))
    assert (shop.loop("p/a").generation, shop.loop("p/a").ending is not None) == (2, True)
    assert rows(shop)["removed"] == {}
    shop.see(o.StopSeen("p/a", 1))
    assert set(rows(shop)["removed"]) == {("worktree", "loopr-1")}


def test_work_that_has_not_landed_is_told(shop: Desk, ground: Ground) -> None:
    """The branch of a cancelled loop stays with its whole reason, however narrow the screen."""
    work(ground, "p.a.g1", "x\n")
    shop.wish(wishes.cancel, "p/a", "ada")
    shop.see(o.StopSeen("p/a", 1))
    answer = shop("gc")
    assert "removed  worktree  p.a.g1  all that was in it is safe elsewhere\n" in answer.out
    text = " ".join(answer.out.split())
    assert "kept branch p.a.g1 its commits have not landed: `loopr gc --forget p/a` lets it go" in text


def test_a_worktree_with_a_process_in_it_stays(shop: Desk, ground: Ground) -> None:
    """A folder in which somebody works is not taken from under them."""
    landed(shop, ground, "p/a")
    with subprocess.Popen(["cat"], cwd=ground.worktrees / "p.a.g1", stdin=subprocess.PIPE) as process:
        assert rows(shop)["kept"]["worktree", "loopr-1"] == f"process {process.pid} works in it"
    assert ("worktree", "loopr-1") in rows(shop)["removed"]


def test_a_plan_on_its_way_home_keeps_its_room(shop: Desk, ground: Ground) -> None:
    """The worktree in which a plan is judged stays while `loopr land` is at work, and goes if that was killed."""
    base = git(shop.folder, "rev-parse", "main")
    worktrees.take(ground, "p.home", base)
    with EngineLock.acquire(ground.state / HOME_LOCK, "turn"):
        assert rows(shop)["removed"] == {}
    assert ("worktree", "loopr-1") in rows(shop)["removed"]


def test_beside_an_engine(shop: Desk, ground: Ground) -> None:
    """While an engine serves the workspace the same goes."""
    landed(shop, ground, "p/a")
    with EngineLock.acquire(Workspace(shop.folder).place.lock, "engine"):
        assert ("worktree", "loopr-1") in rows(shop)["removed"]


# --- run folders ----------------------------------------------------------------------------------------------------


def ran(runs: Runs, name: str, attempt: int, days: float, step: str = "") -> Path:
    """Make the folder of a run that ended some days before noon."""
    folder = runs.ensure(name, attempt)
    folder = runs.ensure(name, attempt, step) if step else folder
    (folder / OUTCOME).write_text(json.dumps(Outcome("exited", 0)._asdict()))
    (folder / "stdout.log").write_text("x\n")
    for each in (folder / OUTCOME, folder / "stdout.log", folder):
        os.utime(each, (NOON / 1000 - days * DAY_SECS,) * 2)
    return folder


def test_old_runs_of_what_is_over(shop: Desk, ground: Ground) -> None:
    """Run folders go once they are older than they are kept, and only of loops that are over; hooks' one by one."""
    runs = Runs(Workspace(shop.folder).place.state)
    landed(shop, ground, "p/a")
    old = [ran(runs, "p.a.g1", 1, 31), ran(runs, "gone.g1", 4, 40), ran(runs, "hooks", 0, 31, "on_park.1.1")]
    young = [ran(runs, "p.a.g1", 2, 29), ran(runs, "p.b.g1", 1, 99), ran(runs, "hooks", 0, 1, "on_park.2.2")]
    os.utime(runs.folder("hooks", 0), (1, 1))
    told = {name for kind, name in rows(shop, "-n")["removed"] if kind == "run"}
    assert told == {"p.a.g1/1", "gone.g1/4", "hooks/0/on_park.1.1"}
    assert all(each.exists() for each in (*old, *young))
    rows(shop)
    assert [each.exists() for each in (*old, *young)] == [False, False, False, True, True, True]
    assert not (runs.root / "gone.g1").exists()


def test_how_long_runs_are_kept(shop: Desk, ground: Ground) -> None:
    """logs.keep_days says when a run folder is old; a young file in it keeps the whole."""
    runs = Runs(Workspace(shop.folder).place.state)
    folder = ran(runs, "gone.g1", 1, 3)
    assert rows(shop)["removed"] == {}
    shop("set", "logs.keep_days", "2")
    os.utime(folder / "stdout.log", (NOON / 1000,) * 2)
    assert rows(shop)["removed"] == {}
    os.utime(folder / "stdout.log", (1, 1))
    assert rows(shop)["removed"] == {("run", "gone.g1/1"): "older than logs.keep_days (2)"}


def test_without_a_repository(tmp_path: Path) -> None:
    """Where there is no git there are run folders all the same."""
    (tmp_path / "specs").mkdir()
    assert loopr("pause", "--all", "-C", tmp_path).code == 0
    ran(Runs(tmp_path / ".loopr"), "gone.g1", 1, 10_000)
    answer = loopr("gc", "-C", tmp_path)
    assert (answer.code, answer.out.split()[:3]) == (0, ["removed", "run", "gone.g1/1"])
    assert loopr("gc", "-C", tmp_path).err == "there is nothing to clear away\n"


def test_folders_without_a_repository(tmp_path: Path, clock: Clock) -> None:
    """Where there is no git the folders of loops that are over go; those of others, and a person's, stay."""
    desk = Desk(tmp_path, clock)
    desk.write("loopr.yml", COMMANDS)
    desk.start(flat(["a", "b"]))
    desk.choose()
    for each in ("a", "b"):
        desk.run(f"p/{each}")
        ensure_plain(tmp_path / "worktrees", f"p.{each}.g1")
    desk.end("p/a")
    desk.judge("p/a")
    desk.see(o.LandingDone("p/a", 1, "", "d", None))
    (tmp_path / "worktrees/mine").mkdir()
    (tmp_path / "worktrees/mine/notes").write_text("x")
    assert loopr("gc", "--dry-run", "-C", tmp_path).out.split()[:4] == ["would", "go", "folder", "p.a.g1"]
    answer = loopr("gc", "-C", tmp_path)
    assert (answer.out.split()[:3], answer.err) == (["removed", "folder", "p.a.g1"], "1 more in use\n")
    left = {each.name for each in (tmp_path / "worktrees").iterdir() if not each.name.startswith(".")}
    assert left == {"p.b.g1", "mine"}


# --- forgetting -----------------------------------------------------------------------------------------------------


def test_forgetting_landed_work_that_nobody_declares(shop: Desk, ground: Ground) -> None:
    """The reminder of a loop that is no longer declared ends, and its refs go."""
    landed(shop, ground, "p/a")
    restart(shop, flat(["b", "c"]))
    assert any("git revert" in line for line in shop.lines("status"))
    rows(shop)
    would = shop("gc", "--forget", "p/a", "-n", "--json").document
    assert any("git revert" in line for line in shop.lines("status"))
    answer = shop("gc", "--forget", "p/a", "-y", "--json").document
    assert answer["forgotten"] == would["forgotten"] == ["p/a"]
    assert [row["name"] for row in answer["removed"]] == ["landed/p.a.g1"]
    assert not any("git revert" in line for line in shop.lines("status"))
    assert "refs/loopr/landed/p.a.g1" not in refs(shop)


def test_forgetting_beside_an_engine(shop: Desk, ground: Ground) -> None:
    """The engine that serves the workspace is not in the way."""
    landed(shop, ground, "p/a")
    restart(shop, flat(["b", "c"]))
    rows(shop)
    with EngineLock.acquire(Workspace(shop.folder).place.lock, "engine"):
        assert shop("gc", "--forget", "p/a", "-y").code == 0
    assert not any("git revert" in line for line in shop.lines("status"))


def test_work_that_is_nowhere_else_goes_only_by_name(shop: Desk, ground: Ground) -> None:
    """The commits of a cancelled loop go when a person says so, not before, and not while its folder is there."""
    work(ground, "p.a.g1", "x\n")
    shop.wish(wishes.cancel, "p/a", "ada")
    shop.see(o.StopSeen("p/a", 1))
    answer = shop("gc", "--forget", "p/a", "-y")
    assert (answer.code, "loopr/p.a.g1 is in" in answer.err) == (2, True)
    rows(shop)
    ran = program(shop.folder, "gc", "--forget", "p/a")
    assert (ran.returncode, b"--yes goes on" in ran.stderr) == (2, True)
    assert "refs/heads/loopr/p.a.g1" in refs(shop)
    assert shop("gc", "--forget", "p/a", "-y").code == 0
    assert not any("p.a.g1" in each for each in refs(shop))


def test_what_is_not_over_cannot_be_forgotten(shop: Desk, ground: Ground) -> None:
    """A loop that may go on, and a plan that is not done, are refused."""
    for loop in ("p/a", "p"):
        answer = shop("gc", "--forget", loop, "-y")
        assert (answer.code, f"cannot forget {loop}: it is not over" in answer.err) == (2, True)


def test_the_branch_of_a_plan_goes_once_it_is_home(shop: Desk, ground: Ground) -> None:
    """A plan that is done keeps its branch until a person lets it go, which needs its work to be elsewhere."""
    restart(shop, flat(["a"]))
    for loop in ("p/b", "p/c"):
        shop.see(o.StopSeen(loop, 1))
    landed(shop, ground, "p/a")
    rows(shop)
    body = shop("tree", "--json").document["loops"]
    assert all(row["status"] == "complete" for row in body), body
    assert "`loopr land p` brings it home" in rows(shop)["kept"]["branch", "p"]
    answer = shop("gc", "--forget", "p", "-y")
    assert (answer.code, "`loopr land` brings it home" in answer.err) == (2, True)
    assert shop("land", "p", "-y").code == 0
    assert "may go on" in rows(shop)["kept"]["branch", "p"]
    assert shop("gc", "--forget", "p", "-y").code == 0
    assert [each for each in refs(shop) if each != "refs/loopr/landed/p.a.g1"] == ["refs/heads/main"]
    home = git(shop.folder, "rev-parse", "main")
    assert Workspace(shop.folder).look().scene.shared.plans["p"].base_commit == home, "what landed is where it begins"


# --- forgetting many ------------------------------------------------------------------------------------------------


def test_a_plan_that_goes_on_lets_go_what_is_over(shop: Desk, ground: Ground) -> None:
    """All refs of loops that have landed go with one word; who is not over is counted, and keeps everything."""
    landed(shop, ground, "p/a")
    landed(shop, ground, "p/b")
    work(ground, "p.c.g1", "x\n")
    rows(shop)
    before = refs(shop)
    assert "would go  2 refs of landed loops" in shop("gc", "--forget", "p", "-n").out
    ran = program(shop.folder, "gc", "--forget", "p")
    assert (ran.returncode, b"forget 2 loops of p (2 refs" in ran.stderr) == (2, True)
    assert refs(shop) == before
    answer = shop("gc", "--forget", "p", "-y")
    assert (answer.code, answer.err) == (0, "forgotten: 2 of 4 loops of p; 1 is not done, 1 is running\n")
    assert refs(shop) == [each for each in before if "landed" not in each]
    assert ("branch", "p.c.g1") in rows(shop)["kept"]


def test_a_plan_is_forgotten_with_what_nobody_declares(shop: Desk, ground: Ground) -> None:
    """With a plan the reminders of all loops below it end that are no longer declared, each once."""
    landed(shop, ground, "p/a")
    landed(shop, ground, "p/b")
    restart(shop, flat(["c"]))
    reminders = [line for line in shop.lines("status") if "no longer declared" in line]
    assert len(reminders) == 2
    shop("gc", "--forget", "p", "-n")
    assert shop.lines("status") != []
    assert shop("gc", "--forget", "p", "-y").code == 0
    assert not any("no longer declared" in line for line in shop.lines("status"))
    assert (shop.loop("p/a").landed, shop.loop("p/b").landed) == ("", "")
    shop("gc", "--forget", "p", "-y")
    told = [json.loads(line)["event"] for line in shop.lines("events", "--json")]
    assert told.count("forgotten") == 2


def test_of_many_nothing_goes_that_is_nowhere_else(shop: Desk, ground: Ground) -> None:
    """The commits of a cancelled loop stay when its plan or a convoy is forgotten, and are named."""
    landed(shop, ground, "p/a")
    work(ground, "p.b.g1", "x\n")
    shop.wish(wishes.cancel, "p/b", "ada")
    shop.see(o.StopSeen("p/b", 1))
    rows(shop)
    shop.wish(wishes.form_convoy, "c", ("p/a", "p/b"))
    body = shop("gc", "--forget", "@c", "-y", "--json").document
    assert (body["forgotten"], [each["name"] for each in body["removed"]]) == (["p/a", "p/b"], ["landed/p.a.g1"])
    assert [each["why"] for each in body["kept"]] == ["its commits have not landed: `loopr gc --forget p/b` lets it go"]
    assert "refs/heads/loopr/p.b.g1" in refs(shop)
    assert shop("gc", "--forget", "p/b", "-y").code == 0
    assert "refs/heads/loopr/p.b.g1" not in refs(shop)


def test_a_plan_that_is_home_lets_go_by_itself(shop: Desk, ground: Ground, clock: Clock) -> None:
    """The refs of landed loops go once their plan was done, and is home, for longer than logs are kept."""
    restart(shop, flat(["a"]))
    for loop in ("p/b", "p/c"):
        shop.see(o.StopSeen(loop, 1))
    landed(shop, ground, "p/a")
    rows(shop)
    days = Workspace(shop.folder).settings.logs.keep_days
    clock.at += int((days + 1) * DAY_SECS * 1000)
    assert ("ref", "landed/p.a.g1") in rows(shop)["kept"], "it is not home"
    assert shop("land", "p", "-y").code == 0
    assert rows(shop, "--dry-run")["removed"].keys() == {("ref", "landed/p.a.g1")}
    why = rows(shop)["removed"]["ref", "landed/p.a.g1"]
    assert "is home" in why and "logs.keep_days" in why
    assert "refs/loopr/landed/p.a.g1" not in refs(shop) and "refs/heads/loopr/p" in refs(shop)
