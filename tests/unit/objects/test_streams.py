"""Queues, topics and caches, from several members at once."""

from __future__ import annotations

import asyncio
import queue
import threading

import pytest

import orcalike as orca
from orcalike.objects import Cache, LifoQueue, PriorityQueue, Queue, ShutDown, Topic
from orcalike.objects.topics import Subscription
from tests.unit.objects.members import DEADLINE, Lab, run_in_threads


def test_each_item_goes_to_one_member(lab: Lab) -> None:
    queues: list[Queue[int]] = lab.at_each(Queue, 3)
    taken: list[int] = []

    def produce() -> None:
        for number in range(40):
            queues[0].put(number)  # waits for room
        queues[0].shutdown()

    def consume(jobs: Queue[int]) -> None:
        for number in jobs:
            taken.append(number)
            jobs.task_done()

    run_in_threads([produce, *(lambda jobs=each: consume(jobs) for each in queues)])
    assert sorted(taken) == list(range(40))
    for each in queues:
        each.join()
        assert (each.qsize(), each.empty(), each.full(), each.is_shutdown) == (0, True, False, True)
    with pytest.raises(ShutDown):
        queues[1].put(1)
    with pytest.raises(ShutDown):
        queues[1].get_nowait()
    lab.compare()


def test_kinds_of_queues(lab: Lab) -> None:
    smallest: list[PriorityQueue[int]] = lab.at_each(PriorityQueue)
    last: list[LifoQueue[int]] = lab.at_each(LifoQueue, 3)
    for number in (2, 3, 1):
        smallest[0].put(number)
        last[0].put_nowait(number)
    with pytest.raises(queue.Full):
        last[0].put(4, timeout=0.01)
    assert [smallest[1].get() for _ in range(3)] == [1, 2, 3]
    assert [last[2].get() for _ in range(3)] == [1, 3, 2]
    with pytest.raises(queue.Empty):
        smallest[2].get(timeout=0.01)
    smallest[0].put(1)
    smallest[0].shutdown(immediate=True)
    lab.compare()


async def test_a_queue_in_coroutines() -> None:
    async with orca.join() as group:
        jobs = await group.share.aio(Queue[int], "jobs", 2)

        async def produce() -> None:
            for number in range(10):
                await jobs.put.aio(number)
            await jobs.shutdown.aio()

        producing = asyncio.create_task(produce())
        assert [number async for number in jobs] == list(range(10))
        await producing


def test_all_subscribers_receive_all_in_one_order(lab: Lab) -> None:
    topics: list[Topic[int]] = lab.at_each(Topic)
    subscriptions = [topic.subscribe() for topic in topics]
    received: list[list[int]] = [[], [], []]

    def publish(topic: Topic[int], rank: int) -> None:
        for number in range(10):
            topic.publish(10 * rank + number)

    run_in_threads([lambda r=rank: publish(topics[r], r) for rank in range(3)])  # type: ignore[misc]
    topics[0].close()
    run_in_threads(
        [
            lambda r=rank: received[r].extend(subscriptions[r])  # type: ignore[misc]
            for rank in range(3)
        ]
    )
    assert received[0] == received[1] == received[2]
    assert sorted(received[0]) == list(range(30))
    assert list(topics[1].subscribe(late=False)) == []
    with pytest.raises(ValueError, match="closed topic"):
        topics[2].publish(1)
    lab.compare()


def test_a_late_subscriber_receives_what_is_kept(lab: Lab) -> None:
    here, there, _ = lab.at_each(Topic, 4)
    slow: Subscription[int] = here.subscribe()
    for number in range(11):
        here.publish(number)
    lab.groups[1].fence()
    late = there.subscribe()
    new = there.subscribe(late=False)
    here.publish(11)
    here.close()
    assert list(late) in ([7, 8, 9, 10, 11], [8, 9, 10, 11])
    assert list(new) == [11]
    assert (list(slow), slow.missed) == ([8, 9, 10, 11], 8)
    assert len(there) == 12
    lab.compare()


async def test_a_topic_in_coroutines() -> None:
    async with orca.join() as group:
        topic = await group.share.aio(Topic[str], "topic")

        async def listen() -> list[str]:
            return [message async for message in topic.subscribe()]

        listening = asyncio.create_task(listen())
        await topic.publish.aio("one")
        await topic.publish.aio("two")
        await topic.close.aio()
        assert await listening == ["one", "two"]


def test_a_cache_forgets_what_was_used_least(lab: Lab) -> None:
    here, there, _ = lab.at_each(Cache, 4)
    for number in range(4):
        here[number] = str(number)
    lab.groups[1].fence()
    assert there.get(0) == "0"  # noted, since it is in the older half
    lab.groups[1].fence()
    lab.groups[0].fence()
    here[4] = "4"
    assert [key in here for key in range(5)] == [True, False, True, True, True]
    assert (here.get(1), here.get(1, "no"), len(here)) == (None, "no", 4)
    assert here.pop(2) == "2"
    assert here.pop(2, "gone") == "gone"
    with pytest.raises(KeyError):
        here[2]
    del here[3]
    lab.compare()


def test_an_entry_is_found_though_its_use_cannot_be_noted() -> None:
    with orca.join() as group:
        cache = group.share(Cache[int, int], "cache", 2)
        for key in (0, 1, 1):
            cache.set(key, key)
        assert cache._look(0) == (True, 0, True)
    assert (cache.get(0), cache[0], cache.get_or_set(0, lambda: 1)) == (0, 0, 0)


def test_get_or_set_is_a_use(lab: Lab) -> None:
    cache: Cache[int, str] = lab.share(Cache, 4)
    for number in range(4):
        cache[number] = str(number)
    assert cache.get_or_set(0, lambda: "made") == "0"  # noted, since it is in the older half
    cache[4] = "4"
    assert [key in cache for key in range(5)] == [True, False, True, True, True]
    lab.compare()


def test_what_is_missing_is_made(lab: Lab) -> None:
    caches: list[Cache[str, int]] = lab.at_each(Cache, 4)
    made: list[int] = []

    def make() -> int:
        made.append(threading.get_ident())
        return len(made)

    found: list[int] = []
    run_in_threads(
        [lambda c=cache: found.append(c.get_or_set("key", make)) for cache in caches]  # type: ignore[misc]
    )
    assert len(set(found)) == 1
    assert caches[0].get_or_set("key", make) == found[0]
    lab.compare()


def test_an_entry_expires(lab: Lab) -> None:
    cache: Cache[str, int] = lab.share(Cache, 4, 1000.0)
    cache.set("short", 1, ttl=0.0)
    cache.set("long", 2)
    assert (cache.get("short"), cache.get("long")) == (None, 2)
    assert list(cache) == ["long"]
    with pytest.raises(KeyError):
        del cache["short"]
    assert len(cache) == 1
    cache.set("short", 1, ttl=0.0)
    assert cache.get_or_set("short", lambda: 3) == 3
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("kind", [Queue, PriorityQueue, LifoQueue])
async def test_a_cancelled_get_takes_nothing(lab: Lab, kind: type[Queue[int]], block: bool) -> None:
    """One that has run, when its caller is cancelled just before it has the item."""
    group = lab.groups[1]
    jobs = await group.share.aio(kind, f"{kind.__name__}, {block}")
    for number in (1, 2, 3):
        await jobs.put.aio(number)
    getting = jobs.get.aio(block)
    waits: list[asyncio.Future[None]] = []
    group._session.pump.call(lambda now: waits.append(getting.send(None)))  # it is under way
    while not waits[0].done():
        await asyncio.sleep(0)
    assert await jobs.qsize.aio() == 2
    with pytest.raises(asyncio.CancelledError):
        getting.throw(asyncio.CancelledError())
    order = [3, 2, 1] if kind is LifoQueue else [1, 2, 3]
    assert [await jobs.get.aio(timeout=DEADLINE) for _ in order] == order
    for _ in order:
        await jobs.task_done.aio()
    assert (await jobs.qsize.aio(), jobs.unfinished_tasks) == (0, 0)


def test_an_interrupted_get_takes_nothing(lab: Lab) -> None:
    queues: list[Queue[str]] = lab.at_each(Queue)
    for item in "abcd":
        queues[0].put(item)
    assert queues[0]._get(0, 1) == "a"
    assert queues[1]._get(0, 1) == "b"  # another member's attempt has another item
    queues[1]._abandon(0, 2)  # one that did not run
    queues[0]._abandon(0, 1)
    queues[0]._abandon(0, 1)
    assert [queues[2].get(), queues[2].get()] == ["a", "c"]
    assert queues[0]._get(0, 3) == "d"
    assert queues[0].unfinished_tasks == 4
    queues[1].shutdown(immediate=True)
    queues[0]._abandon(0, 3)
    assert (queues[0].qsize(), queues[0].unfinished_tasks) == (0, 3)
    lab.compare()


async def test_a_get_that_is_over_time_takes_nothing() -> None:
    async with orca.join() as group:
        jobs = await group.share.aio(Queue[int], "jobs")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(jobs.get.aio(), 0.01)
        await jobs.put.aio(7)
        assert await asyncio.wait_for(jobs.get.aio(), DEADLINE) == 7
        assert jobs._taken  # until the member's next attempt, or its end
