"""A user's program as a type checker sees it, with no plugin.

`test_typing.py` runs mypy --strict on it, and expects the errors that the comments name on their
lines, and no others. It is read by mypy, never run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Generic, Self, TypeVar, assert_type

import orcalike as orca
from orcalike.objects import Cache, Dict, Queue

T = TypeVar("T")


@orca.shared
class JobQueue:
    def __init__(self, limit: int = 10) -> None:
        self.limit = limit
        self.jobs: list[int] = []

    @orca.write
    def put(self, job: int, *, urgent: bool = False) -> None:
        self.jobs.insert(0 if urgent else len(self.jobs), job)

    @put.when
    def _(self, job: int, *, urgent: bool = False) -> bool:
        return len(self.jobs) < self.limit

    @orca.write(undo=True)
    def get(self) -> int | None:
        return self.jobs.pop(0) if self.jobs else None

    @get.when
    def _(self) -> bool:
        return bool(self.jobs)

    @orca.read
    def __len__(self) -> int:
        return len(self.jobs)

    @property
    @orca.read
    def first(self) -> int:
        return self.jobs[0]

    @orca.local
    def describe(self, width: int) -> str:
        return str(self.jobs)[:width]

    @orca.write
    def move(self, job: int) -> str:
        assert_type(self.get(), int | None)
        self.put("1")  # error: arg-type
        return "moved"

    @move.when  # error: arg-type
    def _(self, job: str) -> bool:
        return True

    @orca.write
    def mark(self, /, *jobs: int, **notes: str) -> JobQueue:
        return self

    @orca.write  # error: arg-type
    def note(self, **notes: str) -> None:
        """One of the notes could be called `self`, says mypy."""

    @orca.write
    def chained(self) -> Self:
        return self

    @orca.write
    def drop(self, job: int) -> None:
        self.jobs.remove(job)

    @drop.when  # error: arg-type
    def _(self, job: int) -> str:
        return "yes"


@orca.shared(resilience=1)
@dataclass
class Account:
    owner: str
    balance: int = 0

    @orca.write
    def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @orca.write
    def withdraw(self, amount: int) -> int:
        self.balance -= amount
        return self.balance


@orca.shared
class Savings(Account):
    @orca.write
    def deposit(self, amount: int, *, bonus: int = 0) -> int:
        return super().deposit(amount + bonus)

    @orca.write
    def withdraw(self, amount: str) -> int:  # error: override
        return super().withdraw(int(amount))


@orca.shared
class Box(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value

    @orca.read
    def get(self) -> T:
        return self.value

    @orca.write
    def set(self, value: T) -> None:
        self.value = value


@orca.atomic
def transfer(source: Account, target: Account, amount: int) -> bool:
    source.withdraw(amount)
    target.deposit(amount)
    return True


@transfer.when
def _(source: Account, target: Account, amount: int) -> bool:
    return source.balance >= amount


@orca.atomic(undo=True)
def swap(left: Box[int], right: Box[int]) -> None:
    mine, other = left.get(), right.get()
    left.set(other)
    right.set(mine)


@swap.when  # error: arg-type
def _(left: Box[int]) -> bool:
    return True


def threads() -> None:
    with orca.join() as group:
        assert_type(group, orca.Group)
        queue = group.share(JobQueue, "jobs", limit=3)
        assert_type(queue, JobQueue)
        assert_type(group.find(JobQueue, "jobs"), JobQueue)
        group.share(JobQueue, "jobs", "3")  # error: arg-type
        group.share(JobQueue, "jobs", size=3)  # error: call-arg
        group.share(Account, "alice")  # error: call-arg

        assert_type(queue.put(1, urgent=True), None)
        assert_type(queue.get(), int | None)
        assert_type(queue.mark(1, 2, done="yes"), JobQueue)
        queue.mark(1, done=2)  # error: arg-type
        queue.chained()  # error: call-overload
        assert_type(queue.get.nowait(), orca.Invocation[int | None])
        assert_type(queue.get.nowait().result(timeout=1.0), int | None)
        assert_type(queue.get.nowait().cancel(), bool)
        assert_type(queue.get.options(timeout=2.0)(), int | None)
        assert_type(queue.get.options(stable=2)(), int | None)
        assert_type(queue.get.options(timeout=2.0).nowait().done(), bool)
        assert_type(len(queue), int)
        assert_type(queue.first, int)
        assert_type(queue.describe(3), str)
        assert_type(JobQueue.get(queue), int | None)
        queue.put("one")  # error: arg-type
        queue.put()  # error: call-arg
        queue.put.nowait(1, hurry=True)  # error: call-arg
        queue.put.options(timeout=b"2")(1)  # error: arg-type
        queue.put.options(stable="2")(1)  # error: arg-type
        queue.get().bit_count()  # error: union-attr
        queue.get.later()  # error: attr-defined
        queue.describe("3")  # error: arg-type
        queue.empty()  # error: attr-defined

        alice = group.share(Account, "alice", "Alice", balance=10)
        bob = group.share(Savings, "bob", owner="Bob")
        assert_type(bob.deposit(1, bonus=2), int)
        assert_type(alice.balance, int)
        assert_type(transfer(alice, bob, amount=3), bool)
        assert_type(transfer.nowait(alice, bob, 3), orca.Invocation[bool])
        assert_type(transfer.options(timeout=1.0)(alice, bob, 3), bool)
        transfer(alice, bob)  # error: call-arg
        transfer(alice, queue, 3)  # error: arg-type

        box = group.share(Box, "box", 1)
        assert_type(box, Box[int])
        assert_type(box.get(), int)
        box.set("two")  # error: arg-type


def ready_made(
    counts: Dict[str, int], names: Dict[str, str | None], cache: Cache[str, bytes], jobs: Queue[int]
) -> None:
    assert_type(counts.get("a"), int | None)
    assert_type(counts.get("a", 0), int)
    assert_type(counts.get("a", "none"), int | str)
    assert_type(counts.get.nowait("a").result(), int | None)
    assert_type(counts.get.options(timeout=1)("a", 0), int)
    assert_type(counts.pop("a"), int)
    assert_type(counts.pop("a", 0), int)
    assert_type(counts.pop("a", None), int | None)
    assert_type(counts.pop.nowait("a", "none"), orca.Invocation[int | str])
    assert_type(counts.setdefault("a", 0), int)
    assert_type(counts.setdefault.nowait("a", 0), orca.Invocation[int])
    assert_type(names.setdefault("a"), str | None)
    assert_type(cache.get("x"), bytes | None)
    assert_type(cache.get("x", b""), bytes)
    assert_type(cache.get("x", 0), bytes | int)
    assert_type(cache.pop("x"), bytes | None)
    assert_type(cache.pop("x", default=0), bytes | int)
    counts.get("a") + 1  # error: operator
    counts.get(1)  # error: call-overload
    counts.setdefault("a")  # error: call-arg
    counts.setdefault("a", "b")  # error: arg-type
    cache.get("x").decode()  # error: union-attr
    jobs.put.nowait(1)  # error: attr-defined
    jobs.put.options(timeout=1)  # error: attr-defined


async def coroutines() -> None:
    async with orca.join(size=2) as group:
        queue = group.share(JobQueue, "jobs")
        assert_type(await queue.put.aio(1), None)
        assert_type(await queue.get.aio(), int | None)
        assert_type(await queue.get.nowait(), int | None)
        assert_type(await queue.get.options(timeout=1.0).aio(), int | None)
        first, second = await asyncio.gather(queue.get.aio(), queue.move.aio(1))
        assert_type(first, int | None)
        assert_type(second, str)
        assert_type(await asyncio.create_task(queue.get.aio()), int | None)
        assert_type(await asyncio.wait_for(queue.move.aio(1), 1.0), str)
        async with asyncio.TaskGroup() as tasks:
            assert_type(tasks.create_task(queue.move.aio(1)), asyncio.Task[str])
            tasks.create_task(queue.put.nowait(1))  # error: arg-type
        await queue.put.aio("one")  # error: arg-type
        await queue.put(1)  # error: misc
