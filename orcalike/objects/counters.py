"""Numbers that all members change: a counter, and the smallest or largest of what was offered."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.steps import Method, Steps, ask


class Ordered(Protocol):
    """What can be compared with `<`."""

    def __lt__(self, other: Any, /) -> bool: ...


V = TypeVar("V", bound=Ordered)


@orca.shared
class Counter:
    """A number to which all members add."""

    def __init__(self, value: int = 0) -> None:
        self._value = value

    @property
    @orca.read
    def value(self) -> int:
        """The number."""
        return self._value

    @orca.read
    def get(self) -> int:
        """The number."""
        return self._value

    @orca.write
    def add(self, amount: int = 1) -> int:
        """Add, and return the sum."""
        self._value += amount
        return self._value

    @orca.write
    def subtract(self, amount: int = 1) -> int:
        """Subtract, and return the difference."""
        self._value -= amount
        return self._value

    @orca.write
    def reset(self, value: int = 0) -> int:
        """Set it, and return what it was."""
        before, self._value = self._value, value
        return before

    @orca.read
    def wait_for(self, least: int) -> int:
        """Wait here until it is at least so much; returns it."""
        return self._value

    @wait_for.when
    def _(self, least: int) -> bool:
        return self._value >= least

    @orca.local
    def __iadd__(self, amount: int) -> Self:
        self.add(amount)
        return self

    @orca.local
    def __isub__(self, amount: int) -> Self:
        self.subtract(amount)
        return self

    @orca.read
    def __int__(self) -> int:
        return self._value

    @orca.read
    def __index__(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value})"


class _Extreme(Generic[V]):
    """The best of what was offered; a subclass says what is better."""

    def __init__(self, start: V, /) -> None:
        self._value = start

    def _improves(self, value: V) -> bool:
        raise NotImplementedError

    @property
    @orca.read
    def value(self) -> V:
        """The best so far."""
        return self._value

    @orca.read
    def get(self) -> V:
        """The best so far."""
        return self._value

    @orca.read
    def _is_better(self, value: V) -> bool:
        return self._improves(value)

    @orca.write
    def _offer(self, value: V) -> bool:
        better = self._improves(value)
        if better:
            self._value = value
        return better

    @Method
    def offer(self, value: V) -> Steps[bool]:
        """Offer a value: whether it is the best so far, and is kept.

        Nothing is sent if this replica has a value that is as good: the others have it too, or
        will have a better one.
        """
        if not (yield from ask(self._is_better, value)):
            return False
        return (yield from ask(self._offer, value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"


@orca.shared
class Minimum(_Extreme[V]):
    """The smallest value that was offered, which starts with one that nothing exceeds."""

    def _improves(self, value: V) -> bool:
        return value < self._value


@orca.shared
class Maximum(_Extreme[V]):
    """The largest value that was offered, which starts with one that nothing is below."""

    def _improves(self, value: V) -> bool:
        return self._value < value
