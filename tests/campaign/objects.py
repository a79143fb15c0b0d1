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
