"""The verbs for settings: shown, checked, explained, described, and one of them set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.ui.calls import everything, loopr

BROKEN = "concurrency:\n  max_loops: many\nschedular: {}\n"
SOUND = "# ours\nconcurrency:\n  max_loops: 7   # few\n"


def write(folder: Path, text: str, name: str = "loopr.yml") -> Path:
    """Write a settings file."""
    (folder / name).write_text(text)
    return folder


# --- show, explain ------------------------------------------------------------------------------------------------


def test_show_prints_settings_that_load_as_they_are(tmp_path: Path) -> None:
    """What `config show` prints is a settings file that leads to the same settings."""
    shown = loopr("-C", write(tmp_path, SOUND), "config", "show")
    assert shown.code == 0
    again = loopr("-C", write(tmp_path, shown.out), "config", "show")
    assert again.out == shown.out
    assert "max_loops: 7" in shown.out


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("concurrency.max_loops", "7", 7),
        ("git.base", "null", None),
        ("worktrees.include", ".worktreeinclude", ".worktreeinclude"),
        ("budget", "{tokens: null, usd: null, secs: null}", {"tokens": None, "usd": None, "secs": None}),
        ("notify", "[]", []),
    ],
)
def test_show_prints_one_key(tmp_path: Path, key: str, text: str, value: object) -> None:
    """One key is printed as it would stand in the file, and as the value itself in the document."""
    write(tmp_path, SOUND)
    assert loopr("-C", tmp_path, "config", "show", key).out == f"{text}\n"
    document = loopr("-C", tmp_path, "config", "show", key, "--json").document
    assert document["schema"] == 1
    assert (document["key"], document["value"]) == (key, value)


def test_the_whole_settings_are_a_document(tmp_path: Path) -> None:
    """Without a key the document holds every value."""
    document = loopr("-C", write(tmp_path, SOUND), "config", "show", "--json").document
    assert document["value"]["concurrency"]["max_loops"] == 7
    assert document["key"] is None


def test_explain_says_where_a_value_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is explained with its meaning, its default, the layer that won and the layers that lost."""
    write(tmp_path, SOUND)
    monkeypatch.setenv("LOOPR_CONCURRENCY__MAX_LOOPS", "9")
    text = loopr("-C", tmp_path, "config", "explain", "concurrency.max_loops").out
    assert "value     9\n" in text
    assert "from      LOOPR_CONCURRENCY__MAX_LOOPS\n" in text
    document = loopr("-C", tmp_path, "config", "explain", "concurrency.max_loops", "--json").document
    assert (document["value"], document["default"]) == (9, 50)
    assert document["shadowed"] == [{"from": "loopr.yml:3:3", "value": 7}]
    assert document["keys"] == []


def test_a_map_is_explained_with_its_keys(tmp_path: Path) -> None:
    """The explanation of a map names what it may hold."""
    document = loopr("-C", tmp_path, "config", "explain", "worktrees", "--json").document
    assert document["keys"] == ["dir", "pool", "max", "min_free_gb", "include", "setup", "cache"]
    assert document["from"] == "built in"


@pytest.mark.parametrize("verb", ["show", "explain"])
def test_an_unknown_key_is_a_mistake_of_usage(tmp_path: Path, verb: str) -> None:
    """A key that there is not is exit 2, with the nearest one that there is."""
    refused = loopr("-C", tmp_path, "config", verb, "concurrency.max_lops", "--json")
    assert refused.code == 2
    assert refused.document["error"]["hint"] == "did you mean concurrency.max_loops?"


@pytest.mark.parametrize("verb", ["show", "explain"])
@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("serve.port", "serve.port is not in this version (there is no page in the browser: leave it out)"),
        ("staleLockTimeout", "(nothing is to be set: a lock dies with the process that holds it)"),
        ("agents.maxConcurrent", "(did you mean concurrency.max_loops?)"),
        ("nonsense", "nonsense is not a known key (see config show)"),
    ],
)
def test_a_key_that_leads_nowhere_says_why(tmp_path: Path, verb: str, key: str, says: str) -> None:
    """Whoever asks for a key of another scheduler, or of a later version, hears what `config check` says of it."""
    error = loopr("-C", tmp_path, "config", verb, key, "--json").document["error"]
    assert says in f"{error['message']} ({error['hint']})"


def test_nothing_of_a_file_reaches_a_terminal_raw(tmp_path: Path) -> None:
    """Escapes in a value or a key are shown as characters that a terminal does not obey."""
    write(tmp_path, 'types: {code: {run: "\\e[31mred"}}\n')
    for arguments in (["show"], ["show", "types.code.run"], ["explain", "types.code.run"]):
        shown = loopr("-C", tmp_path, "config", *arguments)
        assert shown.code == 0
        assert "\x1b" not in shown.out
        assert "[31mred" in shown.out


# --- check, schema ------------------------------------------------------------------------------------------------


def test_sound_settings_are_one_line(tmp_path: Path) -> None:
    """Settings without a problem are exit 0 and one line; beside it stands how the loops of each type end."""
    done = loopr("-C", write(tmp_path, SOUND), "config", "check")
    ways = "plan: by declaration, spec: by a person, phase: by declaration, code: by a person"
    assert (done.code, done.out, done.err) == (0, "the settings are sound\n", f"{ways}\n")


def test_check_says_what_no_machine_could_run(tmp_path: Path) -> None:
    """A program that is not there is foretold, also where a shell would look for it, and so is how each type ends."""
    text = "types:\n  phase: {run: [no-such-phase], check: no-such-check --fast}\n"
    text += "  code: {run: 'test -e x || no-such-code'}\n"
    done = loopr("-C", write(tmp_path, text), "config", "check")
    assert done.code == 0
    assert "phase: hands over, code: leaf" in done.err
    assert "there is no program no-such-phase" in done.err and "there is no program no-such-check" in done.err
    assert "no-such-code" not in done.err
    assert loopr("-C", tmp_path, "config", "check", "--json").document["ways"]["code"] == "leaf"


def test_check_names_every_problem_at_once(tmp_path: Path) -> None:
    """Wrong settings are exit 78 and one line for each problem, with its place and its remedy."""
    done = loopr("-C", write(tmp_path, BROKEN), "config", "check")
    assert done.code == 78
    first, second = done.out.splitlines()
    assert first.startswith("loopr.yml:2:3 concurrency.max_loops: must be a whole number")
    assert second == "loopr.yml:3:1 schedular: is not a known key (did you mean scheduler?)"
    assert done.err == ""


def test_the_problems_are_a_document(tmp_path: Path) -> None:
    """With --json the problems are one document, with no key missing."""
    done = loopr("-C", write(tmp_path, BROKEN), "config", "check", "--json")
    assert done.code == 78
    assert done.document["ok"] is False
    assert done.document["problems"][1] == {
        "where": "loopr.yml:3:1",
        "message": "schedular: is not a known key",
        "hint": "did you mean scheduler?",
    }


def test_what_is_set_for_one_run_is_checked_too(tmp_path: Path) -> None:
    """--set counts as a layer of its own."""
    done = loopr("-C", tmp_path, "config", "check", "--set", "concurrency.max_loops=many")
    assert done.code == 78
    assert "--set concurrency.max_loops" in done.out


def test_a_byte_that_is_no_text_is_a_problem_with_a_place(tmp_path: Path) -> None:
    """A file that cannot be read as text is a problem like any other."""
    (tmp_path / "loopr.yml").write_bytes(b"version: 1\n# caf\xe9\n")
    done = loopr("-C", tmp_path, "config", "check")
    assert done.code == 78
    assert done.out.startswith("loopr.yml:2:")


def test_the_schema_judges_settings_whatever_is_wrong_in_them(tmp_path: Path) -> None:
    """The schema is printed beside broken settings, is a schema itself, and accepts and refuses what loopr does."""
    done = loopr("-C", write(tmp_path, BROKEN), "config", "schema")
    schema = json.loads(done.out)
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(schema)
    assert judge.is_valid({"concurrency": {"max_loops": 7}})
    assert not judge.is_valid({"concurrency": {"max_loops": "many"}})
    document = loopr("-C", tmp_path, "config", "schema", "--json").document
    assert (document["schema"], document["json_schema"]) == (1, schema)


# --- set ----------------------------------------------------------------------------------------------------------


def test_set_says_what_was_and_what_is(tmp_path: Path) -> None:
    """A set key is told with its old and new value, and the rest of the file stays as it was."""
    write(tmp_path, SOUND)
    done = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8")
    assert (done.code, done.out) == (0, "concurrency.max_loops: 7 → 8 (loopr.yml)\n")
    assert (tmp_path / "loopr.yml").read_text() == SOUND.replace("7   #", "8   #")


def test_set_begins_a_file_where_there_is_none(tmp_path: Path) -> None:
    """Without a file the default is the old value, and the file begins with the key."""
    done = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8")
    assert done.out == "concurrency.max_loops: 50 → 8 (loopr.yml)\n"
    assert loopr("-C", tmp_path, "config", "show", "concurrency.max_loops").out == "8\n"


def test_a_negative_number_is_a_value(tmp_path: Path) -> None:
    """-1 is taken as the value, not as an option."""
    done = loopr("-C", tmp_path, "set", "concurrency.max_loops", "-1")
    assert done.out == "concurrency.max_loops: 50 → -1 (loopr.yml)\n"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("concurrency.max_loops", "many", "must be a whole number"),
        ("concurrency.max_lops", "8", "did you mean concurrency.max_loops?"),
        ("projects.api.weight", "0", "must be a number above 0"),
        ("queue.hard_limit", "1", "must be at least queue.soft_limit (5)"),
        ("notify", "[", ""),
    ],
)
def test_what_would_be_wrong_is_refused(tmp_path: Path, key: str, value: str, words: str) -> None:
    """A value that is wrong, alone or beside the others, is exit 78 and changes no byte."""
    write(tmp_path, "queue: {soft_limit: 5}\n")
    before = everything(tmp_path)
    for extra in ([], ["-n"]):
        refused = loopr("-C", tmp_path, "set", key, value, *extra)
        assert refused.code == 78
        assert words in refused.err
        assert everything(tmp_path) == before


def test_a_broken_file_is_not_edited(tmp_path: Path) -> None:
    """While something else is wrong in the file it is kept, and all that is wrong is told."""
    write(tmp_path, BROKEN)
    refused = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8", "--json")
    assert refused.code == 78
    assert "schedular" in refused.document["error"]["message"]
    assert (tmp_path / "loopr.yml").read_text() == BROKEN


def test_setting_the_wrong_key_right_mends_the_file(tmp_path: Path) -> None:
    """The one key that is wrong can be set right."""
    write(tmp_path, "concurrency:\n  max_loops: many\n")
    assert loopr("-C", tmp_path, "set", "concurrency.max_loops", "8").code == 0
    assert loopr("-C", tmp_path, "config", "check").code == 0


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """With -n the change is told, and the file stays as it was."""
    write(tmp_path, SOUND)
    before = everything(tmp_path)
    done = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8", "-n")
    assert done.out == "concurrency.max_loops: 7 → 8 (loopr.yml, not written)\n"
    assert everything(tmp_path) == before


def test_a_change_is_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --json the change is one document, which also says that a later layer wins."""
    write(tmp_path, SOUND)
    monkeypatch.setenv("LOOPR_CONCURRENCY__MAX_LOOPS", "9")
    document = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8", "--json").document
    assert document["generated_at"].endswith("Z")
    assert {key: document[key] for key in ("schema", "key", "old", "new", "file", "dry_run", "overruled_by")} == {
        "schema": 1,
        "key": "concurrency.max_loops",
        "old": 7,
        "new": 8,
        "file": "loopr.yml",
        "dry_run": False,
        "overruled_by": "LOOPR_CONCURRENCY__MAX_LOOPS",
    }


def test_a_later_layer_that_wins_is_named(tmp_path: Path) -> None:
    """A key that another file overrules is set, and the person is told why nothing changes."""
    write(tmp_path, "concurrency: {max_loops: 9}\n", "loopr.local.yml")
    done = loopr("-C", tmp_path, "set", "concurrency.max_loops", "8")
    assert done.code == 0
    assert "loopr.local.yml:1:15 says otherwise, and wins" in done.err


def test_a_key_that_is_refused_has_no_line_yet(tmp_path: Path) -> None:
    """What is wrong with a key that the file does not have is told of the file; of one that it has, with its line."""
    write(tmp_path, "types:\n  code: {run: make}\nbudget: {tokens: 5}\n")
    refused = loopr("set", "-C", tmp_path, "budget.usd", "0.5")
    assert refused.code == 78
    assert refused.err.startswith("loopr: loopr.yml budget.usd: needs lanes.default.usd_per_mtok"), refused.err
    write(tmp_path, "types:\n  code: {run: make}\nbudget: {usd: 5}\n")
    assert "loopr.yml:3:10 budget.usd: needs" in loopr("set", "-C", tmp_path, "budget.usd", "0.5").err
    write(tmp_path, "types:\n  code: {agent: codex}\n")
    hint = "set lanes.codex.usd_per_mtok, or name an agent that reports it"
    assert hint in loopr("set", "-C", tmp_path, "budget.usd", "0.5").err
