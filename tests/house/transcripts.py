"""Replays the transcripts of a page in a scratch repository, and writes them anew if it is run as a program:

    python -m tests.house.transcripts [PAGE...]

In a ```console block, a line that begins with `$ ` is a command, and what follows is all that it prints, stdout and
stderr together. A block whose opening line names a file (```markdown title=plan.md) is put into the repository first.
A command must succeed unless the next one is `$ echo $?`. The repository itself is printed as ~/repo. What no two runs
have in common (times, pids, commits) does not count. Knows pages and shells. Must never know a verb.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PROMPT, STATUS = "$ ", "echo $?"
PATIENCE_SECS = 120
FENCE = re.compile(r"```(?P<kind>\w*)(?: title=(?P<title>\S+))?$")
SHOWN = "~/repo"
CHANGING = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "‹instant›"),
    (re.compile(r"(?<=\bevent )\d+\b|(?<=/runs/hooks/0/on_park\.)\d+\b"), "‹seq›"),
    (re.compile(r"\b[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d\b"), "‹clock›"),  # what is not of today has its date
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "‹clock›"),
    (re.compile(r"^ +\d+(?=  ‹(?:instant|clock)›)"), "‹seq›"),  # loops that run side by side take turns as they like
    (re.compile(r"\bpid \d+(?: on \S+)?"), "‹pid›"),
    (re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{12}|[0-9a-f]{7})\b"), "‹commit›"),
    (re.compile(r"(?<=\.g1  )\d+ s$"), "‹secs›"),
    (re.compile(r" \([\d.]+ kB\)"), ""),  # what git needs for objects that name an instant
    (re.compile(r"(?<=\d tries  )\d+ s|(?<=1 try  )\d+ s"), "‹secs›"),
    (re.compile(r"(?<=\bdone) {2,}\d+ s\b|(?<=\d tries · )\d+ s\b|(?<=‹clock›  )\d+ s(?=  )"), "‹secs›"),
    (re.compile(r"(?<=‹clock›  after )\d+ s(?=: )"), "‹secs›"),
)


@dataclass
class File:
    """A file that the page shows: it is written into the scratch repository."""

    path: str
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Command:
    """A command with what the page says that it prints."""

    words: str
    line: int
    lines: list[str] = field(default_factory=list)


Step = File | Command


def steps(page: str) -> Iterator[Step]:
    """Read the files and the commands of a page, in order."""
    current: Step | None = None
    block = ""
    for number, line in enumerate(page.split("\n"), 1):
        fence = FENCE.match(line)
        if block:
            if line == "```":
                if current is not None:
                    yield current
                block, current = "", None
            elif block == "console" and line.startswith(PROMPT):
                if current is not None:
                    yield current
                current = Command(line.removeprefix(PROMPT), number)
            elif current is not None:
                current.lines.append(line)
            elif block == "console":
                raise ValueError(f"line {number}: a console block begins with a command")
        elif fence:
            block = fence["kind"] or "text"
            current = File(fence["title"], number) if fence["title"] else None


def replay(found: Sequence[Step], folder: Path) -> Iterator[tuple[Command, list[str]]]:
    """Take the steps in a fresh repository, and give what each command really printed."""
    environ = environment()
    for words in (
        ["init", "--quiet", "--initial-branch", "main", "."],
        ["commit", "--quiet", "--allow-empty", "--message", "begin"],
    ):
        subprocess.run(["git", *words], cwd=folder, env=environ, check=True)
    status = 0
    for place, step in enumerate(found):
        if isinstance(step, File):
            (folder / step.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.path).write_text("\n".join([*step.lines, ""]), "utf-8")
            continue
        status, printed = run(f"(exit {status})\n{step.words}", folder, environ)
        following = found[place + 1] if place + 1 < len(found) else None
        if status and not (isinstance(following, Command) and following.words == STATUS):
            raise AssertionError(f"line {step.line}: `{step.words}` exits with {status}: {printed}")
        yield step, printed.replace(str(folder.resolve()), SHOWN).splitlines()


def run(script: str, folder: Path, environ: dict[str, str]) -> tuple[int, str]:
    """Run a script of the shell, and return its exit code and all that it printed."""
    command, pipe, both = ["sh", "-c", script], subprocess.PIPE, subprocess.STDOUT
    ran = subprocess.run(
        command, cwd=folder, env=environ, stdout=pipe, stderr=both, text=True, check=False, timeout=PATIENCE_SECS
    )
    return ran.returncode, ran.stdout


def environment() -> dict[str, str]:
    """Give the environment of a person whose loopr is the one of this Python; it prints in the order it writes.

    Neither their own settings of git, nor how full their disk is, nor the hour make a difference: it is about noon, so
    that no instant that is shown lies on another day and has its date.
    """
    noon = f"NOON{datetime.now(UTC).hour - 12:+d}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOOPR", "GIT_DIR", "GIT_WORK"))}
    me = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.invalid"}
    me |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in me.items()}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    me |= {"PATH": path, "USER": "ada", "TZ": noon, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    return kept | me | git | {"LOOPR_WORKTREES__MIN_FREE_GB": "0"}


def normal(lines: Sequence[str]) -> list[str]:
    """Make what two runs print comparable: only times, pids, commits and how long it took may differ."""
    return [_settled(line) for line in lines]


def _settled(line: str) -> str:
    """Return a line with names in the place of what no two runs have in common."""
    for pattern, name in CHANGING:
        line = pattern.sub(name, line)
    return line


def rewritten(page: str, folder: Path) -> str:
    """Return the page with what its commands print now; what differs only in what never counts is left as it is."""
    lines = page.split("\n")
    for command, printed in reversed(list(replay(list(steps(page)), folder))):
        if normal(command.lines) != normal(printed):
            lines[command.line : command.line + len(command.lines)] = printed
    return "\n".join(lines)


def main() -> None:
    """Write the transcripts of every page of the guide anew."""
    named = {Path(each).resolve() for each in sys.argv[1:]}
    for path in sorted(GUIDE.glob("*.md")):
        if named and path not in named:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            text = rewritten(path.read_text("utf-8"), Path(folder))
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
            print(f"wrote docs/guide/{path.name}")


if __name__ == "__main__":
    main()
