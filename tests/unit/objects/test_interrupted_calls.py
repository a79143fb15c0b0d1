"""Calls whose callers are interrupted, while others of the same member go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import Condition, Counter, Election, Queue, RLock, Semaphore
from orcalike.objects.steps import Steps
from tests.unit.objects.members import Lab


def begin(steps: Steps[object]) -> None:
    """Have the first call of a method done; its caller does not know."""
    request = next(steps)
    request.operation(*request.arguments)


def interrupt(steps: Steps[object], error: type[BaseException] = KeyboardInterrupt) -> None:
    """Interrupt its caller."""
    with pytest.raises(error):
        steps.throw(error)


@pytest.mark.parametrize("others", [1, 2])
def test_a_permit_is_undone_though_another_one_of_the_member_was_released(
    lab: Lab, others: int
) -> None:
    semaphore = lab.share(Semaphore, 3)
    acquiring = Semaphore.acquire.steps(semaphore)
    begin(acquiring)
    for _ in range(others):
        assert semaphore.acquire()
    semaphore.release()
    interrupt(acquiring)
    lab.groups[0].fence()
    assert semaphore.value == 4 - others
    assert sum(semaphore._held.values()) == others - 1
    lab.compare()


def test_a_permit_that_another_member_has_released_is_not_undone(lab: Lab) -> None:
    here, there, _ = lab.at_each(Semaphore, 2)
    acquiring = Semaphore.acquire.steps(here)
    begin(acquiring)
    there.release()
    interrupt(acquiring)
    lab.groups[0].fence()
    assert (here.value, here._held) == (2, {})
    lab.compare()


def while_full(group: orca.Group, counter: Counter, function: Callable[[], None]) -> None:
    """Call it on an event loop while this member may invoke no more."""

    def fill(now: int) -> None:
        with contextlib.suppress(orca.WindowFull):
            while True:
                counter.add.nowait()
        function()

    group._session.pump.call(fill)


async def test_a_get_is_undone_before_the_next_call() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        jobs = await group.share.aio(Queue[int], "jobs")
        for number in (1, 2, 3):
            await jobs.put.aio(number)
        getting: Steps[Any] = Queue[Any].get.steps(jobs)
        request = next(getting)
        assert await request.operation.aio(*request.arguments) == 1
        while_full(group, counter, lambda: interrupt(getting, asyncio.CancelledError))
        assert [await jobs.get.aio() for _ in range(3)] == [1, 2, 3]


async def test_a_permit_is_released_once_though_the_member_is_full() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        semaphore = await group.share.aio(Semaphore, "semaphore", 2)
        for _ in range(2):
            assert await semaphore.acquire.aio()
        leaving = Semaphore._leave.steps(semaphore)
        request = next(leaving)
        await request.operation.aio(*request.arguments)
        while_full(group, counter, lambda: interrupt(leaving, asyncio.CancelledError))
        await semaphore._leave.aio()
        assert semaphore.value == 2


def test_an_election_that_another_call_of_the_member_has_won_meanwhile_is_not_left(
    lab: Lab,
) -> None:
    election, there, _ = lab.at_each(Election)
    assert election.campaign() == 1
    leaving = Election._leave.steps(election)
    begin(leaving)
    assert election.campaign() == 2
    interrupt(leaving)
    lab.groups[0].fence()
    lab.groups[1].fence()
    assert there.leader() == lab.groups[0].me
    lab.compare()


@pytest.mark.parametrize("ran", [False, True])
def test_an_election_is_left_though_the_caller_is_interrupted(lab: Lab, *, ran: bool) -> None:
    election = lab.share(Election)
    assert election.campaign() == 1
    leaving = Election._leave.steps(election)
    request = next(leaving)
    if ran:
        request.operation(*request.arguments)
    interrupt(leaving)
    lab.groups[0].fence()
    assert election.leader() is None
    lab.compare()


async def lock_twice(group: orca.Group) -> RLock:
    lock = await group.share.aio(RLock, "lock")
    for _ in range(2):
        assert await lock.acquire.aio()
    return lock


@pytest.mark.parametrize("ran", [False, True])
async def test_a_lock_is_released_once_though_the_member_is_full(*, ran: bool) -> None:
    """Also if its holder has acquired it again meanwhile."""
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        lock = await lock_twice(group)
        releasing = RLock.release.steps(lock)
        request = next(releasing)
        if ran:
            await request.operation.aio(*request.arguments)
        while_full(group, counter, lambda: interrupt(releasing, asyncio.CancelledError))
        assert await lock.acquire.aio()
        for _ in range(2):
            assert lock.locked()
            await lock.release.aio()
        assert not lock.locked()


@pytest.mark.parametrize("released", [False, True])
async def test_an_acquisition_is_undone_once_though_the_member_is_full(*, released: bool) -> None:
    """Whatever its caller does with the lock meanwhile."""
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        lock = await lock_twice(group)
        acquiring = RLock.acquire.steps(lock)
        request = next(acquiring)
        assert await request.operation.aio(*request.arguments)
        while_full(group, counter, lambda: interrupt(acquiring, asyncio.CancelledError))
        held = 2
        if released:
            await lock.release.aio()
            held -= 1
        else:
            assert await lock.acquire.aio()
            held += 1
        for _ in range(held):
            assert lock.locked()
            await lock.release.aio()
        assert not lock.locked()


async def notify(condition: Condition) -> None:
    async with condition:
        await condition.notify.aio()


@pytest.mark.parametrize("ran", [False, True])
@pytest.mark.parametrize("method", [RLock.acquire, RLock.release])
async def test_a_wait_restores_no_acquisition_that_was_undone(method: Any, *, ran: bool) -> None:
    """A nested acquisition that was cancelled, or a release, which is done all the same."""
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        condition = await group.share.aio(Condition, "condition")
        assert await condition.acquire.aio()
        if method is RLock.release:
            assert await condition.acquire.aio()
        interrupted = method.steps(condition)
        request = next(interrupted)
        if ran:
            await request.operation.aio(*request.arguments)
        while_full(group, counter, lambda: interrupt(interrupted, asyncio.CancelledError))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(notify(condition))
            assert await condition.wait.aio(timeout=60)
        assert condition.locked()
        await condition.release.aio()
        await group.fence.aio()
        assert not condition.locked()
