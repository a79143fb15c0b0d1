"""The shared classes of a campaign; `models.py` says the same a second time."""

from __future__ import annotations

import orcalike as orca


@orca.shared
class Register:
    """A value; a write gets the one before."""

    def __init__(self) -> None:
        self.value = ""

    @orca.write
    def swap(self, value: str) -> str:
        before, self.value = self.value, value
        return before

    @orca.read
    def get(self) -> str:
        return self.value


@orca.shared
class Counter:
    """A sum."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self, by: int) -> int:
        self.value += by
        return self.value

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.read
    def reached(self, least: int) -> int:
        return self.value

    @reached.when
    def _(self, least: int) -> bool:
        return self.value >= least


@orca.atomic
def draw(source: Counter, target: Counter, amount: int) -> tuple[int, int]:
    """Move some from one to another, once it is there."""
    return source.add(-amount), target.add(amount)


@draw.when
def _(source: Counter, target: Counter, amount: int) -> bool:
    return source.get() >= amount


@orca.shared
class Chain:
    """A number that each write changes in its own way: equal ones have had equal writes, in one order."""

    def __init__(self) -> None:
        self.count = self.value = 0

    @orca.write
    def add(self, link: int) -> int:
        self.count += 1
        self.value = (self.value * 1_000_003 + link) % (1 << 61)
        return self.value

    @orca.read
    def get(self) -> tuple[int, int]:
        return self.count, self.value


@orca.shared
class Slot:
    """Room for one item, which is handed over."""

    def __init__(self) -> None:
        self.item = ""

    @orca.write
    def put(self, item: str) -> None:
        self.item = item

    @put.when
    def _(self, item: str) -> bool:
        return not self.item

    @orca.write
    def take(self) -> str:
        item, self.item = self.item, ""
        return item

    @take.when
    def _(self) -> bool:
        return bool(self.item)

    @orca.read
    def get(self) -> str:
        return self.item


@orca.shared
class Queue:
    """First in, first out."""

    def __init__(self) -> None:
        self.items: list[str] = []

    @orca.write
    def put(self, item: str) -> None:
        self.items.append(item)

    @orca.write
    def take(self) -> str:
        return self.items.pop(0)

    @take.when
    def _(self) -> bool:
        return bool(self.items)

    @orca.read
    def length(self) -> int:
        return len(self.items)

    @orca.read
    def all(self) -> list[str]:
        return [*self.items]


@orca.shared
class Bank:
    """Accounts, between which money moves."""

    def __init__(self, accounts: int, each: int) -> None:
        self.balances = [each] * accounts

    @orca.write
    def move(self, source: int, target: int, amount: int) -> int:
        if self.balances[source] < amount:
            raise ValueError(f"account {source} has {self.balances[source]}")
        self.balances[source] -= amount
        self.balances[target] += amount
        return self.balances[source]

    @orca.read
    def total(self) -> int:
        return sum(self.balances)

    @orca.read
    def all(self) -> list[int]:
        return [*self.balances]
