"""Core decides: pure functions from loops, events and an instant to events, gates and effects.

Knows the words and the rules. Must never know a clock, a disk, a process, chance or a log; whatever happens outside
reaches it as an observation.
"""
