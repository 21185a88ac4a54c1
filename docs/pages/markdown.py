"""How a page is set together: paragraphs, tables, links, and the sentences that stand beside the code.

Knows Markdown and comments. Must never know what a page is about.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from enum import Enum

NOTICE = "<!-- Written by `make docs` from {source}: change that, not this page. -->"
Rows = Iterable[Sequence[str]]


def page(title: str, source: str, *parts: Iterable[str] | str) -> str:
    """Set a page together from paragraphs and blocks of lines, with a blank line between them."""
    blocks = [part if isinstance(part, str) else "\n".join(part) for part in parts]
    text = "\n\n".join([f"# {title}", NOTICE.format(source=source), *blocks])
    return re.sub(r"^(?=[\w`*‹]).{121,}$", lambda found: wrapped(found[0]), text, flags=re.MULTILINE) + "\n"


def wrapped(paragraph: str) -> str:
    """Break a long paragraph into lines, as in the pages that are written by hand, and never inside of code."""
    whole = re.sub(r"`[^`]+`", lambda found: found[0].replace(" ", "\0"), paragraph)
    return textwrap.fill(whole, 120, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def table(head: Sequence[str], rows: Rows) -> str:
    """Draw a table."""
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "--|" * len(head), *lines[1:]])


def code(text: str) -> str:
    """Set a word as code."""
    return f"`{text}`"


def one_line(text: str | None) -> str:
    """Put a docstring on one line."""
    return " ".join((text or "").split())


def beside(kind: type[Enum]) -> dict[str, str]:
    """Read the sentence that stands beside each value of an enum, as a comment."""
    found = re.findall(r'^    \w+ = "(\w+)"  # (.+)$', inspect.getsource(kind), re.MULTILINE)
    missing = {each.value for each in kind} - {name for name, _ in found}
    if missing:
        raise SystemExit(f"{kind.__name__}: no sentence beside {', '.join(sorted(missing))}")
    return dict(found)
