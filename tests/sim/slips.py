"""Files that come while loops are at work, in a simulated world, and the words that a person has on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.model import Loop, Status
from loopr.core.observations import FileSeen
from loopr.core.offering import offered_file
from tests.sim.author import digest_of

if TYPE_CHECKING:
    from tests.sim.world import World


def slip(world: World) -> bool:
    """Let a command write the artifact of any loop, as a whole or spoiled, and what only a person may say in it."""
    names = sorted({loop_id for loop_id, _ in world.hands.alive()})
    loops = [each for each in world.loops() if each.status is not Status.INVALIDATED]
    if not names or not loops:
        return False
    loop, roll = world.chance.choice(loops), world.chance.random()
    old = world.files.get(loop.id)
    if roll < 0.1:
        artifact = None
    elif old is not None and roll < 0.6:
        artifact = world.author.edited(old, loop.type, world.settings, ())
    else:
        entries = world.author.entries(loop.type, world.settings)
        artifact = world.author.artifact(loop.id.rpartition("/")[2], loop.type, entries)
    world.write(loop.id, artifact, tuple(names))
    world.tell(f"a command writes {loop.id} while {', '.join(names)} run")
    world.report(world.file_seen(loop.id))
    return True


def slip_ahead(world: World) -> bool:
    """Let a command write the artifact of a loop that is not declared yet."""
    names = sorted({loop_id for loop_id, _ in world.hands.alive()})
    loops = [each for each in world.loops() if world.author.child_of(each.type) is not None]
    if not names or not loops:
        return False
    parent = world.chance.choice(loops)
    kind, name = str(world.author.child_of(parent.type)), world.chance.choice(("a", "b", "c"))
    loop_id = f"{parent.id}/{name}"
    if loop_id in world.shadow.loops:
        return False
    artifact = world.author.artifact(name, kind, world.author.entries(kind, world.settings))
    world.write(loop_id, artifact, tuple(names))
    world.tell(f"a command writes {loop_id}, which is no loop yet")
    world.report(o.FileKept(world.place(loop_id), digest_of(artifact), tuple(names)))
    return True


def approve_file(world: World) -> bool:
    """Say that an offered file is one's own."""
    loop = _offered(world)
    return loop is not None and take(world, loop.id)


def reject_file(world: World) -> bool:
    """Say that an offered file is not to count, and have what counts put back."""
    loop = _offered(world)
    if loop is None:
        return False
    digest = offered_file(world.shadow, loop)
    done = world.request(f"reject {loop.id} --file", lambda f, now: wishes.reject(f, loop.id, "", _word(world)))
    there = world.files.get(loop.id)
    if done and there is not None and digest_of(there) == digest:
        counts = world.contents.get(world.shadow.loops[loop.id].artifact)
        if counts is not None and digest_of(counts) != digest:
            world.write(loop.id, counts)
        else:
            del world.files[loop.id]
    return done


def take(world: World, loop_id: str) -> bool:
    """Have the file that is offered for a loop taken."""
    return world.request(f"approve {loop_id} --file", lambda f, now: wishes.approve(f, loop_id, _word(world)))


def _offered(world: World) -> Loop | None:
    """Pick a loop with a file that waits for a word."""
    found = [each for each in world.loops() if offered_file(world.shadow, each)]
    return world.chance.choice(found) if found else None


def _word(world: World) -> wishes.Word:
    """Make a person's word; every text is kept."""

    def read(loop: Loop, digest: str) -> FileSeen:
        return FileSeen(loop.id, digest, world.contents[digest], world.place(loop.id))

    return wishes.Word(file=True, by="ann", read=read)
