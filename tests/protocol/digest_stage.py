"""Groups whose members compare digests of states when the test says so, and objects for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.assemble import make_runtime
from tests.protocol import sim_runtime
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_runtime_sim import Stage, replica_of


@orca.shared
class Heap:
    """Holds values of every kind and size."""

    def __init__(self) -> None:
        self.value: Any = None
        self.other = 0

    @orca.write
    def set(self, value: Any) -> None:
        self.value = value

    @orca.write
    def touch(self) -> None:
        self.other += 1

    @orca.write(popup=True)
    def touch_slowly(self) -> None:
        self.other += 1


@orca.shared
class Snapping:
    """Says itself what its state is, and has something of its process's own."""

    def __init__(self) -> None:
        self.value = 0
        self.own = id(self)  # orca: unchecked

    @orca.write
    def add(self) -> None:
        self.value += 1

    @orca.read
    def get(self) -> int:
        return self.value

    def snapshot(self) -> object:
        return self.get()

    @classmethod
    def restore(cls, state: int) -> Snapping:
        made = cls()
        made.value = state
        return made


def adding(number: int) -> Any:
    """A write, the number of which is in its name."""

    def add(self: Any) -> None:
        self.value += 1

    add.__name__ = add.__qualname__ = f"add_{number:02}"
    return orca.write(add)


Many = orca.shared(
    type(
        "Many",
        (),
        {
            "__init__": lambda self: setattr(self, "value", 0),
            **{f"add_{number:02}": adding(number) for number in range(70)},
        },
    )
)


def make(
    monkeypatch: pytest.MonkeyPatch, mode: str, size: int, admitted: int | None = None
) -> Stage:
    """A group of that size, or of so many of them."""
    changed = partial(make_runtime, digests=mode)
    monkeypatch.setattr(sim_runtime, "make_runtime", changed)
    stage = Stage(size)
    for number in range(1, size if admitted is None else admitted):
        stage.admit(number)
    return stage


def expire(participant: Participant, now: int) -> None:
    participant.runtime.expire()


def report(stage: Stage, times: int = 4) -> None:
    """Have all members report what they have seen; more than once: a report is a place to look at."""
    for _ in range(times):
        for participant in stage.participants:
            if participant.inside:
                participant.node.call(partial(expire, participant))
        stage.settle()


def run_threads(threads: list[tuple[Participant, Callable[[], None]]]) -> None:
    """Run operations that are to have threads of their own, and were kept from them."""
    for participant, thread in threads:
        participant.node.call(partial(call_now, thread))


def call_now(function: Callable[[], None], now: int) -> None:
    function()


def keep_threads(
    threads: list[tuple[Participant, Callable[[], None]]], participant: Participant
) -> None:
    def start(function: Callable[[], None]) -> None:
        threads.append((participant, function))

    participant.runtime.start_thread = start


def here(participant: Participant, name: str) -> Any:
    return replica_of(participant, name).object


def sound(stage: Stage) -> bool:
    return not any(participant.faults for participant in stage.participants)
