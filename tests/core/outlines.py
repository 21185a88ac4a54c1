"""Outlines in one line, for stories: `tokens; endpoints needs tokens serial; deep (a; b needs a)`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from loopr.core.entries import Artifact, Entry
from loopr.core.policy import Budget

_WORD = re.compile(r"[();]|[^\s();]+")
_FLAGS = {"serial": False, "parallel": True}
_TAKES_A_WORD = ("needs", "files", "run", "agent", "leaf", "title", "body", "budget", "priority", "resources")


def digest_of(text: str) -> str:
    """Return what stands for the digest of a file with this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def outline(text: str, title: str = "", **more: object) -> Artifact:
    """Read an artifact; what follows `#` makes it another file that says the same, `serial:` is said at the top."""
    said = text.partition("#")[0].strip()
    parallel = not said.startswith("serial:")
    words = iter(_WORD.findall(said.removeprefix("serial:")))
    entries = tuple(_entries(words))
    nothing = said == "nothing"  # is below, in so many words
    entries = () if nothing else entries
    declares = bool(entries) or nothing
    return Artifact("", title, parallel=parallel, entries=entries, declares=declares, text=text, **more)  # type: ignore[arg-type]


def _entries(words: Iterator[str]) -> Iterator[Entry]:
    """Read siblings up to the end of their list."""
    said: dict[str, object] = {}
    for word in words:
        if word in (";", ")"):
            if said:
                yield _entry(said)
            said = {}
            if word == ")":
                return
        elif word == "(":
            said["children"] = tuple(_entries(words))
        elif not said:
            said["id"] = word
        elif word in _FLAGS:
            said["parallel"] = _FLAGS[word]
        elif word in _TAKES_A_WORD:
            said[word] = next(words)
        else:
            raise ValueError(f"{word!r} says nothing of a child")
    if said:
        yield _entry(said)


def _amounts(text: str) -> tuple[tuple[str, int], ...]:
    """Read `db=1,simulator=2`, or `none`."""
    pairs = [each.partition("=") for each in text.split(",") if each != "none"]
    return tuple((name, int(amount)) for name, _, amount in pairs)


def _entry(said: dict[str, object]) -> Entry:
    """Make one entry from what was said of it."""
    needs = tuple(str(said["needs"]).split(",")) if "needs" in said else ()
    return Entry(
        id=str(said["id"]),
        title=str(said.get("title", said["id"])),
        body=str(said.get("body", "")),
        needs=needs,
        files=tuple(str(said["files"]).split(",")) if "files" in said else (),
        run=str(said["run"]) if "run" in said else None,
        agent=str(said["agent"]) if "agent" in said else None,
        leaf=said["leaf"] == "true" if "leaf" in said else None,
        budget=Budget(tokens=int(str(said["budget"]))) if "budget" in said else Budget(),
        priority=int(str(said["priority"])) if "priority" in said else None,
        resources=_amounts(str(said["resources"])) if "resources" in said else None,
        parallel=said.get("parallel"),  # type: ignore[arg-type]
        children=said.get("children", ()),  # type: ignore[arg-type]
    )
