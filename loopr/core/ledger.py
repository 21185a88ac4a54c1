"""What was used, by whom and when: sums over a rolling window and since the beginning.

Every attempt that ended is one charge. A charge counts while it is younger than the window, so a sum is a pure function
of the charges and of `now`. Knows no budget and no share: those ask here (`limits.py`, `fairness.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from loopr.core.model import Loop, Usage
from loopr.core.policy import DEFAULT_LANE, Policy


class Charge(NamedTuple):
    """One ended attempt; `cost` is what shares count, in thousandths of a token: its time where it told no tokens.

    `estimated` is true where its client has rounded, and under settings from before where it told no tokens.
    `micro_usd` is what was reported, else its tokens at the lane's price, else at what they usually cost there, else
    unknown.
    """

    at: int
    loop: str
    plan: str
    project: str
    type: str
    lane: str
    tokens: int | None
    micro_usd: int | None
    ms: int
    cost: int
    estimated: bool

    @property
    def counted(self) -> int:
        """What budgets count: nothing where no tokens were told."""
        if self.tokens is not None:
            return self.tokens * 1000
        return self.cost if self.estimated else 0


class Sums(NamedTuple):
    """What a set of charges comes to: `cost` is what budgets count, `use` what shares do, in thousandths of a token.

    `usd` is in millionths; `told` is how many of the attempts told that they have used tokens or money.
    """

    attempts: int = 0
    cost: int = 0
    usd: int = 0
    ms: int = 0
    use: int = 0
    told: int = 0

    def plus(self, other: Sums) -> Sums:
        """Add two sums."""
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: Sums) -> Sums:
        """Take one sum from another."""
        return Sums(*(a - b for a, b in zip(self, other, strict=True)))


def cost_of(policy: Policy, usage: Usage) -> int:
    """Price a usage as budgets count it, in thousandths of a token: what told no tokens has used none."""
    return use_of(policy, usage) if usage.tokens is not None or policy.time_is_tokens else 0


def use_of(policy: Policy, usage: Usage) -> int:
    """Price a usage as shares count it, in thousandths of a token: what was reported, else its time, never nothing."""
    if usage.tokens is not None:
        return usage.tokens * 1000
    return max(1, int(usage.ms * policy.tokens_per_second))


def usd_of(policy: Policy, usage: Usage, lane: str, usual: Sums | None = None) -> int | None:
    """Price a usage in micro-dollars: what was reported, else its tokens at the lane's price, else unknown.

    `usual` is what tokens have cost on that lane so far: a client that is ended before its last word tells no price.
    """
    price = policy.lane(lane).micro_usd_per_mtok
    if usage.micro_usd is not None or (usage.tokens is None and not policy.time_is_tokens):
        return usage.micro_usd
    if price is not None:
        return cost_of(policy, usage) * price // 1_000_000_000
    return cost_of(policy, usage) * usual.usd // usual.cost if usual is not None else None


def charge_of(policy: Policy, loop: Loop, usage: Usage, lane: str, at: int, *, usual: Sums | None = None) -> Charge:
    """Make the charge for an attempt of a loop that ended at an instant; `usual` is as in `usd_of`."""
    return Charge(
        at,
        loop.id,
        loop.plan,
        loop.project,
        loop.type,
        lane,
        usage.tokens,
        usd_of(policy, usage, lane, usual),
        usage.ms,
        use_of(policy, usage),
        policy.time_is_tokens if usage.tokens is None else usage.estimated,
    )


def sums_of(charge: Charge) -> Sums:
    """Return what one charge adds to a sum."""
    cost, usd = charge.counted, charge.micro_usd or 0
    return Sums(1, cost, usd, charge.ms, charge.cost, int(cost + usd > 0))


def read_sums(value: Sequence[int]) -> Sums:
    """Read a row of sums back; budgets and shares counted the same before, and all attempts had told something."""
    row = (*value, value[1]) if len(value) == 4 else tuple(value)
    return Sums._make(row if len(row) > 5 else (*row, row[0] if row[1] or row[2] else 0))


class Account:
    """The charges of one payer and one type, in order of time, as running sums."""

    __slots__ = ("sums", "times")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.times: list[int] = []
        self.sums: list[Sums] = [Sums()]

    def add(self, at: int, what: Sums) -> None:
        """Add a charge; instants never go back."""
        self.times.append(max(at, self.times[-1]) if self.times else at)
        self.sums.append(self.sums[-1].plus(what))

    def after(self, instant: int | None) -> Sums:
        """Sum what was charged after an instant, or all of it."""
        if instant is None:
            return self.sums[-1]
        return self.sums[-1].minus(self.sums[bisect_right(self.times, instant)])

    def first_after(self, instant: int) -> int | None:
        """Return the time of the oldest charge after an instant."""
        index = bisect_right(self.times, instant)
        return self.times[index] if index < len(self.times) else None


SPENT = "spent/"
PLAN, PROJECT, WORKSPACE = "plan", "project", "workspace"
Scope = tuple[str, str]
"""Who pays: ("plan", id), ("project", name) or ("workspace", "")."""


def scopes_of(loop: Loop) -> tuple[Scope, Scope, Scope]:
    """List everybody who pays for a loop."""
    return (PLAN, loop.plan), (PROJECT, loop.project), (WORKSPACE, "")


def plan_key(plan: str, type_name: str) -> str:
    """Return the key of the row that keeps what a plan's loops of one type have used in all."""
    return f"{SPENT}{type_name}/{plan}"


class Ledger:
    """All accounts of the workspace: one for each payer and type."""

    def __init__(self, window_ms: int) -> None:
        """Begin with nothing and a rolling window."""
        self.window_ms = window_ms
        self._accounts: dict[Scope, dict[str, Account]] = {}
        self._prices: dict[str, Account] = {}  # of lanes: what is known in tokens and in money

    def add(self, charge: Charge) -> None:
        """Book a charge with everybody who pays for it."""
        what = sums_of(charge)
        for scope in ((PLAN, charge.plan), (PROJECT, charge.project), (WORKSPACE, "")):
            self._account(scope, charge.type).add(charge.at, what)
        if charge.tokens and charge.micro_usd is not None and charge.lane != DEFAULT_LANE:
            self._prices.setdefault(charge.lane, Account()).add(charge.at, what)

    def totals(self) -> dict[str, Sums]:
        """Return what every plan has used in all, by type, each under the key of its row."""
        plans = ((name, types) for (kind, name), types in self._accounts.items() if kind == PLAN)
        return {plan_key(plan, each): account.after(None) for plan, types in plans for each, account in types.items()}

    def read(self, totals: Mapping[str, Sums], charges: Iterable[Charge]) -> None:
        """Take the accounts from the plans' totals and the charges of the window, which the totals contain."""
        charges = list(charges)
        older = dict(totals)
        for charge in charges:
            key = plan_key(charge.plan, charge.type)
            older[key] = older[key].minus(sums_of(charge))
        for key, what in older.items():
            _, type_name, plan = key.split("/", 2)
            self._account((PLAN, plan), type_name).add(0, what)
        for charge in charges:
            self.add(charge)

    def move_clock(self, by_ms: int) -> None:
        """Move every stored instant."""
        accounts = [each for types in self._accounts.values() for each in types.values()]
        for account in (*accounts, *self._prices.values()):
            account.times = [at + by_ms for at in account.times]

    def _account(self, scope: Scope, type_name: str) -> Account:
        """Return the account of a payer and a type, made when first asked for."""
        return self._accounts.setdefault(scope, {}).setdefault(type_name, Account())

    def _since(self, scope: Scope, now: int) -> int | None:
        """Say from when charges count for a payer: a plan's never grow old."""
        return None if scope[0] == PLAN else now - self.window_ms

    def used(self, scope: Scope, now: int) -> Sums:
        """Sum what a payer has used in its window."""
        since = self._since(scope, now)
        return _total(each.after(since) for each in self._accounts.get(scope, {}).values())

    def used_by_type(self, scope: Scope, type_name: str, now: int) -> Sums:
        """Sum what one type has used at a payer's cost, for its mean."""
        account = self._accounts.get(scope, {}).get(type_name)
        return account.after(self._since(scope, now)) if account else Sums()

    def price(self, lane: str, now: int) -> Sums | None:
        """Return what was used on an account in tokens and in money, None where nobody told both in the window."""
        account = self._prices.get(lane)
        known = account.after(now - self.window_ms) if account is not None else Sums()
        return known if known.cost else None

    def mean_of_type(self, scope: Scope, type_name: str, now: int) -> Sums | None:
        """Return the mean cost of an attempt of a type to a payer, None where all together used nothing.

        Attempts that told neither tokens nor money have no part in the means of these.
        """
        sums = self.used_by_type(scope, type_name, now)
        if not sums.use and not sums.told:
            return None
        told = sums.told or 1
        return Sums(1, sums.cost // told, sums.usd // told, sums.ms // sums.attempts, sums.use // sums.attempts)

    def dearest_mean(self, scope: Scope, now: int) -> Sums | None:
        """Return what an attempt of a payer's dearest type costs, in each unit; None where nothing is known."""
        means = [self.mean_of_type(scope, each, now) for each in self._accounts.get(scope, {})]
        known = [each for each in means if each is not None]
        return Sums(*map(max, zip(*known, strict=True))) if known else None

    def frees_at(self, scope: Scope, now: int) -> int | None:
        """Say when the oldest charge that still counts will not count any more."""
        since = self._since(scope, now)
        if since is None:
            return None
        oldest = [each.first_after(since) for each in self._accounts.get(scope, {}).values()]
        return min((at + self.window_ms for at in oldest if at is not None), default=None)

    def fits_at(self, scope: Scope, now: int, fits: Callable[[Sums], bool]) -> int | None:
        """Say when so much of a payer's window will have passed that the rest fits; None where no window ever helps."""
        early, late = now, now + self.window_ms
        if scope[0] == PLAN or not fits(self.used(scope, late)):
            return None
        while early < late:
            middle = (early + late) // 2
            early, late = (early, middle) if fits(self.used(scope, middle)) else (middle + 1, late)
        return late


def _total(parts: Iterable[Sums]) -> Sums:
    """Add sums up."""
    total = Sums()
    for part in parts:
        total = total.plus(part)
    return total
