"""File events as hints: where to look again, and when a file has stopped changing.

Knows the kernel's queue, as watchdog reads it, and how things get lost there. Must never know what a file means, nor
take an event for the truth: a hint says "look there and at all below it", and only looking says what is there.

What makes that safe: watchdog's thread puts down what it heard and does nothing else. Whoever asks for hints has new
folders watched first and gets the hint second, so what was written before is found by looking, and what is written
after is heard. Where that cannot be kept up (a full queue, a limit of the kernel), the hint is the whole tree.
"""

from loopr.world.watching.glance import Glance
from loopr.world.watching.settling import Settling
from loopr.world.watching.watch import Watch

__all__ = ["Glance", "Settling", "Watch"]
