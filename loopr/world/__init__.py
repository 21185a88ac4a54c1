"""World touches: one outside thing per module, each telling what it met in the words of core.

Knows files, SQLite, git and processes. Must never know a rule of core, nor the module next door.
"""
