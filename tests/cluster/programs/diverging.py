"""Each rank writes; an operation reads what is another thing in one process. Each tells what it meets.

The first argument says how many objects there are: the odd one is the last.
"""

from __future__ import annotations

import sys
import time

from common import tell

import orcalike as orca

odd = False
"""Whether this is the process in which the operation does something else."""


@orca.shared
class Tally:
    """A number, and an operation that is not deterministic."""

    def __init__(self) -> None:
        self.value = 0

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.write
    def add(self) -> int:
        self.value += 1
        return self.value

    @orca.write
    def add_oddly(self) -> int:
        self.value += 2 if odd else 1  # orca: unchecked
        return self.value


with orca.join() as group:
    odd = group.rank == 2
    tallies = [group.share(Tally, f"tally {number}") for number in range(int(sys.argv[1]))]
    group.barrier()
    if group.rank == 0:
        tallies[-1].add_oddly()
    error = ""
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end:
            tallies[0].add()
            if group.rank != 2 and tallies[0].get() > 400:
                break
            time.sleep(0.01)
    except orca.OrcalikeError as caught:
        error = f"{type(caught).__name__}: {caught}"
    read = ""
    try:
        tallies[-1].get()
    except orca.OrcalikeError as caught:
        read = type(caught).__name__
    value = None
    if read:
        group.rejoin(timeout=60)
        value = tallies[-1].get()
        tallies[0].add()
    members = [str(member) for member in group.members]  # before any of them leaves
    group.barrier()
    tell(
        rank=group.rank,
        error=error,
        read=read,
        value=value,
        members=members,
    )
