"""Atomic functions: one message for operations on several objects."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from tests.lib.shared_classes import (
    Counter,
    Gate,
    Journal,
    transfer,
    transfer_undone,
    transfer_when,
)


@pytest.fixture
def accounts(group: orca.Group) -> tuple[Counter, Counter]:
    return group.share(Counter, "alice", 100), group.share(Counter, "bob", 50)


def test_three_ways_of_calling(accounts: tuple[Counter, Counter]) -> None:
    alice, bob = accounts
    assert transfer(alice, bob, 30) == 70
    assert transfer.nowait(alice, bob, amount=10).result() == 60
    assert transfer(alice, bob) == 59

    async def in_a_coroutine() -> int:
        with pytest.raises(orca.BlockingInLoop):
            transfer(alice, bob)
        return await transfer.aio(bob, alice, 41)

    assert asyncio.run(in_a_coroutine()) == 50
    assert (alice.get(), bob.get()) == (100, 50)


def test_an_argument_that_cannot_travel_is_named_by_its_place(
    accounts: tuple[Counter, Counter],
) -> None:
    with pytest.raises(orca.NotSerializable, match=r"^argument 3 of transfer: .*'object'"):
        transfer(*accounts, object())  # type: ignore[arg-type]


@orca.atomic
def add_to_all(counters: Any, by: int) -> None:
    for counter in counters:
        counter.add(by)


@orca.atomic
def add_to_each(*counters: Counter, by: int) -> None:
    for counter in counters:
        counter.add(by)


@pytest.mark.parametrize("wrap", [list, dict.fromkeys, lambda both: [tuple(both)], deque])
def test_objects_in_a_container_are_refused(
    accounts: tuple[Counter, Counter], wrap: Callable[[tuple[Counter, Counter]], Any]
) -> None:
    """Each of its calls would have a place of its own in the order."""
    with pytest.raises(ValueError, match=r"pass each of them .* as in add_to_all\(\*objects\)"):
        add_to_all(wrap(accounts), 5)
    add_to_all([Counter(1), Counter(2)], 5)
    add_to_each(*accounts, by=5)
    assert [counter.get() for counter in accounts] == [105, 55]


@orca.atomic
def add_to_both(counter: Counter, others: list[Counter]) -> None:
    for each in (counter, *others):
        each.add(1)


def test_an_object_that_it_was_not_given_is_refused(accounts: tuple[Counter, Counter]) -> None:
    with pytest.raises(orca.NestedWrite, match=r"Counter\.add .* as an argument of its own"):
        add_to_both(accounts[0], [accounts[1]])


def test_an_exception_leaves_what_was_done(accounts: tuple[Counter, Counter]) -> None:
    alice, bob = accounts
    with pytest.raises(ValueError, match="only 100") as caught:
        transfer(alice, bob, 500)
    assert caught.value.__notes__ == ["in transfer of 'alice'"]
    assert (alice.get(), bob.get()) == (100, 550)


def test_undo_takes_back_all_of_them_and_false_guards_raise(
    accounts: tuple[Counter, Counter],
) -> None:
    alice, bob = accounts
    assert transfer_undone(alice, bob, 10) == 90
    with pytest.raises(orca.GuardFalse, match=r"Counter\.take"):
        transfer_undone(alice, bob, 500)
    assert (alice.get(), bob.get()) == (90, 60)


def test_its_guard_waits_for_any_of_the_objects(accounts: tuple[Counter, Counter]) -> None:
    alice, bob = accounts
    first = transfer_when.nowait(alice, bob, amount=120)
    second = transfer_when.nowait(bob, alice, amount=150)  # needs what the first brings
    assert not first.done()
    alice.add(20)
    assert first.result() == 50 + 120
    assert second.result() == 150
    assert (alice.get(), bob.get()) == (150, 20)
    with pytest.raises(ValueError, match="a negative amount"):
        transfer_when(alice, bob, amount=-1)


def test_calls_that_wait_at_each_of_its_objects_are_tried(
    accounts: tuple[Counter, Counter],
) -> None:
    alice, bob = accounts
    waiting = [bob.take.nowait(60), alice.take.nowait(60)]
    assert [invocation.done() for invocation in waiting] == [False, True]
    transfer(alice, bob, 10)
    assert waiting[0].result() == 0


def test_a_chain_of_objects_that_are_bound_together(group: orca.Group) -> None:
    first, second, third = (group.share(Counter, name) for name in "abc")
    waiting = [
        transfer_when.nowait(second, third, amount=2),
        transfer_when.nowait(first, second, amount=2),
    ]
    third_takes = third.take.nowait(2)
    first.add(2)
    assert [invocation.result("30s") for invocation in waiting] == [2, 2]
    assert third_takes.result() == 0
    assert [counter.get() for counter in (first, second, third)] == [0, 0, 0]


def test_a_time_limit_withdraws_it(accounts: tuple[Counter, Counter]) -> None:
    alice, bob = accounts
    with pytest.raises(orca.InvocationTimeout) as caught:
        transfer_when.options(timeout=0.01)(alice, bob, amount=500)
    assert caught.value.outcome == "withdrawn"
    alice.add(1000)
    assert (alice.get(), bob.get()) == (1100, 50)

    cancelled = transfer_when.nowait(alice, bob, amount=5000)
    assert cancelled.cancel()
    with pytest.raises(orca.InvocationCancelled):
        cancelled.result()


def test_objects_of_none_and_of_two_groups(accounts: tuple[Counter, Counter]) -> None:
    alice, _ = accounts
    plain, other = Counter(5), Counter(0)
    assert transfer(plain, other, 3) == 2
    assert transfer.nowait(plain, other, 1).result() == 1
    with pytest.raises(orca.GuardFalse):
        transfer_when(plain, other, amount=3)
    with orca.join("second") as second:
        far = second.share(Counter, "far")
        with pytest.raises(ValueError, match="objects of different groups"):
            transfer(alice, far, 1)


def test_one_object_twice(accounts: tuple[Counter, Counter]) -> None:
    alice, _ = accounts
    assert transfer(alice, alice, 10) == 100
    waiting = transfer_when.nowait(alice, alice, amount=101)
    alice.add(1)
    assert waiting.result() == 101


def test_others_than_its_arguments_are_refused(
    accounts: tuple[Counter, Counter], journal: Journal
) -> None:
    alice, bob = accounts
    journal.refer_to(bob)
    with pytest.raises(orca.NestedWrite):
        note_elsewhere(alice, journal)
    with pytest.raises(orca.NestedWrite):
        alice.show(lambda _: transfer(alice, bob, 1))


@orca.atomic
def note_elsewhere(counter: Counter, journal: Journal) -> None:
    other = journal.referred()
    assert isinstance(other, Counter)
    other.add(counter.get())


def test_it_waits_for_the_mutexes_of_all_its_objects(
    accounts: tuple[Counter, Counter], journal: Journal
) -> None:
    alice, bob = accounts
    with Gate("held") as gate:
        held = journal.note_slowly.nowait("held")
        gate.wait_until_reached()
        noted = note_both.nowait(alice, journal)
        later = alice.add.nowait(1)
        assert not noted.done()
        assert not later.done()  # alice is held for the function before it
        assert bob.add(1) == 51
        gate.open()
        assert held.result() == "held"
    assert noted.result() == 100
    assert later.result() == 101
    assert journal.history() == ["held", "counted 100"]


@orca.atomic
def note_both(counter: Counter, journal: Journal) -> int:
    journal.note(f"counted {counter.get()}")
    return counter.get()


@orca.atomic
def take_when_quiet(counter: Counter, journal: Journal) -> str:
    """Shows which state of the journal it found when the counter let it run."""
    counter.add(-1)
    return journal.history()[-1]


@take_when_quiet.when
def _(counter: Counter, journal: Journal) -> bool:
    return counter.get() > 0


def test_a_guard_never_sees_an_object_in_the_middle_of_an_operation(
    group: orca.Group, journal: Journal
) -> None:
    """A write to one of its objects wakes it only when all before it has run at the others."""
    counter = group.share(Counter, "counter")
    waiting = take_when_quiet.nowait(counter, journal)
    with Gate("slow") as gate:
        slow = journal.note_slowly.nowait("slow")
        gate.wait_until_reached()
        counter.add.nowait(1)
        journal.note.nowait("after")
        assert not waiting.done()
        gate.open()
        slow.result()
    assert waiting.result() == "slow"  # in the order: slow, add (which wakes it), after
    assert journal.history() == ["slow", "after"]


def test_from_many_threads_nothing_is_lost(accounts: tuple[Counter, Counter]) -> None:
    alice, bob = accounts

    def move(source: Counter, target: Counter) -> None:
        for _ in range(200):
            transfer_when(source, target, amount=1)

    threads = [
        threading.Thread(target=move, args=pair)
        for pair in [(alice, bob), (bob, alice), (alice, bob), (bob, alice)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (alice.get(), bob.get()) == (100, 50)
