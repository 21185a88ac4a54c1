"""Files of a checkout that lead back into it when they are copied into a worktree.

A copy of a virtual environment, of a script or of a link runs the files of the checkout, and a check
would judge those. Knows the marks of such files, and reads few bytes of few of them. Must never
change one, nor know why files are copied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from loopr.world.repo.venvs import MARK, environments_among

ENVIRONMENT = "a virtual environment, which runs the checkout's own files"
LINKED = "a link to a virtual environment, which runs the checkout's own files"
_PROGRAM = "whose first line names a program of the checkout"
_PATHS = "which has Python import the checkout's own files"
_LINK = "a link back into the checkout"
_SCRIPTS = frozenset({"bin", ".bin", "sbin", "Scripts"})
_FINDERS = ("*.pth", "*.egg-link", "__editable__*")
_MOST_READ, _MOST_BYTES, _FIRST_LINES = 2000, 1 << 16, 512
_MOST_TEXTS = 200


class Tie(NamedTuple):
    """A file or folder that leads back into its checkout, and the way in which it does."""

    place: str
    why: str

    @property
    def is_environment(self) -> bool:
        """Say whether it is a virtual environment, which is made anew instead."""
        return self.why in (ENVIRONMENT, LINKED)


def ties_among(top: Path, paths: Sequence[str]) -> Iterator[Tie]:
    """Give the files of a checkout that would lead back into it; an environment counts as one."""
    homes = environments_among(top, paths)
    yield from (Tie(each, ENVIRONMENT) for each in homes)
    within = tuple(f"{each}/" for each in homes)
    sign, read = _sign_of(top), 0
    for path in paths:
        if path.startswith(within):
            continue
        if (top / path).is_symlink():
            why = _of_link(top, path, sign)
        elif read < _MOST_READ and (most := _bytes_of_interest(path)):
            read += 1
            why = _of_file(top / path, most, sign)
        else:
            continue
        if why:
            yield Tie(path, why)


def naming(top: Path, paths: Iterable[str]) -> list[str]:
    """List the small files of a checkout that name its own path; of very many, the first count."""
    sign, plain = _sign_of(top), (each for each in paths if not (top / each).is_symlink())
    nearest = sorted(plain, key=lambda each: (each.count("/"), each))
    return [each for each in islice(nearest, _MOST_TEXTS) if sign.search(_beginning(top / each))]


def _bytes_of_interest(path: str) -> int:
    """Return the number of bytes in which a file, by its name, may lead back; 0 for none."""
    name = PurePosixPath(path)
    if any(name.match(each) for each in _FINDERS):
        return _MOST_BYTES
    return _FIRST_LINES if name.parent.name in _SCRIPTS else 0


def _of_file(file: Path, most: int, sign: re.Pattern[bytes]) -> str:
    """Say how a file leads back: by the program that it begins with, or by a folder of modules."""
    text = _beginning(file, most)
    if most == _MOST_BYTES:
        return _PATHS if sign.search(text) else ""
    first = b"\n".join(text.split(b"\n")[:2])  # pip has sh begin a program whose path is long
    return _PROGRAM if text.startswith(b"#!") and sign.search(first) else ""


def _of_link(top: Path, path: str, sign: re.Pattern[bytes]) -> str:
    """Say how a link leads back; one that stays inside leads, in a worktree, to its own files."""
    link = top / path
    real = Path(os.path.realpath(link))  # a loop of links is no error there
    way = Path(os.path.normpath(Path(path).parent / link.readlink()))
    leaves = way.is_absolute() or way.parts[:1] == ("..",)
    if real.is_relative_to(top.resolve()):
        return _LINK if leaves else ""
    if not (real / MARK).is_file():
        return ""
    every = islice(_finders_in(real), _MOST_READ)
    return LINKED if any(sign.search(_beginning(each)) for each in every) else ""


def _finders_in(home: Path) -> Iterator[Path]:
    """Give the files of a virtual environment that may lead to other folders of modules."""
    for site in home.glob("lib/python*/site-packages"):
        for name in _FINDERS:
            yield from site.glob(name)
        yield from site.glob("*.dist-info/direct_url.json")


def _sign_of(top: Path) -> re.Pattern[bytes]:
    """Return what finds the path of a checkout in a text."""
    names = "|".join(sorted({re.escape(str(top)), re.escape(str(top.resolve()))}))
    return re.compile(rb"(?:%s)(?![\w.-])" % os.fsencode(names))


def _beginning(file: Path, most: int = _MOST_BYTES) -> bytes:
    """Read the beginning of a plain file; nothing of one that cannot be read."""
    try:
        if not file.is_file():  # a pipe would be waited for
            return b""
        with file.open("rb") as opened:
            return opened.read(most)
    except OSError:
        return b""
