"""Trailers as people write them: a map, or a list of lines, which YAML may read as maps.

Knows the form of one line. Must never know a commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopr.world.settings.reading import Node

OWN = "loopr-"
HINT = 'for example "Refs: #12"; a name is letters, digits and -'
TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: [^\x00-\x20\x7f][^\x00-\x1f\x7f]*")


def trailer_lines(node: Node) -> Iterator[tuple[str, str | None]]:
    """Give each line with its place; None stands for what can be no line."""
    for each in node.value if isinstance(node.value, list) else [node]:
        if isinstance(each.value, dict):
            for name, text in each.value.items():
                plain = not isinstance(text.value, (dict, list)) and text.value is not None
                yield text.where, f"{name}: {text.source.strip()}" if plain else None
        else:
            listed = each is not node and isinstance(each.value, str)
            yield each.where, each.value.strip() if listed else None
