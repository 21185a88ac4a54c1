"""Prompts: from what is known of an iteration to the text that its command reads, and the files beside it.

Knows templates, the built-in ones and those of the workspace that take their place. Must never know a loop or a
disk beyond the folder it writes to: all of it is plain values. What a template is given is text, never a template.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from loopr.errors import SettingsError, WorldError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

BUILT_IN = Path(__file__).parent.parent / "prompts"
ANY_TYPE = "default"
PROMPT, FEEDBACK, CONTEXT, INPUT = "prompt.md", "feedback.md", "context.md", "input.md"
_SUFFIX = ".md"
_OF_REVIEWS = ".review"
_BUILT_IN_PREFIX = "loopr"
_PARENT_BYTES = 16 * 1024  # of the parent's artifact within a prompt; the context file has all of it
_TICKS = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_UNDEFINED = re.compile(r"'([A-Za-z_]\w*)' is undefined")
_BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, OSError)


class Sibling(NamedTuple):
    """A loop beside this one, as its prompt names it."""

    id: str
    title: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """What the prompt of one iteration is made from; each field is a variable of the templates.

    `child` is the type of the children that the artifact declares, None for a leaf, and `children_key` the key under
    which it does; `implies_child` if it may leave them out. `feedback` is bounded already, `generation` above 1 if
    it is done anew, with `has_landed` where work of it has landed before. Paths are as the command
    may use them.
    """

    loop_id: str
    type: str
    title: str
    body: str
    child: str | None
    children_key: str = ""
    implies_child: bool = False
    iteration: int = 1
    max_iterations: int = 1
    generation: int = 1
    has_landed: bool = False
    input_path: str = ""
    output_path: str = ""
    context_path: str = ""
    feedback_path: str = ""
    result_path: str = ""
    siblings: Sequence[Sibling] = ()
    parent: str = ""
    parent_title: str = ""
    parent_artifact: str = ""
    feedback: str = ""
    files: Sequence[str] = ()
    check: str = ""
    review: str = ""
    protected: Sequence[str] = ()


LOOKS = ("draft", "completeness", "feasibility", "order", "final")
"""What a review looks at, one after the other."""


class Pass(NamedTuple):
    """One review of several: what it looks at, what was handed over, and which files were changed since a commit."""

    number: int
    passes: int
    looks: Sequence[str]
    artifact: str = ""
    changed: Sequence[str] = ()
    since: str = ""


def looks_of(number: int, passes: int) -> tuple[str, ...]:
    """Return what one review of several looks at: all of it together, and the last of it where there are more."""
    most = len(LOOKS)
    if passes > most:
        return (LOOKS[min(number, most) - 1],)
    return LOOKS[(number - 1) * most // passes : number * most // passes]


class Prompts:
    """Templates by type: the workspace's own if there is one, else the built-in one, else the one for any type.

    `code.md` is what the command of a type is asked, `code.review.md` what an agent that reviews its work is.
    """

    def __init__(self, own: Mapping[str, bytes] | None = None, folder: Path | None = None) -> None:
        """Take the workspace's own templates by name, and the folder that they are from, for messages."""
        self._own, self._folder = own or {}, folder or Path("prompts")
        self._loaded: SandboxedEnvironment | None = None

    def render(self, iteration: Iteration) -> str:
        """Render the prompt of an iteration; a fault of the template is a `SettingsError` with its file and line."""
        return self._render(iteration.type, "", _values(iteration))

    def render_review(self, iteration: Iteration, asked: Pass) -> str:
        """Render what a reviewing agent is asked about an iteration; faults are told in the same way."""
        here = {"artifact_here": len(asked.artifact.encode()) <= _PARENT_BYTES}
        return self._render(iteration.type, _OF_REVIEWS, _values(iteration) | asked._asdict() | here)

    def _render(self, type_name: str, kind: str, values: Mapping[str, object]) -> str:
        """Render one kind of prompt for a type."""
        from jinja2 import TemplateError

        try:
            template = self._template(type_name, kind)
            text = template.render(values)
        except TemplateError as error:
            raise self._refusal(error, values) from error
        except _BROKEN as error:
            raise self._refusal(error, values) from error
        text = text.strip() + "\n"
        if text[0] in "/\n":
            message = (
                "bad template: the prompt is empty" if text == "\n" else "bad template: the prompt begins with a /"
            )
            hint = "begin it with a plain line: clients take a slash for a command of their own"
            raise SettingsError(message, where=f"{template.filename}:1", hint=hint)
        return text

    def _template(self, type_name: str, kind: str) -> Template:
        """Return the template of a type, for one kind of prompt."""
        environment = self._environment()
        own = [type_name] if re.fullmatch(r"[\w-]+", type_name) else []
        return environment.select_template([f"{name}{kind}{_SUFFIX}" for name in (*own, ANY_TYPE)])

    def _environment(self) -> SandboxedEnvironment:
        """Return the sandbox that templates are rendered in."""
        from jinja2 import ChoiceLoader, FileSystemLoader, FunctionLoader, PrefixLoader, StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        if self._loaded is None:
            built_in = FileSystemLoader(BUILT_IN)
            own = FunctionLoader(self._find)
            loaded = SandboxedEnvironment(
                loader=ChoiceLoader([own, built_in, PrefixLoader({_BUILT_IN_PREFIX: built_in})]),
                undefined=StrictUndefined,
                autoescape=False,
                trim_blocks=True,
                lstrip_blocks=True,
                keep_trailing_newline=True,
            )
            loaded.filters["fenced"] = fenced
            self._loaded = loaded
        return self._loaded

    def _find(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        """Return one of the workspace's own templates, with the file that it is from."""
        if name not in self._own:
            return None
        return self._own[name].decode(), str(self._folder / name), lambda: True

    def _refusal(self, error: Exception, values: Mapping[str, object]) -> SettingsError:
        """Say what is wrong with a template, where, and what was probably meant."""
        message = getattr(error, "message", None) or str(error) or type(error).__name__
        where = _place(error, [self._folder, BUILT_IN])
        unknown = _UNDEFINED.search(message)
        hint = "mend the template, or take it away to use the built-in one"
        if unknown:
            close = get_close_matches(unknown[1], values, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"known variables: {', '.join(sorted(values))}"
        return SettingsError(f"bad template: {message}", where=where, hint=hint)


def _values(iteration: Iteration) -> dict[str, object]:
    """Return the variables that the templates of an iteration have."""
    values = {name: getattr(iteration, name) for name in iteration.__dataclass_fields__}
    return values | {"parent_artifact_here": len(iteration.parent_artifact.encode()) <= _PARENT_BYTES}


def _place(error: Exception, folders: Sequence[Path]) -> str:
    """Return file and line of a template in which an error arose: jinja gives both, or puts them in the traceback."""
    from jinja2 import TemplateSyntaxError

    if isinstance(error, TemplateSyntaxError):
        return f"{error.filename or error.name}:{error.lineno}"
    found = ""
    for file, line in _frames(error.__traceback__):
        if any(Path(file).parent == folder for folder in folders):
            found = f"{file}:{line}"
    return found


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    """Yield file and line of each frame, outermost first."""
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def fenced(text: str, language: str = "") -> str:
    """Put a text between fences that nothing in it can close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def render_context(iteration: Iteration) -> str:
    """Write what surrounds a loop, in Markdown: its siblings with their states, and its parent's artifact."""
    parts = [f"# Context of {iteration.loop_id}"]
    if iteration.siblings:
        rows = "\n".join(f"- `{each.id}` {each.title}: {each.state}" for each in iteration.siblings)
        parts.append(f"## Siblings\n\n{rows}")
    if iteration.parent_artifact:
        title = f"## Artifact of the parent `{iteration.parent}`: {iteration.parent_title}"
        parts.append(f"{title}\n\n{fenced(iteration.parent_artifact, 'markdown')}")
    return "\n\n".join(parts) + "\n"


# --- files ----------------------------------------------------------------------------------------------------------


def write_files(folder: Path, texts: Mapping[str, str], *, mode: int = 0o666) -> None:
    """Write files as a whole into a folder where a command may have planted anything: no link is followed.

    In a worktree others may read them as they read its files: a sandbox may have a user of its own.
    """
    try:
        with _opened(folder) as place:
            for name, text in texts.items():
                _replace(place, name, text.encode("utf-8", "surrogateescape"), mode)
    except OSError as error:
        name = f"{folder}/{error.filename}" if error.filename in texts else str(folder)
        raise WorldError(f"cannot write {name}: {error.strerror or error}", hint=_remedy(error)) from error


def _replace(place: int, name: str, raw: bytes, mode: int) -> None:
    """Write one file; what stood there goes, nobody reads these while they are made."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(name, flags, mode, dir_fd=place)
    except FileExistsError:
        os.unlink(name, dir_fd=place)
        file = os.open(name, flags, mode, dir_fd=place)
    try:
        while raw:
            raw = raw[os.write(file, raw) :]
    finally:
        os.close(file)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder that is one itself, not a link to one."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield place
    finally:
        os.close(place)


def _remedy(error: OSError) -> str:
    """Say what to do about a file that cannot be written."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
        return "move what stands in its place"
    return "free some space, or mend the permissions, then try again"
