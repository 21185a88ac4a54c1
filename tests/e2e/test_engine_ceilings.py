"""How many commands are alive at once, by what they themselves write down when they begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

GATED = "begin; tell began; wait_at gate; end"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def code(repo: Repo, text: str, names: str, *, more: str = "", outline: str = "", script: str = GATED) -> None:
    """Set a repository up for a plan with code loops of some names."""
    children = "".join(f"  - {{id: {each}}}\n" for each in names.split())
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', script)}'{more}}}\n{text}")
    repo.write({"plan.md": f"---\n{outline}children:\n{children}---\n# Demo\n"})


def drive(repo: Repo, ceiling: int) -> None:
    """Drive a plan of which as many commands as the ceiling allows stand at the gate together, then all go on."""
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(ceiling)
    assert repo.loopr("next", "--json").document["grants"] == []
    gate.open()
    process.ended()
    assert repo.most_at_once() == ceiling


@pytest.mark.parametrize(
    ("text", "ceiling"),
    [
        ("concurrency: {max_loops: 3}\n", 3),
        ("concurrency: {per_type: {code: 2}}\n", 2),
        ("projects: {default: {max_concurrent: 2}}\n", 2),
        ("lanes: {slow: {max_concurrent: 2}}\n", 2),
        ("concurrency: {max_api_calls: 2}\nlanes: {slow: {}}\n", 2),
        ("concurrency: {max_api_calls: 2}\n", 6),
        ("concurrency: {max_loops: 0}\n", 6),
    ],
    ids=["max_loops", "per_type", "project", "lane", "max_api_calls", "no API calls", "no ceiling"],
)
def test_a_ceiling_is_reached_and_holds(repo: Repo, text: str, ceiling: int) -> None:
    """As many commands as the ceiling allows are alive at once, and never one more."""
    code(repo, text, "a b c d e f", more=", lane: slow" if "lanes" in text else "")
    drive(repo, ceiling)


def test_the_judge_counts_too(repo: Repo) -> None:
    """A loop whose check runs keeps its slot: command and check together never exceed the ceiling."""
    check = repo.script("check", "begin; tell judged; wait_at gate; end")
    code(repo, "concurrency: {max_loops: 2}\n", "a b c d", more=f", check: '{check}'", script="begin; end")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    assert len([each for each in repo.diary() if each.startswith("-")]) == 2
    assert repo.loopr("status", "--json").document["capacity"]["occupied"] == 2
    gate.open()
    process.ended()
    assert repo.most_at_once() <= 2


def test_types_have_ceilings_of_their_own(repo: Repo) -> None:
    """A ceiling of one type holds back no other type."""
    phase = repo.script("phase", f'{GATED}; printf -- "---\\ntasks: [{{id: x}}]\\n---\\n# P\\n" > "$LOOPR_OUTPUT"')
    repo.settings(
        f"types:\n  phase: {{run: '{phase}'}}\n  code: {{run: '{repo.script('code', GATED)}'}}\n"
        "concurrency: {per_type: {phase: 1, code: 2}}\n"
    )
    repo.write({"plan.md": "---\nspecs: [{id: s, phases: [{id: a}, {id: b}, {id: c}]}]\n---\n# Demo\n"})
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    for _ in range(3):
        repo.heard()
        gate.let_on()
    gate.open()
    process.ended()
    assert repo.most_at_once(lambda loop: loop.count("/") == 2) == 1
    assert repo.most_at_once(lambda loop: loop.count("/") == 3) <= 2
    assert len(repo.statuses()) == 8


@pytest.mark.parametrize(
    ("outline", "more"), [("parallel: false\n", ""), ("", ", parallel: false")], ids=["artifact", "type"]
)
def test_serial_siblings(repo: Repo, outline: str, more: str) -> None:
    """With `parallel: false` siblings run one after the other, in the order of the outline, retries included."""
    script = 'begin; end; test "$LOOPR_LOOP $LOOPR_ITERATION" != "demo/b 1"'
    code(repo, "", "c b a", more=more, outline=outline, script=script)
    repo.loopr("start", "plan.md")
    assert repo.most_at_once() == 1
    order = ("c 1", "b 1", "b 2", "a 1")
    assert repo.diary() == [f"{sign} demo/{each}" for each in order for sign in "+-"]


def test_a_serial_entry_leaves_the_others_alone(repo: Repo) -> None:
    """Only entries that are serial wait for each other; parallel siblings run beside them."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', GATED)}'}}\n")
    entries = "[{id: a, parallel: false}, {id: b, parallel: false}, {id: c}, {id: d}]"
    repo.write({"plan.md": f"---\nchildren: {entries}\n---\n# Demo\n"})
    drive(repo, 3)
    assert repo.most_at_once(lambda loop: loop in ("demo/a", "demo/b")) == 1


def test_serial_children_do_not_wait_for_cousins(repo: Repo) -> None:
    """The line of a serial loop is its siblings': children of another parent have a line of their own."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', GATED)}', parallel: false}}\n")
    tasks = "tasks: [{id: a}, {id: b}]"
    repo.write({"plan.md": f"---\nspecs: [{{id: s, phases: [{{id: p, {tasks}}}, {{id: q, {tasks}}}]}}]\n---\n# Demo\n"})
    drive(repo, 2)
    for phase in "pq":
        assert repo.most_at_once(lambda loop, phase=phase: f"/{phase}/" in loop) == 1  # type: ignore[misc]


def test_projects_have_ceilings_of_their_own(repo: Repo) -> None:
    """A project's ceiling holds for all its plans together, and holds back no other project."""
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', GATED)}'}}\n"
        "projects: {small: {max_concurrent: 1}, large: {max_concurrent: 3}}\n"
    )
    children = "children: [{id: a}, {id: b}]"
    for name, project in (("one", "small"), ("two", "small"), ("three", "large"), ("four", "large")):
        repo.write({f"{name}.md": f"---\nid: {name}\nproject: {project}\n{children}\n---\n# Demo\n"})
    gate = repo.gate("gate")
    process = repo.begin("start", "one.md", "two.md", "three.md", "four.md")
    repo.heard(4)
    gate.open()
    process.ended()
    assert repo.most_at_once(lambda loop: loop.startswith(("one", "two"))) == 1
    assert repo.most_at_once(lambda loop: loop.startswith(("three", "four"))) == 3


@pytest.mark.parametrize(
    "key",
    [
        "concurrency.max_loops",
        "concurrency.max_api_calls",
        "concurrency.per_type.code",
        "projects.default.max_concurrent",
        "lanes.slow.max_concurrent",
    ],
)
def test_a_ceiling_is_lowered_while_it_is_reached(repo: Repo, key: str) -> None:
    """Lowering stops nothing: it drains to the new ceiling, and from then on holds it."""
    code(repo, "lanes: {slow: {}}\n", "a b c d e f g", more=", lane: slow")
    repo.loopr("set", key, "4")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(4)
    seen = len(repo.events("policy_loaded"))
    repo.loopr("set", key, "1")
    repo.until("policy_loaded", seen + 1)
    before = len(repo.diary())
    assert before == 4
    gate.open()
    process.ended()
    assert repo.most_at_once() == 4
    live = 4
    for line in repo.diary()[before:]:
        live += 1 if line.startswith("+") else -1
        assert not (line.startswith("+") and live > 1), repo.diary()


@pytest.mark.parametrize("way", ["set", "editor"])
def test_a_ceiling_is_raised_while_it_is_reached(repo: Repo, way: str) -> None:
    """A higher ceiling lets more begin at once, while all that runs still runs, whoever has written it down."""
    code(repo, "concurrency: {max_loops: 1}\n", "a b c d")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    if way == "set":
        repo.loopr("set", "concurrency.max_loops", "3")
    else:
        text = (repo.root / "loopr.yml").read_text()
        repo.write({"loopr.yml": text.replace("max_loops: 1", "max_loops: 3")})
    repo.heard(2)
    gate.open()
    process.ended()
    assert repo.most_at_once() == 3


def test_settings_that_are_wrong_change_nothing(repo: Repo) -> None:
    """A loopr.yml that is broken while the engine runs is reported, and what was set before holds until then."""
    code(repo, "concurrency: {max_loops: 1}\n", "a b")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    text = (repo.root / "loopr.yml").read_text()
    repo.write({"loopr.yml": "concurrency: {max_loops: many}\n"})
    repo.until("problem_seen", words="max_loops")
    repo.write({"loopr.yml": text})
    gate.open()
    process.ended()
    assert repo.most_at_once() == 1
