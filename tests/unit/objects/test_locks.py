"""Calls that wait for other members, and what becomes of them when a member leaves."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import (
    Barrier,
    BoundedSemaphore,
    Condition,
    Election,
    Event,
    Lock,
    Queue,
    RLock,
    Semaphore,
)
from orcalike.objects.steps import BoundMethod, Steps
from tests.unit.objects.members import DEADLINE, Lab, run_in_threads


def test_tokens_grow_from_holder_to_holder(lab: Lab) -> None:
    locks: list[Lock] = lab.at_each(Lock)
    tokens: list[int] = []

    def use(lock: Lock) -> None:
        for _ in range(10):
            with lock as token:
                tokens.append(token)
                assert lock.token == token

    run_in_threads([lambda lock=each: use(lock) for each in locks])  # type: ignore[misc]
    assert len(tokens) == 30
    assert tokens == sorted(set(tokens))
    lab.compare()


def test_another_member_cannot_release(lab: Lab) -> None:
    here, there, _ = lab.at_each(Lock)
    assert here.acquire()
    assert not there.acquire(blocking=False)
    assert not there.acquire(timeout=0.02)
    with pytest.raises(RuntimeError, match="cannot release a lock that rank 0"):
        there.release()
    assert there.holder == lab.groups[0].me
    here.release()
    assert there.acquire(timeout=DEADLINE)
    there.release()
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        there.release()


def test_a_recursive_lock_is_one_threads(lab: Lab) -> None:
    here, there, _ = lab.at_each(RLock)
    with here as first, here as again:
        assert first == again
        run_in_threads([lambda: None if not here.acquire(blocking=False) else 1 / 0])  # type: ignore[list-item]
        assert not there.acquire(blocking=False)
    assert there.acquire(timeout=DEADLINE)
    there.release()


class Looks:
    """Has a read that takes as long as the test wants."""

    began, go_on = threading.Event(), threading.Event()

    @orca.read
    def look(self) -> bool:
        began, go_on = self.began, self.go_on
        began.set()  # orca: unchecked
        return go_on.wait(DEADLINE)  # orca: unchecked


@orca.shared
class SlowEvent(Looks, Event):
    """An event whose mutex another thread has."""


@orca.shared
class SlowElection(Looks, Election):
    """An election whose mutex another thread has."""


@contextlib.contextmanager
def looked_at(shared: Looks) -> Iterator[None]:
    """Another thread reads the object meanwhile."""
    shared.began.clear()
    shared.go_on.clear()
    thread = threading.Thread(target=shared.look)
    thread.start()
    assert shared.began.wait(DEADLINE)
    try:
        yield
    finally:
        shared.go_on.set()
        thread.join()


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_an_event_that_is_set_is_seen_while_another_thread_reads_it(timeout: float) -> None:
    with orca.join() as group:
        event = group.share(SlowEvent, "event")
        with looked_at(event):
            assert not event.wait(timeout)
        event.set()
        with looked_at(event):
            assert event.wait(timeout)


def test_a_campaign_without_time_is_won_if_no_other_member_stands() -> None:
    with orca.join() as group:
        election = group.share(SlowElection, "election")
        assert [election.campaign(0), election.campaign(0)] == [1, 1]


@pytest.mark.parametrize("timeout", [0, 0.0])
def test_no_time_takes_what_is_free(lab: Lab, timeout: float) -> None:
    """As `blocking=False`: the answer has its place in the order, however long it takes."""
    lock, permits, items = lab.share(Lock), lab.share(Semaphore), lab.share(Queue, 1)
    for _ in range(200):
        assert lock.acquire(timeout=timeout)
        assert permits.acquire(timeout=timeout)
        items.put("item", timeout=timeout)
        assert items.get(timeout=timeout) == "item"
        lock.release()
        permits.release()


def test_a_condition_shows_the_lock_that_it_was_given(lab: Lab) -> None:
    lock = lab.share(Lock)
    condition = lab.share(Condition, lock)
    assert (condition.locked(), condition.holder) == (False, None)
    with lock as token:
        assert (condition.locked(), condition.holder) == (True, lab.groups[0].me)
        assert condition.token == token
    with condition as token:
        assert (condition.token, lock.token) == (token, token)
    assert not condition.locked()


def test_several_conditions_on_one_lock(lab: Lab) -> None:
    lock = lab.share(Lock)
    conditions = [lab.at_each(Condition, lock) for _ in range(2)]
    seen: list[str] = []

    def wait(condition: Condition, name: str) -> None:
        with condition:
            entered.release()
            assert condition.wait(DEADLINE)
            seen.append(name)

    entered = threading.Semaphore(0)
    (left, *_), (_, right, other_right) = conditions
    threads = [
        threading.Thread(target=wait, args=each)
        for each in ((left, "left"), (right, "right"), (other_right, "right"))
    ]
    for thread in threads:
        thread.start()
        assert entered.acquire(timeout=DEADLINE)
    with conditions[0][2]:  # it has the lock, so all of them wait
        conditions[0][2].notify_all()
    threads[0].join(DEADLINE)
    assert seen == ["left"]
    with conditions[1][0]:
        conditions[1][0].notify_all()
    for thread in threads:
        thread.join(DEADLINE)
    assert seen == ["left", "right", "right"]
    with left:
        assert not left.wait(0.02)
        assert left.wait_for(lambda: 7) == 7
    with pytest.raises(RuntimeError, match="cannot wait on un-acquired lock"):
        left.wait()


class Pair:
    """A member that stays, and one that leaves when the test closes `leaving`."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.address = f"unix:{folder / 'group'}"
        self.stays = stack.enter_context(orca.join(listen=self.address))
        self.leaving = contextlib.ExitStack()
        stack.enter_context(self.leaving)
        joining = orca.join(seeds=self.address, timeout=DEADLINE)
        self.leaves = self.leaving.enter_context(joining)

    def both(self, cls: Any, *args: Any) -> tuple[Any, Any]:
        """An object at both."""
        shared = self.stays.share(cls, cls.__name__, *args)
        return shared, self.leaves.find(cls, cls.__name__, timeout=DEADLINE)


def test_what_a_member_holds_is_released_when_it_leaves(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        pairs = [pair.both(cls) for cls in (Lock, RLock, Condition, Semaphore)]
        election, other_election = pair.both(Election)
        barrier, other_barrier = pair.both(Barrier, 2)
        for _, there in pairs:
            assert there.acquire()
        assert other_election.stand()
        assert not election.stand()
        before = [here.token for here, _ in pairs[:3]]
        waiting = [here._acquire.nowait(0, 0, 9) for here, _ in pairs[:3]]
        waiting.append(pairs[3][0]._acquire.nowait(0, 9))
        meeting = other_barrier._arrive.nowait(1)
        meeting.result(DEADLINE)
        pair.leaving.close()
        for invocation in waiting:
            assert invocation.result(DEADLINE)
        assert all(here.token > old for (here, _), old in zip(pairs, before, strict=False))
        assert (election.campaign(DEADLINE), election.leads()) == (2, True)
        with pytest.raises(threading.BrokenBarrierError):
            barrier.wait()


def test_a_notification_of_a_member_that_leaves_goes_to_another_one(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        here, there = pair.both(Condition)
        assert there.acquire()
        there._start_wait(there._number, there._runner, 1)  # as `wait` does first
        woken = threading.Event()

        def wait() -> None:
            with here:
                entered.set()
                if here.wait(DEADLINE):
                    woken.set()

        entered = threading.Event()
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        assert entered.wait(DEADLINE)
        with here:
            here.notify()  # the oldest, which leaves without having gone on
        assert not woken.is_set()
        pair.leaving.close()
        thread.join(DEADLINE)
        assert woken.is_set()


def test_a_permit_that_another_member_has_released_comes_back_once(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        here, there = pair.both(Semaphore, 3)
        for _ in range(20):
            assert there.acquire()
            here.release()
        assert here._held == {}
        assert there.acquire()
        assert there.acquire()
        assert here.acquire()
        here.release(2)  # its own, and the first of the other one's
        pair.leaving.close()
        for _ in range(3):  # once the other one has left there are three again, and no more
            assert here.acquire(timeout=DEADLINE)
        assert here.value == 0
        here.release(3)
        assert here.value == 3


def test_an_acquisition_whose_caller_was_interrupted_is_undone(lab: Lab) -> None:
    lock, semaphore = lab.share(Lock), lab.share(Semaphore, 2)
    for each, runner in ((lock, [1]), (semaphore, [])):
        assert each._acquire(*runner, 0, 5)
        for attempt in (6, 5, 5):
            each._abandon(0, attempt)
    assert not lock.locked()
    assert semaphore.value == 2
    recursive = lab.share(RLock)
    assert recursive._acquire(1, 0, 5)
    assert recursive._acquire(1, 0, 6)
    recursive._abandon(0, 6)
    recursive._abandon(0, 6)
    assert recursive.locked()
    lab.compare()


@pytest.mark.parametrize("has_it", [False, True], ids=["waits", "has the lock again"])
def test_a_notification_of_a_wait_that_was_interrupted_goes_to_another_one(
    lab: Lab, has_it: bool
) -> None:
    condition = lab.share(Condition)
    for number in (-1, -2):
        assert condition.acquire()
        condition._start_wait(condition._number, condition._runner, number)
    with condition:
        condition.notify()
    if has_it:
        assert condition._end_wait(-1, 1, True)
    condition._end_interrupted(-1, 1)
    assert condition.locked()
    assert (condition._waiting, [each[2] for each in condition._notified]) == ([], [-2])
    condition._end_interrupted(-1, 1)  # which has it still
    assert condition._depth == 1
    lab.compare()


def test_a_wait_that_is_forsaken_takes_no_notification(lab: Lab) -> None:
    condition = lab.share(Condition)
    for number in (-1, -2, -3):
        assert condition.acquire()
        condition._start_wait(condition._number, condition._runner, number)
    condition._forsake(-1)
    with condition:
        condition.notify()
    condition._forsake(-2)
    assert condition._end_wait(-3, 1, True)
    condition._forsake(-3)
    assert (condition._waiting, condition._notified) == ([], [])
    lab.compare()


async def wait_on(condition: Condition) -> bool:
    """What `wait` gives a task that has the lock then, also if it is cancelled."""
    async with condition:
        return await condition.wait.aio()


async def until(holds: Callable[[], bool]) -> None:
    """Let the others run until it holds."""
    async with asyncio.timeout(DEADLINE):
        while not holds():
            await asyncio.sleep(0)


def check_interrupted(condition: Condition, steps: Steps[bool]) -> None:
    """Interrupt a wait that takes the lock again: it has that at its end, and nothing stays behind."""
    again = steps.throw(KeyboardInterrupt)
    outcome = again.operation(*again.arguments)
    with pytest.raises(KeyboardInterrupt):
        steps.send(outcome)
    assert (condition._waiting, condition.locked()) == ([], True)
    condition.release()


def test_a_wait_that_is_interrupted_as_its_limit_has_passed_has_the_lock_again(lab: Lab) -> None:
    condition = lab.share(Condition)
    assert condition.acquire()
    steps = Condition.wait.steps(condition, 0.5)
    start = next(steps)
    end = steps.send(start.operation(*start.arguments))
    assert end.operation.__name__ == "_end_wait"
    late = steps.throw(orca.InvocationTimeout("the time limit passed", "withdrawn"))
    assert late.operation.__name__ == "_end_wait"
    check_interrupted(condition, steps)


def test_a_wait_that_is_interrupted_as_it_begins_has_the_lock(lab: Lab) -> None:
    condition = lab.share(Condition)
    for has_begun in (False, True):
        assert condition.acquire()
        steps = Condition.wait.steps(condition)
        start = next(steps)
        if has_begun:
            start.operation(*start.arguments)
        check_interrupted(condition, steps)


async def test_a_wait_that_is_cancelled_again_and_again_has_the_lock_at_its_end() -> None:
    async with orca.join() as group:
        condition = await group.share.aio(Condition, "condition")
        waiting = asyncio.create_task(wait_on(condition))
        await until(lambda: bool(condition._waiting))
        async with condition:
            for _ in range(3):
                waiting.cancel()
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not waiting.done()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (condition._waiting, condition.locked()) == ([], False)


async def test_a_cancelled_wait_passes_its_notification_on() -> None:
    async with orca.join() as group:
        condition = await group.share.aio(Condition, "condition")
        waiting = []
        for count in (1, 2):
            waiting.append(asyncio.create_task(wait_on(condition)))
            await until(lambda: len(condition._waiting) == count)  # noqa: B023 - it runs at once
        async with condition:
            await condition.notify.aio()
            waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        async with asyncio.timeout(DEADLINE):
            assert await waiting[1]


@pytest.mark.parametrize("has_run", [False, True], ids=["withdrawn", "has run"])
def test_what_a_block_holds_is_released_though_its_end_is_interrupted(
    lab: Lab, has_run: bool
) -> None:
    lock, recursive, election = lab.share(Lock), lab.share(RLock), lab.share(Election)
    semaphore, bounded = lab.share(Semaphore, 2), lab.share(BoundedSemaphore, 1)
    condition = lab.share(Condition, lock)
    for shared in (lock, recursive, recursive, semaphore, semaphore, bounded, election):
        shared.__enter__()
    for steps in (
        Condition.release.steps(condition),
        RLock.release.steps(recursive),
        Semaphore._leave.steps(semaphore),
        BoundedSemaphore._leave.steps(bounded),
        Election._leave.steps(election),
    ):
        request = next(steps)
        if has_run:
            request.operation(*request.arguments)
        with pytest.raises(KeyboardInterrupt):
            steps.throw(KeyboardInterrupt)
    lab.groups[0].fence()
    assert not lock.locked()
    assert (recursive._depth, semaphore.value, bounded.value) == (1, 1, 1)
    assert election.leader() is None
    recursive.release()
    lab.compare()


class Interrupted(Exception):
    """What a signal's handler raises."""


@pytest.fixture
def interrupts() -> Iterator[Callable[[], None]]:
    """Has a signal come now."""

    def handler(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handler)
    yield lambda: signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("cls", [Lock, RLock, Condition, Semaphore, BoundedSemaphore, Election])
@pytest.mark.parametrize("at_end", [False, True], ids=["at its beginning", "at its end"])
def test_a_block_that_a_signal_interrupts_holds_nothing(
    interrupts: Callable[[], None], monkeypatch: pytest.MonkeyPatch, cls: Any, at_end: bool
) -> None:
    call = BoundMethod.__call__

    def interrupted(method: Any, *args: Any) -> Any:
        if at_end and method.__name__ in ("release", "_leave"):
            interrupts()  # before it has done anything
        outcome = call(method, *args)
        if not at_end and method.__name__ in ("acquire", "campaign"):
            interrupts()  # when all is done
        return outcome

    with orca.join() as group:
        shared = group.share(cls, "shared")
        monkeypatch.setattr(BoundMethod, "__call__", interrupted)
        with pytest.raises(Interrupted), shared:
            pass
        group.fence()
        if cls is Election:
            assert shared.leader() is None
        else:
            assert shared.value == 1 if hasattr(shared, "value") else not shared.locked()


def test_an_arrival_whose_caller_was_interrupted_does_not_count(lab: Lab) -> None:
    barrier = lab.share(Barrier, 2)
    assert barrier._arrive(-1) == (0, 0)
    steps = Barrier.wait.steps(barrier)
    barrier._abandon(-1)
    arrival = next(steps)
    assert arrival.operation(*arrival.arguments) == (0, 0)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt)
    lab.groups[0].fence()
    assert (barrier.n_waiting, barrier.broken) == (0, False)
    assert [barrier._arrive(-2), barrier._arrive(-3)] == [(0, 0), (0, 1)]
    barrier._abandon(-3)  # too late: all have met
    assert (barrier.n_waiting, barrier._round) == (0, 1)
    lab.compare()


def test_each_of_those_that_meet_has_a_number_of_its_own(lab: Lab) -> None:
    barrier = lab.share(Barrier, 3)
    assert [barrier._arrive(-1), barrier._arrive(-2)] == [(0, 0), (0, 1)]
    barrier._abandon(-1)
    assert [barrier._arrive(-3), barrier._arrive(-4)] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("broken", ["abort", "reset", "limit"])
def test_a_barrier_that_is_broken_and_made_new_lets_go_of_one_that_has_just_arrived(
    lab: Lab, broken: str
) -> None:
    barrier = lab.share(Barrier, 2)
    steps = Barrier.wait.steps(barrier)
    arrival = next(steps)
    arrived = arrival.operation(*arrival.arguments)
    assert barrier._give_up(0) is False if broken == "limit" else getattr(barrier, broken)() is None
    barrier.reset()
    look = steps.send(arrived)
    assert look.operation.options(timeout=DEADLINE)(*look.arguments) is False
    assert (barrier.n_waiting, barrier.broken) == (0, False)
    lab.compare()


async def test_a_cancelled_wait_at_a_barrier_has_not_arrived() -> None:
    async with orca.join() as group:
        barrier = await group.share.aio(Barrier, "barrier", 2)
        waiting = asyncio.create_task(barrier.wait.aio())
        await until(lambda: barrier.n_waiting == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(DEADLINE):
            assert sorted(await asyncio.gather(barrier.wait.aio(), barrier.wait.aio())) == [0, 1]


def test_a_campaign_whose_caller_was_interrupted_is_undone(lab: Lab) -> None:
    first, second, _ = lab.at_each(Election)
    assert first.stand()
    for stands_before in (False, True):
        if stands_before:
            assert second.campaign(0.0) is None
        steps = Election.campaign.steps(second)
        request = next(steps)
        assert request.operation(*request.arguments) is None
        with pytest.raises(KeyboardInterrupt):
            steps.throw(KeyboardInterrupt)
        lab.groups[1].fence()
        assert len(second._standing) == 1 + stands_before
    lab.compare()


async def test_cancelled_acquisitions_leave_nothing_behind() -> None:
    async with orca.join() as group:
        lock = await group.share.aio(Lock, "lock")
        semaphore = await group.share.aio(Semaphore, "semaphore", 3)
        for turns in range(40):
            for each in (lock, semaphore):
                task = asyncio.create_task(each.acquire.aio())
                for _ in range(turns % 4):
                    await asyncio.sleep(0)
                if task.cancel():
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                if not task.cancelled():
                    await each.release.aio()
        await group.fence.aio()
        assert not lock.locked()
        assert semaphore.value == 3


async def test_in_coroutines(tmp_path: Path) -> None:
    async with orca.join() as group:
        lock = await group.share.aio(Lock, "lock")
        recursive = await group.share.aio(RLock, "recursive")
        condition = await group.share.aio(Condition, "condition", lock)
        event = await group.share.aio(Event, "event")
        semaphore = await group.share.aio(Semaphore, "semaphore", 2)
        with pytest.raises(orca.BlockingInLoop):
            lock.acquire()
        async with lock as token, recursive, recursive, semaphore:
            assert token == lock.token
            assert not await lock.acquire.aio(timeout=0.01)
            assert not await asyncio.create_task(recursive.acquire.aio(blocking=False))
        assert not await event.wait.aio(0.01)

        async def wait() -> bool:
            async with condition:
                return await condition.wait.aio()

        waiting = asyncio.create_task(wait())
        cancelled = asyncio.create_task(wait())
        while len(lock._waiting) < 2:
            await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        async with condition:
            await condition.notify_all.aio()
        assert await waiting
        assert not lock.locked()
        await event.set.aio()
        assert await event.wait.aio()
        async with await group.share.aio(Election, "election") as term:
            assert term == 1
