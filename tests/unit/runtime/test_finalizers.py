"""A finalizer that a collection runs in the midst of an operation, or of the core: its calls are calls like others."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.runtime.replica import replica_of

collects: list[object] = []
"""What has its collection in the next operation."""


class Ends:
    """In a cycle, so that a collection ends it."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.itself, self.call = self, call
        self.raised: list[BaseException | None] = []

    def __del__(self) -> None:
        try:
            self.call()
            self.raised.append(None)
        except orca.OrcalikeError as error:
            self.raised.append(error)


def outcome_of(call: Callable[[], object]) -> list[BaseException | None]:
    """What comes of a call of a finalizer in the next operation: filled as it has run."""
    ends = Ends(call)
    collects.append(ends)
    return ends.raised


def collect() -> None:
    """End what is to be ended here."""
    if collects:
        collects.clear()
        gc.collect()


@orca.shared
class Log:
    """Its operations collect."""

    def __init__(self) -> None:
        self.count = self.ended = 0
        self.position = 0

    @orca.write
    def add(self) -> int:
        collect()  # orca: unchecked
        self.count += 1
        self.position = orca.position()
        return self.end_twice()

    @orca.write(popup=True)
    def add_in_a_thread(self) -> int:
        collect()  # orca: unchecked
        self.count += 1
        return self.end_twice()

    @orca.write
    def end(self) -> None:
        self.ended += 1

    @orca.write
    def end_twice(self) -> int:
        self.end()
        self.end()
        return self.ended

    @orca.read
    def value(self) -> int:
        collect()  # orca: unchecked
        return self.ended


@orca.atomic
def add_to_both(one: Log, other: Log) -> int:
    """Runs with two mutexes."""
    return one.add() + other.end_twice()


@pytest.fixture(autouse=True)
def only_where_asked() -> object:
    """No other collection comes between."""
    gc.collect()
    gc.disable()
    yield None
    gc.enable()
    collects.clear()


@pytest.fixture
def logs(group: orca.Group) -> tuple[Log, Log]:
    return group.share(Log, "log"), group.share(Log, "other")


CALLS: dict[str, Callable[[Log, Log], object]] = {
    "write": lambda log, other: log.add(),
    "popup": lambda log, other: log.add_in_a_thread(),
    "read": lambda log, other: log.value(),
    "atomic": lambda log, other: add_to_both(log, other),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("of_other", [False, True])
def test_a_call_that_is_let_go(
    logs: tuple[Log, Log], group: orca.Group, call: str, *, of_other: bool
) -> None:
    """It is sent: it comes behind the operation, whose own calls of its object are plain ones."""
    log, other = logs
    raised = outcome_of((other if of_other else log).end.nowait)
    expected = {"write": 2, "popup": 2, "read": 0, "atomic": 4}[call]
    assert CALLS[call](log, other) == expected
    group.fence()
    assert raised == [None]
    plain = {"write": [2, 0], "popup": [2, 0], "read": [0, 0], "atomic": [2, 2]}[call]
    plain[of_other] += 1
    assert [log.ended, other.ended] == plain


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("waits", ["write", "read", "limited", "atomic", "share", "other read"])
def test_a_call_that_waits(logs: tuple[Log, Log], group: orca.Group, call: str, waits: str) -> None:
    """It would wait for its own thread."""
    log, other = logs
    calls: dict[str, Callable[[], object]] = {
        "write": log.end,
        "read": log.value,
        "limited": log.end.options(timeout=10),
        "atomic": lambda: add_to_both(other, log),
        "share": lambda: group.share(Log, "third"),
        "other read": other.value.nowait,
    }
    raised = outcome_of(calls[waits])
    before = log.ended + other.ended
    CALLS[call](log, other)
    group.fence()
    assert [type(error) for error in raised] == [orca.NestedWrite]
    sent = {"write": 2, "popup": 2, "read": 0, "atomic": 4}[call]
    assert log.ended + other.ended == before + sent
    assert log.add() == log.ended, "it serves"


def test_the_runtime_is_in_the_midst_of_something(logs: tuple[Log, Log], group: orca.Group) -> None:
    """No operation runs, and yet a wait would be for ever; a call that is let go is sent."""
    log, _ = logs
    waits, let_go = Ends(log.end), Ends(log.end.nowait)
    raised = [waits.raised, let_go.raised]
    kept = [waits, let_go]
    del waits, let_go

    def input_of_the_stack(now: int) -> None:
        kept.clear()
        gc.collect()

    group._session.pump.call(input_of_the_stack)
    group.fence()
    (refused,), sent = raised
    assert isinstance(refused, orca.NestedWrite)
    assert sent == [None]
    assert log.ended == 1


def test_a_wait_of_what_the_core_lets_go(logs: tuple[Log, Log], group: orca.Group) -> None:
    """No collection comes with it: the wait is found, its call withdrawn."""
    log, _ = logs
    caught: list[type[BaseException]] = []

    def input_of_the_stack(now: int) -> None:
        try:
            log.end()
        except orca.NestedWrite as error:
            caught.append(type(error))

    group._session.pump.call(input_of_the_stack)
    assert caught == [orca.NestedWrite]
    group.fence()
    assert log.add() >= 2


def test_there_is_no_room_for_what_the_core_lets_go(
    logs: tuple[Log, Log], group: orca.Group
) -> None:
    """Nothing makes any before this thread goes on: it does not wait."""
    log, _ = logs
    sent: list[int] = []

    def input_of_the_stack(now: int) -> None:
        def fill() -> None:
            while True:
                log.end.nowait()
                sent.append(1)

        with pytest.raises(orca.NestedWrite, match="would be for ever"):
            fill()

    group._session.pump.call(input_of_the_stack)
    group.fence()
    assert log.ended == len(sent) > 1


def test_the_moment_in_a_finalizer(logs: tuple[Log, Log]) -> None:
    """It is that of the program: the operation's is not its own."""
    log, _ = logs
    found: list[int] = []
    outcome_of(lambda: found.append(orca.position()))
    log.add()
    assert found == [0]
    assert log.position > 0


def test_what_ran_is_whole_afterwards(logs: tuple[Log, Log]) -> None:
    """The operation's own calls are plain again, and another object's are refused again."""
    log, other = logs
    outcome_of(lambda: None)
    add_to_both(log, other)
    for each in logs:
        replica = replica_of(each)
        assert replica is not None
        assert not replica.has(1), "it is free"
    assert (log.value(), other.value()) == (2, 2)


def test_replicas_agree(tmp_path: Path, order: str) -> None:
    """A finalizer in an operation of its own object ran at one replica alone."""
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with (
        orca.join(listen=f"unix:{tmp_path}/group", stack=stack) as first,
        orca.join(seeds=first.address, stack=stack, timeout=30) as second,
    ):
        log = first.share(Log, "log")
        there = second.find(Log, "log")
        raised = outcome_of(log.end.nowait)
        log.add()
        first.fence()
        second.fence()
        assert raised == [None]
        assert (log.ended, there.ended) == (3, 3)
