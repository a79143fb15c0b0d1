"""A member over shared memory: it writes large values, or small ones, until the test says "stop", then prints what is here.

Of each value its first letter is kept, its length, and how many letters it has of that kind.
"""

from __future__ import annotations

import os
import sys
import time

from common import called, meet, tell

import orcalike as orca

SIZE = 5_000_000


@orca.shared
class Values:
    """What was written, in its order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    @orca.write
    def put(self, value: str) -> int:
        """One value more; returns how many there are."""
        self.seen.append((value[0], len(value), value.count(value[0])))
        return len(self.seen)

    @orca.read
    def all(self) -> list[tuple[str, int, int]]:
        """The values so far."""
        return list(self.seen)


def main(role: str) -> None:
    """Take part."""
    with orca.join("ring", stack=os.environ["STACK"], at=sys.argv[2]) as group:
        values = group.share(Values, "values")
        values.put(role)
        tell(joined=role)
        while not called("stop"):
            if role == "large":
                for _ in range(4):
                    values.put.nowait("L" * SIZE)
                values.put("m" * SIZE)
                tell(written=SIZE)
            else:
                values.put("small")
                time.sleep(0.001)
        meet("stopped", int(os.environ["MEMBERS"]))
        group.fence()
        tell(seen=values.all())
        meet("printed", int(os.environ["MEMBERS"]))


if __name__ == "__main__":
    main(sys.argv[1])
