"""What each member of a group with a busy worker runs; `busy.py` asks rank 0.

    orcalike run -n 3 bench/busy_member.py

Rank 0 writes, rank 1 is the worker, rank 2 does nothing. Each line of rank 0's input is
`WHAT WHERE COUNT`. WHERE is what rank 1's core does meanwhile: `inside`, rank 1's main thread runs a
loop of pure Python; `outside`, a process that is in no group does, and rank 1 waits; `idle`, nothing.
WHAT is `seen`: rank 0 writes with gaps, and answers with the nanoseconds from the call of each
write to its application at rank 1; or `wait`: rank 0 writes one after the other, and answers with
the seconds of a write that waits.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from itertools import count as numbers
from itertools import repeat

import orcalike as orca

WRITER, WORKER = 0, 1
GAPS = (0.0015, 0.0045)
"""Seconds between two writes that are to be seen: between these, at random."""
STEPS_OF_LOOP = 1000
"""So many are run before the worker looks whether it is over."""
BUSY_PROCESS = "print(flush=True)\nx = 0\nwhile True: x += 1"


class Seen:
    """An attribute that keeps, beside the objects, how long ago what is assigned to it was sent.

    What a clock says differs at each replica and may not get into any; this does not.
    """

    def __init__(self) -> None:
        self.latencies: list[int] = []

    def __set__(self, instance: object, sent: int) -> None:
        """All clocks of a machine say the same."""
        self.latencies.append(time.monotonic_ns() - sent)


seen = Seen()


@orca.shared
class Scene:
    """What is played, and how far it is."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.begun = 0
        self.ended = 0
        self.results: dict[int, list[int]] = {}
        self.writes = 0

    @orca.write
    def give(self, where: str) -> None:
        """The next round."""
        self.orders.append(where)

    @orca.read
    def order(self, number: int) -> str:
        """Where round `number` is; waits until it is given."""
        return self.orders[number]

    @order.when
    def _(self, number: int) -> bool:
        return number < len(self.orders)

    @orca.write
    def begin(self) -> None:
        """The worker's core is as it should be."""
        self.begun += 1

    @orca.read
    def await_begun(self, number: int) -> None:
        """Wait until round `number` has begun."""

    @await_begun.when
    def _(self, number: int) -> bool:
        return self.begun > number

    @orca.write
    def end(self) -> None:
        """The round is over."""
        self.ended += 1

    @orca.local
    def goes_on(self, number: int) -> bool:
        """Whether round `number` is not over here."""
        return self.ended <= number

    @orca.read
    def await_end(self, number: int) -> None:
        """Wait until round `number` is over."""

    @await_end.when
    def _(self, number: int) -> bool:
        return self.ended > number

    @orca.write
    def report(self, number: int, result: list[int]) -> None:
        """What the worker has seen."""
        self.results[number] = result

    @orca.read
    def result(self, number: int) -> list[int]:
        """The same; waits for it."""
        return self.results[number]

    @result.when
    def _(self, number: int) -> bool:
        return number in self.results

    @orca.write
    def add(self) -> None:
        """A write like any other."""
        self.writes += 1


@orca.shared
class Stamp:
    """Written with the time."""

    sent = seen

    @orca.write
    def put(self, sent: int) -> None:
        """A write of now."""
        self.sent = sent


def work(scene: Scene, number: int, where: str) -> None:
    """The worker's round."""
    seen.latencies.clear()
    if where == "inside":
        scene.begin()
        x = 0
        while scene.goes_on(number):
            for _ in range(STEPS_OF_LOOP):
                x += 1
    elif where == "outside":
        with subprocess.Popen([sys.executable, "-c", BUSY_PROCESS], stdout=subprocess.PIPE) as it:
            assert it.stdout is not None
            it.stdout.readline()
            scene.begin()
            scene.await_end(number)
            it.kill()
    else:
        scene.begin()
        scene.await_end(number)
    scene.report(number, list(seen.latencies))


def direct(scene: Scene, stamp: Stamp) -> None:
    """The writer: a round for each line."""
    for number, line in enumerate(sys.stdin):
        what, where, count = line.split()
        scene.give(where)
        scene.await_begun(number)
        began = time.monotonic()
        if what == "seen":
            for _ in repeat(None, int(count)):
                time.sleep(random.uniform(*GAPS))
                stamp.put(time.monotonic_ns())
        else:
            for _ in repeat(None, int(count)):
                scene.add()
        seconds = (time.monotonic() - began) / int(count)
        scene.end()
        latencies = scene.result(number)
        print(latencies if what == "seen" else repr(seconds), flush=True)
    scene.give("end")


def main() -> None:
    """All members."""
    with orca.join() as group:
        scene, stamp = group.share(Scene, "scene"), group.share(Stamp, "stamp")
        group.barrier()
        if group.rank == WRITER:
            direct(scene, stamp)
            return
        for number in numbers():
            if (where := scene.order(number)) == "end":
                return
            if group.rank == WORKER:
                work(scene, number, where)


if __name__ == "__main__":
    main()
