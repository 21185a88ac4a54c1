"""Plans that may be none: asked about before anything is stored, and what is remarked on those that declare nothing.

Must never know how a person is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from loopr.core.checklist import is_checklist
from loopr.core.entries import Artifact, Entry
from loopr.core.ladder import Ladder
from loopr.core.likeness import doubt_of, unread_list
from loopr.core.policy import Policy
from loopr.core.scene import Scene
from loopr.core.ticked import left_out
from loopr.errors import PlanError, Problem
from loopr.ui.declared import later_words

_UNKNOWN = "unknown key"
_AS_IT_IS = "--yes takes it as it is"
_MOST = 5


def check_likeness(policy: Policy, source: str, text: str, artifact: Artifact, confirm: Callable[[str], bool]) -> None:
    """Refuse a file that looks like no plan, unless a person says that it is one."""
    if artifact.declares:
        return
    root = policy.root_type
    has_command = policy.type_of(root).has_command
    doubt = doubt_of(text, source, Ladder(policy.types), root, has_command=has_command)
    if doubt is None:
        return
    where = f"{source}:{doubt.at.line}:{doubt.at.col}"
    if not confirm(f"{where} {doubt.message}"):
        raise PlanError(doubt.message, where=where, hint=f"{doubt.hint}; {_AS_IT_IS}")


def reading_remarks(scene: Scene, text: str, artifact: Artifact) -> tuple[str, ...]:
    """List the parts of a plan not read as they may be meant, those left out, and those to come."""
    policy, ticked = scene.policy, _ticked(left_out(scene, artifact.id, artifact))
    later = later_words(scene, artifact.id, artifact.entries)
    return (*_as_read(policy, text, artifact), *ticked, *later)


def _ticked(gone: Sequence[Entry]) -> Iterator[str]:
    """Say which items of a plan are left out as ticked off."""
    if gone:
        more = f", and {len(gone) - _MOST} more" if len(gone) > _MOST else ""
        yield f"{len(gone)} ticked off, left out: {', '.join(each.id for each in gone[:_MOST])}{more}"


def _as_read(policy: Policy, text: str, artifact: Artifact) -> tuple[str, ...]:
    """List what of a plan is read otherwise than it may be meant."""
    root = policy.root_type
    if artifact.declares or policy.type_of(root).has_command:
        return artifact.warnings
    found = unread_list(text, Ladder(policy.types), root)
    return (*artifact.warnings, f"{found.message}: {found.hint}") if found is not None else artifact.warnings


def or_checklist(policy: Policy, path: Path, problems: Sequence[Problem]) -> list[Problem]:
    """Name the way on of a file that is refused for keys of others, and has boxes only."""
    if not any(each.message.startswith(_UNKNOWN) for each in problems):
        return list(problems)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return list(problems)
    front, _, body = text.removeprefix("---").partition("\n---")
    ladder = Ladder(policy.types)
    children = any(line.partition(":")[0] in ladder.all_keys() for line in front.splitlines())
    if children or not is_checklist(body) or unread_list(body, ladder, policy.root_type) is None:
        return list(problems)
    last = max(at for at, each in enumerate(problems) if each.message.startswith(_UNKNOWN))
    hint = problems[last].hint
    hint += "" if hint.endswith("?") else ";"
    words = f"{hint} --from checklist takes its boxes, and reads no keys"
    return [*problems[:last], replace(problems[last], hint=words), *problems[last + 1 :]]
