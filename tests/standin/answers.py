"""What the stand-in may answer to a request, whichever of the providers it speaks for at that moment.

Knows the answers by their meaning. Must never know how a provider words them, nor who asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["rate_limit", "overloaded", "server", "authentication", "billing", "invalid", "context", "not_found"]


@dataclass(frozen=True, slots=True)
class Used:
    """What an answer is said to have cost, in tokens; the input includes what came from the cache."""

    input: int = 1000
    cached: int = 400
    output: int = 50


@dataclass(frozen=True, slots=True)
class Text:
    """The model says something, and is done."""

    text: str = "Done."
    used: Used = Used()


@dataclass(frozen=True, slots=True)
class Edit:
    """The model writes a file, with whatever tool the client has offered for that; a path counts from its folder."""

    path: str
    content: str
    used: Used = Used()


@dataclass(frozen=True, slots=True)
class Shell:
    """The model runs a command for the shell."""

    command: str
    used: Used = Used()


@dataclass(frozen=True, slots=True)
class Refused:
    """The request is answered with an HTTP status and an error body."""

    status: int
    kind: Kind
    message: str
    headers: dict[str, str] = field(default_factory=dict)
    code: str | None = None
    resets_at: int | None = None  # epoch seconds, where the body of a provider has a place for it


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """The model begins to speak, and the stream ends in an error of the provider's."""

    kind: Kind
    message: str


@dataclass(frozen=True, slots=True)
class CutShort:
    """The output is as long as it may be, and ends in the middle."""

    text: str = "So much to say"
    used: Used = Used()


@dataclass(frozen=True, slots=True)
class Silence:
    """The request is taken, and nothing is ever answered."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """The stream begins, and then nothing more comes."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream begins, and then the connection is gone."""


Answer = Text | Edit | Shell | Refused | BrokenOff | CutShort | Silence | Stalled | Cut


def rate_limit(retry_after_secs: int | None = None, *, kind: Kind = "rate_limit") -> Refused:
    """Refuse with 429, and say when to come back if that is known."""
    headers = {} if retry_after_secs is None else {"retry-after": str(retry_after_secs)}
    return Refused(429, kind, "This request would exceed your account's rate limit. Please try again later.", headers)


def usage_limit(resets_at: int) -> Refused:
    """Refuse because what a subscription allows is used up until an instant in epoch seconds."""
    unified = {
        "status": "rejected",
        "reset": str(resets_at),
        "representative-claim": "five_hour",
        "fallback-percentage": "0.5",
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
        "5h-status": "rejected",
        "5h-reset": str(resets_at),
        "5h-utilization": "1.0",
        "7d-status": "allowed",
        "7d-reset": str(resets_at + 400_000),
        "7d-utilization": "0.4",
    }
    headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in unified.items()}
    message = "This request would exceed your account's usage limit."
    return Refused(429, "rate_limit", message, headers, code="usage_limit_reached", resets_at=resets_at)


OVERLOADED = Refused(529, "overloaded", "Overloaded")
BROKEN = Refused(500, "server", "Internal server error")
UNKNOWN_KEY = Refused(401, "authentication", "invalid x-api-key", code="invalid_api_key")
NO_CREDIT = Refused(
    400, "billing", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
)
NO_QUOTA = Refused(
    429,
    "billing",
    "You exceeded your current quota, please check your plan and billing details.",
    code="insufficient_quota",
)
TOO_LONG = Refused(400, "context", "prompt is too long: 210000 tokens > 200000 maximum", code="context_length_exceeded")
NO_MODEL = Refused(404, "not_found", "model: no-such-model", code="model_not_found")
OVERLOADED_MIDWAY = BrokenOff("overloaded", "Overloaded")
LIMITED_MIDWAY = BrokenOff("rate_limit", "Rate limit reached on tokens per min. Please try again in 7s.")
