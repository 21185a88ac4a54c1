"""Writes the pages of docs/ that are drawn from the code: `make docs`; with --check it only names those out of date.

Knows which pages there are. Must never know what is in one: the same code gives the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pages.deciding import events_page, gates_page, lifecycle_page
from pages.elsewhere import other_names_page
from pages.using import authority_page, exit_codes_page, settings_page, tools_page, verbs_page

DOCS = Path(__file__).resolve().parent

PAGES: Mapping[str, Callable[[], str]] = {
    "lifecycle.md": lifecycle_page,
    "reference/events.md": events_page,
    "reference/exit-codes.md": exit_codes_page,
    "reference/gates.md": gates_page,
    "reference/other-names.md": other_names_page,
    "reference/settings.md": settings_page,
    "reference/tools.md": tools_page,
    "reference/verbs.md": verbs_page,
    "reference/who-may-steer.md": authority_page,
}


def main(check: bool = False) -> int:
    """Write every page that is out of date; with `check`, only name them, and return 1 if there is one."""
    stale = [(DOCS / name, made) for name, make in PAGES.items() if (made := make()) != _present(DOCS / name)]
    for path, text in stale:
        print(f"{'out of date: ' if check else 'wrote '}docs/{path.relative_to(DOCS).as_posix()}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if check and stale else 0


def _present(path: Path) -> str:
    """Read a page as it is committed."""
    return path.read_text("utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
