"""Faults that are planted in source files, so that a check which reads one of them has to fail.

Knows how names of files tell their language, and those of tests, documents and tools apart from the
rest. Must never know who checks, nor put a file back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_BROKEN, _PHP = b")(\n", b"<?php )( ?>\n"
_BESIDE = re.compile(
    r"(?:^|/)(?:tests?|testing|testsuite|__tests__|specs?|e2e|fixtures?|docs?|examples?|samples?|demos?"
    r"|bench(?:marks?)?|vendor|third[-_]party|node_modules|scripts?|tools?|\.[^/]+)/",
    re.IGNORECASE,
)
_TESTS = re.compile(r"(?:^|/)(?:tests?|test[_-][^/]*|[^/]*[._-](?:test|tests|spec))\.\w+$", re.IGNORECASE)
_RUNNERS = re.compile(
    r"(?:^|/)(?:setup|conftest|noxfile|tasks|manage|runtests|versioneer|fabfile)\.py$"
    r"|(?:^|/)(?:[^/]*\.(?:config|conf)|Gruntfile|gulpfile|Gulpfile|rollup|webpack[^/]*)\.\w+$"
    r"|(?:^|/)(?:build\.rs|\.[^/]+)$"
)


def is_source(path: str) -> bool:
    """Say whether a file, by its name, is what tests are about: no test, document or tool."""
    return not any(each.search(path) for each in (_BESIDE, _TESTS, _RUNNERS))


def plant(folder: Path, paths: Iterable[str]) -> int:
    """Break the syntax of files in a folder, and return how many are broken now."""
    planted = 0
    for path in paths:
        file = folder / path
        if file.is_file() and not file.is_symlink():
            fault = _PHP if PurePosixPath(path).suffix == ".php" else _BROKEN
            file.write_bytes(fault + file.read_bytes())
            planted += 1
    return planted
