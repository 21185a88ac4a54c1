"""The ladder of types: the built-in one, ladders of one's own, and what is no ladder."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.world.settings import Settings, load


def loaded(folder: Path, text: str, own: str = "") -> Settings:
    """Load a workspace's settings, with a file of the user's own in front."""
    (folder / "loopr.yml").write_text(text)
    (folder / ".config" / "loopr").mkdir(parents=True)
    (folder / ".config" / "loopr" / "loopr.yml").write_text(own)
    return load(folder, environ={}, home=folder)


def ladder(settings: Settings) -> list[str]:
    """Name the types from the top down."""
    return list(settings.policy.types)


@pytest.mark.parametrize(
    ("types", "names"),
    [
        ("{code: {run: x}}", ["plan", "spec", "phase", "code"]),
        ("{task: {}}", ["task"]),
        ("{story: {}, epic: {child: story}}", ["epic", "story"]),
        ("{epic: {child: code}}", ["epic", "code"]),
        ("{epic: {child: spec}}", ["epic", "spec", "phase", "code"]),
        ("{plan: {child: task}, task: {}}", ["plan", "task"]),
        ("{plan: {child: code}}", ["plan", "code"]),
        ("{plan: {}, spec: {child: null}}", ["plan", "spec"]),
    ],
)
def test_a_ladder_of_ones_own_keeps_what_it_names(tmp_path: Path, types: str, names: list[str]) -> None:
    """Built-in types stay if they are named, or hang below one that is; the others go."""
    settings = loaded(tmp_path, f"types: {types}\n")
    assert ladder(settings) == names
    assert [settings.policy.types[name].child for name in names] == [*names[1:], None]
    assert list(settings.types) == names
    assert settings.policy.root_type == names[0]


def test_what_the_user_likes_everywhere_does_not_bend_a_ladder(tmp_path: Path) -> None:
    """A command that the user's own file gives to a built-in type adds nothing to a workspace with other types."""
    own = "types: {code: {agent: claude}}\nconcurrency: {per_type: {code: 3}}\n"
    assert ladder(loaded(tmp_path, "types: {epic: {child: task}, task: {}}\n", own)) == ["epic", "task"]


def test_a_ladder_of_ones_own_has_priorities_from_the_leaf_up(tmp_path: Path) -> None:
    """A leaf has 100 and each level above 20 less, unless it has an entry; iterations are 100 and no limit holds."""
    text = "types: {a: {child: b}, b: {child: c}, c: {child: d}, d: {}}\nscheduler: {priority: {b: 7}}\n"
    settings = loaded(tmp_path, text)
    assert settings.policy.priority.base == {"a": 40, "b": 7, "c": 80, "d": 100}
    assert settings.policy.per_type == {}
    assert {each.max_iterations for each in settings.policy.types.values()} == {100}
    assert settings.value("scheduler.priority.c") == 80


def test_limits_of_types_that_are_not_in_the_ladder_do_not_count(tmp_path: Path) -> None:
    """The published concurrency block may stand beside another ladder; only what applies is kept."""
    text = "types: {epic: {child: code}}\nconcurrency: {per_type: {plan: 2, spec: 5, phase: 20, code: 50, epic: 1}}\n"
    assert loaded(tmp_path, text).policy.per_type == {"epic": 1, "code": 50}


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        ("{plan: {child: spce}}", "loopr.yml:1:16 types.plan.child: there is no type spce"),
        ("{a: {child: b}, b: {child: a}}", "loopr.yml:1:28 types.b.child: closes a cycle: a > b > a"),
        ("{a: {child: a}}", "loopr.yml:1:13 types.a.child: closes a cycle: a > a"),
        ("{a: {child: c}, b: {child: c}, c: {}}", "types.b.child: c is already the child of a"),
        ("{a: {}, b: {}}", "types: must have one type at the top, not 2: a, b"),
        (
            "{cod: {run: x}}",
            "loopr.yml:1:9 types.cod: is in no ladder and looks like a built-in type (did you mean code?)",
        ),
        ("{need: {}}", "types.need: is a name that artifacts use for something else"),
        ("{a: {child: 5}}", "types.a.child: must be the name of a type, not 5"),
        ("{" + ", ".join(f"t{n}: {{child: t{n + 1}}}" for n in range(8)) + ", t8: {}}", "at most 8 levels, not 9"),
    ],
)
def test_what_is_no_ladder_is_refused_where_it_stands(tmp_path: Path, types: str, problem: str) -> None:
    """A missing child, a cycle, two parents, two tops and a misspelt name are one problem each, with its place."""
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, f"types: {types}\n")
    assert len(caught.value.problems) == 1
    assert problem in str(caught.value.problems[0])


def test_a_leaf_takes_what_its_type_does_not_say_from_the_last_one(tmp_path: Path) -> None:
    """Judges, protected files, clean folders, clocks and iterations are a type's own where it says so, one by one."""
    (tmp_path / "loopr.yml").write_text(
        "types:\n"
        "  phase: {approve: false, timeouts: {wall_secs: 5}, review: ./ours, max_iterations: 3}\n"
        "  spec: {check: none}\n"
        "  code: {check: make test, approve: true, protect: [tests/**], clean: true, review: {agent: claude},\n"
        "         timeouts: {wall_secs: 7, check_secs: 8}, max_iterations: 9}\n"
    )
    settings = load(tmp_path, environ={}, home=None)
    phase, spec = settings.leaf_of("phase"), settings.leaf_of("spec")
    assert phase is not None and spec is not None
    assert (phase.name, phase.child, phase.check, phase.approve) == ("code", None, "make test", False)
    assert (phase.review, phase.review_agent, phase.max_iterations) == ("./ours", None, 3)
    assert (phase.timeouts.wall_ms, phase.timeouts.check_ms) == (5_000, 8_000)
    assert (phase.protect, phase.clean) == (("tests/**",), True)
    assert (spec.check, spec.unjudged, spec.approve, spec.review_agent, spec.max_iterations) == (
        *(None, True, True, "claude"),
        9,
    )
    for name, own in (("phase", phase), ("spec", spec)):
        known = settings.policy.leaf_of(name)
        assert (known.judged, known.approve, known.max_iterations) == (
            own.check is not None,
            own.approve,
            own.max_iterations,
        )
    assert settings.leaf_of("code") == settings.types["code"]
    assert settings.leaf_of("nobody") is None
