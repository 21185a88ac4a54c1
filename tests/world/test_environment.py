"""A command is given what is its own and nothing that could lead it astray, in arguments that stay apart."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.errors import SettingsError
from loopr.world.environment import (
    GIT_LOCAL,
    PORTS_IN_BLOCK,
    Changes,
    Setting,
    arguments,
    free_slot,
    port_base,
    reads_prompt_file,
    traceparent,
    variables,
)

TREE = Path("/ws/worktrees/oauth.tokens.g1")
SETTING = Setting(
    workspace=Path("/ws"),
    plan="oauth",
    loop="oauth/tokens",
    type="spec",
    parent="oauth",
    depth=1,
    project="default",
    iteration=2,
    max_iterations=30,
    attempt=7,
    lease="oauth/tokens#7",
    worktree=TREE,
    branch="loopr/oauth.tokens.g1",
    base_commit="2fa7208",
    plan_branch="loopr/oauth",
    input=TREE / ".loopr/input.md",
    output=TREE / ".loopr/spec.md",
    prompt_file=TREE / ".loopr/prompt.md",
    feedback_file=TREE / ".loopr/feedback.md",
    context_file=TREE / ".loopr/context.md",
    result_file=TREE / ".loopr/result.json",
    log_dir=Path("/ws/.git/loopr/runs/oauth.tokens.g1/7"),
    deadline_ms=1_800_000_000_999,
    tokens_left=500,
    port_base=10_240,
)
CEILING = Path("/ws/worktrees")
NAMES = {
    *(
        "LOOPR",
        "LOOPR_WORKSPACE",
        "LOOPR_PLAN",
        "LOOPR_LOOP",
        "LOOPR_TYPE",
    ),
    *(
        "LOOPR_PARENT",
        "LOOPR_DEPTH",
        "LOOPR_PROJECT",
        "LOOPR_ITERATION",
        "LOOPR_MAX_ITERATIONS",
    ),
    *(
        "LOOPR_ATTEMPT",
        "LOOPR_LEASE",
        "LOOPR_WORKTREE",
        "LOOPR_BRANCH",
        "LOOPR_BASE_COMMIT",
    ),
    *(
        "LOOPR_PLAN_BRANCH",
        "LOOPR_INPUT",
        "LOOPR_OUTPUT",
        "LOOPR_PROMPT_FILE",
        "LOOPR_FEEDBACK_FILE",
    ),
    *(
        "LOOPR_CONTEXT_FILE",
        "LOOPR_RESULT_FILE",
        "LOOPR_LOG_DIR",
        "LOOPR_DEADLINE",
        "LOOPR_TOKENS_LEFT",
    ),
    *(
        "LOOPR_PORT_BASE",
        "TRACEPARENT",
        "GIT_CEILING_DIRECTORIES",
    ),
}


def given_to(inherited: dict[str, str] | None = None, *changes: Changes, setting: Setting = SETTING) -> dict[str, str]:
    """Return the environment of a command."""
    return variables(setting, inherited or {}, ceiling=CEILING, changes=changes)


# --- variables ------------------------------------------------------------------------------------------------------


def test_every_variable_is_there() -> None:
    """A command is given each variable that is promised, and no other from loopr."""
    found = given_to()
    assert found.keys() == NAMES
    assert found["LOOPR"] == "1"
    assert found["LOOPR_LEASE"] == "oauth/tokens#7"
    assert found["LOOPR_OUTPUT"] == str(TREE / ".loopr/spec.md")
    assert found["LOOPR_DEADLINE"] == "1800000000"
    assert found["LOOPR_TOKENS_LEFT"] == "500"


def test_what_is_absent_is_empty() -> None:
    """A plan has no parent, a type no deadline, a budget no end: the variables are there, and empty."""
    found = given_to(setting=replace(SETTING, parent=None, deadline_ms=None, tokens_left=None))
    assert found.keys() == NAMES
    assert found["LOOPR_PARENT"] == found["LOOPR_DEADLINE"] == found["LOOPR_TOKENS_LEFT"] == ""
    assert given_to(setting=replace(SETTING, tokens_left=0))["LOOPR_TOKENS_LEFT"] == "0"


def test_the_rest_is_inherited() -> None:
    """What has nothing to do with loopr, git's repository or an outer agent goes through as it is."""
    inherited = {"PATH": "/bin", "GIT_AUTHOR_NAME": "Ada", "GIT_SSH_COMMAND": "ssh", "ODD": "a\nb"}
    assert inherited.items() <= given_to(inherited).items()


def test_what_would_lead_astray_is_gone() -> None:
    """Nothing of an outer repository, an outer loop or an outer agent reaches a command."""
    outer = dict.fromkeys(GIT_LOCAL, "outer") | {"CLAUDECODE": "1", "LOOPR_ALLOW": "x", "LOOPR_LOOP": "outer"}
    assert given_to(outer) == given_to()


def test_the_list_of_git_is_whole() -> None:
    """Every variable that this git calls local to a repository is taken away."""
    done = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= GIT_LOCAL


def test_settings_change_the_environment_in_order() -> None:
    """A later change wins over an earlier one, in setting and in taking away."""
    first = Changes({"A": "1", "B": "1", "C": "1"}, ("OUT",))
    found = given_to({"OUT": "x", "B": "0"}, first, Changes({"A": "2"}, ["B", "GONE"]))
    assert (found["A"], found["C"]) == ("2", "1")
    assert "OUT" not in found
    assert "B" not in found


def test_no_setting_can_pretend_to_be_loopr() -> None:
    """Loopr's own variables and its ceiling stay, whatever the settings say."""
    found = given_to({}, Changes({"LOOPR_LOOP": "x", "LOOPR_EXTRA": "x", "LOOPR": "0"}, ("LOOPR_PLAN", "LOOPR")))
    assert found == given_to()


def test_git_stops_at_the_worktrees() -> None:
    """Git does not look above the folder of worktrees; ceilings that were there stay behind ours."""
    assert given_to()["GIT_CEILING_DIRECTORIES"] == "/ws/worktrees"
    assert given_to({"GIT_CEILING_DIRECTORIES": "/x"})["GIT_CEILING_DIRECTORIES"] == "/ws/worktrees:/x"
    with pytest.raises(SettingsError, match="worktrees.dir"):
        variables(SETTING, {}, ceiling=Path("/odd:place"))


def test_git_really_stops_there(tmp_path: Path) -> None:
    """A worktree that lost its `.git` does not turn git against the checkout around it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    tree = tmp_path / "worktrees" / "a.g1"
    tree.mkdir(parents=True)
    found = variables(SETTING, {"PATH": "/usr/bin:/bin:/usr/local/bin"}, ceiling=tree.parent)
    asked = ["git", "rev-parse", "--show-toplevel"]
    assert subprocess.run(asked, cwd=tree, capture_output=True, check=False).returncode == 0
    assert subprocess.run(asked, cwd=tree, env=found, capture_output=True, check=False).returncode == 128


def test_a_trace_goes_on() -> None:
    """An outer trace is continued with a span for each attempt; without one, a plan is a trace."""
    outer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    one, two = (traceparent(Path("/ws"), "oauth", f"oauth#{n}", outer) for n in (1, 2))
    assert one.startswith("00-4bf92f3577b34da6a3ce929d0e0e4736-") and one.endswith("-00")
    assert one != two and outer not in (one, two)
    plain = traceparent(Path("/ws"), "oauth", "oauth#1", "nonsense")
    assert plain == traceparent(Path("/ws"), "oauth", "oauth#1")
    assert plain[:35] == traceparent(Path("/ws"), "oauth", "oauth#2")[:35]
    assert plain[:35] != traceparent(Path("/ws"), "other", "oauth#1")[:35]


# --- arguments ------------------------------------------------------------------------------------------------------

WORDS = st.lists(
    st.text(max_size=12) | st.sampled_from(["{loop}", "x={type}", "{", "}", "{}", "{nothing}"]), min_size=1
)


def test_placeholders_are_filled_in_within_their_argument() -> None:
    """A value stays one argument, whatever is in it, and is not looked at again."""
    setting = replace(SETTING, loop="{type} $(rm) ; 'x'")
    command = ("tool", "--file={prompt_file}", "{loop}", "{unknown}", "awk {print}", "{type}{depth}")
    expected = ("tool", f"--file={SETTING.prompt_file}", setting.loop, "{unknown}", "awk {print}", "spec1")
    assert arguments(command, setting) == expected


@given(WORDS)
def test_no_argument_is_split_or_lost(words: list[str]) -> None:
    """There are as many arguments as were written."""
    assert len(arguments(tuple(words), SETTING)) == len(words)


def test_a_text_goes_to_the_shell_as_it_is() -> None:
    """A command that is a text is the shell's, with values in variables only."""
    text = 'echo "$LOOPR_LOOP" ${prompt_file} {a,b} | cat'
    assert arguments(text, SETTING) == ("sh", "-c", text)
    with pytest.raises(SettingsError, match=r'write "\$LOOPR_PROMPT_FILE" there'):
        arguments("cat {prompt_file}", SETTING)


def test_a_wrapper_goes_around_the_command() -> None:
    """What is put around a command keeps the command's arguments apart, and has placeholders too."""
    wrap = ("box", "--dir", "{worktree}", "{command}", "--end")
    assert arguments(("do", "{command}"), SETTING, wrap) == ("box", "--dir", str(TREE), "do", "{command}", "--end")
    assert arguments("do it", SETTING, wrap) == ("box", "--dir", str(TREE), "sh", "-c", "do it", "--end")


def test_every_placeholder_is_a_variable() -> None:
    """What a command finds in a variable it may also take as an argument, under the same name."""
    found = given_to()
    for name, value in SETTING.values().items():
        assert arguments((f"{{{name}}}",), SETTING) == (value,)
        assert found[f"LOOPR_{name.upper()}"] == value


def test_who_reads_the_prompt_from_a_file() -> None:
    """Only a list that names the prompt's file has nothing on its standard input."""
    assert reads_prompt_file(("aider", "--message-file={prompt_file}"))
    assert not reads_prompt_file(("agent", "-p"))
    assert not reads_prompt_file('agent < "$LOOPR_PROMPT_FILE"')


# --- ports ----------------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 50)))
def test_a_slot_is_the_lowest_that_is_free(taken: set[int]) -> None:
    """A new attempt gets the lowest number that no other has."""
    slot = free_slot(taken)
    assert slot not in taken
    assert set(range(slot)) <= taken


def test_ports_do_not_meet() -> None:
    """All slots of a workspace have ports of their own, of which none is one that systems hand out."""
    bases = sorted(port_base(slot, Path("/ws")) for slot in range(2_252))
    assert len(set(bases)) == len(bases)
    assert all(later - base >= PORTS_IN_BLOCK for base, later in zip(bases, bases[1:], strict=False))
    assert bases[0] >= 10_240
    assert bases[-1] + PORTS_IN_BLOCK <= 32_768
    with pytest.raises(SettingsError, match="max_loops"):
        port_base(2_252, Path("/ws"))


def test_two_workspaces_begin_at_different_ports() -> None:
    """Two workspaces on one machine do not both begin with the same ports, and each keeps its own."""
    assert port_base(0, Path("/one")) == port_base(0, Path("/one"))
    assert len({port_base(0, Path(f"/ws{n}")) for n in range(50)}) > 40
