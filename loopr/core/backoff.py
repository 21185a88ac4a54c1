"""How long a loop waits after a failure.

Jitter comes from a hash of loop and attempt, so that a replay gives the same number. Knows nothing of why it failed.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

from loopr.core.policy import Retry


def backoff_ms(retry: Retry, failures: int, loop_id: str, attempt: int) -> int:
    """Return the delay after the n-th failure in a row: growing, jittered by a hash so that a replay agrees, capped."""
    grown = Fraction(retry.base_ms)
    for _ in range(failures - 1):
        grown *= retry.factor
        if grown >= retry.cap_ms:
            break
    delay = min(Fraction(retry.cap_ms), grown)
    digest = hashlib.sha256(f"{loop_id}#{attempt}".encode()).digest()
    spread = Fraction(int.from_bytes(digest[:8], "big") * 2, (1 << 64) - 1) - 1
    return half_up(min(Fraction(retry.cap_ms), delay * (1 + retry.jitter * spread)))


def half_up(value: Fraction) -> int:
    """Round to the nearest whole number, halves upwards."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)
