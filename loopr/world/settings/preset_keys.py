"""The keys of an agent preset, as data: those of a file in `agents/`, and of an entry of `agents` in loopr.yml.

Knows kinds, defaults and meanings. Must never know a file, nor which presets there are: that is `presets.py`.
"""

from __future__ import annotations

from loopr.world.settings.keys import Key, Names, block, choice, command, flag, table, text, texts

AGENTS = Names("agent preset", "[A-Za-z0-9][A-Za-z0-9_-]{0,62}", str.lower)
LANES = Names("lane", "[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
VARIABLES = Names("variable", "[A-Za-z_][A-Za-z0-9_]*", str)

_MANY, _PATTERN = "a list of names of variables", r"[A-Za-z_*][A-Za-z0-9_*]*"

READERS = ("plain", "claude", "codex", "opencode", "gemini", "aider")
SIGNS = ("authentication", "billing", "model", "limited", "config", "refused", "infra")
"""What a sign may be of, in the order in which they are looked for."""


def environment(whose: str) -> Key:
    """Describe what is changed in the environment of a command."""
    return block(
        f"What {whose} changes in the environment of its commands.",
        set=table(
            "Variables that are set.",
            VARIABLES,
            Key("loose", "The value of the variable; null leaves it alone.", None, null=True, says="text", secret=True),
        ),
        unset=texts("Variables that are removed; a name may have stars in it.", _MANY, _PATTERN),
        only=texts(
            "Of what loopr was started with, only these get in, beside PATH, HOME and the like; null lets all in.",
            _MANY,
            _PATTERN,
        )._replace(default=None, null=True),
    )


def _sign(meaning: str) -> Key:
    """Describe the signs of one kind of end."""
    return texts(f"Regular expressions, any of which in what the client says means: {meaning}", "a list of texts")


def _mend(what: str) -> Key:
    """Describe the words that tell a person what to do."""
    return text(None, f"What a person is told to do when the lane is parked {what}.")


PRESET = block(
    "One agent preset: how a client is started, and how what it says is read.",
    extends=text(None, "The preset that it is like, but for the keys given here.", AGENTS.pattern,
                 "the name of a preset"),
    about=text(None, "What it is, in a line."),
    run=command("Its command: a list, in which {options} stands for what model, provider and args come to; the prompt "
                "is its standard input, or the file {prompt_file} if it names that."),
    model=text(None, "The model that is asked for; null leaves it to the client."),
    provider=text(None, "The provider that is asked for, where the client has several; null leaves it to the client."),
    args=texts("Further arguments, put where {options} stands.", "a list of texts", r"[\s\S]*"),
    options=block(
        "How the client is told.",
        model=texts("The arguments that name the model, with {model} in them.", "a list of texts"),
        provider=texts("The arguments that name the provider, with {provider} in them.", "a list of texts"),
    ),
    env=environment("this preset"),
    own_tmpdir=flag(False, "True: TMPDIR is a folder of the attempt's own."),
    lane=Key("names", "The lane it uses where its type names none; null is the lane with the preset's own name.", None,
             null=True, pattern=LANES.pattern, says="the name of a lane, or a list of them"),
    reader=choice("What reads its output; plain believes the exit code.", *READERS)._replace(says=" or ".join(READERS)),
    success=text(None, "A regular expression that must be found in its output, or its end counts as cut short."),
    signs=block(
        "What its messages mean, where its reader does not know by itself.",
        authentication=_sign("it is not, or wrongly, logged in; the lane is parked."),
        billing=_sign("the account has no credit; the lane is parked."),
        model=_sign("there is no such model; the lane is parked."),
        limited=_sign("the provider asks for a rest; the lane rests."),
        config=_sign("this loop cannot work as it is asked for; it is parked."),
        refused=_sign("it gave up; that is a verdict of no."),
        infra=_sign("it was not its doing; another try follows."),
    ),
    mend=block("What a person is told to do.", authentication=_mend("because nobody is logged in"),
               billing=_mend("because there is no credit"), model=_mend("because the model is not known")),
    version=command("Prints the version of the client."),
    install=text(None, "How the client is installed."),
)  # fmt: skip
