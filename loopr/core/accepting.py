"""Which settings are in force: the accepted ones, until a change of the files is taken up or a person accepts it.

What changes while a loop could have changed it is held back as a whole. Knows seals and the names of keys. Must never
know a file, nor what a setting means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.scene import Scene

FIRST, IDLE, AT_ONCE = "the first beginning", "nothing was at work", "what counts at once"
"""Why settings are accepted without a person."""
ACCEPT = "`loopr config accept` shows and takes it"
MOST_NAMED = 5


def attempts_live(scene: Scene) -> bool:
    """Say whether an attempt lives, or is still ending: what changes in that time may be a loop's doing."""
    return bool(scene.occupancy.loops)


def holds_back(scene: Scene, *, serving: bool = False) -> bool:
    """Say whether a change of the files is held back now; an engine that serves knows that it did not die."""
    shared = scene.shared
    return bool(shared.accepted.held) or attempts_live(scene) or (shared.engine.serving and not serving)


def settings_seen(scene: Scene, seen: o.SettingsSeen, now: int) -> Iterator[Event]:
    """The files are as they were accepted, or are accepted now, or are held back."""
    accepted = scene.shared.accepted
    if seen.over != accepted.seal:
        return  # others are in force by now: it is compared again
    if seen.seal == accepted.seal:
        if accepted.held:
            yield w.SettingsPutBack()
        if accepted.live:
            yield w.SettingsAccepted(seen.seal, AT_ONCE)
    elif not accepted.seal:
        yield w.SettingsAccepted(seen.seal, FIRST, names=seen.names)
    elif not seen.keys:
        yield w.SettingsAccepted(seen.seal, AT_ONCE)
    elif not seen.during and not holds_back(scene, serving=seen.serving):
        yield w.SettingsAccepted(seen.seal, IDLE)
    else:
        if (seen.seal, seen.keys) != (accepted.held, accepted.keys):
            yield w.SettingsHeld(seen.seal, seen.keys)
        if seen.live and seen.seal != accepted.live:
            yield w.SettingsAccepted(accepted.seal, AT_ONCE, seen.seal)


def accept(scene: Scene, seal: str, by: str) -> Iterator[Event]:
    """A person takes what the files say, as it was shown."""
    if seal != scene.shared.accepted.seal:
        yield w.SettingsAccepted(seal, by)
    elif scene.shared.accepted.held:
        yield w.SettingsPutBack()


def accept_one(scene: Scene, seal: str, by: str, rest: o.SettingsSeen) -> Iterator[Event]:
    """A person takes one setting, where changes are held back; `rest`, what the files say beside it, stays so."""
    if not holds_back(scene):
        return  # the next look takes up all that the files say
    if seal != scene.shared.accepted.seal:
        yield w.SettingsAccepted(seal, by)
    yield from settings_seen(scene, replace(rest, during=True), 0)


def held_words(keys: Sequence[str]) -> str:
    """Say what is held back, and how it comes into force."""
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return f"held back: {', '.join(keys[:MOST_NAMED])}{more}; {ACCEPT}"
