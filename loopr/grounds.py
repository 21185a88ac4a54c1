"""The repositories of a workspace, opened as its settings say; the engine and the verbs open them here and only here.

A repository is called as the settings write it, by a path from the workspace; a plan stays in the one it began in.
Knows which settings speak of git. Must never know what is done in a repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from os.path import lexists, relpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loopr.core.model import FINISHED
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import Problem, SettingsError
from loopr.world.place import common_git_dir, other_workspace, remember_place, repository_around
from loopr.world.repo.ground import HEADS, PLANS, Ground, open_ground
from loopr.world.repo.guarding import guard_as_begun
from loopr.world.repo.refs import read_refs

if TYPE_CHECKING:
    from loopr.core.plan_observations import TipsFound
    from loopr.world.place import Place
    from loopr.world.settings import Settings


class Settled(Protocol):
    """A workspace, as far as a repository needs one: where it is, and how it is set."""

    @property
    def place(self) -> Place:
        """Where it is."""
        ...

    @property
    def settings(self) -> Settings:
        """How it is set."""
        ...


class Written(NamedTuple):
    """A workspace under settings that are not in force."""

    place: Place
    settings: Settings


def repo_of(workspace: Settled, project: str) -> str:
    """Return what the repository of a project is called; nothing if it has none."""
    known = workspace.settings.projects.get(project)
    return known.repo if known is not None else OWN_REPO


def repo_of_plan(workspace: Settled, scene: Scene, plan: str) -> str:
    """Return what the repository is called that a plan works in: the one it began in, whoever pays for it now."""
    bound = scene.shared.plans.get(plan)
    return bound.repo if bound is not None else repo_of(workspace, scene.loops[plan].project)


def top_of(workspace: Settled, repo: str) -> Path | None:
    """Return the top of a repository, None where there is none."""
    if repo in ("", OWN_REPO):
        return workspace.place.repository if repo else None
    return (workspace.place.root / repo).resolve()


def ground_of(workspace: Settled, repo: str = OWN_REPO) -> Ground:
    """Open a repository of a workspace, or say why there is none to open."""
    place, settings = workspace.place, workspace.settings
    top = top_of(workspace, repo)
    if top is None and not repo:
        raise SettingsError("its project has no repository: its loops work without git", hint=_NO_REPO)
    if top is None:
        raise SettingsError("this workspace is in no repository", hint="`git init` first gives each loop a worktree")
    if repo != OWN_REPO and not top.is_dir():
        raise SettingsError(f"the repository {repo} is not there", hint=f"put it back: {top}")
    ground = open_ground(
        place.root if repo == OWN_REPO else top,
        worktrees=place.root / settings.worktrees.dir,
        state=place.state if repo == OWN_REPO else None,
        prefix=settings.git.branch_prefix,
        pool=settings.worktrees.pool,
        include=settings.worktrees.include or "",
        artifacts=place.root / settings.artifacts.dir,
    )
    exact = settings.max_file_bytes  # where the megabytes are not whole
    ground = replace(ground, most=settings.policy.most_worktrees, max_file_bytes=exact, union=settings.union)
    if repo == OWN_REPO:
        return ground
    return replace(ground, pool_folder=f"{ground.pool_folder}-{sha256(repo.encode()).hexdigest()[:8]}")


_NO_REPO = "projects.NAME.repo gives one to the plans that begin from then on"


def ground_beside(workspace: Settled, scene: Scene, repo: str) -> Ground:
    """Open a repository beside those at work: git runs no program there that was set since they began."""
    ground = replace(ground_of(workspace, repo), plans=frozenset(scene.tree.children(None)))
    plans = {scene.loops[each].plan for each in scene.occupancy.loops}
    if any(repo_of_plan(workspace, scene, plan) == repo for plan in plans):
        guard_as_begun(ground)
    return ground


def ground_of_plan(workspace: Settled, scene: Scene, plan: str) -> Ground | None:
    """Open the repository that a plan works in, None if it works without git."""
    repo = repo_of_plan(workspace, scene, plan)
    return ground_beside(workspace, scene, repo) if top_of(workspace, repo) is not None else None


def grounds_of(workspace: Settled) -> dict[str, Ground]:
    """Open every repository of a workspace, or say all that is wrong with them; plans without one need none."""
    found = [*repository_problems(workspace), *_in_the_way(workspace)]
    if found:
        raise SettingsError("", problems=found)
    return {repo: ground_of(workspace, repo) for repo in repos(workspace)}


def _in_the_way(workspace: Settled) -> Iterator[Problem]:
    """Say what stands where the worktrees belong."""
    folder = workspace.place.root / workspace.settings.worktrees.dir
    if lexists(folder) and not folder.is_dir():
        hint = "move it away, or set worktrees.dir"
        yield Problem("stands where the folder of the worktrees belongs", str(folder), hint)


def repos(workspace: Settled) -> list[str]:
    """Name the repositories that there are: the workspace's own, if it is in one, and those of its projects."""
    named = dict.fromkeys([OWN_REPO, *(each.repo for each in workspace.settings.projects.values())])
    return [each for each in named if top_of(workspace, each) is not None]


def claim(place: Place, ground: Ground) -> None:
    """Let a repository know the workspace that drives it, so that loopr finds its way from there."""
    remember_place(replace(place, state=ground.state))


def check_homes(workspace: Settled, scene: Scene) -> None:
    """Refuse settings that lead no longer to a repository in which a plan is not over."""
    known = {"", OWN_REPO, *(each.repo for each in workspace.settings.projects.values())}
    lost: dict[str, list[str]] = {}
    for plan, bound in sorted(scene.shared.plans.items()):
        if bound.repo not in known and plan in scene.loops and not is_over(scene, plan):
            lost.setdefault(bound.repo, []).append(plan)
    if lost:
        raise SettingsError("", problems=[_lost(workspace, scene, repo, plans) for repo, plans in lost.items()])


def is_over(scene: Scene, plan: str) -> bool:
    """Say whether nothing of a plan is to be done any more."""
    return all(loop.status in FINISHED and not loop.occupying for loop in scene.tree.walk(plan))


def _lost(workspace: Settled, scene: Scene, repo: str, plans: list[str]) -> Problem:
    """Say that plans are at work in a repository that no project names any more."""
    project = scene.loops[plans[0]].project
    many = len(plans) > 1
    words = f"projects.{project}.repo: {', '.join(plans)} began in {repo} and {'are' if many else 'is'} not over"
    now = workspace.settings.projects.get(project)
    if now is not None:
        words += f", so that it cannot be {now.repo or 'null'} yet"
    hint = f"put {repo} back until then, or `loopr cancel {' '.join(plans)}`"
    return Problem(words, _where(workspace.settings, project), hint)


# --- what is wrong with them ------------------------------------------------------------------------------------------


class _Home(NamedTuple):
    """A repository that was found: whose it is, what it is called, its top and its common git directory."""

    project: str
    repo: str
    top: Path
    common: Path


def repository_problems(workspace: Settled) -> list[Problem]:
    """Say what keeps repositories of projects from being worked in, each at the line that names it."""
    return [problem for project, problem in project_problems(workspace).items() if problem is not None]


def project_problems(workspace: Settled) -> Mapping[str, Problem | None]:
    """Map each project with a repository of its own to what keeps that from being worked in, if anything does."""
    found: dict[str, Problem | None] = {}
    homes: list[_Home] = list(_own_home(workspace))
    for project, each in workspace.settings.projects.items():
        if each.repo not in ("", OWN_REPO):
            said = _looked_at(workspace, project, each.repo, homes)
            found[project] = said if isinstance(said, Problem) else None
            homes += [said] if isinstance(said, _Home) else []
    return found


def _own_home(workspace: Settled) -> Iterator[_Home]:
    """Give the repository around the workspace, if a project is in it."""
    top = workspace.place.repository
    projects = (each.name for each in workspace.settings.projects.values() if each.repo == OWN_REPO)
    project = next(projects, None)
    if top is not None:
        yield _Home(project or "", OWN_REPO, top, common_git_dir(top).resolve())


def _looked_at(workspace: Settled, project: str, repo: str, homes: list[_Home]) -> _Home | Problem:
    """Look at the repository of one project, beside those of others."""
    place, where = workspace.place, _where(workspace.settings, project)

    def wrong(words: str, hint: str) -> Problem:
        return Problem(f"projects.{project}.repo: {words}", where, hint)

    try:
        top = (place.root / repo).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        hint = f"clone it there, or mend the path: it begins at {place.root}"
        return wrong(f"{repo} is not there" if isinstance(error, FileNotFoundError) else f"{repo}: {error}", hint)
    around = repository_around(top)
    if around is None or not top.is_dir():
        return wrong(f"{repo} is no repository", "`git init` there, or write null: its loops then work without git")
    if around != top:
        at = OWN_REPO if around == place.repository else relpath(around, place.root)
        hint = f"write {at}: a project is a whole repository, and two projects may share one"
        return wrong(f"{repo} is a folder in a repository, and not its top", hint)
    if not (top / ".git").exists():
        return wrong(f"{repo} is a bare repository", "add a checkout with `git worktree add`, and name that")
    home = _Home(project, repo, top, common_git_dir(top).resolve())
    problem = next(filter(None, (_clash(home, each) for each in homes)), None) or _foreign(place, home)
    folders = (workspace.settings.artifacts.dir, workspace.settings.worktrees.dir)
    inside = next((each for each in folders if top.is_relative_to((place.root / each).resolve())), "")
    if inside:
        problem = f"{repo} lies in {inside}, which is loopr's", "move it beside the workspace"
    return wrong(*problem) if problem is not None else home


def _clash(home: _Home, other: _Home) -> tuple[str, str] | None:
    """Say why two repositories cannot both be driven: one is the other, or lies in it."""
    if other.repo == home.repo:
        return None
    if other.common == home.common:
        return f"{home.repo} is the same repository as {other.repo}", f"write {other.repo}: projects may share one"
    if not other.project:  # around the workspace, and no project works in it
        return None
    within = home.top.is_relative_to(other.top)
    if not within and not other.top.is_relative_to(home.top):
        return None
    inner, outer = (home, other) if within else (other, home)
    words = f"{inner.repo} of {inner.project} lies inside {outer.repo} of {outer.project}"
    hint = f"move it beside that, or let project {other.project} work elsewhere: projects.{other.project}.repo"
    return words, hint


def _foreign(place: Place, home: _Home) -> tuple[str, str] | None:
    """Say that a repository belongs to another workspace."""
    state = home.common / "loopr"
    other = other_workspace(place, state)
    if other is None:
        return None
    hint = f"one repository has one workspace: drive it from there, or delete {state / 'workspace'} once nothing does"
    return f"{home.repo} belongs to the workspace {other}", hint


def _where(settings: Settings, project: str) -> str:
    """Say where the repository of a project was written."""
    for key in (f"projects.{project}.repo", f"projects.{project}", "projects"):
        if said := settings.story.get(key):
            return said[-1].where
    return ""


def tips_in(workspace: Settled, scene: Scene) -> TipsFound | None:
    """Say where the refs have plans of which the journal says nothing: it is from before it did."""
    from loopr.core.moving import unrecorded
    from loopr.core.plan_observations import TipsFound

    found: dict[str, str] = {}
    for plan in unrecorded(scene):
        repo = repo_of_plan(workspace, scene, plan)
        top = top_of(workspace, repo)
        if top is not None and top.is_dir():
            ref = f"{PLANS}{plan}"
            found[plan] = read_refs(ground_of(workspace, repo).door, ref).get(ref, "")
    return TipsFound(found) if found else None


def stands_at(ground: Ground, scene: Scene, plan: str) -> str:
    """Return where a plan stands: as the journal says, or as the refs do where it is from before it did."""
    if plan in scene.shared.tips:
        return scene.shared.tip(plan).at
    ref = f"{PLANS}{plan}"
    return read_refs(ground.door, ref).get(ref, "")


def base_of(ground: Ground, scene: Scene, plan: str) -> str:
    """Return where the base branch of a plan stands now; nothing where there is none, or where this is no plan."""
    bound = scene.shared.plans.get(plan)
    branch = f"{HEADS}{bound.base_branch}" if bound is not None and bound.base_branch else ""
    return read_refs(ground.door, branch).get(branch, "") if branch else ""
