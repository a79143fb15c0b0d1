"""One value that all members see and set."""

from __future__ import annotations

from typing import Generic, TypeVar

from orcalike.objects import language as orca

T = TypeVar("T")


@orca.shared
class Value(Generic[T]):
    """One value, of any kind that travels; `v.value` reads it and `v.value = x` sets it."""

    def __init__(self, value: T, /) -> None:
        self._value = value

    @orca.read
    def get(self) -> T:
        """The value."""
        return self._value

    @orca.write
    def set(self, value: T, /) -> None:
        """Set it."""
        self._value = value

    @orca.write
    def swap(self, value: T, /) -> T:
        """Set it, and return what it was."""
        before, self._value = self._value, value
        return before

    @orca.write
    def compare_and_set(self, expected: T, value: T, /) -> bool:
        """Set it if it equals `expected`: whether it did."""
        if self._value != expected:
            return False
        self._value = value
        return True

    @orca.read
    def wait_for(self, expected: T, /) -> T:
        """Wait here until it equals `expected`; returns it."""
        return self._value

    @wait_for.when
    def _(self, expected: T, /) -> bool:
        return self._value == expected

    @property
    @orca.local
    def value(self) -> T:
        """The value; to assign it waits until it is set."""
        return self.get()

    @value.setter
    @orca.local
    def value(self, value: T) -> None:
        self.set(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"
