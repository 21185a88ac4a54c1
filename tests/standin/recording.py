"""What the real clients say in each situation, recorded for the tests of whoever reads it.

    python -m tests.standin.recording [CLIENT…]     write tests/agents/streams/CLIENT anew

Knows situations and how a client is brought into each. Must never know how what it says is to be read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopr.world.settings.presets import Shelf
from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.clients import CACHE
from tests.standin.desk import KEY, Desk, at_a_desk
from tests.standin.server import Chosen, Standin

STREAMS = Path(__file__).parents[1] / "agents/streams"
PROMPT = "You do the work of `demo/a`, one piece of a larger work.\n\nWrite a greeting into hello.txt.\n"
PATIENCE_SECS = 150.0  # aider tries for more than a minute
SETTLED_SECS = 2.0
RECORDED_AT = int(time.time())
RESETS_AT = RECORDED_AT // 60 * 60 + 5 * 3600
EDIT = a.Edit("hello.txt", "hello\n")
WAIT = a.Shell("tail -f /dev/null")  # a plain sleep is refused by Claude Code itself


def works(asked: Asked) -> a.Answer:
    """Write the file, then be done."""
    return a.Text() if asked.follows else EDIT


def always(answer: a.Answer) -> Chosen:
    """Answer every request so."""
    return lambda asked: answer


def late(answer: a.Answer) -> Chosen:
    """Write the file first, and then answer so."""
    return lambda asked: answer if asked.follows else EDIT


def at_first(answer: a.Answer, times: int = 1) -> Chosen:
    """Answer the first requests so, then work."""
    return lambda asked: answer if asked.number <= times else works(asked)


def _summed_up(asked: Asked) -> a.Answer:
    """Sum the conversation up where no tools are offered, else work."""
    return works(asked) if asked.tools else a.Text("What was said.")


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation: what is answered, how the client is ended if it does not end by itself, and what it is given."""

    answers: Chosen
    end: signal.Signals | None = None
    env: tuple[tuple[str, str], ...] = ()
    argv: Callable[[list[str]], list[str]] = list
    prompt: str = PROMPT


SITUATIONS: dict[str, Situation] = {
    "text": Situation(always(a.Text())),
    "edit": Situation(works),
    "limit": Situation(always(a.rate_limit(2))),
    "limit-long": Situation(always(a.rate_limit(120)), signal.SIGTERM),
    "limit-bare": Situation(always(a.rate_limit())),
    "limit-at-first": Situation(at_first(a.rate_limit(1))),
    "limit-after-edit": Situation(late(a.rate_limit(2))),
    "limit-midway": Situation(always(a.LIMITED_MIDWAY)),
    "usage-limit": Situation(always(a.usage_limit(RESETS_AT))),
    "overloaded": Situation(always(a.OVERLOADED)),
    "overloaded-midway": Situation(always(a.OVERLOADED_MIDWAY)),
    "broken": Situation(always(a.BROKEN)),
    "unknown-key": Situation(always(a.UNKNOWN_KEY)),
    "no-credit": Situation(always(a.NO_CREDIT)),
    "no-quota": Situation(always(a.NO_QUOTA)),
    "no-model": Situation(always(a.NO_MODEL)),
    "too-long": Situation(always(a.TOO_LONG)),
    "cut-short": Situation(always(a.CutShort())),
    "cut": Situation(always(a.Cut())),
    "silence": Situation(always(a.Silence()), signal.SIGTERM),
    "stalled": Situation(always(a.Stalled()), signal.SIGTERM),
    "terminated": Situation(always(WAIT), signal.SIGTERM),
    "interrupted": Situation(always(WAIT), signal.SIGINT),
    "killed": Situation(always(WAIT), signal.SIGKILL),
}
OAUTH = (("CLAUDE_CODE_OAUTH_TOKEN", KEY),)
ONLY: dict[str, dict[str, Situation]] = {
    "claude": {
        "usage-limit": Situation(always(a.usage_limit(RESETS_AT)), env=OAUTH),
        "usage-limit-key": SITUATIONS["usage-limit"],
        "edit-subscription": Situation(works, env=OAUTH),
        "limit-subscription": Situation(always(a.rate_limit(2)), env=OAUTH),
        "denied": Situation(
            lambda asked: a.Text() if asked.follows else a.Shell('python3 -c \'open("x", "w")\''),
            argv=lambda argv: [each for each in argv if each not in ("--allowedTools", "Bash")],
        ),
        "slash": Situation(works, prompt="/compact now\n"),
        "turns": Situation(works, argv=lambda argv: [*argv, "--max-turns", "1"]),
    },
    "codex": {
        "read-only": Situation(
            works, argv=lambda argv: ["read-only" if each == "workspace-write" else each for each in argv]
        ),
        "no-key": Situation(works, env=(("STANDIN_KEY", ""),)),
    },
    "opencode": {
        "denied": Situation(
            lambda asked: a.Text() if asked.follows else a.Shell("cat /etc/hostname"),
            argv=lambda argv: [each for each in argv if each != "--auto"],
        ),
        "too-long-at-first": Situation(lambda asked: a.TOO_LONG if asked.number == 1 else _summed_up(asked)),
        "too-long-for-ever": Situation(
            lambda asked: a.TOO_LONG if asked.tools else a.Text("What was said."), signal.SIGTERM
        ),
        "unknown-model": Situation(works, argv=lambda argv: [*argv, "-m", "standin/none"]),
        "usage-limit-claude": Situation(
            always(a.usage_limit(RESETS_AT)), argv=lambda argv: [*argv, "-m", "anthropic/claude-sonnet-4-5"]
        ),
    },
    "gemini": {
        "denied": Situation(
            lambda asked: a.Text() if asked.follows else a.Shell("cat /etc/hostname"),
            argv=lambda argv: ["auto_edit" if each == "yolo" else each for each in argv],
        ),
        "limit-hours": Situation(always(a.rate_limit(7200))),
        "no-key": Situation(works, env=(("GEMINI_API_KEY", ""),)),
        "untrusted": Situation(works, env=(("GEMINI_CLI_TRUST_WORKSPACE", "false"),)),
    },
    "aider": {  # it has no tools
        "terminated": Situation(always(a.Silence()), signal.SIGTERM),
        "interrupted": Situation(always(a.Silence()), signal.SIGINT),
        "killed": Situation(always(a.Silence()), signal.SIGKILL),
    },
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one run came to."""

    exit: int
    ended_by_us: bool
    secs: float
    requests: list[str]
    stdout: bytes
    stderr: bytes
    rollout: bytes
    written: bool


def record(client: str, situation: Situation, folder: Path) -> Recorded:
    """Bring a client into a situation, and keep what it says."""
    repo = folder / "repo"
    repo.mkdir()
    subprocess.run(["git", "init", "--quiet", repo], check=True)
    prompt = folder / "prompt.md"
    prompt.write_text(situation.prompt)
    preset = Shelf().preset(client)
    argv = situation.argv([each.replace("{prompt_file}", str(prompt)) for each in preset.command])
    with at_a_desk(folder / "desk", client, otherwise=situation.answers) as desk:
        begun = time.monotonic()
        process = desk.start(argv, repo, prompt, **{**preset.set, **dict(situation.env)})
        out, err, ended = _to_its_end(process, situation, desk.standin)
        _sweep(desk)
        secs = round(time.monotonic() - begun, 1)
        requests = [each.answer for each in desk.standin.asked()] + desk.standin.others
        rollout = b"".join(_told(desk))
        scrubbed = [_scrubbed(each, folder, desk) for each in (out, err, rollout)]
    return Recorded(process.returncode, ended, secs, requests, *scrubbed, (repo / "hello.txt").exists())


def _to_its_end(process: subprocess.Popen[bytes], situation: Situation, standin: Standin) -> tuple[bytes, bytes, bool]:
    """Wait for its end, or bring it about once it has asked what it asks."""
    if situation.end is None:
        try:
            return *process.communicate(timeout=PATIENCE_SECS), False
        except subprocess.TimeoutExpired:
            process.terminate()
            return *process.communicate(), True
    standin.until(1)
    try:
        return *process.communicate(timeout=SETTLED_SECS), False
    except subprocess.TimeoutExpired:
        process.send_signal(situation.end)
        return *process.communicate(), True


def _sweep(desk: Desk) -> None:
    """End the tools that a client has left running: they have the desk's home in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={desk.home}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def _told(desk: Desk) -> Iterator[bytes]:
    """Give what codex writes beside its stream of how a turn went; the rest of that file is the talk itself."""
    for path in sorted((desk.home / ".codex").glob("sessions/**/rollout-*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            payload = json.loads(line).get("payload", {})
            if payload.get("type") in ("token_count", "task_complete", "turn_aborted", "error", "stream_error"):
                yield line


def _scrubbed(raw: bytes, folder: Path, desk: Desk) -> bytes:
    """Take out what is of this machine and of this moment: folders, programs and the port."""
    for place in (folder, folder.resolve()):
        raw = raw.replace(str(place).encode(), b"HERE")
        raw = raw.replace(re.sub(r"[^A-Za-z0-9]", "-", str(place)).encode(), b"-HERE")
    raw = raw.replace(str(CACHE).encode(), b"CLIENTS").replace(desk.standin.url.encode(), b"http://127.0.0.1:1")
    raw = re.sub(rb"https?://(?!127\.0\.0\.1)[\w.-]+", b"https://elsewhere.invalid", raw)
    return re.sub(rb"(?<![\w.~*}/<-])/(?:root|home|tmp|work|mnt|srv|Users)/[\w./-]*", b"ELSEWHERE", raw)


def write(client: str, names: list[str]) -> None:
    """Record situations of a client, and write its manifest."""
    folder = STREAMS / client
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path = folder / "manifest.json"
    manifest: dict[str, Any] = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    for name, situation in {**SITUATIONS, **ONLY[client]}.items():
        if names and name not in names:
            continue
        scratch = Path(tempfile.mkdtemp(prefix="loopr-recording-"))
        try:
            found = record(client, situation, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        for suffix, raw in (
            (_suffix(client), found.stdout),
            (".stderr.txt", found.stderr),
            (".rollout.jsonl", found.rollout),
        ):
            path = folder / f"{name}{suffix}"
            path.unlink(missing_ok=True)
            if raw or suffix == _suffix(client):
                path.write_bytes(raw)
        facts = {"exit": found.exit, "ended_by_us": found.ended_by_us, "written": found.written}
        instants = {"recorded_at": RECORDED_AT} | ({"resets_at": RESETS_AT} if "usage-limit" in name else {})
        manifest[name] = facts | {"requests": len(found.requests)} | instants
        print(f"{client} {name}: exit {found.exit} after {found.secs} s, {found.requests}", flush=True)
        manifest_path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def _suffix(client: str) -> str:
    """Name the kind of file that a client's stream is."""
    return ".txt" if client == "aider" else ".jsonl"


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2:])
