"""Members of one group in this process that look into the order in memory only when they are woken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import orcalike as orca
from tests.lib.processes import DEADLINE, until

T = TypeVar("T")

LONG = "10000s"
"""The members' freshness: none looks by itself while a test lasts."""
ANYTHING = 2**42 - 1
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

    def __init__(
        self, stack: ExitStack, folder: Path, freshness: str = LONG, /, **options: Any
    ) -> None:
        self.threads = stack.enter_context(ThreadPoolExecutor())  # joined when the groups are left
        address = f"unix:{folder / 'first'}"
        self.groups: list[orca.Group] = []
        for rank in range(3):
            to: dict[str, Any] = {"seeds": address} if rank else {"listen": address}
            joining = orca.join(**to, freshness=freshness, timeout=DEADLINE, **options)
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

    def wakes(self, rank: int = 0) -> int:
        """How often a member has woken others."""
        return int(self.order_of(rank)["wakes"])

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
