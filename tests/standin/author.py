"""What a model would answer to loopr's own prompts: an outline where one is asked for, else a change.

Knows how loopr's prompts say which loop they are about and where its artifact belongs. Must never know a provider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.standin.answers import Answer, Edit, Text, Used
from tests.standin.asked import Asked
from tests.standin.server import Chosen

_OUTPUT = re.compile(r"^Write (\S+): Markdown", re.MULTILINE)
_CHILDREN = re.compile(r"^- `([a-z_-]+)` has one entry", re.MULTILINE)

USED = Used()
TREE: dict[str, tuple[str, ...]] = {
    "demo": ("one", "two"),
    "demo/one": ("first", "second"),
    "demo/two": ("third", "fourth"),
    "demo/one/first": (),
    "demo/one/second": (),
    "demo/two/third": (),
    "demo/two/fourth": (),
}
"""One plan with two specs, four phases, and the code loop that each of these implies."""
LOOPS = (*TREE, *(f"{loop}/code" for loop, children in TREE.items() if not children))


def author(tree: Mapping[str, Sequence[str]] = TREE, used: Used = USED) -> Chosen:
    """Answer as a model that does what it is asked: loops in `tree` declare their children, others write a file."""

    def answer(asked: Asked) -> Answer:
        if asked.follows:
            return Text("Done.", used)
        output = _OUTPUT.search(asked.prompt)
        if asked.loop in tree and output is not None:
            return Edit(output[1], _artifact(asked, tree[asked.loop]), used)
        return Edit(work_of(asked.loop), f"{asked.loop}\n", used)

    return answer


def work_of(loop: str) -> str:
    """Return the file that a loop without children writes."""
    return f"work/{loop.replace('/', '.')}.txt"


def _artifact(asked: Asked, children: Sequence[str]) -> str:
    """Write what a loop hands over."""
    key = _CHILDREN.search(asked.prompt)
    entries = "".join(f"  - id: {each}\n    title: The part {each}\n" for each in children)
    front = f"---\n{key[1] if key else 'children'}:\n{entries}---\n" if children else ""
    return f"{front}# What {asked.loop} comes to\n\nWrite one file.\n"
