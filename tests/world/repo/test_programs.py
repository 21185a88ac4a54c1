"""No program that a loop plants in git's settings runs as the engine, nor at what the person does next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loopr.driving.sentry import NOTHING, Sentry
from loopr.world.repo import calls, commits, guarding, keeping
from loopr.world.repo.calls import GUARDS, Door, GitFailed, Said
from loopr.world.repo.ground import KEPT, Ground
from loopr.world.repo.guarding import guard_as_begun
from loopr.world.repo.landing import end_judging, lay_candidate
from loopr.world.repo.programs import harmless_value, runs_program
from loopr.world.repo.words import Candidate
from tests.world.repo.grounds import begin, build, git, ground_of, plant, say, take, try_to_land, work, write

NAME = "oauth.one.g1"
LINES = "one\ntwo\nthree\nfour\nfive\nsix\n"
PLANTS = {
    "clean": ["config filter.e.clean RUN"],
    "smudge": ["config filter.e.smudge RUN"],
    "process": ["config filter.e.process RUN", "config filter.e.required true"],
    "textconv": ["config diff.e.textconv RUN"],
    "a diff of its own": ["config diff.e.command RUN"],
    "an external diff": ["config diff.external RUN"],
    "a merge driver": ["config merge.e.driver RUN"],
    "fsmonitor": ["config core.fsmonitor RUN"],
    "hooks elsewhere": ["config core.hooksPath HOOKS"],
    "attributes elsewhere": ["config core.attributesFile ATTRIBUTES", "config filter.e.clean RUN"],
    "an include": ["config include.path SETTINGS"],
    "an include with a condition": ["config includeIf.gitdir:/.path SETTINGS"],
    "an alias": ["config alias.st !RUN"],
    "a helper for passwords": ["config credential.helper !RUN"],
    "ssh": ["config core.sshCommand RUN"],
    "gpg": ["config gpg.program RUN", "config commit.gpgSign true", "config log.showSignature true"],
    "an editor": ["config core.editor RUN"],
    "a pager": ["config pager.log RUN"],
    "settings of a worktree": ["config extensions.worktreeConfig true", "config --worktree filter.e.clean RUN"],
}


class Scene:
    """A repository with a loop in its worktree, and a program that leaves a note whenever it runs."""

    def __init__(self, folder: Path) -> None:
        self.root = plant(folder / "repo", {"a.txt": LINES})
        self.ground: Ground = ground_of(self.root)
        begin(self.ground)
        self.ran = folder / "ran"
        program = folder / "program"
        program.write_text(f"#!/bin/sh\necho ran >> {self.ran}\ncat\n")
        write(folder / "hooks", {each: program.read_text() for each in ("post-index-change", "reference-transaction")})
        for each in (program, *(folder / "hooks").iterdir()):
            each.chmod(0o755)
        write(folder, {"attributes": "* filter=e\n", "settings": f'[filter "e"]\nclean = {program}\n'})
        places = {"RUN": program, "HOOKS": folder / "hooks", "ATTRIBUTES": folder / "attributes"}
        self.places = places | {"SETTINGS": folder / "settings"}

    def plant(self, deeds: list[str], tree: Path) -> None:
        """Plant something, and write files that it is to be applied to."""
        for deed in deeds:
            words = deed.split()
            for name, place in self.places.items():
                words = [each.replace(name, str(place)) for each in words]
            git(tree, *words)
        rules = "* filter=e diff=e merge=e\n"
        write(tree, {".gitattributes": rules, "a.txt": LINES.replace("two", "2"), "new.txt": "new\n"})
        write(self.root / ".git" / "info", {"attributes": rules})
        self.ran.unlink(missing_ok=True)

    def by_engine(self) -> None:
        """Do all that the engine does with a loop's work."""
        assert commits.commit_attempt(self.ground, NAME, 1, say(NAME)).moved
        work(self.ground, "oauth.two.g1", {"a.txt": LINES.replace("six", "6")})
        try_to_land(self.ground, "oauth.two.g1")
        made = build(self.ground, NAME)
        assert isinstance(made, Candidate)
        assert set(made.changed) == {".gitattributes", "a.txt", "new.txt"}
        lay_candidate(self.ground, made, 1)
        end_judging(self.ground, NAME)

    def by_person(self) -> None:
        """Do what a person does next."""
        write(self.root, {"a.txt": LINES.replace("two", "II")})
        for words in ("status", "diff", "add a.txt", "log -p -1", "stash", "stash pop"):
            git(self.root, *words.split())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Give a scene, and forget what was known of its programs."""
    found = Scene(tmp_path)
    yield found
    GUARDS.pop(found.ground.common, None)


def test_what_is_planted_while_git_waits_does_not_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is tried again is told anew what to overrule: somebody may have set it while it waited."""
    Sentry(scene.ground).begin("one#1")
    tree = take(scene.ground, NAME).folder
    real, told = calls.call, list[bool]()

    def locked_once(folder: Path, words: list[str], environment: Mapping[str, str], *more: Any) -> Said:
        told.append("filter.e.clean" in environment.values())
        if len(told) > 1:
            return real(folder, words, environment, *more)
        scene.plant(PLANTS["clean"], tree)
        return Said(128, b"", "fatal: Unable to create 'index.lock': File exists.")

    monkeypatch.setattr(calls, "call", locked_once)
    scene.ground.users_door.run("hash-object", "a.txt")
    assert told == [False, True]
    assert not scene.ran.exists()


@pytest.mark.parametrize("kind", PLANTS)
def test_no_planted_program_runs(scene: Scene, kind: str) -> None:
    """Whatever runs a program is put back before the engine commits, lays or merges, and before the person goes on."""
    before = git(scene.root, "config", "--list", "--local")
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    tree = take(scene.ground, NAME).folder
    scene.plant(PLANTS[kind], tree)
    touched = sentry.changed("one#1").touched
    scene.by_engine()
    scene.by_person()
    assert not scene.ran.exists()
    assert len([each for each in touched if "is put back" in each]) >= 2, touched  # and the attributes
    left = set(git(scene.root, "config", "--list", "--local").splitlines()) - set(before.splitlines())
    assert left <= {"extensions.worktreeconfig=true", "commit.gpgsign=true", "log.showsignature=true"}
    assert not (scene.root / ".git" / "info" / "attributes").exists()


def test_an_answer_that_was_lost_is_given_again(scene: Scene) -> None:
    """Until an attempt is forgotten the sentry says the same of it each time, with what has come since."""
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    tree = take(scene.ground, NAME).folder
    scene.plant(PLANTS["an alias"], tree)
    first = sentry.changed("one#1")
    assert first.touched and first.news
    assert sentry.changed("one#1") == first
    scene.plant(PLANTS["ssh"], tree)
    assert set(first.touched) < set(sentry.changed("one#1").touched)
    sentry.forget_all("one")
    assert sentry.changed("one#1") == NOTHING


@pytest.mark.parametrize("kind", PLANTS)
def test_no_program_runs_that_is_planted_while_the_engine_is_at_it(scene: Scene, kind: str) -> None:
    """Also where nobody has looked since: our own calls of git heed no program that was not set at the beginning."""
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    scene.plant(PLANTS[kind], take(scene.ground, NAME).folder)
    scene.by_engine()
    assert not scene.ran.exists()


@pytest.mark.parametrize("kind", PLANTS)
def test_no_program_runs_in_a_process_that_came_later(scene: Scene, kind: str) -> None:
    """Another process, such as `loopr land` or the next engine, knows which programs were set when the work began."""
    Sentry(scene.ground).begin("one#1")
    GUARDS.clear()
    scene.plant(PLANTS[kind], take(scene.ground, NAME).folder)
    guard_as_begun(scene.ground)
    scene.by_engine()
    assert not scene.ran.exists()


def test_no_program_runs_that_is_planted_while_settings_are_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set in the instant in which the engine reads the settings is seen by its next call of git."""
    Sentry(scene.ground).begin("one#1")
    tree, real = take(scene.ground, NAME).folder, guarding._programs
    git(scene.root, "config", "user.email", "other@example.org")  # so that they are read again

    def late(door: Door) -> tuple[dict[str, str], list[Path]]:
        found = real(door)
        monkeypatch.setattr(guarding, "_programs", real)
        scene.plant(["config filter.e.clean RUN"], tree)
        return found

    monkeypatch.setattr(guarding, "_programs", late)
    scene.ground.door.run("rev-parse", "HEAD")
    guard = GUARDS[scene.ground.common]
    assert "filter.e.clean" in guard(scene.ground.door).values()


def test_a_filter_in_an_included_file_goes_on_in_a_process_that_came_later(scene: Scene) -> None:
    """What a person has set before, in a file that their settings name, runs there as it always did."""
    mine = scene.root.parent / "mine"
    mine.write_text('[filter "e"]\nclean = sed s/new/NEW/\n')
    git(scene.root, "config", "include.path", str(mine))
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    git(scene.root, "tag", "v1")
    sentry.begin("two#1")  # looks again, and keeps what it sees
    GUARDS.clear()
    scene.plant(["config filter.e.smudge RUN"], take(scene.ground, NAME).folder)
    guard_as_begun(scene.ground)
    scene.by_engine()
    assert not scene.ran.exists()
    assert git(scene.root, "show", "loopr/oauth.one.g1:new.txt") == "NEW"


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config", "later"])
def test_what_is_planted_in_a_persons_own_settings_is_told_and_never_runs(
    scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Also in files that are not there yet, and in the next work: an engine begun later takes it for a person's."""
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    if place == "later":
        write(home, {".gitconfig": "[include]\n\tpath = later\n"})
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    write(home, {place: f'[filter "e"]\n\tclean = {scene.places["RUN"]}\n'})
    scene.plant([], take(scene.ground, NAME).folder)
    found = sentry.changed("one#1")
    assert [each for each in found.grown if each.startswith(f"filter.e.clean in {home / place} (stays")], found
    (scene.root / ".git/info/attributes").unlink(missing_ok=True)
    sentry.begin("two#1")
    assert sentry.changed("two#1").grown == ()
    scene.by_engine()
    assert not scene.ran.exists()


def test_once_nothing_is_at_work_what_is_set_is_a_persons(scene: Scene) -> None:
    """What was kept for processes that come later gives way to what is set when the next work begins."""
    Sentry(scene.ground).begin("one#1")
    git(scene.root, "config", "filter.e.clean", "sed s/new/NEW/")
    sentry = Sentry(scene.ground)
    GUARDS.clear()
    guard_as_begun(scene.ground)
    sentry.begin("two#1")
    GUARDS.clear()
    guard_as_begun(scene.ground)
    scene.plant([], take(scene.ground, NAME).folder)
    scene.by_engine()
    assert git(scene.root, "show", "loopr/oauth.one.g1:new.txt") == "NEW"


NEVER_HEARD = {"an alias", "a helper for passwords", "ssh", "gpg", "an editor", "a pager"}


@pytest.mark.parametrize("kind", sorted(PLANTS.keys() - NEVER_HEARD))
def test_the_scene_shows_what_runs(scene: Scene, kind: str) -> None:
    """Where nobody looks, what is planted does run, as the engine or as the person: the tests above can fail."""
    scene.plant(PLANTS[kind], take(scene.ground, NAME).folder)
    with suppress(GitFailed, AssertionError):
        scene.by_engine()
    with suppress(AssertionError):
        scene.by_person()
    assert scene.ran.exists()


def test_a_filter_of_a_persons_goes_on(scene: Scene) -> None:
    """What was set before the work began is a person's, as the filter for large files, and runs as it always did."""
    git(scene.root, "config", "filter.e.clean", "sed s/new/NEW/")
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    scene.plant(["config filter.e.smudge RUN"], take(scene.ground, NAME).folder)
    assert sentry.changed("one#1").touched
    scene.by_engine()
    assert git(scene.root, "show", "loopr/oauth.one.g1:new.txt") == "NEW"
    assert not scene.ran.exists()


def test_a_filter_that_is_changed_is_the_persons_again(scene: Scene) -> None:
    """A program that took the place of a person's gives it back, and the person's runs meanwhile."""
    git(scene.root, "config", "filter.e.clean", "sed s/new/NEW/")
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    scene.plant(["config filter.e.clean RUN"], take(scene.ground, NAME).folder)
    scene.by_engine()
    assert git(scene.root, "show", "loopr/oauth.one.g1:new.txt") == "NEW"
    sentry.changed("one#1")
    assert git(scene.root, "config", "filter.e.clean") == "sed s/new/NEW/"


def test_hooks_are_put_back_and_kept(scene: Scene) -> None:
    """A hook that came goes aside, one that was changed or taken away comes back as it was; what it was is kept."""
    hooks = scene.root / ".git" / "hooks"
    write(hooks, {"pre-push": "#!/bin/sh\n", "pre-commit": "#!/bin/sh\n"})
    (hooks / "pre-push").chmod(0o755)
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    write(hooks, {"post-index-change": "#!/bin/sh\necho mine\n", "pre-push": "#!/bin/sh\necho other\n"})
    (hooks / "pre-commit").unlink()
    touched = sentry.changed("one#1").touched
    assert [each.partition(" ")[0] for each in touched] == [
        f"hooks/{x}" for x in ("post-index-change", "pre-commit", "pre-push")
    ]
    assert (hooks / "pre-push").read_text() == "#!/bin/sh\n"
    assert (hooks / "pre-push").stat().st_mode & 0o777 == 0o755
    assert (hooks / "pre-commit").exists()
    assert not (hooks / "post-index-change").exists()
    kept = scene.ground.state / keeping.ASIDE
    assert sorted(each.read_text().split("echo ")[1] for each in kept.iterdir()) == ["mine\n", "other\n"]


@pytest.mark.parametrize("garbage", [b"[", b"\0\xff" * 50, b""])
def test_settings_that_git_cannot_read_come_back(scene: Scene, garbage: bytes) -> None:
    """A file of settings that is no such file any more is put back as it was, for its owner alone, and kept."""
    config = scene.root / ".git" / "config"
    before = config.read_bytes()
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    take(scene.ground, NAME)
    config.write_bytes(garbage)
    (told,) = {each.partition(" ")[0] for each in sentry.changed("one#1").touched}
    assert told == "config"
    if garbage:
        assert config.read_bytes() == before
    assert git(scene.root, "rev-parse", "--is-bare-repository") == "false"
    kept = scene.ground.state / KEPT
    assert {oct(each.stat().st_mode & 0o777) for each in kept.rglob("*") if each.is_file()} == {"0o600"}
    assert kept.stat().st_mode & 0o777 == 0o700


def test_an_engine_that_takes_over_knows_what_was_there(scene: Scene) -> None:
    """What was changed while no engine watched is seen by the next, and told once more if nobody can have heard."""
    first = Sentry(scene.ground, clock=lambda: 7)
    first.begin("one#1")
    git(scene.root, "config", "filter.e.clean", "false")
    second = Sentry(scene.ground, clock=lambda: 8)
    second.resume(["one#1"])
    third = Sentry(scene.ground, clock=lambda: 9)
    third.resume(["one#1"])
    assert [each.names for each in third.changed("one#1").news] == [("config filter.e.clean (is put back)",)]
    assert second.changed("one#1").touched == ("config filter.e.clean (is put back)",)


def test_nobody_at_work_is_to_blame_for_nothing(scene: Scene) -> None:
    """What a person sets while nothing runs is theirs, whatever it runs, and stays."""
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    sentry.changed("one#1")
    git(scene.root, "config", "filter.e.clean", "sed s/new/NEW/")
    sentry.begin("two#1")
    scene.plant([], take(scene.ground, NAME).folder)
    assert "filter" not in " ".join(sentry.changed("two#1").touched)
    scene.by_engine()
    assert git(scene.root, "show", "loopr/oauth.one.g1:new.txt") == "NEW"


def test_what_runs_a_program_is_known_by_name() -> None:
    """Each name under which our calls would run something is one that is put back; what only describes is not."""
    assert [
        each
        for each in ("user.name", "remote.origin.url", "core.bare", "branch.main.merge", "color.ui")
        if runs_program(each)
    ] == []
    assert harmless_value("filter.a.b.clean") == ""
    assert harmless_value("user.name") is None


def test_a_copy_is_no_larger_than_need_be(scene: Scene) -> None:
    """A hook of a size that no hook has is not kept; it is still told, and stays as it is."""
    hook = scene.root / ".git" / "hooks" / "pre-push"
    hook.write_bytes(b"#!/bin/sh\n" + b"#" * keeping.MOST_BYTES)
    sentry = Sentry(scene.ground)
    sentry.begin("one#1")
    hook.write_text("#!/bin/sh\n")
    assert sentry.changed("one#1").touched == ("hooks/pre-push",)
