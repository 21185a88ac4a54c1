"""Who may steer: what a loop, a hook, a pull worker and a person may change in a workspace.

One table for every surface, and one pure answer: yes, or a refusal with the reason, the setting that
would allow it and the line to type. Must never know an environment, a process or a journal.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["person", "hook", "worker", "judge", "loop"]
State = Literal["live", "over", "unknown"]


class Act(NamedTuple):
    """One wish that changes a workspace, and who may have it beside a person.

    `may` is the word in `types.T.may` that lets a loop have it; without one no setting does.
    `decides`: a hook needs `hooks.may_decide`. `own`: it is said of one's own lease.
    """

    may: str = ""
    decides: bool = False
    own: bool = False


NEVER = Act()
DECIDES = Act(decides=True)
OWN = Act("lease", own=True)

ACTS: Mapping[str, Act] = {
    "init": NEVER,
    "start": Act("start"),
    "goal": Act("start"),
    "run": NEVER,
    "stop": NEVER,
    "dispatch": Act("dispatch"),
    "pause": Act("pause"),
    "resume": NEVER,
    "cancel": Act("cancel"),
    "retry": Act("retry"),
    "reset": NEVER,
    "clear": NEVER,
    "approve": DECIDES,
    "reject": NEVER,
    "iterate": NEVER,
    "lease take": Act("lease"),
    "lease renew": OWN,
    "lease complete": OWN,
    "lease release": OWN,
    "lease reclaim": Act("lease"),
    "convoy": Act("convoy"),
    "adopt": DECIDES,
    "update": NEVER,
    "land": NEVER,
    "land --yes": DECIDES,
    "gc": NEVER,
    "gc --forget": NEVER,
    "set": DECIDES,
    "config accept": DECIDES,
    "doctor --fix": NEVER,
    "doctor --try": NEVER,
}
"""Every wish by its name: the verb as it is typed. What is not here changes nothing, or is new."""


class Asker(NamedTuple):
    """Who asks: its name in the journal, and for a loop its lease, how that stands and its type.

    A `judge` has no lease: `land.check`, which runs what loops have written.

    `pid` is the process above this one that tells so, 0 where the environment of this one does.
    """

    kind: Kind
    name: str
    lease: str = ""
    state: State = "live"
    type: str = ""
    pid: int = 0

    @property
    def loop(self) -> str:
        """The id of the loop whose lease it is."""
        return self.lease.rpartition("#")[0]


class Rights(NamedTuple):
    """What the settings in force allow this asker, and what it may steer beside what is below it.

    `started` are the plans that it started; `plans` are all that there are.
    """

    may: Sequence[str] = ()
    hooks_decide: bool = False
    started: Collection[str] = ()
    plans: Container[str] = ()


class Refusal(NamedTuple):
    """Why a wish is refused, and what to do."""

    reason: str
    hint: str


def refusal(asker: Asker, wish: str, rights: Rights, targets: Sequence[str] = (), line: str = "") -> Refusal | None:
    """Say why an asker may not have a wish about some targets; None if it may.

    A target is the id of a loop or a plan, a lease, or what is no loop, as `project:NAME` is.
    `line` is what a person would type.
    """
    act, typed = ACTS[wish], f"`{line or f'loopr {wish}'}`"
    if asker.kind == "person" or (asker.kind == "hook" and not act.decides):
        return None
    if asker.kind == "hook":
        hint = f"`loopr set hooks.may_decide true` lets hooks decide; else a person types {typed}"
        return None if rights.hooks_decide else Refusal(f"{_is(asker)}: a hook may not {wish}", hint)
    if act.own and asker.lease and all(each == asker.lease for each in targets):
        return None
    if asker.state != "live":
        return Refusal(f"{_is(asker)}: a loop may not {wish}", _unset(typed))
    if not act.may or asker.kind == "judge":
        whom = "what judges" if asker.kind == "judge" else "a loop"
        return Refusal(f"{_is(asker)}: {whom} may never {wish}", _for_a_person(asker, typed))
    if act.may not in rights.may:
        allowed = f"[{', '.join((*rights.may, act.may))}]"
        setting = f"`types.{asker.type}.may: {allowed}` lets loops {act.may} what is below them"
        reason = f"{_is(asker)}: it may not {wish}"
        return Refusal(reason, f"{setting}; {_for_a_person(asker, typed)}")
    beyond = next((each for each in targets if not _within(asker, wish, rights, each)), None)
    if beyond is None:
        return None
    where = f"{beyond} is not below {asker.loop}, nor in a plan that it started"
    return Refusal(f"{_is(asker)}: it may not {wish} {where}", _for_a_person(asker, typed))


def reach(asker: Asker, rights: Rights) -> tuple[str, ...]:
    """Say how the ids begin of all that a loop may steer; nothing for whoever is none."""
    return (f"{asker.loop}/", *(f"{plan}/" for plan in rights.started)) if asker.lease else ()


def _within(asker: Asker, wish: str, rights: Rights, target: str) -> bool:
    """Say whether a target is below the asker's loop, or of a plan that it started or starts."""
    loop = target.rpartition("#")[0] or target
    plan = loop.partition("/")[0]
    if wish in ("start", "goal") and plan not in rights.plans:
        return True
    return loop.startswith(f"{asker.loop}/") or plan in rights.started


def _is(asker: Asker) -> str:
    """Say who asks, and what tells so."""
    if asker.kind in ("hook", "judge"):
        return f"this is {asker.name}"
    if asker.state != "live":
        stands = "is over" if asker.state == "over" else "is not in the journal"
        return f"LOOPR_LEASE is {asker.lease}, which {stands} and counts as a loop's"
    if asker.kind == "worker":
        return f"LOOPR_LEASE is {asker.lease}, the lease of a pull worker"
    where = f"process {asker.pid} above this one" if asker.pid else "this"
    return f"{where} is the command of {asker.loop} (lease {asker.lease})"


def _unset(typed: str) -> str:
    """Say how a person who has the variable by chance gets rid of it."""
    return f"a person types `unset LOOPR_LEASE`, then {typed}"


def _for_a_person(asker: Asker, typed: str) -> str:
    """Say how a person does it."""
    if asker.kind == "worker":
        return _unset(typed)
    own = typed.startswith(("`loopr init", "`loopr start", "`loopr goal", "`loopr run"))
    more = "; a folder with a `git init` of its own is another workspace" if own else ""
    return f"a person types {typed}, in a shell that no loop started{more}"
