"""Every key of loopr.yml with its kind, range, default and meaning, as data.

This is the one place that names the keys: the checks, the defaults, `config explain`, the JSON schema and the reference
are all drawn from it. Must never know a file, a layer or what a value is used for.
"""

from __future__ import annotations

from loopr.core.policy import MAX_OFFERED, MAY, RESOURCE_NAME
from loopr.core.wording import USUAL
from loopr.world.settings.keys import (
    Key,
    Names,
    block,
    choice,
    command,
    flag,
    number,
    positive,
    table,
    template,
    text,
    texts,
    trailers,
    whole,
)
from loopr.world.settings.preset_keys import AGENTS, LANES, PRESET, environment

BUILT_IN_TYPES = ("plan", "spec", "phase", "code")
OCCASIONS = (
    *("done", "settled", "parked", "failed", "approval", "offered"),
    *("lane", "budget", "convoy", "landing", "settings"),
)
TYPE_NAME = "[a-z][a-z0-9-]{0,30}"
PATH_INSIDE = r"(?!/)(?!\.git(?:/|$))(?!(?:[^/]*/)*\.\.(?:/|$))(?!\.?/?$)[^\\\x00-\x1f]+"
AUTHOR = r"[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f][^<>\x00-\x1f\x7f]* <[^<>\x00-\x20\x7f]+>"
REF_PREFIX = r"(?!.*\.lock/)(?:[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*/)+"

_RESOURCES = Names("resource", RESOURCE_NAME, lambda part: part)
_TYPES = Names("type", TYPE_NAME, lambda part: part.lower().replace("_", "-"))
_PROJECTS = Names("project", "[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_CLASSES = Names("class (refused, conflict, infra or timeout)", "refused|conflict|infra|timeout")

_AGENT_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_MAX_MB = 1_000_000
_UNION = r"(?![!#])(?!\[attr\])[^\x00-\x1f]+"


def _budget(whose: str) -> Key:
    """Describe a budget; null takes back what an earlier layer set."""
    return block(
        f"What {whose} may cost; null is unlimited, 0 is a real limit.",
        tokens=whole(None, "Tokens that may be used.", least=0),
        usd=number(None, "US dollars that may be spent, to a millionth."),
        secs=whole(None, "Seconds that attempts may take together.", least=0),
    )._replace(null=True)


def _timeouts(inherited: bool) -> Key:
    """Describe the timeouts of the workspace, or those of a type, which inherits what it leaves out."""

    def secs(default: float | None, meaning: str, least: float | None = None) -> Key:
        chosen = None if inherited else default
        return number(chosen, meaning, least) if least is not None else positive(chosen, meaning)

    own = "What this type has instead of the workspace's timeouts."
    unsaid = "the workspace's" if inherited else "300 for an agent, idle_secs for a command"
    first = f"The longest an attempt may take to write its first byte; null: {unsaid}."
    return block(
        own if inherited else "When an attempt has taken too long.",
        wall_secs=secs(14400, "The longest an attempt may take."),
        idle_secs=secs(1800, "The longest an attempt may write nothing."),
        first_byte_secs=secs(None, first),
        check_secs=secs(1800, "The longest a check or a review may take."),
        grace_secs=secs(10, "The time between asking a process to end and killing it.", least=0),
    )


_TYPE = block(
    "One type of the ladder.",
    child=text(None, "The type of its children; null: its loops do the work.", TYPE_NAME, "the name of a type"),
    run=command("The command that does the work; without run and agent a person does it."),
    agent=text(None, "The agent preset that works, instead of run.", _AGENT_NAME, "the name of an agent preset"),
    check=command("The command that judges the tree that would land; exit 0 is yes, and `none` is no check."),
    review=block(
        "A second judge; what is no map is its command.",
        run=command("The command that reviews; its last line is APPROVED: or REJECTED: why."),
        agent=text(None, "The agent preset that reviews, instead of run.", _AGENT_NAME, "the name of an agent preset"),
        passes=whole(1, "How many reviews in a row must approve; an agent looks at something else in each.", most=100),
    )._replace(short="run", says="a command, or a map of keys"),
    max_iterations=whole(None, "Iterations before the loop has failed; it wins over retry.max_iterations."),
    approve=flag(False, "A person must approve what the check let through."),
    parallel=flag(True, "False: siblings of this type run one after another."),
    worktree=flag(True, "False: its commands run without git, in an empty folder of their own below worktrees.dir."),
    lane=Key("names", "The lane it uses, or a list of which the first free one is taken.", None, null=True,
             pattern=LANES.pattern, says="the name of a lane, or a list of them"),
    judge_lane=Key("names", "The lane of its judges, or a list; null is the reviewing agent's, else the attempt's.",
                   None, null=True, pattern=LANES.pattern, says="the name of a lane, or a list of them"),
    env=environment("this type"),
    wrap=Key("wrap", "What is put around its command, check and review, for example a sandbox.", None, null=True,
             says='a list of arguments, one of which is "{command}"'),
    escalate=table(
        "Another agent after a number of failures of a class.",
        _CLASSES,
        block(
            "When to escalate, and to whom.",
            after=whole(3, "The number of failures of this class after which the agent changes."),
            agent=text(None, "The agent preset that takes over.", _AGENT_NAME, "the name of an agent preset"),
        ),
    ),
    fallback=Key("names", "The agent that stands in while all lanes rest or are parked, or a list of which the first "
                 "that can goes on.", None, null=True, pattern=_AGENT_NAME,
                 says="the name of an agent preset, or a list of them"),
    timeouts=_timeouts(inherited=True),
    budget=_budget("one loop of this type"),
    protect=texts("Paths that are put back before the work is judged, beside those of the check.", "a list of paths"),
    clean=flag(False, "True: its check and review work in a folder of their own, without what git ignores."),
    protect_added=choice("What happens to files that the command added under protected paths.", "drop", "keep"),
    trust_outline=flag(False, "True: an outline that this type's command wrote may name commands and checks."),
    inputs=texts("Files of the base that its loops work from: where one is another, they are done again.",
                 "a list of paths"),
    stale=choice("What becomes of its loops that are older than what they need: they are named, or done again.",
                 "tell", "redo"),
    resources=table(
        "What each of its loops holds of the machine's resources until its work is judged; an entry may say otherwise.",
        _RESOURCES,
        whole(None, "How much of this resource; null is none of it.", most=MAX_OFFERED),
    ),
    may=texts("What its commands may steer below their loop, and in plans that they started; nothing else.",
              f"a list of {', '.join(MAY)}", "|".join(MAY)),
)  # fmt: skip

_LANE = block(
    "One provider account.",
    max_concurrent=whole(None, "How many attempts may use the lane at once; null is no limit."),
    usd_per_mtok=number(None, "What a million tokens cost, for clients that report no cost."),
    slow_above=positive(None, "The used share of the provider's window above which fewer are started.", most=1),
    max_rest_secs=positive(3600, "The longest rest that a result file or plain text can ask for."),
    env=environment("this lane"),
)

_PROJECT = block(
    "One payer.",
    weight=positive(1, "Its weight in the fair share."),
    max_concurrent=whole(None, "How many of its loops may be occupied at once; null is no limit."),
    budget=_budget("the project, within fair_share.window_hours,"),
    repo=text(
        ".", "The top of its repository, a path from the workspace; . is the one around it, and null none."
    )._replace(null=True),
    git=block(
        "Names in git, for its plans.",
        base=text(None, "The branch that its plans start from and land on; null is what git.base says."),
    ),
    worktrees=block(
        "The git worktrees of its loops.",
        setup=command("Runs once in each of them; null is what worktrees.setup says."),
    ),
    land=block(
        "How the work of its plans comes home.",
        check=command("Judges the merged tree before it lands; null is what land.check says, `none` is no check."),
    ),
)

_SCHEDULER = block(
    "In which order loops run.",
    poll_interval_secs=positive(1, "How often the tree is scanned, and the pause after a round that was cut short."),
    starvation_secs=number(3600, "After so long a loop goes ahead of every score; 0 is off. Not below priority 0."),
    max_load=positive(None, "Nothing is started while the load of the host is above this; null is off."),
    priority=table(
        "The score: a base per type, and what changes it.",
        _TYPES,
        whole(100, "The base of this type's score.", least=-1_000_000, most=1_000_000),
        {"plan": 40, "spec": 60, "phase": 80, "code": 100},
        age_boost_per_minute=whole(1, "Added for each whole minute since the loop was created.", least=0),
        age_boost_max=whole(50, "The most that age adds.", least=0),
        depth_boost_per_level=whole(10, "Added for each ancestor.", least=0),
        retry_penalty_per_iteration=whole(5, "Taken off for each iteration after the first.", least=0),
        retry_penalty_max=whole(30, "The most that iterations take off.", least=0),
    ),
)

_CONCURRENCY = block(
    "How much runs at once.",
    max_loops=whole(50, "How many loops may be occupied; 0 or -1 is no ceiling.", least=-1),
    max_api_calls=whole(
        10, "How many attempts and judges may use lanes other than default; 0 or -1 is no ceiling.", least=-1
    ),
    per_type=table(
        "How many loops of a type may be occupied; null is no limit. Without max_loops the defaults do not bind.",
        _TYPES,
        whole(None, "How many loops of this type may be occupied; null is no limit."),
        {"plan": 2, "spec": 5, "phase": 20, "code": 50},
    ),
)

_RETRY = block(
    "How often and how soon a loop may fail.",
    base_secs=number(30, "The delay after the first failure in a row."),
    factor=number(2, "What each further failure multiplies the delay by.", least=1),
    cap_secs=number(300, "The longest delay, jitter and all."),
    jitter=number(0.1, "The share by which a delay may differ either way.", most=1),
    max_attempts=whole(6, "Failures in a row that park the loop: one try, and five more."),
    max_launch_failures=whole(3, "Attempts in a row that did not start that park the loop."),
    max_iterations=table(
        "Iterations before a loop of a type has failed; a type in neither place has 100.",
        _TYPES,
        whole(100, "Iterations before a loop of this type has failed."),
        {"plan": 50, "spec": 30, "phase": 20, "code": 100},
    ),
    max_conflicts=whole(2, "Conflicts while landing that park the loop; one with another tip than the last is none."),
    no_progress=whole(3, "So often the same answer to the same work, and the loop has failed."),
    same_answer=whole(
        10, "So many equal answers in a row, whatever the work, and twice as many without any words; null is no limit."
    )._replace(null=True),
)

_HOOKS = block(
    "Commands beside the work. The first three are steps of an attempt: they run in the loop's folder with its "
    "variables, are given nothing on standard input, and may take timeouts.check_secs. The others are told of an "
    "event, which is JSON on their standard input; they run in the workspace and change nothing, whatever comes of it.",
    post_create=command("In a new worktree, after worktrees.setup; if it fails the attempt does not start."),
    pre_run=command("Before the command of each attempt; if it fails the attempt does not start."),
    post_run=command("After the command of each attempt, before its work is committed."),
    on_complete=command("When a loop is complete."),
    on_park=command("When a loop is parked."),
    on_settle=command("When the workspace has settled, once for all that has happened since the last time."),
    on_convoy_complete=command("When a convoy has landed."),
    timeout_secs=positive(60, "The longest that a command which is told of an event may take."),
    may_decide=flag(False, "True: those that are told of an event may approve, set, adopt, land and accept settings."),
)

_PATHS = "a list of paths inside the workspace"
SCHEMA = block(
    "The settings of a workspace.",
    version=whole(1, "The version of this file's format.", 1, 1, "1, the only version that this loopr reads"),
    artifacts=block(
        "The tree as files.",
        dir=text(
            "specs",
            "The folder of the artifacts. Nothing lands from the folder of a plan in it.",
            PATH_INSIDE,
            "a folder inside the workspace",
        ),
        settle_ms=whole(50, "How long a file must be quiet before it counts.", least=0, most=60_000),
        stamp=flag(False, "True: a loop's status is written into the front matter of its artifact."),
    ),
    worktrees=block(
        "The git worktrees of live loops.",
        dir=text("worktrees", "The folder of the worktrees.", PATH_INSIDE, "a folder inside the workspace"),
        pool=whole(4, "How many clean worktrees are kept for reuse; this is not a limit.", least=0, most=1000),
        max=whole(
            None, "How many loops may have one, never fewer than max_loops; null: 4 more than that, or no limit.",
        ),
        min_free_gb=number(2, "Nothing is started while less disk than this is free.", most=_MAX_MB),
        include=Key("text", "The file that lists the ignored files to copy into a worktree; null copies none.",
                    ".worktreeinclude", null=True, pattern=PATH_INSIDE, says="a path inside the workspace"),
        setup=command("Runs once in each worktree before its first attempt."),
        cache=block(
            "What `setup` makes, kept and copied into the next worktree, where `setup` does not run then.",
            key=texts("The committed files that `setup` goes by: where one is another it runs.", _PATHS, PATH_INSIDE),
            paths=texts("All that `setup` makes; none is no cache.", _PATHS, PATH_INSIDE),
        ),
    ),
    git=block(
        "Names in git.",
        base=text(None, "The branch that plans start from and land on; null is the branch that is checked out."),
        branch_prefix=text("loopr/", "What loopr's branches begin with.", REF_PREFIX, 'a prefix that ends with "/"'),
    ),
    land=block(
        "How a plan's work comes home.",
        mode=choice("By a person's `land`, or as soon as the plan is done.", "manual", "auto"),
        history=choice("One commit per loop, or with the command's own commits as second parent.", "squash", "merge"),
        check=command("Judges the merged tree before it lands; null and `none` are no check."),
    ),
    merge=block(
        "Files that several loops change at once.",
        union=texts("Files of which a merge keeps the lines of both sides, such as a changelog; as in .gitattributes.",
                    "a list of patterns", _UNION),
        turn_secs=positive(3600, "The longest that a loop which mends a conflict holds up landings in its files."),
    ),
    plan_base=choice("When a plan that is started takes over what its base has got: where a loop has other inputs "
                     "there, or always.", "inputs", "follow"),
    commit=block(
        "What the engine commits, and how its commits and merges are worded.",
        max_file_mb=positive(50, "A larger file is refused.", most=_MAX_MB),
        message=template(USUAL, "The message: its first line is the subject, the rest the body; trailers follow."),
        signoff=flag(False, "True: a Signed-off-by of whoever commits, as git names them."),
        author=text(None, "Whose work it is called; null is whoever commits.", AUTHOR, "NAME <MAIL>"),
        trailers=trailers("Lines that end each message, after those of loopr's own."),
    ),
    limits=block("Bounds.", loops_per_plan=whole(10_000, "How many loops a plan may hold.", most=1_000_000)),
    types=table("The ladder of types.", _TYPES, _TYPE,
                {"plan": {"child": "spec"}, "spec": {"child": "phase"}, "phase": {"child": "code"}, "code": {}}),
    agents=table("Agent presets of your own, and what is changed in others; `agents/NAME.yml` holds the same.", AGENTS,
                 PRESET),
    scheduler=_SCHEDULER,
    concurrency=_CONCURRENCY,
    resources=table(
        "What the machine has so many of, such as a simulator or a test database, by names of your own.",
        _RESOURCES,
        whole(None, "How many loops, or shares of it, may hold it at once; null is none.", most=MAX_OFFERED),
    ),
    dispatch=block(
        "How launches are paced.",
        batch_size=whole(0, "Launches a round; 0 is no limit.", least=0),
        spawn_delay_secs=number(0, "The pause between two launches."),
    ),
    queue=block(
        "When the queue is too long.",
        soft_limit=whole(None, "Above this a warning is shown; null warns once new plans are deferred."),
        hard_limit=whole(None, "From this on a new plan is deferred; null is twice the soft limit."),
    ),
    retry=_RETRY,
    lease=block("The right to make one attempt.", ttl_secs=positive(300, "How long a pull worker may be silent.")),
    timeouts=_timeouts(inherited=False),
    lanes=table("Provider accounts, whose limits are shared.", LANES, _LANE, {"default": {}},
                ramp=flag(True, "After a rest a lane starts with one loop and doubles.")),
    fair_share=block(
        "How use is measured.",
        window_hours=positive(24, "The window over which use and budgets are counted."),
        tokens_per_second=positive(50, "What a second counts in the shares where tokens are not reported."),
    ),
    projects=table("Who pays.", _PROJECTS, _PROJECT, {"default": {}}),
    budget=_budget("the workspace, within fair_share.window_hours,"),
    executor=block("Where attempts run.", kind=choice("On this machine.", "local")),
    hooks=_HOOKS,
    notify=texts(
        "Who is told what needs a person: http and https get a POST with JSON, other URLs are left to apprise.",
        "a list of URLs", r"[A-Za-z][A-Za-z0-9+.-]*://\S+", secret=True,
    ),
    notify_on=texts(
        "What the addresses of notify are told of.",
        f"a list of {', '.join(OCCASIONS)}", "|".join(OCCASIONS), OCCASIONS,
    ),
    logs=block(
        "What is kept of attempts.",
        keep_days=number(30, "How long run folders of loops that are over are kept."),
        keep_attempts=whole(100, "How many attempts of a loop keep their run folder while it goes on."),
        max_mb_per_attempt=positive(64, "How much output of an attempt is kept; the middle is cut.", most=_MAX_MB),
    ),
)  # fmt: skip


def find(path: str) -> Key | None:
    """Return the key that a dotted path names, or None."""
    key: Key | None = SCHEMA
    for part in path.split("."):
        key = key.child(part) if key else None
    return key
