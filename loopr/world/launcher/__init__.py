"""The launcher: a program of its own that starts commands, watches them, and outlives the engine.

    engine ── socketpair, JSON lines ──► launcher ── socketpair, forked once per slot ──► supervisor ──► command

`words` is what both sides say and write down, `wire` how lines travel, `proc` what the kernel tells about processes.
`reception` and `crew` are the launcher, `supervisor` is what it forks, `attempt` one command from start to outcome,
`claim` the start itself; `clocks`, `stream`, `log`, `family`, `traces` and `slate` are their parts. The engine's side
is `loopr.world.processes`.

Everything here is imported by a process that is forked for each slot: standard library only, and little of it. Needs
Linux: subreapers, pidfds and /proc. On macOS, which has none of the three, there is no launcher yet.
"""
