"""Settings that are wrong: each problem is found, all at once, with its place and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.errors import SettingsError
from loopr.world.settings import load
from loopr.world.settings.settings import load_texts
from loopr.world.settings.sources import Texts


def refused(
    folder: Path, text: str | bytes = "", environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> list[str]:
    """Load settings that are wrong and return the problems as people see them."""
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / "loopr.yml").write_bytes(raw)
    with pytest.raises(SettingsError) as caught:
        load(folder, environ=environ or {}, home=None, overrides=overrides)
    assert caught.value.exit_code == 78
    return [str(problem) for problem in caught.value.problems]


def test_a_problem_is_one_line_with_place_key_and_what_was_written(tmp_path: Path) -> None:
    """The line of the format's own example comes out to the letter."""
    text = "# one\n" * 9 + "concurrency:\n  per_type:\n    code: many\n"
    assert refused(tmp_path, text) == [
        'loopr.yml:12:5 concurrency.per_type.code: must be a whole number of at least 1, not "many"'
    ]


def test_all_problems_come_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    """Wrong values, unknown keys, double keys and wrong kinds in all layers are reported together."""
    (tmp_path / "loopr.local.yml").write_text("logs: {keep_days: -1}\n")
    text = "queue: [1]\nlanes: {ramp: maybe}\nretry:\n  factor: 0.5\n  factor: 3\n  max_conflict: 2\nversion: 2\n"
    problems = refused(tmp_path, text, {"LOOPR_QUEUE__SOFT_LIMIT": "http"}, ["git.branch_prefix=x", "nonsense"])
    assert problems == [
        "loopr.yml:1:1 queue: must be a map of keys, not a list",
        'loopr.yml:2:9 lanes.ramp: must be true or false, not "maybe"',
        "loopr.yml:4:3 retry.factor: must be a number of at least 1, not 0.5",
        "loopr.yml:5:3 retry.factor: is written twice, first at loopr.yml:4:3 (keep one of them)",
        "loopr.yml:6:3 retry.max_conflict: is not a known key (did you mean retry.max_conflicts?)",
        "loopr.yml:7:1 version: must be 1, the only version that this loopr reads, not 2",
        "loopr.local.yml:1:8 logs.keep_days: must be a number of at least 0, not -1",
        'LOOPR_QUEUE__SOFT_LIMIT queue.soft_limit: must be a whole number of at least 1, not "http"',
        '--set git.branch_prefix: must be a prefix that ends with "/", not "x"',
        '--set needs KEY=VALUE, not "nonsense"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("concurency: {}", "loopr.yml:1:1 concurency: is not a known key (did you mean concurrency?)"),
        ("max_loops: 3", "loopr.yml:1:1 max_loops: is not a known key (did you mean concurrency.max_loops?)"),
        ("types: {code: {chek: x}}", "types.code.chek: is not a known key (did you mean types.code.check?)"),
        ("types: {code: {rnu: x}}", "types.code.rnu: is not a known key (did you mean types.code.run?)"),
        ("projects: {a: {weight: 0}}", "loopr.yml:1:16 projects.a.weight: must be a number above 0, not 0"),
        ("projects:\n  a:\n    weight: -2", "loopr.yml:3:5 projects.a.weight: must be a number above 0, not -2"),
        ("lanes: {'a b': {}}", "lanes.a b: is no name for a lane"),
        ("lanes: {ramp: {max_concurrent: 1}}", "lanes.ramp: must be true or false, not a map"),
        ("types: {Code: {}}", "types.Code: is no name for a type"),
        ("scheduler: {max_load: 0}", "scheduler.max_load: must be a number above 0, not 0"),
        ("scheduler: {max_load: true}", "scheduler.max_load: must be a number above 0, not true"),
        ("scheduler: {poll_interval_secs: .inf}", "must be a number above 0, not .inf"),
        ("budget: {tokens: 1.5}", "budget.tokens: must be a whole number of at least 0, not 1.5"),
        ("budget: {tokens: 9999999999999}", "budget.tokens: must be at most 1000000000000, not 9999999999999"),
        ("retry: {jitter: 1.5}", "retry.jitter: must be a number from 0 to 1, not 1.5"),
        ("artifacts: {stamp: 'yes'}", 'artifacts.stamp: must be true or false, not "yes"'),
        ("git: {base: 1.10}", 'git.base: must be text, not 1.10 (if you mean the text, write "1.10" with quotes)'),
        ("land: {mode: auot}", 'land.mode: must be manual or auto, not "auot" (did you mean auto?)'),
        ("artifacts: {dir: ../x}", 'artifacts.dir: must be a folder inside the workspace, not "../x"'),
        ("artifacts: {dir: /x}", 'artifacts.dir: must be a folder inside the workspace, not "/x"'),
        ("artifacts: {dir: .git/x}", 'artifacts.dir: must be a folder inside the workspace, not ".git/x"'),
        ("artifacts: {dir: ./.}", "artifacts.dir: must be a folder below the workspace"),
        ("artifacts: {dir: worktrees/specs}", "must not contain each other"),
        ("notify: a://b", "notify: must be a list of URLs, not that text (put it in [brackets])"),
        ("notify: [nobody]", "loopr.yml:1:10 notify: must be a list of URLs, not that text"),
        ("types: {code: {check: true}}", 'write "true" with quotes'),
        ("types: {code: {run: []}}", "the list has no program in it"),
        ("types: {code: {run: '  '}}", "types.code.run: must be a command"),
        ("types: {code: {run: [work, {prompt_file}]}}", 'write "{prompt_file}" with quotes'),
        ("types: {code: {wrap: [bwrap]}}", 'one of its arguments must be "{command}"'),
        ("types: {code: {run: x, agent: y}}", "types.code.run: cannot stand beside types.code.agent (loopr.yml:1:24)"),
        ("types: {code: {escalate: {refusal: {agent: x}}}}", "is no name for a class"),
        ("types: {code: {escalate: {refused: {after: 2}}}}", "types.code.escalate.refused: names no agent"),
        (
            "types: {code: {fallback: codex}}",
            "types.code.fallback: stands in for nobody: without run and agent a person",
        ),
        ("types: {code: {agent: codex, fallback: [codex]}}", "types.code.fallback: names codex, whose work it is"),
        ("types: {code: {resources: {GPU: 1}}}", "types.code.resources.GPU: is not offered: resources does"),
        (
            "{resources: {simulator: 2}, types: {code: {resources: {simulater: 1}}}}",
            "types.code.resources.simulater: is not offered: resources does not name it (did you mean simulator?",
        ),
        (
            "{resources: {db: 2}, types: {code: {resources: {db: 3}}}}",
            "loopr.yml:1:49 types.code.resources.db: wants 3, and resources offers 2 (loopr.yml:1:14)",
        ),
        ("resources: {db: 0}", "loopr.yml:1:13 resources.db: must be a whole number from 1 to 1000000, not 0"),
        ("resources: {'a b': 1}", "loopr.yml:1:13 resources.a b: is no name for a resource"),
        ("serve: {port: 8000}", "loopr.yml:1:1 serve: is not in this version (there is no page in the browser"),
        ("executor: {kind: dask}", "loopr.yml:1:12 executor.kind: dask is not in this version (there is no cluster"),
        ("types: {code: {env: {only: ['A B']}}}", "types.code.env.only"),
        ("types: {code: {lane: []}}", "the list is empty"),
        ("projects: {a: {repo: null, git: {base: x}}}", "projects.a.git.base: has no meaning where the project works"),
        ("queue: {soft_limit: 9, hard_limit: 8}", "queue.hard_limit: must be at least queue.soft_limit (9), not 8"),
        ("concurrency: {per_type: {cod: 1}}", "names no type (did you mean concurrency.per_type.code?)"),
        ("- a", "loopr.yml:1:1 must be a map of keys, not a list"),
        ("just words", 'loopr.yml:1:1 must be a map of keys, not "just words"'),
        ("a: 1\n---\nb: 1", 'loopr.yml:2:1 a second document is not read (remove the "---" line)'),
    ],
)
def test_each_wrong_value_is_named_with_its_remedy(tmp_path: Path, text: str, problem: str) -> None:
    """What is wrong is said where it stands, with what would be right."""
    assert any(problem in each for each in refused(tmp_path, text))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"git:\n\tbase: x\n", "loopr.yml:2:1 a tab cannot indent YAML (use spaces)"),
        (b"git: {base: caf\xe9}\n", "loopr.yml:1:16 is not UTF-8 (save the file as UTF-8)"),
        (b"git:\n  base: a\x00b\n", "loopr.yml:2:10 the character \\x00 cannot be in a text (remove it)"),
        (b"git: {base: x\n", "loopr.yml:1:6 is not YAML: the { that begins here is never closed"),
        (b"git:\n  base: a: b\n", "loopr.yml:2:10 is not YAML: a second `: ` on one line"),
        (b"git: &a {base: x}\n", "loopr.yml:1:6 git: the anchor &a is not read here (write the value out)"),
        (b"git: {base: *a}\n", "loopr.yml:1:13 git.base: the alias *a is not read here (write the value out)"),
        (b"git: {base: !!str x}\n", "the tag tag:yaml.org,2002:str is not read here (leave it out)"),
        (b"a: " + b"[" * 100 + b"]" * 100, "is nested more than 12 deep"),
        (b"[" * 100_000, "is nested more than 12 deep"),
        (b"#" * (1024 * 1024 + 1), "loopr.yml is larger than 1024 KiB"),
        (b"? [a]\n: 1\n", "the name of a key must be text"),
    ],
)
def test_a_text_that_is_no_settings_file_is_refused_with_its_place(tmp_path: Path, raw: bytes, problem: str) -> None:
    """Tabs, other encodings, odd characters, aliases, tags and deep nesting are refused in one line each."""
    assert any(problem in each for each in refused(tmp_path, raw))


def test_an_anchor_bomb_ends_at_once(tmp_path: Path) -> None:
    """Aliases that would unfold to billions of values are never unfolded."""
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert len(refused(tmp_path, "\n".join(lines))) > 30


def test_a_broken_layer_does_not_raise_false_alarms(tmp_path: Path) -> None:
    """While a file cannot be read, nothing is said of what it might have settled."""
    (tmp_path / "loopr.local.yml").write_text("types: {epic: {child: task}}\n")
    assert len(refused(tmp_path, "types: {task: {run: x}\n")) == 1


def test_a_folder_in_the_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    """What cannot be read is named, not taken for an empty file."""
    (tmp_path / "loopr.yml").mkdir()
    with pytest.raises(SettingsError, match=r"loopr\.yml cannot be read: Is a directory"):
        load(tmp_path, environ={}, home=None)


def test_a_misspelt_variable_is_a_problem(tmp_path: Path) -> None:
    """A variable that looks like a setting and is none is not passed over in silence."""
    problems = refused(tmp_path, environ={"LOOPR_SCHEDULER__MAX_LOD": "2", "LOOPR_SCHEDULER__MAX_LOAD": "abc"})
    assert problems == [
        'LOOPR_SCHEDULER__MAX_LOAD scheduler.max_load: must be a number above 0, not "abc"',
        "LOOPR_SCHEDULER__MAX_LOD scheduler.max_lod: is not a known key (did you mean scheduler.max_load?)",
    ]


def test_an_override_that_is_no_value_is_a_problem(tmp_path: Path) -> None:
    """A value that begins like a list must be one."""
    problems = refused(tmp_path, overrides=["types.code.run=[ -f x ] && make"])
    assert len(problems) == 1
    assert problems[0].startswith("--set types.code.run: is not YAML: ")


def test_terminal_escapes_are_never_repeated_raw(tmp_path: Path) -> None:
    """A value or a name with control characters is shown escaped."""
    problems = refused(tmp_path, '"a\\x1b[31m": 1\nqueue: {soft_limit: "\\x1b]0;x\\a"}\n')
    assert len(problems) == 2
    assert not any("\x1b" in each or "\a" in each for each in problems)


@pytest.mark.parametrize(
    "budget", ["budget: {usd: 0}", "projects: {api: {budget: {usd: 1}}}", "types: {code: {budget: {usd: 1}}}"]
)
def test_money_over_a_command_needs_a_price(tmp_path: Path, budget: str) -> None:
    """A money budget over a command whose lane has no price is refused, naming both keys; an agent needs none."""
    (tmp_path / "loopr.local.yml").write_text(budget)
    problems = refused(tmp_path, "types: {code: {run: x, lane: [a, b]}}\nlanes: {a: {usd_per_mtok: 1}}\n")
    assert len(problems) == 1
    assert problems[0].startswith("loopr.local.yml:1:")
    assert "usd: needs lanes.b.usd_per_mtok, because types.code.run reports no cost" in problems[0]
    priced = ["lanes.b.usd_per_mtok=0"]
    assert load(tmp_path, environ={}, home=None, overrides=priced).policy.types["code"].has_command
    agent = ["types.code.run=null", "types.code.agent=claude"]
    assert load(tmp_path, environ={}, home=None, overrides=agent).policy.types["code"].has_command


def test_money_of_one_type_asks_nothing_of_another(tmp_path: Path) -> None:
    """The budget of a type with an agent does not bind a type with a command."""
    (tmp_path / "loopr.yml").write_text("types: {code: {agent: claude, budget: {usd: 1}}, spec: {run: y}}\n")
    assert load(tmp_path, environ={}, home=None).policy.types["spec"].has_command


TEXTS = st.text(st.sampled_from("ab:{}[],#&*!|>'\"%@`-? \n\t\\x0\r\ufeff\x85\u2028é\x00"), max_size=40)


@given(TEXTS | st.text(max_size=40).map(lambda text: f"git: {{base: {text}}}") | st.binary(max_size=30))
@example(b"\xff")
@example('a: "\\U99999999"')
@example("%YAML x")
@example("%TAG ! x\n---\n!a")
def test_no_text_does_more_than_load_or_be_refused(text: str | bytes) -> None:
    """Whatever stands in a file, it is settings or a settings error, never another exception."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        load_texts(Texts({"loopr.yml": raw, "loopr.local.yml": b""}), environ={})
    except SettingsError as error:
        assert error.problems
        assert all(str(problem).isprintable() for problem in error.problems)
