#!/bin/sh
# Claude Code drives a plan: it specifies, reviews, divides and writes.
# Usage: demo.sh [--live] [FOLDER]. Without a folder it works in a temporary one, and takes it away again. Without --live it
# starts no agent: it shows what would be done. With it the agents work, on your accounts.
set -eu

loopr=${LOOPR:-loopr}
case $loopr in /*) ;; */*) loopr=$PWD/$loopr ;; esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
unset LOOPR $(git rev-parse --local-env-vars) # a git hook may have called us

live=
if [ "${1:-}" = --live ]; then
    live=yes
    shift
fi
if [ $# -gt 0 ]; then
    mkdir -- "$1"
    folder=$1
else
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr claude-code.XXXXXX")
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
cp -- "$here/plan.md" "$here/loopr.yml" "$here/check.sh" .
git add .
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message 'A plan, who works, and who judges'

say 'The plan, and the settings:'
run cat plan.md loopr.yml
run loopr config check

say 'What comes of the plan before anything has run, and what would go first:'
run loopr start --dry-run plan.md
run loopr start --no-run plan.md
run loopr next

say 'What the first agent is asked, and what the last of the five reviews is:'
run loopr prompt lengths
run loopr prompt lengths --review --pass 5
if [ -z "$live" ]; then
    say 'That is what would be done. demo.sh --live lets the agents do it, on your accounts.'
    exit 0
fi

say 'Are the agents there, and logged in? A minute of proof for each:'
for each in claude; do
    run loopr agent test "$each" --live
done

say 'Drive it until nothing is left to do:'
run loopr start plan.md

say 'What came of it, and what it has cost:'
run loopr tree
run loopr usage
run git log --graph --format='%h %s' "main..loopr/convert"

say 'Bring it home:'
run loopr land --yes convert
run git ls-files bin tests
