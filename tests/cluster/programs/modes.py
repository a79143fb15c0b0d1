"""The same work in sync code, in async code, and with threads and coroutines mixed.

`modes.py sync|async|mixed|looped...`: for each, in a group of its own, each member puts items into one queue and
takes as many out.
"""

from __future__ import annotations

import asyncio
import sys
import threading

from common import tell
from objects import Buffer, Log

import orcalike as orca

ITEMS = 150


def plain() -> orca.Group:
    """Threads only."""
    with orca.join("sync") as group:
        log, buffer = group.share(Log, "log"), group.share(Buffer, "buffer", 2)
        me = group.rank
        group.barrier()
        producer = threading.Thread(target=lambda: [buffer.put(me, n) for n in range(ITEMS)])
        producer.start()
        for number in range(ITEMS):
            item = buffer.get(me)
            assert item is not None
            log.add.nowait(item[0], number)
        producer.join()
        group.fence()
        group.barrier()
        report(group, log, buffer)
        group.barrier()
    return group


async def coroutines() -> orca.Group:
    """Coroutines only."""
    async with orca.join("async") as group:
        log = await group.share.aio(Log, "log")
        buffer = await group.share.aio(Buffer, "buffer", 2)
        me = group.rank
        await group.barrier.aio()

        async def produce() -> None:
            for number in range(ITEMS):
                await buffer.put.aio(me, number)

        producer = asyncio.create_task(produce())
        for number in range(ITEMS):
            item = await buffer.get.aio(me)
            assert item is not None
            log.add.nowait(item[0], number)
        await producer
        await group.fence.aio()
        await group.barrier.aio()
        report(group, log, buffer)
        await group.barrier.aio()
    return group


async def mixed() -> orca.Group:
    """The group lives on the event loop; a thread works beside it, and so does an executor."""
    async with orca.join("mixed") as group:
        log = await group.share.aio(Log, "log")
        buffer = await asyncio.to_thread(group.share, Buffer, "buffer", 2)
        me = group.rank
        await asyncio.to_thread(group.barrier)
        producer = threading.Thread(target=lambda: [buffer.put(me, n) for n in range(ITEMS)])
        producer.start()
        for number in range(ITEMS):
            item = await buffer.get.aio(me)
            assert item is not None
            if number % 2:
                await asyncio.to_thread(log.add, item[0], number)
            else:
                await log.add.aio(item[0], number)
        await asyncio.to_thread(producer.join)
        await group.fence.aio()
        await asyncio.to_thread(group.barrier)
        report(group, log, buffer)
        await group.barrier.aio()
    return group


def thread_group_from_loop() -> orca.Group:
    """The group has a thread of its own; an event loop in another thread uses it too."""
    with orca.join("looped") as group:
        log, buffer = group.share(Log, "log"), group.share(Buffer, "buffer", 2)
        me = group.rank
        group.barrier()

        async def produce() -> None:
            for number in range(ITEMS):
                await buffer.put.aio(me, number)

        producer = threading.Thread(target=lambda: asyncio.run(produce()))
        producer.start()
        for number in range(ITEMS):
            item = buffer.get(me)
            assert item is not None
            log.add.nowait(item[0], number)
        producer.join()
        group.fence()
        group.barrier()
        report(group, log, buffer)
        group.barrier()
    return group


def report(group: orca.Group, log: Log, buffer: Buffer) -> None:
    """What all must agree on."""
    tell(
        mode=group.name,
        rank=group.rank,
        members=group.size,
        entries=sum(len(log.numbers(writer)) for writer in log.writers()),
        puts=sorted(item for item in buffer.trace if item[0] == "put"),
        wakes=buffer.fingerprint(),
        log=log.fingerprint(),
        fullest=buffer.fullest(),
    )


for mode in sys.argv[1:]:
    match mode:
        case "sync":
            plain()
        case "async":
            asyncio.run(coroutines())
        case "mixed":
            asyncio.run(mixed())
        case "looped":
            thread_group_from_loop()
