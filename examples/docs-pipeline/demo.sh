#!/bin/sh
# A book is built and checked, in parallel where it can be and in order where it must be.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr docs-pipeline.XXXXXX")
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

commit() {
    message=$1
    shift
    git add -- "$@"
    git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message "$message"
}

git init --quiet --initial-branch main .
cp -R -- "$here/plan.md" "$here/loopr.yml" "$here/chapters" "$here/tools" .
commit 'A book about walking' .

say 'A repository with three chapters, and a plan of what is to be made of them:'
run cat plan.md loopr.yml

say 'Drive it. The chapters do not wait for each other, all else waits for the chapters:'
run loopr start plan.md
run loopr tree

say 'The site is on the branch of the plan:'
run git ls-tree -r --name-only loopr/walking site
say 'Three loops took turns to write this, in the order of the plan:'
run git grep -h '^Chapter' loopr/walking -- site/book.txt

say 'Another chapter is written, and one of its links leads nowhere:'
printf '# Lost property\n\nLook [here](1-setting-out.md#what-to-forget).\n' > chapters/4-lost-property.md
cp -- "$here/errata.md" .
commit 'One more chapter' chapters errata.md
run loopr start errata.md || echo "(exit code $?)"

say 'Its page has not landed, and says why:'
run loopr why 4-lost-property
run loopr logs --check 4-lost-property
run git ls-tree -r --name-only loopr/errata site
