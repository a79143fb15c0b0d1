"""What `List` and `Deque` have in common: the protocol of a mutable sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from operator import index as index_of
from typing import Any, Generic, Self, SupportsIndex, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.plain import Container, plain
from orcalike.objects.sending import sends

T = TypeVar("T")


class Sequence(Container, Generic[T]):
    """A sequence in `_items`. Iteration is over what it holds at one place in the order."""

    _items: MutableSequence[T]
    _version: int
    """How often it may have changed."""

    # Reads.

    @orca.read
    def __len__(self) -> int:
        return len(self._items)

    @orca.read
    def __contains__(self, value: object, /) -> bool:
        return value in self._items

    @orca.read
    def __iter__(self) -> Iterator[T]:
        return iter(list(self._items))

    @orca.read
    def __reversed__(self) -> Iterator[T]:
        return reversed(list(self._items))

    @orca.read
    def count(self, value: T, /) -> int:
        """How many items equal a value."""
        return self._items.count(value)

    @orca.read
    def index(self, value: T, start: int = 0, stop: int = 9223372036854775807, /) -> int:
        """Where the first item is that equals a value; raises ValueError."""
        return self._items.index(value, start, stop)

    # Writes.

    @orca.write
    def append(self, value: T, /) -> None:
        """Add an item at the end."""
        self._version += 1
        self._items.append(value)

    @orca.write
    def _insert(self, index: int, value: T) -> None:
        self._version += 1
        self._items.insert(index, value)

    @sends(_insert)
    def insert(self, index: SupportsIndex, value: T, /) -> tuple[int, T]:
        """Put an item before the one at an index."""
        return index_of(index), value

    @orca.write
    def remove(self, value: T, /) -> None:
        """Take out the first item that equals a value; raises ValueError."""
        self._version += 1
        self._items.remove(value)

    @orca.write
    def clear(self) -> None:
        """Take out all items."""
        self._version += 1
        self._items.clear()

    @orca.write
    def reverse(self) -> None:
        """Turn it round."""
        self._version += 1
        self._items.reverse()

    @orca.write
    def _extend(self, values: list[T]) -> None:
        self._version += 1
        self._items.extend(values)

    @orca.write
    def _repeat(self, times: int) -> None:
        self._version += 1
        self._items *= times  # type: ignore[operator, assignment]  # a list's, or a deque's

    @sends(_extend)
    def extend(self, values: Iterable[T], /) -> tuple[list[T]]:
        """Add items at the end, in one write."""
        return (list(values),)

    @orca.local
    def __iadd__(self, values: Iterable[T], /) -> Self:
        self.extend(values)
        return self

    @orca.local
    def __imul__(self, times: SupportsIndex, /) -> Self:
        self._repeat(index_of(times))
        return self

    # What makes a plain one.

    @orca.local
    def copy(self) -> Any:
        """A plain copy."""
        return self._plain()

    @orca.local
    def __copy__(self) -> Any:
        return self._plain()

    @orca.local
    def __add__(self, other: Any, /) -> Any:
        return self._plain() + plain(other)

    @orca.local
    def __radd__(self, other: Any, /) -> Any:
        return other + self._plain()

    @orca.local
    def __mul__(self, times: int, /) -> Any:
        return self._plain() * times

    @orca.local
    def __rmul__(self, times: int, /) -> Any:
        return times * self._plain()

    # Comparisons, which are those of the plain ones.

    __hash__ = None  # type: ignore[assignment]

    @orca.local
    def __eq__(self, other: object, /) -> bool:
        return bool(self._plain() == plain(other))

    @orca.local
    def __lt__(self, other: Any, /) -> bool:
        return bool(self._plain() < plain(other))

    @orca.local
    def __le__(self, other: Any, /) -> bool:
        return bool(self._plain() <= plain(other))

    @orca.local
    def __gt__(self, other: Any, /) -> bool:
        return bool(self._plain() > plain(other))

    @orca.local
    def __ge__(self, other: Any, /) -> bool:
        return bool(self._plain() >= plain(other))
