"""One request as the stand-in understands it, whichever of the providers it was meant for.

Knows what all requests have in common. Must never know how an answer is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_LOOP = re.compile(r"^You .*?`([a-z0-9][a-z0-9/-]*)`, one piece of a larger work\.", re.MULTILINE)


@dataclass(slots=True)
class Asked:
    """A request that has come in; `left` and `answer` are filled in while it is dealt with."""

    api: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    prompt: str
    """All that the user is said to have said."""
    folder: str
    """Where the client works, if it says so."""
    follows: bool
    """The model has called a tool before, and this is what came of it."""
    tools: tuple[str, ...]
    number: int = 0
    answer: str = ""
    left: bool = field(default=False)
    """The client went away before it was answered."""

    @property
    def loop(self) -> str:
        """The loop that the prompt is about; empty if it is about none."""
        found = _LOOP.search(self.prompt)
        return found[1] if found else ""

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return str(self.body.get("model", ""))
