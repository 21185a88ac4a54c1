"""The engine that runs: it holds the lock, watches, starts what may start, and brings home what is done.

In the order in which things happen: `driver.py` is the loop; `looking.py` finds what has changed among the artifacts;
`effects.py` says which act does what is owed, and `jobs.py` runs acts: `attempting.py` (`materials.py` writes what a
command is given, `outcomes.py` says what its end means), `judging.py`, `landing.py`, `ending.py`. `acts.py` has the
words they share, `kit.py` all that they work with; `beside.py` and `upkeep.py` are what goes on beside the work.
"""
