"""A thread that waits for a guard is woken by what can end its wait, while others write much else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

import orcalike as orca
from orcalike.session import options
from tests.lib.processes import DEADLINE, until

T = TypeVar("T")

LONG = "10000s"
"""The members' freshness: none looks by itself while a test lasts."""
ANYTHING = 2**64 - 1
"""What a member wants news of that is woken by any."""
GOOD = 10**18
"""ns: the same for what they do if one is stopped before it has woken them."""


LOOKS, MAY_END = threading.Event(), threading.Event()
"""That `Box.look` runs, and that it may end."""


@orca.shared
class Box:
    """Numbers that are taken out, and a count of what was noted."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.notes = 0

    @orca.write
    def note(self) -> int:
        """No call waits for this."""
        self.notes += 1
        return self.notes

    @orca.write
    def put(self, number: int) -> None:
        """One more to take out."""
        self.numbers.append(number)

    @orca.write
    def take(self) -> int:
        """The first number; waits until there is one."""
        return self.numbers.pop(0)

    @take.when
    def _(self) -> bool:
        return bool(self.numbers)

    @orca.read
    def look(self) -> int:
        """Holds the object up at this member until a test lets it end."""
        LOOKS.set()  # orca: unchecked
        MAY_END.wait(DEADLINE)  # orca: unchecked
        return self.notes

    @orca.read
    def holds(self, count: int) -> int:
        """Waits until so many are there."""
        return len(self.numbers)

    @holds.when
    def _(self, count: int) -> bool:
        return len(self.numbers) >= count


@orca.atomic
def move(one: Box, other: Box) -> int:
    """Take a number of one box over to another; waits until there is one."""
    number = one.numbers.pop(0)
    other.numbers.append(number)
    return number


@move.when
def _(one: Box, other: Box) -> bool:
    return bool(one.numbers)


class Bench:
    """Members of one group in this process, and two boxes as each of them has them."""

    def __init__(self, stack: ExitStack, folder: Path, freshness: str = LONG) -> None:
        self.threads = stack.enter_context(ThreadPoolExecutor())  # joined when the groups are left
        address = f"unix:{folder / 'first'}"
        self.groups: list[orca.Group] = []
        for rank in range(3):
            to = {"seeds": address} if rank else {"listen": address}
            joining = orca.join(**to, freshness=freshness, timeout=DEADLINE)  # type: ignore[arg-type]
            self.groups.append(stack.enter_context(joining))
        for group in self.groups:
            group._session.pump.doze_most = GOOD
        self.boxes = [group.share(Box, "box") for group in self.groups]
        self.others = [group.share(Box, "other") for group in self.groups]
        self.thirds = [group.share(Box, "third") for group in self.groups]

    def order_of(self, rank: int) -> dict[str, Any]:
        """How a member sees the order in memory."""
        found: dict[str, Any] = self.groups[rank]._session.stack.dump()["RING"]
        return found

    def row(self, rank: int) -> dict[str, Any]:
        """A member's row in it."""
        order = self.order_of(rank)
        (row,) = [row for row in order["rows"] if row["row"] == order["row"]]
        return dict(row)

    def wakes(self) -> int:
        """How often rank 0 has woken others."""
        return int(self.order_of(0)["wakes"])

    def sleeps(self, rank: int) -> bool:
        """Whether a thread of this member sleeps, and has applied all."""
        return self.row(rank)["wants to be woken"] and self.has_all(rank)

    def has_all(self, rank: int) -> bool:
        """Whether a member has applied all."""
        return bool(self.row(rank)["applied"] >= self.order_of(0)["next"])

    def start(self, rank: int, call: Callable[[], int]) -> Future[int]:
        """A thread of that member's that waits in a call, and wants no news but what may end it."""
        outcome = self.threads.submit(call)
        until(lambda: self.wants_little(rank), "it wants no other news")
        return outcome

    def wants_little(self, rank: int) -> bool:
        """Whether a member that sleeps wants little; if it wants any news, it gets some, and is asked again."""
        row = self.row(rank)
        if row["wants to be woken"] and row["by news of"] == ANYTHING:
            self.others[0].note()
            return False
        return bool(row["wants to be woken"])


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """What a test leaves in the end; no member wakes others to compare states."""
    monkeypatch.setenv("ORCALIKE_CHECK", "none")
    monkeypatch.setattr(options, "FRESHNESS_MAX", 1e6)
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def bench(stack: ExitStack, tmp_path: Path) -> Bench:
    return Bench(stack, tmp_path)


def test_a_read_that_waits_is_woken_by_writes_of_its_object_alone(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(2))
    wakes = bench.wakes()
    for _ in range(100):
        bench.others[0].note()
    assert bench.wakes() == wakes
    assert bench.row(1)["wants to be woken"]
    bench.boxes[0].put(1)
    assert bench.wakes() == wakes + 1
    bench.boxes[0].put(2)
    assert seen.result(DEADLINE) == 2


def test_a_write_that_waits_is_woken_by_what_lets_it_run_alone(bench: Bench) -> None:
    taken = bench.start(1, bench.boxes[1].take)
    wakes = bench.wakes()
    for _ in range(100):
        bench.boxes[0].note()
        bench.others[0].note()
    assert bench.wakes() == wakes
    bench.boxes[0].put(7)
    assert taken.result(DEADLINE) == 7
    assert bench.wakes() == wakes + 1


def test_of_many_that_wait_one_is_woken(bench: Bench) -> None:
    first = bench.start(1, bench.boxes[1].take)
    second = bench.start(2, bench.boxes[2].take)
    applied = bench.row(2)["applied"]
    bench.boxes[0].put(1)
    assert first.result(DEADLINE) == 1
    assert bench.row(2)["applied"] == applied
    assert not second.done()
    bench.boxes[0].put(2)
    assert second.result(DEADLINE) == 2


def test_an_atomic_function_that_waits_lets_others_go_on(bench: Bench) -> None:
    """A write of one of its objects lets it run, and it writes the other one."""
    moved = bench.start(1, lambda: move(bench.boxes[1], bench.others[1]))
    seen = bench.start(2, lambda: bench.others[2].holds(1))
    bench.boxes[0].put(7)
    assert not bench.row(2)["wants to be woken"]
    assert (moved.result(DEADLINE), seen.result(DEADLINE)) == (7, 1)


def test_a_call_that_is_let_go_on_by_another_thread_is_due(bench: Bench) -> None:
    """The write comes while a read holds the object up, whose thread lets the write run, and with it the call."""
    LOOKS.clear()
    MAY_END.clear()
    taken = bench.start(1, bench.boxes[1].take)
    looked = bench.threads.submit(bench.boxes[0].look)
    assert LOOKS.wait(DEADLINE)
    wakes = bench.wakes()
    bench.boxes[0].put.nowait(7)
    assert bench.wakes() == wakes
    MAY_END.set()
    assert looked.result(DEADLINE) == 0
    until(lambda: bench.wakes() == wakes + 1, "it is woken")
    assert taken.result(DEADLINE) == 7


def test_writes_that_are_not_waited_for_wake_as_those_that_are(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    wakes = bench.wakes()
    for _ in range(100):
        bench.others[0].note.nowait()
    bench.others[0].note()
    assert bench.wakes() == wakes
    bench.boxes[0].put.nowait(7)
    for _ in range(100):
        bench.others[0].note.nowait()
    bench.others[0].note()
    assert not bench.row(1)["wants to be woken"]
    assert seen.result(DEADLINE) == 1


def test_two_threads_of_one_member_are_woken_for_each_other(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    outcome = bench.threads.submit(bench.others[1].holds, 1)
    until(lambda: int(bench.row(1)["by news of"]).bit_count() == 2, "both wait")
    wakes = bench.wakes()
    bench.thirds[0].note()
    assert bench.wakes() == wakes
    bench.others[0].put(1)
    assert bench.wakes() == wakes + 1
    assert outcome.result(DEADLINE) == 1
    bench.boxes[0].put(1)
    assert seen.result(DEADLINE) == 1


def test_a_wait_for_more_than_a_guard_is_woken_by_all(bench: Bench) -> None:
    """A barrier, after a call that has waited for its guard in the same thread."""

    def take_and_meet() -> int:
        number = bench.boxes[1].take()
        bench.groups[1].barrier()
        return number

    met = bench.start(1, take_and_meet)
    bench.boxes[0].put(3)
    for rank in (0, 2):
        bench.threads.submit(bench.groups[rank].barrier)
    assert met.result(DEADLINE) == 3


def test_after_a_while_without_news_any_news_wakes_again(stack: ExitStack, tmp_path: Path) -> None:
    bench = Bench(stack, tmp_path, "200ms")
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    until(
        lambda: bench.row(1)["by news of"] == ANYTHING and bench.sleeps(1),
        "it wants all news again",
    )
    wakes = bench.wakes()
    bench.others[0].note()
    assert bench.wakes() > wakes
    bench.boxes[0].put(1)
    assert seen.result(DEADLINE) == 1


def test_without_freshness_any_news_wakes(stack: ExitStack, tmp_path: Path) -> None:
    bench = Bench(stack, tmp_path, "0")
    outcome = bench.threads.submit(bench.boxes[1].holds, 1)
    for number in range(1, 11):
        until(lambda: bench.sleeps(1), "it sleeps")
        assert bench.row(1)["by news of"] == ANYTHING
        wakes = bench.wakes()
        assert bench.others[0].note() == number
        assert bench.wakes() > wakes
    bench.boxes[0].put(1)
    assert outcome.result(DEADLINE) == 1


class OnLoop:
    """One more member, on an event loop in a thread of its own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.left = asyncio.Event()
        joined: Future[None] = Future()
        bench.threads.submit(asyncio.run, self._run(joined))
        joined.result(DEADLINE)

    async def _run(self, joined: Future[None]) -> None:
        self.loop = asyncio.get_running_loop()
        joining = orca.join(seeds=self.bench.groups[0].address, freshness=LONG, timeout=DEADLINE)
        async with joining as self.group:
            self.box = await self.group.share.aio(Box, "box")
            self.other = await self.group.share.aio(Box, "other")
            joined.set_result(None)
            await self.left.wait()

    def leave(self) -> None:
        """To be called in the end."""
        self.loop.call_soon_threadsafe(self.left.set)

    def start(self, call: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """A task on its loop."""

        async def run() -> T:
            return await call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop)

    def listens(self) -> tuple[bool, int]:
        """Whether its alarm is set by news, and by which."""

        async def look() -> tuple[bool, int]:
            order: Any = self.group._session.stack.dump()["RING"]
            (row,) = [row for row in order["rows"] if row["row"] == order["row"]]
            return order["armed"], row["by news of"]

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(DEADLINE)

    def after_news(self) -> None:
        """Have it woken by some news that nothing waits for; from then on it wants none."""

        until(lambda: not self.is_woken(), "it is not woken by news for a while")

    def is_woken(self) -> bool:
        """Whether it is woken by news that nothing waits for."""
        wakes = self.bench.wakes()
        self.bench.others[0].note()
        for _ in range(2):  # turns of its loop, in which it does what it was woken for
            self.listens()
        return self.bench.wakes() > wakes


@pytest.fixture
def on_loop(bench: Bench) -> Iterator[OnLoop]:
    member = OnLoop(bench)
    yield member
    member.leave()


def test_on_an_event_loop_one_that_waits_for_nothing_is_not_woken(
    bench: Bench, on_loop: OnLoop
) -> None:
    assert on_loop.group._session.stack.waiting == 0
    on_loop.after_news()
    assert not any(on_loop.is_woken() for _ in range(10))


def test_on_an_event_loop_a_coroutine_is_woken_by_what_can_end_its_wait(
    bench: Bench, on_loop: OnLoop
) -> None:
    for call, result in ((on_loop.box.take.aio, 7), (lambda: on_loop.box.holds.aio(1), 1)):
        on_loop.after_news()
        outcome = on_loop.start(call)
        until(lambda: on_loop.listens() in ((True, 0), (True, 2)), "it listens for a little")
        wakes = bench.wakes()
        for _ in range(100):
            bench.others[0].note()
        assert bench.wakes() == wakes
        bench.boxes[0].put(7)
        assert bench.wakes() == wakes + 1
        assert outcome.result(DEADLINE) == result


def test_on_an_event_loop_a_coroutine_that_waits_for_more_is_woken_by_all(
    bench: Bench, on_loop: OnLoop
) -> None:
    on_loop.after_news()
    met = on_loop.start(on_loop.group.barrier.aio)
    until(lambda: on_loop.listens() == (True, ANYTHING), "it listens for all")
    for group in bench.groups:
        bench.threads.submit(group.barrier)
    assert met.result(DEADLINE) is None
    on_loop.after_news()


def test_a_coroutine_beside_a_thread_of_the_groups_own_is_woken(bench: Bench) -> None:
    """The member's own thread receives, and the loop has no part in that."""

    async def take() -> int:
        return await bench.boxes[1].take.aio()

    taken = bench.threads.submit(asyncio.run, take())
    stack = bench.groups[1]._session.stack
    until(
        lambda: stack.patient.count == 1 and bench.order_of(1)["armed"] and bench.has_all(1),
        "it waits",
    )
    wakes = bench.wakes()
    bench.boxes[0].put(7)
    assert bench.wakes() > wakes
    assert taken.result(DEADLINE) == 7
