"""Loops that change what is not theirs, each beside two honest ones that land without a person."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

PLAN = "---\nchildren: [{id: a}, {id: b}, {id: c}]\n---\n# Demo\n"
AT_GATE = "tell ready; wait_at rest; echo b > b.txt"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a branch that nobody has checked out."""
    with opened(tmp_path) as found:
        found.found()
        found.git("branch", "side")
        yield found


def ready(repo: Repo, deed: str, *, more: str = "", text: str = "") -> None:
    """Set a plan up of which the first loop does something, once all have begun, and the others wait for it."""
    script = f'''
case "$LOOPR_LOOP#$LOOPR_ATTEMPT" in
  "demo/a#1") tell ready; wait_at deed; {{ {deed}
  }} > "$DESK/said" 2>&1; tell done ;;
  *"#1") tell ready; wait_at rest ;;
esac
echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP").txt"'''
    run = repo.script("code", script)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: 'ls *.txt'{more}}}\n{text}")
    repo.write({"plan.md": PLAN})


def side_by_side(repo: Repo, deed: str, **settings: str) -> Process:
    """Let the first loop do its deed while the other two are at work, and end; then let those end."""
    ready(repo, deed, **settings)
    deeds, rest = repo.gate("deed"), repo.gate("rest")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    deeds.open()
    repo.heard(1)
    repo.until("work_ended")
    rest.open()
    return process


def alone(repo: Repo, deed: str) -> Process:
    """Let the first loop do its deed while nothing else is at work."""
    ready(repo, deed, text="concurrency: {max_loops: 1}\n")
    for name in ("deed", "rest"):
        repo.gate(name).open()
    return repo.begin("start", "plan.md")


def landed(repo: Repo) -> set[str]:
    """Name the loops that have landed."""
    return {each for each, _, _ in repo.landed("demo")}


# --- programs ---------------------------------------------------------------------------------------------------------

PLANTED = {
    "a filter": "echo '* filter=e' > .gitattributes; git config filter.e.clean 'sh $DESK/ran.sh'",
    "fsmonitor": "git config core.fsmonitor 'sh $DESK/ran.sh'",
    "settings of the worktree": "echo '* filter=e' > .gitattributes; git config extensions.worktreeConfig true; "
    "git config --worktree filter.e.process 'sh $DESK/ran.sh'",
    "attributes beside the settings": "git config diff.external 'sh $DESK/ran.sh'; "
    'echo "* filter=e" > "$LOOPR_WORKSPACE/.git/info/attributes"; git config filter.e.smudge "sh $DESK/ran.sh"',
    "a hook": 'for each in post-index-change reference-transaction; do printf "#!/bin/sh\\nsh $DESK/ran.sh\\n" > x; '
    'chmod +x x; mv x "$LOOPR_WORKSPACE/.git/hooks/$each"; done',
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_never_runs(repo: Repo, kind: str) -> None:
    """A program that a loop plants runs neither as the engine nor at the person's next look; all others land."""
    (repo.desk / "ran.sh").write_text('echo ran >> "$DESK/ran"; cat\n')
    process = side_by_side(repo, f"{PLANTED[kind]}; rm -f $DESK/ran")
    process.ended()
    for words in ("status", "diff", "log -p -1"):
        repo.git(*words.split())
    assert repo.note("ran") == ""
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    (harm,) = repo.events("shared_harmed")
    assert harm["data"]["during"] == ["demo/a", "demo/b", "demo/c"]
    assert "is put back" in " ".join(harm["data"]["names"])


def test_one_that_was_alone_is_parked(repo: Repo) -> None:
    """Where nothing else was at work there is no doubt: the loop is parked with what it did, and the others land."""
    alone(repo, PLANTED["fsmonitor"]).ended(1)
    loops = repo.loops()
    assert loops["demo/a"]["status"] == "parked"
    assert "config core.fsmonitor (is put back)" in loops["demo/a"]["reason"]
    assert landed(repo) == {"demo/b", "demo/c"}


@pytest.mark.parametrize("garbage", ["'['", "'\\0\\377'"])
def test_settings_that_git_cannot_read_come_back(repo: Repo, garbage: str) -> None:
    """Garbage in the settings of the repository is put back from what is kept; nobody is parked, and git works."""
    before = repo.git("config", "--list", "--local")
    process = side_by_side(repo, f'printf {garbage} > "$LOOPR_WORKSPACE/.git/config"')
    process.ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.git("config", "--list", "--local") == before
    (harm,) = repo.events("shared_harmed")
    assert "config (git could not read it; is put back; what it was is kept as" in harm["data"]["names"][0]


SLIPS = {
    "hooks by npm install": ("git config core.hooksPath .husky/_", "config core.hookspath (is put back"),
    "another remote": ("git remote add upstream ../up", "config remote.upstream.url"),
    "the only remote": ("git remote remove origin; git remote add new ../up", "config remote.new.url (is put back)"),
    "a sparse checkout": ("git sparse-checkout set src", "config extensions.worktreeconfig"),
    "line ends": ("git config core.autocrlf input", "config core.autocrlf (is put back)"),
}


@pytest.mark.parametrize("kind", SLIPS)
def test_honest_work_parks_nobody(repo: Repo, kind: str) -> None:
    """What tools set by themselves is told, put back where it leads a person elsewhere, and its loop lands."""
    deed, told = SLIPS[kind]
    if "remove" in deed:
        deed = deed.partition("; ")[2]
    else:
        repo.git("remote", "add", "origin", "../origin")
    before = repo.git("config", "--list", "--local")
    repo.write({"src/x.txt": "x\n", "lib/y.txt": "y\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=files")
    alone(repo, deed).ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert told in " ".join(name for each in repo.events("shared_grew") for name in each["data"]["names"])
    assert repo.events("shared_harmed") == []
    assert repo.git("ls-tree", "-r", "--name-only", "loopr/demo", "src", "lib").split() == ["lib/y.txt", "src/x.txt"]
    if "is put back" in told:
        assert repo.git("config", "--list", "--local") == before


def test_the_way_back_is_named_where_no_engine_lives(repo: Repo) -> None:
    """Settings that git cannot read, and no engine to put them back: `run` and `doctor` name the line that does."""
    before = repo.git("config", "--list", "--local")
    alone(repo, "true").ended()
    (repo.root / ".git/config").write_text("[")
    line = f"cp {repo.state}/kept/config {repo.root}/.git/config"
    assert line in repo.loopr("run", code=78).err
    said = repo.loopr("doctor", code=78).out
    assert line in said and "nothing has been committed" not in said
    subprocess.run(line.split(), check=True)
    assert repo.git("config", "--list", "--local") == before


def test_a_judge_that_plants_is_seen_too(repo: Repo) -> None:
    """What a check does to others, since it runs what a loop has written, is that loop's doing."""
    ready(repo, "true", more=", parallel: false", text="concurrency: {max_loops: 1}\n")
    check = repo.script("check", 'test "$LOOPR_LOOP" != demo/a || git config alias.st "!touch x"')
    repo.settings((repo.root / "loopr.yml").read_text().partition("\n")[2].replace("'ls *.txt'", f"'{check}'"))
    for name in ("deed", "rest"):
        repo.gate(name).open()
    repo.loopr("start", "plan.md", code=1)
    assert repo.loops()["demo/a"]["status"] == "parked"
    assert "config alias.st (is put back)" in repo.loops()["demo/a"]["reason"]
    assert landed(repo) == {"demo/b", "demo/c"}


@pytest.mark.parametrize("engine", [True, False])
def test_a_pull_worker_is_watched(repo: Repo, engine: bool) -> None:
    """What a pull worker plants does not run when its work is taken in, with an engine beside it or one that comes."""
    (repo.desk / "ran.sh").write_text('echo ran >> "$DESK/ran"; cat\n')
    repo.settings("types:\n  plan: {child: code}\n  code: {}\n")
    repo.write({"plan.md": PLAN.replace("{id: b}", f"{{id: b, run: '{repo.script('b', AT_GATE)}'}}")})
    gate = repo.gate("rest")
    repo.loopr("start", "--no-run", "plan.md")
    process = repo.begin("run") if engine else None
    if engine:
        repo.heard(1)
    (lease,) = repo.loopr("lease", "take", "--json").document["leases"]
    tree = Path(lease["worktree"])
    (tree / ".gitattributes").write_text("* filter=e\n")
    repo.git("config", "filter.e.clean", "sh $DESK/ran.sh", cwd=tree)
    repo.loopr("lease", "complete", lease["lease"])
    process = process or repo.begin("run")
    repo.until("shared_harmed")
    gate.open()
    process.ended(None)
    assert repo.note("ran") == ""
    assert (repo.statuses()[lease["loop"]] == "parked") is not engine, "with an engine another loop was at work"
    assert "demo/b" in landed(repo)


# --- branches ---------------------------------------------------------------------------------------------------------

COMMIT = "echo x > wrong && git add wrong && git commit -qm wrong"
BESIDE = (
    'git -C "$LOOPR_WORKSPACE" worktree add -q "$DESK/x" side && cd "$DESK/x" && '
    f"git switch -q --ignore-other-worktrees main && {COMMIT}"
)
LOGS_GONE = 'rm -rf "$LOOPR_WORKSPACE/.git/logs"'
MOVED = f"{LOGS_GONE}; git update-ref refs/heads/main $(git commit-tree -p main -m x HEAD^{{tree}})"


def test_a_commit_in_the_wrong_checkout_is_told_and_stays(repo: Repo) -> None:
    """An honest agent that works in the person's checkout: its commit stays on main and is told, and all land."""
    process = side_by_side(repo, f'cd "$LOOPR_WORKSPACE" && {COMMIT}; cd - >&2')
    process.ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.git("log", "-1", "--format=%s", "main") == "wrong"
    (moved,) = repo.events("branch_moved")
    assert (moved["data"]["branch"], moved["data"]["explained"]) == ("main", True)
    words = "main moved while demo/a, demo/b, demo/c ran: by your checkout"
    assert words in repo.loopr("status").out
    assert words in repo.loopr("events").out
    assert repo.events("shared_harmed") == []
    repo.loopr("land", "demo", "--yes")
    assert repo.loopr("status", "--json").document["moved"] == []


def test_a_checkout_that_a_loop_made_explains_nothing(repo: Repo) -> None:
    """A loop that commits on main in a checkout of its own: main is back as the person's checkout has it."""
    process = side_by_side(repo, f"({BESIDE})")
    process.ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.git("log", "-1", "--format=%s", "main") == "settings"
    assert repo.git("status", "--porcelain", "--untracked-files=no") == ""
    (harm,) = repo.events("shared_harmed")
    assert "refs/heads/main (was " in harm["data"]["names"][0]
    assert "is put back; what it was moved to is kept as refs/loopr/backup/put-back/" in harm["data"]["names"][0]


@pytest.mark.parametrize(
    "deed",
    [
        "git update-ref refs/heads/side $(git commit-tree -m x HEAD^{tree})",
        "git branch -D side",
        "git branch -m side x",
    ],
)
def test_a_branch_that_no_checkout_has_is_put_back(repo: Repo, deed: str) -> None:
    """A branch of a person's that a loop moves, deletes or renames is where it was, and nobody is parked for it."""
    side = repo.git("rev-parse", "side")
    side_by_side(repo, deed).ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.git("rev-parse", "side") == side


def test_landing_asks_where_no_checkout_explains_a_move(repo: Repo) -> None:
    """Where a checkout has the branch and says nothing of its move, it stays, the line is told, and `land` asks."""
    side_by_side(repo, MOVED).ended()
    first = repo.git("rev-parse", "main~1")[:12]
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    line = f"`git -C {repo.root} reset --keep {first}` takes it back"
    assert line in repo.loopr("status").out
    assert "`loopr land` onto main asks first" in repo.loopr("status").out
    refused = repo.loopr("land", "demo", code=None)
    assert refused.code not in (0, 1) and "by none of your checkouts" in refused.err
    repo.loopr("land", "demo", "--yes")
    assert "moved" not in repo.loopr("status").out


def test_a_plan_does_not_come_home_by_itself_over_such_a_move(repo: Repo) -> None:
    """`land.mode: auto` leaves it to a person, and says so."""
    side_by_side(repo, MOVED, text="land: {mode: auto}\n").ended(None)
    assert repo.events("plan_came_home") == []
    assert "`loopr land demo` asks" in repo.loopr("status").out


def test_a_branch_of_ones_own_may_grow(repo: Repo) -> None:
    """A branch that came while loops ran is nobody else's: whoever goes on with it harms nobody."""
    deed = (
        "git branch topic; tell made; wait_at more; git update-ref refs/heads/topic $(git commit-tree -m x HEAD^{tree})"
    )
    ready(repo, deed)
    gates = {name: repo.gate(name) for name in ("deed", "more", "rest")}
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    gates["deed"].open()
    repo.heard(1)
    gates["rest"].let_on(1)
    repo.until("work_ended")
    gates["more"].open()
    repo.heard(1)
    gates["rest"].open()
    process.ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.events("shared_harmed") == []


# --- who is to blame --------------------------------------------------------------------------------------------------


def test_suspects_are_kept_apart_until_one_is_found(repo: Repo) -> None:
    """A loop that harms at each try is found once the others no longer run beside it; those have landed long since."""
    harm = "git config alias.st '!touch x'"
    script = f"""
case "$LOOPR_LOOP#$LOOPR_ATTEMPT" in
  *"#1") tell ready; wait_at rest; test "$LOOPR_LOOP" != demo/a || {harm}; exit 1 ;;
  "demo/a#"*) {harm} ;;
esac
begin; echo x > "$(basename "$LOOPR_LOOP").txt"; end"""
    run = repo.script("code", script)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n")
    repo.write({"plan.md": PLAN})
    rest = repo.gate("rest")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    rest.open()
    process.ended(None)
    assert repo.events("shared_harmed")
    assert landed(repo) >= {"demo/b", "demo/c"}
    assert repo.git("config", "--list", "--local").count("alias.st") == 0


def test_what_was_done_while_no_engine_lived_is_seen(repo: Repo) -> None:
    """An engine that takes over puts back what was changed since the last one looked; nothing planted runs."""
    (repo.desk / "ran.sh").write_text('echo ran >> "$DESK/ran"; cat\n')
    ready(repo, f"{PLANTED['a filter']}; rm -f $DESK/ran")
    deeds, rest = repo.gate("deed"), repo.gate("rest")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    repo.until("attempt_started", 3)
    process.kill()
    deeds.open()
    repo.heard(1, attached=False)
    again = repo.begin("run")
    repo.until("work_ended")
    rest.open()
    again.ended()
    assert landed(repo) == {"demo/a", "demo/b", "demo/c"}
    assert repo.note("ran") == ""
    (harm,) = repo.events("shared_harmed")
    assert harm["data"]["names"] == ["config filter.e.clean (is put back)"]
    assert (repo.root / ".git/loopr/kept/config").exists()
