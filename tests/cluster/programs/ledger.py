"""A ledger whose entries one member is slow to make: `ledger.py writer|other|slow make|join ADDRESS`.

The writer tells what it knows of what each has applied; the slow one applies nothing until "go".
"""

from __future__ import annotations

import os
import sys

from common import KEY, meet, tell, wait_for
from entries import made, make_entry

import orcalike as orca

ROLE, how, address = sys.argv[1:]
ORDER = os.environ.get("ORDER", "TOTAL")
STACK = f"PACK:STABLE:XFER:{ORDER}:MBRSHIP:COM:{address.partition(':')[0]}"


@orca.shared
class Ledger:
    """Its entries outlive each of its members."""

    def __init__(self) -> None:
        self.entries: list[int] = []

    @orca.write(popup=True)
    def enter(self, number: int) -> int:
        """Make an entry."""
        make_entry(number)  # orca: unchecked
        self.entries.append(number)
        return len(self.entries)


def write(group: orca.Group, ledger: Ledger) -> None:
    """What the writer does, and tells."""
    result = ledger.enter.options(stable=2)(1)
    tell(result=result, made=made(1))
    pending = ledger.enter.options(stable=3).nowait(2)
    try:
        ledger.enter.options(stable=3, timeout=0.05)(3)
    except orca.InvocationTimeout as error:
        tell(outcome=error.outcome, text=str(error))
    stability = group.stability()
    place = stability.members.index(group.me)
    tell(pending=pending.done(), levels=[stability.level(k)[place] for k in (1, 2, 3)])
    result = pending.result(timeout=60)
    tell(result=result, made=made(2))


joining = (
    # What is counted is the program's own: members that compare states send messages, too.
    orca.join(listen=address, size=3, stack=STACK, key=KEY, check="none")
    if how == "make"
    else orca.join(seeds=address, size=3, stack=STACK, timeout=60, key=KEY, check="none")
)
with joining as group:
    ledger = group.share(Ledger, "ledger")
    meet("shared", 3)
    if ROLE == "writer":
        write(group, ledger)
    group.barrier()
    wait_for(
        lambda: all(len(set(row)) == 1 for row in group.stability().matrix),
        "all know that all have",
    )
    tell(rows=group.stability().matrix)
    meet("facts printed", 3)
