"""A list that all members share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from operator import index as index_of
from typing import Any, SupportsIndex, TypeVar, overload

from orcalike.objects import language as orca
from orcalike.objects.sending import sends
from orcalike.objects.sequences import Sequence
from orcalike.objects.steps import Method, Steps, ask

T = TypeVar("T")

TRIES = 4
"""How often a sort with a key is tried while others change the list."""


@orca.shared
class List(Sequence[T]):
    """A list. What is made of it (a slice, a copy, a sum) is a plain list."""

    def __init__(self, values: Iterable[T] = (), /) -> None:
        self._items: list[T] = list(values)
        self._version = 0

    @orca.read
    def _plain(self) -> list[T]:
        return self._items.copy()

    @orca.read
    def _versioned(self) -> tuple[int, list[T]]:
        return self._version, self._items.copy()

    @orca.read
    def _get(self, index: int | slice) -> Any:
        return self._items[index]

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[T]: ...
    @orca.local
    def __getitem__(self, index: Any, /) -> Any:
        return self._get(index)

    @orca.write
    def _set(self, index: int, value: T) -> None:
        self._version += 1
        self._items[index] = value

    @orca.write
    def _set_slice(self, parts: tuple[Any, Any, Any], values: list[T]) -> None:
        self._version += 1
        self._items[slice(*parts)] = values

    @overload
    def __setitem__(self, index: SupportsIndex, value: T, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[T], /) -> None: ...
    @orca.local
    def __setitem__(self, index: Any, value: Any, /) -> None:
        if isinstance(index, slice):
            self._set_slice(parts_of(index), list(value))
        else:
            self._set(position_of(index), value)

    @orca.write
    def _delete(self, index: int) -> None:
        self._version += 1
        del self._items[index]

    @orca.write
    def _delete_slice(self, parts: tuple[Any, Any, Any]) -> None:
        self._version += 1
        del self._items[slice(*parts)]

    @orca.local
    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        if isinstance(index, slice):
            self._delete_slice(parts_of(index))
        else:
            self._delete(position_of(index))

    @orca.write
    def _pop(self, index: int) -> T:
        self._version += 1
        return self._items.pop(index)

    @sends(_pop)
    def pop(self, index: SupportsIndex = -1, /) -> tuple[int]:
        """Take out the item at an index, and return it; raises IndexError."""
        return (index_of(index),)

    @orca.write
    def _sort(self, reverse: bool) -> None:
        self._version += 1
        self._items.sort(reverse=reverse)

    @orca.write
    def _replace(self, version: int, values: list[T]) -> bool:
        if self._version != version:
            return False
        self._version += 1
        self._items = values
        return True

    @Method
    def sort(self, *, key: Callable[[T], Any] | None = None, reverse: bool = False) -> Steps[None]:
        """Sort it, stably.

        A key runs in this process alone, on a copy, which takes the list's place if it has not
        changed meanwhile; else it is tried again, and ValueError is raised after 4 times.
        """
        if key is None:
            yield from ask(self._sort, bool(reverse))
            return
        for _ in range(TRIES):
            version, values = yield from ask(self._versioned)
            values.sort(key=key, reverse=reverse)
            if (yield from ask(self._replace, version, values)):
                return
        raise ValueError("list modified during sort")

    def __repr__(self) -> str:
        return repr(self._items)


def parts_of(index: slice) -> tuple[Any, Any, Any]:
    """A slice as it travels."""
    start, stop, step = (
        None if part is None else index_of(part) for part in (index.start, index.stop, index.step)
    )
    return start, stop, step


def position_of(index: SupportsIndex) -> int:
    """An index as it travels; raises TypeError as a list does."""
    try:
        return index_of(index)
    except TypeError:
        name = type(index).__name__
        raise TypeError(f"list indices must be integers or slices, not {name}") from None


MutableSequence.register(List)
