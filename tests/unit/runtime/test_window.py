"""The window: what a member may have under way, not ordered yet, in messages and in bytes (H70)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime import registered, waits
from orcalike.session.own_calls import OwnCalls
from orcalike.testing import Members
from orcalike.transport.layers.pack import Pack

MIB = 1 << 20
WINDOW = 8 * MIB


@orca.shared
class Lengths:
    """Keeps the lengths of what it gets."""

    def __init__(self, first: bytes = b"") -> None:
        self.found: list[int] = []

    @orca.write
    def take(self, data: bytes) -> int:
        self.found.append(len(data))
        return len(data)

    @orca.read
    def lengths(self) -> list[int]:
        return list(self.found)


@orca.atomic
def take_in(lengths: Lengths, data: bytes) -> int:
    """The same, through the group."""
    return lengths.take(data)


class Window:
    """What a group has under way while its stack is busy."""

    def __init__(self, group: orca.Group) -> None:
        self.group, self.pump = group, group._session.pump
        pack = group._session.stack.focus("PACK")
        assert isinstance(pack, Pack)
        self.pack = pack

    def bytes(self) -> int:
        """Those that are not ordered yet, in packets that are closed."""
        return self.pack.gathered + self.pack.under_way

    def while_busy(self, function: Callable[[], object]) -> None:
        """Call it while nothing is cast."""
        self.pump.call(lambda now: function())

    def fill(self, shared: Lengths) -> None:
        """Have it too full for the smallest call; only to be called while nothing is cast."""
        while self.group._runtime.sender.may_invoke():
            shared.take.nowait(b"")


class Begun:
    """What was awaited, as far as to where it waits first; await it for the rest."""

    def __init__(self, awaited: Awaitable[object]) -> None:
        self.steps: Any = awaited.__await__()
        self.first = next(self.steps)

    def __await__(self) -> Generator[object, None, object]:
        try:
            yield self.first
        except asyncio.CancelledError as error:
            self.steps.throw(error)
        return (yield from self.steps)


WAYS: dict[str, Callable[[orca.Group, Lengths, bytes], object]] = {
    "write": lambda group, shared, data: shared.take.nowait(data),
    "atomic": lambda group, shared, data: take_in.nowait(shared, data),
    "share": lambda group, shared, data: group.share.nowait(Lengths, "other", data),
}


@pytest.mark.parametrize("way", WAYS)
async def test_calls_that_would_go_past_it_wait_first(way: str) -> None:
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window, call = Window(group), WAYS[way]

        def fill() -> None:
            for _ in range(7):
                call(group, shared, bytes(MIB))
            for size in (MIB, 16 * MIB - 4096):
                with pytest.raises(orca.WindowFull):
                    call(group, shared, bytes(size))
            call(group, shared, bytes(MIB // 2))  # there is room for this one
            assert 7 * MIB < window.bytes() <= WINDOW

        window.while_busy(fill)
        await group.drain()
        call(group, shared, bytes(16 * MIB - 4096))  # alone it may be as large as that


async def test_drain_makes_room_for_what_was_refused() -> None:
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window = Window(group)

        async def take(size: int) -> int:
            return await shared.take.aio(bytes(size))

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            awaited.append(shared.take.aio(bytes(3 * MIB)))

        awaited: list[object] = []
        window.while_busy(fill)
        waiting = [asyncio.create_task(take(size * MIB)) for size in (7, 1, 5)]
        assert await asyncio.gather(*waiting) == [7 * MIB, 1 * MIB, 5 * MIB]
        assert await awaited[0] == 3 * MIB  # type: ignore[misc]
        assert sorted(shared.lengths()) == sorted(n * MIB for n in (6, 3, 7, 1, 5))


async def test_an_atomic_function_that_is_awaited_waits_for_room() -> None:
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window = Window(group)
        awaited: list[Coroutine[object, object, int]] = []

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            awaited.append(take_in.aio(shared, bytes(7 * MIB)))
            awaited.append(take_in.options(timeout=60).aio(shared, bytes(5 * MIB)))

        window.while_busy(fill)
        assert await asyncio.gather(*awaited) == [7 * MIB, 5 * MIB]
        assert sorted(shared.lengths()) == [5 * MIB, 6 * MIB, 7 * MIB]


AWAITED: dict[str, Callable[[orca.Group, Lengths], Awaitable[object]]] = {
    "share": lambda group, shared: group.share.aio(Lengths, "other", bytes(7 * MIB)),
    "find": lambda group, shared: group.find.aio(Lengths, "lengths"),
    "find within": lambda group, shared: group.find.aio(Lengths, "lengths", timeout=60),
    "drop": lambda group, shared: group.drop.aio(shared),
    "fence": lambda group, shared: group.fence.aio(),
    "fence within": lambda group, shared: group.fence.aio(timeout=60),
    "barrier": lambda group, shared: group.barrier.aio(timeout="60s"),
}


@pytest.mark.parametrize("way", AWAITED)
async def test_what_is_asked_of_the_group_and_awaited_waits_for_room(way: str) -> None:
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window, begun, sent = Window(group), [], []

        def fill() -> None:
            window.fill(shared)
            sent.append(window.pack.ticket)
            begun.append(Begun(AWAITED[way](group, shared)))
            sent.append(window.pack.ticket)

        window.while_busy(fill)
        assert sent[0] == sent[1], "there is no room for it"
        await begun[0]
        assert window.pack.ticket > sent[1]


def stay(group: orca.Group) -> None:
    """What a process that is asked for would run."""


def test_a_fork_that_is_awaited_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registered.functions, "tests:stay", stay)
    with contextlib.closing(Members(1)) as members:
        shared = members[0].share(Lengths, "lengths")
        window = Window(members[0])

        def fill() -> None:
            window.fill(shared)
            Begun(members[0].fork.aio(stay)).steps.close()  # it was not sent

        async def call() -> None:
            window.while_busy(fill)

        asyncio.run(call())


BY_LIMIT: dict[str, Callable[[orca.Group], Awaitable[object]]] = {
    "find": lambda group: group.find.aio(Lengths, "lengths", timeout=0),
    "fence": lambda group: group.fence.aio(timeout=0),
    "barrier": lambda group: group.barrier.aio(timeout=0),
}


@pytest.mark.parametrize("way", BY_LIMIT)
async def test_what_is_awaited_waits_for_room_no_longer_than_its_limit(way: str) -> None:
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window, begun = Window(group), []

        def fill() -> None:
            window.fill(shared)
            begun.append(Begun(BY_LIMIT[way](group)))

        window.while_busy(fill)
        with pytest.raises(orca.InvocationTimeout, match=f"^{way}.*it was not sent") as caught:
            await begun[0]
        assert caught.value.outcome == "withdrawn"


LIMITED: dict[str, Callable[[orca.Group], object]] = {
    "find": lambda group: group.find(Lengths, "lengths", timeout=0.05),
    "fence": lambda group: group.fence(timeout=0.05),
    "barrier": lambda group: group.barrier(timeout=0.05),
}


@pytest.mark.parametrize("way", LIMITED)
def test_what_is_asked_of_the_group_waits_for_room_no_longer_than_its_limit(way: str) -> None:
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window, outcomes = Window(group), []

        def call() -> None:
            with pytest.raises(orca.InvocationTimeout, match=f"^{way}.*it was not sent") as caught:
                LIMITED[way](group)
            outcomes.append(caught.value.outcome)

        def fill() -> None:
            window.fill(shared)
            calling = threading.Thread(target=call, daemon=True)
            calling.start()
            calling.join(30)

        window.while_busy(fill)
        assert outcomes == ["withdrawn"]


async def test_leaving_waits_for_room_for_its_fence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(OwnCalls, "_is_stuck", lambda calls: False)
    async with orca.join() as group:
        shared = await group.share.aio(Lengths, "lengths")
        window, begun = Window(group), []

        def fill() -> None:
            window.fill(shared)
            begun.append(Begun(group._own_calls.wait_on_loop()))

        window.while_busy(fill)
        await begun[0]
    assert "left without an answer" not in caplog.text


def test_leaving_a_group_that_is_stuck_does_not_wait_for_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(OwnCalls, "_is_stuck", lambda calls: True)
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window = Window(group)
        leaving = threading.Thread(target=group._own_calls.wait, daemon=True)

        def fill() -> None:
            window.fill(shared)
            leaving.start()
            leaving.join(30)
            assert not leaving.is_alive()

        window.while_busy(fill)
        monkeypatch.undo()
    assert "was left with calls under way" in caplog.text


def test_threads_wait_and_the_small_do_not_starve_the_large() -> None:
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window = Window(group)
        large = threading.Thread(target=lambda: shared.take(bytes(7 * MIB)))
        small = threading.Thread(target=lambda: shared.take(b"x"))

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            large.start()
            wait_until(lambda: len(waiting_for_room()) == 1)
            small.start()
            wait_until(lambda: len(waiting_for_room()) == 2)
            assert window.bytes() <= WINDOW

        window.while_busy(fill)
        large.join(30)
        small.join(30)
        assert sorted(shared.lengths()) == [1, 6 * MIB, 7 * MIB]


def test_a_time_limit_holds_while_a_thread_waits_for_room() -> None:
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window, outcomes = Window(group), []
        calls: list[Callable[[], object]] = [
            lambda: shared.take.options(timeout=0.05)(bytes(7 * MIB)),
            lambda: take_in.options(timeout=0.05)(shared, bytes(7 * MIB)),
        ]

        def call_late(call: Callable[[], object]) -> None:
            with pytest.raises(orca.InvocationTimeout, match="it was not sent") as caught:
                call()
            outcomes.append(caught.value.outcome)

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            threads = [threading.Thread(target=call_late, args=(call,)) for call in calls]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)

        window.while_busy(fill)
        assert outcomes == ["withdrawn", "withdrawn"]
        assert shared.take.options(timeout=30)(bytes(7 * MIB)) == 7 * MIB
        assert shared.lengths() == [6 * MIB, 7 * MIB]


def test_a_limit_that_was_refused_is_not_kept() -> None:
    """On a loop a call that waits is refused; the thread's later calls have no time limit of its own."""
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window = Window(group)

        async def call_on_loop() -> None:
            with pytest.raises(orca.BlockingInLoop):
                take_in.options(timeout=0.01)(shared, b"x")

        asyncio.run(call_on_loop())
        time.sleep(0.02)  # that limit has passed
        full = threading.Event()

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            full.set()
            wait_until(lambda: len(waiting_for_room()) == 1)

        filling = threading.Thread(target=window.while_busy, args=(fill,))
        filling.start()
        assert full.wait(30)
        assert shared.take(bytes(7 * MIB)) == 7 * MIB
        filling.join(30)


@pytest.mark.parametrize("timeout", [None, 60.0])
@pytest.mark.parametrize("size", [1, 7 * MIB])
@pytest.mark.parametrize("atomic", [False, True])
def test_what_a_handler_calls_meanwhile_waits_neither_for_that_call_nor_as_long_as_it(
    size: int, timeout: float | None, *, atomic: bool
) -> None:
    with orca.join() as group:
        shared = group.share(Lengths, "lengths")
        window, full, began = Window(group), threading.Event(), threading.Event()
        over = threading.Event()
        taken: list[int] = []

        def handle(number: int, frame: object) -> None:
            if began.is_set():
                return
            began.set()
            taken.append(shared.take.options(timeout=timeout)(bytes(size)))

        def fill() -> None:
            shared.take.nowait(bytes(6 * MIB))
            full.set()
            wait_until(lambda: len(waiting_for_room()) == 1 or over.is_set())
            while not began.wait(0.01):  # the first one may come just before it sleeps
                os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.6)  # that limit has passed

        filling = threading.Thread(target=window.while_busy, args=(fill,))
        before = signal.signal(signal.SIGUSR1, handle)
        try:
            filling.start()
            assert full.wait(30)
            with contextlib.suppress(orca.InvocationTimeout):
                if atomic:
                    take_in.options(timeout=0.5)(shared, bytes(7 * MIB))
                else:
                    shared.take.options(timeout=0.5)(bytes(7 * MIB))
            over.set()
            filling.join(30)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert taken == [size]


@orca.shared
class Gate:
    """Its first operation stands as long as the test wants, and the others queue behind it."""

    @orca.write(popup=True)
    def stand(self) -> None:
        opened.wait(100)  # orca: unchecked

    @orca.write
    def put(self, data: bytes) -> int:
        return len(data)


opened = threading.Event()


@pytest.mark.parametrize("full", [False, True])
def test_a_time_limit_holds_for_a_coroutine(full: bool) -> None:
    """While it waits for room, and while it waits for the answer to its withdrawal."""
    opened.clear()
    with contextlib.closing(Members(2)) as members:
        gate = members[0].share(Gate, "gate")
        gate.stand.nowait()

        async def put() -> str | None:
            with pytest.raises(orca.InvocationTimeout) as caught:
                await gate.put.options(timeout=0.05).aio(bytes(7 * MIB))
            return caught.value.outcome

        def fill() -> None:
            for _ in range(64):
                gate.put.nowait(bytes(MIB))

        filling = threading.Thread(target=fill)
        if full:
            filling.start()
            wait_until(lambda: len(waiting_for_room()) == 1)
        try:
            outcomes = [asyncio.run(put())]
            while full and outcomes[-1] == "unknown" and len(outcomes) < 10:
                outcomes.append(asyncio.run(put()))  # there was room once more, for this one
            assert outcomes[-1] == ("withdrawn" if full else "unknown")
        finally:
            opened.set()
            if full:
                filling.join(100)


def waiting_for_room() -> list[object]:
    """The waits of this process for room."""
    return [each for each in list(waits.waiting.values()) if each.kind == "room"]


def wait_until(condition: Callable[[], bool]) -> None:
    """Other threads come as far as that."""
    while not condition():
        time.sleep(0.001)
