# Made workspace.tgz with the loopr of commit 4bdb75c: `sh make.sh LOOPR`, then `tar czf workspace.tgz repo`.
# In it is landed, failed, parked, paused, waiting and declared work, and a convoy.
set -eu
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
L="$1"; mkdir repo; cd repo; git init -q -b main .
cat > loopr.yml <<'Y'
version: 1
worktrees: {min_free_gb: 0}
types:
  plan: {child: phase}
  phase: {run: './work.sh', child: code}
  code: {run: './work.sh', check: './check.sh', max_iterations: 2}
retry: {base_secs: 0.01}
Y
cat > work.sh <<'Y'
#!/bin/sh
name=$(basename "$LOOPR_LOOP")
case "$name" in
  design) printf -- '---\ncodes: [{id: one}, {id: two}]\n---\n# Design\n' > "$LOOPR_OUTPUT" ;;
  fails) echo no > "$name"; exit 3 ;;
  parks) exit 78 ;;
esac
echo "$LOOPR_LOOP" > "$name"
Y
cat > check.sh <<'Y'
#!/bin/sh
test -s "$(basename "$LOOPR_LOOP")"
Y
chmod +x work.sh check.sh
cat > old.md <<'Y'
---
id: old
title: A plan from before
phases:
  - {id: design}
  - id: given
    codes: [{id: lands}, {id: fails}, {id: parks}, {id: waits}, {id: after, needs: [waits]}]
---
# A plan from before
Y
cat > done.md <<'Y'
---
id: done
phases: [{id: all, codes: [{id: a}, {id: b}]}]
---
# Done
Y
git add -A; git commit -q -m first
$L start done.md || true
sed -i 's/max_iterations: 2/max_iterations: 2, approve: true/' loopr.yml
git commit -qam approve
$L start old.md || true
$L approve old/given/lands
$L run || true
$L pause old/given/fails
$L convoy create night old done || true
$L tree; $L status
rm -f .git/loopr/launcher.sock
