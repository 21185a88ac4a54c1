#!/bin/sh
# A protected main: a plan that is done is pushed, and a pull request is opened for it, by a hook.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr request.XXXXXX")
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
git config user.name demo
git config user.email demo@example.invalid
mkdir tools
cp -- "$here/plan.md" "$here/loopr.yml" .
cp -- "$here/tools/pull-request.sh" tools
git add .
git commit --quiet --message 'A plan, and a hook that opens pull requests'
git init --quiet --bare --initial-branch main .git/host.git
git remote add origin "$PWD/.git/host.git"
git push --quiet --set-upstream origin main
cp -- "$here/tools/protect.sh" .git/host.git/hooks/update
chmod +x .git/host.git/hooks/update
mkdir .git/bin
cp -- "$here/tools/gh" .git/bin/gh # stands in for the real one
chmod +x .git/bin/gh
PATH=$PWD/.git/bin:$PATH

say 'Commits are worded as the remote wants them, and a hook hears when all has settled:'
run cat loopr.yml

say 'Drive a plan:'
run loopr start plan.md

say 'It is pushed, and a pull request waits:'
run git ls-remote --heads origin
run cat .git/host.git/requests
run git log --format='%s%n%n%(trailers)' main..origin/loopr/words

say 'main itself takes no push:'
git push --quiet origin loopr/words:main 2>&1 | grep protected

say 'Once somebody has merged it there, it is home here as well:'
git -C .git/host.git update-ref refs/heads/main loopr/words # as the host does it
run git pull --quiet
run loopr land --yes words
