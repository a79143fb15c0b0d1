"""Calls whose callers are interrupted, while others of the same member go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import Counter, Queue, Semaphore
from orcalike.objects.steps import Steps, _given_up
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


async def test_a_get_that_is_undone_late_is_undone() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        jobs = await group.share.aio(Queue[int], "jobs")
        for number in (1, 2, 3):
            await jobs.put.aio(number)
        getting: Steps[Any] = Queue[Any].get.steps(jobs)
        request = next(getting)
        assert await request.operation.aio(*request.arguments) == 1
        while_full(group, counter, lambda: interrupt(getting, asyncio.CancelledError))
        first = await jobs.get.aio()
        await asyncio.gather(*_given_up)
        assert jobs.qsize() == 2
        assert sorted([first, await jobs.get.aio(), await jobs.get.aio()]) == [1, 2, 3]


async def test_a_permit_that_is_released_late_is_released_once() -> None:
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
        await asyncio.gather(*_given_up)
        assert semaphore.value == 2
