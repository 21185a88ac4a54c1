"""Where settings may come from: the texts of all files that say something, and seals that tell them apart.

Knows the names of files and variables, never what is in them; imports next to nothing, so that a verb which only shows
can see in a moment that the policy it remembers still holds.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from loopr import __version__

FILE = "loopr.yml"
LOCAL_FILE = "loopr.local.yml"
USER = "user"
"""What the user's own file is called among the texts, wherever it lies."""
LAYERS = (USER, FILE, LOCAL_FILE)
PREFIX = "LOOPR_"
PRESETS, PROMPTS = "agents", "prompts"
MAX_BYTES = 1024 * 1024
_NOT_READ = "!"


class Texts:
    """What the files say, by what each is called: the layers, `agents/NAME.yml` and `prompts/NAME.md`.

    A file that is not there is not among them; `unreadable` says why of one that cannot be read.
    """

    def __init__(self, files: Mapping[str, bytes], unreadable: Mapping[str, str] | None = None) -> None:
        """Take what was read."""
        self.files, self.unreadable = files, unreadable or {}

    @cached_property
    def packed(self) -> bytes:
        """All of it in one written form: names and contents in turn, each behind its length."""
        said = [(name, self.files[name]) for name in sorted(self.files)]
        said += [(f"{_NOT_READ}{name}", self.unreadable[name].encode()) for name in sorted(self.unreadable)]
        parts = [part for name, raw in said for part in (os.fsencode(name), raw)]
        return b"".join(b"%d:%b\n" % (len(part), part) for part in parts)

    @cached_property
    def seal(self) -> str:
        """A digest of all of it."""
        return seal_of(self.packed)

    def below(self, folder: str) -> dict[str, bytes]:
        """Return what lies in a folder, by what it is called there."""
        start = f"{folder}/"
        return {name.removeprefix(start): raw for name, raw in self.files.items() if name.startswith(start)}

    @classmethod
    def unpacked(cls, raw: bytes) -> Texts:
        """Read the written form; whoever asks has compared it with its seal."""
        parts: list[bytes] = []
        while raw:
            size, _, rest = raw.partition(b":")
            parts.append(rest[: int(size)])
            raw = rest[int(size) + 1 :]
        said = [(os.fsdecode(name), part) for name, part in zip(parts[::2], parts[1::2], strict=True)]
        files = {name: part for name, part in said if not name.startswith(_NOT_READ)}
        return cls(files, {name[1:]: part.decode() for name, part in said if name.startswith(_NOT_READ)})


NOTHING = Texts({})


def seal_of(packed: bytes) -> str:
    """Return the seal of a written form."""
    return hashlib.sha256(packed).hexdigest()[:32]


def user_file(environ: Mapping[str, str], home: Path | None) -> Path | None:
    """Return where the user's own file would be."""
    xdg = environ.get("XDG_CONFIG_HOME", "")
    if xdg.startswith("/"):
        return Path(xdg) / "loopr" / FILE
    return home / ".config" / "loopr" / FILE if home is not None else None


def labels(environ: Mapping[str, str], home: Path | None) -> dict[str, str]:
    """Say what to call the layers in messages: a file below the home folder by its place there."""
    path = user_file(environ, home)
    inside = path is not None and home is not None and path.is_relative_to(home)
    user = f"~/{path.relative_to(home)}" if inside and path and home else str(path)
    return {USER: user, FILE: FILE, LOCAL_FILE: LOCAL_FILE}


def places(workspace: Path | None, environ: Mapping[str, str], home: Path | None) -> Iterator[tuple[str, str]]:
    """Give the files that are there or may be, each by what it is called, with its path."""
    user = user_file(environ, home)
    if user is not None:
        yield USER, str(user)
    if workspace is None:
        return
    for name in (FILE, LOCAL_FILE):
        yield name, f"{workspace}/{name}"
    for folder, suffix, deep in ((PRESETS, ".yml", False), (PROMPTS, ".md", True)):
        yield from _within(f"{workspace}/{folder}", folder, suffix, deep=deep)


def _within(path: str, name: str, suffix: str, *, deep: bool) -> Iterator[tuple[str, str]]:
    """Give the files of a folder with a suffix, and where it is deep those of the folders in it."""
    try:
        with os.scandir(path) as entries:
            found = sorted((each.name, deep and each.is_dir(follow_symlinks=False)) for each in entries)
    except OSError:
        return
    for each, is_folder in found:
        if each.startswith("."):
            continue
        if is_folder:
            yield from _within(f"{path}/{each}", f"{name}/{each}", suffix, deep=True)
        elif each.endswith(suffix):
            yield f"{name}/{each}", f"{path}/{each}"


def read_texts(workspace: Path | None, environ: Mapping[str, str], home: Path | None) -> Texts:
    """Read all files as they are now."""
    files: dict[str, bytes] = {}
    unreadable: dict[str, str] = {}
    for name, path in places(workspace, environ, home):
        try:
            files[name] = _read(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable[name] = error.strerror or str(error)
    return Texts(files, unreadable)


def _read(path: str) -> bytes:
    """Read an ordinary file, as far as any may go; another kind may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is no ordinary file", path)
        parts = [b""]
        while sum(map(len, parts)) <= MAX_BYTES and (part := os.read(descriptor, MAX_BYTES + 1)):
            parts.append(part)
        return b"".join(parts)[: MAX_BYTES + 1]
    finally:
        os.close(descriptor)


def marks(workspace: Path | None, environ: Mapping[str, str], home: Path | None) -> list[object]:
    """Return what changes at a glance where a file changes: nothing that a command may set back."""
    found: list[object] = []
    for name, path in places(workspace, environ, home):
        try:
            seen = os.stat(path)  # noqa: PTH116 - paths as text: an engine asks in every turn
        except OSError as error:
            found.append((name, error.errno))
        else:
            found.append((name, seen.st_ctime_ns, seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return found


def variables(environ: Mapping[str, str]) -> list[str]:
    """Name the variables that set something; those that loopr gives to commands have no double underscore."""
    return sorted(name for name in environ if name.startswith(PREFIX) and "__" in name[len(PREFIX) :])


def policy_seal(texts: Sequence[str], environ: Mapping[str, str], overrides: Sequence[str] = ()) -> str:
    """Return a digest of all that the policy is made from: the seals of texts, variables, options and this version."""
    digest = hashlib.sha256("\0".join((__version__, *texts)).encode())
    for name in variables(environ):
        digest.update(f"\0{name}\0{environ[name]}".encode(errors="surrogateescape"))
    for each in overrides:
        digest.update(f"\0--set\0{each}".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]
