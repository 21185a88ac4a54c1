#!/bin/sh
# Two projects in one repository: who gets the next slot is a matter of their weights.
# Usage: demo.sh [FOLDER]. Without a folder it works in a temporary one, and takes it away again.
set -eu

loopr=${LOOPR:-loopr}
case $loopr in /*) ;; */*) loopr=$PWD/$loopr ;; esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
unset LOOPR $(git rev-parse --local-env-vars) # a git hook may have called us

if [ $# -gt 0 ]; then
    mkdir -- "$1"
    folder=$1
else
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr monorepo.XXXXXX")
    trap 'loopr stop --now >/dev/null 2>&1 || :; patiently ended || :; rm -rf -- "$folder"' EXIT
    trap 'exit 1' HUP INT TERM
fi
cd -- "$folder"

say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ %s\n' "$*"
    "$@" 2>&1
}
loopr() { command "$loopr" "$@"; }
patiently() {
    tries=100
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}
spent() { loopr why web/news | grep -q 'budget .* is reached' && loopr status | grep -q '^slots *0 of'; }
ended() { loopr status | grep -q '^engine *not running'; }

git init --quiet --initial-branch main .
cp -- "$here/api.md" "$here/web.md" "$here/loopr.yml" "$here/work.sh" "$here/check.sh" .
git add .
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message 'Two plans'

say 'A repository with a plan for each of two projects, and their shares in the settings:'
run cat loopr.yml api.md web.md

say 'Enqueue both. Who would go first? Of four slots, three are for api, one is for web:'
run loopr start --no-run api.md web.md
run loopr next --set budget.tokens=null

say 'Drive both, with an engine in the background:'
run loopr start --detach api.md web.md

say 'Some moments later the budget is spent, and the engine waits for more. Who has used it?'
patiently spent
run loopr why web/news
run loopr status

say 'With more to spend it goes on by itself:'
run loopr set budget.tokens 100000
run loopr wait --timeout 1m api web
patiently ended
run loopr tree

say 'Each plan has landed on a branch of its own:'
run git diff --stat main loopr/api
run git diff --stat main loopr/web
