"""Any allocation may begin a collection of garbage, from which another thread may go on (D04).

A finalizer, or a socket that is closed, lets go of the interpreter's lock. What that other thread calls
takes along what lies in PACK, and all that it does may come between two steps of a call.
"""

from __future__ import annotations

import gc
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

import orcalike as orca
from orcalike.session.group_calls import Share
from orcalike.session.joining import Joining
from tests.instructions.workload import Network
from tests.lib.shared_classes import Counter

POINTS = 12
"""Collections within one call that are tried, one after the other."""
APART = 4
"""So many allocations after each other at the most: by one more, the points are others."""
BRIEF = 0.03
"""Seconds for what the collection runs: it waits in vain where this thread is in the core."""
LONG = 10.0


@orca.shared
class Ballot:
    """Its operations have two degrees."""

    def __init__(self) -> None:
        self.votes = 0

    @orca.read
    def count(self) -> int:
        return self.votes

    @orca.write
    def vote(self) -> None:
        self.votes += 1

    @orca.write(resilience="majority")
    def vote_safely(self) -> None:
        self.votes += 1


class Meddler:
    """A thread that does something when a collection lets it, each time once."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.action = action
        self.main = threading.get_ident()
        self.wait_for = -1
        """Collections of the first thread before the one in which it acts; below 0: none."""
        self.begun = self.ended = 0
        self.go, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Act as often as it may."""
        while True:
            self.go.acquire()
            self.action()
            self.done.release()

    def collected(self, phase: str, _info: object) -> None:
        """One of `gc.callbacks`."""
        if phase != "start" or threading.get_ident() != self.main or self.wait_for < 0:
            return
        self.wait_for -= 1
        if self.wait_for < 0:
            self.begun += 1
            self.go.release()
            self.ended += self.done.acquire(timeout=BRIEF)

    def settle(self) -> None:
        """Wait until it has done what it began."""
        self.wait_for = -1
        while self.ended < self.begun:
            assert self.done.acquire(timeout=LONG)
            self.ended += 1


@contextmanager
def meddling(action: Callable[[], object]) -> Iterator[Meddler]:
    """Collections as often as there can be, and a thread that goes on in them."""
    before = gc.get_threshold()
    meddler = Meddler(action)
    gc.callbacks.append(meddler.collected)
    try:
        yield meddler
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(meddler.collected)
        meddler.settle()


def tried(
    meddler: Meddler, call: Callable[[], object], prepare: Callable[[], object] = lambda: None
) -> None:
    """Make a call over and over, with a collection at each of its points that the thread goes on in."""
    for point, apart in itertools.product(range(POINTS), range(1, APART + 1)):
        prepare()
        gc.set_threshold(apart)
        meddler.wait_for = point
        call()
        meddler.settle()
    assert meddler.ended


def alone(order: str) -> Joining:
    """A group of one. What fails ends its block, which then waits for no call that is lost, as a fixture's would."""
    return orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix")


@orca.atomic
def both(counter: Counter, other: Counter) -> int:
    """A write of two objects."""
    return counter.add(1) + other.add(1)


@orca.atomic
def twice(counter: Counter) -> int:
    """Two writes in one."""
    counter.add(1)
    return counter.add(1)


CALLS: dict[str, Callable[[Counter], orca.Invocation[int]]] = {
    "plain": lambda counter: counter.add.nowait(1),
    "by name": lambda counter: counter.add.nowait(by=1),
    "large": lambda counter: counter.add_all.nowait(*range(1000)),
    "atomic": lambda counter: twice.nowait(counter),
}


EACH = {"plain": 1, "by name": 1, "large": sum(range(1000)), "atomic": 2}
"""What each adds."""


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("recorded", [False, True])
def test_no_outcome_is_lost(
    kind: str, recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """A call that another thread sent, and received, before it was on file as under way was never over."""
    if recorded:
        monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path))
    with alone(order) as group:
        counter = group.share(Counter, "counter")
        with meddling(counter.add) as meddler:

            def call() -> None:
                for invocation in [CALLS[kind](counter) for _ in range(3)]:
                    invocation.result(timeout=LONG)

            tried(meddler, call)
        calls, each = 3 * POINTS * APART, EACH[kind]
        assert counter.get() == calls * each + meddler.ended


def test_no_call_of_the_group_is_lost(order: str) -> None:
    with alone(order) as group:
        counter = group.share(Counter, "counter")
        with meddling(counter.add) as meddler:
            tried(meddler, partial(group.barrier, timeout=LONG))
        assert counter.get() == meddler.ended


def test_degrees_in_turn(order: str) -> None:
    """Each call begins a run of another degree: to note that made an object, between two steps of it."""
    with alone(order) as group:
        counter, ballot = group.share(Counter, "counter"), group.share(Ballot, "ballot")

        def call() -> None:
            votes = [ballot.vote.nowait(), ballot.vote_safely.nowait(), ballot.vote.nowait()]
            for vote in votes:
                vote.result(timeout=LONG)

        with meddling(counter.add) as meddler:
            tried(meddler, call)
        assert (ballot.count(), counter.get()) == (3 * POINTS * APART, meddler.ended)


class NotedError(Exception):
    """From where it is noted what raised it, a collection comes so many allocations later."""

    def __init__(self, allocations: int) -> None:
        super().__init__(allocations)
        self.allocations = allocations

    def add_note(self, note: str) -> None:
        super().add_note(note)
        self.kept: list[object] = []
        gc.collect()
        gc.set_threshold(self.allocations)
        self.kept = []


@orca.shared
class Failing:
    """One of its writes fails."""

    @orca.write
    def fail(self, allocations: int) -> None:
        raise NotedError(allocations)

    @orca.write
    def succeed(self) -> None:
        """Behind one that fails; the member keeps the last call that it has made."""


T = TypeVar("T")


def shared(network: Network, kind: type[T]) -> list[T]:
    """An object of three members, as each has it."""
    objects = []
    for node in network.nodes:
        invocation = Share(node.runtime).nowait(kind, "shared")
        network.move()
        objects.append(invocation.result())
    return objects


@pytest.mark.usefixtures("order")
def test_a_call_that_is_collected_is_under_way_for_nothing() -> None:
    """The next one may have its memory, and must have its own outcome."""
    network = Network()
    counter = shared(network, Counter)[1]
    holder: list[object] = [counter.add.nowait(1)]
    holder.append(holder)
    last = counter.add.nowait(2)  # which the member keeps
    del holder
    gc.collect()
    later = counter.add.nowait(3)
    network.move()
    assert (last.result(), later.result()) == (3, 6)


@pytest.mark.usefixtures("order")
def test_a_failure_that_is_let_go_as_it_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """To keep account of it makes an object, and what the collection runs has the last reference to the call."""
    network = Network()
    failing = shared(network, Failing)
    held: list[orca.Invocation[None]] = []
    before, met = gc.get_threshold(), []

    def let_go(phase: str, _info: object) -> None:
        if gc.get_threshold() != before:
            gc.set_threshold(*before)
            met.append(len(held))
            held.clear()

    gc.callbacks.append(let_go)
    try:
        with caplog.at_level(logging.WARNING, "orcalike"):
            for allocations in range(1, 2 * APART):
                held.append(failing[1].fail.nowait(allocations))
                failing[1].succeed.nowait()
                network.move()
                gc.set_threshold(*before)
                held.clear()
    finally:
        gc.callbacks.remove(let_go)
        gc.set_threshold(*before)
    assert any(met)
    assert caplog.text.count("its outcome was not asked for") == 2 * APART - 1


class Reader:
    """A thread that holds an object's mutex until it is let go."""

    def __init__(self, counter: Counter) -> None:
        self.holds, self.ends = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=counter.show, args=(self.hold,), daemon=True)
        self.thread.start()
        assert self.holds.wait(LONG)

    def hold(self, value: int) -> int:
        """Runs in the read."""
        self.holds.set()
        assert self.ends.wait(LONG)
        return value

    def let_go(self) -> None:
        """End it; its thread runs what has queued."""
        self.ends.set()
        self.thread.join(LONG)


@pytest.mark.parametrize("kind", ["write", "read", "atomic"])
def test_a_mutex_that_is_let_go_as_a_call_queues(order: str, kind: str) -> None:
    """What queued had looked at the mutex before it made the queue: nothing handed the mutex on to it."""
    calls: dict[str, Callable[[Counter, Counter], orca.Invocation[int]]] = {
        "write": lambda counter, _: counter.add.nowait(1),
        "read": lambda counter, _: counter.get.nowait(),
        "atomic": lambda counter, other: both.nowait(counter, other),
    }
    names = itertools.count()
    counters: list[Counter] = []
    readers: list[Reader] = []

    def prepare() -> None:
        counters[:] = [group.share(Counter, f"counter {next(names)}") for _ in range(2)]
        readers[:] = [Reader(counter) for counter in counters]
        meddler.action = readers[0].let_go

    def call() -> None:
        invocation = calls[kind](*counters)
        meddler.wait_for = -1
        assert kind != "atomic" or not invocation.done()
        for reader in readers:
            reader.let_go()
        invocation.result(timeout=LONG)

    with alone(order) as group, meddling(lambda: None) as meddler:
        tried(meddler, call, prepare)
