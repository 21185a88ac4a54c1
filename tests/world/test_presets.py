"""Agent presets: the shipped ones, those of a workspace, and what loopr.yml makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from loopr.errors import SettingsError
from loopr.world.agents import READERS
from loopr.world.agents.words import FAILURES
from loopr.world.environment import reads_prompt_file
from loopr.world.settings import Settings, load, show
from loopr.world.settings.preset_keys import READERS as NAMED_READERS
from loopr.world.settings.preset_keys import SIGNS
from loopr.world.settings.presets import SHIPPED, Shelf, shipped_names
from loopr.world.settings.showing import preset_schema
from loopr.world.settings.sources import read_texts


def loaded(folder: Path, text: str = "", overrides: Sequence[str] = (), **files: str) -> Settings:
    """Load the settings of a workspace with this loopr.yml and these files in agents/."""
    (folder / "loopr.yml").write_text(text)
    (folder / "agents").mkdir(exist_ok=True)
    for name, preset in files.items():
        (folder / "agents" / f"{name}.yml").write_text(preset)
    return load(folder, environ={}, home=None, overrides=overrides)


def refused(folder: Path, text: str = "", **files: str) -> str:
    """Return why settings are refused."""
    with pytest.raises(SettingsError) as caught:
        loaded(folder, text, **files)
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(shipped_names()))
def test_a_shipped_preset_is_sound_and_told_whole(name: str) -> None:
    """Each shipped preset can be used as it is, says how it is installed, and what to do when its account is no use."""
    preset = Shelf().preset(name)
    assert preset.command[0] == preset.reader == name
    assert preset.lanes == (name,)  # decisions rely on it: they see only the lanes of presets that say another
    assert preset.about
    assert preset.install
    assert preset.version
    assert sorted(preset.mend) == ["authentication", "billing", "model"]
    assert preset.own_tmpdir
    assert "{options}" not in preset.command
    assert reads_prompt_file(preset.command) is (name == "aider")


def test_the_shipped_presets_are_the_files_that_are_shipped() -> None:
    """The names that are known without a look at the disk are those of the files."""
    assert {each.stem for each in SHIPPED.glob("*.yml")} == shipped_names()


@pytest.mark.parametrize("name", sorted(shipped_names()))
def test_the_published_schema_takes_what_is_shipped(name: str) -> None:
    """The JSON schema of a preset is one, and each shipped file fits it."""
    Draft202012Validator.check_schema(preset_schema())
    said = YAML(typ="safe", pure=True).load(SHIPPED / f"{name}.yml")
    assert list(Draft202012Validator(preset_schema()).iter_errors(said)) == []
    assert list(Draft202012Validator(preset_schema()).iter_errors({**said, "reader": "nobody"})) != []


def test_readers_and_signs_are_the_ones_that_there_are() -> None:
    """What a preset may name is what is read."""
    assert set(NAMED_READERS) == set(READERS)
    assert list(FAILURES)[: len(SIGNS)] == list(SIGNS)


def test_the_defaults_keep_clients_from_waiting_by_themselves() -> None:
    """Claude Code retries once, so that it tells the delay; a provider of one's own makes Codex retry once too."""
    shelf = Shelf()
    assert shelf.preset("claude").set["CLAUDE_CODE_MAX_RETRIES"] == "1"
    assert "IS_SANDBOX" not in shelf.preset("claude").set
    mine = load(None, environ={}, home=None, overrides=["agents.codex.provider=mine"]).preset("codex")
    assert "model_providers.mine.stream_max_retries=1" in mine.command
    assert mine.command[-1] == "-"


def test_what_the_settings_say_changes_single_keys(tmp_path: Path) -> None:
    """An entry of `agents` changes what it names, and leaves the rest of the shipped preset as it is."""
    text = "agents: {claude: {model: opus, args: [--max-turns, 9], env: {set: {IS_SANDBOX: 1}}, lane: [a, b]}}"
    with pytest.raises(SettingsError, match="must be a list of texts"):
        loaded(tmp_path, text)  # a number is not guessed to be a text
    preset = loaded(tmp_path, text.replace("9", '"9"')).preset("claude")
    assert preset.command[-4:] == ("--model", "opus", "--max-turns", "9")
    assert (preset.set["IS_SANDBOX"], preset.set["DISABLE_AUTOUPDATER"], preset.lanes) == ("1", "1", ("a", "b"))


def test_a_file_takes_the_place_of_a_shipped_preset_as_a_whole(tmp_path: Path) -> None:
    """A file of the workspace wins, and takes nothing from the shipped one unless it extends it."""
    own = loaded(tmp_path, "types: {code: {agent: claude}}", claude="run: [mine]\n").preset("claude")
    assert (own.command, own.reader, dict(own.set), own.origin) == (("mine",), "plain", {}, "agents/claude.yml")
    longer = loaded(tmp_path, "types: {code: {agent: claude}}", claude="extends: claude\nmodel: opus\n")
    assert longer.preset("claude").reader == "claude"
    assert longer.preset("claude").command[-2:] == ("--model", "opus")


def test_what_extends_another_shares_its_account(tmp_path: Path) -> None:
    """A preset that begins with another has its lane, unless it says one; so have types and entries that name it."""
    text = "types: {code: {agent: big}, spec: {agent: big, lane: own}}\nagents: {big: {extends: claude, model: opus}}\n"
    settings = loaded(tmp_path, text, small="extends: big\n", other="extends: claude\nlane: second\n")
    assert settings.preset("small").command[-2:] == ("--model", "opus")
    assert (settings.types["code"].lanes, settings.types["spec"].lanes) == (("claude",), ("own",))
    assert dict(settings.policy.agents) == {"big": ("claude",), "small": ("claude",), "other": ("second",)}


@pytest.mark.parametrize(
    ("text", "files", "told"),
    [
        ("types: {code: {agent: cluade}}", {}, "loopr.yml:1:16 types.code.agent: cluade names no preset (did you mean "
         "claude? there are aider, claude, codex, gemini, opencode; a command of your own is `run: cluade`, its prompt "
         "comes on stdin; a preset of your own is agents/cluade.yml)"),
        ("types: {code: {agent: ./bin/pal}}", {}, 'must be the name of an agent preset, not "./bin/pal" (a command of '
         "your own is `run: ./bin/pal`, its prompt comes on stdin)"),
        ("types: {code: {escalate: {refused: {agent: x}}}}", {}, "code.escalate.refused.agent: x names no preset "
         "(there are aider, claude, codex, gemini, opencode; a preset of your own is agents/x.yml)"),
        ("types: {code: {agent: codex, fallback: x}}", {}, "types.code.fallback: x names no preset"),
        ("types: {code: {agent: claude, fallback: codex, budget: {usd: 1}}}", {}, "lanes.codex.usd_per_mtok, because"),
        ("types: {code: {agent: m}}", {"m": "run: [x]\nmodle: y\n"}, "agents/m.yml:2:1 agents.m.modle: is not a known"),
        ("types: {code: {agent: m}}", {"m": "run: [\n"}, "agents/m.yml:2:1 agents.m: is not YAML"),
        ("types: {code: {agent: m}}", {"m": "about: x\n"}, "agents.m.run: is missing"),
        ("agents: {m: {run: [x], model: y}}", {}, "loopr.yml:1:24 agents.m.model: has no place in `run`"),
        ('agents: {m: {run: [x, "{options}"], model: y}}', {}, "agents.m.model: has no arguments to go with"),
        ("agents: {m: {extends: n}, n: {extends: m}}", {}, "agents.n.extends: m names no preset"),
        ("agents: {m: {extends: m}}", {}, "agents.m.extends: m names no preset"),
        ("agents: {m: {run: x, signs: {limited: ['(']}}}", {}, "agents.m.signs.limited: is no regular expression"),
        ("types: {code: {agent: codex, budget: {usd: 1}}}", {}, "needs lanes.codex.usd_per_mtok, because agent codex"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_preset_is_told_with_its_place(
    tmp_path: Path, text: str, files: dict[str, str], told: str
) -> None:
    """A wrong preset that somebody names is refused: which key, where, and what to do."""
    assert told in refused(tmp_path, text, **files)


def test_a_file_that_nobody_names_may_be_anything(tmp_path: Path) -> None:
    """A folder called agents that has nothing to do with loopr does no harm, until one of its files is named."""
    settings = loaded(tmp_path, "", stranger="role: researcher\ngoal: [\n")
    assert "stranger" in settings.shelf.names
    with pytest.raises(SettingsError, match=r"agents/stranger\.yml:3:1"):
        settings.preset("stranger")


def test_settings_with_agents_are_shown_as_settings(tmp_path: Path) -> None:
    """What `config show` prints of presets is a settings file that says the same."""
    settings = loaded(tmp_path, "types: {code: {agent: big}}\nagents: {big: {extends: codex, provider: mine}}\n")
    again = loaded(tmp_path, show(settings))
    assert again.values == settings.values
    assert again.preset("big").command == settings.preset("big").command


def test_a_changed_preset_breaks_the_seal(tmp_path: Path) -> None:
    """A running engine hears of a preset that has come, changed or gone."""
    seals = [read_texts(tmp_path, {}, None).seal]
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "notes.txt").write_text("x")
    assert read_texts(tmp_path, {}, None).seal == seals[0]
    for number in (1, 2):
        (folder / "m.yml").write_text(f"run: [x{number}]\n")
        seals.append(read_texts(tmp_path, {}, None).seal)
    assert len(set(seals)) == 3
