"""Two members over shared memory: one writes; the other, whose threads all stand still but one, reads what it wrote."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable

from common import MEETINGS, meet, tell

import orcalike as orca

STACK = "PACK:XFER:RING:MBRSHIP:COM:unix"
ROUNDS = 50


@orca.shared
class Number:
    """A number."""

    def __init__(self) -> None:
        self.number = 0

    @orca.write
    def set(self, number: int) -> None:
        """Another number."""
        self.number = number

    @orca.read
    def get(self) -> int:
        """The number."""
        return self.number

    @orca.read
    def get_when_positive(self) -> int:
        """The same, with a guard."""
        return self.number

    @get_when_positive.when
    def _(self) -> bool:
        return self.number > 0


def reads_of(number: Number) -> list[Callable[[], int]]:
    """The ways to read."""
    return [
        number.get,
        number.get_when_positive,
        lambda: number.get.nowait().result(),
        lambda: Number.get(number),
    ]


def main(role: str) -> None:
    """Write, or look."""
    with (MEETINGS / "flags").open("r+b") as file:
        flags = mmap.mmap(file.fileno(), 2)
    with orca.join("look", stack=STACK, at=sys.argv[2]) as group:
        number = group.share(Number, "number")
        number.set(0)  # the order is in memory that both have mapped
        meet("here", 2)
        if role == "writer":
            for i in range(1, ROUNDS + 1):
                number.set(i)
                flags[0] = i
                while flags[1] != i:
                    pass
        else:
            seen, ways = [], reads_of(number)
            switch_interval = sys.getswitchinterval()
            sys.setswitchinterval(1e6)  # no other thread of this process runs from here on
            for i in range(1, ROUNDS + 1):
                while flags[0] != i:
                    pass
                seen.append(ways[i % len(ways)]())
                flags[1] = i
            sys.setswitchinterval(switch_interval)
            tell(seen=seen)
        meet("over", 2)


if __name__ == "__main__":
    main(sys.argv[1])
