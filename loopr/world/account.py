"""The name of the account that this process runs under: a person has no other here.

Must never know the use of that name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

UNNAMED = "somebody"


def account_name(environ: Mapping[str, str]) -> str:
    """Return the name that the environment has for a person, else the one that the system has."""
    return environ.get("USER") or environ.get("LOGNAME") or _of_system() or UNNAMED


def _of_system() -> str:
    """Return the name that the system has for the account, nothing where it has none."""
    import pwd  # few environments lack both names

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""
