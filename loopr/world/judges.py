"""Which words of a command may be paths of files in the repository: what judges and prepares is protected by them.

Knows how commands name files: folders that the shell goes to, modules of Python, commands within commands. Must never
know which files there are, nor what becomes of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from functools import partial
from posixpath import join, normpath

Command = tuple[str, ...] | str

_TOKEN = re.compile(
    r"""(?P<end>[;&|()`\n]+)|\#[^\n]*"""
    r"""|(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|()<>`'"\\])+)|.""",
    re.DOTALL,
)
_PART = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)
_DOCUMENT = re.compile(
    r"""(?<!<)<<-?[ \t]*(?P<quote>['"\\]?)(?P<end>[\w.-]+)['"]?(?P<rest>[^\n]*)\n"""
    r"""(?:.*?\n)??\t*(?P=end)(?:\n|\Z)""",
    re.DOTALL,
)
_ESCAPED = re.compile(r'\\([$`"\\\n])')
_HERE = re.compile(r"(?:\$LOOPR_WORKTREE|\$\{LOOPR_WORKTREE\}|\{worktree\})(?=/|$)")
_STANDING = re.compile(r"(?:\$PWD|\$\{PWD\})(?=/|$)")
_SET = re.compile(r"(?:--?)?[\w.-]+=(.+)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_INTERPRETER = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*|coverage|uv")
_MODULE_OPTION = re.compile(r"-[A-Za-z]*m(?P<module>[\w.]*)")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FOLDER_OPTION = re.compile(r"(?:-C|--(?:directory|chdir|cwd|prefix|dir)=)(?P<folder>.*)")
_FOLDER_WORDS = ("-C", "--directory", "--chdir", "--cwd", "--prefix", "--dir")
_GOES = ("cd", "pushd")
_BEFORE = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "command", "exec"))
_WITHIN = frozenset(" \t\n;&|()<>`'\"")
_LOOKS = re.compile(r"(?:/(?:usr/)?bin/)?(?:test|\[\[?|[ef]?grep|rg|wc|ls|stat|jq)")
_READS_OWN = re.compile(r"-[A-Za-z]*[fL].*|--(?:file|from-file|slurpfile|rawfile|argfile)(?:=.*)?")
_READS = re.compile(
    r"(?:/(?:usr/)?bin/)?(?:diff|cmp|comm|cat|head|tail|sort|uniq|cut|od|nl|paste|join|cksum|read"
    r"|(?:md5|b2|sha\d+)sum|g?awk|sed)"
)
_PROGRAM_IN_FILE = re.compile(r"-[A-Za-z]*[fi].*|--(?:file|in-place)(?:=.*)?")
_RUNS_FIRST = re.compile(r"(?:.*/)?(?:(?:python|pypy)[\d.]*|sh|dash|bash|node|ruby)")
_CODE = re.compile(r".*\.(?:sh|bash|bats|py|[cm]?js|ts|rb|pl|php|lua|t|mk)")
_TOOL = re.compile(r"(?:.*/)?\.?bin/.*")  # a test runner is one, which runs the files that it is given
_FEEDS = re.compile(
    r"\b(?:eval|source|xargs|exec)\b|\|\s*(?:\S*/)?(?:python|pypy|ba?sh|dash|node|ruby|perl)\b"
    r"|\|\s*(?:\S*/)?sh\b"
)
"""Words by which a command may run the output of another one."""

_RUNS = ("$(", "`")
_ROOT = "."
_MAIN, _PACKAGE = "__main__.py", "__init__.py"
_DEPENDENCIES = re.compile(
    r"(?:.*/)?(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|constraints[\w.-]*\.txt|environment\.ya?ml"
    r"|Pipfile|go\.(?:mod|sum)|[\w.-]+\.lock|[\w.-]+[-.]lock\.(?:json|ya?ml)|npm-shrinkwrap\.json)"
)
"""Lists of dependencies, which ordinary work adds to: none is a judge where a command names it."""

Folders = tuple[str, ...]
"""Where a command may run: one folder, or several where the shell goes to one that is not known."""

Reader = Callable[[Sequence[str], Folders], Iterator[str]]
"""Gives the paths in the words of one command."""


def paths_in(command: Command | None) -> list[str]:
    """List what in a command may be the path of a file in the repository, as it is from its top."""
    return list(dict.fromkeys(_named(command, _in_words)))


def judges_in(commands: Iterable[Command | None], made: Set[str] = frozenset()) -> tuple[str, ...]:
    """List what in some commands may be the path of a file that judges or prepares.

    A file that is only looked at, as in `test -s out.txt`, is what they judge. One that is `made`
    is that also where it is only read, as in `diff want.txt out.txt`.
    """
    found: set[str] = set()
    for each in commands:
        text = each if isinstance(each, str) else " ".join(each or ())
        read = frozenset[str]() if _FEEDS.search(text) else made
        found.update(_named(each, partial(_in_judging, made=read)))
    return tuple(sorted(each for each in found if not _DEPENDENCIES.fullmatch(each)))


def first_words(text: str) -> list[str]:
    """List the word that each simple command in a text for the shell begins with."""
    return [words[0] for words, _ in begun_in(text) if words]


def _named(command: Command | None, of_words: Reader) -> Iterator[str]:
    """Give the paths in a command, read in one of two ways."""
    if isinstance(command, str):
        return _in_text(command, (_ROOT,), of_words)
    return of_words(command or (), (_ROOT,))


# --- a text for the shell -------------------------------------------------------------------------------------------


def _in_text(text: str, folders: Folders, of_words: Reader) -> Iterator[str]:
    """Give the paths in a text for the shell, each from where the shell stands by then."""
    outer: list[Folders] = []
    for words, end in commands_of(text):
        if words[:1] and words[0] in _GOES:
            folders = _gone(words[1:], folders)
        else:
            yield from of_words(words, folders)
        for sign in end:  # what is done between brackets leaves the shell where it was
            if sign == "(":
                outer.append(folders)
            elif sign == ")" and outer:
                folders = outer.pop()


def commands_of(text: str) -> Iterator[tuple[list[str], str]]:
    """Split a text for the shell into simple commands, each with the signs that end it."""
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["end"]:
            yield words, token["end"]
            words = []
        elif token["word"] and (words or token["word"] not in _BEFORE):
            words.append(_PART.sub(_bare, token["word"]))
    yield words, ""


def begun_in(text: str) -> Iterator[tuple[list[str], str]]:
    """Split a text for the shell into simple commands without the variables set for them alone."""
    for words, end in commands_of(text):
        at = next((at for at, each in enumerate(words) if not _VARIABLE.fullmatch(each)), len(words))
        yield words[at:], end


def _bare(part: re.Match[str]) -> str:
    """Return a part of a word without its quotes."""
    plain, double, escaped = part.groups()
    if plain is not None:
        return plain
    return _ESCAPED.sub(r"\1", double) if double is not None else escaped.strip("\n")


def without_documents(text: str) -> str:
    """Leave out of a text for the shell the input that it gives to commands (`<<END`)."""
    return _DOCUMENT.sub(r"\g<rest>\n", text)


def _gone(words: Sequence[str], folders: Folders) -> Folders:
    """Return where the shell stands after it has gone somewhere."""
    to = next((each for each in words if not each.startswith("-")), "")
    return below(folders, to) or tuple(dict.fromkeys((_ROOT, *folders)))


# --- the words of one command ---------------------------------------------------------------------------------------


def _in_judging(words: Sequence[str], folders: Folders, made: Set[str]) -> Iterator[str]:
    """Give the paths in one command, but for those it only looks at, and made ones it reads."""
    within = partial(_in_judging, made=made)
    if not words or not _LOOKS.fullmatch(words[0]) or any(map(_READS_OWN.fullmatch, words[1:])):
        yield from _in_words(_without_read(words, folders, made), folders, within)
        return
    for word in words[1:]:
        if any(each in word for each in _RUNS):
            yield from _in_text(word, folders, within)


def _without_read(words: Sequence[str], folders: Folders, made: Set[str]) -> Sequence[str]:
    """Leave out of one command the made file that it only reads; of several none is left out."""
    at = _first_read(words) if made else len(words)
    read = {each for each in words[at:] if not made.isdisjoint(below(folders, each))}
    if words and not _READS.fullmatch(words[0]):  # a script may run the code that it is given
        read = {each for each in read if not _CODE.fullmatch(each)}
    return [*words[:at], *(each for each in words[at:] if each not in read or len(read) > 1)]


def _first_read(words: Sequence[str]) -> int:
    """Return the place of the first word that one command would only read, if it is a file."""
    if not words:
        return 0
    if _READS.fullmatch(words[0]) and not any(map(_PROGRAM_IN_FILE.fullmatch, words[1:])):
        return 1
    if _RUNS_FIRST.fullmatch(words[0]) and words[1:] and not words[1].startswith("-"):
        return 2
    return 1 if "/" in words[0] and not _TOOL.fullmatch(words[0]) else len(words)


def _in_words(words: Sequence[str], folders: Folders, within: Reader | None = None) -> Iterator[str]:
    """Give the paths in the words of one command; `within` reads a command that stands in a word of it."""
    folders = _moved(words, folders)
    for at, word in enumerate(words):
        if _WITHIN.intersection(word):  # a command within a command, or a name with a space
            yield from _in_text(word, folders, within or _in_words)
        yield from _paths(word, folders)
        if _INTERPRETER.fullmatch(word):
            yield from _run_by_python(words[at + 1 :], folders)


def _moved(words: Sequence[str], folders: Folders) -> Folders:
    """Return where a command runs that may be told to go to a folder first."""
    also = [after for before, after in zip(words, words[1:], strict=False) if before in _FOLDER_WORDS]
    also += [found["folder"] for each in words if (found := _FOLDER_OPTION.fullmatch(each)) and found["folder"]]
    return tuple(dict.fromkeys((*folders, *(path for each in also for path in below(folders, each)))))


def _paths(word: str, folders: Folders) -> Iterator[str]:
    """Give the path that one word may be, or that is set in it; a test within a file is named by that file."""
    found = _SET.fullmatch(word)
    if found:
        yield from _paths(found[1], folders)
    if not word.startswith("-"):
        yield from below(folders, word.partition("::")[0])


def below(folders: Folders, word: str) -> Folders:
    """Return the path that a word means in each folder; nothing if it is outside or not known."""
    if _HERE.match(word):
        word, folders = _HERE.sub(_ROOT, word), (_ROOT,)
    word = _STANDING.sub(_ROOT, word)
    if not word or word[0] in "/~:-" or "$" in word or word.startswith("{"):
        return ()
    paths = (normpath(join(folder, word)) for folder in folders)
    return tuple(path for path in paths if path != _ROOT and path.partition("/")[0] != "..")


def _run_by_python(words: Sequence[str], folders: Folders) -> Iterator[str]:
    """Give the files of the module, the package or the folder that is run."""
    for at, word in enumerate(words):
        found = _MODULE_OPTION.fullmatch(word)
        if found:
            module, *rest = [found["module"]] * bool(found["module"]) + list(words[at + 1 :]) or [""]
            named = [module, *(each for each in rest if module == "unittest" and "." in each)]
            paths = [path for each in named if _MODULE.fullmatch(each) for path in _of_module(each)]
        elif word.startswith("-"):
            continue
        else:
            paths = [f"{word}/{_MAIN}"]
        for each in paths:
            yield from below(folders, each)
        return


def _of_module(name: str) -> Iterator[str]:
    """Give the files that may be read where a module is run, its packages among them."""
    path = name.replace(".", "/")
    yield f"{path}/{_MAIN}"
    for at in [at for at, sign in enumerate(path + "/") if sign == "/"]:
        yield from (f"{path[:at]}.py", f"{path[:at]}/{_PACKAGE}")


def stand_ins(words: Collection[str], known: Iterable[str]) -> tuple[str, ...]:
    """List which words would be read in place of a module that is there, or before it, if they were added."""
    found: set[str] = set()
    for path in known:
        module = path.removesuffix(f"/{_MAIN}").removesuffix(f"/{_PACKAGE}").removesuffix(".py")
        if path.endswith(".py"):
            found.update(_of_module(module.replace("/", ".")))
    return tuple(sorted(found.intersection(words)))
