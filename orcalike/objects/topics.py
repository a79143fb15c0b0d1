"""Publish and subscribe: what is published, each subscriber receives in the same order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.steps import Method, Steps, ask
from orcalike.transport.wording import counted

T = TypeVar("T")


@orca.shared
class Topic(Generic[T]):
    """A stream of messages, of which the last `keep` are kept for subscribers that come late, or are slow.

    To publish is a write; to receive sends nothing, however many subscribe.
    """

    def __init__(self, keep: int = 1024) -> None:
        if keep < 1:
            raise ValueError("a topic keeps one message at the least")
        self._keep = keep
        self._messages: list[T] = []
        self._first = 0
        """The number of the first message that is there still."""
        self._closed = False

    @orca.write
    def publish(self, message: T, /) -> int:
        """Publish a message, and return its number; raises ValueError if the topic is closed."""
        if self._closed:
            raise ValueError("publish to a closed topic")
        self._messages.append(message)
        if len(self._messages) >= 2 * self._keep:
            dropped = len(self._messages) - self._keep
            del self._messages[:dropped]
            self._first += dropped
        return self._first + len(self._messages) - 1

    @orca.write
    def close(self) -> None:
        """No more is published: subscriptions end when they have received what there is."""
        self._closed = True

    @orca.read
    def __len__(self) -> int:
        """How many messages were published."""
        return self._first + len(self._messages)

    def _oldest(self) -> int:
        return max(self._first, self._first + len(self._messages) - self._keep)

    @orca.read
    def _receive(self, number: int) -> tuple[int, list[T]]:
        """Wait for the message of a number: the number of the first from it on, and all of them."""
        start = max(number, self._oldest())
        return start, self._messages[start - self._first :]

    @_receive.when
    def _(self, number: int) -> bool:
        return self._closed or number < self._first + len(self._messages)

    @orca.read
    def _bounds(self) -> tuple[int, int]:
        return self._oldest(), self._first + len(self._messages)

    @orca.local
    def subscribe(self, *, late: bool = True) -> Subscription[T]:
        """Receive messages: those that are kept first, unless `late` is false."""
        oldest, end = self._bounds()
        return Subscription(self, oldest if late else end)

    def __repr__(self) -> str:
        state = "closed, " if self._closed else ""
        return f"<Topic: {state}{counted(self._first + len(self._messages), 'message')}>"


class Subscription(Generic[T]):
    """The messages of a topic, as one subscriber receives them: iterate, `for` or `async for`.

    For one thread or task at a time.
    """

    def __init__(self, topic: Topic[T], number: int) -> None:
        self._topic = topic
        self._number = number
        self._ready: deque[T] = deque()
        self.missed = 0
        """How many messages were gone before this subscriber came to them."""

    @Method
    def _next(self) -> Steps[bool]:
        """Have messages ready: whether there are any to come."""
        if not self._ready:
            start, messages = yield from ask(self._topic._receive, self._number)
            self.missed += start - self._number
            self._number = start + len(messages)
            self._ready.extend(messages)
        return bool(self._ready)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._next():
            raise StopIteration
        return self._ready.popleft()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if not await self._next.aio():
            raise StopAsyncIteration
        return self._ready.popleft()
