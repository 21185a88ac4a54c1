"""A repository with a folder `specs/` of its own: what loops change there lands, but for the folders of plans."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import LOOPR, PATIENCE_SECS, Repo, opened

API = "specs/api/openapi.yaml"
FILES = {API: "openapi: 3\n", "specs/README.md": "Ours.\n"}
EDIT = f"echo x >> {API}"
SEES = f"grep -q x {API}"
TYPES = "types:\n  plan: {child: task}\n  task: {max_iterations: 2}\n"
NEVER = "no file changed"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a folder of specs of its own."""
    with opened(tmp_path) as found:
        yield found.found(FILES)


def plan(repo: Repo, name: str, *tasks: str, file: str = "") -> str:
    """Write and commit a plan of tasks, and return the name of its file."""
    file = file or f"{name}.md"
    rows = "".join(f"  - {each}\n" for each in tasks)
    repo.write({file: f"---\nid: {name}\ntasks:\n{rows}---\n# {name}\n"})
    repo.git("add", "--all", "--", ".", ":!loopr.yml")
    repo.git("commit", "--quiet", "--message=a plan")
    return file


def task(repo: Repo, name: str, run: str, check: str = "true") -> str:
    """Write a task whose command is a script on the desk."""
    return f"{{id: {name}, run: '{repo.script(name, run)}', check: '{check}'}}"


def calls(repo: Repo) -> dict[str, dict[str, Any]]:
    """Return what was left out, as the list of what needs a person has it, by loop."""
    rows = repo.loopr("status", "--json").document["inbox"]
    return {row["about"][0]: row for row in rows if row["kind"] == "left out"}


def shown(repo: Repo, loop: str) -> list[str]:
    """Type the command of a row where a person would, and return the lines that it adds or takes away."""
    done = subprocess.run(
        ["sh", "-c", calls(repo)[loop]["command"]], cwd=repo.root, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def typed(repo: Repo, *words: str, answer: str) -> tuple[int, str]:
    """Type a command on a terminal, and answers where it asks."""
    master, slave = pty.openpty()
    try:
        streams = {"stdin": slave, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([str(LOOPR), *words], cwd=repo.root, env=repo.env, **streams)  # type: ignore[call-overload]
        os.write(master, answer.encode())
        out, err = process.communicate(timeout=PATIENCE_SECS)
    finally:
        os.close(master)
        os.close(slave)
    return process.returncode, (out + err).decode()


def test_what_is_the_repositorys_own_lands(repo: Repo) -> None:
    """Edits and new files below specs/ land as any other, and the judge has seen just that tree."""
    repo.settings(TYPES)
    new = "echo y > specs/api/new.yaml; echo r >> specs/README.md; echo z > z.txt"
    file = plan(
        repo,
        "p",
        task(repo, "t", f"{EDIT}; {new}", SEES),
        f"{{id: u, needs: [t], run: 'echo u >> {API}', check: 'grep -q u {API}'}}",
    )
    repo.loopr("start", "--yes", file)
    assert repo.on_branch("p", API) == "openapi: 3\nx\nu"
    assert [repo.on_branch("p", each) for each in ("specs/api/new.yaml", "specs/README.md")] == ["y", "Ours.\nr"]
    assert calls(repo) == {}
    repo.loopr("land", "--yes", "p")
    assert (repo.root / API).read_text() == "openapi: 3\nx\nu\n"


def test_the_folder_of_a_plan_never_lands(repo: Repo) -> None:
    """It is put back before the judge looks; the loop and the person are told, with what shows it."""
    repo.settings(TYPES)
    edits = f'{EDIT}; echo y > specs/api/new.yaml; echo z > z.txt; cat .loopr/feedback.md >> "$DESK/fed"'
    file = plan(
        repo,
        "api",
        task(repo, "t", edits, SEES),
        task(repo, "u", EDIT, f"! {SEES}"),
        f"{{id: v, run: 'git mv {API} moved.yaml', check: 'test -f {API} && test -f moved.yaml'}}",
    )
    said = repo.loopr("start", "--yes", file, code=1)
    assert f"git tracks {API} in the folder of api: what loops change there is put back" in said.err
    assert repo.statuses() == {"api": "complete", "api/t": "failed", "api/u": "complete", "api/v": "complete"}
    assert NEVER not in said.err
    assert NEVER not in (tree := repo.loopr("tree").out)
    assert f"put back: {API} (changed)" in tree
    assert f"put back before that: specs/api/new.yaml, {API}" in repo.loopr("why", "api/t").out
    fed = repo.note("fed")
    assert f"- specs/api/new.yaml (added)\n- {API} (changed)\n" in fed
    assert "never land" in fed
    rows = calls(repo)
    assert set(rows) == {"api/t", "api/u", "api/v"}
    assert not any(row["stops"] for row in rows.values())
    assert rows["api/u"]["text"] == f"put back: {API} (changed); specs/api/ is loopr's, and never lands"
    assert shown(repo, "api/t") == ["+y", "+x"]
    assert shown(repo, "api/u") == ["+x"]
    assert shown(repo, "api/v") == ["-openapi: 3"]
    assert repo.git("diff", "--name-only", "main", "loopr/api") == "moved.yaml"
    assert "left out  api/u: put back" in repo.loopr("status").out


def test_the_row_goes_with_work_that_leaves_the_files_alone_and_when_the_plan_is_home(repo: Repo) -> None:
    """A later try that touches nothing takes it back, and so does a landing; a next engine keeps it."""
    repo.settings(TYPES)
    once = f'test -e "$DESK/once" || {{ touch "$DESK/once"; {EDIT}; exit 1; }}; echo a > a.txt'
    file = plan(repo, "api", task(repo, "a", once), task(repo, "b", f"{EDIT}; echo b > b.txt"))
    repo.loopr("start", "--yes", file)
    assert len(repo.events("problem_seen")) == 2
    assert set(calls(repo)) == {"api/b"}
    repo.loopr("run")
    assert set(calls(repo)) == {"api/b"}
    repo.loopr("land", "--yes", "api")
    assert calls(repo) == {}


def test_a_task_that_edits_the_files_of_its_own_plan(repo: Repo) -> None:
    """Tracked or written by mistake in place of an outline that is to be handed over: put back, told, never landed."""
    repo.settings("types:\n  plan: {child: spec}\n  spec: {child: task, max_iterations: 2}\n  task: {}\n")
    wrong = 'mkdir -p specs/p/s; echo "# S" > specs/p/s/spec.md; cat .loopr/feedback.md >> "$DESK/fed"'
    entry = f"{{id: s, leaf: false, run: '{repo.script('s', wrong)}'}}"
    repo.write({"specs/p/plan.md": f"---\nspecs: [{entry}]\n---\n# P\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=plan")
    repo.loopr("start", "--yes", "specs/p/plan.md", code=1)
    fed = repo.note("fed")
    assert "no artifact was handed over" in fed
    assert "- specs/p/s/spec.md (added)" in fed
    assert "LOOPR_OUTPUT" in fed
    assert shown(repo, "p/s") == ["+# S"]
    assert not (repo.root / "worktrees/p.s.g1/specs/p/s").exists()


def test_a_plan_that_begins_while_a_loop_works_in_its_folder(repo: Repo) -> None:
    """What the loop has made there is put back, though there was no such plan when it began."""
    repo.settings(TYPES)
    repo.gate("gate")
    file = plan(repo, "p", task(repo, "t", f"{EDIT}; echo z > z.txt; tell busy; wait_at gate", "test -f z.txt"))
    engine = repo.begin("start", "--yes", file)
    repo.heard()
    repo.loopr("start", "--yes", "--no-run", plan(repo, "api", "{id: o, run: 'true'}"))
    repo.gates["gate"].open()
    engine.ended()
    assert repo.git("show", "--name-only", "--format=", "loopr/p") == "z.txt"
    assert shown(repo, "p/t") == ["+x"]


def test_a_commit_from_before_the_plan_began(repo: Repo) -> None:
    """What an earlier try has committed there is put back by whoever makes the tree that lands."""
    repo.settings(TYPES)
    repo.gate("gate")
    twice = f"if test -e z.txt; then tell busy; wait_at gate; else {EDIT}; echo z > z.txt; fi"
    file = plan(repo, "p", task(repo, "t", twice, 'test -e "$DESK/twice" || { touch "$DESK/twice"; exit 1; }'))
    engine = repo.begin("start", "--yes", file)
    repo.heard()
    repo.loopr("start", "--yes", "--no-run", plan(repo, "api", "{id: o, run: 'true'}"))
    repo.gates["gate"].open()
    engine.ended()
    assert repo.git("show", "--name-only", "--format=", "loopr/p") == "z.txt"
    assert shown(repo, "p/t") == ["+x"]


def test_an_engine_that_is_killed_while_a_loop_works_there(repo: Repo) -> None:
    """The next one takes the work in, puts the files back and tells of them."""
    repo.settings(TYPES)
    repo.gate("gate")
    work = f"{EDIT}; git add -A; git commit -qm own; echo z > z.txt; tell busy; wait_at gate"
    engine = repo.begin("start", "--yes", plan(repo, "api", task(repo, "t", work, f"! {SEES}")))
    repo.heard()
    engine.kill()
    repo.gates["gate"].open()
    repo.loopr("run")
    assert repo.git("diff", "--name-only", "main", "loopr/api") == "z.txt"
    assert shown(repo, "api/t") == ["+x"]
    assert "left out" in repo.loopr("doctor", code=None).out


def test_the_row_goes_with_its_plan(repo: Repo) -> None:
    """A plan that is cancelled before anything landed leaves the tree, and nobody is told of its loops any more."""
    repo.settings(TYPES)
    wrong = "mkdir -p specs/q; echo x > specs/q/notes.txt"
    repo.loopr("start", "--yes", plan(repo, "q", task(repo, "t", wrong, "test -f specs/q/notes.txt")), code=1)
    assert shown(repo, "q/t") == ["+x"]
    repo.loopr("cancel", "--yes", "q")
    repo.loopr("run")
    assert calls(repo) == {}
    assert "left out" not in repo.loopr("status").out


def test_a_pull_worker_is_told_too(repo: Repo) -> None:
    """What it leaves in a plan's folder is put back once it says that it is done."""
    repo.settings(f"{TYPES.replace('2}', '2, check: {check}}').replace('{check}', SEES)}")
    repo.loopr("start", "--no-run", "--yes", plan(repo, "api", "{id: t}"))
    lease = repo.loopr("lease", "take", "--json").document["leases"][0]
    with Path(lease["worktree"], API).open("a") as file:
        file.write("x\n")
    repo.loopr("lease", "complete", lease["lease"])
    repo.loopr("run", code=None)
    assert repo.statuses()["api/t"] != "complete"
    assert shown(repo, "api/t") == ["+x"]


def test_a_person_who_approves_sees_what_lands(repo: Repo) -> None:
    """Work that waits for a yes is shown without what is left out, and says so."""
    repo.settings(TYPES.replace("2}", "2, approve: true}"))
    repo.loopr("start", "--yes", plan(repo, "api", task(repo, "t", EDIT, "test -f README")), code=4)
    waits = repo.loopr("diff", "--waiting").out
    assert f"put back: {API} (changed)" in waits
    assert NEVER not in waits
    assert "+x" not in waits
    repo.loopr("approve", "api/t")
    repo.loopr("run")
    assert repo.git("diff", "--name-only", "main", "loopr/api") == ""


def test_a_workspace_below_the_top(tmp_path: Path) -> None:
    """Files are named by their way from the workspace, so that the command can be typed there."""
    with opened(tmp_path, root=tmp_path / "repo") as repo:
        repo.found({f"sub/{API}": "openapi: 3\n", "sub/loopr.yml": TYPES})
        below = repo.root / "sub"
        file = below / "api.md"
        file.write_text(f"---\nid: api\ntasks:\n  - {{id: t, run: 'echo x >> sub/{API}', check: 'true'}}\n---\n# P\n")
        repo.git("add", "--all")
        repo.git("commit", "--quiet", "--message=plan")
        repo.loopr("start", "--yes", "api.md", cwd=below)
        rows = repo.loopr("status", "--json", cwd=below).document["inbox"]
        row = next(each for each in rows if each["kind"] == "left out")
        done = subprocess.run(["sh", "-c", row["command"]], cwd=below, capture_output=True, text=True, check=True)
        assert row["text"].startswith(f"put back: {API} (changed)")
        assert "+x" in done.stdout


@pytest.mark.parametrize("answer", ["\n", "n\nn\n"])
def test_init_and_start_ask_on_a_terminal(repo: Repo, answer: str) -> None:
    """They propose another folder, and remember what they were told; a plan in the way is asked about each time."""
    taken = answer == "\n"
    _, said = typed(repo, "init", answer=answer)
    assert "git tracks 2 files, such as specs/README.md, in specs/, which are not loopr's" in said
    assert "Keep loopr's files in loopr-specs/ instead?" in said
    folder = "loopr-specs" if taken else "specs"
    assert repo.loopr("config", "show", "--json").document["value"]["artifacts"]["dir"] == folder
    assert (repo.root / "loopr-specs").is_dir() is taken
    repo.write({"api.md": "---\nid: api\nspecs: [{id: t}]\n---\n# API\n"})
    code, said = typed(repo, "start", "--no-run", "api.md", answer="n\n")
    assert "instead?" not in said
    assert ("Go on?" in said) is not taken
    assert code == (0 if taken else 2)


def test_a_goal_on_a_terminal_is_written_where_a_person_says(repo: Repo) -> None:
    """The question comes before loopr writes anything into the folder."""
    words = ("goal", "--no-run", "--run", "true", "--check", "true", "--id", "g", "Do it")
    code, said = typed(repo, *words, answer="y\n")
    assert code == 0, said
    assert (repo.root / "loopr-specs/g/plan.md").is_file()
    assert not (repo.root / "specs/g").exists()


def test_off_a_terminal_it_is_said_and_goes_on(repo: Repo) -> None:
    """`init`, `doctor` and `start` name the files and the command that keeps the two apart; nothing is refused."""
    told = "`loopr set artifacts.dir loopr-specs`"
    assert told in repo.loopr("init").err
    assert "git tracks 2 files" in (found := repo.loopr("doctor", code=None).out)
    assert told in found
    repo.settings(TYPES)
    assert told in repo.loopr("start", "--dry-run", plan(repo, "p", "{id: t, run: 'true'}")).err
    assert told in repo.loopr("start", "--yes", "p.md").err
    assert "git tracks" not in repo.loopr("start", "--yes", "--no-run", "p.md").err
    repo.loopr("start", "--yes", "--no-run", plan(repo, "api", "{id: t, run: 'true'}"))
    assert f"git tracks {API} in the folder of api" in repo.loopr("doctor", code=None).out


def test_a_tree_that_is_committed_is_loopr_s(repo: Repo) -> None:
    """Who commits the tree that loopr made, in a clone too, is asked nothing; a folder's name is no pattern."""
    repo.git("rm", "-rq", "specs")
    repo.settings(TYPES + "artifacts: {dir: 's*'}\n")
    repo.write({"s*/p/plan.md": "# P\n", "s*/p/t/task.md": "# T\n", "specs/x": "x\n", "s*/odd.txt": "x\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=tree")
    repo.loopr("start", "--no-run", "--yes", plan(repo, "p", "{id: t, run: 'true'}"))
    repo.git("rm", "-q", "--cached", "s[*]/odd.txt")
    assert "git tracks" not in repo.loopr("doctor", code=None).out
