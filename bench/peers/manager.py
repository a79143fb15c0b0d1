"""`multiprocessing.Manager`: an object in a server process, called through proxies.

Its fast way is a class of one's own, registered with a proxy that names the methods: one call is
one message there and one back, on a Unix socket. It has no writes that do not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from multiprocessing.managers import BaseManager, BaseProxy
from typing import cast

from orcalike.bench.peers.answers import Measures, Team, each, serve


class Counter:
    """What is shared. Each client has a thread in the server, so it needs a lock."""

    def __init__(self) -> None:
        self.value = 0
        self.lock = threading.Lock()

    def add(self, amount: int) -> None:
        """A write of one integer."""
        with self.lock:
            self.value += amount

    def get(self) -> int:
        """A read."""
        return self.value


class CounterProxy(BaseProxy):
    """How clients call it."""

    _exposed_ = ("add", "get")

    def add(self, amount: int) -> None:
        """There and back."""
        self._callmethod("add", (amount,))

    def get(self) -> int:
        """There and back."""
        return cast(int, self._callmethod("get"))


class Manager(BaseManager):
    """The server."""


Manager.register("counter", Counter, CounterProxy)


def connect(_: int, counter: CounterProxy) -> Callable[[int], None]:
    """The bursts of a member."""

    def burst(count: int) -> None:
        for _ in repeat(None, count):
            counter.add(1)

    counter.get()  # the connection is up
    return burst


@contextmanager
def opened() -> Iterator[Measures]:
    """The server, and all clients."""
    with Manager() as manager:
        counter: CounterProxy = manager.counter()  # type: ignore[attr-defined]
        team = Team(connect, counter)
        mine = connect(0, counter)
        team.ready()
        yield {
            "wait": lambda count: each(lambda: counter.add(1), count),
            "burst": lambda count: team.burst(mine, count),
            "read": lambda count: each(counter.get, count),
        }


if __name__ == "__main__":
    serve(opened())
