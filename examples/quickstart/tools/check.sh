#!/bin/sh
# The judge: there is a book, and no word of it is without a translation.
[ -d book ] || { echo "there is no folder book"; exit 1; }
missing=$(grep -rnF '?' book) || exit 0
echo "not translated:"
echo "$missing"
exit 1
