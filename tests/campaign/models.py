"""Models of the shared classes of a campaign (`objects.py`), for the checkers of histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orcalike.history_check.models import Model, Refused, State


class Unguarded:
    """A class whose operations never wait."""

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """There is no guard."""
        return True


class Register(Unguarded):
    """A value; `swap` gives the one before."""

    def start(self, args: Sequence[Any]) -> State:
        """Nothing was written yet."""
        return ""

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`swap` and `get`."""
        return (args[0], state) if operation == "swap" else (state, state)


class Counter:
    """A sum; `add` gives the new one, and `reached` waits for it."""

    def start(self, args: Sequence[Any]) -> State:
        """From 0."""
        return 0

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether as much is reached as is waited for."""
        return operation != "reached" or bool(state >= args[0])

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`add`, `get` and `reached`."""
        after = state + args[0] if operation == "add" else state
        return after, after


class Pair:
    """Two counters, left and right; `draw` moves from the left one what is there."""

    def start(self, args: Sequence[Any]) -> State:
        """Both from 0."""
        return 0, 0

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether there is as much to draw."""
        return operation != "draw" or bool(state[0] >= args[0])

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`draw`, and `add left`, `get left` and their like."""
        left, right = state
        if operation == "draw":
            state = left - args[0], right + args[0]
            return state, state
        if operation == "add left":
            state = left + args[0], right
        elif operation == "add right":
            state = left, right + args[0]
        return state, state[operation.endswith("right")]


class Chain(Unguarded):
    """A number that each `add` changes in its own way."""

    def start(self, args: Sequence[Any]) -> State:
        """Without a link."""
        return 0, 0

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`add` and `get`."""
        count, value = state
        if operation != "add":
            return state, state
        value = (value * 1_000_003 + args[0]) % (1 << 61)
        return (count + 1, value), value


class Slot:
    """Room for one item: `put` waits until it is empty, `take` until it is not."""

    def start(self, args: Sequence[Any]) -> State:
        """Empty."""
        return ""

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether it is as the operation needs it."""
        return operation == "get" or (state == "") == (operation == "put")

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`put`, `take` and `get`."""
        if operation == "put":
            return args[0], None
        return ("" if operation == "take" else state), state


class Queue:
    """First in, first out; `take` waits until there is something."""

    def start(self, args: Sequence[Any]) -> State:
        """Empty."""
        return ()

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether there is something to take."""
        return operation != "take" or bool(state)

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`put`, `take`, `length` and `all`."""
        if operation == "put":
            return (*state, args[0]), None
        if operation == "take":
            return state[1:], state[0]
        return state, state if operation == "all" else len(state)


class Bank(Unguarded):
    """Accounts; `move` gives the balance that is left, or raises if it is too small."""

    def start(self, args: Sequence[Any]) -> State:
        """So many accounts, with so much in each."""
        accounts, each = map(int, args)
        return (each,) * accounts

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`move`, `total` and `all`."""
        if operation != "move":
            return state, state if operation == "all" else sum(state)
        source, target, amount = args
        if state[source] < amount:
            return state, Refused(f"ValueError: account {source} has {state[source]}")
        balances = list(state)
        balances[source] -= amount
        balances[target] += amount
        left: int = balances[source]
        return tuple(balances), left


MODELS: dict[str, Model] = {
    "register": Register(),
    "counter": Counter(),
    "queue": Queue(),
    "bank": Bank(),
    "chain": Chain(),
    "pair": Pair(),
    "slot": Slot(),
}

READS = frozenset({"all", "get", "get left", "get right", "length", "reached", "total"})
"""Operations that run in the process alone that calls them."""


def model_of(name: str) -> tuple[Model, State] | None:
    """The model of an object, and what its `__init__` makes; None for an object without one.

    A campaign's names tell them: `register 3`, or with arguments `bank 0 8 100`.
    """
    kind, *numbers = name.split()
    if kind not in MODELS or not numbers or not all(number.isdigit() for number in numbers):
        return None
    return MODELS[kind], MODELS[kind].start([int(number) for number in numbers[1:]])
