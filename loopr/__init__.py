"""loopr drives a tree of work over files: each loop runs a command again and again until a check says yes."""

__version__ = "0.1.0"
