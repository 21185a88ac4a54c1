#!/bin/sh
# The command of a code loop: changes files. What it leaves here, loopr commits, checks and lands.
set -eu

task=${LOOPR_LOOP##*/}         # french, german or page
spec=${LOOPR_PARENT%/*}        # phrases/greetings
topic=${spec##*/}
mkdir -p book

# The pocket dictionary is good enough, unless the last try was refused: then the feedback says why.
dictionary=pocket
if [ -s "$LOOPR_FEEDBACK_FILE" ]; then
    echo "refused before, and told:"
    cat "$LOOPR_FEEDBACK_FILE"
    dictionary=complete
fi

if [ "$task" = page ]; then
    # It stands on what its siblings have landed.
    printf '# %s\n\n| English | French | German |\n|--|--|--|\n' "$topic" > "book/$topic.md"
    paste -d '|' "words/$topic" "book/$topic.french" "book/$topic.german" | sed 's/^/| /; s/|\([^ ]\)/ | \1/g; s/$/ |/' \
        >> "book/$topic.md"
else
    while read -r word; do
        sed -n "s/^$word //p" "words/$dictionary.$task" | grep . || echo '?'
    done < "words/$topic" > "book/$topic.$task"
fi
echo "wrote $topic, $task"
