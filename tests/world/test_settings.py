"""Settings that are right: defaults, layers, units, and what the world and the decisions are given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.policy import Budget, LanePolicy, Policy, decode_policy, encode_policy
from loopr.world.settings import Settings, load
from loopr.world.settings.layers import merge
from loopr.world.settings.reading import read_value
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.writing import flow

ROOT = Path(__file__).resolve().parents[2]

BLOCKS = """
scheduler:
  poll_interval_secs: 1
  starvation_secs: 3600
  max_load: null
  priority: {plan: 40, spec: 60, phase: 80, code: 100, age_boost_per_minute: 1, age_boost_max: 50,
             depth_boost_per_level: 10, retry_penalty_per_iteration: 5, retry_penalty_max: 30}
concurrency:
  max_loops: 50
  max_api_calls: 10
  per_type: {plan: 2, spec: 5, phase: 20, code: 50}
"""


def loaded(
    folder: Path, text: str | bytes = "", environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> Settings:
    """Load the settings of a workspace whose loopr.yml has this text."""
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / "loopr.yml").write_bytes(raw)
    return load(folder, environ=environ or {}, home=None, overrides=overrides)


def built_in() -> Settings:
    """Load settings of which no layer says anything."""
    return load(None, environ={}, home=None)


def test_without_any_layer_the_policy_is_the_one_core_has_by_itself() -> None:
    """The defaults of the settings and those of the core are the same numbers."""
    assert built_in().policy == Policy()


def test_the_annotated_file_of_this_repository_says_the_defaults() -> None:
    """The loopr.yml that is shipped loads without a problem and changes nothing."""
    settings = load(ROOT, environ={}, home=None)
    assert settings.values == built_in().values
    assert settings.policy == Policy()
    assert settings.origin("retry.jitter").startswith("loopr.yml:")


def test_the_annotated_file_names_every_key_that_has_a_default() -> None:
    """Each key of the schema is in the annotated file, set or as a comment, so that nobody has to guess."""
    text = (ROOT / "loopr.yml").read_text()
    names = {name for key in _maps(SCHEMA) for name in key.keys}
    assert sorted(name for name in names if f"{name}:" not in text) == []


def _maps(key: Any) -> list[Any]:
    """List a map of the schema and all maps in it."""
    inner = [*key.keys.values(), *([key.rest] if key.rest else [])]
    return [key, *(each for child in inner for each in _maps(child))]


def test_the_published_blocks_load_as_they_stand(tmp_path: Path) -> None:
    """The scheduler and concurrency blocks of the format are valid and are the defaults."""
    assert loaded(tmp_path, BLOCKS).policy == Policy()


def test_a_process_that_reads_no_file_never_imports_yaml() -> None:
    """Without a file the settings cost no YAML library, and no other heavy one either."""
    program = (
        "import sys; from loopr.world.settings import load;"
        "load(None, environ={'LOOPR_CONCURRENCY__MAX_LOOPS': '8'}, home=None, overrides=['git.base=main']);"
        "print([name for name in ('ruamel', 'difflib', 'json', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "text",
    [b"", b"# nothing\n", b"\xef\xbb\xbfversion: 1\r\nscheduler:\r\n", b"---\nversion: 1\n...\n", b"types:\n  code:\n"],
    ids=["empty", "comment", "mark and CRLF", "document", "names without values"],
)
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: bytes) -> None:
    """An empty file, comments, and maps with nothing in them are fine."""
    assert loaded(tmp_path, text).values == built_in().values


def test_later_layers_win_key_by_key(tmp_path: Path) -> None:
    """Own file, loopr.yml, loopr.local.yml, variables and --set come in this order, and origin names the winner."""
    home = tmp_path / "home"
    own = home / ".config" / "loopr" / "loopr.yml"
    own.parent.mkdir(parents=True)
    names = ["max_attempts", "max_launch_failures", "max_conflicts", "no_progress", "factor"]
    own.write_text("retry: {" + ", ".join(f"{name}: 11" for name in names) + "}\n")
    (tmp_path / "loopr.yml").write_text("retry: {" + ", ".join(f"{name}: 12" for name in names[1:]) + "}\n")
    (tmp_path / "loopr.local.yml").write_text("retry: {" + ", ".join(f"{name}: 13" for name in names[2:]) + "}\n")
    environ = {"LOOPR_RETRY__NO_PROGRESS": "14", "LOOPR_RETRY__FACTOR": "14"}
    settings = load(tmp_path, environ=environ, home=home, overrides=["retry.factor=15"])
    assert [settings.value(f"retry.{name}") for name in names] == [11, 12, 13, 14, 15]
    origins = [settings.origin(f"retry.{name}") for name in [*names, "jitter"]]
    assert origins[0] == "~/.config/loopr/loopr.yml:1:9"
    assert [origin.partition(":")[0] for origin in origins[1:3]] == ["loopr.yml", "loopr.local.yml"]
    assert origins[3:] == ["LOOPR_RETRY__NO_PROGRESS", "--set", "built in"]
    assert [node.value for node in settings.shadowed("retry.factor")] == [14, 13, 12, 11]


def test_the_folder_for_configuration_may_be_elsewhere(tmp_path: Path) -> None:
    """XDG_CONFIG_HOME is where the user's own file is looked for, if it is an absolute path."""
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    for folder, limit in ((elsewhere, 7), (home / ".config", 8)):
        (folder / "loopr").mkdir(parents=True)
        (folder / "loopr" / "loopr.yml").write_text(f"concurrency: {{max_loops: {limit}}}\n")

    def limit_with(environ: dict[str, str]) -> int:
        return load(None, environ=environ, home=home).policy.max_loops

    assert limit_with({"XDG_CONFIG_HOME": str(elsewhere)}) == 7
    assert limit_with({"XDG_CONFIG_HOME": "relative"}) == 8
    assert limit_with({}) == 8


def test_maps_merge_and_lists_replace(tmp_path: Path) -> None:
    """A later list is taken as it is; what a later map leaves out stays."""
    (tmp_path / "loopr.local.yml").write_text("types: {code: {protect: [c], check: make}}\n")
    settings = loaded(tmp_path, "types: {code: {protect: [a, b], run: work}}\n")
    code = settings.types["code"]
    assert (code.protect, code.check, code.run) == (("c",), "make", "work")


def test_null_in_a_later_layer_takes_back_what_an_earlier_one_set(tmp_path: Path) -> None:
    """A key that allows null can be unset, and so can a whole budget."""
    (tmp_path / "loopr.local.yml").write_text("budget: null\ntypes: {code: {run: null}}\nscheduler:\n")
    settings = loaded(tmp_path, "budget: {tokens: 5}\ntypes: {code: {run: work}}\nscheduler: {max_load: 4}\n")
    assert settings.policy.budget == Budget()
    assert settings.origin("budget.tokens") == "loopr.local.yml:1:1"
    assert not settings.policy.types["code"].has_command
    assert settings.policy.max_load == 4, "a map with nothing in it says nothing"


def test_variables_find_keys_whatever_their_case(tmp_path: Path) -> None:
    """A variable reaches fixed keys, names that a file gave, names with hyphens, and values in brackets."""
    text = "types: {big-plan: {child: my-task}, my-task: {}}\nlanes: {Claude_Main: {}}\n"
    environ = {
        "LOOPR_TYPES__MY_TASK__RUN": "make all: # not a comment",
        "LOOPR_LANES__CLAUDE_MAIN__MAX_CONCURRENT": "3",
        "LOOPR_TYPES__MY_TASK__ENV__SET__Path_Extra": "/opt",
        "LOOPR_PROJECTS__API__WEIGHT": "2.5",
        "LOOPR_TYPES__MY_TASK__CHECK": "[make, check, 5]",
    }
    settings = loaded(tmp_path, text, environ)
    task = settings.types["my-task"]
    assert (task.run, task.check) == ("make all: # not a comment", ("make", "check", "5"))
    assert task.env.set == {"Path_Extra": "/opt"}
    assert settings.policy.lanes["Claude_Main"] == LanePolicy(max_concurrent=3)
    assert settings.policy.projects["api"].weight == Fraction(5, 2)


def test_what_loopr_gives_to_commands_is_no_setting() -> None:
    """The variables of a running loop do not disturb a loopr that is called inside it."""
    environ = {"LOOPR": "1", "LOOPR_LOOP": "a/b", "LOOPR_MAX_ITERATIONS": "5", "LOOPR_PORT_BASE": "x", "PATH": "a__b"}
    assert load(None, environ=environ, home=None).values == built_in().values


def test_overrides_take_scalars_and_flow(tmp_path: Path) -> None:
    """--set reads numbers, null, lists, maps, quoted text and text as it stands."""
    given_ = [
        "concurrency.max_loops=-1",
        "types.code={check: [make, test], parallel: false}",
        'git.base="1.0"',
        "types.spec.run=a=b: c",
        "concurrency.per_type.code=null",
    ]
    settings = load(None, environ={}, home=None, overrides=given_)
    code = settings.policy.types["code"]
    assert (settings.policy.unbounded, code.parallel, code.judged) == (True, False, True)
    assert (settings.types["code"].check, settings.git.base) == (("make", "test"), "1.0")
    assert settings.types["spec"].run == "a=b: c"
    assert "code" not in settings.policy.per_type


@pytest.mark.parametrize(("ceiling", "bound"), [("0", {"code": 7}), ("-1", {"code": 7}), ("4", {"code": 7, "plan": 2})])
def test_without_a_ceiling_only_written_limits_of_types_bind(ceiling: str, bound: dict[str, int]) -> None:
    """Direct dispatch: the built-in limits of types are for a workspace that has a ceiling."""
    given_ = [f"concurrency.max_loops={ceiling}", "concurrency.per_type.code=7"]
    limits = load(None, environ={}, home=None, overrides=given_).policy.per_type
    assert {name: limit for name, limit in limits.items() if name in ("plan", "code")} == bound


def test_durations_money_and_fractions_are_exact(tmp_path: Path) -> None:
    """Whole milliseconds half up, whole micro-dollars, and weights as they were written."""
    settings = loaded(
        tmp_path,
        "retry: {base_secs: 0.0005, factor: 1.1, jitter: 0.3, cap_secs: 2.5}\n"
        "budget: {usd: 0.1}\n"
        "types: {code: {run: x, timeouts: {idle_secs: 0.5}}}\n"
        "lanes: {default: {usd_per_mtok: 3.0000005}}\n"
        "projects: {default: {weight: 0.1}}\n"
        "fair_share: {window_hours: 0.5, tokens_per_second: 0.7}\n"
        "worktrees: {min_free_gb: 0.5}\nlogs: {max_mb_per_attempt: 0.5}\ncommit: {max_file_mb: 1}\n",
    )
    policy = settings.policy
    assert (policy.retry.base_ms, policy.retry.cap_ms) == (1, 2_500)
    assert (policy.retry.factor, policy.retry.jitter) == (Fraction(11, 10), Fraction(3, 10))
    assert policy.budget.micro_usd == 100_000
    assert policy.lane("default").micro_usd_per_mtok == 3_000_001
    assert policy.project("default").weight == Fraction(1, 10)
    assert (policy.window_ms, policy.tokens_per_second) == (1_800_000, Fraction(7, 10))
    assert policy.min_free_bytes == 512 * 1024**2
    assert (settings.logs.max_bytes_per_attempt, settings.max_file_bytes) == (512 * 1024, 1024**2)
    assert (settings.types["code"].timeouts.idle_ms, settings.types["code"].timeouts.wall_ms) == (500, 14_400_000)


def test_the_world_gets_every_value_of_a_type(tmp_path: Path) -> None:
    """Whatever a type may say arrives in its settings or its policy under its own name."""
    settings = loaded(
        tmp_path,
        """
types:
  code:
    agent: claude
    check: make test
    review: {run: [review, --strict, 2], passes: 2}
    max_iterations: 7
    approve: true
    parallel: false
    worktree: false
    lane: [main, spare]
    env: {set: {DEBUG: 1, NAME: x, GONE: null}, unset: [SECRET, AWS_*], only: [CI]}
    wrap: [bwrap, --, "{command}"]
    escalate: {refused: {after: 3, agent: opus}}
    fallback: [opencode, opus]
    budget: {tokens: 9, usd: 1, secs: 60}
    protect: [tests/**]
    protect_added: keep
    trust_outline: true
agents: {opus: {extends: claude, model: opus}}
""",
    )
    code, policy = settings.types["code"], settings.policy.types["code"]
    assert (code.agent, code.run, code.check, code.review) == ("claude", None, "make test", ("review", "--strict", "2"))
    assert (code.review_passes, code.approve, code.parallel, code.worktree) == (2, True, False, False)
    assert code.env == ({"DEBUG": "1", "NAME": "x"}, ("SECRET", "AWS_*"), ("CI",))
    assert (code.wrap, policy.escalate) == (("bwrap", "--", "{command}"), {"refused": (3, "opus")})
    assert policy.fallback == ("opencode", "opus")
    assert (code.protect, code.protect_added) == (("tests/**",), "keep")
    assert (policy.has_command, policy.judged, policy.reviewed, policy.approve) == (True, True, True, True)
    assert (policy.lanes, policy.max_iterations, policy.trust_outline) == (("main", "spare"), 7, True)
    assert policy.budget == Budget(9, 1_000_000, 60) == code.budget


def test_iterations_of_a_type_win_over_the_shared_ones(tmp_path: Path) -> None:
    """A type's own number, else the retry block's."""
    settings = loaded(tmp_path, "types: {code: {max_iterations: 7}}\nretry: {max_iterations: {code: 9, spec: 8}}\n")
    iterations = {name: each.max_iterations for name, each in settings.policy.types.items()}
    assert iterations == {"plan": 50, "spec": 8, "phase": 20, "code": 7}


def test_projects_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """Ties between projects go by the file; the default project is there even if nobody names it, as the last."""
    assert list(loaded(tmp_path, "projects: {web: {}, api: {}}\n").policy.projects) == ["web", "api", "default"]
    assert list(loaded(tmp_path, "projects: {web: {}, default: {}, api: {}}\n").policy.projects) == [
        "web",
        "default",
        "api",
    ]


def test_the_policy_survives_the_journal(tmp_path: Path) -> None:
    """What the settings build can be journalled and read back as the same policy."""
    text = (
        "projects: {api: {weight: 0.3, budget: {usd: 2}}}\nscheduler: {max_load: 1.5}\nlanes: {a: {usd_per_mtok: 1}}\n"
    )
    policy = loaded(tmp_path, text).policy
    assert decode_policy(encode_policy(policy)) == policy


NAMES = st.sampled_from(["web", "api", "default", "x"])
PROJECTS = st.dictionaries(
    NAMES, st.dictionaries(st.sampled_from(["weight", "max_concurrent"]), st.integers(1, 9), max_size=2), max_size=3
)
LAYER = st.fixed_dictionaries(
    {},
    optional={
        "notify": st.lists(st.sampled_from(["a://b", "c://d"]), max_size=3),
        "concurrency": st.dictionaries(st.sampled_from(["max_loops", "max_api_calls"]), st.integers(1, 9), max_size=2),
        "projects": PROJECTS,
    },
)


@given(st.lists(LAYER, max_size=4))
def test_merging_takes_each_key_from_the_last_layer_that_says_it(layers: list[dict[str, Any]]) -> None:
    """Whatever the layers say, a leaf has the value of the last one that names it, and its origin names that layer."""
    roots = [read_value(flow(layer), str(index))[0] for index, layer in enumerate(layers)]
    story: dict[str, Any] = {}
    values = merge(SCHEMA, [root for root in roots if root], {}, "", story)
    expected: dict[str, tuple[Any, str]] = {}
    for index, layer in enumerate(layers):
        expected |= {path: (value, str(index)) for path, value in _leaves(layer, "")}
    for path, (value, origin) in expected.items():
        found: Any = values
        for part in path.split("."):
            found = found[part]
        assert (found, story[path][-1].where) == (value, origin)
    named = list(dict.fromkeys(name for layer in layers for name in layer.get("projects", {})))
    assert list(values["projects"]) == [*named, *(["default"] if "default" not in named else [])]


def _leaves(layer: Mapping[str, Any], path: str) -> list[tuple[str, Any]]:
    """List the leaves of nested maps; a list is a leaf."""
    leaves: list[tuple[str, Any]] = []
    for name, value in layer.items():
        inner = f"{path}.{name}" if path else name
        leaves += _leaves(value, inner) if isinstance(value, Mapping) else [(inner, _frozen(value))]
    return leaves


def _frozen(value: Any) -> Any:
    """Turn lists into the tuples that settings hold."""
    return tuple(value) if isinstance(value, list) else value
