"""The limit of a write that a coroutine waits for: its way on uvloop, without orcalike.

    python bench/echo.py MEMBERS BYTES

The same as `pingpong.c`, from asyncio protocols on uvloop: a server that passes each message to all
its clients, and a first client that counts the round trips that a line of standard input asks for.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from typing import cast

import uvloop

from orcalike.launcher.bootstrap import die_with_parent


class Server(asyncio.Protocol):
    """One connection of the server."""

    def __init__(self, clients: list[asyncio.Transport]) -> None:
        self.clients = clients

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Another client."""
        self.clients.append(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        """Pass it to all."""
        for client in self.clients:
            client.write(data)


class Client(asyncio.Protocol):
    """A client; `answer` is what its coroutine awaits."""

    answer: asyncio.Future[None] | None = None

    def __init__(self, size: int) -> None:
        self.size = size
        self.missing = size

    def data_received(self, data: bytes) -> None:
        """Its message is back when all its bytes are."""
        self.missing -= len(data)
        if self.missing <= 0:
            self.missing += self.size
            if self.answer is not None:
                self.answer.set_result(None)


async def serve(ends: list[socket.socket]) -> None:
    """Be the server, until it is killed."""
    loop = asyncio.get_running_loop()
    clients: list[asyncio.Transport] = []
    for end in ends:
        await loop.create_connection(lambda: Server(clients), sock=end)
    await asyncio.Event().wait()


async def follow(end: socket.socket, size: int) -> None:
    """Be a client that only receives, until it is killed."""
    await asyncio.get_running_loop().create_connection(lambda: Client(size), sock=end)
    await asyncio.Event().wait()


async def measure(end: socket.socket, size: int) -> None:
    """Be the client that counts."""
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(lambda: Client(size), sock=end)
    message = bytes(size)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        count = int(line)
        began = time.monotonic()
        for _ in range(count):
            client.answer = loop.create_future()
            transport.write(message)
            await client.answer
        print((time.monotonic() - began) / count, flush=True)


def start_child() -> bool:
    """Whether this is the child, which ends with its parent."""
    parent = os.getpid()
    if os.fork():
        return False
    die_with_parent(parent)
    return True


def main() -> None:
    """What `invocations.py` starts."""
    members, size = int(sys.argv[1]), int(sys.argv[2])
    pairs = [socket.socketpair() for _ in range(members)]
    if start_child():
        uvloop.run(serve([theirs for _, theirs in pairs]))
    for mine, _ in pairs[1:]:
        if start_child():
            uvloop.run(follow(mine, size))
    uvloop.run(measure(pairs[0][0], size))


if __name__ == "__main__":
    main()
