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


class Counter(Unguarded):
    """A sum; `add` gives the new one."""

    def start(self, args: Sequence[Any]) -> State:
        """From 0."""
        return 0

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`add` and `get`."""
        after = state + args[0] if operation == "add" else state
        return after, after


class Queue:
    """First in, first out; `take` waits until there is something."""

    def start(self, args: Sequence[Any]) -> State:
        """Empty."""
        return ()

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether there is something to take."""
        return operation != "take" or bool(state)

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`put`, `take` and `length`."""
        if operation == "put":
            return (*state, args[0]), None
        return (state[1:], state[0]) if operation == "take" else (state, len(state))


class Bank(Unguarded):
    """Accounts; `move` gives the balance that is left, or raises if it is too small."""

    def start(self, args: Sequence[Any]) -> State:
        """So many accounts, with so much in each."""
        accounts, each = map(int, args)
        return (each,) * accounts

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """`move` and `total`."""
        if operation == "total":
            return state, sum(state)
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
}


def model_of(name: str) -> tuple[Model, State] | None:
    """The model of an object, and what its `__init__` makes; None for an object without one.

    A campaign's names tell them: `register 3`, or with arguments `bank 0 8 100`.
    """
    kind, *numbers = name.split()
    if kind not in MODELS or not numbers or not all(number.isdigit() for number in numbers):
        return None
    return MODELS[kind], MODELS[kind].start([int(number) for number in numbers[1:]])
