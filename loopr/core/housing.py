"""The words for what becomes of the worktree of a loop, and for what one needs that waits.

Knows words only.
"""

from __future__ import annotations

PACKING, PACKED, KEPT = "packing", "packed", "kept"
"""It is being packed, was packed, or could not be and stays beside all others."""
NEW = "new"
"""A loop that waits needs one that is new to it."""
