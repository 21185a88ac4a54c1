"""Files that git tracks in the folder of the tree and that are not loopr's: what becomes of them, and another folder.

Nothing lands from the folder of a plan. Must never move a file, nor ask anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from loopr.core.ladder import Ladder
from loopr.core.slugs import id_problem
from loopr.errors import NotFound
from loopr.wiring import Workspace
from loopr.world.artifacts import SUFFIX
from loopr.world.git_facts import GitFacts
from loopr.world.place import own_git_dir
from loopr.world.settings import Settings
from loopr.world.settings.parts import BUILT_IN

KEY = "artifacts.dir"
OTHER = "loopr-specs"


class Strangers(NamedTuple):
    """Files of the repository's own in a folder of the workspace; `chosen` where a person has named that folder."""

    folder: str
    files: tuple[str, ...] = ()
    chosen: bool = False

    def of(self, plans: Collection[str]) -> tuple[str, ...]:
        """List those in the folders of some plans."""
        inside = ((each, each.removeprefix(f"{self.folder}/").partition("/")[0]) for each in self.files)
        return tuple(each for each, plan in inside if plan in plans)

    @property
    def words(self) -> str:
        """Say that the folder has files of the repository's own, and what becomes of them."""
        beside = f"git tracks {named(self.files)} in {self.folder}/, which {_are(self.files)} not loopr's"
        return f"{beside}; what loops change there lands, but for the folder of a plan, {self.folder}/PLAN/"


def is_chosen(settings: Settings) -> bool:
    """Say whether a person has named the folder of the tree."""
    return settings.origin(KEY) != BUILT_IN


def strangers(workspace: Workspace, settings: Settings) -> Strangers:
    """List the files that git tracks in the folder of the tree, and that no loop could have as its artifact."""
    top, folder = workspace.place.repository, settings.artifacts.dir
    root = workspace.place.root
    chosen = is_chosen(settings)
    if top is None or not (top / ".git").exists() or not (root / folder).is_dir():
        return Strangers(folder, (), chosen)
    levels = Ladder(settings.policy.types).levels()
    before = (root / folder).relative_to(top).as_posix()
    tracked = GitFacts(top, own_git_dir(top)).tracked(before)
    inside = [each.removeprefix(f"{before}/") for each in tracked]
    return Strangers(folder, tuple(f"{folder}/{each}" for each in inside if not _is_artifact(each, levels)), chosen)


def _is_artifact(path: str, levels: Sequence[str]) -> bool:
    """Say whether a file below the folder lies where the artifact of a loop would."""
    *names, file = path.split("/")
    if not 0 < len(names) <= len(levels) or any(map(id_problem, names)):
        return False
    return file == f"{levels[len(names) - 1]}{SUFFIX}"


def free_folder(workspace: Workspace, plans: Collection[str]) -> str:
    """Name a folder for the tree in which nothing lies; none where there are plans, which have theirs."""
    if plans:
        return ""
    names = (OTHER if number == 1 else f"{OTHER}-{number}" for number in count(1))
    return next(each for each in names if not (workspace.place.root / each).exists())


def known_plans(workspace: Workspace) -> frozenset[str]:
    """Name the plans that the journal knows, whatever became of them."""
    try:
        with workspace.journal() as journal:
            return frozenset(key.partition("/")[0] for key, _ in journal.rows("loops"))
    except NotFound:
        return frozenset()


def clash_words(files: Sequence[str], plans: Collection[str]) -> str:
    """Say that files of the repository's own lie in the folders of plans."""
    whose = f"the folder{'s' * (len(plans) > 1)} of {', '.join(sorted(plans))}"
    return f"git tracks {named(files)} in {whose}: what loops change there is put back, and never lands"


def named(files: Sequence[str]) -> str:
    """Count some files, and name the first of many."""
    return files[0] if len(files) == 1 else f"{len(files)} files, such as {files[0]},"


def _are(files: Sequence[str]) -> str:
    """Return the verb for some files."""
    return "is" if len(files) == 1 else "are"


def remarks_on(found: Strangers, plans: Collection[str], free: str) -> Iterator[tuple[str, str]]:
    """Remark on such files, with a remedy: those in the folders of plans first.

    `free` is another folder, as long as that can be chosen.
    """
    other = f"`loopr set {KEY} {free}`" if free else ""
    clashing = found.of(plans)
    if clashing:
        whose = {each.removeprefix(f"{found.folder}/").partition("/")[0] for each in clashing}
        yield clash_words(clashing, whose), " or ".join(filter(None, ["give the plan another `id:`", other]))
    elif found.files and not found.chosen:
        yield found.words, f"{other} keeps the two apart" if other else ""
