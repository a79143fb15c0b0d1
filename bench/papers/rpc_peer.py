"""The remote procedure call of A53: a server and a client, by `multiprocessing.connection`.

    python bench/papers/rpc_peer.py

Each line of the input, `SIZE COUNT`, asks for so many calls of so many bytes, one after the other;
the answer is the seconds of one.
"""

from __future__ import annotations

import sys
import time
from itertools import repeat
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection


def serve(end: Connection, others: Connection) -> None:
    """Reply to each request, until the client is gone."""
    others.close()
    try:
        while True:
            end.recv_bytes()
            end.send_bytes(b"")
    except EOFError:
        pass


def call(end: Connection, size: int, count: int) -> float:
    """The seconds of one call."""
    data = bytes(size)
    began = time.monotonic()
    for _ in repeat(None, count):
        end.send_bytes(data)
        end.recv_bytes()
    return (time.monotonic() - began) / count


def main() -> None:
    """What `rpc.py` starts."""
    mine, theirs = Pipe()
    Process(target=serve, args=(theirs, mine), daemon=True).start()
    theirs.close()
    for line in sys.stdin:
        size, count = map(int, line.split())
        print(repr(call(mine, size, count)), flush=True)


if __name__ == "__main__":
    main()
