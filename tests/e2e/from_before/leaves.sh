# Made leaves.tgz with the loopr of commit 4bdb75c: `sh leaves.sh LOOPR`, then `tar czf leaves.tgz repo`.
# In it a phase has handed over its tasks, and another has failed, since every phase had to.
set -eu
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
L="$1"; mkdir repo; cd repo; git init -q -b main .
cat > loopr.yml <<'Y'
version: 1
worktrees: {min_free_gb: 0}
types:
  code: {run: 'basename "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"', check: 'test -s "$(basename "$LOOPR_LOOP")"'}
retry: {base_secs: 0.01}
Y
cat > old.md <<'Y'
---
id: old
specs:
  - id: s
    phases:
      - {id: handed, run: 'printf -- "---\ntasks: [{id: a}, {id: b}]\n---\n# Handed\n" > "$LOOPR_OUTPUT"'}
      - {id: silent, run: 'echo silent > silent', check: 'test -s silent'}
---
# A plan from before
Y
git add -A; git commit -q -m first
$L start old.md || true
$L tree
rm -f .git/loopr/launcher.sock
