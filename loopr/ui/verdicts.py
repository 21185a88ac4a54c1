"""A judge that said no: which kind of judge it was, and the command that prints its output.

Reads it off the reason of a refusal. Must never know how a verdict comes about, nor where output
lies.
"""

from __future__ import annotations

import re

from loopr.core.model import OCCUPYING, Loop, Status

_JUDGE = re.compile(r"the (check|review)(?: \d+ of \d+)? (?:said no|took longer)")


def judge_in(reason: str) -> str:
    """Name the kind of judge that a reason begins with, as `logs` calls it; nothing without one."""
    found = _JUDGE.match(reason)
    return found[1] if found is not None else ""


def output_of(judge: str, loop: str, *options: str) -> str:
    """Write the command that prints the output of a judge."""
    return f"`loopr {' '.join(['logs', f'--{judge}', *options, loop])}`"


def last_no(loop: Loop) -> str:
    """Name the kind of judge that refused the last try of a loop, unless another one is made."""
    over = loop.status in OCCUPYING or loop.status is Status.COMPLETE
    return "" if over else judge_in(loop.reason)
