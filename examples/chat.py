"""A chat: the first process makes the room, the others join it, and the room outlives them.

PYTHONHASHSEED=0 python examples/chat.py /tmp/room ada
"""

import asyncio
import sys

import orcalike as orca
from orcalike.objects import Topic


async def listen(room: Topic[str]) -> None:
    async for line in room.subscribe():  # begins with what was said before
        print(line, flush=True)


async def main(place: str, name: str) -> None:
    async with orca.join(at=f"unix:{place}") as group:
        room = await group.share.aio(Topic[str], "room")
        listening = asyncio.create_task(listen(room))
        await room.publish.aio(f"* {name} is here")
        while line := await asyncio.to_thread(sys.stdin.readline):
            await room.publish.aio(f"{name}: {line.rstrip()}")
        await room.publish.aio(f"* {name} has left")
        listening.cancel()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python chat.py PLACE NAME")
    orca.run(main(*sys.argv[1:]))
