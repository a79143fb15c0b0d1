"""A set that all members share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from reprlib import recursive_repr
from typing import Any, Generic, Self, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.plain import Container, plain
from orcalike.objects.sending import sends

T = TypeVar("T")


@orca.shared
class Set(Container, Generic[T]):
    """A set. What is made of it (a union, a copy) is a plain set.

    It keeps its elements in the order in which they came, so that `pop` takes the same one at each
    replica. An iteration is over what it holds at one place in the order.
    """

    def __init__(self, values: Iterable[T] = (), /) -> None:
        self._items: dict[T, None] = dict.fromkeys(values)

    # Reads.

    @orca.read
    def _plain(self) -> set[T]:
        return set(self._items)

    @orca.read
    def __len__(self) -> int:
        return len(self._items)

    @orca.read
    def __iter__(self) -> Iterator[T]:
        return iter(list(self._items))

    @orca.read
    def _has(self, value: Any) -> bool:
        return value in self._items

    @orca.local
    def __contains__(self, value: object, /) -> bool:
        return self._has(_element(value))

    @orca.local
    def isdisjoint(self, other: Iterable[Any], /) -> bool:
        """Whether no element is in another set."""
        return self._plain().isdisjoint(plain(other))

    @orca.local
    def issubset(self, other: Iterable[Any], /) -> bool:
        """Whether all elements are in another set."""
        return self._plain().issubset(plain(other))

    @orca.local
    def issuperset(self, other: Iterable[Any], /) -> bool:
        """Whether all elements of another set are here."""
        return self._plain().issuperset(plain(other))

    @orca.local
    def union(self, *others: Iterable[Any]) -> set[T]:
        """A plain set of all elements."""
        return self._plain().union(*map(plain, others))

    @orca.local
    def intersection(self, *others: Iterable[Any]) -> set[T]:
        """A plain set of the elements that are in all."""
        return self._plain().intersection(*map(plain, others))

    @orca.local
    def difference(self, *others: Iterable[Any]) -> set[T]:
        """A plain set of the elements that are in no other one."""
        return self._plain().difference(*map(plain, others))

    @orca.local
    def symmetric_difference(self, other: Iterable[T], /) -> set[T]:
        """A plain set of the elements that are in one of both."""
        return self._plain().symmetric_difference(plain(other))

    @orca.local
    def copy(self) -> set[T]:
        """A plain copy."""
        return self._plain()

    @orca.local
    def __copy__(self) -> set[T]:
        return self._plain()

    # Writes.

    @orca.write
    def add(self, value: T, /) -> None:
        """Add an element."""
        self._items[value] = None

    @orca.write
    def _remove(self, value: Any) -> None:
        del self._items[value]

    @orca.write
    def _discard(self, value: Any) -> None:
        self._items.pop(value, None)

    @sends(_remove)
    def remove(self, value: T, /) -> tuple[Any]:
        """Take out an element; raises KeyError."""
        return (_element(value),)

    @sends(_discard)
    def discard(self, value: T, /) -> tuple[Any]:
        """Take out an element, if it is there."""
        return (_element(value),)

    @orca.write
    def pop(self) -> T:
        """Take out an element, the same at each replica, and return it; raises KeyError."""
        if not self._items:
            raise KeyError("pop from an empty set")
        return self._items.popitem()[0]

    @orca.write
    def clear(self) -> None:
        """Take out all elements."""
        self._items.clear()

    @orca.write
    def _update(self, values: list[T]) -> None:
        self._items.update(dict.fromkeys(values))

    @orca.write
    def _difference_update(self, values: list[T]) -> None:
        for value in values:
            self._items.pop(value, None)

    @orca.write
    def _intersection_update(self, values: list[T]) -> None:
        wanted = dict.fromkeys(values)
        self._items = {value: None for value in self._items if value in wanted}

    @orca.write
    def _symmetric_difference_update(self, values: list[T]) -> None:
        for value in dict.fromkeys(values):
            if value in self._items:
                del self._items[value]
            else:
                self._items[value] = None

    @sends(_update)
    def update(self, *others: Iterable[T]) -> tuple[list[T]]:
        """Add the elements of others, in one write."""
        return (_listed(set().union(*map(plain, others))),)

    @sends(_difference_update)
    def difference_update(self, *others: Iterable[Any]) -> tuple[list[T]]:
        """Take out the elements of others, in one write."""
        return (_listed(set().union(*map(plain, others))),)

    @sends(_intersection_update)
    def intersection_update(self, *others: Iterable[Any]) -> tuple[list[T]]:
        """Keep the elements that are in all others, in one write."""
        if not others:
            return (list(self),)
        first, *rest = map(plain, others)
        return (_listed(set(first).intersection(*rest)),)

    @sends(_symmetric_difference_update)
    def symmetric_difference_update(self, other: Iterable[T], /) -> tuple[list[T]]:
        """Add the elements of another that are missing, and take out the others, in one write."""
        return (_listed(set(plain(other))),)

    # Operators: those of plain sets.

    @orca.local
    def __or__(self, other: AbstractSet[Any], /) -> Any:
        return self._plain() | plain(other)

    @orca.local
    def __ror__(self, other: AbstractSet[Any], /) -> Any:
        return plain(other) | self._plain()

    @orca.local
    def __and__(self, other: AbstractSet[Any], /) -> Any:
        return self._plain() & plain(other)

    @orca.local
    def __rand__(self, other: AbstractSet[Any], /) -> Any:
        return plain(other) & self._plain()

    @orca.local
    def __sub__(self, other: AbstractSet[Any], /) -> Any:
        return self._plain() - plain(other)

    @orca.local
    def __rsub__(self, other: AbstractSet[Any], /) -> Any:
        return plain(other) - self._plain()

    @orca.local
    def __xor__(self, other: AbstractSet[Any], /) -> Any:
        return self._plain() ^ plain(other)

    @orca.local
    def __rxor__(self, other: AbstractSet[Any], /) -> Any:
        return plain(other) ^ self._plain()

    @orca.local
    def __ior__(self, other: AbstractSet[T], /) -> Self:
        if not _is_set(other):
            return NotImplemented
        self.update(other)
        return self

    @orca.local
    def __iand__(self, other: AbstractSet[Any], /) -> Self:
        if not _is_set(other):
            return NotImplemented
        self.intersection_update(other)
        return self

    @orca.local
    def __isub__(self, other: AbstractSet[Any], /) -> Self:
        if not _is_set(other):
            return NotImplemented
        self.difference_update(other)
        return self

    @orca.local
    def __ixor__(self, other: AbstractSet[T], /) -> Self:
        if not _is_set(other):
            return NotImplemented
        self.symmetric_difference_update(other)
        return self

    # Comparisons: those of plain sets.

    __hash__ = None  # type: ignore[assignment]

    @orca.local
    def __eq__(self, other: object, /) -> bool:
        return self._plain().__eq__(plain(other))

    @orca.local
    def __le__(self, other: AbstractSet[Any], /) -> bool:
        return self._plain().__le__(plain(other))

    @orca.local
    def __lt__(self, other: AbstractSet[Any], /) -> bool:
        return self._plain().__lt__(plain(other))

    @orca.local
    def __ge__(self, other: AbstractSet[Any], /) -> bool:
        return self._plain().__ge__(plain(other))

    @orca.local
    def __gt__(self, other: AbstractSet[Any], /) -> bool:
        return self._plain().__gt__(plain(other))

    @recursive_repr("Set(...)")
    def __repr__(self) -> str:
        listed = f"{{{', '.join(map(repr, self._items))}}}" if self._items else ""
        return f"{type(self).__name__}({listed})"


def _is_set(value: object) -> bool:
    return isinstance(plain(value), set | frozenset)


def _element(value: Any) -> Any:
    """A value as an element is looked up: a set stands for the frozenset with its elements."""
    value = plain(value)
    if not isinstance(value, set):
        return value
    try:
        hash(value)
    except TypeError:
        return frozenset(value)
    return value


def _listed(values: set[Any]) -> list[Any]:
    """The elements in one order, in which all replicas take them over."""
    return list(values)


MutableSet.register(Set)
