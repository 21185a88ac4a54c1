#!/bin/sh
# A ladder of types of one's own: enqueued, asked what would run, and played in virtual time.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr ladder.XXXXXX")
    trap 'rm -rf -- "$folder"' EXIT
    trap 'exit 1' HUP INT TERM
fi
cd -- "$folder"

say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ loopr %s\n' "$*"
    "$loopr" "$@" 2>&1
}

git init --quiet .
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --allow-empty --message begin
cp -- "$here/loopr.yml" "$here/plan.md" .

say 'A repository with loopr.yml, which has the types, and plan.md, which uses their names:'
cat loopr.yml
run init

say 'The plan is enqueued. A package declares its modules, so it is complete; nothing is run:'
run start --no-run plan.md
run tree

say 'What would run now, three at once, and what holds back the rest?'
run next

say 'Played in virtual time, with modules that take between 5 and 15 minutes, and one attempt in five refused:'
run simulate typed --duration module=5m..15m --failures 20% --seed 7
