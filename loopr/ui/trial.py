"""Puts an agent to the proof: is it there, which version is it, does it do what loopr needs in a scratch repository.

The proof is loopr itself, as a process in a workspace of its own, with the preset as this workspace has it. Knows what
is asked of an agent. Must never know a single client.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loopr.errors import WorldError
from loopr.ui.checkup.rows import Finding
from loopr.ui.presets import here_of, program_of
from loopr.ui.scratch import GREETING, commit_all, files_named, lay_out
from loopr.ui.times import say_tokens
from loopr.world.place import Place
from loopr.world.processes.strays import sweep
from loopr.world.settings import Settings
from loopr.world.settings.presets import Preset

VERSION_SECS = 30
ATTEMPT_SECS = 60
PATIENCE_SECS = 3 * ATTEMPT_SECS
EDIT, STAY = "proof/greeting", "stop/stay"
_PLANS = {
    "proof": ("greeting", "Write the word hello, and nothing else, into a new file called greeting.txt."),
    "stop": ("stay", "Run `tail -f plan.md` in a shell. Only when that has ended, write the word done into done.txt."),
}
_IDENTITY = {"GIT_AUTHOR_NAME": "loopr", "GIT_COMMITTER_NAME": "loopr"} | dict.fromkeys(
    ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "loopr@localhost"
)

Row = Mapping[str, Any]


def try_agent(
    settings: Settings, place: Place, name: str, environ: Mapping[str, str], *, live: bool
) -> Iterator[Finding]:
    """Put a preset to the proof, one finding after the other; `live` asks its model for work, which may cost money."""
    preset, top = settings.preset(name), place.repository
    there = _installed(preset, place, environ)
    yield there
    if there.ok is False:
        return
    yield _version(preset, place, environ)
    named = files_named(preset.command, top, environ)
    if named.loose:
        words = f"{', '.join(named.loose)}: not committed, and loops work on what is committed"
        yield Finding("committed", False, words, "commit it, or name it by its full path")
    elif live:
        with tempfile.TemporaryDirectory(prefix=f"loopr-{name}-") as folder:
            source = top if named.committed else None
            yield from Trial(Path(folder).resolve(), settings, preset, environ, source).findings()


def _installed(preset: Preset, place: Place, environ: Mapping[str, str]) -> Finding:
    """Look for the program."""
    program = program_of(preset.command, environ.get("PATH"), here_of(place))
    if program is None and isinstance(preset.command, str):
        return Finding("installed", None, "a shell runs it, so that only a live proof can tell")
    if program is None:
        hint = f"install it: {preset.install}" if preset.install else "put it on the PATH, or name it in full"
        return Finding("installed", False, f"{preset.command[0]} is not on this machine", hint)
    return Finding("installed", True, program)


def _version(preset: Preset, place: Place, environ: Mapping[str, str]) -> Finding:
    """Ask the program which version it is."""
    if preset.version is None:
        return Finding("version", None, "the preset does not say how to ask for it")
    argv = ["sh", "-c", preset.version] if isinstance(preset.version, str) else list(preset.version)
    try:
        done = subprocess.run(
            argv,
            check=False,
            cwd=here_of(place),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_SECS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("version", False, f"{' '.join(argv)}: {error}")
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()
    if done.returncode != 0 or not said:
        return Finding("version", False, f"{' '.join(argv)} ended with {done.returncode}")
    return Finding("version", True, said[-1])


class Trial:
    """One live proof, in a repository that is there for nothing else."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        preset: Preset,
        environ: Mapping[str, str],
        source: Path | None,
    ) -> None:
        """Lay the repository out, with the commit of another where the agent needs that."""
        self._root, self._settings, self._preset = root, settings, preset
        self._environ = {key: value for key, value in environ.items() if not key.startswith("LOOPR")} | _IDENTITY
        lay_out(root, source, self._environ)
        (root / "agents").mkdir(exist_ok=True)
        values = settings.shelf.find(preset.name).values
        (root / f"agents/{preset.name}.yml").write_text(json.dumps(_plain(values)))
        (root / "loopr.yml").write_text(json.dumps(self._own_settings()))
        for plan, (child, body) in _PLANS.items():
            outline = {"children": [{"id": child, "body": body}]}
            (root / f"{plan}.md").write_text(f"---\n{json.dumps(outline)}\n---\n# {plan}\n")
        commit_all(root, self._environ)

    def _own_settings(self) -> dict[str, Any]:
        """Word the settings: one attempt, a short clock, and the lanes as the workspace has them."""
        name = self._preset.name
        lanes = _plain(self._settings.values.get("lanes") or {})
        check, clocks = f"grep -qi hello {GREETING}", {"wall_secs": ATTEMPT_SECS}
        code = {"agent": name, "check": check, "timeouts": clocks}
        return {
            "types": {"plan": {"child": "code"}, "code": code},
            "retry": {"max_attempts": 1, "max_iterations": {"code": 1}},
            "worktrees": {"min_free_gb": 0},
            "lanes": {lane: lanes[lane] for lane in self._preset.lanes if lane in lanes},
        }

    def findings(self) -> Iterator[Finding]:
        """Let it edit a file; if it could, begin once more, and stop it in the middle."""
        self._loopr("start", "--no-run", "proof.md")
        self._loopr("run", "--once")
        loop = json.loads(self._loopr("show", EDIT, "--json").stdout)["loop"]
        answered = self._answered(loop)
        yield answered
        if answered.ok:
            yield _edited(loop)
            yield _used(loop)
            yield self._stopped()

    def _answered(self, loop: Row) -> Finding:
        """Say whether its model has answered: it is logged in, and no limit is in the way."""
        lanes = json.loads(self._loopr("status", "--json").stdout)["lanes"]
        lane = next((each for each in lanes.values() if each.get("reason")), None)
        if lane is not None:
            return Finding("answers", False, str(lane["reason"]))
        if loop["status"] in ("complete", "failed"):
            return Finding("answers", True, "it is logged in, and its model does what it is asked")
        return Finding("answers", False, loop["reason"] or f"it is {loop['status']}")

    def _stopped(self) -> Finding:
        """Begin something that does not end by itself, and cancel it."""
        self._loopr("start", "--no-run", "stop.md")
        engine = self._begin("run", "--once")
        try:
            begun = any(f"{STAY}  started" in line for line in engine.stderr or ())
            self._loopr("cancel", STAY)
            engine.communicate(timeout=PATIENCE_SECS)
        except subprocess.TimeoutExpired:
            return Finding("stops", False, f"it was cancelled, and still ran after {PATIENCE_SECS} s")
        finally:
            _end(engine)
            left = sweep(str(self._root), lambda lease: False)
        status = json.loads(self._loopr("show", STAY, "--json").stdout)["loop"]["status"]
        if left:
            return Finding("stops", False, f"{left} of its processes went on after it was cancelled, and were ended")
        if not begun:
            return Finding("stops", None, f"it was not begun once more, and is {status}")
        if status != "cancelled":
            return Finding("stops", None, f"it was {status} before it could be cancelled")
        return Finding("stops", True, "it was cancelled at work, and nothing of it went on")

    def _loopr(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb in the scratch workspace to its end."""
        engine = self._begin(*words)
        try:
            out, err = engine.communicate(timeout=PATIENCE_SECS)
        except subprocess.TimeoutExpired as error:
            raise WorldError(f"`loopr {words[0]}` has not ended within {PATIENCE_SECS} s") from error
        finally:
            _end(engine)
        if engine.returncode in (2, 70, 78):
            raise WorldError(f"the scratch repository does not work: {err.strip() or out.strip()}")
        return subprocess.CompletedProcess(engine.args, engine.returncode, out, err)

    def _begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a verb in the scratch workspace."""
        argv = [sys.executable, "-m", "loopr", "-C", str(self._root), *words]
        return subprocess.Popen(
            argv,
            env=self._environ,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _end(engine: subprocess.Popen[str]) -> None:
    """Stop an engine that still runs, with all that it has started: somebody has lost patience, or interrupts."""
    if engine.poll() is None:
        engine.terminate()
        engine.communicate()


def _edited(loop: Row) -> Finding:
    """Say whether the file is there, committed and judged."""
    if loop["status"] == "complete":
        return Finding("edits", True, "it wrote a file, which passed its check and landed")
    return Finding("edits", False, loop["reason"] or f"it is {loop['status']}", "its permissions may be too narrow")


def _used(loop: Row) -> Finding:
    """Say what it has reported of its usage."""
    usage = loop["usage"]
    if not usage["tokens"] or usage["estimated"]:
        return Finding("usage", None, "it does not say what it has used: budgets go by time")
    money = f", ${usage['usd']:.4f}" if usage["usd"] else ""
    return Finding("usage", True, f"{say_tokens(usage['tokens'])} tokens{money}")


def _plain(value: Any) -> Any:
    """Return settings as plain JSON values, without what was not said."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
