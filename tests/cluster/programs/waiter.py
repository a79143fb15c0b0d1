"""Every rank waits for a gate that is never raised: `waiter.py thread|loop|read|barrier`."""

from __future__ import annotations

import asyncio
import os
import sys

from common import tell
from objects import Gate

import orcalike as orca


async def on_loop() -> None:
    async with orca.join() as group:
        gate = await group.share.aio(Gate, "gate")
        await group.barrier.aio()
        tell(rank=group.rank, pid=os.getpid())
        await gate.walk.aio(group.rank, 1)


def in_thread(way: str) -> None:
    with orca.join() as group:
        gate = group.share(Gate, "gate")
        group.barrier()
        tell(rank=group.rank, pid=os.getpid())
        if way == "thread":
            gate.walk(group.rank, 1)
        elif way == "read":
            gate.above(1)
        elif group.rank == 0:
            gate.walk(group.rank, 1)
        else:
            group.barrier()


try:
    if sys.argv[1] == "loop":
        asyncio.run(on_loop())
    else:
        in_thread(sys.argv[1])
finally:
    tell(tidied=True)
