#!/bin/sh
# A hook for on_settle: pushes the branch of each plan that is done, and opens a pull request for it.
# May be run again: what is pushed, requested or home already is left as it is. git obeys your hooks here.
set -eu
remote=${REMOTE:-origin}
base=${BASE:-main}

git fetch --quiet "$remote"
plans=$(python3 -c '
import json, sys
for plan, stands in json.load(sys.stdin)["data"]["plans"].items():
    if stands == "done":
        print(plan)
')
for plan in $plans; do
    branch=loopr/$plan
    commit=$(git rev-parse --verify --quiet "refs/heads/$branch") || continue # it had nothing to land
    if git merge-base --is-ancestor "$commit" "refs/remotes/$remote/$base"; then
        continue # it is home
    fi
    git push --quiet "$remote" "refs/heads/$branch:refs/heads/$branch"
    if command -v gh > /dev/null; then
        gh pr view "$branch" > /dev/null 2>&1 || gh pr create --head "$branch" --base "$base" --fill
    elif command -v glab > /dev/null; then
        glab mr view "$branch" > /dev/null 2>&1 ||
            glab mr create --source-branch "$branch" --target-branch "$base" --fill --yes
    else
        echo "pushed $branch: open a pull request for it"
    fi
done
