#!/bin/sh
# A tree of work that is driven: commands write the files that set the next ones free, until all of it has landed.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr quickstart.XXXXXX")
    trap 'rm -rf -- "$folder"' EXIT
    trap 'exit 1' HUP INT TERM
fi
cd -- "$folder"

say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ %s\n' "$*"
    "$@" 2>&1
}
loopr() { command "$loopr" "$@"; }

git init --quiet --initial-branch main .
cp -R -- "$here/plan.md" "$here/loopr.yml" "$here/tools" "$here/words" .
git add .
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message 'A plan, and who does the work'

say 'A repository with a plan, the settings, and a small script for each level of the tree:'
run cat plan.md loopr.yml
say 'What comes of it before anything has run: two specs, and nobody knows yet what is in them.'
run loopr start --dry-run plan.md

say 'Drive it until nothing is left to do:'
run loopr start plan.md

say 'The tree is the files under specs/. One loop needed a second try:'
run loopr tree

say 'Why? The check said no, and the next try was told what the check had said:'
run loopr why numbers/translate/german
run loopr logs --iteration 1 --check numbers/translate/german
run loopr logs --iteration 2 numbers/translate/german

say 'What has landed is on a branch of its own, one commit for each loop that changed something:'
run git log --graph --format='%h %s' loopr/phrases
run git ls-tree -r --name-only loopr/phrases book
run git show loopr/phrases:book/numbers.md

say 'Your own checkout is as it was, but for specs/:'
run git status --short
run git log --format='%h %s' main

say 'Until you bring it home:'
run loopr land --yes phrases
run ls book
