"""PySyncObj: a counter on three nodes, replicated by Raft, on loopback.

    python -m orcalike.bench.peers.pysyncobj {batch,single}

Its documentation has two ways to be fast: `batch` for many writes, `single` for the time of one.
The node that measures is not the leader, as two of three are not: orcalike's sequencer, too, is
none of its members. A read is a method call at the node itself.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat

from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf
from pysyncobj.batteries import ReplCounter

from orcalike.bench.peers.answers import MEMBERS, Measures, Team, each, local, serve, until

TIMEOUTS = {"raftMinTimeout": 2.0, "raftMaxTimeout": 3.0, "connectionTimeout": 10.0}
"""Seconds until a node offers to lead: longer than a busy leader is silent."""

LONGER_TIMEOUTS = TIMEOUTS | {"raftMinTimeout": 8.0, "raftMaxTimeout": 9.0}
"""Of the node that measures: another one is sooner."""

ANSWERS_WITHIN = 30.0
"""Seconds; a call that waits longer has lost its callback."""

WINDOW = 10_000
"""Writes of a node that have no answer yet: far fewer than its queue has room for."""


class Node:
    """One of the three."""

    def __init__(self, number: int, addresses: list[str], *, batch: bool) -> None:
        conf = SyncObjConf(
            appendEntriesUseBatch=batch,
            connectionRetryTime=0.1,
            **(TIMEOUTS if number else LONGER_TIMEOUTS),
        )
        others = addresses[:number] + addresses[number + 1 :]
        self.counter = ReplCounter()
        self.group = SyncObj(addresses[number], others, conf, consumers=[self.counter])
        until(self.group.isReady, "PySyncObj")

    def write(self) -> None:
        """And wait until most nodes have it, and this one has applied it."""
        self.counter.add(1, sync=True)

    def burst(self, count: int) -> None:
        """Writes whose callbacks are waited for at the end."""
        room = threading.Semaphore(WINDOW)
        reasons = set()

        def done(_: object, reason: int) -> None:
            reasons.add(reason)
            room.release()

        def wait() -> None:
            if not room.acquire(timeout=ANSWERS_WITHIN):
                raise TimeoutError(f"a write has no answer within {ANSWERS_WITHIN:g} s")

        for _ in repeat(None, count):
            wait()
            self.counter.add(1, callback=done)
        for _ in repeat(None, WINDOW):
            wait()  # all are done when all the room is free
        if reasons != {FAIL_REASON.SUCCESS}:
            raise RuntimeError(f"writes failed, for the reasons {reasons}")


def connect(number: int, addresses: list[str], batch: bool) -> Callable[[int], None]:
    """The bursts of another node."""
    logging.disable()
    return Node(number, addresses, batch=batch).burst


def free_addresses() -> list[str]:
    """Of ports that are free just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(MEMBERS)]
    addresses = [f"127.0.0.1:{it.getsockname()[1]}" for it in sockets]
    for it in sockets:
        it.close()
    return addresses


@contextmanager
def opened(*, batch: bool) -> Iterator[Measures]:
    """All nodes, with a leader that is another one than this."""
    logging.disable()
    addresses = free_addresses()
    team = Team(connect, addresses, batch)
    node = Node(0, addresses, batch=batch)
    team.ready()
    until(lambda: str(node.group.getStatus()["leader"]) in addresses[1:], "another leader")
    yield {
        "wait": lambda count: each(node.write, count),
        "burst": lambda count: team.burst(node.burst, count),
        "read": lambda count: local("it.get()", count, it=node.counter),
    }
    node.group.destroy()


if __name__ == "__main__":
    serve(opened(batch=sys.argv[1] == "batch"))
