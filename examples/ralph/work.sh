#!/bin/sh
# The worker: it knows nothing but what it was told, and starts afresh each time. What the next try must know is a file.
set -eu
touch lessons
echo "try $LOOPR_ITERATION of at most $LOOPR_MAX_ITERATIONS"

# The feedback is what the check said of the last try. One kind of line in it is a lesson; learn each of them once.
if [ -s "$LOOPR_FEEDBACK_FILE" ]; then
    sed -n 's/^.*say \([A-Za-z]*\) where \([0-9]*\) divides.*$/\2 \1/p' "$LOOPR_FEEDBACK_FILE" >> lessons
    sort -n -u -o lessons lessons
    echo "it has learned:"
    cat lessons
fi

number=1
while [ "$number" -le 15 ]; do
    said=
    while read -r divisor word; do
        [ $((number % divisor)) -ne 0 ] || said=$said$word
    done < lessons
    echo "${said:-$number}"
    number=$((number + 1))
done > answers
