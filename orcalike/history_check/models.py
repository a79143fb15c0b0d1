"""Models: what objects of a class do, written a second time, which results and guards are held against.

A state is a hashable value. `step` gives the next state and the result; a `Refused` result is an
exception that the operation raises, as histories write it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

State = Hashable


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation raises this."""

    error: str


class Model(Protocol):
    """One class of objects."""

    def start(self, args: Sequence[Any]) -> State:
        """The state that `__init__` makes."""

    def ready(self, state: Any, operation: str, args: Sequence[Any]) -> bool:
        """Whether the operation's guard holds."""

    def step(self, state: Any, operation: str, args: Sequence[Any]) -> tuple[State, object]:
        """(the state after the operation, its result)."""


ModelOf = Callable[[str], tuple[Model, State] | None]
"""Finds the model of an object by its name, and the state that its `__init__` makes."""


def no_model(name: str) -> None:
    """No object has a model: results and guards are not checked."""
