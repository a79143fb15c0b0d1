"""What each member of a measured group runs; `orcalike run` starts it for the measurements.

    orcalike run -n 3 bench/member.py [--loop] [--idle[=S]] [--resilience=R] [--held] [--freshness=F]

Rank 0 answers each line of its input, `KIND COUNT`, with the seconds that one operation took. What
all members do at once they learn from a shared object, for which the others wait with a guard; with
`--idle` they wait for nothing in the group, and look at the object each S seconds. With `--loop` the group
lives on an event loop (uvloop), and coroutines wait; without, on a thread of its own. R is the group's degree; with
`--held` the group has an object whose writes have degree 2.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import count as numbers
from itertools import repeat
from statistics import median
from timeit import Timer

import msgpack

import orcalike as orca
from orcalike.bench.subjects import RECORDS, Held, Plain, Shared
from orcalike.runtime.marshal import Codec
from orcalike.session.joining import Joining

STATEMENTS = {
    "read": "it.get()",
    "read_long": "it.count(7)",
    "plainly": "it.peek(); it.value",
    "add": "it.add(1)",
    "put": "it.put('hello', 7)",
    "keep": "it.keep(record)",
    **{f"copy_{name}": "there_and_back(record)" for name in RECORDS},
}


CHUNK = 64
"""Writes between two looks at the clock."""
PAUSE = 0.05
"""Seconds between two looks of a member that waits for nothing in the group, unless S says another time."""


def pause() -> float:
    """So long members sleep that wait for nothing in the group; 0 if they wait there."""
    words = [word for word in sys.argv[1:] if word.startswith("--idle")]
    return float(words[0].partition("=")[2] or PAUSE) if words else 0.0


@orca.shared
class Desk:
    """The rounds that all members take part in, and when each of them did."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, int]] = []
        self.spans: dict[int, list[tuple[float, float]]] = {}

    @orca.write
    def give(self, kind: str, count: int) -> None:
        """The next round."""
        self.spans[len(self.orders)] = []
        self.orders.append((kind, count))

    @orca.read
    def order(self, number: int) -> tuple[str, int]:
        """What round `number` is; waits until it is given."""
        return self.orders[number]

    @order.when
    def _(self, number: int) -> bool:
        return number < len(self.orders)

    @orca.write
    def report(self, number: int, began: float, ended: float) -> None:
        """A member has had its round."""
        self.spans[number].append((began, ended))

    @orca.read
    def seconds(self, number: int, size: int) -> float:
        """From the first beginning to the last end; waits until all `size` members are through."""
        return max(ended for _, ended in self.spans[number]) - min(
            began for began, _ in self.spans[number]
        )

    @seconds.when
    def _(self, number: int, size: int) -> bool:
        return len(self.spans[number]) == size

    @orca.read
    def rates(self, number: int, size: int) -> list[float]:
        """Writes a second of the slowest and of the fastest member; waits until all `size` members are through."""
        rates = [rate for _, rate in self.spans[number]]
        return [min(rates), max(rates)]

    @rates.when
    def _(self, number: int, size: int) -> bool:
        return len(self.spans[number]) == size


@orca.shared
class Turn:
    """A number that members wait for."""

    def __init__(self) -> None:
        self.number = 0

    @orca.write
    def go_to(self, number: int) -> None:
        """It is the turn of the member that waits for this number."""
        self.number = number

    @orca.read
    def wait_for(self, number: int) -> None:
        """Waits until that number is reached."""

    @wait_for.when
    def _(self, number: int) -> bool:
        return self.number >= number


def alone(kind: str, count: int, shared: Shared) -> float | None:
    """A round that takes rank 0 and nothing else; None if `kind` is none of these."""
    side, _, name = kind.partition("_")
    if side not in ("plain", "shared"):
        return None
    clock = time.thread_time  # what others do meanwhile does not count
    empty = min(Timer("pass", timer=clock).repeat(3, count))
    names = {
        "it": shared if side == "shared" else Plain(),
        "record": RECORDS["dict" if name.endswith("dict") else "list"],
        "there_and_back": marshalled if side == "shared" else packed,
    }
    return (Timer(STATEMENTS[name], timer=clock, globals=names).timeit(count) - empty) / count


_codec = Codec(lambda value: None, lambda number: None)


def marshalled(value: object) -> object:
    """As an argument travels: written, and read again."""
    return _codec.decode(_codec.encode_value(value, "it"))


def packed(value: object) -> object:
    """The same by the msgpack library alone."""
    return msgpack.unpackb(msgpack.packb(value))


def join() -> Joining:
    """The group, with the degree and the freshness that the command line asks for."""
    given = dict(word.partition("=")[::2] for word in sys.argv[1:])
    degree = given.get("--resilience", "0")
    return orca.join(
        resilience="majority" if degree == "majority" else int(degree),
        freshness=given.get("--freshness", "1ms"),
    )


def answer(seconds: float | list[float]) -> None:
    """One line for the process that measures."""
    print(repr(seconds), flush=True)


def next_order(line: str) -> tuple[str, int]:
    """The kind and count of a line; the end of the input is `end`."""
    kind, count = line.split() if line else ("end", "0")
    return kind, int(count)


# On a thread of its own.


def wait(shared: Shared, count: int) -> float:
    """Seconds of one write that the caller waits for."""
    began = time.monotonic()
    for _ in repeat(None, count):
        shared.add(1)
    return (time.monotonic() - began) / count


def wait_singly(shared: Shared | Held, rest: float, count: int) -> float:
    """The median of single writes, each after so many seconds in which nothing was done."""
    seconds = []
    for _ in repeat(None, count):
        if rest:
            time.sleep(rest)
        began = time.monotonic()
        shared.add(1)
        seconds.append(time.monotonic() - began)
    return median(seconds)


def wait_with_text(shared: Shared, size: int, count: int) -> float:
    """The same for a write of so many bytes."""
    text = "x" * size
    began = time.monotonic()
    for _ in repeat(None, count):
        shared.put(text, 7)
    return (time.monotonic() - began) / count


def burst(group: orca.Group, shared: Shared, kind: str, count: int) -> tuple[float, float]:
    """When this member began to write without waiting, and when all was applied everywhere."""
    group.barrier()
    began = time.monotonic()
    if kind == "int":
        for _ in repeat(None, count):
            shared.add.nowait(1)
    elif kind in RECORDS:
        record = RECORDS[kind]
        for _ in repeat(None, count):
            shared.keep.nowait(record)
    else:
        for _ in repeat(None, count):
            shared.put.nowait("hello", 7)
    group.barrier()
    return began, time.monotonic()


def make_trips(group: orca.Group, turn: Turn, count: int) -> tuple[float, float]:
    """Each of two members writes when the other one has: when this one began, and when all was over."""
    first = turn.number  # no write is under way
    group.barrier()
    began = time.monotonic()
    for number in range(first, first + 2 * count, 2):
        if group.rank == 0:
            turn.go_to(number + 1)
            turn.wait_for(number + 2)
        else:
            turn.wait_for(number + 1)
            turn.go_to(number + 2)
    group.barrier()
    return began, time.monotonic()


def write_for(group: orca.Group, shared: Shared, seconds: float) -> tuple[float, float]:
    """0, and how often in a second this member writes without waiting, beside others that do the same."""
    group.barrier()
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for _ in repeat(None, CHUNK):
            shared.add.nowait(1)
        count += CHUNK
    group.barrier()
    return 0.0, count / seconds


def direct(desk: Desk, shared: Shared, held: Held | None) -> None:
    """Rank 0: have rounds alone until one comes that is for all, and order that."""
    while True:
        kind, count = next_order(sys.stdin.readline())
        if kind == "wait":
            answer(wait(shared, count))
        elif kind.startswith("single:"):
            answer(wait_singly(shared, int(kind.removeprefix("single:")) / 1e6, count))
        elif kind == "held" and held:
            answer(wait_singly(held, 0.0, count))
        elif kind.startswith("text:"):
            answer(wait_with_text(shared, int(kind.removeprefix("text:")), count))
        elif (seconds := alone(kind, count, shared)) is not None:
            answer(seconds)
        else:
            desk.give(kind, count)
            return


def run_in_threads() -> None:
    """A member whose calls wait in its main thread."""
    with join() as group:
        desk = group.share(Desk, "desk")
        shared = group.share(Shared, "shared")
        turn = group.share(Turn, "turn")
        held = group.share(Held, "held") if "--held" in sys.argv else None
        for number in numbers():
            if group.rank == 0:
                direct(desk, shared, held)
            elif seconds := pause():
                while len(desk.orders) <= number:
                    time.sleep(seconds)
            kind, count = desk.order(number)
            if kind == "end":
                return
            if kind == "race":
                desk.report(number, *write_for(group, shared, count / 1000))
                if group.rank == 0:
                    answer(desk.rates(number, group.size))
            elif kind == "trips":
                desk.report(number, *make_trips(group, turn, count))
                if group.rank == 0:
                    answer(desk.seconds(number, group.size) / count)
            else:
                desk.report(number, *burst(group, shared, kind, count))
                if group.rank == 0:
                    answer(desk.seconds(number, group.size) / (count * group.size))


# On an event loop.


async def wait_on_loop(shared: Shared, count: int) -> float:
    """Seconds of one write that a coroutine waits for."""
    began = time.monotonic()
    for _ in repeat(None, count):
        await shared.add.aio(1)
    return (time.monotonic() - began) / count


async def wait_singly_on_loop(shared: Shared, count: int) -> float:
    """The median of single writes that a coroutine waits for."""
    seconds = []
    for _ in repeat(None, count):
        began = time.monotonic()
        await shared.add.aio(1)
        seconds.append(time.monotonic() - began)
    return median(seconds)


async def burst_on_loop(group: orca.Group, shared: Shared, count: int) -> tuple[float, float]:
    """The same as `burst`; if there is no room the loop must wait for it."""
    await group.barrier.aio()
    began = time.monotonic()
    for _ in repeat(None, count):
        try:
            shared.add.nowait(1)
        except orca.WindowFull:
            await group.drain()
            shared.add.nowait(1)
    await group.barrier.aio()
    return began, time.monotonic()


async def direct_on_loop(desk: Desk, shared: Shared) -> None:
    """The same as `direct`. It reads while nothing is measured, so it may block the loop."""
    while True:
        kind, count = next_order(sys.stdin.readline())
        if kind == "wait":
            answer(await wait_on_loop(shared, count))
        elif kind == "single:0":
            answer(await wait_singly_on_loop(shared, count))
        else:
            await desk.give.aio(kind, count)
            return


async def run_on_loop() -> None:
    """A member whose coroutines wait."""
    async with join() as group:
        desk = await group.share.aio(Desk, "desk")
        shared = await group.share.aio(Shared, "shared")
        await group.barrier.aio()
        for number in numbers():
            if group.rank == 0:
                await direct_on_loop(desk, shared)
            elif seconds := pause():
                while len(desk.orders) <= number:
                    await asyncio.sleep(seconds)
            kind, count = await desk.order.aio(number)
            if kind == "end":
                return
            span = await burst_on_loop(group, shared, count)
            await desk.report.aio(number, *span)
            if group.rank == 0:
                seconds = await desk.seconds.aio(number, group.size)
                answer(seconds / (count * group.size))


if __name__ == "__main__":
    if "--loop" in sys.argv[1:]:
        import uvloop  # not at the top: `peers` takes parts of this module

        uvloop.run(run_on_loop())
    else:
        run_in_threads()
