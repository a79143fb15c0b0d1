"""A time limit is a number of seconds or a text, as in `options(timeout="2s")`, at each object."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import (
    Barrier,
    Cache,
    Condition,
    Election,
    Event,
    Lock,
    PriorityQueue,
    Queue,
    RLock,
    Semaphore,
)

LIMIT = "20ms"


def hold(lock: Any) -> None:
    """Have another thread acquire it."""
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()


def of_condition(condition: Condition) -> Any:
    with condition:
        return condition.wait(timeout=LIMIT) or condition.wait_for(lambda: False, timeout=LIMIT)


@pytest.mark.parametrize("cls", [Lock, RLock, Semaphore])
def test_acquire(group: orca.Group, cls: Any) -> None:
    shared = group.share(cls, "shared")
    hold(shared)
    assert not shared.acquire(timeout=LIMIT)
    with pytest.raises(ValueError, match="duration"):
        shared.acquire(timeout="soon")


@pytest.mark.parametrize("cls", [Queue, PriorityQueue])
def test_queues(group: orca.Group, cls: Any) -> None:
    shared = group.share(cls, "shared", 1)
    with pytest.raises(queue.Empty):
        shared.get(timeout=LIMIT)
    shared.put(1, timeout=LIMIT)
    with pytest.raises(queue.Full):
        shared.put(2, timeout=LIMIT)


@pytest.mark.parametrize(
    ("cls", "wait"),
    [
        (Event, lambda event: event.wait(timeout=LIMIT)),
        (Condition, of_condition),
        (Election, lambda election: election.campaign(timeout=LIMIT) is None),
    ],
)
def test_waits(group: orca.Group, cls: Any, wait: Callable[[Any], Any]) -> None:
    assert not wait(group.share(cls, "shared"))


def test_barriers(group: orca.Group) -> None:
    with pytest.raises(threading.BrokenBarrierError):
        group.share(Barrier, "first", 2).wait(timeout=LIMIT)
    with pytest.raises(threading.BrokenBarrierError):
        group.share(Barrier, "second", 2, LIMIT).wait()


def test_caches(group: orca.Group) -> None:
    cache = group.share(Cache[str, int], "cache", 10, "0ms")
    cache.set("gone", 1)
    cache.set("there", 2, ttl="1h")
    assert (cache.get("gone"), cache.get("there")) == (None, 2)


def test_a_cache_stays_as_it_is_if_the_time_is_no_duration(group: orca.Group) -> None:
    cache = group.share(Cache[str, int], "cache", 2)
    cache.set("a", 1)
    cache.set("b", 2)
    for key in ("a", "c"):
        with pytest.raises(ValueError, match="duration"):
            cache.set(key, 3, ttl="soon")
    assert (cache.get("a"), cache.get("b")) == (1, 2)


WRONG_LIMITS = [("soon", ValueError), (float("nan"), ValueError), ([], TypeError)]


@pytest.mark.parametrize(("limit", "error"), WRONG_LIMITS)
def test_a_condition_keeps_its_lock_if_the_limit_is_no_duration(
    group: orca.Group, limit: Any, error: type[Exception]
) -> None:
    condition = group.share(Condition, "condition")
    with condition:
        with pytest.raises(error, match=r"soon|time limit"):
            condition.wait(limit)
        assert condition.locked()
    assert not condition.locked()


@pytest.mark.parametrize(("limit", "error"), WRONG_LIMITS)
def test_no_thread_arrives_at_a_barrier_if_the_limit_is_no_duration(
    group: orca.Group, limit: Any, error: type[Exception]
) -> None:
    barrier = group.share(Barrier, "barrier", 2)
    with pytest.raises(error, match=r"soon|time limit"):
        barrier.wait(limit)
    assert barrier.n_waiting == 0


def test_a_barrier_breaks_at_once_if_the_limit_is_below_0(group: orca.Group) -> None:
    with pytest.raises(threading.BrokenBarrierError):
        group.share(Barrier, "barrier", 2).wait(-1)


@pytest.mark.parametrize(("limit", "error"), [*WRONG_LIMITS, (-1, ValueError)])
def test_no_member_stands_if_the_limit_is_no_duration(
    group: orca.Group, limit: Any, error: type[Exception]
) -> None:
    election = group.share(Election, "election")
    with pytest.raises(error, match=r"soon|time limit"):
        election.campaign(limit)
    assert election.leader() is None
