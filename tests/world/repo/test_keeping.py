"""A copy of a shared file is kept as a look found it sound, and never as it came right after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from loopr.driving import sentry
from loopr.driving.sentry import Sentry
from loopr.world.repo.ground import KEPT, Ground
from loopr.world.repo.keeping import keep
from tests.world.repo.grounds import begin, git, ground_of, plant, take

BROKEN = {
    "packed-refs": b"x\0\xff",
    "HEAD": b"nowhere",
    "config": b"[core\n",
    "hooks/pre-push": b"echo changed\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_after_a_look_is_not_kept(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command breaks a file between a look and the copy; the next look brings the old one back."""
    root = plant(tmp_path / "repo")
    place = root / ".git" / name
    place.parent.mkdir(exist_ok=True)
    (root / ".git" / "hooks" / "pre-push").write_text("#!/bin/sh\n")
    git(root, "pack-refs", "--all")
    ground = ground_of(root)
    begin(ground)
    take(ground, "oauth.one.g1")
    watching = Sentry(ground)
    watching.begin("one#1")
    sound = place.read_bytes()
    assert (ground.state / KEPT / name).read_bytes() == sound

    def keep_late(ground: Ground, *given: Any) -> None:
        place.write_bytes(BROKEN[name])
        keep(ground, *given)

    monkeypatch.setattr(sentry, "keep", keep_late)
    git(root, "tag", "new")  # so that there is something to look at
    watching.look()
    monkeypatch.undo()
    assert (ground.state / KEPT / name).read_bytes() == sound
    os.utime(place)
    watching.changed("one#1")
    assert place.read_bytes() == sound
