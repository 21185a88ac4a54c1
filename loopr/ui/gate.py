"""The one gate before every wish that changes this workspace: `pass_gate(workspace, "land", [plan])`.

Every surface calls it, once for a wish, before anything is looked at or changed. A verb that only
shows, or only says what it would do, passes none. Must never know what a wish leads to, nor who may
have it (`core/authority.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from loopr.core.authority import Asker, Refusal, refusal
from loopr.core.events import Event
from loopr.core.scene import Scene
from loopr.errors import NotAllowed, SettingsError, WorldError
from loopr.ui.askers import Asked, who_asks
from loopr.wiring import Workspace
from loopr.world.runs import Runs
from loopr.world.settings.sources import variables

Targets = Callable[[Scene], Sequence[str]]
LONGEST = 120


def pass_gate(
    workspace: Workspace,
    wish: str,
    said: Sequence[str] = (),
    means: Targets | None = None,
) -> Asked:
    """Let a wish through in the name of whoever asks, or refuse it and tell; return who asks.

    `said` is what the wish is about as it was typed; `means` finds the ids, leases or scopes for that.
    """
    asked = who_asks(workspace)
    found = _refused(workspace, asked, wish, said, means)
    workspace.act_for(asked.asker.name)
    if found is None:
        return asked
    asker, no = found
    if asker.lease and asked.scene is not None and asker.loop in asked.scene.loops:
        with suppress(WorldError, SettingsError, OSError):  # in a sandbox, say: the refusal stands
            _tell(workspace, asked.scene, asker.lease, wish, said)
    raise NotAllowed(no.reason, hint=no.hint)


def _refused(
    workspace: Workspace, asked: Asked, wish: str, said: Sequence[str], means: Targets | None
) -> tuple[Asker, Refusal] | None:
    """Say to whom a wish is refused and why: whatever it is about, then for what it is about."""
    asker, rights, scene, above = asked
    if asker.kind == "person":
        return None
    line = " ".join(["loopr", wish, *said])
    for each, theirs in ((asker, rights), *above):
        found = refusal(each, wish, theirs, (), line)
        if found is None and scene is not None:
            found = refusal(each, wish, theirs, means(scene) if means is not None else said, line)
        if found is not None:
            return each, found
    chosen = [*workspace.overrides, *(variables(workspace.environ) if asker.kind != "worker" else ())]
    if not chosen:
        return None
    reason = f"{asker.name} may not choose settings for its own wish: {_plain(chosen[:1])}"
    return asker, Refusal(reason, "leave `--set` and such variables out: loopr.yml says how loops work")


def _tell(workspace: Workspace, scene: Scene, lease: str, wish: str, said: Sequence[str]) -> None:
    """Have it remembered what a loop has tried, if that says more than what is told already."""
    from loopr.core import wishes  # slow to import, and hardly anybody is refused

    loop, _, attempt = lease.rpartition("#")
    what, runs = f"denied.{wish.replace(' ', '-')}", Runs(workspace.place.state)
    tries = runs.count(scene.loops[loop].name, int(attempt), what)

    def course(scene: Scene, now: int) -> Iterator[Event]:
        yield from wishes.deny(scene, lease, wish, _plain(said), tries)

    if any(course(scene, 0)):
        with workspace.visit() as engine:
            engine.mind.decide(course)


def _plain(said: Sequence[str]) -> str:
    """Write what a wish was about on one short line, whatever a loop has put there."""
    text = "".join(each for each in " ".join(said) if each.isprintable())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
