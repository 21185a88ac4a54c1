"""Everything that touches git; plain values go in and come out, and nothing here knows why a loop does a thing.

In the order in which a loop meets them: `ground.py` finds the repository and names its places; `branches.py` begins a
plan; `worktrees.py` gives a loop its checkout (`slots.py` remembers which, `reusing.py` hands it on from loop to loop,
`pristine.py` makes one clean by the rules of `rules.py`, `include.py` copies what git ignores), or `plain.py` a folder
without git; `commits.py` commits what an attempt left, past `scanning.py`; `landing.py` builds, lays and lands the tree
(`protection.py` with `named.py`, `merging.py`, `laying.py`); `conflicts.py` lays what does not fit (`records.py`);
`returning.py` gives the checkout back; `home.py` brings a plan to the base branch (`touching.py`); `watch.py` sees what
nobody should have changed; `leftovers.py` says what may go. Whatever needs git goes through the one door of `calls.py`,
under `locks.py`; what is where is known by `refs.py` with `packed.py`, `objects.py` and `checkouts.py`. A git process
costs more than all else, so commits (`making.py`), trees (`trees.py`, `entries.py`) and refs of our own (`own_refs.py`,
`ref_locks.py`) are read and written as git does it, without it.
"""
