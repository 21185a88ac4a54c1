"""Which files a command names: the table of commands, each with the files that judge and those that do not."""

from __future__ import annotations

import pytest

from loopr.world.judges import Command, judges_in, stand_ins

FILES = frozenset(
    (
        *("check.sh", "b.sh", "a b.sh", "it.sh", "src/main.py", "tests/x.py", "tests/__init__.py"),
        *("tools/__init__.py", "tools/check.sh", "tools/check.py", "tools/ci.mk", "tools/Makefile", "tools/ruff.toml"),
        *("tools/check/__main__.py", "tools/__main__.py", "requirements.txt", "tools/deep/check.sh"),
    )
)
MODULE = "tools/__init__.py tools/check.py tools/check/__main__.py"
TABLE: tuple[tuple[Command | None, str], ...] = (
    ("sh tools/check.sh", "tools/check.sh"),
    ("pytest .", ""),
    ("pytest ./", ""),
    ("ruff check src/", ""),
    ("grep -r x src/ tools", ""),
    ("grep x src/main.py", ""),
    ("grep -q x check.sh && sh b.sh", "b.sh"),
    ("grep -qf check.sh src/main.py", "check.sh src/main.py"),
    ("grep --file=check.sh src/main.py", "check.sh src/main.py"),
    (("/usr/bin/grep", "x", "src/main.py"), ""),
    ("test -s src/main.py && [ -x check.sh ]", ""),
    ("[[ -s src/main.py ]] && ./check.sh", "check.sh"),
    ("test $(wc -l < src/main.py) -ge 5", ""),
    ('test "$(sh check.sh)" = x', "check.sh"),
    ('test "$(cat check.sh)" = x', "check.sh"),
    ("bash -c 'test -s src/main.py'", ""),
    ("bash -c 'test -s src/main.py; sh check.sh'", "check.sh"),
    ("jq -e .x src/main.py", ""),
    ("jq -e --from-file check.sh src/main.py", "check.sh src/main.py"),
    ("diff check.sh src/main.py", "check.sh src/main.py"),
    ("cat src/main.py | grep x", "src/main.py"),
    ("cd tools && sh check.sh", "tools/check.sh"),
    ("cd tools\nsh check.sh", "tools/check.sh"),
    ("cd ./tools/ || exit 1; sh ./check.sh", "tools/check.sh"),
    ("cd tools && cd deep && sh check.sh", "tools/deep/check.sh"),
    ("cd tools && sh ../check.sh", "check.sh"),
    ("cd tools && cd .. && sh b.sh", "b.sh"),
    ("cd tools &&\\\n  sh check.sh", "tools/check.sh"),
    ("(cd tools && sh check.sh); sh b.sh", "tools/check.sh b.sh"),
    ("if cd tools; then sh check.sh; fi", "tools/check.sh"),
    ('cd "$LOOPR_WORKTREE/tools" && sh check.sh', "tools/check.sh"),
    ('cd tools && sh "$LOOPR_WORKTREE"/b.sh "$PWD/check.sh"', "tools/check.sh b.sh"),
    ('cd "$X" && sh check.sh', "check.sh"),
    ("cd /srv && sh check.sh", "check.sh"),
    ("make -C tools test", ""),
    ("make -C tools -f ci.mk", "tools/ci.mk"),
    ("make -Ctools -f ci.mk", "tools/ci.mk"),
    ("just --directory=tools -f ci.mk", "tools/ci.mk"),
    ("make -C tools -f Makefile", "tools/Makefile"),
    ("ruff check --config=tools/ruff.toml .", "tools/ruff.toml"),
    ("python -m tools.check", MODULE),
    ("python3.12 -Im tools.check src/", MODULE),
    (("/usr/bin/python3", "-mtools.check"), MODULE),
    ("cd src && python -m main", "src/main.py"),
    ("python tools", "tools/__main__.py"),
    ("python tools/check.py src", "tools/check.py"),
    ("python -m pytest tests/x.py", "tests/x.py"),
    ("python -m pytest tests", ""),
    ("pytest tests/x.py::test_it", "tests/x.py"),
    ("python -m unittest tests.x.Case", "tests/__init__.py tests/x.py"),
    ("bash -c 'sh ./check.sh'", "check.sh"),
    (("bash", "-c", "cd tools && sh ./check.sh"), "tools/check.sh"),
    ("bash -c 'cd tools && sh ./check.sh' && sh b.sh", "tools/check.sh b.sh"),
    ("env A=b ./check.sh", "check.sh"),
    ("CHECK=./check.sh; $CHECK", "check.sh"),
    ('x="$(./check.sh)" && y=`sh b.sh`', "check.sh b.sh"),
    ("diff <(sh check.sh) b.sh", "check.sh b.sh"),
    (("sh", "{worktree}/check.sh"), "check.sh"),
    ("# it isn't\nsh check.sh # nor b.sh's", "check.sh"),
    ("sh '#' check.sh", "check.sh"),
    ("echo it's; sh check.sh", "check.sh"),
    ("pip install -r requirements.txt && sh check.sh", "check.sh"),
    ("sh ../check.sh /check.sh ~/check.sh", ""),
    (None, ""),
)


@pytest.mark.parametrize(("command", "named"), TABLE)
def test_a_command_names_its_judges(command: Command | None, named: str) -> None:
    """Exactly the files that a command names as it runs are judges, however it names them."""
    assert FILES.intersection(judges_in([command])) == set(named.split())


def test_a_name_with_a_space() -> None:
    """A quoted name stays one."""
    assert "a b.sh" in judges_in(["sh 'a b.sh'"])


def test_what_would_stand_in_for_a_module() -> None:
    """Of a module that is there, whatever Python would read instead of it or before it is named; of none else."""
    words = judges_in(["python -m tools.check && python -m other.one"])
    expected = ("tools.py", "tools/__init__.py", "tools/check.py", "tools/check/__init__.py", "tools/check/__main__.py")
    assert stand_ins(words, ["tools/check.py"]) == expected
    assert stand_ins(words, ["check.sh"]) == ()


@pytest.mark.parametrize(
    ("check", "guards"),
    [
        ("cmp want.csv out.csv", False),
        ("make -s list | diff - out.csv", False),
        ('test "$(cat out.csv)" = x', False),
        ("./check.sh out.csv", False),
        ("python3 check.py out.csv", False),
        ("pytest out.csv", True),
        (".venv/bin/pytest out.csv", True),
        ("node_modules/.bin/jest out.csv", True),
        ("bin/each out.csv", True),
        ("sh -e out.csv", True),
        ("python3 -m check out.csv", True),
        (". out.csv", True),
        ("cat out.csv | sh", True),
        ("sh -c 'sh out.csv'", True),
        ("./check.sh out.csv && sh out.csv", True),
        ("awk -f out.csv data", True),
    ],
)
def test_a_made_file_is_work_where_it_is_only_read(check: str, guards: bool) -> None:
    """A file that the work makes guards only where a check may run it."""
    assert ("out.csv" in judges_in([check], {"out.csv"})) is guards
    assert "out.csv" in judges_in([check]) or check.startswith("test")


@pytest.mark.parametrize("name", ["tests/a.sh", "a.py", "lib.test.js", "t/one.t"])
def test_code_that_a_script_is_given_guards(name: str) -> None:
    """A script may run it, although another one only reads it."""
    assert name in judges_in([f"./run.sh {name}"], {name})
    assert name not in judges_in([f"diff want {name}"], {name})
    assert {*judges_in([f"diff {name} other"], {name, "other"})} >= {name, "other"}
