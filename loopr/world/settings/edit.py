"""`set KEY VALUE`: a settings file is edited in place, and nothing but that key changes.

Writers take turns through a lock on the folder, which leaves no file behind. Knows file locks and renames. Must never
know how YAML is written, nor what a value means.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopr.errors import SettingsError, WorldError
from loopr.world.settings.check import check, nearest
from loopr.world.settings.layers import at_path
from loopr.world.settings.parts import Settings
from loopr.world.settings.reading import Node, decode, plain, read_file
from loopr.world.settings.schema import find
from loopr.world.settings.settings import load_texts, refusal, settle
from loopr.world.settings.sources import FILE, LOCAL_FILE, Texts, read_texts
from loopr.world.settings.splice import spliced
from loopr.world.settings.writing import flow

_NEW_TYPE = "the types are {}; a new one is written into the file with the `child` that leads to it"
_MARK = b"\xef\xbb\xbf"


def set_key(
    path: Path,
    key: str,
    value: str,
    *,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    dry_run: bool = False,
    then: Callable[[], None] = lambda: None,
) -> tuple[Any, Any]:
    """Set one key in a settings file and return its old and new value; what would be wrong is refused, the file kept.

    The other layers of the workspace count as well: what is right only together with them is right. A dry run refuses
    the same, and writes nothing. What is to be done `then` belongs to the same turn.
    """
    new_value = _checked(key, value)
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _turn(target.parent):
            old = target.read_bytes() if target.exists() else b""
            root = _root(old, path.name)
            new = _edited(old, root, path.name, *_in_full(root, key, value))
            fresh = "" if _said(root, key) is not None else key
            settings = _settled(path, (old, new), environ or {}, home, fresh)
            if new != old and not dry_run:
                _replace(target, new)
            if not dry_run:
                then()
    except OSError as error:
        raise WorldError(f"{path.name} cannot be written: {error.strerror}") from error
    said = _said(root, key)
    return (settings.default(key) if said is None else plain(said)), new_value


def is_turn(folder: Path) -> bool:
    """Say whether somebody is setting a key in a folder at this moment."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _checked(key: str, value: str) -> Any:
    """Return what the value means, or refuse it by itself."""
    layer, faults = at_path(key, value, "")
    if layer is not None:
        faults = check(layer)[1]
    if layer is None or faults:
        raise refusal(faults)
    said = _said(layer, key)
    return plain(said) if said else None


def _root(raw: bytes, label: str) -> Node:
    """Read the file as it is; one that cannot be read cannot be edited."""
    root, faults = read_file(raw, label)
    if root is None or faults:
        raise refusal(faults)
    if root.value is not None and not isinstance(root.value, dict):
        raise SettingsError("is not a map of keys, and would be lost", where=root.where, hint="edit the file by hand")
    return root


def _said(root: Node, key: str) -> Node | None:
    """Return what one layer says of a key."""
    node: Node | None = root
    for part in key.split("."):
        node = node.value.get(part) if node and isinstance(node.value, dict) else None
    return node


def _in_full(root: Node, key: str, value: str) -> tuple[str, str]:
    """Say what to write where a key goes into a map of which the file has the short form: all of it, as a map."""
    above, _, name = key.rpartition(".")
    known, there = find(above), _said(root, above)
    if known is None or not known.short or there is None or there.value is None or isinstance(there.value, dict):
        return key, value
    if name == known.short:
        return above, value
    return above, f"{{{known.short}: {flow(plain(there))}, {name}: {value}}}"


def _edited(raw: bytes, root: Node, label: str, key: str, value: str) -> bytes:
    """Return the bytes of the file with one key changed."""
    text = spliced(decode(raw), root, key, value)
    if text is None:
        where = said.where if (said := _said(root, key)) else label
        raise SettingsError(f"{key}: cannot be changed in place", where=where, hint="edit the file by hand")
    return (_MARK if raw.startswith(_MARK) else b"") + text.encode()


def edited(texts: Texts, key: str, value: str) -> Texts:
    """Return texts in which loopr.yml has one key changed, and all else is as it was."""
    old = texts.files.get(FILE, b"")
    root = _root(old, FILE)
    return Texts({**texts.files, FILE: _edited(old, root, FILE, *_in_full(root, key, value))}, texts.unreadable)


def _settled(
    path: Path, raw: tuple[bytes, bytes], environ: Mapping[str, str], home: Path | None, fresh: str
) -> Settings:
    """Return the settings as they would be; what is wrong with a `fresh` key has no line in the file as it is."""
    old, new = raw
    try:
        return _settle(path, new, environ, home)
    except SettingsError as error:
        if not fresh:
            raise
        if stranger := _no_type(fresh, lambda: _settle(path, old, environ, home)):
            raise stranger from error
        own = f"{fresh}: "
        told = [replace(each, where=path.name) if each.message.startswith(own) else each for each in error.problems]
        raise SettingsError("", problems=told) from error


def _no_type(key: str, before: Callable[[], Settings]) -> SettingsError | None:
    """Make the refusal of a key of an unknown type; None where the settings do not load."""
    top, _, rest = key.partition(".")
    name, _, inner = rest.partition(".")
    try:
        types = before().types
    except SettingsError:
        return None
    if top != "types" or name in types:
        return None
    near = nearest(name, types)
    meant = ".".join(filter(None, (top, near, inner)))
    hint = f"did you mean {meant}?" if near else _NEW_TYPE.format(", ".join(types))
    return SettingsError(f"{key}: there is no type {name}", hint=hint)


def _settle(path: Path, raw: bytes, environ: Mapping[str, str], home: Path | None) -> Settings:
    """Return the settings as they would be."""
    if path.name in (FILE, LOCAL_FILE):
        now = read_texts(path.parent, environ, home)
        unreadable = {name: words for name, words in now.unreadable.items() if name != path.name}
        return load_texts(Texts({**now.files, path.name: raw}, unreadable), environ=environ, home=home)
    return settle([read_file(raw, path.name)])


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait for a turn to write in a folder; the lock dies with its owner."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(target: Path, raw: bytes) -> None:
    """Put new bytes in the place of a file, all or nothing, with the owner and mode of the old one."""
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)  # only a writer that was killed within its turn leaves one
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if target.exists():
                _take_after(file.fileno(), target.stat())
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _take_after(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner and mode of the old one."""
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o7777)
