"""What an engine keeps for the day on which its journal is lost: a copy, made whenever one starts.

Must never know what is in a journal, nor put one back.
"""

from __future__ import annotations

from pathlib import Path

from loopr.core import observations as o
from loopr.driving.acts import Act, Do
from loopr.errors import LooprError
from loopr.world.journal_copies import behind_its_copy, keep_copy

JOURNAL_PLACE = "journal"


def copy_journal(journal: Path) -> Act:
    """Copy the journal; tell where that cannot be done, and where the journal has lost events."""
    return o.Noticed(JOURNAL_PLACE, (yield Do(lambda: _copied(journal))))


def _copied(journal: Path) -> str:
    """Copy the journal, and say in words what is wrong with it or its copies."""
    wrong = behind_its_copy(journal)
    if wrong:
        return wrong
    try:
        keep_copy(journal)
    except (LooprError, OSError) as error:
        return f"no copy of the journal can be kept: {error}"
    return ""
