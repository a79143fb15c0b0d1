"""What each member of a group with a stack of its own runs in A54, H86 and H87.

    orcalike run --sequencer rank -n 2 bench/papers/stack_member.py STACK

Rank 0 is the sequencer, and answers each line of its input, `KIND COUNT`; the last rank writes to a
shared object, so many times, and waits each time. `write` asks for the seconds of one write,
`layers` for what the meter has seen of it too: {"sender": {LAYER: seconds}, "sequencer": {...}}.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import count as numbers
from itertools import repeat

import orcalike as orca
from orcalike.bench.member import Desk, answer, next_order
from orcalike.bench.papers.layers import METER, make_known
from orcalike.bench.papers.member import Null


@orca.shared
class Board:
    """Where the sender writes what its meter has seen."""

    def __init__(self) -> None:
        self.tallies: dict[int, dict[str, float]] = {}

    @orca.write
    def put(self, number: int, tally: dict[str, float]) -> None:
        """Of round `number`."""
        self.tallies[number] = tally

    @orca.read
    def tally(self, number: int) -> dict[str, float]:
        """Of round `number`; waits until it is there."""
        return self.tallies[number]

    @tally.when
    def _(self, number: int) -> bool:
        return number in self.tallies


def write(null: Null, count: int) -> tuple[float, float]:
    """When it began, and when all writes were applied here."""
    nothing = null.nothing
    began = time.monotonic()
    for _ in repeat(None, count):
        nothing()
    return began, time.monotonic()


def each(tally: dict[str, float], count: int) -> dict[str, float]:
    """A tally by write."""
    return {layer: spent / count for layer, spent in tally.items()}


def main() -> None:
    """Until the input ends."""
    with orca.join(stack=sys.argv[1]) as group:
        desk, null = group.share(Desk, "desk"), group.share(Null, "null")
        board = group.share(Board, "board")
        for number in numbers():
            if group.rank == 0:
                desk.give(*next_order(sys.stdin.readline()))
            before = METER.seen()
            kind, count = desk.order(number)
            if kind == "end":
                return
            count = max(1, count)
            if group.rank == group.size - 1:
                desk.report(number, *write(null, count))
                board.put(number, each(METER.corrected(before), count))
            if group.rank == 0:
                seconds = desk.seconds(number, 1) / count
                report = {"sequencer": each(METER.corrected(before), count)}
                report["sender"] = board.tally(number)
                if kind == "layers":
                    print(json.dumps({"seconds": seconds, **report}), flush=True)
                else:
                    answer(seconds)


if __name__ == "__main__":
    make_known()
    main()
