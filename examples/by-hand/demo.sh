#!/bin/sh
# A small tree of work, done by a person: planned, explained, and played in virtual time.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr by hand.XXXXXX")
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
cp -- "$here/plan.md" .

say 'A repository with one file, plan.md. It becomes a workspace:'
run init

say 'The plan is enqueued. Nothing is run; what the outline declares already is complete:'
run start --no-run plan.md
run tree

say 'A person does the work of tokens/store, and says so by putting its file in its place:'
mkdir -p specs/oauth/tokens/store/code
printf '# Tables and repository\n\nThere is a table for tokens now.\n' | tee specs/oauth/tokens/store/code/code.md
run start --no-run plan.md
run tree

say 'Why does the second spec wait?'
run why oauth/endpoints

say 'If the type code had a command, what would run next?'
run next --set types.code.run=./work.sh

say 'And how long would it all take, if a code loop takes 20 minutes and a spec 10?'
run simulate plan.md --duration code=20m --duration spec=10m
