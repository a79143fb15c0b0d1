"""What `.aio(...)` returns is a coroutine: for `create_task`, task groups, `wait_for` and `run`."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from tests.lib.shared_classes import Counter

LONG = 90.0


@orca.atomic
def add_to_both(one: Counter, other: Counter) -> int:
    """An atomic function."""
    other.add(1)
    return one.add(1)


async def test_each_is_a_coroutine() -> None:
    async with orca.join() as group:
        counter = await asyncio.create_task(group.share.aio(Counter, "counter"))
        other = await group.share.aio(Counter, "other")
        made: list[Coroutine[Any, Any, object]] = [
            counter.add.aio(1),
            counter.add.options(timeout=LONG).aio(by=1),
            counter.get.aio(),
            add_to_both.aio(counter, other),
            add_to_both.options(timeout=LONG).aio(counter, other),
            group.find.aio(Counter, "counter"),
            group.fence.aio(),
            group.barrier.aio(),
            group.drop.aio(other),
        ]
        for each in made:
            assert asyncio.iscoroutine(each)
            assert isinstance(each, Coroutine)
            assert inspect.isawaitable(each)
        found = [await asyncio.create_task(each) for each in made]
        assert found[:6] == [1, 2, found[2], 3, 4, counter]
        assert counter.get() == 4


async def test_a_task_group_takes_them() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(counter.add.aio(1)) for _ in range(100)]
        assert sorted(task.result() for task in made) == list(range(1, 101))
        assert await asyncio.gather(*(counter.add.aio(1) for _ in range(3))) == [101, 102, 103]
        try:
            async with asyncio.TaskGroup() as tasks:
                waits = tasks.create_task(counter.take.aio(1000))
                tasks.create_task(counter.fail.aio("broken"))
        except* ValueError:
            pass
        assert waits.cancelled()
        await counter.add.aio(1000)
        await group.fence.aio()
        assert counter.get() == 1104  # what the task group cancelled was withdrawn


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("timeout", [None, LONG])
async def test_a_cancelled_task_withdraws_the_call(steps: int, timeout: float | None) -> None:
    """Also one that is cancelled before it has begun to run."""
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        task = asyncio.create_task(counter.take.options(timeout=timeout).aio(5))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await group.fence.aio()
        assert await counter.add.aio(10) == 10
        assert counter.get() == 10


@pytest.mark.parametrize("seconds", [0, 0.01])
async def test_wait_for_withdraws_what_is_late(seconds: float) -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(counter.take.aio(5), seconds)
        await group.fence.aio()
        assert await asyncio.wait_for(counter.add.aio(10), LONG) == 10
        assert counter.get() == 10


async def test_a_call_is_sent_at_once() -> None:
    """In the order of the calls, whichever task runs first."""
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        first, second = counter.add.aio(1), counter.add.aio(2)
        assert await asyncio.create_task(second) == 3
        assert await first == 1
        third = counter.add.aio(3)
        third.close()  # nothing waits for it; it runs
        await group.fence.aio()
        assert counter.get() == 6


async def test_it_is_awaited_once() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        adding = counter.add.aio(1)
        assert await adding == 1
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await adding
        task = counter.add.aio(1)
        assert await asyncio.create_task(task) == 2
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await task
        for waits in (counter.take.aio(3), counter.take.options(timeout=LONG).aio(3)):
            waiting = asyncio.create_task(waits)  # it begins before its outcome is there
            await asyncio.sleep(0)
            await counter.add.aio(3)
            await waiting
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                await waits


class Wrapped:
    """What a program awaits, and that awaits something else."""

    def __init__(self, inner: Awaitable[object]) -> None:
        self.inner = inner

    def __await__(self) -> Generator[Any, None, object]:
        return (yield from self.inner.__await__())


async def test_a_class_of_the_program_may_await_it() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        assert await Wrapped(counter.add.aio(1)) == 1
        adding = asyncio.ensure_future(Wrapped(counter.take.aio(3)))
        await asyncio.sleep(0)
        await counter.add.aio(2)
        assert await adding == await counter.get.aio()


async def test_one_that_is_never_awaited_warns() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        made = [counter.add.aio(1)]
        with pytest.warns(RuntimeWarning, match=r"^coroutine 'Counter\.add' was never awaited"):
            made.clear()
        await group.fence.aio()
        assert counter.get() == 1


async def test_names_in_tasks() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        adding = counter.add.aio(1)
        assert isinstance(adding, InvocationCoroutine)
        assert adding.__name__ == "add"
        assert adding.__qualname__ == "Counter.add"
        assert repr(adding) == "<coroutine Counter.add>"
        task = asyncio.create_task(adding)
        assert "coro=<Counter.add()" in repr(task)
        await task
        assert repr(task)
        waiting = asyncio.create_task(counter.take.aio(5))
        await asyncio.sleep(0)
        assert "coro=<Counter.take()" in repr(waiting)
        await counter.add.aio(4)
        await waiting


def made_while_full(group: orca.Group, counter: Counter) -> list[InvocationCoroutine[object]]:
    """What `aio` returns where there is no room for the call."""
    made: list[InvocationCoroutine[object]] = []

    def fill(now: int) -> None:
        with contextlib.suppress(orca.WindowFull):
            while True:
                counter.add.nowait(0)
        made.append(counter.add.aio(1))
        made.append(counter.add.options(timeout=LONG).aio(by=1))
        made.append(add_to_both.aio(counter, counter))
        made.append(group.share.aio(Counter, "other"))
        made.append(group.drop.aio(counter))

    group._session.pump.call(fill)
    return made


async def test_it_is_of_the_same_kind_where_there_is_no_room() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        made = made_while_full(group, counter)
        assert {type(each) for each in made} == {InvocationCoroutine}
        names = ["Counter.add", "Counter.add", "add_to_both", "share 'other'", "drop"]
        assert [each.__qualname__ for each in made] == names
        assert [await asyncio.create_task(each) for each in made[:3]] == [1, 2, 4]
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await made[0]
        for each in made[3:]:
            each.close()
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await made[3]


async def test_one_for_which_there_was_no_room_says_that_it_was_not_sent() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        made = made_while_full(group, counter)
        with pytest.warns(
            RuntimeWarning,
            match="never awaited: there was no room for the call, and it was not sent",
        ):
            del made[0]
        cancelled = asyncio.create_task(made[0])
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        for each in made[1:]:
            each.close()
        await group.fence.aio()
        assert counter.get() == 0


def test_outside_of_a_loop(counter: Counter) -> None:
    run: Callable[[Awaitable[int]], int] = asyncio.run  # type: ignore[assignment]
    assert run(counter.add.aio(1)) == 1


class Turns:
    """Counts the turns of its event loop, by a task of its own."""

    def __init__(self) -> None:
        self.count = 0
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("order", ["TOTAL", "RING"])
def test_other_tasks_run_while_each_outcome_is_there_at_once(order: str) -> None:
    """A member that is alone has each outcome without waiting; its event loop is for all tasks."""

    async def main() -> None:
        async with orca.join("alone", stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
            counter = await group.share.aio(Counter, "counter")
            turns = Turns()
            for _ in range(1000):
                await counter.add.aio(1)
            turns.task.cancel()
            assert counter.value == 1000
            assert turns.count >= 1000 // 64

    asyncio.run(main())


@orca.shared
class Slow:
    """Each call holds its thread up for half a millisecond."""

    def __init__(self) -> None:
        self.calls = 0

    @orca.write
    def write(self) -> int:
        time.sleep(0.0005)  # orca: unchecked
        self.calls += 1
        return self.calls

    @orca.read
    def read(self) -> int:
        time.sleep(0.0005)  # orca: unchecked
        return self.calls


@pytest.mark.parametrize("order", ["TOTAL", "RING"])
@pytest.mark.parametrize("call", ["write", "read"])
def test_other_tasks_run_between_calls_that_take_long(order: str, call: str) -> None:
    """However few of them are awaited in a row."""

    async def main() -> None:
        async with orca.join("alone", stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
            slow = await group.share.aio(Slow, "slow")
            turns = Turns()
            await asyncio.sleep(0)
            before = turns.count
            for _ in range(30):
                await getattr(slow, call).aio()
            assert turns.count - before >= 14
            turns.task.cancel()

    asyncio.run(main())
