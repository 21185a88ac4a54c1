"""The words for the states of a worktree, and for the need of a loop that waits.

Knows words only.
"""

from __future__ import annotations

PACKING, PACKED, KEPT = "packing", "packed", "kept"
"""It is being packed, was packed, or could not be and stays beside all others."""
NEW = "new"
"""A loop that waits needs one that is new to it."""
