#!/bin/sh
# The worker of both projects: writes one file, which says for whom it is.
set -eu
echo "$LOOPR_LOOP of $LOOPR_PROJECT" > "${LOOPR_LOOP##*/}.txt"
