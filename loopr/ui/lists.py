"""Lists of work from elsewhere as plans: an export of a tracker, a task list of spec-kit, a checklist; each taken once.

What the plan has done already stays in it, whatever the list says by now. Must never know a terminal.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loopr.core.brackets import unread_brackets
from loopr.core.bridges import meant
from loopr.core.checklist import is_checklist, keys_below, left_out, read_checklist
from loopr.core.fields import ARTIFACT_KEYS, ENTRY_KEYS
from loopr.core.headings import read_lines
from loopr.core.imported import Item, open_items, own_ids, plan_of
from loopr.core.ladder import Ladder
from loopr.core.likeness import may_be_list
from loopr.core.marked import Findings
from loopr.core.model import Status
from loopr.core.sections import read_items
from loopr.core.slugs import id_problem, nearest, slug
from loopr.core.speckit import TASK, is_task_list, read_task_list
from loopr.core.trackers import KINDS, read_export
from loopr.errors import NotFound, PlanError, Problem, SettingsError, UserError
from loopr.ui.nearby import meant_instead
from loopr.ui.requests import Plan
from loopr.wiring import Workspace
from loopr.world.artifacts import digest, parse_artifact
from loopr.world.front_matter import split_front_matter
from loopr.world.publishing import publish

SPEC_KIT = "spec-kit"
CHECKLIST = "checklist"
ALL_KINDS = (*KINDS, SPEC_KIT, CHECKLIST)
_BY_FORM = (SPEC_KIT, CHECKLIST)
_LARGEST = 64 * 1024 * 1024
_NAMELESS = frozenset({"issues", "beads", "tasks", "export", "list"})
_OFTEN = frozenset({"tags", "aliases"})  # keys of other programs that look like ours, misspelt
_FEATURE = re.compile(r"\d{3,}-")
_KEY = re.compile(r"""["']?(?P<key>[A-Za-z_][\w.-]*)["']?[ \t]*:(?:[ \t]|$)""")
_TAKEN = "Taken from"


class Listed(NamedTuple):
    """A plan that was made of a list: where that is, how many of it are left out as closed, and remarks."""

    plan: Plan
    source: str
    left_out: int
    remarks: tuple[str, ...]


def kind_of(workspace: Workspace, path: Path, said: str | None) -> str | None:
    """Say what a file is a list of: as it was said, or by its form; None for a plan."""
    if said is not None:
        return said
    if path.suffix != ".md" or not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    ladder = Ladder(workspace.policy.types)
    theirs, text = _foreign_front(text, ladder)
    slips = any(each not in _OFTEN and nearest(each, _own_keys(ladder)) for each in theirs)
    kind = SPEC_KIT if is_task_list(text) else None
    if kind is None and not slips and _is_checklist(workspace, path, text):
        kind = CHECKLIST
    lines = read_lines(Findings(""), text, 1) if kind else ()
    return None if read_items(lines, ladder, workspace.policy.root_type) else kind


def _own_keys(ladder: Ladder) -> tuple[str, ...]:
    """List the keys of front matter that is ours, with those that are at its top by mistake."""
    return tuple(dict.fromkeys((*ARTIFACT_KEYS, *ENTRY_KEYS, *sorted(ladder.all_keys()))))


def _foreign_front(text: str, ladder: Ladder) -> tuple[list[str], str]:
    """Take front matter off that has keys of others only; give these keys, and the rest."""
    try:
        split = split_front_matter(text.replace("\r\n", "\n"), "")
    except PlanError:
        return [], text
    keys = [found["key"] for line in (split.front or "").split("\n") if (found := _KEY.match(line))]
    return (keys, split.body) if keys and not {*keys} & {*_own_keys(ladder)} else ([], text)


def _is_checklist(workspace: Workspace, path: Path, text: str) -> bool:
    """Tell a checklist that may be laid upon the ladder from a plan in words, or one that was started as such."""
    policy, source = workspace.policy, workspace.name_of(path)
    ladder = Ladder(policy.types)
    if policy.type_of(policy.root_type).has_command or len(ladder.levels()) < 2 or ladder.judged_between():
        return False
    if not (may_be_list(text, source) and is_checklist(text)):
        return False
    return all(each.source != source for each in workspace.look().scene.shared.plans.values())


def read_lists(
    workspace: Workspace,
    paths: Sequence[Path],
    said: str | None,
    own_id: str | None,
) -> dict[Path, Listed]:
    """Turn each list among some files into a plan; of which kind they are may be said."""
    if own_id is not None and (said is None or len(paths) != 1):
        hint = "name one file, and with --from what it is"
        raise UserError("--id names the plan of one list", hint=hint)
    kinds = [kind_of(workspace, path, said) for path in paths]
    pairs = zip(paths, kinds, strict=True)
    return {path: read_list(workspace, path, kind, own_id or "") for path, kind in pairs if kind}


def read_list(workspace: Workspace, path: Path, kind: str, own_id: str = "") -> Listed:
    """Turn a list into a plan, with the path at which its file belongs; nothing is written yet."""
    ladder, source = Ladder(workspace.policy.types), workspace.name_of(path)
    if len(ladder.levels()) < 2:
        raise SettingsError("the ladder ends at the plan: nothing below it could do a task", hint="give it a child")
    if judged := ladder.judged_between():
        hint = "let only the last type be judged, or give the list a workspace with a ladder of two levels"
        raise SettingsError(f"types.{judged} is judged, which a plan that is written out would pass over", hint=hint)
    if own_id and (problem := id_problem(own_id)):
        raise UserError(problem, hint=f"--id {slug(own_id)}")
    whole = text = _text(path, source)
    if kind in _BY_FORM:
        text = _foreign_front(text, ladder)[1]
    title, items = _items(kind, text, source, (), ladder)
    plan_id = own_id or _id_of(kind, path, title)
    done = _done(workspace, plan_id)
    kept = {theirs for theirs, own in own_ids(items).items() if own in done}
    if kept and kind == SPEC_KIT:
        title, items = _items(kind, text, source, kept, ladder)
    left = open_items(items, kept)
    if not left:
        closed = f"{len(items)} {'is' if len(items) == 1 else 'are'} closed"
        hint = closed if items else "export it again"
        raise UserError(f"{source} has nothing that is open", hint=hint)
    gone = {each.id for each in items} - {each.id for each in left}
    made = plan_of(left, ladder, plan_id=plan_id, title=title or source, about=_about(kind, source), gone=gone)
    left_out = sum(each.id in gone and not each.group for each in items)
    above = whole.count("\n") - text.count("\n")
    unboxed = _unboxed(kind, text, above) if kind in _BY_FORM else ()
    unread = _unread(kind, left, text, above)
    remarks = (*made.remarks, *unboxed, *unread, *_workless(workspace, kind, ladder.levels()[-1]))
    return Listed(_plan(workspace, plan_id, made.text, source), source, left_out, remarks)


def _unboxed(kind: str, text: str, above: int) -> Iterator[str]:
    """Say which items are left out for want of a box or a number; `above` are lines not read."""
    numbered = kind == SPEC_KIT
    wants, box = ("box with a number", "[ ] T001") if numbered else ("box", "[ ]")
    for line, words in left_out(text, TASK) if numbered else left_out(text):
        bare = re.sub(r"\[.?\]\s*", "", words, count=1)
        yield f"line {line + above} is left out, since it has no {wants}: write `- {box} {bare}`"


def _unread(kind: str, items: Sequence[Item], text: str, above: int) -> Iterator[str]:
    """Say which brackets and keys of a checklist are not read; `above` are lines not read."""
    if kind != CHECKLIST:
        return
    for each in items:
        for mark, _ in unread_brackets(each.title, ""):
            yield (
                f"`{mark}` of {each.id} is not read: a box waits for nothing and nobody, "
                "an entry of front matter may: `needs: [...]` beside its title"
            )
    for line, key in keys_below(text):
        yield (
            f"`{key}:` on line {line + above} is read as text of its box; "
            f"in front matter it counts: `{meant(key) or key.lower()}: ...` beside its title"
        )


def _workless(workspace: Workspace, kind: str, last: str) -> Iterator[str]:
    """Say of a checklist that nothing works for its boxes, with the line that would mend it."""
    if kind == CHECKLIST and not workspace.policy.type_of(last).has_command:
        yield (
            f"types.{last} has no command and no agent, so a person does each of these: "
            f"`loopr set types.{last}.agent NAME` or `types.{last}.run COMMAND` gives them to one"
        )


def place_list(workspace: Workspace, listed: Listed, confirm: Callable[[str], bool]) -> bool:
    """Write the plan of a list where its artifact belongs; tell whether anything is new.

    One that a person has edited since it was started gives way after their word only, one of another list never does.
    """
    plan, raw = listed.plan, listed.plan.text.encode()
    there = plan.path.read_bytes() if plan.path.is_file() else None
    if there == raw:
        return False
    if there is not None:
        if not _is_of(there, listed.source):
            hint = "--id NAME gives this list another place"
            raise PlanError("is the plan of something else", where=plan.source, hint=hint)
        bound = workspace.look().scene.shared.plans.get(plan.id)
        edited = bound is None or digest(there) != bound.digest
        if edited and not confirm(f"{plan.source} was edited since it was started, and would be written anew"):
            hint = "--yes goes on; or keep it under another name, with an `id:` of its own"
            raise PlanError("was edited since it was started", where=plan.source, hint=hint)
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    if not publish(plan.path, raw, lambda now: now == there):
        raise PlanError("was written to meanwhile", where=plan.source, hint="start the list again")
    return True


def _text(path: Path, source: str) -> str:
    """Read a list."""
    try:
        if path.stat().st_size > _LARGEST:
            raise PlanError("is larger than 64 MiB", where=source, hint="export what is open only")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        near = meant_instead(path, lambda each: source.removesuffix(path.name) + each.name)
        hint = near or "name the export"
        raise NotFound("there is no such file", where=source, hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PlanError(f"cannot be read: {said}", where=source, hint="export it again, as UTF-8") from None


def _items(kind: str, text: str, source: str, kept: Collection[str], ladder: Ladder) -> tuple[str, list[Item]]:
    """Read the items of a list, and what it is about."""
    if kind == CHECKLIST:
        levels = ladder.levels()
        found = read_checklist(text, levels[-1], grouped=len(levels) > 2)
        return found.title, list(found.items)
    if kind != SPEC_KIT:
        return "", read_export(kind, text, source)
    tasks = read_task_list(text, kept)
    if not tasks.items:
        hint = "a task list has lines such as `- [ ] T001 [P] [US1] Write src/x.py`"
        raise PlanError("has no tasks as spec-kit writes them", where=f"{source}:1:1", hint=hint)
    twice = sorted(name for name, times in Counter(each.id for each in tasks.items).items() if times > 1)
    if twice:
        raise PlanError(f"has {', '.join(twice)} twice", where=source, hint="give each task a number of its own")
    beside = f"The list is {source}; what is beside it says what is wanted, and why."
    return tasks.title, [
        replace(each, body=f"{each.body}\n\n{beside}".strip()) if each.group else each for each in tasks.items
    ]


def _id_of(kind: str, path: Path, title: str) -> str:
    """Name the plan of a list after its file, or the folder of its feature."""
    if kind == SPEC_KIT:
        folder = path.resolve().parent.name
        return slug(f"{folder}-tasks" if _FEATURE.match(folder) else title or "tasks")
    return slug(path.stem) if path.stem not in _NAMELESS else kind


def _done(workspace: Workspace, plan_id: str) -> set[str]:
    """Return the last part of the ids of all that the plan of a list has done already."""
    scene = workspace.look().scene
    if plan_id not in scene.loops:
        return set()
    last = Ladder(scene.policy.types).levels()[-1]
    loops = scene.tree.walk(plan_id)
    return {each.id.rpartition("/")[2] for each in loops if each.type == last and each.status is Status.COMPLETE}


def _about(kind: str, source: str) -> str:
    """Say in a plan where it comes from."""
    words = ["loopr", "start", *(() if kind in _BY_FORM else ("--from", kind)), source]
    again = " ".join(map(shlex.quote, words))
    return f"{_TAKEN} `{source}`. `{again}` brings it in line with a newer one."


def _is_of(there: bytes, source: str) -> bool:
    """Tell whether a plan was made of this list."""
    return f"{_TAKEN} `{source}`".encode() in there


def _plan(workspace: Workspace, plan_id: str, text: str, source: str) -> Plan:
    """Read the text back as the plan that it is; what is wrong with it is wrong with the list."""
    policy, raw = workspace.policy, text.encode()
    place = policy.place_of(plan_id, policy.root_type)
    try:
        artifact = parse_artifact(raw, place, type_name=policy.root_type, types=policy.types, fallback_id=plan_id)
    except PlanError as error:
        raise PlanError("", problems=[Problem(each.message, source, each.hint) for each in error.problems]) from error
    return Plan(place, Path(workspace.place.root) / place, text, digest(raw), artifact)
