"""What holds when something happens between two steps of an engine, or to several threads of it at once."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Timer
from types import SimpleNamespace
from typing import Any

import pytest

from loopr.core import observations
from loopr.core.settled import is_settled
from loopr.driving import attempting, judging
from loopr.driving.kit import Kit
from loopr.errors import WorldError
from loopr.ui.requests import enqueue, read_plans
from loopr.wiring import Workspace
from loopr.world.prompts import Iteration, Prompts
from tests.e2e.repos import PATIENCE_SECS, Process, Repo, opened

FAST = "retry: {base_secs: 0.05}\ntimeouts: {grace_secs: 0.5}\n"
THREADS = 8
DIES = """
import os
from loopr.core.observations import AttemptBegan
from loopr.engine import Engine
from loopr.ui.cli import run

learn = Engine.learn

def dies(engine, seen, then=None):
    seen = list(seen)
    if any(isinstance(each, AttemptBegan) for each in seen):
        os._exit(9)
    return learn(engine, seen, then)

Engine.learn = dies
run()
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repo]:
    """Give a repository, whose variables this process has, too."""
    with opened(tmp_path) as found:
        monkeypatch.setenv("DESK", found.env["DESK"])
        monkeypatch.setenv("ENV", "")
        yield found.found()


@pytest.fixture
def busy() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def ready(repo: Repo, run: str, *, names: str = "a", more: str = "") -> None:
    """Write settings and a plan of loops that run a script, which may wait at the gate."""
    repo.gate("gate")
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more}}}\n{FAST}")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def serve(repo: Repo, before: Callable[[Any], None] = lambda driver: None, after: Callable[[], None] = int) -> None:
    """Drive the plan in this process to its end, with something to do before, and after while the lock is held."""
    workspace = Workspace(repo.root, environ=dict(repo.env), actor="test")
    with workspace.serve() as driver:
        for plan in read_plans(workspace, [repo.root / "plan.md"]):
            enqueue(driver.engine, workspace, plan, lambda text: True, to_run=True)
        before(driver)
        driver.drive(is_settled, lambda *seen: None)
        after()


def together(act: Callable[[], Any]) -> list[Any]:
    """Do something in several threads at the same moment, and return what each got."""
    barrier = Barrier(THREADS)

    def at_once(_: int) -> Any:
        barrier.wait(PATIENCE_SECS)
        return act()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(at_once, range(THREADS)))


# --- between two steps ------------------------------------------------------------------------------------------------


def test_a_cancel_between_two_steps(repo: Repo) -> None:
    """A cancel that another process writes just before the engine does ends the command at once."""
    ready(
        repo,
        'case "$LOOPR_LOOP" in\n'
        'demo/a) echo go > "$DESK/second"; wait_at gate; say survived;;\n'
        "demo/b) wait_at second;;\nesac",
        names="a b",
    )
    repo.gate("second")
    cancelled = []

    def before(driver: Any) -> None:
        learn = driver.engine.learn

        def cancel_first(seen: Iterable[Any], then: Any = None) -> Any:
            seen = list(seen)
            ends = any(isinstance(each, observations.AttemptEnded) and each.loop == "demo/b" for each in seen)
            if ends and not cancelled:
                cancelled.append(repo.loopr("cancel", "demo/a"))
            return learn(seen, then)

        driver.engine.learn = cancel_first

    late = Timer(PATIENCE_SECS, repo.gates["gate"].open)
    late.start()
    try:
        serve(repo, before)
    finally:
        late.cancel()
    assert cancelled
    assert repo.diary() == []
    assert repo.statuses()["demo/a"] == "cancelled"


def test_a_start_while_the_engine_ends(repo: Repo) -> None:
    """A start that comes when the engine has looked for work for the last time does its work itself."""
    ready(repo, 'say "$LOOPR_LOOP"')
    repo.write({"two.md": "---\nid: two\nchildren: [{id: z}]\n---\n# Two\n"})
    begun = []

    def after() -> None:
        begun.append(repo.begin("start", "two.md"))
        repo.until("declared", words="two/z")
        begun[0].says("follows")

    serve(repo, after=after)
    begun[0].ended()
    assert repo.diary() == ["demo/a", "two/z"]


def test_killed_before_the_beginning_is_written_down(repo: Repo) -> None:
    """A command whose beginning the dead engine has not written down is adopted, and shown as running."""
    ready(repo, "tell x; wait_at gate")
    repo.loopr("start", "--no-run", "plan.md")
    tree = Path(__file__).parents[2]
    import_path = {"PYTHONPATH": str(tree)}
    died = Process([sys.executable, "-c", DIES, "run"], repo.root, {**repo.env, **import_path})
    assert died.ended(9)
    process = repo.begin("run")
    repo.heard()
    repo.until("attempt_started", words="demo/a")
    assert repo.statuses()["demo/a"] == "running"
    repo.gates["gate"].open()
    process.ended()
    assert repo.granted() == {"demo/a": 1}


def test_no_space_for_what_an_attempt_leaves(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that cannot be committed for want of space is there when the loop is tried again."""
    ready(
        repo,
        'test "$LOOPR_LOOP" = demo/a || { echo b > b; exit 0; }\n'
        'test -e "$DESK/again" || { echo precious > README; touch "$DESK/again"; exit 0; }\n'
        'cp README "$DESK/found"',
        names="a b",
    )
    commit, refused = attempting.commit_attempt, []

    def full_once(ground: Any, name: str, *rest: Any) -> Any:
        if name.startswith("demo.a.") and not refused:
            refused.append(name)
            raise OSError(errno.ENOSPC, "No space left on device")
        return commit(ground, name, *rest)

    monkeypatch.setattr(attempting, "commit_attempt", full_once)
    serve(repo)
    assert refused
    assert repo.note("found") == "precious\n"


def test_trouble_while_judging(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble of git's while judging is not counted as a command that could not be launched."""

    def fails(*words: Any, **named: Any) -> Any:
        raise WorldError("git has no answer")

    ready(repo, "echo x > f", more=", check: 'true'")
    monkeypatch.setattr(judging, "build_candidate", fails)
    serve(repo)
    loop = repo.loops()["demo/a"]
    assert loop["status"] != "complete"
    assert "max_launch" not in loop["reason"]


# --- several threads --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("busy")
def test_ports_for_many_at_once() -> None:
    """Attempts that ask for their ports at the same moment never get the same ones."""
    for _ in range(100):
        place = SimpleNamespace(root=Path("/w"), state=Path("/s"))
        kit = Kit(place, None, None, None, None, None, None, {}, lambda: 0)  # type: ignore[arg-type]
        names = iter([f"loop#{number}" for number in range(THREADS)])
        found = together(lambda kit=kit, names=names: kit.ports(next(names)))  # type: ignore[misc]
        assert len(set(found)) == THREADS


@pytest.mark.usefixtures("busy")
def test_prompts_for_many_at_once() -> None:
    """Prompts that are rendered at the same moment, the first of them ever, are all the same."""
    iteration = Iteration(
        loop_id="a/b", type="code", title="t", body="b", child=None, children_key="", parent_artifact="x", parent="a"
    )
    for _ in range(20):
        prompts = Prompts()
        assert len(set(map(str, together(lambda prompts=prompts: prompts.render(iteration))))) == 1  # type: ignore[misc]
