"""The checkup: what is sound is said to be, what blocks is named with its remedy, and nothing changes on disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.wiring import Workspace
from loopr.world import host_facts
from loopr.world.bell import Bell
from loopr.world.host_facts import mount_of
from loopr.world.lock import EngineLock
from tests.ui.calls import PLAN, Answer, everything, git, loopr, program, repository

KEYS = ["check", "ok", "text", "hint"]


def workspace(folder: Path) -> Path:
    """Make a workspace with a plan in it."""
    repo = repository(folder)
    loopr("-C", repo, "init")
    (repo / "plan.md").write_text(PLAN)
    assert loopr("-C", repo, "start", "--no-run", "plan.md").code == 0
    return repo


def doctor(folder: Path, *arguments: str) -> Answer:
    """Ask the doctor for a document."""
    return loopr("-C", folder, "doctor", "--json", *arguments)


def rows(answer: Answer, check: str) -> list[dict[str, Any]]:
    """Return what one check found."""
    return [row for row in answer.document["checks"] if row["check"] == check]


def verdict(folder: Path, check: str, *arguments: str) -> tuple[bool | None, str]:
    """Return the first finding of a check, with its remedy; see that the exit code agrees with all findings."""
    answer = doctor(folder, *arguments)
    failed = [row for row in answer.document["checks"] if row["ok"] is False]
    assert answer.code == (78 if failed else 0)
    assert answer.document["ok"] is not bool(failed)
    row = rows(answer, check)[0]
    return row["ok"], f"{row['text']} ({row['hint']})"


# --- sound --------------------------------------------------------------------------------------------------------


def test_a_sound_workspace_has_nothing_wrong(tmp_path: Path) -> None:
    """In a workspace with a plan every check says yes, in words and as a document."""
    repo = workspace(tmp_path)
    said = loopr("-C", repo, "doctor")
    assert said.code == 0, said.out
    assert said.out.endswith("nothing is wrong\n")
    answer = doctor(repo)
    assert answer.document["schema"] == 1
    assert all(list(row) == KEYS for row in answer.document["checks"])
    assert {row["check"]: row["ok"] for row in answer.document["checks"] if row["check"] != "watches"} == dict.fromkeys(
        (
            *("python", "sqlite", "git", "workspace", "repository", "base", "branch names", "checkout", "git config"),
            *("ignored", "settings", "journal", "replay", "engine", "specs"),
            *("processes", "waits", "programs", "judges", "writable", "keys", "disk", "file system"),
        ),
        True,
    )


@pytest.mark.parametrize("damaged", [False, True])
def test_looking_changes_nothing(tmp_path: Path, damaged: bool) -> None:
    """The workspace and git's own files are the same after the checkup, whatever is wrong in them."""
    repo = workspace(tmp_path)
    if damaged:
        (repo / "loopr.yml").write_text("nonsense: [")
        (repo / "specs/Odd Name").mkdir()
        git(repo, "branch", "loopr")
        git(repo, "config", "core.hooksPath", "hooks")
    before = everything(tmp_path)
    for arguments in ([], ["--json"]):
        assert loopr("-C", repo, "doctor", *arguments).code == (78 if damaged else 0)
    assert everything(tmp_path) == before


def test_a_folder_without_anything_is_no_failure(tmp_path: Path) -> None:
    """Where there is neither a repository nor a journal, that is remarked on, and nothing is wrong."""
    answer = doctor(tmp_path)
    assert answer.code == 0
    assert rows(answer, "repository")[0]["ok"] is None
    assert rows(answer, "journal")[0]["ok"] is None
    assert not rows(answer, "replay")
    assert not any(tmp_path.iterdir())


def test_a_repository_without_init_is_no_failure(tmp_path: Path) -> None:
    """Before the first init git ignores nothing of ours, which matters only once there is something."""
    repo = repository(tmp_path)
    assert verdict(repo, "ignored")[0] is None
    (repo / "worktrees").mkdir()
    ok, text = verdict(repo, "ignored")
    assert ok is False
    assert "worktrees/ and .loopr/" in text
    assert "loopr init" in text


# --- the repository -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branch", "prefix", "named"),
    [
        ("loopr", "loopr/", "`git branch -m loopr loopr-old`"),
        ("team", "team/loopr/", "refs/heads/team/…"),
        ("team/loopr", "team/loopr/", "refs/heads/team/loopr/…"),
    ],
)
def test_a_branch_in_the_way_is_named(tmp_path: Path, branch: str, prefix: str, named: str) -> None:
    """A branch that stands where loopr's branches need a folder is wrong, with the command that renames it."""
    repo = repository(tmp_path)
    git(repo, "branch", branch)
    ok, text = verdict(repo, "branch names", "--set", f"git.branch_prefix={prefix}")
    assert ok is False
    assert named in text


def test_a_branch_below_the_prefix_is_in_nobodys_way(tmp_path: Path) -> None:
    """Branches of loopr's own, packed or not, are no obstacle."""
    repo = repository(tmp_path)
    git(repo, "branch", "loopr/auth")
    git(repo, "branch", "loopr-notes")
    git(repo, "pack-refs", "--all")
    assert verdict(repo, "branch names")[0] is True
    git(repo, "branch", "-D", "loopr/auth")
    git(repo, "branch", "loopr")
    git(repo, "pack-refs", "--all")
    assert verdict(repo, "branch names")[0] is False


def test_a_repository_of_somebody_else_is_refused_by_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git refuses to work because of the owner, the remedy is the command that git wants."""
    repo = repository(tmp_path / "it's")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    ok, text = verdict(repo, "repository")
    assert ok is False
    assert "dubious ownership" in text
    assert "git config --global --add safe.directory '" in text


def test_a_repository_of_another_format_is_wrong(tmp_path: Path) -> None:
    """A repository that this git or loopr cannot read is wrong, in git's own words or in ours."""
    repo = repository(tmp_path)
    git(repo, "config", "core.repositoryformatversion", "1")
    git(repo, "config", "extensions.refStorage", "reftable")
    answer = doctor(repo)
    assert answer.code == 78
    wrong = " ".join(row["text"] for row in answer.document["checks"] if row["ok"] is False).lower()
    assert "refstorage" in wrong or "reftable" in wrong


def test_a_bare_repository_is_wrong(tmp_path: Path) -> None:
    """Without a checkout there is nowhere to work."""
    git(tmp_path, "init", "--quiet", "--bare", ".")
    ok, text = verdict(tmp_path, "repository")
    assert ok is False
    assert "git worktree add" in text


@pytest.mark.parametrize(
    ("key", "value", "ok"),
    [
        ("core.worktree", "../elsewhere", False),
        ("core.bare", "true", False),
        ("core.hooksPath", ".husky/_", None),
        ("core.hooksPath", "/opt/hooks", True),
        ("core.fsmonitor", "true", True),
    ],
)
def test_settings_of_git_that_lead_astray(tmp_path: Path, key: str, value: str, ok: bool | None) -> None:
    """A setting that puts the checkout elsewhere is wrong, one that may surprise is remarked on, others are not."""
    repo = repository(tmp_path / "repo")
    (tmp_path / "elsewhere").mkdir()
    git(repo, "config", key, value)
    found, text = verdict(repo, "git config")
    assert found is ok
    if ok is not True:
        assert key in text


def test_a_checkout_that_was_added_to_a_bare_repository(tmp_path: Path) -> None:
    """core.bare is right where the checkout is a worktree of a bare repository."""
    git(repository(tmp_path / "origin"), "clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    git(tmp_path / "bare", "worktree", "add", "--quiet", str(tmp_path / "work"))
    answer = doctor(tmp_path / "work")
    assert answer.code == 0
    assert rows(answer, "git config")[0]["ok"] is True


def test_a_lock_that_a_killed_git_has_left_is_remarked_on(tmp_path: Path) -> None:
    """A lock file that has been there for long is named, one that a git at work may hold is not."""
    repo = repository(tmp_path / "repo")
    (repo / ".git/index.lock").touch()
    old = repo / ".git/packed-refs.lock"
    old.touch()
    os.utime(old, (1_700_000_000, 1_700_000_000))
    answer = doctor(repo)
    assert answer.code == 0
    assert [(row["ok"], str(old) in row["text"]) for row in rows(answer, "checkout")] == [(None, True), (True, False)]


def test_a_submodule_is_a_checkout_like_any_other(tmp_path: Path) -> None:
    """core.worktree is right where it names the checkout it stands for, as in a submodule."""
    repository(tmp_path / "part")
    whole = repository(tmp_path / "whole")
    git(whole, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(tmp_path / "part"), "part")
    assert git(whole / "part", "config", "core.worktree")
    answer = doctor(whole / "part")
    assert answer.code == 0
    assert rows(answer, "git config")[0]["ok"] is True


def test_what_is_in_progress_is_remarked_on(tmp_path: Path) -> None:
    """A merge that has stopped and a bisection are named: nothing lands until they have ended."""
    repo = repository(tmp_path)
    for branch, text in (("side", "one"), ("main", "two")):
        git(repo, "checkout", "--quiet", "-B", branch, "HEAD" if branch == "side" else "HEAD~1")
        (repo / "file").write_text(text)
        git(repo, "add", "file")
        git(repo, "commit", "--quiet", "--message", text)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "side")
    git(repo, "bisect", "start")
    ok, text = verdict(repo, "checkout")
    assert ok is None
    assert "merge, bisect" in text


def test_the_base_is_found_as_git_finds_it(tmp_path: Path) -> None:
    """An unborn branch and a detached HEAD are remarked on; a base that there is not is wrong."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    assert verdict(tmp_path, "base")[0] is None
    repo = repository(tmp_path)
    assert verdict(repo, "base") == (True, f"main at {git(repo, 'rev-parse', 'HEAD')[:12]} (None)")
    git(repo, "checkout", "--quiet", "--detach")
    ok, text = verdict(repo, "base")
    assert ok is None
    assert "detached" in text
    ok, text = verdict(repo, "base", "--set", "git.base=develop")
    assert ok is False
    assert "develop" in text


def test_another_workspace_of_the_repository_is_wrong(tmp_path: Path) -> None:
    """Where the repository has its workspace elsewhere, that is told, and the machine is checked all the same."""
    repo = workspace(tmp_path)
    (repo / "sub/specs").mkdir(parents=True)
    ok, text = verdict(repo / "sub", "workspace")
    assert ok is False
    assert "one repository has one workspace" in text
    assert rows(doctor(repo / "sub"), "git")[0]["ok"] is True


# --- the machine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "ok"), [("2.37.9", False), ("2.38.0", True), ("3.0 (Vendor Git-9)", True)])
def test_git_must_be_able_to_merge_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ok: bool
) -> None:
    """A git from before 2.38 is wrong, and a later one is not, whatever its maker adds to the number."""
    real = shutil.which("git")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\nfor a; do [ "$a" = version ] && echo "git version {version}" && exit; done\nexec "{real}" "$@"\n'
    )
    fake.chmod(0o755)
    repo = repository(tmp_path / "repo")
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    assert verdict(repo, "git")[0] is ok


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git that is the finding, and the other checks are made as far as they can be."""
    repo = repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    ok, text = verdict(repo, "git")
    assert ok is False
    assert "install git" in text
    assert verdict(repo, "settings")[0] is True


def test_what_a_type_names_must_be_installed(tmp_path: Path) -> None:
    """The program of an agent that a type names, and that is not there, is wrong, with the way to install it."""
    repo = workspace(tmp_path)
    (repo / "loopr.yml").write_text(
        "types: {code: {agent: absent}}\nagents: {absent: {extends: codex, run: [no-such-agent], install: fetch it}}\n"
    )
    text = "loopr.yml:1:16 types.code.agent: there is no program no-such-agent"
    hint = "install it with `fetch it`, put its folder on the PATH, or name another agent"
    assert verdict(repo, "programs") == (False, f"{text} ({hint})")


def test_an_edited_artifact_is_seen_without_an_engine(tmp_path: Path) -> None:
    """One that differs from what was read is remarked on, one that is malformed is wrong; nothing is written."""
    repo = workspace(tmp_path)
    (repo / "loopr.yml").write_text("types: {plan: {child: spec}, spec: {child: task}, task: {}}\n")
    (repo / "other.md").write_text("---\nid: p\nspecs: [{id: a, tasks: [{id: x}]}]\n---\n# P\n")
    assert loopr("start", "-C", repo, "--no-run", repo / "other.md").code == 0
    assert verdict(repo, "specs")[0] is True
    spec = repo / "specs/p/a/spec.md"
    spec.write_text("---\ntasks: [{id: x}, {id: y}]\n---\n# A\n")
    before = everything(repo)
    assert verdict(repo, "specs") == (None, "specs/p/a/spec.md differs from what was read (`loopr run` takes it up)")
    spec.write_text("---\ntasks: [\n---\n")
    ok, text = verdict(repo, "specs")
    assert (ok, text.startswith("specs/p/a/spec.md:3:1 ")) == (False, True), text
    spec.write_text("---\ntasks: [{id: x}, {id: y}]\n---\n# A\n")
    assert everything(repo).keys() == before.keys()


def test_what_several_types_name_is_told_once(tmp_path: Path) -> None:
    """One program that is not there is one finding, with all the places that name it."""
    repo = workspace(tmp_path)
    (repo / "loopr.yml").write_text(
        "types:\n  spec: {agent: absent}\n  phase: {agent: absent}\n  code: {agent: absent, check: make test}\n"
        "agents: {absent: {extends: codex, run: [no-such-agent], install: fetch it}}\n"
    )
    ok, text = verdict(repo, "programs")
    assert (ok, text.count("no-such-agent")) == (False, 1)
    assert "types.spec.agent: there is no program" in text
    assert "named too by types.phase.agent (loopr.yml:3:11), types.code.agent (loopr.yml:4:10)" in text


@pytest.mark.parametrize(("check", "ok"), [("", None), (", check: none", True), (", approve: true", True)])
def test_what_nothing_judges_is_remarked_on(tmp_path: Path, check: str, ok: bool | None) -> None:
    """A type that works by itself and has no judge is a remark, unless that is said to be meant."""
    repo = workspace(tmp_path)
    (repo / "loopr.yml").write_text(f"types: {{code: {{run: make{check}}}}}\n")
    assert verdict(repo, "judges")[0] is ok
    assert ok or "nothing judges code: what ends with 0 lands" in verdict(repo, "judges")[1]


def test_a_folder_that_may_not_be_written_to_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that is read-only, or a folder of somebody else's, is told before anything is started there."""
    repo = workspace(tmp_path)
    assert verdict(repo, "writable")[0] is True
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert verdict(repo, "writable")[0] is False
    monkeypatch.undo()
    frozen = SimpleNamespace(f_flag=os.ST_RDONLY, f_bavail=10**9, f_frsize=4096, f_favail=10**9, f_files=10**9)
    monkeypatch.setattr(os, "statvfs", lambda path: frozen)
    ok, text = verdict(repo, "writable")
    assert ok is False
    assert "is on a file system that is read-only (mount it writable" in text


def test_too_little_disk_is_wrong(tmp_path: Path) -> None:
    """Less free disk than the settings want is wrong: nothing would start."""
    ok, text = verdict(tmp_path, "disk", "--set", "worktrees.min_free_gb=900000")
    assert ok is False
    assert "900000 GiB wanted" in text


def test_a_full_disk_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written any more, that is wrong, however little the settings want."""
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    monkeypatch.setattr(host_facts, "LEAST_BYTES", 2 * free)
    ok, text = verdict(tmp_path, "disk", "--set", "worktrees.min_free_gb=0")
    assert ok is False
    assert text.startswith("no space is left")


TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /data rw shared:9 master:2 - nfs4 server:/x rw,vers=4.2
31 22 0:41 / /data/local rw - xfs /dev/vdb rw
32 22 0:42 / /with\\040blank\\134slash rw - fuse.sshfs me@host: rw
33 22 0:43 / /covered rw - cifs //server/share rw
34 33 0:44 / /covered rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/etc", "ext4", False),
        ("/data", "nfs4", True),
        ("/data/repo/.git/loopr", "nfs4", True),
        ("/data2/repo", "ext4", False),
        ("/data/local/repo", "xfs", False),
        ("/with blank\\slash/repo", "fuse.sshfs", True),
        ("/covered/repo", "tmpfs", False),
    ],
)
def test_the_file_system_of_a_path_is_the_nearest_mount(path: str, kind: str, remote: bool) -> None:
    """A path belongs to the longest mount point above it, the latest of equal ones; names are unescaped."""
    mount = mount_of(Path(path), TABLE)
    assert mount is not None
    assert (mount.type, mount.is_remote) == (kind, remote)


# --- what is remembered -------------------------------------------------------------------------------------------


def test_every_problem_of_the_settings_is_a_finding(tmp_path: Path) -> None:
    """Broken settings are told one by one, and keep no other check from being made."""
    repo = workspace(tmp_path)
    (repo / "loopr.yml").write_text("concurrency:\n  max_loops: many\nschedular: {}\n")
    answer = doctor(repo)
    assert answer.code == 78
    assert [(row["ok"], row["text"].split()[0]) for row in rows(answer, "settings")] == [
        (False, "loopr.yml:2:3"),
        (False, "loopr.yml:3:1"),
    ]
    assert rows(answer, "settings")[1]["hint"] == "did you mean scheduler?"
    assert rows(answer, "replay")[0]["ok"] is True


def test_a_damaged_journal_is_wrong(tmp_path: Path) -> None:
    """Bytes that are no database any more are told, with what to do; everything else is still checked."""
    repo = workspace(tmp_path)
    file = repo / ".git/loopr/loopr.db"
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    answer = doctor(repo)
    assert answer.code == 78
    assert rows(answer, "journal")[0]["ok"] is False
    assert "copy" in rows(answer, "journal")[0]["hint"]
    assert rows(answer, "disk")[0]["ok"] is True
    file.write_text("not a database at all, " * 100)
    assert verdict(repo, "journal")[0] is False


def test_a_gap_in_the_journal_is_wrong(tmp_path: Path) -> None:
    """An event that is missing is told, although the file is sound."""
    repo = workspace(tmp_path)
    with_journal(repo, "DELETE FROM events WHERE seq = 2")
    ok, text = verdict(repo, "journal")
    assert ok is False
    assert "missing" in text


def with_journal(repo: Path, statement: str, *values: str) -> list[Any]:
    """Do with the journal what nobody should."""
    connection = apsw.Connection(str(repo / ".git/loopr/loopr.db"))
    found = list(connection.execute(statement, values))
    connection.close()
    return found


def test_a_row_that_no_event_led_to_is_told_from_its_first_event(tmp_path: Path) -> None:
    """A row that was never what the events say parts from them at the first event about it."""
    repo = workspace(tmp_path)
    [(body,)] = with_journal(repo, "SELECT body FROM loops WHERE key = 'auth/tokens'")
    row = json.loads(body)
    changed = json.dumps([*row[:2], "Another title", *row[3:]] if isinstance(row, list) else row | {"title": "Another"})
    with_journal(repo, "UPDATE loops SET body = ? WHERE key = 'auth/tokens'", changed)
    [(first,)] = with_journal(repo, "SELECT min(seq) FROM events WHERE loop = 'auth/tokens'")
    answer = doctor(repo)
    assert answer.code == 78
    assert [row["text"] for row in rows(answer, "replay")] == [
        f"rows and events part at event {first}",
        "loops auth/tokens differs from its events",
    ]


def test_a_row_that_stayed_behind_is_told_from_the_event_it_missed(tmp_path: Path) -> None:
    """A row that is as it once was parts from the events where they went on without it."""
    repo = workspace(tmp_path)
    old = with_journal(repo, "SELECT body FROM loops WHERE key = 'auth/endpoints'")[0][0]
    [(last,)] = with_journal(repo, "SELECT max(seq) FROM events")
    (repo / "plan.md").write_text(PLAN.replace("title: Endpoints", "title: All endpoints"))
    assert loopr("-C", repo, "start", "--no-run", "plan.md").code == 0
    assert verdict(repo, "replay")[0] is True
    query = "SELECT min(seq) FROM events WHERE loop = 'auth/endpoints' AND seq > ?"
    [(missed,)] = with_journal(repo, query, last)
    with_journal(repo, "UPDATE loops SET body = ? WHERE key = 'auth/endpoints'", old)
    ok, text = verdict(repo, "replay")
    assert ok is False
    assert f"part at event {missed} " in text


def test_an_event_that_cannot_be_is_told(tmp_path: Path) -> None:
    """A journal whose events do not follow from each other cannot be replayed, from a certain event on."""
    repo = workspace(tmp_path)
    with_journal(repo, "UPDATE events SET event = 'never_heard_of' WHERE seq = 2")
    answer = doctor(repo)
    assert answer.code == 78
    told = [row["text"] for row in rows(answer, "replay")]
    assert told[0] == "rows and events part at event 2"
    assert "never_heard_of" in told[1]


def test_a_row_that_is_no_row_is_told(tmp_path: Path) -> None:
    """A row that cannot even be read is a finding, not a traceback."""
    repo = workspace(tmp_path)
    with_journal(repo, "UPDATE loops SET body = '{' WHERE key = 'auth'")
    ok, text = verdict(repo, "replay")
    assert ok is False
    assert "cannot be read" in text


def test_who_holds_the_workspace_is_named(tmp_path: Path) -> None:
    """An engine that runs is named with its process, and is nothing wrong."""
    repo = workspace(tmp_path)
    assert verdict(repo, "engine")[1].startswith("none is running")
    with EngineLock.acquire(repo / ".git/loopr/engine.lock", "engine"):
        ok, text = verdict(repo, "engine")
    assert ok is True
    assert f"an engine holds the workspace: pid {os.getpid()} on " in text


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (w.LaneParked("default", "no credit"), "the lane default is parked: no credit"),
        (w.LaneRested("default", 1, 253_402_300_799_000, 0, "full"), "default rests until 9999"),
        (w.ProblemSeen("p/a", "p.lock is held"), "p/a: p.lock is held"),
    ],
)
def test_a_wait_without_an_end_is_wrong(tmp_path: Path, event: Event, words: str) -> None:
    """What waits for a person, or for years, is never told as nothing wrong."""
    repo = workspace(tmp_path)
    with Workspace(repo).visit() as engine:
        engine.mind.decide(lambda forest, now: iter([event]))
    answer = doctor(repo)
    assert answer.code == 78
    (found,) = [row for row in rows(answer, "waits") if row["ok"] is False]
    assert words in found["text"]
    assert found["hint"] or isinstance(event, w.ProblemSeen)


def test_an_engine_that_does_not_look_is_wrong(tmp_path: Path) -> None:
    """An engine that hears no bell is told with the line that ends it."""
    repo = workspace(tmp_path)
    state = repo / ".git/loopr"
    with EngineLock.acquire(state / "engine.lock", "engine"), Bell(state):
        (found,) = rows(doctor(repo), "processes")
    assert found["ok"] is False
    assert f"the engine (pid {os.getpid()}) has not answered" in found["text"]
    assert "loopr stop --now" in found["hint"]


def test_a_state_that_was_left_behind_is_remarked_on(tmp_path: Path) -> None:
    """A journal from before the workspace became a repository is pointed out: nobody reads it any more."""
    (tmp_path / "plan.md").write_text(PLAN)
    loopr("-C", tmp_path, "start", "--no-run", "plan.md")
    assert rows(doctor(tmp_path), "journal")[0]["ok"] is True
    repository(tmp_path)
    found = rows(doctor(tmp_path), "journal")
    assert [row["ok"] for row in found] == [None, None]
    assert "left behind" in found[1]["text"]


def test_odd_files_in_the_tree_are_remarked_on(tmp_path: Path) -> None:
    """Artifacts of loops that nobody declared, links and odd names are named, and nothing is wrong for that."""
    repo = workspace(tmp_path)
    (repo / "specs/stray").mkdir()
    (repo / "specs/stray/plan.md").write_text("# Stray")
    (repo / "specs/auth/Odd\x1b[31m Name").mkdir()
    (repo / "specs/auth/tokens").mkdir()
    (repo / "specs/auth/tokens/code.md").write_text("# At the wrong level")
    answer = doctor(repo)
    assert answer.code == 0
    texts = " ".join(row["text"] for row in rows(answer, "specs"))
    assert all(row["ok"] is None for row in rows(answer, "specs"))
    assert "specs/stray/plan.md belongs to no loop" in texts
    assert "is not a loop's folder" in texts
    assert "is at the level of a spec" in texts
    assert "\x1b" not in loopr("-C", repo, "doctor").out


def test_very_many_odd_files_are_counted(tmp_path: Path) -> None:
    """A tree full of odd names does not drown the other findings."""
    for number in range(50):
        (tmp_path / f"specs/Odd {number}").mkdir(parents=True)
    found = rows(doctor(tmp_path), "specs")
    assert len(found) == 21
    assert found[-1]["text"] == "… and 30 more"


# --- the installed program ----------------------------------------------------------------------------------------


def test_the_program_reports_as_a_process(tmp_path: Path) -> None:
    """As a process of its own the doctor exits 78 where something is wrong, with its findings on stdout."""
    repo = workspace(tmp_path)
    git(repo, "branch", "loopr")
    done = program(repo / "specs", "doctor")
    assert (done.returncode, done.stderr) == (78, b"")
    text = done.stdout.decode()
    assert "wrong  branch names  refs/heads/loopr stands in the way of refs/heads/loopr/…" in text
    assert text.endswith("1 thing is wrong\n")
