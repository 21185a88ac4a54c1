"""Everything that touches git; plain values go in and come out, and nothing here knows why a loop does a thing.

In the order in which a loop meets them: `ground.py` finds the repository and names its places; `branches.py` begins a
plan; `worktrees.py` gives a loop its checkout (`slots.py` remembers which, `pristine.py` makes one clean, `include.py`
copies what git ignores); `commits.py` commits what an attempt left, past `scanning.py`; `landing.py` builds, lays and
lands the tree (`protection.py`, `merging.py`, `laying.py`); `conflicts.py` lays what does not fit (`records.py`);
`returning.py` gives the checkout back; `home.py` brings a plan to the base branch (`touching.py`); `watch.py` sees what
nobody should have changed; `leftovers.py` says what may go. All of them go through the one door of `calls.py`, under
`locks.py`, and through `refs.py` and `checkouts.py` for what is where.
"""
