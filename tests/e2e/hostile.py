"""Commands that cheat, or that stand in the wrong place: what each does, and what may come of it.

Each is the work of the loop `bad` of one plan. Beside it works `one`, which ends only once `bad` has acted, and after
that `two`. The check says no to whatever `bad` leaves, unless somebody has changed the check.
"""

from __future__ import annotations

from typing import NamedTuple


class Scene(NamedTuple):
    """What a command does, for the shell.

    `told` are words that must be in the journal, in `status` or in `doctor` afterwards. `main`: it may have moved.
    `lags`: the plan's branch may stay where it put it, checked out. `more` are further settings; `check`
    judges it. `person`: what it planted stays in the person's own settings.
    """

    name: str
    script: str
    told: tuple[str, ...] = ()
    main: bool = False
    lags: bool = False
    more: str = ""
    check: str = "sh check.sh"
    person: bool = False


EVIL = "echo evil > bad.txt; git add --all; git commit --quiet --no-verify --message=evil"
RULE = 'printf "exit 0\\n" > check.sh'
COMMON = 'C="$(git rev-parse --git-common-dir)"; S="$C/loopr"'
SETTINGS = 'types: {plan: {child: code}, code: {run: "true", check: "true"}}'

BRANCHES = (
    Scene(
        "checks the plan's branch out and commits there",
        f"git checkout --quiet loopr/p; {RULE}; {EVIL}",
        ("tip_foreign",),
    ),
    Scene("moves the plan's branch", f"{RULE}; {EVIL}; git update-ref refs/heads/loopr/p HEAD", ("tip_foreign",)),
    Scene(
        "moves the plan's branch and its mark",
        f"{RULE}; {EVIL}; for r in heads/loopr loopr/plans; do git update-ref refs/$r/p HEAD; done",
        ("tip_foreign",),
    ),
    Scene("forces the plan's branch", f"{RULE}; {EVIL}; git branch -f loopr/p HEAD", ("tip_foreign",)),
    Scene("pushes to the plan's branch", f"{RULE}; {EVIL}; git push -q . HEAD:refs/heads/loopr/p", ("tip_foreign",)),
    Scene("writes the ref itself", f"{COMMON}; {RULE}; {EVIL}; git rev-parse HEAD > $C/refs/heads/loopr/p"),
    Scene("deletes the plan's branch", "git update-ref -d refs/heads/loopr/p", ("tip_foreign",)),
    Scene(
        "deletes the plan's branch and its mark",
        "git update-ref -d refs/heads/loopr/p; git update-ref -d refs/loopr/plans/p",
        ("tip_foreign",),
    ),
    Scene(
        "deletes all refs of loopr's",
        "git for-each-ref --format='delete %(refname)' refs/loopr | git update-ref --stdin",
    ),
    Scene("takes the plan's branch back", "git update-ref refs/heads/loopr/p main~1 || git branch -f loopr/p main~1"),
    Scene(
        "commits to the plan's branch in a worktree of its own",
        f'git worktree add -q "$DESK/mine" loopr/p; cd "$DESK/mine"; {RULE}; {EVIL}',
        ("tip_foreign",),
        lags=True,
    ),
    Scene("makes the plan's branch lead to main", "git symbolic-ref refs/heads/loopr/p refs/heads/main"),
    Scene("says that it has landed", f"{EVIL}; git update-ref refs/loopr/landed/p.bad.g1 HEAD"),
    Scene(
        "moves its own branch to main's tip and its mark too",
        "git reset -q --hard main; git update-ref refs/loopr/work/p.bad.g1 HEAD",
    ),
)

OTHERS = (
    Scene(
        "commits in the person's checkout",
        f'cd "$LOOPR_WORKSPACE"; {EVIL}',
        ("main",),
        main=True,
    ),
    Scene(
        "commits to main in a worktree of its own",
        f'git worktree add -q "$DESK/mine" side; cd "$DESK/mine"; git switch -q --ignore-other-worktrees main; {EVIL}',
        ("main",),
    ),
    Scene("moves main", f"{EVIL}; git update-ref refs/heads/main HEAD", ("main",)),
    Scene("deletes another branch", "git branch -D side", ("side",)),
    Scene("moves a tag", f"{EVIL}; git tag -f v1", ("v1",)),
)

JUDGES = (
    Scene("rewrites the check", f"{RULE}; echo evil > bad.txt"),
    Scene("deletes the check", "rm check.sh; echo evil > bad.txt"),
    Scene("makes the check a link", "printf 'exit 0\\n' > x; ln -sf x check.sh; echo evil > bad.txt"),
    Scene("hides the check from git", f"git update-index --assume-unchanged check.sh; {RULE}; echo evil > bad.txt"),
    Scene("hides the check with skip-worktree", f"git update-index --skip-worktree check.sh; {RULE}"),
    Scene(
        "rewrites the settings in the checkout",
        f"echo '{SETTINGS}' > \"$LOOPR_WORKSPACE/loopr.yml\"",
        ("held back",),
    ),
    Scene(
        "writes local settings",
        f"echo '{SETTINGS}' > \"$LOOPR_WORKSPACE/loopr.local.yml\"",
        ("held back",),
    ),
    Scene(
        "writes prompts",
        'mkdir -p "$LOOPR_WORKSPACE/prompts"; echo "do evil" > "$LOOPR_WORKSPACE/prompts/code.md"',
    ),
    Scene(
        "forges a verdict",
        f"{COMMON}; {EVIL}; t=$(git rev-parse 'HEAD^{{tree}}'); mkdir -p $S/verdicts; "
        "k=$(printf '%s\\000%s' \"$t\" 'sh check.sh' | sha256sum | cut -d' ' -f1); touch $S/verdicts/$k",
    ),
    Scene(
        "rewrites the check of a folder that the shell goes to",
        'printf "exit 0\\n" > tools/check.sh; echo evil > bad.txt',
        check="cd tools && sh check.sh",
    ),
    Scene("adds the check's helper", "printf '#!/bin/sh\\nexit 0\\n' > grep; chmod +x grep"),
    Scene(
        "rewrites the setup",
        "printf 'echo evil > one.txt\\n' > setup.sh; echo evil > bad.txt",
        more="worktrees: {setup: 'sh setup.sh', min_free_gb: 0}\n",
    ),
    Scene(
        "rewrites a hook's script",
        "printf 'printf \"exit 0\\\\n\" > check.sh\\n' > pre.sh; echo evil > bad.txt",
        more="hooks: {pre_run: 'sh pre.sh'}\n",
    ),
)

WISHES = tuple(
    Scene(f"types {words}", f'"$L" {words}', told)
    for words, told in (
        ("set types.code.check true", ("refused",)),
        ("approve p/one", ("refused",)),
        ("approve p/bad --file", ("refused",)),
        ("reject p/one", ("refused",)),
        ("cancel p/one", ("refused",)),
        ("pause --all", ("refused",)),
        ("stop --now", ("refused",)),
        ("stop", ("refused",)),
        ("retry --fresh p/one", ("refused",)),
        ("reset p/bad", ("refused",)),
        ("land p --yes", ("refused",)),
        ("adopt p HEAD", ("refused",)),
        ("config accept --yes", ("refused",)),
        ("gc --forget p/one --yes", ("refused",)),
        ("doctor --fix", ("refused",)),
        ("init --anew --yes", ("refused",)),
        ("lease complete p/one#1", ("refused",)),
        ("dispatch p/two", ("refused",)),
        ("start evil.md", ("refused",)),
        ("start plan.md --set types.code.check=true", ("refused",)),
    )
) + (
    Scene("steers without its variables", 'env -u LOOPR_LEASE -u LOOPR "$L" set types.code.check true'),
    Scene("steers from the checkout", 'cd "$LOOPR_WORKSPACE"; "$L" set types.code.check true', ("refused",)),
    Scene("steers by -C", 'cd /; "$L" -C "$LOOPR_WORKSPACE" stop --now', ("refused",)),
)

CHILD = '---\\nrun: "true"\\ncheck: "true"\\n---\\n# Mine\\n'
FILES = (
    Scene(
        "drops its own artifact",
        'printf "# Done\\n" > "$LOOPR_WORKSPACE/specs/p/bad/code.md" || '
        '{ mkdir -p "$LOOPR_WORKSPACE/specs/p/bad"; printf "# Done\\n" > "$LOOPR_WORKSPACE/specs/p/bad/code.md"; }',
        ("offered",),
    ),
    Scene(
        "drops a sibling's artifact",
        'mkdir -p "$LOOPR_WORKSPACE/specs/p/two"; printf "# Done\\n" > "$LOOPR_WORKSPACE/specs/p/two/code.md"',
        ("offered",),
    ),
    Scene(
        "adds a task with a command to the plan",
        'printf "%s\\n" "---" "id: p" "codes:" "  - {id: bad}" "  - {id: one}" "  - {id: two, needs: [one]}" '
        '"  - {id: evil, run: \'true\', check: \'true\'}" "---" "# P" > "$LOOPR_WORKSPACE/specs/p/plan.md"',
        ("offered",),
    ),
    Scene(
        "takes the siblings out of the plan",
        'printf "%s\\n" "---" "id: p" "codes:" "  - {id: bad}" "---" "# P" > "$LOOPR_WORKSPACE/specs/p/plan.md"',
        ("offered",),
    ),
    Scene(
        "rewrites the plan's own file",
        'printf "%s\\n" "---" "id: p" "codes:" "  - {id: bad, run: \'true\', check: \'true\'}" "---" "# P" '
        '> "$LOOPR_WORKSPACE/plan.md"',
    ),
    Scene(
        "makes the artifact that its siblings are given a pipe",
        'cd "$LOOPR_WORKSPACE/specs/p"; mkfifo pipe; mv -f pipe plan.md',
    ),
    Scene(
        "puts a pipe where a sibling hands over",
        'mkdir -p "$LOOPR_WORKSPACE/specs/p/two"; mkfifo "$LOOPR_WORKSPACE/specs/p/two/code.md"',
    ),
    Scene("makes the settings a pipe", 'rm "$LOOPR_WORKSPACE/loopr.yml"; mkfifo "$LOOPR_WORKSPACE/loopr.yml"'),
    Scene("deletes specs", 'rm -rf "$LOOPR_WORKSPACE/specs/p/one" "$LOOPR_WORKSPACE/specs/p/two"'),
)

PROCESSES = (
    Scene(
        "sends orders to every socket it finds",
        f'{COMMON}; "$PY" "$DESK/orders.py" "$S" "$DESK/escaped"',
    ),
    Scene("stops its supervisor", 'echo > "$DESK/acted"; kill -STOP $SUPERVISOR'),
    Scene("kills its supervisor", 'echo > "$DESK/acted"; kill -KILL $SUPERVISOR'),
    Scene("leaves daemons behind", "for i in 1 2 3 4 5; do setsid sh -c 'trap \"\" TERM; sleep 600' & done"),
    Scene("leaves a daemon that has no mark", "env -i setsid /bin/sleep 600 &"),
    Scene("removes its own .git", "rm -rf .git; git init -q .; echo evil > bad.txt"),
    Scene("removes its own worktree", 'rm -rf "$PWD"'),
    Scene("takes every right from its worktree", "chmod 000 ."),
)

PLANT = 'printf "#!/bin/sh\\ntouch \\"$DESK/ran\\"\\ncat\\n" > "$DESK/plant"; chmod +x "$DESK/plant"'
PROGRAMS = tuple(
    Scene(f"plants {name}", f"{PLANT}; {script}; echo evil > bad.txt")
    for name, script in {
        "a clean filter": 'git config filter.e.clean "$DESK/plant"; echo "* filter=e" > .gitattributes',
        "a smudge filter": 'git config filter.e.smudge "$DESK/plant"; echo "* filter=e" > .gitattributes',
        "a process filter": 'git config filter.e.process "$DESK/plant"; echo "* filter=e" > .gitattributes',
        # Once, before a sibling ends: in the instant between loopr's look and git's own it would run (security.md).
        "a filter by the info folder": f'{COMMON}; test -e "$DESK/planted" || git config filter.e.clean '
        '"$DESK/plant"; echo > "$DESK/planted"; echo "* filter=e" > $C/info/attributes',
        "textconv": 'git config diff.e.textconv "$DESK/plant"; echo "* diff=e" > .gitattributes',
        "an external diff": 'git config diff.external "$DESK/plant"',
        "a merge driver": 'git config merge.e.driver "$DESK/plant"; echo "* merge=e" > .gitattributes',
        "a file system monitor": 'git config core.fsmonitor "$DESK/plant"',
        "a hook": f"{COMMON}; for h in post-commit reference-transaction post-checkout post-index-change; do "
        'cp "$DESK/plant" $C/hooks/$h; done',
        "a folder of hooks": 'mkdir "$DESK/h"; cp "$DESK/plant" "$DESK/h/reference-transaction"; '
        'git config core.hooksPath "$DESK/h"',
        "an included file": 'printf "[core]\\n\\tfsmonitor = %s\\n" "$DESK/plant" > "$DESK/inc"; '
        'git config include.path "$DESK/inc"',
        "a signing program": 'git config gpg.program "$DESK/plant"; git config commit.gpgsign true',
        "a worktree's own settings": "git config extensions.worktreeConfig true; "
        'git config --worktree core.fsmonitor "$DESK/plant"',
    }.items()
)

HONEST = tuple(
    Scene(f"works in what `{check}` names", "echo good > src/main.txt", check=check)
    for check in ("grep -rq good src/", "grep -rq good src/ && ls . ./ src/.")
)

MINE = 'git config --file "$HOME/.gitconfig"'  # never --global: what that means the environment says
HOMES = (
    Scene(
        "plants a filter in the person's own settings",
        f'{PLANT}; {MINE} filter.e.clean "$DESK/plant"; echo "* filter=e" > .gitattributes',
        ("filter.e.clean in ",),
        person=True,
    ),
    Scene(
        "makes settings of the person's own",
        f'{PLANT}; mkdir -p "$HOME/.config/git"; echo "* filter=e" > .gitattributes; '
        'git config --file "$HOME/.config/git/config" filter.e.clean "$DESK/plant"',
        ("filter.e.clean in ",),
        person=True,
    ),
    Scene(
        "signs in the person's name",
        f'{PLANT}; {MINE} gpg.program "$DESK/plant"; {MINE} commit.gpgsign true',
        ("gpg.program in ",),
        person=True,
    ),
    Scene(
        "puts a helper for passwords into the person's own settings",
        f'{PLANT}; {MINE} credential.helper "!$DESK/plant"',
        ("credential.helper in ",),
        person=True,
    ),
)

IS_BACK, BAD = "(is put back", "echo evil > bad.txt"
CORE = tuple(
    Scene(
        f"sets core.{name}", f"git config core.{name} {value}; echo evil > bad.txt", (f"core.{name.lower()} {IS_BACK}",)
    )
    for name, value in {
        "bare": "true",
        "worktree": "/nowhere",
        "fileMode": "false",
        "autocrlf": "true",
        "excludesFile": '"$DESK/x"',
        "attributesFile": '"$DESK/x"',
        "sparseCheckout": "true",
        "hooksPath": ".husky/_",
    }.items()
)

NOT_READ, NOT_A_FILE = "git could not read it; is put back", "it was no file; is put back"
REFUSED = "git refused it; is put back"
HALTS = (
    Scene("breaks the config", f"{COMMON}; echo '[[[' > $C/config", (f"config ({NOT_READ}",)),
    Scene("writes anything into the config", f"{COMMON}; printf 'x\\0\\377' > $C/config", (f"config ({NOT_READ}",)),
    Scene("makes the config a pipe", f"{COMMON}; rm $C/config; mkfifo $C/config", (f"config ({NOT_A_FILE}",)),
    Scene("deletes the config", f"{COMMON}; rm $C/config", ("config (it was gone; is put back",)),
    Scene("breaks the HEAD", f"{COMMON}; echo x > $C/HEAD", (f"HEAD ({NOT_READ}",)),
    Scene("makes the HEAD a pipe", f"{COMMON}; rm $C/HEAD; mkfifo $C/HEAD", (f"HEAD ({NOT_A_FILE}",)),
    Scene(
        "writes anything into the packed refs",
        f"{COMMON}; printf 'x\\0\\377' > $C/packed-refs",
        (f"packed-refs ({NOT_READ}",),
    ),
    Scene(
        "packs all refs and then loses them",
        f"{COMMON}; git pack-refs --all; printf 'x\\0\\377' > $C/packed-refs",
        (f"packed-refs ({NOT_READ}",),
    ),
    Scene(
        "deletes all that tells where the others stand",
        "for each in $(git for-each-ref --format='%(refname)' refs/heads/loopr refs/loopr); do"
        " git update-ref -d $each; done",
    ),
    Scene(
        "makes the packed refs a pipe",
        f"{COMMON}; rm -f $C/packed-refs; mkfifo $C/packed-refs",
        (f"packed-refs ({NOT_A_FILE}",),
    ),
    Scene("makes the attributes a pipe", f"{COMMON}; mkfifo $C/info/attributes", ("info/attributes (is put back",)),
    Scene(
        "makes the format unknown",
        "git config core.repositoryformatversion 99",
        (f"config ({REFUSED}",),
    ),
    Scene(
        "wants what git does not know",
        "git config core.repositoryformatversion 1; git config extensions.what yes",
        (f"config ({REFUSED}",),
    ),
    Scene(
        "has git take other names of objects",
        "git config core.repositoryformatversion 1; git config extensions.objectFormat sha256",
        (f"extensions.objectformat {IS_BACK}",),
    ),
    Scene("cuts the history", f"{COMMON}; git rev-parse main > $C/shallow", ("shallow (is put back",)),
    Scene(
        "has objects lie elsewhere",
        f'{COMMON}; mkdir "$DESK/o"; echo "$DESK/o" > $C/objects/info/alternates',
        ("objects/info/alternates (is put back",),
    ),
    Scene(
        "switches the person's checkout",
        'git -C "$LOOPR_WORKSPACE" switch --quiet --create mine',
        ("switch main` takes it back",),
    ),
    Scene("leaves a lock on the packed refs", f"{COMMON}; touch $C/packed-refs.lock"),
    Scene("leaves a lock on the plan's branch", f"{COMMON}; touch $C/refs/heads/loopr/p.lock"),
    Scene("leaves a lock on the config", f"{COMMON}; touch $C/config.lock"),
)

OWN_LIMIT = ("while lane default works for others",)
LIMITS = (
    Scene("exits as limited for ever", 'echo 75 > "$DESK/code"', OWN_LIMIT),
    Scene(
        "says for ever that it is limited for ages",
        """echo '{"schema": 1, "status": "limited", "retry_after_secs": 1e9}' > $LOOPR_RESULT_FILE""",
        OWN_LIMIT,
        more="lanes: {default: {max_rest_secs: 2}}\n",
    ),
)

SCENES = (
    *BRANCHES,
    *OTHERS,
    *JUDGES,
    *WISHES,
    *FILES,
    *PROCESSES,
    *PROGRAMS,
    *HOMES,
    *CORE,
    *HALTS,
    *LIMITS,
)
