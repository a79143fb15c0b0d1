"""Whatever is waited for comes at once, whatever the freshness; and a call that is over counts no longer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

import orcalike as orca
from orcalike.objects import Event, Lock, Queue, Topic
from orcalike.runtime import registered
from tests.lib.fresh_members import ANYTHING, LONG, Bench, Box, OnLoop, move
from tests.lib.processes import DEADLINE, until


def counts(group: orca.Group) -> tuple[int, int]:
    """How many wait in a member: for any news, and for little."""
    stack = group._session.stack
    return stack.waiting, stack.patient.count


@orca.shared
class Heap:
    """Counts what is put on it, in threads too."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def put(self, data: bytes) -> None:
        self.count += 1

    @orca.write(popup=True)
    def put_in_thread(self) -> None:
        self.count += 1

    @orca.write
    def take(self) -> int:
        """Waits until there is something."""
        self.count -= 1
        return self.count

    @take.when
    def _(self) -> bool:
        return self.count > 0


@orca.shared(resilience=0)
class Light:
    """Written though members are too few for the group's degree."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def add(self) -> None:
        self.count += 1


def nothing(group: orca.Group) -> None:
    """What a forked process does."""


@pytest.fixture
def may_fork() -> Iterator[None]:
    """For one test: a process that may fork has other groups, with sockets."""
    before = dict(registered.functions)
    orca.register(nothing)
    yield
    registered.functions.clear()
    registered.functions.update(before)


# What a coroutine of the member on a loop waits for, and what another member does that ends it.
Begin = Callable[[OnLoop], Callable[[], Coroutine[Any, Any, Any]]]
WAITS: dict[str, tuple[Begin, Callable[[Bench], object]]] = {
    "write": (lambda m: m.box.take.aio, lambda b: b.boxes[0].put(1)),
    "write within a time": (
        lambda m: m.box.take.options(timeout=DEADLINE).aio,
        lambda b: b.boxes[0].put(1),
    ),
    "read": (lambda m: lambda: m.box.holds.aio(1), lambda b: b.boxes[0].put(1)),
    "many": (
        lambda m: lambda: asyncio.gather(*(m.box.take.aio() for _ in range(20))),  # type: ignore[dict-item,return-value]
        lambda b: [b.boxes[0].put(number) for number in range(20)],
    ),
    "thread": (lambda m: lambda: asyncio.to_thread(m.box.take), lambda b: b.boxes[0].put(1)),
    "thread within a time": (
        lambda m: lambda: asyncio.to_thread(m.box.take.options(timeout=DEADLINE)),
        lambda b: b.boxes[0].put(1),
    ),
    "atomic function": (
        lambda m: lambda: move.aio(m.box, m.other),
        lambda b: b.boxes[0].put(1),
    ),
    "write that an atomic function lets run": (
        lambda m: m.box.take.aio,
        lambda b: (b.others[0].put(1), move(b.others[0], b.boxes[0])),
    ),
    "find": (
        lambda m: lambda: m.group.find.aio(Box, "late"),
        lambda b: b.groups[0].share(Box, "late"),
    ),
    "barrier": (
        lambda m: m.group.barrier.aio,
        lambda b: [b.threads.submit(group.barrier) for group in b.groups],
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_what_a_coroutine_waits_for_comes_at_once(name: str, bench: Bench, on_loop: OnLoop) -> None:
    begin, end = WAITS[name]
    on_loop.after_news()
    outcome = on_loop.start(begin(on_loop))
    until(lambda: counts(on_loop.group) != (0, 0) and on_loop.listens()[0], "it waits")
    end(bench)
    outcome.result(DEADLINE)
    until(lambda: counts(on_loop.group) == (0, 0), "nothing waits")


@pytest.mark.parametrize("cls", [Queue, Event, Lock, Topic, Heap])
def test_what_is_waited_for_at_objects_comes_at_once(
    cls: Any, bench: Bench, on_loop: OnLoop
) -> None:
    far = bench.groups[0].share(cls, "it")
    near = on_loop.start(lambda: on_loop.group.share.aio(cls, "it")).result(DEADLINE)
    if cls is Lock:
        far.acquire()
    subscription: Any = near.subscribe() if cls is Topic else None
    calls: dict[Any, Callable[[], tuple[Any, Any]]] = {
        Queue: lambda: (near.get.aio, lambda: far.put(1)),
        Event: lambda: (near.wait.aio, far.set),
        Lock: lambda: (near.acquire.aio, far.release),
        Topic: lambda: (subscription.__anext__, lambda: far.publish(1)),
        Heap: lambda: (near.take.aio, far.put_in_thread.nowait),
    }
    call, end = calls[cls]()
    on_loop.after_news()
    outcome = on_loop.start(call)
    until(lambda: counts(on_loop.group) == (0, 1) and on_loop.listens()[0], "it waits")
    end()
    outcome.result(DEADLINE)
    until(lambda: counts(on_loop.group) == (0, 0), "nothing waits")


ENDS: dict[str, type[BaseException]] = {
    "cancel": CancelledError,
    "timeout": TimeoutError,
    "own timeout": orca.InvocationTimeout,
    "drop": orca.ObjectDropped,
}


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("operation", ["take", "holds"])
def test_a_wait_that_ends_otherwise_counts_no_longer(
    operation: str, way: str, bench: Bench, on_loop: OnLoop
) -> None:
    called = getattr(on_loop.box, operation)
    arguments = (1,) if operation == "holds" else ()

    tasks: list[asyncio.Task[Any] | None] = []

    async def wait() -> object:
        tasks.append(asyncio.current_task())
        if way == "own timeout":
            return await called.options(timeout="100ms").aio(*arguments)
        async with asyncio.timeout(0.1 if way == "timeout" else None):
            return await called.aio(*arguments)

    on_loop.after_news()
    outcome = on_loop.start(wait)
    if way in ("cancel", "drop"):
        until(lambda: counts(on_loop.group) == (0, 1), "it waits")
    if way == "cancel":
        on_loop.loop.call_soon_threadsafe(cast("asyncio.Task[Any]", tasks[0]).cancel)
    elif way == "drop":
        bench.groups[0].drop(bench.boxes[0])
    with pytest.raises(ENDS[way]):
        outcome.result(DEADLINE)
    until(lambda: counts(on_loop.group) == (0, 0), "nothing waits")


def test_room_is_waited_for_as_outcomes_are(bench: Bench, on_loop: OnLoop) -> None:
    """A member that has written much is behind what others have written, and none of its own comes back."""
    heaps = [group.share(Heap, "heap") for group in bench.groups]
    heap = on_loop.start(lambda: on_loop.group.share.aio(Heap, "heap")).result(DEADLINE)

    async def fill() -> bool:
        heap.put.nowait(bytes(600))
        try:
            for _ in range(70_000):
                on_loop.box.note.nowait()
        except orca.WindowFull:
            await on_loop.group.drain()
            return True
        return False  # it has looked meanwhile, and is behind no more

    def is_filled() -> bool:
        on_loop.after_news()
        for each in heaps:
            for _ in range(3000):
                each.put(bytes(200))
        return on_loop.start(fill).result(DEADLINE)

    until(is_filled, "there was no room")
    assert counts(on_loop.group) == (0, 0)


def test_two_threads_that_wait_for_one_call_count_no_longer(bench: Bench) -> None:
    call = bench.boxes[1].take.nowait()
    outcomes = [bench.threads.submit(call.result) for _ in range(2)]
    until(lambda: counts(bench.groups[1]) == (1, 1), "both wait")
    bench.boxes[0].put(7)
    assert [outcome.result(DEADLINE) for outcome in outcomes] == [7, 7]
    assert counts(bench.groups[1]) == (0, 0)


def test_a_thread_whose_wait_another_has_ended_listens_for_the_others(bench: Bench) -> None:
    """It looks into the order once more, where there are news, and its own call is over."""
    group = bench.groups[1]

    async def meet() -> None:
        await group.barrier.aio()

    taken = bench.start(1, bench.boxes[1].take)
    met = bench.threads.submit(asyncio.run, meet())
    until(lambda: counts(group) == (1, 1) and bench.row(1)["by news of"] == ANYTHING, "both wait")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1.0)  # the thread that waits goes on when there are news, too
    try:
        bench.boxes[1].put(7)
        bench.others[0].note()
    finally:
        sys.setswitchinterval(interval)
    assert taken.result(DEADLINE) == 7
    assert bench.row(1)["by news of"] == ANYTHING
    for rank in (0, 2):
        bench.threads.submit(bench.groups[rank].barrier)
    assert met.result(DEADLINE) is None


class Asked:
    """A member that starts no process, and so answers nothing."""

    def __init__(self) -> None:
        self.requests: list[object] = []
        self.withdrawn: list[int] = []

    def start(self, request: object) -> None:
        self.requests.append(request)

    def withdraw(self, source: int, ticket: int) -> None:
        self.withdrawn.append(ticket)


@pytest.mark.usefixtures("may_fork")
def test_a_member_that_is_to_fork_is_woken(bench: Bench) -> None:
    """Nothing waits in it; and what the caller waits for is its answer."""

    def is_deaf() -> bool:
        wakes = bench.wakes()
        bench.others[0].note()
        return bench.wakes() == wakes

    asked = Asked()
    bench.groups[2]._runtime.manager.forks.starter = asked  # type: ignore[assignment]
    until(is_deaf, "no member is woken by news")
    wakes = bench.wakes()
    call = bench.groups[0].fork.nowait(nothing, on=2)
    until(lambda: bench.wakes() > wakes, "they are woken")
    until(lambda: asked.requests, "it is asked")
    until(is_deaf, "no member is woken by news")
    wakes = bench.wakes()
    assert call.cancel()
    until(lambda: bench.wakes() > wakes, "they are woken")
    until(lambda: asked.withdrawn, "it is asked no more")


def test_what_others_are_to_have_applied_they_apply_at_once(
    stack: ExitStack, tmp_path: Path
) -> None:
    address, groups = f"unix:{tmp_path / 'first'}", []
    for rank in range(3):
        to: Any = {"seeds": address} if rank else {"listen": address}
        joining = orca.join(
            **to,
            stack="PACK:STABLE:XFER:RING:MBRSHIP:COM:unix",
            freshness=LONG,
            timeout=DEADLINE,
        )
        groups.append(stack.enter_context(joining))
    boxes = [group.share(Box, "box") for group in groups]
    for number in range(1, 4):
        assert boxes[0].note.options(stable=3, timeout=DEADLINE)() == number


def test_what_has_too_few_members_goes_when_another_one_says_that_they_are_enough(
    stack: ExitStack, tmp_path: Path
) -> None:
    """Nothing waits where it was written, and that member has looked at some news before."""
    bench = Bench(stack, tmp_path, resilience=2)
    light = [group.share(Light, "light") for group in bench.groups][1]
    bench.groups[2].close()
    until(lambda: [group.size for group in bench.groups[:2]] == [2, 2], "it has left")
    bench.boxes[0].put.nowait(7)
    seen = bench.threads.submit(bench.boxes[1].holds, 1)

    def is_deaf() -> bool:
        wakes = bench.wakes(1)
        light.add()
        return bench.wakes(1) == wakes

    until(is_deaf, "the other member is woken by no news")
    wakes = bench.wakes(1)
    bench.groups[1].reset(minimum=2)
    until(lambda: bench.wakes(1) > wakes or seen.done(), "they are woken")
    assert bench.wakes(1) > wakes, "it has come by a look that nothing asked for"
    assert seen.result(DEADLINE) == 1
