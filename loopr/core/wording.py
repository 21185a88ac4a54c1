"""Templates of commit messages: placeholders in braces, and the subject and body that come of one.

Knows one template and the values for it. Must never know a commit, nor where a template is written.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

PLACEHOLDERS = ("title", "loop", "plan", "type", "body")
USUAL = "{title}\n\n{body}"
MOST_IN_SUBJECT = 100
LINE = 72
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")
_BRACES = {"{{": "{", "}}": "}"}
_CUT = "…"


def slips_in(template: str) -> Iterator[tuple[str, str]]:
    """Give what is wrong with a template, each with its remedy."""
    known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
    for found in _PART.finditer(template):
        name = found["name"]
        if name is not None and name not in PLACEHOLDERS:
            yield f"there is no placeholder {found[0]}", f"known are {known}; {{{{ is a brace"
        elif name is None and found[0] not in _BRACES:
            yield (
                f"a {found[0]} stands alone",
                f"{found[0] * 2} is a brace; placeholders are {known}",
            )
    first = template.strip().partition("\n")[0]
    if not first.replace("{body}", "").strip():
        yield (
            "its first line is empty without a body",
            "begin with {title}, or with words of your own",
        )


def fill(template: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Return the subject and the body that a template comes to.

    A value other than the body is one line. Of a subject that is too long the beginning stays, and
    the body begins with all of it.
    """
    flat = {name: " ".join(text.split()) for name, text in values.items()}
    flat["body"] = values.get("body", "")

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        return flat.get(name, "") if name is not None else _BRACES[found[0]]

    first, _, rest = _PART.sub(part, template).strip().partition("\n")
    subject, body = " ".join(first.split()), rest.strip()
    if len(subject) <= MOST_IN_SUBJECT:
        return subject, body
    whole = textwrap.fill(subject, LINE, break_long_words=False, break_on_hyphens=False)
    return _shortened(subject), "\n\n".join(filter(None, [whole, body]))


def _shortened(subject: str) -> str:
    """Cut a subject at a word where there is one in its last third, and else anywhere."""
    room = MOST_IN_SUBJECT - len(_CUT)
    at = subject.rfind(" ", room * 2 // 3, room + 1)
    return subject[: at if at > 0 else room].rstrip() + _CUT
