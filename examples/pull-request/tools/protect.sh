#!/bin/sh
# The remote's own rules, as its update hook: main takes no push, and each commit needs a form and a sign-off.
set -eu
case $1 in refs/heads/main) echo 'main is protected: open a pull request' >&2; exit 1 ;; esac
for commit in $(git rev-list "$3" --not --branches); do
    git log -1 --format=%s "$commit" | grep -Eq '^(feat|fix|docs)(\([a-z-]+\))?: .' &&
        git log -1 --format=%B "$commit" | grep -q '^Signed-off-by: .* <.*>$' && continue
    echo "$(git log -1 --format='%h %s' "$commit"): no conventional subject, or no sign-off" >&2
    exit 1
done
