"""A double-ended queue that all members share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, MutableSequence
from operator import index as index_of
from typing import SupportsIndex, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.sending import sends
from orcalike.objects.sequences import Sequence

T = TypeVar("T")


@orca.shared
class Deque(Sequence[T]):
    """A deque of at most `maxlen` items. What is made of it is a plain deque."""

    def __init__(self, values: Iterable[T] = (), maxlen: int | None = None) -> None:
        self._items: deque[T] = deque(values, maxlen)
        self._version = 0

    @orca.local
    def snapshot(self) -> tuple[list[T], int | None, int]:
        """The state for a joiner."""
        return list(self._items), self._items.maxlen, self._version

    @classmethod
    def restore(cls, state: tuple[list[T], int | None, int]) -> Deque[T]:
        """From what `snapshot` gave."""
        values, maxlen, version = state
        made = cls(values, maxlen)
        made._version = version
        return made

    @property
    @orca.read
    def maxlen(self) -> int | None:
        """How many items it holds at the most; None for any number."""
        return self._items.maxlen

    @orca.read
    def _plain(self) -> deque[T]:
        return self._items.copy()

    @orca.read
    def __getitem__(self, index: int, /) -> T:
        return self._items[index]

    @orca.write
    def __setitem__(self, index: int, value: T, /) -> None:
        self._items[index] = value

    @orca.write
    def __delitem__(self, index: int, /) -> None:
        del self._items[index]

    @orca.write
    def appendleft(self, value: T, /) -> None:
        """Add an item at the front."""
        self._items.appendleft(value)

    @orca.write
    def pop(self) -> T:
        """Take out the last item, and return it; raises IndexError."""
        return self._items.pop()

    @orca.write
    def popleft(self) -> T:
        """Take out the first item, and return it; raises IndexError."""
        return self._items.popleft()

    @orca.write
    def _rotate(self, steps: int) -> None:
        self._items.rotate(steps)

    @sends(_rotate)
    def rotate(self, steps: SupportsIndex = 1, /) -> tuple[int]:
        """Move that many items from the end to the front."""
        return (index_of(steps),)

    @orca.write
    def _extendleft(self, values: list[T]) -> None:
        self._items.extendleft(values)

    @sends(_extendleft)
    def extendleft(self, values: Iterable[T], /) -> tuple[list[T]]:
        """Add items at the front, one after the other, in one write."""
        return (list(values),)

    def __repr__(self) -> str:
        return repr(self._items)


MutableSequence.register(Deque)
