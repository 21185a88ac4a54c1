#!/bin/sh
# The judge: it tells one thing that is wrong, and how it should be.
wrong() {
    echo "line $1 of answers is wrong: say $2 where $3 divides the number"
    exit 1
}
set -- $(cat answers)
[ $# -eq 15 ] || { echo "answers has $# lines, not 15"; exit 1; }
[ "$3" = Fizz ] || wrong 3 Fizz 3
[ "$5" = Buzz ] || wrong 5 Buzz 5
[ "${15}" = FizzBuzz ] || wrong 15 FizzBuzz 15
