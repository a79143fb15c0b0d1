"""A member of the campaign's large join: `transfer_member.py fill|write|join ADDRESS MiB SECONDS`.

The filler makes the group and the state, the writer writes and tells how long its writes took, and
the joiner joins. Each tells what memory it took, as lines of JSON; a line on stdin has it go on.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import orcalike as orca

ROLE, ADDRESS, SIZE = sys.argv[1], sys.argv[2], int(sys.argv[3])
MiB = 1 << 20
OBJECTS = 8
PER_SECOND = 1_000


@orca.shared
class Store:
    """Many megabytes: byte strings of 64 KiB, each another one."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}

    @orca.write(popup=True)
    def grow(self, size: int) -> int:
        """Have so many MiB."""
        for number in range(16 * size):
            self.parts[number] = number.to_bytes(4, "big") * 16_384
        return len(self.parts)

    @orca.write
    def put(self, number: int) -> None:
        """Put another part in the place of one."""
        self.parts[number] = b"new!" * 16_384

    @orca.read
    def count(self) -> int:
        """How many parts it has."""
        return len(self.parts)


@orca.shared
class Cell:
    """Something small."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self) -> int:
        """Count up."""
        self.value += 1
        return self.value


def tell(**facts: object) -> None:
    """One line for the supervisor."""
    os.write(1, (json.dumps(facts) + "\n").encode())


def peak(field: str = "VmHWM") -> int:
    """MiB of memory that this process has, or had at the most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(field)]
    return int(line.split()[1]) >> 10


def fill() -> None:
    with orca.join(listen=ADDRESS) as group:
        for number in range(OBJECTS):
            group.share(Store, f"store {number}").grow(SIZE // OBJECTS)
        group.share(Cell, "cell")
        tell(address=group.address, resident=peak("VmRSS"))
        Path("/proc/self/clear_refs").write_text("5")
        sys.stdin.readline()
        tell(peak=peak())
        sys.stdin.readline()


def wait_for_end(asked: threading.Event) -> None:
    """Wait until the supervisor ends the writing."""
    sys.stdin.readline()
    asked.set()


def write() -> None:
    """Writes to the small object, and now and then to a large one."""
    with orca.join(seeds=ADDRESS, timeout=300) as group:
        cell, store = group.find(Cell, "cell"), group.find(Store, "store 3")
        asked = threading.Event()
        threading.Thread(target=wait_for_end, args=(asked,), daemon=True).start()
        tell(joined=True)
        took: list[float] = []
        due = time.perf_counter()
        while not asked.is_set():
            before = time.perf_counter()
            cell.add()
            took.append(time.perf_counter() - before)
            if len(took) % 500 == 0:
                store.put.nowait(len(took) % store.count())
            due = max(due + 1 / PER_SECOND, before)
            time.sleep(max(0, due - time.perf_counter()))
        took.sort()
        tell(
            writes=len(took),
            p50=took[len(took) // 2],
            p99=took[len(took) * 99 // 100],
            most=took[-1],
        )
        sys.stdin.readline()


def join() -> None:
    before = time.perf_counter()
    with orca.join(seeds=ADDRESS, timeout=300) as group:
        seconds = time.perf_counter() - before
        counts = [group.find(Store, f"store {number}").count() for number in range(OBJECTS)]
        tell(seconds=seconds, parts=sum(counts), peak=peak(), resident=peak("VmRSS"))
        sys.stdin.readline()


{"fill": fill, "write": write, "join": join}[ROLE]()
