#!/bin/sh
# The command of a phase loop: hands over phase.md, which may also list its tasks under a heading.
set -eu

case ${LOOPR_LOOP##*/} in
translate)
    cat <<PHASE
# Translate

## Tasks

- french: Into French
- german: Into German
PHASE
    ;;
bind)
    cat <<PHASE
# Bind

## Tasks

- page: Put the lists side by side
PHASE
    ;;
esac > "$LOOPR_OUTPUT"
