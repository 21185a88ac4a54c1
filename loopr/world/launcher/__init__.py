"""The launcher: a program of its own that starts commands, watches them, and outlives the engine.

    engine ── unix socket, JSON lines ──► launcher ── socketpair, forked once per slot ──► supervisor ──► command

`words` is what both sides say and write down, `wire` how lines travel, `proc` what the kernel tells about processes.
`slots` is the launcher, `supervisor` what it forks, `attempt` one command from its spawn to its outcome, `claim` the
spawn itself, `clocks`, `log`, `family` and `traces` its parts. The engine's side is `loopr.world.processes`.

Everything here is imported by a process that is forked for each slot: standard library only, and little of it. Needs
Linux: subreapers, pidfds and /proc. On macOS, which has none of the three, there is no launcher yet.
"""
