"""A member over shared memory: two threads write, with and without waiting, until the test says "stop".

It leaves a line in a file for each write that was acknowledged. When `MEMBERS` have stopped, it prints the log as it is here.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from common import MEETINGS, called, meet, tell

import orcalike as orca

STACK = "PACK:XFER:RING:MBRSHIP:COM:unix"


@orca.shared
class Log:
    """What was written, in its order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    @orca.write
    def note(self, writer: str, number: int) -> int:
        """One line more."""
        self.lines.append((writer, number))
        return len(self.lines)

    @orca.read
    def all(self) -> list[tuple[str, int]]:
        """The lines so far."""
        return list(self.lines)


def write_on(log: Log, writer: str) -> None:
    """Write until the test says "stop", and say what was acknowledged."""
    rng, number = random.Random(writer), 0
    acknowledged = (MEETINGS / f"acknowledged.{writer}").open("w", buffering=1)
    while not called("stop"):
        for _ in range(rng.choice([0, 0, 0, 20])):
            log.note.nowait(writer, number)
            number += 1
        log.note(writer, number)
        acknowledged.write(f"{number}\n")
        number += 1
        time.sleep(rng.random() * 0.005)


def main(name: str) -> None:
    """Take part."""
    with orca.join("ring", stack=STACK, at=sys.argv[2]) as group:
        log = group.share(Log, "log")
        threads = [
            threading.Thread(target=write_on, args=(log, f"{name}.{number}")) for number in range(2)
        ]
        for thread in threads:
            thread.start()
        tell(joined=name)
        for thread in threads:
            thread.join()
        meet("stopped", int(os.environ["MEMBERS"]))
        group.fence()
        tell(log=log.all())
        meet("printed", int(os.environ["MEMBERS"]))


if __name__ == "__main__":
    main(sys.argv[1])
