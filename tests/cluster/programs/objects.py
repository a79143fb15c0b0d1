"""Shared objects that remember what was done to them, in which order."""

from __future__ import annotations

import hashlib
from array import array
from itertools import chain

import orcalike as orca


@orca.shared
class Log:
    """Keeps all that is written."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []
        self.newest: dict[int, int] = {}

    @orca.write
    def add(self, writer: int, number: int) -> int:
        """Append an entry; returns how many there are."""
        self.entries.append((writer, number))
        self.newest[writer] = number
        return len(self.entries)

    @orca.read
    def last(self, writer: int) -> int:
        """The number that `writer` wrote last; -1 for none."""
        return self.newest.get(writer, -1)

    @orca.read
    def disorder(self) -> list[tuple[int, int]]:
        """The entries that do not come after all those of the same writer before them."""
        newest: dict[int, int] = {}
        found = []
        for writer, number in self.entries:
            if number <= newest.get(writer, -1):
                found.append((writer, number))
            newest[writer] = number
        return found

    @orca.read
    def numbers(self, writer: int) -> list[int]:
        """What `writer` wrote, in the order of the log."""
        return [number for one, number in self.entries if one == writer]

    @orca.read
    def writers(self) -> list[int]:
        """The members that have written."""
        return sorted(self.newest)

    @orca.read
    def fingerprint(self) -> str:
        """The same for the same entries in the same order."""
        numbers = array("Q", chain.from_iterable(self.entries))  # there may be a million
        return hashlib.blake2b(numbers, digest_size=8).hexdigest()


@orca.shared
class Box:
    """Something large, with what it was made of."""

    def __init__(self, filling: bytes) -> None:
        self.size = len(filling)

    @orca.read
    def get(self) -> int:
        """How large it is."""
        return self.size


@orca.shared
class Buffer:
    """A bounded buffer, with guards on both sides."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.items: list[tuple[int, int]] = []
        self.trace: list[tuple[str, int, int]] = []
        self.closed = False

    @orca.write
    def put(self, writer: int, number: int) -> None:
        """Add an item, when there is room."""
        self.items.append((writer, number))
        self.trace.append(("put", writer, number))

    @put.when
    def _(self, writer: int, number: int) -> bool:
        return len(self.items) < self.capacity

    @orca.write
    def get(self, writer: int) -> tuple[int, int] | None:
        """Take the oldest item, when there is one; None when there will be no more."""
        if not self.items:
            return None
        item = self.items.pop(0)
        self.trace.append(("get", writer, item[1]))
        return item

    @get.when
    def _(self, writer: int) -> bool:
        return bool(self.items) or self.closed

    @orca.write
    def close(self) -> None:
        """There will be no more items."""
        self.closed = True

    @orca.read
    def fingerprint(self) -> str:
        """The same for the same operations, run in the same order."""
        return hashlib.blake2b(repr(self.trace).encode(), digest_size=8).hexdigest()

    @orca.read
    def fullest(self) -> int:
        """The largest number of items that was ever there."""
        level = most = 0
        for kind, _, _ in self.trace:
            level += 1 if kind == "put" else -1
            most = max(most, level)
        return most


@orca.shared
class Gate:
    """Lets those through whose number has come, in the order in which they came."""

    def __init__(self) -> None:
        self.height = 0
        self.passed: list[tuple[int, int]] = []

    @orca.write
    def raise_to(self, height: int) -> None:
        """Let all through that wait for this height, or less."""
        self.height = max(self.height, height)

    @orca.write
    def walk(self, writer: int, height: int) -> int:
        """Go through, when the gate is up; returns how many did before."""
        self.passed.append((writer, height))
        return len(self.passed) - 1

    @walk.when
    def _(self, writer: int, height: int) -> bool:
        return self.height >= height

    @orca.read
    def above(self, height: int) -> bool:
        """Waits until the gate is that high."""
        return True

    @above.when
    def _(self, height: int) -> bool:
        return self.height >= height

    @orca.read
    def visitors(self) -> list[tuple[int, int]]:
        """Those that went through, in order."""
        return list(self.passed)


@orca.shared
class Tally:
    """Counts what is written, and keeps none of it."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    @orca.write
    def add(self, writer: int, filling: bytes = b"") -> int:
        """Count one for `writer`; returns how many it has written."""
        self.counts[writer] = self.counts.get(writer, 0) + 1
        return self.counts[writer]

    @orca.read
    def all(self) -> dict[int, int]:
        """How many each has written."""
        return dict(self.counts)

    @orca.read
    def total(self) -> int:
        """How many all have written."""
        return sum(self.counts.values())


@orca.shared
class Owned:
    """A thing that one member has, until it gives it back or dies."""

    def __init__(self) -> None:
        self.rank = -1

    @orca.write
    def take(self, rank: int) -> None:
        """Have it, as soon as no other does."""
        self.rank = rank

    @take.when
    def _(self, rank: int) -> bool:
        return self.rank < 0

    @orca.read
    def owner(self) -> int:
        """The rank that has it; -1 for none."""
        return self.rank

    def member_left(self, member: orca.Member) -> None:
        """A dead member has nothing."""
        if member.rank == self.rank:
            self.rank = -1
