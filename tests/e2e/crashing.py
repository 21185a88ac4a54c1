"""A round of crashes: a repository with a plan of its own, an engine that is struck down and started again, a ledger.

Run as a program it is the nursery of a round: `python crashing.py ROOT` has one life of an engine after the other, each
a fork of itself, and strikes as `ROOT/round.json` says. Imported, it lays out a round and plays it.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from loopr import wiring
from loopr.core.settled import is_settled, standing
from loopr.driving.driver import Driver
from loopr.driving.leaving import Wish
from loopr.ui.requests import enqueue, read_plans
from loopr.wiring import Workspace
from loopr.world.journal import Journal
from loopr.world.launcher import proc
from loopr.world.repo import calls, returning

TOP = Path(__file__).resolve().parents[2]
PLAN = "crash"
STUCK_SECS, STOPS_WITHIN_SECS = 30, 0.1

# --- the tree of a round --------------------------------------------------------------------------------------------

TASKS = {"a/one": 2, "a/two": 1, "b/one": 2, "b/two": 1}
SPECS = [f"{PLAN}/{name}" for name in ("a", "b")]
PHASES = [f"{PLAN}/{name}" for name in TASKS]
CODES = [f"{PLAN}/{name}/t{number}" for name, count in TASKS.items() for number in range(1, count + 1)]
LOOPS = {PLAN: "plan", **dict.fromkeys(SPECS, "spec"), **dict.fromkeys(PHASES, "phase"), **dict.fromkeys(CODES, "code")}

WORK = """\
#!/bin/sh
set -eu
ledger={ledger} tools={tools}
echo "begin $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"
before=0 after=0 refuse= notes=yes output=
case $LOOPR_LOOP in
{table}
esac
if [ "$notes" ] && [ -e "$tools/setup.sh" ] && [ "$(cat .loopr/prepared-for)" != "$LOOPR_LOOP" ]; then
    echo "unready $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"
fi
slug=$(echo "$LOOPR_LOOP" | tr / .)
end() {{ echo "end $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"; exit "$1"; }}
sleep "$before"
if [ "$notes" ]; then
    mkdir -p notes
    echo "$LOOPR_LOOP" > "notes/$slug"
    echo "$LOOPR_ATTEMPT" >> "notes/$slug.attempts"
fi
[ -z "$output" ] || cp "$tools/$slug.md" "$LOOPR_OUTPUT"
sleep "$after"
echo "worked on $LOOPR_LOOP"
[ "$LOOPR_ITERATION" = 1 ] || [ -s "$LOOPR_FEEDBACK_FILE" ] || echo "untold $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"
if [ "$refuse" = command ] && [ "$LOOPR_ITERATION" = 1 ]; then end 1; fi
end 0
"""

CHECK = """\
#!/bin/sh
set -eu
ledger={ledger}
echo "asked $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"
before=0 after=0 refuse=
case $LOOPR_LOOP in
{table}
esac
sleep "$after"
echo "answered $LOOPR_LOOP $LOOPR_ATTEMPT $$" >> "$ledger"
if [ "$refuse" = check ] && [ "$LOOPR_ITERATION" = 1 ]; then echo "not yet"; exit 1; fi
exit 0
"""

SETUP = """\
#!/bin/sh
sleep 0.03
mkdir -p .loopr
echo "$LOOPR_LOOP" > .loopr/prepared-for
"""


class Life(NamedTuple):
    """One life of an engine: who is struck, by what that is timed, when, and how far its clock is behind.

    It is timed by a moment in seconds, or by the number of a point: of a step, of an effect, or of those of one name.
    Who is `stopped` lives on, and the engine too; at a `stop` the engine is told to end at once.
    """

    victim: str = ""
    by: str = "step"
    at: float = 0
    behind_ms: int = 0


class Round(NamedTuple):
    """What a seed leads to."""

    seed: int
    root: Path
    lives: tuple[Life, ...]
    refused: dict[str, str]
    in_folders: frozenset[str]
    hands_over: frozenset[str]

    @property
    def repo(self) -> Path:
        """The repository."""
        return self.root / "repo"

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.repo / ".git" / "loopr"

    @property
    def landing(self) -> set[str]:
        """The loops whose commands change files that land."""
        kinds = {loop: kind for loop, kind in LOOPS.items() if loop != PLAN or self.plan_runs}
        return {loop for loop, kind in kinds.items() if kind not in self.in_folders}

    @property
    def plan_runs(self) -> bool:
        """Say whether the plan has a command of its own, and declares nothing itself."""
        return PLAN in self.hands_over

    @property
    def working(self) -> list[str]:
        """The loops that have a command to run."""
        return [loop for loop in LOOPS if loop != PLAN or self.plan_runs]

    def ledger(self) -> list[tuple[str, str, int, int]]:
        """Return what commands wrote: the word, the loop, the attempt and the pid."""
        path = self.root / "ledger"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(word, loop, int(attempt), int(pid)) for word, loop, attempt, pid in lines]

    def git(self, *words: str) -> str:
        """Return what git says in the repository."""
        said = subprocess.run(["git", *words], cwd=self.repo, capture_output=True, text=True, check=True)
        return said.stdout.rstrip("\n")


def prepare(root: Path, seed: int, lives: tuple[Life, ...], *, slow_judge_secs: float = 0) -> Round:
    """Lay out the repository, the commands and the ledger of a round; some judges may be slow."""
    dice = random.Random(seed)
    refused = {loop: dice.choice(["command", "check"]) for loop in LOOPS if loop != PLAN and dice.random() < 0.2}
    in_folders = frozenset(kind for kind in ("spec", "phase", "code") if dice.random() < 1 / 3)
    hands_over = {loop for loop, kind in LOOPS.items() if kind in ("spec", "phase") or dice.random() < 0.5}
    made = Round(seed, root, lives, refused, in_folders, frozenset(hands_over))
    checked = {kind for kind in ("spec", "phase", "code") if dice.random() < 0.7}
    checked |= {LOOPS[loop] for loop, by in refused.items() if by == "check"}
    for folder in (made.repo, root / "tools"):
        folder.mkdir(parents=True)
    _write_tools(made, dice, slow_judge_secs)
    (made.repo / "loopr.yml").write_text(_settings(made, checked, dice))
    (made.repo / "plan.md").write_text(f"---\nid: {PLAN}\n---\n# Crash\n" if made.plan_runs else _outline(PLAN, dice))
    (made.repo / "kept").write_text("as it was\n")
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("add", ".")
    made.git("commit", "--quiet", "--message", "begin")
    (root / "round.json").write_text(json.dumps(lives))
    return made


def _settings(made: Round, checked: set[str], dice: random.Random) -> str:
    """Write the settings of a round as JSON, which is YAML."""
    tools = made.root / "tools"
    types: dict[str, Any] = {"plan": {"child": "spec"}, "spec": {"child": "phase"}, "phase": {"child": "code"}}
    types["code"] = {}
    setup = {"setup": ["sh", str(tools / "setup.sh")]} if (tools / "setup.sh").exists() else {}
    for name, kind in types.items():
        if name != "plan" or made.plan_runs:
            kind["run"] = ["sh", str(tools / "work.sh")]
        if name in checked:
            kind["check"] = ["sh", str(tools / "check.sh")]
        if name in made.in_folders:
            kind["worktree"] = False
        kind["timeouts"] = {"grace_secs": 0.2}
    return json.dumps(
        {
            "version": 1,
            "types": types,
            "worktrees": {"min_free_gb": 0, "pool": dice.choice([0, 1, 4]), **setup},
            "artifacts": {"settle_ms": dice.choice([0, 20])},
            "scheduler": {"poll_interval_secs": 0.2},
            "concurrency": {"max_loops": dice.choice([2, 3, 8])},
            "retry": {"base_secs": 0.01, "max_attempts": 50, "max_launch_failures": 20},
        },
        indent=1,
    )


def _write_tools(made: Round, dice: random.Random, slow_judge_secs: float) -> None:
    """Write the commands and what they hand over."""
    tools = made.root / "tools"
    rows = []
    for loop, kind in LOOPS.items():
        words = [f"before={dice.random() * 0.05:.3f}", f"after={dice.random() * 0.05:.3f}"]
        words += [f"refuse={made.refused[loop]}"] if loop in made.refused else []
        words += ["notes="] if kind in made.in_folders else []
        if loop in made.hands_over:
            words.append("output=yes")
            outline = _outline(loop, dice) if kind != "code" else f"# {loop}\n"
            (tools / f"{loop.replace('/', '.')}.md").write_text(outline)
        rows.append(f"{loop}) {' '.join(words)} ;;")
    names = {"ledger": made.root / "ledger", "tools": tools, "table": "\n".join(rows)}
    (tools / "work.sh").write_text(WORK.format(**names))
    if dice.random() < 1 / 3:
        (tools / "setup.sh").write_text(SETUP)
    if slow_judge_secs:
        names["table"] = f"*/two) after={slow_judge_secs} ;;\n{names['table']}"
    (tools / "check.sh").write_text(CHECK.format(**names))


def _outline(loop: str, dice: random.Random) -> str:
    """Declare the children of a loop; now and then one needs the other, or they run one after another."""
    children = [each.rpartition("/")[2] for each in LOOPS if each.rpartition("/")[0] == loop]
    key = {"plan": "specs", "spec": "phases", "phase": "tasks"}[LOOPS[loop]]
    key = "children" if key == "tasks" else key
    lines = [f"  - {{id: {child}, title: The part {child}}}" for child in children]
    if len(children) > 1 and dice.random() < 0.3:
        lines[-1] = f"  - {{id: {children[-1]}, title: The last part, needs: [{children[0]}]}}"
    head = [f"id: {loop.rpartition('/')[2]}", *(["parallel: false"] if dice.random() < 0.2 else [])]
    return "\n".join(["---", *head, f"{key}:", *lines, "---", f"# {loop}", ""])


# --- the processes of a round ---------------------------------------------------------------------------------------


def ours(root: Path) -> dict[int, str]:
    """Map every living process of a round, but for the nursery and who waits for it, to what it is."""
    mark, found = os.fsencode(root), {}
    spared = set(_line_above(os.getpid()))
    for pid in proc.pids():
        line = _line_of(pid)
        if pid in spared or b"crashing.py" in line or not (mark in line or mark in proc.read(f"/proc/{pid}/environ")):
            continue
        seen = proc.stat(pid)
        if seen is not None and seen.lives:
            found[pid] = _kind(seen, line)
    return found


def _line_above(pid: int) -> Iterator[int]:
    """Give a process and all it descends from."""
    while pid > 0:
        yield pid
        seen = proc.stat(pid)
        pid = seen.parent if seen is not None else 0


def _kind(seen: proc.Stat, line: bytes) -> str:
    """Tell what a process is: a supervisor leads a session, or was just forked by its launcher."""
    if b"loopr.world.launcher" in line:
        is_fork = b"loopr.world.launcher" in _line_of(seen.parent)
        return "supervisor" if seen.session == seen.pid or is_fork else "launcher"
    return "git" if line.startswith((b"git\0", b"env\0")) or b"/git" in line.partition(b"\0")[0] else "command"


def _line_of(pid: int) -> bytes:
    """Return the command line of a process."""
    return proc.read(f"/proc/{pid}/cmdline")


def kill_others(root: Path, victim: str) -> list[str]:
    """Kill, or stop, what a strike is about beside the engine, and say what that was."""
    found = ours(root)
    wanted = {  # in this order: nobody is left to see how a command ended
        "launcher": ["launcher"],
        "supervisor": ["supervisor"],
        "stopped launcher": ["launcher"],
        "stopped supervisors": ["supervisor"],
        "engine and launcher": ["launcher"],
        "engine and supervisors": ["supervisor"],
        "all": ["launcher", "supervisor", "command"],
        "machine": ["launcher", "supervisor", "command", "git"],
    }.get(victim, [])
    chosen = [pid for kind in wanted for pid in sorted(found) if found[pid] == kind]
    chosen = chosen[:1] if victim == "supervisor" else chosen
    for pid in chosen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if victim.startswith("stopped") else signal.SIGKILL)
            if victim.startswith("stopped"):
                _spare_a_command(pid)
    return [found[pid] for pid in chosen]


def _spare_a_command(pid: int) -> None:
    """Let a process go on that became a command meanwhile: it was a fork of its supervisor."""
    deadline = time.monotonic() + STOPS_WITHIN_SECS
    while (seen := proc.stat(pid)) and seen.lives and seen.state != "T":
        if time.monotonic() > deadline:
            break
        time.sleep(0.001)  # one that waits for its fork to become a command stops after that
    if b"loopr.world.launcher" not in _line_of(pid):
        os.kill(pid, signal.SIGCONT)


# --- one life of an engine ------------------------------------------------------------------------------------------

_EFFECTS = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.posix_spawn", "subprocess.Popen"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Trap:
    """Counts the points that an engine passes, and strikes at one of them."""

    def __init__(self, root: Path, life: Life) -> None:
        """Strike as the life says."""
        self._root, self._life = root, life
        self._count = itertools.count(1)
        self._sprung = life.by == "moment" or not life.victim
        self._struck = False
        self.passed = 0
        self.driver: Driver | None = None
        self.behind_ms = 0 if life.victim == "clock" else life.behind_ms

    def step(self, name: str) -> None:
        """Pass a point that the driver names."""
        self._pass("step", name)

    def heed(self, event: str, given: tuple[Any, ...]) -> None:
        """Pass a point at which the interpreter is about to change something outside."""
        if self._struck:
            return
        writes = event == "open" and isinstance(given[2], int) and given[2] & _WRITES
        if event in _EFFECTS or writes:
            what = given[0] if isinstance(given[0], str) else ""
            self._pass("effect", f"{event} {Path(what).suffix or Path(what).name}")

    def _pass(self, by: str, name: str) -> None:
        """Count a point of the wanted kind, and strike when it is time."""
        if self._life.by not in (by, name) and not (by == "step" and self._life.by == "effect"):
            return
        self.passed = next(self._count)
        if not self._sprung and self.passed >= self._life.at:
            self._strike(name)

    def _strike(self, name: str) -> None:
        """Strike, or wait for the next point if there is nobody to strike yet."""
        self._struck = True
        if self._life.victim == "stop" and self.driver is not None:
            self.driver.ask(Wish.STOP_NOW, "chaos")
            self._sprung = True
            self._note(name)
        if self._life.victim == "clock":
            self.behind_ms, self._sprung = self._life.behind_ms, True
            self._note(name)
        if self._life.victim in _OTHERS and (who := kill_others(self._root, self._life.victim)):
            self._sprung = True
            self._note(name, who)
        if self._life.victim in _SURVIVED:
            self._struck = False
            return
        self._note(name)
        os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, name: str, who: Sequence[str] = ()) -> None:
        """Tell of a strike."""
        _note(self._root, {"struck": self._life.victim, "at": name, "who": list(who)})


_OTHERS = ("launcher", "supervisor", "stopped launcher", "stopped supervisors")
_SURVIVED = ("clock", "stop", *_OTHERS)
_TOGETHER = ("all", "machine", "engine and launcher", "engine and supervisors")


def _note(root: Path, said: dict[str, Any]) -> None:
    """Write a line into the log of the round."""
    descriptor = os.open(root / "lives", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(descriptor, json.dumps(said).encode() + b"\n")
    os.close(descriptor)


def live(root: Path, life: Life) -> int:
    """Be an engine: start the plan and drive until it has settled."""
    trap = Trap(root, life)
    _set_points(trap)
    wiring.wall_clock = lambda: time.time_ns() // 1_000_000 - trap.behind_ms
    sys.addaudithook(trap.heed)
    workspace = Workspace(root / "repo")
    (plan,) = read_plans(workspace, [root / "repo" / "plan.md"])
    with workspace.serve(step=trap.step) as driver:
        trap.driver = driver
        enqueue(driver.engine, workspace, plan, lambda text: True, to_run=True)
        driver.drive(is_settled, lambda *_: None)
        code = int(standing(driver.forest, [PLAN], driver.engine.mind.now()))
    _note(root, {"passed": trap.passed, "by": life.by, "cpu_secs": round(time.process_time(), 2)})
    return code


def _set_points(trap: Trap) -> None:
    """Make the interpreter pass points around what it does not tell of by itself."""
    append, execute = Journal.append, calls._execute
    drop_refs = returning._drop_refs

    def noted(*given: Any, **named: Any) -> int:
        trap.step("before append")
        done = append(*given, **named)
        trap.step("after append")
        return done

    def executed(command: list[str], *given: Any) -> calls.Said:
        said = execute(command, *given)
        trap.heed("subprocess.Popen", ("after git",))
        return said

    def dropped(*given: Any) -> None:
        trap.step("before refs are dropped")
        drop_refs(*given)

    returning._drop_refs = dropped  # type: ignore[assignment] # as below
    Journal.append = noted  # type: ignore[method-assign] # points of this program only
    calls._execute = executed  # type: ignore[assignment] # as above


# --- the nursery ----------------------------------------------------------------------------------------------------


def nursery(root: Path) -> int:
    """Have one life after the other until an engine ends by itself; return its exit code."""
    for life in [*(Life(*each) for each in json.loads((root / "round.json").read_text())), Life()]:
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(STUCK_SECS, exit=True)
            with suppress(BaseException):
                os._exit(_lived(root, life))
            os._exit(70)
        _strike_in_time(root, life, child)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != -signal.SIGKILL and (life.victim != "stop" or code > 64):
            return code
        _note(root, {"with it": kill_others(root, life.victim) if life.victim in _TOGETHER else []})
    return 71


def _lived(root: Path, life: Life) -> int:
    """Live, and say so if that goes wrong."""
    try:
        return live(root, life)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 70


def _strike_in_time(root: Path, life: Life, child: int) -> None:
    """Strike an engine at a moment, unless it has ended by then."""
    if life.by != "moment" or not life.victim:
        return
    watched = os.pidfd_open(child)
    ended, _, _ = select.select([watched], [], [], life.at)
    if not ended and life.victim in _OTHERS:
        _note(root, {"struck": life.victim, "at": "a moment", "who": kill_others(root, life.victim)})
    elif not ended:
        _note(root, {"struck": life.victim, "at": "a moment"})
        signal.pidfd_send_signal(watched, signal.SIGKILL)
    os.close(watched)


def play(made: Round) -> subprocess.CompletedProcess[str]:
    """Play a round to its end."""
    command = [sys.executable, str(Path(__file__)), str(made.root)]
    env = {**os.environ, "PYTHONPATH": str(TOP)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=110)


if __name__ == "__main__":
    sys.exit(nursery(Path(sys.argv[1])))
