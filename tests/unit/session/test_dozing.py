"""A thread that waits in a group whose order is in shared memory dozes on that, and others of its process do the rest."""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.errors import GroupClosed
from orcalike.testing import Members
from orcalike.transport.drivers.driver import Waitable
from tests.lib.processes import DEADLINE, until

GOOD = 10**18
"""ns: as long as it may be here, so that none looks again by itself."""
SLEEPERS = slice(64, 72)
"""Where the order says which members doze (transport/ring/layout.h)."""

AWAITED: dict[int, Waitable] = {}
"""What `Count.finish` ends, by the replica that it runs on."""


@orca.shared
class Count:
    """A number that is waited for."""

    def __init__(self) -> None:
        self.number = 0

    @orca.write
    def to(self, number: int) -> None:
        """Another number."""
        self.number = number

    @orca.write
    def finish(self) -> None:
        """End what is waited for at this member."""
        if waitable := AWAITED.get(id(self)):  # orca: unchecked
            waitable.finish()

    @orca.read
    def reach(self, number: int) -> int:
        """The number, when it is as large as that."""
        return self.number

    @reach.when
    def _(self, number: int) -> bool:
        return self.number >= number


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[orca.Group]]:
    """Two members of one group, of which none looks again by itself, or wakes the other to compare states."""
    monkeypatch.setenv("ORCALIKE_CHECK", "none")
    members = Members(2, DEADLINE)
    try:
        for group in members:
            group._session.pump.doze_most = GOOD
        yield [*members]
    finally:
        members.close()


@contextmanager
def begun(function: Callable[[], object]) -> Iterator[threading.Thread]:
    """A thread that runs it, and has ended when the block is left."""
    thread = threading.Thread(target=function)
    thread.start()
    yield thread
    thread.join(DEADLINE)
    assert not thread.is_alive(), "it waits for good"


@contextmanager
def ended_by_a_signal(condition: Callable[[], object]) -> Iterator[None]:
    """The block raises what a signal's handler raises, which comes when the condition holds."""

    def raise_it(number: int, frame: object) -> None:
        raise InterruptedError

    def send() -> None:
        until(condition)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, raise_it)
    try:
        with begun(send), pytest.raises(InterruptedError):
            yield
    finally:
        signal.signal(signal.SIGUSR2, before)


def dozes(group: orca.Group) -> bool:
    """Whether a thread of this member is to be woken by the order itself."""
    stack = group._session.stack
    ring: Any = stack.dump()["RING"]
    (row,) = [row for row in ring["rows"] if row["row"] == ring["row"]]
    return bool(row["wants to be woken"])


def dozes_without_an_alarm(group: orca.Group, here: Count, there: Count) -> bool:
    """The same, after a write that has used up the alarm that was set when it began."""
    if there.number == 0 and dozes(group):
        here.to(1)
    return there.number == 1 and dozes(group)


def order_of(group: orca.Group) -> mmap.mmap:
    """The memory of its order, which other members of this process have, too."""
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if file.readlink().name.startswith(f"memfd:orcalike-order {group.name} "):
                with file.open("r+b") as opened:
                    return mmap.mmap(opened.fileno(), 0)
    raise AssertionError("no order in shared memory")


def counts(groups: list[orca.Group]) -> list[Count]:
    """One object, as each member has it."""
    first = groups[0].share(Count, "count")
    return [first, *(group.find(Count, "count", timeout=DEADLINE) for group in groups[1:])]


def test_a_write_of_another_member_wakes_a_thread_that_dozes(groups: list[orca.Group]) -> None:
    here, there = counts(groups)
    seen: list[int] = []
    with begun(lambda: seen.append(there.reach(1))):
        until(lambda: dozes(groups[1]), "it dozes")
        here.to(1)
    assert seen == [1]


def test_two_threads_of_one_member_wait_and_one_dozes(groups: list[orca.Group]) -> None:
    """The one that dozes may be done before the other, which is then woken in another way."""
    here, there = counts(groups)
    seen: list[int] = []

    def wait_for(number: int) -> None:
        seen.append(there.reach(number))

    def write(number: int) -> None:
        here.to(number)
        until(lambda: len(seen) == number, "the thread that has waited for it")

    for first, second in ((1, 2), (4, 3)):
        with ExitStack() as stack:
            for number in (first, second):
                stack.enter_context(begun(partial(wait_for, number)))
                until(lambda: dozes(groups[1]), "one of them dozes")
            write(min(first, second))
            write(max(first, second))
    assert seen == [1, 2, 3, 4]


def test_the_pumps_own_thread_serves_the_sockets_meanwhile(groups: list[orca.Group]) -> None:
    """A third member joins, and leaves, while all others wait."""
    here, there = counts(groups)
    seen: list[int] = []
    with (
        begun(lambda: seen.append(here.reach(1))),
        begun(lambda: seen.append(there.reach(1))),
    ):
        until(lambda: all(map(dozes, groups)), "both doze")
        third = orca.connect(seeds=groups[0].address)
        third.find(Count, "count", timeout=DEADLINE).to(1)
        third.close()
    assert seen == [1, 1]


def test_what_another_thread_ends_wakes_the_one_that_dozes(groups: list[orca.Group]) -> None:
    """And the member is woken by writes from then on as it was before."""
    here, there = counts(groups)
    waitable, done = Waitable(), list[bool]()
    with begun(lambda: done.append(groups[1]._session.pump.attend(waitable))):
        until(lambda: dozes(groups[1]), "it dozes")
        waitable.finish()
    assert done == [True]
    here.to(7)
    until(lambda: there.number == 7, "the write is applied, though nothing waits for it")
    assert (here.number, there.number) == (7, 7)


def test_a_wait_that_a_signal_ends_leaves_the_member_awake_to_writes(
    groups: list[orca.Group],
) -> None:
    here, there = counts(groups)
    with ended_by_a_signal(lambda: dozes_without_an_alarm(groups[1], here, there)):
        groups[1]._session.pump.attend(Waitable())
    here.to(7)
    until(lambda: there.number == 7, "the write is applied, though nothing waits for it")
    assert (here.number, there.number) == (7, 7)


def test_a_group_that_is_left_wakes_the_thread_that_dozes(groups: list[orca.Group]) -> None:
    _, there = counts(groups)
    errors: list[Exception] = []

    def wait() -> None:
        try:
            there.reach(1)
        except GroupClosed as error:
            errors.append(error)

    with begun(wait):
        until(lambda: dozes(groups[1]), "it dozes")
        groups[1].close()
    assert len(errors) == 1


def test_a_child_that_is_forked_meanwhile_goes_on_without_the_group(
    groups: list[orca.Group],
) -> None:
    """It has neither the thread that dozes nor the memory of the order."""
    here, there = counts(groups)
    seen: list[int] = []
    with begun(lambda: seen.append(there.reach(1))):
        until(lambda: dozes(groups[1]), "it dozes")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                here.to(1)
            except GroupClosed:
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        here.to(1)
    assert seen == [1]


def test_it_looks_again_if_one_that_was_to_wake_it_never_does(
    groups: list[orca.Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be stopped after it has taken the bits of those that sleep, and before it wakes them."""
    here, there = counts(groups)
    pump, waitable, done = groups[1]._session.pump, Waitable(), list[bool]()
    pump.doze_most = 20_000_000
    monkeypatch.setitem(AWAITED, id(there), waitable)
    with order_of(groups[0]) as order, begun(lambda: done.append(pump.attend(waitable))):
        until(lambda: dozes_without_an_alarm(groups[1], here, there))
        order[SLEEPERS] = bytes(8)
        here.finish()
    assert done == [True]
