"""An operator who says whatever comes to mind: `python operating.py ROOT SEED COUNT` says so many words in a workspace.

One line of JSON for each: the words and the exit code. A seed decides what is said, not what comes of it: that depends
on whoever else is at work there. Knows the words of every verb that changes something, and which loops a plan may have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from random import Random

from loopr.ui.cli import main

PLAN = "demo"
SPECS, CODES = ("a", "b", "c"), ("x", "y", "z")
LOOPS = [PLAN, *(f"{PLAN}/{spec}" for spec in SPECS), *(f"{PLAN}/{spec}/{code}" for spec in SPECS for code in CODES)]
FINE = {0, 2, 3, 75}
"""Done, refused, not there or stale, not now: all that may be said to whoever asks for anything at all."""


def plan_text(dice: Random | None = None) -> str:
    """Write the plan, whole if nobody has edited it: else something is missing, other than before, or elsewhere."""
    rows = ["---", f"id: {PLAN}", "specs:"]
    specs = list(SPECS) if dice is None else dice.sample(SPECS, dice.choice((2, 3, 3)))
    for spec in specs:
        codes = list(CODES) if dice is None else dice.sample(CODES, dice.choice((2, 3, 3)))
        rows += [f"  - id: {spec}", "    codes:"]
        for place, code in enumerate(codes):
            words = f", body: {dice.choice(('this', 'that'))}" if dice is not None and dice.random() < 0.2 else ""
            needs = f", needs: [{codes[0]}]" if place == 2 else ""
            rows.append(f"      - {{id: {code}{words}{needs}}}")
    return "\n".join([*rows, "---", "# Demo", ""])


class Operator:
    """Somebody at a keyboard who knows all verbs and no sense."""

    def __init__(self, root: Path, seed: int) -> None:
        """Sit down."""
        self._root, self._dice = root, Random(seed)
        self._name = f"w{seed}"
        self._leases: list[str] = ["demo/a/x#1"]

    def say(self) -> tuple[list[str], int, str]:
        """Say something, and return the words, the exit code and what was answered."""
        words = self._dice.choices([each for each, _ in _WORDS], [weight for _, weight in _WORDS])[0](self)
        code, out, err = self._call(*words)
        if words[:2] == ["lease", "take"] and code == 0:
            self._leases += [each["lease"] for each in json.loads(out)["leases"]]
        return words, code, err

    def _call(self, *words: str) -> tuple[int, str, str]:
        """Call the command line within this process."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = main([words[0], *self._rest(words)])
        return code, out.getvalue(), err.getvalue()

    def _rest(self, words: Sequence[str]) -> list[str]:
        """Put the folder behind the verb, which may be of two words."""
        two = words[0] in ("lease", "convoy")
        return [*words[1 : 1 + two], "-C", str(self._root), *words[1 + two :]]

    def _some(self) -> list[str]:
        """Name some loops."""
        return self._dice.sample(LOOPS, self._dice.choice((1, 1, 1, 2, 3)))

    def _scope(self) -> list[str]:
        """Name what may be paused."""
        return self._dice.choice([self._some(), self._some(), self._some(), ["project:default"], ["--all"]])

    def pause(self) -> list[str]:
        """Hold something."""
        return ["pause", *self._scope(), *(["--now"] if self._dice.random() < 0.4 else [])]

    def resume(self) -> list[str]:
        """Let something go on."""
        return ["resume", *self._scope()]

    def plain(self) -> list[str]:
        """Say a verb about some loops."""
        verbs = (["retry"], ["retry", "--fresh", "--yes"], ["reset"], ["clear"], ["dispatch"], ["dispatch", "-n"])
        return [*self._dice.choice([*verbs, ["cancel"], ["retry"], ["reset"]]), *self._some()]

    def decide(self) -> list[str]:
        """Decide on what may wait for a person."""
        verbs = (["approve"], ["approve"], ["reject", "--reason", "no"], ["iterate", "--feedback", "more"])
        return [*self._dice.choice(verbs), *self._some()[:1]]

    def lane(self) -> list[str]:
        """End a lane's rest."""
        return ["reset", "lane:default"]

    def take(self) -> list[str]:
        """Take a lease or two."""
        kind = self._dice.choice([[], [], ["--type", "code"]])
        return ["lease", "take", "--holder", self._name, "--limit", self._dice.choice("12"), *kind, "--json"]

    def quote(self) -> list[str]:
        """Say something of a lease, of old or of now."""
        lease = self._dice.choice(self._leases[-4:])
        gives = (["release"], ["release", "--failed"], ["release", "--refused", "--reason", "x"])
        verbs = (["renew"], ["complete"], ["complete"], *gives)
        return ["lease", *self._dice.choice([*verbs, ["reclaim"]]), lease]

    def set(self) -> list[str]:
        """Move a ceiling."""
        key = self._dice.choice(("concurrency.max_loops", "concurrency.per_type.code", "dispatch.batch_size"))
        return ["set", key, self._dice.choice("1234")]

    def convoy(self) -> list[str]:
        """Form a convoy, or add to it."""
        return ["convoy", self._dice.choice(("create", "add")), f"@{self._dice.choice('kl')}", *self._some()]

    def edit(self) -> list[str]:
        """Start the plan again, edited or as it was."""
        path = self._root / "plan.md"
        fresh = path.with_name(f"{self._name}.new")
        fresh.write_text(plan_text(self._dice if self._dice.random() < 0.5 else None))
        fresh.replace(path)
        return ["start", "--no-run", "--yes", str(path)]

    def drop(self) -> list[str]:
        """Leave an artifact that was written by hand, and look."""
        path = self._root / "specs" / self._dice.choice(LOOPS[4:]) / "code.md"
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {self._dice.choice(('one', 'two'))}\n")
        return self.look()

    def look(self) -> list[str]:
        """Look at something."""
        verbs = (["status"], ["tree"], ["next", "--json"], ["usage"], ["lease", "list"], ["events", "-n", "3"])
        return self._dice.choice([*verbs, ["why", self._dice.choice(LOOPS)]])

    def gc(self) -> list[str]:
        """Clear away."""
        return ["gc"]


_WORDS: list[tuple[Callable[[Operator], list[str]], int]] = [
    (Operator.pause, 6), (Operator.resume, 9), (Operator.plain, 12), (Operator.decide, 6), (Operator.lane, 1),
    (Operator.take, 4), (Operator.quote, 7), (Operator.set, 3), (Operator.convoy, 1), (Operator.edit, 3),
    (Operator.drop, 2), (Operator.look, 4), (Operator.gc, 1),
]  # fmt: skip
"""What is said, and how often."""


def work(root: Path, seed: int, count: int) -> None:
    """Say so many words, and tell of each."""
    operator = Operator(root, seed)
    for _ in range(count):
        words, code, err = operator.say()
        told = {"words": words, "code": code, "err": "" if code in FINE else err}
        print(json.dumps(told), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
