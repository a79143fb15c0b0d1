"""Queues that all members put items into and take items out of."""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator, Iterator
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.ownership import give_slot_back, next_attempt, take_slot
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, in_seconds
from orcalike.runtime.operation import post
from orcalike.transport.wording import counted

T = TypeVar("T")


class ShutDown(getattr(queue, "ShutDown", Exception)):  # type: ignore[misc]
    """The queue was shut down."""


@orca.shared
class Queue(Generic[T]):
    """`queue.Queue`: each item goes to one caller, first in first out.

    `for item in q` takes items until the queue is shut down and empty, and so does `async for`.
    """

    def __init__(self, maxsize: int = 0) -> None:
        self._maxsize = maxsize
        self._items: list[T] = []
        self._first = 0
        """Where the items begin that are still there."""
        self._unfinished = 0
        self._shut = False
        self._emptied = False
        """It was shut down at once: what is put back goes, too."""
        self._taken: dict[int, dict[int, tuple[int, T]]] = {}
        """By a member's incarnation and its slot for calls: the attempt that took last, and what."""

    # What another kind of queue does otherwise.

    def _add(self, item: T) -> None:
        self._items.append(item)

    def _take(self) -> T:
        item = self._items[self._first]
        self._first += 1
        if self._first * 2 > len(self._items):
            del self._items[: self._first]
            self._first = 0
        return item

    def _put_back(self, item: T) -> None:
        """Put an item back where it was taken."""
        if self._first == 0:
            self._items.insert(0, item)
        else:
            self._first -= 1
            self._items[self._first] = item

    # Reads.

    @property
    @orca.read
    def maxsize(self) -> int:
        """How many items it holds at the most; 0 or less for any number."""
        return self._maxsize

    def _size(self) -> int:
        return len(self._items) - self._first

    @orca.read
    def qsize(self) -> int:
        """How many items there are."""
        return self._size()

    @orca.read
    def empty(self) -> bool:
        """Whether there are none."""
        return self._size() == 0

    def _is_full(self) -> bool:
        return 0 < self._maxsize <= self._size()

    @orca.read
    def full(self) -> bool:
        """Whether it holds as many as it may."""
        return self._is_full()

    @property
    @orca.read
    def unfinished_tasks(self) -> int:
        """How many items were put, and are not marked as done."""
        return self._unfinished

    @property
    @orca.read
    def is_shutdown(self) -> bool:
        """Whether it was shut down."""
        return self._shut

    # Writes.

    @orca.write
    def _put(self, item: T) -> None:
        if self._shut:
            raise ShutDown
        self._add(item)
        self._unfinished += 1

    @_put.when
    def _(self, item: T) -> bool:
        return self._shut or not self._is_full()

    @orca.write
    def _try_put(self, item: T) -> bool:
        if self._shut:
            raise ShutDown
        if self._is_full():
            return False
        self._add(item)
        self._unfinished += 1
        return True

    @orca.write
    def _get(self, slot: int, attempt: int) -> T:
        if self._size() == 0:
            raise ShutDown
        return self._take_for(slot, attempt)

    @_get.when
    def _(self, slot: int, attempt: int) -> bool:
        return self._shut or self._size() > 0

    @orca.write
    def _try_get(self, slot: int, attempt: int) -> tuple[bool, Any]:
        if self._size() == 0:
            if self._shut:
                raise ShutDown
            return False, None
        return True, self._take_for(slot, attempt)

    def _take_for(self, slot: int, attempt: int) -> T:
        """Take an item; it is remembered until the caller's next attempt in that slot."""
        item = self._take()
        self._taken.setdefault(orca.caller().incarnation, {})[slot] = attempt, item
        return item

    @orca.write
    def _abandon(self, slot: int, attempt: int) -> None:
        """Undo an attempt to take, if it ran: its caller was interrupted, and has no item."""
        taken = self._taken.get(orca.caller().incarnation, {})
        if slot in taken and taken[slot][0] == attempt:
            _, item = taken.pop(slot)
            if self._emptied:
                self._unfinished -= 1
            else:
                self._put_back(item)

    @Method
    def put(self, item: T, block: bool = True, timeout: Duration | None = None) -> Steps[None]:
        """Put an item; waits for room, for so many seconds. Raises queue.Full and ShutDown."""
        limit = _check(timeout) if block else 0.0
        if limit == 0:
            done = yield from ask(self._try_put, item)
        else:
            done, _ = yield from ask_within(limit, self._put, item)
        if not done:
            raise queue.Full

    @Method
    def get(self, block: bool = True, timeout: Duration | None = None) -> Steps[T]:
        """Take an item; waits for one, for so many seconds. Raises queue.Empty and ShutDown.

        If the caller is interrupted or cancelled before it has the item, the item is put back.
        """
        item: Any
        limit = _check(timeout) if block else 0.0
        slot, attempt = take_slot(), next_attempt()
        try:
            if limit == 0:
                done, item = yield from ask(self._try_get, slot, attempt)
            else:
                done, item = yield from ask_within(limit, self._get, slot, attempt)
        except ShutDown:
            raise
        except BaseException:  # it may have run all the same
            post(self._abandon, slot, attempt)
            raise
        finally:
            give_slot_back(slot)
        if not done:
            raise queue.Empty
        taken: T = item
        return taken

    @Method
    def put_nowait(self, item: T) -> Steps[None]:
        """Put an item if there is room; raises queue.Full."""
        if not (yield from ask(self._try_put, item)):
            raise queue.Full

    @Method
    def get_nowait(self) -> Steps[T]:
        """Take an item if there is one; raises queue.Empty."""
        return (yield from Queue.get.steps(self, block=False))

    @orca.write
    def task_done(self) -> None:
        """Mark an item that was taken as done; raises ValueError."""
        if self._unfinished <= 0:
            raise ValueError("task_done() called too many times")
        self._unfinished -= 1

    @orca.read
    def join(self) -> None:
        """Wait, here, until all items are marked as done."""

    @join.when
    def _(self) -> bool:
        return self._unfinished == 0

    @orca.write
    def shutdown(self, immediate: bool = False) -> None:
        """No more can be put; `get` raises ShutDown when it is empty. `immediate` empties it."""
        self._shut = True
        if immediate:
            self._emptied = True
            self._unfinished -= self._size()
            self._items = []
            self._first = 0

    @orca.local
    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                yield self.get()
            except ShutDown:
                return

    @orca.local
    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            try:
                yield await self.get.aio()
            except ShutDown:
                return

    def member_left(self, member: orca.Member) -> None:
        """What it took, it has."""
        self._taken.pop(member.incarnation, None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {counted(self._size(), 'item')}>"


@orca.shared
class PriorityQueue(Queue[T]):
    """`queue.PriorityQueue`: the smallest item first."""

    def _add(self, item: T) -> None:
        heappush(self._items, item)  # type: ignore[type-var]

    def _put_back(self, item: T) -> None:
        self._add(item)

    def _take(self) -> T:
        return heappop(self._items)  # type: ignore[type-var]


@orca.shared
class LifoQueue(Queue[T]):
    """`queue.LifoQueue`: the item that was put last first."""

    def _take(self) -> T:
        return self._items.pop()

    def _put_back(self, item: T) -> None:
        self._add(item)


def _check(timeout: Duration | None) -> float | None:
    limit = in_seconds(timeout)
    if limit is not None and limit < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return limit
