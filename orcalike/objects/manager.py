"""A drop-in for `multiprocessing.Manager`, on shared objects instead of a server process."""

from __future__ import annotations

import array
import itertools
import secrets
from collections.abc import Iterable
from typing import Any, Self

from orcalike.objects import manager_groups, proxies


class Manager:
    """Makes objects that processes share through proxies: `with orcalike.Manager() as manager:`.

    It makes what `multiprocessing.Manager()` makes, but `Pool`, and its proxies have the methods of
    those; there is no server, and so none of `start`, `connect`, `join`, `register`, `get_server`. Each
    process that uses a proxy has a replica of all objects: reads send nothing, and processes that
    outlive the manager go on.
    Children join through the process that made it, so it must not be shut down before they have.

    What goes into a proxy must be able to travel: plain values, proxies, and instances of classes
    that `orcalike.register` has seen. A lock is released by the process that acquired it, or when
    that ends.
    """

    def __init__(self) -> None:
        self._address = manager_groups.make_group()
        self._names = (f"{secrets.token_hex(4)} {number}" for number in itertools.count())

    @property
    def address(self) -> str:
        """Where processes join it."""
        return self._address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """Leave the objects to those that use them already: no other process can join."""
        manager_groups.leave_group(self._address)

    def _share(self, kind: str, *args: Any) -> tuple[str, str]:
        """A new object: what its proxy is made of."""
        name = next(self._names)
        proxies.share(self._address, kind, name, *args)
        return self._address, name

    def list(self, values: Iterable[Any] = (), /) -> proxies.ListProxy:
        """A list."""
        return proxies.ListProxy(*self._share("list", [*values]))

    def dict(self, other: Any = (), /, **named: Any) -> proxies.DictProxy:
        """A dict."""
        return proxies.DictProxy(*self._share("dict", dict(other, **named)))

    def Namespace(self, /, **attributes: Any) -> proxies.NamespaceProxy:
        """An object with attributes."""
        return proxies.NamespaceProxy(*self._share("Namespace", attributes))

    def Lock(self) -> proxies.LockProxy:
        """A lock."""
        return proxies.LockProxy(*self._share("Lock"))

    def RLock(self) -> proxies.RLockProxy:
        """A lock that the thread which holds it may acquire again."""
        return proxies.RLockProxy(*self._share("RLock"))

    def Condition(
        self, lock: proxies.LockProxy | proxies.RLockProxy | None = None
    ) -> proxies.ConditionProxy:
        """A condition, with a lock of this manager or one of its own."""
        return proxies.ConditionProxy(*self._share("Condition", *(() if lock is None else (lock,))))

    def Semaphore(self, value: int = 1) -> proxies.SemaphoreProxy:
        """A semaphore."""
        return proxies.SemaphoreProxy(*self._share("Semaphore", value))

    def BoundedSemaphore(self, value: int = 1) -> proxies.BoundedSemaphoreProxy:
        """A semaphore that is released no more often than it was acquired."""
        return proxies.BoundedSemaphoreProxy(*self._share("BoundedSemaphore", value))

    def Event(self) -> proxies.EventProxy:
        """An event."""
        return proxies.EventProxy(*self._share("Event"))

    def Barrier(
        self, parties: int, action: None = None, timeout: float | None = None
    ) -> proxies.BarrierProxy:
        """A barrier; no action can be given to it."""
        if action is not None:
            raise TypeError(
                "this barrier takes no action: call it if `wait` has returned 0, and wait again"
            )
        return proxies.BarrierProxy(*self._share("Barrier", parties, timeout))

    def Queue(self, maxsize: int = 0) -> proxies.QueueProxy:
        """A queue."""
        return proxies.QueueProxy(*self._share("Queue", maxsize))

    def JoinableQueue(self, maxsize: int = 0) -> proxies.QueueProxy:
        """A queue, which has `task_done` and `join` as any."""
        return self.Queue(maxsize)

    def Value(self, typecode: str, value: Any, lock: bool = True) -> proxies.ValueProxy:
        """A value; the type code is for its repr, as in `multiprocessing`."""
        return proxies.ValueProxy(*self._share("Value", value), typecode)

    def Array(self, typecode: str, values: Iterable[Any], lock: bool = True) -> proxies.ArrayProxy:
        """An array of numbers."""
        numbers = array.array(typecode, values).tolist()
        return proxies.ArrayProxy(*self._share("Array", numbers), typecode)
