"""What a person sees in ten situations, as files beside this one: on a terminal of 80 columns and in a pipe.

`SCREENS=write python -m pytest tests/ui/test_screens.py` writes them anew; whoever does so reads the difference.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Failure, Usage
from loopr.world.repo import commits, worktrees
from loopr.world.repo.words import Message
from tests.ui.scenes import COMMANDS, Desk, flat
from tests.ui.terminals import on_terminal
from tests.world.repo.grounds import git

SCREENS = Path(__file__).with_name("screens")
AT = "2026-01-01T12:01:10Z"
PLAN = flat(["model", "parser", "pages"]).replace("{id: pages}", "{id: pages, needs: [parser]}")


def begun(shop: Desk) -> None:
    """Let the first of the plan run, for a minute."""
    shop.start(PLAN)
    shop.choose()
    shop.run("p/model")
    shop.clock.at += 60_000


def landed(shop: Desk, commit: str) -> None:
    """Let a person say yes to what passed, and let it land, as a commit or without one."""
    shop.wish(wishes.approve, "p/model")
    text = "# model\n"
    shop.write("specs/p/model/spec.md", text)
    shop.see(o.LandingDone("p/model", 1, commit, hashlib.sha256(text.encode()).hexdigest()[:32]))


def one_parked(shop: Desk) -> None:
    """A loop asks for a program that is not there."""
    begun(shop)
    shop.end("p/model", Failure.CONFIG, "there is no such program (exit 127): my-agent")


def retried(shop: Desk) -> None:
    """A person said no to one loop; another one has died, and begins again in a while."""
    begun(shop)
    shop.run("p/parser")
    shop.end("p/parser", Failure.INFRA, "it died by signal 9")
    shop.end("p/model")
    shop.judge("p/model")
    shop.wish(wishes.reject, "p/model", "not like this")


def approving(shop: Desk) -> None:
    """The check said yes, and a person must too."""
    begun(shop)
    shop.end("p/model")
    shop.judge("p/model")


def limited(shop: Desk) -> None:
    """A provider asked for a rest."""
    begun(shop)
    shop.end("p/model", Failure.LIMITED, "429: come back later", retry_after_ms=3_600_000)


def paused(shop: Desk) -> None:
    """A person holds a loop, and everything."""
    begun(shop)
    shop.wish(wishes.pause, "p/parser", "ada", "lunch")
    shop.wish(wishes.pause, "workspace:", "ada", "")


def spent(shop: Desk) -> None:
    """The plan has nothing left to spend."""
    shop.start(PLAN.replace("id: p\n", "id: p\nbudget: {tokens: 1000}\n"))
    shop.choose()
    shop.run("p/model")
    shop.clock.at += 60_000
    shop.see(o.AttemptUsed("p/model", 1, Usage(2_000, None, 60_000)))
    shop.end("p/model")
    shop.judge("p/model")
    landed(shop, "c0ffee")


def done(shop: Desk) -> None:
    """All is done, and nothing of it is a commit that could come home."""
    shop.start(flat(["model"]))
    shop.choose()
    shop.run("p/model")
    shop.clock.at += 60_000
    shop.end("p/model")
    shop.judge("p/model")
    landed(shop, "")


def away(shop: Desk) -> None:
    """All is done, and has not been brought home."""
    shop.write("loopr.yml", COMMANDS)
    shop.start(flat(["model"]))
    shop.choose()
    shop.run("p/model")
    ground = shop.branch()
    tree = worktrees.take(ground, "p.model.g1", git(shop.folder, "rev-parse", "main"))
    (tree.folder / "made.txt").write_text("made\n")
    commits.commit_attempt(ground, "p.model.g1", 1, Message("Work of p/model", at_ms=1))
    shop.clock.at += 60_000
    shop.bring_home(ground, "p/model", Message("p/model: model", at_ms=1))


SITUATIONS: dict[str, Callable[[Desk], object]] = {
    "fresh-plan": lambda shop: shop.start(PLAN),
    "running": begun,
    "one-parked": one_parked,
    "failed-and-retried": retried,
    "approval-waiting": approving,
    "limit-rests": limited,
    "paused": paused,
    "budget-reached": spent,
    "all-done": done,
    "done-and-not-home": away,
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_screen(shop: Desk, name: str) -> None:
    """Tree and status say the same on a terminal, there without colours, and in a pipe, and can all be read."""
    commands = COMMANDS.replace("make spec}", "make spec, lane: hal, approve: true}")
    shop.write("loopr.yml", commands)
    SITUATIONS[name](shop)
    parts = []
    for title, words in (
        ("tree, on a terminal", ("tree",)),
        ("tree, without colours", ("tree", "--no-color")),
        ("status, without colours", ("status", "--no-color")),
    ):
        shown = on_terminal(shop.folder, *words, "--at", AT).decode().replace("\r\n", "\n").replace("\x1b[", "^[")
        parts.append(f"--- {title}\n{shown}")
    for verb in ("tree", "status"):
        parts.append("\n".join([f"--- {verb}, in a pipe", *shop.lines(verb, "--at", AT), ""]))
    found, path = "\n".join(parts), SCREENS / f"{name}.txt"
    if os.environ.get("SCREENS") == "write":
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8")
