"""Members of a group in shared memory, of which one may stand still: `resting.py PLACE MEMBERS WAY`.

Each tells how many heartbeats it has sent whenever the test says so. When it says "write" all write some, when it says
"wait" the second one, which does not lead, waits for what no member does, by WAY.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

from common import call, called, meet, tell, wait_for
from objects import Log

import orcalike as orca

PLACE, MEMBERS, WAY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
WRITES = 50


@orca.shared
class Door:
    """It is opened by the last one that is there."""

    is_open = False

    @orca.write
    def open(self) -> None:
        """Let those through that wait."""
        self.is_open = True

    @orca.read
    def pass_through(self) -> bool:
        """Wait until it is open."""
        return self.is_open

    @pass_through.when
    def _(self) -> bool:
        return self.is_open


def wait(group: orca.Group, door: Door) -> None:
    """Wait in a thread, or in a coroutine, until it is open; or for all others."""
    if WAY == "thread":
        door.pass_through()
    elif WAY == "coroutine":
        asyncio.run(door.pass_through.aio())
    else:
        asyncio.run(group.barrier.aio())


with orca.join(at=PLACE, size=MEMBERS) as group:
    session = group._session
    log, door = group.share(Log, "log"), group.share(Door, "door")
    group.barrier()
    for place in ("joined", "rests"):
        meet(place, MEMBERS)
        wait_for(lambda: session.stack.beats == (), "no member is watched any more")
    tell(rank=group.rank, sent=session.pump.heartbeat.counts["sent"])
    wait_for(lambda: called("write"), "the word to write")
    for number in range(WRITES):
        log.add(os.getpid(), number)
        time.sleep(0.01)
    tell(wrote=WRITES, sent=session.pump.heartbeat.counts["sent"])
    wait_for(lambda: called("stopped"), "the word that one is stopped")
    for number in range(WRITES):
        log.add(os.getpid(), WRITES + number)
        time.sleep(0.01)
    tell(size=group.size, wrote=WRITES, sent=session.pump.heartbeat.counts["sent"])
    wait_for(lambda: called("wait"), "the word to wait")
    if group.rank == 1:
        threading.Thread(target=wait, args=(group, door), name="waits", daemon=True).start()
    wait_for(lambda: group.size < MEMBERS, "the stopped one is out")
    tell(size=group.size)
    door.open()
    if group.rank == 0 and WAY == "barrier":
        group.barrier()
    wait_for(
        lambda: not any(each.name == "waits" for each in threading.enumerate()), "it is through"
    )
    wait_for(lambda: session.stack.beats == (), "no member is watched any more")
    tell(rests=True)
    call(f"end.{group.rank}")
    wait_for(lambda: all(called(f"end.{rank}") for rank in range(MEMBERS - 1)), "the others")
