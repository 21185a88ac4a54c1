#!/bin/sh
# One loop: the same command again and again, afresh each time but for what the check said of the last try.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr ralph.XXXXXX")
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
cp -- "$here/plan.md" "$here/loopr.yml" "$here/work.sh" "$here/check.sh" .
git add .
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message 'A plan, a worker, and a judge'

say 'A repository with a plan that has one task, a worker who knows nothing, and a judge who knows:'
run cat loopr.yml work.sh

say 'Drive it:'
run loopr start plan.md

say 'It took three tries:'
run loopr why fizz/play

say 'Each no of the check was the feedback of the next try:'
run loopr logs --iteration 1 --check fizz/play
run loopr logs --iteration 2 fizz/play
run loopr logs --iteration 2 --check fizz/play
run loopr logs --iteration 3 fizz/play

say 'What has landed is one commit, which says where it comes from; what each try left is kept behind it:'
run git show --stat --format='%s%n%n%(trailers)' loopr/fizz
run git log --oneline --no-decorate main..refs/loopr/landed/fizz.play.g1
run git show loopr/fizz:lessons
