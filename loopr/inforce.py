"""Which settings hold in a workspace: those that were accepted, and beside them what its files say now.

Reads and keeps the texts that settings are made from, and compares them. Variables and options are those of the
process, but a command of the workspace's own has neither. Must never decide what is accepted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loopr.core.shared import Accepted
from loopr.errors import LooprError, SettingsError, UserError
from loopr.recall import is_held, read_accepted
from loopr.world.settings.sources import PREFIX, PROMPTS, Texts, marks, policy_seal, read_texts

if TYPE_CHECKING:
    from loopr.core.events import Event
    from loopr.core.forest import Forest
    from loopr.core.observations import PolicySeen, SettingsSeen
    from loopr.world.journal import Journal
    from loopr.world.settings import Settings
    from loopr.world.settings.live import Difference

TIDIED_SECS = 3600.0
MOST_TEXTS = 16
_UNKNOWN = ("everything",)
"""What would change, where it cannot be known: the accepted texts are gone."""


SETTINGS_KIND = "settings"
"""What `notify_on` calls news of settings."""


class Basis(NamedTuple):
    """What settings are made from: the seal of their texts, and that of later ones beside them, if there are any."""

    seal: str
    live: str = ""


class Deciding(Protocol):
    """A mind, as far as settings need one."""

    @property
    def forest(self) -> Forest:
        """What it knows."""
        ...

    def decide(self, decide: Callable[[Forest, int], Iterator[Event]]) -> list[Event]:
        """Let something be decided, and remember it."""
        ...

    def heed_policy(self, policy: PolicySeen) -> None:
        """Decide by another policy from now on."""
        ...


def is_within(root: Path, environ: Mapping[str, str]) -> bool:
    """Say whether a process belongs to a loop, a hook or a pull worker of this very workspace."""
    ours = environ.get(f"{PREFIX}WORKSPACE") == str(root)
    return ours and any(environ.get(f"{PREFIX}{name}") for name in ("LEASE", "HOOK"))


class InForce:
    """The settings of one workspace, for one process."""

    def __init__(
        self,
        root: Path,
        state: Path,
        environ: Mapping[str, str],
        overrides: Sequence[str],
        journal: Callable[[], Journal],
    ) -> None:
        """Take what this process may set itself, and where it is remembered what is accepted."""
        home = environ.get("HOME")
        self._root, self._state, self._home = root, state, Path(home) if home else None
        self.within = is_within(root, environ)
        if self.within and overrides:
            raise UserError("--set is not for a loop, a hook or a worker", hint="leave it out: settings are a person's")
        self._environ: Mapping[str, str] = _without_given(environ) if self.within else environ
        self._overrides, self._journal = tuple(overrides), journal
        self._of: tuple[str, str] | None = None
        self.held_now: list[tuple[str, ...]] = []  # by the last look, for whoever has asked for it
        self._read: dict[str, Texts] = {}
        self._pinned: Basis | None = None
        self.doubt = ""  # what keeps the texts from loading that were last compared, and are held back

    # --- what is in force -----------------------------------------------------------------------------------------

    @cached_property
    def basis(self) -> Basis:
        """What the settings are made from: the accepted texts, or those of the files where they would be taken up."""
        with suppress(LooprError), self._journal() as journal, journal.snapshot():
            return self._basis_of(dict(journal.rows("records")), lambda: journal.bodies("loops"))
        return Basis(self.written().seal)  # nothing is remembered, or it cannot be read, which others say

    @cached_property
    def current(self) -> Settings:
        """The settings that are in force."""
        return self.settings(self.basis)

    def _basis_of(self, records: Mapping[str, str], loops: Callable[[], Sequence[str]]) -> Basis:
        """Choose between what is accepted and what the files say."""
        if self._pinned is not None:
            return self._pinned
        seal, known = self.written().seal, records.get("accepted")
        accepted, live, *_ = json.loads(known) if known is not None else ("", "")
        if seal == accepted or not accepted:
            return Basis(seal)
        return Basis(accepted, live) if is_held(records, loops) else Basis(seal)

    def is_known(self, known: str, records: Mapping[str, str], loops: Sequence[str]) -> bool:
        """Say whether the policy with a seal is the one of now; a loop's command has no other."""
        if known and self.within:
            return True
        basis = self._basis_of(records, lambda: loops)
        if basis != self.__dict__.get("basis"):
            self.forget()
            self.basis = basis
        return known == self.policy_seal(basis)

    def go_by_accepted(self) -> str:
        """Go by the accepted settings where those in the files do not load, and say what is wrong with these.

        That is enough to hold, to end and to tidy up.
        """
        try:
            self.current  # noqa: B018 - only whether they load
        except SettingsError as error:
            if self._overrides:
                raise
            try:
                with self._journal() as journal:
                    self.use(read_accepted(journal))
                self.current  # noqa: B018 - so must these
            except LooprError:
                raise error from None
            self._pinned = self.basis
            return str(error)
        return ""

    def use(self, accepted: Accepted) -> None:
        """Go by accepted settings from now on."""
        self.forget()
        self.basis, self._of = Basis(accepted.seal, accepted.live), accepted[:2]

    def forget(self) -> None:
        """Find out again what is in force, when it is next asked for."""
        for name in ("basis", "current"):
            self.__dict__.pop(name, None)

    def seen_policy(self) -> PolicySeen:
        """Return the policy of now as an observation, with the seal of what it is made from."""
        from loopr.core.observations import PolicySeen

        return PolicySeen(self.current.policy, self.policy_seal(self.basis), self._of)

    # --- texts ----------------------------------------------------------------------------------------------------

    def written(self) -> Texts:
        """Return what the files say now."""
        texts = read_texts(self._root, self._environ, self._home)
        if len(self._read) >= MOST_TEXTS:
            self._read.clear()  # what is needed of it is kept
        self._read[texts.seal] = texts
        return texts

    def marks(self) -> list[object]:
        """Return what changes at a glance where a file changes."""
        return marks(self._root, self._environ, self._home)

    def policy_seal(self, basis: Basis) -> str:
        """Return a digest of all that the policy is made from."""
        return policy_seal(basis, self._environ, self._overrides)

    def texts(self, seal: str) -> Texts:
        """Return the texts of a seal: as the files are, if that is their seal too, else as they were kept."""
        if seal not in self._read:
            from loopr.world.settings.kept import recall

            self._read[seal] = recall(self._state, seal)
        return self._read[seal]

    def settings(self, basis: Basis) -> Settings:
        """Load the settings that a basis leads to in this process."""
        later = self.texts(basis.live) if basis.live not in ("", basis.seal) else None
        return self.load(self.texts(basis.seal), later)

    def load(self, texts: Texts, later: Texts | None = None) -> Settings:
        """Load the settings that texts lead to in this process, or raise with every problem at once."""
        from loopr.world.settings.settings import load_texts

        return load_texts(texts, later, environ=self._environ, home=self._home, overrides=self._overrides)

    def prompts(self, basis: Basis) -> dict[str, bytes]:
        """Return the templates of a basis by name."""
        return self.texts(basis.seal).below(PROMPTS)

    def addresses(self, seal: str) -> tuple[str, ...]:
        """Return the addresses that texts would have told what is held back; none where they do not load."""
        try:
            settings = self.load(self.texts(seal))
        except SettingsError:
            return ()
        return settings.notify if SETTINGS_KIND in settings.notify_on else ()

    # --- what the files say beside what is accepted ---------------------------------------------------------------

    def secure(self, seen: SettingsSeen) -> None:
        """Keep the texts that an observation may bring into force, before anybody can say that they are."""
        if seen.live or not (seen.keys and seen.during):
            self.keep(self._read[seen.seal])

    def keep(self, texts: Texts) -> None:
        """Keep texts, for every process and for later."""
        from loopr.world.settings.kept import keep

        self._read[texts.seal] = texts
        keep(self._state, texts)

    def tidy(self, accepted: Accepted) -> None:
        """Take away the texts of settings that are long out of force."""
        from loopr.world.settings.kept import tidy

        wanted = frozenset({accepted.seal, accepted.live, accepted.held})
        tidy(self._state, wanted, time.time() - TIDIED_SECS)

    def differences(self, accepted: Accepted, texts: Texts) -> list[Difference]:
        """Say what texts say otherwise than the accepted ones."""
        from loopr.world.settings.live import differences

        return differences(self.texts(accepted.seal), texts)

    def keys(self, accepted: Accepted, texts: Texts) -> tuple[str, ...]:
        """Name what of texts would be held back."""
        from loopr.world.settings.live import held_keys

        try:
            return held_keys(self.differences(accepted, texts))
        except SettingsError:
            return _UNKNOWN

    def compare(self, accepted: Accepted, *, holds: bool, serving: bool = False) -> SettingsSeen:
        """Compare what the files say with what is accepted.

        What does not load raises where it would be taken up; where it is held back, `doubt` says what is wrong.
        """
        from loopr.core.observations import SettingsSeen

        texts, self.doubt = self.written(), ""
        if texts.seal == accepted.seal:
            return SettingsSeen(texts.seal, accepted.seal, serving=serving)
        keys = self.keys(accepted, texts) if accepted.seal else ()
        live = False
        try:
            self.load(texts)
        except SettingsError as error:
            if not (accepted.seal and holds):
                raise
            keys, self.doubt = keys or _UNKNOWN, str(error)
        else:
            live = bool(keys) and self._counts_at_once(accepted, texts)
        names = tuple(texts.files)
        return SettingsSeen(texts.seal, accepted.seal, keys, live, during=holds, serving=serving, names=names)

    def take_up(self, mind: Deciding, *, paper: bool = False) -> list[Event]:
        """Let a mind accept what the files say, or hold it back, and have it decide by what is in force then."""
        from loopr.core.accepting import holds_back
        from loopr.core.intake import interpret
        from loopr.core.workspace_events import SettingsHeld

        if self._pinned is not None:  # the mind goes by what it remembers
            return []
        seen = self.compare(mind.forest.shared.accepted, holds=holds_back(mind.forest))
        if not paper:
            self.secure(seen)
        events = mind.decide(lambda forest, now: interpret(forest, seen, now))
        self.held_now = [each.keys for each in events if isinstance(each, SettingsHeld)]
        self.use(mind.forest.shared.accepted)
        mind.heed_policy(self.seen_policy())
        return events

    def _counts_at_once(self, accepted: Accepted, texts: Texts) -> bool:
        """Say whether texts change what counts at once, in a way that loads beside the accepted ones."""
        from loopr.world.settings.live import differences, is_live

        try:
            known = self.texts(accepted.live or accepted.seal)
            if not any(is_live(each.name) for each in differences(known, texts)):
                return False
            self.load(self.texts(accepted.seal), texts)
        except SettingsError:
            return False
        return True


def _without_given(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without variables that set something: what is left says where the user's file is."""
    return {name: value for name, value in environ.items() if "__" not in name or not name.startswith(PREFIX)}
