"""Which loops mean to touch the same files."""

from __future__ import annotations

import pytest

from loopr.core.overlap import covers, meet, overlapping
from tests.core.stories import tell


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("src/api/**", "src/api/routes.py", True),
        ("src/api/**", "src/api", True),
        ("src/api/**", "src/web/**", False),
        ("src/*.py", "src/main.py", True),
        ("src/*.py", "src/main.c", False),
        ("src/*.py", "src/m*", True),
        ("src", "src/deep/below.py", True),
        ("./src/", "src", True),
        ("**/test_*.py", "src/a/test_b.py", True),
        ("**/test_*.py", "src/a/b.py", True),
        ("**/test_*.py", "docs/*.md", False),
        ("**", "anything", True),
        ("docs/a.md", "docs/b.md", False),
        ("/".join(["**", "a"] * 40), "/".join(["a"] * 80) + "/b", True),
    ],
)
def test_two_patterns(one: str, other: str, same: bool) -> None:
    """Patterns overlap where some path fits both, in either order, and no pattern takes long."""
    assert meet(one, other) is same
    assert meet(other, one) is same


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("src/api/routes.py", "src/api/**", True),
        ("src/api/routes.py", "src", True),
        ("src/api", "src/api/**", True),
        ("src/a/b.py", "**/test_*.py", False),
        ("src/a/test_b.py", "**/test_*.py", True),
        ("top", "src/**", False),
        ("src", "src/deep/below", False),
    ],
)
def test_a_file_and_a_pattern(path: str, pattern: str, fits: bool) -> None:
    """A file fits a pattern that names it, or a folder that it is in; nothing is below a file."""
    assert covers([pattern], path) is fits


def test_siblings_that_mean_to_touch_the_same() -> None:
    """Siblings are compared, pair by pair; a loop that names no files is left out, and so are cousins."""
    story = tell("plan p: a; b; c")
    loops = [story[each]._replace(files=files) for each, files in (("p/a", ("x/**",)), ("p/b", ("x/y",)), ("p/c", ()))]
    assert [(one.id, other.id, what) for one, other, what in overlapping(loops)] == [("p/a", "p/b", "x/**")]
    assert not list(overlapping([loops[0], loops[1]._replace(parent="other")]))


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/x.csv", "deep/[x].csv", False),
        ("deep/[x].csv", "deep/[x].csv", True),
        ("deep/[x].csv", "deep/x.csv", True),
        ("**/x.csv", "**/y.csv", False),
        ("app", "app/[id]/page.tsx", True),
        ("app/*/page.tsx", "app/[id]/page.tsx", True),
    ],
)
def test_the_name_of_a_file_is_no_pattern(pattern: str, path: str, fits: bool) -> None:
    """Signs in a file's own name mean themselves, and a pattern fits the file that is called so."""
    assert covers((pattern,), path) is fits
