"""Shared classes for tests: one of each kind of operation that there is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

import orcalike as orca


@orca.shared
class Counter:
    """A number, and operations that take arguments in every way."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.read
    def show(self, look: Callable[[int], int]) -> int:
        """Give the value to a function of the caller's, which runs while the mutex is held."""
        return look(self.value)

    @orca.read
    def above(self, least: int) -> int:
        return self.value

    @above.when
    def _(self, least: int) -> bool:
        return self.value > least

    @orca.write
    def add(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @orca.write
    def add_all(self, /, *numbers: int, twice: bool = False, **named: int) -> int:
        self.value += (sum(numbers) + sum(named.values())) * (2 if twice else 1)
        return self.value

    @orca.write
    def fail(self, message: str) -> None:
        self.value += 1
        raise ValueError(message)

    @orca.write(undo=True)
    def fail_undone(self, message: str) -> None:
        self.value += 1
        raise ValueError(message)

    @orca.write
    def add_twice(self, by: int) -> int:
        """Calls an operation of its own."""
        self.add(by)
        return self.add(by)

    @orca.write
    def take(self, amount: int) -> int:
        self.value -= amount
        return self.value

    @take.when
    def _(self, amount: int) -> bool:
        if amount < 0:
            raise ValueError("a negative amount")
        return self.value >= amount

    @orca.write
    def take_nested(self, amount: int) -> int:
        """Calls an operation of its own that has a guard."""
        return self.take(amount)


@orca.shared
class Journal:
    """Keeps what happens to it, in order: its state is its history."""

    def __init__(self, room: int = 3) -> None:
        self.room = room
        self.events: list[str] = []
        self.items: list[str] = []
        self.other: object = None

    @orca.read
    def history(self) -> list[str]:
        return list(self.events)

    @orca.read
    def length(self) -> int:
        return len(self.items)

    @orca.write
    def put(self, item: str) -> None:
        self.items.append(item)
        self.events.append(f"put {item}")

    @put.when
    def _(self, item: str) -> bool:
        return len(self.items) < self.room

    @orca.write
    def get(self, reader: str = "") -> str:
        item = self.items.pop(0)
        self.events.append(f"{reader} got {item}")
        return item

    @get.when
    def _(self, reader: str = "") -> bool:
        return bool(self.items)

    @orca.write
    def note(self, event: str) -> None:
        self.events.append(event)

    @orca.write(popup=True)
    def note_slowly(self, event: str) -> str:
        """Runs in a pop-up thread; a gate of that name holds it up."""
        pass_gate(event)
        self.events.append(event)
        return event

    @orca.write
    def refer_to(self, other: object) -> None:
        self.other = other

    @orca.read
    def referred(self) -> object:
        return self.other

    @orca.write
    def roll(self) -> tuple[float, float, int]:
        """The moment, a random number, and how many were drawn."""
        first = orca.random().random()
        self.events.append(f"{orca.now()} {first}")
        return orca.now(), first, orca.random().randrange(10**9)

    @orca.write
    def read_another(self, other: Counter) -> int:
        return other.get()

    @orca.write
    def write_another(self, other: Counter) -> int:
        return other.add()

    def member_left(self, member: orca.Member) -> None:
        self.events.append(f"left {member.rank} {orca.random().random()}")

    def member_joined(self, member: orca.Member) -> None:
        self.events.append(f"joined {member.rank} {orca.random().random()}")


@orca.shared
class Fragile:
    """Its constructor may raise, and calls operations of its own."""

    def __init__(self, value: int) -> None:
        self.value = 0
        self.set(value)
        if value < 0:
            raise ValueError(f"{value} is negative")

    @orca.write
    def set(self, value: int) -> None:
        self.value = value

    @orca.read
    def get(self) -> int:
        return self.value


@orca.atomic
def transfer(source: Counter, target: Counter, amount: int = 1) -> int:
    """Move something from one to the other; raises if there is not enough."""
    target.add(amount)
    if source.get() < amount:
        raise ValueError(f"only {source.get()}")
    source.add(-amount)
    return source.get()


@orca.atomic(undo=True)
def transfer_undone(source: Counter, target: Counter, amount: int) -> int:
    """The same; if it raises, both are as they were."""
    target.add(amount)
    return source.take(amount)


@orca.atomic
def transfer_when(source: Counter, target: Counter, *, amount: int) -> int:
    """The same; it waits until there is enough."""
    source.add(-amount)
    target.add(amount)
    return target.get()


@transfer_when.when
def _(source: Counter, target: Counter, *, amount: int) -> bool:
    if amount < 0:
        raise ValueError("a negative amount")
    return source.get() >= amount


# What holds up pop-up threads, by the event's name.
_gates: dict[str, threading.Event] = {}
_arrivals: dict[str, threading.Event] = {}


def pass_gate(name: str) -> None:
    """Wait at the gate of that name, if there is one."""
    gate = _gates.get(name)
    if gate is not None:
        _arrivals[name].set()
        if not gate.wait(30):
            raise TimeoutError(f"gate {name!r} was not opened")


class Gate:
    """Holds up `note_slowly` of an event: `with Gate("slow") as gate: ...; gate.open()`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        _gates[self.name], _arrivals[self.name] = threading.Event(), threading.Event()
        return self

    def wait_until_reached(self) -> None:
        """Until a thread stands at it."""
        assert _arrivals[self.name].wait(30)

    def open(self) -> None:
        """Let it pass."""
        _gates[self.name].set()

    def __exit__(self, *rest: object) -> None:
        self.open()
