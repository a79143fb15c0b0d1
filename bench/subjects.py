"""What is measured: one class, plain and shared. Both have the same bodies, on purpose twice.

A method's code remembers the class that it last met, so the two must not share any.
"""

from __future__ import annotations

import orcalike as orca

RECORDS: dict[str, object] = {
    "list": [3, 17, 4096, -1, 250, 70000, 8, 1],
    "dict": {"name": "left", "id": 17, "at": 3.5, "tags": ["a", "b"], "done": False},
}
"""Arguments that are made of others."""

CELLS = 20
"""So many that counting in them takes about 280 ns."""


class Plain:
    """The floor: no orcalike."""

    def __init__(self) -> None:
        self.value = 0
        self.entries: dict[str, int] = {}
        self.cells = list(range(CELLS))
        self.record: object = None

    def get(self) -> int:
        """One attribute."""
        return self.value

    def count(self, wanted: int) -> int:
        """A body of some work."""
        found = 0
        for cell in self.cells:
            if cell == wanted:
                found += 1
        return found

    def peek(self) -> int:
        """No operation."""
        return self.value

    def add(self, amount: int) -> None:
        """A write of one integer."""
        self.value += amount

    def put(self, key: str, value: int) -> None:
        """A write of a string and an integer."""
        self.entries[key] = value

    def keep(self, record: object) -> None:
        """A write of a list or a dict."""
        self.record = record


@orca.shared
class Held:
    """The same write where two other members hold it before it is done."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write(resilience=2)
    def add(self, amount: int) -> None:
        """A write of one integer."""
        self.value += amount


@orca.shared
class Shared:
    """The same, shared."""

    def __init__(self) -> None:
        self.value = 0
        self.entries: dict[str, int] = {}
        self.cells = list(range(CELLS))
        self.record: object = None

    @orca.read
    def get(self) -> int:
        """One attribute."""
        return self.value

    @orca.read
    def count(self, wanted: int) -> int:
        """A body of some work."""
        found = 0
        for cell in self.cells:
            if cell == wanted:
                found += 1
        return found

    @orca.local
    def peek(self) -> int:
        """No operation."""
        return self.value

    @orca.write
    def add(self, amount: int) -> None:
        """A write of one integer."""
        self.value += amount

    @orca.write
    def put(self, key: str, value: int) -> None:
        """A write of a string and an integer."""
        self.entries[key] = value

    @orca.write
    def keep(self, record: object) -> None:
        """A write of a list or a dict."""
        self.record = record
