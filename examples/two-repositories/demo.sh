#!/bin/sh
# Two repositories under one engine: every plan works, and lands, in that of its project.
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
    folder=$(mktemp -d "${TMPDIR:-/tmp}/loopr repositories.XXXXXX")
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

cp -- "$here/service.md" "$here/pages.md" "$here/loopr.yml" "$here/work.sh" .
for name in api web; do
    git init --quiet --initial-branch main "$name"
    echo "grep -q ' of $name\$' *.txt" > "$name/check.sh"
    git -C "$name" add .
    git -C "$name" -c user.name=demo -c user.email=demo@example.invalid commit --quiet --message "This is $name"
done

say 'Two repositories, and a workspace around them that is in none:'
run cat loopr.yml
run loopr config check

say 'Drive a plan in each:'
run loopr start service.md pages.md
run loopr tree

say 'Each has landed in its own repository, on a branch of its plan:'
run git -C api diff --stat main loopr/service
run git -C web diff --stat main loopr/pages

say 'From inside of one, loopr finds its way; home it goes:'
run loopr -C api show service/login
run loopr -C web land --yes pages
run git -C web status --short --branch

say 'Who has used how much? Nothing was reported here, so all of it is estimated from time:'
run loopr usage --by project
