#!/bin/sh
# The command of a spec loop: hands over spec.md. Where an agent would think, this one always says the same.
set -eu
topic=${LOOPR_LOOP##*/}

cat > "$LOOPR_OUTPUT" <<SPEC
---
title: The page about $topic
phases:
  - {id: translate, title: Translate $topic}
  - {id: bind, title: Bind the page about $topic, needs: [translate]}
---
# The page about $topic

The words are in words/$topic. First they are translated, one language at a time, then they become one page.
SPEC
